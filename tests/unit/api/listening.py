"""Who follows an experiment in the tests."""

from __future__ import annotations


class Reported:
    """Keeps what an experiment says while it goes on."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def stage(self, name: str) -> None:
        """A stage begins."""

    def update(self, fraction: float, detail: str = "") -> None:
        """It goes on."""

    def say(self, text: str) -> None:
        """Keep it."""
        self.lines.append(text)
