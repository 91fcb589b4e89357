"""A slow-down in generated logs is found by comparing their imports, and none is reported for equal logs.

All round trips in this network are equal, so a few minutes of it are as informative as hours of a real network. Only
the fetch is slowed down.
"""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest

from chainmark.compare.assemble import compare
from chainmark.core.comparison import Comparison, Outcome
from chainmark.core.verdict import Verdict
from chainmark.store.sealed import SealedRun

from tests.oracle.cluster_runs import generate, ingest

SETTINGS = (
    "chain.active_slots_coefficient=0.2",
    "workload.tps=0.05",
    "parameters.body_variation=0.3",
    "parameters.straggler_probability=0",
    "network.rtt_s=[[0.1,0.1,0.1],[0.1,0.1,0.1],[0.1,0.1,0.1]]",
)
SLOWED = (*SETTINGS, "parameters.fetch_factor=1.15")
FETCH = "peer_fetch_s"
SIDES = {"baseline": ((1, 2, 3), SETTINGS), "same": ((4, 5, 6), SETTINGS), "slowed": ((7, 8, 9), SLOWED)}


def true_fetch_s(folder: Path) -> float:
    """The mean duration of the fetches in the truth."""
    truth = pl.read_parquet(folder / "truth.parquet", columns=["requested_ns", "fetched_ns"])
    durations = (truth["fetched_ns"] - truth["requested_ns"]).drop_nulls().to_list()
    return math.fsum(durations) / len(durations) / 1e9


@pytest.fixture(scope="module")
def runs_by_side(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[SealedRun], float]]:
    """Three runs per side, and the true mean duration of a fetch."""
    by_side = {}
    for side, (seeds, settings) in SIDES.items():
        folders = [
            generate(tmp_path_factory.mktemp(side) / str(seed), hosts=6, slots=600, seed=seed, settings=settings)
            for seed in seeds
        ]
        store = tmp_path_factory.mktemp(f"{side}-store")
        fetch_s = math.fsum(true_fetch_s(folder) for folder in folders) / len(folders)
        by_side[side] = ([ingest(folder, store) for folder in folders], fetch_s)
    return by_side


def judged(runs_by_side: dict[str, tuple[list[SealedRun], float]], baseline: str, candidate: str) -> Comparison:
    return compare(runs_by_side[baseline][0], runs_by_side[candidate][0], tool_version="test")


def test_a_slowdown_of_the_fetch_is_found_and_named(runs_by_side: dict[str, tuple[list[SealedRun], float]]) -> None:
    slower = runs_by_side["slowed"][1] / runs_by_side["baseline"][1] - 1
    assert 0.13 < slower < 0.17, f"the true slow-down is {slower:.1%}"
    comparison = judged(runs_by_side, "baseline", "slowed")
    assert comparison.verdict is Verdict.FAIL, comparison.reasons
    assert "fetching a block takes" in comparison.sentence
    (fetch,) = (
        judgement
        for judgement in comparison.judgements
        if (judgement.metric_id, judgement.statistic) == (FETCH, "mean")
    )
    assert fetch.outcome is Outcome.WORSE
    assert fetch.low is not None
    assert fetch.high is not None
    assert fetch.low < slower < fetch.high, "the interval must contain the true slow-down"
    blamed = {
        judgement.metric_id
        for judgement in comparison.judgements
        if judgement.gating and judgement.outcome is Outcome.WORSE
    }
    unslowed = {"peer_request_s", "peer_adopted_s", "slot_to_announced_s", "forge_self_adopted_s"}
    assert not blamed & unslowed, "metrics that were not slowed down must not be reported"


@pytest.mark.parametrize(("baseline", "candidate"), [("baseline", "same"), ("same", "baseline")])
def test_nothing_fails_without_a_slowdown(
    runs_by_side: dict[str, tuple[list[SealedRun], float]], baseline: str, candidate: str
) -> None:
    comparison = judged(runs_by_side, baseline, candidate)
    assert comparison.verdict is not Verdict.FAIL, comparison.reasons
