"""The level of a series of runs at its end, estimated from the last releases together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# A run this many standard deviations from its expectation begins a new level: the release changed the metric.
NEW_LEVEL = 3.0
# Between two releases a level moves at least by this share of a run's variance: no release equals the previous one.
LEAST_MOVE = 0.25


@dataclass(frozen=True)
class Level:
    """A level with the variance of its error, and the number of runs that contribute to it."""

    value: float
    variance: float
    runs: int


def level_of(values: Sequence[float], noise: float, step: float) -> Level:
    """Filter a series of runs.

    Args:
        values: on the working scale, the oldest first, at least one.
        noise: the variance of one run.
        step: the variance of one run by the steps between releases; its excess over the noise, doubled because a step
            has two ends, is the movement of the level between releases.

    Returns:
        The level after the last run. A run far off begins a new one.

    Source: the Kalman filter of a local level (Harvey, "Forecasting, structural time series models", 1989, ch. 2).
    """
    moves = max(2.0 * (step - noise), LEAST_MOVE * noise)
    level = Level(values[0], noise, 1)
    for value in values[1:]:
        expected = level.variance + moves
        total = expected + noise
        if abs(value - level.value) > NEW_LEVEL * math.sqrt(total):
            level = Level(value, noise, 1)
        else:
            gain = expected / total
            level = Level(level.value + gain * (value - level.value), (1.0 - gain) * expected, level.runs + 1)
    return level
