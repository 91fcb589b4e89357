"""The cost of a block for a host: the regression recovers known costs, and an import those of the simulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainmark.systems.cardano.block_work import LAGS, METRICS, work_per_event
from chainmark.systems.cardano.synth import PAYMENTS_USAGE

from tests.unit.systems.cardano.clusters import ingest, make_cluster

# The share of a simulated mutator's time that blocks use (crates/chainmark-sim, logs/resources.rs).
SHARE_OF_BLOCKS = 0.35
BLOCKS_PER_S = 0.1


@given(
    idle=st.floats(0, 100),
    costs=st.lists(st.floats(-50, 50), min_size=2 * LAGS, max_size=2 * LAGS),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=50)
def test_the_work_per_kind_of_block_is_found_for_any_idle_cost(idle: float, costs: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    events = np.stack([rng.random(400) < 0.05, rng.random(400) < 0.2], axis=1).astype(float)
    values = np.full(400, idle)
    for lag in range(LAGS):
        values[lag:] += events[: 400 - lag] @ np.array(costs[2 * lag : 2 * lag + 2])
    values[rng.integers(0, 400, 20)] = np.nan
    work = work_per_event(values, events)
    assert work is not None
    assert work == pytest.approx([sum(costs[0::2]), sum(costs[1::2])], abs=1e-6)


def test_two_kinds_that_always_coincide_are_not_separated() -> None:
    events = np.zeros((100, 2))
    events[::10] = 1.0
    assert work_per_event(np.arange(100.0), events) is None


def test_an_import_splits_the_runtime_by_forging_and_by_adopting(tmp_path: Path) -> None:
    """The simulation uses 0.18 s of mutator time per block on every host, and each block allocates memory."""
    logs = make_cluster(tmp_path / "logs", hosts=3, slots=2_000)
    summaries = ingest(tmp_path / "store", logs).run.summaries()
    means = {name: summaries[name].estimates["mean"].value for name in METRICS}
    spent_s = PAYMENTS_USAGE["mutator_percent"] / 100 * SHARE_OF_BLOCKS / BLOCKS_PER_S
    assert means["mutator_cpu_per_forging_s"] == pytest.approx(spent_s, rel=0.25)
    assert means["mutator_cpu_per_adopted_block_s"] == pytest.approx(spent_s, rel=0.15)
    assert means["allocated_per_adopted_block_mib"] == pytest.approx(means["allocated_per_forging_mib"], rel=0.3)


def test_a_host_with_few_blocks_has_no_estimate(tmp_path: Path) -> None:
    logs = make_cluster(tmp_path / "logs", hosts=3, slots=30)
    summaries = ingest(tmp_path / "store", logs).run.summaries()
    estimates = [estimate for name in METRICS for estimate in summaries[name].estimates.values()]
    assert estimates
    assert all(estimate.value is None for estimate in estimates)
