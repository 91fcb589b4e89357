"""A metric by host: the mean of every value of a key on both sides, and the outliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median as median_of  # for few values many times as fast as numpy's

import numpy as np

from chainmark.compare.samples import ChartSide
from chainmark.core import units
from chainmark.core.comparison import Breakdown, Scale
from chainmark.core.manifest import Grouping
from chainmark.core.metric import Kind, Metric, Population
from chainmark.stats.keyed_means import Means

MOST_VALUES = 60  # of a key: more than a reader reads
OUTLYING = 3.0  # robust z-scores
_FEWEST = 5  # values needed to estimate a spread
_FEWEST_IN_GROUP = 3  # of two values, either may be the outlier
_MAD_TO_SD = 1.4826  # for a normal distribution
_MEAN_TO_SD = 1.2533  # the same for the mean distance, if more than half of the values are equal


def breakdowns_of(sides: Sequence[ChartSide], metric: Metric, population: Population) -> list[Breakdown]:
    """The breakdowns of a metric by every key of its population for which its runs describe the means.

    Args:
        sides: baseline and candidate.
        metric: the metric.
        population: of the metric, which defines the keys.
    """
    left, right = (_side_means(side, metric, population) for side in sides)
    keys = [key for key in population.breakdowns if left[key].of or right[key].of]
    return [_breakdown(metric, key, sides, (left[key], right[key])) for key in keys]


def _side_means(side: ChartSide, metric: Metric, population: Population) -> dict[str, Means]:
    """Per key, the means of a side, with equal weight for each run."""
    runs = side.samples(metric, population).runs
    return {
        key: _joined([run.described.means[key] for run in runs if key in run.described.means])
        for key in population.breakdowns
    }


def _joined(runs: Sequence[Means]) -> Means:
    joined: dict[str, tuple[float, int]] = {}
    for name in sorted({name for run in runs for name in run.of}):
        run_means = [run.of[name] for run in runs if name in run.of]
        joined[name] = (sum(mean for mean, _ in run_means) / len(run_means), sum(count for _, count in run_means))
    squares = {name: sum(run.squares.get(name, 0.0) for run in runs) for name in joined}
    return Means(joined, squares, sum(run.freedom for run in runs))


@dataclass(frozen=True)
class _Spread:
    """The distribution of one side's values about the medians of their groups; about that of all without groups."""

    median: float | None
    scores: dict[str, float]
    outlying: set[str]
    medians: dict[str, float] = field(default_factory=dict)


def _spread(means: Means, metric: Metric, group_of: Mapping[str, str] | None = None) -> _Spread:
    """Robust z-scores within each group, by its own spread if that can be estimated, else by that within all groups.

    A value in a group of fewer than three has no reference.
    """
    groups: dict[str | None, list[str]] = {}
    for name in means.of:
        groups.setdefault((group_of or {}).get(name), []).append(name)
    median = median_of([mean for mean, _ in means.of.values()]) if means.of else None
    middles = {group: median_of([means.of[name][0] for name in names]) for group, names in groups.items()}
    medians = {name: middles[group] for group, names in groups.items() for name in names}
    if len(means.of) < _FEWEST:
        return _Spread(median, {}, set(), medians)
    distances = {name: abs(mean - medians[name]) for name, (mean, _) in means.of.items()}
    judged = [names for names in groups.values() if len(names) >= _FEWEST_IN_GROUP]
    within_all = [name for names in judged for name in names]
    scores: dict[str, float] = {}
    for names in judged:
        scale = _scale([distances[name] for name in (names if len(names) >= _FEWEST else within_all)])
        scores |= {name: distances[name] / scale if scale > 0.0 else 0.0 for name in names}
    outlying = {
        name
        for name, score in scores.items()
        if score > OUTLYING
        and distances[name] > max(metric.floor, metric.margin * abs(medians[name]))
        and distances[name] > OUTLYING * means.standard_error(name)
    }
    return _Spread(median, scores, outlying, medians)


def _scale(distances: Sequence[float]) -> float:
    return _MAD_TO_SD * median_of(distances) or _MEAN_TO_SD * float(np.mean(distances))


def _grouping(side: ChartSide, key: str) -> Grouping | None:
    """The groups within which a key's values are compared: those of the side's first run that defines them."""
    return next((grouping for run in side.runs if (grouping := run.groups.get(key))), None)


def _breakdown(metric: Metric, key: str, sides: Sequence[ChartSide], means: tuple[Means, Means]) -> Breakdown:
    left, right = means
    groupings = [_grouping(side, key) for side in sides]
    before, after = spreads = [
        _spread(mean, metric, grouping.of if grouping else None)
        for mean, grouping in zip(means, groupings, strict=True)
    ]
    label = next((grouping.label for grouping in groupings if grouping), "")
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
        baseline_n=[left.of[name][1] if name in left.of else 0 for name in shown],
        candidate_n=[right.of[name][1] if name in right.of else 0 for name in shown],
        change=[change[name] for name in shown],
        z=[_rounded(score[name]) for name in shown],
        stands_out=[out[name] for name in shown],
        median_baseline=_rounded(before.median),
        median_candidate=_rounded(after.median),
        group_label=label,
        group_medians_baseline=[_rounded(before.medians.get(name)) for name in shown] if label else [],
        group_medians_candidate=[_rounded(after.medians.get(name)) for name in shown] if label else [],
        left_out=len(names) - len(shown),
    )


def _where(name: str, spreads: Sequence[_Spread]) -> str:
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
    return None if value is None else units.rounded(value)
