"""Processor time of processes without pprof pages, measured by Linux's `perf`."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import psutil
import pytest

from chainmark.core.errors import EnvironmentFailure
from chainmark.core.times import NS
from chainmark.network.perf import sample, stacks
from chainmark.network.pprof import ProfileTaker, read_profiles

from tests.support import wait_until

needs_perf = pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
BUSY = "import hashlib\nwhile True:\n    hashlib.sha256(b'x' * 100_000_000).digest()\n"
# The period in nanoseconds and the frames of each sample, as `perf` prints them.
SAMPLES = (
    (
        10101010,
        ["main.(*App).hash.func1 (/bin/app)", "runtime.mallocgc.part.0 (/bin/app)", "[unknown] (/lib/libc.so.6)"],
    ),
    (10101010, ["crypto/sha256.block (/bin/app)", "main.(*App).Commit (/bin/app)"]),
    (20202020, ["do_syscall_64+0x3d ([kernel.kallsyms])"]),
)
SHOWN = "".join(
    f"app   {period} \n" + "".join(f"\t          1ba645 {frame}\n" for frame in frames) + "\n"
    for period, frames in SAMPLES
)


def test_stacks_start_with_the_outermost_function() -> None:
    samples = list(stacks(SHOWN))
    assert [stack for stack, _ in samples] == [
        ["(libc.so.6)", "runtime.mallocgc", "main.(*App).hash.func1"],
        ["main.(*App).Commit", "crypto/sha256.block"],
        ["do_syscall_64"],
    ]
    assert [seconds for _, seconds in samples] == pytest.approx([0.01010101, 0.01010101, 0.02020202])
    assert list(stacks("")) == []


def test_stored_samples_become_stacks_with_their_owners(tmp_path: Path) -> None:
    (tmp_path / "node0 application.cpu.perf.txt.gz").write_bytes(gzip.compress(SHOWN.encode()))
    assert read_profiles(tmp_path, ["heap"]).is_empty()
    frame = read_profiles(tmp_path, ["cpu"])
    assert set(frame["host"]) == {"node0 application"}
    owners = dict(frame.select("owner", "value").iter_rows())
    # A closure counts as its function, Go's library as its caller. A name without a dot is unchanged.
    assert owners == {
        "main.(*App).hash": pytest.approx(0.01010101),
        "main.(*App).Commit": pytest.approx(0.01010101),
        "do_syscall_64": pytest.approx(0.02020202),
    }


@needs_perf
def test_a_busy_process_is_sampled_for_the_requested_time() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY]) as busy:
        try:
            # On a busy machine the process may start late.
            wait_until(lambda: sum(psutil.Process(busy.pid).cpu_times()[:2]) > 0.2, "the process to be busy")
            samples = list(stacks(sample([busy.pid], 0.1, Event())))
        finally:
            busy.kill()
    assert any("sha256" in name.lower() or "(lib" in name for stack, _ in samples for name in stack)
    assert 0.0 < sum(seconds for _, seconds in samples) < 20.0


@needs_perf
def test_a_process_that_did_not_run_has_no_samples_and_the_reason_is_reported() -> None:
    with subprocess.Popen(["sleep", "60"]) as idle:
        try:
            with pytest.raises(EnvironmentFailure, match=r"`perf` recorded no sample in 0\.5 s: .+"):
                sample([idle.pid], 0.5, Event())
        finally:
            idle.kill()


def test_without_perf_the_profile_is_missing_and_the_reason_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentFailure, match="`perf` is not installed"):
        sample([1], 1.0, Event())
    now_ns = time.time_ns()
    taker = ProfileTaker({}, ["cpu", "heap"], tmp_path / "profiles", (now_ns, now_ns + NS), {"node0 application": [1]})
    taker.start()
    assert taker.finish() == ["profiles of node0 application are missing (cpu): `perf` is not installed"]


@needs_perf
def test_a_process_that_has_ended_gives_no_profile() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    with pytest.raises(EnvironmentFailure, match="`perf` recorded nothing"):
        sample([gone.pid], 0.2, Event())
