"""All four renderings: the same input gives the same bytes, the content is correct, and unusual input breaks none."""

from __future__ import annotations

import html
import io
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import typst
from rich.console import Console

from chainmark.core.chart_kind import ChartKind
from chainmark.core.comparison import (
    ChartData,
    ChartLine,
    Comparison,
    Outcome,
    SideValue,
)
from chainmark.core.errors import InternalError
from chainmark.core.manifest import Incident
from chainmark.core.verdict import Verdict
from chainmark.report import drawing
from chainmark.report.blocks import Block, Column, Remarks, Section, Table, row_of, words
from chainmark.report.chart import paper_charts
from chainmark.report.charts import chart_context, comparison_charts, sample_chart
from chainmark.report.comparison_document import comparison_document
from chainmark.report.content import Content
from chainmark.report.drawn import svgs_apart
from chainmark.report.judged_rows import RowMaker
from chainmark.report.layouts import document_of
from chainmark.report.vega import all_on_paper, on_paper
from chainmark.report.wording import prose
from chainmark.store.files import json_bytes

from tests.results import result_in
from tests.unit.report.browser import page_without_complaints
from tests.unit.report.pages import unfolded, unpacked
from tests.unit.report.samples import sample

VERDICTS = [Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.INVALID]
HOSTILE = "</script><script>alert(1)</script>|`*_[x](y)&<img src=x onerror=y>\n# heading"


def terminal(comparison: Comparison, width: int = 120, *, colour: bool = False) -> str:
    """The output of a terminal of this width."""
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=colour, color_system="standard" if colour else None)
    document_of(comparison).print(console)
    return file.getvalue()


def markdown(comparison: Comparison) -> str:
    """The comment on a pull request."""
    return document_of(comparison).markdown()


def web_page(comparison: Comparison) -> str:
    """The web page."""
    return document_of(comparison).html()


TEXTS: list[Callable[[Comparison], str]] = [terminal, markdown, web_page]


@pytest.mark.parametrize("render", TEXTS)
def test_the_same_comparison_gives_the_same_text(render: Callable[[Comparison], str]) -> None:
    assert render(sample()) == render(sample())


def test_the_same_comparison_gives_the_same_pdf() -> None:
    first = document_of(sample()).pdf()
    assert first == document_of(sample()).pdf()
    assert first.startswith(b"%PDF")
    assert len(first) < 1_000_000


def test_reports_written_together_equal_those_written_separately(tmp_path: Path) -> None:
    document = document_of(sample())
    alone = {".html": document.html().encode(), ".pdf": document.pdf(), ".json": json_bytes(document.plain())}
    paths = {suffix: tmp_path / f"report{suffix}" for suffix in alone}
    assert document.write_all(paths) == list(paths.values())
    assert {suffix: path.read_bytes() for suffix, path in paths.items()} == alone


def test_many_charts_drawn_by_another_process_are_identical() -> None:
    charts = comparison_charts(sample())
    many = [replace(chart, id=f"{chart.id}-{copy}") for copy in range(3) for chart in charts]
    assert all_on_paper(many) == [on_paper(chart) for chart in many]


def test_a_chart_that_cannot_be_drawn_by_another_process_is_an_error() -> None:
    with pytest.raises(InternalError, match=r"^drawing the charts failed: .*Vega") as error:
        svgs_apart([({"mark": "no such mark"}, {})])
    assert error.value.hint


def test_drawing_in_process_does_not_change_the_fonts_of_later_child_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FONTCONFIG_FILE", "own.conf")
    drawing._engine.cache_clear()
    assert on_paper(comparison_charts(sample())[0])
    assert os.environ["FONTCONFIG_FILE"] == "own.conf"


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("render", TEXTS)
def test_every_rendering_states_the_verdict_and_every_gating_figure(
    render: Callable[[Comparison], str], verdict: Verdict
) -> None:
    comparison = sample(verdict)
    text = html.unescape(render(comparison)).replace("\u00a0", " ").replace("\u2007", "").replace("\\", "")
    squeezed = re.sub(r"\s+", " ", text)
    assert verdict.value.upper() in squeezed
    assert prose(comparison.sentence) in squeezed
    for row in RowMaker(comparison).rows():
        if row.gating:
            for figure in (row.label, row.unit, row.baseline, row.candidate, row.change_with_unit, row.outcome):
                assert figure in squeezed


