"""The comparison: the only source of every rendering (terminal, HTML, PDF, Markdown).

It contains all computed content of a report; a renderer formats and draws, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from operator import not_
from typing import Annotated, Any

from pydantic import BaseModel, Field, SerializeAsAny, model_validator

from chainmark.core.attachment import Attachment
from chainmark.core.build import BuildDifferences
from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.chart_kind import ChartKind
from chainmark.core.false_alarms import FalseAlarms
from chainmark.core.former_names import renamed
from chainmark.core.manifest import ConfigChange, Gate, HostFacts, Incident, Scalar, Status, Subject
from chainmark.core.profiled import Profiled
from chainmark.core.question import Question
from chainmark.core.result import JudgedResult
from chainmark.core.verdict import Verdict

SCHEMA_VERSION = 2


class Outcome(StrEnum):
    """The outcome of a comparison for one metric."""

    WORSE = "worse"
    EQUAL = "equal"
    BETTER = "better"
    INCONCLUSIVE = "inconclusive"
    NO_DATA = "no data"
    NOT_COMPARABLE = "not comparable"  # the metric means different things on the two sides


class MetricAnswer(StrEnum):
    """The answer to a question about one metric."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"


_BEYOND_MARGIN = {Outcome.WORSE: MetricAnswer.YES, Outcome.EQUAL: MetricAnswer.NO, Outcome.BETTER: MetricAnswer.NO}


class Scale(StrEnum):
    """The scale of a change and of its interval and band."""

    RELATIVE = "relative"  # fractions of the baseline: 0.05 is +5 %
    ABSOLUTE = "absolute"  # the metric's unit


class RunEntry(BaseModel):
    """One run of a side. All repetitions are listed; ``excluded_because`` names the failed gate of an excluded one.

    A run with the status FAILED is excluded from the metrics, and counts against its side.
    """

    run_id: str
    started_at: str
    repetition: int | None = None
    position: int | None = None
    gates: list[Gate]
    counts: dict[str, dict[str, int]]
    incidents: list[Incident]
    warnings: list[str]
    status: Status = Status.VALID
    excluded_because: str | None = None


class Side(BaseModel):
    """Baseline or candidate: the subject and its runs. ``label`` distinguishes the sides in tables and legends."""

    label: str
    subject: Subject
    runs: list[RunEntry]
    host: HostFacts
    conditions: dict[str, str]


class SideValue(BaseModel):
    """One statistic of one metric on one side."""

    value: float | None  # runs combined: geometric mean for positive metrics, pooled rate or mean otherwise
    per_run: list[float | None]  # in the order of the side's included runs
    samples: int  # over all included runs


