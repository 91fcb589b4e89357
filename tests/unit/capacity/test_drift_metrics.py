"""A release that slows down or leaks memory during a soak is worse than a stable one, even if both meet the SLA."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from chainmark.capacity.drift import Drift, Drifting
from chainmark.capacity.drift_metrics import drift_samples, with_drifts
from chainmark.capacity.loadtest import EndpointResult
from chainmark.capacity.metrics import load_catalogue_of
from chainmark.capacity.model import LevelKind, LoadLevel, StepOutcome
from chainmark.capacity.service_level import Sla
from chainmark.compare import compare
from chainmark.core.comparison import Outcome as Ended
from chainmark.stats.trend import trend_of

from tests.unit.capacity.queueing import ENDPOINT
from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

LEVEL = LoadLevel(LevelKind.RATE, 80.0)
NAME = "block_soak_at_80_per_s"
STRETCHES = 60


def _drifts(rises: dict[Drifting, float], seed: int, scatter: float = 0.02) -> list[Drift]:
    """The drifts of one soak, from lines through scattered values."""
    rng, drifts = np.random.default_rng(seed), []
    for what, rise in rises.items():
        if what is Drifting.ERRORS:
            unit, values = 1.0, 0.001 + rise * np.linspace(0.0, 1.0, STRETCHES) + rng.normal(0.0, 1e-4, STRETCHES)
        else:
            values = (1.0 + rise * np.linspace(0.0, 1.0, STRETCHES)) * rng.lognormal(0.0, scatter, STRETCHES)
        trend = trend_of(list(values))
        assert trend is not None
        unit = 1.0 if what is Drifting.ERRORS else trend.begin
        low, high = (end / unit for end in trend.rise_interval)
        limit = None if what is Drifting.MEMORY else 0.5
        drifts.append(
            Drift(what, LEVEL, seed, 7200.0, trend.begin, trend.rise / unit, low, high, limit, StepOutcome.PASS)
        )
    return drifts


def _run(version: str, repetition: int, rises: dict[Drifting, float], scatter: float = 0.02) -> SyntheticRun:
    side = "candidate" if version.startswith("v1") else "baseline"
    seed = repetition + 10 * len(side)
    results = [EndpointResult(ENDPOINT, Sla())]
    drifts = {ENDPOINT.id: _drifts(rises, seed, scatter)}
    catalogue = with_drifts(load_catalogue_of("cometbft", "API", results), results, drifts)
    described = manifest(version, repetition, side=side, position=repetition, seed=seed)
    samples = drift_samples(results, drifts)
    metrics = [metric for metric in catalogue.metrics if metric.population == NAME]
    assert {column for column in samples[NAME].columns if column != "attempt"} == {metric.id for metric in metrics}
    populations = [population for population in catalogue.populations if population.id == NAME]
    return SyntheticRun(
        described, catalogue.model_copy(update={"metrics": metrics, "populations": populations}), samples
    )


STEADY = dict.fromkeys(Drifting, 0.0)
WORSE = {Drifting.P50: 0.0, Drifting.P99: 0.4, Drifting.ERRORS: 0.01, Drifting.MEMORY: 0.3}


def _judged(candidate: dict[Drifting, float]) -> dict[str, Ended]:
    comparison = compare(
        [_run("v0.38.17", at, STEADY) for at in (1, 2, 3)], [_run("v1.0.1", at, candidate) for at in (1, 2, 3)],
        tool_version="test",
    )  # fmt: skip
    return {judgement.metric_id.removeprefix(f"{NAME}_"): judgement.outcome for judgement in comparison.judgements}


def test_a_figure_that_rises_over_a_soak_is_worse_in_a_comparison() -> None:
    assert set(_judged(STEADY).values()) == {Ended.EQUAL}
    assert _judged(WORSE) == {
        "p50_end_share": Ended.EQUAL,
        "p99_end_share": Ended.WORSE,
        "rise_of_error_share": Ended.WORSE,
        "memory_end_share": Ended.WORSE,
    }


def test_only_drifts_limited_by_the_sla_decide() -> None:
    gating = {
        metric.id.removeprefix(f"{NAME}_"): metric.gating for metric in _run("v1.0.1", 1, STEADY).catalogue.metrics
    }
    assert gating == {
        "p50_end_share": True, "p99_end_share": True, "rise_of_error_share": True, "memory_end_share": False
    }  # fmt: skip


def test_the_metrics_of_a_soak_have_margins_and_noise() -> None:
    """With one run on each side, the assumed noise and the margin decide."""
    metrics = {metric.id.removeprefix(f"{NAME}_"): metric for metric in _run("v1.0.1", 1, STEADY).catalogue.metrics}
    figures = [
        (name, metric.kind.value, metric.unit, metric.margin, metric.floor, metric.default_noise, metric.order)
        for name, metric in metrics.items()
    ]
    assert sorted(figures) == [
        ("memory_end_share", "positive", "fraction", 0.1, 0.0, 0.03, 43),
        ("p50_end_share", "positive", "fraction", 0.1, 0.0, 0.05, 40),
        ("p99_end_share", "positive", "fraction", 0.1, 0.0, 0.05, 41),
        ("rise_of_error_share", "difference", "fraction", 0.1, 0.001, 0.03, 42),
    ]
    assert {source for metric in metrics.values() for source in metric.source} == {"load steps"}
    assert metrics["rise_of_error_share"].description.startswith(
        "The share of failed requests at the end of a line through sixty intervals of the step (Theil-Sen), less that "
    )


def test_every_endpoint_has_the_metrics_of_its_soaks() -> None:
    results = [EndpointResult(replace(ENDPOINT, id=name), Sla()) for name in ("block", "search")]
    drifts = {result.endpoint.id: _drifts(STEADY, 1) for result in results}
    catalogue = with_drifts(load_catalogue_of("http", "API", results), results, drifts)
    for population in (NAME, "search_soak_at_80_per_s"):
        metrics = [metric.id for metric in catalogue.metrics if metric.population == population]
        assert sorted(metrics) == sorted(drift_samples(results, drifts)[population].columns[1:])


@pytest.mark.parametrize(("scatter", "is_known"), [(0.02, True), (0.5, False)])
def test_an_undetermined_line_is_not_a_sample(scatter: float, is_known: bool) -> None:
    """With one run per side its noise would be assumed, and chance would decide whether it is worse or better."""
    samples = _run("v1.0.1", 1, STEADY, scatter).frames[NAME]
    assert (samples[f"{NAME}_p50_end_share"].to_list()[0] is not None) is is_known


@pytest.mark.parametrize(("what", "half_width"), [(Drifting.P50, 0.1), (Drifting.ERRORS, 0.001)])
def test_a_line_is_a_sample_up_to_a_half_width_of_its_interval(what: Drifting, half_width: float) -> None:
    """10 % of the initial value, or 0.1 percentage points of the requests, on either side."""
    values = []
    for width in (0.96 * half_width, 1.04 * half_width):
        drift = Drift(what, LEVEL, 1, 7200.0, 0.01, 0.5, 0.5 - width, 0.5 + width, None, StepOutcome.PASS)
        frame = drift_samples([EndpointResult(ENDPOINT, Sla())], {ENDPOINT.id: [drift]})[NAME]
        values.append(frame.to_series(1).item())
        assert frame.dtypes == [pl.Int64, pl.Float64], "also without a value"
    assert values == [0.5 if what is Drifting.ERRORS else 1.5, None]


def test_a_step_without_memory_readings_has_a_row_without_memory() -> None:
    results, first = [EndpointResult(ENDPOINT, Sla())], _drifts(STEADY, 1)
    drifts = [*first[:3], *_drifts(STEADY, 2)]
    frame = drift_samples(results, {ENDPOINT.id: drifts})[NAME]
    assert frame["attempt"].to_list() == [1, 2]
    memory = frame[f"{NAME}_memory_end_share"].to_list()
    assert memory[0] is None
    assert memory[1] == pytest.approx(1.0, abs=0.05)
