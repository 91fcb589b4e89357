"""A progress listener for tests of experiments."""

from __future__ import annotations


class Reported:
    """Records the messages of an experiment."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def stage(self, name: str) -> None:
        """Ignore the stage."""

    def update(self, fraction: float, detail: str = "") -> None:
        """Ignore the update."""

    def say(self, text: str) -> None:
        """Record the message."""
        self.lines.append(text)
