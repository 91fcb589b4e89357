"""The figures, standings, reasons and comparisons of a saturation test, each by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from chainmark.core.comparison import Judgement, Outcome
from chainmark.lab.schedules import SweepLoad
from chainmark.systems.cometbft.saturation.evaluation import (
    cells_of,
    compare_versions,
    evaluated,
    knee_of,
    reconciled,
    saturation_of,
    saturation_report,
    standings,
)
from chainmark.systems.cometbft.saturation.results import (
    CellFigure,
    CellRun,
    LatencyEntry,
    Measure,
    RunFigure,
    Saturation,
    Standing,
    State,
)

from tests.unit.systems.cometbft.saturation_samples import METRICS, run, version, whole_test

TOLERANCE = 0.1
ASSUMED = 1.6448536 * 0.03  # half of the interval of one run: the normal 95 % quantile times the assumed noise
WILSON = "binomial (Wilson) of the pooled counts"
ONE_RUN = "one run: assumed noise of 3 % between runs"
Shares = Mapping[tuple[int, int], float]


def _counted(offered: int, committed: int) -> CellRun:
    return run(1, 200, 1.0).model_copy(update={"offered": offered, "committed": committed})


def _with_latency(mean: float | None, *, p50: float | None = None, p99: float | None = None) -> CellRun:
    figures = [None if value is None else RunFigure(value=value) for value in (mean, p50, p99)]
    entry = LatencyEntry(n=100, mean=figures[0], p50=figures[1], p99=figures[2])
    return run(1, 200, 1.0).model_copy(update={"latency": entry})


def _without_latency() -> CellRun:
    return run(1, 200, 1.0).model_copy(update={"latency": None})


def _runs(shares: Shares, measure: Measure) -> list[CellRun]:
    """Runs with these shares by one measure, and all of the load by the other one."""
    return [
        run(*load, 1.0, pace=share) if measure == "pace" else run(*load, share, pace=1.0)
        for load, share in shares.items()
    ]


# --- cells ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "value", "low", "high", "basis"),
    [
        # Small counts: the interval of the counts is wider. 1.6448536² = 2.7055435; of 10 in 20: (10 + 1.3527717) / (20
        # + 2.7055435) = 0.5 ± 0.1725962; of n in n: n / (n + 2.7055435).
        ([(10, 5), (10, 5)], 0.5, 0.3274038, 0.6725962, WILSON),
        ([(10, 10)], 1.0, 0.7870580, 1.0, WILSON),
        ([(1, 1)], 1.0, 0.2698659, 1.0, WILSON),
        # More than was offered: the counts are wrong, and an upper limit of 1 would be below the value.
        ([(10, 11)], 1.1, 1.1 - 1.1 * ASSUMED, 1.1 + 1.1 * ASSUMED, ONE_RUN),
        ([(0, 0)], 0.0, 0.0, 0.0, ONE_RUN),
        # Two runs: mean 0.9, sd 0.0141421, t(0.95, 1) = 6.3137515.
        ([(200_000, 178_000), (200_000, 182_000)], 0.9, 0.8368625, 0.9631375, "between 2 runs (Student's t)"),
    ],
)
def test_a_share_has_the_wider_of_two_intervals(
    counts: Sequence[tuple[int, int]], value: float, low: float, high: float, basis: str
) -> None:
    figure = cells_of([_counted(*pair) for pair in counts], TOLERANCE)[0].efficiency
    assert figure is not None
    assert (figure.value, figure.low, figure.high) == pytest.approx((value, low, high), abs=1e-6)
    assert (figure.runs, figure.basis) == (len(counts), basis)


@pytest.mark.parametrize(
    ("paces", "errors", "expected"),
    [
        ([1.0], [None], (1.0, 1.0 - ASSUMED, 1.0 + ASSUMED, 1, ONE_RUN)),
        ([1.0], [0.03], (1.0, 1.0 - ASSUMED, 1.0 + ASSUMED, 1, ONE_RUN)),
        ([1.0], [0.1], (1.0, 0.8355146, 1.1644854, 1, "one run: its own error")),
        # sd 1.2727922: the lower limit would be 1 - 6.3137515 · 0.9.
        ([0.1, 1.9], [None, None], (1.0, 0.0, 6.6823764, 2, "between 2 runs (Student's t)")),
        ([1.0, math.inf], [None, None], (1.0, 1.0 - ASSUMED, 1.0 + ASSUMED, 1, ONE_RUN)),
    ],
)
def test_a_figure_has_an_interval_from_its_runs(
    paces: Sequence[float], errors: Sequence[float | None], expected: tuple[float, float, float, int, str]
) -> None:
    runs = [
        run(1, 200, 1.0).model_copy(update={"pace": RunFigure(value=pace, standard_error=error)})
        for pace, error in zip(paces, errors, strict=True)
    ]
    figure = cells_of(runs, TOLERANCE)[0].pace
    assert figure is not None
    assert (figure.value, figure.low, figure.high) == pytest.approx(expected[:3], abs=1e-6)
    assert (figure.runs, figure.basis) == expected[3:]


def test_the_figures_of_a_cell_are_means_of_its_runs() -> None:
    runs = [run(1, 200, 1.0, throughput=100.0, latency=1.0), run(1, 200, 0.9, throughput=120.0, latency=3.0)]
    cell = cells_of([*runs, run(1, 200, 0.1, latency=9.0, excluded="a node died")], TOLERANCE)[0]

    def value(figure: CellFigure | None) -> float | None:
        return None if figure is None else figure.value

    assert (cell.committed, value(cell.efficiency), value(cell.throughput_per_s)) == (190_000.0, 0.95, 110.0)
    assert [value(item) for item in (cell.latency_mean_s, cell.latency_p50_s, cell.latency_p99_s)] == [2.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("paces", "standing"),
    [
        ([1.0], "kept up"),
        ([0.9, 0.9], "kept up"),  # exactly at the threshold, with an interval of no width
        ([0.93], "leans to kept up"),  # up from 0.884
        ([0.9], "leans to kept up"),
        ([0.88], "leans to saturated"),  # up to 0.923
        ([0.5], "saturated"),
    ],
)
def test_a_standing_is_certain_if_the_interval_does_not_include_the_threshold(
    paces: Sequence[float], standing: Standing
) -> None:
    assert cells_of([run(1, 200, 1.0, pace=pace) for pace in paces], TOLERANCE)[0].pace_standing == standing


def test_the_runs_of_a_cell_are_in_the_order_of_the_test() -> None:
    """The first run has position 0. Its ID does not matter."""
    last, first = (
        run(1, 200, 1.0, position=position).model_copy(update={"origin": origin})
        for position, origin in ((1, "a"), (0, "z"))
    )
    assert cells_of([last, first], TOLERANCE)[0].runs == [first, last]


def _load(connections: int, rate: int) -> SweepLoad:
    return SweepLoad((connections, rate), f"c{connections}r{rate}", connections * rate)


def test_a_sweep_gets_the_standings_by_each_known_measure() -> None:
    runs = [
        run(1, 200, 1.0, pace=0.93),
        run(1, 400, 0.93, pace=0.88),
        run(1, 800, 0.88, pace=0.5),
        run(2, 800, 0.5, pace=0.5),
        run(4, 800, 0.5, excluded="a node died"),
    ]
    loads = [_load(*key) for key in ((1, 200), (1, 400), (1, 800), (2, 800), (4, 800))]
    by_share = dict(zip(loads, ["kept up", "leans to kept up", "leans to lost", "lost", "no data"], strict=True))
    by_pace = dict(zip(loads, ["leans to kept up", "leans to lost", "lost", "lost", "no data"], strict=True))
    assert standings(cells_of(runs, TOLERANCE), _load) == [by_share, by_pace]
    without = [item.model_copy(update={"pace": None}) for item in runs]
    assert standings(cells_of(without, TOLERANCE), _load) == [by_share]


# --- the saturation load ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["committed", "pace"])
@pytest.mark.parametrize(
    ("shares", "state", "reason"),
    [
        ({}, "no data", "no valid run"),
        ({(1, 200): 1.0, (1, 400): 0.5}, "found", "no interval includes the threshold"),
        ({(1, 200): 0.5}, "nothing kept up", "even the smallest load, 200 tx/s, is not sustained"),
        ({(1, 200): 1.0, (50, 200): 1.0}, "lower bound", "every tested load, up to 10,000 tx/s, is sustained"),
        (
            {(1, 200): 1.0, (1, 400): 0.87, (2, 200): 0.97, (1, 800): 0.5},
            "contradictory",
            "the cells of one load, 400 tx/s, are on both sides of 90 %: c=1, r=400 87.0 % and c=2, r=200 97.0 %",
        ),
        (
            {(1, 200): 1.0, (1, 400): 0.5, (1, 800): 0.96, (1, 1600): 0.4},
            "contradictory",
            "400 tx/s is below 90 % (c=1, r=400 50.0 %), but the larger load 800 tx/s is not (c=1, r=800 96.0 %)",
        ),
        (
            {(1, 200): 1.0, (1, 400): 0.93, (1, 800): 0.88, (1, 1600): 0.5},
            "unclear",
            "by the point estimates: these intervals include 90 %: "
            "c=1, r=400 93.0 % (88.4 … 97.6 %), c=1, r=800 88.0 % (83.7 … 92.3 %)",
        ),
    ],
)
def test_the_reason_states_the_figures_that_decide(measure: Measure, shares: Shares, state: State, reason: str) -> None:
    saturation = saturation_of(cells_of(_runs(shares, measure), TOLERANCE), TOLERANCE, measure)
    assert (saturation.measure, saturation.state, saturation.reason) == (measure, state, reason)
    assert saturation.threshold == 0.9


def test_no_load_is_confirmed_if_none_is_sustained() -> None:
    saturation = saturation_of(cells_of([run(1, 200, 0.5)], TOLERANCE), TOLERANCE, "committed")
    assert (saturation.low_per_s, saturation.high_per_s) == (0, 200)


def test_a_load_without_valid_runs_decides_nothing() -> None:
    runs = [run(1, 200, 1.0), run(1, 400, 0.5, excluded="a node died"), run(1, 800, 0.5)]
    saturation = saturation_of(cells_of(runs, TOLERANCE), TOLERANCE, "committed")
    assert (saturation.state, saturation.load_per_s, saturation.high_per_s) == ("found", 200, 800)


FOUND = Saturation(
    measure="committed", threshold=0.9, state="found", load_per_s=800, low_per_s=800, high_per_s=1600,
    connections=2, rate_per_s=400, reason="clear",
)  # fmt: skip
WINDOW = FOUND.model_copy(
    update={"measure": "pace", "load_per_s": 400, "low_per_s": 400, "high_per_s": 800, "connections": 1}
)
UNREFUTED = WINDOW.model_copy(update={"high_per_s": None})


@pytest.mark.parametrize(
    ("first", "reported"),
    [
        (FOUND, "800 tx/s by its values"),
        (
            FOUND.model_copy(update={"state": "lower bound", "load_per_s": None, "high_per_s": None}),
            "every tested load",
        ),
    ],
)
def test_a_load_refuted_by_any_other_measure_is_not_selected(first: Saturation, reported: str) -> None:
    refuted = first.model_copy(
        update={
            "state": "contradictory",
            "load_per_s": None,
            "low_per_s": 400,
            "connections": 1,
            "reason": f"it would be {reported}, but within the window 800 tx/s and more are clearly not sustained: the "
            "mempools held the excess, which was processed after the end; offer each load for longer",
        }
    )
    assert reconciled([first, UNREFUTED, WINDOW]) == [refuted, UNREFUTED, WINDOW]


# --- the knee ---------------------------------------------------------------------------------------------------------

DETECTOR = "Kneedle, sensitivity 1"
CURVE = {200: (200.0, 1.0), 400: (400.0, 1.0), 800: (500.0, 6.0), 1600: (510.0, 9.0), 3200: (505.0, 12.0)}
FLAT = {200: (200.0, 1.0), 400: (400.0, 1.0), 800: (500.0, 1.0), 1600: (510.0, 1.0)}
TWICE = [run(1, load, 1.0, throughput=x * f, latency=y * f) for load, (x, y) in CURVE.items() for f in (0.99, 1.01)]
# Repetitions so different that most resamples have no knee, although their means have one.
SCATTERED = [
    run(1, load, 1.0, throughput=x, latency=y)
    for load, x, latencies in (
        (200, 200.0, (9.0, 2.0)), (400, 400.0, (1.0, 6.0)), (800, 500.0, (3.0, 9.0)), (1600, 510.0, (3.0, 2.0)),
    )
    for y in latencies
]  # fmt: skip


def _once(curve: Mapping[int, tuple[float, float]]) -> list[CellRun]:
    return [run(1, load, 1.0, throughput=x, latency=y) for load, (x, y) in curve.items()]


@pytest.mark.parametrize(
    ("runs", "load", "interval", "basis"),
    [
        (_once(CURVE)[:3], None, None, ": too few loads for a knee: 3"),
        (_once(FLAT), None, None, ": the latency has no knee"),
        (_once(CURVE), 400, None, "; a load has a single run: no interval"),
        (TWICE, 400, 400, "; interval from 1000 of 1000 resamples of the repetitions"),
        (SCATTERED, 400, None, "; the resamples do not agree on a knee"),
        # Repeated at every load, but once with each number of connections at 400 tx/s.
        (
            [
                item.model_copy(update={"connections": 2, "rate_per_s": 200}) if at == 3 else item
                for at, item in enumerate(TWICE)
            ],
            400,
            None,
            "; a load has a single run: no interval",
        ),
    ],
)
def test_a_knee_states_the_origin_of_its_interval(
    runs: list[CellRun], load: int | None, interval: int | None, basis: str
) -> None:
    knee = knee_of(cells_of(runs, TOLERANCE), 1)
    assert (knee.load_per_s, knee.low_per_s, knee.high_per_s) == (load, interval, interval)
    assert knee.basis == f"{DETECTOR}{basis}"


def test_the_knee_has_the_mean_figures_of_its_load() -> None:
    """Excluded runs, and those without latencies, are not part of the mean."""
    others = [
        run(1, 400, 1.0, throughput=900.0, latency=90.0, excluded="a node died"),
        run(1, 400, 1.0, throughput=900.0).model_copy(update={"latency": None}),
        run(1, 400, 1.0, throughput=900.0).model_copy(update={"latency": LatencyEntry(n=0, mean=None)}),
    ]
    knee = knee_of(cells_of([*TWICE, *others], TOLERANCE), 1)
    assert (knee.throughput_per_s, knee.latency_s) == pytest.approx((400.0, 1.0))


def test_the_seed_of_the_test_decides_the_interval_of_the_knee() -> None:
    runs = version("v", TWICE)
    expected = knee_of(cells_of(TWICE, TOLERANCE), 1)
    assert evaluated(runs, TOLERANCE, 1).knee == expected
    assert saturation_report(whole_test(), [runs], METRICS).versions[0].knee == expected


# --- versions ---------------------------------------------------------------------------------------------------------


def _judged(old: Sequence[CellRun], new: Sequence[CellRun], kind: str = "observed") -> list[Judgement]:
    sides = [evaluated(version(label, runs, kind=kind), TOLERANCE, 1) for label, runs in (("old", old), ("new", new))]
    return compare_versions(sides[0], sides[1], METRICS).cells[0].judgements


def _names(judgements: Sequence[Judgement]) -> list[tuple[str, str]]:
    return [(item.metric_id, item.statistic) for item in judgements]


SHARE, THROUGHPUT = ("committed_share", "mean"), ("throughput_per_s", "mean")
MEAN, P50, P99 = ("latency_s", "mean"), ("latency_s", "p50"), ("latency_s", "p99")


def test_each_figure_of_two_versions_is_judged() -> None:
    old, new = _with_latency(1.0, p50=0.8, p99=3.0), _with_latency(2.0, p50=1.6, p99=6.0)
    judgements = _judged([old], [new])
    assert _names(judgements) == [SHARE, THROUGHPUT, MEAN, P50, P99]
    values = [(item.baseline.value, item.candidate.value) for item in judgements]
    assert values == [(1.0, 1.0), (200.0, 200.0), (1.0, 2.0), (0.8, 1.6), (3.0, 6.0)]


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        (_without_latency(), _without_latency(), [SHARE, THROUGHPUT]),
        # Published tables may state a quantile without a mean.
        (_with_latency(None, p99=3.0), _with_latency(None, p99=3.0), [SHARE, THROUGHPUT, P99]),
        (_with_latency(1.0), _without_latency(), [SHARE, THROUGHPUT, MEAN]),
        (_without_latency(), _with_latency(1.0), [SHARE, THROUGHPUT, MEAN]),
    ],
)
def test_a_figure_that_no_side_states_has_no_row(old: CellRun, new: CellRun, names: list[tuple[str, str]]) -> None:
    assert _names(_judged([old], [new])) == names


def test_a_figure_that_one_side_does_not_state_is_not_judged() -> None:
    mean = _judged([_with_latency(1.0), _without_latency()], [_without_latency()])[2]
    assert (mean.outcome, mean.note) == (Outcome.NO_DATA, "candidate: not stated")
    assert (mean.baseline.per_run, mean.candidate.per_run) == ([1.0, None], [None])


def test_latencies_of_unknown_kinds_say_why_they_are_not_judged() -> None:
    mean = _judged([_with_latency(1.0)], [_with_latency(1.0)], kind="")[2]
    assert mean.note == "not judged: the two latencies may have different definitions"


@pytest.mark.parametrize("invalid", ["old", "new"])
def test_the_version_without_a_valid_run_is_named(invalid: str) -> None:
    old, new = (
        evaluated(version(label, [run(1, 200, 1.0, excluded="a node died" if label == invalid else "")]), TOLERANCE, 1)
        for label in ("old", "new")
    )
    assert compare_versions(old, new, METRICS).left_out == [f"c=1, r=200: no valid run of {invalid}"]


def test_versions_are_compared_with_the_first_of_their_kind() -> None:
    """The measured ones come first."""
    versions = [
        version(label, [run(1, 200, 1.0)], published=label.startswith("their"))
        for label in ("their a", "our a", "their b", "our b")
    ]
    report = saturation_report(whole_test(), versions, METRICS)
    pairs = [(comparison.baseline, comparison.candidate) for comparison in report.comparisons]
    assert pairs == [("our a", "our b"), ("their a", "their b")]
    assert report.metrics == METRICS.all()


@pytest.mark.parametrize(
    ("title", "published", "expected"),
    [
        ("My own", (False, False), "My own"),
        ("", (False, False), "Saturation of Some a and Some b"),
        ("", (True, False), "Saturation of Some b"),
        ("", (True, True), "Saturation of Some a and Some b"),
    ],
)
def test_a_report_is_titled_by_its_measured_versions(title: str, published: tuple[bool, bool], expected: str) -> None:
    versions = [
        version(label, [run(1, 200, 1.0)], published=is_published)
        for label, is_published in zip(("a", "b"), published, strict=True)
    ]
    assert saturation_report(replace(whole_test(), title=title), versions, METRICS).title == expected
