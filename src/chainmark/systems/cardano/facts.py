"""The manifest's facts about a cluster's run: the rows of the published reports, the workload, the accounting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from chainmark.core.manifest import Configuration, Fact, Scalar
from chainmark.systems.cardano.accounting import HostSummary, LineCounts
from chainmark.systems.cardano.analyse import AnalysisResult
from chainmark.systems.cardano.decoding import Excluded
from chainmark.systems.cardano.documents import PACKAGES, UNKNOWN, Genesis, Meta
from chainmark.systems.cardano.filters import FilterCondition
from chainmark.systems.cardano.logs import ClusterLogs
from chainmark.systems.cardano.profile import ChainConstants
from chainmark.systems.cardano.rules import Rules

ANALYSIS_DATE = "Analysis date"
_TEXT_WIDTH = 32
# Messages that are decoded here and that the published analysis does not know.
_NOT_PUBLISHED = ("ChainDB.AddBlockEvent.SwitchedToAFork", "ChainDB.LedgerEvent.Snapshot.TookSnapshot")
_NO_SCRIPT = "—"
# Ignored kinds of messages that are counted individually in the manifest.
_IGNORED_KINDS = 40
_SCRIPTS = {
    "Loop": "plutus",
    "EcdsaSecp256k1Loop": "plutus-secp",
    "SchnorrSecp256k1Loop": "plutus-secp",
    "HashOntoG2AndAdd": "plutus-blst",
    "Ripemd160": "plutus-ripemd",
}


@dataclass(frozen=True)
class Subjects:
    """All known facts about the subject.

    Attributes:
        summaries: per host, the decoder's summary; hosts in order.
        excluded: the counts of the excluded hosts.
        node: version, revision and compiler of the node.
        cluster: the logs as found.
    """

    genesis: Genesis
    meta: Meta
    summaries: Mapping[str, HostSummary]
    excluded: Excluded
    analysis: AnalysisResult
    conditions: Sequence[FilterCondition]
    rules: Rules
    node: MeasuredNode
    cluster: ClusterLogs

    @property
    def line_counts(self) -> list[LineCounts]:
        """The accounting of all hosts."""
        return [summary.line_counts for summary in self.summaries.values()]


@dataclass(frozen=True)
class MeasuredNode:
    """The measured node; None means unknown.

    Attributes:
        version: its label.
        logged_version: the version that all logs report, or their description.
    """

    version: str
    revision: str | None
    compiler: str | None
    logged_version: str | None = None


def cut(text: str, width: int) -> str:
    """A text as the published reports show it: without trailing letters "s", cut, never rounded."""
    return text.rstrip("s")[:width]


def cut_number(value: float | Fraction, width: int) -> str:
    """A number with all digits of its double, cut to the width."""
    return repr(float(value))[:width]


def cut_duration(picoseconds: int, width: int) -> str:
    """Seconds with all digits and without a leading zero before the point, cut; ">" where whole seconds are cut."""
    whole, part = divmod(abs(picoseconds), 10**12)
    text = f"{whole}.{part:012d}".rstrip("0") if part else str(whole)
    text = text.removeprefix("0") if text.startswith("0.") else text
    text = f"-{text}" if picoseconds < 0 else text
    return f"{text[: width - 1]}>" if len(text) > width and "." not in text else text[:width]


def _of(value: object) -> str:
    return UNKNOWN if value is None else str(value)


def facts(known: Subjects) -> list[Fact]:
    """The rows of the published reports' manifest, in their order.

    A run stores no clock time: its "Analysis date" is the day of the last log line.

    Source: the published reports' table "Manifest".
    """
    rows = [*_identity_rows(known), *_workload_rows(known), *_log_rows(known), *_analysis_rows(known)]
    return [Fact(label=label, value=value) for label, value in rows]


def _identity_rows(known: Subjects) -> Iterable[tuple[str, str]]:
    meta = known.meta
    _, end = log_range(known.line_counts)
    began = datetime.fromtimestamp(known.genesis.system_start_ns // 10**9, UTC)
    yield ANALYSIS_DATE, datetime.fromtimestamp(end // 10**9, UTC).strftime("%Y-%m-%d")
    yield "Cluster system start date", began.strftime("%Y-%m-%d")
    yield "Cluster system start time", began.strftime("%H:%M:%S")
    yield "Identifier", cut(meta.identifier or known.node.version, _TEXT_WIDTH)
    yield "Run batch", cut(_of(meta.batch), _TEXT_WIDTH)
    yield "GHC version", cut(_of(known.node.compiler), _TEXT_WIDTH)
    packages = _packages(known)
    for name in PACKAGES:
        yield f"{name} version", cut(packages[name][0], 12)
    for name in PACKAGES:
        yield f"{name} git", cut(packages[name][1], 7)
    yield "Era", cut(_of(meta.era_name), _TEXT_WIDTH)


def _packages(known: Subjects) -> dict[str, tuple[str, str]]:
    """Version and commit of every package; the node reports its own if no description does."""
    reported = {name: (known.meta.package(name).version, known.meta.package(name).commit) for name in PACKAGES}
    version, commit = reported[PACKAGES[0]]
    revision = known.node.revision
    reported[PACKAGES[0]] = (
        known.node.version if version == UNKNOWN else version,
        revision if commit == UNKNOWN and revision else commit,
    )
    return reported


def _workload_rows(known: Subjects) -> Iterable[tuple[str, str]]:
    content = known.meta.profile_content
    generator = content.generator
    yield "Delegation map size", _of(content.genesis.delegators)
    yield "Stuffed UTxO size", _of(content.genesis.utxo)
    # A description that does not mention them predates them.
    dreps = 0 if content.genesis.dreps is None and content.genesis.utxo is not None else content.genesis.dreps
    yield "DRep count", _of(dreps)
    yield "Extra tx payload", _of(generator.add_tx_size)
    yield "Tx inputs", _of(generator.inputs_per_tx)
    yield "Tx Outputs", _of(generator.outputs_per_tx)
    yield "TPS", UNKNOWN if generator.tps is None else cut_number(generator.tps, 7)
    yield "Transaction count", _of(generator.tx_count)
    yield "Plutus script", cut(generator.plutus_script or _NO_SCRIPT, _TEXT_WIDTH)


def _log_rows(known: Subjects) -> Iterable[tuple[str, str]]:
    accounting = known.line_counts
    hosts = len(accounting)
    spans = [(item.last_ns or 0) - (item.first_ns or 0) for item in accounting]
    analysed = [analysed_messages(item, known.rules) for item in accounting]
    begin, end = log_range(accounting)
    yield "Machines", str(hosts)
    yield "Number of filters applied", str(len(known.conditions))
    yield "Log objects emitted per host", cut_number(Fraction(sum(item.objects for item in accounting), hosts), 12)
    yield "Log objects analysed per host", cut_number(Fraction(sum(analysed), hosts), 12)
    yield "Host run time, s", cut_duration(sum(spans) * 1000 // hosts, 7)
    rates = [item.raw_lines / (span // 10**9) for item, span in zip(accounting, spans, strict=True) if span >= 10**9]
    yield "Host log line rate, Hz", cut_number(sum(rates) / len(rates), 6) if rates else UNKNOWN
    yield "Total log objects analysed", str(sum(analysed))
    yield "Run time, s", str(round(Fraction(end - begin, 10**9)))


def _analysis_rows(known: Subjects) -> Iterable[tuple[str, str]]:
    analysis = known.analysis
    firsts = [item.first_ns for item in known.line_counts if item.first_ns is not None]
    lasts = [item.last_ns for item in known.line_counts if item.last_ns is not None]
    duration = analysis.analysed_duration_s
    whole = round(Fraction(max(lasts) - min(firsts), 10**9))
    yield "Analysed run duration, s", _of(duration)
    yield "Run time efficiency", cut_number(Fraction(duration, whole), 4) if duration is not None and whole else UNKNOWN
    yield "Node start spread, s", cut_duration((max(firsts) - min(firsts)) * 1000, 9)
    yield "Node stop spread, s", cut_duration((max(lasts) - min(lasts)) * 1000, 9)
    yield "Slots analysed", _of(analysis.slots_analysed)
    yield "Blocks analysed", str(analysis.accepted)
    yield "Blocks rejected", str(analysis.rejected)


def analysed_messages(line_counts: LineCounts, rules: Rules) -> int:
    """Messages that the analysis reads under these rules."""
    unknown = sum(line_counts.decoded_by_message.get(name, 0) for name in _NOT_PUBLISHED) if rules.published else 0
    return line_counts.decoded - unknown


def log_range(line_countses: Sequence[LineCounts]) -> tuple[int, int]:
    """Times of the first and of the last message of all hosts, ns since 1970-01-01 UTC."""
    firsts = [item.first_ns for item in line_countses if item.first_ns is not None]
    lasts = [item.last_ns for item in line_countses if item.last_ns is not None]
    return min(firsts), max(lasts)


def workload_name(meta: Meta) -> str | None:
    """The published reports' name of a run's workload; None if it is unknown."""
    generator = meta.profile_content.generator
    script = generator.plutus_script
    if script is None:
        return None if generator.tps is None else "value-only"
    return workload_of_script(script)


def workload_of_script(script: str) -> str:
    """The published reports' name of a workload of Plutus scripts."""
    return next((name for start, name in _SCRIPTS.items() if script.startswith(start)), "plutus-other")


