"""The history of a workload as a document: the changes of each release, and every figure over the releases."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.history_report import LEAST_CHANGE, HistoryReport, HistorySeries, LevelChange, MeasuredRelease
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.core.wording import sentence_of
from chainmark.report.blocks import (
    EVERYWHERE,
    HTML,
    PDF,
    Block,
    Column,
    Details,
    Remarks,
    Section,
    Table,
    TableCell,
    TableRow,
    phrased,
    row_of,
    words,
)
from chainmark.report.chart import BAD, QUIET, Axis, Chart, Layer, Limit, Tooltip
from chainmark.report.document import Document
from chainmark.report.phrases import Emphasis, Phrase, computed_address

_BARS = "▁▂▃▄▅▆▇█"
_OPEN = 12  # charts; the others are folded


def history_document(report: HistoryReport) -> Document:
    """Lay out the history of a workload."""
    moved = sorted(
        ((change, series) for series in report.series for change in series.changes),
        key=lambda pair: (-pair[0].release, not pair[1].gating, -abs(pair[0].change)),
    )
    drawn = sorted(report.series, key=lambda series: (not series.gating, not series.changes))
    return Document(
        kind="history",
        title=report.title,
        subtitle=report.subtitle,
        verdict=Verdict.INFORMATIONAL,
        sentence=sentence_of(report.sentence[0].upper() + report.sentence[1:]),
        suites=[Suite(report.title, [_case(series) for series in report.series])],
        sections=[
            Section("moved", "Changes", [_moved(report, moved)], folded=False),
            Section("figures", "All metrics", [_figures(report)]),
            Section("charts", "Metrics over releases", _charts([_chart(report, series) for series in drawn])),
            Section("releases", "Releases", [_releases(report)]),
            Section("steps", "Set-up differences of each release", _steps(report), media=HTML),
        ],
        notes=[
            "A change is a difference in level over several releases (E-divisive with a permutation test). The newest "
            "release alone is therefore never listed as a change. Over all metrics, at most "
            f"{units.plain_percent(report.false_discoveries)} of the listed changes are expected to be false. A change "
            "of the set-up splits the series and is not listed. Changes below a metric's floor, or below "
            f"{units.plain_percent(LEAST_CHANGE)}, are not listed.",
        ],
        result=report,
        date=report.date,
        tool_version=report.tool_version,
    )


def _name(series: HistorySeries) -> str:
    return series.label if series.statistic == "mean" else f"{series.label} {series.statistic}"


def _named(report: HistoryReport, series: HistorySeries, release: int) -> TableCell:
    """A figure's name, with a link to its computation from a release's runs."""
    runs = report.releases[release].run_ids
    address = computed_address(report.system, series.metric_id, series.statistic, runs) if report.system else ""
    return phrased(Phrase(_name(series), address=address))


def _case(series: HistorySeries) -> Case:
    messages = [f"{_size(series, change)} at {change.label}" for change in series.changes]
    unit = "change" if series.is_relative else series.unit
    figures: dict[str, float | str] = {f"{change.label} {unit}": change.change for change in series.changes}
    return Case(
        f"{series.metric_id}.{series.statistic}",
        _name(series),
        Verdict.INFORMATIONAL,
        ", ".join(messages),
        figures=figures,
    )


def _size(series: HistorySeries, change: LevelChange) -> str:
    return _size_and_interval(series, change)[0]


def _size_and_interval(series: HistorySeries, change: LevelChange) -> tuple[str, str]:
    unit = None if series.is_relative else series.unit
    return units.change_and_interval(change.change, change.low, change.high, unit)


def _moved(report: HistoryReport, moved: Sequence[tuple[LevelChange, HistorySeries]]) -> Block:
    if not moved:
        return Remarks("moved", "", ["No metric changed its level in any release."])
    columns = [
        *words("release", "metric"),
        Column("level change"),
        Column("90 % interval", kind="intervals"),
        *words("", "shape"),
    ]
    rows = [_moved_row(report, change, series) for change, series in moved]
    return Table("moved", "", columns, rows, sortable=True)


def _moved_row(report: HistoryReport, change: LevelChange, series: HistorySeries) -> TableRow:
    word = series.effect_of(change)
    emphasis: Emphasis = "plain" if word == "moved" else word
    return row_of(
        change.label,
        _named(report, series, change.release),
        *map(TableCell, _size_and_interval(series, change)),
        TableCell(word, emphasis=emphasis),
        "gradual" if change.is_gradual else "step",
    )


def sparkline(values: Sequence[float | None]) -> str:
    """Values as bars of characters from the least to the largest, a blank for a missing value."""
    messages = [value for value in values if value is not None]
    low, span = min(messages, default=0.0), max(messages, default=0.0) - min(messages, default=0.0)
    places = [None if value is None else (value - low) / span if span > 0.0 else 0.5 for value in values]
    return "".join(" " if place is None else _BARS[round(place * (len(_BARS) - 1))] for place in places)


def _figures(report: HistoryReport) -> Table:
    columns = [
        *words("metric"),
        Column("first"),
        Column("last"),
        # The font of the PDF does not have such bars; it has the charts.
        Column("trend", media=EVERYWHERE - PDF),
        *words("level changes"),
    ]
    return Table("figures", "", columns, [_figure_row(report, series) for series in report.series], sortable=True)


def _figure_row(report: HistoryReport, series: HistorySeries) -> TableRow:
    messages = [value for value in series.values if value is not None]
    last = max((index for index, value in enumerate(series.values) if value is not None), default=-1)
    ends = [units.quantity(value, series.unit) for value in (messages[0], messages[-1])] if messages else ["", ""]
    changes = ", ".join(f"{_size(series, change)} at {change.label}" for change in series.changes)
    name, line = _named(report, series, last), sparkline(series.values)
    return row_of(name, TableCell(ends[0]), TableCell(ends[1]), line, changes or "none")


def _chart(report: HistoryReport, series: HistorySeries) -> Chart:
    present = [(index, value) for index, value in enumerate(series.values) if value is not None]
    shown = units.display_unit(series.unit, [value for _, value in present])
    labels = [release.label for release in report.releases]
    levels = _levels(series, present)
    return Chart(
        id=f"history-{series.metric_id}-{series.statistic}".replace(".", "-"),
        title=_name(series),
        x=Axis("release, oldest first", padding=8),
        y=Axis(shown.symbol or series.unit, nice=True),
        layers=[
            Layer("line", "levels", x="place", y="level", detail="stretch", colour=QUIET, width=2.5),
            Layer(
                "points",
                x="place",
                y="value",
                size=36.0,
                tips=[Tooltip("release", "release"), Tooltip(shown.symbol or series.unit, "value", ".4g")],
            ),
        ],
        data={
            "points": {
                "place": [index + 1 for index, _ in present],
                "value": [value * shown.factor for _, value in present],
                "release": [labels[index] for index, _ in present],
            },
            "levels": {
                "place": [index + 1 for index, _, _ in levels],
                "level": [level * shown.factor for _, level, _ in levels],
                "stretch": [stretch for *_, stretch in levels],
            },
        },
        limits=[
            *(Limit(index + 0.5, "set-up", along="x", colour=QUIET) for index in series.setups),
            *(Limit(change.release + 0.5, change.label, along="x", colour=BAD) for change in series.changes),
        ],
        half=True,
        height=200,
    )


def _charts(charts: Sequence[Chart]) -> list[Block]:
    """The most relevant charts, and the others behind a summary."""
    others = charts[_OPEN:]
    folded = [Details("more-charts", f"{units.plural(len(others), 'further metric')}", others)] if others else []
    return [*charts[:_OPEN], *folded]


def _levels(series: HistorySeries, present: Sequence[tuple[int, float]]) -> list[tuple[float, float, str]]:
    """The median of every stretch between changes, at its ends."""
    cuts = sorted({*series.setups, *(change.release for change in series.changes)})
    points = []
    for number, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(series.values)], strict=True)):
        stretch = sorted(value for index, value in present if begin <= index < end)
        if stretch:
            middle = (stretch[(len(stretch) - 1) // 2] + stretch[len(stretch) // 2]) / 2.0
            points += [(begin - 0.3, middle, f"level {number + 1}"), (end - 0.7, middle, f"level {number + 1}")]
    return points


def _steps(report: HistoryReport) -> list[Block]:
    """What differs in each release's set-up from the previous one; the newest first."""
    return [
        Details(
            f"step-{index}",
            f"{release.label}: {units.plural(len(release.changed), 'difference')}",
            [Table(f"step-table-{index}", "", words("", "before", "after"), _differences(release))],
        )
        for index, release in reversed(list(enumerate(report.releases)))
        if release.changed
    ]


def _differences(release: MeasuredRelease) -> list[TableRow]:
    return [
        row_of(release_difference.what, release_difference.before, release_difference.after)
        for release_difference in release.changed
    ]


def _releases(report: HistoryReport) -> Table:
    columns = [*words("release"), Column("started"), Column("runs"), *words("values", "notes")]
    rows = [
        row_of(
            release.label,
            release.started_at[:10],
            units.count(len(release.run_ids)),
            "printed" if release.is_printed else "measured",
            "; ".join(release.notes),
        )
        for release in report.releases
    ]
    return Table("releases", "", columns, rows)
