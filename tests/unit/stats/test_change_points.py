"""Change points: steps and drifts are found with their sizes, but not noise, outliers or changes of set-up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from chainmark.stats.centiles import FloatArray
from chainmark.stats.change_points import ChangePoint, change_points

SERIES, PERMUTATIONS = 300, 99


def _results(series: FloatArray, seed: int = 0) -> list[ChangePoint]:
    return change_points(series.tolist(), permutations=PERMUTATIONS, seed=seed)


def _alarms(all_series: list[FloatArray]) -> int:
    return sum(bool(_results(series, seed)) for seed, series in enumerate(all_series))


def _within(count: int, share: float) -> bool:
    """Whether ``count`` of ``SERIES`` is plausible for at most this share. Wrong in one of 10,000 tests."""
    return bool(scipy_stats.binom.sf(count - 1, SERIES, share) > 1e-4)


@pytest.mark.parametrize("length", [4, 9, 30])
@pytest.mark.parametrize("kind", ["normal", "heavy tails", "an outlier", "few values"])
def test_at_most_five_percent_of_unchanged_series_report_a_change(length: int, kind: str) -> None:
    random = np.random.default_rng(length)
    all_series = []
    for _ in range(SERIES):
        series = random.standard_t(2, length) if kind == "heavy tails" else random.normal(0.0, 1.0, length)
        if kind == "an outlier":
            series[random.integers(length)] += 20.0
        all_series.append(np.round(series) if kind == "few values" else series)
    assert _within(_alarms(all_series), 0.05)


@pytest.mark.parametrize(("first", "second"), [(12, 8), (20, 4), (4, 20)])
def test_a_step_is_found_with_its_size(first: int, second: int) -> None:
    random = np.random.default_rng(first)
    places, covered, gradual = [], [], 0
    for seed in range(SERIES):
        series = np.concatenate([random.normal(10.0, 0.1, first), random.normal(10.4, 0.1, second)])
        for point in _results(series, seed):
            places.append(point.index)
            gradual += point.is_gradual
            if point.index == first:
                assert point.low is not None
                assert point.high is not None
                covered.append(point.low <= 0.4 <= point.high)
    assert places.count(first) >= 0.9 * SERIES
    assert len(places) <= 1.12 * SERIES
    assert gradual <= 0.05 * SERIES
    assert np.mean(covered) == pytest.approx(0.9, abs=0.06)


def test_two_steps_are_found_separately() -> None:
    """The level rises and falls back, so the means of both halves of the series are the same."""
    series = np.tile([0.0, 0.1], 15) + np.repeat([1.0, 2.0, 1.0], 10)
    assert [(point.index, round(point.change, 9)) for point in _results(series)] == [(10, 1.0), (20, -1.0)]


def test_a_drift_too_small_to_see_between_neighbours_is_found() -> None:
    """Twenty-four releases, each of which is above the previous one by a fifth of the noise."""
    random = np.random.default_rng(5)
    points_per_series = [_results(0.2 * np.arange(24) + random.normal(0.0, 1.0, 24), seed) for seed in range(100)]
    assert sum(bool(points) for points in points_per_series) >= 95
    assert np.mean([points[0].is_gradual for points in points_per_series if points]) > 0.7
    assert all(points[0].change > 0.0 for points in points_per_series if points)


def test_an_outlier_near_a_step_hardly_changes_its_position_and_size() -> None:
    series = np.tile([0.0, 0.1], 12) + np.repeat([1.0, 2.0], 12)
    series[5] += 30.0
    (point,) = _results(series)
    assert (point.index, round(point.change, 2)) == (12, 1.0)


def test_a_change_of_set_up_is_not_reported_and_does_not_hide_a_change() -> None:
    """The step caused by the new machines is removed; the step of release 18 is still found."""
    series = np.tile([0.0, 0.1], 15) + np.repeat([10.0, 5.0], 15)
    assert [point.index for point in change_points(series, epochs=[15])] == []
    assert [point.index for point in change_points(series)] == [15]
    series[22:] += 0.5
    assert [point.index for point in change_points(series, epochs=[15])] == [22]


@given(
    series=st.lists(st.integers(-1000, 1000).map(float), max_size=14),
    scale=st.sampled_from([0.25, 1.0, 1024.0]),
    shift=st.sampled_from([-4096.0, 0.0, 64.0]),
)
def test_changes_do_not_depend_on_units_and_are_described(series: list[float], scale: float, shift: float) -> None:
    points = change_points(series, permutations=19)
    other = change_points([value * scale + shift for value in series], permutations=19)
    assert [(point.index, point.p_value) for point in points] == [(point.index, point.p_value) for point in other]
    for point, same in zip(points, other, strict=True):
        assert 2 <= point.index <= len(series) - 2
        assert 0.05 <= point.p_value <= 0.05
        assert same.change == pytest.approx(point.change * scale)
        assert point.low is not None
        assert point.high is not None
        assert point.low <= point.change <= point.high


def test_the_same_seed_gives_the_same_change_points() -> None:
    series = np.random.default_rng(3).normal(0.0, 1.0, 20).tolist()
    assert change_points(series, level=1.0, permutations=19) == change_points(series, level=1.0, permutations=19)
