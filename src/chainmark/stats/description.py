"""The part of a run's samples that comparing and drawing need, in a few kilobytes per metric.

Nothing here decides: it is a function of the run alone. Estimates and their errors are in ``metrics.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from chainmark.core import units
from chainmark.core.catalogue import Catalogue, FollowedBy
from chainmark.core.distribution import STANDARD_CENTILES
from chainmark.core.metric import Better, Metric, Population
from chainmark.stats.bootstrap import generator
from chainmark.stats.centiles import FloatArray, IntArray, finite
from chainmark.stats.keyed_means import Coded, Means, coded, means_of
from chainmark.stats.knots import Knots, knots_of
from chainmark.stats.packed import packed, packed_floats, unpacked, unpacked_floats
from chainmark.stats.replicates import (
    BAND_RESAMPLES,
    Bundles,
    Drawn,
    Instants,
    Replicates,
    bundles_of,
    instants_of,
    replicates_of,
)
from chainmark.stats.samples import OrderedSamples, SampleSource, ordered_source
from chainmark.stats.threads import worker_threads
from chainmark.stats.tracks import Dots, Track, dots_of, track_of

LAYOUT = 2  # of the table, and of how its figures are computed: raised with every change of either
TAIL_SAMPLES = 5
POOLED_POINTS = 398  # of a distribution's line, and the two of the tail
RUN_POINTS = 198
SHIFT_FRACTIONS = tuple(round(0.01 * step, 2) for step in range(1, 100))
DIGITS = 6  # of a coordinate: more than a screen or a page can show
_BANDS = "bands"  # what resamples are drawn for
_TAIL = (0.999, 1.0)
_LARGE_ROWS = 1_000_000  # of a population: its metrics are described one after another, to hold the columns of one
_FEW_ROWS = 512  # checked first: most tails are of different items


def curve_fractions(points: int) -> FloatArray:
    """The fractions at which a distribution's line of this many points is drawn, and those of the tail."""
    return np.unique(np.concatenate([np.linspace(0.0, 1.0, points), _TAIL]))


def rounded(values: FloatArray) -> FloatArray:
    """Coordinates to as many digits as can be drawn."""
    return np.array(units.all_rounded(values.tolist(), DIGITS), dtype=np.float64)


_EXACT_FRACTIONS = np.concatenate(
    [curve_fractions(POOLED_POINTS), curve_fractions(RUN_POINTS), SHIFT_FRACTIONS, STANDARD_CENTILES]
)


@dataclass(frozen=True)
class Extreme:
    """One of a metric's most extreme samples: its item, its place, and its value in the metric's unit."""

    key: str
    place: str
    value: float


@dataclass(frozen=True)
class MetricDescription:
    """One metric of one run.

    Attributes:
        rows: of the population, with and without a value.
        mean: of the samples with equal weights, in the metric's unit; 0 without samples.
        squares: squared distances of the samples from that mean, summed.
        knots: the samples' distribution function.
        replicates: those of its resamples; None if no distribution is drawn.
        track, dots: the metric over time, if that is drawn; to six digits.
        means: per key that it is broken down by, the means of the key's values.
        tail: the most extreme samples, each of another item, if they can be followed.
    """

    metric_id: str
    rows: int
    mean: float = 0.0
    squares: float = 0.0
    knots: Knots = field(default_factory=lambda: knots_of(np.empty(0), _EXACT_FRACTIONS))
    replicates: Replicates | None = None
    track: Track | None = None
    dots: Dots | None = None
    means: Mapping[str, Means] = field(default_factory=dict)
    tail: Sequence[Extreme] = ()


def describe(
    catalogue: Catalogue, samples: Mapping[str, pl.DataFrame] | SampleSource, seed: int
) -> list[MetricDescription]:
    """Describe every metric of a run.

    Args:
        catalogue: the run's.
        samples: as `chainmark.stats.summarise.summarise` takes them.
        seed: the run's; with the metric's id it decides every resample.

    Returns:
        One description per metric, in the catalogue's order of populations. Equal samples give equal descriptions.
    """
    source = ordered_source(samples)
    metric_descriptions: list[MetricDescription] = []
    for population in catalogue.populations:
        metric_descriptions += describe_population(
            catalogue, population, catalogue.metrics_of(population.id), source, seed
        )
    return metric_descriptions