def pdf_text(data: bytes, tmp_path: Path) -> str:
    """The text of a PDF, as a search in a PDF viewer finds it."""
    tool = shutil.which("pdftotext")
    if tool is None:
        pytest.skip("pdftotext is not installed")
    path = tmp_path / "report.pdf"
    path.write_bytes(data)
    done = subprocess.run([tool, "-layout", str(path), "-"], capture_output=True, check=True)
    return done.stdout.decode()


@pytest.mark.parametrize("verdict", VERDICTS)
def test_page_one_of_the_pdf_has_the_verdict_and_every_gating_figure(verdict: Verdict, tmp_path: Path) -> None:
    comparison = sample(verdict)
    page = pdf_text(document_of(comparison).pdf(), tmp_path).split("\f")[0].replace("\u200b", "").replace("\u00a0", " ")
    assert verdict.value.upper() in page
    assert "Validity" in page
    assert comparison_document(comparison).digest[:32] in page
    assert prose(comparison.sentence).split()[0] in page
    for row in RowMaker(comparison).rows():
        if row.gating:
            for figure in (row.baseline, row.candidate, row.change, row.outcome):
                assert figure in page


def test_long_names_of_the_sides_do_not_push_the_outcomes_out_of_the_pdf_table(tmp_path: Path) -> None:
    comparison = sample()
    sides = {
        name: side.model_copy(update={"label": f"v0.38.17 with goleveldb ({name})"})
        for name, side in (("baseline", comparison.baseline), ("candidate", comparison.candidate))
    }
    page = pdf_text(document_of(comparison.model_copy(update=sides)).pdf(), tmp_path).split("\f")[0]
    lines = [line.replace("\u200b", "").replace("\u00a0", " ") for line in page.splitlines()]
    for row in RowMaker(comparison).rows():
        if row.gating:
            assert any(row.change in line and row.outcome in line for line in lines), row.label


def test_a_command_in_a_text_is_code_in_the_pdf(tmp_path: Path) -> None:
    """Readers of a PDF expect no Markdown marks, wherever a text names a command."""
    texts = [f"run `chainmark {number}` < 5 % of the time" for number in range(6)]
    columns = [*words("step"), Column("how", kind="words")]
    blocks: list[Block] = [
        Table("steps", "", columns, [row_of(texts[0], texts[1])], [texts[2]]),
        Remarks("next", "Next", [texts[3]]),
    ]
    document = document_of(sample())
    assert isinstance(document, Content)
    marked = replace(document, sentence=texts[4], notes=[texts[5]], sections=[Section("steps", "Steps", blocks)])
    text = " ".join(pdf_text(marked.pdf(), tmp_path).replace("\u200b", "").replace("\u00a0", " ").split())
    assert "`" not in text
    assert [text.count(f"run chainmark {number} < 5 % of the time") for number in range(6)] == [1] * 6


def test_names_and_figures_can_be_copied_from_the_pdf(tmp_path: Path) -> None:
    text = pdf_text(document_of(sample()).pdf(), tmp_path)
    assert sample().baseline.runs[0].run_id in text
    assert "+14.2\u00a0%" in text or "+14.2 %" in text


