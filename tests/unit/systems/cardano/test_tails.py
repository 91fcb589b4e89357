"""From a distribution's tail to its blocks: the named blocks must match the samples."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from chainmark.compare import compare
from chainmark.core.metric import Better
from chainmark.stats.description import TAIL_SAMPLES
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.trails.followed import Tails
from chainmark.trails.follower import Follower
from chainmark.trails.tails import MOST_TRACES, tails_of
from chainmark.trails.trail import trails_of

from tests.unit.compare.synthetic_runs import sides
from tests.unit.store.trail_runs import SLOW, Timelines, catalogue, key_of, sealed

HOSTS, BLOCKS = 8, 12


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[SealedRun, SealedRun]:
    """Baseline and candidate. The candidate is slightly slower."""
    store = Store(tmp_path_factory.mktemp("store"))
    return sealed(store, Timelines(HOSTS, BLOCKS).fill()), sealed(
        store, Timelines(HOSTS, BLOCKS, factor=1.2).fill(), "v2"
    )


def _tails(baseline: SealedRun, candidate: SealedRun) -> Tails:
    followed = compare([baseline], [candidate], follow=tails_of, tool_version="0").followed
    assert isinstance(followed, Tails)
    return followed


@pytest.fixture(scope="module", name="tails")
def tails_of_the_runs(runs: tuple[SealedRun, SealedRun]) -> Tails:
    """The tails of both runs."""
    return _tails(*runs)


def test_a_tail_contains_the_largest_samples_of_different_blocks(
    tails: Tails, runs: tuple[SealedRun, SealedRun]
) -> None:
    for side, run in zip(("baseline", "candidate"), runs, strict=True):
        for metric_id, population in (("spread_s", "block"), ("fetch_s", "block_host")):
            tail = next(t for t in tails.tails if (t.metric_id, t.side) == (metric_id, side))
            frame = run.samples(population).drop_nulls(metric_id).group_by("block").agg(pl.col(metric_id).max())
            expected = sorted(frame.get_column(metric_id).to_list(), reverse=True)[:TAIL_SAMPLES]
            assert [sample.value for sample in tail.samples] == pytest.approx(expected, rel=1e-5)
            assert len({sample.key for sample in tail.samples}) == TAIL_SAMPLES
            assert tail.extreme == "slowest"
            by_key = dict(run.samples(population).select("block", "time_s").rows())
            assert all(sample.number == round(by_key[sample.key] / 20) for sample in tail.samples)
            assert all(sample.run_id == run.run_id and sample.run_id in sample.command for sample in tail.samples)
    fetches = [sample for tail in tails.tails if tail.metric_id == "fetch_s" for sample in tail.samples]
    assert {sample.place for sample in fetches} == {SLOW}


def test_only_gating_or_drawn_metrics_have_a_tail(tails: Tails) -> None:
    assert {tail.metric_id for tail in tails.tails} == {"spread_s", "fetch_s"}


def test_traces_belong_to_the_tails_and_fit_on_a_page(tails: Tails, runs: tuple[SealedRun, SealedRun]) -> None:
    assert 0 < len(tails.traces) <= MOST_TRACES
    samples = [sample for tail in tails.tails for sample in tail.samples if sample.trace_index is not None]
    for sample in samples:
        trace = tails.traces[sample.trace_index or 0]
        assert (trace.run_id, trace.key, trace.number) == (sample.run_id, sample.key, sample.number)
    assert {sample.trace_index for sample in samples} == set(range(len(tails.traces)))
    # The worst sample of every tail is shown, even if there is no space for others.
    assert all(tail.samples[0].trace_index is not None for tail in tails.tails)
    assert len({(trace.run_id, trace.key) for trace in tails.traces}) == len(tails.traces)
    by_id = {run.run_id: run for run in runs}
    for trace in tails.traces[:2]:
        run = by_id[trace.run_id]
        assert trace == Follower(run.scan_events("block_timelines"), trails_of(run.catalogue)[0], run.manifest).trace(
            trace.key
        )


def test_the_tail_of_a_higher_is_better_metric_is_the_lowest_samples(tmp_path: Path) -> None:
    timelines = Timelines(4, 6).fill()
    store = Store(tmp_path)
    selected = [sealed(store, timelines, version, charts=False) for version in ("v1", "v2")]
    for run in selected:
        metrics = [metric.model_copy(update={"better": Better.HIGHER}) for metric in catalogue(charts=False).metrics]
        run.__dict__["catalogue"] = catalogue(charts=False).model_copy(update={"metrics": metrics})
    tail = _tails(selected[0], selected[1]).tails[0]
    lowest = selected[0].samples("block").get_column("spread_s").sort()[:TAIL_SAMPLES].to_list()
    assert [sample.value for sample in tail.samples] == pytest.approx(lowest, rel=1e-5)
    assert tail.extreme == "lowest"


def test_runs_without_events_can_be_compared() -> None:
    """Runs of a system without trails, or in memory, have no events to trace."""
    baseline, candidate = sides(repetitions=2, seconds=30)
    assert compare(baseline, candidate, follow=tails_of, tool_version="0").followed is None


def test_a_block_of_a_rival_fork_is_a_separate_block(tails: Tails) -> None:
    keys = {sample.key for tail in tails.tails for sample in tail.samples}
    assert keys <= {key_of(f"b{height}") for height in range(1, BLOCKS + 1)} | {key_of("rival")}
