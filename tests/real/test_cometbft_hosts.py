"""Networks of real validators on the machines of a cluster: a scheduler and workers, each at its own address."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import polars as pl
import psutil
import pytest

import chainmark as cm
from chainmark.cluster import connection
from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import GateStatus, Status
from chainmark.core.progress import Silent
from chainmark.lab import hosts
from chainmark.network.emulation import available
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

from tests.real.cluster_demo import machines_apart
from tests.real.dask_cluster import LocalCluster, local_cluster, wait_for_workers, watching
from tests.real.mesh_servers import SIMD_PACKAGE, build
from tests.real.shifted_clock import clock_ahead
from tests.support import ANYHOW, QUICK, Lab, wait_until

VERSION = "v1.0.1"
SHORT = dict(setting.split("=") for setting in (*ANYHOW, *QUICK, "network.validators=3"))
AHEAD_S = 0.25
HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")

# Two scenarios, one of which needs network namespaces.
PLAN = """
system = "cometbft"
title = "Small"
description = "Two scenarios."

[[scenario]]
id = "together"
title = "Fixed load"
question = "Is it slower?"
method = "A short load."
profile = "cometbft/demo"
repetitions = 1
judges = []
cores = 1

[[scenario]]
id = "apart"
title = "Disconnection"
question = "Do nodes reconnect?"
method = "Their connections are cut."
profile = "cometbft/disconnections"
repetitions = 1
judges = []
needs = ["namespaces"]
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A scheduler and three machines."""
    with _cluster() as dask_cluster:
        yield dask_cluster


@contextmanager
def _cluster() -> Iterator[LocalCluster]:
    with local_cluster() as dask_cluster, watching(dask_cluster) as seen:
        for number in (2, 3, 4):
            dask_cluster.start_worker(number)
        wait_for_workers(seen, {"w2", "w3", "w4"})
        yield dask_cluster


def _killing(cluster: LocalCluster, worker: str) -> Silent:
    """A listener that kills a worker when the load begins."""

    class Killing(Silent):
        def stage(self, name: str) -> None:
            if name.startswith("offering"):
                cluster.kill(worker)

    return Killing()


def nodes_on_hosts() -> list[psutil.Process]:
    """The processes of nodes whose home is an agent's."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if "start" in command and any("/chainmark-host-" in word for word in command):
            found.append(process)
    return found


def test_five_validators_on_three_hosts_are_measured_like_those_on_one(cluster: LocalCluster, tmp_path: Path) -> None:
    """Two hosts run two nodes each, at different ports. One node is killed and restarted on its host."""
    disturbed = {
        **SHORT,
        "network.validators": 5,
        "load.duration_s": 5,
        "perturbation": "[{kind='kill', nodes=[4], at_s=1}]",
    }
    (run,) = cm.run("cometbft/demo", VERSION, settings=disturbed, on=cluster.address, store=tmp_path / "store")
    manifest = run.manifest
    assert run.is_valid, [(gate.label, gate.measured) for gate in manifest.failed_gates]
    facts = {fact.label: fact.value for fact in manifest.facts}
    assert facts["Hosts"] == "127.0.0.2 (2 nodes), 127.0.0.3 (2 nodes), 127.0.0.4 (1 node)"
    assert all(f"Clock of {host}" in facts for host in HOSTS)
    counts = manifest.counts["transactions"]
    assert counts["committed"] == counts["accepted"] == counts["offered"] == 200 * 6
    by_node = run.samples("host_second").group_by("host").len()
    assert set(by_node["host"]) == {f"node{number}" for number in range(5)}
    assert run.samples("host_second")["node_cpu_cores"].null_count() < by_node["len"].sum()
    gates = {gate.id: gate.status for gate in manifest.gates}
    assert (gates["clocks"], gates["recovered"]) == (GateStatus.PASS, GateStatus.PASS)
    assert run.samples("perturbation")["recovery_kill_s"].null_count() == 0
    assert {path.name.partition(".")[0] for path in (run.path / "raw" / "logs").iterdir()} == set(by_node["host"])
    assert nodes_on_hosts() == []


