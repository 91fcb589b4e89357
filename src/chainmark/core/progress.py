"""How long work says where it stands, without knowing who listens."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """What takes reports of progress: a terminal, a log, a test."""

    def stage(self, name: str) -> None:
        """A new stage begins: "starting 4 validators"."""

    def update(self, fraction: float, detail: str = "") -> None:
        """The current stage stands at ``fraction`` (0 to 1)."""


class Silent:
    """A listener that does not care."""

    def stage(self, name: str) -> None:
        """Ignore the stage."""

    def update(self, fraction: float, detail: str = "") -> None:
        """Ignore the update."""
