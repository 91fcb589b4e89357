"""The verdict of the published reports' rule on each figure."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict

from chainmark.core.attachment import OpinionRow
from chainmark.core.former_names import renamed


class RuleConcordance(StrEnum):
    """How the verdicts of the published reports' rule and ours on one metric relate."""

    BOTH_PASS = "both pass"  # noqa: S105 - not a password
    BOTH_FAIL = "both fail"
    ONLY_OLD_FAILS = "only the old rule fails it"
    ONLY_OURS_FAILS = "only ours fails it"
    NOT_COMPARABLE = "not comparable"
    UNDECIDED = "only ours is undecided"
    NOT_JUDGED = "not judged"
    NO_DATA = "no data"


# Not important enough for a row next to the metrics.
QUIET = {RuleConcordance.BOTH_PASS, RuleConcordance.UNDECIDED, RuleConcordance.NO_DATA, RuleConcordance.NOT_JUDGED}


class TenPercentRow(OpinionRow):
    """One judged metric by the rule of the published reports: a difference of more than 10 % is a regression.

    Attributes:
        change: candidate / baseline - 1; None if there is no ratio.
        old_fails: None if the rule does not apply.
        why: the reason if the rules disagree; otherwise "".
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
    concordance: Annotated[RuleConcordance, renamed("concordance", "agreement")]
    why: str
