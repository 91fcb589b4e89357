"""From a value in the report to the block behind it: every link has a target, and every command is shown."""

from __future__ import annotations

import html
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from chainmark.core.comparison import Breakdown, Comparison, Scale
from chainmark.report.blocks import Details, Table
from chainmark.report.breakdown_parts import breakdowns, capped, outlier_sentences
from chainmark.report.chart import Chart
from chainmark.report.layouts import document_of
from chainmark.store.runs import Store
from chainmark.trails.followed import Tails
from chainmark.trails.follower import Follower
from chainmark.trails.results import Tail, TailSample
from chainmark.trails.timeline import MARKS_DATA, timeline_chart
from chainmark.trails.trace import Trace
from chainmark.trails.trail import trails_of

from tests.unit.report.browser import page_without_complaints
from tests.unit.report.pages import drawn_rows, unfolded
from tests.unit.report.samples import sample
from tests.unit.report.test_renderings import pdf_text
from tests.unit.store.trail_runs import Timelines, key_of, sealed

HOSTILE = "</script><script>alert(1)</script>|`*_[x](y)&<img src=x onerror=y>\n# heading"


@pytest.fixture(scope="module")
def block_traces(tmp_path_factory: pytest.TempPathFactory) -> list[Trace]:
    """Two block traces."""
    run = sealed(Store(tmp_path_factory.mktemp("store")), Timelines(6, 5).fill())
    follower = Follower(run.scan_events("block_timelines"), trails_of(run.catalogue)[0], run.manifest)
    return [follower.trace(key_of("b3")), follower.trace(key_of("b4"))]


def _sample(trace: Trace, value: float, place: str, index: int | None) -> TailSample:
    return TailSample(
        run_id=trace.run_id, key=trace.key, number=trace.number, place=place, value=value, trace_index=index,
        command=trace.command,
    )  # fmt: skip


@pytest.fixture
def comparison(block_traces: list[Trace]) -> Comparison:
    """A comparison with a tail whose blocks can be traced, and one host that stands out."""
    samples = [
        _sample(block_traces[0], 3.1, "", 0),
        _sample(block_traces[1], 2.9, "node-4", 1),
        _sample(block_traces[1], 2.8, "", None),
    ]
    with_tails = sample()
    tails = [
        Tail(metric_id="tx_latency_s", side="candidate", label="block", extreme="slowest", samples=samples),
        Tail(metric_id="goroutines", side="baseline", label="block", extreme="highest", samples=samples[:1]),
    ]
    with_tails.followed = Tails(tails=tails, traces=list(block_traces))
    with_tails.breakdowns = [
        Breakdown(
            metric_id="rss_bytes", key="host", scale=Scale.RELATIVE, values=["odd", "a", "b", "c", "d"],
            baseline=[9e8, 4e8, 4.1e8, 4.2e8, None], candidate=[8e8, 4.1e8, 4.2e8, 4.3e8, 4.4e8],
            baseline_n=[10, 10, 10, 10, 0], candidate_n=[10, 10, 10, 10, 10], change=[-0.11, 0.025, 0.024, 0.023, None],
            z=[20.0, 0.5, 0.0, 0.5, 1.0], stands_out=["both", "", "", "", ""],
            median_baseline=4.15e8, median_candidate=4.3e8, left_out=3,
        )
    ]  # fmt: skip
    return with_tails


def _tails(comparison: Comparison) -> Tails:
    assert isinstance(comparison.followed, Tails)
    return comparison.followed


def terminal(comparison: Comparison, width: int = 120) -> str:
    """What a terminal of this width shows."""
    file = io.StringIO()
    document_of(comparison).print(Console(file=file, width=width))
    return file.getvalue()


def test_every_link_of_the_page_has_a_target(comparison: Comparison) -> None:
    page = unfolded(document_of(comparison).html())
    targets = re.findall(r'href="#([^"]+)"', page)
    assert {"life-0", "life-1"} <= set(targets)
    for target in targets:
        assert f'id="{target}"' in page
    identifiers = re.findall(r'\bid="([^"]+)"', page.split('<script type="application/gzip"', 1)[0])
    assert len(identifiers) == len(set(identifiers))


def test_a_cdf_lists_the_blocks_of_its_tail(comparison: Comparison) -> None:
    figure = unfolded(document_of(comparison).html()).split('id="chart-tx_latency_s-cdf"')[1].split("</figure>")[0]
    assert "slowest in v1.0:" in figure
    assert '<a href="#life-0">block 3 (3.100 s)</a>' in figure
    assert '<a href="#life-1">block 4 at node-4 (2.900 s)</a>' in figure
    other = unfolded(document_of(comparison).html()).split('id="chart-tx_latency_s-shift"')[1].split("</figure>")[0]
    assert "slowest" not in other


