"""When a qualification, or an experiment, makes no more runs of a scenario."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import chainmark as cm
from chainmark.api import experimenting
from chainmark.api.context import relay
from chainmark.api.experimenting import is_over
from chainmark.compare.decide import decide
from chainmark.core.errors import InvalidRunError
from chainmark.store.runs import Store

from tests.unit.compare.synthetic_runs import SyntheticRun, sides
from tests.unit.lab.stand_in import Profile, StandIn


class _Told:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def stage(self, name: str) -> None: ...

    def update(self, fraction: float, detail: str = "") -> None: ...

    def say(self, text: str) -> None:
        self.lines.append(text)


def _over(pair: tuple[list[SyntheticRun], list[SyntheticRun]], most: int = 8) -> tuple[bool, list[str]]:
    told = _Told()
    return is_over(decide(*pair), most, relay(told, None)), told.lines


@pytest.mark.parametrize("factors", [{}, {"tx_latency_s": 3.0}], ids=["equal", "three times as slow"])
def test_what_is_decided_needs_no_more_runs(factors: dict[str, float]) -> None:
    assert _over(sides(factors, repetitions=3, run_noise=0.002)) == (True, [])


def test_what_noise_leaves_open_goes_on_and_says_so() -> None:
    over, told = _over(sides(run_noise=0.2, repetitions=2))
    assert not over
    assert told[0].startswith("after 2 runs a side not decided: ")


def test_sides_that_cannot_be_compared_are_not_run_again_and_again() -> None:
    """Eight runs a side of two different workloads say no more than two."""
    baseline, candidate = sides(repetitions=2)
    for run in candidate:
        run.manifest = run.manifest.model_copy(update={"workload": {**run.manifest.workload, "load.rate": 1}})
    over, told = _over((baseline, candidate))
    assert (over, told) == (True, ["the two sides cannot be compared, and no further run would change that"])


def test_a_machine_that_never_has_time_is_said_to_be_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other side has no run then: this was "the candidate has no runs", a mistake of the user."""
    system = StandIn(invalid=frozenset(range(1, 99)))
    profile = Profile(system="cometbft", name="p")
    monkeypatch.setattr(experimenting, "resolve_launchable", lambda *_: (system, profile))
    with pytest.raises(InvalidRunError, match="the measurement failed in each of 3 runs of v1") as failure:
        cm.experiment("p", baseline="v1", candidate="v2", store=tmp_path)
    assert len(Store(tmp_path).sealed()) == 3
    assert re.search("--resume [^`]+-p-", str(failure.value.hint))
