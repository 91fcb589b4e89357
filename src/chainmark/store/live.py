"""The state of a run or a search in progress: one small file in its folder, removed at its end."""

from __future__ import annotations

import contextlib
from pathlib import Path

from pydantic import BaseModel, ValidationError

LIVE = "live.json"


class LivePoint(BaseModel):
    """Counts at one moment of a load, in seconds since its start; None: not known."""

    at_s: float
    offered: int | None = None
    accepted: int | None = None
    committed: int | None = None


class LiveStretch(BaseModel):
    """Figures of one of the equal parts of a load so far: medians of the observed values."""

    at_s: float
    p50_s: float | None = None
    p99_s: float | None = None
    memory_bytes: float | None = None


class LiveState(BaseModel):
    """``live.json``.

    Attributes:
        stage: the current stage; ``fraction`` and ``detail`` are its progress.
        updated_at: ISO 8601.
        points: of the load, the oldest first.
        stretches: of the whole load without its warm-up, to show a drift.
        sent, failed, in_flight, schedule_lag_s, heights, waiting: as in `core.progress.LiveFigures`.
    """

    schema_version: int = 1
    stage: str = ""
    fraction: float = 0.0
    detail: str = ""
    updated_at: str = ""
    points: list[LivePoint] = []
    stretches: list[LiveStretch] = []
    sent: int | None = None
    failed: int | None = None
    in_flight: int | None = None
    schedule_lag_s: float | None = None
    heights: dict[str, int] = {}
    waiting: dict[str, int] = {}


class LiveStep(BaseModel):
    """One step of a search among revisions: the state of its revision by all runs until then.

    Attributes:
        place: of the revision.
        outcome: "good", "bad" or "in doubt".
        chance: probability that the revision has the change.
        left: number of revisions that may have introduced the change.
        pairs: runs of it, each paired with one of an end.
    """

    place: int
    revision: str
    outcome: str
    chance: float
    left: int
    pairs: int


class LiveSearch(BaseModel):
    """``live.json`` of a search among revisions, in the folder of its experiment.

    Attributes:
        revisions: their number, both ends included; ``left`` of them may have introduced the change.
        followed: the tracked metric; "" while it is not known whether there is a change.
        trying: the revision that is built or measured now.
        runs: number of runs so far, of at most ``most_runs``.
    """

    schema_version: int = 1
    experiment: str
    pid: int
    good: str
    bad: str
    revisions: int
    most_runs: int
    followed: str = ""
    trying: str = ""
    runs: int = 0
    left: int = 0
    steps: list[LiveStep] = []
    updated_at: str = ""


def write_live(folder: Path, state: LiveState | LiveSearch) -> None:
    """Replace the state. A failure to write must not delay or fail the run."""
    with contextlib.suppress(OSError):
        staged = folder / f".{LIVE}"
        staged.write_text(state.model_dump_json(), encoding="utf-8")
        staged.replace(folder / LIVE)


def remove_live(folder: Path) -> None:
    """Remove the state."""
    for name in (LIVE, f".{LIVE}"):
        (folder / name).unlink(missing_ok=True)


def read_live(folder: Path) -> LiveState | None:
    """The state of a run; None if there is none, or it cannot be read."""
    try:
        return LiveState.model_validate_json((folder / LIVE).read_bytes())
    except (OSError, ValidationError):
        return None


def live_searches(experiments: Path) -> list[LiveSearch]:
    """The states of the searches among experiments that a running process works on, by name."""
    result = []
    for path in sorted(experiments.glob(f"*/{LIVE}")):
        with contextlib.suppress(OSError, ValidationError):
            search = LiveSearch.model_validate_json(path.read_bytes())
            if search.pid > 0 and Path(f"/proc/{search.pid}").exists():
                result.append(search)
    return result
