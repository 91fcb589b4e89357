"""What a metric is: an entry of a system's catalogue.

Right of the samples, code knows a metric only through this description.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


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


class Chart(StrEnum):
    """The kinds of chart a metric can ask for; the report draws each kind the same way for every system."""

    CDF = "cdf"  # distribution of all samples, both sides, with a band; and the shift of its quantiles
    SERIES = "series"  # value over time since the start of the window, one line a run
    SCATTER = "scatter"  # one dot a sample over time


STATISTIC_PATTERN = r"^(mean|min|max|p\d{1,2}(\.\d+)?)$"
StatisticName = Annotated[str, Field(pattern=STATISTIC_PATTERN)]


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class Metric(BaseModel):
    """One metric of a system.

    ``judged_by`` may name several statistics: latency is judged by its median *and* its tail, and both are one
    column of samples. Each (metric, statistic) pair gets an outcome of its own.
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
    floor: float = Field(default=0.0, ge=0)
    default_noise: float = Field(default=0.03, gt=0)
    gating: bool = False
    charts: list[Chart] = []
    description: str
    source: list[str]

    @model_validator(mode="after")
    def _judged_statistics_are_shown(self) -> Metric:
        missing = [name for name in self.judged_by if name not in self.statistics]
        if missing:
            raise ValueError(f"metric `{self.id}` is judged by {missing[0]}, which is not among its statistics")
        if self.gating and self.better is Better.NEITHER:
            raise ValueError(f"metric `{self.id}` is gating but has no better direction")
        if self.kind in (Kind.COUNT, Kind.PROPORTION) and self.judged_by != ["mean"]:
            raise ValueError(f"metric `{self.id}` is a {self.kind} and can be judged by its mean only")
        return self


class Population(BaseModel):
    """What a metric is sampled over: block, transaction, second, node × second.

    Attributes:
        keys: the key columns of the samples' file.
        time_key: the key that orders samples in time, in seconds since the window's start; None if they have no order.
        average_over: keys averaged away before the standard error is estimated (hosts are the same fixed fleet
            in every run, so they are not resampled).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    label: str
    keys: list[str]
    time_key: str | None = None
    average_over: list[str] = []


class Table(BaseModel):
    """A group of metrics shown together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    title: str


class Condition(BaseModel):
    """A fact about a run that two sides should share; when they differ the report warns with this text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    label: str
    explanation: str
