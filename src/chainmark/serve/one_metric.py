"""One metric of a comparison: its distribution, every run as a dot, every host on a strip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pydantic import BaseModel

from chainmark.core import units
from chainmark.core.comparison import Breakdown, Comparison, Judgement
from chainmark.core.errors import UsageError
from chainmark.core.tool import tool_version
from chainmark.core.wording import judged_name
from chainmark.report.blocks import Block, Column, Section, Table, TableCell, TableRow, phrased, words
from chainmark.report.chart import Chart
from chainmark.report.document import Document
from chainmark.report.judged_rows import RowMaker
from chainmark.report.phrases import Phrase
from chainmark.serve.matrix import comparisons_in, labels_of
from chainmark.serve.pages import own_document, run_address
from chainmark.serve.small_charts import Dot, strip


class SideRuns(BaseModel):
    """The judged runs of one side with their values, in the metric's unit."""

    label: str
    runs: list[str]
    values: list[float | None]


class MetricView(BaseModel):
    """``metric.json``: one metric and statistic on all sides of a comparison."""

    schema_version: int = 1
    tool_version: str
    metric: str
    statistic: str
    unit: str
    sides: list[SideRuns]
    judgements: list[Judgement]
    breakdowns: list[Breakdown]


_HINT = (
    "One dot per run and side. On the dashboard, drag over dots to mark the same runs in every chart and in the tables."
)
STRIPS = "strips"  # the section of the charts whose dots a reader marks


def metric_document(document: Document, id_: str, address: Callable[[str], str]) -> Document:
    """A comparison's data on one metric.

    Args:
        document: the comparison's.
        id_: of the metric and its statistic: "METRIC.p99".
        address: of the page about another one.

    Raises:
        UsageError: it compares no such metric.
    """
    view, comparisons = view_of(document, id_), comparisons_in(document)
    metric = comparisons[0].catalogue.metric(view.metric)
    drawn = {chart.id for base_model in [document.result, *comparisons] for chart in getattr(base_model, "charts", [])
             if chart.metric_id == view.metric}  # fmt: skip
    charts: list[Block] = [chart for chart in document.seen_on("html").charts() if chart.id in drawn]
    dots: list[Block] = [strip for strip in _strips(document, id_, address) if strip.dots]
    sections = [
        Section(STRIPS, "Every run", dots, hint=_HINT),
        Section("judged", "Judged", [_judged(comparisons, view, labels_of(document))]),
        Section("distribution", "Distribution", charts),
        Section("runs", "Runs", [_runs(view)]),
        Section("hosts", "By key", [_by_key(breakdown, comparison.labels, view.unit) for comparison in comparisons
                                    for breakdown in comparison.breakdowns if breakdown.metric_id == view.metric]),
    ]  # fmt: skip
    title = judged_name(metric, view.statistic)
    retained = [section for section in sections if section.blocks]
    return own_document("metric", title, document.title, retained, view)


def view_of(document: Document, id_: str) -> MetricView:
    """The figures of one metric in a comparison.

    Raises:
        UsageError: it compares no such metric.
    """
    metric, _, statistic = id_.partition(".")
    comparisons = comparisons_in(document)
    judgements = [_judgement(comparison, metric, statistic) for comparison in comparisons]
    judged = [
        (comparison, judgement)
        for comparison, judgement in zip(comparisons, judgements, strict=True)
        if judgement is not None
    ]
    if not judged:
        raise UsageError(f"this comparison has no metric `{id_}`", "the overview of the comparison lists all metrics")
    first, judgement = judged[0]
    sides = [_side(first, judgement, 0), *(_side(comparison, own, 1) for comparison, own in judged)]
    return MetricView(
        tool_version=tool_version(), metric=metric, statistic=statistic, unit=first.catalogue.metric(metric).unit,
        sides=sides, judgements=[own for _, own in judged],
        breakdowns=[
            breakdown
            for comparison in comparisons
            for breakdown in comparison.breakdowns
            if breakdown.metric_id == metric
        ],
    )  # fmt: skip


