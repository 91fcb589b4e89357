"""Curves and dots over time, compared with values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from chainmark.stats import tracks
from chainmark.stats.replicates import instants_of
from chainmark.stats.tracks import Track, dots_of, track_of

NAN = math.nan


def track(values: list[float], times: list[float], *, averaged: bool) -> Track | None:
    return track_of(np.array(values), np.array(times), instants_of(np.array(times)), averaged=averaged)


def lists(of: Track) -> list[list[float]]:
    """Time, value, low and high."""
    return [array.tolist() for array in (of.time, of.value, of.low, of.high)]


@pytest.mark.parametrize(
    ("times", "values", "averaged", "expected"),
    [
        ([0.0, 0.0, 1.0, 2.5, 2.5, 2.5], [1, 3, 7, 5, 9, 4], True, [[0, 1, 2.5], [2, 7, 6], [1, 7, 4], [3, 7, 9]]),
        ([0.0, 0.0, 1.0, 2.5, 2.5, 2.5], [1, 3, NAN, 5, 9, 4], True, [[0, 2.5], [2, 6], [1, 4], [3, 9]]),
        ([0.0, NAN, 0.1, 0.1, 0.1, 2.0], [4, 9, 1, 3, 5, NAN], True, [[0, 0.1], [4, 3], [4, 1], [4, 5]]),
        ([0.0, 0.0, 1.0, 2.0], [4, 2, NAN, 6], False, [[0, 0, 2], [4, 2, 6], [4, 2, 6], [4, 2, 6]]),
        ([3.0], [7], True, [[3], [7], [7], [7]]),
        ([3.0], [7], False, [[3], [7], [7], [7]]),
    ],
    ids=["instants", "one without value", "one without time", "single samples", "one instant", "one sample"],
)
def test_a_curve_has_the_mean_and_range_of_each_time(
    times: list[float], values: list[float], expected: list[list[float]], *, averaged: bool
) -> None:
    """Of the samples that have both a value and a time. The time itself is not averaged, which would round it."""
    curve = track(values, times, averaged=averaged)
    assert curve is not None
    assert (lists(curve), curve.step) == (expected, 1)


@pytest.mark.parametrize("times", [[0.0, 0.0, 1.0], [0.0, 0.0, NAN]])
@pytest.mark.parametrize("averaged", [True, False])
def test_there_is_no_curve_without_samples(times: list[float], *, averaged: bool) -> None:
    assert track([NAN, NAN, NAN], times, averaged=averaged) is None


@pytest.mark.parametrize(
    ("times", "averaged", "step", "expected"),
    [
        ([0, 1, 2], False, 1, [[0, 1, 2], [1, 2, 6], [1, 2, 6], [1, 2, 6]]),
        ([0, 1, 2, 3, 4], False, 2, [[0.5, 2.5, 4], [1.5, 5, 5], [1, 4, 5], [2, 6, 5]]),
        ([0, 1, 2, 3, 4, 5, 6], False, 3, [[1, 4, 6], [3, 3, 8], [1, 0, 8], [6, 5, 8]]),
        ([0, 0, 1, 1, 2, 2, 3], True, 2, [[0.5, 2.5], [3.25, 5.25], [1, 0], [6, 8]]),
    ],
)
def test_neighbours_on_a_long_curve_become_one_point(
    times: list[float], step: int, expected: list[list[float]], *, averaged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most three points: with the mean of their values, and a range that no value is outside of."""
    monkeypatch.setattr(tracks, "_SERIES_POINTS", 3)
    values = [1.0, 2.0, 6.0, 4.0, 5.0, 0.0, 8.0][: len(times)]
    curve = track(values, times, averaged=averaged)
    assert curve is not None
    assert (lists(curve), curve.step) == (expected, step)


@pytest.mark.parametrize(
    ("values", "kept", "step"),
    [
        ([5, 4, 6, 5, 7, NAN, 5], [0, 1, 2, 3, 4, 6], 1),
        ([5, 4, 6, 1, 7, 9, 5, 3], [0, 2, 3, 4, 5, 6], 2),
        ([5, 4, 6, 1, 7, NAN, 9, 5, 3], [0, 2, 3, 4, 6, 7], 2),
    ],
    ids=["few", "many", "one without value"],
)
def test_dots_always_show_the_extremes(
    values: list[float], kept: list[int], step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most six: every second one, and the lowest and the highest, which a reader looks for."""
    monkeypatch.setattr(tracks, "_SCATTER_POINTS", 6)
    times = np.arange(float(len(values))) / 4.0
    dots = dots_of(np.array(values), times)
    assert (dots.time.tolist(), dots.step) == (times[kept].tolist(), step)
    assert dots.value.tolist() == [values[place] for place in kept]
