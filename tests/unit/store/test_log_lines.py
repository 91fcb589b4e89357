"""Log lines by their numbers: the logged text is shown, even if the log was compressed and wrapped since."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import zstandard

from chainmark.store.log_lines import read_lines

LONG = '{"block":"abc","note":"' + "x" * 40_000 + '"}'


def _docker(text: str, stream: str = "stdout") -> str:
    return json.dumps({"log": text, "stream": stream, "time": "2026-02-05T19:00:00Z"})


def _journal(message: object, stream: str = "a", **more: str) -> str:
    return json.dumps({"__CURSOR": "s=1", "_STREAM_ID": stream, "MESSAGE": message, **more})


def _write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_wrapped_lines_show_the_logged_text(tmp_path: Path) -> None:
    """Otherwise a block in journald's byte arrays would not be found, and the file would be reported as changed."""
    line = '{"block":"ä"}'
    path = _write(tmp_path / "log", _docker(f"{line}\n"), _journal(line), _journal(list(line.encode())), line)
    assert read_lines(path, range(1, 5)) == dict.fromkeys(range(1, 5), line)
    others = (_journal(None), _journal(["x"]), "[1]", '{"log":1}', "{")
    assert read_lines(_write(path, *others), range(1, 6)) == dict(enumerate(others, start=1))


def test_split_lines_are_shown_in_full(tmp_path: Path) -> None:
    """The number refers only to the last piece, which rarely mentions the block."""
    pieces = [LONG[:16_384], LONG[16_384:32_768], LONG[32_768:] + "\n"]
    docker = [_docker("before\n"), _docker(pieces[0]), _docker("other\n", "stderr"), *map(_docker, pieces[1:])]
    assert read_lines(_write(tmp_path / "docker", *docker), [3, 5]) == {3: "other", 5: LONG}
    more = {"_LINE_BREAK": "line-max"}
    journal = [
        _journal("before"),
        _journal(LONG[:9_000], **more),
        _journal("of another unit", "b", **more),
        _journal(LONG[9_000:20_000], **more),
        _journal(LONG[20_000:]),
    ]
    assert read_lines(_write(tmp_path / "journal", *journal), [1, 5]) == {1: "before", 5: LONG}


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_lines_before_the_damage_of_a_file_are_read(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    text = "".join(f"{number} {number**7 % 1_000_003 if number > 100 else ''}\n" for number in range(1, 50_000))
    path = tmp_path / "log"
    packed = pack(text.encode())
    path.write_bytes(packed[: len(packed) // 2])
    assert read_lines(path, [3, 49_999]) == {3: "3 "}
    path.write_bytes(packed)
    assert set(read_lines(path, [3, 49_999])) == {3, 49_999}