def _judgement(comparison: Comparison, metric: str, statistic: str) -> Judgement | None:
    items = comparison.judgements
    return next(
        (judgement for judgement in items if (judgement.metric_id, judgement.statistic) == (metric, statistic)), None
    )


def _side(comparison: Comparison, judgement: Judgement, place: int) -> SideRuns:
    side = (comparison.baseline, comparison.candidate)[place]
    runs = [run.run_id for run in side.runs if run.excluded_because is None]
    values = (judgement.baseline, judgement.candidate)[place].per_run
    paired = list(zip(runs, values, strict=False))
    return SideRuns(label=side.label, runs=[run for run, _ in paired], values=[value for _, value in paired])


def _judged(comparisons: Sequence[Comparison], view: MetricView, labels: Sequence[str]) -> Table:
    rows = []
    for comparison in comparisons:
        judgement = _judgement(comparison, view.metric, view.statistic)
        if judgement is None:
            continue
        row = RowMaker(comparison, comparisons).row(judgement)
        cells = [row.baseline, row.candidate, row.change_with_unit, row.interval]
        reported = [TableCell(row.margin), TableCell(row.outcome, emphasis=row.emphasis), TableCell(judgement.noise)]
        rows.append(TableRow([TableCell(comparison.candidate.label), *map(TableCell, cells), *reported]))
    columns = [*words("side"), Column(labels[0]), Column("value"), Column("change"), Column("90 % interval"),
               *words("margin", "outcome", "noise")]  # fmt: skip
    return Table("judged", "", columns, rows)


def _runs(view: MetricView) -> Table:
    rows = [
        TableRow(
            [phrased(Phrase(run, address=run_address(run, ""))), TableCell(side.label),
             TableCell(units.quantity(value, view.unit))],
            anchor=f"key-{run}",
        )
        for side in view.sides for run, value in zip(side.runs, side.values, strict=True)
    ]  # fmt: skip
    return Table("runs", "", [*words("run", "side"), Column("value")], rows, sortable=True)


def _by_key(breakdown: Breakdown, labels: tuple[str, str], unit: str) -> Table:
    rows = [
        TableRow(
            [TableCell(value), *(TableCell(units.quantity(mean, unit))
                                 for mean in (breakdown.baseline[place], breakdown.candidate[place])),
             _stands_out(breakdown.stands_out[place])],
            anchor=f"key-{value}",
        )
        for place, value in enumerate(breakdown.values)
    ]  # fmt: skip
    columns = [*words(breakdown.key), *map(Column, labels), *words("outlier")]
    return Table(f"by-{breakdown.key}-{labels[1]}", f"Mean by {breakdown.key}", columns, rows, sortable=True)


def _stands_out(side: str) -> TableCell:
    return TableCell(f"in {side}", emphasis="caution") if side else TableCell("", emphasis="quiet")


def _strips(document: Document, id_: str, address: Callable[[str], str]) -> Iterator[Chart]:
    """The runs of a metric as dots, then those of all that gate, then its hosts."""
    first = comparisons_in(document)[0]
    gating = [f"{judgement.metric_id}.{judgement.statistic}" for judgement in first.judgements if judgement.gating]
    for key in dict.fromkeys([id_, *gating]):
        view = view_of(document, key)
        rows = [(side.label, [Dot(*pair) for pair in zip(side.runs, side.values, strict=True)]) for side in view.sides]
        name = judged_name(first.catalogue.metric(view.metric), view.statistic)
        yield strip(f"{STRIPS}-{key}".replace(".", "-"), name, rows, view.unit, address(key))
    view = view_of(document, id_)
    for breakdown in view.breakdowns[:1]:
        sides = zip(labels_of(document), (breakdown.baseline, breakdown.candidate), strict=False)
        rows = [(label, [Dot(*pair) for pair in zip(breakdown.values, means, strict=True)]) for label, means in sides]
        yield strip(f"{STRIPS}-by-{breakdown.key}", f"mean by {breakdown.key}", rows, view.unit)
