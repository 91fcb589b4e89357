"""Vote extensions: the application of the network's own end-to-end tests, which extends votes by a configured size.

The node's built-in ``kvstore`` does not extend votes. The module's package ``test/e2e/node`` is a node with another
built-in application: it puts all extensions of a block, in hexadecimal, into the first transaction of the next one, and
every validator checks it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tomlkit

from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Scalar
from chainmark.core.storage import storage_errors
from chainmark.systems.cometbft import nodes
from chainmark.systems.cometbft.configuration import Flat, read_genesis

PACKAGE = "test/e2e/node"
BINARY = "e2e-node"
# The application's configuration key of the size; every binary that supports it contains the name.
_SIZE_KEY = "vote_extension_size"
# The genesis key of the height from which votes are extended: from v1 on, and before.
_ENABLE_KEYS = (
    "consensus_params.feature.vote_extensions_enable_height",
    "consensus_params.abci.vote_extensions_enable_height",
)


@dataclass(frozen=True)
class ExtendingApplication:
    """The node with that application. ``size_bytes`` 0 means a number of up to 8 bytes."""

    binary: Path
    version: str
    size_bytes: int

    def genesis_changes(self, home: Path) -> dict[str, Scalar | list[Scalar]]:
        """The genesis changes that extend votes from the first block on.

        Raises:
            UsageError: this version has no vote extensions.
        """
        known: Flat = read_genesis(home)
        key = next((key for key in _ENABLE_KEYS if key in known), None)
        if key is None:
            raise _not_available(self.version, "its genesis cannot enable them")
        return {key: "1"}

    def prepare(self, home: Path) -> None:
        """Write the application's configuration for one node."""
        genesis = json.loads((home / "config" / "genesis.json").read_text(encoding="utf-8"))
        content = {
            "chain_id": genesis["chain_id"],
            "protocol": "builtin",
            "dir": str(home / "data" / "application"),
            "persist_interval": 1,
            "snapshot_interval": 0,
            "vote_extensions_enable_height": 1,
            "vote_extensions_update_height": -1,  # the genesis contains it
            **({_SIZE_KEY: self.size_bytes} if self.size_bytes else {}),
        }
        with storage_errors(home):
            (home / "data" / "application").mkdir(parents=True, exist_ok=True)
            _configuration(home).write_text(tomlkit.dumps(content), encoding="utf-8")

    def command(self, home: Path) -> list[str]:
        """The command that starts a node on that home."""
        return [str(self.binary), str(_configuration(home))]

    def environment(self, home: Path) -> Mapping[str, str]:
        """Its environment variables."""
        return {"CMTHOME": str(home)}

    def __str__(self) -> str:
        size = f"{units.count(self.size_bytes)} bytes" if self.size_bytes else "up to 8 bytes"
        return f"end-to-end test application, vote extensions of {size}"


def _configuration(home: Path) -> Path:
    return home / "config" / "application.toml"


def install(version: str, size_bytes: int) -> ExtendingApplication:
    """Ensure that the node with the extending application is cached.

    Args:
        version: of CometBFT.
        size_bytes: of each vote's extension; 0: a number of up to 8 bytes.

    Raises:
        UsageError: that version's application does not support it.
        EnvironmentFailure: it could not be built.
    """
    binary = nodes.install_tool(version, PACKAGE, BINARY)
    if size_bytes and f'toml:"{_SIZE_KEY}"'.encode() not in binary.read_bytes():
        raise _not_available(version, "its test application extends votes only by up to 8 bytes")
    return ExtendingApplication(binary, version, size_bytes)


def _not_available(version: str, reason: str) -> UsageError:
    return UsageError(
        f"vote extensions of a chosen size are not available in CometBFT {version}: {reason}",
        "use v1.0.0 or later, or the smallest extension: `--set application.vote_extension_size_bytes=0`",
    )
