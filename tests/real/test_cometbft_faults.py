"""Failures of real runs: crashed nodes, chainmark killed, a full disk, a port in use."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chainmark.core.manifest import GateStatus, Status

from tests.machine import first_address
from tests.support import QUICK, Lab, changed, wait_until

DEMO = ("cometbft/demo", "--version", "v1.0.1", *changed(*QUICK))
SHORT = (*DEMO, "--set", "load.duration_s=3")
# The test ends these runs: a busy machine must not end them earlier.
LONG = (*DEMO, "--set", "load.duration_s=40")
OFFERED = 800


def test_a_killed_validator_is_noticed_and_fails_a_gate(lab: Lab) -> None:
    started = lab.start("run", *SHORT)
    started.wait_for_load()
    victim = next(node for node in lab.node_processes() if node.cmdline()[-1].endswith("node3"))
    victim.send_signal(signal.SIGKILL)
    ended = started.finish()
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "no node died: node3 was killed by SIGKILL" in ended.stderr
    assert "The subject failed the run" in ended.stdout
    run = lab.store.sealed()[0]
    assert run.manifest.status is Status.FAILED
    assert [gate.status for gate in run.manifest.gates if gate.id == "nodes_alive"] == [GateStatus.FAIL]
    assert [incident.what for incident in run.manifest.incidents] == ["node3 was killed by SIGKILL"]
    # Three of four validators continue, and every offered transaction is accounted for.
    assert run.manifest.counts["transactions"]["offered"] == OFFERED
    assert next(gate for gate in run.manifest.gates if gate.id == "accounting").status is GateStatus.PASS


def test_transaction_counts_add_up_after_the_loaded_node_is_killed(lab: Lab) -> None:
    started = lab.start("run", *SHORT)
    started.wait_for_load()
    victim = next(node for node in lab.node_processes() if node.cmdline()[-1].endswith("node0"))
    victim.send_signal(signal.SIGKILL)
    ended = started.finish()
    assert ended.returncode == 1, ended.stdout + ended.stderr
    account = lab.store.sealed()[0].manifest.counts["transactions"]
    assert account["offered"] == OFFERED
    assert account["unsent"] > 0
    assert account["offered"] == account["unsent"] + account["rejected"] + account["accepted"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing_behind(lab: Lab, number: signal.Signals) -> None:
    started = lab.start("run", *LONG)
    started.wait_for_load()
    started.process.send_signal(number)
    ended = started.finish()
    assert ended.returncode == 130, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    assert lab.node_processes() == []
    assert list(lab.store_path.glob("runs/*")) == []


def test_a_killed_chainmark_leaves_no_node_and_an_unfinished_run(lab: Lab) -> None:
    started = lab.start("run", *LONG)
    started.wait_for_load()
    assert len(lab.node_processes()) == 4
    started.process.kill()
    started.finish()
    wait_until(lambda: not lab.node_processes(), "the kernel to end the nodes")
    run_id = lab.store.unfinished()[0].run_id
    assert f"{run_id}" in lab.run("runs", "list").stdout
    assert "unfinished" in lab.run("runs", "list").stdout
    refused = lab.run("compare", run_id, run_id, code=4)
    assert f"run `{run_id}` is unfinished" in refused.stderr
    lab.run("runs", "remove", run_id)
    assert lab.store.unfinished() == []


def test_a_port_in_use_is_named(lab: Lab) -> None:
    second = first_address().removesuffix("1") + "2"
    with socket.socket() as taken:
        # Connections of an earlier test's node may still exist there.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((second, 26657))
        taken.listen()
        failed = lab.run("run", *SHORT, code=5)
    assert f"error: {second}:26657 is already in use" in failed.stderr
    assert "hint: " in failed.stderr
    assert lab.store.unfinished() == []


def test_a_network_that_does_not_start_is_a_failed_run_with_the_last_log_lines_of_a_node(lab: Lab) -> None:
    """A release whose nodes do not start fails its tests. Before, the command ended with an error."""
    # Nodes use whole processors while they try to connect, so the time is short.
    impossible = ("--set", "node.app=noop-at-no-address", "--set", "network.start_timeout_s=4")
    failed = lab.run("run", *SHORT, *impossible, "--set", "gates.waited_share_max=1", code=1)
    output = " ".join(failed.stdout.split())
    assert "while the network started" in output or "was not healthy" in output
    (run,) = lab.store.sealed()
    assert run.manifest.status is Status.FAILED
    assert any("node" in line and " | " in line for line in run.manifest.warnings)


def test_the_delay_of_a_late_network_is_reported(lab: Lab) -> None:
    late = ("--set", "network.start_timeout_s=0.2", "--set", "gates.waited_share_max=1")
    failed = lab.run("run", *SHORT, *late, code=1)
    assert "was not healthy within 200 ms after its start" in " ".join(failed.stdout.split())


def test_an_unknown_configuration_key_is_named(lab: Lab) -> None:
    failed = lab.run("run", *SHORT, "--set", "node.config.consensus.timeout_comit=1s", code=2)
    assert "`consensus.timeout_comit` is not a key of the config.toml of CometBFT v1.0.1" in failed.stderr
    assert "did you mean `node.config.consensus.timeout_commit`?" in failed.stderr
    assert lab.store.unfinished() == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 600 MiB, just enough for a short run."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600m", "tmpfs", str(folder)], check=False)
    if mounted.returncode != 0:
        pytest.skip("a file system of its own cannot be mounted here (not root)")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_is_reported_before_anything_starts(small_disk: Path) -> None:
    lab = Lab(small_disk / "store")
    (small_disk / "ballast").write_bytes(b"\0" * (500 << 20))
    failed = lab.run("run", *SHORT, code=5)
    assert "error: the disk is too full: the run may need" in failed.stderr
    assert "hint: " in failed.stderr


def test_a_disk_that_fills_up_ends_the_run_cleanly(small_disk: Path) -> None:
    lab = Lab(small_disk / "store")
    started = lab.start("run", *LONG)
    started.wait_for_load()
    with (small_disk / "ballast").open("wb", buffering=0) as ballast:
        # Fill the disk in steps: the nodes use some of the free space meanwhile.
        while shutil.disk_usage(small_disk).free > 32 << 20:
            ballast.write(b"\0" * (1 << 20))
    ended = started.finish()
    assert ended.returncode == 5, ended.stdout + ended.stderr
    assert "error: the disk is full" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert lab.node_processes() == []
    assert len(lab.store.unfinished()) == 1
