"""Sealed runs: read lazily and verified, never changed."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import blake3
import polars as pl
from pydantic import ValidationError
from pydantic_core import from_json

from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary, standard_error_in, value_in
from chainmark.core.errors import InvalidRunError
from chainmark.core.manifest import Manifest
from chainmark.core.tool import tool_version
from chainmark.store.archive import ArchivedFigures, FigureArchive
from chainmark.store.derived import Derived
from chainmark.store.files import hash_file
from chainmark.store.index import SEAL

DESCRIPTION = "description.parquet"
# By the hash of their sealed files: most runs of an archive share them.
_CATALOGUES: dict[str, Catalogue] = {}
_MOST_CATALOGUES = 64
_LAYOUT = "chainmark.layout"  # of a description, in the file's metadata


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
            Derived(self.path).write(DESCRIPTION, self._seal_hash, packed_description(frame, layout))

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
        present = {str(path.relative_to(self.path)): path for path in files_of(self.path)}
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


def packed_description(frame: pl.DataFrame, layout: int) -> bytes:
    """A description as the bytes of its file."""
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


def files_of(path: Path) -> Iterator[Path]:
    """Every file of a run but its seal and stored node homes, which nodes may open again and change."""
    for folder, folders, names in os.walk(path):
        if Path(folder) == path:
            folders[:] = [name for name in folders if name != "homes"]
        yield from (Path(folder) / name for name in names if name != SEAL)
