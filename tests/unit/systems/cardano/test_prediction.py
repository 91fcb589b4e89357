"""Results of the model in every rendering: the same bytes for the same document, nothing truncated or invented."""

from __future__ import annotations

import html
import io
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel
from rich.console import Console

from chainmark.report.blocks import Details, Table
from chainmark.report.chart import Chart
from chainmark.report.vega import vega_lite
from chainmark.systems.cardano.model.results import AdoptionCurve, Explanation, Modelled, ModelRecord, Prediction

from tests.results import result_in
from tests.unit.report.browser import page_without_complaints
from tests.unit.report.pages import unfolded, unpacked
from tests.unit.systems.cardano.prediction_samples import (
    METHODS,
    WHATIFS,
    curve,
    document_of,
    evidence,
    explanation,
    prediction,
)

HOSTILE = "</script><script>alert(1)</script>|`*_[x](y)&<img src=x onerror=y>\n# heading"
DOCUMENTS: list[BaseModel] = [prediction(), explanation(), explanation(explained=True), evidence()]


def terminal(document: BaseModel, width: int = 120, *, colour: bool = False) -> str:
    """What a terminal of this width shows."""
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=colour, color_system="truecolor" if colour else None)
    document_of(document).print(console)
    return file.getvalue()


TEXTS: list[Callable[[BaseModel], str]] = [
    terminal,
    lambda prediction: document_of(prediction).markdown(),
    lambda prediction: document_of(prediction).html(),
]


def squeezed(text: str) -> str:
    """A rendering's text without markup, on one line."""
    plain = html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("\u00a0", " ").replace("\\", "")
    return re.sub(r"\s+", " ", re.sub("[\u2007\u2008]", "", plain))


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("render", TEXTS)
def test_the_text_of_a_document_is_reproducible(render: Callable[[BaseModel], str], document: BaseModel) -> None:
    again = type(document).model_validate_json(document.model_dump_json())
    assert render(document) == render(again)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_pdf_of_a_document_is_reproducible(document: BaseModel) -> None:
    first = document_of(document).pdf()
    assert first == document_of(document).pdf()
    assert first.startswith(b"%PDF")
    assert b"CreationDate" not in first
    assert len(first) < 1_000_000


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("render", TEXTS)
def test_every_format_contains_every_figure(render: Callable[[BaseModel], str], document: BaseModel) -> None:
    text = squeezed(render(document))
    for block in document_of(document).blocks():
        if isinstance(block, Table):
            for row in block.rows:
                for cell in row.cells:
                    assert cell.text in text


def pdf_text(data: bytes, tmp_path: Path) -> str:
    """The text of a PDF, as a search in it finds it."""
    tool = shutil.which("pdftotext")
    if tool is None:
        pytest.skip("pdftotext is not installed")
    path = tmp_path / "report.pdf"
    path.write_bytes(data)
    done = subprocess.run([tool, "-layout", str(path), "-"], capture_output=True, check=True)
    return done.stdout.decode().replace("\u200b", "").replace("\u00a0", " ")


@pytest.mark.parametrize("document", [*DOCUMENTS, prediction(7)])
def test_the_pdf_contains_every_figure(document: BaseModel, tmp_path: Path) -> None:
    report = document_of(document)
    text = re.sub(r"\s+", " ", pdf_text(report.pdf(), tmp_path))
    assert report.word in text
    assert report.digest[:32] in text
    for block in report.blocks():
        assert not isinstance(block, Details)
        assert block.title.split()[0] in text
        if isinstance(block, Table):
            for row in block.rows:
                assert all(cell.text in text for cell in row.cells[1:])


@pytest.mark.parametrize("whatifs", range(len(WHATIFS) + 1))
@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
def test_no_line_of_the_terminal_is_too_wide(whatifs: int, width: int) -> None:
    for line in terminal(prediction(whatifs), width).splitlines():
        assert len(line) <= width
        assert line == line.rstrip()


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("width", [70, 80, 120])
def test_no_document_is_too_wide(document: BaseModel, width: int) -> None:
    for line in terminal(document, width).splitlines():
        assert len(line) <= width


def test_a_wide_table_is_continued_below_with_the_same_row_names() -> None:
    text = terminal(prediction(3), 80)
    table = text.split("End-to-end spread\n")[1].split("\n  ±:")[0]
    parts = table.split("\n\n")
    assert len(parts) > 1
    for part in parts:
        assert part.count("0.50 spread, s") == 1
        assert part.splitlines()[0].split()[0] == "metric"
    wide = terminal(prediction(1), 140).split("End-to-end spread\n")[1].split("\n  ±:")[0]
    assert "\n\n" not in wide


def test_the_total_comes_before_its_stages() -> None:
    """A reader who stops early has the result of the whole network, wherever the catalogue lists it."""
    titles = [block.title for block in document_of(prediction()).blocks() if not isinstance(block, Details)]
    assert titles.index("End-to-end spread") < titles.index("Sealing") < titles.index("Readers")


