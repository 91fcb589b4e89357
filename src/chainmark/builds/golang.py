"""The Go tool: the inputs of a build, the build information in a binary, and its errors as sentences."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure

BUILD_TIMEOUT_S = 1_800
# -trimpath and no stamp of the repository: equal sources give equal bytes, independent of their folder and commit.
BUILD_FLAGS = ("-trimpath", "-buildvcs=false")
# The environment variables that affect a build.
_DECIDING = (
    "GOVERSION",
    "GOOS",
    "GOARCH",
    "GOAMD64",
    "GOARM64",
    "CGO_ENABLED",
    "GOFLAGS",
    "GOEXPERIMENT",
    "CGO_CFLAGS",
)
# Go's messages for failures of the network, and not of the sources.
_NETWORK = re.compile(r"dial tcp|no such host|proxyconnect|connection refused|i/o timeout|TLS handshake|\b50[234]\b")


@dataclass(frozen=True)
class BuildInfo:
    """The build information in a Go binary.

    Attributes:
        package: of the command.
        modules: by module, its version and its replacement; including the main module.
    """

    toolchain: str
    package: str
    main_module: str
    modules: Mapping[str, str]
    settings: Mapping[str, str]


def go(
    arguments: Sequence[str],
    *,
    cwd: Path = Path("/"),
    timeout_s: float = BUILD_TIMEOUT_S,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the Go tool.

    Args:
        arguments: the command and its own.
        cwd: the default is outside any module.
        timeout_s: after which it is killed, s.
        environment: changes to this process's.

    Raises:
        EnvironmentFailure: it is not installed, or did not end in time.
    """
    try:
        return subprocess.run(
            ["go", *arguments],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
            cwd=cwd,
        )
    except subprocess.TimeoutExpired as error:
        took = units.duration(timeout_s)
        raise EnvironmentFailure(f"`go {arguments[0]}` took more than {took}", "try again") from error
    except FileNotFoundError as error:
        raise missing_go() from error


def missing_go() -> EnvironmentFailure:
    """The error that Go is not installed."""
    return EnvironmentFailure("`go` was not found", "install Go 1.23 or newer, which builds node binaries")


def require_go() -> None:
    """Raise EnvironmentFailure if Go is not installed."""
    if shutil.which("go") is None:
        raise missing_go()


def deciding_environment(folder: Path, changes: Mapping[str, str]) -> dict[str, str]:
    """The inputs of a build in a module's folder; the toolchain is the one that its ``go.mod`` requires.

    Args:
        folder: the module's.
        changes: to this process's environment, for the build.

    Raises:
        EnvironmentFailure: Go cannot report it, for instance because it cannot fetch that toolchain.
    """
    ended = go(["env", "-json", *_DECIDING], cwd=folder, environment=changes)
    if ended.returncode != 0:
        raise EnvironmentFailure(
            f"`go env` failed: {last_lines(ended.stderr, 1)}",
            "its `go.mod` may require a Go version that cannot be fetched",
        )
    results: dict[str, str] = json.loads(ended.stdout)
    return {name: value for name, value in results.items() if value}


def is_network_failure(output: str) -> bool:
    """Whether Go failed because it could not reach what it needs."""
    return bool(_NETWORK.search(output))


def last_lines(output: str, count: int) -> str:
    """The last lines of a program's output."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return "\n".join(lines[-count:]) or "no output"


def build_info(binary: Path) -> BuildInfo | None:
    """The build information in a binary; None if it is not Go's, or if Go is not installed."""
    if shutil.which("go") is None:
        return None
    ended = go(["version", "-m", str(binary.absolute())], timeout_s=60)
    lines = ended.stdout.splitlines()
    if ended.returncode != 0 or not lines or len(lines) < 2:
        return None
    return _read_info(lines[0].rpartition(": ")[2], [line.strip().split("\t") for line in lines[1:]])


def _read_info(toolchain: str, rows: list[list[str]]) -> BuildInfo:
    package, main, modules, settings, last = "", "", dict[str, str](), dict[str, str](), ""
    for kind, *values in rows:
        if kind == "path":
            package = values[0]
        elif kind in {"mod", "dep"}:
            last, main = values[0], values[0] if kind == "mod" else main
            modules[last] = values[1] if len(values) > 1 else ""
        elif kind == "=>":
            modules[last] += f" => {' '.join(values[:2]).strip()}"
        elif kind == "build":
            name, _, value = values[0].partition("=")
            settings[name] = value
    return BuildInfo(toolchain, package, main, modules, settings)
