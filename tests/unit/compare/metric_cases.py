"""Metrics, sides and runs with only the fields that one judgement requires."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import polars as pl

from chainmark.compare.estimates import SideEstimates
from chainmark.compare.inputs import LoadedRun
from chainmark.compare.judge import Bench
from chainmark.compare.noise import Archive
from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.manifest import Scalar
from chainmark.core.metric import Better, Kind, Metric

from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

ONE_LOOK = 0.048  # error at each end of an interval: 5 %, of which 4 % are reserved for added runs
ALONE = Bench()  # no archive, and the first look


def archived(history: Sequence[SyntheticRun], compared: Collection[str] = ()) -> Bench:
    """The first look, with an archive of these runs."""
    return Bench(Archive(compared, manifest("v1", 1), history))


def metric(kind: Kind = Kind.POSITIVE, better: Better = Better.LOWER, **settings: object) -> Metric:
    """A metric judged by its mean; ``settings`` replace its fields."""
    defaults = {
        "id": "x_s", "label": "x", "unit": "s", "kind": kind, "better": better, "statistics": ["mean"],
        "judged_by": ["mean"], "table": "all", "order": 1, "population": "block", "description": "x", "source": ["x"],
    }  # fmt: skip
    return Metric.model_validate(defaults | settings)


def side(values: Sequence[float | None], error: float = 0.0, total: float = 0.0, exposure: int = 100) -> SideEstimates:
    """A side's runs. None is a run that cannot estimate the statistic."""
    present = [value for value in values if value is not None]
    logs = [error / abs(value) if value else 0.0 for value in present]
    absence = "" if present else "no samples"
    return SideEstimates(list(values), present, [error] * len(present), logs, total, exposure, absence)


def spread(centre: float, deviation: float) -> list[float]:
    """Three runs whose logarithms have exactly this standard deviation."""
    return [centre * math.exp(deviation * step) for step in (-1.0, 0.0, 1.0)]


def counts(totals: Sequence[float], exposure: int = 1000) -> SideEstimates:
    """Runs with these total counts in ``exposure`` samples each."""
    return side([total / exposure for total in totals], 0.0, sum(totals), exposure * len(totals))


def stub_run(
    version: str, value: float, number: int, workload: dict[str, Scalar | list[Scalar]] | None = None
) -> SyntheticRun:
    """A run without samples whose metric ``x_s`` has this mean."""
    described = manifest(version, 1, seed=number, run_id=f"{version}-{number}")
    if workload is not None:
        described.workload = workload
    empty = Catalogue(system="x", title="x", populations=[], tables=[], metrics=[])
    frames: dict[str, pl.DataFrame] = {}
    estimate = Estimate(value=value, standard_error=None, method="stub")
    summary = MetricSummary(metric_id="x_s", distribution=None, estimates={"mean": estimate})
    return SyntheticRun(described, empty, frames, {"x_s": summary})


def loaded_run(version: str, value: float, number: int) -> LoadedRun:
    """The same run, as a comparison loads it."""
    return LoadedRun(stub_run(version, value, number))
