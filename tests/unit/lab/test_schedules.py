"""Run order: results are not confounded with time, and a search for the highest sustained load always ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from chainmark.lab.schedules import (
    Arm,
    PlannedRun,
    Standing,
    SweepLoad,
    SweepPlan,
    SweepRun,
    Total,
    bisected_cells,
    bisected_load,
    contradicting,
    grid_steps,
    interleaved,
    most_loads_needed,
    next_cells,
    next_load,
    total_with,
    wanted_load,
)


class _Profile(BaseModel):
    """Any."""

    rate: int = 0


def test_sides_alternate_in_reversing_order() -> None:
    arms = [Arm(side, "v1", _Profile()) for side in "abc"]
    assert "".join(step.side for step in interleaved(arms[:2], 3)) == "abbaab"
    assert "".join(step.side for step in interleaved(arms, 2)) == "abccba"
    assert [(step.repetition, step.position) for step in interleaved(arms[:2], 2)] == [(1, 0), (1, 1), (2, 2), (2, 3)]


def test_every_side_runs_its_own_version_and_profile() -> None:
    """If a side ran the other side's version or profile, a comparison would compare a version with itself."""
    arms = [Arm("baseline", "v1", _Profile(rate=1)), Arm("candidate", "v2", _Profile(rate=2))]
    planned_steps = [(step.side, step.version, step.profile) for step in interleaved(arms, 2)]
    first, second = [(arm.side, arm.version, arm.profile) for arm in arms]
    assert planned_steps == [first, second, second, first]


_LOADS = [SweepLoad((c, r), f"c{c}r{r}", c * r) for c in (1, 2, 4) for r in (200, 400, 800, 1600)]


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 2**32))
def test_every_repetition_contains_every_load_of_every_version_once(repetitions: int, versions: int, seed: int) -> None:
    names = [f"v{number}" for number in range(versions)]
    steps = grid_steps(_LOADS, names, repetitions, seed)
    assert steps == grid_steps(_LOADS[::-1], names, repetitions, seed)
    block = len(_LOADS) * versions
    for repetition in range(repetitions):
        part = steps[repetition * block : (repetition + 1) * block]
        assert {step.repetition for step in part} == {repetition + 1}
        assert Counter((step.version, step.load) for step in part) == Counter(
            {(name, load): 1 for name in names for load in _LOADS}
        )
        # All versions run one load before the next load begins.
        assert all(len({step.load for step in part[at : at + versions]}) == 1 for at in range(0, block, versions))


def test_a_slow_drift_affects_both_versions_equally() -> None:
    """On a machine that slows down over time, the mean positions of the versions differ by less than a run."""
    steps = grid_steps(_LOADS, ["a", "b"], 3, 1)
    places = {name: fmean(at for at, step in enumerate(steps) if step.version == name) for name in ("a", "b")}
    assert abs(places["a"] - places["b"]) <= 0.1
    loads = [step.load.per_s for step in steps]
    rising = sum(later >= earlier for earlier, later in pairwise(loads))
    assert rising < 0.9 * len(loads), "loads in ascending order would be confounded with time"


def test_every_repetition_runs_the_loads_in_a_random_order_of_its_own() -> None:
    """Always the same order would confound the loads with what changes within a repetition, a full disk for example."""
    loads = len(_LOADS)
    orders = [[step.load for step in grid_steps(_LOADS, ["a"], 3, seed)] for seed in (1, 2)]
    parts = [tuple(order[at : at + loads]) for order in orders for at in range(0, 3 * loads, loads)]
    assert len(set(parts)) == 6
    assert tuple(sorted(_LOADS)) not in parts


def _searched(plan: SweepPlan, keeps_up: Callable[[int], bool]) -> dict[int, bool]:
    outcomes: dict[int, bool] = {}
    while (load := next_load(outcomes, plan)) is not None:
        assert load not in outcomes, "a load with a known result was requested again"
        assert 1 <= load <= plan.most_load
        assert load % plan.step == 0
        outcomes[load] = keeps_up(load)
        assert len(outcomes) < 60
    return outcomes


