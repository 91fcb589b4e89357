"""Conditions under which a qualification or an experiment stops making runs of a scenario."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import chainmark as cm
from chainmark.api import clusters, experimenting
from chainmark.api.comparing import How
from chainmark.api.context import Relay
from chainmark.api.experimenting import HOPELESS, LEAST_BEFORE_GIVING_UP, is_over
from chainmark.compare.decide import decide
from chainmark.compare.sides import SelectedRuns
from chainmark.core.errors import EnvironmentFailure, InvalidRunError
from chainmark.core.manifest import ExperimentLength, Gate, GateStatus, Status, Subject
from chainmark.core.verdict import Verdict
from chainmark.store.runs import Store

from tests.unit.api.listening import Reported
from tests.unit.compare.metric_cases import loaded_run
from tests.unit.compare.synthetic_runs import SyntheticRun, sides
from tests.unit.lab.stand_in import Profile, StandIn


def _over(pair: tuple[list[SyntheticRun], list[SyntheticRun]], most: int = 8) -> tuple[bool, list[str]]:
    listener = Reported()
    return is_over(decide(*pair), most, Relay(listener, None)), listener.lines


@pytest.mark.parametrize("factors", [{}, {"tx_latency_s": 3.0}], ids=["equal", "three times as slow"])
def test_a_decided_experiment_makes_no_more_runs(factors: dict[str, float]) -> None:
    assert _over(sides(factors, repetitions=3, run_noise=0.002)) == (True, [])


def test_an_undecided_experiment_continues_and_reports_why() -> None:
    over, messages = _over(sides(run_noise=0.2, repetitions=2))
    assert not over
    assert messages[0].startswith("after 2 runs per side undecided: ")


def test_incomparable_sides_are_not_run_repeatedly() -> None:
    """Eight runs per side of two different workloads show no more than two runs per side."""
    baseline, candidate = sides(repetitions=2)
    for run in candidate:
        run.manifest = run.manifest.model_copy(update={"workload": {**run.manifest.workload, "load.rate": 1}})
    over, messages = _over((baseline, candidate))
    assert (over, messages) == (True, ["the two sides cannot be compared, and more runs will not change that"])


def test_a_machine_busy_during_some_runs_does_not_end_an_experiment_that_more_runs_may_decide() -> None:
    """One run of three is valid. With one more, half of them are valid, as the gate requires."""
    baseline, candidate = sides(repetitions=3)
    busy = Gate(id="pressure", label="did not wait", status=GateStatus.FAIL, measured="50 %", limit="<= 10 %")
    for run in baseline[:2]:
        run.manifest = run.manifest.model_copy(update={"status": Status.INVALID, "gates": [busy]})
    over, messages = _over((baseline, candidate))
    assert not over
    assert "the two sides cannot be compared" not in " ".join(messages)


def test_a_machine_that_is_always_busy_is_reported_as_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other side then has no valid runs. This was reported as "the candidate has no runs", like a user error."""
    system = StandIn(invalid=frozenset(range(1, 99)))
    profile = Profile(system="cometbft", name="p")
    monkeypatch.setattr(experimenting, "resolve_launchable", lambda *_: (system, profile))
    monkeypatch.setattr(clusters, "profile_cluster", lambda *_: None)
    with pytest.raises(InvalidRunError, match="the measurement failed in 3 consecutive runs of v1") as failure:
        cm.experiment("p", baseline="v1", candidate="v2", store=tmp_path)
    assert len(Store(tmp_path).sealed()) == 3
    assert re.search("--resume [^`]+-p-", str(failure.value.hint))


class _Named(StandIn):
    """A system that renames versions on installation and whose builds all have the same binary."""

    def install(self, version: str) -> Subject:
        """Return a build whose name contains the commit of its branch."""
        name = version if "@" in version else f"{version.removeprefix('git:.')}@4f2cb01"
        return Subject(system=self.name, name=self.title, version=name, binary_sha256="f00")

    def installed(self) -> list[tuple[Subject, Path]]:
        """Return both builds."""
        return [(self.install(name), Path()) for name in ("main", "feature")]


