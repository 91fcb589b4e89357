"""Real networks with other configurations: seeds, two versions, absent validators, zones, vote extensions."""

from __future__ import annotations

import json
import os

import polars as pl
import pytest

from chainmark.core.manifest import Gate, GateStatus, Status
from chainmark.network.emulation import available
from chainmark.network.zones import load_zone_table
from chainmark.store.sealed import SealedRun

from tests.support import ANYHOW, QUICK, Lab, changed

# The machine may be busy with other tests: these tests check configurations, not performance.
SHORT = changed(*ANYHOW, *QUICK)
needs_links = pytest.mark.skipif(available().lacks is not None, reason=str(available().lacks))


def _gate(run: SealedRun, gate_id: str) -> Gate:
    return next(gate for gate in run.manifest.gates if gate.id == gate_id)


def test_nodes_that_know_a_seed_find_each_other(lab: Lab) -> None:
    shape = changed("network.validators=3", "network.full_nodes=1", "network.seeds=2")
    run = lab.runs("cometbft/ten-nodes", "--version", "v1.0.1", *SHORT, *shape)[0]
    assert run.manifest.status is Status.VALID
    hosts = run.samples("host_second")
    assert sorted(hosts["host"].unique()) == ["node0", "node1", "node2", "node3", "seed0", "seed1"]
    # Each node knows only one seed, which has no votes. It must find other peers to follow the chain.
    nodes = hosts.filter(pl.col("host").str.starts_with("node"))
    assert nodes.group_by("host").agg(pl.col("node_peers").max())["node_peers"].to_numpy().min() >= 1
    assert run.samples("host").drop_nulls("start_up_s").height == 4


def test_two_versions_run_in_one_network_and_their_incompatibilities_are_reported(lab: Lab) -> None:
    mixed = changed("network.other_version=v0.38.17", "network.other_share=0.5")
    run = lab.runs("cometbft/demo", "--version", "v1.0.1", *SHORT, *mixed, code=None)[0]
    assert run.manifest.conditions["versions"] == "2 × v1.0.1, 2 × v0.38.17"
    assert run.manifest.counts["transactions"]["committed"] > 0
    # v0.38 does not understand messages of v1. It drops the peer and dials it again, repeatedly.
    dropped = run.manifest.counts["dropped peers"]
    assert min(dropped.values()) > 0
    (warning,) = [text for text in run.manifest.warnings if "dropped peers" in text]
    assert f"dropped peers {sum(dropped.values()):,} times (node0, node1, node2, node3)" in warning
    assert "unknown message" in warning
    # Each version has its own configuration. The genesis is the same.
    homes = run.path / "raw" / "configuration"
    assert 'db_backend = "pebbledb"' in (homes / "node0" / "config.toml").read_text()
    assert 'db_backend = "goleveldb"' in (homes / "node1" / "config.toml").read_text()
    genesis = {(homes / name / "genesis.json").read_bytes() for name in ("node0", "node1", "node2", "node3")}
    assert len(genesis) == 1


def test_a_third_of_the_stake_is_missing_from_every_block(lab: Lab) -> None:
    # An absent proposer costs a second instead of three, and may be selected twice in a row.
    waiting = ("node.config.consensus.timeout_propose=1s", "load.duration_s=5")
    away = changed("network.absent_validators=1", "network.voting_powers=[67, 67, 67, 99]", *waiting)
    run = lab.runs("cometbft/demo", "--version", "v1.0.1", *SHORT, *away)[0]
    assert run.manifest.status is Status.VALID
    assert sorted(run.samples("host")["host"]) == ["node0", "node1", "node2"]
    assert run.samples("block")["block_missing_votes"].drop_nulls().to_numpy().min() >= 1
    genesis = json.loads((run.path / "raw" / "configuration" / "node0" / "genesis.json").read_text())
    assert sorted(int(validator["power"]) for validator in genesis["validators"]) == [67, 67, 67, 99]
    # The absent validator has a third of the turns to propose, and each costs a round.
    assert run.samples("block")["block_extra_rounds"].to_numpy().max() >= 1


def test_a_network_that_is_too_large_is_rejected_before_anything_starts(lab: Lab) -> None:
    if len(os.sched_getaffinity(0)) > 30:
        pytest.skip("this machine is big enough")
    failed = lab.run("run", "cometbft/two-hundred-nodes", "--version", "v1.0.1", code=5)
    assert "error: 200 nodes are too many for this machine" in failed.stderr
    assert "hint: use a smaller profile" in failed.stderr
    assert lab.store.unfinished() == []


@pytest.mark.quiet
@needs_links
def test_zones_delay_the_messages_between_nodes(lab: Lab) -> None:
    run = lab.runs("cometbft/four-zones", "--version", "v1.0.1", *SHORT)[0]
    gate = _gate(run, "round_trips")
    assert gate.status is GateStatus.PASS, gate.measured
    assert run.manifest.conditions["emulation"] in {"zones aws (switch)", "zones aws (netem)"}
    round_trips = pl.read_parquet(run.path / "events" / "round_trips.parquet")
    assert round_trips.height == 12
    # Twice the 38 ms of the table. Every block needs such a round trip.
    between = round_trips.filter((pl.col("source") == "node0") & (pl.col("destination") == "node3"))
    assert between["intended_s"].item() == pytest.approx(0.076)
    packets = run.manifest.counts["packets"]
    if "read" in packets:  # netem does not count its input
        assert packets["read"] == sum(count for name, count in packets.items() if name not in {"read", "unread"})
    assert packets["delivered"] > 0
    # The delays do not affect the load, the scraper and queries.
    assert run.manifest.counts["transactions"]["committed"] == run.manifest.counts["transactions"]["offered"]
    assert (run.path / "raw" / "links" / "link_stats.json").is_file()
    zones = run.manifest.groups["host"]
    assert zones.label == "zone"
    assert zones.of == dict(
        zip(sorted(set(run.samples("host_second")["host"])), load_zone_table("aws").zones, strict=False)
    )


def test_an_unknown_zone_table_is_named(lab: Lab) -> None:
    failed = lab.run("run", "cometbft/four-zones", "--version", "v1.0.1", "--set", "network.zones=mars", code=2)
    assert "there is no zone table `mars`" in failed.stderr


def test_vote_extensions_have_the_configured_size(lab: Lab) -> None:
    sizes = {}
    # On a busy machine a proposal may be missed, which costs three seconds.
    for size_bytes in (0, 4096):
        extended = changed(f"application.vote_extension_size_bytes={size_bytes}", "load.rate=20", "load.duration_s=5")
        run = lab.runs("cometbft/vote-extensions", "--version", "v1.0.1", *SHORT, *extended)[0]
        blocks = run.samples("block")
        carried = blocks["block_size_bytes"] - (blocks["block_transactions"] - 1) * 1024
        sizes[size_bytes] = float(carried.to_numpy().mean())
        # The transaction with the extensions is not part of the load, and is counted separately.
        assert run.manifest.counts["chain"]["not a payload"] >= blocks.height
    # Hexadecimal text of at least three of four votes.
    assert sizes[4096] - sizes[0] > 3 * 2 * 4000


def test_a_version_without_vote_extensions_of_a_chosen_size_is_rejected(lab: Lab) -> None:
    failed = lab.run("run", "cometbft/vote-extensions", "--version", "v0.38.17", *SHORT, code=2)
    assert "vote extensions of a chosen size are not available in CometBFT v0.38.17" in failed.stderr
    assert "hint: " in failed.stderr
    assert lab.store.unfinished() == []
