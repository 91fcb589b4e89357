"""A comparison as Markdown, for a pull request: what decides stands open, the rest is folded."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.comparison import Comparison
from chainmark.report.content import Row
from chainmark.report.document import Document, GateRow, document
from chainmark.report.markup import bullets, code, escaped, folded, plain, table

VERDICT_SIGNS = {"pass": "🟢", "fail": "🔴", "inconclusive": "🟡", "invalid": "⚪"}


def _metric_rows(report: Document, rows: Sequence[Row]) -> list[str]:
    def cells(row: Row) -> list[str]:
        loud = row.emphasis in ("worse", "caution") and row.gating
        outcome = plain(row.outcome)
        return [
            plain(row.label_with_unit),
            row.baseline,
            row.candidate,
            row.change_with_unit,
            row.interval,
            row.margin,
            f"**{outcome}**" if loud else outcome,
        ]

    names = ["metric", plain(report.baseline), plain(report.candidate), "change", f"{report.confidence} interval"]
    return table([*names, "margin", "outcome"], "lrrrrrl", [cells(row) for row in rows])


def render_markdown(comparison: Comparison) -> str:
    """The comparison as GitHub-flavoured Markdown; the same comparison gives the same text."""
    report = document(comparison)
    lines = [
        f"## {plain(report.title)}",
        "",
        f"{VERDICT_SIGNS[report.verdict]} **{report.verdict_word}**: {plain(report.sentence)}",
        "",
        plain(report.subtitle),
        "",
        *_metric_rows(report, report.gating),
        *bullets("Why", report.reasons),
        *_warnings(report),
        *_moved(report),
        *bullets("Stands out from its like", report.outliers),
        *bullets("Next", report.advice),
        *_details(report),
        f"<sub>chainmark {plain(report.tool_version)} · comparison SHA-256 <code>{report.digest}</code></sub>",
    ]
    return "\n".join(lines) + "\n"


def _warnings(report: Document) -> list[str]:
    items = [
        f"{gate.mark} {gate.label}: {_measured(gate)}; required: {gate.limit}"
        for gate in report.pair_gates + report.run_gates
        if gate.status != "pass"
    ]
    for run in report.runs:
        if run.excluded_because:
            items.append(f"✗ run {run.run_id} is excluded: {run.excluded_because}")
        items += [f"! {run.run_id}: {text}" for text in [*run.incidents, *run.warnings]]
    items += [f"! {p.label}: {p.baseline} against {p.candidate}. {p.detail}" for p in report.conditions]
    items += [f"✗ workload {p.label}: {p.baseline} against {p.candidate}" for p in report.workload_differences]
    return bullets("Validity", [*report.validity_summary, *items])


def _measured(gate: GateRow) -> str:
    missed = [text[2:] for text in gate.baseline + gate.candidate if not text.startswith("✓")]
    return ", ".join(dict.fromkeys(missed))


def _moved(report: Document) -> list[str]:
    if not report.diagnostics:
        return []
    total = units.plural(report.diagnostics, "diagnostic metric")
    if not report.moved:
        return [f"None of {total} moved (q = 0.05).", ""]
    return [f"**{len(report.moved)} of {total} moved** (q = 0.05)", "", *_metric_rows(report, report.moved)]


def _details(report: Document) -> list[str]:
    lines: list[str] = []
    for group in report.tables:
        lines += folded(f"{escaped(group.title)}: all {len(group.rows)} rows", _metric_rows(report, group.rows))
    lines += folded(f"Tails ({len(report.tails)})", _tails(report))
    runs = table(
        ["run", "side", "started", "gates", "included"],
        "lllll",
        [
            [code(r.run_id), plain(r.side), r.started, plain(r.gates), plain(r.excluded_because and "no") or "yes"]
            for r in report.runs
        ],
    )
    lines += folded(f"Runs ({len(report.runs)})", runs)
    differences = [*report.default_changes, *report.made_changes]
    configuration = table(
        ["file", "key", plain(report.baseline), plain(report.candidate)],
        "llll",
        [[plain(d.file), code(d.key), code(d.baseline), code(d.candidate)] for d in differences],
    )
    lines += folded(f"Configuration differences ({len(differences)})", configuration)
    facts = [[plain(p.label), plain(p.baseline), plain(p.candidate)] for p in report.subjects + report.machine]
    sides = ["fact", plain(report.baseline), plain(report.candidate)]
    told = [[plain(p.label), plain(p.baseline), plain(p.candidate)] for p in report.facts]
    lines += folded("Manifest", table(sides, "lll", told))
    lines += folded("Subject, machine and workload", table(sides, "lll", facts) + _workload(report))
    return lines


def _tails(report: Document) -> list[str]:
    """The blocks in the tails, each tail with the command that shows its first."""
    rows = [
        [
            plain(row.metric),
            plain(row.lead),
            plain(", ".join(item.text for item in row.items)),
            code(row.items[0].command),
        ]
        for row in report.tails
    ]
    return table(["metric", "tail", "samples", "to see the first"], "llll", rows)


def _workload(report: Document) -> list[str]:
    return table(["workload", "value"], "ll", [[code(key), code(value)] for key, value in report.workload])
