"""The false alarms of a history as a document."""

from __future__ import annotations

from chainmark.core import units
from chainmark.core.false_alarms import HistoryCheck
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.report.blocks import Block, Column, Remarks, Section, Table, row_of, words
from chainmark.report.document import Document
from chainmark.report.wording import prose


def history_check_document(check: HistoryCheck) -> Document:
    """Lay out the moved metrics of a history without changes."""
    false_alarms, splits = check.re_runs, check.splits
    rows = [
        ("figures of re-runs, called moved", false_alarms.moved, false_alarms.figures),
        ("gating figures of re-runs, called worse", false_alarms.worse, false_alarms.gating),
        ("gating figures of re-runs, undecided", false_alarms.undecided, false_alarms.gating),
        ("re-runs with a gating figure called moved", false_alarms.alarmed, len(false_alarms.pairs)),
        ("figures of halves of a run, beyond 95 % of their error", splits.moved, splits.figures),
    ]
    table = Table(
        "alarms",
        "Where nothing was changed",
        [*words(""), Column("found"), Column("of"), Column("share")],
        [row_of(name, units.count(n), units.count(of), _share(n, of)) for name, n, of in rows],
    )
    blocks: list[Block] = [table]
    if false_alarms.pairs:
        blocks.append(Remarks("pairs", "Re-runs", false_alarms.pairs))
    if false_alarms.examples:
        blocks.append(Remarks("examples", "Called moved", false_alarms.examples))
    if splits.runs:
        blocks.append(Remarks("splits", "Runs that were split", splits.runs))
    is_kept = check.verdict is not Verdict.FAIL
    return Document(
        kind="aa",
        title=check.title,
        subtitle=check.subtitle,
        verdict=check.verdict,
        word="MEASURED" if is_kept else "FALSE ALARMS",
        sentence=prose(check.sentence),
        suites=[Suite(check.title, [Case("false-alarms", "False alarms", check.verdict, check.sentence)])],
        sections=[Section("alarms", "False alarms", blocks)],
        notes=[
            "Each re-run is judged against the run before it as a release would be, by the noise that all other runs "
            "show. It fails where significantly more re-runs than 5 % had a gating figure called moved. "
            f"{units.plural(false_alarms.set_aside, 'figure')} of the re-runs show a change of the set-up "
            "and are not counted."
        ],
        result=check,
        date=check.date,
        tool_version=check.tool_version,
    )


def _share(count: int, total: int) -> str:
    return units.plain_percent(count / total, decimals=1) if total else units.UNSET
