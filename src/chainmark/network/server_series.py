"""What was read of a server while it was loaded: series of values with their times, and the limits that they have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import polars as pl

from chainmark.network.run_queue import NS

# A counter's rate over a stretch needs readings around most of it.
_COVERED_SHARE = 0.5
# What a reading is: a value of its time; something that only grows, of which the rate is told; so many that wait.
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
    """Which series of which source.

    Attributes:
        source: "process", "cgroup", "postgres", or a scrape's name.
        series: its own name, with its labels.
        unit: of the values that are told; of a counter that of its rate: "cores", "bytes/s", "fraction".
        sort: what a reading is.
    """

    source: str
    series: str
    unit: str = ""
    sort: Sort = "gauge"


@dataclass(frozen=True)
class Readings:
    """One series in the order of time.

    Attributes:
        times_ns: wall time, shape (n,).
        values: shape (n,); of a counter since its first reading, so that they never fall.
    """

    name: Name
    times_ns: FloatArray
    values: FloatArray

    def mean(self, begin_ns: float, end_ns: float) -> float | None:
        """Over a stretch of time: of a counter its rate per second; None where too little of it was read."""
        if self.name.sort == "counter":
            known_ns = max(begin_ns, self.times_ns[0]), min(end_ns, self.times_ns[-1])
            return self._rate(*known_ns) if known_ns[1] - known_ns[0] >= _COVERED_SHARE * (end_ns - begin_ns) else None
        inside = self._inside(begin_ns, end_ns)
        return float(inside.mean()) if len(inside) else None

    def highest(self, begin_ns: float, end_ns: float) -> float | None:
        """Of a stretch of time: the greatest value, or the greatest rate between two readings."""
        if self.name.sort == "counter":
            times, values = self.rates()
            inside = values[(times >= begin_ns) & (times <= end_ns)]
        else:
            inside = self._inside(begin_ns, end_ns)
        return float(inside.max()) if len(inside) else None

    def told(self) -> tuple[FloatArray, FloatArray]:
        """Times and values as they are kept: of a counter the rates per second since the reading before."""
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
    """Keeps readings as they come; may be told by several threads, each of its own source."""

    _rows: dict[Name, tuple[list[int], list[float]]] = field(default_factory=dict)

    def add(self, time_ns: int, name: Name, value: float) -> None:
        """One reading."""
        times, values = self._rows.setdefault(name, ([], []))
        times.append(time_ns)
        values.append(value)

    def last(self, source: str, series: str) -> float | None:
        """What was read last of a series; from any thread."""
        rows = list(self._rows.items())
        known = [values for name, (_, values) in rows if (name.source, name.series) == (source, series)]
        return known[0][-1] if known and known[0] else None

    def series(self) -> list[Readings]:
        """All that was read, by source and name; what is no number is left out, as is a counter read once."""
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
    """What a counter has grown by; one that fell has begun anew."""
    if not len(values):
        return values
    steps = np.diff(values, prepend=values[0])
    return np.cumsum(np.where(steps < 0.0, values, steps))


@dataclass(frozen=True)
class Resource:
    """Something that a server uses, with how much of it there is.

    Attributes:
        label: as a sentence calls it: "the server's CPU".
        limit: so much there is: a number, or what was read at the same time; None: not known.
        limit_is: where the limit is from: "the cores that it may use".
        is_cpu: processor time, of which others may have a part.
    """

    label: str
    used: Readings
    limit: float | Readings | None = None
    limit_is: str = ""
    is_cpu: bool = False

    def limit_over(self, begin_ns: float, end_ns: float) -> float | None:
        """How much there was over a stretch of time; None: not known."""
        limit = self.limit.mean(begin_ns, end_ns) if isinstance(self.limit, Readings) else self.limit
        return limit if limit is not None and limit > 0.0 else None

    def limited(self, limit: float, limit_is: str) -> Resource:
        """The same with a limit that was learnt."""
        return replace(self, limit=limit, limit_is=limit_is)


@dataclass(frozen=True)
class Statement:
    """A database's statement: what it has cost so far, read by read, and its text without values."""

    text: str
    seconds: Readings
    calls: Readings


@dataclass(frozen=True)
class SourceState:
    """One source: what it is, how often it was read, and how often it did not answer; ``why`` of the last time."""

    name: str
    what: str
    read: int
    missed: int
    why: str = ""


@dataclass(frozen=True)
class Watched:
    """All that was read of one server."""

    sources: tuple[SourceState, ...] = ()
    series: tuple[Readings, ...] = ()
    resources: tuple[Resource, ...] = ()
    statements: tuple[Statement, ...] = ()

    def frame(self) -> pl.DataFrame:
        """Everything as one table, in the order of time: see `SERVER_SCHEMA`."""
        frames = [_frame(reading_series) for reading_series in self.series]
        whole = pl.concat(frames) if frames else pl.DataFrame(schema=SERVER_SCHEMA)
        return whole.sort("time_ns", "source", "series")


def _frame(reading_series: Readings) -> pl.DataFrame:
    times_ns, values = reading_series.told()
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
