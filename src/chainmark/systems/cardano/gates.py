"""Whether a cluster's run may be judged, and the incidents that a reader must know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from chainmark.core import units
from chainmark.core.manifest import Gate, GateKind, GateStatus, Incident
from chainmark.systems.cardano.accounting import HostSummary
from chainmark.systems.cardano.analyse import AnalysisResult
from chainmark.systems.cardano.clocks import suspects
from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.filters import MINIMUM_ADOPTIONS
from chainmark.systems.cardano.logs import ClusterLogs, listed

# The benchmarks' own limit for the spread of the first and of the last log lines.
SPREAD_LIMIT_S = 120.0
# A slot without any line is common if the forge loop missed it; ten consecutive ones are a silence.
SILENCE_SLOTS = 10
MALFORMED_LIMIT = 0.001
# Shares of the chain's heights at which a block must be known: below the first it is reported, below the second the
# figures cover too few blocks to be representative.
COVERAGE_WARN = 0.99
COVERAGE_FAIL = 0.95
# Reasons for unused decoded messages of which no healthy log has many; others are normal for nodes.
_EXCEPTIONAL = (
    "implausible time",
    "slot not begun",
    "slot ahead of its line",
    "more than a million slots ahead",
)
# A host receives a block no earlier than its forger made it, within the difference of clocks under NTP.
CLOCK_LIMIT_S = 0.010
# Lines of several threads are written in almost their order.
ORDER_LIMIT_S = 1.0
_MOST_LISTED = 5
_TEXT = 80


@dataclass
class GateFindings:
    """Gates, incidents in chronological order, and warnings."""

    gates: list[Gate] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def gate(
        self,
        gate_id: str,
        label: str,
        measured: str,
        limit: str,
        *,
        fine: bool,
        detail: str,
        kind: GateKind = GateKind.INSTRUMENT,
    ) -> None:
        """Add a gate that can only warn: figures that the logs support are still measured."""
        self.gates.append(
            Gate(
                id=gate_id,
                label=label,
                status=GateStatus.PASS if fine else GateStatus.WARN,
                measured=measured,
                limit=limit,
                detail="" if fine else detail,
                kind=kind,
            )
        )


@dataclass(frozen=True)
class GateInputs:
    """The input of the findings.

    Attributes:
        slots: per host, its table of slots.
        lonely: hosts that share no block with the others.
        missing: sentences about messages that hosts never emit.
        cluster: the logs as found.
    """

    summaries: Mapping[str, HostSummary]
    slots: Mapping[str, Path | None]
    genesis: Genesis
    analysis: AnalysisResult
    lonely: Sequence[str]
    missing: Sequence[str]
    cluster: ClusterLogs


def find(judged: GateInputs) -> GateFindings:
    """All gates, incidents and warnings of an import."""
    findings = GateFindings()
    parts: tuple[Callable[[GateInputs, GateFindings], None], ...] = (
        _sources,
        _completeness,
        _restarts,
        _silences,
        _readability,
        _clocks,
        _chain,
        _unused_messages,
        _blocks,
        _messages,
    )
    for part in parts:
        part(judged, findings)
    findings.incidents.sort(key=lambda incident: (incident.time_ns, incident.what))
    return findings


def _sources(judged: GateInputs, findings: GateFindings) -> None:
    """It is unknown whether something that looks like a log would have been a host, or part of one."""
    unread = judged.cluster.unread
    reasons: dict[str, list[str]] = {}
    for item in unread:
        reasons.setdefault(item.reason, []).append(item.name)
    findings.gate(
        "logs_read",
        "all logs read",
        f"{units.plural(len(judged.cluster.files), 'file')} read, {units.count(len(unread))} not",
        "all files that look like logs are read",
        fine=not unread,
        detail="; ".join(f"{listed(names)}: {reason}" for reason, names in reasons.items()),
    )
    silent = [file.name for file in judged.cluster.files if not file.head.objects]
    if silent:
        noun = "it was" if len(silent) == 1 else "they were"
        findings.warnings.append(f"{listed(silent)}: no node message at the beginning, although {noun} read as a log")


def _completeness(judged: GateInputs, findings: GateFindings) -> None:
    firsts = {
        name: summary.line_counts.first_ns
        for name, summary in judged.summaries.items()
        if summary.line_counts.first_ns is not None
    }
    lasts = {
        name: summary.line_counts.last_ns
        for name, summary in judged.summaries.items()
        if summary.line_counts.last_ns is not None
    }
    begin, end = min(firsts.values()), max(lasts.values())
    late = {name: s for name, at in firsts.items() if (s := (at - begin) / 1e9) > SPREAD_LIMIT_S}
    early = {name: s for name, at in lasts.items() if (s := (end - at) / 1e9) > SPREAD_LIMIT_S}
    for name, seconds in late.items():
        findings.incidents.append(
            Incident(
                time_ns=firsts[name], what=f"{name} starts logging, {units.number(seconds, 0)} s after the first host"
            )
        )
    for name, seconds in early.items():
        findings.incidents.append(
            Incident(
                time_ns=lasts[name], what=f"{name} stops logging, {units.number(seconds, 0)} s before the last host"
            )
        )
    incomplete = sorted({*late, *early})
    total = len(judged.summaries)
    findings.gate(
        "hosts_complete",
        "hosts log until the end",
        f"{total - len(incomplete)} of {total} hosts",
        f"every host's log begins and ends within {units.duration(SPREAD_LIMIT_S)} of the others'",
        fine=not incomplete,
        detail=f"late or cut short: {listed(incomplete)}",
    )


def _restarts(judged: GateInputs, findings: GateFindings) -> None:
    restarted = []
    for name, summary in judged.summaries.items():
        for time_ns in summary.timeline.restarts:
            restarted.append(name)
            findings.incidents.append(
                Incident(time_ns=time_ns, what=f"{name} had restarted by this time: its counters start again")
            )
    findings.gate(
        "no_restarts",
        "no node restarted",
        f"{len(restarted)} restarts" if len(restarted) != 1 else "1 restart",
        "none",
        fine=not restarted,
        detail=listed(sorted(set(restarted))),
        kind=GateKind.SUBJECT,
    )


def silences(slots: Path) -> list[tuple[int, int]]:
    """First and last slot of every run of at least :data:`SILENCE_SLOTS` slots without any line."""
    gaps = pl.scan_parquet(slots).filter("is_gap").select("slot").collect().get_column("slot")
    if gaps.is_empty():
        return []
    runs = gaps.to_frame().group_by((gaps - pl.arange(len(gaps), eager=True)).alias("run"))
    spans = runs.agg(pl.col("slot").min().alias("first"), pl.col("slot").max().alias("last")).sort("first")
    return [(first, last) for _, first, last in spans.iter_rows() if last - first + 1 >= SILENCE_SLOTS]


def _silences(judged: GateInputs, findings: GateFindings) -> None:
    silent: dict[str, int] = {}
    length = judged.genesis.slot_length_s
    for name, path in judged.slots.items():
        for first, last in silences(path) if path is not None else []:
            count = last - first + 1
            silent[name] = silent.get(name, 0) + count
            what = f"{name} logs nothing about slots {first} to {last}, {units.number(count * length, 0)} s"
            findings.incidents.append(Incident(time_ns=judged.genesis.slot_start_ns(first), what=what))
    findings.gate(
        "no_gaps",
        "no gaps in the logs",
        f"{units.count(sum(silent.values()))} slots in gaps",
        f"no host logs nothing for {SILENCE_SLOTS} slots",
        fine=not silent,
        detail=listed(list(silent)),
    )


def _readability(judged: GateInputs, findings: GateFindings) -> None:
    malformed = {
        name: item.line_counts.malformed for name, item in judged.summaries.items() if item.line_counts.malformed
    }
    lines = sum(item.line_counts.raw_lines for item in judged.summaries.values())
    share = sum(malformed.values()) / lines
    worst = max(malformed, key=lambda name: malformed[name], default="")
    findings.gate(
        "lines_readable",
        "log lines readable",
        f"{units.count(sum(malformed.values()))} of {units.count(lines)} lines malformed",
        f"at most {units.plain_percent(MALFORMED_LIMIT)}",
        fine=share <= MALFORMED_LIMIT,
        detail=f"most of them in {worst}",
    )
    retained = 0
    for name, count in malformed.items():
        for line in judged.summaries[name].line_counts.malformed_examples:
            if retained == _MOST_LISTED:
                break
            retained += 1
            noun = "line" if count == 1 else "lines"
            findings.warnings.append(
                f"{name} has {units.count(count)} malformed {noun}, such as line {units.count(line.line)} of "
                f"{Path(line.file).name} "
                f"({line.reason}): {line.text[:_TEXT]!r}"
            )
            break
    for name, summary in judged.summaries.items():
        for file in summary.line_counts.files:
            if file.damage is not None:
                findings.warnings.append(f"{Path(file.path).name} of {name} is damaged: {file.damage}")
        if summary.line_counts.seconds_before_order > ORDER_LIMIT_S:
            back = summary.line_counts.seconds_before_order
            findings.warnings.append(f"the lines of {name} go back in time, by up to {units.number(back, 1)} s")
        if len(summary.line_counts.names) > 1:
            names = listed(sorted(summary.line_counts.names))
            findings.warnings.append(
                f"the log of {name} has lines of the hosts {names}; all of them are attributed to {name}"
            )


def _clocks(judged: GateInputs, findings: GateFindings) -> None:
    """Two signs of wrong clocks: forge-loop rounds far from slots' starts, and headers earlier than their blocks."""
    length = judged.genesis.slot_length_s
    offsets = {name: summary.loop_offsets_s for name, summary in judged.summaries.items() if summary.loop_offsets_s}
    off = {name: offset[1] for name, offset in offsets.items() if not -CLOCK_LIMIT_S <= offset[1] <= length}
    early = suspects(
        [contradiction for contradiction in judged.analysis.contradictions if contradiction.by_s > CLOCK_LIMIT_S]
    )
    details = [
        f"the forge loop of {name} runs {units.number(seconds, 3, signed=True)} s off its slots' starts"
        for name, seconds in off.items()
    ]
    details += [str(suspect) for suspect in early]
    findings.gate(
        "clocks",
        "clocks agree",
        f"{len({*off, *(suspect.name for suspect in early)})} of {len(judged.summaries)} hosts contradict the others"
        if details
        else "no contradiction",
        f"no header precedes its block by more than {units.duration(CLOCK_LIMIT_S)}, slots begin on time",
        fine=not details,
        detail="; ".join(details[:_MOST_LISTED]),
    )


