"""What the releases of one workload show one after the other: every figure, and where its level changed."""

from __future__ import annotations

from operator import not_
from typing import Annotated

from pydantic import BaseModel, Field

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.metric import Better
from chainmark.core.result import Result

LEAST_CHANGE = 0.001  # relative: what is smaller, nobody would look at, however surely it changed


class ReleaseDifference(BaseModel):
    """Something that is not as it was with the release before."""

    what: str
    before: str
    after: str


class MeasuredRelease(BaseModel):
    """Runs of one build under one set-up.

    Attributes:
        label: the version, with the day where another place of the series has it, too.
        started_at: of its first run, ISO 8601.
        notes: what is known of its time: the set-up changed, a clock was wrong.
        changed: what it was made with differs in this from the release before.
    """

    label: str
    version: str
    started_at: str
    run_ids: list[str]
    is_printed: bool = False
    notes: list[str] = []
    changed: Annotated[list[ReleaseDifference], Field(exclude_if=not_)] = []


class LevelChange(BaseModel):
    """From which release on a figure has another level.

    Attributes:
        release: its place among the releases.
        label: of that release.
        change: of the level, as a fraction where ``is_relative`` of its series, else in the unit; ``low`` and ``high``
            are its 90 % interval.
        p_value: of the permutation test; ``q_value`` adjusted for all series.
        is_gradual: a straight line through all releases of the set-up describes them better than steps.
    """

    release: int
    label: str
    change: float
    low: float | None
    high: float | None
    p_value: float
    q_value: float
    is_gradual: bool


class HistorySeries(BaseModel):
    """One statistic of one metric over the releases.

    Attributes:
        values: a mean of its runs for every release; None where it has none.
        setups: places of the releases before which the set-up changed, so that the levels are not one series.
        changes: of the level, in order.
    """

    metric_id: str
    statistic: str
    label: str
    unit: str
    better: Better
    gating: bool
    is_relative: bool
    values: list[float | None]
    setups: list[int] = []
    changes: list[LevelChange] = []


class HistoryReport(Result):
    """``history.json``.

    Attributes:
        system: whose catalogue defines the figures.
        false_discoveries: the share of the listed changes that may be none.
    """

    system: Annotated[str, Field(exclude=True)] = ""  # every release's runs say so themselves
    sentence: str
    releases: list[MeasuredRelease]
    series: list[HistorySeries]
    false_discoveries: float
    caveats: CaveatsField = Caveats()
