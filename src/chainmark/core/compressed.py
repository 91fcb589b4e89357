"""Files that zstd compressed, read piece by piece; `_native.ZstdWriter` writes them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from chainmark._native import ZstdReader

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PIECE_BYTES = 1 << 17  # what zstd makes at once


class DamagedFileError(Exception):
    """A compressed file does not hold what zstd wrote."""


class _Content(io.RawIOBase):
    """What a compressed file holds, as the standard library reads."""

    def __init__(self, path: Path) -> None:
        self._reader: ZstdReader | None = ZstdReader(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if self._reader is None:
            raise ValueError("the file is closed")
        space = memoryview(buffer).cast("B")
        try:
            piece = self._reader.read(len(space))
        except ValueError as error:
            raise DamagedFileError(str(error)) from error
        space[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._reader = None
        super().close()


def open_zstd(path: Path) -> io.BufferedReader:
    """A compressed file to be read as it was before, frame after frame; a file that was cut off ends there.

    Raises:
        OSError: it cannot be opened; reading raises it, too.
        DamagedFileError: while reading: it holds something else.
    """
    return io.BufferedReader(_Content(path), _PIECE_BYTES)
