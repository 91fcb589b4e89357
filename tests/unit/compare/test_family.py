"""The family of gating metrics, computed by hand: columns where up is worse, the error to spend, and the archive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

from chainmark.compare import family
from chainmark.compare.family import CHANCE, Gated, RunTable, family_of
from chainmark.compare.judge import Bench, judge
from chainmark.compare.noise import Column
from chainmark.core.comparison import Judgement, SideValue
from chainmark.core.metric import Better, Kind, Metric
from chainmark.stats.centiles import FloatArray
from chainmark.stats.intervals import Working
from chainmark.stats.sequential import FamilyTest, Forecast, Looks, family_test, spent
from chainmark.stats.special import t_quantile

from tests.unit.compare.metric_cases import counts, metric, side

GATING = metric(gating=True)


def _gated(
    left: Sequence[float | None], right: Sequence[float | None], metric: Metric = GATING, p_worse: float | None = None
) -> Gated:
    """The runs of a gating metric. ``p_worse`` replaces the p-value of its judgement."""
    baseline, candidate = side(left), side(right)
    judgement = judge(metric, "mean", baseline, candidate, Bench())
    changed = judgement.model_copy(update={"p_worse": judgement.p_worse if p_worse is None else p_worse})
    return Gated(metric, "mean", baseline, candidate, changed)


def _bench(*runs: tuple[int, int], planned: int | None = None) -> Bench:
    return Bench(looks=Looks(runs, planned or min(runs[-1])))


@dataclass
class _Archive:
    """An archive with these deviations, which records the requested columns."""

    rows: FloatArray
    requested: list[Sequence[Column]] = field(default_factory=list)

    def deviations(self, columns: Sequence[Column]) -> FloatArray:
        """Record the request and return the deviations."""
        self.requested.append(columns)
        return self.rows


def _with_archive(bench: Bench, rows: Sequence[Sequence[float]]) -> tuple[Bench, _Archive]:
    archive = _Archive(np.array(rows, dtype=float))
    return Bench(archive, bench.looks), archive  # type: ignore[arg-type]


# --- columns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("better", "baseline", "candidate", "margin"),
    [
        (Better.LOWER, [math.log(2.0), math.log(4.0)], [math.log(3.0), math.log(5.0)], math.log(1.1)),
        # If lower is worse, the sign is flipped, and a fall of 10 % is accepted, which is more than log 1.1.
        (Better.HIGHER, [-math.log(2.0), -math.log(4.0)], [-math.log(3.0), -math.log(5.0)], -math.log(0.9)),
    ],
)
def test_the_column_of_a_positive_metric_has_logarithms_that_increase_towards_worse(
    better: Better, baseline: list[float], candidate: list[float], margin: float
) -> None:
    column = _gated([2.0, 4.0], [3.0, 5.0], metric(better=better, gating=True)).column
    assert column.working is Working.LOG
    assert column.baseline.tolist() == pytest.approx(baseline)
    assert column.candidate.tolist() == pytest.approx([value - margin for value in candidate])


def test_the_margin_of_a_difference_from_zero_is_the_floor() -> None:
    column = _gated([0.0, 0.0], [1.0, 2.0], metric(Kind.DIFFERENCE, floor=0.05, gating=True)).column
    assert column.candidate.tolist() == pytest.approx([0.95, 1.95])


@pytest.mark.parametrize(("better", "sign"), [(Better.LOWER, 1.0), (Better.HIGHER, -1.0)])
def test_the_column_of_a_count_is_in_its_unit_although_it_is_compared_by_ratio(better: Better, sign: float) -> None:
    """The margin is a tenth of the baseline's pooled rate of 0.03."""
    some_metric = metric(Kind.COUNT, better, gating=True)
    left, right = counts([20.0, 40.0]), counts([30.0, 60.0])
    column = Gated(some_metric, "mean", left, right, judge(some_metric, "mean", left, right, Bench())).column
    assert column.working is Working.DIFFERENCE
    assert column.baseline.tolist() == pytest.approx([sign * 0.02, sign * 0.04])
    assert column.candidate.tolist() == pytest.approx([sign * 0.03 - 0.003, sign * 0.06 - 0.003])


