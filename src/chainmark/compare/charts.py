"""Chart data: computed here once, drawn the same way by every renderer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from chainmark.compare.bands import BAND_RESAMPLES, Resampler, band
from chainmark.compare.inputs import Instants
from chainmark.compare.samples import ChartSide, RunSamples
from chainmark.core import units
from chainmark.core.comparison import ChartData, ChartKind, Line
from chainmark.core.metric import Chart, Kind, Metric, Population
from chainmark.stats.centiles import FloatArray, IntArray, centiles
from chainmark.stats.estimable import has_rank
from chainmark.stats.intervals import Working, welch

_TAIL = (0.999, 1.0)
_POOLED_POINTS = 398  # and the two of the tail
_RUN_POINTS = 198
_SHIFT_FRACTIONS = tuple(round(0.01 * step, 2) for step in range(1, 100))
_SERIES_POINTS = 1000
_SCATTER_POINTS = 20_000
_DIGITS = 6  # of a coordinate: more than a screen or a page can show


def _rounded(values: FloatArray | Sequence[float]) -> list[float]:
    plain = values.tolist() if isinstance(values, np.ndarray) else values  # formatted sooner than those of an array
    return [units.rounded(value, _DIGITS) for value in plain]


def _fractions(points: int) -> FloatArray:
    return np.unique(np.concatenate([np.linspace(0.0, 1.0, points), _TAIL]))


def _band_note(resamplers: Sequence[Resampler]) -> str:
    seed_note = f"{BAND_RESAMPLES} seeded resamples"
    if any(resampler.in_bundles for resampler in resamplers):
        seed_note += " of bundles of neighbouring units"
    if any(resampler.runs < 2 for resampler in resamplers):
        return f"band: pointwise 90 %, blocks of time within the run ({seed_note}); it holds no noise between runs"
    return f"band: pointwise 90 %, runs resampled, then blocks of time within each ({seed_note})"


def _unit_label(metric: Metric) -> str:
    return f"{metric.label}, {metric.unit}" if metric.unit not in {"", "1"} else metric.label


def _pooled_line(side: ChartSide, values: FloatArray, resampler: Resampler) -> Line:
    fractions = _fractions(min(_POOLED_POINTS, max(2, len(values))))
    low, high = band(resampler.quantiles(fractions))
    points = centiles(values, fractions)
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


def _run_line(side: ChartSide, number: int, own: RunSamples) -> Line:
    fractions = _fractions(min(_RUN_POINTS, max(2, len(own.ascending))))
    return Line(
        side=side.name,
        run_id=own.run.run_id,
        label=f"{side.label} run {number}",
        x=_rounded(centiles(own.ascending, fractions)),
        y=_rounded(fractions),
    )


def cdf_chart(sides: Sequence[ChartSide], metric: Metric, resamplers: Sequence[Resampler]) -> ChartData | None:
    """Both sides' distributions with a band, and one thin line a run; None without samples.

    Args:
        sides: baseline and candidate.
        metric: whose samples.
        resamplers: of the sides.
    """
    lines = []
    longest = 0
    for side, resampler in zip(sides, resamplers, strict=True):
        samples = side.samples(metric)
        longest = max(longest, len(samples.pooled))
        if len(samples.pooled) == 0:
            continue
        lines.append(_pooled_line(side, samples.pooled, resampler))
        if len(side.runs) > 1:
            each = enumerate(samples.runs, start=1)
            lines += [_run_line(side, number, own) for number, own in each if len(own.ascending)]
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
        note=_band_note(resamplers) + thinned,
    )


Shift = tuple[float, float, float]


def _shifts_by_runs(
    left: list[FloatArray], right: list[FloatArray], fractions: FloatArray, *, ratio: bool
) -> list[Shift]:
    sides = [np.array([centiles(values, fractions) for values in side]) for side in (left, right)]
    if ratio:
        sides = [np.log(side) for side in sides]
    both = zip(sides[0].T.tolist(), sides[1].T.tolist(), strict=True)
    return [_shift_by_runs(before, after, ratio=ratio) for before, after in both]


def _shift_by_runs(left: list[float], right: list[float], *, ratio: bool) -> Shift:
    contrast = welch(left, right, Working.LOG if ratio else Working.DIFFERENCE)
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
    left = centiles(values[0], fractions)
    right = centiles(values[1], fractions)
    change = right / left - 1.0 if ratio else right - left
    moved = replicates[1] / replicates[0] - 1.0 if ratio else replicates[1] - replicates[0]
    low, high = band(moved)
    return [(float(c), float(a), float(b)) for c, a, b in zip(change, low, high, strict=True)]


def shift_chart(sides: Sequence[ChartSide], metric: Metric, resamplers: Sequence[Resampler]) -> ChartData | None:
    """The change of every quantile from p1 to p99 that each run can estimate; None when there is none.

    Args:
        sides: baseline and candidate.
        metric: whose samples.
        resamplers: of the sides, for intervals where a side has one run.
    """
    samples = [side.samples(metric) for side in sides]
    runs = [[run.ascending for run in side.runs if len(run.ascending)] for side in samples]
    if not all(runs):
        return None
    smallest = min(len(values) for side in runs for values in side)
    fractions = np.array([fraction for fraction in _SHIFT_FRACTIONS if has_rank(smallest, fraction)])
    if len(fractions) == 0:
        return None
    ratio = metric.kind is Kind.POSITIVE and min(float(values[0]) for side in runs for values in side) > 0.0
    if min(len(side) for side in runs) > 1:
        shifts = _shifts_by_runs(runs[0], runs[1], fractions, ratio=ratio)
        how = f"90 % interval between {len(runs[0])} + {len(runs[1])} runs (Welch), quantile by quantile"
    else:
        drawn = [resampler.quantiles(fractions) for resampler in resamplers]
        both = (samples[0].pooled, samples[1].pooled)
        shifts = _shift_by_bootstrap((drawn[0], drawn[1]), both, fractions, ratio=ratio)
        how = _band_note(resamplers)
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


def _timed(own: RunSamples, population: Population) -> tuple[FloatArray, FloatArray]:
    """Times and values of the samples that have both."""
    ordered = own.run.ordered(population.id)
    times = ordered.column(population.time_key) if ordered and population.time_key and len(own.values) else None
    if times is None:
        return np.empty(0), np.empty(0)
    kept = np.isfinite(own.values) & np.isfinite(times)
    return times[kept], own.values[kept]


def _over_time(own: RunSamples, population: Population) -> _Track | None:
    """One value per time value, averaged over the fixed keys; None without time or samples."""
    instants = own.run.instants(population) if population.average_over and len(own.values) else None
    if instants is not None:
        return _at_instants(own.values, instants)
    times, values = _timed(own, population)
    if len(values) == 0:
        return None
    track = _Track(times, values, values, values)
    if not population.average_over:
        return track
    starts = np.flatnonzero(np.diff(times, prepend=np.nan) != 0.0)
    return replace(track.grouped(starts), time=times[starts])


def _at_instants(values: FloatArray, instants: Instants) -> _Track | None:
    """Means and ranges of the values of every instant that has some."""
    present = np.isfinite(values)
    if not bool(present.all()):
        values, instants = values[present], instants.of(present)
    if len(values) == 0:
        return None
    sizes = np.diff(instants.starts, append=instants.rows)
    return _Track(
        instants.times,
        np.add.reduceat(values, instants.starts) / sizes,
        np.minimum.reduceat(values, instants.starts),
        np.maximum.reduceat(values, instants.starts),
    )


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
        for number, own in enumerate(side.samples(metric).runs, start=1):
            track = _over_time(own, population)
            if track is None:
                continue
            track, step = _thinned(track, _SERIES_POINTS)
            widest = max(widest, step)
            ranged = bool(population.average_over) or step > 1
            lines.append(
                Line(
                    side=side.name,
                    run_id=own.run.run_id,
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


def _dots(own: RunSamples, population: Population) -> tuple[FloatArray, FloatArray, int]:
    """Times and values of at most 20,000 dots, and k where every k-th one is kept (the extremes always)."""
    times, values = _timed(own, population)
    if len(times) <= _SCATTER_POINTS:
        return times, values, 1
    step = math.ceil(len(times) / (_SCATTER_POINTS - 2))
    extremes = [int(values.argmin()), int(values.argmax())]
    kept = np.unique(np.concatenate([np.arange(0, len(times), step), extremes]))
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
        for number, own in enumerate(side.samples(metric).runs, start=1):
            times, values, step = _dots(own, population)
            if len(times) == 0:
                continue
            widest = max(widest, step)
            label = f"{side.label} run {number}" if len(side.runs) > 1 else side.label
            x, y = _rounded(times), _rounded(values)
            lines.append(Line(side=side.name, run_id=own.run.run_id, label=label, x=x, y=y))
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
        note=thinned or f"one dot a sample, {units.plural(sum(len(line.x) for line in lines), 'dot')}",
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
            resamplers = [Resampler(side, metric, population, seed) for side in sides]
            made += [cdf_chart(sides, metric, resamplers), shift_chart(sides, metric, resamplers)]
        elif kind is Chart.SERIES:
            made.append(series_chart(sides, metric, population))
        else:
            made.append(scatter_chart(sides, metric, population))
    return [chart for chart in made if chart is not None]