def workload(known: Subjects) -> dict[str, Scalar | list[Scalar]]:
    """What two runs must share to be comparable, as far as known; a run without a description has less."""
    generator, ledger = known.meta.profile_content.generator, known.meta.profile_content.genesis
    genesis = known.genesis
    scalars: dict[str, Scalar | list[Scalar]] = {
        "workload.name": workload_name(known.meta),
        "workload.tps": generator.tps,
        "workload.tx_inputs": generator.inputs_per_tx,
        "workload.tx_outputs": generator.outputs_per_tx,
        "workload.tx_payload_bytes": generator.add_tx_size,
        "workload.plutus_script": generator.plutus_script,
        "ledger.utxo_entries": ledger.utxo,
        "ledger.delegators": ledger.delegators,
        "ledger.dreps": ledger.dreps,
        "network.hosts": len(known.summaries),
        "chain.slot_length_s": genesis.slot_length_s,
        "chain.epoch_slots": genesis.epoch_slots,
        "chain.active_slots_coefficient": genesis.active_slots_coefficient,
        "chain.max_block_body_bytes": genesis.max_block_body_bytes,
        "analysis.filters": [str(condition) for condition in known.conditions],
        "analysis.rules": "published" if known.rules.published else "right",
        "analysis.count_switches": known.rules.switches_count,
    }
    return {key: value for key, value in scalars.items() if value is not None}