_PLANS = st.builds(
    SweepPlan, loads=st.just(()), tolerance=st.just(0.1), step=st.integers(1, 8),
    first_load=st.integers(16, 400), most_load=st.integers(1000, 20_000), relative_gap=st.floats(0.02, 0.5),
)  # fmt: skip


@given(_PLANS, st.integers(1, 30_000))
def test_a_search_ends_at_the_edge(plan: SweepPlan, capacity: int) -> None:
    outcomes = _searched(plan, lambda load: load <= capacity)
    low = max((load for load, is_retained in outcomes.items() if is_retained), default=0)
    high = min((load for load, is_retained in outcomes.items() if not is_retained), default=None)
    if high is None:
        assert 2 * max(outcomes) > plan.most_load
    elif low:
        assert low <= capacity < high
        assert high - low <= max(plan.relative_gap * low, 2 * plan.step)
        assert max(outcomes) > high or 2 * high > plan.most_load, "no load above the edge was measured"
    else:
        assert min(outcomes) < 2 * plan.step or min(outcomes) > capacity


@given(_PLANS, st.randoms(use_true_random=False))
def test_a_search_ends_for_any_results(plan: SweepPlan, rng: object) -> None:
    """Noise near the edge gives contradicting results."""
    draw = rng.random  # type: ignore[attr-defined]
    _searched(plan, lambda _load: bool(draw() < 0.5))


def test_a_cell_of_a_sweep_is_a_run_of_a_version_at_a_load() -> None:
    cell = SweepRun("v2", SweepLoad((2, 400), "c2r400", 800), 3)
    profile = _Profile(rate=400)
    assert cell.step(profile, 7) == PlannedRun("v2/c2r400", "v2", profile, repetition=3, position=7)


_PLAN = SweepPlan(loads=(), tolerance=0.1, step=100, first_load=400, most_load=3200, relative_gap=0.125)


@pytest.mark.parametrize(
    ("kept_up", "failed", "wanted"),
    [
        ((), (), 400),
        ((400, 800), (), 1600),
        ((1600,), (), 3200),  # the maximum load is tried
        ((1700,), (), None),
        ((), (900,), 400),  # half of the failed load, rounded to a multiple of the step
        ((), (300,), 100),
        ((), (200,), 100),
        ((), (199,), None),  # there is no lower load
        ((800,), (1600,), 3200),  # one load above the first failure is run as well, up to the maximum load
        ((850,), (1700,), 1200),
        ((800,), (1600, 3200), 1200),
        ((800,), (900, 1600), None),  # an eighth apart, which is the requested precision
        ((700,), (800, 1600), None),  # further apart, but there is no multiple of the step between them
        ((1600,), (1900, 3200), 1700),
        ((50,), (100, 200), None),  # a known load is never requested again
        ((800, 1600), (1200, 3200), 1000),  # a noisy result above the first failure does not move the edge
    ],
)
def test_the_next_load_of_a_search(kept_up: tuple[int, ...], failed: tuple[int, ...], wanted: int | None) -> None:
    """A wrong step costs a run of minutes or makes the edge less precise than requested."""
    load = next_load(dict.fromkeys(kept_up, True) | dict.fromkeys(failed, False), _PLAN)
    assert (load, type(load)) == (wanted, type(wanted))


@pytest.mark.parametrize(("failed", "wanted"), [(900, None), (910, 850)])
def test_a_search_ends_at_the_requested_precision(failed: int, wanted: int | None) -> None:
    """An eighth of 800 is 100: more loads would fit in between, but are not needed."""
    assert next_load({800: True, failed: False, 1800: False}, replace(_PLAN, step=10)) == wanted


