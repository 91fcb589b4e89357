"""Lines of log files by number, in their original form: the files may be plain or compressed by now."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import zlib
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, cast

from chainmark.core.compressed import DamagedFileError, open_zstd
from chainmark.core.storage import storage_errors
from chainmark.store.wrapped_lines import unwrapped

# Number of pieces of one line, and their length: journald and docker split lines into short ones.
_PIECES, _PIECE_BYTES = 256, 1 << 18
_GZIP, _ZSTD, _XZ = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zX"
_PACKED = ("", ".gz", ".zst", ".xz")
# Errors when reading a damaged compressed log.
DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, DamagedFileError)


def find_log(folder: Path, name: str) -> Path | None:
    """The file of that name below a folder, also if compressed or decompressed meanwhile; None if there is none."""
    root = folder.resolve()
    bare = next((name.removesuffix(suffix) for suffix in _PACKED[1:] if name.endswith(suffix)), name)
    for candidate in dict.fromkeys([name, *(bare + suffix for suffix in _PACKED)]):
        path = (root / candidate).resolve()
        if path.is_relative_to(root) and path.is_file():  # a run may come from elsewhere, and so may its paths
            return path
    return None


def read_lines(path: Path, numbers: Iterable[int]) -> dict[int, str]:
    """The lines with those numbers, from 1, without their ends; numbers beyond the file are omitted.

    For a line that journald or docker wrapped, the original text; if they split it, the number is that of its last
    piece. Characters that a terminal could interpret are made visible. Damage ends a file, as in the import.
    """
    remaining = set(numbers)
    results: dict[int, str] = {}
    last = max(remaining, default=0)
    before: deque[bytes] = deque(maxlen=_PIECES)
    with storage_errors(path), path.open("rb") as raw, contextlib.suppress(*DAMAGE):
        for number, line in enumerate(unpacked(raw, path), start=1):
            if number in remaining:
                results[number] = _visible(unwrapped(line.rstrip(b"\r\n"), before).decode("utf-8", errors="replace"))
            if len(line) <= _PIECE_BYTES:
                before.append(line)
            if number >= last:
                break
    return results


def unpacked(raw: io.BufferedReader, path: Path) -> BinaryIO:
    """The text of an opened log; reading it may raise :data:`DAMAGE`."""
    start = raw.peek(4)[:4]
    if start.startswith(_GZIP):
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if start == _ZSTD:
        return open_zstd(path)
    if start == _XZ:
        return cast(BinaryIO, lzma.LZMAFile(raw))
    return raw


def _visible(text: str) -> str:
    return "".join(letter if letter.isprintable() or letter == "\t" else ascii(letter)[1:-1] for letter in text)
