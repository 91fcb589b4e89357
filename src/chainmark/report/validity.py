"""Whether the result of a comparison is trustworthy: its gates, runs, accounts and conditions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from chainmark.core import units
from chainmark.core.accounts import Accounts, in_short
from chainmark.core.comparison import Comparison, RunEntry, Side
from chainmark.core.manifest import Gate, GateStatus, Incident, Status
from chainmark.core.wording import capitalised, enumerated
from chainmark.report.blocks import (
    IN_FULL,
    Block,
    Column,
    Details,
    Medium,
    Remark,
    Table,
    TableCell,
    phrased,
    row_of,
    words,
)
from chainmark.report.phrases import Emphasis, Phrase
from chainmark.report.side_facts import differs, machine, pairs_table, workload_differences
from chainmark.report.wording import GATE_LOOKS, GATE_MARKS, gate_counts

_WORST_FIRST = (GateStatus.FAIL, GateStatus.WARN, GateStatus.UNKNOWN, GateStatus.PASS)
# Integers by themselves, not as parts of a version, a name, a time or a hash.
_NUMBER = re.compile(r"(?<![\w.,:-])\d[\d,]*(?![\w.,:-]\d|\w|-)")
_ACCOUNTS = "Accounting of everything submitted and read"


@dataclass(frozen=True)
class RunGate:
    """One gate over all runs, with its results in those of each side."""

    label: str
    limit: str
    baseline: list[Gate]
    candidate: list[Gate]

    @property
    def every(self) -> list[Gate]:
        """Its results in all of them."""
        return [*self.baseline, *self.candidate]

    @property
    def status(self) -> GateStatus:
        """The worst result."""
        result = [gate.status for gate in self.every]
        return next((status for status in _WORST_FIRST if status in result), GateStatus.PASS)

    @property
    def details(self) -> list[str]:
        """Its details, each once."""
        return list(dict.fromkeys(gate.detail for gate in self.every if gate.detail))


def run_gates(comparison: Comparison) -> list[RunGate]:
    """Every gate of the runs, once; failed ones first."""
    result: dict[tuple[str, str], RunGate] = {}
    for side in (comparison.baseline, comparison.candidate):
        for gate in (gate for run in side.runs for gate in run.gates):
            entry = result.setdefault((gate.id, gate.limit), RunGate(gate.label, gate.limit, [], []))
            (entry.baseline if side is comparison.baseline else entry.candidate).append(gate)
    return sorted(result.values(), key=lambda entry: _WORST_FIRST.index(entry.status))


def runs_of(comparison: Comparison) -> list[tuple[Side, RunEntry]]:
    """All runs of both sides."""
    return [(side, run) for side in (comparison.baseline, comparison.candidate) for run in side.runs]


def summary(comparison: Comparison) -> list[str]:
    """Whether the result is trustworthy, in a few sentences; problems come first."""
    runs = [run for _, run in runs_of(comparison)]
    gates = [gate for run in runs for gate in run.gates] + comparison.gates
    missed = gate_counts(gates)
    subject_failed = sum(run.status is Status.FAILED for run in runs)
    excluded = sum(run.excluded_because is not None for run in runs) - subject_failed
    lines = []
    if missed:
        lines.append(f"Of {units.plural(len(gates), 'gate')}, {enumerated(missed)}.")
    elif gates:
        lines.append(f"All {len(gates)} gates were met, by every run and by the pair of sides.")
    else:
        lines.append("No gate was checked.")
    if subject_failed:
        lines.append(
            f"The subject failed {subject_failed} of {units.plural(len(runs), 'run')}: these count against their side "
            "and are excluded from all metrics."
        )
    if excluded:
        lines.append(f"Gates excluded {excluded} of {units.plural(len(runs), 'run')}. The reasons are below.")
    elif runs:
        lines.append(f"{capitalised(units.none_of(len(runs), 'run'))} was excluded.")
    lines += _incident_lines([incident for run in runs for incident in run.incidents])
    lines += _difference_lines(comparison)
    return lines


def _incident_lines(incidents: Sequence[Incident]) -> list[str]:
    """Incidents, and, apart from them, the planned disturbances."""
    planned = sum(incident.planned for incident in incidents)
    unplanned = len(incidents) - planned
    lines = [f"{units.plural(unplanned, 'incident')} during the runs." if unplanned else "No incident was recorded."]
    if planned:
        lines.append(
            f"{units.plural(planned, 'planned event')}, as the profile specifies. The runs' manifests list them."
        )
    return lines


def _difference_lines(comparison: Comparison) -> list[str]:
    lines = []
    if comparison.workload_differences:
        lines.append(f"The workload differs in {units.plural(len(comparison.workload_differences), 'place')}.")
    for item in comparison.condition_differences:
        lines.append(f"{item.label} differs: {item.baseline} against {item.candidate}.")
    if differs(machine(comparison)):
        lines.append("The machines differ.")
    count = len(comparison.configuration_differences)
    if count:
        lines.append(f"The effective configurations differ in {units.plural(count, 'place')}.")
    return lines


def concerns(comparison: Comparison, *, warnings: bool) -> list[Remark]:
    """Caveats about the result: failures, omissions, differences.

    Args:
        comparison: the comparison, with its runs and conditions.
        warnings: with those of the runs that are not a gate or an incident.
    """
    pair = [RunGate(gate.label, gate.limit, [gate], []) for gate in comparison.gates]
    gates = [gate for gate in [*pair, *run_gates(comparison)] if gate.status is not GateStatus.PASS]
    gates.sort(key=lambda gate: _WORST_FIRST.index(gate.status))
    items = [
        Remark(_missed(gate, comparison, of_the_pair=gate in pair), GATE_MARKS[gate.status], GATE_LOOKS[gate.status])
        for gate in gates
        if gate.status is not GateStatus.UNKNOWN
    ]
    if unknown := [gate.label for gate in gates if gate.status is GateStatus.UNKNOWN]:
        text = f"{units.plural(len(unknown), 'gate')} could not be checked: {', '.join(unknown)}"
        items.append(Remark(text, GATE_MARKS[GateStatus.UNKNOWN], "quiet"))
    for _, run in runs_of(comparison):
        if run.excluded_because:
            effect = "was failed by its subject" if run.status is Status.FAILED else "is excluded"
            items.append(Remark(f"run {run.run_id} {effect}: {run.excluded_because}", "✗", "worse"))
        items += [Remark(f"{run.run_id}: {text}", "!", "caution") for text in incidents(run)]
    if warnings:
        items += [Remark(text, "!", "caution") for text in _warnings(comparison)]
    for item in comparison.condition_differences:
        text = f"{item.label}: {item.baseline} against {item.candidate}. {item.explanation}"
        items.append(Remark(text, "!", "caution"))
    for label, left, right in workload_differences(comparison):
        items.append(Remark(f"workload {label}: {left} against {right}", "✗", "worse"))
    return items


def _warnings(comparison: Comparison) -> list[str]:
    """The warnings of the runs that are not on the first screen; the same warning of several runs is listed once.

    Sentences that differ in one number are merged, with a range instead of the number.
    """
    by_template: dict[str, dict[str, list[str]]] = {}
    for _, run in runs_of(comparison):
        for text in dict.fromkeys(run.warnings):
            if text not in comparison.caveats.sentences:
                by_template.setdefault(_NUMBER.sub("#", text), {}).setdefault(text, []).append(run.run_id)
    every = [run.run_id for _, run in runs_of(comparison)]
    lines = []
    for texts in by_template.values():
        joined = with_range(list(texts))
        shown = (
            {joined: sorted({name for names in texts.values() for name in names}, key=every.index)} if joined else texts
        )
        lines += [f"{_whose(names, comparison)}: {text}" for text, names in shown.items()]
    return lines


def with_range(texts: Sequence[str]) -> str:
    """Sentences that differ in one number as one: "3 to 9 blocks were lost"; "" if they differ in more."""
    numbers = [_NUMBER.findall(text) for text in texts]
    indices = [index for index, result in enumerate(zip(*numbers, strict=True)) if len(set(result)) > 1]
    if len(indices) > 1:
        return ""
    parts = _NUMBER.split(texts[0])
    reported = list(numbers[0])
    for index in indices:
        low, *_, high = sorted((number[index] for number in numbers), key=lambda text: int(text.replace(",", "")))
        reported[index] = f"{low} to {high}"
    return "".join(part + number for part, number in zip(parts, [*reported, ""], strict=True))


def _whose(names: Sequence[str], comparison: Comparison) -> str:
    """The names of some runs, as short as possible."""
    every = [run.run_id for _, run in runs_of(comparison)]
    if len(names) == 1:
        return names[0]
    if len(names) == len(every):
        return f"all {len(every)} runs"
    for side in (comparison.baseline, comparison.candidate):
        if list(names) == [run.run_id for run in side.runs]:
            return f"all {len(names)} runs of {side.label}"
    return enumerated(names)


def incidents(run: RunEntry) -> list[str]:
    """Unplanned incidents."""
    return [f"{units.utc_of_nanoseconds(item.time_ns)}: {item.what}" for item in run.incidents if not item.planned]


def _missed(gate: RunGate, comparison: Comparison, *, of_the_pair: bool) -> str:
    """A gate that was not clearly met: the requirement, and the runs in which it was not."""
    sides = ((comparison.baseline.label, gate.baseline), (comparison.candidate.label, gate.candidate))
    if of_the_pair:
        measured = gate.baseline[0].measured
    else:
        measured = "; ".join(_not_met(name, gates) for name, gates in sides if any(map(_is_missed, gates)))
    detail = f" ({'; '.join(gate.details)})" if gate.details else ""
    return f"{gate.label}: {measured}; required: {gate.limit}{detail}"


def _is_missed(gate: Gate) -> bool:
    return gate.status is not GateStatus.PASS


def _not_met(name: str, gates: Sequence[Gate]) -> str:
    missed = [gate.measured for gate in gates if _is_missed(gate)]
    return f"{', '.join(dict.fromkeys(missed))} in {len(missed)} of {units.plural(len(gates), 'run')} of {name}"


def validity_blocks(comparison: Comparison) -> list[Block]:
    """The gates, the runs, their accounts and the conditions of both sides."""
    labels = comparison.labels
    differing = comparison.condition_differences
    blocks: list[Block] = []
    if differing:
        conditions = [(item.label, item.baseline, item.candidate) for item in differing]
        table = pairs_table("conditions", "Conditions that differ", labels, conditions)
        rows = [row_of(*row.cells, item.explanation) for row, item in zip(table.rows, differing, strict=True)]
        blocks.append(replace(table, columns=[*table.columns, *words("effect")], rows=rows))
    if comparison.workload_differences:
        result = workload_differences(comparison)
        blocks.append(pairs_table("workload-differences", "Workload differences", labels, result))
    gates = _gates_table(comparison)
    blocks += [gates] if gates.rows else []
    blocks += [_runs_table(comparison), *_accounts(comparison)] if runs_of(comparison) else []
    blocks.append(pairs_table("machine", "Machine", labels, machine(comparison)))
    if conditions_table := _all_conditions(comparison):
        table = pairs_table("all-conditions", "", labels, conditions_table)
        blocks.append(Details("all-conditions-details", "All conditions", [table], media=IN_FULL))
    return blocks


def _all_conditions(comparison: Comparison) -> list[tuple[str, str, str]]:
    labels = {condition.id: condition.label for condition in comparison.catalogue.conditions}
    left, right = comparison.baseline.conditions, comparison.candidate.conditions
    return [
        (labels.get(key, key), left.get(key) or units.UNSET, right.get(key) or units.UNSET)
        for key in sorted({*left, *right})
    ]


def _gates_table(comparison: Comparison) -> Table:
    rows = [
        row_of(
            f"{GATE_MARKS[gate.status]} {gate.label}",
            gate.limit,
            phrased(*_measured([gate]), notes=[*([gate.detail] if gate.detail else []), "of the pair"]),
            "",
            emphasis=_row_look(gate.status),
        )
        for gate in comparison.gates
    ]
    rows += [
        row_of(
            TableCell(f"{GATE_MARKS[gate.status]} {gate.label}", notes=gate.details),
            gate.limit,
            phrased(*_measured(gate.baseline)),
            phrased(*_measured(gate.candidate)),
            emphasis=_row_look(gate.status),
        )
        for gate in run_gates(comparison)
    ]
    sides = (f"{side.label}, run by run" for side in (comparison.baseline, comparison.candidate))
    return Table("gates", "Gates", words("gate", "required", *sides), rows, media=IN_FULL)


def _row_look(status: GateStatus) -> Emphasis:
    """Of a whole row: one that passed is not emphasised."""
    return "plain" if status is GateStatus.PASS else GATE_LOOKS[status]


def _measured(gates: Sequence[Gate]) -> list[Phrase]:
    """The results, run by run; runs with the same result once, with their number."""
    phrases: list[Phrase] = []
    for (status, measured), times in Counter((gate.status, gate.measured) for gate in gates).items():
        if phrases:
            phrases.append(Phrase(" · "))
        many = f" ({times} runs)" if times > 1 else ""
        phrases.append(Phrase(f"{GATE_MARKS[status]} {measured}{many}", emphasis=GATE_LOOKS[status]))
    return phrases


def _runs_table(comparison: Comparison) -> Table:
    rows = []
    for side, run in runs_of(comparison):
        notes = [f"incident, {text}" for text in incidents(run)] + [f"warning: {text}" for text in run.warnings]
        rows.append(
            row_of(
                side.label,
                TableCell(run.run_id, notes=notes),
                units.utc(run.started_at),
                _place(run),
                f"{_included(run)}: {run.excluded_because}" if run.excluded_because else "yes",
                emphasis="worse" if run.excluded_because else "plain",
            )
        )
    columns = [*words("side"), Column("run", kind="code"), *words("started", "place in the experiment", "included")]
    return Table("runs", "Runs", columns, rows, media=IN_FULL)


def _included(run: RunEntry) -> str:
    """Whether a run's figures are judged, or its status instead."""
    if run.status is Status.FAILED:
        return "failed"
    return "no" if run.excluded_because else "yes"