def test_the_page_contains_the_timelines_of_its_blocks(comparison: Comparison, block_traces: list[Trace]) -> None:
    page = unfolded(document_of(comparison).html())
    block_timeline = html.unescape(page.split('<details id="life-1"')[1].split("</details>")[0])
    assert block_traces[1].command in block_timeline
    for place in block_traces[1].places:
        assert f">{place.place}</th>" in block_timeline
    for index, trace in enumerate(block_traces):
        rows = drawn_rows(page, f"life-{index}", MARKS_DATA)
        assert [row["time"] for row in rows] == pytest.approx(timeline_chart(trace).column("time", MARKS_DATA))


def test_the_page_draws_timelines_and_breakdowns(comparison: Comparison, tmp_path: Path) -> None:
    """The script must find everything that the charts refer to in the comparison."""
    page = unfolded(document_of(comparison).html()).replace("<details", "<details open")
    drawn = page_without_complaints(page, tmp_path)
    block_timeline = drawn.split('data-chart="life-0"')[1].split("<table")[0]
    marks = sum(second is not None for place in _tails(comparison).traces[0].places for second in place.seconds)
    assert block_timeline.count('aria-roledescription="point"') == marks
    dots = drawn.split('data-chart="by-host-rss_bytes"')[1].split("</details>")[0]
    assert dots.count('aria-roledescription="point"') == 9  # one host has no value on one side


def test_text_formats_list_the_blocks_and_the_command(comparison: Comparison, tmp_path: Path) -> None:
    command = _tails(comparison).traces[0].command
    for text in (terminal(comparison, 200), document_of(comparison).markdown().replace("\\", "")):
        assert "block 3 (3.100 s)" in text
        assert command in text
        assert "odd: resident memory 1.9 × the median host" in text
    paper = re.sub(r"\s+", " ", pdf_text(document_of(comparison).pdf(), tmp_path)).replace("\u200b", "")
    assert "slowest in v1.0" in paper
    assert "odd: resident memory 1.9 × the median host" in paper


def test_a_host_that_is_an_outlier_on_one_side_is_reported(comparison: Comparison) -> None:
    comparison.breakdowns[0].stands_out[0] = "baseline"
    assert outlier_sentences(comparison) == ["odd: resident memory 2.2 × the median host, in v0.9 only"]
    many = comparison.breakdowns[0].model_copy(update={"stands_out": ["both"] * 5})
    comparison.breakdowns = [many] * 4
    sentences = capped(outlier_sentences(comparison), 12)
    assert (len(sentences), sentences[-1][:6]) == (13, "8 more")


def test_the_outlier_comes_first_and_the_chart_is_ordered_by_its_points(comparison: Comparison) -> None:
    part = breakdowns(comparison)["resources"].blocks[0]
    assert isinstance(part, Details)
    table, chart = part.blocks
    assert isinstance(table, Table)
    assert isinstance(chart, Chart)
    assert [row.cells[0].text for row in table.rows] == ["odd", "a", "b", "c", "d"]
    assert part.summary.endswith(": 1 outlier")
    assert "3 more" in " ".join(table.notes)
    order = chart.y.names
    assert order == ["odd", "d", "c", "b", "a"]


def test_hostile_names_are_escaped(comparison: Comparison) -> None:
    _tails(comparison).tails[0].samples[0].place = HOSTILE
    comparison.breakdowns[0].values[0] = HOSTILE
    tails = _tails(comparison)
    tails.traces[:] = [trace.model_copy(update={"key": HOSTILE, "label": HOSTILE}) for trace in tails.traces]
    page = unfolded(document_of(comparison).html())
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert document_of(comparison).pdf().startswith(b"%PDF")
    assert "\n# heading" not in document_of(comparison).markdown()


def test_a_comparison_with_its_tails_can_be_read_back(comparison: Comparison) -> None:
    text = comparison.model_dump_json()
    assert Comparison.model_validate_json(text).model_dump_json() == text
    assert [row.lead for row in _tails(comparison).rows(comparison)] == ["slowest in v1.0", "highest in v0.9"]
    plain = json.loads(sample().model_dump_json())
    for name in ("followed", "breakdowns"):
        del plain[name]
    assert Comparison.model_validate(plain) == sample()  # older documents have none of them


def test_the_tails_of_schema_1_are_preserved(comparison: Comparison) -> None:
    """Schema 1 stored two lists in the comparison. They were empty if nothing was traced."""
    now = json.loads(comparison.model_dump_json())
    followed = now["followed"]
    before = {key: value for key, value in now.items() if key != "followed"}
    before |= {"tails": followed["tails"], "stories": followed["traces"]}
    assert json.loads(Comparison.model_validate(before).model_dump_json()) == now
    assert Comparison.model_validate(before | {"tails": [], "stories": []}).followed is None