def test_the_html_loads_nothing_from_anywhere() -> None:
    page = document_of(sample()).html()
    assert "default-src 'none'" in page
    assert not re.search(r"<(?:link|iframe|img|object|embed|base)\b", page.split("<script", 1)[0])
    assert not re.search(r"""<script[^>]+src=""", page)
    own = page.split('<script type="application/gzip"', 1)[0]
    assert not re.search(r"""(?:src|href|action)\s*=\s*["']?(?:https?:)?//""", own)
    assert not re.search(r"""@import|url\(""", own)
    assert page.count("</script>") == 5  # no inlined content ends its script element early


def test_the_html_has_every_chart_metric_and_run() -> None:
    comparison = sample()
    page = document_of(comparison).html()
    for chart in comparison.charts:
        assert f'id="chart-{chart.id}"' in page
    for metric in comparison.catalogue.metrics:
        assert f'id="metric-{metric.id}"' in page
    for run in comparison.baseline.runs + comparison.candidate.runs:
        assert run.run_id in page
    for target in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{target}"' in page


def test_the_embedded_comparison_equals_the_comparison() -> None:
    comparison = sample()
    document = document_of(comparison)
    page = document.html()
    assert unpacked(page, "source-data") == document.json
    assert result_in(unpacked(page, "source-data"), Comparison) == comparison


def hostile() -> Comparison:
    """A comparison in which every text from a user or a node contains an attack."""
    comparison = sample(Verdict.INVALID)
    side = comparison.candidate.model_copy(
        update={"label": HOSTILE, "subject": comparison.candidate.subject.model_copy(update={"version": HOSTILE})}
    )
    differences = [
        item.model_copy(update={"key": HOSTILE, "candidate": HOSTILE}) for item in comparison.configuration_differences
    ]
    return comparison.model_copy(
        update={
            "title": HOSTILE,
            "sentence": HOSTILE,
            "reasons": [HOSTILE],
            "candidate": side,
            "configuration_differences": differences,
            "profile": {HOSTILE: HOSTILE},
        }
    )


def test_hostile_text_stays_text() -> None:
    page = unfolded(document_of(hostile()).html())
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert page.count("</script>") == 5
    markdown = document_of(hostile()).markdown()
    assert "<script>" not in re.sub(r"`[^`\n]*`", "", markdown).replace("\\<script\\>", "")
    assert "\n# heading" not in markdown
    assert document_of(hostile()).pdf().startswith(b"%PDF")
    assert "alert(1)" in terminal(hostile())


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_no_line_of_the_terminal_is_too_wide(verdict: Verdict, width: int) -> None:
    for line in terminal(sample(verdict), width).splitlines():
        assert len(line) <= width
        assert line == line.rstrip()


def test_nothing_depends_on_colour() -> None:
    plain, coloured = terminal(sample()), terminal(sample(), colour=True)
    assert "\x1b[" not in plain
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    file = io.StringIO()
    document_of(sample(Verdict.FAIL)).print(Console(file=file, width=120, force_terminal=True))
    assert not re.search(r"\x1b\[[0-9;]*(?:3[0-7]|4[0-7]|9[0-7])m", file.getvalue())


def test_the_terminal_shows_caveats_before_the_table() -> None:
    text = terminal(sample(Verdict.INVALID), 160)
    assert "✗ offered load met: 61.2 % in 1 of 3 runs of v1.0; required: at least 98 % (the sender fell behind)" in text
    assert "is excluded" in text
    assert "node3 was restarted" in text
    assert "Indexing costs CPU" in text
    assert "→ 3 runs per side suffice" in text
    assert "diagnostic metrics moved" not in text  # runs that cannot be compared allow no conclusion
    assert "2 of 4 diagnostic metrics moved (q = 0.05): p2p bytes sent +14.2 %" in terminal(sample(), 160)


