"""The plots of a qualification: a metric of all sides of a scenario over time, in one plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chainmark.compare.inputs import LoadedRun
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.chart_kind import ChartKind
from chainmark.core.comparison import ChartData, ChartLine
from chainmark.core.metric import Metric, Population
from chainmark.core.qa_plan import PlotPlan
from chainmark.core.qa_report import QaPlot
from chainmark.stats.centiles import FloatArray

_LINE_POINTS = 400  # per line
_PLOT_POINTS = 12_000  # per plot with many lines
_LEAST_POINTS = 40
_DIGITS = 6
_TOGETHER = 1e-3  # samples that ended within a millisecond count as simultaneous
_INSTANT_S = 1.0  # means over runs are taken second by second


@dataclass(frozen=True)
class PlotSide:
    """One side: its label, unique in the scenario, and its judged runs."""

    label: str
    runs: Sequence[LoadedRun]


@dataclass(frozen=True)
class _Curve:
    """The values of a line; ``weights`` are the numbers of samples per point, 1 if a point is one sample."""

    run_id: str
    key: str
    x: FloatArray
    y: FloatArray
    weights: FloatArray | None = None


def plot_of(plan: PlotPlan, sides: Sequence[PlotSide], catalogue: Catalogue) -> QaPlot | None:
    """One plot; None without samples.

    Args:
        plan: the plot's definition.
        sides: in the order of the legend.
        catalogue: knows the metric and its population.
    """
    metric = next((item for item in catalogue.metrics if item.id == plan.metric), None)
    if metric is None:
        return None
    population = catalogue.population(metric.population)
    lines: list[ChartLine] = []
    for side in sides:
        curves = [curve for run in side.runs for curve in _curves(run, plan, metric, population)]
        lines += [_line(side.label, curve) for curve in curves]
        if plan.mean and curves:
            lines.append(_level(side.label, curves) if plan.points == "ended together" else _mean(side.label, curves))
    if not lines:
        return None
    most = max(_LEAST_POINTS, min(_LINE_POINTS, _PLOT_POINTS // len(lines)))
    lines = [_thinned_line(line, most) for line in lines]
    highest = max((value for line in lines for value in line.y), default=0.0)
    dots = plan.points == "ended together"
    return QaPlot(
        id=plan.id,
        published_id=metric.published_id or "",
        chart=ChartData(
            id=f"plot-{plan.id}",
            metric_id=metric.id,
            kind=ChartKind.SCATTER if dots else ChartKind.SERIES,
            title=plan.title,
            x_label="seconds since the window's start",
            y_label=plan.y_label,
            lines=lines,
            note=_note(plan, population),
        ),
        sides=[side.label for side in sides],
        unit=plan.y_label,
        limit=plan.limit,
        beyond_limit=plan.limit is not None and highest > plan.limit,
    )


def _note(plan: PlotPlan, population: Population) -> str:
    parts = []
    if plan.by:
        parts.append(f"one line per {plan.by} and run")
    elif population.average_over and plan.points == "samples":
        parts.append(f"one line per run, the mean over {' and '.join(f'{name}s' for name in population.average_over)}")
    elif plan.points == "ended together":
        parts.append("all runs")
    else:
        parts.append("one line per run")
    if plan.mean:
        level = "mean of all samples" if plan.points == "ended together" else "mean over all lines of a version"
        parts.append(f"thick: the {level}")
    return f"{'; '.join(parts)}. {plan.note}".strip() if plan.note else "; ".join(parts)


def _curves(run: LoadedRun, plan: PlotPlan, metric: Metric, population: Population) -> list[_Curve]:
    """The lines of one run: a curve for each value of ``plan.by``, or one."""
    ordered = run.ordered(metric.population)
    times = ordered.column(population.time_key) if ordered and population.time_key else None
    values = ordered.column(metric.id) if ordered else None
    if ordered is None or times is None or values is None or len(times) == 0:
        return []
    if plan.points == "rows per second":
        x, y = _rows_per_second(times[np.isfinite(times)], plan.window_s)
        return [_Curve(run.run_id, "", x, y * plan.factor)] if len(x) else []
    valid = np.isfinite(times) & np.isfinite(values)
    if not valid.any():
        return []
    if plan.points == "ended together":
        x, y, weights = _ended_together(times[valid], values[valid])
        return [_Curve(run.run_id, "", x, y * plan.factor, weights)]
    if plan.points == "reciprocals":
        valid &= values != 0.0
        values = np.where(valid, 1.0 / np.where(valid, values, 1.0), np.nan)
    keys = ordered.keys()
    if plan.by and plan.by in keys.columns:
        names = keys[plan.by].cast(str).to_list()
        curves = []
        for name in sorted(set(names)):
            selected = valid & np.array([item == name for item in names])
            curves += (
                [_Curve(run.run_id, name, times[selected], values[selected] * plan.factor)] if selected.any() else []
            )
        return curves
    x, y = _averaged(times[valid], values[valid] * plan.factor)
    return [_Curve(run.run_id, "", x, y)]


def _averaged(times: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One value per instant: the mean of its samples."""
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    starts = np.flatnonzero(np.diff(times, prepend=math.nan) != 0.0)
    sizes = np.diff(np.append(starts, len(times)))
    return times[starts], np.add.reduceat(values, starts) / sizes


