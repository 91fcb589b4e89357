"""Read a growing log to its end and continue from there, across any rotation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.storage import storage_errors

CHUNK_BYTES = 1 << 20
# No node writes a longer line; its pieces count as lines.
LONGEST_LINE = 16 << 20


class FileTail:
    """The complete lines of a file, as they are written.

    A renamed file is read to its end before the one that replaces it; a truncated one is read from its start.
    """

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            UsageError: there is no such file, or it is not a regular file.
            EnvironmentFailure: it cannot be read.
        """
        if not path.is_file():
            raise UsageError(f"`{path}` is not a log file that can be followed", "give the file that the node writes")
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
        """The text written since the last call, in pieces of complete lines."""
        yield from self._to_end()
        while self._has_gone():
            yield from self._to_end()  # written between the last read and the renaming
            yield from self.rest()
            self._file.close()
            self._file = self._open()
            yield from self._to_end()

    def rest(self) -> Iterator[bytes]:
        """A last line without a line break."""
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
        """Whether another file has the name now; in between there may be none."""
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return False
