"""Change points of a series: the values at which its level changes, with the size of each change.

Source: Matteson and James (2014), "A Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data",
sections 2 and 3 (E-divisive: hierarchical bisection by the energy distance, tested by permutations within segments).
Departures: values far outside the series are pulled in before, so that one outlier is not a change, and a segment has
at least two values, so that a single value is not one either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from chainmark.stats.bootstrap import generator
from chainmark.stats.centiles import FloatArray
from chainmark.stats.special import t_quantile

LEVEL, PERMUTATIONS, CONFIDENCE = 0.05, 1999, 0.90
ENOUGH = 40  # permuted series that are as good: the split is then certainly not significant, and no more are tried
LEAST_SEGMENT = 2
_FAR_DEVIATIONS = 4.0  # from the median, beyond which a value counts as an outlier
# Of normal values, the median distance from the median and between two values, in standard deviations.
_NORMAL_MAD, _NORMAL_PAIR = 0.674490, 0.953873
_HODGES_LEHMANN_EFFICIENCY = 3.0 / math.pi
_AT_FIRST = 199  # permutations before the first check whether they are enough
_CHUNK_ELEMENTS = 2_000_000  # of permuted distances at a time: bounds the memory to about 100 MB

Segment = tuple[int, int]


@dataclass(frozen=True)
class ChangePoint:
    """One change of level.

    Attributes:
        index: of the first value after it.
        change: the level after it minus the level before it, up to the neighbouring change points.
        low, high: the interval of the change; both None if no value has a neighbour in its segment to compare with.
        p_value: of the permutation test that found it.
        is_gradual: whether a straight line through the whole epoch fits better than its steps.
    """

    index: int
    change: float
    low: float | None
    high: float | None
    p_value: float
    is_gradual: bool


def change_points(
    values: Sequence[float],
    *,
    epochs: Sequence[int] = (),
    least_deviation: float = 0.0,
    level: float = LEVEL,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> list[ChangePoint]:
    """Find the changes of the level of a series.

    Args:
        values: n finite values in order, equally reliable.
        epochs: indices of the first values under another set-up; a change there is the set-up's and not reported.
        least_deviation: minimum deviation of the values, for instance due to rounding; a lower bound for intervals.
        level: the probability that a series without any change gets one.
        permutations: of each test; the least p-value is 1 / (permutations + 1).
        seed: of the permutations.

    Returns:
        Empty if no epoch has four values or more.
    """
    series = np.asarray(values, dtype=np.float64)
    bounds = [0, *sorted({index for index in epochs if 0 < index < len(series)}), len(series)]
    whole = [pair for pair in pairwise(bounds) if pair[0] < pair[1]]
    tamed = _without_outliers(series, whole)
    segments, result = list(whole), dict[int, float]()
    while (best := _best_split(_distances(tamed), segments)) is not None:
        p_value = _p_value(tamed, segments, best[0], permutations, generator(seed, "change points", str(len(result))))
        if p_value > level:
            break
        result[best[1]] = p_value
        segments = sorted(
            [*(segment for segment in segments if not segment[0] < best[1] < segment[1]), *_split(segments, best[1])]
        )
    described = _Described(series, whole, segments, least_deviation)
    return [described.point(index, p_value) for index, p_value in sorted(result.items())]


def _split(segments: Sequence[Segment], index: int) -> list[Segment]:
    first, last = next(segment for segment in segments if segment[0] < index < segment[1])
    return [(first, index), (index, last)]


def _without_outliers(series: FloatArray, epochs: Sequence[Segment]) -> FloatArray:
    """Each epoch relative to its own median, with outliers pulled in; a permutation does not change this."""
    tamed = series.copy()
    for first, last in epochs:
        part = series[first:last] - np.median(series[first:last])
        far = _FAR_DEVIATIONS * float(np.median(np.abs(part))) / _NORMAL_MAD
        tamed[first:last] = np.clip(part, -far, far) if far > 0.0 else part
    return tamed


def _distances(series: FloatArray) -> FloatArray:
    distances: FloatArray = np.abs(series[..., :, None] - series[..., None, :])
    return distances


def _best_split(distances: FloatArray, segments: Sequence[Segment]) -> tuple[float, int] | None:
    """The largest statistic over all segments and its index; None if no segment can be split."""
    best = None
    for first, last in segments:
        if last - first < 2 * LEAST_SEGMENT:
            continue
        statistics = _statistics(distances[None, first:last, first:last])[0]
        place = int(np.argmax(statistics))
        result = float(statistics[place])
        if result > 0.0 and (best is None or result > best[0]):
            best = result, first + LEAST_SEGMENT + place
    return best


def _statistics(distances: FloatArray) -> FloatArray:
    """The scaled energy distance of splits of one segment.

    Args:
        distances: (permutations, n, n), between all values of a segment.

    Returns:
        (permutations, n - 3): by the position of the split, from 2 to n - 2, the maximum over the end of the right
        part.

    Source: Matteson and James (2014), formulas 5 to 7, with an exponent of 1.
    """
    count = distances.shape[1]
    sums = np.zeros((len(distances), count + 1, count + 1))
    sums[:, 1:, 1:] = distances.cumsum(axis=1).cumsum(axis=2)
    diagonal = np.diagonal(sums, axis1=1, axis2=2)
    columns = []
    for place in range(LEAST_SEGMENT, count - LEAST_SEGMENT + 1):
        ends = np.arange(place + LEAST_SEGMENT, count + 1)
        left, right = float(place), (ends - place).astype(np.float64)
        within_left = diagonal[:, [place]]
        between = sums[:, place, ends] - within_left
        within_right = diagonal[:, ends] - 2.0 * sums[:, place, ends] + within_left
        energy = (
            2.0 * between / (left * right)
            - within_left / (left * (left - 1.0))
            - within_right / (right * (right - 1.0))
        )
        columns.append((energy * left * right / (left + right)).max(axis=1))
    return np.stack(columns, axis=1)


def _p_value(
    series: FloatArray, segments: Sequence[Segment], result: float, permutations: int, random: np.random.Generator
) -> float:
    """The probability that values in another order within their segments have a split that is as good.

    Source of the early end: Besag and Clifford (1991), "Sequential Monte Carlo p-values".
    """
    larger, tried = 0, 0
    for permuted in _permuted(series, segments, permutations, random):
        best = np.full(len(permuted), -np.inf)
        for first, last in segments:
            if last - first >= 2 * LEAST_SEGMENT:
                best = np.maximum(best, _statistics(_distances(permuted[:, first:last])).max(axis=1))
        larger, tried = larger + int(np.count_nonzero(best >= result * (1.0 - 1e-9))), tried + len(permuted)
        if larger >= ENOUGH:
            break
    return (1 + larger) / (1 + tried)


def _permuted(
    series: FloatArray, segments: Sequence[Segment], permutations: int, random: np.random.Generator
) -> Iterator[FloatArray]:
    """Series with the values of each segment in another order, in batches."""
    at_once = max(1, min(_AT_FIRST, _CHUNK_ELEMENTS // len(series) ** 2))
    done = 0
    while done < permutations:
        rows = np.tile(series, (min(at_once, permutations - done), 1))
        done, at_once = done + len(rows), max(1, _CHUNK_ELEMENTS // len(series) ** 2)
        for first, last in segments:
            rows[:, first:last] = random.permuted(rows[:, first:last], axis=1)
        yield rows


@dataclass(frozen=True)
class _Described:
    """A series whose changes are known.

    Attributes:
        epochs, segments: of the values; the segments divide the epochs.
        least_deviation: the lower bound of the deviation.
    """

    series: FloatArray
    epochs: Sequence[Segment]
    segments: Sequence[Segment]
    least_deviation: float

    def point(self, index: int, p_value: float) -> ChangePoint:
        """The Hodges-Lehmann shift between the segments at a change point, with an interval by Student's t.

        Source: Hodges and Lehmann (1963); its variance is that of the means times pi / 3. The deviation within segments
        is estimated from all of them by the median distance of two values.
        """
        before = next(self.series[first:last] for first, last in self.segments if last == index)
        after = next(self.series[first:last] for first, last in self.segments if first == index)
        epoch = next(item for item in self.epochs if item[0] < index < item[1])
        shift = float(np.median(after[:, None] - before[None, :]))
        half = self._half_width(1.0 / len(before) + 1.0 / len(after))
        return ChangePoint(
            index=index,
            change=shift,
            low=None if half is None else shift - half,
            high=None if half is None else shift + half,
            p_value=p_value,
            is_gradual=_is_gradual(
                self.series, [segment for segment in self.segments if epoch[0] <= segment[0] < epoch[1]]
            ),
        )

    def _half_width(self, variances: float) -> float | None:
        deviation, freedom = _deviation(self.series, self.segments)
        if freedom == 0:
            return None
        error = max(deviation, self.least_deviation) * math.sqrt(variances / _HODGES_LEHMANN_EFFICIENCY)
        return t_quantile(0.5 + CONFIDENCE / 2.0, freedom) * error


def _deviation(series: FloatArray, segments: Sequence[Segment]) -> tuple[float, int]:
    """The deviation of values about the levels of their segments, and its degrees of freedom."""
    pairs = [
        np.abs(series[first:last, None] - series[None, first:last])[np.triu_indices(last - first, 1)]
        for first, last in segments
    ]
    distances = np.concatenate(pairs)
    if not len(distances):
        return 0.0, 0
    return float(np.median(distances)) / _NORMAL_PAIR, len(series) - len(segments)


def _is_gradual(series: FloatArray, segments: Sequence[Segment]) -> bool:
    """Whether a straight line describes an epoch better than the steps between its segments.

    Source: the criterion of Schwarz (1978); a step has two parameters, a position and a level.
    """
    part = series[segments[0][0] : segments[-1][1]]
    places = np.arange(len(part), dtype=np.float64)
    centred, deviations = places - places.mean(), part - part.mean()
    slope = float((centred * deviations).sum() / (centred * centred).sum())
    line = float(((deviations - slope * centred) ** 2).sum())
    steps = math.fsum(float(((series[a:b] - series[a:b].mean()) ** 2).sum()) for a, b in segments)
    return _criterion(line, len(part), 2) < _criterion(steps, len(part), 2 * len(segments) - 1)


def _criterion(squares: float, count: int, parameters: int) -> float:
    return parameters * math.log(count) + (count * math.log(squares / count) if squares > 0.0 else -math.inf)
