"""Real networks under load whose nodes are killed, paused, stopped, disconnected, and joined by others."""

from __future__ import annotations

import signal

import polars as pl
import psutil
import pytest

from chainmark.core.manifest import Gate, GateStatus, Status
from chainmark.network.emulation import available
from chainmark.store.sealed import SealedRun

from tests.support import ANYHOW, QUICK, Lab, changed, wait_until

NOT_SPEED = (*ANYHOW, *QUICK)
# Load durations for joining nodes: how fast a node catches up depends on the machine.
LONG_ENOUGH_S = (12, 48, 192)
needs_links = pytest.mark.skipif(available().lacks is not None, reason=str(available().lacks))


def _settings(*texts: str) -> list[str]:
    return changed(*NOT_SPEED, *texts)


def _gate(run: SealedRun, gate_id: str) -> Gate:
    return next(gate for gate in run.manifest.gates if gate.id == gate_id)


def _perturbations(*entries: str) -> str:
    return f"perturbation=[{', '.join('{ ' + entry + ' }' for entry in entries)}]"


def test_a_node_recovers_from_each_kill_pause_and_restart(lab: Lab) -> None:
    done = _perturbations(
        'kind = "kill", nodes = [3], at_s = 1, for_s = 1',
        'kind = "pause", nodes = [3], at_s = 6, for_s = 1',
        'kind = "restart", nodes = [3], at_s = 10',
    )
    settings = _settings(done, "load.duration_s=11")
    run = lab.runs("cometbft/perturbations", "--version", "v1.0.1", *settings)[0]
    assert run.manifest.status is Status.VALID
    rows = run.samples("perturbation")
    assert rows["perturbation"].to_list() == ["1 kill", "2 pause", "3 restart"]
    for column in ("recovery_kill_s", "recovery_pause_s", "recovery_restart_s"):
        (value,) = rows[column].drop_nulls()
        assert value > 0
    # A planned perturbation is recorded, and does not count as a crash, a restart or a missed page.
    assert [gate.status for gate in run.manifest.gates] == [GateStatus.PASS] * len(run.manifest.gates)
    assert len(run.manifest.incidents) == 6
    assert all(incident.what.startswith("planned: node3") for incident in run.manifest.incidents)
    # Only perturbations that took place have a metric.
    metrics = {metric.id for metric in run.catalogue.metrics}
    assert "recovery_kill_s" in metrics
    assert not metrics & {"recovery_partition_s", "recovery_upgrade_s", "catch_up_s"}


def test_an_unplanned_crash_fails_a_run_with_perturbations(lab: Lab) -> None:
    """Otherwise the perturbations would hide a crash of the release."""
    done = _perturbations('kind = "pause", nodes = [3], at_s = 1, for_s = 2')
    started = lab.start("run", "cometbft/perturbations", "--version", "v1.0.1", *_settings(done, "load.duration_s=9"))
    wait_until(lambda: _stopped(lab), "node3 to be paused")
    wait_until(lambda: not _stopped(lab), "node3 to go on")
    victim = next(node for node in lab.node_processes() if node.cmdline()[-1].endswith("node2"))
    victim.kill()
    ended = started.finish()
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "no node died: node2 was killed by SIGKILL" in ended.stderr


def test_an_interruption_while_a_node_is_paused_leaves_nothing_behind(lab: Lab) -> None:
    """A paused process receives no signal except SIGKILL until it is resumed."""
    done = _perturbations('kind = "pause", nodes = [3], at_s = 0, for_s = 20')
    started = lab.start("run", "cometbft/perturbations", "--version", "v1.0.1", *_settings(done, "load.duration_s=30"))
    wait_until(lambda: _stopped(lab), "node3 to be paused")
    started.process.send_signal(signal.SIGINT)
    ended = started.finish()
    assert ended.returncode == 130, ended.stdout + ended.stderr
    assert lab.node_processes() == []
    assert list(lab.store_path.glob("runs/*")) == []


def _stopped(lab: Lab) -> bool:
    return any(node.status() == psutil.STATUS_STOPPED for node in lab.node_processes())