def test_an_experiment_on_hosts_ends_with_a_verdict(cluster: LocalCluster, lab: Lab) -> None:
    settings = [f"--set={key}={value}" for key, value in SHORT.items()]
    ended = lab.run(
        "experiment", "cometbft/demo", "--baseline", VERSION, "--candidate", VERSION, "--repeat", "1",
        "--profile", "none", "--on", cluster.address, *settings, code={0, 1, 3},
    )  # fmt: skip
    assert "A/A" in ended.stdout
    assert len(lab.store.sealed()) == 2
    assert nodes_on_hosts() == []
    # Without `--on`, further runs would be made on this machine, and compared with those.
    (identifier,) = {place.id for run in lab.store.sealed() if (place := run.manifest.experiment)}
    lab.run("experiment", "--resume", identifier, "--more", "1", code={0, 1, 3})
    assert [_hosts_of(run) for run in lab.store.sealed()] == [set(HOSTS)] * 4
    assert {run.manifest.conditions["machines"] for run in lab.store.sealed()} == {_machines()}


def test_the_loads_of_a_saturation_test_run_on_hosts(cluster: LocalCluster, tmp_path: Path) -> None:
    loads = {**SHORT, "saturation.connections": "[1]", "saturation.rates": "[50, 100]"}
    made = cm.saturation("cometbft/saturation", VERSION, settings=loads, on=cluster.address, store=tmp_path / "store")
    assert not made.is_interrupted
    runs = Store(tmp_path / "store").sealed()
    assert len(runs) == 2
    assert all(_hosts_of(run) == set(HOSTS) for run in runs)
    assert nodes_on_hosts() == []


def test_a_search_for_a_release_runs_on_hosts(cluster: LocalCluster, tmp_path: Path) -> None:
    found = cm.bisect(
        "cometbft/demo", good="v0.38.17", bad=VERSION, metric="node_goroutines", most_runs=4, settings=SHORT,
        on=cluster.address, store=tmp_path / "store",
    )  # fmt: skip
    assert found.kind == "bisect"
    runs = Store(tmp_path / "store").sealed()
    assert {run.manifest.subject.version for run in runs} == {"v0.38.17", VERSION}
    assert all(_hosts_of(run) == set(HOSTS) for run in runs)


def test_a_qualification_on_hosts_names_what_it_does_not_cover(cluster: LocalCluster, tmp_path: Path) -> None:
    plan = tmp_path / "small.toml"
    plan.write_text(PLAN, encoding="utf-8")
    made = cm.qualify(
        "cometbft", baseline="v0.38.17", candidate=VERSION, plan=str(plan), settings=SHORT, on=cluster.address,
        store=tmp_path / "store",
    )  # fmt: skip
    assert made.document is not None
    runs = Store(tmp_path / "store").sealed()
    assert len(runs) == 2
    assert all(_hosts_of(run) == set(HOSTS) for run in runs)
    lacking = {item["id"]: item["lacking"] for item in made.document.result.model_dump()["scenarios"]}
    assert lacking == {"together": [], "apart": ["all nodes on one machine (namespaces)"]}


