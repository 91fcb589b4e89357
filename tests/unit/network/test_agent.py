"""A host's agent runs processes for a distant client, and leaves none when the client is gone."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import psutil
import pytest

from chainmark.core.errors import EnvironmentFailure
from chainmark.core.storage import storage_errors
from chainmark.network.agent import SPACE_HINT, HostAgent, HostFailure
from chainmark.network.processes import kernel_of_processes, pids_of_all_networks
from chainmark.network.remote import RemoteHost, RemoteProcess, RemoteProcesses, joined_pressure
from chainmark.network.sampling import PRESSURE_SCHEMA, ResourceSampler

from tests.support import wait_until

SCRIPT = """#!{python}
import os, signal, sys, time
print("home", sys.argv[1], open(sys.argv[1] + "/key").read(), os.environ["COLOUR"], flush=True)
time.sleep(float(sys.argv[2]))
sys.exit("panic: no more blocks")
"""


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[HostAgent]:
    """An agent in this process."""
    host_agent = HostAgent(tmp_path / "programs")
    yield host_agent
    host_agent.close()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that is not on the host."""
    path = tmp_path / "here" / "node"
    path.parent.mkdir()
    path.write_text(SCRIPT.format(python=sys.executable))
    return path


def _home(folder: Path, node: str) -> Path:
    home = folder / "homes" / node
    home.mkdir(parents=True)
    (home / "key").write_text(f"secret of {node}")
    return home


def _start(processes: RemoteProcesses, program: Path, home: Path, seconds: float) -> RemoteProcess:
    command = [str(program), str(home), str(seconds)]
    return processes.start(home.name, command, home / "node.log", {**os.environ, "COLOUR": "red"})


def test_a_process_has_its_home_and_program_on_its_host(agent: HostAgent, program: Path, tmp_path: Path) -> None:
    host = RemoteHost("10.0.0.1", agent.call)
    home = _home(tmp_path, "node0")
    with RemoteProcesses({"node0": host}) as processes:
        process = _start(processes, program, home, 600)
        wait_until(lambda: host.call("read", "node0", "node.log") != b"", "its output")
        processes.fetch_logs()
        word, there, *rest = (home / "node.log").read_text().split()
        assert (word, rest) == ("home", ["secret", "of", "node0", "red"])
        assert there != str(home), "the paths of this machine do not exist on the host"
        assert not process.is_here
        assert not process.ended()
        frame, hosts = processes.samples()
        (pressure,) = hosts.values()
        assert frame.columns[0] == "time_ns"
        assert pressure.schema == pl.Schema(PRESSURE_SCHEMA)
        process.signal(signal.SIGKILL, ends=True)
        wait_until(process.ended, "its end")
        assert process.death() is None, "it was killed on purpose"
        assert processes.deaths() == processes.stop() == []
    assert not Path(there).exists()
    assert (tmp_path / "programs" / hashlib.sha256(program.read_bytes()).hexdigest() / program.name).is_file()


def test_configurations_and_environments_name_the_home_on_the_host(
    agent: HostAgent, program: Path, tmp_path: Path
) -> None:
    """Other files keep their bytes: a database that happens to contain the path would be damaged."""
    home = _home(tmp_path, "node0")
    (home / "config").mkdir()
    for name in ("app.toml", "data.db"):
        (home / "config" / name).write_text(f'dir = "{home}/data"')
    (home / "link").symlink_to("config/app.toml")
    with RemoteProcesses({"node0": RemoteHost("10.0.0.1", agent.call)}) as processes:
        command = [str(program), str(home), "600"]
        processes.start("node0", command, home / "node.log", {**os.environ, "COLOUR": f"{home}/red"})
        wait_until(lambda: agent.call("read", "node0", "node.log") != b"", "its output")
        processes.fetch_logs()
        there = agent.home_of("node0")
        assert (home / "node.log").read_text().split()[-1] == f"{there}/red"
        for name in ("config/app.toml", "link"):
            assert agent.read("node0", name).decode() == f'dir = "{there}/data"'
        assert agent.read("node0", "config/data.db").decode() == f'dir = "{home}/data"'


