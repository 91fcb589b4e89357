"""The knee of a curve: where a careful reader would place it, independent of the units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kneed import KneeLocator  # type: ignore[import-untyped]  # it has no types

from chainmark.stats.knee import convex_knee, resampled_knee

Curve = list[tuple[float, float]]


@st.composite
def convex_curves(draw: st.DrawFn) -> Curve:
    """Curves that turn upwards, on uneven grids."""
    steps = draw(st.lists(st.integers(1, 50), min_size=4, max_size=14))
    x = np.cumsum([0, *steps]).astype(float)
    slopes = np.sort(draw(st.lists(st.integers(1, 10_000), min_size=len(steps), max_size=len(steps), unique=True)))
    y = np.concatenate([[0.0], np.cumsum(slopes * np.diff(x))])
    return list(zip(x.tolist(), y.tolist(), strict=True))


@given(convex_curves())
def test_the_knee_agrees_with_kneed(curve: Curve) -> None:
    """An independent implementation of the same paper. If two points are equally far, either one is a knee."""
    x, y = (np.array(values) for values in zip(*curve, strict=True))
    theirs = KneeLocator(x, y, S=1.0, curve="convex", direction="increasing").knee
    place = convex_knee(curve)
    if theirs is None or place is None:
        # With a fall of exactly one mean step, rounding decides whether there is a knee.
        difference = x / x[-1] - y / y[-1]
        assert float(difference.max()) <= 1.0 / (len(curve) - 1) + 1e-9
        return
    their_place = int(np.flatnonzero(x == theirs)[0])
    difference = x / x[-1] - y / y[-1]
    assert difference[place] == pytest.approx(difference[their_place], abs=1e-9)


def test_the_knee_of_a_queue_is_where_it_fills() -> None:
    """The throughput stays at 500 while the latency continues to rise: the knee is the last load before that."""
    curve = [(100.0, 1.0), (200.0, 1.0), (400.0, 1.1), (490.0, 1.4), (500.0, 5.0), (500.0, 9.0), (495.0, 12.0)]
    assert convex_knee(curve) == 3


def test_a_server_that_does_less_beyond_its_capacity_has_the_same_knee() -> None:
    curve = [(100.0, 1.0), (200.0, 1.0), (400.0, 1.2), (300.0, 6.0), (250.0, 12.0)]
    assert convex_knee(curve) == 2


@pytest.mark.parametrize(
    "curve",
    [
        [],
        [(1.0, 1.0), (2.0, 1.0), (3.0, 9.0)],
        [(float(x), 2.0 * x) for x in range(9)],
        [(float(x), 1.0) for x in range(9)],
        [(1.0, float(y)) for y in range(9)],
        [(float(x), float(np.sqrt(x))) for x in range(9)],
    ],
    ids=["empty", "three points", "a line", "no rise", "no throughput", "turns down"],
)
def test_a_curve_without_a_knee_has_none(curve: Curve) -> None:
    assert convex_knee(curve) is None


@given(convex_curves(), st.floats(0.01, 1000.0), st.floats(0.01, 1000.0), st.floats(-50.0, 50.0))
def test_the_knee_does_not_depend_on_units(curve: Curve, across: float, up: float, shift: float) -> None:
    place = convex_knee(curve)
    other = convex_knee([(x * across + shift, y * up + shift) for x, y in curve])
    if place is not None and other is not None and place != other:
        x, y = (np.array(values) for values in zip(*curve, strict=True))
        difference = x / x[-1] - y / y[-1]
        assert difference[place] == pytest.approx(difference[other], abs=1e-6)


@given(st.integers(0, 1000))
def test_the_interval_of_clear_repetitions_contains_the_knee(seed: int) -> None:
    """The noise is far smaller than the bend: all resamples bend at the same load. Equal seeds agree."""
    rng = np.random.default_rng(seed)
    loads = [200.0, 400.0, 800.0, 1600.0, 3200.0]
    curve = [(200.0, 1.0), (400.0, 1.0), (500.0, 6.0), (510.0, 9.0), (505.0, 12.0)]
    noisy = [[(x * f, y * f) for f in rng.normal(1.0, 0.01, 3)] for x, y in curve]
    knee = resampled_knee(loads, noisy, seed, resamples=40)
    assert knee is not None
    assert (knee.low, knee.high) == (400.0, 400.0)
    assert knee == resampled_knee(loads, noisy, seed, resamples=40)


def test_single_runs_have_no_interval() -> None:
    curve = [[(200.0, 1.0)], [(400.0, 1.0)] * 2, [(500.0, 4.0)] * 2, [(510.0, 8.0)] * 2]
    assert resampled_knee([1.0, 2.0, 3.0, 4.0], curve, 1) is None