def test_a_branch_is_named_by_its_build_and_an_unchanged_build_is_reported_before_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise later runs would use a branch that has moved, and a user who forgot to commit would measure an A/A."""
    system, listener = _Named(), Reported()
    monkeypatch.setattr(experimenting, "resolve_launchable", lambda *_: (system, Profile(system="cometbft", name="p")))
    monkeypatch.setattr(clusters, "profile_cluster", lambda *_: None)
    cm.experiment("p", baseline="git:.main", candidate="git:.feature", repeat=1, store=tmp_path, progress=listener)
    assert {run.manifest.subject.version for run in Store(tmp_path).sealed()} == {"main@4f2cb01", "feature@4f2cb01"}
    assert (
        "warning: main@4f2cb01 and feature@4f2cb01 are the same build: the comparison will be an A/A" in listener.lines
    )


MARGINS = {"tx_latency_s": 0.2}


class _Experiment:
    """An experiment whose rounds take no time. It records after how many rounds it ended."""

    def __init__(self, most: int, *, stops_early: bool = True, more: int = 0, rounds: int = 0) -> None:
        self.record = SimpleNamespace(length=ExperimentLength(most=most, stops_early=stops_early), margins=MARGINS)
        self.most, self.rounds = most + more, rounds
        self.fails_after, self.interrupted_after = 99, 99
        self.profiles_fail = False
        self.concluded: list[object] = []
        self.folder = SimpleNamespace(
            locked=nullcontext, write=lambda _: None, conclude=lambda *stated: self.concluded.append(stated)
        )
        self.runs: list[object] = []
        self.id = "e1"
        self.ended_at = -1

    def next_round(self) -> bool:
        """Add a round, unless the instrument fails or the user presses Ctrl-C."""
        if self.rounds == self.fails_after:
            return False
        if self.rounds == self.interrupted_after:
            raise KeyboardInterrupt
        self.rounds += 1
        self.runs += [None, None]
        return True

    def take_profiles(self) -> None:
        """Record when the experiment ended. No run may be added afterwards."""
        self.ended_at = self.rounds
        if self.profiles_fail:
            raise EnvironmentFailure("node 1 does not respond")

    def sides(self) -> tuple[int, int]:
        """The number of rounds of each side, in place of their runs."""
        return self.rounds, self.rounds


def _looked_at(
    monkeypatch: pytest.MonkeyPatch, experiment: _Experiment, decided_after: int = 99, **options: bool
) -> list[int]:
    """The rounds after which the runs were checked, if `decided_after` rounds are enough for a decision."""
    looks: list[int] = []
    reported = Reported()
    listener = Relay(reported, None)

    def alone(told: object) -> AbstractContextManager[None]:
        assert told is listener, "the user must see which process is waited for"
        return nullcontext()

    def over(number: int, most: int, listener: object) -> bool:
        assert most == experiment.record.length.most
        looks.append(number)
        return number >= decided_after

    def decided(baseline: int, candidate: int, history: object, *, margins: object) -> int:
        assert margins == MARGINS
        assert candidate == experiment.rounds
        return baseline

    def compared(runs: object, store: object, how: How) -> object:
        assert how.accepted.margins == MARGINS
        assert how.why is options.get("why", False)
        return SimpleNamespace(verdict=Verdict.PASS, sentence="Equal.", runs=runs)

    store: Any = SimpleNamespace(alike=lambda _: [])
    monkeypatch.setattr(experimenting, "machine_to_itself", alone)
    monkeypatch.setattr(experimenting, "decide", decided)
    monkeypatch.setattr(experimenting, "is_over", over)
    monkeypatch.setattr(experimenting, "compared", compared)
    document: Any = experimenting._until_decided(experiment, store, listener, **options)  # type: ignore[arg-type]
    assert document.runs == (experiment.rounds, experiment.rounds)
    assert experiment.concluded == [(Verdict.PASS, "Equal.")]
    assert experiment.ended_at == experiment.rounds
    failure = "warning: no profiles were collected: node 1 does not respond"
    assert reported.lines == [failure] * experiment.profiles_fail
    return looks


def test_an_experiment_makes_no_more_runs_than_allowed_and_looks_after_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check consumes part of the error probability. An uncounted check would cause false alarms."""
    experiment = _Experiment(6)
    assert _looked_at(monkeypatch, experiment) == [2, 3, 4, 5]
    assert experiment.rounds == 6
    early = _Experiment(6)
    assert _looked_at(monkeypatch, early, decided_after=3) == [2, 3]
    assert early.rounds == 3


def test_a_fixed_number_of_runs_is_made_whatever_they_show(monkeypatch: pytest.MonkeyPatch) -> None:
    for most in (1, 3):
        experiment = _Experiment(most, stops_early=False)
        assert _looked_at(monkeypatch, experiment, decided_after=0) == []
        assert experiment.rounds == most


def test_all_added_runs_are_made_before_the_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = _Experiment(3, more=2, rounds=3)
    assert _looked_at(monkeypatch, experiment, decided_after=0) == []
    assert experiment.rounds == 5
    # Planned rounds are checked as planned.
    open_ = _Experiment(3, more=2, rounds=1)
    assert _looked_at(monkeypatch, open_) == [2]
    assert open_.rounds == 5