def profile(known: Subjects, name: str) -> dict[str, object]:
    """What was run and how it was analysed, in the form of a profile; the network only as far as known."""
    genesis = known.genesis
    chain = ChainConstants(
        slot_length_s=genesis.slot_length_s,
        active_slots_coefficient=genesis.active_slots_coefficient,
        epoch_slots=genesis.epoch_slots,
        security_parameter=genesis.security_parameter,
    )
    reported = workload(known)
    section = {key.partition(".")[2]: value for key, value in reported.items() if key.startswith("workload.")}
    return {
        "system": "cardano",
        "name": name,
        "chain": {**chain.model_dump(mode="json"), "max_block_body_bytes": genesis.max_block_body_bytes},
        "workload": section,
        "analysis": {key.partition(".")[2]: value for key, value in reported.items() if key.startswith("analysis.")},
    }


def conditions(known: Subjects) -> dict[str, str]:
    """Properties that the runs of two sides should share, by the catalogue's condition IDs."""
    reported = {"era": known.meta.era_name, "compiler": known.node.compiler}
    return {key: value for key, value in reported.items() if value is not None}


def configuration(known: Subjects) -> Configuration:
    """The packages that the node was built from: what a comparison shows of the difference between two builds."""
    packages: dict[str, Scalar | list[Scalar]] = {}
    for name, (version, commit) in _packages(known).items():
        if (version, commit) != (UNKNOWN, UNKNOWN):
            packages[name] = version if commit == UNKNOWN else f"{version} ({commit[:7]})"
    return Configuration(effective={"packages": packages} if packages else {})