class Judgement(BaseModel):
    """One (metric, statistic) pair compared.

    Attributes:
        change: point estimate on ``scale``; positive means the candidate's value is larger.
        low, high: the 90 % interval of the change, on ``scale``.
        margin_low, margin_high: the effective band on ``scale``, (-M, +M) with M = max(margin, floor / base).
        worse_beyond: the metric's own margin, beyond which it is worse, if re-runs widened that band.
        noise: how the noise was estimated: "between 3 + 3 runs (Welch)", "history of 8 runs", "assumed 3 %" …
        p_worse: one-sided p-value for a change beyond the margin; ``p_worse_adjusted`` for all gating metrics together,
            to be compared with ``worse_level``, the error that this look may spend.
        p_different: two-sided p-value for any change; ``q_different`` adjusted (Benjamini-Hochberg) over the gating
            metrics, and over the diagnostics.
        moved: a diagnostic that changed: q <= 0.05, at least the floor, and more than 2 %.
        beyond_noise: whether it moved by more than the noise of re-runs: q <= 0.05, and at least the floor; None if
            nothing was judged.
        inside_noise: the margin is too narrow to show with these runs that even an unchanged metric is within it.
        trend: statistically worse although within the margin.
        equivalent: the whole interval is within the band.
        detectable: smallest worsening that this look finds with 80 % power, judged alone, on ``scale``; None if it
            cannot be computed.
    """

    metric_id: str
    statistic: str
    gating: bool
    baseline: SideValue
    candidate: SideValue
    scale: Scale
    change: float | None = None
    low: float | None = None
    high: float | None = None
    margin_low: float | None = None
    margin_high: float | None = None
    worse_beyond: float | None = Field(default=None, exclude_if=lambda value: value is None)
    outcome: Outcome
    trend: bool = False
    equivalent: bool = False
    moved: bool = False
    beyond_noise: bool | None = None
    inside_noise: bool = False
    noise: str = ""
    degrees_of_freedom: float | None = None
    p_worse: float | None = None
    p_worse_adjusted: float | None = None
    worse_level: float = 0.05
    p_different: float | None = None
    q_different: float | None = None
    detectable: float | None = None
    note: str = ""

    @property
    def clearness(self) -> float:
        """The change in widths of its interval; 0 without an interval."""
        width = 0.0 if self.low is None or self.high is None else self.high - self.low
        return abs(self.change or 0.0) / width if width else 0.0

    @property
    def beyond_margin(self) -> MetricAnswer | None:
        """Whether it is worse than allowed; None if nothing was judged."""
        if self.beyond_noise is None:
            return None
        return _BEYOND_MARGIN.get(self.outcome, MetricAnswer.UNDECIDED)

    @property
    def worse_alone(self) -> bool:
        """Whether it is worse by itself, but not in the joint test of all gating metrics."""
        adjusted = self.p_worse_adjusted
        is_worse = self.gating and self.outcome is Outcome.WORSE
        return is_worse and adjusted is not None and adjusted > self.worse_level


class ChartLine(BaseModel):
    """One line, band or cloud of dots of a chart.

    CDF: x = value in the metric's unit, y = fraction, low/high = the value band at that fraction.
    Shift: x = fraction, y = relative change of that quantile, low/high = its 90 % interval.
    Series and scatter: x = seconds since the window's start, y = value, low/high = range over the averaged keys.
    """

    side: str  # "baseline", "candidate", or "" if a line belongs to both
    run_id: str | None  # None: all included runs of the side pooled
    label: str
    x: list[float]
    y: list[float]
    low: list[float] | None = None
    high: list[float] | None = None


class ChartData(BaseModel):
    """One chart, ready to draw. ``note`` states what was thinned or pooled."""

    id: str  # "latency_s-cdf"
    metric_id: str
    kind: ChartKind
    title: str
    x_label: str
    y_label: str
    lines: list[ChartLine]
    note: str = ""


class ConfigurationDifference(BaseModel):
    """One configuration key whose effective value differs between the sides, or which only one version has."""

    file: str
    key: str
    baseline: Scalar | list[Scalar] = None
    candidate: Scalar | list[Scalar] = None
    only_in: str | None = None  # "baseline" or "candidate"
    is_default_change: bool  # True: the versions' own defaults differ; False: a profile or --set caused the difference


class ConditionDifference(BaseModel):
    """A condition on which the sides differ, with the catalogue's explanation of the effect on the result."""

    id: str
    label: str
    baseline: str
    candidate: str
    explanation: str


class DistributionRow(BaseModel):
    """Pooled samples of one metric on one side, for the tables behind the verdict."""

    metric_id: str
    side: str
    n: int
    n_null: int
    mean: float | None
    sd: float | None
    min: float | None
    max: float | None
    centiles: list[tuple[float, float | None]]


class EffectSize(BaseModel):
    """The distance of two distributions.

    ``probability_candidate_larger`` is P(candidate > baseline) + P(equal) / 2 over pooled samples; ``wasserstein`` and
    ``largest_gap_at`` are in the metric's unit, ``largest_gap`` is the largest vertical distance of the CDFs.
    """

    metric_id: str
    probability_candidate_larger: float
    wasserstein: float
    largest_gap: float
    largest_gap_at: float


