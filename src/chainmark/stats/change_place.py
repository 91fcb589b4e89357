"""Find the revision in a sequence at which a metric changed, by runs of some of them: noisy binary search.

All runs before the change share one level and all runs from it on another; both levels and the noise are unknown. The
levels and the noise are integrated out, so that the result is a probability for every place, and all runs of the search
inform the noise. Runs made close in time share a deviation of unknown size, so that a drifting machine does not decide.

Sources: Smith (1975), "A Bayesian approach to inference about a change-point in a sequence of random variables";
Burnashev and Zigangirov (1974), "An interval estimation problem for controlled observations", for measuring at the
revision that halves the probability, and for the stopping rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from chainmark.stats.centiles import FloatArray, IntArray
from chainmark.stats.intervals import Contrast, Spread, Working, from_standard_error
from chainmark.stats.special import t_cdf

ERROR = 0.05  # over the whole search
# A revision is measured until this much is known of its side; doubtful ones are measured again later.
DOUBT = 0.05
LEAST_RUNS = 2  # of both revisions of the result
# The variance that runs of one visit share, as multiples of that of one run.
_SHARED = (0.0, 0.25, 1.0, 4.0)
_LEAST_SQUARES = 1e-18  # of equal values: no noise at all
_SEED = 20_261_123


@dataclass(frozen=True)
class SearchedRuns:
    """All runs so far.

    Attributes:
        places: of each run, that of its revision: 0 is the good one.
        visits: runs with the same number were made consecutively.
        values: on a scale on which worse is up and noise is additive.
    """

    places: IntArray
    visits: IntArray
    values: FloatArray

    def joined(self, places: Sequence[int], visit: int, values: Sequence[float]) -> SearchedRuns:
        """The same and further runs."""
        return SearchedRuns(
            np.append(self.places, places),
            np.append(self.visits, [visit] * len(places)),
            np.append(self.values, values),
        )


def chances(seen: SearchedRuns, last: int, archive: Spread | None = None) -> FloatArray:
    """The probability that each revision introduced the change.

    Args:
        seen: three or more runs, including those of both ends.
        last: the place of the bad revision.
        archive: runs of other equal builds, which inform the variance.

    Returns:
        Shape (last,): of the places 1 to ``last``; they sum to 1.
    """
    squares, freedom = (archive.squares, archive.degrees_of_freedom) if archive else (0.0, 0.0)
    is_after = (seen.places[None, :] >= np.arange(1, last + 1)[:, None]).astype(float)
    logs = np.stack([_evidence(seen, is_after, shared, squares, freedom) for shared in _SHARED])
    weights = np.exp(logs - logs.max()).sum(axis=0)
    return np.asarray(weights / weights.sum())


def _evidence(seen: SearchedRuns, is_after: FloatArray, shared: float, squares: float, freedom: float) -> FloatArray:
    """The logarithm of the marginal likelihood of every place, with flat priors of the levels and of log noise.

    Args:
        seen: all runs.
        is_after: shape (places, runs).
        shared: variance that the runs of a visit share, as a multiple of that of one run.
        squares, freedom: of the archive.
    """
    turned = [_without_shared(rows, seen.visits, shared) for rows in (np.ones((1, len(seen.values))), is_after)]
    level, step = turned
    values = _without_shared(seen.values[None, :], seen.visits, shared)[0]
    a, b, c = (level**2).sum(axis=1), step @ level[0], (step**2).sum(axis=1)
    determinant = a * c - b * b
    left, right = float(level[0] @ values), step @ values
    base, change = (c * left - b * right) / determinant, (a * right - b * left) / determinant
    rest = np.square(values[None, :] - base[:, None] * level[0] - change[:, None] * step).sum(axis=1) + squares
    rest = np.maximum(rest, _LEAST_SQUARES)
    known = len(values) - 2.0 + freedom
    error = np.sqrt(rest / known * a / determinant)
    is_worse = np.array([t_cdf(float(t), known) for t in change / error])
    _, sizes = np.unique(seen.visits, return_counts=True)
    determinants = np.log1p(sizes * shared).sum() + np.log(determinant)
    return np.asarray(-0.5 * determinants - 0.5 * known * np.log(rest) + np.log(np.maximum(is_worse, 1e-300)))


def _without_shared(rows: FloatArray, visits: IntArray, shared: float) -> FloatArray:
    """Rows without the deviations that a visit shares, so that the rest is independent.

    Args:
        rows: shape (rows, runs).
        visits: shape (runs,).
        shared: the shared variance in units of that of one run.
    """
    of_visit = (visits[None, :] == np.unique(visits)[:, None]).astype(float)
    sizes = of_visit.sum(axis=1)
    taken_out = (1.0 - 1.0 / np.sqrt(1.0 + shared * sizes)) / sizes
    return np.asarray(rows - (rows @ of_visit.T * taken_out) @ of_visit)


def chances_of_failing(places: IntArray, failed: FloatArray, last: int) -> FloatArray:
    """The same if failures changed: two shares of failing runs instead of two levels.

    Args:
        places: of each run.
        failed: 1 if it failed, otherwise 0.
        last: the place of the bad revision.
    """
    logs = []
    for change in range(1, last + 1):
        after = places >= change
        logs.append(sum(_log_share(int(failed[side].sum()), int(side.sum())) for side in (after, ~after)))
    weights = np.exp(np.array(logs) - max(logs))
    return np.asarray(weights / weights.sum())


def _log_share(failed: int, runs: int) -> float:
    """The logarithm of the probability of this number of failures in this order, with Jeffreys' prior (½, ½)."""
    retained = runs - failed
    return math.lgamma(failed + 0.5) + math.lgamma(retained + 0.5) - math.lgamma(runs + 1.0)


