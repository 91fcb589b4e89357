"""Chart data: computed here once, drawn the same way by every renderer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from chainmark.compare.inputs import LoadedRun
from chainmark.compare.wording import counted
from chainmark.core.comparison import ChartData, ChartKind, Line
from chainmark.core.metric import Chart, Kind, Metric, Population
from chainmark.stats.bootstrap import Multiplicities, generator, multiplicities, resampled_centiles
from chainmark.stats.centiles import FloatArray, IntArray, centile, finite, is_estimable
from chainmark.stats.intervals import Working, welch
from chainmark.stats.summarise import column
from chainmark.stats.units import Units, block_length, unit_sums, units_of

BAND_RESAMPLES = 200
_BAND_CHUNK = 10  # resamples held at a time: bounds the memory
_TAIL = (0.999, 1.0)
_POOLED_POINTS = 398  # and the two of the tail
_RUN_POINTS = 198
_SHIFT_FRACTIONS = tuple(round(0.01 * step, 2) for step in range(1, 100))
_SERIES_POINTS = 1000
_SCATTER_POINTS = 20_000
_DIGITS = 6  # of a coordinate: more than a screen or a page can show


@dataclass(frozen=True)
class ChartSide:
    """One side as charts see it."""

    name: str
    label: str
    runs: list[LoadedRun]


def _rounded(values: FloatArray | Sequence[float]) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values]


def _fractions(points: int) -> FloatArray:
    return np.unique(np.concatenate([np.linspace(0.0, 1.0, points), _TAIL]))


def _values(run: LoadedRun, metric: Metric) -> FloatArray:
    values = column(run.samples(metric.population), metric.id)
    return np.sort(finite(values)) if values is not None else np.empty(0)


def pooled(runs: Sequence[LoadedRun], metric: Metric) -> FloatArray:
    """All samples of a metric in the given runs, shape (n,), ascending, in its unit."""
    return np.sort(np.concatenate([np.empty(0), *[_values(run, metric) for run in runs]]))


@dataclass(frozen=True)
class _Part:
    """One run's finite values, and the units in which they are resampled."""

    values: FloatArray
    unit_of_value: IntArray
    units: int
    block_length: float


def _part(values: FloatArray, units: Units) -> _Part:
    kept = np.isfinite(values)
    length = block_length([unit_sums(values, units)], ordered=units.ordered)
    return _Part(values[kept], units.of_row[kept], units.count, length)


