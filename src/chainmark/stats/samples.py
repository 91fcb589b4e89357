"""Samples for statistics: one population at a time, one column at a time, in one total order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl

from chainmark.core.metric import Population
from chainmark.stats.centiles import FloatArray, IntArray

_CHUNK_ROWS = 1 << 18  # number compared at a time: bounds the memory
_CACHED_BYTES = 1 << 19  # of a compressed file that is kept in memory
_PLACE = "place in the file"  # no column of samples has a blank in its name


class SampleSource(Protocol):
    """A source of samples."""

    def samples(self, population_id: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Those of the named columns (None: all) that the population has, with all of its rows in order.

        An empty frame when there is no such population.
        """


@dataclass(frozen=True)
class FrameSamples:
    """Samples held in memory, per population id."""

    frames: Mapping[str, pl.DataFrame]

    def samples(self, population_id: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """See `SampleSource`."""
        frame = self.frames.get(population_id, pl.DataFrame())
        if columns is None:
            return frame
        present = [name for name in columns if name in frame.columns]
        return frame[present] if present else pl.DataFrame()


@dataclass(frozen=True)
class ParquetSamples:
    """Samples in a folder, ``<population>.parquet`` each, which must not change meanwhile.

    A column is read on demand, and not cached: a hundred of them would not fit in memory. A small file is cached
    completely, because opening it for every column costs more than its columns.
    """

    folder: Path
    _small: dict[str, pl.DataFrame] = field(default_factory=dict, compare=False, repr=False)

    def samples(self, population_id: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """See `SampleSource`."""
        path = self.folder / f"{population_id}.parquet"
        if not path.is_file():
            return pl.DataFrame()
        if path.stat().st_size > _CACHED_BYTES:
            return _read(path, columns)
        if population_id not in self._small:
            self._small[population_id] = pl.read_parquet(path)
        return FrameSamples(self._small).samples(population_id, columns)


@dataclass(frozen=True)
class OrderedSource:
    """A source whose populations are sorted once, for all consumers of sorted samples."""

    source: SampleSource
    _known: dict[str, OrderedSamples] = field(default_factory=dict, compare=False, repr=False)

    def samples(self, population_id: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """See `SampleSource`."""
        return self.source.samples(population_id, columns)

    def ordered(self, population: Population, metric_ids: Sequence[str]) -> OrderedSamples:
        """The sorted samples of a population; its name is unique."""
        if population.id not in self._known:
            self._known[population.id] = OrderedSamples(self.source, population, metric_ids)
        return self._known[population.id]


def ordered_source(samples: Mapping[str, pl.DataFrame] | SampleSource) -> OrderedSource:
    """Frames in memory, or any other source, as one that sorts each population once."""
    source = FrameSamples(samples) if isinstance(samples, Mapping) else samples
    return source if isinstance(source, OrderedSource) else OrderedSource(source)


def _read(path: Path, columns: Sequence[str] | None) -> pl.DataFrame:
    if columns is None:
        return pl.read_parquet(path)
    present = pl.read_parquet_schema(path)
    return pl.read_parquet(path, columns=[name for name in columns if name in present])


def _is_strictly_ascending(keys: pl.DataFrame) -> bool:
    """Whether every row comes after the previous one by the columns in order; rows with nulls never do."""
    if any(series.null_count() for series in keys):
        return False

    def later(rest: pl.Expr, name: str) -> pl.Expr:
        own, before = pl.col(name), pl.col(name).shift(1)
        return (own > before) | ((own == before) & rest)

    ascending = reduce(later, reversed(keys.columns), pl.lit(value=False)).slice(1).all()
    parts = (keys.slice(start, _CHUNK_ROWS + 1) for start in range(0, keys.height, _CHUNK_ROWS))
    return all(bool(part.select(ascending).item()) for part in parts)


def _tied(ordered: pl.DataFrame) -> IntArray:
    """Indices of the rows that equal the previous or next row in every column."""
    same = ordered.select(pl.all_horizontal(pl.all().eq_missing(pl.all().shift(1)))).to_series().to_numpy().copy()
    same[:1] = False
    return np.flatnonzero(same | np.append(same[1:], False))


class OrderedSamples:
    """The rows of one population by time, then keys, then values: any permutation of them gives the same columns.

    Only the permutation is stored, and not even that if the rows are sorted already.

    Args:
        source: of the samples.
        population: its keys and time key.
        metric_ids: the columns of values; they break ties between rows with equal keys.
    """

    def __init__(self, source: SampleSource, population: Population, metric_ids: Sequence[str]) -> None:
        self._source = source
        self._population_id = population.id
        wanted = [population.time_key] if population.time_key else []
        wanted = list(dict.fromkeys([*wanted, *population.keys]))
        keys = source.samples(population.id, wanted)
        if keys.width == 0:  # without a key, only the values themselves can order the rows
            wanted = list(metric_ids)
            keys = source.samples(population.id, wanted)
        self._by = [name for name in wanted if name in keys.columns]
        keys = keys.select(self._by)
        self.height = keys.height
        self._order = None if keys.height < 2 or _is_strictly_ascending(keys) else self._sorted(keys, metric_ids)

    def _sorted(self, keys: pl.DataFrame, metric_ids: Sequence[str]) -> IntArray:
        ordered = keys.with_row_index(_PLACE).sort(self._by, nulls_last=True, maintain_order=True)
        order = ordered.get_column(_PLACE).cast(pl.Int64).to_numpy().copy()
        tied = _tied(ordered.drop(_PLACE))
        if len(tied) > 0:
            rows = keys[order[tied]].with_columns(pl.Series(_PLACE, order[tied]))
            for name in metric_ids:
                values = self._source.samples(self._population_id, [name])
                rows = rows.with_columns(values[order[tied]]) if values.width and name not in self._by else rows
            by = [*self._by, *(name for name in metric_ids if name in rows.columns and name not in self._by)]
            order[tied] = rows.sort(by, nulls_last=True, maintain_order=True).get_column(_PLACE).to_numpy()
        return order

    @property
    def as_stored(self) -> bool:
        """Whether the rows are sorted already."""
        return self._order is None

    def keys(self) -> pl.DataFrame:
        """The key columns in total order, time first; read again each time."""
        return self._read(self._by).select(self._by)

    def column(self, name: str) -> FloatArray | None:
        """A column in total order, NaN if it has no finite value; None when the samples have no such column.

        Args:
            name: a metric's ID, or a numeric key.

        Returns:
            Shape (height,), in the metric's unit; read-only.
        """
        frame = self._source.samples(self._population_id, [name])
        if frame.width == 0:
            return None
        # Without a copy, if possible: columns are large. Missing values become NaN.
        values: FloatArray = frame.to_series().cast(pl.Float64).to_numpy()
        if self._order is not None:
            values = values[self._order]
        infinite = np.isinf(values)
        return np.where(infinite, np.nan, values) if bool(infinite.any()) else values

    def _read(self, columns: Sequence[str]) -> pl.DataFrame:
        frame = self._source.samples(self._population_id, columns)
        return frame if self._order is None or frame.width == 0 else frame[self._order]