def describe_population(
    catalogue: Catalogue, population: Population, metrics: Sequence[Metric], source: SampleSource, seed: int
) -> list[MetricDescription]:
    """The same of some metrics of a population, either of which may be defined differently from the catalogue."""
    own = [metric.id for metric in catalogue.metrics_of(population.id)]
    ordered = ordered_source(source).ordered(population, own)
    if ordered.height == 0:
        return [MetricDescription(metric.id, 0) for metric in metrics]
    is_followed = any(metric.is_shown_closely for metric in metrics)
    rows = _Rows(ordered, population, source, catalogue.followed_by(population.id) if is_followed else None, seed)
    if ordered.height > _LARGE_ROWS:
        metric_descriptions = [rows.describe(metric) for metric in metrics]
    else:
        with worker_threads(ordered.height) as pool:
            metric_descriptions = list(pool.map(rows.describe, metrics))
    if any(metric_description.knots.n for metric_description in metric_descriptions):
        return metric_descriptions
    return [MetricDescription(metric.id, 0) for metric in metrics]  # a population without a value has no rows


class _Rows:
    """The rows of a population, and the data that all its metrics share."""

    def __init__(
        self,
        ordered: OrderedSamples,
        population: Population,
        source: SampleSource,
        followed_by: FollowedBy | None,
        seed: int,
    ) -> None:
        self._ordered = ordered
        self._population = population
        self._source = source
        self._seed = seed
        times = ordered.column(population.time_key) if population.time_key else None
        self._instants: Instants | None = None if times is None else instants_of(times)
        self._bundles: Bundles = bundles_of(ordered, population, self._instants)
        followed = (
            [] if followed_by is None else [*followed_by.key, *([followed_by.place] if followed_by.place else [])]
        )
        keys = source.samples(population.id, list(dict.fromkeys([*population.breakdowns, *followed])))
        self._coded: dict[str, Coded] = {
            key: coded(keys.get_column(key)) for key in population.breakdowns if key in keys.columns
        }
        self._things: list[pl.Series] = []
        self._places: pl.Series | None = None
        if followed_by is not None and all(name in keys.columns for name in followed_by.key):
            self._things = [keys.get_column(name) for name in followed_by.key]
            self._places = keys.get_column(followed_by.place) if followed_by.place in keys.columns else None

    def describe(self, metric: Metric) -> MetricDescription:
        """One metric, whose columns are released afterwards."""
        height = self._ordered.height
        values = self._ordered.column(metric.id)
        if values is None or len(present := finite(values)) == 0:
            return MetricDescription(metric.id, height)
        # Twice as fast as numpy's sort, whose vector instructions are slow on some processors.
        ascending = pl.Series(present).sort(multithreaded=False).to_numpy()
        del present  # columns are large
        knots = knots_of(ascending, _EXACT_FRACTIONS)
        mean, squares = _moments(ascending)
        del ascending
        rng = generator(self._seed, _BANDS, metric.id)
        return MetricDescription(
            metric_id=metric.id,
            rows=height,
            mean=mean,
            squares=squares,
            knots=knots,
            replicates=replicates_of(values, knots, self._bundles, rng) if metric.draws_from("replicates") else None,
            track=self._track(values) if metric.draws_from("track") else None,
            dots=self._dots(values) if metric.draws_from("dots") else None,
            **self._closely(metric, values),
        )

    def _times(self) -> FloatArray | None:
        """Read again each time: a column is large."""
        return self._ordered.column(self._population.time_key) if self._population.time_key else None

    def _track(self, values: FloatArray) -> Track | None:
        times = self._times()
        averaged = bool(self._population.average_over)
        track = None if times is None else track_of(values, times, self._instants, averaged=averaged)
        if track is None:
            return None
        time, value, low, high = (rounded(line) for line in (track.time, track.value, track.low, track.high))
        return Track(time, value, low, high, track.step)

    def _dots(self, values: FloatArray) -> Dots | None:
        times = self._times()
        dots = None if times is None else dots_of(values, times)
        return dots and Dots(rounded(dots.time), rounded(dots.value), dots.step)

    def _closely(self, metric: Metric, values: FloatArray) -> dict[str, Any]:
        """In the order in which the run stores its rows: the last bit of sums depends on it."""
        if not metric.is_shown_closely:
            return {}
        if (self._coded or self._things) and not self._ordered.as_stored:
            stored = self._source.samples(self._population.id, [metric.id]).to_series()
            values = stored.cast(pl.Float64).to_numpy()  # missing values become NaN
        return {
            "means": {key: means_of(column, values) for key, column in self._coded.items()},
            "tail": self._tail(values, lowest=metric.better is Better.HIGHER),
        }

    def _tail(self, values: FloatArray, *, lowest: bool) -> list[Extreme]:
        if not self._things:
            return []
        things, places = self._things, self._places
        return [
            Extreme(
                "-".join(str(column[row]) for column in things),
                str(places[row]) if places is not None and places[row] is not None else "",
                units.rounded(float(values[row]), DIGITS),
            )
            for row in _tail_rows(values, things, places, lowest=lowest)
        ]


