"""The saturation load follows the stated rule and has an uncertainty, and contradicting results are reported."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.comparison import Outcome
from chainmark.systems.cometbft.saturation.document import SaturationReport
from chainmark.systems.cometbft.saturation.evaluation import (
    cells_of,
    evaluated,
    knee_of,
    saturation_of,
    saturation_report,
)
from chainmark.systems.cometbft.saturation.results import CellRun

from tests.unit.systems.cometbft.saturation_samples import METRICS, run, version, whole_test

TOLERANCE = 0.1
Shares = Mapping[tuple[int, int], Sequence[float]]


def _cells(shares: Shares) -> list[CellRun]:
    return [run(*load, share) for load, load_shares in shares.items() for share in load_shares]


def test_the_largest_sustained_load_is_chosen_with_the_fewest_connections() -> None:
    shares = {(1, 200): [1.0] * 3, (2, 200): [0.99, 1.0, 0.98], (1, 400): [1.0, 0.99, 1.0], (1, 800): [0.5, 0.51, 0.5]}
    saturation = saturation_of(cells_of(_cells(shares), TOLERANCE), TOLERANCE, "committed")
    assert (saturation.state, saturation.load_per_s, saturation.low_per_s, saturation.high_per_s) == (
        "found",
        400,
        400,
        800,
    )
    assert (saturation.connections, saturation.rate_per_s) == (1, 400)


def test_contradicting_cells_of_one_load_decide_nothing() -> None:
    """In the published tables of v1: 87.6 % and 97.2 % at 400 tx/s."""
    shares = {(1, 200): [1.0], (1, 400): [0.876], (2, 200): [0.972], (1, 800): [0.718]}
    saturation = saturation_of(cells_of(_cells(shares), TOLERANCE), TOLERANCE, "committed")
    assert (saturation.state, saturation.load_per_s, saturation.low_per_s, saturation.high_per_s) == (
        "contradictory",
        None,
        200,
        800,
    )
    assert "c=1, r=400 87.6 % and c=2, r=200 97.2 %" in saturation.reason


def test_a_larger_load_that_is_sustained_again_decides_nothing() -> None:
    shares = {(1, 200): [1.0], (1, 400): [0.5], (1, 800): [1.0], (1, 1600): [0.4]}
    saturation = saturation_of(cells_of(_cells(shares), TOLERANCE), TOLERANCE, "committed")
    assert (saturation.state, saturation.load_per_s, saturation.low_per_s, saturation.high_per_s) == (
        "contradictory",
        None,
        200,
        1600,
    )
    assert "400 tx/s is below 90 %" in saturation.reason
    assert "800 tx/s is not" in saturation.reason


def test_an_interval_that_includes_the_threshold_is_reported() -> None:
    """In the published tables of v0.38, 93.4 % in one run could also be 89 %."""
    saturation = saturation_of(
        cells_of(_cells({(1, 200): [1.0], (2, 200): [0.934], (1, 800): [0.517]}), TOLERANCE), TOLERANCE, "committed"
    )
    assert (saturation.state, saturation.load_per_s, saturation.low_per_s, saturation.high_per_s) == (
        "unclear",
        400,
        200,
        800,
    )
    assert "c=2, r=200 93.4 %" in saturation.reason


@pytest.mark.parametrize(
    ("shares", "state", "load"),
    [
        ({(1, 200): [1.0] * 2, (1, 400): [0.99] * 2}, "lower bound", None),
        ({(1, 200): [0.5] * 2, (1, 400): [0.2] * 2}, "nothing kept up", None),
        ({}, "no data", None),
    ],
)
def test_an_edge_that_was_not_reached_gives_no_result(shares: Shares, state: str, load: int | None) -> None:
    saturation = saturation_of(cells_of(_cells(shares), TOLERANCE), TOLERANCE, "committed")
    assert (saturation.state, saturation.load_per_s) == (state, load)


def test_a_load_that_only_fills_the_mempools_is_not_sustained() -> None:
    """All transactions at 800 tx/s were processed, but half of them after the end of the load."""
    shares = {200: (1.0, 1.0), 400: (1.0, 0.99), 800: (1.0, 0.5), 1600: (0.6, 0.3)}
    runs = [run(1, load, share, pace=pace) for load, (share, pace) in shares.items() for _ in range(2)]
    chosen, window = evaluated(version("v", runs), TOLERANCE, 1).saturations
    assert (window.state, window.load_per_s) == ("found", 400)
    assert (chosen.state, chosen.load_per_s) == ("contradictory", None)
    assert (chosen.low_per_s, chosen.high_per_s, chosen.rate_per_s) == (400, 1600, 400)
    assert "offer each load for longer" in chosen.reason


def test_excluded_runs_do_not_count_but_are_kept() -> None:
    runs = [run(1, 200, 1.0), run(1, 200, 0.1, excluded="the generator could not send"), run(1, 400, 0.4)]
    cells = cells_of(runs, TOLERANCE)
    assert [(len(cell.runs), cell.used) for cell in cells] == [(2, 1), (1, 1)]
    assert cells[0].efficiency is not None
    assert cells[0].efficiency.value == 1.0
    assert saturation_of(cells, TOLERANCE, "committed").load_per_s == 200


_SHARES = st.dictionaries(
    st.tuples(st.sampled_from([1, 2, 4]), st.sampled_from([100, 200, 400, 800])),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=3),
    min_size=1,
)


@given(_SHARES)
def test_the_rule_matches_its_statement(shares: Shares) -> None:
    """It is compared with the stated rule for every load. The confirmed loads never contradict the values."""
    cells = cells_of(_cells(shares), TOLERANCE)
    saturation = saturation_of(cells, TOLERANCE, "committed")
    value = {(cell.connections, cell.rate_per_s): cell.efficiency.value for cell in cells if cell.efficiency}
    loads = sorted({c * r for c, r in value})
    fits = [
        load for load in loads if all((share >= 1.0 - TOLERANCE) == (c * r <= load) for (c, r), share in value.items())
    ]
    if saturation.load_per_s is not None:
        assert fits == [saturation.load_per_s]
        assert saturation.low_per_s <= saturation.load_per_s
        assert saturation.high_per_s is None or saturation.load_per_s < saturation.high_per_s
    else:
        assert fits == [] or (saturation.state == "lower bound" and fits == [loads[-1]])
    for (c, r), share in value.items():
        assert c * r > saturation.low_per_s or share >= 1.0 - TOLERANCE
        assert saturation.high_per_s is None or c * r < saturation.high_per_s or share < 1.0 - TOLERANCE


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6))
def test_every_share_has_an_interval_around_it(values: list[float]) -> None:
    cell = cells_of([run(1, 200, value) for value in values], TOLERANCE)[0]
    figure = cell.efficiency
    assert figure is not None
    assert figure.low is not None
    assert figure.high is not None
    assert 0.0 <= figure.low <= figure.value + 1e-12
    assert figure.value - 1e-12 <= figure.high <= 1.0
    assert figure.runs == len(values)


def test_varying_repetitions_have_students_interval() -> None:
    """Three runs, by hand: mean 0.9, sd 0.05, t(0.95, 2) = 2.919986."""
    figure = cells_of([run(1, 200, share) for share in (0.85, 0.9, 0.95)], TOLERANCE)[0].efficiency
    assert figure is not None
    half = 2.919986 * 0.05 / math.sqrt(3.0)
    assert figure.low == pytest.approx(0.9 - half, abs=1e-6)
    assert figure.high == pytest.approx(0.9 + half, abs=1e-6)


def test_the_knee_has_an_interval_only_from_repetitions() -> None:
    curve = {200: (200.0, 1.0), 400: (400.0, 1.0), 800: (500.0, 6.0), 1600: (510.0, 9.0), 3200: (505.0, 12.0)}
    once = [run(1, load, 1.0, throughput=x, latency=y) for load, (x, y) in curve.items()]
    single = knee_of(cells_of(once, TOLERANCE), 1)
    assert (single.load_per_s, single.low_per_s) == (400, None)
    assert "no interval" in single.basis
    twice = [run(1, load, 1.0, throughput=x * f, latency=y) for load, (x, y) in curve.items() for f in (0.99, 1.01)]
    repeated = knee_of(cells_of(twice, TOLERANCE), 1)
    assert (repeated.load_per_s, repeated.low_per_s, repeated.high_per_s) == (400, 400, 400)


def test_versions_are_compared_at_equal_loads() -> None:
    old = version("old", [run(1, 200, 1.0, latency=1.0), run(1, 400, 0.9), run(1, 800, 0.5, excluded="lost a node")])
    new = version("new", [run(1, 200, 1.0, latency=2.0), run(2, 400, 0.9), run(1, 800, 0.5)])
    report = saturation_report(whole_test(), [old, new], METRICS)
    (comparison,) = report.comparisons
    assert [cell.name for cell in comparison.cells] == ["c=1, r=200"]
    assert comparison.left_out == [
        "c=1, r=400: new was not run at this load",
        "c=1, r=800: no valid run of old",
        "c=2, r=400: old was not run at this load",
    ]
    outcomes = {
        (judgement.metric_id, judgement.statistic): judgement.outcome for judgement in comparison.cells[0].judgements
    }
    assert outcomes["latency_s", "mean"] is Outcome.WORSE
    assert outcomes["committed_share", "mean"] is Outcome.EQUAL
    assert all(judgement.low is not None for judgement in comparison.cells[0].judgements)


def test_latencies_of_unknown_kinds_are_shown_and_not_judged() -> None:
    """With proposer-based timestamps, the header of the next block is a second later, which is not a regression."""
    old = version("old", [run(1, 200, 1.0, latency=1.0)], kind="")
    new = version("new", [run(1, 200, 1.0, latency=2.0)], kind="")
    judged = saturation_report(whole_test(), [old, new], METRICS).comparisons[0].cells[0].judgements
    latency = next(judgement for judgement in judged if judgement.metric_id == "latency_s")
    assert latency.outcome is Outcome.INCONCLUSIVE
    assert latency.change is None
    assert (latency.baseline.value, latency.candidate.value) == (1.0, 2.0)


def test_published_results_are_not_compared_with_measured_ones() -> None:
    ours = version("ours", [run(1, 200, 1.0)])
    theirs = version("theirs", [run(1, 200, 0.5)], published=True)
    assert saturation_report(whole_test(), [ours, theirs], METRICS).comparisons == []


def test_the_same_runs_give_the_same_document_in_any_order() -> None:
    runs = [run(c, r, 0.9 + c / 100, position=c * 10 + place) for c in (1, 2) for place, r in enumerate((200, 400))]
    first = evaluated(version("v", runs), TOLERANCE, 1)
    other = evaluated(version("v", runs[::-1]), TOLERANCE, 1)
    assert first.model_dump_json() == other.model_dump_json()
    report = saturation_report(whole_test(), [version("v", runs)], METRICS)
    assert SaturationReport.model_validate_json(report.model_dump_json()) == report
