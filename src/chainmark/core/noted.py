"""The key of a run's notes; separate from the notes, so that a list of runs starts at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Noted:
    """The data that select the notes on a run; ``names`` are all names of its version."""

    system: str
    run_id: str
    names: Sequence[str]
    started_at: str
    ended_at: str