@pytest.mark.parametrize("render", TEXTS)
def test_planned_perturbations_are_not_incidents(render: Callable[[Comparison], str]) -> None:
    """A node that was killed on purpose must not look like a crashed node. The kill is still reported."""
    comparison = sample()
    incidents = [
        Incident(time_ns=1_795_255_800_000_000_000, what="planned: node3 was killed", planned=True),
        Incident(time_ns=1_795_255_805_000_000_000, what="node1 dropped a peer"),
    ]
    comparison.candidate.runs[0].incidents = incidents
    text = render(comparison)
    if render is not terminal:  # the terminal omits what was in order
        assert "1 incident during the runs" in text
        assert "1 planned event, as the profile specifies" in text
    assert "2026-11-21 10:10:05 UTC: node1 dropped a peer" in text
    assert "10:10:00 UTC: planned" not in text


def test_a_meaningless_change_is_not_emphasized() -> None:
    judged_rows = RowMaker(sample()).rows()
    rows = {row.label: row for row in judged_rows if row.gating}
    assert rows["committed"].emphasis == "quiet"
    assert rows["tx latency p50"].emphasis == "better"
    assert [row.emphasis for row in judged_rows if row.moved and not row.gating] == ["plain", "better"]


def emptied() -> Comparison:
    """A comparison with only the fields that the schema requires."""
    comparison = sample(Verdict.INVALID)
    side: dict[str, object] = {"runs": [], "conditions": {}}
    lists = ("reasons", "advice", "gates", "condition_differences", "configuration_differences", "judgements",
             "distributions", "effect_sizes", "charts")  # fmt: skip
    empty: dict[str, object] = {name: [] for name in lists}
    empty |= {name: {} for name in ("profile", "workload", "changed_from_default", "changed_per_node")}
    return comparison.model_copy(
        update={
            **empty,
            "workload_differences": {},
            "date": "",
            "baseline": comparison.baseline.model_copy(update=side),
            "candidate": comparison.candidate.model_copy(update=side),
        }
    )


def strange() -> Comparison:
    """Missing, huge and non-finite values, and texts that are wider than a page."""
    comparison = sample(Verdict.INCONCLUSIVE)
    huge = SideValue(value=1.7e308, per_run=[None, 1.7e308, 5e-324], samples=10**15)
    judgements = [
        judgement.model_copy(
            update={
                "baseline": huge,
                "candidate": SideValue(value=None, per_run=[None], samples=3),
                "change": None if index % 2 else 1e300,
                "low": None if index % 3 else -1e300,
                "high": None if index % 3 else 1e305,
                "outcome": list(Outcome)[index % 5],
            }
        )
        for index, judgement in enumerate(comparison.judgements)
    ]
    line = ChartLine(side="baseline", run_id=None, label="x" * 300, x=[], y=[])
    charts = [
        ChartData(id=f"empty-{kind}", metric_id="tx_latency_s", kind=kind, title="t" * 400, x_label="", y_label="",
                  lines=lines)
        for kind, lines in zip(ChartKind, itertools.cycle(([line], [])), strict=False)
    ]  # fmt: skip
    difference = comparison.configuration_differences[0].model_copy(update={"key": "k" * 900, "baseline": "v" * 5000})
    return comparison.model_copy(
        update={
            "judgements": judgements,
            "charts": charts,
            "configuration_differences": [difference],
            "sentence": "word " * 300,
            "subtitle": "s" * 600,
            "date": "the day before yesterday",
        }
    )


@pytest.mark.parametrize("make", [emptied, strange])
def test_unusual_input_is_shown_and_not_rejected(make: Callable[[], Comparison]) -> None:
    comparison = make()
    for render in TEXTS:
        assert render(comparison)
    for width in (20, 40, 80):
        assert terminal(comparison, width)
    assert document_of(comparison).pdf().startswith(b"%PDF")


@pytest.mark.parametrize("index", range(4))
def test_each_kind_of_chart_is_drawn_with_its_legend_and_units(index: int) -> None:
    comparison = sample()
    chart = comparison_charts(comparison)[index]
    (svg,), note = on_paper(chart)
    assert svg.startswith("<svg")
    assert note == comparison.charts[index].note
    assert on_paper(chart) == ([svg], note)
    if comparison.charts[index].kind is not ChartKind.SHIFT:
        assert ">v0.9</text>" in svg
        assert ">v1.0</text>" in svg
    if chart.id == "rss_bytes-series":
        assert ">resident memory, MiB</text>" in svg