def _is_empty(value: object) -> bool:
    return not value


class Breakdown(BaseModel):
    """The mean of one metric by the values of one key (host by host), outliers first.

    All lists have the same length. A mean is that of the runs' own means, with equal weight for each run.

    Attributes:
        baseline, candidate: means in the metric's unit; None without samples.
        baseline_n, candidate_n: samples.
        change: of the candidate's mean, on ``scale``; None if a side has none.
        z: robust z-score (distance from the median over 1.4826 times the median distance), of the two sides' the
            larger; None if a side has fewer than five values.
        stands_out: on which side a value is an outlier: "", "baseline", "candidate" or "both". That is a z-score above
            3, and a distance from the median above the metric's margin and floor and above three standard errors of
            its mean (by the spread of its own samples, or that of all values' if it is wider).
        median_baseline, median_candidate: of the values' means.
        group_label: the name of the groups within which values are compared; "": with all values.
        group_medians_baseline, group_medians_candidate: per value, the median of its group, if there are groups.
        left_out: number of values that are not listed; the list starts with outliers, then those that
            changed by more than the metric's margin (its floor, if changes are absolute).
    """

    metric_id: str
    key: str
    scale: Scale
    values: list[str]
    baseline: list[float | None]
    candidate: list[float | None]
    baseline_n: list[int]
    candidate_n: list[int]
    change: list[float | None]
    z: list[float | None]
    stands_out: list[str]
    median_baseline: float | None
    median_candidate: float | None
    group_label: str = Field(default="", exclude_if=_is_empty)
    group_medians_baseline: list[float | None] = Field(default=[], exclude_if=_is_empty)
    group_medians_candidate: list[float | None] = Field(default=[], exclude_if=_is_empty)
    left_out: int = 0

    def beside_median(self, index: int) -> tuple[float | None, float | None]:
        """A value's mean over the median of its side or group, and their distance: on the side where it is an outlier.

        The ratio is None if one of them is not above 0; both are None if one is not known.
        """
        in_baseline = self.stands_out[index] == "baseline"
        mean = (self.baseline if in_baseline else self.candidate)[index]
        median = self.median_baseline if in_baseline else self.median_candidate
        if self.group_label:
            median = (self.group_medians_baseline if in_baseline else self.group_medians_candidate)[index]
        if mean is None or median is None:
            return None, None
        return mean / median if mean > 0.0 and median > 0.0 else None, mean - median


class SplitPart(BaseModel):
    """The contribution of one part of a quantity to its change.

    Attributes:
        of: the id of the part that contains it; "" for the parts of the whole change.
        change: on the split's scale; the changes of all parts add up to the change of the whole.
        low, high: the 90 % interval, on the scale.
    """

    id: str
    label: str
    of: str = ""
    change: float
    low: float
    high: float


class Split(BaseModel):
    """One judged change as the sum of the changes of its parts. It decides nothing.

    Attributes:
        basis: source of the intervals: "between 3 + 3 runs", "within one run per side" …
    """

    metric_id: str
    statistic: str
    scale: Scale
    change: float
    basis: str
    parts: list[SplitPart]

    def of(self, part_id: str = "") -> list[SplitPart]:
        """The parts of a part; without an id, those of the whole change."""
        return [part for part in self.parts if part.of == part_id]


class Splits(BaseModel):
    """The changes that a system can divide among causes, and why it cannot divide others.

    Attributes:
        title: the question: "Network or node".
        unknown_reason: why nothing could be divided, in a sentence; "" if something is.
        notes: the method, and its limits.
    """

    title: str
    splits: list[Split] = []
    unknown_reason: Annotated[str, renamed("unknown_reason", "untold")] = ""
    notes: list[str] = []

    def split_of(self, metric_id: str, statistic: str) -> Split | None:
        """The split of one judgement."""
        return next(
            (split for split in self.splits if (split.metric_id, split.statistic) == (metric_id, statistic)), None
        )


