"""The charts of a qualification: all sides in one chart, drawn like the charts of every report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chainmark.core import units
from chainmark.core.qa_report import QaPlot, QaScenario
from chainmark.core.wording import capitalised, sentence_of
from chainmark.report.chart import Chart
from chainmark.report.charts import ChartContext, chart_context, sample_chart

_PAPER = (560, 150)


def scenario_charts(scenario: QaScenario, path: Sequence[str | int]) -> list[Chart]:
    """The plots over time, and the distributions of the metrics that decide the scenario's comparison.

    Args:
        scenario: of a qualification.
        path: its path in the document, which contains its points.
    """
    charts = []
    for index, plot in enumerate(scenario.plots):
        context = ChartContext(unit="", sides={label: label for label in plot.sides})
        chart = sample_chart(plot.chart, context, [*path, "plots", index, "chart"])
        charts.append(_styled(chart, f"{scenario.id}-{plot.id}", _notes(plot)))
    if scenario.comparison is not None:
        for index, data in enumerate(scenario.comparison.charts):
            context = chart_context(data, scenario.comparison)
            chart = sample_chart(data, context, [*path, "comparison", "charts", index])
            charts.append(_styled(chart, f"{scenario.id}-{data.id}", [data.note]))
    return charts


def _notes(plot: QaPlot) -> list[str]:
    notes = [plot.chart.note]
    if plot.limit is not None:
        beyond = ", and some values here exceed it" if plot.beyond_limit else ""
        notes.append(
            f"The axis of the published plot ends at {units.number(plot.limit, _decimals(plot.limit))}{beyond}."
        )
    return notes


def _decimals(value: float) -> int:
    return 0 if value == round(value) else 1


def _styled(chart: Chart, id_: str, notes: Sequence[str]) -> Chart:
    text = " ".join(sentence_of(capitalised(text)) for text in notes if text)
    return replace(chart, id=id_, note=text, half=True, height=320, paper=_PAPER)