def test_generators_on_hosts_of_their_own_offer_one_load_by_one_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two machines run the nodes; two others load them. The clock of one of these is a quarter of a second ahead."""
    monkeypatch.setattr(hosts, "REPLACED_WITHIN_S", 0.5)
    settings = {**SHORT, "network.validators": 4, "load.connections": 3, "load.rate": 40}
    with local_cluster() as own, watching(own) as seen:
        own.start_worker(2)
        own.start_worker(3)
        own.start_worker(4, for_load=True)
        own.start_worker(5, for_load=True, environment=clock_ahead(tmp_path, AHEAD_S))
        wait_for_workers(seen, {"w2", "w3", "w4", "w5"})
        (run,) = cm.run("cometbft/demo", VERSION, settings=settings, on=own.address, store=tmp_path / "store")
        with pytest.raises(EnvironmentFailure, match=r"127\.0\.0\.5 is lost"):
            cm.run(
                "cometbft/demo", VERSION, settings=settings, on=own.address, store=tmp_path / "lost",
                progress=_killing(own, "w5"),
            )  # fmt: skip
        wait_until(lambda: nodes_on_hosts() == [], "the end of all nodes")
    facts = {fact.label: fact.value for fact in run.manifest.facts}
    assert facts["Hosts"] == "127.0.0.2 (2 nodes), 127.0.0.3 (2 nodes)"
    assert facts["Load from"].startswith("127.0.0.4 and 127.0.0.5; 127.0.0.4 observes the commits; latencies")
    assert re.match(r"2(4\d|5\d)(\.\d+)? ms ahead", facts["Clock of 127.0.0.5"]), facts
    errors_s = run.manifest.measurement_errors
    assert 0.0 < errors_s["tx_latency_s"] < 0.1
    assert errors_s["tx_latency_header_s"] > 0.24  # by the nodes' clocks, whose offsets were not applied
    counts = run.manifest.counts["transactions"]
    assert counts["committed"] == counts["offered"] == 3 * 40 * 3
    sealed = Store(tmp_path / "store").select(run.id)[0]
    transactions = sealed.events("transactions").join(sealed.events("blocks"), on="height")
    latency_s = (pl.col("observed_ns") - pl.col("due_ns")).mean() / 1e9
    latencies = transactions.group_by("connection").agg(latency_s=latency_s).sort("connection")
    assert latencies["connection"].to_list() == [0, 1, 2]
    # The connections take turns, so without the conversion two of three latencies would differ by 250 ms.
    low_s, high_s = latencies["latency_s"].sort().to_list()[::2]
    assert high_s - low_s < 0.1
    seconds = run.samples("second")
    assert seconds["generator_run_queue_share"].null_count() < seconds.height
    # The processors of every host were measured, so CPU time can be compared with runs on other machines.
    assert run.manifest.conditions["cpu_time"] == "corrected for the speed of the processors"
    assert seconds["machine_speed"].drop_nulls().to_numpy().min() > 0.01


@pytest.mark.skipif(not available().backends, reason=str(available().lacks))
def test_distant_hosts_with_other_clocks_are_measured(tmp_path: Path) -> None:
    """Each host has a network namespace, with the delays of its zone. The clock of one is a quarter of a second ahead.

    The nodes are in Go, which reads the kernel's clock itself: only the samples of that host are from its other clock.
    """
    with machines_apart({"w2": clock_ahead(tmp_path, AHEAD_S)}) as apart:
        (run,) = cm.run("cometbft/demo", VERSION, settings=SHORT, on=apart.address, store=tmp_path / "store")
    clocks = [fact.value for fact in run.manifest.facts if fact.label.startswith("Clock of")]
    is_ahead = [re.match(r"2(4\d|5\d)(\.\d+)? ms ahead", value) is not None for value in clocks]
    assert is_ahead == [False, True, False], clocks
    [trips] = [fact.value for fact in run.manifest.facts if fact.label == "Round trips between hosts"]
    moments = r"1\d(\.\d+)? ms to [789]\d(\.\d+)? ms, median [789]\d(\.\d+)? ms, (before|after) the load"
    assert re.fullmatch(f"{moments}; {moments}", trips), trips
    assert {gate.id: gate.status for gate in run.manifest.gates}["clocks"] is GateStatus.PASS
    assert run.manifest.measurement_errors.keys() == {"tx_latency_header_s", "tx_latency_next_header_s"}
    counts = run.manifest.counts["transactions"]
    assert counts["committed"] == counts["offered"] == 200 * 3
    # Seconds of the load: those of the host with the other clock are the same ones.
    seconds = run.samples("host_second").group_by("host").agg("time_s")["time_s"].to_list()
    assert seconds == [seconds[0]] * 3


def test_a_chain_of_another_program_runs_on_hosts(cluster: LocalCluster, tmp_path: Path) -> None:
    """Each node has further ports than CometBFT's, so each needs a machine of its own."""
    simd = str(build("simd", SIMD_PACKAGE))
    settings: dict[str, object] = {
        **SHORT, "load.rate": 50, "network.start_timeout_s": 120, "application.adapter.start.ports": [9090],
    }  # fmt: skip
    chain = partial(cm.run, "cometbft/cosmos-sdk", simd, on=cluster.address, store=tmp_path / "store")
    (run,) = chain(settings=settings)
    assert run.is_valid, [(gate.label, gate.measured) for gate in run.manifest.failed_gates]
    counts = run.manifest.counts["transactions"]
    assert counts["committed"] == counts["offered"] == 50 * 3
    assert _hosts_of(Store(tmp_path / "store").select(run.id)[0]) == set(HOSTS)
    with pytest.raises(EnvironmentFailure, match="each of the 4 nodes opens port 9090, so no two can share a host"):
        chain(settings={**settings, "network.validators": 4})


