"""Decisions at several interim analyses of an experiment, with the total error over all of them at one level.

The runs of both sides and the archive's deviations between equal builds form one table: a row per run, a column per
metric. If no change exceeds its margin, the rows around their mean are independent draws from one normal distribution,
and any rotation of the table is as likely as the table itself, whatever the covariance of the metrics. So rotations
give the joint distribution of all statistics at all looks, and no correlation has to be assumed.

Sources: Langsrud (2005), "Rotation tests"; Lan and DeMets (1983), "Discrete sequential boundaries for clinical
trials", for spending the error over looks that are not fixed in advance; Westfall and Young (1993), "Resampling-based
multiple testing", for the step-down; Romano, Shaikh and Wolf (2014), "A practical two-step method for testing moment
inequalities", for omitting what certainly is not worse; Jennison and Turnbull (2000), "Group sequential methods", for
intervals that hold at every look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from chainmark.stats.centiles import FloatArray, IntArray
from chainmark.stats.intervals import LEVEL
from chainmark.stats.special import t_quantile

# The share of the error that is kept for looks after the last planned one: half of it for the first such look,
# a quarter for the second, and so on, so that runs may be added indefinitely.
RESERVED_FOR_ADDED = 0.04
# The share of the error for "worse" that looks before the last planned one may spend.
EARLY_WORSE = 0.85
# The share of the error for "worse" for omitting metrics that certainly are not: they would only hide the others.
LEFT_OUT = 0.02
FIRST_LOOK = 2  # runs per side
DRAWS = 4_000
_LONE_DRAWS, _FORECAST_DRAWS = 100_000, 10_000
_NEW_DRAWS = 1_000
_SEED = 20_261_122
_MANY_ROWS = 64
_LARGEST_T = 1e3
_TOGETHER = 3  # metrics that are also tested as one


@dataclass(frozen=True)
class Looks:
    """When an experiment was looked at.

    Attributes:
        runs: of the baseline and the candidate at every look so far, growing; the last one is now.
        planned: runs per side at the last planned look.
        archive: degrees of freedom of the archive's noise.
    """

    runs: tuple[tuple[int, int], ...]
    planned: int
    archive: int = 0

    @property
    def degrees_of_freedom(self) -> FloatArray:
        """Of the pooled variance, shape (looks,)."""
        return np.array([first + second - 2.0 + self.archive for first, second in self.runs])


def spent(looks: Looks, *, worse: bool) -> list[float]:
    """The error that may have been spent up to each look, growing towards `LEVEL`.

    Args:
        looks: all so far.
        worse: for the test of "worse", which reserves a part for the last planned look; false: for that of "equal".
    """
    result, added = [], 0
    for runs in (min(pair) for pair in looks.runs):
        if runs > looks.planned:
            added += 1
            share = 1.0 - RESERVED_FOR_ADDED * 0.5**added
        else:
            share = (1.0 - RESERVED_FOR_ADDED) * _planned_share(runs, looks.planned, worse=worse)
        result.append(LEVEL * share)
    return result


def _planned_share(runs: int, planned: int, *, worse: bool) -> float:
    if runs == planned:
        return 1.0
    part = max(0.0, runs - 1.0) / max(1.0, planned - 1.0)
    return (EARLY_WORSE if worse else 1.0) * math.sqrt(part)


def _contrasts(looks: Looks) -> tuple[FloatArray, list[int]]:
    """The order of the runs is that of `_stacked`: look by look, baseline first.

    Returns:
        Per look the unit vector of "candidate minus baseline" over the rows that `_around_mean` gives, shape (looks,
        runs - 1), and how many of these rows the look has seen.
    """
    total = sum(looks.runs[-1])
    vectors, seen = [], []
    for place, (first, second) in enumerate(looks.runs):
        signs = _signs(looks.runs[: place + 1])
        weights = np.zeros(total)
        weights[: len(signs)] = np.where(signs > 0, 1.0 / second, -1.0 / first)
        vectors.append(_around_mean(weights[:, None])[:, 0] / math.sqrt(1.0 / first + 1.0 / second))
        seen.append(first + second - 1)
    return np.array(vectors), seen


def _signs(runs: Sequence[tuple[int, int]]) -> FloatArray:
    """Per run in look order -1 for the baseline, +1 for the candidate."""
    parts, before = [], (0, 0)
    for first, second in runs:
        parts += [np.full(first - before[0], -1.0), np.full(second - before[1], 1.0)]
        before = (first, second)
    return np.concatenate(parts)


def _around_mean(rows: FloatArray) -> FloatArray:
    """Rows without their common mean, as one row less of equal variance; the first n - 1 depend on the first n only.

    Args:
        rows: shape (..., n, metrics).

    Source: Helmert (1876).
    """
    counts = np.arange(1, rows.shape[-2])[:, None]
    means = np.cumsum(rows, axis=-2)[..., :-1, :] / counts
    return np.asarray((rows[..., 1:, :] - means) * np.sqrt(counts / (counts + 1.0)))


def _stacked(baseline: FloatArray, candidate: FloatArray, runs: Sequence[tuple[int, int]]) -> FloatArray:
    parts, before = [], (0, 0)
    for first, second in runs:
        parts += [baseline[..., before[0] : first, :], candidate[..., before[1] : second, :]]
        before = (first, second)
    return np.concatenate(parts, axis=-2)


def deviations(groups: Sequence[FloatArray]) -> FloatArray:
    """The archive's rows: of every group of equal builds its runs around their mean.

    Args:
        groups: each of shape (runs, metrics).

    Returns:
        Shape (degrees of freedom, metrics).
    """
    return np.concatenate([_around_mean(group) for group in groups]) if groups else np.empty((0, 0))


def _t_values(
    table: FloatArray, archive: int, contrasts: FloatArray, seen: Sequence[int], freedom: FloatArray
) -> FloatArray:
    """Student's t of every look and metric.

    Args:
        table: shape (draws, archive's rows + runs - 1, metrics).
        archive: number of the archive's rows.
        contrasts, seen: from `_contrasts`.
        freedom: shape (looks,).

    Returns:
        Shape (draws, looks, metrics).
    """
    return _t_of_rows(table[:, archive:], _squares(table[:, :archive]), contrasts, seen, freedom)


def _squares(rows: FloatArray) -> FloatArray:
    """Sums of squares over the rows, shape (draws, metrics)."""
    return np.asarray(np.einsum("drm,drm->dm", rows, rows))


def _t_of_rows(
    rows: FloatArray, archive: FloatArray, contrasts: FloatArray, seen: Sequence[int], freedom: FloatArray
) -> FloatArray:
    """The same from the runs' rows and the sums of squares of the archive's, which are sufficient."""
    squares = archive[:, None] + np.cumsum(np.square(rows), axis=1)[:, [count - 1 for count in seen]]
    change = np.einsum("kr,drm->dkm", contrasts, rows)
    rest = np.maximum(squares - np.square(change), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = change * np.sqrt(freedom)[None, :, None] / np.sqrt(rest)
    return np.asarray(np.clip(np.nan_to_num(t), -_LARGEST_T, _LARGEST_T))


def _rotated(table: FloatArray, draws: int) -> FloatArray:
    """The table under this number of random rotations, shape (draws, *table.shape)."""
    _, values, axes = np.linalg.svd(table, full_matrices=False)
    return np.asarray(_frames(draws, len(table), len(values)) @ (values[:, None] * axes))


@lru_cache(maxsize=2)
def _frames(draws: int, rows: int, columns: int) -> FloatArray:
    """Random orthonormal columns, shape (draws, rows, columns): the same ones whenever they are requested."""
    generator = np.random.default_rng(_SEED)
    frames, triangle = np.linalg.qr(generator.standard_normal((draws, rows, columns)))
    signed = np.asarray(frames * np.sign(np.diagonal(triangle, axis1=1, axis2=2))[:, None, :])
    signed.setflags(write=False)
    return signed


def _thresholds(p_values: FloatArray, errors: Sequence[float]) -> FloatArray:
    """Per look the p-value at or below which to stop, such that by every look the share ``errors`` of the draws stops.

    Args:
        p_values: shape (draws, looks), of one statistic under the null hypothesis.
        errors: cumulative.
    """
    running = np.ones(len(p_values), dtype=bool)
    result = []
    for look, error in enumerate(errors):
        may_stop = math.floor(error * len(p_values)) - int((~running).sum())
        candidates = np.sort(p_values[running, look])
        level = float(candidates[may_stop - 1]) if may_stop > 0 else 0.0
        result.append(level)
        running &= p_values[:, look] > level
    return np.array(result)


def _ranked(null: FloatArray, values: FloatArray) -> FloatArray:
    """The share of ``null`` that is at least as large as each value found, including itself."""
    below = np.searchsorted(np.sort(null), values)
    return np.asarray((len(null) - below + 1.0) / (len(null) + 1.0))


@lru_cache(maxsize=256)
def lone_levels(looks: Looks, draws: int = _LONE_DRAWS) -> tuple[float, ...]:
    """Per look the one-sided level of an interval, such that all looks together err at most with `LEVEL`.

    They depend on the looks alone: Student's t of one metric has the same distribution whatever its noise. They come
    from a simulation with a fixed seed; the error of all looks is `LEVEL` within about 0.001.
    """
    errors = spent(looks, worse=False)
    if len(errors) == 1:
        return (errors[0],)
    unit = np.ones((1, 1))
    noise = _Noise(unit, unit[:0], np.random.default_rng(_SEED), unit)
    squares, rows = noise.beside_archive(draws, looks.archive, sum(looks.runs[-1]) - 1)
    t = _t_of_rows(rows, squares, *_contrasts(looks), looks.degrees_of_freedom)[:, :, 0]
    p_values = np.stack([_ranked(t[:, look], t[:, look]) for look in range(t.shape[1])], axis=1)
    return tuple(float(level) for level in _thresholds(p_values, errors))


@dataclass(frozen=True)
class FamilyTest:
    """Whether any metric of a family is worse than its margin, and which ones.

    Attributes:
        p_value: of "none is worse", at this look.
        level: what it is compared with at this look.
        adjusted: per metric, the p-value that accounts for the others (step-down); compare it with ``level``, too.
        together: the metrics (indices) that contribute most, jointly: if the family is worse and no single metric is.
    """

    p_value: float
    level: float
    adjusted: tuple[float, ...]
    together: tuple[int, ...]

    @property
    def is_worse(self) -> bool:
        """Whether some metric is worse than its margin."""
        return self.p_value <= self.level


def family_test(
    baseline: FloatArray,
    candidate: FloatArray,
    archive: FloatArray,
    looks: Looks,
    *,
    limits: FloatArray | None = None,
    draws: int = DRAWS,
) -> FamilyTest:
    """Test all gating metrics as one family.

    Two statistics are tested as one: the largest t, and the mean of the three largest, which finds a release that is
    worse in several ways earlier.

    Args:
        baseline: shape (runs, metrics), in the order in which they were made, on a scale on which worse is up.
        candidate: likewise, minus the margin: what is above the baseline is worse than accepted.
        archive: shape (degrees of freedom, metrics), from `deviations`.
        looks: this one and all earlier ones.
        limits: per metric, the maximum that another test allows for its t; it can only make a failure harder.
        draws: rotations.
    """
    table = np.concatenate(
        [archive.reshape(-1, baseline.shape[1]), _around_mean(_stacked(baseline, candidate, looks.runs))]
    )
    scale = np.sqrt(np.square(table).sum(axis=0))
    table = table / np.where(scale > 0.0, scale, 1.0)
    contrasts, seen = _contrasts(looks)
    freedom = looks.degrees_of_freedom
    result = _t_values(table[None], looks.archive, contrasts, seen, freedom)
    retained = _in_question(result[0, -1], looks, limits)
    null = _t_values(_rotated(table[:, retained], draws), looks.archive, contrasts, seen, freedom)
    result = result[:, :, retained]
    if limits is not None:
        result[0, -1] = np.minimum(result[0, -1], limits[retained])
    null_p, observed_p = _combined(null, result)
    now = result[0, -1]
    order = np.argsort(-now, kind="stable")
    adjusted = dict(zip(retained.tolist(), _step_down(null[:, -1], now, order), strict=True))
    return FamilyTest(
        p_value=float(observed_p[0, -1]),
        level=float(_thresholds(null_p, _spent_on_worse(looks))[-1]),
        adjusted=tuple(adjusted.get(index, 1.0) for index in range(baseline.shape[1])),
        together=tuple(int(index) for index in retained[order[:_TOGETHER]]),
    )


def _spent_on_worse(looks: Looks) -> list[float]:
    """The remaining error of the family after `LEFT_OUT`."""
    return [(1.0 - LEFT_OUT) * error for error in spent(looks, worse=True)]


def _in_question(t: FloatArray, looks: Looks, limits: FloatArray | None = None) -> IntArray:
    """The metrics (indices) that may be worse at this look, at least one.

    Omitted are metrics so far below their margin that, if all metrics were exactly at their margins, the share
    `LEFT_OUT` of the error would be omitted over all looks. The others need not be compared with them.

    Args:
        t: of every metric at this look.
        looks: this one and all earlier ones.
        limits: as for `family_test`: another test of a metric has to agree.
    """
    before, now = [0.0, *spent(looks, worse=True)][-2:]
    level = LEFT_OUT * (now - before) / len(t)
    highest = t if limits is None else np.maximum(t, limits)
    may_be = highest > t_quantile(level, float(looks.degrees_of_freedom[-1]))
    may_be[np.argmax(t)] = True
    return np.asarray(np.flatnonzero(may_be))


def _combined(null: FloatArray, observed: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The p-value of the better of both statistics, at every look.

    Args:
        null: t values under the null hypothesis, shape (draws, looks, metrics).
        observed: t values, shape (cases, looks, metrics).

    Returns:
        Shapes (draws, looks) and (cases, looks).
    """
    sizes = [1, _TOGETHER] if null.shape[2] > _TOGETHER else [1]
    null_sums, observed_sums = (
        [-np.sort(-values)[:, :, :size].sum(axis=2) for size in sizes] for values in (null, observed)
    )
    results = np.empty(null.shape[:2]), np.empty(observed.shape[:2])
    for look in range(null.shape[1]):
        smallest = [
            np.min([_ranked(total[:, look], of[:, look]) for total, of in zip(null_sums, sums, strict=True)], axis=0)
            for sums in (null_sums, observed_sums)
        ]
        for result, value in zip(results, smallest, strict=True):
            result[:, look] = _ranked(-smallest[0], -value)
    return results


def _step_down(null: FloatArray, values: FloatArray, order: IntArray) -> tuple[float, ...]:
    adjusted, highest = np.ones(len(values)), 0.0
    for place, index in enumerate(order):
        largest = null[:, order[place:]].max(axis=1)
        highest = max(highest, float(_ranked(largest, values[[index]])[0]))
        adjusted[index] = highest
    return tuple(float(p) for p in adjusted)


@dataclass(frozen=True)
class Forecast:
    """The probability that further runs decide, with the change and noise of the runs so far.

    Attributes:
        decided: by runs per side, the probability that the decision has been made by then.
    """

    decided: dict[int, float]

    def enough(self, chance: float) -> int | None:
        """The smallest number of runs per side that decides with this probability; None if none of the tried does."""
        return next((runs for runs, result in self.decided.items() if result >= chance), None)


def forecast(
    baseline: FloatArray,
    candidate: FloatArray,
    archive: FloatArray,
    looks: Looks,
    further: Sequence[int],
    *,
    draws: int = 1_000,
) -> Forecast:
    """Simulate the continuation of an undecided experiment, with other values of the unknowns each time.

    The sides' means are drawn around those found, with their errors, and the noise of future runs from all rows.

    Args:
        baseline, candidate, archive, looks: as for `family_test`, with at least one degree of freedom.
        further: runs per side at every future look, ascending.
        draws: continuations.
    """
    future = Looks((*looks.runs, *((runs, runs) for runs in further)), looks.planned, looks.archive)
    noise = _Noise.of(baseline, candidate, archive)
    sides = [noise.continued(side, further[-1], draws) for side in (baseline, candidate)]
    rows = np.concatenate([noise.archive, _around_mean(_stacked(baseline, candidate, looks.runs))])
    now = _t_values(rows[None], looks.archive, *_contrasts(looks), looks.degrees_of_freedom)[0, -1]
    is_decided = _decided(sides, noise.archive, noise, future, _in_question(now, looks))[:, len(looks.runs) :]
    share = np.logical_or.accumulate(is_decided, axis=1).mean(axis=0)
    return Forecast({runs: float(chance) for runs, chance in zip(further, share, strict=True)})


def chance_for_equal(
    baseline: FloatArray, candidate: FloatArray, archive: FloatArray, margins: FloatArray, runs: int
) -> float:
    """The probability that a new experiment of this size decides, if both sides are equal and as noisy as these runs.

    It has one look, and its archive includes these runs.

    Args:
        baseline, candidate, archive: as for `family_test`.
        margins: per metric, what was subtracted from the candidate's rows.
        runs: per side, at least 2.
    """
    noise = _Noise.of(baseline, candidate, archive)
    future = Looks(((runs, runs),), runs, len(noise.rows))
    sides = [noise.drawn(_NEW_DRAWS, runs), noise.drawn(_NEW_DRAWS, runs) - margins]
    return float(_decided(sides, noise.rows, noise, future).mean())


def _decided(
    sides: Sequence[FloatArray], archive: FloatArray, noise: _Noise, future: Looks, metrics: IntArray | None = None
) -> FloatArray:
    """Per experiment and look whether it is decided.

    Args:
        sides: of shape (draws, runs, metrics).
        archive, noise: as in `forecast`.
        future: all looks.
        metrics: those that may be worse; None for all.
    """
    draws = len(sides[0])
    rows = _around_mean(_stacked(sides[0], sides[1], future.runs))
    contrasts, seen = _contrasts(future)
    freedom = future.degrees_of_freedom
    t = _t_of_rows(rows, _squares(archive[None]), contrasts, seen, freedom)
    squares, unchanged = noise.beside_archive(draws, future.archive, rows.shape[1])
    null = _t_of_rows(unchanged, squares, contrasts, seen, freedom)
    drawn_p, observed_p = _combined(null, t) if metrics is None else _combined(null[:, :, metrics], t[:, :, metrics])
    is_worse = observed_p <= _thresholds(drawn_p, _spent_on_worse(future))
    levels = lone_levels(future, _FORECAST_DRAWS)
    bounds = [-t_quantile(1.0 - level, nu) for level, nu in zip(levels, freedom, strict=True)]
    return np.asarray(is_worse | (t.max(axis=2) < np.array(bounds)))


@dataclass(frozen=True)
class _Noise:
    """The source of simulated runs: the deviations of all rows, of shape (degrees of freedom, metrics)."""

    rows: FloatArray
    archive: FloatArray
    generator: np.random.Generator
    factor: FloatArray  # of the same covariance, as the mean of its squares

    @classmethod
    def of(cls, baseline: FloatArray, candidate: FloatArray, archive: FloatArray) -> Self:
        retained = archive.reshape(-1, baseline.shape[1])
        rows = np.concatenate([retained, _around_mean(baseline), _around_mean(candidate)])
        # For an archive of hundreds of runs a triangle is equivalent, with a hundredth of the numbers to draw.
        factor = np.asarray(np.linalg.qr(rows, mode="r")) if len(rows) > _MANY_ROWS else rows
        return cls(rows, retained, np.random.default_rng(_SEED), factor / math.sqrt(len(rows)))

    def drawn(self, *shape: int) -> FloatArray:
        """Rows with the covariance of the deviations, shape (*shape, metrics)."""
        return np.asarray(self.generator.standard_normal((*shape, len(self.factor))) @ self.factor)

    def beside_archive(self, draws: int, archive: int, runs: int) -> tuple[FloatArray, FloatArray]:
        """Rows of an archive, as their sums of squares, and of runs.

        The sums of an archive of many rows are drawn at once, not row by row: they are the diagonal of a matrix with
        Wishart's distribution.

        Source: Bartlett (1933).
        """
        if archive <= max(_MANY_ROWS, len(self.factor)):
            table = self.drawn(draws, archive + runs)
            return _squares(table[:, :archive]), table[:, archive:]
        size = len(self.factor)
        triangle = np.tril(self.generator.standard_normal((draws, size, size)), -1)
        freedom = archive - np.arange(size)
        triangle[:, range(size), range(size)] = np.sqrt(self.generator.chisquare(freedom, (draws, size)))
        return _squares(triangle.transpose(0, 2, 1) @ self.factor), self.drawn(draws, runs)

    def continued(self, side: FloatArray, runs: int, draws: int) -> FloatArray:
        """A side's runs, completed with drawn ones, shape (draws, runs, metrics)."""
        means = side.mean(axis=0) + self.drawn(draws, 1) / math.sqrt(len(side))
        known = np.broadcast_to(side, (draws, *side.shape))
        return np.concatenate([known, means + self.drawn(draws, runs - len(side))], axis=1)
