"""Runs sealed by version 0.1.0 and earlier builds can still be read, verified and compared."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import chainmark as cm
from chainmark.core.verdict import Verdict

from tests.unit.cli.commands import chainmark

# Sealed three days before the release of 0.1.0. The gates of these runs have other labels.
OLDER = Path(__file__).parents[3] / "sealed_runs"
# The values that were printed after the measurement.
MEDIANS = {
    "shipped": {
        "tx latency p50": (1.016, 0.782),
        "block interval": (1.3021, 1.1844),
        "CPU per transaction and node": (0.525e-3, 0.535e-3),
    },
    "older": {
        "tx latency p50": (1.028, 0.821),
        "block interval": (1.311, 1.215),
        "CPU per transaction and node": (0.937e-3, 1.125e-3),
    },
}


def _imported(which: str, folder: Path) -> list[cm.Run]:
    if which == "shipped":
        return cm.import_samples(folder)
    return [cm.import_run(archive, folder) for archive in sorted(OLDER.glob("cometbft-*.tar.xz"))]


@pytest.fixture(scope="module", params=sorted(MEDIANS))
def which(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def store(which: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    assert len(_imported(which, folder)) == 4
    return folder


def test_existing_runs_are_not_changed(which: str, store: Path) -> None:
    assert len(_imported(which, store)) == 4
    assert cm.runs(store).height == 4


def test_every_file_is_unchanged_since_sealing(store: Path) -> None:
    for run in cm.open_runs("v0.38.17", store) + cm.open_runs("v1.0.1", store):
        assert run.sealed.verify() == []


def test_the_verdict_of_the_sample_runs_is_stable(which: str, store: Path) -> None:
    document = cm.compare("v0.38.17", "v1.0.1", store=store)
    assert document.verdict is Verdict.INCONCLUSIVE
    for label, medians in MEDIANS[which].items():
        row = document.frame.row(by_predicate=pl.col("label") == label, named=True)
        assert (row["baseline"], row["candidate"]) == pytest.approx(medians, rel=1e-3), label


def test_the_command_imports_the_sample_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path))
    assert chainmark("runs", "import", "--samples").output.count("imported cometbft-demo-v1.0.1-") == 2
