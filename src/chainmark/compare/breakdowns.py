"""A metric host by host: the mean of every value of a key on both sides, and which of them stand out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from chainmark.compare.inputs import LoadedRun
from chainmark.compare.samples import ChartSide, RunSamples
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Breakdown, Scale
from chainmark.core.metric import Kind, Metric, Population
from chainmark.stats.centiles import FloatArray

MOST_VALUES = 60  # of a key: more than a reader goes through
OUTLYING = 3.0  # robust z-scores
_FEWEST = 5  # values that a spread can be told from
_MAD_TO_SD = 1.4826  # of a normal distribution
_MEAN_TO_SD = 1.2533  # the same for the mean distance, where more than half of the values are alike
_DIGITS = 6


@dataclass(frozen=True)
class Means:
    """The means of the values of one key.

    Attributes:
        of: per value, its mean and its number of samples.
        squares: per value, the squared distances of its samples from its mean, summed.
        freedom: degrees of freedom of all squares together.
    """

    of: dict[str, tuple[float, int]]
    squares: dict[str, float] = field(default_factory=dict)
    freedom: int = 0

    def standard_error(self, name: str) -> float:
        """Of a value's mean; 0 where every value has one sample.

        By the spread of its own samples, which one wild sample widens, or that of all values' where it is wider.
        """
        if self.freedom == 0:
            return 0.0
        n = self.of[name][1]
        shared = math.fsum(self.squares.values()) / self.freedom
        own = self.squares.get(name, 0.0) / (n - 1) if n > 1 else 0.0
        return math.sqrt(max(shared, own) / n)


class Breakdowns:
    """The breakdowns of every metric that decides or whose distribution is drawn.

    Args:
        sides: baseline and candidate.
        catalogue: of the comparison; its populations say by which keys.
    """

    def __init__(self, sides: Sequence[ChartSide], catalogue: Catalogue) -> None:
        self._sides = sides
        self._catalogue = catalogue
        self._coded: dict[tuple[str, str], dict[str, _Coded]] = {}

    def of(self, metric: Metric) -> list[Breakdown]:
        """One metric by every key of its population; asked for while the sides still hold its samples."""
        population = self._catalogue.population(metric.population)
        if not population.breakdowns or not metric.is_shown_closely:
            return []
        left, right = (self._means(side, population, metric) for side in self._sides)
        keys = [key for key in population.breakdowns if left[key].of or right[key].of]
        return [_breakdown(metric, key, left[key], right[key]) for key in keys]

    def _means(self, side: ChartSide, population: Population, metric: Metric) -> Mapping[str, Means]:
        """Per key, the means of a side: runs count alike."""
        parts: dict[str, list[Means]] = {key: [] for key in population.breakdowns}
        for own in side.samples(metric).runs:
            coded = self._codes(own.run, population) if len(own.values) else {}
            values = _as_stored(own, metric) if coded else own.values
            for key, column in coded.items():
                parts[key].append(_means(column, values))
        return {key: _joined(found) for key, found in parts.items()}

    def _codes(self, run: LoadedRun, population: Population) -> Mapping[str, _Coded]:
        """The keys of a run's rows as they are stored; kept for the population's other metrics."""
        which = (run.run_id, population.id)
        if which not in self._coded:
            keys = run.samples(population.id, population.breakdowns)
            present = [key for key in population.breakdowns if key in keys.columns]
            self._coded[which] = {key: _coded(keys.get_column(key)) for key in present}
        return self._coded[which]


def _as_stored(own: RunSamples, metric: Metric) -> FloatArray:
    """A metric's values in the order in which the run stores them: sums depend on it by their last bit."""
    ordered = own.run.ordered(metric.population)
    if ordered is None or ordered.as_stored:
        return own.values
    stored = own.run.samples(metric.population, [metric.id]).to_series()
    return stored.cast(pl.Float64).fill_null(float("nan")).to_numpy()


@dataclass(frozen=True)
class _Coded:
    """A key's column as numbers: ``codes`` of shape (rows,), the number of names where it has no value."""

    names: list[str]
    codes: npt.NDArray[np.int32]


def _coded(column: pl.Series) -> _Coded:
    kind = column.dtype
    if not isinstance(kind, pl.Enum):
        kind = pl.Enum(column.cast(pl.String).unique().drop_nulls())
        column = column.cast(pl.String).cast(kind)
    categories = kind.categories.to_list()
    present = column.to_physical().unique().drop_nulls().to_list()
    names = sorted(categories[code] for code in present)
    place_of = np.full(len(categories) + 1, len(names), dtype=np.int32)
    place_of[present] = [names.index(categories[code]) for code in present]
    return _Coded(names, place_of[column.to_physical().cast(pl.Int32).fill_null(len(categories)).to_numpy()])


def _means(column: _Coded, values: FloatArray) -> Means:
    """Sums run in the order of the rows, so that no number of threads changes their last bit."""
    absent = len(column.names)  # the place of rows without a key
    valid = np.isfinite(values)
    codes = column.codes
    if not bool(valid.all()):
        codes, values = codes[valid], values[valid]
    counts = np.bincount(codes, minlength=absent + 1)
    means = np.bincount(codes, weights=values, minlength=absent + 1) / np.maximum(counts, 1)
    counts[absent] = 0
    distances = values - means[codes]
    of = {
        name: (float(mean), int(count))
        for name, mean, count in zip(column.names, means[:absent], counts[:absent], strict=True)
        if count
    }
    squares = np.bincount(codes, weights=distances * distances, minlength=absent + 1)
    named = {name: float(squares[index]) for index, name in enumerate(column.names) if name in of}
    return Means(of, named, int(counts.sum()) - len(of))


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
