"""A run from the files of the published analysis.

These are `summary.json` with `blockprop.json` and `clusterperf.json`: the same run as a column of a report, but with
all digits. Names of facts are those of the reports' table "Manifest".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import UsageError
from chainmark.systems.cardano.documents import PACKAGES, UNKNOWN
from chainmark.systems.cardano.facts import workload_of_script
from chainmark.systems.cardano.printed.columns import PrintedFigure, PrintedRun
from chainmark.systems.cardano.verified.files import BLOCKS, SLOTS, SUMMARY, read_theirs
from chainmark.systems.cardano.verified.statistics import AVERAGE, Statistic

SUMMARY_FILE, FIGURE_FILES = "summary.json", {"blockprop.json": BLOCKS, "clusterperf.json": SLOTS}
_AVERAGE = Statistic("", AVERAGE)
# Rows of the table by the JSON path of their values.
_STATED = {
    "Run batch": ("sumMeta", "batch"),
    "GHC version": ("sumMeta", "node_ghc_version"),
    "Era": ("sumMeta", "era"),
    "Delegation map size": ("sumMeta", "profile_content", "genesis", "delegators"),
    "Stuffed UTxO size": ("sumMeta", "profile_content", "genesis", "utxo"),
    "DRep count": ("sumMeta", "profile_content", "genesis", "dreps"),
    "Extra tx payload": ("sumWorkload", "add_tx_size"),
    "Tx inputs": ("sumWorkload", "inputs_per_tx"),
    "Tx Outputs": ("sumWorkload", "outputs_per_tx"),
    "TPS": ("sumWorkload", "tps"),
    "Transaction count": ("sumWorkload", "tx_count"),
    "Machines": ("sumHosts",),
    "Run time, s": ("sumDomainTime", "ddRawCount"),
    "Blocks analysed": ("sumDomainBlocks", "ddFilteredCount"),
    "Blocks rejected": ("sumBlocksRejected",),
}


def summary_at(source: Path) -> Path | None:
    """The summary of an analysis at a path: its folder, or one of its files; None if there is none.

    Subfolders are not searched: a folder of a cluster's logs may contain an analysis of them.

    Raises:
        UsageError: one of its files is named, and the summary next to it cannot be read.
    """
    if not source.is_dir():
        named = source.name in {SUMMARY_FILE, *FIGURE_FILES}
        return _summary(source.with_name(SUMMARY_FILE)) if named else None
    try:
        return _summary(source / SUMMARY_FILE)
    except UsageError:  # a folder may hold anything: the reader of logs reports what it is instead
        return None


def _summary(path: Path) -> Path | None:
    return path if read_theirs(path).kind == SUMMARY else None


def analysed_column(summary: Path, catalogue: Catalogue) -> PrintedRun:
    """The run that an analysis is of.

    Raises:
        UsageError: the summary does not identify its run, or no file of figures is next to it.
    """
    reported: dict[str, Any] = json.loads(summary.read_text(encoding="utf-8"))
    files = [path for name in FIGURE_FILES if (path := summary.with_name(name)).is_file()]
    if not files:
        raise UsageError(
            f"there are no figures next to {summary}", f"add {' and '.join(FIGURE_FILES)} of the same analysis there"
        )
    name, facts = _name(summary, reported), _facts(summary, reported)
    workload = workload_of_script(script) if (script := _script(reported)) else "value-only"
    return PrintedRun((name,), workload, {"Identifier": name, **facts}, _cells(files, catalogue), (summary, *files))


def _at(reported: Any, place: tuple[str, ...]) -> Any:
    for key in place:
        reported = reported.get(key) if isinstance(reported, Mapping) else None
    return reported


def _name(summary: Path, reported: Mapping[str, Any]) -> str:
    node = ("sumMeta", "manifest", PACKAGES[0], "version")
    names = (_at(reported, place) for place in (("sumMeta", "ident"), node, ("sumMeta", "tag")))
    result = next((str(name) for name in names if name not in {None, "", UNKNOWN}), None)
    if result is None:
        raise UsageError(f"{summary} does not state its version", "it must be in `ident` of `sumMeta`")
    return result


def _facts(summary: Path, reported: Mapping[str, Any]) -> dict[str, str]:
    date, time = _start(summary, reported)
    facts = {label: str(value) for label, place in _STATED.items() if (value := _at(reported, place)) is not None}
    facts |= {
        f"{package} {label}": str(value)
        for package in PACKAGES
        for label, key in (("version", "version"), ("git", "commit"))
        if (value := _at(reported, ("sumMeta", "manifest", package, key))) is not None
    }
    filters = reported.get("sumFilters")
    if isinstance(filters, list) and len(filters) == 2 and isinstance(filters[1], list):
        facts["Number of filters applied"] = str(len(filters[1]))
    slots = _at(reported, ("sumDomainSlots", "ddFilteredCount", "cdfAverage"))
    if isinstance(slots, int | float):
        facts["Slots analysed"] = str(math.floor(slots))
    if script := _script(reported):
        facts["Plutus script"] = script
    facts["Analysis date"] = str(reported.get("sumAnalysisTime", ""))[:10]
    return {**facts, "Cluster system start date": date, "Cluster system start time": time}


def _start(summary: Path, reported: Mapping[str, Any]) -> tuple[str, str]:
    text = _at(reported, ("sumGenesis", "systemStart"))
    try:
        start = datetime.fromisoformat(str(text).replace("Z", "+00:00")).astimezone(UTC)
    except ValueError as error:
        raise UsageError(
            f"{summary} does not state when its cluster started", "it must be in `systemStart` of `sumGenesis`"
        ) from error
    return start.strftime("%Y-%m-%d"), start.strftime("%H:%M:%S")


def _script(reported: Mapping[str, Any]) -> str:
    script = _at(reported, ("sumWorkload", "plutus", "script"))
    return script if isinstance(script, str) else ""


def _cells(files: list[Path], catalogue: Catalogue) -> dict[str, PrintedFigure]:
    """The averages in the reports, with all digits."""
    metrics = {metric.published_id: metric.id for metric in catalogue.metrics if metric.published_id}
    figures = {name: figure for path in files for name, figure in read_theirs(path).figures.items()}
    values = {
        metrics[name]: figure[_AVERAGE] for name, figure in figures.items() if name in metrics and _AVERAGE in figure
    }
    return {metric: PrintedFigure(repr(value), math.ulp(value)) for metric, value in values.items()}
