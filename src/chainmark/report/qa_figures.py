"""The figures of a qualification: all sides in one, drawn as the charts of every report are."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.comparison import ChartData
from chainmark.core.qa_report import QaPlot, QaScenario
from chainmark.report.charts import ChartContext, chart_context, paper_spec, screen_spec
from chainmark.report.sheet import Figure

_PAPER = {"width": 560, "height": 150}


def plot_figures(scenario: QaScenario) -> list[Figure]:
    """The plots over time."""
    return [_plot(scenario, plot) for plot in scenario.plots]


def distribution_figures(scenario: QaScenario) -> list[Figure]:
    """The distributions of the metrics that the scenario's comparison is judged by."""
    comparison = scenario.comparison
    if comparison is None:
        return []
    return [
        _figure(f"{scenario.id}-{chart.id}", chart, chart_context(chart, comparison)) for chart in comparison.charts
    ]


def _plot(scenario: QaScenario, plot: QaPlot) -> Figure:
    context = ChartContext(unit="", sides={label: label for label in plot.sides})
    notes = [plot.chart.note]
    if plot.limit is not None:
        beyond = "; here values go beyond it" if plot.beyond_limit else ""
        notes.append(f"The published plot's axis ends at {units.number(plot.limit, _decimals(plot.limit))}{beyond}.")
    return _figure(f"{scenario.id}-{plot.id}", plot.chart, context, notes)


def _decimals(value: float) -> int:
    return 0 if value == round(value) else 1


def _figure(id_: str, chart: ChartData, context: ChartContext, notes: Sequence[str] | None = None) -> Figure:
    paper, thinned = paper_spec(chart, context)
    told = [*(notes if notes is not None else [chart.note]), thinned]
    return Figure(
        id=id_,
        title=chart.title,
        spec=screen_spec(chart, context),
        paper=[{**paper, **_PAPER}],
        note=" ".join(_sentence(text) for text in told if text),
        half=True,
    )


def _sentence(text: str) -> str:
    begun = text[:1].upper() + text[1:]
    return begun if begun.endswith(".") else f"{begun}."
