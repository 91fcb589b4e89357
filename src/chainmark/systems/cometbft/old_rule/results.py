"""What the rule of the published reports says of each figure and of all, and how that is shown beside our rule."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from pydantic import ConfigDict

from chainmark.core.attachment import Opinion, OpinionRow

if TYPE_CHECKING:
    from chainmark.report.blocks import Table


class Agreement(StrEnum):
    """How the rule of the published reports and ours speak of one metric."""

    BOTH_PASS = "both pass"  # noqa: S105 - not a password
    BOTH_FAIL = "both fail"
    ONLY_OLD_FAILS = "only the old rule fails it"
    ONLY_OURS_FAILS = "only ours fails it"
    NOT_COMPARABLE = "not comparable"
    UNDECIDED = "only ours is undecided"
    NOT_JUDGED = "not judged"
    NO_DATA = "no data"


# Not worth a row beside the metrics.
QUIET = {Agreement.BOTH_PASS, Agreement.UNDECIDED, Agreement.NO_DATA, Agreement.NOT_JUDGED}


class OldRuleRow(OpinionRow):
    """One judged metric by the rule of the published reports: a difference of more than 10 % is a regression.

    Attributes:
        change: candidate / baseline - 1; None where there is no ratio.
        old_fails: None where the rule can say nothing.
        why: what makes the difference where both disagree; else "".
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str
    unit: str
    gating: bool
    baseline: float | None
    candidate: float | None
    change: float | None
    old_fails: bool | None
    outcome: str
    ours_fails: bool
    agreement: Agreement
    why: str


class OldVerdict(Opinion):
    """What the rule of the published reports says of the whole.

    Attributes:
        differing: how many of the judged metrics differ by more than 10 %, of ``judged`` with a ratio.
        disagreements: on how many both rules disagree.
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
            "The published reports call a release worse if a result differs by more than 10 % from the release before. "
            "They do not say by which statistic, in which direction, nor how much two runs of one release differ; "
            "here the rule is applied to every judged figure, in both directions.",
            "chainmark asks instead whether the candidate is worse by more than a margin with the noise between runs "
            "taken into account, and says when it cannot tell.",
        ]

    def full_table(self, rows: Sequence[OpinionRow], id_: str, title: str) -> Table | None:
        """Every figure by both rules."""
        return _table(_own(rows), id_, title)

    def short_table(self, rows: Sequence[OpinionRow], id_: str, title: str) -> Table | None:
        """The figures on which both do not agree."""
        note = f"{len(rows)} judged figures; all of them stand in the JSON."
        return _table([row for row in _own(rows) if row.agreement not in QUIET], id_, title, note)


def _own(rows: Sequence[OpinionRow]) -> Sequence[OldRuleRow]:
    return cast(Sequence[OldRuleRow], rows)


def _table(rows: Sequence[OldRuleRow], id_: str, title: str, note: str = "") -> Table | None:
    from chainmark.systems.cometbft.old_rule.tables import old_rule_table  # noqa: PLC0415 - a layout

    return old_rule_table(rows, id_, title, note) if rows else None
