"""The small charts of the dashboard, as drawn by the charts' own builder."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from chainmark.core.errors import EnvironmentFailure
from chainmark.report.chart import Axis, Chart, Layer, LegendSeries, columns_of
from chainmark.report.drawing import svg_of
from chainmark.report.vega import colour_variables, inline_drawing
from chainmark.serve.inline import inlined
from chainmark.serve.rendering import html_of
from chainmark.serve.replay import replayable, replayed
from chainmark.serve.site import Site
from chainmark.serve.small_charts import Dot, strip, trend

from tests.support import wait_until
from tests.unit.serve.stores import filled


def _drawn(chart: Chart) -> ET.Element:
    return ET.fromstring(inlined(svg_of(inline_drawing(chart)), chart))  # noqa: S314 - drawn here


def _across(mark: ET.Element) -> float:
    (x,) = re.findall(r"translate\(([-\d.]+)", mark.attrib["transform"])
    return float(x)


def _keyed(root: ET.Element) -> dict[str, ET.Element]:
    return {mark.attrib["data-key"]: mark for mark in root.iter() if "data-key" in mark.attrib}


def test_a_trend_has_a_line_over_the_known_values_and_one_at_each_change() -> None:
    chart = trend([1.0, None, 3.0, 2.0], [2], "latency over 4 releases")
    assert chart is not None
    root = _drawn(chart)
    assert root.attrib["aria-label"] == "latency over 4 releases"
    (line,) = (path.attrib["d"] for path in root.iter("path") if path.get("stroke"))
    assert len(re.findall("[ML]", line)) == 3
    (change,) = root.iter("line")
    first, second, _ = (float(x) for x in re.findall(r"[ML]([\d.]+),", line))
    assert first < _across(change) < second
    assert trend([1.0, None], [], "too short") is None


def test_every_dot_has_the_key_of_its_run_and_is_at_its_value() -> None:
    sides = [("v1", [Dot("a", 2.0), Dot("b", None)]), ("v2", [Dot("c", 1.0), Dot("d", 3.0)])]
    marks = _keyed(_drawn(strip("latency", "latency", sides, "s")))
    assert list(marks) == ["a", "c", "d"]
    assert _across(marks["c"]) < _across(marks["a"]) < _across(marks["d"])
    assert marks["a"].findtext("title") == "a: 2.000 s"


def test_a_replay_has_the_time_of_every_event() -> None:
    rows = [{"host": "n0", "stage": "sent", "ms": 5.0}, {"host": "n1", "stage": "seen", "ms": 20.0},
            {"host": "n1", "stage": "sent", "ms": -2.0}]  # fmt: skip
    chart = Chart("line", "Timeline", Axis("ms"), Axis(names=["n0", "n1"]),
                  [Layer("points", x="ms", y="host", colour="stage", style="stage")], {"points": columns_of(rows)},
                  {"stage": LegendSeries(["sent", "seen"])}, unit_s=1e-3, zoom=True)  # fmt: skip
    assert replayable([replace(chart, unit_s=0.0), chart]) == ("line", -0.002, 0.02)
    played = replayed(chart)
    assert played is not None
    marks = _keyed(_drawn(played))
    assert [(key, mark.findtext("title")) for key, mark in marks.items()] == [
        ("0.005", "5 ms · n0: sent"), ("0.02", "20 ms · n1: seen"), ("-0.002", "before 0 · n1: sent"),
    ]  # fmt: skip
    assert replayable([replace(chart, unit_s=0.0)]) is None


def test_the_colours_of_drawings_in_a_page_are_defined_for_light_and_dark_mode() -> None:
    sides = [(f"v{number}", [Dot("a", 1.0 + number)]) for number in range(8)]
    drawn = inlined(svg_of(inline_drawing(strip("s", "S", sides, "s"))), strip("s", "S", sides, "s"))
    used = set(re.findall(r"var\((--[\w-]+)\)", drawn))
    assert {"--ink", "--line", "--lines-7"} <= used
    light, _, dark = colour_variables().partition("@media")
    for name in used - {"--ink", "--line"}:
        assert f"{name}:" in light, name
        assert f"{name}:" in dark, name


def test_pages_do_without_drawings_if_the_process_that_draws_them_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that measures may have no memory left for it."""

    def ended(_: object) -> NoReturn:
        raise EnvironmentFailure("the operating system ended the process that draws charts")

    filled(tmp_path, releases=4)
    site = Site(tmp_path)
    monkeypatch.setattr(site.painter, "inline", ended)
    query = {"side": ["v1.2.0", "v1.3.0"], "metric": ["tx_latency_s.p99"]}
    page = html_of(site.compare(query), "/compare", [])
    assert 'data-key="' not in page
    assert page.count('alt="tx latency p99"') == 1  # a picture instead
    wait_until(lambda: site.cards()[1] == 0, "the cards", 60)
    assert "tx latency p99" in html_of(site.home({}), "/", [])
    site.close()
