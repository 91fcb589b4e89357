"""A log that still grows, read to its end and on from there, whatever rotates it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.storage import storage_errors

CHUNK_BYTES = 1 << 20
# A longer line is none of a node's; its pieces count as lines.
LONGEST_LINE = 16 << 20


class FileTail:
    """The whole lines of a file, as they are written.

    A file that was renamed is read to its end before the one in its place; one that was cut is read from its start.
    """

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            UsageError: there is no such file, or it is none that grows by lines.
            EnvironmentFailure: it cannot be read.
        """
        if not path.is_file():
            raise UsageError(
                f"`{path}` is not a log file that can be followed", "give the one file that the node writes"
            )
        if path.suffix in {".gz", ".zst", ".xz", ".bz2"}:
            raise UsageError(f"`{path}` is compressed and cannot be followed", "import it without `--follow`")
        self._path = path
        self._file = self._open()
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def _open(self) -> BinaryIO:
        try:
            return self._path.open("rb", buffering=0)
        except OSError as error:
            raise EnvironmentFailure(f"{self._path} cannot be read: {error.strerror}", "make it readable") from error

    def read(self) -> Iterator[bytes]:
        """What was written since the last time, in pieces of whole lines."""
        yield from self._to_end()
        while self._has_gone():
            yield from self._to_end()  # what was written between the last reading and the renaming
            yield from self.rest()
            self._file.close()
            self._file = self._open()
            yield from self._to_end()

    def rest(self) -> Iterator[bytes]:
        """A last line without an end."""
        rest, self._rest = self._rest, b""
        if rest:
            yield rest + b"\n"

    def _to_end(self) -> Iterator[bytes]:
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            yield from self.rest()
            self._file.seek(0)
        with storage_errors(self._path):
            while chunk := self._file.read(CHUNK_BYTES):
                whole, newline, rest = chunk.rpartition(b"\n")
                if newline:
                    whole, self._rest = self._rest + whole + newline, rest
                    yield whole
                else:
                    self._rest += chunk
                if len(self._rest) > LONGEST_LINE:
                    yield from self.rest()

    def _has_gone(self) -> bool:
        """Whether another file has the name now; between the two there may be none."""
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return False
