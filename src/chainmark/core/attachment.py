"""System-specific parts of a common result: common code stores and shows them without knowing their contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from chainmark.core.errors import InternalError
from chainmark.core.verdict import Verdict


@dataclass(frozen=True)
class Finding:
    """The conclusion from a result: its verdict, the sentence, and the reasons."""

    verdict: Verdict
    sentence: str
    reasons: list[str]


class Attachment(BaseModel):
    """A result that a system made, and lays out itself. When read without the system it keeps its whole content."""

    model_config = ConfigDict(frozen=True, extra="allow")

    def finding(self) -> Finding:
        """The conclusion for the candidate.

        Raises:
            InternalError: there is none; the system's own class overrides this.
        """
        raise InternalError(f"a {type(self).__name__} has no finding for a candidate")

    def sides(self) -> Mapping[str, Sequence[str]]:
        """The ids of the runs whose metrics are shown as charts, by the labels of their sides; empty: none."""
        return {}

    def document(self) -> Any:
        """The result as a document of its own (`chainmark.report.document.Document`).

        Raises:
            InternalError: it has none.
        """
        raise InternalError(f"a {type(self).__name__} has no document")

    def blocks(self) -> Sequence[Any]:
        """The result as a part of another document (`chainmark.report.blocks.Block`); empty without its system."""
        return ()


class Opinion(Attachment):
    """The conclusion of another rule from all figures together, shown for comparison.

    Attributes:
        fails: whether the release fails by that rule.
    """

    fails: bool

    def in_words(self) -> str:
        """The conclusion in a sentence; "" without its system."""
        return ""

    def about(self) -> list[str]:
        """The rule, in sentences."""
        return []

    def full_table(self, rows: Sequence[OpinionRow], id_: str, title: str) -> Any:
        """All figures by both rules, as a `chainmark.report.blocks.Table`; None if there is nothing to show."""
        return None

    def short_table(self, rows: Sequence[OpinionRow], id_: str, title: str) -> Any:
        """The same for the figures on which the rules disagree."""
        return None


class OpinionRow(Attachment):
    """Another rule's outcome for one judged figure."""

    metric_id: str
    statistic: str