def test_a_load_that_one_version_needs_is_run_by_every_version() -> None:
    """The first unfinished measure of the first unfinished version decides. None if all edges are known."""
    at = {per_s: SweepLoad((1, per_s), f"c1r{per_s}", per_s) for per_s in (100, 400)}
    done: dict[SweepLoad, Standing] = {at[400]: "lost", at[100]: "leans to lost"}
    load_standings: dict[SweepLoad, Standing] = {at[100]: "leans to kept up"}
    lost: dict[SweepLoad, Standing] = {at[100]: "no data"}
    plan = replace(_PLAN, first_load=100)
    assert wanted_load([[done, load_standings], [{}]], plan) == 200
    assert wanted_load([[done], [load_standings]], plan) == 200
    assert wanted_load([[lost], [lost]], plan) is None


def test_neighbouring_runs_of_a_sweep_begin_with_another_version() -> None:
    """From load to load, and at the same position of the next repetition, the versions swap their order."""
    firsts = "".join(step.version for step in grid_steps(_LOADS, ["a", "b"], 2, 7)[::2])
    assert firsts == "ab" * 6 + "ba" * 6


_KEPT: Final = "kept up"
_LOST: Final = "lost"
_UP: Final = "leans to kept up"
_DOWN: Final = "leans to lost"


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        # The lowest load above all doubtful loads, if no load above it is clearly lost.
        (({100: _KEPT, 200: _LOST, 400: None, 800: None}, {200: _DOWN, 300: _DOWN}), (1, 400)),
        # A loss with fewer connections is no bound if the same load is doubtful with more connections.
        (({100: _KEPT, 300: _LOST, 400: None}, {200: _DOWN, 300: _DOWN}), (1, 400)),
        (({100: _KEPT, 250: _LOST, 300: None, 400: None}, {200: _DOWN, 300: _DOWN}), (1, 400)),
        (({100: _KEPT, 400: _LOST, 800: None}, {200: _DOWN, 300: _DOWN}), None),
        # The highest load below all doubtful loads, if no load below it is clearly sustained.
        (({50: None, 100: None, 200: _KEPT, 400: _LOST}, {150: _UP, 300: _LOST}), (1, 100)),
        (({100: None, 150: _KEPT, 400: _LOST}, {150: _UP, 300: _LOST}), (1, 100)),
        (({100: None, 150: None, 200: _KEPT, 400: _LOST}, {150: _UP, 300: _LOST}), (1, 100)),
        (({50: None, 100: _KEPT, 400: _LOST}, {150: _UP, 300: _LOST}), None),
        (({100: None, 200: _KEPT, 400: _LOST}, {150: _UP, 250: _UP, 300: _LOST}), (1, 100)),
        # Loads are compared by their total rate, for any number of connections.
        (({100: _KEPT, 200: _LOST, 800: None}, {150: _LOST, 500: None}, {300: _DOWN}), (2, 500)),
        (
            ({120: None, 200: _KEPT, 400: _LOST}, {60: None, 200: _KEPT, 400: _LOST}, {150: _UP, 300: _LOST}),
            (1, 120),
        ),
        # The load above the doubtful ones comes first. A load is also requested if none is sustained or none is lost.
        (({50: None, 300: _KEPT, 400: _LOST, 600: None}, {250: _UP, 500: _DOWN}), (1, 600)),
        (({100: _LOST, 150: None}, {200: _DOWN}), (1, 150)),
        (({100: None, 200: _KEPT}, {150: _UP}), (1, 100)),
        # A load without a valid run is neither sustained nor lost, and is not requested again.
        (({50: "no data", 200: _KEPT, 400: _LOST}, {150: _UP, 300: _LOST}), None),
        (({50: None, 100: _KEPT, 400: _LOST, 800: None}, {100: _KEPT, 300: _LOST}), None),
    ],
)
def test_a_bisection_settles_doubtful_loads(
    lines: tuple[dict[int, Standing | None], ...], wanted: tuple[int, int] | None
) -> None:
    """Otherwise the search would end with an uncertain edge that one more run would have settled."""
    standings = _lines(*lines)
    cells = bisected_cells(list(standings), ["a"], 1)
    load_standings = _run(standings)
    planned = [cell for cell in cells if cell.load in load_standings and cell.repetition == 1]
    sweep_runs = next_cells(cells, planned, {"a": [load_standings]})
    assert [(cell.load.key, cell.repetition) for cell in sweep_runs] == ([] if wanted is None else [(wanted, 1)])


