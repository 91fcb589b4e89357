"""The report of a release's qualification: every scenario with its result, and the verdict over all of them.

It is the only source of all of its renderings, and contains their computed content.
"""

from __future__ import annotations

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SerializeAsAny

from chainmark.core.attachment import Attachment, Opinion, OpinionRow
from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.comparison import ChartData, Comparison, ConfigurationDifference, Judgement
from chainmark.core.manifest import Fact, Gate, Status, Subject, failed_gates, status_of
from chainmark.core.qa_plan import ScenarioKind
from chainmark.core.verdict import Verdict

QA_REPORT_SCHEMA = 2  # 1 had three other names, which are still read


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Incomparable(_Part):
    """A metric whose values must not be compared, and why."""

    metric_id: str
    label: str
    because: str


class RunLine(_Part):
    """One run of a scenario, as the report lists it.

    Attributes:
        repeats: the id of the invalid run that it repeats.
        gates: all of them; a valid run failed none.
    """

    run_id: str
    side: str
    repetition: int
    position: int
    started_at: str
    valid: bool
    gates: list[Gate] = []
    repeats: str = ""
    warnings: list[str] = []
    incidents: list[str] = []

    @property
    def failed_gates(self) -> list[Gate]:
        """The gates that it did not meet."""
        return failed_gates(self.gates)

    @property
    def failed(self) -> bool:
        """Whether the version under test failed it, which counts against it; otherwise it is valid or not evidence."""
        return status_of(self.gates) is Status.FAILED


class SideLine(_Part):
    """One side of a scenario: its version and its conditions."""

    id: str
    label: str
    version: str
    run_ids: list[str]
    conditions: dict[str, str] = {}


class BesideRow(_Part):
    """One metric of an informational scenario: a judgement of each further side against the first one."""

    metric_id: str
    statistic: str
    judgements: list[Judgement]


class QaPlot(_Part):
    """A plot over time with all sides of a scenario in it.

    Attributes:
        chart: its lines' ``side`` is the label of the side; a line without a run id is a version's mean.
        unit: of the values.
        limit: the upper end of the published plot's axis, drawn if values come near it; None: there is none.
    """

    id: str
    published_id: str
    chart: ChartData
    sides: list[str]
    unit: str
    limit: float | None = None
    beyond_limit: bool = False


class QaScenario(_Part):
    """One scenario with its result.

    Attributes:
        experiment: the experiment of its runs; "" if there are none.
        reasons: of the result, the most important first.
        lacking: requirements that this machine or version does not meet; empty if it was run.
        repeated: repeated runs, and why.
        second_rule: the outcome by the rule of the system's published reports for every judged figure, if it has one.
        swept: of a sweep, the system's result.
    """

    id: str
    title: str
    question: str
    method: str
    kind: ScenarioKind
    gating: bool
    profile_name: str
    profile_description: str = ""
    settings: list[str] = []
    repetitions: int
    needs: list[str] = []
    lacking: list[str] = []
    experiment: str = ""
    date: str = ""
    result: Verdict
    sentence: str
    reasons: list[str] = []
    advice: list[str] = []
    sides: list[SideLine] = []
    runs: list[RunLine] = []
    repeated: list[str] = []
    workload: list[Fact] = []
    comparison: Comparison | None = None
    tables: list[str] = []
    beside: list[BesideRow] = []
    incomparable: list[Incomparable] = []
    second_rule: list[SerializeAsAny[OpinionRow]] = Field([], validation_alias=AliasChoices("second_rule", "old_rule"))
    plots: list[QaPlot] = []
    swept: SerializeAsAny[Attachment] | None = Field(None, validation_alias=AliasChoices("swept", "saturation"))


class VerdictRow(_Part):
    """One row of the final table in published reports."""

    scenario: str
    date: str
    version: str
    result: Verdict
    reason: str


class QaReport(_Part):
    """``qa.json``.

    Attributes:
        notices: caveats before any figure: what cannot be compared, what was not run or was repeated.
        second_opinion: the joint outcome by the rule of the system's published reports, if it has one.
        configuration_differences: of the versions' own defaults, if their effective values differ.
        catalogue: for the labels and units of the metrics.
    """

    schema_version: int = QA_REPORT_SCHEMA
    tool_version: str
    title: str
    system: str
    plan: str
    plan_title: str
    plan_description: str
    experiment: str
    seed: int
    date: str
    started_at: str
    ended_at: str
    baseline: Subject
    candidate: Subject
    commits: tuple[str, str]
    machine: list[Fact]
    verdict: Verdict
    sentence: str
    reasons: list[str]
    advice: list[str]
    notices: list[str]
    method: list[str]
    rows: list[VerdictRow]
    scenarios: list[QaScenario]
    second_opinion: SerializeAsAny[Opinion] | None = Field(
        None, validation_alias=AliasChoices("second_opinion", "old_verdict")
    )
    configuration_differences: list[ConfigurationDifference]
    condition_rows: list[tuple[str, str, str, str]] = []
    catalogue: Catalogue
    caveats: CaveatsField = Caveats()
