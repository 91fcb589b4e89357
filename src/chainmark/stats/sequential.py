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
from dataclasses import dataclass, replace
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
    rows = table[:, archive:]
    squares = _squares(table[:, :archive])[:, None] + np.cumsum(np.square(rows), axis=1)[:, [n - 1 for n in seen]]
    change = np.einsum("kr,drm->dkm", contrasts, rows)
    return _student(change, squares - np.square(change), freedom)


def _squares(rows: FloatArray) -> FloatArray:
    """Sums of squares over the rows, shape (..., metrics)."""
    return np.asarray(np.einsum("...rm,...rm->...m", rows, rows))


def _student(change: FloatArray, rest: FloatArray, freedom: FloatArray) -> FloatArray:
    """Student's t of changes, from the pooled squares, shape (draws, looks, metrics)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = change * np.sqrt(freedom)[None, :, None] / np.sqrt(np.maximum(rest, 0.0))
    return np.asarray(np.clip(np.nan_to_num(t), -_LARGEST_T, _LARGEST_T))


def _rotated(table: FloatArray, archive: int, draws: int) -> tuple[FloatArray, int]:
    """The table under this number of random rotations, shape (draws, rows, metrics), and the number of archive's rows.

    Only the sums of squares of an archive matter: many rows are rotated into as few as there are metrics.
    """
    _, values, axes = np.linalg.svd(table, full_matrices=False)
    frames, left = _frames(draws, archive, len(table) - archive, len(values))
    return np.asarray(frames @ (values[:, None] * axes)), left


@lru_cache(maxsize=2)
def _frames(draws: int, archive: int, runs: int, columns: int) -> tuple[FloatArray, int]:
    """Random orthonormal columns, shape (draws, rows, columns), and the number of rows that represent the archive's.

    They are the same ones whenever they are requested.
    """
    generator = np.random.default_rng(_SEED)
    first = _equivalent(generator, draws, archive, columns)
    rows = np.concatenate([first, generator.standard_normal((draws, runs, columns))], axis=1)
    frames, triangle = np.linalg.qr(rows)
    signed = np.asarray(frames * np.sign(np.diagonal(triangle, axis1=1, axis2=2))[:, None, :])
    signed.setflags(write=False)
    return signed, first.shape[1]


def _equivalent(generator: np.random.Generator, draws: int, rows: int, columns: int) -> FloatArray:
    """Rows of independent standard normal numbers, or a triangle with the same distribution of squares and products.

    Returns:
        Shape (draws, min(rows, columns), columns).

    Source: Bartlett (1933).
    """
    if rows <= columns:
        return generator.standard_normal((draws, rows, columns))
    triangle = np.triu(generator.standard_normal((draws, columns, columns)), 1)
    places = np.arange(columns)
    triangle[:, places, places] = np.sqrt(generator.chisquare(rows - places, (draws, columns)))
    return triangle


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
    t = _Noise(unit, np.random.default_rng(_SEED)).equal(draws, looks).t_values(looks)[:, :, 0]
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
        [archive.reshape(len(archive), baseline.shape[1]), _around_mean(_stacked(baseline, candidate, looks.runs))]
    )
    scale = np.sqrt(np.square(table).sum(axis=0))
    table = table / np.where(scale > 0.0, scale, 1.0)
    contrasts, seen = _contrasts(looks)
    freedom = looks.degrees_of_freedom
    result = _t_values(table[None], looks.archive, contrasts, seen, freedom)
    retained = _in_question(result[0, -1], looks, limits)
    null = _t_values(*_rotated(table[:, retained], looks.archive, draws), contrasts, seen, freedom)
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
    deviations = [archive.reshape(len(archive), baseline.shape[1]), _around_mean(baseline), _around_mean(candidate)]
    noise = _Noise.of(np.concatenate(deviations))
    sides = _Groups.of(baseline[None], candidate[None], looks).with_archive(_squares(deviations[0]))
    now = sides.t_values(looks)[0, -1]
    continued = noise.continued(sides, draws, looks, future)
    is_decided = _decided(continued, noise, future, _in_question(now, looks))[:, len(looks.runs) :]
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
    rows = np.concatenate(
        [archive.reshape(len(archive), baseline.shape[1]), _around_mean(baseline), _around_mean(candidate)]
    )
    noise, future = _Noise.of(rows), Looks(((runs, runs),), runs, len(rows))
    equal = noise.groups(_NEW_DRAWS, _added(future))
    shifted = _Groups(equal.means - np.stack([np.zeros_like(margins), margins]), equal.squares)
    return float(_decided(shifted.with_archive(_squares(rows)), noise, future).mean())


def _decided(sides: _Groups, noise: _Noise, future: Looks, metrics: IntArray | None = None) -> FloatArray:
    """Per experiment and look whether it is decided.

    Args:
        sides: the experiments, with the archive.
        noise: of one run.
        future: all looks.
        metrics: those that may be worse; None for all.
    """
    t = sides.t_values(future)
    null = noise.equal(DRAWS, future).t_values(future)
    drawn_p, observed_p = _combined(null, t) if metrics is None else _combined(null[:, :, metrics], t[:, :, metrics])
    is_worse = observed_p <= _thresholds(drawn_p, _spent_on_worse(future))
    levels = lone_levels(future, _FORECAST_DRAWS)
    bounds = [-t_quantile(1.0 - level, nu) for level, nu in zip(levels, future.degrees_of_freedom, strict=True)]
    return np.asarray(is_worse | (t.max(axis=2) < np.array(bounds)))


@dataclass(frozen=True)
class _Groups:
    """Experiments by what is sufficient for their t: the runs that each look added, a group per side.

    Attributes:
        means: of each group, shape (experiments, looks, 2, metrics).
        squares: sums of squares around these means, of both sides' groups, shape (experiments, looks, metrics); those
            of the archive belong to the first look.
    """

    means: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, baseline: FloatArray, candidate: FloatArray, looks: Looks) -> Self:
        """Experiments from their runs, for each side of shape (experiments, runs, metrics)."""
        middle = np.concatenate([baseline, candidate], axis=1).mean(axis=1, keepdims=True)
        means, squares = [], []
        for side, added in zip((baseline, candidate), _added(looks).T, strict=True):
            groups = np.split(side - middle, np.cumsum(added)[:-1], axis=1)  # large squares would have inaccurate sums
            means.append([group.sum(axis=1) / max(group.shape[1], 1) for group in groups])
            squares.append([_squares(_around_mean(group)) for group in groups])
        return cls(np.array(means).transpose(2, 1, 0, 3), np.array(squares).sum(axis=0).swapaxes(0, 1))

    def with_archive(self, squares: FloatArray) -> Self:
        """Beside an archive with these sums of squares, shape (metrics,) or (experiments, metrics)."""
        first = self.squares[:, :1] + np.atleast_2d(squares)[:, None]
        return replace(self, squares=np.concatenate([first, self.squares[:, 1:]], axis=1))

    def t_values(self, looks: Looks) -> FloatArray:
        """Student's t of every look and metric, shape (experiments, looks, metrics)."""
        added, runs = _added(looks)[:, :, None], np.array(looks.runs)[:, :, None]
        weighted = added * self.means
        averages = np.cumsum(weighted, axis=1) / runs
        between = np.cumsum(weighted * self.means, axis=1) - runs * np.square(averages)
        rest = np.cumsum(self.squares, axis=1) + np.maximum(between, 0.0).sum(axis=2)
        change = (averages[:, :, 1] - averages[:, :, 0]) / np.sqrt((1.0 / runs).sum(axis=1))
        return _student(change, rest, looks.degrees_of_freedom)