def test_two_processes_of_a_node_are_sampled_together(agent: HostAgent, program: Path, tmp_path: Path) -> None:
    """Its application uses memory as well as the node. A restarted node takes the place of the old process."""
    home = _home(tmp_path, "node0")

    def rss_bytes(log: str, starts: int) -> int:
        # A restarted process appends to its log. It has all its memory only when it prints.
        wait_until(lambda: agent.call("read", "node0", log).count(b"home") == starts, "its output")
        agent._sampler.sample()
        return int(agent.samples()[0]["rss_bytes"][-1])

    with RemoteProcesses({"node0": RemoteHost("10.0.0.1", agent.call)}) as processes:
        _start(processes, program, home, 600)
        alone = rss_bytes("node.log", starts=1)
        words = [str(program), str(home), "600"]
        for starts in (1, 2):
            processes.start("the application of node0", words, home / "application.log", {**os.environ, "COLOUR": "x"})
            assert 1.7 < rss_bytes("application.log", starts) / alone < 2.3


def test_an_unexpected_end_is_reported_with_its_reason(agent: HostAgent, program: Path, tmp_path: Path) -> None:
    home = _home(tmp_path, "node0")
    with RemoteProcesses({"node0": RemoteHost("10.0.0.1", agent.call)}) as processes:
        process = _start(processes, program, home, 0)
        wait_until(process.ended, "its end")
        assert process.death() == "node0 exited with code 1, last line `panic: no more blocks`"
        assert processes.deaths() == [process.death()]
        assert "panic" in process.last_log_lines()


def test_a_node_that_is_restarted_keeps_its_home(agent: HostAgent, program: Path, tmp_path: Path) -> None:
    home = _home(tmp_path, "node0")
    with RemoteProcesses({"node0": RemoteHost("10.0.0.1", agent.call)}) as processes:
        first = _start(processes, program, home, 600)
        first.kill()
        (home / "key").unlink()
        second = _start(processes, program, home, 600)
        assert (second.pid != first.pid, second.ended(), second.started_ns > first.started_ns) == (True, False, True)


def test_a_nodes_keys_are_sent_only_to_its_host(program: Path, tmp_path: Path) -> None:
    agents = [HostAgent(tmp_path / f"programs-{number}") for number in range(2)]
    hosts = [RemoteHost(f"10.0.0.{number}", agent.call) for number, agent in enumerate(agents)]
    with RemoteProcesses({"node0": hosts[0], "node1": hosts[1]}) as processes:
        for node in ("node0", "node1"):
            _start(processes, program, _home(tmp_path, node), 600)
        assert hosts[0].call("read", "node0", "key") == b"secret of node0"
        with pytest.raises(HostFailure, match="FileNotFoundError"):
            hosts[1].call("read", "node0", "key")


def test_a_silent_client_ends_the_processes(program: Path, tmp_path: Path) -> None:
    """It was killed, or the network between is cut: its nodes would run for ever."""
    agent = HostAgent(tmp_path / "programs", silence_max_s=0.1)
    processes = RemoteProcesses({"node0": RemoteHost("10.0.0.1", agent.call)})
    process = psutil.Process(_start(processes, program, _home(tmp_path, "node0"), 600).pid)
    wait_until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, "the end of the process")

    def is_refused() -> bool:
        try:
            agent.call("now_ns")
        except EnvironmentFailure as error:
            return "its client was silent for 100 ms" in error.message
        return False

    wait_until(is_refused, "the agent's end")


def test_a_client_that_waits_for_an_answer_is_not_silent(tmp_path: Path) -> None:
    """On an overloaded machine the start of a process may take longer than a silence."""
    waiting, silent = (HostAgent(tmp_path / "programs", silence_max_s=0.1) for _ in range(2))
    folder = Path(silent.home_of("node0")).parent
    waiting.hold("patience", _Patience, folder)
    waiting.call("ask", "patience", "wait")
    waiting.call("now_ns")
    waiting.close()


class _Patience:
    """Waits for the end of another agent, whose client is silent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def wait(self) -> None:
        """Wait until the agent's folder is removed."""
        wait_until(lambda: not self._folder.exists(), "the other agent's end")


