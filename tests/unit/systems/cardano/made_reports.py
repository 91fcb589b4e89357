"""Invented release reports, in the forms in which users have them: JSON, extracted text and PDF."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.published.files import read_content
from chainmark.systems.cardano.published.values import typst_value

# The gating metrics and one count: the table's title, the label, the unit, the width, and the mean of a typical run.
ROWS = (
    ("Resource Usage", "Process CPU usage", "%", 3, 5.5),
    ("Resource Usage", "Kernel RSS", "MiB", 5, 8800.0),
    ("Anomaly control", "Chained to forged blocks", "∶", 5, 0.97),
    ("Anomaly control", "Height & slot battles", "blocks", 4, 0.005),
    ("Forging", "Slot start to announced", "s", 4, 0.075),
    ("Individual peer propagation", "Fetch duration", "s", 4, 0.36),
    ("Individual peer propagation", "Fetched to adopted", "s", 4, 0.073),
    ("End-to-end propagation", "0.50 adoption", "s", 4, 0.62),
    ("End-to-end propagation", "0.80 adoption", "s", 4, 0.98),
    ("End-to-end propagation", "0.90 adoption", "s", 4, 1.0),
    ("End-to-end propagation", "0.96 adoption", "s", 4, 1.02),
)
LABELS = tuple(label for _, label, *_ in ROWS)


def column(name: str, day: str, commit: str, factor: float = 1.0, **changed: str) -> dict[str, Any]:
    """A run: its facts, and its values. Each value is a typical run's multiplied by a factor, in the typst style."""
    facts = {
        "Analysis date": day,
        "Cluster system start date": day,
        "Cluster system start time": "18:52:16",
        "Identifier": name,
        "GHC version": "9.6.5",
        "cardano-node version": name.partition("-")[0],
        "cardano-node git": commit,
        "Era": "conway",
        "Delegation map size": "1000000",
        "Tx inputs": "2",
        "TPS": "12.0",
        "Machines": "52",
        "Number of filters applied": "3",
        "Run time, s": "63901",
        "Slots analysed": "48022",
        "Blocks analysed": "2327",
    }
    values = {label: typst_value(usual * factor, width) for _, label, _, width, usual in ROWS}
    changed_texts = {label: text for label, text in changed.items() if label in values}
    return {
        "name": name,
        "facts": {**facts, **{k: v for k, v in changed.items() if k not in values}},
        "values": {**values, **changed_texts},
    }


def content(*columns: Mapping[str, Any], workload: str = "value-only") -> dict[str, Any]:
    """A report with several runs, the baseline first."""
    tables: dict[str, Any] = {}
    for title, label, unit, *_ in ROWS:
        values = [column["values"][label] for column in columns]
        row = {"label": f"{label}, {unit}", "metric": label, "unit": unit, "values": values}
        tables.setdefault(title, {"rows": []})["rows"].append(row)
    names = [column["name"] for column in columns]
    return {
        "title": f"{names[-1]} against {names[0]}",
        "workload": workload,
        "versions": names,
        "statement": f"We compare {names[-1]} (Conway) relative to {names[0]} (Conway), under {workload} workload.",
        "manifest": {label: [column["facts"][label] for column in columns] for label in columns[0]["facts"]},
        "tables": tables,
    }


def text(report: Mapping[str, Any], gap: str = "\t") -> str:
    """The report as text, with cells separated by tabs or by the spaces of a layout."""
    lines = [
        f"{report['title']}",
        f"{report['workload']} workload",
        report["statement"],
        "",
        gap.join(["", *report["versions"]]),
    ]
    lines += [gap.join([label, *values]) for label, values in report["manifest"].items()]
    for title, table in report["tables"].items():
        lines += ["", title, ""]
        for row in table["rows"]:
            base, *others = row["values"]
            cells = [cell for other in others for cell in (other, "0.001", "-0.5")]
            lines.append(gap.join([row["label"], base, *cells]))
    dictionary = "0.50 adoption (*cdf0.50*) – Time since slot start to block's adoption by 50% of the cluster."
    return "\n".join([*lines, "", "Figure 1: Process CPU usage", dictionary])


def written(path: Path, report: Mapping[str, Any]) -> Path:
    """Write the report as a file: JSON or text, according to its suffix."""
    path.write_text(json.dumps(report) if path.suffix == ".json" else text(report), encoding="utf-8")
    return path


def series(deviations: Sequence[float], first: int = 1) -> list[dict[str, Any]]:
    """Releases 9.1.0, 9.2.0, … a month apart. Each deviates from the typical run by a share."""
    return [
        column(f"9.{number}.0", f"202{4 + number // 12}-{number % 12 + 1:02}-11", f"{number:07x}", 1.0 + deviation)
        for number, deviation in enumerate(deviations, start=first)
    ]


def figures(path: Path) -> dict[str, list[str]]:
    """Every metric's values as read from a file."""
    tables = read_content(path, SYSTEM.catalogue()).tables.values()
    return {row.metric or row.label: list(row.values) for table in tables for row in table.rows}
