"""Runs on disk: an unfinished run is filled and then sealed; a sealed run is read and verified, never changed."""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import secrets
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Self

import blake3
import polars as pl
import psutil
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary, standard_error_in, value_in
from chainmark.core.errors import InvalidRunError, UsageError
from chainmark.core.manifest import Manifest, Source
from chainmark.core.storage import existing_parent, storage_errors
from chainmark.core.tool import tool_version
from chainmark.store.archive import ArchivedFigures, FigureArchive, archives
from chainmark.store.derived import Derived
from chainmark.store.files import hash_file, json_bytes, write_bytes
from chainmark.store.index import SEAL, STAGED, Entry, Index, Selection, is_sealed
from chainmark.store.live import LIVE, remove_live
from chainmark.store.schema import Schema, check_samples, check_schema

STATE = "unfinished.json"
DESCRIPTION = "description.parquet"
_CLOCK_TOLERANCE_S = 60.0  # between the start of a process and the run that it makes
# By the hash of their sealed files: most runs of an archive share them.
_CATALOGUES: dict[str, Catalogue] = {}
_MOST_CATALOGUES = 64
_LAYOUT = "chainmark.layout"  # of a description, in the file's metadata


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
        write_bytes(self.path / DESCRIPTION, _description_bytes(frame, layout))

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
        hashes = {str(path.relative_to(self.path)): hash_file(path) for path in _files_of(self.path)}
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