def _added(looks: Looks) -> IntArray:
    """The number of runs that each look added to each side, shape (looks, 2)."""
    return np.diff(np.array(((0, 0), *looks.runs)), axis=0)


@dataclass(frozen=True)
class _Noise:
    """The source of simulated runs: a factor of the covariance of one run's metrics, shape (size, metrics)."""

    factor: FloatArray
    generator: np.random.Generator

    @classmethod
    def of(cls, deviations: FloatArray) -> Self:
        """The covariance is the mean of the deviations' squares, shape (degrees of freedom, metrics)."""
        # The triangle of hundreds of rows is equivalent, with a hundredth of the numbers to draw.
        factor = np.asarray(np.linalg.qr(deviations, mode="r"))
        return cls(factor / math.sqrt(len(deviations)), np.random.default_rng(_SEED))

    def drawn(self, *shape: int) -> FloatArray:
        """Rows with this covariance, shape (*shape, metrics)."""
        return np.asarray(self.generator.standard_normal((*shape, len(self.factor))) @ self.factor)

    def squares(self, draws: int, freedom: int) -> FloatArray:
        """Sums of squares over this number of rows, shape (draws, metrics)."""
        rows = _equivalent(self.generator, draws, freedom, len(self.factor))
        return _squares(rows @ self.factor)

    def equal(self, draws: int, looks: Looks) -> _Groups:
        """Experiments with two equal sides, beside an archive of the same noise."""
        return self.groups(draws, _added(looks)).with_archive(self.squares(draws, looks.archive))

    def groups(self, draws: int, added: IntArray) -> _Groups:
        """Experiments with two equal sides and these numbers of added runs, without an archive."""
        means = self.drawn(draws, *added.shape) / np.sqrt(np.maximum(added, 1))[:, :, None]
        freedom = np.maximum(added - 1, 0).sum(axis=1).tolist()
        return _Groups(means, np.stack([self.squares(draws, number) for number in freedom], axis=1))

    def continued(self, sides: _Groups, draws: int, looks: Looks, future: Looks) -> _Groups:
        """Continuations of one experiment, each with other true means, drawn around those found."""
        runs = np.array(looks.runs[-1])[:, None]
        found = (_added(looks)[:, :, None] * sides.means[0]).sum(axis=0) / runs
        true = found + self.drawn(draws, 1, 2) / np.sqrt(runs)
        further = self.groups(draws, _added(future)[len(looks.runs) :])
        parts = (sides.means, true + further.means), (sides.squares, further.squares)
        joined = [np.concatenate([np.repeat(old, draws, axis=0), new], axis=1) for old, new in parts]
        return _Groups(*joined)
