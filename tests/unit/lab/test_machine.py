"""Two measurements at a time on one machine would disturb each other: the second waits or is refused, in any store."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.progress import Silent
from chainmark.lab import machine
from chainmark.lab.machine import USE, machine_to_itself
from chainmark.lab.protocols import ExecutionRequest
from chainmark.lab.qualifying import Qualifier
from chainmark.lab.running import Lab
from chainmark.lab.scenarios import QaRequest
from chainmark.store.runs import Store

from tests.unit.lab.stand_in import Followed, Profile, StandIn, two_scenarios

TIMEOUT_S = 60
HOLDER = """
import sys
from pathlib import Path
from chainmark.lab import machine

class Messages:
    def stage(self, name): print(name, flush=True)
    def update(self, fraction, detail=""): pass

machine.LOCK = Path(sys.argv[1])
with machine.machine_to_itself(Messages()):
    print("measures", flush=True)
    sys.stdin.readline()
"""
COMMAND = """
import sys
from pathlib import Path
from chainmark.lab import machine
machine.LOCK = Path(sys.argv.pop(1))
from chainmark.cli import main
main()
"""
Starter = Callable[..., subprocess.Popen[str]]


@pytest.fixture(autouse=True)
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock file for this test only, which no other measurement uses."""
    path = tmp_path / "machine.lock"
    monkeypatch.setattr(machine, "LOCK", path)
    monkeypatch.setenv(USE, "wait")
    return path


@pytest.fixture
def holder(lock: Path) -> Iterator[Starter]:
    """A function that starts processes which hold the lock until they read a line, or until the test ends."""
    started: list[subprocess.Popen[str]] = []

    def start(**environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(lock)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **environment},
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_second_process_waits_for_the_first_and_names_it(holder: Starter) -> None:
    first = holder()
    assert _line(first) == "measures"
    second = holder()
    assert _line(second) == f"waiting for process {first.pid} (-c {machine.LOCK}), which is measuring on this machine"
    first.communicate("end\n", timeout=TIMEOUT_S)
    assert _line(second) == "measures"


def test_a_killed_process_frees_the_machine(holder: Starter) -> None:
    first = holder()
    assert _line(first) == "measures"
    second = holder()
    assert _line(second).startswith("waiting for process")
    first.kill()
    assert _line(second) == "measures"


def test_ctrl_c_ends_the_wait(holder: Starter) -> None:
    first = holder()
    assert _line(first) == "measures"
    second = holder()
    assert _line(second).startswith("waiting for process")
    second.send_signal(signal.SIGINT)
    _, errors = second.communicate(timeout=TIMEOUT_S)
    assert "KeyboardInterrupt" in errors
    assert first.poll() is None


def test_a_process_that_must_not_wait_is_refused(holder: Starter) -> None:
    first = holder()
    assert _line(first) == "measures"
    _, errors = holder(**{USE: "refuse"}).communicate(timeout=TIMEOUT_S)
    assert f"this machine is in use: process {first.pid}" in errors


def test_functional_tests_share_the_machine(holder: Starter) -> None:
    assert _line(holder()) == "measures"
    assert _line(holder(**{USE: "shared"})) == "measures"


def test_a_command_of_another_store_is_refused_with_5_and_a_hint(holder: Starter, lock: Path, tmp_path: Path) -> None:
    """The lock covers the machine, not a store."""
    assert _line(holder()) == "measures"
    profile = tmp_path / "load.toml"
    arguments = ["load", "http/example", "--target", "http://127.0.0.1:9", "--no-wait"]
    ended = subprocess.run(
        [sys.executable, "-c", COMMAND, str(lock), *arguments],
        capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
        env={**os.environ, "CHAINMARK_STORE": str(profile.parent / "another"), "NO_COLOR": "1"},
    )  # fmt: skip
    assert ended.returncode == 5, ended.stderr
    assert "error: this machine is in use: process" in ended.stderr
    assert "hint: omit `--no-wait` to wait" in ended.stderr


def _refused_elsewhere() -> bool:
    """Whether a measurement in another thread would be refused now."""
    refused = []

    def attempt() -> None:
        try:
            with machine_to_itself(Silent()):
                pass
        except EnvironmentFailure:
            refused.append(True)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join(TIMEOUT_S)
    return bool(refused)


def test_the_lock_is_reentrant_until_the_outermost_holder_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(USE, "refuse")
    with machine_to_itself(Silent()):
        with machine_to_itself(Silent()):
            assert _refused_elsewhere()
        assert _refused_elsewhere()
    assert not _refused_elsewhere()


def test_a_run_of_a_network_locks_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(USE, "refuse")
    seen: list[bool] = []
    system = StandIn(lambda _: seen.append(_refused_elsewhere()))
    profile = Profile(system="cometbft", name="short")
    order, progress = ExecutionRequest("v1", 1, keep_homes=False), Followed()
    Lab(Store(tmp_path / "store"), system).measure(profile, order, progress, None)(progress)
    assert seen == [True]
    assert not _refused_elsewhere()


def test_a_qualification_holds_the_lock_between_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that took the lock in between would not be refused, and this qualification would have to wait."""
    monkeypatch.setenv(USE, "refuse")
    seen: list[bool] = []

    class Between(Followed):
        def end(self, run: object) -> None:
            seen.append(_refused_elsewhere())

    order = QaRequest(two_scenarios(tmp_path), "v1", "v2")
    Qualifier(Store(tmp_path / "store"), StandIn()).make(order, Between())
    assert seen == [True] * 8


def test_every_user_can_take_the_lock_with_any_umask(lock: Path) -> None:
    before = os.umask(0o077)
    try:
        with machine_to_itself(Silent()):
            assert stat.S_IMODE(lock.stat().st_mode) == 0o666
    finally:
        os.umask(before)
    assert [path.name for path in lock.parent.iterdir() if path.name.startswith(lock.name)] == [lock.name]


def test_a_symbolic_link_as_lock_file_is_not_followed(lock: Path, tmp_path: Path) -> None:
    """Everybody can write to /tmp, and root would empty the target of the link."""
    target = tmp_path / "precious"
    target.write_text("kept", encoding="utf-8")
    lock.symlink_to(target)
    with pytest.raises(EnvironmentFailure, match="cannot be opened"), machine_to_itself(Silent()):
        pass
    assert target.read_text(encoding="utf-8") == "kept"


def test_an_invalid_setting_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(USE, "sometimes")
    with (
        pytest.raises(UsageError, match="`sometimes` is not a valid value of `CHAINMARK_MACHINE`"),
        machine_to_itself(Silent()),
    ):
        pass
