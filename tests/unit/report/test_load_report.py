"""Load tests in every rendering: comparable with the published tables, and with the evidence that those omit."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from chainmark.capacity.verdict import verdict
from chainmark.core.errors import ExitCode
from chainmark.core.load_report import (
    CapacityEntry,
    ContestedLevel,
    Departure,
    EndpointEntry,
    ErrorEntry,
    ExhaustedEntry,
    LoadReport,
    SecondEntry,
    StepEntry,
    TargetEntry,
)
from chainmark.core.manifest import Fact, Subject
from chainmark.core.verdict import Verdict
from chainmark.report.blocks import Remarks, Table, TableRow
from chainmark.report.chart import Chart, rows_of
from chainmark.report.document import Document
from chainmark.report.drawing import svg_of
from chainmark.report.layouts import document_of
from chainmark.report.load_document import load_document
from chainmark.report.vega import paper_drawings, print_config, with_data

from tests.unit.report.browser import page_without_complaints
from tests.unit.report.load_samples import (
    BURST,
    LABELS,
    SLA,
    bare,
    burst,
    endpoint,
    report,
    search,
    step,
    target,
    with_answer,
)  # fmt: skip


def tables(document: Document) -> dict[str, Table]:
    """The document's tables by id."""
    return {block.id: block for block in document.blocks() if isinstance(block, Table)}


def figures(document: Document) -> dict[str, Chart]:
    """The document's charts by id."""
    return {block.id: block for block in document.blocks() if isinstance(block, Chart)}


def texts(row: TableRow) -> list[str]:
    """The texts of a row's cells."""
    return [cell.whole for cell in row.cells]


def terminal(load_report: LoadReport, width: int = 100) -> str:
    """The output of a terminal of this width."""
    file = io.StringIO()
    document_of(load_report).print(Console(file=file, width=width))
    return file.getvalue()


def test_the_first_table_has_the_published_columns_and_the_rate() -> None:
    """A reader can compare it row by row with the published page: ID, endpoint, and the six figures in their order."""
    table = tables(load_document(report()))["capacity-0"]
    assert [column.heading for column in table.columns] == [
        "ID, endpoint", "max concurrency", "p95, ms", "p99, ms", "non-2xx", "error rate, %", "reqs/sec",
        "max rate, /s", "p99 at that rate, ms",
    ]  # fmt: skip
    assert [row.cells[0].text for row in table.rows] == [f"{n} {label}" for n, label in enumerate(LABELS, start=1)]
    block = texts(table.rows[3])
    capacity, steps = search("clients", 270.0)
    best = next(step for step in steps if step.number == capacity.best_step)
    assert best.p99_s is not None
    assert block[1] == "256"
    assert float(block[3]) == pytest.approx(best.p99_s * 1e3, rel=1e-3)
    assert float(block[6]) == pytest.approx(best.ok_per_s, rel=1e-3)


def test_the_evidence_for_a_capacity_is_below_it() -> None:
    """Interval, samples, first failure, reason, confirmation and verdict are missing from the published page."""
    document = load_document(report(required={"block.clients": 200.0}))
    row = next(row for row in tables(document)["basis-0"].rows if row.cells[0].text == "/block (clients)")
    cell_texts = texts(row)
    assert cell_texts[1:3] == ["256", "256 … 288"]
    assert int(cell_texts[3].replace(",", "")) >= 300
    assert cell_texts[4] == "288"
    assert cell_texts[6:] == ["p99 above 1 s", "yes", "200", "pass"]


def test_a_percentile_of_few_requests_is_unknown_and_never_the_maximum() -> None:
    """The published page states p95 = p99 = max for ten requests."""
    few = step(1, "clients", 1.0, 64, due=10, ok=10, ok_per_s=0.16, p95_s=10.427, p99_s=10.427, max_s=10.427,
               conditions=[])  # fmt: skip
    entry = endpoint("/account/balance", 64, capacities=[bare(capacity=1.0, low=0.0, best_step=1)], steps=[few])
    load_report = report(target(endpoints=[entry]))
    cell_texts = texts(tables(load_document(load_report))["capacity-0"].rows[0])
    assert cell_texts[2:4] == ["not estimable", "not estimable"]
    assert "10427" not in terminal(load_report)
    assert "299 requests" in terminal(load_report)


