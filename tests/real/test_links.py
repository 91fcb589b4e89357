"""Links between real namespaces: their effect on nodes and host, and that no part of them survives its owner.

Skipped with a reason if this user may not create namespaces.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import psutil
import pytest

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import GateStatus
from chainmark.network import emulation
from chainmark.network.emulation import EmulationPlan, available, emulated_links
from chainmark.network.leftovers import remove_leftovers
from chainmark.network.namespaces import OWNER_VARIABLE, Namespace, claimed_network, host_device, start_ticks
from chainmark.network.netem import Bridge, LinkDirection, close_sockets, tc_tree
from chainmark.network.processes import ProcessGroup
from chainmark.network.round_trips import measured_round_trips, round_trip_gate
from chainmark.network.zones import load_zone_table

AWS = load_zone_table("aws")
FAR = EmulationPlan(
    ("a", "b", "c"), {"a": "N_Virginia", "b": "Canada", "c": "London"}, AWS, jitter_share=0.02, backend="switch", seed=3
)
PATIENCE_S = 120.0
needs_switch = pytest.mark.skipif("switch" not in available().backends, reason=str(available().lacks))
ECHO = """
import socket, sys
server = socket.create_server((sys.argv[1], 7000))
print("ready", flush=True)
while True:
    stream, _ = server.accept()
    try:
        while data := stream.recv(4096):
            stream.sendall(data)
    except ConnectionResetError:
        print("reset", flush=True)
