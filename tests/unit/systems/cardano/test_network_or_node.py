"""The parts of a change of adoption caused by the network and by the nodes, on clusters with a known cause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from chainmark.compare import compare
from chainmark.compare.decide import decide
from chainmark.compare.inputs import LoadedRun
from chainmark.compare.split import PartEffect, splits_of
from chainmark.core.comparison import Comparison, Split, Splits
from chainmark.store.sealed import SealedRun
from chainmark.systems.capabilities import ModelRequest, ModelSource, WhatIf
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.explain import explain
from chainmark.systems.cardano.figures import ADOPTION, FETCH
from chainmark.systems.cardano.formula import fit_formula
from chainmark.systems.cardano.model.explanation_document import explanation_document
from chainmark.systems.cardano.predict import predict
from chainmark.systems.cardano.split.parted import BLOCKS_LEAST, causes_of, lacks, published_parts, ways_of
from chainmark.systems.cardano.split.paths import COLUMNS, Ways, trace
from chainmark.systems.cardano.synth import synthesise

from tests.unit.systems.cardano.clusters import changed, ingest, logs_request
from tests.unit.systems.cardano.made_up import QUIET, measured, profile, report, write

P50, P80 = ADOPTION[:2]
HOSTS, SLOTS = 12, 1600
# No block is slow everywhere and no host is late by chance: hardly anything differs except the intended change.
CALM = (
    "chain.active_slots_coefficient=0.1",
    "workload.tps=0.2",
    "parameters.slow_block_probability=0",
    "parameters.straggler_probability=0",
)
FAR = "network.rtt_s=[[0.000198,0.09017,0.32288],[0.09017,0.000254,0.19999],[0.32288,0.19999,0.000149]]"
SAME_LINKS = "network.rtt_spread_s=[[0,0,0],[0,0,0],[0,0,0]]"
SLOW_ADOPTION, SLOW_BODIES = "stages.adopted_s=0.1", "parameters.body_service_s=0.0315"
Make = Callable[..., SealedRun]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A run of a calm cluster with these settings; equal settings give the same run."""
    cached_runs: dict[tuple[object, ...], SealedRun] = {}

    def make_run(*settings: str, seed: int = 1, hosts: int = HOSTS, slots: int = SLOTS) -> SealedRun:
        key = (settings, seed, hosts, slots)
        if key not in cached_runs:
            folder = tmp_path_factory.mktemp("cluster")
            order = logs_request(
                folder / "logs", slots=slots, seed=seed, hosts=hosts, settings=(*CALM, *settings), threads=2
            )
            synthesise(order, QUIET)
            cached_runs[key] = ingest(folder / "store", folder / "logs", filters=()).run
        return cached_runs[key]

    return make_run


def _compared(baseline: list[SealedRun], candidate: list[SealedRun]) -> Comparison:
    return compare(baseline, candidate, parts=causes_of, tool_version="test")


def _splits(baseline: SealedRun, candidate: SealedRun) -> Splits:
    """The splits of a comparison, without its charts."""
    decided = decide([baseline], [candidate])
    splits = splits_of(causes_of((decided.baseline, decided.candidate)), decided.judgements, decided.catalogue)
    assert splits is not None
    return splits


def _split(baseline: SealedRun, candidate: SealedRun, metric: str) -> Split:
    split = _splits(baseline, candidate).split_of(metric, "mean")
    assert split is not None
    return split


def _change(split: Split, part: str) -> float:
    return next(split_part.change for split_part in split.parts if split_part.id == part)


# --- from logs: the cause is known -----------------------------------------------------------------------------------


def test_the_steps_of_a_path_add_up_to_the_measured_adoption(make: Make) -> None:
    """Two methods for one value: the analysis sorts adoptions, this one adds the steps along the path."""
    run = make()
    ways = ways_of(LoadedRun(run))
    assert ways is not None
    assert ways.traced == ways.blocks > 100
    for place, metric in enumerate(ADOPTION):
        sealed = run.summaries()[metric].distribution
        assert sealed is not None
        parts = ways.parts(place, 0.02)
        assert parts.sum(axis=1).mean() == pytest.approx(sealed.mean, rel=1e-9)
        assert parts.sum(axis=1).max() == pytest.approx(sealed.max, abs=0.05), "blocks must not be mixed"


def test_a_longer_route_is_attributed_to_the_network(make: Make) -> None:
    split = _split(make(), make(FAR), P80)
    assert split.change > 0.05
    assert _change(split, "network") == pytest.approx(split.change, abs=0.006)
    assert abs(_change(split, "node")) < 0.006
    assert _change(split, "length") > 0.0, "a detour through another region counts as network"


