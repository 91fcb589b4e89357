"""Cache files: regenerated if they are missing, damaged, or of another layout."""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path


def read_cache(path: Path, layout: str) -> bytes | None:
    """The content of a file; None if it has another layout, or is incomplete.

    Args:
        path: of the file.
        layout: the file's content and format.
    """
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return body if head == _head(layout, body) else None


def write_cache(path: Path, layout: str, body: bytes) -> None:
    """Replace a file, unless another process is doing that; without write permission, nothing is stored."""
    part = path.with_name(f"{path.name}.part")
    try:
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino != part.stat().st_ino:
            return  # the opened file has been replaced since
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.truncate()  # leftover of a killed process
            file.write(_head(layout, body) + b"\n" + body)
        part.replace(path)
    except OSError:
        return
    finally:
        os.close(descriptor)


def _head(layout: str, body: bytes) -> bytes:
    return f"chainmark {layout} {hashlib.sha256(body).hexdigest()}".encode()
