"""Reading published reports for the published style, and the command that shows them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from chainmark.cli.app import app
from chainmark.core.errors import UsageError
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import PublishingSystem
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.published.printed import printed_report
from chainmark.systems.cardano.published.results import PublishedChange, PublishedReport, PublishedValue, ReportStyle

from tests.support import Lab
from tests.unit.systems.cardano.made_up import write


def _row(label: str, unit: str, *values: str, delta: list[str] | None = None, percent: list[str] | None = None) -> Any:
    changes = {} if delta is None else {"delta": delta, "delta_pct": percent}
    return {"label": f"{label}, {unit}" if unit else label, "metric": label, "unit": unit, "values": values, **changes}


def content(*, org: bool = False, **changed: Any) -> dict[str, Any]:
    """A small report of two versions."""
    forging = [_row("Ledger ticking", "s", "0.02543", "0.02391", delta=["-0.002"], percent=["-8" if org else "-6"])]
    resource = [
        _row("Kernel RSS", "MB" if org else "MiB", "8735.4", "6602.5", delta=["-2132.900"], percent=["-24"]),
        _row("Fortune", "units", "1.0", "2.0"),
    ]
    if org:
        forging.append({"label": "Sample count", "metric": "Sample count", "values": ["(2327)", "(2214)"]})
    report_content = {
        "title": "10.6.2 against 10.5.4",
        "workload": "value-only",
        "author": "Somebody",
        "date": "2026-02-16",
        "statement": "We compare 10.6.2 (Conway) relative to 10.5.4 (Conway), under value-only workload.",
        "versions": ["10.5.4", "10.6.2"],
        "manifest": {"Identifier": ["10.5.4", "10.6.2"], "Era": ["conway", "conway"], "Machines": ["52", "52"]},
        "tables": {"Resource Usage": {"rows": resource}, "Forging": {"rows": forging}},
    }
    return report_content | changed


def _read(folder: Path, report_content: dict[str, Any]) -> PublishedReport:
    return printed_report(write(folder / "report.json", report_content), SYSTEM.catalogue(), "test")


def test_all_content_of_a_report_is_read(tmp_path: Path) -> None:
    """Content that is lost here is missing from the report when it is printed again."""
    report = _read(tmp_path, content())
    assert isinstance(load_system("cardano"), PublishingSystem)
    assert report.style is ReportStyle.TYPST
    assert (report.title, report.author, report.date) == ("10.6.2 against 10.5.4", "Somebody", "2026-02-16")
    assert [(column.label, column.beside) for column in report.columns] == [("10.5.4", "Conway"), ("10.6.2", "Conway")]
    assert [fact.label for fact in report.facts] == ["Identifier", "Era", "Machines"]
    assert [(table.id, table.title) for table in report.tables] == [
        ("resource", "Resource Usage"),
        ("forging", "Forging"),
    ]
    known, stranger = report.tables[0].rows
    assert (known.metric_id, known.width) == ("rss_mib", 5)
    assert known.values == [PublishedValue(printed="8735.4"), PublishedValue(printed="6602.5")]
    assert known.reported_changes == [PublishedChange(delta="-2132.900", percent="-24", printed=True)]
    assert (stranger.label, stranger.unit, stranger.metric_id, stranger.reported_changes) == (
        "Fortune",
        "units",
        None,
        [],
    )


def test_a_report_with_sample_counts_has_the_org_style(tmp_path: Path) -> None:
    """The styles compute their changes by different rules, so the style of a report must be recognised."""
    report = _read(tmp_path, content(org=True))
    assert report.style is ReportStyle.ORG
    assert report.tables[1].sample_counts == ["(2327)", "(2214)"]
    assert [row.label for row in report.tables[1].rows] == ["Ledger ticking"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"manifest": {"Machines": ["52"]}}, "has 1 values of `Machines` for 2 versions"),
        ({"tables": {"Forging": {"rows": [_row("Ledger ticking", "s", "0.02")]}}}, "1 values of `Ledger ticking, s`"),
        ({"tables": {"Forging": {"rows": [_row("Ledger ticking", "s", "0.02", "fast")]}}}, "has `fast` for"),
        ({"tables": {"Forging": {"rows": [_row("Ledger ticking", "s", "0.02", "1e999999")]}}}, "has `1e999999` for"),
        ({"tables": {"Forging": {"rows": [_row("Ledger ticking", "s", "0.02", ".")]}}}, r"has `\.` for"),
        ({"tables": 5}, "`tables` is invalid"),
    ],
)
def test_an_incomplete_report_is_refused_in_one_sentence(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    """A row with a missing value would shift every figure behind it to another version."""
    with pytest.raises(UsageError, match=message):
        _read(tmp_path, content(**changed))


def test_the_command_shows_a_report_and_writes_it(tmp_path: Path, lab: Lab) -> None:
    """From the file to every format, with the command from the guide."""
    path = write(tmp_path / "release.json", content())
    html, pdf, md = tmp_path / "r.html", tmp_path / "r.pdf", tmp_path / "r.md"
    shown = lab.run(
        "compare", str(path), "--style", "published", "--html", str(html), "--pdf", str(pdf), "--md", str(md)
    )
    assert shown.returncode == 0, shown.stderr
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert ["Ledger", "ticking,", "s", "0.02543", "0.02391", "-0.002", "-6"] in lines
    assert "-2132.900" in md.read_text(encoding="utf-8")
    assert pdf.read_bytes().startswith(b"%PDF")
    assert "Kernel RSS, MiB" in html.read_text(encoding="utf-8")
    process = lab.run("compare", str(path), "--style", "published", "--era", "org", "--json")
    report = json.loads(process.stdout)
    assert report["style"] == "org"
    assert report["tables"][1]["rows"][0]["changes"][0]["percent"] == "-8"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["REPORT"], "does not state when the cluster of 10.5.4 started"),
        (["REPORT@9.9", "REPORT", "--style", "published"], "has no version `9.9`"),
        (["REPORT@10.6.2", "--style", "published"], "at least two versions are required"),
        (["nothing.json", "--style", "published"], "there is no file `nothing.json`"),
        (["ORG", "--style", "published", "--era", "typst"], "omits digits that the typst style needs"),
        (["ORG", "--style", "published", "--era", "gothic"], "have no style `gothic`"),
        (["REPORT", "--era", "org"], "`--era` requires the published style"),
        (["STRANGER", "--style", "published"], "is not a published report in a known format"),
    ],
)
def test_the_command_refuses_in_one_sentence_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    """The message states what cannot be shown, and the hint what to do."""
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path / "store"))
    paths = {
        "REPORT": write(tmp_path / "report.json", content()),
        "ORG": write(tmp_path / "org.json", content(org=True)),
        "STRANGER": write(tmp_path / "stranger.json", {"a": 1}),
    }
    for name, path in paths.items():
        arguments = [str(path) + part.removeprefix(name) if part.startswith(name) else part for part in arguments]
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        app(["compare", *arguments], standalone_mode=False)
    assert caught.value.hint
