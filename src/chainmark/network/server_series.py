"""The data read about a server under load: series of values with their times, and their limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import polars as pl

from chainmark.network.run_queue import NS

# A counter's rate over a period needs readings around most of it.
_COVERED_SHARE = 0.5
# Kinds of readings: a value at its time; a counter, reported as a rate; a number of waiting tasks.
Sort = Literal["gauge", "counter", "waiting"]

FloatArray = np.ndarray[tuple[int], np.dtype[np.float64]]
SERVER_SCHEMA: dict[str, type[pl.DataType]] = {
    "time_ns": pl.Int64,
    "source": pl.String,
    "series": pl.String,
    "unit": pl.String,
    "value": pl.Float64,
}


@dataclass(frozen=True)
class Name:
    """Identifies a series of a source.

    Attributes:
        source: "process", "cgroup", "postgres", or a scrape's name.
        series: its own name, with its labels.
        unit: of the reported values; for a counter that of its rate: "cores", "bytes/s", "fraction".
        sort: the kind of reading.
    """

    source: str
    series: str
    unit: str = ""
    sort: Sort = "gauge"


@dataclass(frozen=True)
class Readings:
    """One series in chronological order.

    Attributes:
        times_ns: wall time, shape (n,).
        values: shape (n,); for a counter since its first reading, so that they never fall.
    """

    name: Name
    times_ns: FloatArray
    values: FloatArray

    def mean(self, begin_ns: float, end_ns: float) -> float | None:
        """Over a period: for a counter its rate per second; None if too little of it was read."""
        if self.name.sort == "counter":
            known_ns = max(begin_ns, self.times_ns[0]), min(end_ns, self.times_ns[-1])
            return self._rate(*known_ns) if known_ns[1] - known_ns[0] >= _COVERED_SHARE * (end_ns - begin_ns) else None
        inside = self._inside(begin_ns, end_ns)
        return float(inside.mean()) if len(inside) else None

    def highest(self, begin_ns: float, end_ns: float) -> float | None:
        """Over a period: the maximum value, or the maximum rate between two readings."""
        if self.name.sort == "counter":
            times, values = self.rates()
            inside = values[(times >= begin_ns) & (times <= end_ns)]
        else:
            inside = self._inside(begin_ns, end_ns)
        return float(inside.max()) if len(inside) else None

    def stored_points(self) -> tuple[FloatArray, FloatArray]:
        """Times and values as stored: for a counter the rates per second since the previous reading."""
        return self.rates() if self.name.sort == "counter" else (self.times_ns, self.values)

    def rates(self) -> tuple[FloatArray, FloatArray]:
        """A counter's rates per second, each at the later of its two readings."""
        took_s = np.diff(self.times_ns) / NS
        return self.times_ns[1:], np.divide(np.diff(self.values), np.maximum(took_s, 1.0 / NS))

    def _inside(self, begin_ns: float, end_ns: float) -> FloatArray:
        return self.values[(self.times_ns >= begin_ns) & (self.times_ns <= end_ns)]

    def _rate(self, begin_ns: float, end_ns: float) -> float | None:
        if end_ns <= begin_ns:
            return None
        first, last = np.interp([begin_ns, end_ns], self.times_ns, self.values)
        return float((last - first) / (end_ns - begin_ns) * NS)


@dataclass
class SeriesRecorder:
    """Stores readings as they arrive; several threads may add to it, each for its own source."""

    _rows: dict[Name, tuple[list[int], list[float]]] = field(default_factory=dict)

    def add(self, time_ns: int, name: Name, value: float) -> None:
        """One reading."""
        times, values = self._rows.setdefault(name, ([], []))
        times.append(time_ns)
        values.append(value)

    def last(self, source: str, series: str) -> float | None:
        """The last reading of a series; from any thread."""
        rows = list(self._rows.items())
        known = [values for name, (_, values) in rows if (name.source, name.series) == (source, series)]
        return known[0][-1] if known and known[0] else None

    def series(self) -> list[Readings]:
        """All readings, by source and name; values that are not numbers are omitted, as is a counter read once."""
        reading_series = []
        for name, (times, values) in sorted(self._rows.items(), key=lambda row: (row[0].source, row[0].series)):
            numbers = np.array(values, dtype=np.float64)
            known = np.isfinite(numbers)
            retained, times_ns = numbers[known], np.array(times, dtype=np.float64)[known]
            if name.sort == "counter":
                retained = _since_the_first(retained)
            if len(retained) > (name.sort == "counter"):
                reading_series.append(Readings(name, times_ns, retained))
        return reading_series


def _since_the_first(values: FloatArray) -> FloatArray:
    """The growth of a counter; one that fell has restarted."""
    if not len(values):
        return values
    steps = np.diff(values, prepend=values[0])
    return np.cumsum(np.where(steps < 0.0, values, steps))


@dataclass(frozen=True)
class Resource:
    """A resource that a server uses, with its limit.

    Attributes:
        label: its name in a sentence: "the server's CPU".
        limit: a number, or a series that was read at the same time; None: unknown.
        limit_is: the origin of the limit: "the cores that it may use".
        is_cpu: CPU time, which other processes may use as well.
    """

    label: str
    used: Readings
    limit: float | Readings | None = None
    limit_is: str = ""
    is_cpu: bool = False

    def limit_over(self, begin_ns: float, end_ns: float) -> float | None:
        """The limit over a period; None: unknown."""
        limit = self.limit.mean(begin_ns, end_ns) if isinstance(self.limit, Readings) else self.limit
        return limit if limit is not None and limit > 0.0 else None

    def limited(self, limit: float, limit_is: str) -> Resource:
        """The same with a limit that became known later."""
        return replace(self, limit=limit, limit_is=limit_is)


@dataclass(frozen=True)
class Statement:
    """A database's statement: its cost so far at each reading, and its text without values."""

    text: str
    seconds: Readings
    calls: Readings


@dataclass(frozen=True)
class SourceState:
    """One source: its description, its numbers of readings and of failures; ``why`` is the last failure's reason."""

    name: str
    what: str
    read: int
    missed: int
    why: str = ""


@dataclass(frozen=True)
class Watched:
    """All readings of one server."""

    sources: tuple[SourceState, ...] = ()
    series: tuple[Readings, ...] = ()
    resources: tuple[Resource, ...] = ()
    statements: tuple[Statement, ...] = ()

    def frame(self) -> pl.DataFrame:
        """All series as one table, in chronological order: see `SERVER_SCHEMA`."""
        frames = [_frame(reading_series) for reading_series in self.series]
        whole = pl.concat(frames) if frames else pl.DataFrame(schema=SERVER_SCHEMA)
        return whole.sort("time_ns", "source", "series")


def _frame(reading_series: Readings) -> pl.DataFrame:
    times_ns, values = reading_series.stored_points()
    name = reading_series.name
    return pl.DataFrame({"time_ns": times_ns.astype(np.int64), "value": values}).select(
        pl.col("time_ns"),
        pl.lit(name.source).alias("source"),
        pl.lit(name.series).alias("series"),
        pl.lit(name.unit).alias("unit"),
        pl.col("value"),
    )


def by_name(series: Iterable[Readings], source: str) -> Mapping[str, Readings]:
    """The series of one source."""
    return {
        reading_series.name.series: reading_series for reading_series in series if reading_series.name.source == source
    }