def _moments(ascending: FloatArray) -> tuple[float, float]:
    """Mean and summed squares, of values in their order so that they do not depend on that of the rows."""
    low, high = float(ascending[0]), float(ascending[-1])
    mean = min(max(float(ascending.sum() / len(ascending)), low), high)
    squares = ascending - mean
    squares *= squares  # in place: samples can be millions
    return mean, float(squares.sum())


def joined_key(columns: Sequence[str], name: str) -> pl.Expr:
    """An item's name as one text: "3", or "0-1234" from several columns."""
    return pl.concat_str([pl.col(column).cast(pl.String) for column in columns], separator="-").alias(name)


def _tail_rows(values: FloatArray, things: Sequence[pl.Series], places: pl.Series | None, *, lowest: bool) -> list[int]:
    """The most extreme rows, each of another item; equal ones in the order of the items, then of the places.

    Args:
        values: shape (rows,), NaN if there is none.
        things: the columns that together identify an item.
        places: of the rows; None: there is one place.
        lowest: whether small values are the extreme ones.
    """
    distances = np.where(np.isfinite(values), values if lowest else -values, np.inf)
    outermost = np.flatnonzero(distances < np.inf)
    results: list[int] = []
    for rows in (_FEW_ROWS, len(outermost)):
        looked_at = outermost
        if rows < len(outermost):  # and all that are as extreme
            looked_at = np.flatnonzero(distances <= np.partition(distances, rows - 1)[rows - 1])
        ranks = _ranks(things, looked_at), _ranks([] if places is None else [places], looked_at)
        results = _first_of_each(distances[looked_at], ranks, looked_at)
        if len(results) == TAIL_SAMPLES:
            break
    return results


def _ranks(columns: Sequence[pl.Series], rows: IntArray) -> IntArray:
    """The ranks of rows in the order of the columns' texts; those without one are first."""
    result = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        texts = column.gather(rows).cast(pl.String).fill_null("").to_numpy()
        distinct, ranks = np.unique(texts, return_inverse=True)
        result = result * len(distinct) + ranks
    return result


def _first_of_each(distances: FloatArray, ranks: Sequence[IntArray], rows: IntArray) -> list[int]:
    """The rows with the smallest distances, each of another first rank; of equal ones that of the lowest ranks."""
    results: list[int] = []
    while len(distances) and len(results) < TAIL_SAMPLES:
        first = np.flatnonzero(distances == distances.min())
        for rank in ranks:
            first = first[rank[first] == rank[first].min()]
        results.append(int(rows[first[0]]))
        others = ranks[0] != ranks[0][first[0]]
        distances, ranks, rows = distances[others], [rank[others] for rank in ranks], rows[others]
    return results