def coverage_status(coverage: float | None) -> GateStatus:
    """The consequence of knowing blocks at this share of the heights passed; None if none was passed."""
    if coverage is None or coverage >= COVERAGE_WARN:
        return GateStatus.PASS
    return GateStatus.WARN if coverage >= COVERAGE_FAIL else GateStatus.FAIL


def _in_no_log(blocks: int) -> str:
    return f"{units.plural(blocks, 'block')} {'is' if blocks == 1 else 'are'} in no log"


def _chain(judged: GateInputs, findings: GateFindings) -> None:
    analysis = judged.analysis
    coverage = analysis.coverage
    missing = analysis.heights_passed - analysis.chain_blocks
    share = f", {units.plain_percent(coverage)}" if coverage is not None else ""
    warn, fail = units.plain_percent(COVERAGE_WARN), units.plain_percent(COVERAGE_FAIL)
    findings.gates.append(
        Gate(
            id="chain_complete",
            label="blocks of the chain known",
            status=coverage_status(coverage) if analysis.tip is not None else GateStatus.WARN,
            measured=f"{units.count(analysis.chain_blocks)} of {units.count(analysis.heights_passed)} heights{share}",
            limit=f"{warn}; below {fail} the run is invalid",
            detail="" if analysis.tip is None or not missing else _in_no_log(missing),
        )
    )
    if analysis.tip is None:
        findings.warnings.append("no block is known")
    if analysis.first_height:
        findings.warnings.append(f"the logs begin at block {analysis.first_height} of the chain")
    if analysis.bridged:
        alone = len(judged.summaries) == 1
        findings.warnings.append(_made_elsewhere(len(analysis.bridged)) if alone else _bridged(analysis.bridged))
    if judged.lonely:
        findings.warnings.append(
            f"{listed(judged.lonely)} shares no block with the other hosts"
            if len(judged.lonely) == 1
            else f"{listed(judged.lonely)} share no block with the other hosts"
        )