def _lines(*lines: dict[int, Standing | None]) -> dict[SweepLoad, Standing | None]:
    """Map each load to its standing. Each argument is the line of loads of one number of connections."""
    return {
        SweepLoad((connections, per_s), f"c{connections}r{per_s}", per_s): standing
        for connections, line in enumerate(lines, start=1)
        for per_s, standing in line.items()
    }


def _run(standings: dict[SweepLoad, Standing | None]) -> dict[SweepLoad, Standing]:
    return {load: standing for load, standing in standings.items() if standing is not None}


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (({100: None, 200: None, 400: None},), (1, 200)),
        # A load without data does not divide the line.
        (({100: _KEPT, 200: "no data", 300: None, 400: _KEPT, 800: None, 1600: _LOST},), (1, 800)),
        # The next line begins at the edge of the previous line, or just above it, and is then bisected as well.
        (({200: _KEPT, 300: _LOST}, {100: None, 200: None, 300: None, 400: None}), (2, 200)),
        (({200: _KEPT, 300: _LOST}, {100: _KEPT, 200: _KEPT, 300: None, 400: None}), (2, 300)),
        (({200: _KEPT, 300: _LOST}, {200: _KEPT, 300: _KEPT, 400: None, 500: None, 600: None}), (2, 500)),
        # If the previous line has no sustained load, the next line begins at its lowest load.
        (({10: _LOST}, {1: None, 2: None, 3: None}), (2, 1)),
        (({10: _LOST}, {1: _KEPT, 2: None, 3: None, 4: None}), (2, 3)),
        (({100: _KEPT, 200: _LOST}, {100: _KEPT, 200: _LOST}), None),
        # A load whose interval includes the threshold bounds nothing: a lower one may be lost, a higher one sustained.
        (({100: None, 200: None, 400: _UP, 800: _LOST},), (1, 100)),
        (({100: _KEPT, 200: _DOWN, 400: None, 800: None},), (1, 400)),
    ],
)
def test_a_bisection_selects_the_load_that_divides_best(
    lines: tuple[dict[int, Standing | None], ...], wanted: tuple[int, int] | None
) -> None:
    """Any other load would cost more runs of minutes."""
    standings = _lines(*lines)
    load = bisected_load(list(standings), _run(standings))
    assert (None if load is None else load.key) == wanted


def test_loads_that_differ_only_in_the_last_number_form_a_line() -> None:
    loads = [SweepLoad((1, size, rate), f"{size}-{rate}", rate) for size in (1, 2) for rate in (100, 200)]
    assert bisected_load(loads, {loads[0]: _KEPT, loads[1]: _LOST}) == loads[2]
    assert most_loads_needed(loads, [{}]) == 4


def test_the_maximum_number_of_loads_of_a_bisection() -> None:
    """Four of eight loads in the first line and one per further line, which begins next to the previous edge."""
    eight: dict[int, Standing | None] = dict.fromkeys(range(100, 900, 100))
    assert most_loads_needed(list(_lines(eight)), [{}]) == 4
    assert most_loads_needed(list(_lines(eight, eight)), [{}]) == 9
    doubtful = _lines({100: _KEPT, 200: _LOST, 400: None, 800: None}, {200: _DOWN, 300: _DOWN})
    assert most_loads_needed(list(doubtful), [_run(doubtful)]) == 1