def test_a_formula_is_distinguished_from_the_simulation() -> None:
    table = next(
        block
        for block in document_of(prediction()).blocks()
        if isinstance(block, Table) and block.title == "End-to-end spread"
    )
    for row in table.rows:
        if row.second:
            assert row.cells[0].text == "by formula"
            assert all("±" not in cell.tail for cell in row.cells)
    assert any("as a cross-check" in note for note in table.notes)


def test_a_single_scenario_has_no_notes_on_changes() -> None:
    text = terminal(prediction(0), 140)
    assert "≈ 0" not in text
    assert "Scenarios" not in text
    assert "as published: 0.50 spread 0.607 s (95 % interval 0.601 … 0.613 s) and 1.00 spread 1.027 s (95 %" in text


def test_changes_too_long_for_a_heading_are_listed_separately() -> None:
    text = terminal(prediction(6), 80)
    assert "initial window 20 and fetch concurrency 1, together" in text
    assert re.search(r"999 nodes +999", text)


def test_a_scenario_with_many_changes_is_named_by_their_number() -> None:
    forecast = prediction(2)
    changes = ["rtt +20%", "page size ×2", "lose region South"]
    many = forecast.scenarios[2].model_copy(update={"label": " and ".join(changes), "changes": changes})
    text = terminal(forecast.model_copy(update={"scenarios": [*forecast.scenarios[:2], many]}), 80)
    listed = text.split("\nScenarios\n")[1].split("\n\n")[0]
    assert listed.split("3 changes together")[1].split("\n    ")[1:] == changes
    assert re.search(r"\n  metric .* 3 changes together\n", text)


def test_the_same_change_twice_is_shown_twice() -> None:
    forecast = prediction(2)
    twice = forecast.model_copy(update={"scenarios": [*forecast.scenarios[:2], forecast.scenarios[1]]})
    headings = [column.heading for block in document_of(twice).blocks() if isinstance(block, Table)
                for column in block.columns if block.id == "parts-spread_p50_s"]  # fmt: skip
    assert headings == ["stage", "as published", "rtt +20%", "rtt +20% (2)"]


def test_an_explanation_shows_where_the_parts_do_not_add_up() -> None:
    text = terminal(explanation(), 140)
    assert " FAIL   1 of 8 centiles does not follow" in text
    flagged = [line for line in text.splitlines() if "✗" in line and "spread" in line]
    assert len(flagged) == 1
    assert re.search(r"1\.00 spread, s +1\.150 +1\.024 ± 0\.003 +−11\.0 ± 0\.3 % +±5 % +✗", flagged[0])
    assert "differs" in text
    assert "as from pings" in text
    assert " PASS   All 8 centiles follow from the stages" in terminal(explanation(explained=True))


def test_the_parts_table_shows_which_parts_were_fitted() -> None:
    text = terminal(explanation(), 140)
    assert re.search(r"Fetch duration, ms +360 +371 +± 2 +\+3\.0 +± 0\.6 % +checked", text)
    assert re.search(r"Fetched to checked, ms +61\.0 +61\.0 +± 0\.3 +≈ 0 +fitted", text)


def test_a_record_lists_every_method_and_run() -> None:
    text = terminal(evidence(), 140)
    for method in METHODS:
        assert text.count(f"\n  {method} ") == 2
    for number in range(12):
        assert text.count(f"10.{number}.1 ({number}a)") == 2
    assert "\n    mean " in text
    assert "\n    largest " in text
    assert "−8.9 ± 0.4" in text


@pytest.mark.parametrize("document", DOCUMENTS)
def test_nothing_depends_on_colour(document: BaseModel) -> None:
    plain, coloured = terminal(document), terminal(document, colour=True)
    assert "\x1b[" not in plain
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_scenarios_are_distinguished_without_colour() -> None:
    """Each of eight scenarios has its own dash pattern."""
    figure = next(block for block in document_of(prediction(7)).blocks() if block.id == "curves")
    assert isinstance(figure, Chart)
    dashes = vega_lite(figure, interactive=True)["layer"][1]["encoding"]["strokeDash"]["scale"]["range"]
    assert len(dashes) == 8
    assert len({tuple(dash) for dash in dashes}) == 8


def test_the_length_of_stacked_bars_is_the_sum_of_their_parts() -> None:
    lines = terminal(prediction(0), 120).splitlines()
    bar = next(line for line in lines if "━━" in line)
    assert re.search(r"4━+5━+", bar)
    assert bar.endswith("0.607")


@pytest.mark.parametrize("document", [prediction(7), explanation(), evidence()])
def test_the_html_loads_no_external_resources(document: BaseModel) -> None:
    page = document_of(document).html()
    assert "default-src 'none'" in page
    assert not re.search(r"<(?:link|iframe|img|object|embed|base)\b", page.split("<script", 1)[0])
    assert not re.search(r"""<script[^>]+src=""", page)
    own = page.split('<script type="application/gzip"', 1)[0]
    assert not re.search(r"""(?:src|href|action)\s*=\s*["']?(?:https?:)?//""", own)
    assert not re.search(r"""@import|url\(|https?://""", own)
    assert page.count("</script>") == 5  # no inlined content may close its element early
    for target in re.findall(r'href="#([^"]+)"', own):
        assert f'id="{target}"' in own


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_document_can_be_read_back_from_the_page(document: BaseModel) -> None:
    assert result_in(unpacked(document_of(document).html(), "source-data"), type(document)) == document


