"""All gating metrics as one family: whether the candidate is worse in any of them, and how to decide it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from chainmark.compare.estimates import SideEstimates, combined
from chainmark.compare.judge import Bench, accepted_band, working_scale
from chainmark.compare.noise import difference_of_noise, scaled
from chainmark.core.comparison import Judgement
from chainmark.core.metric import Better, Metric
from chainmark.stats.centiles import FloatArray
from chainmark.stats.intervals import Spread, Working, own_spread
from chainmark.stats.multiple import holm
from chainmark.stats.sequential import FamilyTest, Forecast, Looks, chance_for_equal, family_test, forecast, spent
from chainmark.stats.special import t_quantile

CHANCE = 0.80
MOST_RUNS, MOST_ANEW = 50, 200
_SMALLEST_P = 1e-300


@dataclass(frozen=True)
class Gated:
    """A gating metric's judgement, and the values behind it."""

    metric: Metric
    statistic: str
    baseline: SideEstimates
    candidate: SideEstimates
    judgement: Judgement

    @property
    def has_every_value(self) -> bool:
        """Whether every judged run of both sides has a value, so that it can be tested together with other metrics."""
        is_judged = self.judgement.p_worse is not None
        return is_judged and all(None not in side.per_run for side in (self.baseline, self.candidate))

    @cached_property
    def column(self) -> _Column:
        """Its values with worse up and the margin subtracted from the candidate's."""
        working = working_scale(self.metric, self.baseline, self.candidate)
        working = Working.DIFFERENCE if working is Working.RATIO else working
        band = accepted_band(self.metric, combined(self.metric, self.baseline) or 0.0, working)
        sign, margin = (-1.0, -band[0]) if self.metric.better is Better.HIGHER else (1.0, band[1])
        left, right = (sign * np.array(scaled(side.values, working)) for side in (self.baseline, self.candidate))
        return _Column(working, sign, left, right - margin, margin)


@dataclass(frozen=True)
class _Column:
    working: Working
    sign: float
    baseline: FloatArray
    candidate: FloatArray
    margin: float


@dataclass(frozen=True)
class Family:
    """The joint result of the gating metrics.

    Attributes:
        adjusted: per gating metric, the p-value of "not worse" that accounts for all others; None without data.
        level: the threshold of these, at this look.
        is_worse: whether some metric is worse than its margin.
        together: if none is worse alone, the indices of the metrics that are as one.
        table: for forecasts of further runs; None if nothing shows the noise between runs.
    """

    adjusted: tuple[float | None, ...]
    level: float
    is_worse: bool
    together: tuple[int, ...] = ()
    table: RunTable | None = None


def family_of(gated: Sequence[Gated], bench: Bench) -> Family:
    """Test all gating metrics together.

    Those that have a value in every run are tested by rotating the table of all runs; the others enter by
    Bonferroni's method. A metric without data counts with p = 1, so that losing a metric never makes a failure easier.

    Args:
        gated: all gating judgements.
        bench: the archive, and the looks at the experiment.
    """
    before, level = [0.0, *spent(bench.looks, worse=True)][-2:]
    alone = [1.0 if item.judgement.p_worse is None else item.judgement.p_worse for item in gated]
    indices = [gated_index for gated_index, item in enumerate(gated) if item.has_every_value]
    # A series of releases gives only the variances, not the joint deviations of the metrics of one run.
    is_by_releases = bench.releases is not None and bench.releases.are_enough
    table = (
        RunTable.of([gated[gated_index] for gated_index in indices], bench) if indices and not is_by_releases else None
    )
    if table is None:
        adjusted = holm(alone)
        return Family(_known(adjusted, gated), level - before, any(p <= level - before for p in adjusted))
    test = table.test([alone[gated_index] for gated_index in indices])
    others = [gated_index for gated_index in range(len(gated)) if gated_index not in indices]
    weight = len(gated) / len(indices)
    adjusted = [min(1.0, len(gated) * p) for p in alone]
    for gated_index, p in zip(indices, test.adjusted, strict=True):
        adjusted[gated_index] = min(1.0, weight * max(p, test.p_value))  # no metric is worse in a family that is not
    is_worse = weight * test.p_value <= test.level or any(adjusted[gated_index] <= test.level for gated_index in others)
    named = any(p <= test.level for p in adjusted)
    together = () if named or not is_worse else tuple(indices[index] for index in test.together)
    return Family(_known(adjusted, gated), test.level, is_worse, together, table)