class Resampler:
    """Quantiles of a side's pooled samples, resampled: runs first, then blocks of time within each run.

    Args:
        side: the runs.
        metric: whose samples.
        population: of the metric.
        seed: with the side's name and the metric's id it decides every resample.
    """

    def __init__(self, side: ChartSide, metric: Metric, population: Population, seed: int) -> None:
        self._rng = generator(seed, "charts", side.name, metric.id)
        self._parts: list[_Part] = []
        for run in side.runs:
            frame = run.samples(metric.population)
            values = column(frame, metric.id)
            if values is not None and bool(np.isfinite(values).any()):
                self._parts.append(_part(values, units_of(frame, population)))

    def quantiles(self, fractions: FloatArray) -> FloatArray:
        """Replicates, shape (resamples, fractions), in the metric's unit."""
        values = np.concatenate([part.values for part in self._parts])
        order = np.argsort(values, kind="stable")
        wanted = [float(fraction) for fraction in fractions]
        chunks = []
        for _ in range(BAND_RESAMPLES // _BAND_CHUNK):
            weights = np.take(self._weights(), order, axis=1)
            chunks.append(resampled_centiles(weights, values[order], wanted))
        return np.concatenate(chunks)

    def _weights(self) -> Multiplicities:
        """Multiplicities of the pooled values for a few resamples, shape (chunk, n): runs drawn, then blocks."""
        count = len(self._parts)
        drawn = self._rng.integers(0, count, size=(_BAND_CHUNK, count))
        weights = []
        for index, part in enumerate(self._parts):
            chunks = list(multiplicities(self._rng, part.units, part.block_length, _BAND_CHUNK))
            times = (drawn == index).sum(axis=1, dtype=np.int32)[:, None]
            weights.append(np.take(np.concatenate(chunks), part.unit_of_value, axis=1) * times)
        return np.concatenate(weights, axis=1)


def _band(replicates: FloatArray) -> tuple[FloatArray, FloatArray]:
    ordered = np.sort(replicates, axis=0)
    last = len(ordered) - 1
    return ordered[round(0.05 * last)], ordered[round(0.95 * last)]


def _band_note(sides: Sequence[ChartSide]) -> str:
    seed_note = f"{BAND_RESAMPLES} seeded resamples"
    if any(len(side.runs) < 2 for side in sides):
        return f"band: pointwise 90 %, blocks of time within the run ({seed_note}); it holds no noise between runs"
    return f"band: pointwise 90 %, runs resampled, then blocks of time within each ({seed_note})"


def _unit_label(metric: Metric) -> str:
    return f"{metric.label}, {metric.unit}" if metric.unit not in {"", "1"} else metric.label


def _pooled_line(side: ChartSide, values: FloatArray, resampler: Resampler) -> Line:
    fractions = _fractions(min(_POOLED_POINTS, max(2, len(values))))
    low, high = _band(resampler.quantiles(fractions))
    points = np.array([centile(values, float(fraction)) for fraction in fractions])
    # Replicates of an extreme never pass it: the band is widened to hold its own line.
    return Line(
        side=side.name,
        run_id=None,
        label=side.label,
        x=_rounded(points),
        y=_rounded(fractions),
        low=_rounded(np.minimum(low, points)),
        high=_rounded(np.maximum(high, points)),
    )


def _run_line(side: ChartSide, run: LoadedRun, number: int, values: FloatArray) -> Line:
    fractions = _fractions(min(_RUN_POINTS, max(2, len(values))))
    return Line(
        side=side.name,
        run_id=run.run_id,
        label=f"{side.label} run {number}",
        x=_rounded([centile(values, float(fraction)) for fraction in fractions]),
        y=_rounded(fractions),
    )


def cdf_chart(sides: Sequence[ChartSide], metric: Metric, population: Population, seed: int) -> ChartData | None:
    """Both sides' distributions with a band, and one thin line a run; None without samples.

    Args:
        sides: baseline and candidate.
        metric: whose samples.
        population: of the metric.
        seed: of the bands.
    """
    lines = []
    longest = 0
    for side in sides:
        values = pooled(side.runs, metric)
        longest = max(longest, len(values))
        if len(values) == 0:
            continue
        lines.append(_pooled_line(side, values, Resampler(side, metric, population, seed)))
        each = [(number, run, _values(run, metric)) for number, run in enumerate(side.runs, start=1)]
        if len(side.runs) > 1:
            lines += [_run_line(side, run, number, own) for number, run, own in each if len(own)]
    if not lines:
        return None
    thinned = f"; reduced to {_POOLED_POINTS + 2} quantiles a line at most" if longest > _POOLED_POINTS else ""
    return ChartData(
        id=f"{metric.id}-cdf",
        metric_id=metric.id,
        kind=ChartKind.CDF,
        title=f"{metric.label}: distribution",
        x_label=_unit_label(metric),
        y_label="cumulative share",
        lines=lines,
        note=_band_note(sides) + thinned,
    )


Shift = tuple[float, float, float]


def _shift_by_runs(left: list[FloatArray], right: list[FloatArray], fraction: float, *, ratio: bool) -> Shift:
    transform: Callable[[float], float] = math.log if ratio else float
    sides = [[transform(centile(values, fraction)) for values in side] for side in (left, right)]
    contrast = welch(sides[0], sides[1], Working.LOG if ratio else Working.DIFFERENCE)
    found = (contrast.change, contrast.low, contrast.high)
    if not ratio:
        return found
    # Two runs a side can have an interval that no axis can hold; beyond e^20 it says "anything".
    change, low, high = (math.expm1(min(max(value, -20.0), 20.0)) for value in found)
    return change, low, high


def _shift_by_bootstrap(
    replicates: tuple[FloatArray, FloatArray],
    values: tuple[FloatArray, FloatArray],
    fractions: FloatArray,
    *,
    ratio: bool,
) -> list[Shift]:
    left = np.array([centile(values[0], float(fraction)) for fraction in fractions])
    right = np.array([centile(values[1], float(fraction)) for fraction in fractions])
    change = right / left - 1.0 if ratio else right - left
    moved = replicates[1] / replicates[0] - 1.0 if ratio else replicates[1] - replicates[0]
    low, high = _band(moved)
    return [(float(c), float(a), float(b)) for c, a, b in zip(change, low, high, strict=True)]


def shift_chart(sides: Sequence[ChartSide], metric: Metric, population: Population, seed: int) -> ChartData | None:
    """The change of every quantile from p1 to p99 that each run can estimate; None when there is none.

    Args:
        sides: baseline and candidate.
        metric: whose samples.
        population: of the metric.
        seed: of the resamples, where a side has one run.
    """
    runs = [[values for run in side.runs if len(values := _values(run, metric))] for side in sides]
    if not all(runs):
        return None
    smallest = min(len(values) for side in runs for values in side)
    fractions = np.array([fraction for fraction in _SHIFT_FRACTIONS if is_estimable(smallest, fraction)])
    if len(fractions) == 0:
        return None
    ratio = metric.kind is Kind.POSITIVE and min(float(values[0]) for side in runs for values in side) > 0.0
    if min(len(side) for side in runs) > 1:
        shifts = [_shift_by_runs(runs[0], runs[1], float(fraction), ratio=ratio) for fraction in fractions]
        how = f"90 % interval between {len(runs[0])} + {len(runs[1])} runs (Welch), quantile by quantile"
    else:
        drawn = [Resampler(side, metric, population, seed).quantiles(fractions) for side in sides]
        both = (pooled(sides[0].runs, metric), pooled(sides[1].runs, metric))
        shifts = _shift_by_bootstrap((drawn[0], drawn[1]), both, fractions, ratio=ratio)
        how = _band_note(sides)
    line = Line(
        side="",
        run_id=None,
        label=f"{sides[1].label} against {sides[0].label}",
        x=_rounded(fractions),
        y=_rounded([shift[0] for shift in shifts]),
        low=_rounded([shift[1] for shift in shifts]),
        high=_rounded([shift[2] for shift in shifts]),
    )
    return ChartData(
        id=f"{metric.id}-shift",
        metric_id=metric.id,
        kind=ChartKind.SHIFT,
        title=f"{metric.label}: change of its quantiles",
        x_label="quantile",
        y_label="relative change" if ratio else f"change, {metric.unit}",
        lines=[line],
        note=how,
    )


@dataclass(frozen=True)
class _Track:
    """A metric over time: arrays of one length, ascending in time; ``low`` and ``high`` are the range of each value."""

    time: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray

    def grouped(self, starts: IntArray) -> _Track:
        """Means and ranges of consecutive groups, given by the index at which each one starts.

        The sums run in the order of the rows: a parallel group-by would make the last bit depend on the threads.
        """
        sizes = np.diff(np.append(starts, len(self.time)))
        return _Track(
            np.add.reduceat(self.time, starts) / sizes,
            np.add.reduceat(self.value, starts) / sizes,
            np.minimum.reduceat(self.low, starts),
            np.maximum.reduceat(self.high, starts),
        )


def _over_time(run: LoadedRun, metric: Metric, population: Population) -> _Track | None:
    """One value per time value, averaged over the fixed keys; None without time or samples."""
    frame = run.samples(population.id)
    values = column(frame, metric.id)
    times = column(frame, population.time_key) if population.time_key else None
    if values is None or times is None:
        return None
    kept = np.isfinite(values) & np.isfinite(times)
    values, times = values[kept], times[kept]
    if len(values) == 0:
        return None
    track = _Track(times, values, values, values)
    if not population.average_over:
        return track
    averaged = track.grouped(np.flatnonzero(np.diff(times, prepend=np.nan) != 0.0))
    return replace(averaged, time=np.unique(times))


def _thinned(track: _Track, points: int) -> tuple[_Track, int]:
    """Means of k neighbours with the range over them, and k."""
    step = math.ceil(len(track.time) / points)
    return (track.grouped(np.arange(0, len(track.time), step)), step) if step > 1 else (track, 1)


def series_chart(sides: Sequence[ChartSide], metric: Metric, population: Population) -> ChartData | None:
    """The metric over time, one line a run; None without a time key or samples.

    Args:
        sides: baseline and candidate.
        metric: whose samples.
        population: of the metric.
    """
    lines, widest = [], 1
    for side in sides:
        for number, run in enumerate(side.runs, start=1):
            track = _over_time(run, metric, population)
            if track is None:
                continue
            track, step = _thinned(track, _SERIES_POINTS)
            widest = max(widest, step)
            ranged = bool(population.average_over) or step > 1
            lines.append(
                Line(
                    side=side.name,
                    run_id=run.run_id,
                    label=f"{side.label} run {number}" if len(side.runs) > 1 else side.label,
                    x=_rounded(track.time),
                    y=_rounded(track.value),
                    low=_rounded(track.low) if ranged else None,
                    high=_rounded(track.high) if ranged else None,
                )
            )
    if not lines:
        return None
    notes = []
    if population.average_over:
        notes.append(f"mean over {' and '.join(population.average_over)}; the band is their range")
    if widest > 1:
        notes.append(f"thinned: up to {widest} neighbours are averaged to one point, and the band is their range")
    return ChartData(
        id=f"{metric.id}-series",
        metric_id=metric.id,
        kind=ChartKind.SERIES,
        title=f"{metric.label} over time",
        x_label="seconds since the window's start",
        y_label=_unit_label(metric),
        lines=lines,
        note="; ".join(notes),
    )


def _dots(frame: pl.DataFrame, time_key: str, metric_id: str) -> tuple[FloatArray, FloatArray, int]:
    """Times and values of at most 20,000 dots, and k where every k-th one is kept (the extremes always)."""
    values = column(frame, metric_id)
    times = column(frame, time_key)
    if values is None or times is None:
        return np.empty(0), np.empty(0), 1
    kept = np.flatnonzero(np.isfinite(values) & np.isfinite(times))
    step = math.ceil(len(kept) / (_SCATTER_POINTS - 2)) if len(kept) > _SCATTER_POINTS else 1
    if step > 1:
        extremes = kept[[int(values[kept].argmin()), int(values[kept].argmax())]]
        kept = np.unique(np.concatenate([kept[::step], extremes]))
    return times[kept], values[kept], step


def scatter_chart(sides: Sequence[ChartSide], metric: Metric, population: Population) -> ChartData | None:
    """One dot a sample over time; None without a time key or samples.

    Args:
        sides: baseline and candidate.
        metric: whose samples.
        population: of the metric.
    """
    if population.time_key is None:
        return None
    lines, widest = [], 1
    for side in sides:
        for number, run in enumerate(side.runs, start=1):
            times, values, step = _dots(run.samples(population.id), population.time_key, metric.id)
            if len(times) == 0:
                continue
            widest = max(widest, step)
            label = f"{side.label} run {number}" if len(side.runs) > 1 else side.label
            lines.append(Line(side=side.name, run_id=run.run_id, label=label, x=_rounded(times), y=_rounded(values)))
    if not lines:
        return None
    thinned = f"thinned to one sample in {widest} at least, and the extremes" if widest > 1 else ""
    return ChartData(
        id=f"{metric.id}-scatter",
        metric_id=metric.id,
        kind=ChartKind.SCATTER,
        title=f"{metric.label}: every one of the {population.label}",
        x_label="seconds since the window's start",
        y_label=_unit_label(metric),
        lines=lines,
        note=thinned or f"one dot a sample, {counted(sum(len(line.x) for line in lines), 'dot')}",
    )


def charts_of(sides: Sequence[ChartSide], metric: Metric, population: Population, seed: int) -> list[ChartData]:
    """All charts that a metric asks for; a CDF brings the shift of its quantiles.

    Args:
        sides: baseline and candidate.
        metric: says which charts.
        population: of the metric.
        seed: of the bands.
    """
    made: list[ChartData | None] = []
    for kind in metric.charts:
        if kind is Chart.CDF:
            made += [cdf_chart(sides, metric, population, seed), shift_chart(sides, metric, population, seed)]
        elif kind is Chart.SERIES:
            made.append(series_chart(sides, metric, population))
        else:
            made.append(scatter_chart(sides, metric, population))
    return [chart for chart in made if chart is not None]
