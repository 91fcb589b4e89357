"""One host's logs, or a range of one, decoded on the machine that has them, several at a time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from chainmark._native import RangeDecoder, TraceDecoder
from chainmark.core import units
from chainmark.core.errors import ChainmarkError, EnvironmentFailure, UsageError
from chainmark.core.parts import map_parts
from chainmark.core.progress import Progress
from chainmark.core.storage import storage_errors
from chainmark.store.contents import FileContent
from chainmark.store.objects import StoredFile

NativeDecoder = TraceDecoder | RangeDecoder
Account = TypeVar("Account")


@dataclass(frozen=True)
class HostPart:
    """One host: the decoder's request as JSON, the amount to read, and the machines that can read it.

    Attributes:
        stored: where the files of the request are, if they must be copied first.
        copies: the folder that their paths in the request are below.
        contents: what the files of the request must contain, if they are on other machines.
    """

    host: str
    order: str
    stored_bytes: int
    at: tuple[str, ...] = ()
    stored: tuple[StoredFile, ...] = ()
    copies: str = ""
    contents: tuple[FileContent, ...] = ()


class HostReader:
    """Decodes one host's logs, after copying them to this machine if they are in an object store.

    Raises:
        UsageError: the request is invalid.
    """

    def __init__(self, part: HostPart) -> None:
        self._part = part
        self._is_cancelled = False
        self._decoder = None if part.stored else self._made(part.order)

    def read(self) -> str | None:
        """The host's accounting as JSON, once its tables are written; None if it was stopped.

        Raises:
            UsageError: the request is invalid.
            EnvironmentFailure: its files cannot be read, or its tables cannot be written.
        """
        if self._decoder is not None:
            return self._run(self._decoder, self._part.order)
        with TemporaryDirectory(prefix="chainmark-") as folder:
            order = json.dumps(self._of_copies(json.loads(self._part.order), Path(folder)))
            decoder = self._decoder = self._made(order)
            if self._is_cancelled:
                return None
            account = self._run(decoder, order)
            # The accounting names the files as the request did.
            return None if account is None else account.replace(folder, self._part.copies)

    def _made_natively(self, order: str) -> NativeDecoder:
        return TraceDecoder(order)

    def _made(self, order: str) -> NativeDecoder:
        try:
            return self._made_natively(order)
        except ValueError as error:
            raise UsageError.from_native(error) from error

    def _of_copies(self, order: dict[str, Any], folder: Path) -> dict[str, Any]:
        return {**order, "files": [self._copied(file, folder) for file in self._part.stored]}

    def _copied(self, file: StoredFile, folder: Path, begin: int = 0, end: int | None = None) -> str:
        target = folder / file.name
        with storage_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        file.copy(target, lambda: self._is_cancelled, begin, end)
        return str(target)

    def cancel(self) -> None:
        """Stop soon; `read` then returns None."""
        self._is_cancelled = True
        if self._decoder is not None:
            self._decoder.cancel()

    def progress(self) -> tuple[int, int]:
        """The number of stored bytes and of lines that are decoded."""
        return (0, 0) if self._decoder is None else self._decoder.progress()

    def _run(self, decoder: NativeDecoder, order: str) -> str | None:
        try:
            return decoder.run()
        except ValueError as error:
            raise UsageError.from_native(error) from error
        except OSError as error:
            path = str(error.filename)
            asked = json.loads(order)
            if path in asked.get("files", [asked.get("path")]):
                raise EnvironmentFailure(
                    f"the log {path} cannot be read: {error.strerror}",
                    f"`--exclude {self._part.host}` leaves the host out",
                ) from error
            with storage_errors(Path(path)):
                raise


@dataclass(frozen=True)
class RangePart(HostPart):
    """A range of one of the host's logs, or a whole one; its request is that of `RangeDecoder`."""


class RangeReader(HostReader):
    """Looks through a range of a log, after copying it to this machine if it is in an object store."""

    def _made_natively(self, order: str) -> NativeDecoder:
        return RangeDecoder(order)

    def _of_copies(self, order: dict[str, Any], folder: Path) -> dict[str, Any]:
        bounds = order["range"] or {"start": 0, "end": None}
        return {**order, "path": self._copied(self._part.stored[0], folder, bounds["start"], bounds["end"])}


# The number of stored bytes and of lines that each decoder has read.
Reports = Sequence[tuple[int, int]]


def shown(parts: Sequence[HostPart], progress: Progress) -> Callable[[Reports], None]:
    """Shows the progress of reading the parts."""
    total_bytes = max(sum(part.stored_bytes for part in parts), 1)
    begun = time.monotonic()

    def show(reports: Reports) -> None:
        done = sum(stored for stored, _ in reports)
        rate = done / max(time.monotonic() - begun, 1e-3)
        lines = sum(count for _, count in reports) / 1e6
        text = f"{units.byte_size(done)}, {units.number(lines, 1)} M lines, {units.byte_size(round(rate))}/s"
        progress.update(done / total_bytes, text)

    return show


def stage_of(doing: str, parts: Sequence[HostPart]) -> str:
    """The name of a stage that works on the hosts."""
    return f"{doing} {len(parts)} hosts" if len(parts) > 1 else f"{doing} {parts[0].host}"


class Decoders:
    """The running decoders on this machine: their progress, and a way to stop them."""

    def __init__(self, show: Callable[[Reports], None]) -> None:
        self._show = show
        self._made: list[HostReader] = []
        self._lock = threading.Lock()
        self._is_cancelled = False

    def decode(self, part: HostPart) -> str | None:
        """See `HostReader.read`."""
        return self._begin(part).read()

    def count(self, part: HostPart) -> str | ChainmarkError | None:
        """The same of a host whose logs need not be readable."""
        try:
            return self.decode(part)
        except (UsageError, EnvironmentFailure) as error:
            return error

    def _begin(self, part: HostPart) -> HostReader:
        reader = HostReader(part)
        with self._lock:
            self._made.append(reader)
            if self._is_cancelled:
                reader.cancel()
        return reader

    def watch(self) -> None:
        """Show their progress."""
        with self._lock:
            reports = [reader.progress() for reader in self._made]
        self._show(reports)

    def cancel(self) -> None:
        """Stop all of them, and those that begin later."""
        with self._lock:
            self._is_cancelled = True
            for reader in self._made:
                reader.cancel()


def read_here(parts: Sequence[HostPart], threads: int, progress: Progress) -> list[str | None]:
    """The accounting of hosts that this machine reads, ``threads`` at the same time; see `HostReader.read`."""
    decoders = Decoders(shown(parts, progress))
    return _map(decoders.decode, parts, decoders, threads)


def count_here(parts: Sequence[HostPart], threads: int, progress: Progress) -> list[str | ChainmarkError | None]:
    """The same of hosts whose logs need not be readable: the reason is the result."""
    decoders = Decoders(shown(parts, progress))
    return _map(decoders.count, parts, decoders, threads)


def _map(
    decode_one: Callable[[HostPart], Account], parts: Sequence[HostPart], decoders: Decoders, threads: int
) -> list[Account]:
    with ThreadPoolExecutor(threads, thread_name_prefix="decoder") as executor:
        return map_parts(
            decode_one,
            parts,
            executor,
            weight=lambda part: part.stored_bytes,
            watch=decoders.watch,
            cancel=decoders.cancel,
        )
