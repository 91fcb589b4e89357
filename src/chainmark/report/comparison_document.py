"""A comparison as a document: the verdict and its evidence, the next step, its validity, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chainmark.core import units
from chainmark.core.comparison import ChartData, Comparison
from chainmark.core.verdict import Verdict
from chainmark.core.wording import enumerated
from chainmark.report import side_facts, validity
from chainmark.report.blocks import (
    EVERYWHERE,
    HTML,
    IN_FULL,
    MARKDOWN,
    ON_PAGES,
    PDF,
    TERMINAL,
    Block,
    Filter,
    Medium,
    Remark,
    Remarks,
    Section,
    Table,
    TableCell,
    TableRow,
    some_open,
)
from chainmark.report.breakdown_parts import breakdowns, capped, outlier_sentences
from chainmark.report.build_parts import build_sections, difference_summary
from chainmark.report.chart import Chart
from chainmark.report.charts import chart_context, comparison_charts, in_characters, only_value, with_tail_points
from chainmark.report.comparison_suite import comparison_suite
from chainmark.report.document import Document
from chainmark.report.judged_rows import INSIDE_NOISE_MEANS, JudgedRow, RowMaker, moved_text, ranks_of
from chainmark.report.metric_tables import (
    dictionary,
    distributions,
    gating_table,
    how_judged,
    metric_tables,
    moved_table,
    run_by_run,
)
from chainmark.report.phrases import Phrase
from chainmark.report.profile_parts import why_sections
from chainmark.report.split_parts import split_sections
from chainmark.report.wording import prose

_OUTLIERS = 12  # listed in sentences
_OUTLIERS_ON_TERMINAL = 4
_MOVED_ON_TERMINAL = 12  # the report lists them all
_FIRST_ON_PAPER = 6  # charts, behind the verdict
_MOST_ON_PAPER = 40  # charts: if there are more, only those of deciding or moved metrics
_HOW_TO_USE_CHARTS = (
    "Click a side in a legend to show only that side. Click it again to show both. Ctrl and scroll, or pinch, to zoom. "
    "Drag to move. Double-click to reset."
)


def comparison_document(comparison: Comparison) -> Document:
    """Lay out a comparison."""
    rows = RowMaker(comparison).rows()
    first_charts, charts = _charts(comparison, rows)
    sections = [
        Section("verdict", "Verdict", _verdict(comparison, rows)),
        Section("validity", "Validity", _validity(comparison), folded=False),
        *first_charts,
        *split_sections(comparison.splits, comparison.catalogue, _gating(comparison)),
        *why_sections(comparison, rows),
        *_open_parts(comparison, rows),
        Section("closing", "Further results", _closing(comparison, rows), media=TERMINAL),
        *_metrics(comparison, rows),
        *charts,
        *(comparison.followed.sections(comparison) if comparison.followed else ()),
        Section("run-by-run", "Run by run", [run_by_run(comparison, rows)], media=PDF),
        Section("how-judged", "How each metric was judged", [how_judged(rows)], media=PDF),
        Section("distributions", "Distributions", [distributions(comparison, rows)], media=PDF),
        Section(
            "gates-section", "Gates, runs and machine", validity.validity_blocks(comparison), closed=True, media=IN_FULL
        ),
        *_facts(comparison),
        *_configuration(comparison),
        *build_sections(comparison),
        *_subjects(comparison),
        *_all_accounts(comparison),
        Section("dictionary", "Data dictionary", [dictionary(comparison.catalogue)], closed=True, media=IN_FULL),
    ]
    return Document(
        kind="comparison",
        title=comparison.title,
        subtitle=comparison.subtitle,
        verdict=comparison.verdict,
        sentence=prose(comparison.sentence),
        suites=[comparison_suite(comparison, rows=rows)],
        sections=[section for section in sections if section.blocks],
        notes=[prose(comparison.false_alarms.rate_sentence)] if comparison.false_alarms else [],
        result=comparison,
        contents=True,
        date=comparison.date,
        tool_version=comparison.tool_version,
    )


def _gating(comparison: Comparison) -> set[str]:
    return {judgement.metric_id for judgement in comparison.judgements if judgement.gating}


def _verdict(comparison: Comparison, rows: Sequence[JudgedRow]) -> list[Block]:
    """The deciding metrics, the reasons, and the next step."""
    gating = gating_table(comparison, rows)
    blocks: list[Block] = [Remarks("nothing-gates", "", ["No gating metric was compared."])]
    if gating.rows:
        legend = (
            f"The bar shows the {units.plain_percent(comparison.confidence)} interval of the change. The shaded band "
            "is the margin, within which a change is acceptable. The axis spans twice the margin."
        )
        if any(row.is_inside_noise for row in rows):
            legend += f" {INSIDE_NOISE_MEANS}"
        blocks = [gating, Remarks("gating-legend", "", [legend], media=IN_FULL)]
    if comparison.reasons:
        # On a terminal the table itself shows the reasons of a pass.
        media = ON_PAGES if comparison.verdict is Verdict.PASS else EVERYWHERE
        blocks.append(Remarks("why", "Why", [prose(text) for text in comparison.reasons], abreast=True, media=media))
    return [*blocks, *beside_anchor(comparison), *_next(comparison, IN_FULL), *_moved_list(comparison, rows)]


def beside_anchor(comparison: Comparison) -> list[Block]:
    """The gating metrics against the pinned release, if there is one."""
    anchor = comparison.anchor
    if anchor is None:
        return []
    pair = comparison.model_copy(update={"baseline": anchor.side, "judgements": anchor.judgements, "charts": []})
    rows = [replace(row, anchor=f"anchor-{row.anchor}") for row in RowMaker(pair).rows()]
    table = gating_table(pair, rows)
    text = "This table does not affect the verdict. It shows what many small changes add up to."
    plain = [
        TableRow([TableCell(row.label_with_unit), *line.cells[1:]]) for row, line in zip(rows, table.rows, strict=True)
    ]
    return [
        replace(
            table, id="anchor", title=f"Against the anchor {anchor.side.label}", rows=plain, notes=[*table.notes, text]
        )
    ]


def _next(comparison: Comparison, media: frozenset[Medium]) -> list[Block]:
    advice = [prose(text) for text in comparison.advice]
    title = "" if media == MARKDOWN else "What to do next"
    return [Remarks("next", title, advice, abreast=True, media=media)] if advice else []


def _diagnostics(comparison: Comparison, rows: Sequence[JudgedRow]) -> int:
    """The number of compared metrics: zero if a comparison is not allowed."""
    return 0 if comparison.verdict is Verdict.INVALID else sum(not row.gating for row in rows)


def _moved(rows: Sequence[JudgedRow]) -> list[JudgedRow]:
    return [row for row in rows if row.moved and not row.gating]


def _moved_list(comparison: Comparison, rows: Sequence[JudgedRow]) -> list[Block]:
    """The other changes, each with a link to its row."""
    diagnostics, moved = _diagnostics(comparison, rows), _moved(rows)
    if not diagnostics:
        return []
    title = "Diagnostics that moved"
    if not moved:
        none = [f"None of {diagnostics} (q = 0.05)."]
        return [Remarks("moved", title, none, abreast=True, media=HTML)]
    items = [
        Remark(
            moved_text(row),
            phrases=(Phrase(row.label, row.anchor), Phrase(f" {row.change_with_unit}, interval {row.interval}")),
        )
        for row in moved
    ]
    title = f"{title}: {len(moved)} of {diagnostics} (q = 0.05)"
    return [Remarks("moved", title, items, abreast=True, media=HTML)]


def _moved_sentence(comparison: Comparison, rows: Sequence[JudgedRow], most: int | None = None) -> str:
    moved = _moved(rows)
    diagnostics = _diagnostics(comparison, rows)
    total = units.plural(diagnostics, "diagnostic metric")
    if not moved:
        return f"{units.none_of(diagnostics, 'diagnostic metric')} moved (q = 0.05)"
    shown = ", ".join(moved_text(row) for row in moved[:most])
    more = f", and {len(moved) - most} more" if most is not None and len(moved) > most else ""
    return f"{len(moved)} of {total} moved (q = 0.05): {shown}{more}"


def _validity(comparison: Comparison) -> list[Block]:
    blocks: list[Block] = [Remarks("validity-summary", "", validity.summary(comparison), media=ON_PAGES)]
    for media in (TERMINAL, ON_PAGES):
        if remarks := validity.concerns(comparison, warnings=media == ON_PAGES):
            blocks.append(Remarks(f"concerns-{'terminal' if media == TERMINAL else 'pages'}", "", remarks, media=media))
    return blocks


def _closing(comparison: Comparison, rows: Sequence[JudgedRow]) -> list[Block]:
    """A terminal's references to the rest of the report, and the next step."""
    items: list[Remark] = []
    if _diagnostics(comparison, rows):
        items.append(Remark(_moved_sentence(comparison, rows, _MOVED_ON_TERMINAL), " "))
    differences = comparison.configuration_differences
    if differences:
        default_changes = sum(item.is_default_change for item in differences)
        reported = "all" if default_changes == len(differences) else f"{default_changes}"
        place = units.plural(len(differences), "place")
        text = f"the configuration differs in {place}, {reported} of them in the versions' own defaults: see the report"
        items.append(Remark(text, " "))
    if comparison.builds and (reported := difference_summary(comparison.builds)):
        items.append(Remark(f"the builds differ in {reported}: see the report", " "))
    items += [Remark(text) for text in capped(outlier_sentences(comparison), _OUTLIERS_ON_TERMINAL)]
    items += comparison.followed.closing(comparison) if comparison.followed else ()
    items += [Remark(prose(text), "→") for text in comparison.advice]
    return [Remarks("closing", "", items)] if items else []