def test_a_percentile_above_the_answered_share_is_infinite() -> None:
    """A connection refused within a millisecond must not result in a p99 of a millisecond."""
    refused = step(1, "clients", 4.0, 64, due=1000, ok=900, failed=100, p99_s=0.001, conditions=[])
    entry = endpoint("/block", 64, capacities=[], steps=[refused], seconds=[])
    row = tables(load_document(report(target(endpoints=[entry]))))["steps-clients-block-0"].rows[0]
    assert "∞" in texts(row)
    assert "1.000" not in texts(row)


@pytest.mark.parametrize(
    ("changes", "capacity", "stopped"),
    [
        ({"finding": "lower bound", "capacity": 500.0, "low": 500.0, "high": None, "stopped_by": "ladder end"},
         "≥ 500", "the ladder's end, nothing failed"),
        ({"finding": "lower bound", "capacity": 96.0, "low": 96.0, "high": None, "stopped_by": "generator-limited"},
         "≥ 96", "the generator, not the server"),
        ({"finding": "lower bound", "capacity": 0.0, "low": 0.0, "high": None, "stopped_by": "generator-limited"},
         "not decided", "the generator, not the server"),
        ({"finding": "nothing passed", "capacity": 0.0, "low": 0.0, "high": 1.0, "stopped_by": "first step",
          "condition": "errors"}, "0", "the lowest level failed: errors above 1 %"),
        ({"finding": "unsettled", "capacity": None, "low": 0.0, "high": None, "stopped_by": "interrupted"},
         "not decided", "interrupted"),
    ],
)  # fmt: skip
def test_limits_of_the_test_are_not_reported_as_limits_of_the_server(
    changes: dict[str, Any], capacity: str, stopped: str
) -> None:
    """A “500” at the end of a load ladder is not a capacity."""
    cell_texts = texts(tables(load_document(with_answer(bare(**changes))))["basis-0"].rows[0])
    assert cell_texts[1] == capacity
    assert cell_texts[6] == stopped


def test_servers_are_shown_side_by_side_with_the_change_and_its_interval() -> None:
    """The capacities are 60 to 64 and 40 to 44 clients, so the ratio is between 40/64 and 44/60."""
    table = tables(load_document(report(target("2.0.0"), target("2.1.0", 0.7))))["side-by-side-clients"]
    row = texts(table.rows[0])
    assert row[1] == "60"
    assert row[3] == "40"
    assert row[5].replace("\u2212", "-") == "-33.3 %"
    assert row[6].replace("\u00a0", " ") == "−37.5 … −26.7 %"
    assert table.rows[0].cells[5].emphasis == "worse"


def test_a_change_against_the_end_of_a_ladder_is_only_a_bound() -> None:
    """A fall from a capacity of at least 500 has no known percentage."""
    most = bare("lower bound", capacity=500.0, low=500.0, high=None, stopped_by="ladder end")
    ends = [endpoint("/block", 64, capacities=[answer], steps=[], seconds=[]) for answer in (most, bare())]
    table = tables(load_document(report(target("a", endpoints=ends[:1]), target("b", endpoints=ends[1:]))))
    row = texts(table["side-by-side-clients"].rows[0])
    assert row[5] == "—"
    assert row[6].replace("\u00a0", " ") == "≤ −85.6 %"


def test_errors_are_grouped_by_status_code_message_and_retriability() -> None:
    """One row per kind, with the count and the first occurrence."""
    row = next(row for row in tables(load_document(report()))["errors-0"].rows if row.cells[0].text == "/block")
    cell_texts = texts(row)
    assert cell_texts[1:6] == ["status", "500", "5005", BURST["message"], "true"]
    assert cell_texts[6] == "300"
    assert cell_texts[8].endswith("clients, 4.2 s")


