"""What a run that is being made shows of itself: one small file in its folder, which is gone when it is sealed."""

from __future__ import annotations

import contextlib
from pathlib import Path

from pydantic import BaseModel, ValidationError

LIVE = "live.json"


class LivePoint(BaseModel):
    """Counts at one moment of a load, in seconds since its begin; None: not known."""

    at_s: float
    offered: int | None = None
    accepted: int | None = None
    committed: int | None = None


class LiveState(BaseModel):
    """``live.json``.

    Attributes:
        stage: what the run does now; ``fraction`` and ``detail`` say how far that is.
        updated_at: ISO 8601.
        points: of the load, the oldest first.
        sent, failed, in_flight, schedule_lag_s, heights, waiting: as in `core.progress.LiveFigures`.
    """

    schema_version: int = 1
    stage: str = ""
    fraction: float = 0.0
    detail: str = ""
    updated_at: str = ""
    points: list[LivePoint] = []
    sent: int | None = None
    failed: int | None = None
    in_flight: int | None = None
    schedule_lag_s: float | None = None
    heights: dict[str, int] = {}
    waiting: dict[str, int] = {}


def write_live(folder: Path, state: LiveState) -> None:
    """Replace what is shown. It is not worth a wait for the disk, nor a failed run."""
    with contextlib.suppress(OSError):
        staged = folder / f".{LIVE}"
        staged.write_text(state.model_dump_json(), encoding="utf-8")
        staged.replace(folder / LIVE)


def remove_live(folder: Path) -> None:
    """Show nothing further."""
    for name in (LIVE, f".{LIVE}"):
        (folder / name).unlink(missing_ok=True)


def read_live(folder: Path) -> LiveState | None:
    """What is shown of a run; None where nothing is, or it cannot be read."""
    try:
        return LiveState.model_validate_json((folder / LIVE).read_bytes())
    except (OSError, ValidationError):
        return None
