"""The whole report as plain data, in the order in which it is read: what the HTML and the PDF templates lay out."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chainmark.core import units
from chainmark.core.comparison import (
    ChartData,
    Comparison,
    RunEntry,
    Side,
)
from chainmark.core.manifest import Change, Gate, GateStatus, Incident
from chainmark.core.metric import Metric
from chainmark.core.verdict import Verdict
from chainmark.report.breakdown_parts import capped, outlier_sentences
from chainmark.report.content import (
    BETTER_WORDS,
    VERDICT_WORDS,
    MetricTable,
    Row,
    RowMaker,
    aligned,
    metric_tables,
)
from chainmark.report.followed import TailRow, tail_rows

GATE_MARKS = {GateStatus.PASS: "✓", GateStatus.WARN: "!", GateStatus.FAIL: "✗"}
_OUTLIERS = 12  # told in sentences
_WORST_FIRST = (GateStatus.FAIL, GateStatus.WARN, GateStatus.PASS)


@dataclass(frozen=True)
class Pair:
    """One fact on both sides."""

    label: str
    baseline: str
    candidate: str
    differs: bool
    detail: str = ""


@dataclass(frozen=True)
class GateRow:
    """One gate over all runs of both sides, or over the pair."""

    label: str
    limit: str
    status: str
    mark: str
    baseline: list[str]  # one "✓ 200.0 tx/s" a run
    candidate: list[str]
    details: list[str]
    baseline_shown: list[str]  # the same, runs that measured the same taken together
    candidate_shown: list[str]


@dataclass(frozen=True)
class RunRow:
    """One run, included or not."""

    run_id: str
    side: str
    label: str
    started: str
    place: str
    excluded_because: str
    gates: str
    incidents: list[str]
    warnings: list[str]


@dataclass(frozen=True)
class BookRow:
    """One class of one account, with its count in every run."""

    account: str
    name: str
    counts: list[str]


@dataclass(frozen=True)
class ConfigurationRow:
    """One configuration key."""

    file: str
    key: str
    baseline: str
    candidate: str


@dataclass(frozen=True)
class ChangeRow:
    """One configuration value that a side changed from its version's default."""

    side: str
    node: str
    file: str
    key: str
    default: str
    used: str


@dataclass(frozen=True)
class DictionaryEntry:
    """One metric of the data dictionary."""

    id: str
    published_id: str
    label: str
    unit: str
    description: str
    population: str
    better: str
    judged_by: str
    margin: str
    floor: str
    gating: bool
    source: str
    table: str


@dataclass(frozen=True)
class ChartEntry:
    """A chart's place in the report."""

    id: str
    metric_id: str
    kind: str
    title: str
    note: str


@dataclass(frozen=True)
class Document:
    """Everything a full report shows."""

    title: str
    subtitle: str
    date: str
    verdict: str
    verdict_word: str
    sentence: str
    reasons: list[str]
    advice: list[str]
    confidence: str
    baseline: str
    candidate: str
    gating: list[Row]
    diagnostics: int  # compared: 0 where nothing may be
    moved: list[Row]
    tables: list[MetricTable]
    validity_summary: list[str]
    pair_gates: list[GateRow]
    run_gates: list[GateRow]
    runs: list[RunRow]
    book_runs: list[str]
    books: list[BookRow]
    conditions: list[Pair]
    all_conditions: list[Pair]
    workload_differences: list[Pair]
    machine: list[Pair]
    default_changes: list[ConfigurationRow]
    made_changes: list[ConfigurationRow]
    changed: list[ChangeRow]
    changed_per_node: list[ChangeRow]
    facts: list[Pair]
    subjects: list[Pair]
    workload: list[tuple[str, str]]
    profile: list[tuple[str, str]]
    profile_name: str
    tool_version: str
    schema_version: int
    dictionary: list[DictionaryEntry]
    charts: list[ChartEntry]
    tails: list[TailRow]
    outliers: list[str]
    digest: str


def comparison_json(comparison: Comparison) -> str:
    """The canonical text of ``comparison.json``: what is embedded, hashed and downloaded."""
    return comparison.model_dump_json()


def digest(comparison: Comparison) -> str:
    """SHA-256 of the canonical text: ties a printed page to the data it came from."""
    return hashlib.sha256(comparison_json(comparison).encode()).hexdigest()


