"""Real networks: the content of a run, on both versions, at and beyond saturation."""

from __future__ import annotations

import tomllib

import polars as pl
import pytest

from chainmark.core.manifest import GateStatus, Status
from chainmark.store.sealed import SealedRun
from chainmark.systems.cometbft.profile import NodeNetwork

from tests.support import ANYHOW, QUICK, Lab, changed

# Fills the mempool, however fast the network is.
SATURATED = ("node.config.mempool.size=1000", "load.warm_up_s=1", "load.duration_s=2")


def _gate(run: SealedRun, gate_id: str) -> GateStatus:
    return next(gate.status for gate in run.manifest.gates if gate.id == gate_id)


@pytest.mark.parametrize("version", ["v0.38.17", "v1.0.1"])
def test_transaction_counts_add_up_beyond_saturation(lab: Lab, version: str) -> None:
    """At 3,200 tx/s the mempool is full and most transactions are rejected. Each must be in exactly one class."""
    run = lab.runs("cometbft/saturated", "--version", version, *changed(*SATURATED), code=None)[0]
    account, answers = run.manifest.counts["transactions"], run.manifest.counts["answers"]
    assert account["offered"] == 9_600 == sum(answers.values())
    assert account["offered"] == account["unsent"] + account["rejected"] + account["accepted"]
    assert account["accepted"] == account["committed"] + account["pending"] + account["lost"]
    assert _gate(run, "accounting") is GateStatus.PASS
    # Both versions report a full mempool in different words. Both must be recognised.
    assert answers["mempool full"] > 0, "the network was not saturated, so this test checks nothing"
    assert not [warning for warning in run.manifest.warnings if "mempool is full" in warning]
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
def test_other_network_and_load_shapes_make_valid_runs(lab: Lab, settings: tuple[str, ...]) -> None:
    changes = changed(*ANYHOW, *QUICK, *settings)
    run = lab.runs("cometbft/demo", "--version", "v1.0.1", *changes)[0]
    assert run.manifest.status is Status.VALID
    account = run.manifest.counts["transactions"]
    assert account["committed"] == account["offered"] > 0
    shape = NodeNetwork.model_validate(run.manifest.profile["network"])
    hosts = run.samples("host_second")
    assert hosts["host"].n_unique() == shape.nodes
    assert hosts.group_by("host").agg(pl.col("node_peers").max())["node_peers"].to_numpy().min() >= 1
    # A peer that was not ready is dialled again only seconds later. Therefore check which peers each node dials.
    dials = shape.peers_per_node if shape.topology == "random" else shape.nodes - 1
    for path in (run.path / "raw" / "configuration").glob("*/config.toml"):
        assert len(tomllib.loads(path.read_text(encoding="utf-8"))["p2p"]["persistent_peers"].split(",")) == dials
