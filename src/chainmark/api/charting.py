"""The charts of metrics in every document on runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from chainmark.compare.inputs import RunData
from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import InvalidRunError
from chainmark.report.blocks import IN_FULL, TERMINAL, LaterBlocks, Section, some_open
from chainmark.report.chart import Chart
from chainmark.report.document import Document

_TITLE = "Charts of metrics"


def charted(document: Document, sides: Mapping[str, Sequence[RunData]], *, in_full: bool = False) -> Document:
    """A document with the charts of the metrics of its runs, made only for media that show them.

    Args:
        document: on runs; a comparison has its charts already.
        sides: the runs by the label of their side, in the order of the legend. Runs whose samples cannot be read have
            no charts.
        in_full: all kinds of charts of all metrics, instead of those of gating metrics for summaries.
    """
    runs = [run for side in sides.values() for run in side]
    if not runs:
        return document
    catalogue = runs[-1].catalogue
    charts = cache(lambda: _charts(sides, catalogue, in_full=in_full))
    sections = [Section("metric-charts", _TITLE, LaterBlocks(lambda: some_open(charts())), media=IN_FULL)]
    if _are_for_terminals(catalogue):
        shown = LaterBlocks(lambda: [chart for chart in charts() if chart.on_terminal])
        sections.append(Section("metric-charts-in-characters", _TITLE, shown, media=TERMINAL))
    return replace(document, sections=[*document.sections, *sections])


def _are_for_terminals(catalogue: Catalogue) -> bool:
    return any(kind.is_for_terminals for metric in catalogue.metrics for kind in metric.drawn)


def _charts(sides: Mapping[str, Sequence[RunData]], catalogue: Catalogue, *, in_full: bool) -> list[Chart]:
    from chainmark.compare.metric_charts import metric_charts  # noqa: PLC0415 - a terminal's document needs no charts
    from chainmark.report.charts import metric_blocks  # noqa: PLC0415

    try:
        charts = metric_charts(sides, catalogue, in_full=in_full)
    except InvalidRunError:
        return []
    return metric_blocks(charts, list(sides), catalogue)
