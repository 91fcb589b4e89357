"""The rule of the published reports beside ours, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.report.blocks import Column, Table, TableCell, row_of, words
from chainmark.report.phrases import Emphasis
from chainmark.systems.cometbft.old_rule.results import Agreement, OldRuleRow

_AGREEMENT_LOOKS: dict[Agreement, Emphasis] = {
    Agreement.BOTH_FAIL: "worse",
    Agreement.ONLY_OURS_FAILS: "worse",
    Agreement.ONLY_OLD_FAILS: "caution",
    Agreement.NOT_COMPARABLE: "caution",
    Agreement.UNDECIDED: "plain",
}


def old_rule_table(rows: Sequence[OldRuleRow], id_: str, title: str, note: str) -> Table:
    """The rule of the published reports beside ours."""
    made = [
        row_of(
            row.label,
            _change_of(row),
            TableCell(_old_word(row), emphasis="caution" if row.old_fails else "quiet"),
            _our_word(row),
            TableCell(row.agreement.value, emphasis=_AGREEMENT_LOOKS.get(row.agreement, "quiet")),
            row.why,
        )
        for row in rows
    ]
    columns = [*words("metric"), Column("difference"), *words("old rule", "chainmark", "both", "why")]
    return Table(id_, title, columns, made, [note] if note else [])


def _change_of(row: OldRuleRow) -> str:
    """A percentage needs a base: from nothing there is none, and the old rule counts any value as a difference."""
    if row.change is not None:
        return units.percent(row.change)
    return units.NO_DATA if row.old_fails is None else "from 0" if row.old_fails else "0 on both sides"


def _old_word(row: OldRuleRow) -> str:
    if row.old_fails is None:
        return units.UNSET
    return "fails" if row.old_fails else "passes"


def _our_word(row: OldRuleRow) -> str:
    if row.agreement is Agreement.NOT_COMPARABLE:
        return "not comparable"
    if row.agreement is Agreement.NOT_JUDGED:
        return "not judged"
    return f"{row.outcome} (gating)" if row.gating else row.outcome
