"""The whole analysis of a small cluster: what it writes into the run and what it reports about it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from chainmark.core.progress import Silent
from chainmark.store.files import hash_file
from chainmark.store.runs import Store
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.analyse import AnalysisResult, HostTrace, RecordedChain, analyse, catalogue_for
from chainmark.systems.cardano.filters import parse_conditions
from chainmark.systems.cardano.received import of_a_cluster
from chainmark.systems.cardano.rules import Rules
from chainmark.systems.cardano.tables import STAGES
from chainmark.trails.trail import trails_of

from tests.unit.systems.cardano.traces import (
    GENESIS,
    MS,
    Row,
    forger,
    key,
    observer,
    slot_ns,
    slot_row,
    troubled_cluster,
    troubled_slots,
    write_host,
)

RIGHT, PUBLISHED = Rules(), Rules(published=True)
ADDRESSES = {"node-0": ["10.0.0.1:3001"], "node-1": ["10.0.1.1:3001"], "node-2": ["10.0.2.1:3001", "10.0.2.1:3002"]}
REGIONS = {"node-0": "EU", "node-1": "US", "node-2": "EU"}
SHARES = ("host", "blocks_forged", "blocks_filtered_ratio", "blocks_chained_ratio")


def _cluster(folder: Path, blocks: int = 6) -> list[HostTrace]:
    """Three hosts. Host n mod 3 forges block n in slot 10 n. node-1 fetches from node-2, the others from node-0."""
    traces = []
    for place, name in enumerate(ADDRESSES):
        rows: list[Row] = []
        for number in range(blocks):
            source = "10.0.2.1:54321" if place == 1 else "10.0.0.1:3001"
            if number % 3 == place:
                rows.append(forger(number, 10 * number))
            else:
                rows.append(observer(number, 10 * number, late_ms=10 * place, fetched_from=source))
        slots = [slot_row(slot, cpu_percent=90.0 if slot % 10 < 2 else 5.0) for slot in range(10 * blocks)]
        traces.append(write_host(folder, name, rows, slots, ADDRESSES[name]))
    return traces


def _run(folder: Path) -> UnfinishedRun:
    return Store(folder / "store").create("cardano", "cardano/value", "10.6.2", {})


def _analysed(
    run: UnfinishedRun,
    traces: Sequence[HostTrace],
    filters: Sequence[str] = (),
    rules: Rules = RIGHT,
    regions: Mapping[str, str] | None = REGIONS,
) -> AnalysisResult:
    conditions = parse_conditions(filters, [], len(traces))
    chain = RecordedChain(traces)
    return analyse(traces, GENESIS, conditions, rules, regions, recorded=chain, run=run, progress=Silent())


def _samples(run: UnfinishedRun, population: str) -> pl.DataFrame:
    return pl.read_parquet(run.path / "samples" / f"{population}.parquet")


def test_every_population_of_the_catalogue_is_written_with_its_keys_and_metrics(tmp_path: Path) -> None:
    """A metric without a column would show "no data" in every run, without any visible reason."""
    catalogue = of_a_cluster(SYSTEM.catalogue())
    for regions in (REGIONS, None):
        run = _run(tmp_path)
        analysis = _analysed(run, _cluster(tmp_path), regions=regions)
        assert set(analysis.written) == {population.id for population in catalogue.populations}
        for population in catalogue.populations:
            frame = _samples(run, population.id)
            metrics = [metric.id for metric in catalogue.metrics_of(population.id)]
            assert sorted(frame.columns) == sorted([*population.keys, *metrics])
            assert {frame.schema[metric] for metric in metrics} == {pl.Float64}
            assert frame.height == analysis.written[population.id]
            order = [name for name in (population.time_key, *population.keys) if name]
            assert frame.equals(frame.sort(order, nulls_last=True, maintain_order=True))
        assert not list((run.path / "samples").glob("*.parts"))


def test_a_healthy_cluster_has_the_expected_facts(tmp_path: Path) -> None:
    analysis = _analysed(_run(tmp_path), _cluster(tmp_path), ["SlotGEq=10", "BMinimumAdoptions"])
    assert analysis.tip is not None
    assert (analysis.tip.block, analysis.tip.block_no) == (key(5), 5)
    assert (analysis.conditions, analysis.chain_blocks, analysis.accepted, analysis.rejected) == (2, 5, 4, 1)
    assert analysis.rejected_by == {"incomplete forging data": 0, "SlotGEq 10": 1, "BMinimumAdoptions 2": 0}
    assert (analysis.forged, analysis.battles, analysis.unadopted, analysis.bridged) == (6, 0, [], [])
    assert (analysis.heights_passed, analysis.coverage, analysis.imbalances) == (5, 1.0, [])
    assert analysis.observations == {"valid": 8}
    assert (analysis.slots_analysed, analysis.analysed_duration_s) == (49, 49)
    assert [(host.forged, host.chained, host.accepted) for host in analysis.hosts] == [(2, 2, 1), (2, 2, 2), (2, 1, 1)]
    assert [(host.slot_records, host.selected_slots, host.first_slot) for host in analysis.hosts] == [(60, 50, 10)] * 3


def test_hosts_have_their_shares_of_blocks(tmp_path: Path) -> None:
    run = _run(tmp_path)
    _analysed(run, _cluster(tmp_path), ["SlotGEq=10"])
    assert _samples(run, "host").select(SHARES).rows() == [
        ("node-0", 2.0, 0.5, 1.0),
        ("node-1", 2.0, 1.0, 1.0),
        ("node-2", 2.0, 1.0, 0.5),
    ]


def test_a_host_that_forged_nothing_has_no_share(tmp_path: Path) -> None:
    run = _run(tmp_path)
    traces = [*_cluster(tmp_path), write_host(tmp_path, "node-3", [])]
    analysis = _analysed(run, traces)
    assert _samples(run, "host").select(SHARES).row(3) == ("node-3", 0.0, None, None)
    assert analysis.hosts_without_slots == ["node-3"]


def test_routes_start_at_the_forger_and_links_at_the_peer(tmp_path: Path) -> None:
    run = _run(tmp_path)
    _analysed(run, _cluster(tmp_path))
    frame = _samples(run, "block_peer").select("block", "host", "region", "route", "link")
    # node-1 in US forges block 1. A port without a listener is still part of the peer's address.
    assert frame.filter(pl.col("block") == key(1)).rows() == [
        (key(1), "node-0", "EU", "US→EU", "EU→EU"),
        (key(1), "node-2", "EU", "US→EU", "EU→EU"),
    ]
    assert frame.filter(pl.col("block") == key(0))["link"].to_list() == ["EU→US", "EU→EU"]


def test_without_a_topology_there_are_no_regions(tmp_path: Path) -> None:
    run = _run(tmp_path)
    _analysed(run, _cluster(tmp_path), regions=None)
    assert _samples(run, "block_peer").select(pl.col("region", "route", "link").null_count()).row(0) == (10, 10, 10)
    assert _samples(run, "block_region").height == 0
    assert _samples(run, "block")["forger_region"].null_count() == 5


def test_the_adoption_of_a_region_is_computed_over_its_hosts(tmp_path: Path) -> None:
    run = _run(tmp_path)
    _analysed(run, _cluster(tmp_path))
    frame = _samples(run, "block_region").filter(pl.col("block") == key(0))
    # node-0 forged the block and adopted it after 50 ms, node-2 after 120; node-1, alone in US, after 110.
    assert frame.select("region", "region_adoption_p50_s", "region_adoption_p100_s").rows() == [
        ("EU", 0.12, 0.12),
        ("US", 0.11, 0.11),
    ]


def test_block_gaps_are_measured_between_forging_times_without_filters(tmp_path: Path) -> None:
    run = _run(tmp_path)
    traces = _cluster(tmp_path)
    late = pl.read_parquet(traces[1].block_timelines).with_columns(forged_ns=pl.col("forged_ns") + 250 * MS)
    late.write_parquet(traces[1].block_timelines)
    _analysed(run, traces, ["SlotGEq=20"])
    assert _samples(run, "chained")["chained_interval_s"].to_list() == [None, 10.25, 9.75, 10.0, 10.25]


def test_the_timeline_of_every_block_is_stored_with_its_outcome(tmp_path: Path) -> None:
    run = _run(tmp_path)
    traces = _cluster(tmp_path)
    extra = pl.read_parquet(traces[0].block_timelines)
    unknown = extra.head(1).with_columns(
        block=pl.lit("f" * 64), role=pl.lit("error"), error=pl.lit("e"), block_no=pl.lit(None, pl.Int64)
    )
    pl.concat([extra, unknown]).write_parquet(traces[0].block_timelines)
    analysis = _analysed(run, traces, ["SlotGEq=10"])
    timelines = pl.read_parquet(run.path / "events" / "block_timelines.parquet")
    assert timelines.height == 19
    assert analysis.hosts[0].errors == 1
    assert timelines["host"].to_list()[:3] == ["node-0", "node-1", "node-2"]
    assert timelines["block_no"].to_list()[-2:] == [5, None]
    by_block = timelines.group_by("block", maintain_order=True).agg(
        pl.col("on_chain", "accepted", "rejected_because").first(), pl.col("slot_start_ns").first()
    )
    assert by_block.row(0) == (key(0), True, False, "SlotGEq 10", slot_ns(0))
    assert by_block.row(1) == (key(1), True, True, None, slot_ns(10))
    assert by_block.row(5)[1:4] == (False, False, "the tip of the chain is left out")
    assert set(timelines["region"].to_list()) == {"EU", "US"}


def test_the_trail_references_existing_columns(tmp_path: Path) -> None:
    run = _run(tmp_path)
    _analysed(run, _cluster(tmp_path))
    columns = pl.read_parquet_schema(run.path / "events" / "block_timelines.parquet").keys()
    (trail,) = trails_of(SYSTEM.catalogue())
    named = [trail.key, trail.number, trail.main, trail.place, trail.role, trail.base, *trail.facts]
    named += [name for stage in trail.stages for name in (stage.time, stage.file, stage.line)]
    assert set(named) <= set(columns)
    assert [stage.id for stage in trail.stages] == list(STAGES)
    populations = {population.id: population for population in SYSTEM.catalogue().populations}
    assert all(trail.key in populations[name].keys for name in trail.populations)


def test_disagreeing_clocks_are_reported_by_the_worst_case(tmp_path: Path) -> None:
    traces = _cluster(tmp_path)
    timelines = pl.read_parquet(traces[2].block_timelines)
    ahead = pl.when(pl.col("role") == "observer").then(pl.col("noticed_ns") - 35 * MS).otherwise("noticed_ns")
    timelines.with_columns(noticed_ns=ahead).write_parquet(traces[2].block_timelines)
    analysis = _analysed(_run(tmp_path), traces)
    assert {contradiction.observer for contradiction in analysis.contradictions} == {analysis.hosts[2].name}
    assert max(contradiction.by_s for contradiction in analysis.contradictions) == 0.003


def test_an_accepted_block_that_no_host_adopted_is_listed(tmp_path: Path) -> None:
    rows = [forger(number, number, adopted_ns=None if number == 1 else slot_ns(number)) for number in range(3)]
    assert _analysed(_run(tmp_path), [write_host(tmp_path, "a", rows)]).unadopted == [key(1)]


@pytest.mark.parametrize("rules", [RIGHT, PUBLISHED])
def test_empty_input_gives_empty_samples_without_an_error(tmp_path: Path, rules: Rules) -> None:
    analysis = _analysed(
        _run(tmp_path), [write_host(tmp_path, "a", []), write_host(tmp_path, "b", [], [])], rules=rules
    )
    assert (analysis.chain_blocks, analysis.accepted, analysis.slots_analysed) == (0, 0, None)
    assert analysis.written == analysis.written | {"block": 0, "slot_host": 0, "host": 2}
    assert (analysis.tip, analysis.heights_passed, analysis.coverage) == (None, 0, None)


def test_each_sum_of_the_blocks_can_fail(tmp_path: Path) -> None:
    analysis = _analysed(_run(tmp_path), _cluster(tmp_path))
    assert analysis.imbalances == []
    assert replace(analysis, rejected=1).imbalances == ["5 blocks of the chain in 6 parts"]
    assert replace(analysis, bridged=[(3, key(3))]).imbalances == ["5 blocks of the chain by forger in 6 parts"]
    assert replace(analysis, heights_passed=4).imbalances == ["5 blocks of the chain at 4 heights"]


def test_a_block_without_a_forger_is_listed_and_measured_where_possible(tmp_path: Path) -> None:
    run = _run(tmp_path)
    traces = _cluster(tmp_path)
    for trace in traces:
        for path in (trace.block_timelines, trace.links):
            table = pl.read_parquet(path)
            condition = pl.col("role") != "forger" if "role" in table.columns else pl.col("parent").is_null()
            table.filter((pl.col("block") != key(3)) | condition).write_parquet(path)
    analysis = _analysed(run, traces)
    assert (analysis.bridged, analysis.chain_blocks, analysis.accepted, analysis.coverage) == ([(3, key(3))], 5, 5, 1.0)
    row = _samples(run, "block").filter(pl.col("block") == key(3)).row(0, named=True)
    assert (row["forger"], row["forge_started_s"], row["block_size_bytes"]) == (None, None, None)
    assert row["peer_notice_first_s"] == 0.03
    assert _samples(run, "chained")["chained_interval_s"].null_count() == 3


def test_the_published_mean_over_hosts_uses_the_29_lowest_means() -> None:
    catalogue = SYSTEM.catalogue()
    for hosts, limit in ((29, None), (30, 29), (52, 29)):
        stored = catalogue_for(catalogue, PUBLISHED, hosts)
        limits = {population.id: population.lowest_means for population in stored.populations}
        assert (limits["slot_host"], limits["span"], limits["block"], limits["host"]) == (limit, limit, None, None)
        assert catalogue_for(catalogue, RIGHT, hosts) == catalogue


_SCRIPT = """
import sys
from pathlib import Path
from tests.unit.systems.cardano.test_analyse import analysed_run
analysed_run(Path(sys.argv[1]))
"""


def analysed_run(folder: Path) -> UnfinishedRun:
    """Analyse a cluster with many faults."""
    cluster = troubled_cluster(5)
    traces = [
        write_host(folder, name, rows, troubled_slots(place), [f"10.0.0.{place}:3001"])
        for place, (name, rows) in enumerate(cluster.items())
    ]
    run = _run(folder)
    _analysed(run, traces, ["EpSlotGEq=3"], regions=dict.fromkeys(cluster, "EU"))
    return run


def test_any_number_of_threads_gives_the_same_bytes(tmp_path: Path) -> None:
    hashes = []
    for threads in ("1", "8"):
        folder = tmp_path / threads
        folder.mkdir()
        environment = {**os.environ, "POLARS_MAX_THREADS": threads, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", _SCRIPT, str(folder)], env=environment, check=True)
        (run,) = (folder / "store" / "runs").iterdir()
        hashes.append({str(path.relative_to(run)): hash_file(path) for path in sorted(run.rglob("*.parquet"))})
    assert len(hashes[0]) == 8
    assert hashes[0] == hashes[1]
