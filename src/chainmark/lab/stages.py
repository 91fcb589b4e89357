"""The steps of a run's load test, for reading only: no code that generates load is imported."""

from __future__ import annotations

import polars as pl

from chainmark.core.errors import UsageError
from chainmark.store.sealed import SealedRun


def has_stages(run: SealedRun) -> bool:
    """Whether it stores the steps of a load test."""
    return (run.path / "events" / "steps.parquet").is_file()


def stages_of(run: SealedRun) -> pl.DataFrame:
    """Every step of a run as a row for other tools: its endpoint, then its level, counts, latencies and judgement.

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
    """Why a run has no load-test data."""
    return UsageError(f"`{run.run_id}` is not a run of a load test", "`chainmark runs list` shows all runs")
