"""What a system has of its own in a common result: common code keeps it, shows it, and knows no more of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from chainmark.core.errors import InternalError
from chainmark.core.verdict import Verdict


@dataclass(frozen=True)
class Finding:
    """What follows from a result: its verdict, why in a sentence, and the reasons."""

    verdict: Verdict
    sentence: str
    reasons: list[str]


class Attachment(BaseModel):
    """A result that a system made, and lays out itself. Read back without the system it keeps its whole content."""

    model_config = ConfigDict(frozen=True, extra="allow")

    def finding(self) -> Finding:
        """What follows from it for the candidate.

        Raises:
            InternalError: nothing does; the system's own class says more.
        """
        raise InternalError(f"a {type(self).__name__} says nothing of a candidate")

    def document(self) -> Any:
        """It as a document of its own (`chainmark.report.document.Document`).

        Raises:
            InternalError: it has none.
        """
        raise InternalError(f"a {type(self).__name__} is no document of its own")

    def blocks(self) -> Sequence[Any]:
        """It as a part of another document (`chainmark.report.blocks.Block`); none where its system is not there."""
        return ()


class Opinion(Attachment):
    """What another rule than ours says of all figures together, and how it is shown beside ours.

    Attributes:
        fails: whether the release fails by it.
    """

    fails: bool

    def in_words(self) -> str:
        """The same in a sentence; "" where its system is not there."""
        return ""

    def about(self) -> list[str]:
        """What the rule is, in sentences."""
        return []

    def full_table(self, rows: Sequence[OpinionRow], id_: str, title: str) -> Any:
        """Every figure by both rules, as a `chainmark.report.blocks.Table`; None where there is nothing to show."""
        return None

    def short_table(self, rows: Sequence[OpinionRow], id_: str, title: str) -> Any:
        """The same of the figures on which the rules do not agree."""
        return None


class OpinionRow(Attachment):
    """What another rule says of one judged figure."""

    metric_id: str
    statistic: str