@dataclass(frozen=True)
class Stretch:
    """Revisions between two measurable ones, one of which introduced the change.

    Attributes:
        before: the place of the last measurable revision before.
        at: the place of the last of them, which is measurable too; those between are not.
        chance: the probability that the change is here.
    """

    before: int
    at: int
    chance: float


@dataclass(frozen=True)
class SearchedRevisions:
    """The revisions of a search.

    Attributes:
        last: the place of the bad one; the good one is at 0.
        skipped: places that cannot be measured; never an end.
        equal: pairs of places, the smaller first, that are the same program, so that the change is not between them.
        archive: runs of other equal builds, which inform the variance of a run.
        fails: whether failures changed; the values are then 1 for a failed run and 0 for any other.
    """

    last: int
    skipped: frozenset[int] = frozenset()
    equal: tuple[tuple[int, int], ...] = ()
    archive: Spread | None = None
    fails: bool = False

    def chances(self, seen: SearchedRuns) -> FloatArray:
        """The probability that each revision introduced the change, for the places 1 to ``last``."""
        if self.fails:
            result = chances_of_failing(seen.places, seen.values, self.last)
        else:
            result = chances(seen, self.last, self.archive)
        possible = result.copy()
        for low, high in self.equal:
            possible[low:high] = 0.0
        # If nothing is left, a change was reverted and made again: equal programs then do not exclude what is between.
        result = possible if possible.any() else result
        return np.asarray(result / result.sum())

    @property
    def measurable(self) -> list[int]:
        """The measurable places."""
        return [place for place in range(self.last + 1) if place not in self.skipped]

    def stretches(self, values: FloatArray) -> list[Stretch]:
        """The distinguishable groups of revisions."""
        retained = self.measurable
        return [Stretch(before, at, float(values[before:at].sum())) for before, at in pairwise(retained)]

    def answer(self, values: FloatArray) -> Stretch | None:
        """Where the change is, if that is certain enough."""
        best = max(self.stretches(values), key=lambda stretch: stretch.chance)
        return best if best.chance >= 1.0 - ERROR else None

    def likely(self, values: FloatArray) -> Stretch:
        """The shortest range of revisions that contains the change with the required certainty."""
        retained, until = self.measurable, until_each(values)
        wide = [
            Stretch(before, at, float(until[at] - until[before]))
            for number, before in enumerate(retained)
            for at in retained[number + 1 :]
        ]
        sure = [stretch for stretch in wide if stretch.chance >= 1.0 - ERROR]
        return min(sure, key=lambda stretch: (stretch.at - stretch.before, -stretch.chance))

    def turn(self, values: FloatArray, places: Sequence[int], current: int | None = None) -> int | None:
        """The revision to measure next; None if nothing remains to be measured.

        Once the result is certain, both of its ends are measured until each has two runs, so that they can be compared.
        Before that, it is the current revision while it is in doubt, otherwise the one that halves the probability.

        Args:
            values: from `chances`.
            places: of all runs so far.
            current: the revision that was measured last.
        """
        sure = self.answer(values)
        if sure is not None:
            return next((place for place in (sure.before, sure.at) if places.count(place) < LEAST_RUNS), None)
        until = until_each(values)
        between = self.measurable[1:-1]
        if current in between and DOUBT < until[current] < 1.0 - DOUBT:
            return current
        return min(between, key=lambda place: (abs(float(until[place]) - 0.5), place))


def until_each(values: FloatArray) -> FloatArray:
    """The probability that each place from 0 on has the change, shape (last + 1,)."""
    return np.concatenate([[0.0], np.cumsum(values)])


