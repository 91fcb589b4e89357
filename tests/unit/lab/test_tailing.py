"""A log that grows, is rotated and truncated while it is read: every line is read exactly once, and none is split."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainmark.core.errors import UsageError
from chainmark.lab.tailing import FileTail


def complete_lines(tail: FileTail) -> list[bytes]:
    return b"".join(tail.read()).splitlines()


def test_a_line_is_returned_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "relay.log"
    path.write_bytes(b"one\ntw")
    with FileTail(path) as tail:
        assert complete_lines(tail) == [b"one"]
        with path.open("ab") as file:
            file.write(b"o\nthree")
        assert complete_lines(tail) == [b"two"]
        assert b"".join(tail.rest()) == b"three\n"
        assert complete_lines(tail) == []


def test_a_renamed_file_is_read_to_its_end_before_its_successor(tmp_path: Path) -> None:
    path = tmp_path / "relay.log"
    path.write_bytes(b"one\n")
    with FileTail(path) as tail:
        assert complete_lines(tail) == [b"one"]
        path.rename(tmp_path / "relay.log.1")
        with (tmp_path / "relay.log.1").open("ab") as file:
            file.write(b"two\ncut of")
        assert complete_lines(tail) == [b"two"]  # the new file does not exist yet
        path.write_bytes(b"three\n")
        assert complete_lines(tail) == [b"cut of", b"three"]


def test_a_truncated_file_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "relay.log"
    path.write_bytes(b"one\ntwo\n")
    with FileTail(path) as tail:
        assert complete_lines(tail) == [b"one", b"two"]
        path.write_bytes(b"3\n")
        assert complete_lines(tail) == [b"3"]


def test_an_endless_line_is_not_buffered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chainmark.lab.tailing.LONGEST_LINE", 10)
    path = tmp_path / "relay.log"
    path.write_bytes(b"x" * 25)
    with FileTail(path) as tail:
        assert sum(map(len, complete_lines(tail))) == 25
        assert list(tail.rest()) == []


@pytest.mark.parametrize("name", ["missing.log", "relay.log.gz"])
def test_a_file_that_cannot_grow_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "relay.log.gz").write_bytes(b"")
    with pytest.raises(UsageError):
        FileTail(tmp_path / name)