def document(comparison: Comparison) -> Document:
    """Lay out a comparison as a document."""
    rows = RowMaker(comparison).rows()
    labels = (comparison.baseline.label, comparison.candidate.label)
    runs = [(side, run) for side in (comparison.baseline, comparison.candidate) for run in side.runs]
    return Document(
        title=comparison.title,
        subtitle=comparison.subtitle,
        date=comparison.date,
        verdict=comparison.verdict.value,
        verdict_word=VERDICT_WORDS[comparison.verdict.value],
        sentence=prose(comparison.sentence),
        reasons=[prose(text) for text in comparison.reasons],
        advice=[prose(text) for text in comparison.advice],
        confidence=units.plain_percent(comparison.confidence),
        baseline=labels[0],
        candidate=labels[1],
        gating=aligned([row for row in rows if row.gating]),
        diagnostics=0 if comparison.verdict is Verdict.INVALID else sum(not row.gating for row in rows),
        moved=[row for row in rows if row.moved and not row.gating],
        tables=metric_tables(comparison, rows),
        validity_summary=validity_summary(comparison),
        pair_gates=[_pair_gate(gate) for gate in comparison.gates],
        run_gates=_run_gates(comparison),
        runs=[_run_row(side, run) for side, run in runs],
        book_runs=[_short_name(side, run, index) for side in _sides(comparison) for index, run in enumerate(side.runs)],
        books=_books([run for _, run in runs]),
        conditions=_condition_differences(comparison),
        all_conditions=_all_conditions(comparison),
        workload_differences=_workload_differences(comparison),
        machine=_machine(comparison),
        default_changes=_configuration(comparison, defaults=True),
        made_changes=_configuration(comparison, defaults=False),
        changed=_changed(comparison),
        changed_per_node=_changed_per_node(comparison),
        facts=[_pair(label, left, right) for label, left, right in comparison.facts],
        subjects=_subjects(comparison),
        workload=[(key, units.scalar(value)) for key, value in sorted(comparison.workload.items())],
        profile=flatten(comparison.profile),
        profile_name=comparison.profile_name,
        tool_version=comparison.tool_version,
        schema_version=comparison.schema_version,
        dictionary=[_entry(comparison, metric) for metric in comparison.catalogue.ordered()],
        charts=[
            ChartEntry(chart.id, chart.metric_id, chart.kind.value, chart.title, _chart_note(comparison, chart))
            for chart in comparison.charts
        ],
        tails=tail_rows(comparison),
        outliers=capped(outlier_sentences(comparison), _OUTLIERS),
        digest=digest(comparison),
    )


def _condition_differences(comparison: Comparison) -> list[Pair]:
    return [
        Pair(item.label, item.baseline, item.candidate, True, item.explanation)
        for item in comparison.condition_differences
    ]


def _workload_differences(comparison: Comparison) -> list[Pair]:
    return [
        Pair(key, units.scalar(_at(values, 0)), units.scalar(_at(values, 1)), True)
        for key, values in sorted(comparison.workload_differences.items())
    ]


def _configuration(comparison: Comparison, *, defaults: bool) -> list[ConfigurationRow]:
    """The differences that the versions' own defaults make, or those that a profile or the command line made."""
    return [
        ConfigurationRow(
            item.file,
            item.key,
            _configured(item.baseline, absent=item.only_in == "candidate"),
            _configured(item.candidate, absent=item.only_in == "baseline"),
        )
        for item in comparison.configuration_differences
        if item.is_default_change is defaults
    ]


def _changed(comparison: Comparison) -> list[ChangeRow]:
    return [
        row
        for side, files in sorted(comparison.changed_from_default.items())
        for row in _changes(_label(comparison, side), "", files)
    ]


def _changed_per_node(comparison: Comparison) -> list[ChangeRow]:
    return [
        row
        for side, nodes in sorted(comparison.changed_per_node.items())
        for node, files in sorted(nodes.items())
        for row in _changes(_label(comparison, side), node, files)
    ]


def prose(text: str) -> str:
    """A sentence with true minus signs before its figures, as the tables have them."""
    return re.sub(r"(?<![\w.\-])-(?=\d)", units.MINUS, text)


def _sides(comparison: Comparison) -> tuple[Side, Side]:
    return comparison.baseline, comparison.candidate


def _label(comparison: Comparison, side: str) -> str:
    return {"baseline": comparison.baseline.label, "candidate": comparison.candidate.label}.get(side, side)


def _at(values: Sequence[object], index: int) -> object:
    return values[index] if index < len(values) else None


def _configured(value: object, *, absent: bool) -> str:
    return "absent" if absent else units.scalar(value)


def flatten(tree: Mapping[str, object], prefix: str = "") -> list[tuple[str, str]]:
    """A nested mapping as dotted keys and printed values, sorted by key."""
    flat: list[tuple[str, str]] = []
    for key, value in sorted(tree.items()):
        if isinstance(value, Mapping) and value:
            flat += flatten(value, f"{prefix}{key}.")
        else:
            flat.append((f"{prefix}{key}", units.scalar(value)))
    return flat