def brief_runs_table(comparison: Comparison, media: frozenset[Medium]) -> Table:
    """The runs with the number of gates each met, and the gates it did not meet."""
    rows = [
        row_of(run.run_id, side.label, units.utc(run.started_at), _met(run), _included(run))
        for side, run in runs_of(comparison)
    ]
    columns = [Column("run", kind="code"), *words("side", "started", "gates", "included")]
    return Table("runs-in-brief", "", columns, rows, media=media)


def _met(run: RunEntry) -> str:
    met = sum(gate.status is GateStatus.PASS for gate in run.gates)
    others = [
        f"{GATE_MARKS[gate.status]} {gate.label}: {gate.measured} ({gate.limit})"
        for gate in run.gates
        if gate.status is not GateStatus.PASS
    ]
    return "; ".join([f"{met} of {len(run.gates)} met", *others])


def _place(run: RunEntry) -> str:
    parts = []
    if run.repetition is not None:
        parts.append(f"repetition {run.repetition}")
    if run.position is not None:
        parts.append(f"position {run.position}")
    return ", ".join(parts)


def _accounts(comparison: Comparison) -> list[Block]:
    """The totals; the long accounts are at the document's end."""
    table = _accounts_table("accounts", comparison, in_short)
    return [Details("accounts-details", _ACCOUNTS, [table], media=IN_FULL)] if table.rows else []


