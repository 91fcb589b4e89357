"""Files compressed with zstd: written files can be read, also by other tools, and damage is reported."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from chainmark._native import ZstdWriter
from chainmark.core.compressed import DamagedFileError, open_zstd

TEXT = b"".join(b"%d %d\n" % (number, number**7 % 1_000_003) for number in range(50_000))
BOUNDED = """
import sys
from pathlib import Path
from chainmark._native import ZstdWriter
from chainmark.core.compressed import open_zstd

path, pieces, piece = Path(sys.argv[1]), 256, bytes(range(256)) * 4096
with ZstdWriter(path) as file:
    for _ in range(pieces):
        file.write(piece)
with open_zstd(path) as content:
    read = sum(len(part) for part in iter(lambda: content.read(1 << 16), b""))
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(read, int(peak.split()[1]) >> 10)
"""


def _write(path: Path, pieces: list[bytes]) -> None:
    with ZstdWriter(path) as file:
        for piece in pieces:
            file.write(piece)


@given(st.lists(st.binary(max_size=3000), max_size=20), st.integers(1, 5000))
def test_written_files_are_read_by_chainmark_and_by_other_tools(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], step: int
) -> None:
    path = tmp_path_factory.mktemp("zstd") / "file.zst"
    _write(path, pieces)
    with zstandard.open(path, "rb") as theirs:
        assert theirs.read() == b"".join(pieces)
    with open_zstd(path) as ours:
        assert b"".join(iter(lambda: ours.read(step), b"")) == b"".join(pieces)


def test_frames_and_windows_of_other_writers_are_read(tmp_path: Path) -> None:
    """The output of `cat a.zst b.zst` and of `zstd --long=31` are valid files."""
    path = tmp_path / "file.zst"
    long = zstandard.ZstdCompressor(compression_params=zstandard.ZstdCompressionParameters(window_log=30))
    path.write_bytes(zstandard.compress(b"one") + zstandard.compress(b"two") + long.compress(TEXT))
    with open_zstd(path) as content:
        assert content.read() == b"onetwo" + TEXT


@pytest.mark.parametrize("length", [0, 3, 1000, -1])
def test_a_truncated_file_is_read_up_to_the_cut(tmp_path: Path, length: int) -> None:
    path = tmp_path / "file.zst"
    path.write_bytes(zstandard.compress(TEXT)[:length])
    with open_zstd(path) as content:
        assert TEXT.startswith(content.read())


def test_a_damaged_file_raises_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file.zst"
    for damaged in (b"no such file", zstandard.compress(b"x") + b"junk"):
        path.write_bytes(damaged)
        with open_zstd(path) as content, pytest.raises(DamagedFileError):
            content.read()


@given(st.binary(max_size=200), st.integers(0, 5000))
def test_no_content_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int) -> None:
    whole = zstandard.compress(TEXT[:20_000])
    path = tmp_path_factory.mktemp("zstd") / "file.zst"
    path.write_bytes(whole[:place] + noise + whole[place + len(noise) :])
    with contextlib.suppress(DamagedFileError), open_zstd(path) as content:
        content.read()


def test_storage_errors_are_the_usual_exceptions(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        open_zstd(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        ZstdWriter(tmp_path / "no folder" / "file")
    full = ZstdWriter(Path("/dev/full"))
    with pytest.raises(OSError, match="No space left"):
        full.write(TEXT)


def test_writing_to_a_closed_file_is_refused(tmp_path: Path) -> None:
    file = ZstdWriter(tmp_path / "file.zst")
    file.close()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.write(b"more")


def test_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    """Logs have several GB. Writing and reading 256 MiB in pieces of 1 MiB must need less memory than the file."""
    ended = subprocess.run(
        [sys.executable, "-c", BOUNDED, str(tmp_path / "file.zst")], capture_output=True, text=True, check=True
    )
    read, peak_mib = map(int, ended.stdout.split())
    assert read == 256 << 20
    assert peak_mib < 128
