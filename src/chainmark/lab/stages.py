"""The steps of a run's load test, for those who only look at what a run keeps: nothing that makes load is loaded."""

from __future__ import annotations

import polars as pl

from chainmark.core.errors import UsageError
from chainmark.store.runs import SealedRun


def has_stages(run: SealedRun) -> bool:
    """Whether it keeps the steps of a load test."""
    return (run.path / "events" / "steps.parquet").is_file()


def stages_of(run: SealedRun) -> pl.DataFrame:
    """Every step of a run as a row for other tools: whose it is, then its level, books, latencies and judgement.

    Raises:
        UsageError: it is not a run of a load test.
    """
    if not has_stages(run):
        raise no_load_test(run)
    steps = run.events("steps")
    manifest = run.manifest
    own = {"run": run.run_id, "version": manifest.subject.version, **manifest.cell}
    figures = steps.select(name for name in steps.columns if not name.endswith("_hdr"))
    return figures.select(*(pl.lit(value).alias(name) for name, value in own.items()), pl.all())


def no_load_test(run: SealedRun) -> UsageError:
    """Why nothing of a load test can be had of a run."""
    return UsageError(f"`{run.run_id}` is not a run of a load test", "`chainmark runs list` shows all runs")