def test_a_metric_with_a_run_without_a_value_is_in_no_table() -> None:
    assert _gated([1.0, 1.1], [1.0, 1.1]).has_every_value
    assert not _gated([1.0, None], [1.0, 1.1]).has_every_value
    assert not _gated([1.0, 1.1], [None, 1.1]).has_every_value
    assert not _gated([None, None], [1.0, 1.1]).has_every_value


# --- the family -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "is_worse"), [(0.0004, True), (0.001, False)])
def test_without_noise_to_rotate_holms_method_uses_the_remaining_error(p: float, *, is_worse: bool) -> None:
    """One run per side was planned and one was added. The second look may only spend the remaining error."""
    looks = Looks(((1, 1), (2, 2)), 1)
    before, level = spent(looks, worse=True)
    metric_family = family_of([_gated([1.0], [1.0], p_worse=level) for level in (0.5, p)], Bench(looks=looks))
    assert metric_family.adjusted == (0.5, 2.0 * p)
    assert metric_family.level == pytest.approx(level - before)
    assert metric_family.level == pytest.approx(0.001)
    assert (metric_family.is_worse, metric_family.table, metric_family.together) == (is_worse, None, ())


def test_before_the_last_planned_look_a_part_of_the_error_is_reserved() -> None:
    looks = Looks(((1, 1), (2, 2)), 4)
    assert family_of([_gated([1.0], [1.0])], Bench(looks=looks)).level == pytest.approx(spent(looks, worse=True)[1])


@pytest.mark.parametrize(
    ("tested", "p_beside", "is_worse", "together"),
    [
        # The family and its metric are both at the level.
        (FamilyTest(0.01, 0.02, (0.01,), (0,)), 0.9, True, ()),
        # Only the family is at the level. The metric is named by its position among all metrics.
        (FamilyTest(0.01, 0.02, (0.011,), (0,)), 0.9, True, (1,)),
        # Only the metric outside the table is at the level.
        (FamilyTest(0.9, 0.02, (0.9,), (0,)), 0.01, True, ()),
        (FamilyTest(0.0101, 0.02, (0.0101,), (0,)), 0.0101, False, ()),
    ],
)
def test_two_metrics_share_the_error_if_only_one_is_in_the_table(
    monkeypatch: pytest.MonkeyPatch, tested: FamilyTest, p_beside: float, *, is_worse: bool, together: tuple[int, ...]
) -> None:
    """Each p-value is doubled and compared with the level of the look. At exactly that level it is worse."""
    p_values: list[list[float]] = []

    def test(_: RunTable, alone: list[float]) -> FamilyTest:
        p_values.append(alone)
        return tested

    monkeypatch.setattr(RunTable, "test", test)
    beside = _gated([1.0, None], [1.0, 1.0], p_worse=p_beside)
    metric_family = family_of([beside, _gated([1.0, 1.1], [1.0, 1.1], p_worse=0.3)], _bench((2, 2)))
    assert p_values == [[0.3]]
    assert metric_family.adjusted == pytest.approx((min(1.0, 2.0 * p_beside), min(1.0, 2.0 * tested.adjusted[0])))
    assert (metric_family.level, metric_family.is_worse, metric_family.together) == (0.02, is_worse, together)
    assert metric_family.table is not None
    assert metric_family.table.looks == Looks(((2, 2),), 2)


@pytest.mark.parametrize(("times", "is_worse"), [(1.0, True), (1.01, False)])
def test_a_p_value_at_the_level_itself_is_worse(times: float, *, is_worse: bool) -> None:
    level = spent(Looks(((1, 1),), 1), worse=True)[0]
    metric_family = family_of([_gated([1.0], [1.0], p_worse=times * level)], _bench((1, 1)))
    assert metric_family.is_worse is is_worse