"""


def _until_gone(exists: object) -> bool:
    """Whether a resource that the kernel removes asynchronously disappears within some seconds."""
    assert callable(exists)
    deadline = time.monotonic() + PATIENCE_S
    while exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _wait_for_line(path: Path, text: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists() or text not in path.read_text(encoding="utf-8"):
        assert time.monotonic() < deadline, f"{path} does not contain {text}"
        time.sleep(0.01)


def _device(name: str) -> Path:
    return Path("/sys/class/net") / name


@pytest.mark.quiet
@needs_switch
def test_nodes_observe_the_delays_of_their_zones_and_all_packets_are_counted(tmp_path: Path) -> None:
    with emulated_links(FAR, tmp_path) as links:
        measured = links.measure(samples=20)
        assert links.backend == "switch"
        assert len(set(links.addresses.values())) == 3
    assert {(trip.source, trip.destination): round(trip.intended_s * 1e3) for trip in measured} == {
        **{("a", "b"): 14, ("b", "a"): 14, ("a", "c"): 76},
        **{("c", "a"): 76, ("b", "c"): 78, ("c", "b"): 78},
    }
    for trip in measured:
        assert trip.answered == 20
        assert trip.min_s is not None
        # The minimum, with a tolerance for jitter below and for a busy machine above. The gate itself assumes an idle
        # one.
        assert 0.85 * trip.intended_s < trip.min_s < trip.intended_s + 0.02
    frame = pl.read_parquet(tmp_path / "round_trips.parquet")
    assert frame.height == 6
    link_stats = json.loads((tmp_path / "link_stats.json").read_text(encoding="utf-8"))
    # A repeated request may still be in transit when the links are removed. Packets that the kernel sends to all hosts
    # of a network, such as announcements, are not delivered to other nodes.
    no_route = link_stats["dropped"].pop("no route")
    assert link_stats["delivered"] + link_stats["under_way"] + no_route == link_stats["packets"]
    assert link_stats["delivered"] >= 6 * 20 * 2
    assert set(link_stats["dropped"].values()) == {0}
    assert link_stats["error_p50_s"] is not None


@needs_switch
def test_a_delay_that_is_not_the_intended_one_fails_the_gate(tmp_path: Path) -> None:
    with emulated_links(FAR, tmp_path) as links:
        names = list(links.addresses)
        spaces = links._fabric.namespaces
        wrong = measured_round_trips(names, spaces, list(links.addresses.values()), lambda *_: 0.0, 3)
        links.disconnect("b", reset=False)
        unanswered = measured_round_trips(["a", "b"], spaces[:2], list(links.addresses.values())[:2], lambda *_: 0.0, 2)
    assert round_trip_gate(wrong).status is GateStatus.FAIL
    assert round_trip_gate(unanswered).measured.endswith("none of 2 pings were answered")


@needs_switch
def test_a_node_keeps_its_process_id_and_a_cut_isolates_it_from_other_nodes_but_not_the_host(tmp_path: Path) -> None:
    plan = EmulationPlan(("a", "b"), backend="switch")
    with emulated_links(plan, tmp_path) as links, ProcessGroup() as group:
        address = links.addresses["a"]
        node = group.start("a", links.command("a", [sys.executable, "-c", ECHO, address]), tmp_path / "a.log")
        _wait_for_line(tmp_path / "a.log", "ready")
        assert psutil.Process(node.pid).cmdline()[:2] == [sys.executable, "-c"]
        client = "import socket, sys\ns = socket.create_connection((sys.argv[1], 7000), 120)\ns.settimeout(120)\n"
        client += "for line in sys.stdin:\n s.sendall(line.encode()); print(s.recv(99).decode(), end='', flush=True)\n"
        peer = subprocess.Popen(
            links.command("b", [sys.executable, "-c", client, address]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert peer.stdin is not None
        assert peer.stdout is not None
        try:
            peer.stdin.write("before\n")
            peer.stdin.flush()
            assert peer.stdout.readline() == "before\n"
            links.disconnect("a")
            _, errors = peer.communicate("in vain\n", timeout=PATIENCE_S)
        finally:
            peer.kill()
            peer.wait()
        assert "ConnectionResetError" in errors
        _wait_for_line(tmp_path / "a.log", "reset")
        with socket.create_connection((address, 7000), PATIENCE_S) as host:
            host.sendall(b"still seen")
            assert host.recv(99) == b"still seen"
        links.reconnect("a")
        assert all(trip.answered == 2 for trip in links.measure(2))
        stats = links.stats()
    with pytest.raises(EnvironmentFailure, match="the delay switch has ended"):
        links.stats()
    assert stats.dropped["cut"] > 0
    assert stats.resets >= 2


@needs_switch
def test_a_partition_separates_groups_and_must_name_every_node_once(tmp_path: Path) -> None:
    plan = EmulationPlan(("a", "b", "c"), backend="switch")
    with emulated_links(plan, tmp_path) as links:
        for groups in (["a"], ["b"]), (["a", "b"], ["b", "c"]), (["a", "b"], ["c", "x"]):
            with pytest.raises(UsageError, match="every node exactly once"):
                links.partition(groups)
        with pytest.raises(UsageError, match="no node `x`"):
            links.disconnect("x")
        links.partition([["a", "b"], ["c"]])
        answered = {(trip.source, trip.destination) for trip in links.measure(1) if trip.answered}
        assert answered == {("a", "b"), ("b", "a")}
        links.heal()
        assert all(trip.answered for trip in links.measure(1))


@needs_switch
def test_two_concurrent_experiments_do_not_interfere(tmp_path: Path) -> None:
    plan = EmulationPlan(("a", "b"), backend="switch")
    with emulated_links(plan, tmp_path / "1") as first, emulated_links(plan, tmp_path / "2") as second:
        assert set(first.addresses.values()).isdisjoint(second.addresses.values())
        assert all(trip.answered for trip in [*first.measure(1), *second.measure(1)])


@needs_switch
def test_the_kernel_bridge_connects_nodes_and_host_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """The part of the netem backend that does not require netem."""
    with claimed_network() as network:
        device = host_device(network)
        addresses = [str(network[1]), str(network[2])]
        bridge = Bridge(addresses, str(network[254]), device)
        measured = measured_round_trips(["a", "b"], bridge.namespaces, addresses, lambda *_: 0.0, 3)
        assert all(trip.answered == 3 for trip in measured)
        server = [sys.executable, "-c", ECHO, addresses[0]]
        with ProcessGroup() as group:
            group.start("a", bridge.namespaces[0].command(server), tmp_path / "a.log")
            _wait_for_line(tmp_path / "a.log", "ready")
            with socket.create_connection((addresses[0], 7000), PATIENCE_S) as host:
                host.sendall(b"x")
                assert host.recv(9) == b"x"
        bridge.close()
        assert _until_gone(_device(device).exists)


@needs_switch
def test_the_kernel_assigns_packets_to_the_class_of_their_address() -> None:
    """Filters and classes of the netem backend in a real kernel, without netem itself if it is unavailable."""
    with claimed_network() as network:
        addresses = [str(network[number]) for number in (1, 2, 3)]
        bridge = Bridge(addresses, str(network[254]), host_device(network))
        lines = [LinkDirection(address, 0.01, 0.05, 0.01, 1_000_000) for address in addresses[1:]]
        space = bridge.namespaces[0]
        for command in tc_tree(lines):
            done = subprocess.run(space.command(["tc", *command.split()]), capture_output=True, text=True, check=False)
            # If only the kernel rejects the command, tc has accepted its syntax.
            lacks_netem = "netem" in command and "kind is unknown" in done.stderr
            assert done.returncode == 0 or lacks_netem, f"{command}: {done.stderr}"
        measured_round_trips(["a", "c"], [space, bridge.namespaces[2]], [addresses[0], addresses[2]], lambda *_: 0.0, 7)
        show = space.command(["tc", "-s", "class", "show", "dev", "wan0"])
        shown = subprocess.run(show, capture_output=True, text=True, check=True).stdout
        packets = dict(re.findall(r"class htb (\S+) .*\n Sent \d+ bytes (\d+) pkt", shown))
        # Seven pings and seven replies to the third node, nothing to the second. ARP and similar packets are in neither
        # class.
        assert (packets["1:10"], packets["1:11"]) == ("0", "14")
        bridge.close()


@needs_switch
def test_only_the_sockets_to_one_node_are_closed(tmp_path: Path) -> None:
    with claimed_network() as network, ProcessGroup() as group:
        addresses = [str(network[number]) for number in (1, 2)]
        bridge = Bridge(addresses, str(network[254]), host_device(network))
        group.start("a", bridge.namespaces[0].command([sys.executable, "-c", ECHO, addresses[0]]), tmp_path / "a.log")
        _wait_for_line(tmp_path / "a.log", "ready")
        with socket.create_connection((addresses[0], 7000), PATIENCE_S) as host:
            close_sockets(bridge.namespaces[0], addresses[1])
            host.sendall(b"x")
            assert host.recv(9) == b"x"
            close_sockets(bridge.namespaces[0], str(network[254]))
            with pytest.raises(ConnectionResetError):
                host.recv(9)
        bridge.close()


@needs_switch
def test_a_bridge_is_removed_when_its_owner_exits() -> None:
    with claimed_network() as network:
        device = host_device(network)
        bridge = Bridge([str(network[1])], str(network[254]), device)
        assert _device(device).exists()
        del bridge
        assert _until_gone(_device(device).exists)


OWNER = """
import sys, time
from pathlib import Path
from chainmark.network.emulation import EmulationPlan, emulated_links
from chainmark.network.processes import ProcessGroup

