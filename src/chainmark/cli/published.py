"""Comparisons in the published style, of runs and of published reports alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import chainmark
from chainmark.cli.common import Output, open_store
from chainmark.core.errors import UsageError
from chainmark.core.published import PublishedReport, ReportStyle, chosen, find_version
from chainmark.core.tool import tool_version
from chainmark.lab.protocols import PublishingSystem
from chainmark.store.runs import SealedRun, Store
from chainmark.systems.base import load_system, system_names

SUFFIX = ".json"
VERSION_MARK = "@"


def is_document(reference: str) -> bool:
    """Whether a reference names a file instead of runs: it ends like one, or there is one."""
    path, _ = _split(reference)
    return path.suffix == SUFFIX or path.is_file()


def publish(references: Sequence[str], era: ReportStyle | None, output: Output) -> None:
    """Show versions as the published reports of their system do.

    Args:
        references: runs, reports as JSON, and versions of such reports; the first one is the baseline.
        era: the style; None takes that of the reports given, or today's.
        output: the files to write, and how to print.
    """
    documents = {reference: _read(reference) for reference in references if is_document(reference)}
    styles = [document.style for document in documents.values()]
    style = era or (ReportStyle.ORG if ReportStyle.ORG in styles else ReportStyle.TYPST)
    parts: list[list[SealedRun] | PublishedReport] = []
    if documents:
        store = open_store()
        parts += [documents.get(reference) or store.select(reference) for reference in references]
    else:
        parts += sides_of(open_store(), references)
    document = chainmark.compare_published(parts, style, tool_version=tool_version())
    output.present(chainmark.worded(document))


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


def sides_of(store: Store, references: Sequence[str]) -> list[list[SealedRun]]:
    """The runs of every version that was named, the baseline's first.

    Raises:
        UsageError: nothing matches, or one reference alone is not an experiment with two sides.
    """
    if len(references) > 1:
        return [store.select(reference) for reference in references]
    runs = store.select(references[0])
    sides: dict[str, list[SealedRun]] = {
        side: [run for run in runs if (place := run.manifest.experiment) and place.side == side]
        for side in ("baseline", "candidate")
    }
    if not sides["baseline"] or not sides["candidate"]:
        raise UsageError(
            f"`{references[0]}` is not an experiment with two sides", "name the candidate, too: `chainmark compare A B`"
        )
    return [sides["baseline"], sides["candidate"]]
