"""Published reports, printed again: every change that they show, computed from the values that they show.

In the org style, a change is computed from the two printed values, so every change must match exactly. In the typst
style it is computed from averages whose last digits were not printed. If these digits cannot matter, the change must
match. Otherwise the printed change must be one that they could give.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.published.digits import hidden_value, is_determined, is_possible
from chainmark.systems.cardano.published.entries import published_of
from chainmark.systems.cardano.published.printed import printed_report
from chainmark.systems.cardano.published.results import PublishedReport, ReportStyle
from chainmark.systems.cardano.published.text import worded
from chainmark.systems.cardano.published.values import PrintedChange, org_change, org_value, typst_change, typst_value

pytestmark = pytest.mark.shared_data
TYPST_RELEASES = ("10.5.4", "10.6.2", "10.7.1", "11.0.1")
SAMPLE_COUNT = "Sample count"
# Labels that the list of widths and the catalogue spell differently.
OTHER_LABELS = {"RTS live GC dataset": "RTS live GC dateset"}


@dataclass(frozen=True)
class Printed:
    """One change in a report, with the values that it was computed from."""

    report: str
    label: str
    base: str
    value: str
    change: PrintedChange


def _printed(shared_data: Path, *, typst: bool) -> Iterator[Printed]:
    for path in sorted((shared_data / "cardano" / "reports").glob("*.json")):
        if any(release in path.name for release in TYPST_RELEASES) is not typst:
            continue
        for table in json.loads(path.read_text(encoding="utf-8"))["tables"].values():
            for row in table["rows"]:
                if row["label"] == SAMPLE_COUNT:
                    continue
                base, *values = row["values"]
                for value, delta, percent in zip(values, row["delta"], row["delta_pct"], strict=True):
                    yield Printed(path.stem, row["metric"], base, value, PrintedChange(delta, percent))


def _widths(shared_data: Path) -> dict[str, int]:
    """The width in characters of each metric in reports, from the published dictionary."""
    path = shared_data.parent / "spec" / "cardano-metrics.csv"
    with path.open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    widths = {row["label"]: int(row["column_width"]) for row in rows if row["table"] != "none"}
    return widths | {other: widths[label] for other, label in OTHER_LABELS.items()}


def test_every_change_of_the_org_style_is_reproduced(shared_data: Path) -> None:
    """All of them without exception, including integer cells, exact halves and a base printed as -0.0."""
    printed = list(_printed(shared_data, typst=False))
    assert len(printed) == 1387
    wrong = [printed for printed in printed if org_change(printed.base, printed.value) != printed.change]
    assert wrong == []


def test_printed_values_of_the_org_style_are_not_truncated_again(shared_data: Path) -> None:
    """A value of a report is unchanged when it is read and printed."""
    texts = {text for printed in _printed(shared_data, typst=False) for text in (printed.base, printed.value)}
    changed = {text: shown for text in texts if (shown := org_value(float(text))) != text}
    # As a number, an integer cell no longer shows that it had no point. The reports' rule adds one again.
    assert {text: shown for text, shown in changed.items() if shown != f"{text}.0"[:6].rstrip(".")} == {}


def test_changes_of_the_typst_style_are_reproduced_or_possible(shared_data: Path) -> None:
    """Most changes follow from the printed digits. Each of the others is one that the hidden digits could give."""
    widths = _widths(shared_data)
    counts: Counter[str] = Counter()
    for printed in _printed(shared_data, typst=True):
        width = widths[printed.label.replace("Fetches to", "Fetched to")]
        digits = hidden_value(printed.base, width), hidden_value(printed.value, width)
        assert is_possible(*digits, printed.change), printed
        likely = typst_change(float(printed.base), float(printed.value))
        if is_determined(*digits):
            counts["decided"] += 1
            assert likely == printed.change, printed
        counts["all"] += 1
        counts["likely"] += likely == printed.change
    assert counts == {"all": 180, "decided": 106, "likely": 145}


def test_printed_values_of_the_typst_style_have_the_digits_of_the_report(shared_data: Path) -> None:
    """Read and printed again with the width of its metric, every value has the same digits."""
    widths = _widths(shared_data)
    for printed in _printed(shared_data, typst=True):
        width = widths[printed.label.replace("Fetches to", "Fetched to")]
        for text in (printed.base, printed.value):
            assert typst_value(float(text), width) == text, printed


def _reports(shared_data: Path) -> list[PublishedReport]:
    paths = sorted((shared_data / "cardano" / "reports").glob("*.json"))
    return [printed_report(path, SYSTEM.catalogue(), "test") for path in paths]


def test_complete_reports_are_read_and_shown_with_their_changes(shared_data: Path) -> None:
    """Through the catalogue and the document: no row is lost, no change is reported impossible, none is guessed."""
    for report in _reports(shared_data):
        shown = worded(report)
        assert [table.title for table in shown.tables] == [
            "Resource Usage",
            "Anomaly control",
            "Forging",
            "Individual peer propagation",
            "End-to-end propagation",
        ]
        rows = [row for table in shown.tables for row in table.rows]
        assert len(rows) in {43, 45}
        assert all(row.metric_id is not None and row.width is not None for row in rows), report.title
        assert all(change.printed and change.agrees for row in rows for change in row.changes), report.title


def test_the_org_style_is_reproduced_without_the_printed_changes(shared_data: Path) -> None:
    """The original changes must be computed if only the values of a report are known."""
    compared = 0
    for report in _reports(shared_data):
        if report.style is not ReportStyle.ORG:
            continue
        bare = report.model_copy(deep=True)
        for table in bare.tables:
            for row in table.rows:
                row.reported_changes = []
        pairs = zip(worded(report).tables, worded(bare).tables, strict=True)
        for with_changes, without_changes in pairs:
            for item, other in zip(with_changes.rows, without_changes.rows, strict=True):
                compared += len(item.changes)
                assert [(c.delta, c.percent) for c in item.changes] == [(c.delta, c.percent) for c in other.changes]
    assert compared == 1387


def test_widths_of_the_catalogue_match_the_published_ones(shared_data: Path) -> None:
    """With a wrong width, other digits than in the reports would be printed."""
    widths = _widths(shared_data)
    published = {metric.label: published_of(metric) for metric in SYSTEM.catalogue().metrics if metric.published}
    known = {
        published.label or label: published.width
        for label, published in published.items()
        if published.width is not None
    }
    assert len(known) == 47
    assert known == {label: widths[label] for label in known}
