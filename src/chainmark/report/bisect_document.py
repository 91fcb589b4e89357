"""A search for the revision that introduced a change, as a document: the result, the path to it, and the evidence."""

from __future__ import annotations

from collections.abc import Mapping

from chainmark.core import units
from chainmark.core.bisect_report import BisectReport, BisectStep, RevisionLevel, SideState, Way
from chainmark.core.comparison import Comparison, Scale
from chainmark.core.verdict import Case, Suite
from chainmark.core.wording import capitalised
from chainmark.report.bars import IntervalBar, bar_between
from chainmark.report.blocks import (
    ON_PAGES,
    Block,
    Column,
    Details,
    Listing,
    Remarks,
    Section,
    Table,
    TableCell,
    row_of,
    words,
)
from chainmark.report.chart import BAD, GOOD, QUIET, Axis, Chart, Layer, Limit, Tooltip, columns_of
from chainmark.report.charts import summary_charts
from chainmark.report.document import Document
from chainmark.report.judged_rows import RowMaker
from chainmark.report.metric_tables import plain_gating_table
from chainmark.report.phrases import Emphasis
from chainmark.report.profile_parts import why_sections
from chainmark.report.wording import prose

SIDE_LOOKS: Mapping[str, Emphasis] = {
    SideState.GOOD: "better",
    SideState.BAD: "worse",
    SideState.DOUBTFUL: "caution",
}
_MOST_LISTED = 100
_HALF_PAGE = (330, 185)


def bisect_document(report: BisectReport) -> Document:
    """Lay out a search among revisions."""
    sections = [
        Section("found", "Result", _result_blocks(report), folded=False),
        Section("path", "Search path", _path(report), folded=False),
        Section("across", "The revision against the previous one", _across(report)),
        *_causes(report.step_across),
        Section("ends", "The bad revision against the good one", [_judged(report.ends, "ends-metrics")]),
        Section("left-out", "Skipped revisions", _left_out(report)),
        Section("revisions", "All revisions", _revisions(report)),
    ]
    return Document(
        kind="bisect",
        title=report.title,
        subtitle=report.subtitle,
        verdict=report.verdict,
        sentence=prose(capitalised("; ".join([report.sentence, *report.advice[:1]]))),
        suites=[_suite(report)],
        sections=[section for section in sections if section.blocks],
        notes=_notes(report),
        result=report,
        date=report.date,
        tool_version=report.tool_version,
    ).noted_once()


def _suite(report: BisectReport) -> Suite:
    figures: dict[str, float | str] = {"runs": float(report.runs)}
    if report.chance is not None and report.first is not None and report.last is not None:
        figures |= {
            "chance": report.chance,
            "first": report.revisions[report.first].label,
            "last": report.revisions[report.last].label,
        }
    case = Case("change", "The revision that introduced the change", report.verdict, report.sentence, figures=figures)
    properties = [("experiment", report.experiment), ("chainmark", report.tool_version)]
    return Suite(report.title, [case], properties, output=[*report.reasons, *report.advice])


def _notes(report: BisectReport) -> list[str]:
    if not report.chances:
        return []
    allowed = units.plain_percent(report.error)
    return [
        f"The search assumes that one revision introduced the change. The result is wrong with a probability of at "
        f"most {allowed}, over the whole search. All runs of the search contribute to the probability of each "
        "revision and to the noise between runs. The runs of the end revisions, made next to every revision, separate "
        "a drift of the machine from the change. The decision does not use the 90 % intervals.",
        "The comparison of the two revisions around the result uses the runs of the search.",
    ]


def _result_blocks(report: BisectReport) -> list[Block]:
    blocks: list[Block] = []
    if report.first is not None and report.way in (Way.FOUND, Way.RANGE, Way.UNDECIDED):
        blocks.append(_answer(report))
    blocks.append(Remarks("reasons", "Why", report.reasons))
    if report.advice:
        blocks.append(Remarks("next", "What to do next", report.advice))
    if report.stat:
        blocks.append(Listing("stat", "What the revision changed", [("files and lines", "\n".join(report.stat))]))
    return blocks