def test_a_slow_host_does_not_make_the_client_silent_for_the_others(tmp_path: Path) -> None:
    """They would take it for gone and stop their nodes."""
    agents = [HostAgent(tmp_path / "programs") for _ in range(2)]
    is_over, asked = threading.Event(), 0

    def slow(method: str, *arguments: object) -> object:
        if method == "report":
            is_over.wait(60)
        return agents[0].call(method, *arguments)

    def fast(method: str, *arguments: object) -> object:
        nonlocal asked
        asked += method == "report"
        return agents[1].call(method, *arguments)

    with RemoteProcesses({"node0": RemoteHost("10.0.0.1", slow), "node1": RemoteHost("10.0.0.2", fast)}):
        wait_until(lambda: asked >= 3, "the fast host's reports")
        is_over.set()


def test_the_homes_of_a_killed_agent_are_removed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They contain the keys of nodes. Those of a running agent stay, even if it belongs to another command."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    abandoned = tmp_path / "chainmark-host-1"
    (abandoned / "node0").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "chainmark-host-link").symlink_to(tmp_path / "elsewhere")
    first, second = (HostAgent(tmp_path / "programs") for _ in range(2))
    try:
        homes = [Path(agent.home_of("node0")).parent for agent in (first, second)]
        assert not abandoned.exists()
        assert all(home.is_dir() for home in (*homes, tmp_path / "elsewhere"))
        first.close()
        assert [home.exists() for home in homes] == [False, True]
    finally:
        first.close()
        second.close()


def test_watching_a_host_takes_one_message_per_second(agent: HostAgent, program: Path, tmp_path: Path) -> None:
    """With more, the client of two hundred hosts has no processor left for anything else."""
    asked: list[str] = []

    def call(method: str, *arguments: object) -> object:
        asked.append(method)
        return agent.call(method, *arguments)

    with RemoteProcesses({"node0": RemoteHost("10.0.0.1", call)}) as processes:
        process = _start(processes, program, _home(tmp_path, "node0"), 600)
        assert not process.ended()
        asked.clear()
        began_s = time.monotonic()
        for _ in range(300):
            assert (process.ended(), processes.deaths(max_age_s=2)) == (False, [])
            time.sleep(0.005)
        assert len(asked) <= 1 + time.monotonic() - began_s
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: process.ended() and processes.deaths(max_age_s=2) != [], "the next report")


def test_a_report_from_before_a_start_does_not_count(agent: HostAgent, program: Path, tmp_path: Path) -> None:
    """It is still on its way when the process is started or ended."""
    host = RemoteHost("10.0.0.1", agent.call)
    with RemoteProcesses({"node0": host}) as processes:
        home, late = _home(tmp_path, "node0"), agent.call("report")
        process = _start(processes, program, home, 600)

        def late_report(method: str, *arguments: object) -> object:
            host.call = agent.call
            process.kill()
            return late

        host.call = late_report
        host.ask_report()
        assert process.ended()


