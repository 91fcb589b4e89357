"""The releases of one workload in sequence: every figure, and where its level changed."""

from __future__ import annotations

from operator import not_
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.metric import Better
from chainmark.core.result import Result

LEAST_CHANGE = 0.001  # relative: a smaller change is irrelevant, however significant


class ReleaseDifference(BaseModel):
    """A difference from the previous release."""

    what: str
    before: str
    after: str


class MeasuredRelease(BaseModel):
    """Runs of one build under one set-up.

    Attributes:
        label: the version, with the day if another place of the series has the same version.
        started_at: of its first run, ISO 8601.
        notes: on its time: the set-up changed, a clock was wrong.
        changed: differences of its set-up from the previous release.
    """

    label: str
    version: str
    started_at: str
    run_ids: list[str]
    is_printed: bool = False
    notes: list[str] = []
    changed: Annotated[list[ReleaseDifference], Field(exclude_if=not_)] = []


class LevelChange(BaseModel):
    """The release from which on a figure has another level.

    Attributes:
        release: its index among the releases.
        label: of that release.
        change: of the level, as a fraction if ``is_relative`` of its series, else in the unit; ``low`` and ``high``
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
        values: the mean of its runs for every release; None if it has none.
        setups: indices of the releases before which the set-up changed, so that the levels are separate series.
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

    def effect_of(self, change: LevelChange) -> Literal["better", "worse", "moved"]:
        """What a change of the level means for the metric; "moved": neither direction is better."""
        if self.better is Better.NEITHER or change.change == 0.0:
            return "moved"
        return "better" if (change.change < 0.0) is (self.better is Better.LOWER) else "worse"


class HistoryReport(Result):
    """``history.json``.

    Attributes:
        system: the system whose catalogue defines the figures.
        false_discoveries: the accepted share of false changes in the list.
    """

    system: Annotated[str, Field(exclude=True)] = ""  # every release's runs contain it
    sentence: str
    releases: list[MeasuredRelease]
    series: list[HistorySeries]
    false_discoveries: float
    caveats: CaveatsField = Caveats()

    def at_changes(self, most: int) -> list[MeasuredRelease]:
        """The measured releases with which a gating metric changed, after the first and up to the last one.

        Args:
            most: if there are more, those before the newest are omitted.
        """
        measured = [index for index, release in enumerate(self.releases) if not release.is_printed]
        changed = {change.release for series in self.series if series.gating for change in series.changes}
        inner = [index for index in measured[1:-1] if index in changed]
        room = max(0, most - 2)
        return [self.releases[index] for index in [*measured[:1], *inner[len(inner) - room :], *measured[1:][-1:]]]
