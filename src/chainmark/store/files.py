"""Files of a run: written completely or not at all, hashed, compressed; a full disk gives a message, no traceback."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import blake3

from chainmark._native import ZstdWriter
from chainmark.core.storage import storage_errors

if TYPE_CHECKING:
    from pydantic import BaseModel

CHUNK_BYTES = 1 << 20


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees either all of it or none: to a temporary file, synced, then renamed."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(path.name + ".part")
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def json_bytes(content: BaseModel | dict[str, Any] | list[Any]) -> bytes:
    """Canonical JSON: sorted keys, two spaces, no NaN, a newline at the end; equal content gives equal bytes."""
    plain = content if isinstance(content, dict | list) else content.model_dump(mode="json")
    return (_indented(plain, "\n") + "\n").encode()


def _indented(value: Any, line: str) -> str:
    """The output of `json.dumps` with an indent, which runs in Python: here parts without nested lists are left to C.

    Args:
        value: plain data.
        line: the indentation of its line.
    """
    inner = f"{line}  "
    kinds = set(map(type, value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()))
    if not kinds & {dict, list}:
        text = _encoder(inner).encode(value)
        return f"{text[0]}{inner}{text[1:-1]}{line}{text[-1]}" if kinds else text
    if isinstance(value, dict):
        parts = [f"{_encoder(inner).encode(name)}: {_indented(value[name], inner)}" for name in sorted(value)]
        return f"{{{inner}{f',{inner}'.join(parts)}{line}}}"
    return f"[{inner}{f',{inner}'.join(_indented(item, inner) for item in value)}{line}]"


@cache
def _encoder(line: str) -> json.JSONEncoder:
    return json.JSONEncoder(separators=(f",{line}", ": "), sort_keys=True, ensure_ascii=False, allow_nan=False)


def hash_file(path: Path) -> str:
    """BLAKE3 of a file's content, in hexadecimal."""
    hasher = blake3.blake3()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            hasher.update(chunk)
    return hasher.hexdigest()


def compress_file(source: Path, target: Path) -> None:
    """Compress a file with zstd (level 3) to ``target``; the source stays."""
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with source.open("rb") as reader, ZstdWriter(target) as writer:
            while chunk := reader.read(CHUNK_BYTES):
                writer.write(chunk)
