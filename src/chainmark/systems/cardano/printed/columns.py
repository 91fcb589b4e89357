"""The columns of published reports, each once: a column of one report is often the baseline of the next."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import UsageError
from chainmark.core.metric import Metric
from chainmark.systems.cardano.printed.rounding import unit_of
from chainmark.systems.cardano.published.content import SAMPLE_COUNT, ReportContent, metrics_by_label, row_name
from chainmark.systems.cardano.published.entries import published_of
from chainmark.systems.cardano.published.files import JSON, SUFFIXES, read_content
from chainmark.systems.cardano.published.reader import NUMBER
from chainmark.systems.cardano.published.results import ReportStyle

_LARGEST_JSON = 4 << 20  # a larger file of that name is a log
_DAY, _TIME = re.compile(r"20\d\d-[01]\d-[0-3]\d"), re.compile(r"[0-2]\d:[0-5]\d:[0-5]\d")
REVISION = "cardano-node git"
START_HINT = (
    "a run is identified by the rows `Cluster system start date`, `Cluster system start time` and the node's commit"
)


@dataclass(frozen=True)
class PrintedFigure:
    """A metric's printed figure, and the width of the range of averages with this printed value."""

    text: str
    unit: float


@dataclass(frozen=True)
class PrintedRun:
    """One run as one or more reports print it.

    Attributes:
        names: its version's names in the reports, that of the oldest report first.
        facts: the rows of the table "Manifest", as far as any of the reports has them.
        cells: by metric ID; of several reports the one with more digits.
        files: the reports; unread: their rows that could not be parsed.
    """

    names: tuple[str, ...]
    workload: str
    facts: Mapping[str, str]
    cells: Mapping[str, PrintedFigure]
    files: tuple[Path, ...]
    unread: tuple[str, ...] = ()

    @property
    def started(self) -> str:
        """When its cluster started, in UTC: "2026-02-12T10:38:55Z"."""
        return f"{self.facts['Cluster system start date']}T{self.facts['Cluster system start time']}Z"

    @property
    def identity(self) -> str:
        """Its identity: the start of its cluster, and the commit that the nodes were built from."""
        return f"{self.started} {self.facts.get(REVISION, '')}"

    def joined(self, other: PrintedRun) -> PrintedRun:
        """The same run with another report's additional data."""
        better = {
            metric: cell
            for metric, cell in other.cells.items()
            if metric not in self.cells or cell.unit < self.cells[metric].unit
        }
        return replace(
            self,
            names=tuple(dict.fromkeys([*self.names, *other.names])),
            facts={**other.facts, **self.facts},
            cells={**self.cells, **better},
            files=(*self.files, *other.files),
            unread=(*self.unread, *other.unread),
        )


def report_files(source: Path, catalogue: Catalogue) -> list[Path]:
    """The published reports at a path: the file itself, or those of a folder; empty if there are none."""
    if source.is_file():
        # For a PDF the error states why it is not a report; any other file may be a log.
        return [source] if source.suffix.lower() == ".pdf" or _is_report(source, catalogue) else []
    paths = (path for path in source.rglob("*") if path.suffix.lower() in SUFFIXES)
    return sorted(path for path in paths if path.is_file() and _is_report(path, catalogue))


def _is_report(path: Path, catalogue: Catalogue) -> bool:
    if path.suffix.lower() not in SUFFIXES or (path.suffix == JSON and path.stat().st_size > _LARGEST_JSON):
        return False
    try:
        read_content(path, catalogue)
    except UsageError:
        return False
    return True


def columns_of(files: Sequence[Path], catalogue: Catalogue) -> list[PrintedRun]:
    """The runs of reports, the oldest first, each once.

    Raises:
        UsageError: a file is of another kind, or does not identify the runs of its columns.
    """
    contents = [(path, read_content(path, catalogue)) for path in files]
    contents.sort(key=lambda item: (_newest_day(item[1]), item[0].name))
    known_metrics = metrics_by_label(catalogue)
    printed_runs: dict[str, PrintedRun] = {}
    for path, content in contents:
        for place in range(len(content.versions)):
            column = _column(path, content, place, known_metrics)
            known = printed_runs.get(column.identity)
            printed_runs[column.identity] = column if known is None else known.joined(column)
    return sorted(printed_runs.values(), key=lambda column: column.identity)


def _newest_day(content: ReportContent) -> str:
    return max((str(day) for day in content.manifest.get("Cluster system start date", [])), default="")


def _column(path: Path, content: ReportContent, place: int, metrics: Mapping[str, Metric]) -> PrintedRun:
    name = content.versions[place]
    facts = {label: str(values[place]) for label, values in content.manifest.items() if place < len(values)}
    day, time = (facts.get(f"Cluster system start {part}", "") for part in ("date", "time"))
    if not (_DAY.fullmatch(day) and _TIME.fullmatch(time)):
        raise UsageError(f"{path} does not state when the cluster of {name} started", START_HINT)
    rows = [row for table in content.tables.values() for row in table.rows]
    style = ReportStyle.ORG if any(row_name(row) == SAMPLE_COUNT for row in rows) else ReportStyle.TYPST
    cells = {}
    for row in rows:
        metric = metrics.get(row_name(row))
        text = str(row.values[place]).strip() if place < len(row.values) else ""
        if metric is not None and text and NUMBER.fullmatch(text):
            cells[metric.id] = PrintedFigure(text, unit_of(text, published_of(metric).width, style))
    return PrintedRun((name,), content.workload, facts, cells, (path,), tuple(content.unread))