class _Summaries(Mapping[str, MetricSummary]):
    """Summaries that are validated on first access, in the order of the file."""

    def __init__(self, rows: dict[str, dict[str, Any]]) -> None:
        self._rows = rows
        self._known: dict[str, MetricSummary] = {}

    def __getitem__(self, metric_id: str) -> MetricSummary:
        if metric_id not in self._known:
            self._known[metric_id] = MetricSummary.model_validate(self._rows[metric_id])
        return self._known[metric_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class SealedRun:
    """A finished run, read lazily. It carries its own catalogue, so the system's code is not needed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_id = path.name

    @cached_property
    def manifest(self) -> Manifest:
        """The subject, the method, the environment, and whether the run may be compared."""
        content = self._read_json("manifest.json")
        try:
            return Manifest.model_validate(content)
        except ValidationError as error:
            maker = content.get("tool_version", "another version")
            raise InvalidRunError(
                f"run `{self.run_id}` was sealed by chainmark {maker}, and this release ({tool_version()}) cannot read "
                f"its manifest: {error.errors()[0]['msg']}",
                "use the release that sealed the run, or a later one",
            ) from error

    @cached_property
    def catalogue(self) -> Catalogue:
        """The metrics' definitions at the time of the run; those of equal files are one object."""
        sealed_hash = self._seal["catalogue.json"]
        catalogue = _CATALOGUES.get(sealed_hash)
        if catalogue is None:
            catalogue = Catalogue.model_validate(self._read_json("catalogue.json"))
            if len(_CATALOGUES) >= _MOST_CATALOGUES:
                _CATALOGUES.clear()
            _CATALOGUES[sealed_hash] = catalogue
        return catalogue

    @property
    def sealed_on(self) -> str:
        """The day on which it was sealed, UTC, from its file system: a manifest does not contain it."""
        modified = (self.path / SEAL).stat().st_mtime
        return datetime.fromtimestamp(modified, UTC).date().isoformat()

    def summaries(self) -> Mapping[str, MetricSummary]:
        """The contents of ``metrics.json`` by metric id; an archive's runs are read for a few of them."""
        return _Summaries({row["metric_id"]: row for row in self._read_json("metrics.json")["metrics"]})

    def document(self, name: str) -> dict[str, Any] | None:
        """The document with this name; None if there is none, as in runs older than it."""
        file = f"documents/{name}.json"
        return self._read_json(file) if file in self._seal else None

    def samples(self, population_id: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The samples of one population: its keys, then one column per metric; or the given columns that exist."""
        return self._read_frame("samples", population_id, columns)

    def keeps(self, file: str) -> bool:
        """Whether a file was sealed with the run: "events/blocks.parquet"."""
        return file in self._seal

    def scan_samples(self, population_id: str) -> pl.LazyFrame:
        """The samples of one population, of which only the requested rows and columns are read."""
        return self._scan_frame("samples", population_id)

    def events(self, name: str) -> pl.DataFrame:
        """The typed events of one kind."""
        return self._read_frame("events", name)

    def scan_events(self, name: str) -> pl.LazyFrame:
        """The typed events of one kind, of which only the requested rows and columns are read."""
        return self._scan_frame("events", name)

    def figures(self, name: str) -> pl.DataFrame | None:
        """Figures by other rules than those of ``metrics.json``; None if the run has none of that name."""
        return self._read_frame("figures", name) if f"figures/{name}.parquet" in self._seal else None

    def description(self, layout: int) -> pl.DataFrame | None:
        """The description of the samples for comparisons and charts: sealed, or derived afterwards.

        Args:
            layout: the requested layout.

        Returns:
            None if there is none of this layout.

        Raises:
            InvalidRunError: the sealed description is damaged.
        """
        expected = self._seal.get(DESCRIPTION)
        sealed = None if expected is None else self._read_sealed(DESCRIPTION, expected)
        frame = None if sealed is None else _description_of(sealed, layout)
        if frame is not None:
            return frame
        derived = Derived(self.path).read(DESCRIPTION, self._seal_hash)
        return None if derived is None else _description_of(derived, layout)

    @property
    def description_bytes(self) -> int:
        """The size of its sealed description; 0 without one."""
        return (self.path / DESCRIPTION).stat().st_size if DESCRIPTION in self._seal else 0

    def keep_description(self, frame: pl.DataFrame, layout: int) -> None:
        """Cache a description outside the run, if its samples are still in their sealed state."""
        samples = {name: value for name, value in self._seal.items() if name.startswith("samples/")}
        try:
            sound = all(hash_file(self.path / name) == value for name, value in samples.items())
        except OSError:
            return
        if sound:
            Derived(self.path).write(DESCRIPTION, self._seal_hash, _description_bytes(frame, layout))

    @cached_property
    def _seal(self) -> dict[str, str]:
        """The hashes of the sealed files."""
        results: dict[str, str] = self._read_json(SEAL)["blake3"]
        return results

    @cached_property
    def _seal_hash(self) -> str:
        return hash_file(self.path / SEAL)

    def _read_sealed(self, name: str, expected: str) -> bytes:
        try:
            content = (self.path / name).read_bytes()
        except OSError as error:
            raise self._unreadable(name, error) from error
        if blake3.blake3(content).hexdigest() != expected:
            raise self._unreadable(name, "it was changed after sealing")
        return content

    def verify(self) -> list[str]:
        """Re-hash every file and list, in a sentence each, deviations from the sealed state. Empty: there are none."""
        sealed = self._seal
        present = {str(path.relative_to(self.path)): path for path in _files_of(self.path)}
        problems = [f"{name} is missing" for name in sorted(sealed.keys() - present.keys())]
        problems += [f"{name} was added after sealing" for name in sorted(present.keys() - sealed.keys())]
        for name in sorted(sealed.keys() & present.keys()):
            if hash_file(present[name]) != sealed[name]:
                problems.append(f"{name} was changed after sealing")
        return problems

    def _read_json(self, name: str) -> dict[str, Any]:
        try:
            content: dict[str, Any] = from_json((self.path / name).read_bytes())
        except (OSError, ValueError) as error:
            raise InvalidRunError(
                f"run `{self.run_id}` is damaged: {name} cannot be read ({error})",
                f"`chainmark runs verify {self.run_id}` shows what changed",
            ) from error
        return content

    def _read_frame(self, folder: str, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        path = self.path / folder / f"{name}.parquet"
        try:
            if columns is None:
                return pl.read_parquet(path)
            present = pl.read_parquet_schema(path)
            return pl.read_parquet(path, columns=[column for column in dict.fromkeys(columns) if column in present])
        except (OSError, pl.exceptions.PolarsError) as error:
            raise self._unreadable(f"{folder}/{name}.parquet", error) from error

    def _scan_frame(self, folder: str, name: str) -> pl.LazyFrame:
        try:
            scan = pl.scan_parquet(self.path / folder / f"{name}.parquet")
            scan.collect_schema()  # detects a missing or invalid file now
        except (OSError, pl.exceptions.PolarsError) as error:
            raise self._unreadable(f"{folder}/{name}.parquet", error) from error
        return scan

    def _unreadable(self, name: str, error: Exception | str) -> InvalidRunError:
        return InvalidRunError(
            f"run `{self.run_id}` is damaged: {name} cannot be read ({error})",
            f"`chainmark runs verify {self.run_id}` shows what changed",
        )


class ArchivedRun(SealedRun):
    """One of many runs that are read for a few figures each.

    Args:
        path: its folder.
        archive: has the figures of all of them; None: they are read from the run itself.
    """

    def __init__(self, path: Path, archive: FigureArchive | None) -> None:
        super().__init__(path)
        self._archive = archive

    def value(self, metric_id: str, statistic: str) -> float | None:
        """The value of one statistic of one metric; None if the run has none."""
        if self._figures is None:
            return value_in(self.summaries(), metric_id, statistic)
        return self._figures.value(metric_id, statistic)

    def standard_error(self, metric_id: str, statistic: str) -> float | None:
        """Its standard error within the run; None if the run has none."""
        if self._figures is None:
            return standard_error_in(self.summaries(), metric_id, statistic)
        return self._figures.standard_error(metric_id, statistic)

    @cached_property
    def _figures(self) -> ArchivedFigures | None:
        """Its values from the archive, which is then released: it may hold those of many other runs."""
        figures = None if self._archive is None else self._archive.of(self.run_id)
        self._archive = None
        return figures


def _description_bytes(frame: pl.DataFrame, layout: int) -> bytes:
    content = io.BytesIO()
    frame.write_parquet(content, compression="zstd", metadata={_LAYOUT: str(layout)})
    return content.getvalue()


def _description_of(content: bytes, layout: int) -> pl.DataFrame | None:
    """The table, if it has that layout."""
    try:
        if pl.read_parquet_metadata(io.BytesIO(content)).get(_LAYOUT) != str(layout):
            return None
        return pl.read_parquet(io.BytesIO(content))
    except (OSError, pl.exceptions.PolarsError):
        return None


def _is_of_a_run(member: tarfile.TarInfo) -> bool:
    """Whether it is a file or folder below where it is extracted: no link, no device, no way out."""
    return (member.isfile() or member.isdir()) and not {"..", "/"} & set(PurePosixPath(member.name).parts)


def _files_of(path: Path) -> Iterator[Path]:
    """Every file of a run but its seal and stored node homes, which nodes may open again and change."""
    for folder, folders, names in os.walk(path):
        if Path(folder) == path:
            folders[:] = [name for name in folders if name != "homes"]
        yield from (Path(folder) / name for name in names if name != SEAL)


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


_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._+~-]+")
_VERSION_LENGTH_MAX = 64


class Store:
    """A folder of runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._runs = root / "runs"
        self._index = Index(root)
        self._held: Selection | None = None

    def create(self, system: str, profile_name: str, version: str, state: Mapping[str, Any]) -> UnfinishedRun:
        """Make the folder of a new run, named ``<system>-<profile>-<version>-<UTC time>-<4 random>``."""
        profile = profile_name.removeprefix(f"{system}/").replace("/", "-")
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        # A server may report a version such as "<appd>/unknown".
        named = _NOT_IN_NAMES.sub("-", version)[:_VERSION_LENGTH_MAX]
        path = self._free_path(f"{system}-{profile}-{named}-{stamp}")
        write_bytes(path / STATE, json_bytes(dict(state)))
        return UnfinishedRun(path)

    def _free_path(self, name: str) -> Path:
        """A new folder of that name and four random digits; runs of the same second may draw the same ones."""
        while True:
            path = self._runs / f"{name}-{secrets.token_hex(2)}"
            with storage_errors(path):
                self._runs.mkdir(parents=True, exist_ok=True)
                try:
                    path.mkdir()
                except FileExistsError:
                    continue
            return path

    def stage(self, name: str, state: Mapping[str, Any]) -> StagedRun:
        """Create the folder of an import; leftovers of ended imports are removed first.

        Args:
            name: depends on the order: equal orders have equal names.
            state: the state of the import; ``pid`` is its process.

        Raises:
            UsageError: a running process is making the same import.
        """
        path = self._runs / f"{STAGED}{name}"
        with storage_errors(path):
            self._runs.mkdir(parents=True, exist_ok=True)
            with _locked(self._runs):
                for leftover in self._folders():
                    if leftover.name.startswith(STAGED):
                        _remove_dead(leftover)
                if path.exists():
                    raise UsageError(
                        f"process {_maker(path)} is importing the same logs into {self.root}",
                        "wait for it, or stop it first",
                    )
                path.mkdir()
                lock = os.open(path, os.O_RDONLY)
                fcntl.flock(lock, fcntl.LOCK_EX)
                write_bytes(path / STATE, json_bytes(dict(state)))
        return StagedRun(path, lock)

    def free_bytes(self) -> int:
        """Free space in the store."""
        return shutil.disk_usage(existing_parent(self._runs)).free

    def selection(self) -> Selection:
        """The current contents of the store, and the resolution of references, without opening any run."""
        return self._held or Selection(self._index.contents())

    def held(self) -> Self:
        """A snapshot of the store for one response, so that it is read only once."""
        result = copy(self)
        result._held = self.selection()
        return result

    def sealed(self) -> list[SealedRun]:
        """All sealed runs, oldest first."""
        return self._opened(self.selection().sealed)

    def unfinished(self) -> list[UnfinishedRun]:
        """All folders without a seal, by name."""
        return [UnfinishedRun(self._runs / name) for name in self.selection().unfinished]

    def find(self, reference: str) -> SealedRun | UnfinishedRun:
        """The one run whose id is, or begins with, ``reference``.

        Raises:
            UsageError: none or several match.
        """
        path = self._runs / self.selection().find(reference)
        return SealedRun(path) if is_sealed(path) else UnfinishedRun(path)

    def select(self, reference: str) -> list[SealedRun]:
        """The sealed runs of a reference.

        A reference is a run id or a unique prefix; ``version:V`` (or a bare version), the runs of that version
        like its newest one (same profile, experiment and side); terms such as ``release:V,hardware:mid``, likewise for
        the runs that have all of these labels; or ``EXPERIMENT`` or ``EXPERIMENT/SIDE``, the runs of
        an experiment or of one of its sides.

        Raises:
            UsageError: nothing matches, or a prefix is not unique.
            InvalidRunError: the run was not finished.
        """
        return self._opened(self.selection().select(reference))

    def all_of(self, reference: str) -> list[SealedRun]:
        """Every sealed run of a reference; see `chainmark.store.index.Selection.all_of`."""
        return self._opened(self.selection().all_of(reference))

    def groups(self, reference: str) -> list[list[SealedRun]]:
        """The same by profile, workload and machine: a version may have been run under several."""
        return [self._opened(group) for group in self.selection().groups(reference)]

    def identified(self, identity: str) -> list[SealedRun]:
        """The imports of one published run; see `Manifest.identity`."""
        return self._opened(self.selection().identified(identity))

    def members(self, experiments: Iterable[str]) -> list[SealedRun]:
        """The sealed runs of experiments, oldest first."""
        return self._opened(self.selection().members(experiments))

    def alike(self, runs: Iterable[SealedRun]) -> list[SealedRun]:
        """The runs in the store that may show the noise between runs like these, oldest first."""
        return self._archived(self.selection().alike([run.run_id for run in runs]))

    def series(self, runs: Iterable[SealedRun]) -> list[SealedRun]:
        """The runs in the store that may belong to the history of runs like these, oldest first."""
        return self._archived(self.selection().series([run.run_id for run in runs]))

    def profiled(self, runs: Sequence[SealedRun], *, elsewhere: bool = True) -> list[SealedRun]:
        """Those of the runs that have profiles; if none has, with ``elsewhere``, similar runs in the store."""
        own = [run for run in runs if run.manifest.profiles]
        return own if own or not elsewhere else self._opened(self.selection().profiled([run.run_id for run in runs]))

    def shows_noise(self, system: str, workload: Mapping[str, object], cpu_model: str) -> bool:
        """Whether runs in the store may show the noise between runs of such a workload on such a machine."""
        return self.selection().shows_noise(system, workload, cpu_model)

    def _opened(self, entries: Iterable[Entry]) -> list[SealedRun]:
        return [SealedRun(self._runs / entry.run_id) for entry in entries]

    def _archived(self, entries: list[Entry]) -> list[SealedRun]:
        """The same runs, for reading a few figures of each."""
        archived = archives(self.root, entries)
        return [
            ArchivedRun(self._runs / entry.run_id, archived[entry.run_id])
            if entry.run_id in archived
            else SealedRun(self._runs / entry.run_id)
            for entry in entries
        ]

    def import_archive(self, archive: Path) -> SealedRun:
        """Import a run from the file that `runs export` wrote; an existing run stays unchanged.

        Raises:
            UsageError: the file does not exist, or is not an exported run.
            InvalidRunError: the run differs from its sealed state.
        """
        try:
            with tarfile.open(archive) as packed, storage_errors(self._runs):
                names = {Path(member.name).parts[0] for member in packed.getmembers() if Path(member.name).parts}
                if len(names) != 1 or not re.fullmatch(r"\w[\w.+~-]*", next(iter(names))):
                    raise UsageError(f"{archive} does not contain one run", "`chainmark runs export` writes such files")
                name = names.pop()
                if odd := next((member.name for member in packed.getmembers() if not _is_of_a_run(member)), None):
                    raise UsageError(
                        f"{archive} is not an exported run (`{odd}` is not a file or folder of a run)",
                        "`chainmark runs export` writes such files",
                    )
                if is_sealed(self._runs / name):
                    return SealedRun(self._runs / name)
                return self._unpacked(packed, name)
        except FileNotFoundError as error:
            raise UsageError(f"there is no file `{archive}`", "`chainmark runs export` writes such files") from error
        except tarfile.TarError as error:
            reason = str(error).splitlines()[0]
            raise UsageError(
                f"{archive} is not an exported run ({reason})", "`chainmark runs export` writes such files"
            ) from error

    def _unpacked(self, packed: tarfile.TarFile, name: str) -> SealedRun:
        staged = self.stage(f"archive-{name}", {"pid": os.getpid()})
        try:
            # Python before 3.11.4, which Debian 12 has, knows no filters.
            packed.extraction_filter = getattr(tarfile, "data_filter", None)
            for member in packed.getmembers():
                packed.extract(member, staged.path)
            run = SealedRun(staged.path / name)
            if not is_sealed(run.path) or (problems := run.verify()):
                reason = problems[0] if is_sealed(run.path) else "it has no seal"
                raise InvalidRunError(
                    f"run `{name}` cannot be imported: {reason}", "export it again from the original store"
                )
            run.path.rename(self._runs / name)
        finally:
            staged.drop()
        return SealedRun(self._runs / name)

    def remove(self, run: SealedRun | UnfinishedRun) -> None:
        """Delete a run with everything in it."""
        shutil.rmtree(run.path)
        Derived(run.path).remove()

    def _folders(self) -> list[Path]:
        if not self._runs.is_dir():
            return []
        return sorted(path for path in self._runs.iterdir() if path.is_dir())
