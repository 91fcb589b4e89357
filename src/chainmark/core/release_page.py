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
    """The change that a sentence rests on, on the scale of its judgement, with its 90 % interval."""

    against: str
    workload: str
    metric_id: str
    statistic: str
    change: float
    low: float
    high: float


class Sentence(_Part):
    """One sentence of the text; ``evidence`` is empty where it tells how the runs were made, and no change."""

    text: str
    evidence: list[ChangeEvidence] = []


class Chapter(_Part):
    """Sentences below one heading; ``part`` is that of several chapters."""

    part: str
    title: str
    sentences: list[Sentence]


class PublishedPart(Attachment):
    """One workload as the published reports of its system show it: none of it where its system is not there."""

    def workload(self) -> str:
        """What the reports call the workload."""
        return ""

    def setting(self) -> str:
        """What the runs did, in a sentence."""
        return ""

    def parameters(self) -> Sequence[Any]:
        """What is stated of the runs and their hosts, as `chainmark.report.blocks.Block`."""
        return ()

    def tables(self) -> Sequence[Any]:
        """The tables of its figures, likewise."""
        return ()

    def charts(self) -> Sequence[Any]:
        """The charts, likewise."""
        return ()

    def dictionary(self) -> Sequence[Any]:
        """What the figures are, likewise; the same for all workloads."""
        return ()


class ReleasePage(_Part):
    """``release-page.json``.

    Attributes:
        author: who signs it; statement: what they say before all figures. Empty where they are not told.
        date: the day of the analysis, never of its rendering.
        verdict: the worst over all baselines and workloads; what has no baseline leaves it inconclusive.
        against: the comparisons with each baseline, the main one first.
        text: a draft: how the runs were made, what was observed, and what follows.
        published: one a workload, in the order of the main baseline's comparisons.
        noted: of each of these, what is noted of its runs, a sentence each.
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
