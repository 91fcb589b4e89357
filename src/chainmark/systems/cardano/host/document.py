"""One host's run as a page: the delays of blocks, their causes, the host's resource use, and the consequences."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.verdict import Case, Suite, Verdict, worst
from chainmark.report.blocks import Block, Column, Remarks, Section, Table, TableCell, TableRow, one_line, row_of, words
from chainmark.report.chart import Axis, Chart, Layer, LegendSeries, Tooltip, columns_of
from chainmark.report.document import Document
from chainmark.report.run_document import OF_STATUS, STATUS_CLAUSES, gate_cases
from chainmark.systems.cardano.host.report import sampled
from chainmark.systems.cardano.host.results import Beside, HostReport, SeenBlock
from chainmark.systems.cardano.host.sample_files import BLOCKPERF_NAMES
from chainmark.systems.cardano.received import SAMPLE

# Metric, openblockperf's name of it, and its cause.
_DELAYS = (
    ("header_delay_s", "header_delta", "the network's"),
    ("request_delay_s", "block_request_delta", "this host's, choosing a peer"),
    ("fetch_delay_s", "block_response_delta", "the peer's and the way to it"),
    ("adopt_delay_s", "block_adopt_delta", "this host's"),
    ("header_to_adopted_s", "", "this host's and the peer's"),
    ("received_adopted_s", "", "all of them"),
)
_CENTILES = ("p50", "p95", "p99", "max")
_RESOURCES = ("process_cpu_percent", "gc_cpu_percent", "rss_mib", "heap_mib")
_PEERS = 3
_LISTED = 10
_CONCLUSIONS = (
    "The header delay depends on the network: it differs for other blocks, forgers and peers. The time after the "
    "header shows whether this host is slow.",
    "The chain differs from day to day. To judge a release, import several days of each release and run `chainmark "
    "compare`, which adjusts for time of day, epoch boundary, header delay and block size.",
)


def host_document(report: HostReport) -> Document:
    """Lay out one host's run."""
    manifest = report.manifest
    sections = [
        Section("beside", "Comparison with the other tool", _beside(report.beside) if report.beside else []),
        Section("host", "Block delays and their causes", _page(report)),
    ]
    beside = [_beside_case(report.beside)] if report.beside else []
    verdict = worst([OF_STATUS[manifest.status], *(case.verdict for case in beside)])
    return Document(
        kind="host",
        title=f"{report.host}: {manifest.subject.name} {manifest.subject.version}",
        subtitle=one_line([manifest.run_id, f"{units.utc(manifest.started_at)} to {units.utc(manifest.ended_at)}"]),
        verdict=verdict,
        sentence=_headline(report),
        suites=[Suite(manifest.run_id, [*gate_cases(manifest), *beside], started_at=manifest.started_at)],
        sections=[section for section in sections if section.blocks],
        notes=[],
        result=report,
        date=manifest.ended_at,
        tool_version=manifest.tool_version,
    )


def _page(report: HostReport) -> list[Block]:
    if not sampled(report.chain.classes)[0]:
        return [_chain_table(report)]
    return [
        _delay_table(report),
        *_chart(report),
        _chain_table(report),
        _peer_table(report),
        _slowest_table(report),
        Remarks("conclusions", "Conclusions", _CONCLUSIONS),
    ]


def _beside_case(beside: Beside) -> Case:
    verdict = Verdict.PASS if beside.agrees else Verdict.FAIL
    return Case("beside", f"the samples of {beside.file}", verdict, _beside_sentence(beside))


def _value(report: HostReport, metric_id: str, statistic: str) -> float | None:
    summary = report.metrics.get(metric_id)
    if summary is None or summary.distribution is None:
        return None
    if statistic in summary.estimates:
        return summary.estimates[statistic].value
    return None


def _headline(report: HostReport) -> str:
    """The headline: whether the run is valid; with another tool's samples, the number of figures that differ."""
    begin = _beside_sentence(report.beside) if report.beside else STATUS_CLAUSES[report.manifest.status]
    return f"{begin}. {_sentence(report)}"


