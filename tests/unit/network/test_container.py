"""A server's container is found by its name, and a process outside the container is never taken for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from chainmark.core.errors import UsageError
from chainmark.network import container, server_usage
from chainmark.network.container import container_called
from chainmark.network.server_watch import ServerSources, ServerWatch

ID = "4f" * 32
# The engine stores each container's description in a file and responds like `docker container inspect` and podman.
ENGINE = """#!/bin/sh
[ "$1 $2" = "container inspect" ] || exit 64
cat "{folder}/$3.json" 2>/dev/null && exit 0
echo '[]'
echo "Error response from daemon: No such container: $3" >&2
exit 1
"""
Add = Callable[..., None]


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Add:
    """A function that adds a container to the only engine on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "cat"):
        (folder / tool).symlink_to(f"/bin/{tool}")
    monkeypatch.setenv("PATH", str(folder))

    def add_container(name: str, pid: int, started: float, engine: str = "docker", status: str = "running") -> None:
        program = folder / engine
        program.write_text(ENGINE.format(folder=folder), encoding="utf-8")
        program.chmod(0o755)
        moment = datetime.fromtimestamp(started, UTC).isoformat(timespec="microseconds")
        began = moment.replace("+00:00", "123Z")  # nanoseconds, as in Go
        state = {"Status": status, "Running": status == "running", "Pid": pid, "StartedAt": began}
        (folder / f"{name}.json").write_text(json.dumps([{"Id": ID, "State": state}]), encoding="utf-8")

    return add_container


@pytest.fixture
def process() -> Iterator[psutil.Process]:
    """A process on this machine."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        yield psutil.Process(running.pid)
        running.communicate(b"\n")


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_a_container_without_a_group_is_watched_by_its_processes(
    add: Add, process: psutil.Process, tmp_path: Path, engine: str
) -> None:
    add("db", process.pid, process.create_time(), engine)
    with ServerWatch(ServerSources(container="db"), "http://192.0.2.1") as watch:
        watched = watch.finish(tmp_path / "metrics")
    assert watched.sources[0].what.startswith(f"the container db: process {process.pid}")
    assert watched.sources[0].read > 0


@pytest.mark.parametrize(
    ("path", "group"),
    [
        (f"system.slice/docker-{ID}.scope", f"system.slice/docker-{ID}.scope"),
        (f"machine.slice/libpod-{ID}.scope/container", f"machine.slice/libpod-{ID}.scope"),
        (f"docker/{ID}/init.scope", f"docker/{ID}"),
    ],
)
def test_a_container_is_watched_by_its_control_group(
    add: Add, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str, group: str
) -> None:
    """Groups as laid out by systemd, podman and Docker's own driver. The processes may be in a subgroup."""
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "4711").mkdir(parents=True)
    (proc / "4711" / "cgroup").write_text(f"0::/{path}\n", encoding="utf-8")
    for folder in (groups / path, *(groups / path).parents):
        if folder.is_relative_to(groups):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cpu.stat").write_text("usage_usec 5\n", encoding="utf-8")
            (folder / "cgroup.procs").touch()
    (groups / path / "cgroup.procs").write_text("4711\n", encoding="utf-8")
    (groups / "cgroup.controllers").touch()
    for module, name, value in (
        (container, "PROC", proc), (server_usage, "PROC", proc), (server_usage, "CGROUPS", groups)
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    add("db", 4711, 0.0)
    assert container_called("db").group == groups / group
    with ServerWatch(ServerSources(container="db"), "http://192.0.2.1") as watch:
        assert watch.finish(tmp_path / "metrics").sources[0].what == "the container db"


def _refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(UsageError) as refused:
        call()
    assert refused.value.hint
    return refused.value.message


def test_an_unusable_container_is_refused_before_the_load(add: Add, process: psutil.Process, tmp_path: Path) -> None:
    def lookup(name: str) -> str:
        return _refusal(lambda: container_called(name))

    assert lookup("db") == "the container `db` cannot be looked up: neither docker nor podman is on the PATH"
    add("stopped", 0, 0.0, status="exited")
    assert lookup("stopped") == "the container `stopped` is not running"
    assert lookup("db") == ("no container `db` was found (docker: Error response from daemon: No such container: db)")
    assert lookup("--help") == "`--help` is not a valid container name"
    # The process number belongs to the engine's machine. Here it belongs to another process or to none.
    add("far", process.pid, process.create_time() - 3600.0)
    assert "`far` does not run on this machine" in lookup("far")
    add("gone", 2**22 + 1, 0.0)
    assert "`gone` does not run on this machine" in lookup("gone")
    (tmp_path / "bin" / "odd.json").write_text("[]", encoding="utf-8")
    assert lookup("odd") == "no container `odd` was found (docker: its output does not describe a container)"
    both = ServerSources(container="far", cgroup=tmp_path)
    assert "both name the server's group" in _refusal(lambda: ServerWatch(both, "http://192.0.2.1"))