def _ended_together(times: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Instants, the mean of the samples that ended then, and their number."""
    ends = times + values
    order = np.argsort(ends, kind="stable")
    ends, values = ends[order], values[order]
    starts = np.flatnonzero(np.diff(ends, prepend=-math.inf) > _TOGETHER)
    sizes = np.diff(np.append(starts, len(ends)))
    return ends[starts], np.add.reduceat(values, starts) / sizes, sizes.astype(float)


def _rows_per_second(times: FloatArray, window_s: float) -> tuple[FloatArray, FloatArray]:
    """At each full second, the rate of rows over the last ``window_s``, per second; from the first full window on."""
    times = np.sort(times)
    if len(times) == 0 or times[-1] < window_s:
        return np.empty(0), np.empty(0)
    at = np.arange(math.ceil(window_s), math.floor(times[-1]) + 1, dtype=float)
    rows = np.searchsorted(times, at, side="right") - np.searchsorted(times, at - window_s, side="right")
    return at, rows / window_s


def _thinned_line(line: ChartLine, most: int) -> ChartLine:
    """At most this many points: the least and the greatest of equal stretches, so that no peak is hidden."""
    if len(line.x) <= most:
        return line
    y = np.array(line.y)
    selected = {0, len(y) - 1}
    for part in np.array_split(np.arange(len(y)), most // 2):
        selected |= {int(part[y[part].argmin()]), int(part[y[part].argmax()])}
    indices = sorted(selected)
    return line.model_copy(update={"x": [line.x[at] for at in indices], "y": [line.y[at] for at in indices]})


def _mean(label: str, curves: Sequence[_Curve]) -> ChartLine:
    """A version's mean over all its curves, second by second."""
    x = np.concatenate([curve.x for curve in curves])
    y = np.concatenate([curve.y for curve in curves])
    seconds, means = _averaged(np.floor(x / _INSTANT_S) * _INSTANT_S, y)
    return ChartLine(side=label, run_id=None, label=f"{label}, mean", x=_rounded(seconds), y=_rounded(means))


def _level(label: str, curves: Sequence[_Curve]) -> ChartLine:
    """The mean of all samples of a version, as a level line."""
    x = np.concatenate([curve.x for curve in curves])
    y = np.concatenate([curve.y for curve in curves])
    weights = np.concatenate([np.ones(len(curve.x)) if curve.weights is None else curve.weights for curve in curves])
    mean = float(np.average(y, weights=weights))
    ends = np.array([x.min(), x.max()])
    return ChartLine(
        side=label, run_id=None, label=f"{label}, mean", x=_rounded(ends), y=_rounded(np.array([mean, mean]))
    )


def _line(label: str, curve: _Curve) -> ChartLine:
    name = f"{label} {curve.key}".strip()
    run = f"{curve.run_id} {curve.key}".strip()
    return ChartLine(side=label, run_id=run, label=name, x=_rounded(curve.x), y=_rounded(curve.y))


def _rounded(values: FloatArray) -> list[float]:
    return [units.rounded(value, _DIGITS) for value in values.tolist()]
