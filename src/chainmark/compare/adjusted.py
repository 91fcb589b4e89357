"""Means of runs under equal conditions, if the catalogue names covariates that differ between all runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from chainmark.compare.estimates import SideEstimates, collect, combined
from chainmark.compare.inputs import LoadedRun
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.metric import Covariate, CovariateKind, Kind, Metric, Population
from chainmark.core.wording import enumerated
from chainmark.stats.centiles import FloatArray, IntArray
from chainmark.stats.covariates import adjusted_means, day_waves

# Samples this close in time may depend on each other; at most a twentieth of a short run.
_CLUSTER_S = 3600.0
_CLUSTERS = 20
# Share of the hours of the day on either side that both must have.
_COMMON_HOURS = 0.5


@dataclass(frozen=True)
class Sides:
    """The values of a metric for the judgement: both sides, a note on the adjustment, and why it is not possible."""

    baseline: SideEstimates
    candidate: SideEstimates
    note: str = ""
    unlike: str = ""


def sides_of(
    catalogue: Catalogue, metric: Metric, statistic: str, baseline: Sequence[LoadedRun], candidate: Sequence[LoadedRun]
) -> Sides:
    """Both sides of one statistic; a mean with covariates is adjusted to equal covariates, with its own error."""
    plain = Sides(collect(baseline, metric, statistic), collect(candidate, metric, statistic))
    if statistic != "mean" or not metric.adjusted_for or plain.baseline.absence or plain.candidate.absence:
        return plain
    population = catalogue.population(metric.population)
    covariates = covariates_of(metric, population)
    named = [population.time_key, metric.id, *(covariate.column for covariate in covariates)]
    columns = list(dict.fromkeys(name for name in named if name is not None))
    runs = [*baseline, *candidate]
    frames = [_samples(run, metric, columns) for run in runs]
    if any(frame.is_empty() for frame in frames):
        return plain
    is_candidate = np.arange(len(runs)) >= len(baseline)
    labels = enumerated([covariate.label for covariate in covariates])
    unlike = _unlike_hours(frames, is_candidate, covariates)
    if unlike:
        return replace(plain, unlike=unlike)
    adjusted = _adjusted(plain, frames, is_candidate, metric, population)
    if adjusted is None:
        return replace(plain, unlike=f"too few samples to separate the version from {labels}")
    before, after = combined(metric, plain.baseline), combined(metric, plain.candidate)
    raw = f", unadjusted {units.percent(after / before - 1.0)}" if before and after is not None else ""
    return replace(adjusted, note=f"at equal {labels}{raw}")


def covariates_of(metric: Metric, population: Population) -> list[Covariate]:
    """The covariates of a metric."""
    return [covariate for covariate in population.covariates if covariate.column in metric.adjusted_for]


def _samples(run: LoadedRun, metric: Metric, columns: Sequence[str]) -> pl.DataFrame:
    frame = run.samples(metric.population, columns)
    return frame if frame.is_empty() else frame.select(pl.col(columns).cast(pl.Float64)).drop_nulls().drop_nans()


def _unlike_hours(frames: Sequence[pl.DataFrame], is_candidate: np.ndarray, covariates: Sequence[Covariate]) -> str:
    """Why the sides' times of day cannot be adjusted; "" if they can."""
    for covariate in covariates:
        if covariate.kind is CovariateKind.DAY:
            hours: list[set[int]] = [set(), set()]
            for frame, side in zip(frames, is_candidate, strict=True):
                hours[int(side)] |= set((frame[covariate.column] // 3600).cast(pl.Int64).to_list())
            common, either = hours[0] & hours[1], hours[0] | hours[1]
            if len(common) < _COMMON_HOURS * len(either):
                of = f"{units.count(len(common))} of {units.count(len(either))} hours"
                return f"the sides share {of} of the day: the version and the {covariate.label} cannot be separated"
    return ""


def _adjusted(
    plain: Sides,
    frames: Sequence[pl.DataFrame],
    is_candidate: np.ndarray,
    metric: Metric,
    population: Population,
) -> Sides | None:
    covariates = covariates_of(metric, population)
    values = np.concatenate([frame[metric.id].to_numpy() for frame in frames])
    groups = np.repeat(np.arange(len(frames)), [frame.height for frame in frames])
    design = np.concatenate([_design(frame, covariates) for frame in frames])
    result = adjusted_means(values, groups, design, _clusters(frames, population.time_key))
    if result is None:
        return None
    weights = np.where(is_candidate, 1.0 / is_candidate.sum(), -1.0 / (~is_candidate).sum())
    exact = float(weights @ result.covariance @ weights)
    apart = float(np.square(weights) @ np.diag(result.covariance))
    # Sides are combined as if their errors were independent; if different conditions correlate them negatively, that is
    # too low.
    factor = np.sqrt(max(1.0, exact / apart)) if apart > 0.0 else 1.0
    errors = np.sqrt(np.diag(result.covariance)) * factor
    sides = [
        _side(side, metric, result.means[is_candidate == index], errors[is_candidate == index])
        for index, side in enumerate((plain.baseline, plain.candidate))
    ]
    return Sides(sides[0], sides[1])


def _side(plain: SideEstimates, metric: Metric, means: FloatArray, errors: FloatArray) -> SideEstimates:
    values = [float(value) for value in means]
    relative = [float(error / value) if value > 0.0 else 0.0 for value, error in zip(means, errors, strict=True)]
    total = float(np.mean(means)) * plain.exposure if metric.kind is Kind.COUNT else plain.total
    return replace(
        plain,
        per_run=list(values),
        values=values,
        standard_errors=[float(error) for error in errors],
        log_standard_errors=relative,
        total=total,
    )


def _design(frame: pl.DataFrame, covariates: Sequence[Covariate]) -> FloatArray:
    columns = []
    for covariate in covariates:
        values = frame[covariate.column].to_numpy()
        columns.append(day_waves(values) if covariate.kind is CovariateKind.DAY else values[:, None])
    return np.concatenate(columns, axis=1)


def _clusters(frames: Sequence[pl.DataFrame], time_key: str | None) -> IntArray:
    """Blocks of time, numbered over all runs."""
    result, before = [], 0
    for frame in frames:
        if time_key is None:
            blocks = np.arange(frame.height)
        else:
            times = frame[time_key].to_numpy()
            span = float(times.max() - times.min())
            blocks = ((times - times.min()) // max(min(_CLUSTER_S, span / _CLUSTERS), 1e-9)).astype(np.int64)
        result.append(blocks + before)
        before += int(blocks.max()) + 1
    return np.concatenate(result)
