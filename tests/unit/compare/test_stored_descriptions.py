"""Stored descriptions of a run's samples replace reading the samples, unless they are damaged or of another run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from chainmark.compare import compare
from chainmark.core.comparison import Comparison
from chainmark.core.errors import InvalidRunError
from chainmark.stats.description import LAYOUT, describe, to_frame
from chainmark.stats.samples import ParquetSamples
from chainmark.store.runs import Store
from chainmark.store.sealed import DESCRIPTION, SealedRun

from tests.unit.store.trail_runs import Timelines, sealed

HOSTS, BLOCKS = 6, 20


def _store(root: Path) -> Store:
    """A store with two runs that were sealed without a description."""
    store = Store(root)
    sealed(store, Timelines(HOSTS, BLOCKS).fill())
    sealed(store, Timelines(HOSTS, BLOCKS, factor=1.2).fill(), "v2")
    return store


def _compared(store: Store) -> Comparison:
    baseline, candidate = store.sealed()
    return compare([baseline], [candidate], tool_version="0")


def _derived(run: SealedRun) -> Path:
    return run.path.parent.parent / "derived" / run.run_id


def _without_samples(store: Store) -> None:
    for run in store.sealed():
        shutil.rmtree(run.path / "samples")


def test_a_second_comparison_reads_no_samples_and_has_the_same_result(tmp_path: Path) -> None:
    store = _store(tmp_path)
    first = _compared(store)
    assert first.charts
    assert all(run.verify() == [] for run in store.sealed())
    _without_samples(store)
    assert _compared(store) == first


def _flip(folder: Path) -> None:
    content = bytearray((folder / DESCRIPTION).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / DESCRIPTION).write_bytes(content)


def _swap(folder: Path) -> None:
    """Copy the derived files of the other run, as if this run had been made again under the same name."""
    other = next(path for path in folder.parent.iterdir() if path != folder)
    shutil.copytree(other, folder, dirs_exist_ok=True)


@pytest.mark.parametrize("spoil", [_flip, _swap, lambda folder: (folder / "made.json").write_text("[]")])
def test_damaged_or_foreign_descriptions_are_computed_again(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    store = _store(tmp_path)
    first = _compared(store)
    run = store.sealed()[0]
    content = (_derived(run) / DESCRIPTION).read_bytes()
    spoil(_derived(run))
    assert _compared(store) == first
    assert (_derived(run) / DESCRIPTION).read_bytes() == content


def test_runs_can_be_compared_if_the_store_cannot_save_derived_values(tmp_path: Path) -> None:
    store = _store(tmp_path / "a")
    expected = _compared(store)
    shutil.rmtree(tmp_path / "a" / "derived")
    (tmp_path / "a" / "derived").write_text("no folder")
    assert _compared(store) == expected


def test_nothing_is_stored_for_samples_that_differ_from_their_seal(tmp_path: Path) -> None:
    """The samples may be repaired under the same seal, and values derived from the wrong samples would remain."""
    store = _store(tmp_path)
    run = store.sealed()[0]
    path = next((run.path / "samples").glob("*.parquet"))
    pl.read_parquet(path).reverse().write_parquet(path)
    _compared(store)
    assert not _derived(run).exists()


def test_a_run_that_is_removed_leaves_nothing_behind(tmp_path: Path) -> None:
    store = _store(tmp_path)
    _compared(store)
    for run in store.sealed():
        store.remove(run)
    assert list((tmp_path / "derived").iterdir()) == []


def _with_description(store: Store, layout: int) -> None:
    """Seal the same runs again, with a description."""
    for run in store.sealed():
        catalogue, summaries = run.catalogue, list(run.summaries().values())
        unfinished = store.create("toy", "toy/demo", run.manifest.subject.version, {})
        shutil.copytree(run.path / "samples", unfinished.path / "samples")
        shutil.copytree(run.path / "events", unfinished.path / "events")
        source = ParquetSamples(unfinished.path / "samples")
        unfinished.write_description(to_frame(describe(catalogue, source, run.manifest.seed)), layout)
        unfinished.seal(run.manifest, catalogue, summaries)
        store.remove(run)
        unfinished.path.rename(run.path)


def test_a_sealed_description_equals_the_derived_one(tmp_path: Path) -> None:
    store = _store(tmp_path)
    first = _compared(store)
    _with_description(store, LAYOUT)
    _without_samples(store)
    assert _compared(store) == first
    assert not any(_derived(run).exists() for run in store.sealed())
    run = store.sealed()[0]
    _flip(run.path)
    with pytest.raises(InvalidRunError, match=r"is damaged: description\.parquet cannot be read"):
        _compared(store)
    assert f"{DESCRIPTION} was changed after sealing" in run.verify()


def test_a_sealed_description_of_another_layout_is_not_changed(tmp_path: Path) -> None:
    store = _store(tmp_path)
    first = _compared(store)
    _with_description(store, LAYOUT + 1)
    assert _compared(store) == first
    assert all(_derived(run).exists() and run.verify() == [] for run in store.sealed())