_FLOATS = pl.List(pl.Float64)
_MEANS = pl.Struct({"key": pl.String, "value": pl.String, "mean": pl.Float64, "n": pl.Int64, "squares": pl.Float64})
_EXTREME = pl.Struct({"key": pl.String, "place": pl.String, "value": pl.Float64})
SCHEMA: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "metric_id": pl.String,
    "rows": pl.Int64,
    "mean": pl.Float64,
    "squares": pl.Float64,
    # Binary: as `chainmark.stats.packed` writes numbers.
    "knot": pl.Binary,  # values, ascending
    "between": pl.Binary,  # samples between a knot and the previous one
    "equal": pl.Binary,  # samples at a knot
    "resampled_knot": pl.Binary,  # the knots, from 0, at which resamples are known: steps from one to the next
    "resampled": pl.Binary,  # by such knot, then resample: samples between it and the previous one, minus the run's own
    "bundle_rows": pl.Binary,  # instead of resamples, if it is smaller: the number of samples in each bundle,
    "bundle_cells": pl.Binary,  # sample by sample, the first such knot that it is at or below, or their number,
    "block_length": pl.Float64,  # and how many bundles are drawn together on average
    "resampled_bundles": pl.Boolean,
    "series_time": _FLOATS,
    "series_mean": _FLOATS,
    "series_low": _FLOATS,
    "series_high": _FLOATS,
    "series_step": pl.Int64,
    "dot_time": _FLOATS,
    "dot_value": _FLOATS,
    "dot_step": pl.Int64,
    "means": pl.List(_MEANS),
    "tail": pl.List(_EXTREME),
}


def to_frame(described: Iterable[MetricDescription]) -> pl.DataFrame:
    """One row per metric, of the columns in `SCHEMA`."""
    return pl.DataFrame([_to_row(metric_description) for metric_description in described], schema=dict(SCHEMA))


def _to_row(metric_description: MetricDescription) -> dict[str, Any]:
    knots = metric_description.knots
    before = np.append(0, knots.at_or_below)[:-1]
    row: dict[str, Any] = {
        "metric_id": metric_description.metric_id,
        "rows": metric_description.rows,
        "mean": metric_description.mean,
        "squares": metric_description.squares,
        "knot": packed_floats(knots.values),
        "between": packed(knots.below - before),
        "equal": packed(knots.at_or_below - knots.below),
        "means": [
            {"key": key, "value": name, "mean": mean, "n": n, "squares": means.squares[name]}
            for key, means in metric_description.means.items()
            for name, (mean, n) in means.of.items()
        ],
        "tail": [vars(extreme) for extreme in metric_description.tail],
    }
    if metric_description.replicates is not None:
        row |= _resampled(metric_description.replicates, knots)
    if (track := metric_description.track) is not None:
        row |= {"series_time": pl.Series(track.time), "series_mean": pl.Series(track.value)}
        row |= {"series_low": pl.Series(track.low), "series_high": pl.Series(track.high), "series_step": track.step}
    if (dots := metric_description.dots) is not None:
        row |= {"dot_time": pl.Series(dots.time), "dot_value": pl.Series(dots.value), "dot_step": dots.step}
    return {name: row.get(name) for name in SCHEMA}


def _resampled(replicates: Replicates, knots: Knots) -> dict[str, Any]:
    """The resamples, or their input."""
    row: dict[str, Any] = {
        "resampled_knot": packed(np.diff(replicates.places, prepend=0)),
        "resampled_bundles": replicates.coarse,
    }
    if (drawn := replicates.drawn) is not None:
        cells = {"bundle_rows": packed(drawn.rows), "bundle_cells": packed(drawn.cells)}
        return row | cells | {"block_length": drawn.block_length}
    less = np.diff(replicates.counts, axis=1, prepend=0) - _own(replicates.places, knots)
    return row | {"resampled": packed(less.T.ravel())}


