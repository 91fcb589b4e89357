"""The result of a search for the revision that changed a verdict."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, SerializeAsAny

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.comparison import Comparison, Scale
from chainmark.core.verdict import Verdict


class Revision(BaseModel):
    """One commit or published version.

    Attributes:
        version: the version for the system.
        label: its short name: "4f2cb01", "v0.38.18".
        subject: the first line of a commit's message.
        commit: its whole id; "" for a published version.
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
        """The label, with the subject."""
        return f"{self.label} ({self.subject})" if self.subject else self.label


class Way(StrEnum):
    """How a search ended."""

    FOUND = "found"  # one revision
    RANGE = "range"  # indistinguishable revisions, because some of them cannot be measured
    UNDECIDED = "undecided"  # not certain enough with the permitted number of runs
    NO_CHANGE = "no change"  # the bad side is not worse, or the metric does not differ
    UNCLEAR = "unclear"  # it was not decided whether there is a change to search for


class SideState(StrEnum):
    """The end of the line that a step found a revision to be like."""

    GOOD = "good"
    BAD = "bad"
    DOUBTFUL = "in doubt"


class BisectStep(BaseModel):
    """One visit to a revision, which measures it until its state is known.

    Attributes:
        place: of the revision.
        pairs: runs of it in this step, each paired with one of an end.
        outcome: at the step's end.
        change, low, high: against the good side with 90 % interval, by all runs until then; None if not known.
        chance: probability that it has the change, by all runs until then.
        left: number of revisions after the step that contain the change with the required probability.
    """

    place: int
    pairs: int
    outcome: SideState
    change: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    left: int = 0


class RevisionLevel(BaseModel):
    """The evidence of all runs for one measured revision: its change against the good one, with 90 % interval."""

    place: int
    runs: int
    change: float
    low: float
    high: float


class BisectReport(BaseModel):
    """``bisect.json``.

    Attributes:
        order: the order of the revisions, in a few words.
        revisions: the good one first, the bad one last.
        metric_id, statistic: what was tracked; "" for failing runs, or if nothing was.
        followed: its name in a sentence.
        scale: of changes; RELATIVE is a share of the good side's value.
        unit: of the metric.
        effect: what changed from the good to the bad side, by all runs.
        chances: probability of every revision but the first to have introduced the change.
        first, last: indices of the range of revisions that contains it.
        chance: probability that it does.
        error: the permitted error probability.
        skipped: by index, why a revision was not measured.
        stat: the commit's changes to files.
        ends: the comparison of the bad side with the good one, by the runs that established the change.
        step_across: the comparison of the found revision with the previous one.
        references: the names of the two in the store, the previous one first.
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
