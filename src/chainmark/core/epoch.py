"""Recorded changes of the set-up: differences across one are not noise."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from chainmark.core.noted import Noted


class Annotation(BaseModel):
    """A note on some runs in addition to their measurements: a wrong clock, a host that was replaced.

    It affects no figure and no verdict.

    Attributes:
        system: the system of the runs.
        text: the note, as a clause.
        run: the id of the run that it concerns; "" for another scope.
        version: the version whose runs it concerns; "" likewise.
        since, until: ISO 8601, UTC: it concerns all runs of the system between these times; "" likewise.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    text: str
    run: str = ""
    version: str = ""
    since: str = ""
    until: str = ""

    @property
    def reach(self) -> str:
        """Its scope: a run's id, a version, or a period."""
        return self.run or self.version or f"{self.since} to {self.until}"

    def is_about(self, run: Noted) -> bool:
        """Whether it concerns a run."""
        if self.system != run.system:
            return False
        if self.run or self.version:
            return self.run == run.run_id or self.version in run.names
        return run.started_at <= self.until and run.ended_at >= self.since


class Epoch(BaseModel):
    """The start of runs with another set-up.

    Attributes:
        system: the system of the runs.
        since: ISO 8601, UTC: runs that started then or later are of the new set-up.
        text: the change, as a clause.
        metrics: ids of the affected metrics; empty: any.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    since: str
    text: str
    metrics: tuple[str, ...] = ()

    @property
    def reach(self) -> str:
        """Its scope."""
        return f"since {self.since}"

    def divides(self, metric_id: str, *started: str) -> bool:
        """Whether it lies between some of the times, and affects the metric."""
        sides = {time >= self.since for time in started}
        return len(sides) > 1 and (not self.metrics or metric_id in self.metrics)
