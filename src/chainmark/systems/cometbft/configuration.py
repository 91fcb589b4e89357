"""CometBFT's configuration: changed by the profile, and compared with the version's own defaults."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit

from chainmark.core.errors import UsageError
from chainmark.core.manifest import ConfigChange, Configuration, Scalar

Flat = dict[str, Scalar | list[Scalar]]
# Generated for every network, so two runs always differ in them without any meaning.
_GENESIS_IDENTITY = {"genesis_time", "chain_id", "app_hash"}


def flatten(content: Mapping[str, Any], prefix: str = "") -> Flat:
    """Nested tables as dotted keys; lists of scalars stay lists, any other list becomes its length."""
    flat: Flat = {}
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{name}.")
        elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
            flat[f"{name}.count"] = len(value)
        else:
            flat[name] = value
    return flat


def read_config(home: Path) -> Flat:
    """A node's ``config.toml``, flattened."""
    return flatten(tomllib.loads((home / "config" / "config.toml").read_text(encoding="utf-8")))


def read_genesis(home: Path) -> Flat:
    """A node's ``genesis.json``, flattened, without values that are generated for every network."""
    flat = flatten(json.loads((home / "config" / "genesis.json").read_text(encoding="utf-8")))
    return {key: value for key, value in flat.items() if key not in _GENESIS_IDENTITY}


def change_config(home: Path, changes: Mapping[str, Scalar | list[Scalar]], version: str) -> None:
    """Set keys of a node's ``config.toml`` in place; the order is kept.

    Raises:
        UsageError: this version's configuration has no such key.
    """
    change_toml(home / "config" / "config.toml", changes, f"config.toml of CometBFT {version}", "node.config")


def change_toml(path: Path, changes: Mapping[str, Scalar | list[Scalar]], place: str, setting: str) -> None:
    """Set keys of a node's TOML file in place; its comments are lost, because parsing them would dominate the run time.

    Args:
        path: of the file.
        changes: by section and key.
        place: the file's name in an error.
        setting: the profile's section with its keys.

    Raises:
        UsageError: the file has no such key, or does not exist.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"there is no {place}", f"`{setting}` names a file that the nodes do not have") from error
    known = flatten(document)
    for key, value in changes.items():
        if key not in known:
            raise _unknown_key(key, known, place, setting)
        *sections, last = key.split(".")
        table: Any = document
        for section in sections:
            table = table[section]
            if not isinstance(table, dict):
                raise _unknown_key(key, known, place, setting)
        table[last] = value
    path.write_text(tomlkit.dumps(document), encoding="utf-8")


def change_genesis(home: Path, changes: Mapping[str, Scalar | list[Scalar]], version: str) -> None:
    """Set keys of a node's ``genesis.json``.

    Raises:
        UsageError: this version's genesis has no such key.
    """
    path = home / "config" / "genesis.json"
    genesis = json.loads(path.read_text(encoding="utf-8"))
    known = flatten(genesis)
    for key, value in changes.items():
        if key not in known:
            raise _unknown_key(key, known, f"genesis of CometBFT {version}", "node.genesis")
        *sections, last = key.split(".")
        table = genesis
        for section in sections:
            table = table[section]
        table[last] = value
    path.write_text(json.dumps(genesis, indent=2), encoding="utf-8")


def change_voting_powers(home: Path, power_of: Mapping[str, int]) -> None:
    """Set the validators' powers, by the addresses of their keys, in a node's ``genesis.json``."""
    path = home / "config" / "genesis.json"
    genesis = json.loads(path.read_text(encoding="utf-8"))
    for validator in genesis["validators"]:
        validator["power"] = str(power_of[validator["address"]])
    path.write_text(json.dumps(genesis, indent=2), encoding="utf-8")


def validator_address(home: Path) -> str:
    """The address of a node's validator key."""
    key = json.loads((home / "config" / "priv_validator_key.json").read_text(encoding="utf-8"))
    return str(key["address"])


def _unknown_key(key: str, known: Mapping[str, object], place: str, section: str) -> UsageError:
    close = difflib.get_close_matches(key, list(known), n=1)
    hint = f"did you mean `{section}.{close[0]}`?" if close else "`cometbft init` writes a file with all keys"
    return UsageError(f"`{key}` is not a key of the {place}", hint)


def describe(homes: Mapping[str, Path], defaults: Path) -> Configuration:
    """Every node's configuration compared with ``cometbft init``'s: shared values, changed values, differences.

    Args:
        homes: the nodes' homes by name.
        defaults: a home made by ``cometbft init`` of the same binary.
    """
    configuration = Configuration()
    for file, read in (("config.toml", read_config), ("genesis.json", read_genesis)):
        default = read(defaults)
        used = {name: read(home) for name, home in homes.items()}
        first = next(iter(used.values()))
        common = {key: value for key, value in first.items() if all(flat.get(key) == value for flat in used.values())}
        configuration.effective[file] = dict(sorted(common.items()))
        configuration.changed[file] = _changes(default, common)
        for name, flat in used.items():
            own = {key: value for key, value in flat.items() if key not in common}
            if changes := _changes(default, own):
                configuration.changed_per_node.setdefault(name, {})[file] = changes
    return configuration


def _changes(default: Flat, used: Flat) -> dict[str, ConfigChange]:
    return {
        key: ConfigChange(default=default.get(key), used=value)
        for key, value in sorted(used.items())
        if default.get(key) != value
    }
