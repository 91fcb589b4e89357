"""The test lab repeats only runs that the instruments spoiled. It never hides a failure of the subject."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from chainmark.core.manifest import Gate, GateStatus

import tests.support
from tests.begin import FIRST
from tests.support import ATTEMPTS, Lab, wait_until

ROOT = Path(__file__).resolve().parents[2]
DONE, INVALID = 0, 4


@dataclass
class _Store:
    """A store of runs that have only an id and gates."""

    retained: list[SimpleNamespace] = field(default_factory=list)
    made: int = 0

    def sealed(self) -> list[SimpleNamespace]:
        return list(self.retained)

    def remove(self, run: SimpleNamespace) -> None:
        self.retained.remove(run)

    def make(self, failing: Sequence[str]) -> None:
        gates = [Gate(id=name, label=name, status=GateStatus.FAIL, measured="m", limit="l") for name in failing]
        gates.append(Gate(id="observed", label="seen", status=GateStatus.PASS, measured="m", limit="l"))
        self.made += 1
        self.retained.append(SimpleNamespace(run_id=f"run{self.made}", manifest=SimpleNamespace(gates=gates)))


def _lab(monkeypatch: pytest.MonkeyPatch, attempts: Sequence[Sequence[str]], *, calm: bool) -> Lab:
    """A lab in which each command makes one run. `attempts` lists the failed gates of each run."""
    store, left = _Store(), iter(attempts)

    def finish() -> subprocess.CompletedProcess[str]:
        failing = next(left)
        store.make(failing)
        return subprocess.CompletedProcess([], INVALID if failing else DONE, "", "")

    monkeypatch.setattr(Lab, "store", store)
    monkeypatch.setattr(Lab, "start", lambda *_: SimpleNamespace(finish=finish))
    monkeypatch.setattr(tests.support, "wait_until_calm", lambda timeout_s: calm)
    return Lab(Path("nowhere"))


def test_a_run_spoiled_by_the_machine_is_repeated_and_discarded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = _lab(monkeypatch, [["pressure", "lag"], []], calm=True)
    assert [run.run_id for run in lab.runs("demo")] == ["run2"]
    assert len(lab.store.sealed()) == 1


@pytest.mark.parametrize("failing", [["nodes_alive"], ["pressure", "books"], ["committed", "lag"]])
def test_a_failure_of_the_subject_is_a_failure_at_once(failing: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds whichever other gates fail.

    Otherwise a crash on a busy machine would be retried until it no longer occurs.
    """
    lab = _lab(monkeypatch, [failing, []], calm=False)
    with pytest.raises(AssertionError, match="exit 4"):
        lab.runs("demo")


def test_a_generator_that_is_late_on_a_quiet_machine_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this case chainmark itself became slower."""
    lab = _lab(monkeypatch, [["lag"]] * ATTEMPTS, calm=True)
    with pytest.raises(AssertionError, match="exit 4"):
        lab.runs("demo")


def test_a_test_is_skipped_on_a_machine_that_stays_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = _lab(monkeypatch, [["pressure"], []], calm=False)
    with pytest.raises(pytest.skip.Exception, match="too busy"):
        lab.runs("demo")


def test_an_expected_failure_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = _lab(monkeypatch, [["pressure"]], calm=False)
    assert len(lab.runs("demo", code=(0, 4))) == 1


def test_every_file_scheduled_first_exists() -> None:
    """A renamed file would silently start last and delay the end of the test stage."""
    root = Path(__file__).resolve().parents[2]
    assert [name for name in FIRST if not (root / name).is_file()] == []


STARTED_IN_A_SESSION = """
import os, subprocess, sys
ask = "import os; input(); print(open('/proc/self/autogroup').read().split()[-1], os.nice(0))"
with subprocess.Popen([sys.executable, "-c", ask], stdin=subprocess.PIPE, start_new_session=True) as child:
    while not open(f"/proc/{child.pid}/autogroup").read().endswith(" 19\\n"):
        pass
    child.communicate(b"\\n")
sys.exit(3)
"""


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this kernel has no priorities of sessions")
def test_low_priority_includes_every_session_that_a_command_starts() -> None:
    """A browser or a node in a session of its own would take a processor from the measured networks."""
    before = Path("/proc/self/autogroup").read_text()
    command = [sys.executable, "-m", "tests.beside", sys.executable, "-c", STARTED_IN_A_SESSION]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout.split(), ended.stderr) == (3, ["19", "19"], "")
    assert Path("/proc/self/autogroup").read_text() == before


@pytest.mark.timeout(60)
def test_low_priority_ends_with_its_command() -> None:
    """Otherwise an interrupted `make test` would leave unit tests running, also if it is interrupted at their start.

    Signals at every moment, during the clean-up also: an exception in each would leave the command or a lock behind.
    """
    command = [sys.executable, "-m", "tests.beside", "sleep", "87653"]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            parent = psutil.Process(process.pid)
            wait_until(lambda: any(child.name() == "sleep" for child in parent.children()), "sleep", period_s=0.0)
            (child,) = parent.children()
            while process.poll() is None:
                process.terminate()
            assert not child.is_running()
            assert process.returncode in {143, -signal.SIGTERM}  # Python no longer handles signals when it shuts down
        finally:
            process.kill()