def _answer(report: BisectReport) -> Table:
    """The remaining revisions, each with its probability."""
    first, last = report.first or 1, report.last or 1
    shown = range(first, last + 1)[:_MOST_LISTED]
    has_state = any(place in report.skipped for place in shown)
    rows = []
    for place in shown:
        chance = TableCell(units.chance(report.chances[place - 1]))
        state = "could not be measured" if place in report.skipped else ""
        rows.append(row_of(*_named(report, place), chance, *([state] if has_state else [])))
    columns = [*_naming(report), Column("probability"), *words(*[""] * has_state)]
    return Table(
        "answer", "The revision that introduced the change" if first == last else "Possible revisions", columns, rows
    )


def _naming(report: BisectReport) -> list[Column]:
    """Commits have more details than versions."""
    return words("commit", "subject", "author", "date") if report.revisions[0].commit else words("version")


def _named(report: BisectReport, place: int) -> list[str]:
    revision = report.revisions[place]
    if not revision.commit:
        return [revision.label]
    return [revision.label, revision.subject, revision.author, revision.date[:10]]


def _path(report: BisectReport) -> list[Block]:
    if not report.steps:
        return []
    columns = [
        *words("step", "revision"),
        *([Column("subject", kind="words", media=ON_PAGES)] if report.revisions[0].commit else []),
        Column("change"),
        Column("90 % interval", kind="intervals", follows=True),
        Column("half", kind="bar"),
        Column("runs"),
        Column("P(has change)"),
        Column("remaining"),
        *words("side"),
    ]
    rows = [row_of(f"{number}", *_step(report, step)) for number, step in enumerate(report.steps, start=1)]
    note = (
        f"Change: the change of {report.followed} against {report.revisions[0].label}, from all runs up to this step. "
        "Bars: the band ends at half of the whole change. Runs: runs of the revision in this step, each paired with a "
        "run of the good or bad revision. P(has change): the probability that the revision has the change. Remaining: "
        "the number of candidate revisions, which include the one that introduced the change with a probability of "
        f"{units.plain_percent(1.0 - report.error)}."
    )
    return [Table("steps", "Step by step", columns, rows, [note]), *_charts(report)]


def _step(report: BisectReport, step: BisectStep) -> list[str | TableCell]:
    revision = report.revisions[step.place]
    change, interval = _change(report, step.change, step.low, step.high)
    looks = SIDE_LOOKS[step.outcome]
    return [
        revision.label,
        *([revision.subject] if report.revisions[0].commit else []),
        TableCell(change),
        TableCell(interval),
        TableCell(bar=_bar(report, step), emphasis=looks),
        TableCell(units.count(step.pairs)),
        TableCell("" if step.chance is None else units.chance(step.chance)),
        TableCell(units.count(step.left)),
        TableCell(step.outcome.value, emphasis=looks),
    ]


