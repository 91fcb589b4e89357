"""Changes of the set-up that somebody noted: what runs on either side of one differ by is no noise."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


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