@pytest.mark.parametrize(("setting", "part", "least"), [(SLOW_ADOPTION, "adopting", 0.02), (SLOW_BODIES, "hops", 0.01)])
def test_slower_nodes_are_attributed_to_the_nodes(make: Make, setting: str, part: str, least: float) -> None:
    """A table cannot show slower bodies: every fetch takes longer, including fetches between regions."""
    split = _split(make(), make(setting), P80)
    assert split.change > least
    assert _change(split, "node") == pytest.approx(split.change, abs=0.006)
    assert _change(split, part) == pytest.approx(split.change, abs=0.008)
    assert abs(_change(split, "network")) < 0.006


def test_combined_changes_have_the_parts_of_the_single_changes(make: Make) -> None:
    both = _split(make(), make(FAR, SLOW_ADOPTION), P80)
    route, node = (_split(make(), make(setting), P80) for setting in (FAR, SLOW_ADOPTION))
    assert _change(both, "network") == pytest.approx(route.change, abs=0.01)
    assert _change(both, "node") == pytest.approx(node.change, abs=0.01)


def test_equal_clusters_on_another_day_differ_within_the_intervals(make: Make) -> None:
    """Other forgers and other blocks on the same links: the intervals cover the remaining difference."""
    splits = _splits(make(SAME_LINKS), make(SAME_LINKS, seed=2)).splits
    assert len(splits) == len(ADOPTION)
    for part in [part for split in splits for part in split.of()]:
        middle, half = (part.low + part.high) / 2.0, (part.high - part.low) / 2.0
        assert 0.002 < half < 0.07
        assert abs(middle) < 2.0 * half, "the change is beyond three standard errors"


def test_the_parts_add_up_to_the_judged_change_for_every_run(make: Make) -> None:
    comparison = _compared([make(), make(seed=2)], [make(FAR), make(FAR, seed=2)])
    assert comparison.splits is not None
    judged = {judgement.metric_id: judgement for judgement in comparison.judgements if judgement.statistic == "mean"}
    assert [split.metric_id for split in comparison.splits.splits] == list(ADOPTION)
    for split in comparison.splits.splits:
        assert split.basis == "between 2 + 2 runs"
        assert split.change == judged[split.metric_id].change
        assert sum(part.change for part in split.of()) == pytest.approx(split.change, abs=1e-12)
        for part in split.of():
            assert sum(inner.change for inner in split.of(part.id)) == pytest.approx(part.change, abs=1e-12)
    without = decide([make(), make(seed=2)], [make(FAR), make(FAR, seed=2)])
    assert (without.finding.verdict, without.judgements) == (comparison.verdict, comparison.judgements), (
        "the split must not influence the verdict"
    )


# --- where a split is impossible -------------------------------------------------------------------------------------


def _edited(run: SealedRun, **changes: pl.Expr) -> Ways:
    timelines = run.scan_events("block_timelines").select(COLUMNS).with_columns(**changes)
    return trace(timelines, switches_count=True)


def test_the_reason_for_a_missing_split_is_reported(make: Make) -> None:
    run = make()
    assert "regions are unknown" in lacks(_edited(run, region=pl.lit(None, dtype=pl.String)))
    assert "all hosts of a run are in one region" in lacks(_edited(run, region=pl.lit("EU")))
    assert "do not show which host" in lacks(_edited(run, fetched_host=pl.lit(None, dtype=pl.String)))
    assert "has no events" in lacks(None)
    every_ninth = pl.when(pl.col("slot") % 9 > 0).then("announced_ns")
    assert "can be traced back to their forgers" in lacks(_edited(run, announced_ns=every_ninth))
    assert "no host had a body from its own region" in lacks(_edited(run, region=pl.col("host")))
    assert lacks(_edited(run)) == ""


def test_few_blocks_or_one_host_are_not_enough(make: Make) -> None:
    short = make(slots=150)
    splits = _splits(short, make(slots=150, seed=2))
    assert splits.splits == []
    assert f"at least {BLOCKS_LEAST} are needed" in splits.unknown_reason
    alone = pl.col("host") == "node-0"
    timelines = make().scan_events("block_timelines").filter(alone).select(COLUMNS)
    assert lacks(trace(timelines, switches_count=True))


def test_single_untraceable_blocks_are_omitted_and_the_sums_still_hold(make: Make) -> None:
    """A lost line removes its block from the split. The parts are computed from the other blocks."""
    whole, gappy = _edited(make()), _edited(make(), fetched_ns=pl.when(pl.col("slot") % 30 > 0).then("fetched_ns"))
    assert whole.traced * 0.95 < gappy.traced < whole.traced
    assert lacks(gappy) == ""
    lost, parts_with_gaps = (ways.parts(1, 0.02).mean(axis=0) for ways in (whole, gappy))
    assert parts_with_gaps == pytest.approx(lost, abs=0.01)


