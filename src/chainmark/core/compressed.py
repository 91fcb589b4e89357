"""Reading files that zstd compressed, piece by piece; `_native.ZstdWriter` writes them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from chainmark._native import ZstdReader

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PIECE_BYTES = 1 << 17  # zstd's output size per step


class DamagedFileError(Exception):
    """A compressed file is damaged."""


class _Content(io.RawIOBase):
    """The content of a compressed file, as a stream of the standard library."""

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
    """Open a compressed file for reading its content, frame after frame; a truncated file ends at the truncation.

    Raises:
        OSError: it cannot be opened; reading raises it, too.
        DamagedFileError: while reading: the content is damaged.
    """
    return io.BufferedReader(_Content(path), _PIECE_BYTES)
