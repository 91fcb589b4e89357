"""Chart data, computed once and drawn the same way by every renderer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chainmark.compare.bands import Resampler, band
from chainmark.compare.samples import ChartSide, RunSamples
from chainmark.core import units
from chainmark.core.chart_kind import ChartKind
from chainmark.core.comparison import ChartData, ChartLine, Comparison
from chainmark.core.metric import Kind, Metric, Population
from chainmark.stats.centiles import FloatArray
from chainmark.stats.description import DIGITS, POOLED_POINTS, RUN_POINTS, SHIFT_FRACTIONS, curve_fractions
from chainmark.stats.estimable import has_rank
from chainmark.stats.intervals import Working, welch
from chainmark.stats.knots import Knots
from chainmark.stats.replicates import BAND_RESAMPLES


def _rounded(values: FloatArray | Sequence[float]) -> list[float]:
    plain = values.tolist() if isinstance(values, np.ndarray) else values  # formats faster than values of an array
    return units.all_rounded(plain, DIGITS)


def _band_note(resamplers: Sequence[Resampler]) -> str:
    seed_note = f"{BAND_RESAMPLES} seeded resamples"
    if any(resampler.in_bundles for resampler in resamplers):
        seed_note += " of bundles of neighbouring units"
    if any(resampler.runs < 2 for resampler in resamplers):
        return (
            f"band: pointwise 90 %, blocks of time within the run ({seed_note}); it does not include noise between runs"
        )
    return f"band: pointwise 90 %, runs resampled, then blocks of time within each ({seed_note})"


def _unit_label(metric: Metric) -> str:
    return f"{metric.label}, {metric.unit}" if metric.unit not in {"", "1"} else metric.label


def _pooled_line(side: ChartSide, knots: Knots, resampler: Resampler) -> ChartLine:
    fractions = curve_fractions(min(POOLED_POINTS, max(2, knots.n)))
    low, high = resampler.band(fractions)
    points = knots.centiles(fractions)
    # Replicates of an extreme never exceed it: the band is widened to contain its own line.
    return ChartLine(
        side=side.name,
        run_id=None,
        label=side.label,
        x=_rounded(points),
        y=_rounded(fractions),
        low=_rounded(np.minimum(low, points)),
        high=_rounded(np.maximum(high, points)),
    )


def _run_line(side: ChartSide, number: int, own: RunSamples) -> ChartLine:
    fractions = curve_fractions(min(RUN_POINTS, max(2, own.knots.n)))
    return ChartLine(
        side=side.name,
        run_id=own.run.run_id,
        label=f"{side.label} run {number}",
        x=_rounded(own.knots.centiles(fractions)),
        y=_rounded(fractions),
    )


@dataclass(frozen=True)
class _Charted:
    """What a metric's charts are computed from."""

    sides: Sequence[ChartSide]
    metric: Metric
    population: Population
    seed: int

    @cached_property
    def resamplers(self) -> list[Resampler]:
        """Of the sides, for bands and for intervals between single runs."""
        return [
            Resampler(side.samples(self.metric, self.population), side.name, self.metric.id, self.seed)
            for side in self.sides
        ]


def _cdf_chart(charted: _Charted) -> ChartData | None:
    """Both sides' distributions with a band, and one thin line per run; None without samples."""
    sides, metric, population = charted.sides, charted.metric, charted.population
    lines = []
    longest = 0
    for side, resampler in zip(sides, charted.resamplers, strict=True):
        samples = side.samples(metric, population)
        longest = max(longest, samples.pooled.n)
        if samples.pooled.n == 0:
            continue
        lines.append(_pooled_line(side, samples.pooled, resampler))
        if len(side.runs) > 1:
            each = enumerate(samples.runs, start=1)
            lines += [_run_line(side, number, run_samples) for number, run_samples in each if run_samples.knots.n]
    if not lines:
        return None
    thinned = f"; reduced to {POOLED_POINTS + 2} quantiles per line" if longest > POOLED_POINTS else ""
    return ChartData(
        id=f"{metric.id}-cdf",
        metric_id=metric.id,
        kind=ChartKind.CDF,
        title=f"{metric.label}: distribution",
        x_label=_unit_label(metric),
        y_label="cumulative share",
        lines=lines,
        note=_band_note(charted.resamplers) + thinned,
    )


Shift = tuple[float, float, float]


def _shifts_by_runs(left: list[Knots], right: list[Knots], fractions: FloatArray, *, ratio: bool) -> list[Shift]:
    sides = [np.array([knots.centiles(fractions) for knots in side]) for side in (left, right)]
    if ratio:
        sides = [np.log(side) for side in sides]
    both = zip(sides[0].T.tolist(), sides[1].T.tolist(), strict=True)
    return [_shift_by_runs(before, after, ratio=ratio) for before, after in both]


def _shift_by_runs(left: list[float], right: list[float], *, ratio: bool) -> Shift:
    contrast = welch(left, right, Working.LOG if ratio else Working.DIFFERENCE)
    result = (contrast.change, contrast.low, contrast.high)
    if not ratio:
        return result
    # Two runs per side can have an interval that exceeds any axis; beyond e^20 it is cut.
    change, low, high = (math.expm1(min(max(value, -20.0), 20.0)) for value in result)
    return change, low, high


