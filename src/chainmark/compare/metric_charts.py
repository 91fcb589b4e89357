"""The charts of metrics for documents that do not compare two sides: on one run, repetitions, releases or servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chainmark.compare.charts import charts_of, in_summary
from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.compare.samples import ChartSide
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import ChartData


def metric_charts(
    sides: Mapping[str, Sequence[RunData]], catalogue: Catalogue, *, in_full: bool = False
) -> list[ChartData]:
    """The charts of the metrics of one side or several, in the catalogue's order.

    Args:
        sides: the runs by the label of their side, in the order of the legend.
        catalogue: names the kinds of charts of each metric.
        in_full: all kinds of all metrics; otherwise those of gating metrics for summaries.

    Raises:
        InvalidRunError: the samples of a run cannot be read.
    """
    loaded = {label: [LoadedRun(run) for run in runs] for label, runs in sides.items() if runs}
    seed = next((run.manifest.seed for runs in loaded.values() for run in runs), 0)
    chart_sides = [ChartSide(label, label, runs) for label, runs in loaded.items()]
    charts = [
        chart
        for metric in catalogue.ordered()
        if metric.drawn and (in_full or metric.gating)
        for chart in charts_of(chart_sides, metric, catalogue.population(metric.population), seed)
    ]
    return charts if in_full else [summary for chart in charts if (summary := in_summary(chart))]
