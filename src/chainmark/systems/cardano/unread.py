"""Report what looks like a log in a folder of logs and was not read, with the reason."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from chainmark._native import scan_head
from chainmark.systems.cardano.accounting import read_head

# A host's folder in a benchmark run.
HOST_FOLDER = re.compile(r"node-.+")
# File names of possible logs.
LOG_LIKE = re.compile(r"(stdout.*|.*\.(log|jsonl?|ndjson|txt|out)\b.*)")
_ARCHIVE = re.compile(r".*\.(tar|tar\.\w+|tgz|tbz2?|txz|tzst|zip|7z|rar)", re.IGNORECASE)
# Maximum depth below the imported folder; a node's database is deeper, or contains no text.
_DEPTH = 3
_PEEKED = 64 << 10
_PEEKED_OF_OTHERS = 4 << 10
_PEEKED_LINES = 400
# A trace message, also inside a journald or docker envelope.
_AT, _NAMESPACE = re.compile(rb'\\?"at\\?"\s*:'), re.compile(rb'\\?"ns\\?"\s*:')
_READ_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zX")
_OTHER_FORMS = (
    (b"PK\x03\x04", "a zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a rar archive"),
    (b"BZh", "compressed with bzip2"),
    (b"\x04\x22\x4d\x18", "compressed with lz4"),
    (b"LZIP", "compressed with lzip"),
    (b"\x5d\x00\x00", "compressed with lzma"),
    (b"\x1f\x9d", "compressed with compress"),
    (b"\x00\x05\x16\x07", "a metadata file of macOS"),
    (b"LPKSHHRH", "a systemd journal: convert it with `journalctl --file=… -o json --all`"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"{\x00", "UTF-16 text"),
    (b"\x00{", "UTF-16 text"),
)
_TAR, _TAR_AT = b"ustar", 257
ARCHIVE = "an archive"
NO_TEXT = "its name is not UTF-8"
NO_HOST = "not in a host's folder"
TOO_DEEP = "in a folder inside a host's folder"
NO_LOG_NAME = "not named like a log"
BELOW = "in a folder next to the logs"
FORBIDDEN = "not readable"
DANGLING = "a broken link"


@dataclass(frozen=True)
class Unread:
    """A file that looks like a log and was not read; ``name`` is its path below the imported folder."""

    name: str
    reason: str


def readable_name(path: Path | str) -> str:
    """A path as text on one line, also if its bytes are not valid text."""
    name = os.fsencode(path).decode("utf-8", errors="backslashreplace")
    return "".join(item if item.isprintable() else item.encode("unicode_escape").decode() for item in name)


def refusal(path: Path) -> str | None:
    """Why something that is named like a log cannot be read as one; None if it can. Pipes are never opened.

    Raises:
        PermissionError: it cannot be read.
    """
    if (other := _no_file(path)) is not None:
        return other
    if not _is_utf8(path):
        return NO_TEXT
    if _ARCHIVE.fullmatch(path.name):
        return ARCHIVE
    try:
        with path.open("rb") as file:
            start = file.read(_TAR_AT + len(_TAR))
    except PermissionError:
        raise
    except OSError:
        return None  # its reader will report the error
    if start[_TAR_AT:] == _TAR:
        return ARCHIVE
    return next((form for magic, form in _OTHER_FORMS if start.startswith(magic)), None)


def _no_file(path: Path) -> str | None:
    """The kind of a path that is not a regular file; None if it is one."""
    try:
        mode = path.stat().st_mode
    except PermissionError:
        raise
    except OSError:
        return DANGLING
    kinds = ((stat.S_ISREG, None), (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    return next((kind for is_one, kind in kinds if is_one(mode)), "a device")


def _is_utf8(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def find_unread(folder: Path, hosts: Collection[Path], read: Collection[str]) -> list[Unread]:
    """Everything down to three folders below that looks like a log and was not read, sorted by name.

    Args:
        folder: the imported folder.
        hosts: the folders of hosts; none if logs are side by side.
        read: the real paths of the read files.
    """
    unreads = []
    for path in _walk(folder, _DEPTH, {os.path.realpath(folder)}):
        if os.path.realpath(path) in read:
            continue
        try:
            reason = _reason(path, folder, hosts)
        except PermissionError:
            reason = FORBIDDEN if LOG_LIKE.fullmatch(path.name) else None
        if reason is not None:
            unreads.append(Unread(readable_name(path.relative_to(folder)), reason))
    return unreads


def _walk(folder: Path, depth: int, seen: set[str]) -> Iterator[Path]:
    """Everything that is not a folder, sorted by name; a folder in a cycle of links is entered once."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for path in entries:
        try:
            is_folder = path.is_dir()
        except OSError:
            continue
        if not is_folder:
            yield path
        elif depth and (real := os.path.realpath(path)) not in seen:
            seen.add(real)
            yield from _walk(path, depth - 1, seen)


def _reason(path: Path, folder: Path, hosts: Collection[Path]) -> str | None:
    """Why a file was not read; None if it does not look like a log."""
    is_log_like = LOG_LIKE.fullmatch(path.name) is not None
    is_host = HOST_FOLDER.fullmatch(path.name) is not None and path.parent == folder
    if is_host and _no_file(path) == DANGLING:
        return DANGLING
    if is_log_like or _ARCHIVE.fullmatch(path.name):
        refused = refusal(path)
        if refused is not None:
            return refused
    if _no_file(path) is not None or not holds_messages(path, _PEEKED if is_log_like else _PEEKED_OF_OTHERS):
        return None
    return _place(path, folder, hosts) if _is_utf8(path) else NO_TEXT


def _place(path: Path, folder: Path, hosts: Collection[Path]) -> str:
    """Why a log does not belong to a host."""
    if path.parent in (hosts or [folder]):
        return NO_LOG_NAME
    if not hosts:
        return BELOW
    return TOO_DEEP if any(host in path.parents for host in hosts) else NO_HOST


def holds_messages(path: Path, size_bytes: int = _PEEKED) -> bool:
    """Whether a file's beginning contains a trace message; a compressed file is decompressed that far.

    Raises:
        PermissionError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            start = file.read(size_bytes)
    except PermissionError:
        raise
    except OSError:
        return False
    if start.startswith(_READ_PACKED):
        return read_head(str(path), scan_head(str(path), _PEEKED_LINES)).objects > 0
    return bool(_AT.search(start) and _NAMESPACE.search(start))