def test_an_application_with_a_process_of_its_own_runs_on_hosts(cluster: LocalCluster, tmp_path: Path) -> None:
    """One host has two nodes, each with its application. One application stops its node, and is named."""
    command = [str(build("faulty-app")), "-address", "{address}", "-node", "{node}", "-home", "{home}"]
    run_with = partial(cm.run, "cometbft/demo", VERSION, on=cluster.address, store=tmp_path / "store")
    settings: dict[str, object] = {**SHORT, "network.validators": 4}
    (run,) = run_with(settings={**settings, "application.command": command})
    assert run.is_valid, [(gate.label, gate.measured) for gate in run.manifest.failed_gates]
    counts = run.manifest.counts["transactions"]
    assert counts["committed"] == counts["offered"] == 200 * 3
    logs = {path.name for path in (run.path / "raw" / "logs").iterdir()}
    assert {f"node{number}.application.log.zst" for number in range(4)} < logs
    faulty = [*command, "-only", "node2", "-panic-at", "2"]
    (run,) = run_with(settings={**settings, "load.rate": 100, "application.command": faulty})
    assert any("the application of node2 exited" in incident.what for incident in run.manifest.incidents)
    assert not run.is_valid
    (tmp_path / "rules.txt").touch()
    with pytest.raises(UsageError, match=r"names the file `.*rules\.txt`, which the other machines do not have"):
        run_with(settings={**settings, "application.command": [*command, str(tmp_path / "rules.txt")]})


def test_votes_are_extended_on_hosts(cluster: LocalCluster, tmp_path: Path) -> None:
    """The application reads its folder from a configuration in the node's home."""
    settings = {**SHORT, "network.validators": 3, "load.rate": 20, "load.duration_s": 5}
    (run,) = cm.run(
        "cometbft/vote-extensions", VERSION, settings=settings, on=cluster.address, store=tmp_path / "store"
    )
    assert run.is_valid, [(gate.label, gate.measured) for gate in run.manifest.failed_gates]
    assert run.manifest.counts["chain"]["not a payload"] >= run.samples("block").height


def _machines() -> str:
    return f"{len(HOSTS)} machines of {units.plural(len(os.sched_getaffinity(0)), 'core')}"


def _hosts_of(run: SealedRun) -> set[str]:
    (value,) = [fact.value for fact in run.manifest.facts if fact.label == "Hosts"]
    return {host.partition(" ")[0] for host in value.split(", ")}


def test_a_run_is_repeated_when_its_lost_host_is_replaced(tmp_path: Path) -> None:
    seen: list[str] = []
    with _cluster() as own:

        class Replacing(Silent):
            def stage(self, name: str) -> None:
                seen.append(name)
                if name.startswith("offering") and "w3" in own.workers:
                    own.kill("w3")
                elif "waiting for its replacement" in name:
                    own.start_worker(3)
                    own.workers["again"] = own.workers.pop("w3")

        (run,) = cm.run(
            "cometbft/demo", VERSION, settings=SHORT, on=own.address, store=tmp_path / "store", progress=Replacing()
        )
        assert run.is_valid
        assert _hosts_of(Store(tmp_path / "store").select(run.id)[0]) == set(HOSTS)
        wait_until(lambda: nodes_on_hosts() == [], "the end of all nodes")
    [lost] = [name for name in seen if "waiting" in name]
    assert re.match(r"the worker on 127\.0\.0\.3 is lost, .* \(20\d\d-\d\d-\d\dT.*Z\)", lost), lost
    assert len(Store(tmp_path / "store").sealed()) == 1


