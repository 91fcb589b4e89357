"""The page as a document: its SLAs, the machines, one table per cell, and the method of the tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chainmark.capacity.summaries import error_share, non_2xx
from chainmark.capacity.verdict import bare_level
from chainmark.core import units
from chainmark.core.load_report import CapacityEntry, Centile, Kind, ServiceLevel, StepEntry
from chainmark.core.verdict import PRINTED, Verdict, shown
from chainmark.core.wording import capitalised, enumerated, sentence_of
from chainmark.lab.loading import STANDARD
from chainmark.report import load_text as text
from chainmark.report.blocks import Block, Column, Remarks, Section, Table, TableCell, TableRow, one_line, row_of, words
from chainmark.report.document import Document
from chainmark.systems.mesh.page.results import LoadPage, PageRelease, PageRow, PageRun, PageTable
from chainmark.systems.mesh.pruning import PRUNING
from chainmark.systems.mesh.published import STANDARD_SLA_S, EndpointRow, EndpointTable

PRINTED_ERROR_SHARE = 0.01  # the existing page states it so for all of its tables
_PUBLISHED = [Column("ID"), Column("Endpoint", kind="words", follows=True), *map(Column, (
    "Max Concurrency", "p95 (ms)", "p99 (ms)", "Non-2xx", "Error Rate (%)", "Reqs/sec"))]  # fmt: skip
_NOTHING = TableCell(units.UNSET, emphasis="quiet")
_CONNECTIONS = {"0": "kept open", "1": "a new one per request"}
_PRINTED_NOTE = "Printed: read from a published page, not measured by chainmark."
_PRINTED_METHOD = (
    "They state neither intervals nor why a search ended. `ab` sent at most 50,000 requests per step, each on a new "
    "connection, and measured latencies from the time of sending."
)
_COLUMNS_ARE = [
    "Max Concurrency: the largest number of clients that met the SLA. All other figures are for the step at that "
    "level: p95 and p99 of all requests that were due; Reqs/sec counts correct responses.",
    text.INTERVALS_ARE,
    "Confirmed: the level was measured again and passed every time. Offered: requests due per second.",
]


def page_document(page: LoadPage) -> Document:
    """Lay out the page."""
    sections = [
        Section("about", "About this page", _about(page)),
        Section("sla", "Service Level Agreements (SLAs)", [_sla_table(page)]),
        Section("hardware", "Hardware profiles", [_hardware(page)]),
        *(section for number, release in enumerate(page.releases) for section in _release(release, number)),
        Section("method", "How it was tested", _method(page)),
        Section("left-out", "Not on this page", [Remarks("left-out", "", page.left_out)] if page.left_out else []),
    ]
    return Document(
        kind="load-page",
        title=page.title,
        subtitle=one_line([units.plural(len(page.releases), "release"), f"newest run {units.utc(page.date)}"]),
        verdict=Verdict.INFORMATIONAL,
        sentence=f"The load that {enumerated(_subjects(page))} sustained, by release, newest first.",
        suites=[shown(page.title, [page.subtitle])],
        sections=[section for section in sections if section.blocks],
        notes=[],
        has_band=False,
        result=page,
        contents=True,
        is_page=True,
        tool_version=page.tool_version,
    )


def _subjects(page: LoadPage) -> list[str]:
    return list(dict.fromkeys(release.subject for release in page.releases))


def _tables(page: LoadPage) -> list[PageTable]:
    return [table for release in page.releases for table in release.tables]


def _about(page: LoadPage) -> list[Block]:
    own = [
        "One table per release, machine and scenario. Each endpoint is tested alone, with an increasing number of "
        "clients, until it no longer meets the SLA. Its row shows the largest number of clients that it sustained.",
        "A second table shows the interval of the capacity, why the search ended, whether the capacity was confirmed, "
        "and the offered and completed rates.",
    ]
    blocks: list[Block] = [Remarks("about", "", own)]
    if page.introduction:
        blocks.append(
            Remarks("introduction", "From the published page", [item.removeprefix("- ") for item in page.introduction])
        )
    return blocks


# -- SLAs and machines -------------------------------------------------------------------------------------------------


def _sla_table(page: LoadPage) -> Table:
    """Every SLA with the tables that are judged by it."""
    held: dict[tuple[float | None, float, float], list[str]] = {}
    for release in page.releases:
        for table in release.tables:
            for key in _distinct_slas(table):
                held.setdefault(key, []).append(_scenario_name(table))
    columns = [Column("p99 limit, s"), Column("p95 limit, s"), Column("non-2xx limit, %"), *words("scenarios")]
    rows = []
    for p95_s, p99_s, share in sorted(held, key=lambda item: (item[1], item[0] or 0.0, item[2])):
        names = list(dict.fromkeys(held[p95_s, p99_s, share]))
        p95 = units.tidy(p95_s) if p95_s is not None else units.UNSET
        rows.append(row_of(units.tidy(p99_s), p95, units.tidy(share * 100.0), "; ".join(names)))
    notes = ["In measured tables, every request without a correct response in time is an error, not only non-2xx."]
    return Table("agreements", "", columns, rows, notes)


def _distinct_slas(table: PageTable) -> list[tuple[float | None, float, float]]:
    if table.printed:
        sla_s = table.printed.scenario.sla_s
        return [(sla_s, sla_s, PRINTED_ERROR_SHARE)]
    return list(dict.fromkeys((row.sla.p95_s, row.sla.p99_s, row.sla.error_share)
                              for row in table.rows))  # fmt: skip


def _hardware(page: LoadPage) -> Table:
    """Every machine once, with the releases that were tested on it."""
    results: dict[tuple[str, str], list[str]] = {}
    for release in page.releases:
        for table in release.tables:
            results.setdefault((_hardware_name(table), table.machine), []).append(release.version)
    rows = [row_of(name, machine, ", ".join(dict.fromkeys(releases))) for (name, machine), releases in results.items()]
    return Table("hardware", "", words("profile", "machine specs", "releases"), rows)


def _hardware_name(table: PageTable) -> str:
    return table.cell.get("hardware", text.NOT_DECIDED if not table.machine else "server")


def _scenario_name(table: PageTable) -> str:
    """What distinguishes a table from the others of its release and machine: pruning, deployment, scenario."""
    scenario = table.cell.get("scenario", STANDARD)
    parts = [capitalised(table.cell.get(PRUNING.id, "")), table.cell.get("deployment", "")]
    parts += [scenario] if scenario != STANDARD or not any(parts) else []
    return one_line(parts)


# -- releases ----------------------------------------------------------------------------------------------------------


def _release(release: PageRelease, number: int) -> Iterable[Section]:
    """One section for each machine."""
    machines: dict[tuple[str, str], list[PageTable]] = {}
    for table in release.tables:
        machines.setdefault((_hardware_name(table), table.machine), []).append(table)
    names = [name for name, _ in machines]
    for place, ((name, machine), tables) in enumerate(machines.items()):
        title = f"{release.version} ({release.day.isoformat()}): {_hardware_title(name)}"
        if names.count(name) > 1:
            title += f", {machine}"
        id_ = f"release-{number}-{place}"
        blocks: list[Block] = [Remarks(f"{id_}-machine", "", [f"Machine Specs: {machine}"])]
        for index, table in enumerate(tables):
            blocks += _cell(table, f"{id_}-{index}")
        yield Section(id_, title, [*blocks, *_release_notes(id_, tables)], folded=False)


def _hardware_title(name: str) -> str:
    return f"{name}-level hardware" if name.isalpha() else name


def _release_notes(id_: str, tables: Sequence[PageTable]) -> list[Block]:
    notes = list(dict.fromkeys(note for table in tables if table.printed for note in table.printed.release_notes))
    return [Remarks(f"{id_}-notes", "Notes", notes)] if notes else []


def _cell(table: PageTable, id_: str) -> list[Block]:
    title = _scenario_name(table)
    if table.printed:
        return [_printed_table(table.printed, f"{title} ({PRINTED.lower()})", id_)]
    sla_notes = [_sla_note(sla) for sla in dict.fromkeys(row.sla for row in table.rows)]
    facts = [f"{fact.label}: {fact.value}." for fact in table.runs[0].facts]
    reported = list(dict.fromkeys(f"{warning}." for run in table.runs for warning in run.warnings))
    blocks: list[Block] = [
        Table(
            id_,
            title,
            _PUBLISHED,
            [_published_row(n, row) for n, row in enumerate(table.rows, 1)],
            [*sla_notes, *facts],
        ),
        *_further(table, f"{id_}-further", title),
    ]
    return [*blocks, *([Remarks(f"{id_}-warnings", "Warnings", reported)] if reported else [])]


def _sla_note(sla: ServiceLevel) -> str:
    lifted = "" if sla.p99_s <= STANDARD_SLA_S else f", raised from {units.duration(STANDARD_SLA_S)}"
    return f"SLA: {text.sla_text(sla)}{lifted}."


# -- the published columns ---------------------------------------------------------------------------------------------


def _printed_table(printed: EndpointTable, title: str, id_: str) -> Table:
    rows = [_printed_row(row) for row in printed.scenario.rows]
    retained = [place for place in range(len(_PUBLISHED)) if any(row.cells[place] is not _NOTHING for row in rows)]
    columns = [_PUBLISHED[place] for place in retained]
    shown_rows = [TableRow([row.cells[place] for place in retained]) for row in rows]
    sla = f"SLA: p95 and p99 below {units.duration(printed.scenario.sla_s)}."
    return Table(id_, title, columns, shown_rows, [*map(sentence_of, printed.scenario.notes), sla, _PRINTED_NOTE])


def _printed_row(row: EndpointRow) -> TableRow:
    """Digit for digit; values without a column on the page are omitted."""

    def figure(name: str, unit: str = "") -> TableCell:
        value: float | None = getattr(row, name)
        if value is None:
            return _NOTHING
        return TableCell(units.number(value, _decimals(row.last_digits.get(name, 1.0)), grouped=False) + unit)

    return TableRow([
        TableCell(str(row.id)), TableCell(row.endpoint), figure("max_concurrency"), figure("p95_ms", "ms"),
        figure("p99_ms", "ms"), figure("non_2xx"), figure("error_percent", "%"), figure("requests_per_s"),
    ])  # fmt: skip


def _decimals(last_digit: float) -> int:
    """The number of decimals of a figure whose last digit has that unit: 2 for 0.01."""
    return len(units.tidy(last_digit).partition(".")[2])


def _published_row(number: int, row: PageRow) -> TableRow:
    """The same columns for measured data; for an endpoint that could not serve one client, only that."""
    answer = row.answers.get("clients")
    named = [TableCell(str(number)), TableCell(row.label)]
    if answer is None:
        return TableRow([*named, *[_NOTHING] * 6])
    capacity = TableCell(text.capacity_text(answer.capacity), emphasis=text.capacity_emphasis(answer.capacity))
    step = answer.step if answer.capacity.best_step is not None else None
    return TableRow([*named, capacity, *(_figures(step) if step else [_NOTHING] * 5)])


def _figures(step: StepEntry) -> list[TableCell]:
    share = text.percent_figure(error_share(step))
    return [
        _milliseconds(step.of_due.p95),
        _milliseconds(step.of_due.p99),
        TableCell(str(non_2xx(step))),
        TableCell(f"{share.text}%" if units.is_figure(share.text) else share.text),
        TableCell(units.number(step.ok_per_s, 2, grouped=False)),
    ]


def _milliseconds(centile: Centile) -> TableCell:
    """As the published tables have it: `218ms`."""
    cell = text.centile_cell(centile)
    return TableCell(f"{cell.text}ms", emphasis=cell.emphasis) if centile.value_s is not None else cell


# -- data that they omit -----------------------------------------------------------------------------------------------


def _further(table: PageTable, id_: str, title: str) -> list[Table]:
    """For each kind of load the data that the published columns omit."""
    tables = []
    for kind in text.KINDS:
        rows = [_further_row(n, row, kind) for n, row in enumerate(table.rows, 1) if kind in row.answers]
        if rows:
            heading = "by clients" if kind == "clients" else "by rate"
            tables.append(Table(f"{id_}-{kind}", f"{title}: details {heading}", _further_columns(kind), rows))
    return tables


def _further_columns(kind: Kind) -> list[Column]:
    first = ["interval, clients"] if kind == "clients" else ["max rate, /s", "interval, /s", "p95, ms", "p99, ms"]
    counted = ["requests", "offered, /s", "completed, /s", "failed"]
    return [Column("ID"), Column("Endpoint", kind="words", follows=True), *map(Column, first),
            *words("stopped by", "confirmed"), *map(Column, counted), *words("other runs", "run")]  # fmt: skip


def _further_row(number: int, row: PageRow, kind: Kind) -> TableRow:
    answer = row.answers[kind]
    capacity, step = answer.capacity, answer.step
    cells = [TableCell(str(number)), TableCell(row.label)]
    if kind == "rate":
        cells.append(TableCell(text.capacity_text(capacity), emphasis=text.capacity_emphasis(capacity)))
    cells.append(TableCell(text.interval_text(capacity)))
    if kind == "rate":
        cells += [text.centile_cell(step.of_due.p95), text.centile_cell(step.of_due.p99)] if step else [_NOTHING] * 2
    stopped = text.stopped_text(capacity, row.sla)
    at = f", figures for {text.level_of(step)}" if step and capacity.best_step is None else ""
    cells += [TableCell(f"{stopped}{at}"), TableCell(_confirmed(capacity)), *_rates(step)]
    others = ", ".join(text.capacity_text(item) for item in answer.others)
    return TableRow([*cells, TableCell(others or units.UNSET), TableCell(row.run_id)])


def _confirmed(capacity_entry: CapacityEntry) -> str:
    if capacity_entry.contested:
        level, times = (
            bare_level(capacity_entry.contested.level),
            f"{capacity_entry.contested.passed} of {capacity_entry.contested.measured}",
        )
        return f"no: {level} passed {times} times"
    return "yes" if capacity_entry.confirmed else "no"


def _rates(step: StepEntry | None) -> list[TableCell]:
    """Requests, offered and completed per second, failed."""
    if step is None:
        return [_NOTHING] * 4
    offered = step.due / step.window_s if step.window_s > 0.0 else None
    return [
        TableCell(units.count(step.due)),
        text.per_second(offered) if offered is not None else _NOTHING,
        text.per_second(step.ok_per_s),
        TableCell(units.count(step.failed)),
    ]


# -- method ------------------------------------------------------------------------------------------------------------


def _method(page: LoadPage) -> list[Block]:
    runs = [run for table in _tables(page) for run in table.runs]
    blocks: list[Block] = []
    if runs:
        blocks.append(Remarks("columns", "Columns", _COLUMNS_ARE))
        columns = words("run", "tested", "profile", "steps", "connections", "search", "tool", "requests")
        rows = [_run_row(run) for run in runs]
        if any(run.stages for run in runs):
            columns.append(Column("step file", kind="code"))
        else:
            rows = [TableRow(row.cells[:-1]) for row in rows]
        blocks.append(Table("runs", "Runs", columns, rows, dense=True))
    printed = [table.printed for table in _tables(page) if table.printed]
    if printed:
        titles = enumerated(list(dict.fromkeys(f"“{item.title}”" for item in printed)))
        versions = ", ".join(dict.fromkeys(endpoint_table.version for endpoint_table in printed))
        messages = [
            f"Tables marked as printed are copied digit for digit from {titles}, for {versions}.",
            _PRINTED_METHOD,
        ]
        blocks.append(Remarks("printed", "Printed tables", messages))
    return blocks


def _run_row(run: PageRun) -> TableRow:
    steps, search = run.settings.get("steps", {}), run.settings.get("search", {})
    retained = steps.get("requests_per_connection")
    connections = _CONNECTIONS.get(str(retained), f"{retained} requests each")
    length = f"{units.scalar(steps.get('duration_s'))} s, up to {units.scalar(steps.get('longest_s'))} s"
    searched = f"{search.get('ladder')}, best and next level measured {units.scalar(search.get('times'))} times"
    made_by = f"chainmark {run.tool_version} on {run.generator}"
    return TableRow([
        TableCell(run.run_id), TableCell(units.utc(run.tested_at)), TableCell(run.profile), TableCell(length),
        TableCell(connections), TableCell(searched), TableCell(made_by), TableCell(run.corpus[:16] or units.UNSET),
        TableCell(run.stages),
    ])  # fmt: skip
