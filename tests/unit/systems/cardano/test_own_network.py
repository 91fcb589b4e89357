"""The model of a run uses its own cluster: the peers of each host, the regions, and the hosts that forged."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from chainmark.core.errors import UsageError
from chainmark.store.sealed import SealedRun
from chainmark.systems.capabilities import ModelRequest, ModelSource, WhatIf
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.explain import explain, network_doubts
from chainmark.systems.cardano.figures import ADOPTION, Figures
from chainmark.systems.cardano.lateness import lateness
from chainmark.systems.cardano.model.results import Explanation, Prediction
from chainmark.systems.cardano.network import LOGS_MISSING, dense_torus, own_cluster, size_shape
from chainmark.systems.cardano.predict import predict
from chainmark.systems.cardano.scenario import REGIONS, Scenario, Stages
from chainmark.systems.cardano.simulation import Simulator
from chainmark.systems.cardano.topology import ListedHost, ListedTopology
from chainmark.systems.cardano.trips import read_pings, stated_trips

from tests.unit.systems.cardano.clusters import changed, edit_json, ingest, make_cluster
from tests.unit.systems.cardano.made_up import QUIET

SLOTS = 900
# A cluster in regions that the benchmark does not have must not be modelled with the benchmark's network.
ELSEWHERE = {"node-0": "north", "node-1": "south"}
FIRST = ADOPTION[0]


def _edited_topology(folder: Path, pools: dict[str, int], regions: dict[str, str]) -> Path:
    content = json.loads((folder / "topology.json").read_text(encoding="utf-8"))
    for node in content["coreNodes"]:
        node["pools"] = pools.get(node["name"], node["pools"])
        node["region"] = regions.get(node["name"], node["region"])
    return changed(folder, folder.with_name("edited"), edit_json("topology.json", **content))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of two hosts with an ocean between them."""
    return make_cluster(tmp_path_factory.mktemp("pair") / "logs", hosts=2, slots=SLOTS, seed=3)