def test_a_metric_without_data_does_not_make_a_failure_easier() -> None:
    """In Holm's correction it counts with p = 1, and it has no p-value of its own."""
    lost = Gated(GATING, "mean", side([None]), side([1.0]), _unjudged())
    metric_family = family_of([_gated([1.0], [1.0], p_worse=0.01), lost], _bench((1, 1)))
    assert metric_family.adjusted == (0.02, None)
    table = family_of([_gated([1.0, 1.01], [1.0, 1.02]), lost], _bench((2, 2)))
    alone = family_of([_gated([1.0, 1.01], [1.0, 1.02])], _bench((2, 2)))
    assert table.adjusted[1] is None
    assert table.adjusted[0] == pytest.approx(min(1.0, 2.0 * (alone.adjusted[0] or 0.0)))
    nobody = family_of([lost], _bench((2, 2)))
    assert (nobody.adjusted, nobody.is_worse, nobody.table) == ((None,), False, None)


def _unjudged() -> Judgement:
    nothing = SideValue(value=None, per_run=[None], samples=0)
    return _gated([1.0], [1.0]).judgement.model_copy(update={"p_worse": None, "baseline": nothing})


def test_metrics_that_cannot_be_in_the_table_are_included_by_bonferroni() -> None:
    """One run has no value. With two metrics, its p-value is doubled, and it may decide by itself."""
    quiet = _gated([1.0, 1.01, 1.0], [1.0, 1.0, 1.01])
    for p, is_worse in ((0.0001, True), (0.4, False)):
        partial = _gated([1.0, None, 1.0], [1.0, 1.0, 1.0], p_worse=p)
        metric_family = family_of([partial, quiet], _bench((3, 3)))
        assert metric_family.adjusted[0] == pytest.approx(2.0 * p)
        assert metric_family.is_worse is is_worse
        assert metric_family.together == ()
    sure = family_of([_gated([1.0, None], [1.0, 1.0], p_worse=0.7), _gated([1.0, 1.01], [1.0, 1.01])], _bench((2, 2)))
    assert sure.adjusted[0] == 1.0


def test_no_metric_has_a_stronger_effect_than_its_own_p_value() -> None:
    """Pooled counts may be weaker evidence than runs that happen to be similar."""
    left, right = [1.0, 1.001, 0.999], [1.5, 1.501, 1.499]
    assert family_of([_gated(left, right)], _bench((3, 3))).is_worse
    for p in (0.3, 1.0):
        doubted = family_of([_gated(left, right, p_worse=p)], _bench((3, 3)))
        assert not doubted.is_worse
        assert (doubted.adjusted[0] or 0.0) >= p - 0.02


def test_metrics_that_fail_together_are_identified_by_their_positions_among_all() -> None:
    """The first metric is not in the table, so the position differs from that in the table."""
    rng = np.random.default_rng(6)
    baseline, candidate = 0.02 * rng.standard_normal((2, 6, 5))
    candidate = candidate - candidate.mean(axis=0) + baseline.mean(axis=0) + math.log(1.1) - 0.03
    candidate[:, [0, 2, 4]] += 0.03 + 1.3 * 0.02
    table = [_gated(np.exp(baseline[:, i]).tolist(), np.exp(candidate[:, i]).tolist()) for i in range(5)]
    partial = _gated([1.0, None, 1.0, 1.0, 1.0, 1.0], [1.0] * 6)
    metric_family = family_of([partial, *table], _bench((6, 6)))
    assert metric_family.is_worse
    assert set(metric_family.together) == {1, 3, 5}


def test_with_a_series_of_releases_holms_method_is_used_although_an_archive_has_rows() -> None:
    """A series does not show how the metrics of one run vary together. Holm doubles the smaller of two p-values."""
    bench, archive = _with_archive(_bench((1, 1)), [[0.02, 0.01], [0.01, -0.02]])
    gated = [_gated([1.0], [1.0], p_worse=p) for p in (0.015, 0.04)]
    many, few = (
        family_of(gated, replace(bench, releases=SimpleNamespace(are_enough=are_enough)))  # type: ignore[arg-type]
        for are_enough in (True, False)
    )
    assert (many.adjusted, many.table) == ((0.03, 0.04), None)
    assert few.table is not None
    assert len(archive.requested) == 1


# --- the archive ----------------------------------------------------------------------------------------------------