def _known(adjusted: Sequence[float], gated: Sequence[Gated]) -> tuple[float | None, ...]:
    return tuple(None if item.judgement.p_worse is None else p for p, item in zip(adjusted, gated, strict=True))


@dataclass(frozen=True)
class RunTable:
    """The runs of both sides and the archive's deviations, a column per metric."""

    baseline: FloatArray
    candidate: FloatArray
    archive: FloatArray
    looks: Looks
    margins: FloatArray

    @classmethod
    def of(cls, gated: Sequence[Gated], bench: Bench) -> RunTable | None:
        """None if nothing shows the noise between runs."""
        columns = [item.column for item in gated]
        names = [(item.metric.id, item.statistic, column.working) for item, column in zip(gated, columns, strict=True)]
        deviations = bench.archive.deviations(names) if bench.archive else np.empty((0, len(names)))
        archive = deviations * np.array(
            [column.sign * _factor(deviations[:, i], column) for i, column in enumerate(columns)]
        )
        baseline, candidate = (
            np.array([getattr(column, side) for column in columns]).T for side in ("baseline", "candidate")
        )
        looks = replace(bench.looks, archive=len(archive))
        margins = np.array([column.margin for column in columns])
        return None if looks.degrees_of_freedom[0] < 1.0 else cls(baseline, candidate, archive, looks, margins)

    def test(self, alone: Sequence[float]) -> FamilyTest:
        """Test the family; no metric is more significant than its own p-value."""
        freedom = float(self.looks.degrees_of_freedom[-1])
        limits = [t_quantile(1.0 - max(p, _SMALLEST_P), freedom) for p in alone]
        return family_test(self.baseline, self.candidate, self.archive, self.looks, limits=np.array(limits))

    def forecast(self, further: Sequence[int]) -> Forecast:
        """The probability that further runs decide; ``further`` are the runs per side at each future look."""
        return forecast(self.baseline, self.candidate, self.archive, self.looks, further)

    def runs_to_decide(self) -> int | None:
        """Runs per side at which the probability of a decision is 80 %; None if 50 do not suffice."""
        now, planned = max(self.looks.runs[-1]), self.looks.planned
        if now < planned and (result := self.forecast(range(now + 1, planned + 1)).enough(CHANCE)) is not None:
            return result
        return _fewest(lambda runs: self.forecast([runs]).decided[runs], max(now, planned), MOST_RUNS)

    def runs_for_equal(self) -> int | None:
        """Runs per side with which a new experiment passes an equal release with a probability of 80 %, at this noise.

        None if 200 do not suffice. It assumes no changes: for a true change at its margin, no number suffices.
        """
        too_few, enough = 1, 2
        while self._chance_for_equal(enough) < CHANCE:
            if enough == MOST_ANEW:
                return None
            too_few, enough = enough, min(2 * enough, MOST_ANEW)
        return _fewest(self._chance_for_equal, too_few, enough)

    def _chance_for_equal(self, runs: int) -> float:
        return chance_for_equal(self.baseline, self.candidate, self.archive, self.margins, runs)


def _fewest(chance: Callable[[int], float], too_few: int, most: int) -> int | None:
    """The number of runs from which on the chance suffices, within a twentieth; None if ``most`` do not."""
    if most <= too_few or chance(most) < CHANCE:
        return None
    enough = most
    while enough - too_few > max(1, enough // 20):
        middle = (too_few + enough) // 2
        too_few, enough = (middle, enough) if chance(middle) < CHANCE else (too_few, middle)
    return enough


def _factor(known: FloatArray, column: _Column) -> float:
    """The factor that gives the archive's deviations the spread of these runs: 1 unless the two contradict each other.

    The rows still count as degrees of freedom, but no metric gets more significant than by its own runs (`limits`).
    """
    spread = own_spread(column.baseline.tolist(), column.candidate.tolist())
    archive = Spread(float(np.square(known).sum()), float(len(known)))
    if archive.squares <= 0.0 or not difference_of_noise(spread, archive):
        return 1.0
    return math.sqrt(spread.variance / archive.variance)