def _requested(standings: dict[SweepLoad, Standing | None], cells_run: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The loads and repetitions requested after these runs, for a plan of two repetitions."""
    cells = bisected_cells(list(standings), ["a"], 2)
    known = [cell for cell in cells if (cell.load.per_s, cell.repetition) in cells_run]
    assert len(known) == len(cells_run)
    return [(cell.load.per_s, cell.repetition) for cell in next_cells(cells, known, {"a": [_run(standings)]})]


def test_a_load_gets_all_its_planned_runs_before_the_next_load() -> None:
    only: dict[SweepLoad, Standing | None] = _lines({100: None})
    assert _requested(only, []) == [(100, 1), (100, 2)]
    assert _requested(_lines({100: _KEPT, 200: None}), [(100, 1)]) == [(100, 2)]
    assert _requested(_lines({100: _KEPT, 200: None}), [(100, 1), (100, 2)]) == [(200, 1), (200, 2)]


def test_contradicting_loads_are_repeated_once_in_order_before_the_full_grid_is_run() -> None:
    """Each run may resolve the contradiction, which saves the others."""
    lines = _lines({100: _LOST, 200: _KEPT, 400: _LOST, 600: None, 800: None})
    cells_run = [(load, repetition) for load in (100, 200, 400) for repetition in (1, 2)]
    assert _requested(lines, cells_run) == [(100, 3)]
    assert _requested(lines, [*cells_run, (100, 3)]) == [(200, 3)]
    assert _requested(lines, [*cells_run, (100, 3), (200, 3)]) == [(600, 1), (600, 2)]


def test_a_load_without_valid_runs_does_not_contradict_others() -> None:
    lines = _lines({100: None, 200: _KEPT, 400: _LOST})
    assert _requested(lines, [(load, repetition) for load in (100, 200, 400) for repetition in (1, 2)]) == []


def test_an_equal_load_that_is_both_sustained_and_lost_is_a_contradiction() -> None:
    """The number of connections does not matter."""
    both = _lines({100: _KEPT, 200: _KEPT}, {200: _LOST, 400: _LOST})
    assert [load.key for load in contradicting(_run(both))] == [(1, 200), (2, 200)]


@pytest.mark.parametrize(
    ("versions", "repeated"),
    [
        ({"a": [{100: _KEPT, 200: _LOST}], "b": [{100: _KEPT, 200: _KEPT}]}, "ab"),
        ({"a": [{100: _KEPT, 200: _LOST}], "b": [{100: _KEPT, 200: _LOST}]}, ""),
        # A result whose interval includes the threshold is no clear difference.
        ({"a": [{100: _KEPT, 200: _DOWN}], "b": [{100: _KEPT, 200: _KEPT}]}, ""),
        ({"a": [{100: _KEPT, 200: _LOST}], "b": [{100: _KEPT, 200: _UP}]}, ""),
        # One measure is compared with the same one of the other version.
        ({"a": [{200: _KEPT}, {200: _LOST}], "b": [{200: _KEPT}, {200: _KEPT}]}, "ab"),
        ({"a": [{200: _KEPT}, {200: _LOST}], "b": [{200: _KEPT}, {200: _LOST}]}, ""),
        # A version without valid runs does not differ.
        ({"a": [{200: _KEPT}, {200: _LOST}], "b": []}, ""),
        ({"a": [], "b": [{200: _KEPT}, {200: _LOST}]}, ""),
    ],
)
def test_a_load_that_only_one_version_clearly_sustains_is_repeated_with_every_version(
    versions: dict[str, list[dict[int, Standing]]], repeated: str
) -> None:
    """Otherwise one unusual run would make a difference between the versions."""
    loads = {load.per_s: load for load in _lines({100: None, 200: None})}
    measures = {
        version: [{loads[per_s]: standing for per_s, standing in measure.items()} for measure in of_version]
        for version, of_version in versions.items()
    }
    cells = bisected_cells(list(loads.values()), list(versions), 1)
    cells_run = [cell for cell in cells if cell.repetition == 1]
    assert next_cells(cells, cells_run, measures) == [SweepRun(version, loads[200], 2) for version in repeated]


def test_the_number_of_runs_includes_those_before_and_after_the_current_one() -> None:
    """The third run is at position 2: with 4 runs after it there are 7."""
    assert total_with(2, 4) == Total(7)
    assert total_with(2, 4, "at most") == Total(7, "at most")
