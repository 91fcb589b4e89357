"""The progress output of runs distinguishes a maximum from a fixed number of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainmark.api.context import Relay
from chainmark.cli.bars import TerminalProgress
from chainmark.core.manifest import ExperimentLength
from chainmark.lab.experimenting import Experimenter
from chainmark.lab.qualifying import Qualifier
from chainmark.lab.scenarios import QaRequest
from chainmark.lab.schedules import Arm, PlannedRun, Total
from chainmark.store.runs import Store

from tests.unit.lab.stand_in import Profile, StandIn, two_scenarios

_PROFILE = Profile(system="cometbft", name="trial")
_ARMS = [Arm("baseline", "v1", _PROFILE), Arm("candidate", "v2", _PROFILE)]


def _begun(text: str) -> list[str]:
    """The lines for started runs, without those for their ends."""
    return [line.split(" · ")[0] for line in text.splitlines() if line.startswith("run ")]


def _experiment(folder: Path, length: ExperimentLength, rounds: int) -> None:
    experiment = Experimenter(Store(folder), StandIn()).begin(_ARMS, length, 1, TerminalProgress(None))
    for _ in range(rounds):
        assert experiment.next_round()


@pytest.mark.parametrize(("stops_early", "total"), [(True, "at most 6"), (False, "6")])
def test_progress_shows_whether_the_number_of_runs_is_fixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stops_early: bool, total: str
) -> None:
    """A user who reads "run 3 of 16" expects sixteen runs, although the verdict may be decided after the fourth."""
    _experiment(tmp_path, ExperimentLength(most=3, stops_early=stops_early), 2)
    assert _begun(capsys.readouterr().err) == [f"run {number} of {total}" for number in range(1, 5)]


def test_all_runs_added_by_hand_are_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The added runs are judged only when all of them are complete, so their number is fixed."""
    experimenter = Experimenter(Store(tmp_path), StandIn())
    experiment = experimenter.begin(_ARMS, ExperimentLength(most=2, stops_early=True), 1, TerminalProgress(None))
    experiment.folder.write(experiment.record)
    assert experiment.next_round()
    assert experiment.next_round()
    capsys.readouterr()
    assert experimenter.resume(experiment.id, 1, TerminalProgress(None)).next_round()
    assert _begun(capsys.readouterr().err) == ["run 5 of 6", "run 6 of 6"]


def test_a_run_for_profiles_is_announced_as_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`make demo` ended with two runs on a busy machine and passed, which looked as if the busy machine was ignored."""
    length = ExperimentLength(most=2, stops_early=True)
    experiment = Experimenter(Store(tmp_path), StandIn()).begin(
        _ARMS, length, 1, TerminalProgress(None), profiles=["cpu"]
    )
    assert experiment.next_round()
    experiment.take_profiles()
    announced = [line for line in capsys.readouterr().err.splitlines() if line.startswith("run ")]
    assert [line.partition(" ·")[0] for line in announced[2:]] == [
        f"run {number} of 4, for profiles, not judged" for number in (3, 4)
    ]


def test_a_qualification_shows_at_most_until_everything_is_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = two_scenarios(tmp_path)
    goes_on = plan.scenarios[0].model_copy(update={"repetitions": None, "most_runs": 4})
    order = QaRequest(plan.model_copy(update={"scenarios": [goes_on, plan.scenarios[1]]}), "v1", "v2")
    settled = Qualifier(Store(tmp_path / "store"), StandIn(), lambda _, baseline, __: len(baseline) == 3)
    settled.make(order, TerminalProgress(None))
    error_output = capsys.readouterr().err
    most, rest = [f"run {n} of at most 12" for n in range(1, 7)], [f"run {n} of 10" for n in range(7, 11)]
    assert _begun(error_output) == [*most, *rest]
    assert "about 12 min left at most" in error_output


def test_a_log_has_occasional_steps_and_every_finding(capsys: pytest.CaptureFixture[str]) -> None:
    """A test of ten endpoints has about six hundred steps, which is too many for the log of a pipeline."""
    now_s = 0.0
    shown = TerminalProgress(None, lambda: now_s)
    relay = Relay(shown, None)
    for second in range(0, 100, 10):
        now_s = float(second)
        relay.step(f"/block: step at {second} s")
    relay.tell("/block: 48 clients, stopped by p99, 21 steps")
    relay.stage("summarising")
    lines = capsys.readouterr().err.splitlines()
    steps = [f"  /block: step at {second} s" for second in (0, 30, 60, 90)]
    assert lines == [*steps, "/block: 48 clients, stopped by p99, 21 steps", "  summarising"]


def test_a_search_shows_at_least(capsys: pytest.CaptureFixture[str]) -> None:
    """A search chooses its next load only when it knows the current result, so the total is a minimum."""
    step = PlannedRun("v1/c1r200", "v1", _PROFILE, repetition=1, position=1)
    TerminalProgress(None).begin(step, 2, Total(4, "at least"))
    assert _begun(capsys.readouterr().err) == ["run 2 of at least 4"]
