"""A qualification in every rendering: the same verdicts, notices and figures everywhere."""

from __future__ import annotations

import json
import re
from html import unescape
from xml.etree import ElementTree as Xml

import pytest
from rich.console import Console

from chainmark.core.qa_report import QaReport, QaScenario
from chainmark.report.blocks import Remarks, Table
from chainmark.report.chart import Chart
from chainmark.report.layouts import document_of
from chainmark.report.qa_document import qa_document

from tests.unit.compare import qa_runs


@pytest.fixture(scope="module")
def report() -> QaReport:
    """A candidate that is slower, with a metric that cannot be compared and a scenario that was not run."""
    return qa_runs.report({"tx_latency_s": 1.5, "rpc_latency_s": 2.0}, incomparable=["rpc_latency_s"])


@pytest.fixture(scope="module")
def renderings(report: QaReport) -> dict[str, str]:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    document_of(report).print(console)
    page, _ = document_of(report).markdown_page("figures")
    plain = re.sub(r"\\([\\`*_\[\]<>|#~&])", r"\1", page)
    html = re.sub(r"<script.*?</script>", "", document_of(report).html(), flags=re.DOTALL)
    html = re.sub(r"</?code>", "`", html)
    return {"terminal": console.export_text(), "markdown": plain, "html": unescape(re.sub(r"<[^>]+>", "", html))}


def _bare(text: str) -> str:
    return " ".join(text.replace("\u00a0", " ").replace("\u2007", "").replace("\u2008", "").split())


@pytest.mark.parametrize("name", ["terminal", "markdown", "html"])
def test_every_rendering_shows_verdict_notices_and_requirements(
    report: QaReport, renderings: dict[str, str], name: str
) -> None:
    text = _bare(renderings[name])
    assert "FAIL" in text
    assert report.second_opinion is not None
    texts = [report.sentence, *report.notices, report.second_opinion.in_words(), report.scenarios[2].sentence]
    texts += [row.version for row in report.rows]
    for sentence in texts:
        assert _bare(sentence) in text, sentence


def test_incomparable_metrics_are_listed_before_any_figure(report: QaReport) -> None:
    blocks = qa_document(report).sections[0].blocks
    titles = [block.title for block in blocks if isinstance(block, Table | Remarks)]
    assert titles[:2] == ["Results", "Read this first"]
    notices = next(block for block in blocks if isinstance(block, Remarks))
    assert "Not comparable: RPC latency" in str(notices.items[0])


def test_an_incomparable_metric_is_never_called_worse(report: QaReport) -> None:
    rows = [
        [cell.text for cell in row.cells]
        for block in qa_document(report).blocks()
        if isinstance(block, Table)
        for row in block.rows
        if row.cells[0].text.startswith("RPC latency")
    ]
    assert rows
    assert all("worse" not in cells for cells in rows)
    assert all(any("not comparable" in cell for cell in cells) for cells in rows)


def test_conditions_that_differ_between_sides_are_marked_and_explained(report: QaReport) -> None:
    table = next(block for block in qa_document(report).blocks() if block.id == "emulation-conditions")
    assert isinstance(table, Table)
    shown = _scenario(report, "emulation")
    by_label = {condition.label: condition for condition in report.catalogue.conditions}
    for row in table.rows:
        condition = by_label[row.cells[0].text]
        values = [side.conditions.get(condition.id, "") for side in shown.sides]
        assert [cell.text for cell in row.cells[1:]] == values
        differs = len(set(values)) > 1
        assert all((cell.emphasis == "caution") == differs for cell in row.cells[1:])
        assert any(note.startswith(condition.label) for note in table.notes) == differs


def _scenario(report: QaReport, scenario_id: str) -> QaScenario:
    return next(scenario for scenario in report.scenarios if scenario.id == scenario_id)


def test_the_page_names_every_figure_file(report: QaReport) -> None:
    page, files = document_of(report).markdown_page("v1.0.1-figures")
    named = re.findall(r"\]\(v1\.0\.1-figures/([^)]+)\)", page)
    assert sorted(named) == sorted(files)
    figures = [block for block in qa_document(report).blocks() if isinstance(block, Chart)]
    assert len(files) == len(figures) >= 5
    assert all(svg.startswith("<svg") for svg in files.values())


def test_block_ids_are_unique(report: QaReport) -> None:
    """With a duplicate id, a figure would show the data of another one."""
    ids = [block.id for block in qa_document(report).blocks()]
    assert len(ids) == len(set(ids))


def test_the_pdf_is_the_same_every_time(report: QaReport) -> None:
    first = document_of(report).pdf()
    assert first.startswith(b"%PDF")
    assert document_of(report).pdf() == first


def test_the_document_round_trips_through_json(report: QaReport) -> None:
    """This includes the parts added by a system, which are read without the system's code."""
    text = report.model_dump_json()
    assert QaReport.model_validate_json(text).model_dump_json() == text


def test_a_document_of_schema_1_is_read(report: QaReport) -> None:
    """It had other names for the parts added by a system, and its comparisons had empty lists of followed metrics."""
    now = json.loads(report.model_dump_json())
    before = json.loads(report.model_dump_json())
    before["old_verdict"] = before.pop("second_opinion")
    for scenario in before["scenarios"]:
        scenario["old_rule"], scenario["saturation"] = scenario.pop("second_rule"), scenario.pop("swept")
        if scenario["comparison"] is not None:
            del scenario["comparison"]["followed"]
            scenario["comparison"] |= {"tails": [], "stories": []}
    assert json.loads(QaReport.model_validate(before).model_dump_json()) == now


def test_junit_has_a_case_per_scenario(report: QaReport) -> None:
    root = Xml.fromstring(document_of(report).junit())  # noqa: S314 - our own text
    suite = root[0]
    cases = {case.attrib["name"]: [child.tag for child in case] for case in suite.findall("testcase")}
    assert cases == {"fixed-load": ["failure"], "emulation": [], "big": ["skipped"]}
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["skipped"]) == ("3", "1", "1")
