"""The service level agreement that a server must meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.stats.estimable import fewest_for_upper_bound

# The upper end of the engine's histograms.
LONGEST_LATENCY_S = 120.0

Latency = Annotated[float, Field(ge=1e-5, le=LONGEST_LATENCY_S, description="(seconds)")]


class Sla(BaseModel):
    """What an endpoint must keep to at a level for that level to count.

    Attributes:
        p95_s: latency limit (seconds) for 95 % of the requests; if omitted: no limit.
        p99_s: latency limit (seconds) for 99 % of the requests.
        error_share: largest share of the sent requests that may fail.
        achieved_share: of a rate, smallest share of the due requests that must be responded to in time.
        min_requests: smallest number of requests that decides; with fewer, a p99 has no upper bound.
        recovery_s: time (seconds) after a spike within which the p99 must be as before; if omitted: as long as the load
            after it lasts.
        drift_share: largest rise of latencies over a step of ten minutes or more at a fixed level, as a share; errors
            may rise by `error_share`. If omitted: no limit.
        memory_drift_share: largest rise of the watched server's memory over such a step, as a share; if omitted: no
            limit.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    p95_s: Latency | None = None
    p99_s: Latency = 1.0
    error_share: Annotated[float, Field(ge=0, le=0.5)] = 0.01
    achieved_share: Annotated[float, Field(ge=0.5, le=1)] = 0.99
    min_requests: Annotated[int, Field(ge=1, le=10_000_000)] = fewest_for_upper_bound(0.99)
    recovery_s: Annotated[float, Field(gt=0, le=86_400, description="(seconds)")] | None = None
    drift_share: Annotated[float, Field(gt=0, le=10)] | None = None
    memory_drift_share: Annotated[float, Field(gt=0, le=10)] | None = None

    @model_validator(mode="after")
    def _p95_can_decide(self) -> Self:
        if self.p95_s is not None and self.p95_s >= self.p99_s:
            raise ValueError(
                f"`p95_s` is {units.tidy(self.p95_s)}, which never decides beside a `p99_s` of "
                f"{units.tidy(self.p99_s)}: it must be below"
            )
        return self

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Validate it.

        Raises:
            UsageError: the first problem, as a sentence.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise _usage_error(cls, error) from error

    def terms(self) -> dict[str, Any]:
        """The settings that two runs must share; newer ones are omitted where they are not set."""
        later = ("recovery_s", "drift_share", "memory_drift_share")
        return self.model_dump(exclude={name for name in later if getattr(self, name) is None})

    @property
    def strictest_latency_s(self) -> float:
        """The shortest latency that is a limit."""
        return self.p99_s if self.p95_s is None else self.p95_s


def _usage_error(model: type[BaseModel], error: ValidationError) -> UsageError:
    first = error.errors()[0]
    if first["type"] == "value_error":
        return UsageError(str(first["ctx"]["error"]))
    (key,) = first["loc"]
    if first["type"] == "extra_forbidden":
        return UsageError(f"`{key}` is not a limit of an SLA", f"limits: {', '.join(model.model_fields)}")
    message = first["msg"].replace("Input should", "it should")
    return UsageError(f"the SLA's `{key}` is {first['input']!r}, but {message}")