def _open_parts(comparison: Comparison, rows: Sequence[JudgedRow]) -> list[Section]:
    """The open parts in a pull request besides the verdict and its validity."""
    sections = []
    if _diagnostics(comparison, rows):
        sentence = _moved_sentence(comparison, rows)
        moved = moved_table(comparison, rows, MARKDOWN)
        title = sentence.partition(":")[0] if moved.rows else "Diagnostics that moved"
        blocks: list[Block] = [moved if moved.rows else Remarks("moved", "", [f"{sentence.capitalize()}."])]
        sections.append(Section("moved", title, blocks, folded=False, media=MARKDOWN))
    outliers = _outliers(comparison, "")
    sections.append(Section("outliers", "Outliers", outliers, folded=False, media=MARKDOWN))
    sections.append(Section("next", "Next", _next(comparison, MARKDOWN), folded=False, media=MARKDOWN))
    return sections


def _outliers(comparison: Comparison, title: str) -> list[Block]:
    result = capped(outlier_sentences(comparison), _OUTLIERS)
    if not result and comparison.breakdowns and title:
        keys = enumerated(list(dict.fromkeys(item.key.replace("_", " ") for item in comparison.breakdowns)))
        result = [f"There are no outliers by {keys}."]
    return [Remarks("outliers", title, result)] if result else []


