"""The content of a file by a sample."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from chainmark.store.contents import FileContent

KIB = 1 << 10


@given(content=st.binary(min_size=1, max_size=300), place=st.integers(0), appended=st.binary(max_size=20))
def test_every_change_of_a_short_file_is_noticed_and_what_is_appended_ignored(
    content: bytes, place: int, appended: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(content)
        listed = FileContent.of(path, len(content))
        path.write_bytes(content + appended)
        assert listed.is_unchanged()
        changed = bytearray(content)
        changed[place % len(content)] ^= 1
        path.write_bytes(changed)
        assert not listed.is_unchanged()
        path.write_bytes(content[:-1])
        assert not listed.is_unchanged()


def test_all_of_a_file_of_64_kib_is_in_the_sample(tmp_path: Path) -> None:
    path, content = tmp_path / "log", bytes(64 * KIB)
    path.write_bytes(content)
    listed = FileContent.of(path, len(content))
    for place in range(0, len(content), 97):
        path.write_bytes(content[:place] + b"x" + content[place + 1 :])
        assert not listed.is_unchanged()


def test_both_ends_of_a_long_file_are_in_the_sample_and_the_blocks_are_spread(tmp_path: Path) -> None:
    path, length = tmp_path / "log", 16_000 * KIB
    path.write_bytes(bytes(length))
    listed = FileContent.of(path, length)
    for place in (0, length - 1, *range(length // 15, length, length // 15)):
        with path.open("r+b") as file:
            file.seek(place - place % KIB)
            file.write(b"x" * KIB)
            file.flush()
            assert not listed.is_unchanged()
            file.seek(place - place % KIB)
            file.write(bytes(KIB))
    assert listed.is_unchanged()
