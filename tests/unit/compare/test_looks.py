"""The looks at an experiment, among which its error probability is divided."""

from __future__ import annotations

import pytest

from chainmark.compare.inputs import LoadedRun
from chainmark.compare.looks import looks_of
from chainmark.compare.sides import SelectedRuns
from chainmark.core.manifest import ExperimentLength, ExperimentPlace
from chainmark.stats.sequential import Looks

from tests.unit.compare.metric_cases import stub_run

FIXED = ExperimentLength(most=3, stops_early=False)
EARLY = ExperimentLength(most=6, stops_early=True)


def side(name: str, runs: int, length: ExperimentLength | None, *, excluded: int = 0) -> SelectedRuns:
    loaded = []
    for number in range(runs):
        run = stub_run(name, 1.0, number)
        run.manifest.experiment = ExperimentPlace(id="e", side=name, repetition=number, position=number, length=length)
        loaded.append(LoadedRun(run))
    return SelectedRuns(name, loaded, {run.run_id: "failed" for run in loaded[:excluded]})


def looks(runs: int, length: ExperimentLength | None, others: int | None = None) -> Looks:
    return looks_of(side("baseline", runs, length), side("candidate", others or runs, length))


def pairs(first: int, last: int) -> tuple[tuple[int, int], ...]:
    return tuple((runs, runs) for runs in range(first, last + 1))


def test_runs_outside_an_experiment_have_one_look() -> None:
    loose = [SelectedRuns(name, [LoadedRun(stub_run(name, 1.0, n)) for n in range(3)], {}) for name in ("a", "b")]
    for run in (run for selection in loose for run in selection.runs):
        run.manifest.experiment = None
    assert looks_of(*loose) == Looks(((3, 3),), 3)
    assert looks(4, None, 2) == Looks(((4, 2),), 2)


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_a_fixed_number_of_runs_has_one_look_however_many_remain(runs: int) -> None:
    assert looks(runs, FIXED) == Looks(((runs, runs),), runs)


def test_runs_beyond_a_fixed_number_are_one_more_look() -> None:
    assert looks(5, FIXED) == Looks(((3, 3), (5, 5)), 3)


@pytest.mark.parametrize(("planned", "before"), [(FIXED, pairs(3, 3)), (EARLY, pairs(2, 6))])
def test_each_addition_is_a_look_when_it_is_complete(
    planned: ExperimentLength, before: tuple[tuple[int, int], ...]
) -> None:
    """Two runs are added to the planned ones, then one more. A look follows each addition."""
    most = planned.most
    sides_ = [side(name, most + 3, planned) for name in ("baseline", "candidate")]
    for selection in sides_:
        for number, run in enumerate(selection.runs[most:]):
            length = planned.model_copy(update={"most": most + (2 if number < 2 else 3)})
            place = run.manifest.experiment
            assert place is not None
            run.manifest.experiment = place.model_copy(update={"length": length})
    assert looks_of(*sides_) == Looks((*before, *((most + more,) * 2 for more in (2, 3))), most)


def test_a_single_pair_is_not_a_look() -> None:
    assert looks(3, ExperimentLength(most=1, stops_early=False)) == Looks(((3, 3),), 2)


@pytest.mark.parametrize("runs", [2, 4, 6])
def test_an_experiment_that_ends_when_decided_has_a_look_after_every_pair(runs: int) -> None:
    assert looks(runs, EARLY) == Looks(pairs(2, runs), 6)


def test_runs_added_to_an_undecided_experiment_are_looks() -> None:
    assert looks(8, EARLY) == Looks((*pairs(2, 6), (8, 8)), 6)


def test_sides_of_different_length_have_looks_while_both_have_runs() -> None:
    assert looks(5, EARLY, 3) == Looks((*pairs(2, 2), (5, 3)), 6)


def test_only_judged_runs_count() -> None:
    side_looks = looks_of(side("baseline", 4, EARLY, excluded=1), side("candidate", 4, EARLY))
    assert side_looks == Looks((*pairs(2, 2), (3, 4)), 6)


def test_runs_of_two_experiments_have_the_larger_number_of_looks() -> None:
    assert looks_of(side("baseline", 4, FIXED), side("candidate", 4, EARLY)) == Looks(pairs(2, 4), 3)
    assert looks_of(side("baseline", 3, None), side("candidate", 3, FIXED)) == Looks(pairs(3, 3), 3)
