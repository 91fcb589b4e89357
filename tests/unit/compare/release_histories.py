"""Histories of releases with known changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from chainmark.compare.history import history_report
from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.epoch import Epoch
from chainmark.core.history_report import HistoryReport
from chainmark.core.metric import Metric, MetricGroup, Population

from tests.unit.compare.metric_cases import metric
from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

RELEASES, STEP_AT = 20, 12
VERSIONS = [f"v0.{number}" for number in range(RELEASES)]
METRICS = [metric(id=f"m{number}_s", label=f"figure {number}", gating=number < 2) for number in range(8)]
Values = Callable[[int, Metric], float]


def catalogue(metrics: Sequence[Metric]) -> Catalogue:
    return Catalogue(
        system="cometbft",
        title="x",
        populations=[Population(id="block", label="blocks", keys=["height"])],
        tables=[MetricGroup(id="all", title="All")],
        metrics=list(metrics),
    )


def one_run(version: str, day: int, values: Values, metrics: Sequence[Metric], error: float | None) -> SyntheticRun:
    started = f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}T00:00:00Z"
    described = manifest(version, 1, run_id=f"{version}-{day}", started_at=started, conditions={})
    described.configuration = described.configuration.model_copy(update={"effective": {}})
    summaries = {
        metric.id: MetricSummary(
            metric_id=metric.id,
            distribution=None,
            estimates={"mean": Estimate(value=values(day, metric), standard_error=error, method="made up")},
        )
        for metric in metrics
    }
    return SyntheticRun(described, catalogue(metrics), {}, summaries)


def report(
    values: Values,
    versions: Sequence[str] = VERSIONS,
    *,
    metrics: Sequence[Metric] = METRICS,
    epochs: Sequence[Epoch] = (),
    error: float | None = None,
) -> HistoryReport:
    runs = [one_run(version, day, values, metrics, error) for day, version in enumerate(versions)]
    return history_report(runs[-1], runs, epochs, "test")


def noisy(seed: int, deviation: float = 0.01) -> Values:
    random = np.random.default_rng(seed)
    return lambda day, metric: float(np.exp(random.normal(0.0, deviation)))


def stepped() -> HistoryReport:
    """A gating metric that is 10 % worse from one release on, and a diagnostic that drifts."""
    noise = noisy(1)

    def value(day: int, metric: Metric) -> float:
        step = 1.1 if metric.id == "m0_s" and day >= STEP_AT else 1.0
        return noise(day, metric) * step * (1.005**day if metric.id == "m3_s" else 1.0)

    return report(value)
