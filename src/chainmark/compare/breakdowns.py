"""A metric host by host: the mean of every value of a key on both sides, and which of them stand out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chainmark.compare.samples import ChartSide
from chainmark.core import units
from chainmark.core.comparison import Breakdown, Scale
from chainmark.core.metric import Kind, Metric, Population
from chainmark.stats.keyed_means import Means

MOST_VALUES = 60  # of a key: more than a reader goes through
OUTLYING = 3.0  # robust z-scores
_FEWEST = 5  # values that a spread can be told from
_MAD_TO_SD = 1.4826  # of a normal distribution
_MEAN_TO_SD = 1.2533  # the same for the mean distance, where more than half of the values are alike
_DIGITS = 6


def breakdowns_of(sides: Sequence[ChartSide], metric: Metric, population: Population) -> list[Breakdown]:
    """A metric by every key of its population, if it decides or its distribution is drawn.

    Args:
        sides: baseline and candidate.
        metric: whose means.
        population: of the metric; it says by which keys.
    """
    if not population.breakdowns or not metric.is_shown_closely:
        return []
    left, right = (_side_means(side, metric, population) for side in sides)
    keys = [key for key in population.breakdowns if left[key].of or right[key].of]
    return [_breakdown(metric, key, left[key], right[key]) for key in keys]


def _side_means(side: ChartSide, metric: Metric, population: Population) -> dict[str, Means]:
    """Per key, the means of a side: runs count alike."""
    runs = side.samples(metric, population).runs
    return {
        key: _joined([run.described.means[key] for run in runs if key in run.described.means])
        for key in population.breakdowns
    }


def _joined(runs: Sequence[Means]) -> Means:
    joined: dict[str, tuple[float, int]] = {}
    for name in sorted({name for run in runs for name in run.of}):
        own = [run.of[name] for run in runs if name in run.of]
        joined[name] = (sum(mean for mean, _ in own) / len(own), sum(count for _, count in own))
    squares = {name: sum(run.squares.get(name, 0.0) for run in runs) for name in joined}
    return Means(joined, squares, sum(run.freedom for run in runs))


@dataclass(frozen=True)
class _Spread:
    """How the values of one side lie about their median."""

    median: float | None
    scores: dict[str, float]
    outlying: set[str]


def _spread(means: Means, metric: Metric) -> _Spread:
    if not means.of:
        return _Spread(None, {}, set())
    values = np.array([mean for mean, _ in means.of.values()])
    median = float(np.median(values))
    if len(values) < _FEWEST:
        return _Spread(median, {}, set())
    distances = np.abs(values - median)
    scale = _MAD_TO_SD * float(np.median(distances)) or _MEAN_TO_SD * float(distances.mean())
    scores = distances / scale if scale > 0.0 else np.zeros(len(values))
    matters = max(metric.floor, metric.margin * abs(median))
    named = list(zip(means.of, scores.tolist(), distances.tolist(), strict=True))
    outlying = {
        name
        for name, score, distance in named
        if score > OUTLYING and distance > matters and distance > OUTLYING * means.standard_error(name)
    }
    return _Spread(median, {name: score for name, score, _ in named}, outlying)


def _breakdown(metric: Metric, key: str, left: Means, right: Means) -> Breakdown:
    spreads = (_spread(left, metric), _spread(right, metric))
    names = sorted({*left.of, *right.of})
    score = {name: max((spread.scores[name] for spread in spreads if name in spread.scores), default=None)
             for name in names}  # fmt: skip
    out = {name: _where(name, spreads) for name in names}
    positive = all(mean > 0.0 for side in (left, right) for mean, _ in side.of.values())
    ratio = metric.kind is Kind.POSITIVE and positive
    change = {name: _change(left, right, name, ratio=ratio) for name in names}
    least = metric.margin if ratio else metric.floor
    names.sort(key=lambda name: (not out[name], abs(change[name] or 0.0) <= least, -(score[name] or 0.0), name))
    shown = names[:MOST_VALUES]
    return Breakdown(
        metric_id=metric.id,
        key=key,
        scale=Scale.RELATIVE if ratio else Scale.ABSOLUTE,
        values=shown,
        baseline=[_mean(left, name) for name in shown],
        candidate=[_mean(right, name) for name in shown],
        baseline_n=[left.of.get(name, (0.0, 0))[1] for name in shown],
        candidate_n=[right.of.get(name, (0.0, 0))[1] for name in shown],
        change=[change[name] for name in shown],
        z=[_rounded(score[name]) for name in shown],
        stands_out=[out[name] for name in shown],
        median_baseline=_rounded(spreads[0].median),
        median_candidate=_rounded(spreads[1].median),
        left_out=len(names) - len(shown),
    )


def _where(name: str, spreads: tuple[_Spread, _Spread]) -> str:
    left, right = (name in spread.outlying for spread in spreads)
    if left and right:
        return "both"
    return "baseline" if left else "candidate" if right else ""


def _mean(means: Means, name: str) -> float | None:
    return _rounded(means.of[name][0]) if name in means.of else None


def _change(left: Means, right: Means, name: str, *, ratio: bool) -> float | None:
    if name not in left.of or name not in right.of:
        return None
    before, after = left.of[name][0], right.of[name][0]
    return _rounded(after / before - 1.0 if ratio else after - before)


def _rounded(value: float | None) -> float | None:
    return None if value is None else units.rounded(value, _DIGITS)