def test_logs_without_a_topology_of_another_cluster_cannot_be_divided(make: Make, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    order = logs_request(folder, slots=400, seed=1, hosts=4, settings=CALM, threads=2)
    synthesise(order, QUIET)
    bare = changed(folder, tmp_path / "bare", lambda path: (path / "topology.json").unlink())
    splits = _splits(ingest(tmp_path / "a", bare, filters=()).run, ingest(tmp_path / "b", folder, filters=()).run)
    assert "the hosts' regions are unknown" in splits.unknown_reason
    assert splits.splits == []


# --- by the stages ---------------------------------------------------------------------------------------------------


def _figures(*settings: str) -> dict[str, float]:
    return measured(profile("cardano/value", *settings).scenario(1), blocks=1664)


def _published(baseline: dict[str, float], candidate: dict[str, float]) -> dict[str, PartEffect]:
    parted = published_parts(baseline, candidate)
    (p80,) = [change for change in parted.changes if change.metric_id == P80]
    return {effect.part.id: effect for effect in p80.effects}


def test_stages_distinguish_route_and_node_on_simulated_networks() -> None:
    base = _figures()
    far = "network.rtt_s=[[0.000198,0.09017,0.28288],[0.09017,0.000254,0.19999],[0.28288,0.19999,0.000149]]"
    for setting, part in ((far, "network"), ("stages.adopted_s=0.1", "node")):
        other = _figures(setting)
        change, effects = other[P80] - base[P80], _published(base, other)
        moved = {id_: effect.candidate - effect.baseline for id_, effect in effects.items()}
        assert change > 0.02
        assert moved[part] == pytest.approx(change, abs=effects[part].half_width)
        assert moved[part] > 0.7 * change
        assert moved["network"] + moved["node"] == pytest.approx(change, abs=1e-12)


def test_a_table_of_other_blocks_or_without_fetches_is_not_divided() -> None:
    base = _figures()
    small = {**base, "block_size_bytes": 20_000.0}
    assert "there is no formula" in published_parts(small, small).reason
    assert FETCH in published_parts(base, {key: value for key, value in base.items() if key != FETCH}).reason


def test_constant_fetch_times_give_no_formula() -> None:
    runs = [{**_figures(), "slot_to_announced_s": 0.1 + 0.01 * number} for number in range(4)]
    with pytest.raises(ValueError, match="all alike"):
        fit_formula("value-only", runs)


# --- predictions and explanations ------------------------------------------------------------------------------------


def test_a_changed_route_is_network_and_a_changed_stage_is_node() -> None:
    source = ModelSource("profile", profile=profile("cardano/value"))
    changes = (WhatIf("rtt", "EU-AP=+20ms"), WhatIf("stage", "fetched-to-adopted=+20ms"))
    prediction = predict(source, ModelRequest(changes, blocks=640), QUIET, SYSTEM.catalogue())
    route, node = (
        next(split for split in prediction.splits[place].splits if split.metric_id == P80) for place in (0, 1)
    )
    assert _change(route, "network") > 0.8 * route.change > 0.01
    assert _change(node, "node") > 0.95 * node.change > 0.01
    for split in (route, node):
        assert sum(part.change for part in split.of()) == pytest.approx(split.change, abs=1e-9)


def test_the_logs_and_the_model_agree_on_the_network_part(make: Make) -> None:
    """Two independent methods: hop by hop through the logs, and the critical paths of the simulator."""
    explanation = explain(ModelSource("run", run=make()), ModelRequest(blocks=640), QUIET, SYSTEM.catalogue())
    rows = {(row.metric_id, row.part): row for row in explanation.shares}
    for metric in (P50, P80):
        for part, share in (("network", 0.05), ("node", 0.25)):
            row = rows[metric, part]
            assert row.measured == pytest.approx(row.modelled.value, rel=share), (metric, part)
        mean = sum(rows[metric, part].measured for part in ("network", "node"))
        assert mean == pytest.approx(make().summaries()[metric].distribution.mean, rel=1e-9)  # type: ignore[union-attr]


def test_a_report_of_two_versions_is_split_against_its_first_version(tmp_path: Path) -> None:
    base, other = _figures(), _figures(SLOW_ADOPTION)
    path = write(tmp_path / "report.json", report({"10.5": base, "10.6": other}))
    explanation = explain(ModelSource("report", document=path), ModelRequest(blocks=64), QUIET, SYSTEM.catalogue())
    assert explanation.split is not None
    assert explanation.split.title == "Network or node, against 10.5"
    split = explanation.split.split_of(P80, "mean")
    assert split is not None
    assert _change(split, "node") > 0.7 * split.change > 0.01
    shown = explanation_document(explanation).text(100)
    assert "Network or node, against 10.5" in shown
    first = ModelSource("report", document=path, version="10.5")
    assert explain(first, ModelRequest(blocks=64), QUIET, SYSTEM.catalogue()).split is None
