"""The samples of a metric in spans of the visible time, so that no more are drawn than can be distinguished."""

from __future__ import annotations

import polars as pl
from pydantic import BaseModel

from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.core.metric import Metric
from chainmark.core.tool import tool_version
from chainmark.store.sealed import SealedRun

_MOST_POINTS = 600


class SeriesView(BaseModel):
    """``series.json``: spans of time, each with its samples, their mean and their range, in the metric's unit.

    Attributes:
        begin_s, end_s: the visible range, in seconds since the window's start; the series is from ``first_s`` to
            ``last_s``.
        samples: number in the visible range; a span holds several if there are more than fit.
    """

    schema_version: int = 1
    tool_version: str
    run: str
    metric: str
    first_s: float
    last_s: float
    begin_s: float
    end_s: float
    samples: int
    time_s: list[float]
    n: list[int]
    mean: list[float]
    low: list[float]
    high: list[float]


def series_view(run: SealedRun, metric: Metric, begin_s: float | None, end_s: float | None) -> SeriesView:
    """A metric's samples of a span of time.

    Raises:
        UsageError: its samples have no order in time, or there are none.
        InvalidRunError: they cannot be read.
    """
    time = run.catalogue.population(metric.population).time_key
    if time is None:
        raise UsageError(f"`{metric.id}` cannot be shown over time", "its population has no time")
    known = run.scan_samples(metric.population).select(t=time, v=metric.id).drop_nulls().filter(pl.col("v").is_finite())
    first, last = known.select(first=pl.col("t").min(), last=pl.col("t").max()).collect().row(0)
    if first is None:
        raise UsageError(f"run `{run.run_id}` has no samples of `{metric.id}`", "the page of the run lists its metrics")
    begin, end = max(first, first if begin_s is None else begin_s), min(last, last if end_s is None else end_s)
    if begin > end:
        raise UsageError(
            "the selected time span is empty", f"the series covers {units.tidy(first)} s to {units.tidy(last)} s"
        )
    width = (end - begin) / _MOST_POINTS or 1.0
    spans = (
        known.filter(pl.col("t").is_between(begin, end))
        .group_by(((pl.col("t") - begin) / width).floor().clip(0, _MOST_POINTS - 1).alias("span"))
        .agg(
            time_s=pl.col("t").mean(),
            n=pl.len(),
            mean=pl.col("v").mean(),
            low=pl.col("v").min(),
            high=pl.col("v").max(),
        )
        .sort("span")
        .drop("span")
        .collect()
    )
    return SeriesView(
        tool_version=tool_version(), run=run.run_id, metric=metric.id, first_s=first, last_s=last, begin_s=begin,
        end_s=end, samples=int(spans["n"].sum()), **spans.to_dict(as_series=False),
    )  # fmt: skip
