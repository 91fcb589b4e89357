"""What finds the notes of a run; apart from the notes, so that a list of runs starts at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Noted:
    """What must be known of a run to find what is noted of it; ``names`` are all that its version is called."""

    system: str
    run_id: str
    names: Sequence[str]
    started_at: str
    ended_at: str