def _made_elsewhere(count: int) -> str:
    """Normal for one host's log, and no block needs a name."""
    was = "block of the chain was" if count == 1 else "blocks of the chain were"
    return f"{units.count(count)} {was} forged by other hosts: the forging metrics are of this host's own blocks"


def _bridged(blocks: Sequence[tuple[int, str]]) -> str:
    named = [f"{number} ({block[:12]}…)" for number, block in blocks[:_MOST_LISTED]]
    more = f" and {units.count(len(blocks) - _MOST_LISTED)} more" if len(blocks) > _MOST_LISTED else ""
    noun = "block" if len(blocks) == 1 else "blocks"
    return (
        f"the forging of {units.count(len(blocks))} {noun} of the chain is in no log, so the forging metrics lack "
        f"{'it' if len(blocks) == 1 else 'them'}: {', '.join(named)}{more}"
    )


def _unused_messages(judged: GateInputs, findings: GateFindings) -> None:
    """Messages that no healthy log contains, and that no figure uses."""
    for reason in _EXCEPTIONAL:
        counts = {
            name: summary.usage.unused[reason]
            for name, summary in judged.summaries.items()
            if reason in summary.usage.unused
        }
        if counts:
            hosts = ", ".join(f"{name} {units.count(count)}" for name, count in list(counts.items())[:_MOST_LISTED])
            more = f" and {len(counts) - _MOST_LISTED} more hosts" if len(counts) > _MOST_LISTED else ""
            findings.warnings.append(f"messages that are not used ({reason}): {hosts}{more}")


