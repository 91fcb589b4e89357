"""The knee of a curve: the point beyond which the cost outweighs the gain.

Source: Satopää, Albrecht, Irwin and Raghavan (2011), "Finding a 'Kneedle' in a Haystack: Detecting Knee Points in
System Behavior", section III, without its smoothing: a curve of a load test has few points, and each is a mean already.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chainmark.stats.bootstrap import RESAMPLES, generator
from chainmark.stats.intervals import CONFIDENCE

SENSITIVITY = 1.0  # the paper's own choice for complete curves
LEAST_POINTS = 4  # two ends, a knee, and one more
DETECTOR = "Kneedle, sensitivity 1"

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class KneeRange:
    """The knee in resamples of the repetitions.

    Attributes:
        low, high: the 90 % interval, as positions on the axis of the levels.
        with_knee: number of resamples with a knee.
        resamples: number of resamples.
    """

    low: float
    high: float
    with_knee: int
    resamples: int


def convex_knee(points: Points, sensitivity: float = SENSITIVITY) -> int | None:
    """The point of a curve that turns upwards after which y rises faster than x.

    Args:
        points: pairs (x, y) in the order of the raised quantity. Neither needs to rise all the time: beyond its
            capacity a server may do less. They are finite.
        sensitivity: the number of mean steps of x by which the difference must fall again before a maximum counts.

    Returns:
        The index of the knee among the points; None if there are fewer than 4 points, if x or y does not change at all,
        or if the curve has no knee. Of several the most pronounced one, of equals the first.
    """
    if len(points) < LEAST_POINTS:
        return None
    x = np.array([point[0] for point in points], dtype=np.float64)
    y = np.array([point[1] for point in points], dtype=np.float64)
    spans = (float(np.ptp(x)), float(np.ptp(y)))
    if min(spans) <= 0.0 or not all(map(math.isfinite, spans)):
        return None
    x, y = (x - x.min()) / spans[0], (y - y.min()) / spans[1]
    # A concave curve's knee is where y is furthest above x; inverted, a convex one's is where x is furthest above y.
    difference = x - y
    fall = sensitivity * float(np.abs(np.diff(x)).mean())
    return _confirmed(difference, fall)


def _confirmed(difference: np.ndarray, fall: float) -> int | None:
    """The highest local maximum from which the difference falls by this much before it rises above it again."""
    best: int | None = None
    for place in range(1, len(difference) - 1):
        top = difference[place]
        if top < difference[place - 1] or top < difference[place + 1]:
            continue
        if best is not None and top <= difference[best]:
            continue
        for later in difference[place + 1 :]:
            if later > top:
                break
            if later < top - fall:
                best = place
                break
    return best


def resampled_knee(
    levels: Sequence[float], repetitions: Sequence[Points], seed: int, resamples: int = RESAMPLES
) -> KneeRange | None:
    """The interval of the knee from the spread between repetitions.

    Args:
        levels: the raised quantity, ascending.
        repetitions: for each level the pair (x, y) of every repetition, at least one.
        seed: decides every resample.
        resamples: number of times that the repetitions of every level are redrawn, with replacement.

    Returns:
        None if some level has a single repetition, or if fewer than half of the resamples have a knee.
    """
    if any(len(repetition) < 2 for repetition in repetitions) or len(levels) < LEAST_POINTS:
        return None
    rng = generator(seed, "knee")
    arrays = [np.array(repetition, dtype=np.float64) for repetition in repetitions]
    means = [array[rng.integers(len(array), size=(resamples, len(array)))].mean(axis=1) for array in arrays]
    drawn = np.stack(means, axis=1)  # shape (resamples, levels, 2)
    places = [convex_knee([(x, y) for x, y in curve]) for curve in drawn.tolist()]
    result = sorted(levels[place] for place in places if place is not None)
    if 2 * len(result) < resamples:
        return None
    tail = (1.0 - CONFIDENCE) / 2.0
    low = result[math.floor(tail * (len(result) - 1))]
    high = result[math.ceil((1.0 - tail) * (len(result) - 1))]
    return KneeRange(low, high, len(result), resamples)