def _metrics(comparison: Comparison, rows: Sequence[JudgedRow]) -> list[Section]:
    """All rows: as one section with outliers, and in a pull request each table folded."""
    tables = metric_tables(comparison, rows)
    folded = breakdowns(comparison)
    blocks: list[Block] = []
    if _diagnostics(comparison, rows):
        sentence = _moved_sentence(comparison, rows)
        blocks.append(Remarks("moved-in-all", "", [sentence], media=PDF))
    blocks += _outliers(comparison, "Outliers")
    for id_, table in tables.items():
        blocks += [table, *([folded[id_]] if id_ in folded else [])]
    section = Section(
        "metrics",
        "Metrics",
        blocks,
        filter=Filter("latency, worse, moved …", "only moved or gating metrics"),
        hint="Click a row to show its runs and centiles. Click a heading to sort.",
        media=IN_FULL,
    )
    return [
        section,
        *(
            Section(
                f"folded-{id_}",
                f"{table.title}: all {len(table.rows)} rows",
                [replace(table, title="")],
                media=MARKDOWN,
            )
            for id_, table in tables.items()
        ),
    ]


def _charts(comparison: Comparison, rows: Sequence[JudgedRow]) -> tuple[list[Section], list[Section]]:
    """The most informative charts, and the rest: deciding metrics first, then by effect over noise.

    On a screen a dozen are open; on paper the first ones follow the verdict, and only deciding or moved metrics are
    drawn.
    """
    ranks = ranks_of(rows)
    result = sorted(
        zip(comparison_charts(comparison), comparison.charts, strict=True), key=lambda pair: ranks[pair[1].metric_id]
    )
    drawn = [(_led(comparison, chart, data), data) for chart, data in result if only_value(data) is None]
    same = dict.fromkeys(data.metric_id for _, data in result if only_value(data) is not None)
    flat = [comparison.catalogue.metric(id_).label for id_ in same]
    reported: list[Block] = []
    if flat:
        reported = [
            Remarks("charts-flat", "", [f"Not drawn, because all samples of both sides are equal: {', '.join(flat)}."])
        ]
    if not drawn:
        return [
            Section("charts", "Charts", reported or [Remarks("no-chart", "", ["There are no charts."])], media=IN_FULL)
        ], []
    charts = [chart for chart, _ in drawn]
    relevant = {judgement.metric_id for judgement in comparison.judgements if judgement.gating or judgement.moved}
    on_paper = [chart for chart, data in drawn if data.metric_id in relevant or len(charts) <= _MOST_ON_PAPER]
    on_paper = on_paper[:_MOST_ON_PAPER]
    others: list[Block] = [*on_paper[_FIRST_ON_PAPER:], *reported]
    if left_out := len(charts) - len(on_paper):
        text = f"The HTML report has {units.plural(left_out, 'more chart')}, of metrics that neither gate nor moved."
        others.append(Remarks("charts-left-out", "", [text]))
    blocks = [*some_open(charts), *reported]
    first = [Section("main-charts", "Main charts", on_paper[:_FIRST_ON_PAPER], media=PDF)]
    return first, [
        Section("charts", "Charts", blocks, hint=_HOW_TO_USE_CHARTS, media=HTML),
        *in_characters(charts),
        Section("charts-on-paper", "More charts", others, media=PDF),
    ]