def test_every_step_has_a_row_and_the_terminal_names_the_location_of_long_tables() -> None:
    """Nothing is omitted silently."""
    load_report = report()
    document = load_document(load_report)
    rows = sum(len(table.rows) for id_, table in tables(document).items() if id_.startswith("steps-"))
    assert rows == sum(len(endpoint.steps) for endpoint in load_report.targets[0].endpoints)
    assert f"`--html`, `--pdf` and `--md` show 14 more tables ({rows} rows)." in terminal(load_report)
    single = terminal(report(target(endpoints=[endpoint("/block", 64, rate=False)])), 160)
    assert "confirm" in single
    assert "more table" not in single


def test_every_endpoint_has_every_kind_of_chart() -> None:
    """Latency against clients and rate, distributions, and the seconds with their errors."""
    ids = set(figures(load_document(report(target("2.0.0"), target("2.1.0")))))
    wanted = {"capacity-clients", "capacity-rate"}
    for label in LABELS:
        id_ = label.strip("/").replace("/", "_")
        for kind in ("clients", "rate"):
            wanted |= {f"load-{kind}-{id_}", f"distribution-{kind}-{id_}-0", f"distribution-{kind}-{id_}-1"}
            wanted |= {f"{what}-{kind}-{id_}-{place}" for what in ("time", "errors", "waiting") for place in (0, 1)}
    assert ids == wanted


def test_a_burst_of_errors_is_shown_in_one_second_of_the_timeline() -> None:
    """150 errors at once mean an exhausted pool, not a slow server. The counts add up to those of the steps."""
    load_report = report(target(endpoints=[endpoint("/block", 64, rate=False)]))
    rows = rows_of(figures(load_document(load_report))["errors-clients-block-0"].data["points"])
    assert [(row["kind"], row["count"]) for row in rows] == [("status", 150), ("timeout", 3)]
    assert len({row["second"] for row in rows}) == 1
    assert sum(row["count"] for row in rows) == sum(step.failed for step in load_report.targets[0].endpoints[0].steps)


def test_a_long_timeline_is_drawn_in_bins_that_lose_no_error() -> None:
    """Hours of load are reduced to as many points as can be distinguished."""
    step_entry = step(1, "clients", 8.0, 64, window_s=5000.0)
    rows = [SecondEntry(step=1, second=n, started=1, ok=0, failed=1, in_flight=1, queued=0, p50_s=0.1, p99_s=0.2,
                        max_s=0.3) for n in range(5000)]  # fmt: skip
    load_report = report(target(endpoints=[endpoint("/block", 64, capacities=[], steps=[step_entry], seconds=rows)]))
    figure = figures(load_document(load_report))["errors-clients-block-0"]
    values = rows_of(figure.data["points"])
    assert len(values) <= 400
    assert sum(row["count"] for row in values) == 5000
    assert "Each point covers 13 seconds" in figure.note


def test_the_capacity_and_the_first_failure_are_among_the_distributions() -> None:
    """The result is based on these two steps. The report states where to find the others."""
    figure = figures(load_document(report(target(endpoints=[endpoint("/block", 64, rate=False)]))))
    chart = figure["distribution-clients-block-0"]
    labels = set(chart.column("label"))
    assert {"64 clients (capacity)", "72 clients (first fail)"} <= labels
    assert len(labels) == 6
    assert "6 of 13 steps are drawn" in chart.note


def test_conditions_name_the_machine_the_corpus_the_sla_and_skipped_endpoints() -> None:
    """Two people who measure 20 ms and 1 ms need the conditions to explain the difference."""
    load_report = report(target(warnings=["3 of 120 requests were refused when the corpus was made"]))
    document = load_document(load_report)
    machine = [texts(row) for row in tables(document)["machine"].rows]
    assert ["Processor", "8 × AMD EPYC 7443P"] in machine
    assert any(load_report.corpus_hash in cell for row in machine for cell in row if load_report.corpus_hash)
    assert texts(tables(document)["agreements"].rows[0])[0] == "all 7"
    remarks = [item for block in document.blocks() if isinstance(block, Remarks) for item in block.items]
    assert "mempool: not offered: 404, text instead of JSON" in remarks
    assert load_report.targets[0].warnings[0] in remarks


