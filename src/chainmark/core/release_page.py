"""A release page: a candidate under all its workloads against earlier versions, one verdict, and a text to publish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny

from chainmark.core.attachment import Attachment
from chainmark.core.by_workload import ByWorkload
from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.verdict import Verdict

RELEASE_PAGE_SCHEMA = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ChangeEvidence(_Part):
    """The change behind a sentence, on the scale of its judgement, with its 90 % interval."""

    against: str
    workload: str
    metric_id: str
    statistic: str
    change: float
    low: float
    high: float


class Sentence(_Part):
    """One sentence of the text; ``evidence`` is empty if it is about how the runs were made, not about a change."""

    text: str
    evidence: list[ChangeEvidence] = []


class Chapter(_Part):
    """Sentences below one heading; ``part`` is the heading of several chapters."""

    part: str
    title: str
    sentences: list[Sentence]


class PublishedPart(Attachment):
    """One workload in the form of the system's published reports: empty without its system."""

    def workload(self) -> str:
        """The workload's name in the reports."""
        return ""

    def setting(self) -> str:
        """The load of the runs, in a sentence."""
        return ""

    def parameters(self) -> Sequence[Any]:
        """Facts about the runs and their hosts, as `chainmark.report.blocks.Block`."""
        return ()

    def tables(self) -> Sequence[Any]:
        """The tables of its figures, likewise."""
        return ()

    def charts(self) -> Sequence[Any]:
        """The charts, likewise."""
        return ()

    def dictionary(self) -> Sequence[Any]:
        """The definitions of the figures, likewise; the same for all workloads."""
        return ()


class ReleasePage(_Part):
    """``release-page.json``.

    Attributes:
        author: the author; statement: text before all figures. Empty if they are not given.
        date: the day of the analysis, never of its rendering.
        verdict: the worst over all baselines and workloads; a workload without a baseline makes it inconclusive.
        against: the comparisons with each baseline, the main one first.
        text: a draft: how the runs were made, the observations, and the conclusion.
        published: one per workload, in the order of the main baseline's comparisons.
        noted: for each of these, the notes on its runs, a sentence each.
    """

    schema_version: int = RELEASE_PAGE_SCHEMA
    tool_version: str
    title: str
    author: str = ""
    statement: str = ""
    date: str
    verdict: Verdict
    sentence: str
    against: Annotated[list[ByWorkload], Field(min_length=1)]
    text: list[Chapter]
    published: list[SerializeAsAny[PublishedPart]] = []
    noted: list[list[str]] = []
    caveats: CaveatsField = Caveats()
