"""The figures of an archive: a few values of hundreds of runs are read from one file, which may be stale or damaged."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pydantic_core import from_json

from chainmark.compare.inputs import LoadedRun
from chainmark.store import archive
from chainmark.store.archive import FEWEST, METRICS
from chainmark.store.derived import FOLDER
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

from tests.unit.serve.stores import filled

LATENCY = ("tx_latency_s", "p50")
FIGURES = [LATENCY, ("rss_bytes", "mean"), ("rss_bytes", "none"), ("none", "mean")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("archive")
    filled(root, releases=2, repetitions=FEWEST // 2)
    return root


def _figures(runs: Sequence[SealedRun]) -> list[list[tuple[float | None, float | None]]]:
    """Of each run some values with their standard errors."""
    loaded = [LoadedRun(run) for run in runs]
    return [[(run.value(*name), run.standard_error(*name)) for name in FIGURES] for run in loaded]


def _values(root: Path) -> list[list[tuple[float | None, float | None]]]:
    run_store = Store(root)
    return _figures(run_store.alike(run_store.select("v1.1.0")))


def _reported(root: Path) -> list[list[tuple[float | None, float | None]]]:
    return _figures(Store(root).sealed())


def _file(root: Path) -> Path:
    return next((root / FOLDER / "figures").iterdir())


def _stale(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"0.", b"1."))


def _other_layout(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(archive._LAYOUT.encode(), b"figures 0", 1))


@pytest.mark.parametrize("damage", [Path.unlink, _stale, _other_layout, lambda path: path.write_bytes(b"\0")])
def test_figures_survive_damage_to_the_archive_file(store: Path, damage: Callable[[Path], None]) -> None:
    assert _values(store) == _reported(store)
    assert all(None not in figure for figure in _reported(store)[0][:2])
    damage(_file(store))
    assert _values(store) == _reported(store)


def test_a_run_is_read_again_only_after_a_change(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _values(store)
    read: list[str] = []

    def watched(content: bytes) -> object:
        read.append(content[:20].decode())
        return from_json(content)

    monkeypatch.setattr("chainmark.store.archive.from_json", watched)
    monkeypatch.setattr(SealedRun, "summaries", lambda run: pytest.fail(f"{run.run_id} was read"))
    before = _values(store)
    assert len(read) == 1  # only the archive's file is read
    path = Store(store).sealed()[0].path / METRICS
    content = json.loads(path.read_bytes())
    row = next(row for row in content["metrics"] if row["metric_id"] == LATENCY[0])
    row["estimates"][LATENCY[1]]["value"] = 7.5
    path.write_text(json.dumps(content))
    first = [(7.5, before[0][0][1]), *before[0][1:]]
    assert _values(store) == [first, *before[1:]]
    assert len(read) == 3
