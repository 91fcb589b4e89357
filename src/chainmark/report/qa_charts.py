"""The charts of a qualification: all sides in one, drawn as the charts of every report are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chainmark.core import units
from chainmark.core.comparison import ChartData
from chainmark.core.qa_report import QaPlot, QaScenario
from chainmark.report.chart import Chart
from chainmark.report.charts import ChartContext, chart_context, sample_chart

_PAPER = (560, 150)


def plot_charts(scenario: QaScenario) -> list[Chart]:
    """The plots over time."""
    return [_plot(scenario, plot) for plot in scenario.plots]


def distribution_charts(scenario: QaScenario) -> list[Chart]:
    """The distributions of the metrics that the scenario's comparison is judged by."""
    comparison = scenario.comparison
    if comparison is None:
        return []
    return [_chart(f"{scenario.id}-{chart.id}", chart, chart_context(chart, comparison)) for chart in comparison.charts]


def _plot(scenario: QaScenario, plot: QaPlot) -> Chart:
    context = ChartContext(unit="", sides={label: label for label in plot.sides})
    notes = [plot.chart.note]
    if plot.limit is not None:
        beyond = "; here values go beyond it" if plot.beyond_limit else ""
        notes.append(f"The published plot's axis ends at {units.number(plot.limit, _decimals(plot.limit))}{beyond}.")
    return _chart(f"{scenario.id}-{plot.id}", plot.chart, context, notes)


def _decimals(value: float) -> int:
    return 0 if value == round(value) else 1


def _chart(id_: str, chart: ChartData, context: ChartContext, notes: Sequence[str] | None = None) -> Chart:
    told = " ".join(_sentence(text) for text in (notes if notes is not None else [chart.note]) if text)
    return replace(sample_chart(chart, context), id=id_, note=told, half=True, height=320, paper=_PAPER)


def _sentence(text: str) -> str:
    begun = text[:1].upper() + text[1:]
    return begun if begun.endswith(".") else f"{begun}."