def _led(comparison: Comparison, chart: Chart, data: ChartData) -> Chart:
    """A chart that refers to its samples, and whose tail links to their details."""
    metric = comparison.catalogue.metric(data.metric_id)
    samples = f"samples: column {metric.id} of samples/{metric.population}.parquet in each run"
    led_chart = replace(
        chart,
        note=f"{chart.note}; {samples}" if chart.note else samples,
        half=True,
        search_text=" ".join([chart.title, metric.id]),
    )
    followed = comparison.followed if data.kind.look.has_tail else None
    if followed is None:
        return led_chart
    led_chart = replace(led_chart, leads=followed.leads(comparison, metric.id))
    points = with_tail_points(led_chart, data, chart_context(data, comparison), followed.tail(comparison, metric.id))
    if led_chart.inset is None:
        return points
    return replace(points, inset=replace(led_chart.inset, layers=points.layers, data=points.data))


def _facts(comparison: Comparison) -> list[Section]:
    table = side_facts.pairs_table("facts-of-sides", "", comparison.labels, comparison.facts, ON_PAGES)
    return [Section("facts", "Manifest", [table], closed=True, media=ON_PAGES)] if comparison.facts else []


def _configuration(comparison: Comparison) -> list[Section]:
    brief = side_facts.configuration_table(comparison, "configuration-differences", "")
    runs = validity.runs_of(comparison)
    listed = validity.brief_runs_table(comparison, MARKDOWN)
    sections = [
        Section(
            "configuration",
            "Configuration",
            side_facts.configuration_blocks(comparison),
            closed=True,
            media=IN_FULL,
        ),
        Section("runs-in-brief-section", f"Runs ({len(runs)})", [listed] if runs else [], media=MARKDOWN),
    ]
    title = f"Configuration differences ({len(brief.rows)})"
    return [*sections, Section("differences", title, [brief] if brief.rows else [], media=MARKDOWN)]


def _all_accounts(comparison: Comparison) -> list[Section]:
    blocks = validity.accounts_in_full(comparison)
    return [Section("accounts-in-full", "Complete accounting", blocks, closed=True, media=HTML)] if blocks else []


def _subjects(comparison: Comparison) -> list[Section]:
    labels = comparison.labels
    workload = side_facts.workload(comparison)
    subjects, machine = side_facts.subjects(comparison), side_facts.machine(comparison)
    remark = (
        f"Generated by chainmark {comparison.tool_version} from a comparison with schema version "
        f"{comparison.schema_version}, dated {comparison.date}."
    )
    blocks: list[Block] = [
        side_facts.pairs_table("subjects", "", labels, subjects),
        *_listed("workload", "Workload of both sides", workload, IN_FULL),
        *_listed("profile", f"Profile {comparison.profile_name}, resolved", side_facts.profile(comparison), IN_FULL),
        Remarks("made", "", [remark]),
    ]
    brief: list[Block] = [
        side_facts.pairs_table("subjects-in-brief", "", labels, [*subjects, *machine], MARKDOWN),
        *_listed("workload-in-brief", "Workload", workload, MARKDOWN),
    ]
    return [
        Section("manifest", "Subject, workload and profile", blocks, closed=True, media=IN_FULL),
        Section("subjects-section", "Subject, machine and workload", brief, media=MARKDOWN),
    ]


def _listed(id_: str, title: str, facts: Sequence[tuple[str, str]], media: frozenset[Medium]) -> list[Table]:
    return [side_facts.facts_table(id_, title, facts, media)] if facts else []