def _shift_by_bootstrap(
    replicates: tuple[FloatArray, FloatArray],
    pooled: tuple[Knots, Knots],
    fractions: FloatArray,
    *,
    ratio: bool,
) -> list[Shift]:
    left = pooled[0].centiles(fractions)
    right = pooled[1].centiles(fractions)
    change = right / left - 1.0 if ratio else right - left
    moved = replicates[1] / replicates[0] - 1.0 if ratio else replicates[1] - replicates[0]
    low, high = band(moved)
    return [(float(c), float(a), float(b)) for c, a, b in zip(change, low, high, strict=True)]


def _shift_chart(charted: _Charted) -> ChartData | None:
    """The change of every quantile from p1 to p99 that each run can estimate; None if there is none."""
    sides, metric, population = charted.sides, charted.metric, charted.population
    if len(sides) != 2:
        return None
    samples = [side.samples(metric, population) for side in sides]
    runs = [[run.knots for run in side.present] for side in samples]
    if not all(runs):
        return None
    smallest = min(knots.n for side in runs for knots in side)
    fractions = np.array([fraction for fraction in SHIFT_FRACTIONS if has_rank(smallest, fraction)])
    if len(fractions) == 0:
        return None
    ratio = metric.kind is Kind.POSITIVE and min(float(knots.values[0]) for side in runs for knots in side) > 0.0
    if min(len(side) for side in runs) > 1:
        shifts = _shifts_by_runs(runs[0], runs[1], fractions, ratio=ratio)
        note = f"90 % interval between {len(runs[0])} + {len(runs[1])} runs (Welch), quantile by quantile"
    else:
        drawn = [resampler.quantiles(fractions) for resampler in charted.resamplers]
        both = (samples[0].pooled, samples[1].pooled)
        shifts = _shift_by_bootstrap((drawn[0], drawn[1]), both, fractions, ratio=ratio)
        note = _band_note(charted.resamplers)
    line = ChartLine(
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
        note=note,
    )


def _series_chart(charted: _Charted) -> ChartData | None:
    """The metric over time, one line per run; None without a time key or samples."""
    sides, metric, population = charted.sides, charted.metric, charted.population
    lines, widest = [], 1
    for side in sides:
        for number, samples in enumerate(side.samples(metric, population).runs, start=1):
            track = samples.described.track
            if track is None:
                continue
            widest = max(widest, track.step)
            ranged = bool(population.average_over) or track.step > 1
            lines.append(
                ChartLine(
                    side=side.name,
                    run_id=samples.run.run_id,
                    label=f"{side.label} run {number}" if len(side.runs) > 1 else side.label,
                    x=track.time.tolist(),
                    y=track.value.tolist(),
                    low=track.low.tolist() if ranged else None,
                    high=track.high.tolist() if ranged else None,
                )
            )
    if not lines:
        return None
    notes = []
    if population.average_over:
        notes.append(
            f"mean over {' and '.join(f'{name}s' for name in population.average_over)}; the band is their range"
        )
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


def _scatter_chart(charted: _Charted) -> ChartData | None:
    """One dot per sample over time; None without a time key or samples."""
    sides, metric, population = charted.sides, charted.metric, charted.population
    if population.time_key is None:
        return None
    lines, widest = [], 1
    for side in sides:
        for number, samples in enumerate(side.samples(metric, population).runs, start=1):
            dots = samples.described.dots
            if dots is None or len(dots.time) == 0:
                continue
            widest = max(widest, dots.step)
            label = f"{side.label} run {number}" if len(side.runs) > 1 else side.label
            x, y = dots.time.tolist(), dots.value.tolist()
            lines.append(ChartLine(side=side.name, run_id=samples.run.run_id, label=label, x=x, y=y))
    if not lines:
        return None
    thinned = f"thinned to at least one sample in {widest}, plus the extremes" if widest > 1 else ""
    return ChartData(
        id=f"{metric.id}-scatter",
        metric_id=metric.id,
        kind=ChartKind.SCATTER,
        title=f"{metric.label}: all {population.label}",
        x_label="seconds since the window's start",
        y_label=_unit_label(metric),
        lines=lines,
        note=thinned or f"one dot per sample, {units.plural(sum(len(line.x) for line in lines), 'dot')}",
    )


_CHARTS: Mapping[ChartKind, Callable[[_Charted], ChartData | None]] = {
    ChartKind.CDF: _cdf_chart,
    ChartKind.SHIFT: _shift_chart,
    ChartKind.SERIES: _series_chart,
    ChartKind.SCATTER: _scatter_chart,
}


def charts_of(sides: Sequence[ChartSide], metric: Metric, population: Population, seed: int) -> list[ChartData]:
    """All charts of a metric, each with those that accompany it.

    Args:
        sides: baseline and candidate, or one side or more without a baseline.
        metric: the metric with its kinds of charts.
        population: of the metric.
        seed: of the bands.
    """
    charted = _Charted(sides, metric, population, seed)
    charts = [_CHARTS[kind](charted) for kind in metric.drawn]
    return [chart for chart in charts if chart is not None]


def in_summary(chart: ChartData) -> ChartData | None:
    """A chart as a summary of several sides shows it: without single runs; None if it is not for summaries.

    A chart without pooled lines keeps its lines of single runs.
    """
    if not chart.kind.in_summaries:
        return None
    return chart.model_copy(update={"lines": [line for line in chart.lines if line.run_id is None] or chart.lines})


def deciding(comparison: Comparison) -> list[ChartData]:
    """The charts of a comparison's gating metrics for summaries."""
    gating = {metric.id for metric in comparison.catalogue.metrics if metric.gating}
    return [chart for chart in comparison.charts if chart.kind.in_summaries and chart.metric_id in gating]
