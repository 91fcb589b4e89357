"""The first screen of a report, and the permissions of a page."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

from chainmark.core.chart_kind import ChartKind
from chainmark.core.comparison import ChartData, ChartLine
from chainmark.core.verdict import Verdict
from chainmark.report.blocks import Details
from chainmark.report.charts import ChartContext, sample_chart
from chainmark.report.comparison_document import comparison_document

from tests.unit.report.samples import sample

_SIDES = {"baseline": "v1", "candidate": "v2"}


def _cdf(id_: str, xs: list[float], side: str = "baseline") -> ChartData:
    ys = [(place + 1) / len(xs) for place in range(len(xs))]
    line = ChartLine(side=side, run_id=None, label=side, x=xs, y=ys)
    return ChartData(
        id=f"{id_}-cdf", metric_id="tx_latency_s", kind=ChartKind.CDF, title=id_, x_label="latency, s", y_label="share",
        lines=[line],
    )  # fmt: skip


def test_a_page_allows_only_its_own_script_and_style() -> None:
    """A host name in the report must not run as a script."""
    page = comparison_document(sample()).html()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert "unsafe" not in policy[1]
    for text in re.findall(r"<style>(.*?)</style>|<script>(.*?)</script>", page, re.DOTALL):
        digest = base64.b64encode(hashlib.sha256("".join(text).encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert " style=" not in page


def test_a_dozen_charts_are_open_with_deciding_metrics_first() -> None:
    comparison = sample()
    slow = [_cdf(f"latency {number}", [1.0, 2.0, 3.0]) for number in range(14)]
    flat = _cdf("none", [4.0, 4.0, 4.0]).model_copy(update={"metric_id": "rss_bytes"})
    crowded = comparison.model_copy(update={"charts": [comparison.charts[3], flat, *slow]})
    sections = comparison_document(crowded).seen_on("html").sections
    blocks = next(section for section in sections if section.id == "charts").blocks
    assert [block.id for block in blocks[:12]] == [f"latency {number}-cdf" for number in range(12)]
    assert isinstance(blocks[12], Details)
    assert [block.id for block in blocks[12].blocks] == ["latency 12-cdf", "latency 13-cdf", "rss_bytes-series"]
    assert (
        "Not drawn, because all samples of both sides are equal: resident memory."
        in comparison_document(crowded).html()
    )


def test_a_long_tail_is_cut_from_the_axis_and_drawn_separately() -> None:
    """A single slow block would compress all others into a vertical line."""
    body = [1.0 + place / 1000 for place in range(199)]
    chart = sample_chart(_cdf("a", [*body, 90.0]), ChartContext("s", _SIDES))
    assert chart.inset is not None
    assert chart.x.domain is not None
    assert chart.x.domain[1] < 1.3
    assert chart.inset.x.domain is not None
    assert chart.inset.x.domain[1] > 90.0
    assert sample_chart(_cdf("a", body), ChartContext("s", _SIDES)).inset is None


def test_a_long_output_repeats_the_verdict_at_its_end() -> None:
    """The beginning has scrolled out of the terminal's window."""
    document = comparison_document(sample(Verdict.FAIL))
    assert document.text(120).count(" FAIL   1 of 4 gating metrics") == 1
    for width in (80, 120):
        text = replace(document, notes=[f"note {number}" for number in range(50)]).text(width)
        assert text.count(" FAIL   1 of 4 gating metrics") == 2
        assert "\x1b" not in text
        assert text.rstrip().endswith("by more than 10 %.")