with emulated_links(EmulationPlan(("a", "b"), backend="switch"), Path(sys.argv[1])) as links, ProcessGroup() as group:
    node = group.start("a", links.command("a", ["sleep", "1000"]), Path(sys.argv[1]) / "a.log")
    device = "cm-" + "-".join(links.addresses["a"].split(".")[:3])
    print(node.pid, device, flush=True)
    how = sys.argv[2]
    if how == "failure":
        raise RuntimeError("as ordered")
    while how != "success":
        time.sleep(0.02)
"""


@needs_switch
@pytest.mark.parametrize("how", ["success", "failure", "SIGINT", "SIGTERM", "SIGKILL"])
def test_nothing_is_left_behind_however_the_owner_ends(tmp_path: Path, how: str) -> None:
    """Processes, devices and namespaces are gone: only descriptors and processes keep a namespace alive."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), how],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert owner.stdout is not None
    try:
        pid, device = owner.stdout.readline().split()
        ticks = start_ticks(int(pid))
        if how.startswith("SIG"):
            assert ticks is not None
            assert _device(device).exists()
            owner.send_signal(getattr(signal, how))
        owner.wait(PATIENCE_S)
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    assert (owner.returncode == 0) == (how == "success")
    assert _until_gone(_device(device).exists)
    assert ticks is None or _until_gone(lambda: start_ticks(int(pid)) == ticks)
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {"a.log", "link_stats.json"}


@needs_switch
def test_the_next_start_removes_leftovers_of_killed_owners_only(tmp_path: Path) -> None:
    space = Namespace()
    living = subprocess.Popen(space.command(["sleep", "1000"]))
    orphan = subprocess.Popen(["sleep", "1000"], env={**os.environ, OWNER_VARIABLE: "4194303-1"})
    with claimed_network() as network:
        device = host_device(network)
    subprocess.run(["ip", "link", "add", device, "type", "bridge"], check=True)
    try:
        messages = remove_leftovers()
        assert start_ticks(orphan.pid) is None
        assert living.poll() is None
        assert not _device(device).exists()
        assert any(str(orphan.pid) in sentence for sentence in messages)
        assert any(device in sentence for sentence in messages)
        with emulated_links(EmulationPlan(("a",), backend="switch"), tmp_path) as links:
            assert remove_leftovers() == []
            assert links.measure(1) == []
    finally:
        for process in (living, orphan):
            process.kill()
            process.wait()
        subprocess.run(["ip", "link", "delete", device], check=False, capture_output=True)


def test_an_unprivileged_user_gets_the_missing_requirements() -> None:
    code = (
        "from pathlib import Path\n"
        "from chainmark.core.errors import EnvironmentFailure\n"
        "from chainmark.network.emulation import EmulationPlan, emulated_links\n"
        "try:\n"
        "    with emulated_links(EmulationPlan(('a',)), Path('x')): pass\n"
        "except EnvironmentFailure as error:\n"
        "    print(error.message); print(error.hint)\n"
    )
    without = ["setpriv", "--bounding-set", "-net_admin,-sys_admin", "--inh-caps", "-net_admin,-sys_admin", "--"]
    command = [*without, sys.executable, "-c", code] if os.geteuid() == 0 else [sys.executable, "-c", code]
    messages = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert messages[0] == (
        "links between nodes need network namespaces, and this user lacks CAP_NET_ADMIN and CAP_SYS_ADMIN"
    )
    assert "run as root" in messages[1]


@needs_switch
def test_a_backend_that_does_not_work_here_is_rejected_and_a_working_one_suggested(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(emulation, "available", lambda: emulation.Availability(("switch",)))
    with (
        pytest.raises(EnvironmentFailure, match="lacks netem") as caught,
        emulated_links(EmulationPlan(("a",), backend="netem"), tmp_path),
    ):
        pass
    assert caught.value.hint == '`backend = "switch"` works here'


@pytest.fixture(autouse=True)
def _no_device_is_left() -> Iterator[None]:
    """Every test in this module must leave no device on the host."""
    before = {path.name for path in Path("/sys/class/net").iterdir()}
    yield
    assert _until_gone(lambda: not {path.name for path in Path("/sys/class/net").iterdir()} <= before)