def test_the_time_to_write_a_report_is_no_error_of_the_clock(agent: HostAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly_read() -> int:
        time.sleep(0.2)
        return 1 << 30

    monkeypatch.setattr(agent, "_free_bytes", slowly_read)
    host = RemoteHost("10.0.0.1", agent.call)
    host.ask_report()
    (exchange,) = host.exchanges
    assert exchange.error_ns < 50e6
    assert abs(exchange.offset_ns) <= exchange.error_ns


def test_a_full_disk_of_a_host_is_named(agent: HostAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its nodes fail soon after, which would look like a fault of their release."""
    with RemoteProcesses({"node0": RemoteHost("10.0.0.1", agent.call)}) as processes:
        assert processes.deaths() == []
        monkeypatch.setattr(agent, "_free_bytes", lambda: (64 << 20) - 1)

        def is_reported() -> bool:
            try:
                processes.deaths()
            except EnvironmentFailure as error:
                return (
                    re.match(r"the disk of 10\.0\.0\.1 is full: 63 MiB are left .* \(20\d\d-", error.message)
                    is not None
                )
            return False

        wait_until(is_reported, "the report")


def test_the_end_of_a_node_on_a_full_disk_is_not_a_death(
    agent: HostAgent, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may end before the next report, for example while the network starts, where it would be started again."""
    with RemoteProcesses({"node0": RemoteHost("10.0.0.1", agent.call)}) as processes:
        process = _start(processes, program, _home(tmp_path, "node0"), 600)
        assert process.death() is None
        monkeypatch.setattr(agent, "_free_bytes", lambda: (64 << 20) - 1)
        os.kill(process.pid, signal.SIGKILL)
        wait_until(process.ended, "its end")
        for ask in (process.death, processes.deaths):
            with pytest.raises(EnvironmentFailure, match=r"the disk of 10\.0\.0\.1 is full") as raised:
                ask()
            assert raised.value.hint == SPACE_HINT


def test_the_logs_of_a_network_that_failed_are_fetched(agent: HostAgent, program: Path, tmp_path: Path) -> None:
    """They show why; without them the run could not be stored either."""
    home = _home(tmp_path, "node0")

    def fail() -> None:
        with RemoteProcesses({"node0": RemoteHost("10.0.0.1", agent.call)}) as processes:
            _start(processes, program, home, 600)
            raise EnvironmentFailure("it failed")

    with pytest.raises(EnvironmentFailure, match="it failed"):
        fail()
    assert (home / "node.log").is_file()


def test_a_full_disk_has_the_remedy_for_a_host(agent: HostAgent) -> None:
    agent.call("hold", "generator", _Failing)
    with pytest.raises(HostFailure, match="the disk is full") as raised:
        agent.call("ask", "generator", "fill", agent._folder)
    assert raised.value.hint == SPACE_HINT


def test_a_program_that_was_changed_on_the_way_is_refused(agent: HostAgent) -> None:
    with pytest.raises(EnvironmentFailure, match="changed on the way"):
        agent.call("take_program", hashlib.sha256(b"node").hexdigest(), b"edon")


def test_an_error_of_the_system_on_a_host_is_not_taken_for_a_lost_worker(agent: HostAgent) -> None:
    """The engine has errors of the same classes for that, so the run would be repeated, and a healthy worker named."""
    agent.call("hold", "generator", _Failing)
    with pytest.raises(EnvironmentFailure, match=r"`ask` failed: OSError: \[Errno 22\] Invalid"):
        agent.call("ask", "generator", "fail")


class _Failing:
    def fail(self) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    def fill(self, folder: Path) -> None:
        with storage_errors(folder):
            raise OSError(errno.ENOSPC, "No space left on device")


def test_hosts_that_share_a_machine_do_not_count_as_its_other_users(
    agent: HostAgent, program: Path, tmp_path: Path
) -> None:
    """Otherwise a network on several workers of one machine would compete with itself, and no run would be valid."""
    home = _home(tmp_path, "node0")
    with RemoteProcesses({"node0": RemoteHost("10.0.0.1", agent.call)}) as processes:
        process = _start(processes, program, home, 600)
        assert {process.pid, os.getpid()} <= pids_of_all_networks()
        calls: list[tuple[object, ...]] = []
        processes.host_of = {**processes.host_of, "node1": RemoteHost("10.0.0.2", lambda *call: calls.append(call))}
        processes._agents["10.0.0.2"] = ("the kernel of another machine", 1)
        processes._introduce(kernel_of_processes(), [1234])
        assert calls == [], "process IDs of another machine mean nothing there"
        processes.host_of = {"node0": processes.host_of["node0"]}
    assert pids_of_all_networks().isdisjoint({process.pid, 1234})


def test_other_processes_of_a_machine_count_once_however_many_hosts_it_is(
    agent: HostAgent, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the parts of the cluster on the machine seem to take the processor from the nodes."""
    sampler = ResourceSampler({})
    hosts = {f"node{number}": RemoteHost(f"10.0.0.{number}", agent.call) for number in range(2)}
    with RemoteProcesses(hosts) as processes:
        _start(processes, program, _home(tmp_path, "node0"), 600)
        wait_until(lambda: agent.samples()[1].height > 0, "samples")
        there, machine = agent.samples()
        monkeypatch.setattr(agent, "samples", lambda: (there, machine.with_columns(contended_s=5.0)))
        sampler.sample()
        own = sampler.pressure().with_columns(contended_s=1.0)
        _, joined = processes.joined(sampler.processes(), own)
        assert joined["contended_s"].to_list() == [1.0]
        processes._agents = {address: ("another kernel", pid) for address, (_, pid) in processes._agents.items()}
        _, joined = processes.joined(sampler.processes(), own)
        assert joined["contended_s"].to_list() == [6.0]


def test_round_trips_are_measured_to_what_accepts_connections(agent: HostAgent) -> None:
    hosts = {"a": RemoteHost("127.0.0.2", agent.call), "b": RemoteHost("127.0.0.1", agent.call)}
    with socket.create_server(("127.0.0.1", 0)) as open_port, socket.create_server(("127.0.0.2", 0)) as closed_port:
        ports = {"127.0.0.1": open_port.getsockname()[1], "127.0.0.2": closed_port.getsockname()[1]}
        closed_port.close()
        trips = RemoteProcesses(hosts).round_trips(ports)
    assert len(trips) == 1, "of two hosts one is reached from the other, and the other is not"
    assert 0.0 < trips[0] < 1.0


def test_the_clock_of_a_host_is_compared_while_it_is_used(agent: HostAgent) -> None:
    """Here it is the same clock."""
    with RemoteProcesses({"node0": RemoteHost("10.0.0.1", agent.call)}) as processes:
        (clock,) = processes.clocks().values()
    assert abs(clock.offset_ns) <= clock.error_ns < 1e9


def test_the_figures_of_all_hosts_are_added_at_the_same_times() -> None:
    now_ns = time.time_ns()

    def frame(at_s: float, slope: float) -> pl.DataFrame:
        rows = {name: [None] * 5 for name in PRESSURE_SCHEMA} | {
            "time_ns": [now_ns + round((at_s + number) * 1e9) for number in range(5)],
            **{name: [slope * (at_s + number) for number in range(5)] for name in (
                "nodes_ran_s", "nodes_waited_s", "contended_s", "cpu_steal_s", "cpu_total_s"
            )},
        }  # fmt: skip
        return pl.DataFrame(rows, schema=PRESSURE_SCHEMA)

    hosts = [frame(0.0, 10.0), frame(0.25, 100.0)]
    joined = joined_pressure(frame(0.5, 1.0), hosts, hosts)
    assert joined["nodes_ran_s"].to_list()[:3] == pytest.approx([55.0, 165.0, 275.0])
    assert joined["contended_s"].to_list()[:3] == pytest.approx([55.5, 166.5, 277.5])
    assert joined.schema == pl.Schema(PRESSURE_SCHEMA)
    assert joined["generator_ran_s"].null_count() == 5, "this machine's own, which was not sampled here"
    loading = frame(0.0, 4.0).with_columns(generator_ran_s="nodes_ran_s", harness_cpu_s="nodes_ran_s")
    together = joined_pressure(frame(0.5, 1.0), hosts, hosts[:1])
    assert together["nodes_ran_s"].to_list()[:3] == pytest.approx([55.0, 165.0, 275.0])
    assert together["contended_s"].to_list()[:3] == pytest.approx([5.5, 16.5, 27.5]), "once if they are one machine"
    hosts = [frame(0.0, 10.0), loading]
    elsewhere = joined_pressure(frame(0.5, 1.0).with_columns(harness_cpu_s=1.0), hosts, hosts, [loading])
    assert elsewhere["generator_ran_s"].to_list()[:3] == pytest.approx([2.0, 6.0, 10.0])
    assert elsewhere["harness_cpu_s"].to_list()[:3] == pytest.approx([3.0, 7.0, 11.0])
    never_started = pl.DataFrame(schema=PRESSURE_SCHEMA)
    hosts = [frame(0.0, 10.0), frame(0.25, 100.0), never_started]
    assert joined.equals(joined_pressure(frame(0.5, 1.0), hosts, hosts))