def _change(report: BisectReport, change: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    """A change and its interval as text; empty where there is none."""
    if change is None or low is None or high is None:
        return "", ""
    return units.change_and_interval(change, low, high, None if report.scale is Scale.RELATIVE else report.unit)


def _bar(report: BisectReport, step: BisectStep) -> IntervalBar | None:
    if report.effect is None or not report.effect.change:
        return None
    half = abs(report.effect.change) / 2.0
    return bar_between(step.change, interval=(step.low, step.high), margin=(-half, half))


def _charts(report: BisectReport) -> list[Chart]:
    """The measurements in the order of history, and the probability of each revision."""
    factor, symbol = _drawn_unit(report)
    rows = [_point(report, level, factor) for level in report.levels]
    effect = report.effect.change * factor if report.effect else 0.0
    axis = Axis("revision, oldest first", domain=(-0.5, len(report.revisions) - 0.5), padding=8, whole=True)
    tips = [Tooltip("revision", "revision"), Tooltip("change", "change", ".3g"), Tooltip("runs", "runs")]
    chances = [
        {"place": place, "revision": report.revisions[place].title, "chance": chance * 100.0, "none": 0.0}
        for place, chance in enumerate(report.chances, start=1)
    ]
    measured = Chart(
        id="levels",
        title=f"{capitalised(report.followed)} against {report.revisions[0].label}",
        x=axis,
        y=Axis(f"change, {symbol}", nice=True, zero=True),
        layers=[
            Layer("interval", x="place", y="low", y2="high", colour=QUIET, width=2.0),
            Layer("points", x="place", y="change", size=40.0, tips=tips),
        ],
        data={"points": columns_of(rows)},
        limits=[
            Limit(0.0, report.revisions[0].label, colour=GOOD),
            Limit(effect, report.revisions[-1].label, colour=BAD),
        ],
        half=True,
        height=220,
        paper=_HALF_PAGE,
    )
    likely = Chart(
        id="chances",
        title="Probability that a revision introduced the change",
        x=axis,
        y=Axis("probability, %", domain=(0.0, 100.0)),
        layers=[
            Layer("interval", x="place", y="none", y2="chance", width=4.0),
            Layer("points", x="place", y="chance", size=24.0,
                  tips=[Tooltip("revision", "revision"), Tooltip("%", "chance", ".3g")]),
        ],
        data={"points": columns_of(chances)},
        half=True,
        height=220,
        paper=_HALF_PAGE,
    )  # fmt: skip
    return [measured, likely] if rows else [likely]


def _drawn_unit(report: BisectReport) -> tuple[float, str]:
    if report.scale is Scale.RELATIVE:
        return 100.0, "%"
    shown = units.display_unit(report.unit, [level.change for level in report.levels])
    return shown.factor, units.symbol_of_change(shown)


def _point(report: BisectReport, level: RevisionLevel, factor: float) -> dict[str, object]:
    return {
        "place": level.place,
        "revision": report.revisions[level.place].title,
        "change": level.change * factor,
        "low": level.low * factor,
        "high": level.high * factor,
        "runs": level.runs,
    }


def _across(report: BisectReport) -> list[Block]:
    step_across = report.step_across
    if step_across is None:
        return []
    return [
        _judged(step_across, "across-metrics"),
        *summary_charts(step_across, ("step_across",)),
        Remarks("across-step", "Verdict of this comparison", [step_across.sentence, *step_across.reasons]),
    ]


def _causes(step_across: Comparison | None) -> list[Section]:
    return why_sections(step_across, RowMaker(step_across).rows()) if step_across and step_across.profiled else []


def _judged(comparison: Comparison, id_: str) -> Block:
    left, right = comparison.labels
    return plain_gating_table(comparison, RowMaker(comparison).rows(), id_, f"{right} against {left}")


def _left_out(report: BisectReport) -> list[Block]:
    if not report.skipped:
        return []
    rows = [row_of(*_named(report, place)[:2], reason) for place, reason in report.skipped.items()]
    columns = [*_naming(report)[:2], *words("why")]
    return [Table("skipped", "Revisions that could not be measured", columns, rows)]


def _revisions(report: BisectReport) -> list[Block]:
    runs = {level.place: level.runs for level in report.levels}
    rows = [
        row_of(
            f"{place}",
            *_named(report, place),
            TableCell(units.count(runs[place]) if place in runs else ""),
            TableCell(units.chance(report.chances[place - 1]) if place and report.chances else ""),
        )
        for place in range(len(report.revisions))
    ]
    columns = [*words("position"), *_naming(report), Column("runs"), Column("probability")]
    table = Table("all-revisions", capitalised(report.order), columns, rows)
    return [Details("revisions-folded", f"{units.plural(len(rows), 'revision')}, oldest first", [table], ON_PAGES)]
