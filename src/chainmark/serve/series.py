"""A metric of one run over time, however many samples it has: with a level of detail for the visible range."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.metric import Metric
from chainmark.report.blocks import Section
from chainmark.report.chart import Axis, Chart, Layer, Tooltip
from chainmark.report.document import Document
from chainmark.serve.pages import own_document
from chainmark.serve.spans import SeriesView, series_view
from chainmark.store.sealed import SealedRun


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