def test_repeated_instrument_failures_end_the_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = _Experiment(6)
    experiment.fails_after = 1
    assert _looked_at(monkeypatch, experiment) == []
    assert experiment.rounds == 1


@pytest.mark.parametrize("why", [False, True])
def test_profiles_are_explained_on_request_and_a_failure_to_take_them_leaves_the_verdict(
    monkeypatch: pytest.MonkeyPatch, *, why: bool
) -> None:
    experiment = _Experiment(1)
    experiment.profiles_fail = why
    assert _looked_at(monkeypatch, experiment, why=why) == []


def test_the_last_failure_is_reported_if_one_side_has_no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(measured: str) -> Any:
        gate = Gate(id="load_met", label="load met", status=GateStatus.FAIL, measured=measured, limit="98 %")
        return SimpleNamespace(manifest=SimpleNamespace(subject=SimpleNamespace(version="v1"), failed_gates=[gate]))

    experiment = _Experiment(6)
    experiment.fails_after, experiment.runs = 0, [failed("91 %"), failed("92 %"), failed("93 %")]
    with pytest.raises(InvalidRunError, match="runs of v1; last failure: load met: 93 %"):
        _looked_at(monkeypatch, experiment)


@pytest.mark.parametrize(
    ("rounds", "messages"), [(0, []), (1, ["interrupted: the finished runs are kept; continue with `--resume e1`"])]
)
def test_an_interruption_shows_how_to_resume_if_any_run_is_stored(
    monkeypatch: pytest.MonkeyPatch, rounds: int, messages: list[str]
) -> None:
    experiment, listener = _Experiment(6), Reported()
    experiment.interrupted_after = rounds
    monkeypatch.setattr(experimenting, "machine_to_itself", nullcontext)
    with pytest.raises(KeyboardInterrupt):
        experimenting._until_decided(experiment, SimpleNamespace(), Relay(listener, None))  # type: ignore[arg-type]
    assert listener.lines == messages


def _open(chances: dict[int, float], runs: int = 4) -> Any:
    """Two sides with `runs` undecided runs each, and the probability of a decision per number of runs."""
    pair = {
        side: SelectedRuns(side, [loaded_run(side, 1.0, number) for number in range(runs)], {})
        for side in ("baseline", "candidate")
    }
    finding = SimpleNamespace(verdict=Verdict.INCONCLUSIVE)
    return SimpleNamespace(**pair, gates=[], finding=finding, undecided=["latency"], chances=lambda: chances)


@pytest.mark.parametrize(
    ("runs", "most", "chance", "over"),
    [
        (LEAST_BEFORE_GIVING_UP, 8, HOPELESS, False),
        (LEAST_BEFORE_GIVING_UP, 8, HOPELESS - 0.01, True),
        (LEAST_BEFORE_GIVING_UP - 1, 8, 0.0, False),
        (LEAST_BEFORE_GIVING_UP - 1, 4, HOPELESS, False),
        (LEAST_BEFORE_GIVING_UP - 1, 4, HOPELESS - 0.01, True),
        (LEAST_BEFORE_GIVING_UP - 2, 4, 0.0, False),
        (LEAST_BEFORE_GIVING_UP - 2, 3, 0.0, False),
    ],
)
def test_an_experiment_unlikely_to_be_decided_is_abandoned_after_some_runs(
    runs: int, most: int, chance: float, *, over: bool
) -> None:
    """Few runs show their noise poorly, but the last round of four takes a fourth of the time."""
    listener = Reported()
    assert is_over(_open({most - 1: 1.0, most: chance}, runs), most, Relay(listener, None)) is over
    assert listener.lines[0] == (
        f"after {runs} runs per side undecided: latency; {100 * chance:.0f} % probability of a decision with {most} "
        f"runs per side"
    )
    assert listener.lines[1:] == (
        ["stopped: the remaining planned runs are unlikely to lead to a decision"] if over else []
    )


def test_an_experiment_that_the_planned_runs_cannot_decide_is_abandoned() -> None:
    listener = Reported()
    assert is_over(_open({7: 1.0}), 8, Relay(listener, None))
    assert listener.lines[0].endswith("; 0 % probability of a decision with 8 runs per side")


def test_no_experiment_is_abandoned_without_a_forecast() -> None:
    listener = Reported()
    assert not is_over(_open({}, LEAST_BEFORE_GIVING_UP), 8, Relay(listener, None))
    assert listener.lines == [f"after {LEAST_BEFORE_GIVING_UP} runs per side undecided: latency"]