def test_every_rendering_shows_the_verdict_and_every_capacity() -> None:
    """The terminal, the web page, the pull request comment and the PDF must agree."""
    load_report = report(target(labels=LABELS[:2]), required={"network_status.clients": 100.0})
    assert load_document(load_report).word == "FAIL"
    page = re.sub(r"<script.*?</script>", "", document_of(load_report).html(), flags=re.S)
    for text in (terminal(load_report), document_of(load_report).markdown(), page):
        plain = text.replace("\\", "").replace("\xa0", " ").replace("\n", " ")
        assert "FAIL" in plain
        assert "SLA missed: /network/status" in plain
        assert "100 clients required, but 64 clients clearly missed the SLA" in re.sub(r"\s+", " ", plain)
        assert all(value in plain for value in ("60", "128", "p99 above 1 s"))
    assert document_of(load_report).html() == document_of(load_report).html()
    assert document_of(load_report).pdf() == document_of(load_report).pdf()


def test_the_page_draws_its_charts_in_a_browser(tmp_path: Path) -> None:
    """Only a browser shows whether a chart can be drawn."""
    load_report = report(target("2.0.0", labels=LABELS[:1]), target("2.1.0", labels=LABELS[:1]))
    page = page_without_complaints(document_of(load_report).html(), tmp_path)
    drawn = page.split("<script type=", 1)[0]
    assert drawn.count("<svg") >= len(figures(load_document(load_report)))


NAMES = st.sampled_from(["/block", "", "a" * 90, "</script>|`*_", "\n\t", "エンドポイント"])
SECONDS = st.one_of(st.none(), st.sampled_from([0.0, 1e-6, 0.02, 1.0, 75.0]))
COUNTS = st.sampled_from([0, 1, 58, 299, 4_000_000])
OUTCOMES = st.sampled_from(["pass", "fail", "inconclusive", "generator-limited"])
LEVELS = st.sampled_from([1.0, 2.0, 64.0, 0.15, 1e6])


@st.composite
def odd_steps(draw: st.DrawFn, number: int) -> StepEntry:
    """A valid step that no load engine should produce."""
    ok, failed, unsent = draw(COUNTS), draw(COUNTS), draw(COUNTS)
    details = draw(st.dictionaries(st.sampled_from(["code", "/message", "message", "x"]), NAMES, max_size=3))
    errors = [ErrorEntry(kind=draw(NAMES), status=draw(st.sampled_from([None, 200, 500])), reported=details,
                         detail=draw(NAMES), count=failed, first_s=0.0)] if draw(st.booleans()) else []  # fmt: skip
    curve = draw(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 0.99, 1.0]), st.sampled_from([0.0, 0.1, 3.0]))))
    return step(
        number, draw(st.sampled_from(["clients", "rate"])), draw(LEVELS), 64.0,
        phase=draw(st.sampled_from(["probe", "confirm", "fixed"])),
        outcome=draw(OUTCOMES), point_outcome=draw(OUTCOMES),
        reason=draw(st.sampled_from([None, "p99", "odd"])), partial=draw(st.booleans()),
        ended=draw(st.sampled_from(["time", "gave up", "stopped"])), window_s=draw(st.sampled_from([0.0, 10.0])),
        due=ok + failed + unsent, ok=ok, failed=failed, unsent=unsent, ok_per_s=float(ok),
        p50_s=draw(SECONDS), p95_s=draw(SECONDS), p99_s=draw(SECONDS), max_s=draw(SECONDS), lag_p99_s=draw(SECONDS),
        conditions=[], errors=errors, curve=curve,
    )  # fmt: skip


@st.composite
def odd_answers(draw: st.DrawFn) -> CapacityEntry:
    """Any mixture of values that a capacity may have."""
    ends = ["p99", "p95", "errors", "achieved", "ladder end", "generator-limited", "first step", "budget",
            "interrupted", "samples"]  # fmt: skip
    numbers = st.one_of(st.none(), st.integers(0, 4))
    return CapacityEntry(
        kind=draw(st.sampled_from(["clients", "rate"])), capacity=draw(st.one_of(st.none(), st.just(0.0), LEVELS)),
        low=draw(st.one_of(st.just(0.0), LEVELS)), high=draw(st.one_of(st.none(), LEVELS)),
        stopped_by=draw(st.sampled_from(ends)), condition=draw(st.sampled_from([None, "p99", "p95", "errors"])),
        finding=draw(st.sampled_from(["found", "lower bound", "nothing passed", "unsettled"])),
        confirmed=draw(st.booleans()), best_step=draw(numbers), fail_step=draw(numbers),
    )  # fmt: skip