@pytest.fixture(scope="module")
def run(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> SealedRun:
    return ingest(tmp_path_factory.mktemp("store"), pair, filters=()).run


def _explained(run: SealedRun) -> Explanation:
    return explain(ModelSource("run", run=run), ModelRequest(blocks=640, seed=5), QUIET, SYSTEM.catalogue())


def _predicted(run: SealedRun, *changes: WhatIf) -> Prediction:
    return predict(ModelSource("run", run=run), ModelRequest(changes, blocks=640), QUIET, SYSTEM.catalogue())


def test_two_hosts_are_explained_as_two_hosts(run: SealedRun) -> None:
    """With the benchmark's 52 hosts, the model made them three times as slow as they were."""
    explanation = _explained(run)
    assert explanation.explained, explanation.sentence
    assert all(abs(row.error) < 0.05 for row in explanation.whole), [row.error for row in explanation.whole]
    notes = " ".join(explanation.notes)
    assert "the network is the run's own: 2 hosts in 2 regions" in notes
    assert "round trips EU–US: not known for this cluster; starting values from the reference's pings" in notes
    (trip,) = [row for row in explanation.round_trips if row.inferred]
    assert trip.inferred_s == pytest.approx(0.09017, abs=0.006)
    assert _predicted(run).scenarios[0].hosts == 2


def test_round_trips_without_pings_are_inferred_from_fetches(pair: Path, tmp_path: Path) -> None:
    folder = _edited_topology(pair, {}, ELSEWHERE)
    explanation = _explained(ingest(tmp_path, folder, filters=()).run)
    assert all(abs(row.error) < 0.06 for row in explanation.whole), [row.error for row in explanation.whole]
    (trip,) = explanation.round_trips
    assert (trip.link, trip.measured_s, trip.change) == ("north–south", None, None)
    assert trip.inferred_s == pytest.approx(0.09017, abs=0.012)
    assert "pings" not in explanation.sentence


def test_stated_and_pinged_round_trips_are_stored_with_the_run(pair: Path, tmp_path: Path) -> None:
    pings = "source,dest,size,time,source_region,dest_region\n" + "".join(
        f"node-{a},node-{1 - a},{size},{time}\n".replace("\n", ",EU,US\n")
        for a in (0, 1)
        for size, time in ((64, 80.0 + a), (65_515, 500.0))
    )
    folder = changed(pair, tmp_path / "pinged")
    (folder / "latency.csv").write_text(pings, encoding="utf-8")
    network = ingest(tmp_path / "a", folder, filters=()).run.document("network")
    assert network is not None
    assert [host["producers"] for host in network["hosts"]] == [["node-1"], ["node-0"]]
    assert network["round_trips"][0]["mean_s"] == pytest.approx(0.0805)
    stated = ingest(tmp_path / "b", pair, filters=(), settings=("network.rtt_s.EU-US=0.07",)).run.document("network")
    assert stated is not None
    assert stated["round_trips"] == [{"a": "EU", "b": "US", "mean_s": 0.07, "spread_s": 0.0}]
    with pytest.raises(UsageError, match="`EU-XX` is not a pair of regions"):
        ingest(tmp_path / "c", pair, filters=(), settings=("network.rtt_s.EU-XX=0.07",))


def test_a_run_without_a_topology_states_the_assumption(pair: Path, tmp_path: Path) -> None:
    folder = changed(pair, tmp_path / "bare", lambda path: (path / "topology.json").unlink())
    bare = ingest(tmp_path, folder, filters=()).run
    assert bare.document("network") is None
    explained = _explained(bare)
    notes = " ".join(explained.notes)
    assert explained.explained or "is assumed to be the benchmark's" in explained.sentence
    assert "assumed to be the benchmark cluster: 2 hosts in three regions" in notes
    assert "--topology FILE` to use the cluster's own" in notes


def test_hosts_without_logs_are_reported_as_a_cause(run: SealedRun) -> None:
    """Adoption by the logged hosts alone differs from adoption by the whole cluster."""
    own = own_cluster(run, replace(_figures(), hosts=1))
    assert own is not None
    (note,) = [note for note in own.notes if note.startswith(LOGS_MISSING)]
    assert note.endswith("of 1 host of the topology: adoption was measured on 1 host, but is modelled on 2")
    assert network_doubts(own.notes) == ["import the logs of every host of the topology"]


def test_an_older_run_with_only_regions_is_modelled_by_its_regions(run: SealedRun, tmp_path: Path) -> None:
    """Such runs are sealed and cannot change; the regions of their hosts are in the manifest."""
    regions = run.manifest.groups["host"].of
    assert [host.producers for host in dense_torus(regions)] == [["node-1"], ["node-0"]]
    assert len(dense_torus({f"node-{n}": ("EU", "US", "AP")[n % 3] for n in range(52)})[0].producers) == 6


def test_hosts_without_a_pool_do_not_forge_in_the_logs(tmp_path: Path) -> None:
    hosts = [
        {"name": f"node-{n}", "region": "EU", "producers": [f"node-{m}" for m in range(3) if m != n], "pools": n}
        for n in range(3)
    ]
    path = tmp_path / "topology.json"
    path.write_text(json.dumps({"coreNodes": hosts}), encoding="utf-8")
    folder = make_cluster(tmp_path / "logs", hosts=None, slots=600, topology=str(path))
    truth = pl.read_parquet(folder / "truth.parquet").filter(pl.col("role") == "forger")
    counted = dict(truth.group_by("host").len().iter_rows())
    assert "node-0" not in counted
    assert counted["node-2"] > counted["node-1"]
    own = own_cluster(ingest(tmp_path, folder, filters=()).run, _figures())
    assert own is not None
    assert isinstance(own.order.topology, ListedTopology)
    assert own.order.topology.hosts[0].pools == 0


def _figures() -> Figures:
    return Figures("made up", "10.6", "", {"block_size_bytes": 3000.0})


# --- fetches -----------------------------------------------------------------------------------------------------


def test_a_longer_fetch_between_two_hosts_delays_the_receiver(run: SealedRun) -> None:
    prediction = _predicted(run, WhatIf("fetch", "EU-US=+20ms"), WhatIf("fetch", "-30ms"), WhatIf("fetch", "x0.5"))
    row = next(row for row in prediction.rows if row.metric_id == FIRST)
    fetch = next(row for row in prediction.rows if row.metric_id == "peer_fetch_s")
    changes = [cell.change.value for cell in row.cells[1:] if cell.change is not None]
    assert changes[0] == pytest.approx(0.020, abs=0.001)
    assert changes[1] == pytest.approx(-0.030, abs=0.001)
    assert changes[2] == pytest.approx(-fetch.cells[0].modelled.value / 2.0, rel=0.01)


def test_a_fetch_of_a_given_duration_has_that_duration(run: SealedRun) -> None:
    prediction = _predicted(run, WhatIf("fetch", "200ms"))
    fetch = next(row for row in prediction.rows if row.metric_id == "peer_fetch_s")
    assert fetch.cells[1].modelled.value == pytest.approx(0.200, abs=0.002)
    parts = [part.values for part in prediction.contributions if part.scenario == 1]
    whole = next(row.cells[1].modelled.value for row in prediction.rows if row.metric_id == FIRST)
    assert math.fsum(values[0] for values in parts) == pytest.approx(whole, abs=1e-6)
    assert all(value >= 0.0 for values in parts for value in values)
    with pytest.raises(UsageError, match="nothing is fetched between these regions"):
        _predicted(run, WhatIf("fetch", "EU-EU=200ms"))


# --- sizes of blocks, late hosts ---------------------------------------------------------------------------------


def test_sizes_are_drawn_from_the_distribution_of_the_run() -> None:
    sizes = pl.Series([1000.0] * 50 + [3000.0] * 50)
    shape = size_shape(sizes)
    assert size_shape(pl.Series([5.0, 5.0])) == ()
    base = Scenario(seed=1, stages=Stages(), block_bytes=2000.0, block_bytes_shape=list(shape))
    simulated = Simulator(640).run(base)
    assert simulated.mean("block_size_bytes") == pytest.approx(2000.0, rel=0.03)


def test_a_spread_of_sizes_smooths_the_step_of_a_further_round_trip() -> None:
    """14.4 kB need one round trip on a cold connection, 15 kB two. The blocks of a cluster differ in size."""
    steps = []
    for spread in (0.0, 0.3):
        scenarios = [
            Scenario(seed=1, stages=Stages(), block_bytes=size, block_bytes_variation=spread)
            for size in (14_000.0, 16_000.0)
        ]
        below, above = (Simulator(640).run(scenario).mean("adoption_p80_s") for scenario in scenarios)
        steps.append(above / below - 1.0)
    assert steps[0] > 0.25
    assert 0.02 < steps[1] < 0.5 * steps[0]


def test_late_hosts_and_slow_blocks_are_found_in_the_stages_of_the_hosts() -> None:
    rows = [
        {"block": f"b{block}", "peer_adopted_s": 0.07 + (1.0 if block < 4 else 0.2 * ((host, block % 5) == (1, 0)))}
        for block in range(100)
        for host in range(10)
    ]
    late = lateness(pl.DataFrame(rows), 0.15)
    assert late is not None
    assert late.slow_share == 0.04
    assert late.slow_s == pytest.approx(1.0)
    # 19 of 960 hosts are late, each 150 ms beyond the threshold of 50 ms.
    assert late.late_s == pytest.approx(0.15)
    assert late.late_share == pytest.approx(19 / 960 * math.exp(0.05 / 0.15))
    assert lateness(pl.DataFrame(rows[:400]), 0.15) is None


def test_pings_and_stated_round_trips_must_belong_to_the_cluster(tmp_path: Path) -> None:
    topology = ListedTopology(hosts=[ListedHost(name="a", region="EU", producers=[])])
    path = tmp_path / "latency.csv"
    path.write_text("source,dest,time\nx,y,1.0\n", encoding="utf-8")
    with pytest.raises(UsageError, match="contains no pings between hosts of the topology"):
        read_pings(path, topology)
    path.write_text("one,two\n1,2\n", encoding="utf-8")
    with pytest.raises(UsageError, match="does not contain pings"):
        read_pings(path, topology)
    assert stated_trips({"eu-central-1-AP": 0.2}, REGIONS)[0].b == "AP"
