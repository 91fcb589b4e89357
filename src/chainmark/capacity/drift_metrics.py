"""Drift over long steps as metrics, to compare releases by it: a line's end as a share of its start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from chainmark.capacity.drift import Drift, Drifting
from chainmark.capacity.loadtest import EndpointResult
from chainmark.capacity.metrics import ATTEMPT, ERROR_FLOOR, FAILED, LATENCY_NOISE, level_name
from chainmark.capacity.model import Endpoint, LoadLevel
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.metric import Better, Kind, Metric, Population

END = "end_share"
# The share of the initial value up to which two lines are equal, and to which one must be known to be a sample.
_MARGIN = 0.10
_MEMORY_NOISE = 0.03
_FIRST_ORDER = 40
_WORDS = {Drifting.P50: "median latency", Drifting.P99: "p99 latency", Drifting.MEMORY: "server memory"}
Drifts = Mapping[str, Sequence[Drift]]


def with_drifts(catalogue: Catalogue, endpoint_results: Iterable[EndpointResult], drifts: Drifts) -> Catalogue:
    """The catalogue extended by the metrics of these drifts, which are given by endpoint ID.

    The metrics that the SLA limits decide a comparison; the others are shown.
    """
    populations, metrics = [], []
    for endpoint in endpoint_results:
        for level, limits in _measured(drifts[endpoint.endpoint.id]).items():
            name = _population_id(endpoint.endpoint.id, level)
            populations.append(
                Population(id=name, label=f"soaks of {endpoint.endpoint.label} at {level}", keys=[ATTEMPT])
            )
            metrics += [
                _metric(endpoint.endpoint, level, drifting, is_limited=limited) for drifting, limited in limits.items()
            ]
    return catalogue.model_copy(
        update={
            "populations": [*catalogue.populations, *populations],
            "metrics": [*catalogue.metrics, *metrics],
        }
    )


def drift_samples(endpoint_results: Iterable[EndpointResult], drifts: Drifts) -> dict[str, pl.DataFrame]:
    """One row per long step; null where the value is too uncertain to be compared."""
    samples = {}
    for endpoint in endpoint_results:
        level_drifts = drifts[endpoint.endpoint.id]
        for level, limits in _measured(level_drifts).items():
            rows: dict[int, dict[str, float | None]] = {}
            for drift in level_drifts:
                if drift.level == level:
                    row = rows.setdefault(drift.started_ns, {ATTEMPT: len(rows) + 1})
                    row[_metric_id(endpoint.endpoint.id, level, drift.what)] = _value(drift)
            columns = {_metric_id(endpoint.endpoint.id, level, drifting): pl.Float64 for drifting in limits}
            schema: dict[str, Any] = {ATTEMPT: pl.Int64, **columns}
            samples[_population_id(endpoint.endpoint.id, level)] = pl.DataFrame(list(rows.values()), schema=schema)
    return samples


def _measured(drifts: Iterable[Drift]) -> dict[LoadLevel, dict[Drifting, bool]]:
    """What drifted at each level and whether that is limited, in a total order."""
    results: dict[LoadLevel, dict[Drifting, bool]] = {}
    for drift in drifts:
        results.setdefault(drift.level, {})[drift.what] = drift.limit is not None
    return {level: dict(sorted(results[level].items())) for level in sorted(results)}


def _value(drift: Drift) -> float | None:
    if drift.rise is None or drift.low is None or drift.high is None:
        return None
    is_errors = drift.what is Drifting.ERRORS
    if (drift.high - drift.low) / 2.0 > (ERROR_FLOOR if is_errors else _MARGIN):
        return None
    return drift.rise if is_errors else 1.0 + drift.rise


def _population_id(endpoint_id: str, level: LoadLevel) -> str:
    return f"{endpoint_id}_soak_at_{level_name(level)}"


def _metric_id(endpoint_id: str, level: LoadLevel, what: Drifting) -> str:
    name = _population_id(endpoint_id, level)
    return f"{name}_rise_of_{FAILED}" if what is Drifting.ERRORS else f"{name}_{what}_{END}"


def _metric(endpoint: Endpoint, level: LoadLevel, what: Drifting, *, is_limited: bool) -> Metric:
    properties: dict[str, Any] = {
        "id": _metric_id(endpoint.id, level, what),
        "unit": "fraction",
        "better": Better.LOWER,
        "statistics": ["mean"],
        "judged_by": ["mean"],
        "table": endpoint.id,
        "order": _FIRST_ORDER + list(Drifting).index(what),
        "population": _population_id(endpoint.id, level),
        "gating": is_limited,
        "source": ["load steps"],
    }
    line = "of a line through sixty intervals of the step (Theil-Sen)"
    if what is Drifting.ERRORS:
        return Metric(
            label=f"{endpoint.label} rise of errors over a soak at {level}",
            kind=Kind.DIFFERENCE,
            floor=ERROR_FLOOR,
            description=f"The share of failed requests at the end {line}, less that at its begin. No value where that "
            f"is not known to within {units.plain_percent(ERROR_FLOOR)}.",
            **properties,
        )
    return Metric(
        label=f"{endpoint.label} {_WORDS[what]} at the end of a soak at {level}, share of its begin",
        kind=Kind.POSITIVE,
        margin=_MARGIN,
        default_noise=_MEMORY_NOISE if what is Drifting.MEMORY else LATENCY_NOISE,
        description=f"The {_WORDS[what]} at the end {line}, as a share of its begin: above 100 %, it rose. No "
        f"value where that is not known to within {units.plain_percent(_MARGIN)}.",
        **properties,
    )
