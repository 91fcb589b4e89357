"""The output of every kind of chart mark, on a screen and in characters."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from rich.console import Console

import chainmark
from chainmark.report.chart import IN_CHARACTERS, Axis, Chart, Columns, Layer, LegendSeries, Mark
from chainmark.report.chart_terminal import print_chart
from chainmark.report.lines import Printer
from chainmark.report.vega import vega_lite

MARKS: tuple[Mark, ...] = get_args(Mark)


def _chart(*marks: Mark) -> Chart:
    data: dict[str, Columns] = {"points": {"begin": [10.0, 20.0], "end": [40.0, 30.0], "name": ["first", "second"]}}
    layers = [Layer(mark, x="begin", x2=None if mark in {"points", "line"} else "end", y="name") for mark in marks]
    return Chart("c", "A title", Axis("s", domain=(0.0, 50.0)), Axis(names=["first", "second"]), layers, data)


def _printed(chart: Chart) -> list[str]:
    stream = io.StringIO()
    print_chart(chart, Printer(Console(file=stream, width=70, color_system=None)))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("mark", MARKS)
def test_every_mark_has_a_screen_and_a_text_representation(mark: Mark) -> None:
    (layer, *_) = vega_lite(_chart(mark), interactive=False)["layer"]
    assert layer["mark"]["type"]
    assert layer["encoding"]["x"]["field"] == "begin"
    rows = _printed(_chart(mark))[1:3]
    drawn = ["".join(row.split()[1:]) for row in rows]
    expected = {"places": {"●"}, "places of a path": {"●"}, "stroke": {"─"}, "nothing": set[str]()}
    assert set("".join(drawn)) == expected[IN_CHARACTERS[mark]]


def test_a_stroke_extends_from_its_start_to_its_end() -> None:
    first, second = _printed(_chart("interval"))[1:3]
    begin, end = first.index("─"), first.rindex("─")
    inner_begin, inner_end = second.index("─"), second.rindex("─")
    assert begin < inner_begin < inner_end < end
    assert (end - begin) / (inner_end - inner_begin) == pytest.approx(3.0, rel=0.15)


def test_bars_of_several_series_are_the_numbered_parts_of_one_bar() -> None:
    rows = [("a", "one", 0.0, 6.0), ("a", "two", 6.0, 8.0), ("b", "one", 0.0, 4.0)]
    data: Columns = {name: [row[index] for row in rows] for index, name in enumerate(("name", "part", "begin", "end"))}
    bars = Layer("bar", x="begin", x2="end", y="name", colour="part")
    series = {"part": LegendSeries(["one", "two"])}
    axes = Axis("s", domain=(0.0, 8.0)), Axis(names=["a", "b"])
    chart = Chart("c", "Parts", *axes, [bars], {"points": data}, series, beside={"a": "8 s", "b": "4 s"})
    title, first, second, key = _printed(chart)[:4]
    assert (title, key) == ("Parts", "  one   two")
    assert re.fullmatch(r"  a  1(━+)2(━+)  8 s", first)
    whole, half = (len(re.findall("[12━]", row)) for row in (first, second))
    assert first.index("2") - first.index("1") == pytest.approx(0.75 * whole, abs=1)
    assert half == pytest.approx(whole / 2, abs=1)


def test_a_chart_with_a_selection_is_printed_for_each_of_its_pages() -> None:
    data: Columns = {"x": [1.0, 2.0, 3.0], "name": ["a", "a", "b"], "of": ["p50", "p99", "p99"]}
    chart = Chart("c", "T", Axis("s"), Axis(names=["a", "b"]), [Layer("points", x="x", y="name")], {"points": data},
                  choice="of", pages=["p50", "p99"], beside={("p50", "a"): "one", ("p99", "a"): "two"})  # fmt: skip
    printed = _printed(chart)
    assert [line for line in printed if line.startswith("T")] == ["T: p50", "T: p99"]
    assert [line.split()[-1] for line in printed if line.startswith("  a")] == ["one", "two"]


def test_points_cover_the_line_that_joins_them() -> None:
    assert _printed(_chart("line", "points")) == _printed(_chart("points"))


def test_client_axes_have_whole_ticks() -> None:
    """There are no 4.5 clients."""
    for whole in (True, False):
        drawn = replace(_chart("points"), x=Axis("clients", whole=whole))
        (layer, *_) = vega_lite(drawn, interactive=False)["layer"]
        assert layer["encoding"]["x"]["axis"].get("tickMinStep") == (1 if whole else None)


# What is drawn besides charts, and why it is none.
_OTHER_DRAWINGS = {
    "report/templates/blocks.html.j2": "the interval of a change, a kind of table cell",
    "serve/badge.py": "a badge for a README, without an axis",
    "serve/templates/site.js": "the cursor of a replayed chart",
}


def test_charts_are_drawn_by_one_builder() -> None:
    """A mark drawn elsewhere would be missing on paper and in the terminal, and without the page's colours."""
    package = Path(chainmark.__file__).parent
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*")
        if path.suffix in {".py", ".j2", ".js", ".typ", ".css"}
        and re.search(r"<(svg|polyline|circle)\b|createElementNS|getContext\(", path.read_text(encoding="utf-8"))
    }
    assert found == set(_OTHER_DRAWINGS)
