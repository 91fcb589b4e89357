"""Margins learnt from re-runs: accepted changes, and whether the shown probabilities are correct."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from chainmark.api.context import Accepted, as_choice
from chainmark.compare.judge import Bench
from chainmark.compare.margins import (
    chance_to_pass,
    is_inside_noise,
    learnable,
    learnt_margin,
    learnt_margins,
    margin_rows,
    unknown_noise,
    widened_margins,
)
from chainmark.compare.noise import Archive, ArchiveSpread
from chainmark.core.catalogue import Bounds, Catalogue
from chainmark.core.errors import UsageError
from chainmark.core.margin_report import MarginRow
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population
from chainmark.stats.intervals import LEVEL, Working
from chainmark.stats.sequential import Looks
from chainmark.stats.special import t_quantile

from tests.unit.compare.metric_cases import metric
from tests.unit.compare.synthetic_runs import sides

WIDE = Bounds(1e-9, 1e9)


def test_a_margin_is_three_deviations_of_the_change_of_a_re_run() -> None:
    assert learnt_margin(0.02, Better.LOWER, WIDE) == pytest.approx(math.expm1(3.0 * math.sqrt(2.0) * 0.02))
    assert learnt_margin(0.02, Better.HIGHER, WIDE) == pytest.approx(-math.expm1(-3.0 * math.sqrt(2.0) * 0.02))


@given(st.floats(1e-6, 1.0), st.sampled_from([Better.LOWER, Better.HIGHER]))
def test_a_margin_stays_within_the_bounds_of_the_team(deviation: float, better: Better) -> None:
    bounds = Bounds(0.05, 0.15)
    assert bounds.low <= learnt_margin(deviation, better, bounds) <= bounds.high


@pytest.mark.parametrize(("margin", "runs"), [(0.06, 1), (0.085, 1), (0.06, 3)])
def test_unchanged_releases_pass_as_often_as_stated(margin: float, runs: int) -> None:
    """If the probability were overstated, a team would start runs that decide nothing."""
    deviation, freedom = 0.02, 200.0
    rng = np.random.default_rng(1)
    error = deviation * math.sqrt(2.0 / runs)
    changes = rng.normal(0.0, error, 20_000)
    known = freedom + 2.0 * (runs - 1)
    passed = changes + t_quantile(1.0 - LEVEL, known) * error < margin
    assert float(passed.mean()) == pytest.approx(chance_to_pass(margin, deviation, freedom, runs, LEVEL), abs=0.01)


def test_nine_in_ten_unchanged_releases_pass_by_a_learnt_margin_of_a_known_noise() -> None:
    margin = math.log1p(learnt_margin(0.03, Better.LOWER, WIDE))
    assert 0.90 < chance_to_pass(margin, 0.03, 1e6, 1, LEVEL) < 0.93


@given(st.floats(1e-4, 0.5), st.floats(1e-4, 0.5), st.floats(2.0, 100.0))
def test_a_margin_inside_its_noise_passes_at_most_half_of_equal_releases(
    margin: float, deviation: float, freedom: float
) -> None:
    chance = chance_to_pass(margin, deviation, freedom, 1, LEVEL)
    assert is_inside_noise(margin, deviation, freedom, LEVEL) == (chance <= 0.5) or chance == pytest.approx(0.5)


def test_sources_of_margins_are_distinguished() -> None:
    assert as_choice(["learnt", "rss_mib=20%"]) == Accepted({"rss_mib": 0.2}, Bounds())
    assert as_choice(["learnt:4%,12.5%"]) == Accepted({}, Bounds(0.04, 0.125))
    assert as_choice(["widened:15%", "rss_mib=20%"]) == Accepted({"rss_mib": 0.2}, None, 0.15)
    assert as_choice(["catalogue"]) == Accepted({}, None, None)
    assert as_choice({"rss_mib": 0.2}) == Accepted({"rss_mib": 0.2})
    assert as_choice(None) == as_choice(["widened"]) == Accepted({}, None, 0.20)


@pytest.mark.parametrize("text", ["widened:", "widened:0%", "widened:x"])
def test_an_invalid_widest_margin_is_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="lacks the widest margin"):
        as_choice([text])


def test_sources_of_margins_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        as_choice(["learnt", "catalogue"])


@pytest.mark.parametrize("text", ["learnt:", "learnt:12%,4%", "learnt:0%,5%", "learnt:x"])
def test_invalid_bounds_are_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="lacks the bounds of the margins"):
        as_choice([text])


@pytest.mark.parametrize(("better", "margin"), [(Better.HIGHER, -math.log(0.9)), (Better.LOWER, math.log(1.1))])
def test_the_chances_use_the_margin_in_the_worse_direction(better: Better, margin: float) -> None:
    """10 % less is further on the logarithmic scale than 10 % more, and a lower throughput is worse."""
    runs, _ = sides()
    known = runs[0].catalogue
    catalogue = known.model_copy(
        update={"metrics": [metric.model_copy(update={"better": better}) for metric in known.metrics]}
    )
    bench = Bench(Archive((), runs[0].manifest, runs))
    row = next(row for row in margin_rows(catalogue, bench, WIDE) if row.metric_id == "cpu_cores")
    expected = chance_to_pass(margin, row.deviation, row.degrees_of_freedom, 1, bench.level())
    assert row.chances[1] == pytest.approx(expected, rel=1e-12)


@dataclass(frozen=True)
class KnownNoise(Bench):
    """A bench with known noise of single runs by metric and statistic, with 6 degrees of freedom."""

    deviations: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def spread(self, metric: Metric, statistic: str, working: Working) -> ArchiveSpread | None:
        """The noise, known only on the logarithmic scale."""
        deviation = self.deviations.get((metric.id, statistic)) if working is Working.LOG else None
        return None if deviation is None else ArchiveSpread(6.0 * deviation**2, 6.0, 9, "known noise")


LATENCY = metric(
    id="latency_s", label="latency", gating=True, floor=9.0, statistics=["mean", "p90"], judged_by=["mean", "p90"]
)
RATE = metric(better=Better.HIGHER, id="rate_per_s", label="rate", gating=True, order=2)
SIZE = metric(id="size_s", label="size", gating=True, order=3)
OTHERS = [
    metric(id="hint_s", label="hint", gating=False, order=4),
    metric(Kind.DIFFERENCE, id="shift_s", label="shift", gating=True, order=5),
    metric(id="still_s", label="still", gating=True, order=6),
]
KNOWN = Catalogue(
    system="x",
    title="X",
    populations=[Population(id="block", label="blocks", keys=["height"])],
    tables=[MetricGroup(id="all", title="All")],
    metrics=[LATENCY, RATE, SIZE, *OTHERS],
)
DEVIATIONS = {
    ("latency_s", "mean"): 0.05, ("latency_s", "p90"): 0.04, ("rate_per_s", "mean"): 0.03, ("size_s", "mean"): 0.001,
    ("hint_s", "mean"): 0.5, ("shift_s", "mean"): 0.5, ("still_s", "mean"): 0.0,
}  # fmt: skip
BENCH = KnownNoise(looks=Looks(((1, 1), (2, 2)), 8), deviations=DEVIATIONS)


def _learnt(deviation: float, *, is_fall: bool = False) -> float:
    change = 3.0 * math.sqrt(2.0) * deviation
    return -math.expm1(-change) if is_fall else math.expm1(change)


def test_a_margin_is_learnt_for_metrics_that_decide_by_ratio_and_have_noise() -> None:
    """It is derived from the noisiest statistic, wherever it is listed.

    A rate may fall by less than a latency may rise.
    """
    expected = {"latency_s": _learnt(0.05), "rate_per_s": _learnt(0.03, is_fall=True), "size_s": _learnt(0.001)}
    assert learnt_margins(KNOWN, BENCH, WIDE) == pytest.approx(expected)
    last = replace(BENCH, deviations={**DEVIATIONS, ("latency_s", "p90"): 0.06})
    assert learnt_margins(KNOWN, last, WIDE)["latency_s"] == pytest.approx(_learnt(0.06))


def test_metrics_that_do_not_decide_by_ratio_have_no_margin_to_learn() -> None:
    assert [metric.id for metric in KNOWN.metrics if learnable(metric)] == [
        "latency_s",
        "rate_per_s",
        "size_s",
        "still_s",
    ]


def test_margins_are_widened_to_the_noise_of_re_runs_within_the_allowed_limit() -> None:
    """A margin that a team set or learnt is unchanged, however noisy the metric is."""
    wide = KNOWN.with_widened(widened_margins(KNOWN, BENCH, 0.22))
    widened = {metric.id: metric.accepted for metric in wide.metrics if metric.accepted > metric.margin}
    assert widened == pytest.approx({"latency_s": 0.22, "rate_per_s": _learnt(0.03, is_fall=True)})
    chosen = {"latency_s": 0.07, "rate_per_s": 0.06}
    further = widened_margins(KNOWN.with_margins(chosen), BENCH, 0.2, chosen)
    assert "size_s" in further
    assert not chosen.keys() & further.keys()


def _rows(catalogue: Catalogue, bounds: Bounds = WIDE) -> dict[tuple[str, str], MarginRow]:
    return {(row.metric_id, row.statistic): row for row in margin_rows(catalogue, BENCH, bounds)}


def test_the_decisions_of_margins_are_as_computed_by_hand() -> None:
    """Each statistic is judged by its own noise at the level of a first look, without the value-dependent floor."""
    rows = _rows(KNOWN)
    assert list(rows) == [("latency_s", "mean"), ("latency_s", "p90"), ("rate_per_s", "mean"), ("size_s", "mean")]
    assert [row.label for row in rows.values()] == ["latency mean", "latency p90", "rate", "size"]
    level = BENCH.level()
    for (id_, statistic), row in rows.items():
        deviation, is_fall = DEVIATIONS[id_, statistic], id_ == "rate_per_s"
        learnt = _learnt(max(deviation, 0.05) if id_ == "latency_s" else deviation, is_fall=is_fall)
        mine, other = (-math.log1p(-margin) if is_fall else math.log1p(margin) for margin in (0.1, learnt))
        assert row.deviation == pytest.approx(deviation)
        assert (row.degrees_of_freedom, row.noise) == (6.0, "known noise")
        assert (row.margin, row.widened_from) == (0.1, None)
        assert row.learnt == pytest.approx(learnt)
        for margin, chances, inside in (
            (mine, row.chances, row.inside_noise),
            (other, row.learnt_chances, row.learnt_inside_noise),
        ):
            expected = {runs: chance_to_pass(margin, deviation, 6.0, runs, level) for runs in (1, 2, 3)}
            assert chances == pytest.approx(expected, rel=1e-9)
            assert inside is is_inside_noise(margin, deviation, 6.0, level)
    assert [row.inside_noise for row in rows.values()] == [True, True, True, False]


def test_a_margin_between_the_noise_of_few_re_runs_and_that_of_many_is_inside() -> None:
    """With six degrees of freedom the interval is wider than with exactly known noise."""
    certainty = 1.0 - BENCH.level()
    margin = 0.5 * (t_quantile(certainty, None) + t_quantile(certainty, 6.0)) * math.sqrt(2.0)
    row = _rows(KNOWN.with_margins({"size_s": math.expm1(margin * 0.001)}))["size_s", "mean"]
    assert row.inside_noise
    narrow = _rows(KNOWN, Bounds(1e-9, math.expm1(margin * 0.001)))["size_s", "mean"]
    assert narrow.learnt_inside_noise


def test_a_widened_margin_is_reported_with_its_original() -> None:
    row = _rows(KNOWN.with_widened({"latency_s": 0.15}))["latency_s", "mean"]
    assert (row.margin, row.widened_from) == (0.15, 0.1)
    expected = chance_to_pass(math.log1p(0.15), 0.05, 6.0, 1, BENCH.level())
    assert row.chances[1] == pytest.approx(expected)


def test_metrics_without_known_noise_are_named() -> None:
    """Only gating metrics, by statistic. A metric that never changed has no known noise either."""
    known = KnownNoise(deviations={("latency_s", "mean"): 0.05, ("size_s", "mean"): 0.1})
    assert unknown_noise(KNOWN, margin_rows(KNOWN, known, WIDE)) == ["latency p90", "rate", "shift", "still"]
    assert unknown_noise(KNOWN, margin_rows(KNOWN, BENCH, WIDE)) == ["shift", "still"]


@pytest.mark.parametrize(("freedom", "runs"), [(2.0, 1), (2.0, 3), (5.0, 2)])
def test_the_chance_to_pass_accounts_for_few_degrees_of_freedom(freedom: float, runs: int) -> None:
    """With more runs per side the error is smaller, and the differences of these runs add evidence of the noise."""
    known = freedom + 2.0 * (runs - 1)
    distance = 0.1 / (0.04 * math.sqrt(2.0 / runs)) - float(stats.t.ppf(0.95, known))
    assert chance_to_pass(0.1, 0.04, freedom, runs, 0.05) == pytest.approx(float(stats.t.cdf(distance, known)))


def test_a_margin_equal_to_the_noise_shows_no_equality() -> None:
    """The interval of an unchanged release then ends at the margin, and it must end before the margin to be equal."""
    margin = t_quantile(1.0 - LEVEL, 6.0) * math.sqrt(2.0) * 0.04
    assert is_inside_noise(margin, 0.04, 6.0, LEVEL)
    assert not is_inside_noise(math.nextafter(margin, 1.0), 0.04, 6.0, LEVEL)
