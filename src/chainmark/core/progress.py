"""How long work says where it stands, without knowing who listens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


class Progress(Protocol):
    """What takes reports of progress: a terminal, a log, a test."""

    def stage(self, name: str) -> None:
        """A new stage begins: "starting 4 validators"."""

    def update(self, fraction: float, detail: str = "") -> None:
        """The current stage stands at ``fraction`` (0 to 1)."""


@runtime_checkable
class StepListener(Protocol):
    """Who tells a stage from one of many steps, of which a log need not name each."""

    def step(self, name: str) -> None:
        """One of many steps begins."""

    def tell(self, text: str) -> None:
        """What the steps so far have found."""


def begin_step(progress: Progress, name: str) -> None:
    """One of many steps begins; to most listeners it is a stage as any other."""
    if isinstance(progress, StepListener):
        progress.step(name)
    else:
        progress.stage(name)


def tell(progress: Progress, text: str) -> None:
    """Say what steps have found to whom it is of use."""
    if isinstance(progress, StepListener):
        progress.tell(text)


class Silent:
    """A listener that does not care."""

    def stage(self, name: str) -> None:
        """Ignore the stage."""

    def update(self, fraction: float, detail: str = "") -> None:
        """Ignore the update."""


@dataclass(frozen=True)
class LiveFigures:
    """Figures of a load and of the nodes under it, as they stand now; None and no entry: not known.

    Attributes:
        offered: transactions or requests that are due by now.
        sent, accepted, failed: what became of them so far.
        in_flight: sent, and not answered yet.
        schedule_lag_s: how long the load would need for what is due and not sent yet.
        committed: transactions in blocks.
        p50_s, p99_s: latencies of the last whole second, once the load has warmed up.
        heights, waiting: by node, its last block and the transactions that wait in it.
    """

    offered: int | None = None
    sent: int | None = None
    accepted: int | None = None
    failed: int | None = None
    in_flight: int | None = None
    schedule_lag_s: float | None = None
    committed: int | None = None
    p50_s: float | None = None
    p99_s: float | None = None
    heights: Mapping[str, int] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)


LiveSource = Callable[[], LiveFigures]


@runtime_checkable
class LiveListener(Protocol):
    """Who may want figures while work lasts, at moments of its own choice: looking costs nothing unless it looks."""

    def live(self, source: LiveSource) -> AbstractContextManager[None]:
        """Figures can be had from ``source``, from any thread, as long as the context lasts."""


def live_figures(progress: Progress, source: LiveSource) -> AbstractContextManager[None]:
    """Offer figures to a listener that may want them."""
    return progress.live(source) if isinstance(progress, LiveListener) else nullcontext()
