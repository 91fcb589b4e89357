"""The definition of a metric: an entry of a system's catalogue.

Apart from samples, code knows a metric only by this description.
"""

from __future__ import annotations

import operator
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from chainmark.core.chart_kind import ChartKind, ChartSource


class Kind(StrEnum):
    """How values of a metric are compared."""

    POSITIVE = "positive"  # ratio scale, always > 0: compared by the ratio
    DIFFERENCE = "difference"  # may be 0 or negative: compared by the difference
    COUNT = "count"  # events per sample: compared as Poisson rates
    PROPORTION = "proportion"  # 0 or 1 per sample: compared as proportions


class Better(StrEnum):
    """The direction in which a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


STATISTIC_PATTERN = r"^(mean|min|max|p\d{1,2}(\.\d+)?)$"
StatisticName = Annotated[str, Field(pattern=STATISTIC_PATTERN)]


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class CovariateKind(StrEnum):
    """How a covariate enters a regression."""

    LINEAR = "linear"  # a number, including 0 and 1
    DAY = "day"  # seconds since midnight: as waves of a day and of half a day


class Covariate(BaseModel):
    """A variable that a metric's samples depend on besides the version: a column of the same samples.

    Attributes:
        column: a key or a metric of the population.
        label: its name in sentences.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: str
    label: str
    kind: CovariateKind = CovariateKind.LINEAR


class Metric(BaseModel):
    """One metric of a system.

    ``judged_by`` may name several statistics: latency is judged by its median *and* its tail, and both are one
    column of samples. Each (metric, statistic) pair has a separate outcome. ``published`` is its form in the
    system's published reports; only the system reads it. ``adjusted_for`` names the covariates whose differences
    between two sides are removed before means are compared. ``widened`` is the margin of one comparison up to which
    a metric is called equal if re-runs alone exceed its own margin. One that ``explains`` is shown again if
    another became worse: it shows what the nodes were doing. ``rises`` and ``falls`` describe the effect on users in
    the first sentence of a verdict: "blocks reach half of the hosts {} later".
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    published_id: str | None = None
    label: str
    unit: str
    kind: Kind
    better: Better
    statistics: list[StatisticName]
    judged_by: Annotated[list[StatisticName], BeforeValidator(_as_list)]
    table: str
    order: int
    population: str
    margin: float = Field(default=0.10, gt=0)
    widened: float | None = Field(default=None, exclude=True)
    floor: float = Field(default=0.0, ge=0)
    default_noise: float = Field(default=0.03, gt=0)
    gating: bool = False
    charts: list[ChartKind] = []
    adjusted_for: list[str] = []
    published: dict[str, JsonValue] | None = None
    explains: bool = Field(default=False, exclude_if=operator.not_)
    rises: str = Field(default="", pattern=r"^$|\{\}", exclude_if=operator.not_)
    falls: str = Field(default="", pattern=r"^$|\{\}", exclude_if=operator.not_)
    description: str
    source: list[str]

    @property
    def accepted(self) -> float:
        """The relative margin up to which the metric is called equal; it is still worse beyond ``margin``."""
        return max(self.margin, self.widened or 0.0)

    @property
    def drawn(self) -> list[ChartKind]:
        """The kinds of its charts, each with those that accompany it."""
        kinds = (kind for named in self.charts for kind in ChartKind if named in {kind, kind.follows})
        return list(dict.fromkeys(kinds))

    def draws_from(self, source: ChartSource) -> bool:
        """Whether one of its charts is computed from this part of a run's description."""
        return any(kind.needs == source for kind in self.drawn)

    @property
    def is_shown_closely(self) -> bool:
        """Whether its breakdowns and its tails are shown: it decides, or its distribution is drawn."""
        return self.gating or self.draws_from("replicates")

    @model_validator(mode="after")
    def _judged_statistics_are_shown(self) -> Metric:
        missing = [name for name in self.judged_by if name not in self.statistics]
        if missing:
            raise ValueError(f"metric `{self.id}` is judged by {missing[0]}, which is not among its statistics")
        if self.gating and self.better is Better.NEITHER:
            raise ValueError(f"metric `{self.id}` is gating but has no better direction")
        if self.kind in (Kind.COUNT, Kind.PROPORTION) and self.judged_by != ["mean"]:
            raise ValueError(f"metric `{self.id}` is a {self.kind} and can only be judged by its mean")
        return self


class Weighting(StrEnum):
    """The items with equal weight in the mean of a population with keys to average over; all are resampled by time."""

    TIMES = "times"  # every time: samples of one time are averaged first
    SAMPLES = "samples"  # every sample
    KEYS = "keys"  # every value of the averaged keys (every host), however many samples it has


class Population(BaseModel):
    """The unit that a metric is sampled over: block, transaction, second, node × second.

    Attributes:
        keys: the key columns of the samples' file.
        time_key: the key that orders samples in time, in seconds since the window's start; None if they have no order.
        average_over: keys averaged away before the standard error is estimated (hosts are the same fixed fleet
            in every run, so they are not resampled).
        weighting: the items with equal weight in the mean, if there are keys to average over.
        lowest_means: with weighting by keys, the mean is that of this many of the lowest means of the keys' values:
            an existing tool's rule that applies to some runs; None: of all.
        silent_keys_are_zero: with weighting by keys, a key's value without samples counts as a mean of 0: an
            existing tool's rule, too; otherwise it does not count.
        keys_apart: with weighting by keys, the standard deviation is the largest of the keys' values, and a centile the
            median of theirs: an existing tool's rule, too; otherwise both are of the pooled samples.
        breakdowns: keys by whose values the metrics are also shown one by one, for example by host.
        covariates: variables that its samples depend on besides the version, if conditions differ between all runs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    label: str
    keys: list[str]
    time_key: str | None = None
    average_over: list[str] = []
    weighting: Weighting = Weighting.TIMES
    lowest_means: int | None = Field(default=None, ge=1)
    silent_keys_are_zero: bool = False
    keys_apart: bool = Field(default=False, exclude_if=operator.not_)
    breakdowns: list[str] = []
    covariates: list[Covariate] = []

    @model_validator(mode="after")
    def _keys_are_known(self) -> Population:
        unknown = next((key for key in [*self.average_over, *self.breakdowns] if key not in self.keys), None)
        if unknown is not None:
            raise ValueError(f"population `{self.id}` names `{unknown}`, which is not among its keys")
        if self.lowest_means is not None and self.weighting is not Weighting.KEYS:
            raise ValueError(f"population `{self.id}` limits the means of its keys but is not weighted by them")
        return self


class MetricGroup(BaseModel):
    """A group of metrics shown together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    title: str


class SharedFact(BaseModel):
    """A fact about a run that two sides should share; if they differ the report warns with this text.

    Attributes:
        makes_incomparable: ids of the metrics whose definition depends on the fact: if it differs they are
            shown, but neither judged nor reported as changed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    label: str
    explanation: str
    makes_incomparable: list[str] = []
