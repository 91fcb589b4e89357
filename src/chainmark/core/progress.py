"""Progress reports of long work, independent of their listeners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


class Progress(Protocol):
    """A receiver of progress reports: a terminal, a log, a test."""

    def stage(self, name: str) -> None:
        """Start of a stage: "starting 4 nodes"."""

    def update(self, fraction: float, detail: str = "") -> None:
        """Progress of the current stage, ``fraction`` from 0 to 1."""


@runtime_checkable
class StepListener(Protocol):
    """A listener that distinguishes stages from single steps, not all of which a log needs to name."""

    def step(self, name: str) -> None:
        """Start of one of many steps."""

    def tell(self, text: str) -> None:
        """The result of the steps so far."""


def begin_step(progress: Progress, name: str) -> None:
    """Report the start of one of many steps; for most listeners it is a stage like any other."""
    if isinstance(progress, StepListener):
        progress.step(name)
    else:
        progress.stage(name)


def tell(progress: Progress, text: str) -> None:
    """Report the result of steps to listeners that support it."""
    if isinstance(progress, StepListener):
        progress.tell(text)


class Silent:
    """A listener that ignores everything."""

    def stage(self, name: str) -> None:
        """Ignore the stage."""

    def update(self, fraction: float, detail: str = "") -> None:
        """Ignore the update."""


@dataclass(frozen=True)
class LiveFigures:
    """Current figures of a load and of the nodes under it; None and missing entries: not known.

    Attributes:
        offered: transactions or requests that are due by now.
        sent, accepted, failed: their counts so far.
        in_flight: sent, and not answered yet.
        schedule_lag_s: time that the load would need for what is due and not sent yet.
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
    """A listener that may request figures during the work, whenever it chooses: it costs nothing otherwise."""

    def live(self, source: LiveSource) -> AbstractContextManager[None]:
        """Make figures available from ``source``, from any thread, for the lifetime of the context."""


def live_figures(progress: Progress, source: LiveSource) -> AbstractContextManager[None]:
    """Offer figures to a listener that supports them."""
    return progress.live(source) if isinstance(progress, LiveListener) else nullcontext()
