"""Lines of logs without the wrappers of journald and docker, and joined if these split them into pieces."""

from __future__ import annotations

import json
from collections.abc import Reversible
from dataclasses import dataclass
from typing import Any

# Docker splits lines into pieces of this many bytes; only the last piece ends in a newline.
_DOCKER_PIECE = 16_384


@dataclass(frozen=True)
class _Piece:
    """The content of one line.

    Attributes:
        stream: distinguishes the pieces of one line from those of another.
        goes_on: whether the next piece of that stream belongs to the same line.
    """

    text: bytes
    stream: object
    goes_on: bool


def unwrapped(line: bytes, before: Reversible[bytes]) -> bytes:
    """The line inside ``line``; ``line`` itself if it is not wrapped.

    Args:
        line: without its end.
        before: previous lines, which include its first pieces if it was split.
    """
    last = _piece(line)
    if last is None:
        return line
    pieces = [last.text]
    for earlier in reversed(before):
        piece = _piece(earlier)
        if piece is None or piece.stream != last.stream:
            continue
        if not piece.goes_on:
            break
        pieces.append(piece.text)
    return b"".join(reversed(pieces)).rstrip(b"\r\n")


def _piece(line: bytes) -> _Piece | None:
    if not line.startswith(b"{"):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if "MESSAGE" in record:
        text = _text(record["MESSAGE"])
        stream = record.get("_STREAM_ID", record.get("_PID"))
        return None if text is None else _Piece(text, stream, record.get("_LINE_BREAK") == "line-max")
    if "log" in record and "stream" in record:
        text = _text(record["log"])
        continues = text is not None and len(text) >= _DOCKER_PIECE and not text.endswith(b"\n")
        return None if text is None else _Piece(text, record["stream"], continues)
    return None


def _text(value: Any) -> bytes | None:
    """The text; journald writes text with other bytes as an array of bytes."""
    if isinstance(value, str):
        return value.encode("utf-8", errors="replace")
    try:
        return bytes(value) if isinstance(value, list) else None
    except (TypeError, ValueError):
        return None
