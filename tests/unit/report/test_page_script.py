"""The rows that the page's script builds from the compressed data equal the rows that the PDF is drawn from."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chainmark.report import html
from chainmark.report.chart import Chart, rows_of
from chainmark.report.charts import comparison_charts
from chainmark.report.layouts import document_of
from chainmark.report.load_document import load_document
from chainmark.report.page import template_text

from tests.unit.report.browser import page_without_complaints
from tests.unit.report.load_samples import endpoint, report, target
from tests.unit.report.pages import unfolded, unpacked
from tests.unit.report.samples import sample

# A page with only what the script needs. The chart library is replaced by a stub that stores the chart specifications.
_BROWSER = r"""
const fs = require("fs");
const page = fs.readFileSync(process.argv[2], "utf8");
const text = (id) => page.match(new RegExp(`id="${id}">(.*?)</script>`, "s"))[1];
const drawn = {};
const places = [...page.matchAll(/class="plot" data-chart="([^"]+)"/g)].map((found) => ({
  dataset: { chart: found[1] }, clientWidth: 700, closest: () => null,
}));
const folded = [...page.matchAll(/<div data-folded="(\d+)">/g)].map((found) => ({
  dataset: { folded: found[1] }, querySelectorAll: () => [],
}));
globalThis.window = {
  matchMedia: () => ({ matches: false, addEventListener() {} }), addEventListener() {},
  vegaEmbed: async (place, spec) => { drawn[place.dataset.chart] = spec; },
};
globalThis.document = {
  documentElement: { classList: { add() {} } }, head: { append() {} }, createElement: () => ({}),
  getElementById: (id) => (id === "download" ? { addEventListener() {}, dataset: {} } : { textContent: text(id) }),
  querySelector: () => null,
  querySelectorAll: (wanted) => ({ ".plot": places, "[data-folded]": folded })[wanted] ?? [],
};
globalThis.IntersectionObserver = class {
  constructor(tell) { this.tell = tell; }
  observe(target) { this.tell([{ isIntersecting: true, target }]); }
  unobserve() {}
};
globalThis.ResizeObserver = class { observe() {} };
globalThis.location = { hash: "", pathname: "", search: "" };
if (process.argv[4] === "old") delete globalThis.DecompressionStream;
(0, eval)(fs.readFileSync(process.argv[3], "utf8"));
process.on("exit", () => fs.writeFileSync(
  process.argv[2] + ".json", JSON.stringify({ drawn, said: places.map((place) => place.textContent ?? ""),
  folded: folded.map((place) => place.textContent ?? "") })));
"""
_SCRIPTS = ("rows.js", "document.js")


def _run(page: str, folder: Path, browser: str = "new") -> dict[str, Any]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    (folder / "browser.js").write_text(_BROWSER, encoding="utf-8")
    (folder / "page.html").write_text(page, encoding="utf-8")
    (folder / "page.js").write_text("".join(map(template_text, _SCRIPTS)), encoding="utf-8")
    command = [node, *(str(folder / name) for name in ("browser.js", "page.html", "page.js")), browser]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    page_state: dict[str, Any] = json.loads((folder / "page.html.json").read_text(encoding="utf-8"))
    return page_state


def _assert_same_rows(spec: dict[str, Any], chart: Chart) -> None:
    for name, rows in spec["datasets"].items():
        wanted = rows_of(chart.data[name])
        assert len(rows) == len(wanted)
        for row, other in zip(rows, wanted, strict=True):
            assert row.keys() == other.keys()
            for key, value in other.items():
                assert row[key] == (pytest.approx(value, rel=1e-5) if isinstance(value, float) else value)


def test_points_stored_only_in_the_document_are_drawn(tmp_path: Path) -> None:
    """The page contains these points once. The script must find them there, in the unit of the axis."""
    page = document_of(sample()).html()
    drawn = _run(page, tmp_path)["drawn"]
    charts = comparison_charts(sample())
    assert set(drawn) == {chart.id for chart in charts}
    for chart in charts:
        _assert_same_rows(drawn[chart.id], chart)
    packed = json.loads(unpacked(page, "chart-data"))["charts"]
    assert all("from" in data["x"] for packed_value in packed.values() for data in packed_value["data"].values())


def test_points_of_a_sheet_are_drawn(tmp_path: Path) -> None:
    load_report = report(target(endpoints=[endpoint("/block", 64, rate=False)]))
    drawn = _run(document_of(load_report).html(), tmp_path)["drawn"]
    charts = [block for block in load_document(load_report).blocks() if isinstance(block, Chart)]
    assert set(drawn) == {chart.id for chart in charts}
    for chart in charts:
        _assert_same_rows(drawn[chart.id], chart)


def test_a_browser_that_cannot_decompress_shows_a_message(tmp_path: Path) -> None:
    page_state = _run(document_of(sample()).html(), tmp_path, "old")
    assert page_state["drawn"] == {}
    assert all(re.search("could not be drawn: this browser cannot decompress", text) for text in page_state["said"])


def _main(page: str) -> str:
    return page[page.index("<main ") : page.index("</main>")]


def test_folded_parts_of_a_long_page_are_compressed_and_restored_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = document_of(sample())
    short = document.html()
    monkeypatch.setattr(html, "_MOST_UNPACKED", 0)
    packed = document.html()
    assert 'data-folded="0"' in packed
    assert 'data-folded="0"' not in short
    dictionary = '<dl class="definitions" id="metrics-defined">'
    assert dictionary in short  # a closed section
    assert dictionary not in packed
    assert _main(unfolded(packed)) == _main(short)
    shown = page_without_complaints(packed, tmp_path)
    whole = page_without_complaints(short, tmp_path)
    for pattern in (r"<td", r'class="expand"', r'\bid="[^"]+-more"', r"<details", "<caption>"):
        assert len(re.findall(pattern, shown)) == len(re.findall(pattern, whole))


def test_a_browser_that_cannot_decompress_shows_a_message_in_folded_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "_MOST_UNPACKED", 0)
    page = document_of(sample()).html()
    assert "<noscript>" in page
    page_state = _run(page, tmp_path, "old")["folded"]
    assert len(page_state) > 0
    assert all(text.startswith("This could not be shown: this browser cannot decompress") for text in page_state)
