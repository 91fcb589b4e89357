"""A load generator that seems to run on another machine."""

from __future__ import annotations

from typing import Any

from chainmark.capacity.generators import Process


class Elsewhere(Process):
    """A process of this machine that reports another machine as its own."""

    def ask(self, command: str, argument: Any = None) -> dict[str, Any]:
        """Its reply."""
        reply = super().ask(command, argument)
        return {"answer": {**reply["answer"], "kernel": "another"}} if command == "process" else reply
