"""A growing log as a run: followed until an interrupt or the end of the period, then imported like any other."""

from __future__ import annotations

import math
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from chainmark._native import ZstdWriter
from chainmark.api.context import Cancellation, Relay, Settings, as_settings, store_at
from chainmark.api.runs import Run
from chainmark.core import units
from chainmark.core.errors import ChainmarkError
from chainmark.core.progress import Progress
from chainmark.core.storage import storage_errors
from chainmark.core.times import nanoseconds_of_duration
from chainmark.lab.importing import Importer
from chainmark.lab.protocols import ImportRequest
from chainmark.lab.tailing import FileTail
from chainmark.report.blocks import Table
from chainmark.store.runs import Store
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import GrowingLogSystem, growing

__all__ = ["follow"]

_POLL_S = 1.0
# Memory limit for the lines about the last blocks.
_WINDOW_BYTES = 4 << 20


def follow(
    system: str,
    source: Path | str,
    *,
    lasts: str | None = None,
    show: Callable[[Table], None] | None = None,
    version: str | None = None,
    settings: Settings | None = None,
    keep_events: bool = False,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
    **options: Any,
) -> list[Run]:
    """Read a growing log: to its end, then new lines, until the period ends or Ctrl-C; then seal a run.

    The log may be rotated meanwhile: replaced by another file of its name, or truncated. The lines are stored
    compressed until the run is sealed; memory does not grow with them.

    Args:
        system: the system of the log.
        source: the growing file.
        lasts: how long to follow it, as "12h"; None: until an interrupt.
        show: receives the last blocks whenever there are new lines about some.
        version, settings, keep_events, store, progress, options: as in `ingest`.
        cancel: ends the following, as Ctrl-C does, and the run is sealed. Once the period has ended, it ends the
            import.

    Raises:
        UsageError: it is not such a file, or an input of its import is missing; the hint names the file in the store
            with the followed log.
        EnvironmentFailure: it cannot be read, or the store cannot be written.
        KeyboardInterrupt: the import was interrupted; its note names the file with the followed log.

    Example:
        >>> log = logs / "node-0" / "stdout"
        >>> genesis = logs / "genesis" / "genesis.shelley.json"
        >>> (run,) = cm.follow("cardano", log, lasts="10ms", genesis=genesis)
        >>> run.samples("received").columns[:2]
        ['block', 'host']
    """
    able = growing(load_system(system))
    order = ImportRequest(
        source=Path(source),
        version=version,
        settings=tuple(as_settings(settings)),
        options=options,
        keep_events=keep_events,
    )
    run_store = store_at(store)
    limit_s = None if lasts is None else nanoseconds_of_duration(lasts) / 1e9
    order = able.to_follow(order)
    with FileTail(order.path) as tail, storage_errors(run_store.root):
        run_store.root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="following-", dir=run_store.root) as folder:
            # A log without a name of its own is named after its folder.
            spool = Path(folder) / order.path.resolve().parent.name / f"{order.path.name}.zst"
            spool.parent.mkdir()
            try:
                with ZstdWriter(spool) as writer:
                    follower = _Follower(able, order, writer, Path(folder) / "window.log", show)
                    is_interrupted = follower.run(tail, limit_s, Relay(progress, cancel))
                # The request that ended the following does not end the import, too.
                listener = Relay(progress, None if is_interrupted else cancel)
                imports = Importer(run_store, able).make_all(replace(order, source=spool), listener)
            except BaseException as error:
                hint = f"the followed log is not lost: import it with `chainmark ingest {system} {_saved(spool)}`"
                if isinstance(error, ChainmarkError):
                    error.hint = hint if error.hint is None else f"{error.hint}; {hint}"
                else:
                    error.add_note(hint)
                raise
    return [Run(run.run, is_new=run.is_new) for run in imports]


def _saved(spool: Path) -> Path:
    """The location of the followed log after a failure, because the log cannot be followed again."""
    folder = Path(tempfile.mkdtemp(prefix="followed-", dir=spool.parent.parent.parent)) / spool.parent.name
    shutil.move(spool.parent, folder)
    return folder / spool.name


class _Follower:
    """Stores the lines of a log, and shows the content of the last ones."""

    def __init__(
        self,
        system: GrowingLogSystem,
        order: ImportRequest,
        writer: ZstdWriter,
        window: Path,
        show: Callable[[Table], None] | None,
    ) -> None:
        self._system, self._order, self._writer, self._show = system, order, writer, show
        self._window = window
        self._lines: deque[bytes] = deque()
        self._bytes = self._read_bytes = 0

    def run(self, tail: FileTail, limit_s: float | None, progress: Progress) -> bool:
        """Follow the log until the end of the period or an interrupt, which ends the following but not the reading.

        Args:
            tail: the log.
            limit_s: the period; None: until an interrupt.
            progress: receives the amount read so far; it may raise an interrupt.

        Returns:
            Whether it was interrupted.
        """
        stop, start_s = threading.Event(), time.monotonic()
        is_interrupted = False
        # Another thread reads, because an interrupt is raised in this one: no line may be lost between two steps.
        with ThreadPoolExecutor(1, thread_name_prefix="follower") as executor:
            reading = executor.submit(self._follow, tail, stop, limit_s)
            try:
                progress.stage(f"following {self._order.path.name}")
                # Repeated waits: polars restarts interrupted waits, so that an endless one would not receive the
                # interrupt.
                while not reading.done():
                    wait([reading], timeout=_POLL_S)
                    share = 0.0 if limit_s is None else min(1.0, (time.monotonic() - start_s) / limit_s)
                    progress.update(share, f"{units.byte_size(self._read_bytes)} read")
            except KeyboardInterrupt:
                is_interrupted = True
            finally:
                stop.set()
            reading.result()
        return is_interrupted

    def _follow(self, tail: FileTail, stop: threading.Event, limit_s: float | None) -> None:
        end_s = math.inf if limit_s is None else time.monotonic() + limit_s
        while not stop.is_set() and time.monotonic() < end_s:
            self._take(tail.read())
            stop.wait(min(_POLL_S, max(0.0, end_s - time.monotonic())))
        self._take(chain(tail.read(), tail.rest()))

    def _take(self, pieces: Iterable[bytes]) -> None:
        is_new = False
        for piece in pieces:
            self._writer.write(piece)
            self._read_bytes += len(piece)
            is_new = self._remember(piece) or is_new
        if is_new and self._show is not None:
            self._window.write_bytes(b"".join(self._lines))
            self._show(self._system.recent(self._order, self._window))

    def _remember(self, piece: bytes) -> bool:
        """Keep the last lines that contain a mark; whether there are new ones."""
        marked = [line for line in piece.splitlines(keepends=True) if any(mark in line for mark in self._system.marks)]
        self._lines.extend(marked)
        self._bytes += sum(map(len, marked))
        while self._bytes > _WINDOW_BYTES:
            self._bytes -= len(self._lines.popleft())
        return bool(marked)