def test_the_rows_of_the_archive_have_the_direction_of_the_columns() -> None:
    """For a metric where higher is better. The rows are not widened if these runs are as quiet as the archive."""
    higher = metric(id="y_s", better=Better.HIGHER, gating=True)
    gated = [_gated([1.0, 1.01], [1.0, 1.01]), _gated([1.0, 1.01], [1.0, 1.01], higher)]
    bench, archive = _with_archive(_bench((2, 2)), [[0.1, 0.2], [-0.1, 0.3]])
    table = RunTable.of(gated, bench)
    assert table is not None
    assert table.archive.tolist() == [[0.1, -0.2], [-0.1, -0.3]]
    assert table.looks == Looks(((2, 2),), 2, archive=2)
    assert archive.requested == [[("x_s", "mean", Working.LOG), ("y_s", "mean", Working.LOG)]]
    assert (table.baseline.shape, table.candidate.shape) == ((2, 2), (2, 2))


def test_runs_noisier_than_the_archive_widen_its_rows() -> None:
    """They are widened to the variance of the runs.

    Otherwise an archive from a quieter time would turn noise into failures.
    """
    noisy = _gated([1.0, 2.0, 1.0], [1.0, 2.0, 1.0])
    rows = [[0.01], [-0.01], [0.02], [0.01]]
    bench, _ = _with_archive(_bench((3, 3)), rows)
    table = RunTable.of([noisy], bench)
    assert table is not None
    own = 2 * (math.log(2.0) ** 2) * 2 / 3 / 4  # squares of both sides, divided by their four degrees of freedom
    assert np.square(table.archive).mean() == pytest.approx(own)
    assert table.archive[:, 0] / table.archive[0, 0] == pytest.approx([1.0, -1.0, 2.0, 1.0])


def test_runs_quieter_than_the_archive_narrow_its_rows() -> None:
    """They get the variance of the runs; otherwise no release would fail after an archive of a noisier time."""
    quiet = _gated([1.0, 1.001, 1.0], [1.0, 1.001, 1.0])
    bench, _ = _with_archive(_bench((3, 3)), [[0.2], [-0.2], [0.4], [0.2]])
    table = RunTable.of([quiet], bench)
    assert table is not None
    own = 2 * (math.log(1.001) ** 2) * 2 / 3 / 4
    assert np.square(table.archive).mean() == pytest.approx(own)


def test_an_archive_without_any_noise_is_not_used_for_these_runs() -> None:
    bench, _ = _with_archive(_bench((3, 3)), [[0.0], [0.0]])
    table = RunTable.of([_gated([1.0, 2.0, 1.0], [1.0, 2.0, 1.0])], bench)
    assert table is not None
    assert table.archive.tolist() == [[0.0], [0.0]]


def test_single_runs_have_a_table_if_an_archive_shows_the_noise() -> None:
    gated = [_gated([1.0], [1.3])]
    assert RunTable.of(gated, _bench((1, 1))) is None
    bench, _ = _with_archive(_bench((1, 1)), [[0.02]])
    table = RunTable.of(gated, bench)
    assert table is not None
    assert table.looks.degrees_of_freedom.tolist() == [1.0]
    empty = _Archive(np.empty((0, 1)))
    assert RunTable.of(gated, Bench(empty, _bench((1, 1)).looks)) is None  # type: ignore[arg-type]


def test_the_test_of_a_table_uses_its_columns_and_their_limits() -> None:
    gated = [_gated([1.0, 1.02, 0.99], [1.2, 1.24, 1.19])]
    table = RunTable.of(gated, _bench((3, 3)))
    assert table is not None
    limits = np.array([t_quantile(1.0 - 0.02, 4.0)])
    expected = family_test(table.baseline, table.candidate, table.archive, table.looks, limits=limits)
    assert table.test([0.02]) == expected
    # A p-value of 0 sets no limit.
    assert table.test([0.0]) == family_test(table.baseline, table.candidate, table.archive, table.looks)


# --- effect of additional runs --------------------------------------------------------------------------------------