def _worst(statuses: Sequence[GateStatus]) -> GateStatus:
    return next((status for status in _WORST_FIRST if status in statuses), GateStatus.PASS)


def _pair_gate(gate: Gate) -> GateRow:
    mark = GATE_MARKS[gate.status]
    details = [gate.detail] if gate.detail else []
    found = [f"{mark} {gate.measured}"]
    return GateRow(gate.label, gate.limit, gate.status.value, mark, found, [], details, found, [])


def _together(texts: Sequence[str]) -> list[str]:
    """Runs that measured the same, once with their number."""
    times = Counter(texts)
    return [text if many == 1 else f"{text} ({many} runs)" for text, many in times.items()]


def _run_gates(comparison: Comparison) -> list[GateRow]:
    """Every gate of the runs, once, with what each run measured; failed ones first."""
    gates: dict[tuple[str, str], dict[str, list[Gate]]] = {}
    labels: dict[tuple[str, str], str] = {}
    for name, side in zip(("baseline", "candidate"), _sides(comparison), strict=True):
        for run in side.runs:
            for gate in run.gates:
                key = (gate.id, gate.limit)
                labels.setdefault(key, gate.label)
                gates.setdefault(key, {"baseline": [], "candidate": []})[name].append(gate)
    rows = []
    for key, by_side in gates.items():
        every = by_side["baseline"] + by_side["candidate"]
        worst = _worst([gate.status for gate in every])
        baseline = [f"{GATE_MARKS[gate.status]} {gate.measured}" for gate in by_side["baseline"]]
        candidate = [f"{GATE_MARKS[gate.status]} {gate.measured}" for gate in by_side["candidate"]]
        rows.append(
            GateRow(
                label=labels[key],
                limit=key[1],
                status=worst.value,
                mark=GATE_MARKS[worst],
                baseline=baseline,
                candidate=candidate,
                baseline_shown=_together(baseline),
                candidate_shown=_together(candidate),
                details=list(dict.fromkeys(gate.detail for gate in every if gate.detail)),
            )
        )
    rank = {status.value: index for index, status in enumerate(_WORST_FIRST)}
    return sorted(rows, key=lambda row: rank[row.status])


def _run_row(side: Side, run: RunEntry) -> RunRow:
    met = sum(gate.status is GateStatus.PASS for gate in run.gates)
    others = [
        f"{GATE_MARKS[gate.status]} {gate.label}: {gate.measured} ({gate.limit})"
        for gate in run.gates
        if gate.status is not GateStatus.PASS
    ]
    return RunRow(
        run_id=run.run_id,
        side=side.label,
        label=side.label,
        started=units.utc(run.started_at),
        place=_place(run),
        excluded_because=run.excluded_because or "",
        gates="; ".join([f"{met} of {len(run.gates)} met", *others]),
        incidents=[
            f"{units.utc_of_nanoseconds(item.time_ns)}: {item.what}" for item in run.incidents if not item.planned
        ],
        warnings=run.warnings,
    )


def _place(run: RunEntry) -> str:
    parts = []
    if run.repetition is not None:
        parts.append(f"repetition {run.repetition}")
    if run.position is not None:
        parts.append(f"position {run.position}")
    return ", ".join(parts)


def _short_name(side: Side, run: RunEntry, index: int) -> str:
    return f"{side.label} #{run.repetition if run.repetition is not None else index + 1}"


def _books(runs: Sequence[RunEntry]) -> list[BookRow]:
    classes: dict[tuple[str, str], None] = {}
    for run in runs:
        for account, counts in run.counts.items():
            for name in counts:
                classes[(account, name)] = None
    # Accounts and classes keep the order of the runs' books: it follows a transaction's or a line's fate.
    accounts = list(dict.fromkeys(account for account, _ in classes))
    ordered = sorted(classes, key=lambda pair: accounts.index(pair[0]))
    return [BookRow(account, name, [_counted(run, account, name) for run in runs]) for account, name in ordered]


def _counted(run: RunEntry, account: str, name: str) -> str:
    found = run.counts.get(account, {}).get(name)
    return units.UNSET if found is None else units.count(found)


def _all_conditions(comparison: Comparison) -> list[Pair]:
    labels = {condition.id: condition.label for condition in comparison.catalogue.conditions}
    left, right = comparison.baseline.conditions, comparison.candidate.conditions
    keys = sorted({*left, *right})
    return [_pair(labels.get(key, key), left.get(key), right.get(key)) for key in keys]


def _pair(label: str, left: str | None, right: str | None) -> Pair:
    return Pair(label, left or units.UNSET, right or units.UNSET, left != right)