def accounts_in_full(comparison: Comparison) -> list[Block]:
    """Every class of every account with its count in each run."""
    table = _accounts_table("all-accounts", comparison, lambda accounts: accounts)
    return [Details("all-accounts-details", _ACCOUNTS, [table], media=IN_FULL)] if table.rows else []


def _accounts_table(id_: str, comparison: Comparison, choose: Callable[[Accounts], Accounts]) -> Table:
    """A row for each class with its count in each run; accounts and classes in the order of the runs'."""
    runs = [run for _, run in runs_of(comparison)]
    classes: dict[str, dict[str, None]] = {}
    for run in runs:
        for account, counts in choose(run.counts).items():
            classes.setdefault(account, {}).update(dict.fromkeys(counts))
    rows = [
        row_of(name, account, *(_count(run, account, name) for run in runs))
        for account, names in classes.items()
        for name in names
    ]
    columns = [
        f"{side.label} #{run.repetition if run.repetition is not None else index + 1}"
        for side in (comparison.baseline, comparison.candidate)
        for index, run in enumerate(side.runs)
    ]
    return Table(id_, "", [*words("class", "account"), *map(Column, columns)], rows)


def _count(run: RunEntry, account: str, name: str) -> TableCell:
    result = run.counts.get(account, {}).get(name)
    return TableCell(units.UNSET if result is None else units.count(result))