def _advised(
    monkeypatch: pytest.MonkeyPatch, now: int, planned: int, enough: int
) -> tuple[int | None, list[list[int]]]:
    """The advised and the tried numbers of runs, if ``enough`` runs decide with exactly the required probability."""
    tried: list[list[int]] = []

    def forecast(_: RunTable, further: Sequence[int]) -> Forecast:
        tried.append(list(further))
        return Forecast({runs: CHANCE if runs >= enough else 0.79 for runs in further})

    monkeypatch.setattr(RunTable, "forecast", forecast)
    nothing = np.empty((0, 0))
    looks = Looks(((1, 1), (2, 2), (now - 1, now)), planned)
    table = RunTable(nothing, nothing, nothing, looks, np.empty(0))
    return table.runs_to_decide(), tried


def test_the_planned_looks_are_tried_first_and_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _advised(monkeypatch, 3, 6, 5) == (5, [[4, 5, 6]])
    assert _advised(monkeypatch, 5, 6, 6) == (6, [[6]])


def test_beyond_the_plan_the_runs_are_bisected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty first: if they do not suffice, nothing else is tried. Each number is a single look."""
    assert _advised(monkeypatch, 6, 6, 51) == (None, [[50]])
    assert _advised(monkeypatch, 6, 6, 10) == (10, [[50], [28], [17], [11], [8], [9], [10]])
    assert _advised(monkeypatch, 4, 6, 7) == (7, [[5, 6], [50], [28], [17], [11], [8], [7]])
    assert _advised(monkeypatch, 8, 6, 9) == (9, [[50], [29], [18], [13], [10], [9]])
    assert _advised(monkeypatch, 6, 6, 43) == (44, [[50], [28], [39], [44], [41], [42]])  # within a twentieth
    assert _advised(monkeypatch, 50, 50, 51) == (None, [])
    assert _advised(monkeypatch, 49, 40, 50) == (50, [[50]])


def _anew(monkeypatch: pytest.MonkeyPatch, enough: int) -> tuple[int | None, list[int]]:
    """The advised and the tried runs of a new experiment, if ``enough`` pass with exactly the required probability."""
    tried: list[int] = []
    table = RunTable.of([_gated([1.0, 1.02, 0.99], [1.05, 1.08, 1.02])], _bench((3, 3)))
    assert table is not None

    def chance(
        baseline: FloatArray, candidate: FloatArray, archive: FloatArray, margins: FloatArray, runs: int
    ) -> float:
        assert baseline is table.baseline
        assert candidate is table.candidate
        assert archive is table.archive
        assert margins == pytest.approx([math.log(1.1)])
        tried.append(runs)
        return CHANCE if runs >= enough else 0.79

    monkeypatch.setattr(family, "chance_for_equal", chance)
    return table.runs_for_equal(), tried


@pytest.mark.parametrize("enough", [2, 3, 4, 5, 7, 11, 16, 29, 38])
def test_a_small_required_number_of_runs_is_exact(monkeypatch: pytest.MonkeyPatch, enough: int) -> None:
    assert _anew(monkeypatch, enough)[0] == enough


def test_the_runs_are_doubled_until_they_suffice_and_then_bisected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number is a simulation. From 38 to 40, the difference is a twentieth of 40, and the search ends."""
    assert _anew(monkeypatch, 39) == (40, [2, 4, 8, 16, 32, 64, 64, 48, 40, 36, 38])


@pytest.mark.parametrize("enough", [41, 100, 128, 129, 150, 199, 200])
def test_a_large_required_number_of_runs_is_at_most_five_percent_too_high(
    monkeypatch: pytest.MonkeyPatch, enough: int
) -> None:
    enough_runs, _ = _anew(monkeypatch, enough)
    assert enough_runs is not None
    assert enough <= enough_runs <= min(200, 1.05 * enough)


def test_an_unrealistic_required_number_of_runs_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _anew(monkeypatch, 201)[0] is None


def test_a_forecast_is_computed_from_the_table() -> None:
    table = RunTable.of([_gated([1.0, 1.02, 0.99], [1.05, 1.08, 1.02])], _bench((3, 3), planned=5))
    assert table is not None
    forecast = table.forecast([4, 5])
    assert list(forecast.decided) == [4, 5]
    assert 0.0 < forecast.decided[4] <= forecast.decided[5] <= 1.0