class Followed(Attachment):
    """The events behind the most extreme samples of a comparison, as parts of its report; empty without its system.

    Each method receives the comparison, for the labels of its sides and the units of its metrics.
    """

    def closing(self, comparison: Comparison) -> Sequence[Any]:
        """The final remarks on a terminal, as `chainmark.report.blocks.Remark`."""
        return ()

    def leads(self, comparison: Comparison, metric_id: str) -> Sequence[Any]:
        """The note next to the chart of a metric's distribution, as `chainmark.report.phrases.Phrases`."""
        return ()

    def tail(self, comparison: Comparison, metric_id: str) -> Sequence[tuple[str, float, str, str]]:
        """The samples of a metric's tails with details: the side's label, the value, a description, the anchor."""
        return ()

    def sections(self, comparison: Comparison) -> Sequence[Any]:
        """Its own sections, as `chainmark.report.blocks.Section`."""
        return ()


class AnchorView(BaseModel):
    """The candidate against the pinned release: its gating judgements, without effect on the verdict."""

    side: Side
    judgements: list[Judgement]


class Comparison(JudgedResult):
    """``comparison.json``.

    Attributes:
        failed_runs_verdict: the verdict from the runs that a subject failed; None if there are none,
            or the metrics alone decide.
    """

    schema_version: int = SCHEMA_VERSION
    reasons: list[str]  # the most important first
    advice: list[str]  # the next steps
    failed_runs_verdict: Verdict | None = None
    baseline: Side
    candidate: Side
    profile_name: str
    profile: dict[str, object]
    workload: dict[str, Scalar | list[Scalar]]
    workload_differences: dict[str, list[Scalar | list[Scalar]]] = Field(default_factory=dict)
    gates: list[Gate]  # of the pair
    condition_differences: list[ConditionDifference]
    configuration_differences: list[ConfigurationDifference]
    changed_from_default: dict[str, dict[str, dict[str, ConfigChange]]]  # side → file → key → change
    # side → node → file → key → change
    changed_per_node: dict[str, dict[str, dict[str, dict[str, ConfigChange]]]] = Field(default={})
    facts: list[tuple[str, str, str]] = Field(default=[])  # of the sides' first runs: label, baseline, candidate
    judgements: list[Judgement]  # in the report's order
    distributions: list[DistributionRow]
    effect_sizes: list[EffectSize]
    charts: list[ChartData]
    followed: SerializeAsAny[Followed] | None = None  # the tails of metrics, if the system can link samples to events
    breakdowns: list[Breakdown] = Field(default=[])
    false_alarms: Annotated[FalseAlarms | None, Field(exclude_if=not_)] = None  # of the history behind the verdict
    builds: Annotated[BuildDifferences | None, Field(exclude_if=not_)] = None  # of the sides' first runs
    question: Annotated[Question, Field(exclude_if=lambda item: item is Question.WORSE)] = Question.WORSE
    anchor: Annotated[AnchorView | None, Field(exclude_if=not_)] = None
    splits: Splits | None = Field(default=None, exclude_if=_is_empty)
    profiled: Annotated[Profiled | None, Field(exclude_if=not_)] = None
    catalogue: Catalogue
    caveats: CaveatsField = Caveats()
    confidence: float = 0.90

    @property
    def labels(self) -> tuple[str, str]:
        """The names of the sides, the baseline first."""
        return self.baseline.label, self.candidate.label

    @model_validator(mode="before")
    @classmethod
    def _of_schema_1(cls, raw: Any) -> Any:
        """Schema 1 had two separate lists of followed samples."""
        if not isinstance(raw, dict) or not raw.keys() & {"tails", "stories"}:
            return raw
        tails, timelines = raw.get("tails", []), raw.get("stories", [])
        others = {key: value for key, value in raw.items() if key not in ("tails", "stories")}
        return {**others, "followed": {"tails": tails, "traces": timelines} if tails else None}
