"""A metric of one run over time, however many samples it has: with a level of detail for the visible range."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from pydantic import BaseModel

from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.core.metric import Metric
from chainmark.core.tool import tool_version
from chainmark.report.blocks import Section
from chainmark.report.chart import Axis, Chart, Layer, Tooltip
from chainmark.report.document import Document
from chainmark.serve.pages import own_document
from chainmark.store.runs import SealedRun

_MOST_POINTS = 600


class SeriesView(BaseModel):
    """``series.json``: spans of time, each with its samples, their mean and their range, in the metric's unit.

    Attributes:
        begin_s, end_s: the visible range, in seconds since the window's start; the series is from ``first_s`` to
            ``last_s``.
        samples: number in the visible range; a span holds several if there are more than fit.
    """

    schema_version: int = 1
    tool_version: str
    run: str
    metric: str
    first_s: float
    last_s: float
    begin_s: float
    end_s: float
    samples: int
    time_s: list[float]
    n: list[int]
    mean: list[float]
    low: list[float]
    high: list[float]


def series_view(run: SealedRun, metric: Metric, begin_s: float | None, end_s: float | None) -> SeriesView:
    """A metric's samples of a span of time.

    Raises:
        UsageError: its samples have no order in time, or there are none.
        InvalidRunError: they cannot be read.
    """
    time = run.catalogue.population(metric.population).time_key
    if time is None:
        raise UsageError(f"`{metric.id}` cannot be shown over time", "its population has no time")
    known = run.scan_samples(metric.population).select(t=time, v=metric.id).drop_nulls().filter(pl.col("v").is_finite())
    first, last = known.select(first=pl.col("t").min(), last=pl.col("t").max()).collect().row(0)
    if first is None:
        raise UsageError(f"run `{run.run_id}` has no samples of `{metric.id}`", "the page of the run lists its metrics")
    begin, end = max(first, first if begin_s is None else begin_s), min(last, last if end_s is None else end_s)
    if begin > end:
        raise UsageError(
            "the selected time span is empty", f"the series covers {units.tidy(first)} s to {units.tidy(last)} s"
        )
    width = (end - begin) / _MOST_POINTS or 1.0
    spans = (
        known.filter(pl.col("t").is_between(begin, end))
        .group_by(((pl.col("t") - begin) / width).floor().clip(0, _MOST_POINTS - 1).alias("span"))
        .agg(
            time_s=pl.col("t").mean(),
            n=pl.len(),
            mean=pl.col("v").mean(),
            low=pl.col("v").min(),
            high=pl.col("v").max(),
        )
        .sort("span")
        .drop("span")
        .collect()
    )
    return SeriesView(
        tool_version=tool_version(), run=run.run_id, metric=metric.id, first_s=first, last_s=last, begin_s=begin,
        end_s=end, samples=int(spans["n"].sum()), **spans.to_dict(as_series=False),
    )  # fmt: skip


def series_document(run: SealedRun, metric_id: str, begin_s: float | None, end_s: float | None) -> Document:
    """The page of a metric over time.

    Raises:
        UsageError: there is no such metric or no such span.
        InvalidRunError: the samples cannot be read.
    """
    metric = run.catalogue.metric(metric_id)
    view = series_view(run, metric, begin_s, end_s)
    subtitle = f"{run.run_id} · {units.plural(view.samples, 'sample')} in {units.plural(len(view.n), 'time span')}"
    sections = [Section("series", "Over time", [_chart(view, metric)])]
    return own_document("series", metric.label, subtitle, sections, view)


def _chart(view: SeriesView, metric: Metric) -> Chart:
    shown = units.display_unit(metric.unit, [*view.low, *view.high])

    def scaled(values: Sequence[float]) -> list[float]:
        return units.all_rounded([value * shown.factor for value in values])

    data = {"x": view.time_s, "y": scaled(view.mean), "low": scaled(view.low), "high": scaled(view.high)}
    tips = [Tooltip("time, s", "x", ".5g"), Tooltip("mean", "y", ".4g"), Tooltip("range", "low", ".4g", until="high")]
    return Chart(
        id=f"series-{metric.id}",
        title="",
        x=Axis("time since the window's start, s"),
        y=Axis(f"{metric.label}, {shown.symbol}".rstrip(", ")),
        layers=[
            Layer("band", "spans", x="x", y="low", y2="high", opacity=0.22),
            Layer("line", "spans", x="x", y="y", tips=tips),
        ],
        data={"spans": data},
        note="Line: mean of each time span. Band: from its smallest to its largest sample.",
        wide=True,
    )
