"""Comparisons in the published style, of runs and of published reports alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chainmark.api.runs import RunReference, runs_of, select
from chainmark.compare.joined import compare_published
from chainmark.core.errors import UsageError
from chainmark.core.published import PublishedReport, chosen, find_version
from chainmark.core.report_style import ReportStyle
from chainmark.core.tool import tool_version
from chainmark.report.document import Document
from chainmark.report.layouts import document_of
from chainmark.report.published_text import worded
from chainmark.store.runs import SealedRun, Store
from chainmark.systems.base import load_system, system_names
from chainmark.systems.capabilities import PublishingSystem

SUFFIX = ".json"
VERSION_MARK = "@"
Side = RunReference | Sequence[RunReference]


def is_document(reference: str) -> bool:
    """Whether a reference names a file instead of runs: it ends like one, or there is one."""
    path, _ = _split(reference)
    return path.suffix == SUFFIX or path.is_file()


def published(references: Sequence[Side], era: ReportStyle | None, store: Store) -> Document:
    """Versions as the published reports of their system show them.

    Args:
        references: runs, reports as JSON, and versions of such reports; the first one is the baseline.
        era: the style; None takes that of the reports given, or today's.
        store: where the runs are.
    """
    files = [_read(one) if isinstance(one, str) and is_document(one) else None for one in references]
    styles = [report.style for report in files if report]
    style = era or (ReportStyle.ORG if ReportStyle.ORG in styles else ReportStyle.TYPST)
    if styles:
        pairs = zip(files, references, strict=True)
        parts: list[list[SealedRun] | PublishedReport] = [file or runs_of(one, store) for file, one in pairs]
    else:
        parts = [*select(references, store)]
    return document_of(worded(compare_published(parts, style, tool_version=tool_version())))


def _split(reference: str) -> tuple[Path, str | None]:
    """A path, and the version behind its last mark; a file whose own name has one is that file."""
    path = Path(reference)
    name, mark, version = reference.rpartition(VERSION_MARK)
    return (Path(name), version) if mark and name and not path.exists() else (path, None)


def _read(reference: str) -> PublishedReport:
    """The report that a reference names, or the one version of it.

    Raises:
        UsageError: there is no such file or version, or no system knows the file.
    """
    path, version = _split(reference)
    if not path.is_file():
        raise UsageError(
            f"there is no file `{path}`", "a published report is a JSON file; `chainmark runs list` shows runs"
        )
    systems = [load_system(name) for name in system_names()]
    readers = [system for system in systems if isinstance(system, PublishingSystem)]
    reader = next((system for system in readers if system.recognises_document(path)), None)
    if reader is None:
        names = ", ".join(f"`{system.name}`" for system in readers) or "no system"
        raise UsageError(f"`{path}` is not a published report that is known here", f"known are those of {names}")
    report = reader.published_report(path, tool_version())
    return report if version is None else chosen(report, [find_version(report, version)])