def pair_of(place: int, places: Sequence[int], last: int, turn: int) -> list[int]:
    """A revision and an end to measure with it, in an order that alternates from pair to pair.

    The end is the one with fewer runs, so that both levels are known equally well.

    Args:
        place: of the revision, which is not an end.
        places: of all runs so far.
        last: the place of the bad revision.
        turn: number of earlier pairs.
    """
    end = 0 if places.count(0) <= places.count(last) else last
    return [end, place] if turn % 2 == 0 else [place, end]


def changes(seen: SearchedRuns, archive: Spread | None = None) -> dict[int, Contrast]:
    """The change of every measured revision relative to the good one, with 90 % intervals.

    Every revision has its own level; the noise is that of all runs, and the shared variance of a visit has its most
    likely value.

    Args:
        seen: runs, including those of 0.
        archive: runs of other equal builds, which inform the variance.
    """
    measured = sorted(set(seen.places.tolist()))
    is_of = (seen.places[None, :] == np.array(measured)[:, None]).astype(float)
    squares, freedom = (archive.squares, archive.degrees_of_freedom) if archive else (0.0, 0.0)
    known = len(seen.values) - len(measured) + freedom
    if known < 1.0:
        return {}
    fits = [_levels(seen, is_of, shared, squares, known) for shared in _SHARED]
    _, levels, inverse, rest = max(fits, key=lambda fit: fit[0])
    contrasts = {}
    for row, place in enumerate(measured[1:], start=1):
        error = math.sqrt(rest / known * (inverse[0, 0] + inverse[row, row] - 2.0 * inverse[0, row]))
        contrasts[place] = from_standard_error(float(levels[row] - levels[0]), error, known, Working.DIFFERENCE)
    return contrasts


def _levels(
    seen: SearchedRuns, is_of: FloatArray, shared: float, squares: float, known: float
) -> tuple[float, FloatArray, FloatArray, float]:
    """The restricted likelihood of a shared variance, the levels, their covariance in noise units, and the squares."""
    design = _without_shared(is_of, seen.visits, shared)
    values = _without_shared(seen.values[None, :], seen.visits, shared)[0]
    cross = design @ design.T
    inverse = np.asarray(np.linalg.inv(cross), dtype=np.float64)
    levels = inverse @ design @ values
    rest = max(float(np.square(values - levels @ design).sum()) + squares, _LEAST_SQUARES)
    _, sizes = np.unique(seen.visits, return_counts=True)
    determinants = float(np.log1p(sizes * shared).sum() + np.linalg.slogdet(cross)[1])
    return -0.5 * determinants - 0.5 * known * math.log(rest), levels, inverse, rest


def runs_left(row: SearchedRevisions, seen: SearchedRuns, current: int | None, most: int, draws: int = 12) -> int:
    """The expected number of further runs of the search, with the levels and noise of the runs so far: the median.

    Args:
        row: the revisions.
        seen: runs so far.
        current: the revision that was measured last.
        most: maximum number of runs, including those so far.
        draws: searches that are simulated to their ends.
    """
    result, generator = row.chances(seen), np.random.default_rng(_SEED)
    lengths = []
    for change in generator.choice(np.arange(1, row.last + 1), size=draws, p=result):
        ended = search(row, seen, _runs_like(row, seen, int(change), generator), most, current)
        lengths.append(len(ended.values) - len(seen.values))
    return round(float(np.median(lengths)))


def _runs_like(
    row: SearchedRevisions, seen: SearchedRuns, change: int, generator: np.random.Generator
) -> Callable[[int], float]:
    """A generator of further runs like those so far, if that revision introduced the change."""
    sides = [seen.values[seen.places < change], seen.values[seen.places >= change]]
    levels = [float(side.mean()) for side in sides]
    rest = sum(float(np.square(side - side.mean()).sum()) for side in sides)
    noise = math.sqrt(rest / max(1, len(seen.values) - 2))

    def made(place: int) -> float:
        level = levels[int(place >= change)]
        return float(generator.random() < level) if row.fails else level + noise * float(generator.standard_normal())

    return made


def search(
    row: SearchedRevisions, seen: SearchedRuns, run: Callable[[int], float], most: int, current: int | None = None
) -> SearchedRuns:
    """Continue a search until its result is certain; returns all runs.

    Args:
        row: the revisions.
        seen: runs so far.
        run: makes a run of a revision; returns its value.
        most: maximum number of runs.
        current: the revision that was measured last.
    """
    turn, visit = 0, int(seen.visits.max())
    while len(seen.values) < most:
        wanted = row.turn(row.chances(seen), seen.places.tolist(), current)
        if wanted is None:
            break
        visit, turn, current = (visit, turn + 1, current) if wanted == current else (visit + 1, 0, wanted)
        pair = pair_of(wanted, seen.places.tolist(), row.last, turn)
        seen = seen.joined(pair, visit, [run(place) for place in pair])
    return seen
