"""Reports of CometBFT's own load tests: the text of its report tool, and the tables derived from it per release.

A table is the same text with the experiments of one rate side by side, their columns separated by spaces or by a
vertical line (U+2502).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.core.storage import storage_errors
from chainmark.core.times import NS
from chainmark.systems.cometbft.durations import go_duration_ns
from chainmark.systems.cometbft.experiments import LOAD_S, LoadExperiment, published_runs
from chainmark.systems.cometbft.saturation.results import CellRun, LatencyEntry, RunFigure, VersionRuns

_ID = "Experiment ID"
_INVALID = "Total Invalid Tx"
_LINE = "\u2502"
_BETWEEN = re.compile(r"\s{2,}(?=\S)")
_COUNTS = ("Connections", "Rate", "Size", "Total Valid Tx", "Total Negative Latencies")
_DURATIONS = ("Minimum Latency", "Maximum Latency", "Average Latency", "Standard Deviation")
_FIELDS = (*_COUNTS, *_DURATIONS)
_LONGEST_HEAD = 64 << 10
# From the published plots of sweeps that were repeated: qa-infra's saturation-plotter-LE.py, c=1 and r=400.
NOISE_NOTE = (
    "There is one run per load. When the published sweeps were repeated, three runs at c=1, r=400 processed "
    "25,400, 28,800 and 35,600 transactions: near saturation the noise is larger than the 3 % assumed here."
)


@dataclass(frozen=True)
class PublishedExperiment(LoadExperiment):
    """One experiment of a report.

    Attributes:
        valid: transactions processed; negative: number of them with a latency below 0.
        min_ns, max_ns, mean_ns, sd_ns: of the latencies.
        line: its first line, from 1.
    """

    valid: int
    negative: int
    min_ns: int
    max_ns: int
    mean_ns: int
    sd_ns: int
    line: int


@dataclass(frozen=True)
class PublishedQaReport:
    """A whole report: every line of it is in one class of ``lines``.

    Attributes:
        invalid: transactions that were not payload; None if the report does not state it.
        lines: number of lines of each class.
    """

    experiments: tuple[PublishedExperiment, ...]
    invalid: int | None
    lines: dict[str, int]


@dataclass
class _Group:
    """Experiments side by side, being parsed."""

    line: int
    ids: list[str]
    fields: list[dict[str, str]] = field(default_factory=list)


def recognises_report(path: Path) -> bool:
    """Whether a file is such a report or table, by its beginning; false also for an unreadable file."""
    try:
        with path.open("rb") as file:
            head = file.read(_LONGEST_HEAD)
    except OSError:
        return False
    text = head.decode("utf-8", errors="replace").lstrip("\ufeff \t\r\n")
    return text.startswith((f"{_ID}:", f"{_INVALID}:"))


def read_report(path: Path) -> PublishedQaReport:
    """Read a report or table.

    Raises:
        UsageError: a line is malformed; the message names it.
        EnvironmentFailure: the file cannot be read.
    """
    with storage_errors(path):
        content = path.read_bytes()
    try:
        return parse_report(content.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise UsageError(f"`{path}` is not text in UTF-8", "give the output of the load tool's `report`") from error


def parse_report(text: str, name: str) -> PublishedQaReport:
    """The experiments of a text, in order.

    Args:
        text: of the report or table.
        name: its name, for errors.
    """
    lines = {"fields": 0, "blank": 0}
    groups: list[_Group] = []
    invalid: int | None = None
    for number, line in enumerate(text.split("\n") if text else [], start=1):
        cells = _cells(line)
        if not cells:
            lines["blank"] += 1
            continue
        lines["fields"] += 1
        pairs = [_pair(cell, name, number) for cell in cells]
        if pairs[0][0] == _ID:
            _only(_ID, pairs, name, number)
            groups.append(_Group(number, [value for _, value in pairs]))
            groups[-1].fields = [{} for _ in pairs]
        elif pairs[0][0] == _INVALID and len(pairs) == 1:
            invalid = _whole(pairs[0][1], name, number)
        else:
            _add(groups, pairs, name, number)
    experiments = tuple(experiment for group in groups for experiment in _experiments(group, name))
    if not experiments:
        raise UsageError(f"`{name}` contains no experiment", "a report begins with `Experiment ID: …`")
    twice = [experiment.id for experiment in experiments]
    again = next((experiment for experiment in experiments if twice.count(experiment.id) > 1), None)
    if again is not None:
        raise UsageError(f"`{name}` contains the experiment {again.id} twice", "each ID must be unique")
    if text.endswith("\n"):
        lines["blank"] -= 1  # what follows the last line's end is no line
    return PublishedQaReport(experiments, invalid, lines)


def _cells(line: str) -> list[str]:
    """The columns of a line; empty for a blank line or a spacer."""
    if _LINE in line:
        return [cell for part in line.split(_LINE) if (cell := part.strip())]
    return [cell.strip() for cell in _BETWEEN.split(line.strip()) if cell.strip()]


def _pair(cell: str, name: str, number: int) -> tuple[str, str]:
    key, separator, value = cell.partition(":")
    if not separator or not value.strip():
        raise UsageError(f"line {number} of `{name}` contains `{cell[:40]}`, which is not of the form `key: value`")
    return key.strip(), value.strip()


def _only(key: str, pairs: Sequence[tuple[str, str]], name: str, number: int) -> None:
    other = next((pair for pair, _ in pairs if pair != key), None)
    if other is not None:
        raise UsageError(f"line {number} of `{name}` mixes `{key}` and `{other}`", "the table may be truncated")


def _add(groups: Sequence[_Group], pairs: Sequence[tuple[str, str]], name: str, number: int) -> None:
    key = pairs[0][0]
    if not groups or key not in _FIELDS:
        known = f"the keys of a report: {', '.join(_FIELDS)}"
        raise UsageError(f"line {number} of `{name}` contains the unknown key `{key}`", known)
    _only(key, pairs, name, number)
    group = groups[-1]
    if len(pairs) != len(group.ids):
        raise UsageError(
            f"line {number} of `{name}` has {len(pairs)} columns, but line {group.line} has {len(group.ids)}",
            "the table may be truncated",
        )
    for fields, (_, value) in zip(group.fields, pairs, strict=True):
        if key in fields:
            raise UsageError(f"line {number} of `{name}` repeats `{key}`")
        fields[key] = value


def _experiments(group: _Group, name: str) -> Iterator[PublishedExperiment]:
    for id_, fields in zip(group.ids, group.fields, strict=True):
        missing = next((key for key in _FIELDS if key not in fields), None)
        if missing is not None:
            raise UsageError(f"the experiment {id_} of `{name}`, line {group.line}, has no `{missing}`")
        counts = [_whole(fields[key], name, group.line) for key in _COUNTS]
        durations = [go_duration_ns(fields[key]) for key in _DURATIONS]
        yield PublishedExperiment(
            id=id_,
            connections=counts[0],
            rate=counts[1],
            size_bytes=counts[2],
            valid=counts[3],
            negative=counts[4],
            min_ns=durations[0],
            max_ns=durations[1],
            mean_ns=durations[2],
            sd_ns=durations[3],
            line=group.line,
        )


def _whole(text: str, name: str, number: int) -> int:
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"line {number} of `{name}` contains `{text}` instead of a count")
    return int(text)


def published_cell(experiment: PublishedExperiment) -> CellRun:
    """One experiment as a load of a saturation test."""
    known = experiment.valid > 0
    latency = LatencyEntry(
        n=experiment.valid,
        mean=RunFigure(value=experiment.mean_ns / NS) if known else None,
        min_s=experiment.min_ns / NS if known else None,
        max_s=experiment.max_ns / NS if known else None,
        sd_s=experiment.sd_ns / NS if known else None,
    )
    return experiment.cell(experiment.valid, experiment.valid / LOAD_S, latency)


def published_version(path: Path, label: str | None) -> VersionRuns:
    """A report or table as one version of a saturation test.

    Args:
        path: the file.
        label: of the version; None uses the file's name.

    Raises:
        UsageError: the file is of another kind.
    """
    report = read_report(path)
    notes = [NOISE_NOTE]
    if report.invalid is not None:
        notes.append(f"{units.count(report.invalid)} transactions of the chain were not payloads of the load tool.")
    negative = sum(experiment.negative for experiment in report.experiments)
    if negative:
        notes.append(f"{units.count(negative)} latencies are negative: the clocks of the machines differed.")
    return published_runs(
        label or path.stem.removesuffix("_report_tabbed"),
        f"{path.name}: {len(report.experiments)} experiments",
        throughput_is=f"processed transactions over the {LOAD_S} s of load",
        runs=[published_cell(experiment) for experiment in report.experiments],
        notes=notes,
    )
