"""Other tools can read a store: the documented queries return the same figures as chainmark."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import polars as pl
import pytest

import chainmark as cm
from chainmark.serve.computed import query_of

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guides" / "query-with-duckdb.md"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("queried")
    cm.import_samples(folder)
    return folder


def _figure(store: Path, metric: str, statistic: str) -> pl.DataFrame:
    frame = cm.figures(store=store)
    return frame.filter((pl.col("metric") == metric) & (pl.col("statistic") == statistic))


def test_the_queries_of_the_guide_return_the_figures_of_the_runs(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store)
    by_version, by_samples = re.findall(r"```sql\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    known = _figure(store, "tx_latency_s", "p99")
    medians = dict(known.group_by("version").agg(pl.col("value").median()).iter_rows())
    assert {row[0]: row[2] for row in duckdb.sql(by_version).fetchall()} == pytest.approx(medians)
    assert {row[0]: row[2] for row in duckdb.sql(by_samples).fetchall()} == pytest.approx(
        dict(known.select("run_id", "value").iter_rows())
    )


def test_the_query_shown_with_each_figure_computes_it(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dashboard shows a query for each figure. A user who runs it must get the same value."""
    run = cm.open_runs("v1.0.1", store)[0]
    monkeypatch.chdir(run.path)
    tried = 0
    for metric, summary in run.sealed.summaries().items():
        own = run.catalogue.metric(metric)
        for statistic, estimate in summary.estimates.items():
            if estimate.value is not None:
                query = query_of(own, run.catalogue.population(own.population), statistic)
                (figure,) = duckdb.sql(query).fetchone() or (None,)
                assert figure == pytest.approx(estimate.value, rel=1e-9), (metric, statistic, query)
                tried += 1
    assert tried > 20


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_figures_are_exported_unchanged(store: Path, tmp_path: Path, suffix: str) -> None:
    path = cm.export_figures("v1.0.1", tmp_path / f"figures.{suffix}", store)
    read: pl.DataFrame = getattr(pl, f"read_{suffix}")(path)
    known = cm.figures("v1.0.1", store)
    assert read.columns == known.columns
    assert read["value"].to_list() == pytest.approx(known["value"].to_list(), nan_ok=True)
    with pytest.raises(cm.ChainmarkError, match="no known format"):
        cm.export_figures("v1.0.1", tmp_path / "figures.xlsx", store)
