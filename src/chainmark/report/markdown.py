"""A comparison as Markdown, for a pull request: what decides stands open, the rest is folded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from chainmark.core import units
from chainmark.core.comparison import Comparison
from chainmark.report.content import Row
from chainmark.report.document import Document, GateRow, document

VERDICT_SIGNS = {"pass": "🟢", "fail": "🔴", "inconclusive": "🟡", "invalid": "⚪"}
# Everything that Markdown or the HTML inside it could take for markup in a version, a key or a note.
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~&])")


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    """A key or a value in code type; a table's bar inside it must be escaped as well."""
    body = " ".join(text.split()).replace("`", "'").replace("|", "\\|")
    return f"`{body}`" if body else ""


def _table(headings: Sequence[str], align: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table. ``align`` holds one letter a column: l or r."""
    rules = [{"l": ":--", "r": "--:"}[letter] for letter in align]
    body = [f"| {' | '.join(cells)} |" for cells in rows]
    return [f"| {' | '.join(headings)} |", f"| {' | '.join(rules)} |", *body, ""] if body else []


def _folded(summary: str, lines: Sequence[str]) -> list[str]:
    # Without the blank lines GitHub takes what is inside for HTML, not for Markdown.
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "</details>", ""] if lines else []


def _metric_rows(report: Document, rows: Sequence[Row]) -> list[str]:
    def cells(row: Row) -> list[str]:
        loud = row.emphasis in ("worse", "caution") and row.gating
        outcome = _plain(row.outcome)
        return [
            _plain(row.label_with_unit),
            row.baseline,
            row.candidate,
            row.change_with_unit,
            row.interval,
            row.margin,
            f"**{outcome}**" if loud else outcome,
        ]

    names = ["metric", _plain(report.baseline), _plain(report.candidate), "change", f"{report.confidence} interval"]
    return _table([*names, "margin", "outcome"], "lrrrrrl", [cells(row) for row in rows])


def render_markdown(comparison: Comparison) -> str:
    """The comparison as GitHub-flavoured Markdown; the same comparison gives the same text."""
    report = document(comparison)
    lines = [
        f"## {_plain(report.title)}",
        "",
        f"{VERDICT_SIGNS[report.verdict]} **{report.verdict_word}**: {_plain(report.sentence)}",
        "",
        _plain(report.subtitle),
        "",
        *_metric_rows(report, report.gating),
        *_bullets("Why", report.reasons),
        *_warnings(report),
        *_moved(report),
        *_bullets("Next", report.advice),
        *_details(report),
        f"<sub>chainmark {_plain(report.tool_version)} · comparison SHA-256 <code>{report.digest}</code></sub>",
    ]
    return "\n".join(lines) + "\n"


def _bullets(heading: str, items: Sequence[str]) -> list[str]:
    return [f"**{heading}**", "", *(f"- {_plain(item)}" for item in items), ""] if items else []


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
    return _bullets("Validity", [*report.validity_summary, *items])


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
    for table in report.tables:
        lines += _folded(f"{_html(table.title)}: all {len(table.rows)} rows", _metric_rows(report, table.rows))
    runs = _table(
        ["run", "side", "started", "gates", "included"],
        "lllll",
        [
            [_code(r.run_id), _plain(r.side), r.started, _plain(r.gates), _plain(r.excluded_because and "no") or "yes"]
            for r in report.runs
        ],
    )
    lines += _folded(f"Runs ({len(report.runs)})", runs)
    differences = [*report.default_changes, *report.made_changes]
    configuration = _table(
        ["file", "key", _plain(report.baseline), _plain(report.candidate)],
        "llll",
        [[_plain(d.file), _code(d.key), _code(d.baseline), _code(d.candidate)] for d in differences],
    )
    lines += _folded(f"Configuration differences ({len(differences)})", configuration)
    facts = [[_plain(p.label), _plain(p.baseline), _plain(p.candidate)] for p in report.subjects + report.machine]
    sides = ["fact", _plain(report.baseline), _plain(report.candidate)]
    lines += _folded("Manifest", _table(sides, "lll", facts) + _workload(report))
    return lines


def _workload(report: Document) -> list[str]:
    return _table(["workload", "value"], "ll", [[_code(key), _code(value)] for key, value in report.workload])


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
