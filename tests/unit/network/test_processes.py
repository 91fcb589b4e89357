"""Node processes: paused ones stop cleanly, a planned stop is not a crash, and only the tool's threads get priority."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from chainmark.network.processes import ProcessGroup, pids_of_all_networks, preferred_threads
from chainmark.network.processor_speed import INTERVAL_S
from chainmark.network.run_queue import Contention
from chainmark.network.sampling import ResourceSampler

from tests.support import wait_until


def test_a_paused_process_is_terminated_cleanly(tmp_path: Path) -> None:
    """It handles SIGTERM only after SIGCONT. Without it, each paused process would be killed after the timeout."""
    with ProcessGroup() as group:
        process = group.start("sleeper", ["sleep", "60"], tmp_path / "log")
        process.signal(signal.SIGSTOP)
        assert not process.ended()
        assert group.stop(timeout_s=10) == []
    assert process.ended()
    assert process.death() is None


@pytest.mark.parametrize(("planned", "message"), [(True, None), (False, "sleeper was killed by SIGKILL")])
def test_only_an_unplanned_exit_is_a_death(tmp_path: Path, planned: bool, message: str | None) -> None:
    with ProcessGroup() as group:
        process = group.start("sleeper", ["sleep", "60"], tmp_path / "log")
        process.signal(signal.SIGKILL, ends=planned)
        process.popen.wait()
        assert process.death() == message
        # A new process with this name appends to the same log, and its death is detected as well.
        again = group.start("sleeper", ["sh", "-c", "echo again; exit 3"], tmp_path / "log")
        again.popen.wait()
        assert again.death() == "sleeper exited with code 3, last line `again`"
        assert "again" in again.last_log_lines()


@pytest.mark.parametrize(
    "time",
    [
        "2026/11/23 00:00:01 ",
        "2026-11-23T00:00:01.123456789Z ",
        "[2026-11-23 00:00:01,5+0100] ",
        "E[2026-11-23|00:00:01.123] ",
    ],
)
def test_the_same_error_at_two_times_is_one_error(tmp_path: Path, time: str) -> None:
    """Otherwise a start that fails twice, a second apart, would be reported as two different failures."""
    with ProcessGroup() as group:
        process = group.start("app", ["sh", "-c", f"echo '{time}the database is locked'; exit 1"], tmp_path / "log")
        process.popen.wait()
        assert process.death() == "app exited with code 1, last line `the database is locked`"


def test_priority_applies_to_threads_but_not_to_later_processes(tmp_path: Path) -> None:
    usual = os.sched_getscheduler(0)
    seen: list[int] = []
    with preferred_threads():
        thread = threading.Thread(target=lambda: seen.append(os.sched_getscheduler(0)))
        thread.start()
        thread.join()
    assert seen == [os.SCHED_RR if os.geteuid() == 0 else usual]
    assert os.sched_getscheduler(0) == usual
    with ProcessGroup() as group:
        assert os.sched_getscheduler(group.start("sleeper", ["sleep", "60"], tmp_path / "log").pid) == usual


def test_a_network_of_the_same_measurement_is_not_contention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise two networks that run in parallel on purpose would invalidate each other's runs."""
    ours: list[set[int]] = []
    monkeypatch.setattr(Contention, "read", lambda _, pids: ours.append(set(pids)))
    with ProcessGroup() as group, ProcessGroup() as other:
        pids = [group.start("node", ["sleep", "60"], tmp_path / "node.log").pid for group in (group, other)]
        ResourceSampler({"node": pids[:1]}).sample()
        assert set(pids) <= ours[0]
    assert not pids_of_all_networks() & set(pids)


def test_the_speed_of_the_processors_is_measured_with_every_sample(tmp_path: Path) -> None:
    """Otherwise CPU time cannot be corrected for it, and the same work looks like more or less work."""
    with ProcessGroup() as group:
        sampler = ResourceSampler({"node": [group.start("node", ["sleep", "60"], tmp_path / "node.log").pid]})
        tickers = sampler.tickers()
        try:
            wait_until(lambda: sampler.processes().height >= 3, "three samples")
        finally:
            for ticker in tickers:
                ticker.stop()
    for frame in (sampler.processes(), sampler.pressure()):
        cpu_s, times = frame["reference_cpu_s"].to_list(), frame["reference_times"].to_list()
        assert 1 <= times[-1] - times[0] <= 1 + (frame["time_ns"][-1] - frame["time_ns"][0]) / 1e9 / INTERVAL_S
        assert 0.0 < (cpu_s[-1] - cpu_s[0]) / (times[-1] - times[0]) < 1.0
