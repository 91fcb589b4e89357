"""Changes of the set-up that somebody noted: what runs on either side of one differ by is no noise."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from chainmark.core.noted import Noted


class Annotation(BaseModel):
    """What was known of some runs, beside what they measured: a wrong clock, a host that was replaced.

    It changes no figure and no verdict.

    Attributes:
        system: whose runs.
        text: what was known, as a clause.
        run: the id of the run that it is about; "" for another reach.
        version: the version whose runs it is about; "" likewise.
        since, until: ISO 8601, UTC: it is about all runs of the system that ran between these; "" likewise.
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
        """What it is about: a run's id, a version, or a span of time."""
        return self.run or self.version or f"{self.since} to {self.until}"

    def is_about(self, run: Noted) -> bool:
        """Whether it is about a run."""
        if self.system != run.system:
            return False
        if self.run or self.version:
            return self.run == run.run_id or self.version in run.names
        return run.started_at <= self.until and run.ended_at >= self.since


class Epoch(BaseModel):
    """From when on runs were made with another set-up.

    Attributes:
        system: whose runs.
        since: ISO 8601, UTC: runs that started then or later are of the new set-up.
        text: what was changed, as a clause.
        metrics: ids of those that it changed; empty: any.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    since: str
    text: str
    metrics: tuple[str, ...] = ()

    def divides(self, metric_id: str, *started: str) -> bool:
        """Whether some of the times are before it and some are not, and it changed the metric."""
        sides = {time >= self.since for time in started}
        return len(sides) > 1 and (not self.metrics or metric_id in self.metrics)