def _machine(comparison: Comparison) -> list[Pair]:
    left, right = comparison.baseline.host, comparison.candidate.host
    return [
        _pair("CPU", left.cpu_model, right.cpu_model),
        _pair("cores", str(left.cores), str(right.cores)),
        _pair("memory", units.byte_size(left.memory_bytes), units.byte_size(right.memory_bytes)),
        _pair("operating system", left.operating_system, right.operating_system),
        _pair("kernel", left.kernel, right.kernel),
    ]


def _subjects(comparison: Comparison) -> list[Pair]:
    left, right = comparison.baseline.subject, comparison.candidate.subject
    return [
        _pair("subject", left.name, right.name),
        _pair("version", left.version, right.version),
        _pair("revision", left.revision, right.revision),
        _pair("build", left.build, right.build),
        _pair("binary, SHA-256", left.binary_sha256, right.binary_sha256),
    ]


def _changes(side: str, node: str, files: Mapping[str, Mapping[str, Change]]) -> list[ChangeRow]:
    return [
        ChangeRow(side, node, file, key, units.scalar(change.default), units.scalar(change.used))
        for file, changes in sorted(files.items())
        for key, change in sorted(changes.items())
    ]


def _entry(comparison: Comparison, metric: Metric) -> DictionaryEntry:
    catalogue = comparison.catalogue
    return DictionaryEntry(
        id=metric.id,
        published_id=metric.published_id or "",
        label=metric.label,
        unit=metric.unit,
        description=metric.description,
        population=catalogue.population(metric.population).label,
        better=BETTER_WORDS[metric.better],
        judged_by=", ".join(metric.judged_by),
        margin=units.plain_percent(metric.margin),
        floor=units.tidy_quantity(metric.floor, metric.unit) if metric.floor else "none",
        gating=metric.gating,
        source=", ".join(metric.source),
        table=next(table.title for table in catalogue.tables if table.id == metric.table),
    )


def validity_summary(comparison: Comparison) -> list[str]:
    """Whether the result may be trusted, in a few sentences; what is wrong comes first."""
    runs = [(side, run) for side in _sides(comparison) for run in side.runs]
    gates = [gate for _, run in runs for gate in run.gates] + comparison.gates
    failed = sum(gate.status is GateStatus.FAIL for gate in gates)
    warned = sum(gate.status is GateStatus.WARN for gate in gates)
    excluded = sum(run.excluded_because is not None for _, run in runs)
    lines = []
    if failed or warned:
        found = " and ".join(f"{many} {what}" for many, what in ((failed, "failed"), (warned, "warned")) if many)
        lines.append(f"Of {units.plural(len(gates), 'gate')} checked, {found}.")
    elif gates:
        lines.append(f"All {len(gates)} gates were met, by every run and by the pair.")
    else:
        lines.append("No gate was checked.")
    if excluded:
        lines.append(f"{excluded} of {units.plural(len(runs), 'run')} excluded, by a gate; the reasons are below.")
    elif runs:
        lines.append(f"None of {units.plural(len(runs), 'run')} was excluded.")
    lines += _incident_lines([incident for _, run in runs for incident in run.incidents])
    lines += _difference_lines(comparison)
    return lines


def _incident_lines(incidents: Sequence[Incident]) -> list[str]:
    """What happened, and, apart from that, what was made to happen."""
    planned = sum(incident.planned for incident in incidents)
    surprises = len(incidents) - planned
    lines = [f"{units.plural(surprises, 'incident')} during the runs." if surprises else "No incident was recorded."]
    if planned:
        lines.append(f"{units.plural(planned, 'planned event')}, as the profile asks; the runs' manifests list them.")
    return lines


def _difference_lines(comparison: Comparison) -> list[str]:
    lines = []
    if comparison.workload_differences:
        lines.append(f"The workload differs in {units.plural(len(comparison.workload_differences), 'place')}.")
    for item in comparison.condition_differences:
        lines.append(f"{item.label} differs: {item.baseline} against {item.candidate}.")
    if any(pair.differs for pair in _machine(comparison)):
        lines.append("The machines differ.")
    count = len(comparison.configuration_differences)
    if count:
        lines.append(f"The effective configurations differ in {units.plural(count, 'place')}.")
    return lines


def _chart_note(comparison: Comparison, chart: ChartData) -> str:
    """What was thinned or pooled, and where the samples stand: every figure can be followed to its samples."""
    population = comparison.catalogue.metric(chart.metric_id).population
    samples = f"samples: column {chart.metric_id} of samples/{population}.parquet in each run"
    return f"{chart.note}; {samples}" if chart.note else samples
