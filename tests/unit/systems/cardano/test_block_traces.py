"""A block trace in every rendering: each contains every time, and the chart shows every mark."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from chainmark.report.blocks import Table
from chainmark.report.chart import SHAPES, Chart, paper_charts
from chainmark.report.chart_terminal import MARKS, strips_of
from chainmark.store.runs import Store
from chainmark.trails.document import trail_document
from chainmark.trails.follower import Follower
from chainmark.trails.timeline import MARKS_DATA, SPANS_DATA, timeline_chart
from chainmark.trails.trace import LogLine, Trace
from chainmark.trails.trail import trails_of

from tests.unit.report.browser import page_without_complaints
from tests.unit.report.pages import unfolded
from tests.unit.store.trail_runs import Timelines, key_of, sealed

HOSTILE = "</script><script>alert(1)</script>|`*_[x](y)&<img src=x onerror=y>\n# heading"


@pytest.fixture(scope="module")
def follower(tmp_path_factory: pytest.TempPathFactory) -> Follower:
    """A run with as many hosts as a cluster has."""
    run = sealed(Store(tmp_path_factory.mktemp("store")), Timelines(52, 5).fill())
    return Follower(run.scan_events("block_timelines"), trails_of(run.catalogue)[0], run.manifest)


@pytest.fixture
def trace(follower: Follower) -> Trace:
    """A block with every unusual property."""
    return follower.trace(key_of("b4"))


def terminal(trace: Trace, width: int = 120) -> str:
    """What a terminal of this width shows."""
    file = io.StringIO()
    trail_document(trace).print(Console(file=file, width=width))
    return file.getvalue()


def squeezed(text: str) -> str:
    """A rendering's text without markup, on one line."""
    plain = html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("\u00a0", " ").replace("\\", "")
    return re.sub(r"\s+", " ", re.sub("[\u2007\u2008]", "", plain))


@pytest.mark.parametrize(
    "render",
    [
        terminal,
        lambda trace: trail_document(trace).markdown(),
        lambda trace: trail_document(trace).html(),
    ],
)
def test_every_format_contains_every_figure(trace: Trace, render: Callable[[Trace], str]) -> None:
    text = squeezed(render(trace))
    for block in trail_document(trace).blocks():
        if isinstance(block, Table):
            for row in block.rows:
                assert all(cell.text in text for cell in row.cells)
    assert "“fetched” was not logged by node-2." in text
    assert trace.command in text
    assert render(trace) == render(Trace.model_validate_json(trace.model_dump_json()))


def test_the_pdf_is_reproducible(trace: Trace) -> None:
    assert trail_document(trace).pdf() == trail_document(trace).pdf()


def test_the_chart_shows_exactly_the_times_of_the_trace(trace: Trace) -> None:
    figure = timeline_chart(trace)
    number_of_times = sum(second is not None for place in trace.places for second in place.seconds)
    for drawn in (figure, *paper_charts(figure)):
        assert len(drawn.column("time", MARKS_DATA)) == number_of_times
        assert len(drawn.column("first", SPANS_DATA)) == len(trace.places)
    last = max(figure.column("time", MARKS_DATA))
    assert last == pytest.approx(1000.0 * max(p.seconds[trace.end] or 0.0 for p in trace.places))  # in ms
    assert figure.y.names[-1] == trace.places[-1].place
    # A letter for every shape: screen and terminal identify stages in the same way.
    assert len(MARKS) == len(SHAPES)
    assert sum(len(strip.marks) for strip in strips_of(figure)) == number_of_times


def test_many_places_continue_on_the_next_page(follower: Follower, trace: Trace) -> None:
    many = trace.model_copy(update={"places": [
        place.model_copy(update={"place": f"{place.place}-{copy}"}) for copy in range(3) for place in trace.places
    ]})  # fmt: skip
    pages = paper_charts(timeline_chart(many))
    assert len(pages) == 3
    shown = [name for page in pages for name in page.y.names]
    assert len(shown) == len(set(shown)) == 3 * len(trace.places)


def test_only_the_slow_step_is_marked_as_the_longest(trace: Trace) -> None:
    table = next(block for block in trail_document(trace).blocks() if isinstance(block, Table) and block.id == "places")
    marked = [(row.cells[0].text, column.heading) for row in table.rows
              for column, cell in zip(table.columns, row.cells, strict=True) if cell.tail.endswith("max")]  # fmt: skip
    assert marked == [("node-3", "fetched")]


@pytest.mark.parametrize("width", [70, 80, 120, 200])
def test_no_line_of_the_terminal_is_too_wide(trace: Trace, width: int) -> None:
    trace.log_lines = [LogLine(place="node-1", stage=0, file="node-1/log.json", line=7, text="x" * 1000)]
    text = terminal(trace, width)
    assert all(len(line) <= width for line in text.splitlines())
    assert re.sub(r"\s", "", text).count("x" * 1000) == 1  # folded, not cut


def test_log_text_is_escaped(trace: Trace, tmp_path: Path) -> None:
    trace.log_lines = [LogLine(place="<b>", stage=0, file="f", line=7, text=HOSTILE, problem=HOSTILE)]
    hostile = trace.model_copy(update={"key": HOSTILE, "subject": HOSTILE, "stages": [HOSTILE, *trace.stages[1:]]})
    page = unfolded(trail_document(hostile).html())
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "\n# heading" not in trail_document(hostile).markdown().replace("```", "").split("heading\n", 1)[0]
    assert trail_document(hostile).pdf().startswith(b"%PDF")


def test_the_page_draws_its_timeline(trace: Trace, tmp_path: Path) -> None:
    page = page_without_complaints(trail_document(trace).html(), tmp_path)
    assert page.count("<svg") >= 1
    figure = next(block for block in trail_document(trace).blocks() if isinstance(block, Chart))
    for place in figure.y.names:
        assert f">{place}</text>" in page


def test_a_block_that_no_host_finished_is_reported(follower: Follower) -> None:
    trace = follower.trace(key_of("b1"))
    bare = trace.model_copy(update={"places": [
        place.model_copy(update={"seconds": [None] * 4, "steps": [None] * 4, "lines": [], "files": []})
        for place in trace.places
    ], "files": [], "slowest": [None] * 4})  # fmt: skip
    assert "adopted on 0 of 52 hosts;" in terminal(bare)
    assert trail_document(bare).pdf().startswith(b"%PDF")
    assert "adopted on 0 of 52 hosts;" in trail_document(bare).html()