def _sentence(report: HostReport) -> str:
    count, others = sampled(report.chain.classes)
    if not count:
        return (
            f"None of the {units.count(others)} blocks in the log was received and adopted within the limits: the "
            "counts of the run show why."
        )
    if _value(report, "received_adopted_s", "p50") is None:
        return f"{units.plural(count, 'block')} received and adopted, too few for a median."
    whole = units.quantity(_value(report, "received_adopted_s", "p50"), "s")
    header = units.quantity(_value(report, "header_delay_s", "p50"), "s")
    own = units.quantity(_value(report, "header_to_adopted_s", "p50"), "s")
    late = _value(report, "received_adopted_s", "p95")
    tail = f", and 95 of 100 within {units.quantity(late, 's')}" if late is not None else ""
    return (
        f"Half of {units.plural(count, 'block')} were adopted within {whole} of their slots{tail}; at the median the "
        f"header took {header} to arrive, and the block was adopted {own} after its header."
    )


def _delay_table(report: HostReport) -> Table:
    columns = [*words("delay", "in blockperf", "caused by"), *map(Column, _CENTILES)]
    rows = [_delay_row(report, *entry) for entry in _DELAYS]
    others = ", ".join(name for _, name, _ in _DELAYS if name)
    notes = [
        "Header: from slot start. Request: from the header, to the peer that sent it. Fetched: from the request. "
        f"Adopted: from the fetch, also by a switch of forks. In openblockperf: {others}.",
    ]
    return Table("delays", "", columns, rows, notes)


def _delay_row(report: HostReport, metric_id: str, name: str, whose: str) -> TableRow:
    label = report.catalogue.metric(metric_id).label
    values = [_value(report, metric_id, item) for item in _CENTILES]
    return row_of(label, BLOCKPERF_NAMES.get(name, ""), whose, *_scaled("s", values))


def _scaled(unit: str, values: Sequence[float | None]) -> list[TableCell]:
    """Figures of one row in one unit."""
    shown = units.display_unit(unit, values)
    decimals = units.decimals_for([shown.of(value) for value in values])
    return [
        TableCell(units.number(shown.of(value), decimals), shown.symbol)
        if value is not None
        else TableCell(units.NOT_ESTIMABLE)
        for value in values
    ]


def _chart(report: HostReport) -> list[Block]:
    """The share of blocks over time since their slot: header received, and adopted."""
    curves = report.curves
    if curves is None:
        return []
    rows = [
        {"label": label, "x": units.rounded(value), "y": units.rounded(share)}
        for label, points in (("first header", curves.headers), ("adopted", curves.adopted))
        for value, share in points
    ]
    total = units.plural(len(report.blocks), "block")
    beyond = f"the slowest {units.count(curves.beyond)} of {total}" if curves.beyond > 1 else f"the slowest of {total}"
    time = "time since slot start, s"
    tips = [Tooltip("", "label"), Tooltip("blocks", "y", ".0%"), Tooltip(time, "x", ".3g")]
    line = Layer("line", x="x", y="y", colour="label", style="label", order="y", opacity=1, tips=tips, nearest=True)
    return [
        Chart(
            id="received",
            title="Received and adopted blocks over time since their slots",
            x=Axis(time, domain=(0.0, units.rounded(curves.edge_s))),
            y=Axis("share of blocks", numbers="percent", domain=(0, 1)),
            layers=[line],
            data={"points": columns_of(rows)},
            series={"label": LegendSeries(["first header", "adopted"])},
            note=f"The right edge is the p99 of the adoptions; beyond it: {beyond}." if curves.beyond else "",
            wide=True,
            height=220,
            paper=(560, 80),
        )
    ]


def _chain_table(report: HostReport) -> Table:
    chain = report.chain
    count, others = sampled(chain.classes)
    reasons = {name: n for name, n in chain.classes.items() if name not in {SAMPLE, "forged here"}}
    size = _value(report, "received_size_bytes", "mean")
    missed = "no forge loop is logged: a relay, or Forge.Loop is not traced"
    if chain.missed_slots is not None and chain.loop_slots:
        share = units.plain_percent(chain.missed_slots / chain.loop_slots)
        missed = f"{units.count(chain.missed_slots)} of {units.count(chain.loop_slots)} ({share})"
    forged = (
        "none" if not chain.forged else f"{units.count(chain.forged)}, {units.count(chain.forged_lost)} of them lost"
    )
    facts = {
        "blocks of others": f"{units.count(count)} of {units.count(others)} received and adopted",
        "excluded blocks": one_line(f"{name} {units.count(n)}" for name, n in reasons.items()) or "none",
        "mean size": units.NO_DATA if size is None else units.byte_size(round(size)),
        "heights with a battle": units.count(chain.battles),
        "switches to another fork": units.count(chain.switches),
        "own blocks": forged,
        "missed slots": missed,
        **_resources(report),
    }
    return Table("chain", "Chain and resource use", words("", ""), [row_of(*fact) for fact in facts.items()])


