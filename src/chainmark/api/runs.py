"""Finding, opening and reading runs as data frames."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from chainmark.api.context import store_at
from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import InvalidRunError, UsageError
from chainmark.core.manifest import Manifest, Status
from chainmark.core.storage import storage_errors
from chainmark.lab.registry import folders
from chainmark.store.files import write_bytes
from chainmark.store.listing import ListedRun, listed_runs
from chainmark.store.notes import read_notes
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import HostSystem

if TYPE_CHECKING:
    from chainmark.report.document import Document

__all__ = [
    "Run",
    "export_figures",
    "figures",
    "import_run",
    "import_samples",
    "open_run",
    "open_runs",
    "remove_run",
    "remove_unfinished",
    "runs",
]

_LISTED = 3


class Run:
    """A sealed run: its manifest, its metrics and its samples, as measured.

    Attributes:
        sealed: the run on disk.
        is_new: false if an import found that the same run already exists.
    """

    def __init__(self, sealed: SealedRun, *, is_new: bool = True) -> None:
        self.sealed = sealed
        self.is_new = is_new

    @property
    def id(self) -> str:
        """Its name in the store."""
        return self.sealed.run_id

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.sealed.path

    @property
    def manifest(self) -> Manifest:
        """The subject, the method, the environment, and whether the run may be compared."""
        return self.sealed.manifest

    @property
    def catalogue(self) -> Catalogue:
        """The metrics as they were defined at the time of the run."""
        return self.sealed.catalogue

    @property
    def is_valid(self) -> bool:
        """Whether it may be compared."""
        return self.manifest.status is Status.VALID

    @property
    def is_of_one_host(self) -> bool:
        """Whether `cm.host` supports it."""
        system = load_system(self.manifest.subject.system)
        return isinstance(system, HostSystem) and system.is_of_one_host(self.sealed)

    @cached_property
    def metrics(self) -> pl.DataFrame:
        """One row per metric and statistic: metric, unit, n, statistic, value, standard_error."""
        summaries = self.sealed.summaries()
        rows = [
            {
                "metric": metric.id,
                "unit": metric.unit,
                "n": summary.n,
                "statistic": statistic,
                "value": estimate.value,
                "standard_error": estimate.standard_error,
            }
            for metric in self.catalogue.ordered()
            if (summary := summaries.get(metric.id))
            for statistic, estimate in summary.estimates.items()
        ]
        schema = {"metric": pl.String, "unit": pl.String, "n": pl.Int64, "statistic": pl.String}
        return pl.DataFrame(rows, schema=schema | {"value": pl.Float64, "standard_error": pl.Float64})

    @property
    def populations(self) -> list[str]:
        """The populations with samples."""
        return self._tables("samples")

    @property
    def event_kinds(self) -> list[str]:
        """The kinds of events that it has."""
        return self._tables("events")

    def _tables(self, folder: str) -> list[str]:
        return sorted(path.stem for path in (self.path / folder).glob("*.parquet"))

    def samples(self, population: str) -> pl.DataFrame:
        """The samples of one population: its keys, then a column for each metric, null if it has no value.

        Raises:
            UsageError: it has no such population.
        """
        if population not in self.populations:
            raise UsageError(
                f"run `{self.id}` has no samples of `{population}`", f"it has {', '.join(self.populations)}"
            )
        return self.sealed.samples(population)

    def events(self, name: str) -> pl.DataFrame:
        """The typed events of one kind.

        Raises:
            UsageError: it has no such events.
        """
        if name not in self.event_kinds:
            raise UsageError(
                f"run `{self.id}` has no events `{name}`", f"it has {', '.join(self.event_kinds) or 'none'}"
            )
        return self.sealed.events(name)

    def verify(self) -> list[str]:
        """Deviations from the sealed state, a sentence each; empty: there are none."""
        return self.sealed.verify()

    def export(self, folder: Path | str = ".") -> Path:
        """Pack it into one file that another store can import; the file's path.

        Raises:
            InvalidRunError: the run differs from its sealed state, so no store would import it.
        """
        if problems := self.sealed.verify():
            raise InvalidRunError(
                f"run `{self.id}` is not as it was sealed: {problems[0]}",
                "`chainmark runs verify` lists every difference",
            )
        target = Path(folder)
        with storage_errors(target):
            target.mkdir(parents=True, exist_ok=True)
            return Path(shutil.make_archive(str(target / self.id), "tar", self.path.parent, self.id))

    def document(self) -> Document:
        """The run as a document: its gates, its counts, every metric."""
        from chainmark.api.charting import charted  # noqa: PLC0415 - making a run needs no document
        from chainmark.api.noting import noted_of  # noqa: PLC0415
        from chainmark.report.layouts import document_of  # noqa: PLC0415
        from chainmark.report.run_document import RunRecord  # noqa: PLC0415

        notes = read_notes(self.path.parents[1]).of(noted_of(self.manifest))
        metrics = self.sealed.summaries()
        record = RunRecord(manifest=self.manifest, metrics=metrics, catalogue=self.catalogue, notes=notes)
        return charted(document_of(record), {self.manifest.subject.version: [self.sealed]}, in_full=True)

    def __repr__(self) -> str:
        return f"Run({self.id!r}, {self.manifest.status.value})"

    def _repr_html_(self) -> str:
        return self.document()._repr_html_()


RunReference = Run | SealedRun | str


def runs(
    store: Store | Path | str | None = None,
    *,
    selector: str | None = None,
    status: str | None = None,
    since: str | None = None,
) -> pl.DataFrame:
    """The runs of a store, the oldest first, unfinished ones at the end.

    Args:
        store: where the runs are.
        selector: only the runs of a version or experiment, or with labels such as "hardware:mid,sla:missed".
        status: only runs with this status: "valid", "invalid", "failed", "damaged" or "unfinished".
        since: only runs that began on this day or later, "2026-11-20".

    Returns:
        run_id, system, version, profile, experiment, side, started_at, status, badges, notes, sla, cell, repetition,
        machine, source, verdict.

    Raises:
        UsageError: there is no such status, or the selector matches nothing.

    Example:
        >>> cm.runs(status="valid").columns[:3]
        ['run_id', 'system', 'version']
    """
    listed = listed_runs(store_at(store).root, selector, status, since)
    types = {item.name: pl.Int64 if item.name == "repetition" else pl.String for item in fields(ListedRun)}
    del types["labels"]
    return pl.DataFrame([[getattr(run, name) for name in types] for run in listed], schema=types, orient="row")


def open_run(reference: RunReference, store: Store | Path | str | None = None) -> Run:
    """One run, by its id, a unique beginning of it, or a version with one run.

    Raises:
        UsageError: there is none, or there are several.
        InvalidRunError: it was not finished.

    Example:
        >>> run = cm.open_run("cometbft-demo-v1.0.1-20260101T000000-0004")
        >>> run.is_valid, run.populations[:2]
        (True, ['block', 'node'])
    """
    if isinstance(reference, Run):
        return reference
    if isinstance(reference, SealedRun):
        return Run(reference)
    return Run(only_run(store_at(store).select(reference), reference))


def remove_run(reference: str, store: Store | Path | str | None = None) -> str:
    """Delete a run, finished or not; its id.

    Raises:
        UsageError: there is none, there are several, or a running process is making it.

    Example:
        >>> cm.remove_run("cometbft-demo-v1.0.1-20260101T000000-0006")
        'cometbft-demo-v1.0.1-20260101T000000-0006'
    """
    run_store = store_at(store)
    run = run_store.find(reference)
    if isinstance(run, UnfinishedRun) and (pid := run.maker()):
        raise UsageError(f"run `{run.run_id}` is still in progress in process {pid}", "stop that process first")
    run_store.remove(run)
    return run.run_id


def remove_unfinished(store: Store | Path | str | None = None) -> list[str]:
    """Delete all unfinished runs except those that a running process is making; their ids.

    Example:
        >>> cm.remove_unfinished()
        []
    """
    stored = store_at(store)
    ended = [run for run in stored.unfinished() if run.maker() is None]
    for run in ended:
        stored.remove(run)
    return [run.run_id for run in ended]


def import_run(archive: Path | str, store: Store | Path | str | None = None) -> Run:
    """Import a run from the file that `Run.export` wrote; an existing run stays unchanged.

    Raises:
        UsageError: the file does not exist, or is not an exported run.
        InvalidRunError: the run differs from its sealed state.

    Example:
        >>> archive = cm.open_run("cometbft-demo-v1.0.1-20260101T000000-0004").export(folder)
        >>> cm.import_run(archive).id
        'cometbft-demo-v1.0.1-20260101T000000-0004'
    """
    return Run(store_at(store).import_archive(Path(archive)))


def import_samples(store: Store | Path | str | None = None) -> list[Run]:
    """Import the runs that chainmark ships into the store, as example data.

    They were measured, and can be compared with each other. Existing ones stay unchanged.

    Example:
        >>> sorted({run.manifest.subject.version for run in cm.import_samples(folder / "new")})
        ['v0.38.17', 'v1.0.1']
    """
    archives = (archive for folder in folders().values() for archive in sorted((folder / "samples").glob("*.tar.xz")))
    return [import_run(archive, store) for archive in archives]


def open_runs(reference: str, store: Store | Path | str | None = None) -> list[Run]:
    """The runs that a reference names: an id or the beginning of one, a version, an experiment, or labels.

    Raises:
        UsageError: there is none.
        InvalidRunError: it was not finished.

    Example:
        >>> [run.manifest.subject.version for run in cm.open_runs("v1.0.1")][:1]
        ['v1.0.1']
    """
    return [Run(run) for run in store_at(store).select(reference)]


def figures(reference: str | None = None, store: Store | Path | str | None = None) -> pl.DataFrame:
    """Every figure of runs: one row per run, metric and statistic.

    Args:
        reference: the runs, as for `open_runs`; None: all that are sealed.
        store: where the runs are.

    Returns:
        The run's columns as in `runs`, then metric, unit, n, statistic, value, standard_error.

    Raises:
        UsageError: nothing matches.

    Example:
        >>> cm.figures("v1.0.1").columns[-4:]
        ['n', 'statistic', 'value', 'standard_error']
    """
    run_store = store_at(store)
    result = run_store.sealed() if reference is None else run_store.select(reference)
    facts = {row["run_id"]: row for row in runs(run_store).iter_rows(named=True)}
    frames = [
        metrics.select(*(pl.lit(text).alias(name) for name, text in facts[run.run_id].items()), pl.all())
        for run in result
        if (metrics := Run(run).metrics).height
    ]
    if not frames:
        raise UsageError("no run has figures to export", "`chainmark runs list` shows all runs")
    return pl.concat(frames)


def export_figures(reference: str, path: Path | str, store: Store | Path | str | None = None) -> Path:
    """Write every figure of runs as a table, in the format that the file's name ends with: .csv, .json or .parquet.

    Args:
        reference: the runs, as for `open_runs`.
        path: the file.
        store: where the runs are.

    Raises:
        UsageError: nothing matches, or the name has another suffix.

    Example:
        >>> cm.export_figures("v1.0.1", folder / "figures.csv").name
        'figures.csv'
    """
    target = Path(path)
    content = io.BytesIO()
    match target.suffix:
        case ".csv":
            figures(reference, store).write_csv(content)
        case ".json":
            figures(reference, store).write_json(content)
        case ".parquet":
            figures(reference, store).write_parquet(content, compression="zstd")
        case _:
            raise UsageError(f"`{target}` has no known format", "its name must end with .csv, .json or .parquet")
    write_bytes(target, content.getvalue())
    return target


def only_run(result: Sequence[SealedRun], reference: str) -> SealedRun:
    """The run that a reference names.

    Raises:
        UsageError: it names several.
    """
    if len(result) > 1:
        names = ", ".join(run.run_id for run in result[:_LISTED])
        raise UsageError(f"`{reference}` matches {len(result)} runs: {names} …", "give the ID of one run")
    return result[0]


def select(references: Sequence[RunReference | Sequence[RunReference]], store: Store) -> list[list[SealedRun]]:
    """The runs of every named side, the baseline's first; one experiment's name represents its two sides.

    Raises:
        UsageError: nothing matches, or one reference alone is not an experiment with two sides.
    """
    if len(references) == 1 and isinstance(references[0], str):
        return _sides_of(references[0], store)
    return [runs_of(reference, store) for reference in references]


def runs_of(reference: RunReference | Sequence[RunReference], store: Store) -> list[SealedRun]:
    """The runs of one side."""
    if isinstance(reference, str):
        return list(store.select(reference))
    if isinstance(reference, Run | SealedRun):
        return [open_run(reference).sealed]
    return [run for item in reference for run in runs_of(item, store)]


def _sides_of(experiment: str, store: Store) -> list[list[SealedRun]]:
    frame = store.select(experiment)
    sides = [
        [run for run in frame if (place := run.manifest.experiment) and place.side == side]
        for side in ("baseline", "candidate")
    ]
    if not all(sides):
        raise UsageError(
            f"`{experiment}` is not an experiment with two sides", "also give the candidate: `chainmark compare A B`"
        )
    return sides
