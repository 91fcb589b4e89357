"""Margins learnt from re-runs: what they let pass, and whether the chances that are shown hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.api.context import Accepted, as_choice
from chainmark.compare.judge import Bench
from chainmark.compare.margins import chance_to_pass, is_inside_noise, learnt_margin, margin_rows
from chainmark.compare.noise import Archive
from chainmark.core.catalogue import Bounds
from chainmark.core.errors import UsageError
from chainmark.core.metric import Better
from chainmark.stats.intervals import LEVEL
from chainmark.stats.special import t_quantile

from tests.unit.compare.synthetic_runs import sides

WIDE = Bounds(1e-9, 1e9)


def test_a_margin_is_three_deviations_of_the_change_of_a_re_run() -> None:
    assert learnt_margin(0.02, Better.LOWER, WIDE) == pytest.approx(math.expm1(3.0 * math.sqrt(2.0) * 0.02))
    assert learnt_margin(0.02, Better.HIGHER, WIDE) == pytest.approx(-math.expm1(-3.0 * math.sqrt(2.0) * 0.02))


@given(st.floats(1e-6, 1.0), st.sampled_from([Better.LOWER, Better.HIGHER]))
def test_a_margin_keeps_within_the_bounds_of_the_team(deviation: float, better: Better) -> None:
    bounds = Bounds(0.05, 0.15)
    assert bounds.low <= learnt_margin(deviation, better, bounds) <= bounds.high


@pytest.mark.parametrize(("margin", "runs"), [(0.06, 1), (0.085, 1), (0.06, 3)])
def test_unchanged_releases_pass_as_often_as_is_said(margin: float, runs: int) -> None:
    """A chance that is too good would have a team begin runs that decide nothing."""
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
def test_a_margin_inside_its_noise_passes_no_more_than_half_of_equal_releases(
    margin: float, deviation: float, freedom: float
) -> None:
    chance = chance_to_pass(margin, deviation, freedom, 1, LEVEL)
    assert is_inside_noise(margin, deviation, freedom, LEVEL) == (chance <= 0.5) or chance == pytest.approx(0.5)


def test_where_margins_come_from_is_told_apart() -> None:
    assert as_choice(["learnt", "rss_mib=20%"]) == Accepted({"rss_mib": 0.2}, Bounds())
    assert as_choice(["learnt:4%,12.5%"]) == Accepted({}, Bounds(0.04, 0.125))
    assert as_choice(["widened:15%", "rss_mib=20%"]) == Accepted({"rss_mib": 0.2}, None, 0.15)
    assert as_choice(["catalogue"]) == Accepted({}, None, None)
    assert as_choice({"rss_mib": 0.2}) == Accepted({"rss_mib": 0.2})
    assert as_choice(None) == as_choice(["widened"]) == Accepted({}, None, 0.20)


@pytest.mark.parametrize("text", ["widened:", "widened:0%", "widened:x"])
def test_a_widest_margin_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no widest margin"):
        as_choice([text])


def test_margins_come_from_one_place() -> None:
    with pytest.raises(UsageError, match="two answers"):
        as_choice(["learnt", "catalogue"])


@pytest.mark.parametrize("text", ["learnt:", "learnt:12%,4%", "learnt:0%,5%", "learnt:x"])
def test_bounds_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no bounds of margins"):
        as_choice([text])


@pytest.mark.parametrize(("better", "margin"), [(Better.HIGHER, -math.log(0.9)), (Better.LOWER, math.log(1.1))])
def test_the_chances_are_those_of_the_margin_towards_worse(better: Better, margin: float) -> None:
    """10 % less is further on the scale of logarithms than 10 % more, and what may not fall is worse when it falls."""
    runs, _ = sides()
    known = runs[0].catalogue
    catalogue = known.model_copy(
        update={"metrics": [metric.model_copy(update={"better": better}) for metric in known.metrics]}
    )
    bench = Bench(Archive((), runs[0].manifest, runs))
    row = next(one for one in margin_rows(catalogue, bench, WIDE) if one.metric_id == "cpu_cores")
    expected = chance_to_pass(margin, row.deviation, row.degrees_of_freedom, 1, bench.level(0))
    assert row.chances[1] == pytest.approx(expected, rel=1e-12)
