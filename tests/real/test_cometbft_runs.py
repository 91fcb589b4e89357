"""Real networks: what a run must hold, on both versions, at the edge and beyond it."""

from __future__ import annotations

import pytest

from chainmark.core.manifest import GateStatus, Status
from chainmark.store.runs import SealedRun
from chainmark.systems.cometbft.profile import Network

from tests.support import Lab

# The machine may be busy with other tests: what is looked at here are books and shapes.
ANYHOW = (
    "--set", "gates.waited_share_max=1", "--set", "gates.schedule_lag_p99_max_s=5", "--set", "gates.blocks_min=1",
)  # fmt: skip
SHORT = ("--set", "load.warm_up_s=2", "--set", "load.duration_s=15", *ANYHOW)


def _gate(run: SealedRun, gate_id: str) -> GateStatus:
    return next(gate.status for gate in run.manifest.gates if gate.id == gate_id)


@pytest.mark.parametrize("version", ["v0.38.17", "v1.0.1"])
def test_beyond_saturation_the_books_balance(lab: Lab, version: str) -> None:
    """At 3,200 tx/s the mempool is full and most transactions are refused: each must be found in one class."""
    small = ("--set", "load.warm_up_s=2", "--set", "load.duration_s=8")
    run = lab.runs("cometbft/saturated", "--version", version, *small, code=None)[0]
    account, answers = run.manifest.counts["transactions"], run.manifest.counts["answers"]
    assert account["offered"] == 32_000 == sum(answers.values())
    assert account["offered"] == account["unsent"] + account["rejected"] + account["accepted"]
    assert account["accepted"] == account["committed"] + account["pending"] + account["lost"]
    assert _gate(run, "books") is GateStatus.PASS
    # Both versions' ways of saying that the mempool is full are understood.
    assert answers["mempool full"] > 0, "the network was not saturated: the test tests nothing"
    assert answers["rpc error"] == 0
    chain = run.manifest.counts["chain"]
    assert chain["ours"] == account["committed"]
    assert run.verify() == []


@pytest.mark.parametrize(
    "settings",
    [
        ("network.validators=3", "network.full_nodes=2", "network.topology=random", "network.peers_per_node=2"),
        ("load.schedule=poisson", "load.targets=[0, 1]", "load.connections=2", "load.rate=40", "load.method=async"),
    ],
    ids=["full nodes, random peers", "poisson, two targets, async"],
)
def test_other_shapes_of_network_and_load(lab: Lab, settings: tuple[str, ...]) -> None:
    changes = [part for setting in settings for part in ("--set", setting)]
    run = lab.runs("cometbft/demo", "--version", "v1.0.1", *SHORT, *changes)[0]
    assert run.manifest.status is Status.VALID
    account = run.manifest.counts["transactions"]
    assert account["committed"] == account["offered"] > 0
    shape = Network.model_validate(run.manifest.profile["network"])
    assert run.samples("host_second")["host"].n_unique() == shape.nodes
    # Whoever dials two, or everybody, is connected to at least two others all the time.
    assert run.samples("host_second")["node_peers"].drop_nulls().to_numpy().min() >= 2