def test_an_upgraded_node_runs_the_other_version_in_its_existing_home(lab: Lab) -> None:
    done = _perturbations('kind = "upgrade", nodes = [3], at_s = 1, for_s = 1, version = "v1.0.1"')
    settings = _settings(done, "load.duration_s=6")
    run = lab.runs("cometbft/perturbations", "--version", "v0.38.17", *settings)[0]
    (recovery_s,) = run.samples("perturbation")["recovery_upgrade_s"]
    assert recovery_s > 0
    pages = run.events("scrapes").filter(pl.col("metric") == "process_start_time_seconds")
    assert pages.filter(pl.col("host") == "node3")["value"].n_unique() == 2
    assert any(incident.what.endswith("restarted with v1.0.1") for incident in run.manifest.incidents)


@needs_links
def test_a_disconnected_node_catches_up_and_two_halves_commit_no_block(lab: Lab) -> None:
    done = _perturbations(
        'kind = "disconnect", nodes = [3], at_s = 1, for_s = 5',
        'kind = "partition", nodes = [2, 3], at_s = 12, for_s = 3',
    )
    settings = _settings(done, "load.duration_s=16")
    run = lab.runs("cometbft/disconnections", "--version", "v1.0.1", *settings)[0]
    assert run.manifest.status is Status.VALID
    rows = run.samples("perturbation")
    cut, halves = (rows.filter(pl.col("perturbation") == name) for name in ("1 disconnect", "2 partition"))
    assert cut["recovery_disconnect_s"].drop_nulls().len() == 1
    assert cut["blocks_missed"].item() >= 1, "the other three made no block without the node"
    # Neither half has more than two thirds of the voting power. Only the block in progress may still be committed.
    assert halves["recovery_partition_s"].drop_nulls().len() == 4
    assert halves["blocks_missed"].to_numpy().max() <= 1
    assert run.manifest.counts["dropped peers"]["node3"] > 0, "no connection was interrupted"


def _joined(lab: Lab, shape: tuple[str, ...]) -> SealedRun:
    """A run in which all nodes joined before its load ended."""
    for seconds in LONG_ENOUGH_S:
        settings = _settings(*shape, f"load.duration_s={seconds}")
        (run,) = lab.runs("cometbft/rotating", "--version", "v1.0.1", *settings, code=(0, 4))
        if _gate(run, "joined").status is GateStatus.PASS:
            break
    return run


def test_nodes_without_data_join_and_catch_up_under_load(lab: Lab) -> None:
    shape = ("network.topology=full_mesh", "network.seeds=0", "rotating.joiners=2", "rotating.min_height=6")
    run = _joined(lab, shape)
    assert run.manifest.status is Status.VALID
    assert _gate(run, "joined").measured == "all 2 nodes"
    joiners = run.samples("joiner")
    assert joiners["host"].to_list() == ["joiner0", "joiner1"]
    for name in ("catch_up_s", "catch_up_blocks_per_s", "joiner_rss_max_bytes"):
        assert joiners[name].to_numpy().min() > 0
    # One node after the other: the second started after the first had stopped.
    began, took = joiners["time_s"].to_list(), joiners["catch_up_s"].to_list()
    assert began[1] >= began[0] + took[0]
    # The network continued in the meantime, and the target height was read again.
    heights = pl.read_parquet(run.path / "events" / "heights.parquet")
    assert heights["network_height"].max() > heights["network_height"].min()  # type: ignore[operator]
    for name in ("joiner0", "joiner1"):
        looks = heights.filter(pl.col("host") == name)
        assert looks["height"][-1] >= looks["network_height"][-1]
        assert not looks["catching_up"][-1]
    assert "joiner0" not in run.samples("host_second")["host"].unique().to_list()
    assert run.samples("joiner_second").height > 0


def test_a_node_that_cannot_join_under_load_fails_the_run(lab: Lab) -> None:
    shape = ("network.topology=full_mesh", "network.seeds=0", "rotating.joiners=1", "rotating.min_height=1000")
    failed = lab.run("run", "cometbft/rotating", "--version", "v1.0.1", *_settings(*shape), code=4)
    assert "joiner0 was not started before the load ended" in " ".join(failed.stdout.split())