def _resources(report: HostReport) -> dict[str, str]:
    """The node's resource use, by the metrics' labels."""
    facts = {}
    for metric_id in _RESOURCES:
        metric = report.catalogue.metric(metric_id)
        values = {name: _value(report, metric_id, name) for name in ("mean", "p99", "max")}
        messages = [
            f"{name} {units.quantity(value, metric.unit)}" for name, value in values.items() if value is not None
        ]
        facts[metric.label] = one_line(messages) or "not logged; trace Resources at Info"
    return facts


def _peer_table(report: HostReport) -> Table:
    total = max(len(report.blocks), 1)
    rows = [
        row_of(
            peer.peer,
            units.plain_percent(peer.headers / total),
            units.plain_percent(peer.blocks / total),
            units.quantity(peer.fetch_p50_s, "s"),
        )
        for peer in report.peers[:_PEERS]
    ]
    columns = [*words("peer"), Column("first headers"), Column("blocks"), Column("median fetch")]
    more = len(report.peers) - _PEERS
    notes = [f"{units.plural(more, 'more peer')} sent less."] if more > 0 else []
    return Table("peers", "First senders", columns, rows, notes)


def _slowest_table(report: HostReport) -> Table:
    columns = [*words("height", "slot start"), *map(Column, ("header", "request", "fetch", "adopt", "adopted after"))]
    columns += words("from")
    rows = [_slow_row(seen_block) for seen_block in report.slowest]
    notes = ["chainmark block RUN HEIGHT shows one block with its log lines."] if rows else []
    return Table("slowest", "The slowest blocks", columns, rows, notes)


def _slow_row(seen_block: SeenBlock) -> TableRow:
    sample = seen_block.sample
    deltas = (
        sample.header_delta,
        sample.block_request_delta,
        sample.block_response_delta,
        sample.block_adopt_delta,
    )
    cells = [TableCell(units.count(delta), "ms") for delta in deltas]
    peer = f"{sample.block_remote_addr}:{sample.block_remote_port}"
    height, start = units.count(sample.block_number), units.utc_of_nanoseconds(seen_block.time_ns)
    return row_of(height, start, *cells, units.quantity(seen_block.adopted_s, "s"), peer)


def _beside_sentence(beside: Beside) -> str:
    messages = [
        f"{units.plural(beside.common, 'block')} in both, {units.count(beside.figures)} figures compared, "
        f"{units.count(len(beside.differences))} {'differs' if len(beside.differences) == 1 else 'differ'}"
    ]
    if lacking := len(beside.only_theirs) + len(beside.not_in_log):
        messages.append(f"{units.plural(lacking, 'block')} only in {beside.file}")
    if beside.outside:
        messages.append(f"{units.plural(beside.outside, 'block')} there before or after this log")
    if beside.only_ours:
        messages.append(f"{units.plural(len(beside.only_ours), 'block')} only here")
    if beside.masked:
        verb = "differs" if beside.masked == 1 else "differ"
        messages.append(f"{units.plural(beside.masked, 'peer address', 'peer addresses')} {verb} and may be masked")
    return "; ".join(messages)


def _beside(beside: Beside) -> list[Block]:
    rows = [
        row_of(units.count(difference.block_number), difference.field, difference.ours, difference.theirs)
        for difference in beside.differences[:_LISTED]
    ]
    rows += [row_of(units.count(height), "block", why, "a sample") for height, why in beside.only_theirs[:_LISTED]]
    rows += [
        row_of(units.count(height), "block", "not in the log", "a sample") for height in beside.not_in_log[:_LISTED]
    ]
    blocks: list[Block] = [Remarks("beside", "", ["Delays may differ by 1 ms, because both are truncated to ms."])]
    if rows:
        blocks.append(Table("differences", "Differences", words("height", "figure", "here", beside.file), rows))
    return blocks
