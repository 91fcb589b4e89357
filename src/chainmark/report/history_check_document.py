"""The false alarms of a history as a document."""

from __future__ import annotations

from chainmark.core import units
from chainmark.core.false_alarms import HistoryCheck
from chainmark.core.verdict import Case, Suite
from chainmark.report.blocks import Block, Column, Remarks, Section, Table, row_of, words
from chainmark.report.document import Document
from chainmark.report.wording import prose


def history_check_document(check: HistoryCheck) -> Document:
    """Lay out the moved metrics of a history without changes."""
    false_alarms, splits = check.re_runs, check.splits
    rows = [
        ("metrics of re-runs, judged as moved", false_alarms.moved, false_alarms.figures),
        ("gating metrics of re-runs, judged as worse", false_alarms.worse, false_alarms.gating),
        ("gating metrics of re-runs, undecided", false_alarms.undecided, false_alarms.gating),
        ("re-runs with a gating metric judged as moved", false_alarms.alarmed, len(false_alarms.pairs)),
        ("metrics that differ between the halves of a run beyond their 95 % interval", splits.moved, splits.figures),
    ]
    table = Table(
        "alarms",
        "False alarms where nothing changed",
        [*words(""), Column("count"), Column("of"), Column("share")],
        [row_of(name, units.count(n), units.count(of), _share(n, of)) for name, n, of in rows],
    )
    blocks: list[Block] = [table]
    if false_alarms.pairs:
        blocks.append(Remarks("pairs", "Re-runs", false_alarms.pairs))
    if false_alarms.examples:
        blocks.append(Remarks("examples", "Judged as moved", false_alarms.examples))
    if splits.runs:
        blocks.append(Remarks("splits", "Split runs", splits.runs))
    return Document(
        kind="aa",
        title=check.title,
        subtitle=check.subtitle,
        verdict=check.verdict,
        sentence=prose(check.sentence),
        suites=[Suite(check.title, [Case("false-alarms", "False alarms", check.verdict, check.sentence)])],
        sections=[Section("alarms", "False alarms", blocks)],
        notes=[
            "Each re-run is judged against the previous run like a release, with the noise of all other runs. The "
            "check fails if significantly more than 5 % of the re-runs have a gating metric that is judged as moved."
            + _set_aside(false_alarms.set_aside)
        ],
        result=check,
        date=check.date,
        tool_version=check.tool_version,
    )


def _set_aside(count: int) -> str:
    if not count:
        return ""
    verbs = "shows a change of the set-up and is" if count == 1 else "show a change of the set-up and are"
    return f" {units.plural(count, 'result')} of the re-runs {verbs} not counted."


def _share(count: int, total: int) -> str:
    return units.plain_percent(count / total, decimals=1) if total else units.UNSET
