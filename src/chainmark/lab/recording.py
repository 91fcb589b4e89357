"""Progress of one run, forwarded to the listener, and published in the run's folder meanwhile."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Self

from chainmark.core.progress import LiveSource, Progress, begin_step, live_figures, tell
from chainmark.core.times import utc_now
from chainmark.store.live import LivePoint, LiveState, LiveStretch, remove_live, write_live

EVERY_S = 2.0
_MOST_POINTS = 300
_STRETCHES = 60
_MOST_LOOKS = 6000  # maximum number of readings; of a longer load fewer are kept


class _Course:
    """The readings of a load since its begin, thinned out if there are very many, in periods of equal length."""

    def __init__(self) -> None:
        self._looks: list[LiveStretch] = []
        self._seen, self._each = 0, 1

    def add(self, look: LiveStretch) -> None:
        """Add a reading; those during warm-up are ignored."""
        if look.p50_s is None and not self._looks:
            return
        if self._seen % self._each == 0:
            self._looks.append(look)
        self._seen += 1
        if len(self._looks) > _MOST_LOOKS:
            self._looks, self._each = self._looks[::2], 2 * self._each

    def stretches(self) -> list[LiveStretch]:
        """At most this number of periods, each complete: readings of an incomplete one are omitted."""
        size = -(-len(self._looks) // _STRETCHES) or 1
        whole = len(self._looks) - len(self._looks) % size
        return [_middle(self._looks[begin : begin + size]) for begin in range(0, whole, size)]


def _middle(looks: Sequence[LiveStretch]) -> LiveStretch:
    def of(name: str) -> float | None:
        known = [value for look in looks if (value := getattr(look, name)) is not None]
        return median(known) if known else None

    return LiveStretch(at_s=looks[0].at_s, p50_s=of("p50_s"), p99_s=of("p99_s"), memory_bytes=of("memory_bytes"))


class RunRecorder:
    """Publishes the progress of a run while the context lasts.

    Args:
        progress: receives the messages as well.
        folder: of the run.
        every_s: interval between readings of a load's figures.
        memory: the bytes that a server uses now, if it is monitored.
    """

    def __init__(
        self,
        progress: Progress,
        folder: Path,
        every_s: float = EVERY_S,
        memory: Callable[[], float | None] | None = None,
    ) -> None:
        self._progress, self._folder, self._every_s, self._memory = progress, folder, every_s, memory
        self._state, self._written = LiveState(), 0.0
        self._points: deque[LivePoint] = deque(maxlen=_MOST_POINTS)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Progress is only for live viewers; none of it is stored."""
        with self._lock:
            self._written = float("inf")
            remove_live(self._folder)

    def stage(self, name: str) -> None:
        """A new stage begins."""
        self._progress.stage(name)
        self._show(at_once=True, stage=name, fraction=0.0, detail="")

    def step(self, name: str) -> None:
        """One of many steps begins."""
        begin_step(self._progress, name)
        self._show(stage=name)

    def tell(self, text: str) -> None:
        """The findings of the steps so far."""
        tell(self._progress, text)

    def say(self, text: str) -> None:
        """A message that a reader must see now."""
        if (method := getattr(self._progress, "say", None)) is not None:
            method(text)

    def update(self, fraction: float, detail: str = "") -> None:
        """The stage's progress is ``fraction``."""
        self._progress.update(fraction, detail)
        self._show(fraction=fraction, detail=detail)

    @contextmanager
    def live(self, source: LiveSource) -> Iterator[None]:
        """Read figures at intervals, and forward them to the listener."""
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(source, ended), name="showing", daemon=True)
        with live_figures(self._progress, source):
            watcher.start()
            try:
                yield
            finally:
                ended.set()
                watcher.join()

    def _watch(self, source: LiveSource, ended: threading.Event) -> None:
        begun, course = time.monotonic(), _Course()
        while not ended.wait(self._every_s):
            figures, at_s = source(), round(time.monotonic() - begun, 1)
            used = self._memory() if self._memory else None
            course.add(LiveStretch(at_s=at_s, p50_s=figures.p50_s, p99_s=figures.p99_s, memory_bytes=used))
            self._points.append(LivePoint(
                at_s=at_s, offered=figures.offered, accepted=figures.accepted,
                committed=figures.committed,
            ))  # fmt: skip
            self._show(
                at_once=True, points=list(self._points), stretches=course.stretches(),
                sent=figures.sent, failed=figures.failed,
                in_flight=figures.in_flight, schedule_lag_s=figures.schedule_lag_s, heights=dict(figures.heights),
                waiting=dict(figures.waiting),
            )  # fmt: skip

    def _show(self, *, at_once: bool = False, **known: object) -> None:
        with self._lock:
            self._state = self._state.model_copy(update={**known, "updated_at": utc_now()})
            is_open = self._written != float("inf")
            if is_open and (at_once or time.monotonic() - self._written >= self._every_s):
                write_live(self._folder, self._state)
                self._written = time.monotonic()
