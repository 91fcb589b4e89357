"""Unfinished runs: filled with raw material, samples and documents, and then sealed."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import psutil
from pydantic import BaseModel

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Manifest, Source
from chainmark.core.storage import storage_errors
from chainmark.store.derived import Derived
from chainmark.store.files import hash_file, json_bytes, write_bytes
from chainmark.store.index import SEAL, STAGED
from chainmark.store.live import LIVE, remove_live
from chainmark.store.schema import Schema, check_samples, check_schema
from chainmark.store.sealed import DESCRIPTION, SealedRun, files_of, packed_description

STATE = "unfinished.json"
_CLOCK_TOLERANCE_S = 60.0  # between the start of a process and the run that it makes


class UnfinishedRun:
    """A run in progress. :meth:`seal` completes it; until then it is listed as unfinished and never compared."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_id = path.name

    @property
    def raw(self) -> Path:
        """The folder of raw material, made on first use."""
        folder = self.path / "raw"
        with storage_errors(folder):
            folder.mkdir(exist_ok=True)
        return folder

    def is_empty(self) -> bool:
        """Whether it contains no data yet, so that nothing is lost with it."""
        files = (path for path in self.path.rglob("*") if not path.is_dir())
        return all(path.name in {STATE, LIVE} for path in files)

    def state(self) -> dict[str, Any]:
        """The state at its start: the process that makes it, its experiment; empty if that is lost."""
        try:
            content: dict[str, Any] = json.loads((self.path / STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content

    def maker(self) -> int | None:
        """The id of the process that makes it; None if that has ended, even if another process has its id now."""
        state = self.state()
        try:
            process = psutil.Process(int(state["pid"]))
            begun = datetime.fromisoformat(state["started_at"]).timestamp() if "started_at" in state else None
            is_other = begun is not None and process.create_time() > begun + _CLOCK_TOLERANCE_S
        except (KeyError, ValueError, TypeError, psutil.NoSuchProcess):
            return None
        return None if is_other else process.pid

    def write_events(self, name: str, frame: pl.DataFrame, schema: Schema) -> None:
        """Store typed events as ``events/<name>.parquet``.

        Raises:
            InternalError: their columns are not those of the schema.
        """
        check_schema(f"events of `{name}`", frame.schema, schema)
        self._write_frame(self.path / "events" / f"{name}.parquet", frame)

    def write_samples(self, population_id: str, frame: pl.DataFrame) -> None:
        """Store the samples of one population as ``samples/<population>.parquet``; sealing checks their columns."""
        self._write_frame(self.path / "samples" / f"{population_id}.parquet", frame)

    def write_figures(self, name: str, frame: pl.DataFrame, schema: Schema) -> None:
        """Store figures by other rules than those of ``metrics.json``, as ``figures/<name>.parquet``.

        Raises:
            InternalError: their columns are not those of the schema.
        """
        check_schema(f"figures `{name}`", frame.schema, schema)
        self._write_frame(self.path / "figures" / f"{name}.parquet", frame)

    def write_description(self, frame: pl.DataFrame, layout: int) -> None:
        """Store the description of the samples for comparisons and charts, as ``description.parquet``."""
        write_bytes(self.path / DESCRIPTION, packed_description(frame, layout))

    def write_document(self, name: str, content: BaseModel) -> None:
        """Store a system's data about the run besides its figures, as ``documents/<name>.json``."""
        write_bytes(self.path / "documents" / f"{name}.json", json_bytes(content))

    @staticmethod
    def _write_frame(path: Path, frame: pl.DataFrame) -> None:
        with storage_errors(path):
            path.parent.mkdir(exist_ok=True)
            frame.write_parquet(path, compression="zstd", statistics=True)

    def sources(self) -> list[Source]:
        """Every raw file with its size and hash, in the order of their paths."""
        files = sorted(path for path in (self.path / "raw").rglob("*") if path.is_file())
        return [
            Source(path=str(path.relative_to(self.path)), size_bytes=path.stat().st_size, blake3=hash_file(path))
            for path in files
        ]

    def drop(self) -> None:
        """Remove it with everything in it."""
        shutil.rmtree(self.path)

    def seal(self, manifest: Manifest, catalogue: Catalogue, summaries: list[MetricSummary]) -> SealedRun:
        """Write the manifest, the catalogue and the summaries, then the hashes of everything, last, by rename.

        Raises:
            InternalError: the columns of samples differ from those in the catalogue.
        """
        for path in sorted((self.path / "samples").glob("*.parquet")):
            check_samples(catalogue, path.stem, pl.read_parquet_schema(path))
        write_bytes(self.path / "manifest.json", json_bytes(manifest))
        write_bytes(self.path / "catalogue.json", json_bytes(catalogue))
        content = {"metrics": [summary.model_dump(mode="json") for summary in summaries]}
        write_bytes(self.path / "metrics.json", json_bytes(content))
        (self.path / STATE).unlink(missing_ok=True)
        remove_live(self.path)
        hashes = {str(path.relative_to(self.path)): hash_file(path) for path in files_of(self.path)}
        write_bytes(self.path / SEAL, json_bytes({"blake3": hashes}))
        return SealedRun(self.path)


class StagedRun(UnfinishedRun):
    """An import in progress, under a temporary name: the run's name depends on its content.

    Its folder is locked for the lifetime of its process; the system frees the lock of a killed one.
    """

    def __init__(self, path: Path, lock: int) -> None:
        super().__init__(path)
        self._lock = lock

    def settle(self, run_id: str) -> tuple[SealedRun, bool]:
        """Give the sealed folder its name; whether it is new, or the same run already exists undamaged."""
        final = self.path.with_name(run_id)
        with storage_errors(final), _locked(final.parent):
            is_new = not (final / SEAL).is_file() or bool(SealedRun(final).verify())
            if is_new:
                # The existing folder is damaged, or its removal was interrupted.
                shutil.rmtree(final, ignore_errors=True)
                Derived(final).remove()
                self.path.rename(final)
            self.drop()
        return SealedRun(final), is_new

    def drop(self) -> None:
        """Remove a folder without a final name, with everything in it; repeated calls have no effect."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def staged_run(runs: Path, name: str, state: Mapping[str, Any]) -> StagedRun:
    """Create the folder of an import; leftovers of ended imports are removed first.

    Args:
        runs: the folder of all runs.
        name: depends on the order: equal orders have equal names.
        state: the state of the import; ``pid`` is its process.

    Raises:
        UsageError: a running process is making the same import.
    """
    path = runs / f"{STAGED}{name}"
    with storage_errors(path):
        runs.mkdir(parents=True, exist_ok=True)
        with _locked(runs):
            for leftover in sorted(folder for folder in runs.iterdir() if folder.is_dir()):
                if leftover.name.startswith(STAGED):
                    _remove_dead(leftover)
            if path.exists():
                raise UsageError(
                    f"process {_maker(path)} is importing the same logs into {runs.parent}",
                    "wait for it, or stop it first",
                )
            path.mkdir()
            lock = os.open(path, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            write_bytes(path / STATE, json_bytes(dict(state)))
    return StagedRun(path, lock)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder for a moment, among all processes."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_dead(path: Path) -> None:
    """Remove a staged import unless its process is running."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path)
    except BlockingIOError:
        return
    finally:
        os.close(descriptor)


def _maker(path: Path) -> str:
    try:
        return str(json.loads((path / STATE).read_text(encoding="utf-8"))["pid"])
    except (OSError, ValueError, KeyError):
        return "unknown"
