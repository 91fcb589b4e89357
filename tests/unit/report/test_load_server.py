"""The resources that a server used under load, in every rendering."""

from __future__ import annotations

import pytest

from chainmark.capacity.bottleneck import exhausted_entries
from chainmark.core.load_report import (
    EndpointEntry,
    LoadReport,
    ResourceEntry,
    SourceEntry,
    StatementEntry,
    StepEntry,
    UseEntry,
)
from chainmark.report.blocks import Table
from chainmark.report.chart import Chart, rows_of
from chainmark.report.document import Document
from chainmark.report.drawing import svg_of
from chainmark.report.load_document import load_document
from chainmark.report.load_server import amount
from chainmark.report.vega import paper_drawings, print_config, with_data

from tests.unit.report.load_samples import endpoint, report, target

POOL = 16.0


def _resource(label: str, series: str, limit: float | None, steps: list[StepEntry], per_client: float) -> ResourceEntry:
    """A resource that is used in proportion to the load, up to its limit."""
    most = limit if limit is not None else 1e9
    used = [min(most, per_client * step.level) for step in steps]
    uses = [
        UseEntry(step=step.number, mean=amount, highest=amount, limit=limit, share=amount / limit if limit else None)
        for step, amount in zip(steps, used, strict=True)
    ]
    is_cpu = series == "cpu"
    return ResourceEntry(
        source="app", series=series, label=label, unit="cores" if is_cpu else "", sort="gauge", is_cpu=is_cpu,
        limit_is="`pool_max`" if limit else "", uses=uses,
    )  # fmt: skip


def _watched(label: str = "/block") -> EndpointEntry:
    """An endpoint whose connection pool is exhausted from 16 clients on, so its throughput stays constant."""
    bare = endpoint(label, 24.0, rate=False)
    steps = [step.model_copy(update={"ok_per_s": min(step.level, POOL) * 10.0}) for step in bare.steps]
    resources = [
        _resource("the connection pool (`pool_active`)", "pool_active", POOL, steps, 1.0),
        _resource("the server's CPU", "cpu", 4.0, steps, 0.01),
        _resource("`requests_now`", "requests_now", None, steps, 1.0),
    ]
    statements = [
        StatementEntry(step=step.number, text="select * from block where id = $1", busy=3.5, calls_per_s=700.0)
        for step in steps
    ]
    return bare.model_copy(
        update={
            "steps": steps, "resources": resources, "statements": statements, "series_left_out": 7,
            "exhausted": exhausted_entries(steps, resources),
        }
    )  # fmt: skip


def _report(*endpoints: EndpointEntry) -> LoadReport:
    sources = [SourceEntry(name="app", what="metrics at http://h/m", read=90, missed=3, why="no answer")]
    return report(target(endpoints=list(endpoints), sources=sources))


@pytest.fixture(scope="module")
def document() -> Document:
    return load_document(_report(_watched()))


def test_the_bottleneck_is_named_in_every_rendering(document: Document) -> None:
    message = "was full (16 of 16) from 16 clients on; CPU 4 %"
    assert message in " ".join(document.text(200).split())
    assert message in document.markdown()
    assert message in " ".join(document.html().replace("&nbsp;", " ").split())


def test_at_fixed_levels_the_next_step_is_the_exhausted_resource() -> None:
    """Without a search there is no load kind to match, and the report must still name the exhausted resource."""
    watched = _watched()
    slow = {"outcome": "fail", "reason": "p99", "phase": "fixed"}
    fixed = [step.model_copy(update=slow if step.level >= POOL else {"phase": "fixed"}) for step in watched.steps]
    text = " ".join(
        load_document(_report(watched.model_copy(update={"capacities": [], "steps": fixed}))).text(300).split()
    )
    assert "look at the connection pool (`pool_active`) first, which limited it from 16 clients on" in text


def test_the_resource_chart_is_below_the_latency_curve(document: Document) -> None:
    charts = [block for block in document.blocks() if isinstance(block, Chart)]
    ids = [chart.id for chart in charts]
    assert ids.index("used-clients-block-0") == ids.index("load-clients-block") + 1
    pair = charts[ids.index("load-clients-block") :][:2]
    assert pair[0].half == pair[1].half, "both charts need the same width, because they share the axis of levels"
    drawn = charts[ids.index("used-clients-block-0")]
    rows = rows_of(drawn.data["points"])
    pool = {row["level"]: row["value"] for row in rows if row["label"].startswith("Connection pool")}
    assert (pool[1.0], pool[8.0], pool[16.0], pool[32.0]) == (6.25, 50.0, 100.0, 100.0)
    assert {row["label"] for row in rows} == {"Connection pool (`pool_active`)", "CPU"}
    for drawing in [(with_data(drawn, interactive=True), print_config(["#000000"])), *paper_drawings(drawn)[0]]:
        assert svg_of(drawing).startswith("<svg")


def test_tables_list_resource_use_and_unresponsive_sources(document: Document) -> None:
    tables = {block.id: block for block in document.blocks() if isinstance(block, Table)}
    used = tables["resources-clients-block-0"]
    assert [row.cells[0].text for row in used.rows] == ["Connection pool (`pool_active`)", "CPU", "`requests_now`"]
    assert any("7 further series" in note for note in used.notes)
    assert [cell.text for cell in tables["sources-0"].rows[0].cells][2:] == ["90", "3", "no answer"]
    assert tables["statements-clients-block-0"].rows[0].cells[-1].text == "5"


def test_a_test_without_observations_shows_no_resources() -> None:
    bare = load_document(report())
    assert not [
        block for block in bare.blocks() if block.id.startswith(("exhausted", "used-", "resources-", "sources-"))
    ]


def test_a_document_of_an_earlier_version_is_read() -> None:
    whole = _report(_watched())
    content = whole.model_dump(mode="json")
    assert LoadReport.model_validate(content) == _report(_watched())
    for target_entry in content["targets"]:
        del target_entry["sources"]
        for each in target_entry["endpoints"]:
            for name in ("resources", "series_left_out", "statements", "exhausted"):
                del each[name]
    assert LoadReport.model_validate(content).targets[0].endpoints[0].resources == []


def test_every_shown_figure_of_resources_and_levels_is_in_the_json() -> None:
    """Otherwise a pipeline that reads the JSON must compute the medians of the report again."""
    (endpoint_entry,) = _report(_watched()).targets[0].endpoints
    pool = endpoint_entry.resources[0]
    assert pool.limit == POOL
    assert {use.level: (use.mean, use.share) for use in pool.levels}[8.0] == (8.0, 0.5)
    (step, *_), level = endpoint_entry.steps, endpoint_entry.levels[0]
    assert (level.kind, level.level, level.p99_s) == ("clients", 1.0, step.of_due.p99.value_s)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [(0.382, "fraction", "38 %"), (1.0, "cores", "1 core"), (2048.0, "bytes/s", "2.000 KiB/s"), (12.5, "/s", "12.5/s"),
     (None, "", "no data"), (4.0, "", "4")],
)  # fmt: skip
def test_amounts_have_their_units(value: float | None, unit: str, expected: str) -> None:
    assert amount(value, unit).replace("\N{NO-BREAK SPACE}", " ") == expected
