"""Published reports read from text and PDF: every value in its place, and a clear error for other files."""

from __future__ import annotations

from pathlib import Path

import pytest

import chainmark as cm
from chainmark.core.errors import UsageError
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.published.content import ReportContent
from chainmark.systems.cardano.published.files import read_content

from tests.unit.systems.cardano import made_reports as reports

SHARED = {
    "cardano-10.2-utxohd-vs-regular-value-only": "utxohd-10.2.value-only",
    "cardano-10.4.0-vs-10.3.0-plutus": "release-10.4.1.plutus",
    "cardano-10.6.2-vs-10.5.4-value-only": "release-10.6.2.value-only",
}


def read(path: Path) -> ReportContent:
    return read_content(path, SYSTEM.catalogue())


THREE = reports.content(
    reports.column("10.4.0", "2025-04-25", "91e8d93"),
    reports.column("10.5.0", "2025-06-27", "28152ff", 1.01),
    reports.column("10.5.4", "2026-02-05", "b0a1259", 0.98),
)


@pytest.mark.parametrize("gap", ["\t", "   "])
def test_an_extracted_text_matches_the_report(tmp_path: Path, gap: str) -> None:
    """A figure under another version, or a missing one, would be judged as if it were measured."""
    path = tmp_path / "report.txt"
    path.write_text(reports.text(THREE, gap), encoding="utf-8")
    content = read(path)
    assert content.versions == ["10.4.0", "10.5.0", "10.5.4"]
    assert (content.title, content.workload, content.unread) == ("10.5.4 against 10.4.0", "value-only", [])
    assert content.manifest == THREE["manifest"]
    printed_values = {row["metric"]: row["values"] for table in THREE["tables"].values() for row in table["rows"]}
    assert reports.figures(path) == printed_values
    assert [row.delta for row in content.tables["Forging"].rows] == [["0.001", "0.001"]]


def test_markup_of_another_tool_does_not_hide_a_row(tmp_path: Path) -> None:
    """Extractors write formulas and emphasis around units and headings."""
    path = tmp_path / "report.txt"
    text = reports.text(THREE).replace("Process CPU usage, %", "Process CPU usage, $\\%$")
    path.write_text(text.replace("Resource Usage", "#### **2.1 Resource Usage**"), encoding="utf-8")
    assert reports.figures(path)["Process CPU usage"] == ["5.5", "5.555", "5.39"]


def test_a_row_with_a_missing_figure_is_reported_and_not_guessed(tmp_path: Path) -> None:
    """The version whose figure is missing is unknown, so no figure of the row may be used."""
    path = tmp_path / "report.txt"
    whole = next(line for line in reports.text(THREE).splitlines() if line.startswith("Fetch duration"))
    path.write_text(reports.text(THREE).replace(whole, whole.rpartition("\t")[0]), encoding="utf-8")
    assert "Fetch duration" not in reports.figures(path)
    assert [line.partition(",")[0] for line in read(path).unread] == ["Fetch duration"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "We compare apples and pears.", "no row states when it was analysed"),
        ("a.txt", "Analysis date\t2026-02-06\t2026-02-13\nIdentifier\ta\tb\n", "none of its rows is a metric"),
        ("a.pdf", "%PDF-1.7 and then nothing", "cannot be read as a PDF"),
    ],
)
def test_an_invalid_report_is_refused_in_one_sentence(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=message) as caught:
        read(tmp_path / name)
    assert caught.value.hint


def test_our_own_pdf_is_read_back_figure_by_figure(tmp_path: Path) -> None:
    """A PDF printed by chainmark must be readable without its other formats, also by chainmark."""
    source = reports.written(tmp_path / "report.json", THREE)
    pdf = cm.compare(str(source), style="published", store=tmp_path / "store").save(tmp_path / "report.pdf")
    assert reports.figures(pdf) == reports.figures(source)
    assert read(pdf).manifest == THREE["manifest"]
    assert (read(pdf).versions, read(pdf).workload) == (THREE["versions"], "value-only")


@pytest.mark.shared_data
@pytest.mark.parametrize("name", sorted(SHARED))
def test_published_texts_match_their_json(shared_data: Path, name: str) -> None:
    """Three real reports, extracted by other tools: every row of every table."""
    text = read(shared_data.parent / "reference" / f"{name}.txt")
    json = read(shared_data / "cardano" / "reports" / f"{SHARED[name]}.json")
    assert (text.versions, text.workload, text.unread) == (json.versions, json.workload, [])
    rows = [
        [(row.values, row.delta, row.delta_pct) for table in content.tables.values() for row in table.rows]
        for content in (text, json)
    ]
    assert rows[0] == rows[1]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    "name", ["8.7.1_8.1.2_8.7.0-pre_8.7.1-pre.plutus", "release-10.4.1.plutus", "release-10.6.2.value-only"]
)
def test_published_reports_survive_our_pdf(shared_data: Path, tmp_path: Path, name: str) -> None:
    """Both styles, two and three versions: all values and changes of the PDF match the report."""
    source = shared_data / "cardano" / "reports" / f"{name}.json"
    pdf = cm.compare(str(source), style="published", store=tmp_path / "store").save(tmp_path / "report.pdf")
    content, other = read(source), read(pdf)
    assert content.tables.keys() == other.tables.keys()
    for title, table in content.tables.items():
        printed_rows = [(row.values, row.delta, row.delta_pct) for row in table.rows]
        assert [(row.values, row.delta, row.delta_pct) for row in other.tables[title].rows] == printed_rows, title
    assert other.manifest == content.manifest