def test_a_lost_host_ends_the_run_with_its_name_and_leaves_no_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "REPLACED_WITHIN_S", 0.5)
    with _cluster() as own:
        with pytest.raises(EnvironmentFailure, match=r"127\.0\.0\.3 is lost, and with it what ran there"):
            cm.run(
                "cometbft/demo", VERSION, settings=SHORT, on=own.address, store=tmp_path / "store",
                progress=_killing(own, "w3"),
            )  # fmt: skip
        wait_until(lambda: nodes_on_hosts() == [], "the end of the other hosts' nodes")
    assert Store(tmp_path / "store").sealed() == []


def test_a_worker_that_hangs_ends_the_run_although_the_scheduler_still_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection is open, and its scheduler would keep it for five minutes."""
    monkeypatch.setattr(hosts, "REPLACED_WITHIN_S", 0.5)
    monkeypatch.setattr(connection, "SILENT_S", 4.0)
    with _cluster() as own:

        class Stopping(Silent):
            def stage(self, name: str) -> None:
                if name.startswith("offering"):
                    own.workers["w3"].send_signal(signal.SIGSTOP)

        begun = time.monotonic()
        with pytest.raises(EnvironmentFailure, match=r"127\.0\.0\.3 is lost, and with it what ran there"):
            cm.run(
                "cometbft/demo", VERSION, settings=SHORT, on=own.address, store=tmp_path / "store", progress=Stopping()
            )
        assert time.monotonic() - begun < 0.9 * connection.CALL_S  # no call waited as long as it may
        own.kill("w3")
        wait_until(lambda: nodes_on_hosts() == [], "the end of all nodes")
    assert Store(tmp_path / "store").sealed() == []


def test_a_version_that_does_not_start_on_hosts_fails_the_run_with_its_logs(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    """As on one machine, it is evidence against the version, and its log says why."""
    settings = {**SHORT, "node.config.consensus.timeout_commit": "never"}
    cm.run("cometbft/demo", VERSION, settings=settings, on=cluster.address, store=tmp_path / "store")
    (run,) = Store(tmp_path / "store").sealed()
    assert run.manifest.status is Status.FAILED
    assert "invalid duration" in run.manifest.failed_gates[0].measured
    assert run.manifest.failed_gates[0].measured.endswith("while the network started, 3 times")
    assert {path.name for path in (run.path / "raw" / "logs").iterdir()} == {f"node{n}.log.zst" for n in range(3)}
    assert nodes_on_hosts() == []


def test_a_killed_client_leaves_no_node_on_any_host(cluster: LocalCluster, lab: Lab) -> None:
    settings = [f"--set={key}={value}" for key, value in {**SHORT, "load.duration_s": 600}.items()]
    started = lab.start("run", "cometbft/demo", "--version", VERSION, "--on", cluster.address, *settings)
    started.wait_for_load()
    assert len(nodes_on_hosts()) == 3
    started.process.send_signal(signal.SIGKILL)
    started.finish()
    wait_until(lambda: nodes_on_hosts() == [], "the end of all nodes")


def test_what_hosts_cannot_do_is_refused_before_anything_runs(cluster: LocalCluster, tmp_path: Path) -> None:
    for settings, message in (
        ({"network.links": "namespaces"}, "links between nodes are emulated only on one machine"),
        ({"network.validators": 200}, "200 nodes are too many for 3 hosts"),
    ):
        with pytest.raises((UsageError, EnvironmentFailure)) as refused:
            cm.run("cometbft/demo", VERSION, settings=settings, on=cluster.address, store=tmp_path / "store")
        assert message in refused.value.message
    with pytest.raises(UsageError, match="only on this machine"):
        cm.run("benchmark/command", "/bin/true", on=cluster.address, store=tmp_path / "store")