@st.composite
def odd_reports(draw: st.DrawFn) -> LoadReport:
    """Reports without steps, capacities or requests, interrupted ones, and ones with duplicate names."""
    ends: list[EndpointEntry] = []
    for place in range(draw(st.integers(0, 2))):
        steps = [draw(odd_steps(number)) for number in range(1, draw(st.integers(0, 3)) + 1)]
        rows = [
            SecondEntry(step=number, second=draw(st.integers(0, 900)), started=0, ok=0, failed=draw(COUNTS),
                        in_flight=0, queued=0, p50_s=draw(SECONDS), p99_s=draw(SECONDS), max_s=draw(SECONDS),
                        errors={"timeout": draw(COUNTS)})
            for number in range(draw(st.integers(0, 4)))
        ]  # fmt: skip
        answers = draw(st.lists(odd_answers(), max_size=2, unique_by=lambda capacity: capacity.kind))
        limit = SLA.model_copy(update={"p95_s": draw(st.sampled_from([None, 0.5])), "error_share": 0.0})
        ends.append(
            endpoint(draw(NAMES), 64, id=f"x{place}", capacities=answers, steps=steps, seconds=rows,
                     sla=limit, requests=draw(COUNTS), notes=draw(st.lists(NAMES, max_size=1)))
        )  # fmt: skip
    servers = [
        TargetEntry(
            name=draw(NAMES), url=draw(st.sampled_from(["http://[::1", "", "https://node:1"])),
            subject=Subject(system="s", name=draw(NAMES), version=""), run_id="",
            facts=[Fact(label=draw(NAMES), value=draw(NAMES))], endpoints=ends, interrupted=draw(st.booleans()),
            skipped=draw(st.dictionaries(NAMES, NAMES, max_size=1)), warnings=draw(st.lists(NAMES, max_size=1)),
        )
        for _ in range(draw(st.integers(0, 3)))
    ]  # fmt: skip
    required = draw(st.dictionaries(st.sampled_from(["x0.clients", "x1.rate", "gone.rate", "odd"]), LEVELS))
    return report(title=draw(NAMES), scenario=draw(NAMES), machine=[], corpus_hash=None, required=required,
                  started_at=draw(st.sampled_from(["", "2026-11-20T10:11:12+02:00"])), targets=servers)  # fmt: skip


@given(odd_reports())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_no_valid_document_breaks_a_rendering(load_report: LoadReport) -> None:
    """An interrupted or empty test must still be reported, and every verdict except a pass has a reason."""
    ended, reasons = verdict(load_report)
    assert bool(reasons) == (ended is not Verdict.PASS)
    document = load_document(load_report)
    for table in tables(document).values():
        assert all(len(row.cells) == len(table.columns) for row in table.rows)
    assert len(document.blocks()) == len({block.id for block in document.blocks()})
    writers: list[Callable[[LoadReport], str]] = [
        terminal,
        lambda report: document_of(report).markdown(),
        lambda report: document_of(report).html(),
        lambda report: document_of(report).junit(),
    ]
    for write in writers:
        assert write(load_report)


@given(odd_reports())
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_no_valid_document_breaks_the_pdf(load_report: LoadReport) -> None:
    """Every chart can be drawn and every page typeset."""
    for figure in figures(load_document(load_report)).values():
        for drawing in [(with_data(figure, interactive=True), print_config(["#000000"])), *paper_drawings(figure)[0]]:
            assert svg_of(drawing).startswith("<svg")
    assert document_of(load_report).pdf().startswith(b"%PDF")


def test_counts_of_bursts_add_up() -> None:
    """In the sample itself, due = ok + failed + unsent and failed = the sum of its classes."""
    for step_entry in search("clients", 64.0)[1]:
        assert step_entry.due == step_entry.ok + step_entry.failed + step_entry.unsent
        assert step_entry.failed == sum(error.count for error in step_entry.errors)
    assert sum(error.count for error in burst()) == 153


