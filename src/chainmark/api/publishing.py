"""Comparisons in the published style, for runs and published reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chainmark.api.context import store_at
from chainmark.api.noting import noted
from chainmark.api.runs import RunReference, runs_of, select
from chainmark.core.errors import UsageError
from chainmark.core.progress import Silent
from chainmark.core.tool import tool_version
from chainmark.lab.importing import Importer
from chainmark.lab.protocols import ImportRequest
from chainmark.lab.stages import has_stages, stages_of
from chainmark.report.document import Document
from chainmark.store.files import write_bytes
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.base import load_system, system_names
from chainmark.systems.capabilities import PublishedFile, PublishingSystem, importable, paged, publishing

__all__ = ["publish"]

SUFFIXES = (".json", ".pdf", ".txt")
VERSION_MARK = "@"
Side = RunReference | Sequence[RunReference]


def is_document(reference: str) -> bool:
    """Whether a reference names a file instead of runs: by its suffix, or because the file exists."""
    path, _ = _split(reference)
    return path.suffix in SUFFIXES or path.is_file()


def published(references: Sequence[Side], era: str | None, store: Store) -> Document:
    """Versions in the style of their system's published reports.

    Args:
        references: runs, reports as files, and versions of such reports; the first one is the baseline.
        era: the style; None: that of the given reports, or the current one.
        store: where the runs are.

    Raises:
        UsageError: the system's reports have no such style, or a reference cannot be shown.
    """
    files = [
        _file(reference) if isinstance(reference, str) and is_document(reference) else None for reference in references
    ]
    parts: list[list[SealedRun] | PublishedFile]
    if any(files):
        parts = [file or runs_of(reference, store) for file, reference in zip(files, references, strict=True)]
    else:
        parts = [*select(references, store)]
    publisher = _publisher(parts)
    if era is not None and era not in publisher.styles:
        raise UsageError(
            f"the published reports of `{publisher.name}` have no style `{era}`",
            f"known styles: {', '.join(f'`{style}`' for style in publisher.styles)}, the current one first",
        )
    runs = [run for part in parts if not isinstance(part, PublishedFile) for run in part]
    return noted(publisher.published(parts, era, tool_version()), runs, store)


def publish(
    system: str,
    references: Sequence[RunReference] = (),
    *,
    stages: Path | str | None = None,
    store: Store | Path | str | None = None,
) -> Document:
    """The load-test page of a system: every release, machine and scenario, the newest first.

    Args:
        system: the system of the load tests, measured here or imported from a published page.
        references: runs, versions, experiments, or labels ("release:v1.2.9,hardware:mid"), with all their runs; none:
            the whole history.
        stages: a folder for one CSV file per run with all its steps; the page refers to them in a folder next to it.
        store: where the runs are.

    Raises:
        UsageError: the system has no such page, or the references match none of its load tests.
        EnvironmentFailure: the files cannot be written.

    Example:
        >>> runs = cm.ingest("mesh", page)
        >>> made = cm.publish("mesh", ["release:v2.0.1,hardware:entry"])
        >>> [(table.cell["scenario"], table.printed is not None) for table in made.result.releases[0].tables]
        [('standard', True), ('Huge Address (~1.5M txs)', True)]
    """
    publisher, run_store = paged(load_system(system)), store_at(store)
    chosen = [run for reference in references or [f"system:{system}"] for run in _all_of(reference, run_store)]
    runs = list({run.run_id: run for run in chosen if run.manifest.subject.system == system}.values())
    tables = {} if stages is None else {run.run_id: stages_of(run) for run in runs if has_stages(run)}
    folder = Path(stages or "")
    names = {run_id: f"{folder.name}/{run_id}.csv" for run_id in tables}
    page = noted(publisher.page(runs, names, tool_version()), runs, run_store)
    for run_id, table in tables.items():
        write_bytes(folder / f"{run_id}.csv", table.write_csv().encode())
    return page


def _all_of(reference: RunReference, store: Store) -> list[SealedRun]:
    return store.all_of(reference) if isinstance(reference, str) else runs_of(reference, store)


def printed_sides(reference: str, store: Store) -> list[list[SealedRun]]:
    """The runs in a report, one side per version, the baseline first; imported into the store if necessary.

    Args:
        reference: the report, or one of its versions: "report.pdf@10.6.2".
        store: where the runs are, or are imported to.

    Raises:
        UsageError: it is not such a report, or its runs are not distinguishable.
    """
    file = _file(reference)
    reader = _reader(file.path)
    importer = Importer(store, importable(reader))
    versions = reader.columns(file.path) if file.version is None else [file.version]
    orders = [ImportRequest(source=file.path, version=version) for version in versions]
    return [[imported.run for imported in importer.make_all(order, Silent())] for order in orders]


def _publisher(parts: Sequence[list[SealedRun] | PublishedFile]) -> PublishingSystem:
    """The system of the first published report, or else that of the runs."""
    file = next((part for part in parts if isinstance(part, PublishedFile)), None)
    if file is not None:
        return _reader(file.path)
    runs = [run for part in parts if not isinstance(part, PublishedFile) for run in part]
    return publishing(load_system(runs[0].manifest.subject.system))


def _split(reference: str) -> tuple[Path, str | None]:
    """A path, and the version after its last `@`; a file whose own name has one is that file."""
    path = Path(reference)
    name, mark, version = reference.rpartition(VERSION_MARK)
    return (Path(name), version) if mark and name and not path.exists() else (path, None)


def _file(reference: str) -> PublishedFile:
    """The report in a reference, or one version of it.

    Raises:
        UsageError: there is no such file, or no system recognises it.
    """
    path, version = _split(reference)
    if not path.is_file():
        raise UsageError(
            f"there is no file `{path}`",
            "a published report is a JSON file, a PDF or its text; `chainmark runs list` shows runs",
        )
    _reader(path)
    return PublishedFile(path, version)


def _reader(path: Path) -> PublishingSystem:
    """The system of a published report in a file.

    Raises:
        UsageError: no system recognises it.
    """
    systems = [load_system(name) for name in system_names()]
    readers = [system for system in systems if isinstance(system, PublishingSystem)]
    reader = next((system for system in readers if system.recognises_document(path)), None)
    if reader is None:
        names = ", ".join(f"`{system.name}`" for system in readers) or "no system"
        raise UsageError(f"`{path}` is not a published report in a known format", f"known formats: {names}")
    return reader
