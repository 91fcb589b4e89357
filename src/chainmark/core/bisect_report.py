"""What a search for the revision with which a verdict changed found."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, SerializeAsAny

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.comparison import Comparison, Scale
from chainmark.core.verdict import Verdict


class Revision(BaseModel):
    """One commit or published version.

    Attributes:
        version: what the system is asked to run.
        label: what it is called here: "4f2cb01", "v0.38.18".
        subject: the first line of a commit's message.
        commit: its whole id; "" of a published version.
        author, date: of a commit; the date is ISO.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str
    label: str
    subject: str = ""
    commit: str = ""
    author: str = ""
    date: str = ""

    @property
    def title(self) -> str:
        """The label, with what it is about."""
        return f"{self.label} ({self.subject})" if self.subject else self.label


class Way(StrEnum):
    """How a search ended."""

    FOUND = "found"  # one revision
    RANGE = "range"  # revisions that cannot be told apart, because some of them cannot be measured
    UNDECIDED = "undecided"  # not sure enough with as many runs as were allowed
    NO_CHANGE = "no change"  # the bad side is not worse, or the metric does not differ
    UNCLEAR = "unclear"  # whether there is a change to look for was not decided


class SideFound(StrEnum):
    """Which end of the line a step found a revision to be like."""

    GOOD = "good"
    BAD = "bad"
    DOUBTFUL = "in doubt"


class BisectStep(BaseModel):
    """A revision measured until enough was known of it.

    Attributes:
        place: of the revision.
        pairs: runs of it in this step, each beside one of an end.
        outcome: at the step's end.
        change, low, high: against the good side with 90 % interval, by all runs until then; None where not known.
        chance: that it has the change, by all runs until then.
        left: revisions of which one brought the change, as surely as is asked for, after the step.
    """

    place: int
    pairs: int
    outcome: SideFound
    change: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    left: int = 0


class RevisionLevel(BaseModel):
    """What all runs say of one measured revision: its change against the good one, with 90 % interval."""

    place: int
    runs: int
    change: float
    low: float
    high: float


class BisectReport(BaseModel):
    """``bisect.json``.

    Attributes:
        order: how the revisions were listed, in a few words.
        revisions: the good one first, the bad one last.
        metric_id, statistic: what was followed; "" where it is failing runs, or nothing was.
        followed: its name in a sentence.
        scale: of changes; RELATIVE is a share of the good side's value.
        unit: of the metric.
        effect: what changed from the good to the bad side, by all runs.
        chances: of every revision but the first, that the change came with it.
        first, last: places of the revisions with one of which it came.
        chance: that it did.
        error: what was allowed of it.
        skipped: by place, why a revision was not measured.
        stat: files and lines that the commit changed.
        ends: the comparison of the bad side with the good one, by the runs that established the change.
        step_across: the comparison of the revision found with the one before it.
        references: how the two are named in the store, the one before first.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: int = 1
    tool_version: str
    title: str
    subtitle: str
    date: str
    verdict: Verdict
    way: Way
    sentence: str
    reasons: list[str]
    advice: list[str]
    experiment: str
    profile_name: str
    order: str
    revisions: list[Revision]
    metric_id: str = ""
    statistic: str = ""
    followed: str = ""
    scale: Scale = Scale.RELATIVE
    unit: str = ""
    effect: RevisionLevel | None = None
    levels: list[RevisionLevel] = []
    steps: list[BisectStep] = []
    chances: list[float] = []
    first: int | None = None
    last: int | None = None
    chance: float | None = None
    error: float
    runs: int
    most_runs: int
    skipped: dict[int, str] = {}
    stat: list[str] = []
    ends: SerializeAsAny[Comparison]
    step_across: SerializeAsAny[Comparison] | None = None
    references: list[str] = []
    caveats: CaveatsField = Caveats()