def test_a_dense_chart_is_thinned_for_paper_but_keeps_its_peaks() -> None:
    comparison = sample()
    series = comparison.charts[3]
    points = sample_chart(series, chart_context(series, comparison)).data
    assert sum(len(columns["y"]) for columns in points.values()) == 160
    values = [1.0] * 20_000
    values[12_345] = 99.0
    line = series.lines[0].model_copy(update={"x": [float(i) for i in range(20_000)], "y": values})
    context = chart_context(series, comparison)
    dense = sample_chart(series.model_copy(update={"lines": [line]}), context)
    (svg,), _ = on_paper(dense)
    assert len(svg) < 60_000
    (paper,) = paper_charts(dense)
    shown = [value for name in paper.data for value in paper.column("y", name)]
    assert len(shown) <= 200
    assert max(shown) == max(value for name in dense.data for value in dense.column("y", name)) > min(shown)
    dots = sample_chart(comparison.charts[2].model_copy(update={"lines": [line]}), context)
    (svg,), note = on_paper(dots)
    assert len(svg) < 500_000
    assert "thinned" in note


def test_a_side_without_samples_is_not_in_the_legend() -> None:
    """A printed baseline has no distribution. Its colour is still reserved for it."""
    comparison = sample()
    whole = comparison.charts[0]
    alone = whole.model_copy(update={"lines": [line for line in whole.lines if line.side == "candidate"]})
    (both, series) = (sample_chart(chart, chart_context(chart, comparison)).series["side"] for chart in (whole, alone))
    assert list(both.listed or []) == list(both.labels) == list(series.labels)
    assert list(series.listed or []) == [comparison.candidate.label]


def test_the_typst_fonts_have_every_character_that_a_report_uses() -> None:
    signs = "✓ ✗ − … × – · Δ ≤ ≥ µ ± → — “ ” ’ ∞ é ü ß"
    template = (
        f'#set page(height: auto)\n#set text(font: ("Libertinus Serif", "DejaVu Sans Mono"), fallback: false)\n{signs}'
    )
    _, warnings = typst.compile_with_warnings(template.encode(), ignore_system_fonts=True)
    assert [warning.message for warning in warnings] == []


def test_the_page_runs_without_console_errors(tmp_path: Path) -> None:
    page = page_without_complaints(document_of(sample()).html(), tmp_path)
    assert page.count('data-drawn="yes"') == len(sample().charts)


def test_a_metric_worse_only_by_itself_is_not_called_worse_if_the_verdict_is_undecided() -> None:
    """A red "worse" next to INCONCLUSIVE would make a reader distrust one of the two."""
    comparison = sample(Verdict.FAIL).model_copy(deep=True)
    index = next(
        place
        for place, judgement in enumerate(comparison.judgements)
        if judgement.gating and judgement.outcome is Outcome.WORSE
    )
    update = {"p_worse_adjusted": 0.08, "worse_level": 0.05}
    comparison.judgements[index] = comparison.judgements[index].model_copy(update=update)
    comparison.verdict = Verdict.INCONCLUSIVE
    row = RowMaker(comparison).rows()[index]
    assert (row.outcome, row.emphasis) == ("worse alone, not after correction", "caution")
    assert document_of(comparison).cases[index].verdict is Verdict.INCONCLUSIVE
    for text in (terminal(comparison, 200), markdown(comparison), web_page(comparison)):
        assert "worse alone, not after correction" in text
    significant = comparison.judgements[index].model_copy(update={"p_worse_adjusted": 0.04})
    comparison.judgements[index] = significant
    assert (RowMaker(comparison).rows()[index].outcome, row.gating) == ("worse", True)
