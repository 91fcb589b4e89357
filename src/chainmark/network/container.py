"""A container of this machine, by its name: its first process and its control group."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.network.run_queue import PROC
from chainmark.network.server_usage import group_of

# Both return the same JSON for `container inspect`.
ENGINES = ("docker", "podman")
ENGINE_LONGEST_S = 20.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
# A process that began so close to its container's begin is its first one; clocks are set and machines sleep meanwhile.
_SAME_BEGIN_S = 60.0
_OTHER = "give its process IDs with `--server-pid`"


@dataclass(frozen=True)
class Container:
    """A container that runs here.

    Attributes:
        pid: its first process, in this machine's PID namespace.
        group: its control group (version 2); None: it has none of its own.
    """

    pid: int
    group: Path | None


def container_called(name: str) -> Container:
    """The running container of this name or ID.

    Raises:
        UsageError: no engine knows it, it does not run, or it runs on another machine.
    """
    described = _described(name)
    state = described["State"]
    identifier, pid = str(described["Id"]), int(state["Pid"])
    if not state["Running"] or pid <= 0:
        raise UsageError(
            f"the container `{name}` is not running", f"its state is `{state.get('Status', '?')}`; start it"
        )
    if not _is_here(identifier, pid, str(state["StartedAt"])):
        raise UsageError(
            f"the container `{name}` does not run on this machine: its process {pid} is not here",
            "its engine is on another machine; run chainmark there, or monitor the server with `--scrape`",
        )
    groups = [folder for folder in _with_parents(group_of(pid)) if identifier in folder.name]
    # Groups that a container creates for itself are below the group with its name.
    return Container(pid, groups[-1] if groups else None)


def _described(name: str) -> dict[str, Any]:
    """The description by the first engine that has it."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"`{name}` is not a valid container name", "`docker ps` lists the running containers")
    engines = [engine for engine in ENGINES if shutil.which(engine)]
    if not engines:
        raise UsageError(
            f"the container `{name}` cannot be looked up: neither docker nor podman is on the PATH", _OTHER
        )
    reasons = []
    for engine in engines:
        result, reason = _inspected(engine, name)
        if result is not None:
            return result
        reasons.append(f"{engine}: {reason}")
    raise UsageError(
        f"no container `{name}` was found ({'; '.join(reasons)})",
        f"`{engines[0]} ps` lists the running containers; or {_OTHER}",
    )


def _inspected(engine: str, name: str) -> tuple[dict[str, Any] | None, str]:
    """Its description of the container, or why there is none."""
    try:
        answer = subprocess.run(
            [engine, "container", "inspect", name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ENGINE_LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"no response within {units.duration(ENGINE_LONGEST_S)}"
    except OSError as error:
        return None, error.strerror or str(error)
    if answer.returncode:
        lines = answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"]
        return None, lines[-1].removeprefix("Error: ").rstrip(".")
    try:
        (result,) = json.loads(answer.stdout)
        int(result["State"]["Pid"]), result["State"]["Running"], result["State"]["StartedAt"], result["Id"]
    except (ValueError, KeyError, TypeError):
        return None, "its output does not describe a container"
    return result, ""


def _is_here(identifier: str, pid: int, started_at: str) -> bool:
    """Whether this process is the container's: for an engine on another machine, the ID may be any process here."""
    try:
        if identifier in (PROC / str(pid) / "cgroup").read_text():
            return True
        began_s = datetime.fromisoformat(started_at).timestamp()
        return abs(psutil.Process(pid).create_time() - began_s) < _SAME_BEGIN_S
    except (OSError, ValueError, psutil.Error):
        return False


def _with_parents(folder: Path | None) -> list[Path]:
    return [folder, *folder.parents] if folder else []