def _shown(**changes: Any) -> tuple[str, str]:
    """The verdict and the text of a document with one changed capacity."""
    entry = endpoint("/block", 64, rate=False)
    (capacity,) = entry.capacities
    changed = entry.model_copy(update={"capacities": [capacity.model_copy(update=changes)]})
    document = load_document(report(target(endpoints=[changed])))
    return document.word, document.sentence


def test_a_contradicted_capacity_is_marked_on_the_first_screen() -> None:
    contested = ContestedLevel(level=64.0, passed=2, measured=3)
    word, sentence = _shown(capacity=48.0, finding="not confirmed", confirmed=False, contested=contested)
    assert word == "PASS"
    assert sentence.startswith("SLA met: ")
    assert "not confirmed: /block (clients), 64 clients passed 2 of 3 times" in sentence


def _sentence_of_a_miss(**changes: Any) -> str:
    entry = endpoint("/block", 64, rate=False).model_copy(update=changes)
    return load_document(report(target(endpoints=[entry]), required={"block.clients": 1000.0})).sentence


def test_a_server_that_fails_at_once_is_not_called_slow() -> None:
    """A step ends as soon as its p99 limit cannot be met. A server that closes every connection is not slow."""
    steps = [item.model_copy(update={"ok": 1, "failed": 14}) for item in endpoint("/block", 64, rate=False).steps]
    assert _sentence_of_a_miss(steps=steps).startswith(
        "SLA missed: /block fails most requests (p99 above 1 s; failed requests count as slower) at "
    )


def test_a_miss_states_what_is_slow_from_which_load_on_and_what_to_check() -> None:
    """The advice follows from the observations: the exhausted resource, or that nothing was observed."""
    first_exhausted = ExhaustedEntry(
        kind="clients", finding="exhausted", resource="the connection pool", level=16.0, sentence="full"
    )
    sentence = _sentence_of_a_miss(exhausted=[first_exhausted])
    assert sentence.startswith("SLA missed: /block responds too slowly (p99 above 1 s) at ")
    assert "of the 1000 clients that are required" in sentence
    assert sentence.endswith("; look at the connection pool first, which limited it from 16 clients on.")
    assert "monitor the server under load" in _sentence_of_a_miss()


def test_a_pass_states_the_sustained_load_with_its_interval() -> None:
    sentence = load_document(report(target(endpoints=[endpoint("/block", 64, rate=False)]))).sentence
    assert re.match(r"SLA met: /block sustains \d+ clients \(\d+ … \d+\) within p99 ≤ 1 s, errors ≤ 1 %; ", sentence)
    assert sentence.endswith("keep this as the requirement of later tests: `--write-require FILE`.")


def test_a_search_that_waited_for_a_cpu_is_invalid_and_not_a_miss() -> None:
    word, _ = _shown(capacity=None, low=0.0, high=None, stopped_by="waited", condition="waited", finding="lower bound")
    assert word == "INVALID"


def test_an_unreachable_server_is_reported_first() -> None:
    gone = Departure(at="2026-11-22T12:51:07Z", why="it accepts no connections")
    left = target(endpoints=[endpoint("/block", 64, rate=False)])
    document = load_document(report(left.model_copy(update={"gone": gone, "interrupted": True})))
    assert (document.word, document.verdict.exit_code) == ("SERVER GONE", ExitCode.ENVIRONMENT)
    assert document.sentence.startswith("2.1.0 went away at 12:51:07 UTC: it accepts no connections")


@pytest.mark.parametrize(
    ("factor", "clause"),
    [
        (0.5, "; 2.1.0 sustains 50 % less load than 2.0.0 (4 of 4 capacities)"),
        (2.0, "; 2.1.0 sustains 100 % more load than 2.0.0 (4 of 4 capacities)"),
        (1.0, None),
    ],
)
def test_a_test_of_two_servers_states_which_one_sustains_less(factor: float, clause: str | None) -> None:
    """Servers with overlapping intervals are not shown to differ."""
    labels = ("block", "account_coins")
    both = report(target("2.0.0", labels=labels), target("2.1.0", factor, labels=labels))
    sentence = load_document(both).sentence
    assert (" load than " in sentence) == (clause is not None)
    assert clause is None or clause in sentence, sentence