def _too_few_hosts(judged: GateInputs) -> str:
    """Why no block meets a condition that needs more adoptions than there are hosts; "" if it can be met."""
    hosts = len(judged.summaries)
    required = [
        int(name.split()[1]) for name in judged.analysis.rejected_by if name.startswith(f"{MINIMUM_ADOPTIONS} ")
    ]
    if max(required, default=0) < hosts:
        return ""
    others = f"of {units.plural(hosts, 'host')} at most {hosts - 1} adopt another's block"
    return f"; {others}, so choose other conditions with `--filter`"


def _blocks(judged: GateInputs, findings: GateFindings) -> None:
    analysis = judged.analysis
    reasons = ", ".join(f"{reason} {units.count(count)}" for reason, count in analysis.rejected_by.items() if count)
    findings.gates.append(
        Gate(
            id="blocks_analysed",
            label="blocks analysed",
            status=GateStatus.PASS if analysis.accepted else GateStatus.FAIL,
            measured=f"{units.count(analysis.accepted)} of {units.count(analysis.chain_blocks)} blocks",
            limit="at least 1",
            detail="" if analysis.accepted or not reasons else f"rejected by: {reasons}{_too_few_hosts(judged)}",
        )
    )
    if analysis.hosts_without_slots:
        hosts = analysis.hosts_without_slots
        findings.warnings.append(f"no slot of {listed(hosts)} passes the filters: excluded from the resource usage")
    if analysis.unadopted:
        findings.warnings.append(f"{units.count(len(analysis.unadopted))} analysed blocks were adopted by no host")


def _messages(judged: GateInputs, findings: GateFindings) -> None:
    findings.warnings += judged.missing
    findings.gate(
        "messages_complete",
        "messages complete",
        f"{len(judged.missing)} message types are missing" if judged.missing else "complete",
        "every host emits what the analysis needs",
        fine=not judged.missing,
        detail="the warnings name them",
    )
