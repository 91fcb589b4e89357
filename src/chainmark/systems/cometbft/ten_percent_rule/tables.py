"""The published reports' rule applied to all figures, displayed next to our rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pydantic import ConfigDict

from chainmark.core import units
from chainmark.core.attachment import Opinion, OpinionRow
from chainmark.report.blocks import Column, Table, TableCell, row_of, words
from chainmark.report.phrases import Emphasis
from chainmark.systems.cometbft.ten_percent_rule.results import QUIET, RuleConcordance, TenPercentRow

_CONCORDANCE_LOOKS: dict[RuleConcordance, Emphasis] = {
    RuleConcordance.BOTH_FAIL: "worse",
    RuleConcordance.ONLY_OURS_FAILS: "worse",
    RuleConcordance.ONLY_OLD_FAILS: "caution",
    RuleConcordance.NOT_COMPARABLE: "caution",
    RuleConcordance.UNDECIDED: "plain",
}
# As shown, if not by the value in files.
_CONCORDANCE_TEXTS: dict[RuleConcordance, str] = {
    RuleConcordance.ONLY_OLD_FAILS: "only the 10 % rule fails it",
    RuleConcordance.ONLY_OURS_FAILS: "only chainmark fails it",
    RuleConcordance.UNDECIDED: "only chainmark is undecided",
}


class TenPercentVerdict(Opinion):
    """The verdict of the published reports' rule as a whole.

    Attributes:
        differing: number of judged metrics that differ by more than 10 %, of ``judged`` with a ratio.
        disagreements: number of metrics on which the rules disagree.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    judged: int
    differing: int
    disagreements: int
    sentence: str

    def in_words(self) -> str:
        """The sentence."""
        return self.sentence

    def about(self) -> list[str]:
        """The rule, and ours."""
        return [
            "The published reports call a release worse if a result differs by more than 10 % from the previous "
            "release. They do not state the statistic, the direction, or how much two runs of one release differ. "
            "Here the rule is applied to every judged figure, in both directions.",
            "chainmark instead checks whether the candidate is worse by more than a margin, considering the noise "
            "between runs, and reports when it cannot decide.",
        ]

    def full_table(self, rows: Sequence[OpinionRow], id_: str, title: str) -> Table | None:
        """Every figure by both rules."""
        return ten_percent_rule_table(_own(rows), id_, title) if rows else None

    def short_table(self, rows: Sequence[OpinionRow], id_: str, title: str) -> Table | None:
        """The figures on which the rules disagree."""
        note = f"{len(rows)} judged figures; the JSON has all of them."
        differing = [row for row in _own(rows) if row.concordance not in QUIET]
        return ten_percent_rule_table(differing, id_, title, note) if differing else None


def _own(rows: Sequence[OpinionRow]) -> Sequence[TenPercentRow]:
    return cast(Sequence[TenPercentRow], rows)


def ten_percent_rule_table(rows: Sequence[TenPercentRow], id_: str, title: str, note: str = "") -> Table:
    """The published reports' rule next to ours."""
    made = [
        row_of(
            row.label,
            _change_of(row),
            TableCell(_old_word(row), emphasis="caution" if row.old_fails else "quiet"),
            _our_word(row),
            TableCell(
                _CONCORDANCE_TEXTS.get(row.concordance, row.concordance.value),
                emphasis=_CONCORDANCE_LOOKS.get(row.concordance, "quiet"),
            ),
            row.why,
        )
        for row in rows
    ]
    columns = [*words("metric"), Column("difference"), *words("10 % rule", "chainmark", "both", "why")]
    return Table(id_, title, columns, made, [note] if note else [])


def _change_of(row: TenPercentRow) -> str:
    """A percentage needs a base: from zero there is none; the ten-per-cent rule counts any value as a difference."""
    if row.change is not None:
        return units.percent(row.change)
    return units.NO_DATA if row.old_fails is None else "from 0" if row.old_fails else "0 on both sides"


def _old_word(row: TenPercentRow) -> str:
    if row.old_fails is None:
        return units.UNSET
    return "fails" if row.old_fails else "passes"


def _our_word(row: TenPercentRow) -> str:
    if row.concordance is RuleConcordance.NOT_COMPARABLE:
        return "not comparable"
    if row.concordance is RuleConcordance.NOT_JUDGED:
        return "not judged"
    return f"{row.outcome} (gating)" if row.gating else row.outcome