def counts(known: Subjects) -> dict[str, dict[str, int]]:
    """The accounting: every line, message and block in one class; the decoder's sums have been checked.

    Lines and messages are those of all hosts, including the excluded ones.
    """
    analysis = known.analysis
    counted = {**known.summaries, **known.excluded.summaries}
    decoded: Counter[str] = Counter()
    ignored: Counter[str] = Counter()
    impossible: Counter[str] = Counter()
    unused: Counter[str] = Counter()
    for host_summary in counted.values():
        decoded.update(host_summary.line_counts.decoded_by_message)
        ignored.update(host_summary.line_counts.ignored_by_message)
        unused.update(host_summary.usage.unused)
    for host_summary in known.summaries.values():
        impossible.update(host_summary.block_counts.errors_by)
    frequent = sorted(ignored.items(), key=lambda item: (item[0] == "other", -item[1], item[0]))
    retained = dict(frequent[:_IGNORED_KINDS])
    rest = sum(ignored.values()) - sum(retained.values())
    accounts = {
        "lines": _sum([_line_classes(item.line_counts) for item in counted.values()]),
        "messages": {
            "used": sum(item.usage.used for item in counted.values()),
            **{f"not used: {reason}": count for reason, count in sorted(unused.items())},
        },
        "decoded messages": dict(sorted(decoded.items())),
        "ignored messages": {**retained, **({"all others": rest} if rest else {})},
        "hosts": {"read": len(known.summaries), "left out": len(known.cluster.excluded)},
        "files that look like logs": {
            "read": len(known.cluster.files),
            "copies": len(known.cluster.repeated),
            "not read": len(known.cluster.unread),
            **_of_excluded(known),
        },
        "heights of the chain": {
            "forger known": analysis.chain_blocks - len(analysis.bridged),
            "forger in no log": len(analysis.bridged),
            "block in no log": analysis.heights_passed - analysis.chain_blocks,
        },
        "blocks of the chain": {"analysed": analysis.accepted, "rejected": analysis.rejected},
        "blocks rejected, by condition": dict(sorted(analysis.rejected_by.items())),
        "observations of the blocks analysed": analysis.observations,
        "blocks that the host knew": analysis.received,
        "blocks with impossible event times": dict(sorted(impossible.items())),
        "adoptions by a switch to a fork": {
            "counted": _switches(known) if known.rules.switches_count else 0,
            "not counted": 0 if known.rules.switches_count else _switches(known),
        },
        "slots": _sum([_slot_classes(item) for item in known.summaries.values()]),
    }
    for name, summary in counted.items():
        accounts[f"lines of {name}"] = _line_classes(summary.line_counts)
        if summary.usage.unused:
            accounts[f"messages of {name}"] = {
                "used": summary.usage.used,
                **{f"not used: {reason}": count for reason, count in sorted(summary.usage.unused.items())},
            }
    return {name: classes for name, classes in accounts.items() if sum(classes.values())}


def _of_excluded(known: Subjects) -> dict[str, int]:
    """The logs of excluded hosts; their unreadable parts are in no count of lines."""
    logs = {host.name: len(host.files) for host in known.cluster.excluded}
    unreadable = sum(logs[name] for name in known.excluded.unreadable)
    classes = {"of hosts left out on request": sum(logs.values()) - unreadable} if logs else {}
    return {**classes, "of hosts left out on request, unreadable": unreadable} if unreadable else classes


def _line_classes(line_counts: LineCounts) -> dict[str, int]:
    return {
        "decoded": line_counts.decoded,
        "ignored": line_counts.ignored,
        "skipped": line_counts.skipped,
        "malformed": line_counts.malformed,
        "not objects": line_counts.not_objects,
    }


def _slot_classes(summary: HostSummary) -> dict[str, int]:
    timeline = summary.timeline
    return {"logged": timeline.records - timeline.gaps, "filled": timeline.gaps}


def _switches(known: Subjects) -> int:
    return sum(summary.block_counts.switched_adoptions for summary in known.summaries.values())


def _sum(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {key: sum(part[key] for part in parts) for key in parts[0]}
