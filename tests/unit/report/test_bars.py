"""The geometry of interval bars."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.comparison import Judgement, Outcome, Scale, SideValue
from chainmark.report.bars import interval_bar, text_bar, text_scale
from chainmark.report.layouts import document_of
from chainmark.report.page import template_text

from tests.unit.report.browser import page_without_complaints
from tests.unit.report.samples import sample

change = st.floats(min_value=-1e6, max_value=1e6)
margin = st.floats(min_value=1e-6, max_value=1e3)


def judgement(low: float | None, point: float | None, high: float | None, reach: float | None) -> Judgement:
    side = SideValue(value=1.0, per_run=[1.0], samples=1)
    return Judgement(
        metric_id="m",
        statistic="mean",
        gating=True,
        baseline=side,
        candidate=side,
        scale=Scale.RELATIVE,
        change=point,
        low=low,
        high=high,
        margin_low=None if reach is None else -reach,
        margin_high=reach,
        outcome=Outcome.EQUAL,
    )


@given(st.tuples(change, change, change).map(sorted), margin)
def test_the_point_lies_within_the_interval_and_the_band_within_the_axis(ends: list[float], reach: float) -> None:
    low, point, high = ends
    bar = interval_bar(judgement(low, point, high, reach))
    assert bar is not None
    assert 0.0 <= bar.low <= bar.high <= 1.0
    assert (bar.band_low, bar.zero, bar.band_high) == pytest.approx((0.25, 0.5, 0.75))
    assert bar.beyond_low == (low < -2 * reach)
    assert bar.beyond_high == (high > 2 * reach)
    if bar.point is not None:
        assert bar.low <= bar.point <= bar.high


@given(st.tuples(change, change, change).map(sorted), margin, st.integers(9, 60))
def test_the_text_bar_has_the_requested_width_and_marks_values_beyond_it(
    ends: list[float], reach: float, width: int
) -> None:
    low, point, high = ends
    bar = interval_bar(judgement(low, point, high, reach))
    assert bar is not None
    text = text_bar(bar, width)
    assert len(text) == width
    assert ("●" in text) == (bar.point is not None)
    if bar.point is None and bar.low == bar.high:
        assert ("◂" in text) != ("▸" in text)


def test_without_a_change_or_a_band_there_is_no_bar() -> None:
    assert interval_bar(judgement(None, None, None, 0.1)) is None
    assert interval_bar(judgement(0.0, 0.0, 0.0, None)) is None
    assert interval_bar(judgement(0.0, 0.0, 0.0, 0.0)) is None
    assert interval_bar(judgement(0.0, 0.0, 0.0, 1e308)) is None
    assert text_bar(None, 9) == " " * 9


def test_a_change_without_an_interval_is_a_point() -> None:
    bar = interval_bar(judgement(None, 0.05, None, 0.1))
    assert bar is not None
    assert bar.low == bar.point == bar.high


def test_the_text_bars_of_three_examples_are_exact() -> None:
    assert text_bar(interval_bar(judgement(-0.05, 0.0, 0.05, 0.1)), 17) == "    · ├─●─┤ ·    "
    assert text_bar(interval_bar(judgement(0.3, 0.4, 0.5, 0.1)), 17) == "    ·   │   ·   ▸"
    assert text_scale("−10 %", "+10 %", 25) == "    −10 %   0   +10 %    "


def test_a_change_has_the_same_colour_on_a_page_and_on_paper() -> None:
    """A reader of the PDF and a reader of the page must see the same changes as better and as worse."""
    page = dict(re.findall(r"--loud-(\w+): (#\w+);", template_text("document.css").partition("@media")[0]))
    paper = template_text("document.typ")
    names = dict(re.findall(r"(\w+): (\w+)", re.findall(r"#let loud = \((.*)\)", paper)[0]))
    colours = dict(re.findall(r'#let (\w+) = rgb\("(#\w+)"\)', paper))
    assert page == {outcome: colours[names[outcome]] for outcome in ("worse", "better", "caution")}


# Writes the edges of the names over each bar, and the distance of each bar from the middle of its row's line of text.
_MEASURE = """
window.addEventListener("load", () => setTimeout(() => {
  const edges = (item) => { const { left, right } = item.getBoundingClientRect(); return [left, right]; };
  const middle = ({ top, height }) => top + height / 2;
  const line = (row) => {
    const text = document.createRange();
    text.selectNodeContents(row.querySelector("td.n"));
    return middle(text.getBoundingClientRect());
  };
  const headings = [...document.querySelectorAll(".scale")].map((scale) => [...scale.children].map(edges));
  const bars = [...document.querySelectorAll("svg.bar")].filter((bar) => bar.getBoundingClientRect().width);
  const off = bars.map((bar) => middle(bar.getBoundingClientRect()) - line(bar.closest("tr")));
  const texts = document.querySelectorAll("svg.bar text").length;
  const result = document.createElement("pre");
  result.id = "measured";
  result.textContent = JSON.stringify({ headings, off, texts });
  document.body.append(result);
}, 500));
"""


def test_bars_are_readable_in_a_window_of_a_common_width(tmp_path: Path) -> None:
    """At 1280 pixels, the names above a bar must not overlap, and the bar must be on the line of its figures."""
    page = page_without_complaints(document_of(sample()).html(), tmp_path, _MEASURE)
    measured = json.loads(re.findall(r'<pre id="measured">(.*?)</pre>', page)[0])
    assert (len(measured["headings"]) > 1, len(measured["off"]) > 1, measured["texts"]) == (True, True, 0)
    names = [(low[1], zero, high[0]) for low, zero, high in measured["headings"]]
    assert all(low + 2 < zero[0] < zero[1] < high - 2 for low, zero, high in names)
    assert all(abs(distance) < 2 for distance in measured["off"])