def _own(places: IntArray, knots: Knots) -> IntArray:
    """The run's own samples between each of some knots and the previous one."""
    return np.diff(knots.at_or_below[places], prepend=0)


class Descriptions:
    """The descriptions of a run's metrics, each unpacked from the table on demand.

    Args:
        frame: as `to_frame` made it.
        seed: the run's.
    """

    def __init__(self, frame: pl.DataFrame, seed: int) -> None:
        self._seed = seed
        self._frame = frame
        columns = {name: frame.get_column(name) for name in SCHEMA}
        # A list of floats is used as an array; every other cell is read faster from a Python list.
        self._columns: Mapping[str, Sequence[Any] | pl.Series] = {
            name: column if column.dtype == _FLOATS else column.to_list() for name, column in columns.items()
        }
        self._row_of = {metric_id: row for row, metric_id in enumerate(self._columns["metric_id"])}

    def of(self, metric_id: str) -> MetricDescription:
        """The description of a metric of the run's catalogue."""
        row = self._row_of[metric_id]

        def cell(column: str) -> Any:
            return self._columns[column][row]

        equal, between = unpacked(cell("equal")), unpacked(cell("between"))
        at_or_below = np.cumsum(equal + between)
        knots = Knots(unpacked_floats(cell("knot")), at_or_below - equal, at_or_below)
        return MetricDescription(
            metric_id=metric_id,
            rows=cell("rows"),
            mean=cell("mean"),
            squares=cell("squares"),
            knots=knots,
            replicates=_replicates(cell, knots, self._seed),
            track=_track(cell),
            dots=_dots(cell),
            means=_means(cell("means")),
            tail=_tail(cell("tail")),
        )

    def row(self, metric_id: str) -> pl.DataFrame:
        """The same as one row of the table."""
        return self._frame[self._row_of[metric_id]]

    def tail(self, metric_id: str) -> list[Extreme]:
        """The most extreme samples of a metric, without the rest of its description, which takes long to unpack."""
        return _tail(self._columns["tail"][self._row_of[metric_id]])


def _tail(extremes: Iterable[Mapping[str, Any]]) -> list[Extreme]:
    return [Extreme(**extreme) for extreme in extremes]


def _replicates(result: Callable[[str], Any], knots: Knots, seed: int) -> Replicates | None:
    if result("resampled_knot") is None:
        return None
    places = np.cumsum(unpacked(result("resampled_knot")))
    if result("resampled") is not None:
        less = unpacked(result("resampled")).reshape(len(places), BAND_RESAMPLES).T
        return Replicates(places, np.cumsum(less + _own(places, knots), axis=1), result("resampled_bundles"))
    drawn = Drawn(unpacked(result("bundle_rows")), unpacked(result("bundle_cells")), result("block_length"))
    rng = generator(seed, _BANDS, result("metric_id"))
    return Replicates(places, partial(drawn.counts, len(places), rng), result("resampled_bundles"), drawn)


def _track(result: Callable[[str], Any]) -> Track | None:
    if result("series_time") is None:
        return None
    time, mean, low, high = (result(f"series_{name}").to_numpy() for name in ("time", "mean", "low", "high"))
    return Track(time, mean, low, high, result("series_step"))


def _dots(result: Callable[[str], Any]) -> Dots | None:
    if result("dot_time") is None:
        return None
    return Dots(result("dot_time").to_numpy(), result("dot_value").to_numpy(), result("dot_step"))


def _means(rows: Iterable[Mapping[str, Any]]) -> dict[str, Means]:
    by_key: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_key.setdefault(row["key"], []).append(row)
    return {
        key: Means(
            {row["value"]: (row["mean"], row["n"]) for row in result},
            {row["value"]: row["squares"] for row in result},
            sum(row["n"] for row in result) - len(result),
        )
        for key, result in by_key.items()
    }
