"""The quality of a cluster as a document: its workers, their clocks, and the network between them."""

from __future__ import annotations

from chainmark.core import units
from chainmark.core.cluster_report import ClusterClock, ClusterLink, ClusterReport, ClusterWorker
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.core.wording import some_of
from chainmark.report.blocks import Block, Column, Remark, Remarks, Section, Table, TableCell, TableRow, row_of, words
from chainmark.report.document import Document
from chainmark.report.wording import prose

USE = (
    "`ingest`, `compare`, `corpus check`, `load`, `predict` and `explain` use the workers, and commands that "
    "start nodes distribute the nodes of systems that support it over them. Workers that are reserved for load run no "
    "nodes."
)
FOR_LOAD = "reserved for load"
MOST_NODES = 4  # named per worker; all are in the JSON
CLOCKS = (
    "A clock's offset is measured in repeated exchanges. The one with the shortest round trip is used: its offset is "
    "exact to half of that round trip. The offset applies to the time of the check: a clock that drifts by 20 ppm is "
    "off by another 0.1 s after 80 minutes. A latency between two machines is never more exact than both clocks."
)
WAYS = (
    "Round trips and speeds are measured with the engine's own messages. They are slower than a ping, because each "
    "message passes through two Python processes."
)


def cluster_document(report: ClusterReport) -> Document:
    """Lay out the queries and measurements."""
    blocks: list[Block] = []
    remarks = [Remark(prose(text), "!", "caution") for text in report.warnings]
    remarks += [Remark(f"{worker.name} {text}", "✗", "worse") for worker in report.workers for text in worker.problems]
    remarks += [Remark(f"{worker.name} {text}", "!", "caution") for worker in report.workers for text in worker.remarks]
    if remarks:
        blocks.append(Remarks("doubts", "Problems and warnings", remarks))
    if report.workers:
        blocks.append(_workers(report))
    if report.clocks:
        blocks.append(_clocks(report.clocks))
    if report.links:
        blocks.append(_links(report))
    return Document(
        kind="cluster",
        title=report.title,
        subtitle=report.subtitle,
        verdict=report.verdict,
        sentence=prose(report.sentence),
        suites=[Suite(report.title, [_case(worker) for worker in report.workers], started_at=report.date)],
        sections=[Section("cluster", "The cluster", blocks)] if blocks else [],
        notes=[prose(text) for text in (USE, CLOCKS, WAYS)],
        result=report,
        date=report.date,
        tool_version=report.tool_version,
    )


def _case(worker: ClusterWorker) -> Case:
    verdict = Verdict.FAIL if worker.problems else Verdict.PASS
    figures: dict[str, float | str] = {"threads": worker.threads, "memory_bytes": worker.memory_bytes}
    return Case(worker.address, worker.name, verdict, "; ".join(worker.problems), figures=figures)


def _workers(report: ClusterReport) -> Table:
    columns = [
        *words("worker", "machine"),
        Column("threads"),
        Column("cores"),
        Column("memory"),
        Column("free disk"),
        *words("chainmark", "core", "Python", "Dask"),
        Column("nodes", kind="words", below=True),
    ]
    local_row = ["this machine", "", "", "", "", "", report.chainmark, report.build, report.python, report.engine, ""]
    rows = [*(_worker(worker) for worker in report.workers), row_of(*local_row)]
    return Table("workers", "Workers", columns, rows)


def _worker(worker: ClusterWorker) -> TableRow:
    nodes = some_of(worker.nodes, MOST_NODES)
    return row_of(
        worker.name,
        worker.machine,
        units.count(worker.threads),
        units.UNSET if worker.cores is None else units.count(worker.cores),
        units.byte_size(worker.memory_bytes) if worker.memory_bytes else "unlimited",
        units.UNSET if worker.free_bytes is None else units.byte_size(worker.free_bytes),
        *(text or units.UNSET for text in (worker.chainmark, worker.build, worker.python, worker.engine)),
        ", ".join([*([FOR_LOAD] if worker.for_load else []), *([nodes] if nodes else [])]) or units.UNSET,
        emphasis="worse" if worker.problems else "plain",
    )


def _clocks(clocks: list[ClusterClock]) -> Table:
    columns = [*words("machine"), Column("ahead by"), Column("maximum error"), Column("exchanges")]
    rows = [_clock(clock) for clock in clocks]
    return Table("clocks", f"Clock offsets from {clocks[0].reference}", columns, rows)


def _clock(clock: ClusterClock) -> TableRow:
    shown = units.display_unit("s", [clock.offset_s, clock.error_s])
    decimals = units.decimals_for([shown.of(clock.offset_s)], shown.of(clock.error_s))
    offset, error = (units.number(shown.of(value), decimals) for value in (clock.offset_s, clock.error_s))
    return row_of(
        clock.machine,
        TableCell(offset, shown.symbol),
        TableCell(error, shown.symbol),
        TableCell(units.count(clock.exchanges)),
    )


def _links(report: ClusterReport) -> Table:
    names = {worker.address: worker.name for worker in report.workers}
    columns = [*words("from", "to"), Column("shortest round trip"), Column("median round trip"), Column("speed")]
    rows = [_link(link, names) for link in report.links]
    return Table("ways", "Connections between workers", columns, rows)


def _link(link: ClusterLink, names: dict[str, str]) -> TableRow:
    ends = (names.get(link.source, link.source), names.get(link.target, link.target))
    if link.round_trip_s is None or link.median_s is None or link.bytes_per_s is None:
        return row_of(*ends, link.problem, "", "", emphasis="worse")
    speed = f"{units.byte_size(round(link.bytes_per_s))}/s"
    return row_of(*ends, _seconds(link.round_trip_s), _seconds(link.median_s), speed)


def _seconds(value: float) -> TableCell:
    return TableCell(units.quantity(value, "s"))
