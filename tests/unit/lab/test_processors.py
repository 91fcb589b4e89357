"""After a run that lost processor time to other processes, the next run waits until the processors are free again."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from chainmark.lab import processors
from chainmark.lab.machine import USE
from chainmark.lab.processors import FREE_PROBES, LONGEST_WAIT_S, PAUSE_S, Probing, wait_for_processors


@dataclass
class Clocked:
    """A machine whose probes lose these shares; the last share repeats. Probes take no time, pauses do."""

    shares: list[float]
    now_s: float = 0.0
    probes: int = 0

    def probing(self) -> Probing:
        """The probe, pause and clock as `wait_for_processors` expects them."""
        return Probing(self._lost, self._pause, lambda: self.now_s)

    def _lost(self) -> float:
        self.probes += 1
        return self.shares[min(self.probes, len(self.shares)) - 1]

    def _pause(self, seconds: float) -> None:
        self.now_s += seconds


@dataclass
class Heard:
    """A progress listener that stores what it receives."""

    stages: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    def stage(self, name: str) -> None:
        """Store the stage."""
        self.stages.append(name)

    def update(self, fraction: float, detail: str = "") -> None:
        """Store the detail."""
        assert 0.0 <= fraction <= 1.0
        self.details.append(detail)


def test_an_idle_machine_is_probed_only_a_few_times() -> None:
    machine = Clocked([0.0])
    assert wait_for_processors(Heard(), machine.probing())
    assert (machine.probes, machine.now_s) == (FREE_PROBES, (FREE_PROBES - 1) * PAUSE_S)


def test_probes_are_counted_from_the_last_probe_with_a_loss() -> None:
    """A host that steals time intermittently would spoil the next run as well."""
    machine, heard = Clocked([0.2, 0.0, 0.01, 0.0, 0.3, 0.0]), Heard()
    assert wait_for_processors(heard, machine.probing())
    assert machine.probes == 5 + FREE_PROBES
    assert heard.stages == ["waiting until this machine's processors are free"]
    assert heard.details[0] == "other processes use 20 %, waited 0 s"


def test_waiting_ends_after_the_longest_wait() -> None:
    """A shared machine that is never idle is measured anyway, and its runs report the loss."""
    machine = Clocked([0.06])
    assert not wait_for_processors(Heard(), machine.probing())
    assert LONGEST_WAIT_S <= machine.now_s < LONGEST_WAIT_S + PAUSE_S


def test_a_shared_machine_is_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(USE, "shared")
    monkeypatch.setattr(processors, "probe", lambda: pytest.fail("probed"))
    assert wait_for_processors(Heard())