@pytest.mark.parametrize("document", [prediction(7), explanation(), evidence()])
def test_the_page_runs_without_console_errors(document: BaseModel, tmp_path: Path) -> None:
    page = page_without_complaints(document_of(document).html(), tmp_path)
    figures = [block for block in document_of(document).blocks() if isinstance(block, Chart)]
    assert page.count('data-drawn="yes"') == len(figures)
    assert "<svg" in page.split('id="source-data"', 1)[0]


def hostile() -> list[BaseModel]:
    """Documents in which everything that a user or a file can name is an injection attempt."""
    forecast = prediction(2)
    scenarios = [
        entry.model_copy(update={"label": f"{HOSTILE}{index}", "changes": [HOSTILE]})
        for index, entry in enumerate(forecast.scenarios)
    ]
    rows = [row.model_copy(update={"label": HOSTILE, "group": HOSTILE}) for row in evidence().runs]
    texts = {"title": HOSTILE, "source": HOSTILE, "notes": [HOSTILE]}
    return [
        forecast.model_copy(update={**texts, "scenarios": scenarios}),
        explanation().model_copy(update={**texts, "sentence": HOSTILE}),
        evidence().model_copy(update={"title": HOSTILE, "notes": [HOSTILE], "runs": rows}),
    ]


@pytest.mark.parametrize("index", range(3))
def test_hostile_text_is_escaped(index: int) -> None:
    document = hostile()[index]
    page = unfolded(document_of(document).html())
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert page.count("</script>") == 5
    markdown = document_of(document).markdown()
    assert "<script>" not in markdown.replace("\\<script\\>", "")
    assert "\n# heading" not in markdown
    assert document_of(document).pdf().startswith(b"%PDF")
    assert "alert(1)" in terminal(document)


def emptied() -> list[BaseModel]:
    """Documents reduced to what the schema requires."""
    nothing: dict[str, object] = {"rows": [], "curves": [], "contribution_metric_ids": [], "contributions": []}
    forecast = prediction(1)
    bare = forecast.model_copy(update={**nothing, "notes": []})
    no_parts = forecast.model_copy(update={"contributions": [], "curves": []})
    unexplained = explanation().model_copy(
        update={
            "whole": [], "parts": [], "round_trips": [], "contributions": [], "contribution_metric_ids": [],
            "notes": [], "curve": AdoptionCurve(scenario=0, fractions=[], values=[], standard_errors=[]),
        }
    )  # fmt: skip
    return [bare, no_parts, unexplained, evidence().model_copy(update={"rows": [], "runs": [], "notes": []})]


def strange() -> list[BaseModel]:
    """Values that are huge, zero or not finite, and texts longer than a page is wide."""
    forecast = prediction(2)
    figures = [0.0, 1.7e308, float("nan"), float("inf"), -1e-300, 5e-324, 1.0]
    rows = []
    for index, row in enumerate(forecast.rows):
        value, error = figures[index % 7], abs(figures[(index + 2) % 7])
        cells = [
            cell.model_copy(
                update={
                    "modelled": Modelled(value=value, standard_error=error),
                    "change": cell.change and Modelled(value=figures[(index + 4) % 7], standard_error=error),
                    "formula": figures[(index + 1) % 7],
                }
            )
            for cell in row.cells
        ]
        rows.append(row.model_copy(update={"cells": cells, "measured": figures[(index + 3) % 7]}))
    long = [
        entry.model_copy(update={"label": f"{index} " + "change and " * 40})
        for index, entry in enumerate(forecast.scenarios)
    ]
    zero = [item.model_copy(update={"values": [0.0] * len(item.values)}) for item in forecast.contributions]
    whole = [
        row.model_copy(update={"measured": 0.0, "error": float("inf"), "limit": 0.0}) for row in explanation().whole
    ]
    return [
        forecast.model_copy(update={"rows": rows}),
        forecast.model_copy(update={"scenarios": long, "source": "s" * 600, "notes": ["word " * 300]}),
        forecast.model_copy(update={"contributions": zero, "curves": [curve(0, 0.0)]}),
        explanation().model_copy(update={"whole": whole, "sentence": "word " * 300}),
    ]


@pytest.mark.parametrize("document", [*emptied(), *strange()])
def test_unusual_input_is_shown_and_not_refused(document: Prediction | Explanation | ModelRecord) -> None:
    for render in TEXTS:
        assert render(document)
    for width in (20, 40, 80):
        assert terminal(document, width)
    assert document_of(document).pdf().startswith(b"%PDF")
