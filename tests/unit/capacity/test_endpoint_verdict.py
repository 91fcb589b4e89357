"""The verdict that gates a pipeline: the interval of a capacity against the required one. Unknowns stay undecided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chainmark.capacity.verdict import (
    MOST_REASONS,
    Ruling,
    bare_level,
    gone_text,
    level_text,
    rulings,
    verdict,
)
from chainmark.core.labels import sla_label
from chainmark.core.load_report import CapacityEntry, ConditionEntry, Departure, DriftEntry, LoadReport, StepEntry
from chainmark.core.verdict import Verdict
from chainmark.report.load_document import load_document

from tests.unit.report.load_samples import bare, endpoint, report, seconds, step, target, with_answer

MET, MISSED, PARTIAL, LIMITED, OPEN = (
    Verdict.PASS,
    Verdict.FAIL,
    Verdict.PARTIAL,
    Verdict.GENERATOR_LIMITED,
    Verdict.INCONCLUSIVE,
)


@pytest.mark.parametrize(
    ("required", "status"),
    [(1.0, MET), (64.0, MET), (64.5, OPEN), (71.9, OPEN), (72.0, MISSED), (500.0, MISSED)],
)
def test_a_required_capacity_is_met_below_the_measured_interval_and_missed_above_it(
    required: float, status: Verdict
) -> None:
    """64 clients passed clearly and 72 failed clearly. A gate must not guess in between."""
    result, reasons = verdict(with_answer(bare(), required={"block.clients": required}))
    assert result is status
    assert bool(reasons) is (status is not MET)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, MET),
        ({"finding": "nothing passed", "capacity": 0.0, "low": 0.0, "high": 1.0, "stopped_by": "first step"}, MISSED),
        ({"finding": "nothing passed", "capacity": 0.0, "low": 0.0, "high": None, "stopped_by": "first step"}, OPEN),
        ({"finding": "lower bound", "capacity": 500.0, "low": 500.0, "high": None, "stopped_by": "ladder end"}, MET),
        ({"finding": "lower bound", "capacity": 0.0, "low": 0.0, "high": None, "stopped_by": "generator-limited"},
         LIMITED),
        ({"finding": "unsettled", "capacity": 8.0, "low": 0.0, "high": None, "stopped_by": "budget"}, OPEN),
        ({"finding": "unsettled", "capacity": None, "low": 0.0, "high": None, "stopped_by": "interrupted"}, PARTIAL),
    ],
)  # fmt: skip
def test_without_a_requirement_the_lowest_level_must_pass(changes: dict[str, Any], status: Verdict) -> None:
    """A server whose first level fails misses its SLA. A server that could not be loaded is not judged."""
    assert verdict(with_answer(bare(**changes)))[0] is status


@pytest.mark.parametrize(
    ("stopped_by", "status"), [("ladder end", OPEN), ("generator-limited", LIMITED), ("interrupted", PARTIAL)]
)
def test_a_requirement_above_the_limit_of_the_test_is_not_missed(stopped_by: str, status: Verdict) -> None:
    """The test's own limit is not evidence against the server."""
    answer = bare("lower bound", capacity=500.0, low=500.0, high=None, stopped_by=stopped_by)
    result, reasons = verdict(with_answer(answer, required={"block.clients": 600.0}))
    assert result is status
    assert "600 clients required" in reasons[0]


def test_only_required_endpoints_gate_if_any_is_required() -> None:
    """A user who requires blocks must not be stopped by an endpoint that nobody uses. It is still shown."""
    nothing = bare("nothing passed", capacity=0.0, low=0.0, high=1.0, stopped_by="first step")
    unused = endpoint("/mempool", 64, capacities=[nothing])
    used = endpoint("/block", 64, capacities=[bare()])
    assert verdict(report(target(endpoints=[used, unused])))[0] is MISSED
    load_report = report(target(endpoints=[used, unused]), required={"block.clients": 64.0})
    assert verdict(load_report) == (MET, [])
    assert [(ruling.name, ruling.verdict, ruling.gates) for ruling in rulings(load_report)] == [
        ("/block (clients)", MET, True),
        ("/mempool (clients)", MISSED, False),
    ]
    load_report = report(target(endpoints=[used, unused]), required={"block.clients": 72.0})
    assert verdict(load_report)[0] is MISSED


def test_a_missed_requirement_outweighs_an_undecided_one() -> None:
    """If an interrupted test has shown a miss, the verdict must be a miss."""
    failed = endpoint("/block", 64, capacities=[bare("nothing passed", capacity=0.0, low=0.0, high=1.0)])
    load_report = report(target(endpoints=[failed], interrupted=True))
    result, reasons = verdict(load_report)
    assert result is MISSED
    assert "interrupted" in reasons[0]
    assert "/block (clients)" in reasons[1]
    assert verdict(report(target(interrupted=True)))[0] is PARTIAL


def test_a_required_endpoint_that_was_not_measured_is_not_met() -> None:
    """A pipeline that requires an endpoint that the server does not offer must not pass."""
    load_report = report(required={"mempool.rate": 10.0})
    result, reasons = verdict(load_report)
    assert result is OPEN
    assert "mempool (rate): 10 requests/s required, but it was not measured (not offered" in reasons[0]


def test_every_server_gates_separately_even_under_the_same_name() -> None:
    """Two runs of one version are two servers."""
    load_report = report(target("2.0.0"), target("2.0.0", 0.5), required={"network_status.clients": 50.0})
    ruled = [ruling for ruling in rulings(load_report) if ruling.required]
    assert [(ruling.number, ruling.verdict) for ruling in ruled] == [(0, MET), (1, MISSED)]


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [(["pass", "pass"], MET), (["pass", "fail"], MISSED), (["inconclusive", "pass"], OPEN),
     (["generator-limited", "inconclusive"], LIMITED), ([], OPEN)],
)  # fmt: skip
def test_fixed_levels_without_a_search_must_all_pass(outcomes: list[str], status: Verdict) -> None:
    """Fixed levels alone can gate as well."""
    steps = [step(n, "clients", 8.0, 64, phase="fixed", outcome=outcome) for n, outcome in enumerate(outcomes, start=1)]
    entry = endpoint("/block", 64, capacities=[], steps=steps)
    assert verdict(report(target(endpoints=[entry])))[0] is status


_WAITED = {"phase": "fixed", "outcome": "generator-limited", "point_outcome": "generator-limited", "reason": "waited"}


@pytest.mark.parametrize("searched", [True, False], ids=["beside a search", "alone"])
@pytest.mark.parametrize("required", [{}, {"block.clients": 64.0}], ids=["nothing required", "a capacity required"])
def test_a_fixed_level_whose_steps_all_waited_is_not_measured(searched: bool, required: dict[str, float]) -> None:
    """Its run is invalid, so a comparison would exclude it. A passing document would hide this."""
    fixed = [step(1, "clients", 8.0, 64, phase="fixed"), step(2, "clients", 16.0, 64, **_WAITED)]
    entry = endpoint("/block", 64, capacities=[bare()] if searched else [], steps=fixed)
    load_report = report(target(endpoints=[entry]), required=required if searched else {})
    result, reasons = verdict(load_report)
    assert result is Verdict.INVALID
    assert result.exit_code == 4
    assert "not measured at 16 clients: the generator or the server waited" in reasons[0]
    document = load_document(load_report)
    assert document.verdict is Verdict.INVALID
    assert document.sentence.startswith("/block cannot be judged: not measured at 16 clients")
    cases = [case for suite in document.suites for case in suite.cases if case.id != "mempool"]
    assert [case.verdict for case in cases] == [MET, Verdict.INVALID] if searched else [Verdict.INVALID]
    assert len({case.id for case in cases}) == len(cases)
    again = endpoint(
        "/block", 64, capacities=entry.capacities, steps=[*fixed, step(3, "clients", 16.0, 64, phase="fixed")]
    )
    assert verdict(report(target(endpoints=[again]), required=load_report.required)) == (MET, [])


def test_a_fixed_level_at_the_generators_limit_is_reported_in_addition_to_a_search() -> None:
    """The run is invalid in both cases. A failure of the server outweighs levels that could not be measured."""
    limited = step(1, "rate", 8.0, 64, phase="fixed", outcome="generator-limited", reason="generator")
    beside = endpoint("/block", 64, capacities=[bare()], steps=[limited])
    assert verdict(report(target(endpoints=[beside])))[0] is LIMITED
    failed = step(2, "clients", 16.0, 64, phase="fixed", outcome="fail")
    alone = endpoint("/block", 64, capacities=[], steps=[step(3, "clients", 8.0, 64, **_WAITED), failed])
    assert verdict(report(target(endpoints=[alone])))[0] is MISSED


def test_nothing_measured_is_inconclusive() -> None:
    """An empty document must not pass."""
    empty = LoadReport(**{**report().model_dump(), "targets": []})
    assert verdict(empty) == (OPEN, ["Nothing was measured."])


def test_levels_have_their_unit() -> None:
    """Clients are whole numbers, and rates have no redundant digits."""
    assert level_text("clients", 1.0) == "1 client"
    assert level_text("rate", 1200.0) == "1200 requests/s"
    assert level_text("rate", 0.15625) == "0.1562 requests/s"


# --- in words -------------------------------------------------------------------------------------------------------


def reason(capacity: CapacityEntry, steps: Sequence[StepEntry] = (), **required: float) -> tuple[Verdict, str]:
    """The verdict and reason for one capacity of one endpoint."""
    entry = endpoint("/block", 64, capacities=[capacity], steps=list(steps))
    wanted = {f"block.{kind}": value for kind, value in required.items()}
    (ruled,) = rulings(report(target(endpoints=[entry]), required=wanted))
    return ruled.verdict, ruled.reason


@pytest.mark.parametrize(
    ("changes", "required", "status", "words"),
    [
        ({}, 64.0, MET, "64 clients required, 64 clients passed clearly"),
        ({}, 72.0, MISSED, "72 clients required, but 72 clients clearly missed the SLA (p99)"),
        ({"condition": None}, 80.0, MISSED, "80 clients required, but 72 clients clearly missed the SLA"),
        ({}, 70.0, OPEN, "70 clients required, but 64 clients passed clearly and 72 clients failed clearly"),
        ({"low": 0.5}, 70.0, OPEN, "70 clients required, but 0 clients passed clearly and 72 clients failed clearly"),
        ({"low": 0.0}, 70.0, OPEN, "70 clients required, but no level passed clearly and 72 clients failed clearly"),
        ({"high": None}, 70.0, OPEN, "70 clients required, but 64 clients passed clearly and no level failed clearly"),
        ({}, None, MET, "64 clients passed clearly"),
        ({"low": 0.5, "kind": "rate"}, None, MET, "0.5 requests/s passed clearly"),
        (
            {"low": 0.0, "high": 1.0, "finding": "nothing passed"},
            *(None, MISSED, "the lowest level, 1 client, clearly missed the SLA (p99)"),
        ),
        (
            {"low": 0.0, "high": 1.0, "finding": "nothing passed", "condition": None},
            *(None, MISSED, "the lowest level, 1 client, clearly missed the SLA"),
        ),
        (
            {"low": 0.0, "high": 1.0, "finding": "unsettled"},
            *(None, OPEN, "no level passed clearly: 1 client failed clearly"),
        ),
        (
            {"low": 0.0, "high": None, "finding": "nothing passed"},
            *(None, OPEN, "no level passed clearly: no level failed clearly"),
        ),
    ],
)
def test_a_capacity_is_described_with_its_interval_and_requirement(
    changes: dict[str, Any], required: float | None, status: Verdict, words: str
) -> None:
    """A user whose pipeline it stops needs the interval, the requirement, and the condition that was missed first."""
    requirement: dict[str, Any] = {} if required is None else {"clients": required}
    assert reason(bare(**changes), **requirement) == (status, words)


@pytest.mark.parametrize(
    ("stopped_by", "status", "why"),
    [
        ("interrupted", PARTIAL, "the search was interrupted"),
        ("server gone", PARTIAL, "the server went away"),
        ("generator gone", PARTIAL, "a load generator went away"),
        ("generator-limited", LIMITED, "the generator, not the server, was the limit"),
        ("waited", Verdict.INVALID, "the generator or the server waited for processors that other processes used"),
        ("ladder end", OPEN, "that is the ladder's end"),
        ("budget", OPEN, "the search ran out of steps"),
    ],
)
def test_the_cause_of_a_search_without_a_result_is_its_reason(stopped_by: str, status: Verdict, why: str) -> None:
    answer = bare(low=0.0, high=72.0, stopped_by=stopped_by)
    assert reason(answer) == (status, f"no level passed clearly: {why}")
    assert reason(answer, clients=70.0) == (status, f"70 clients required, but no level passed clearly and {why}")
    # A miss that was shown before the search stopped is reported.
    assert reason(answer, clients=72.0)[0] is MISSED


def short(level: float, limit: float, **changes: Any) -> StepEntry:
    """A step that had fewer responses than required."""
    few = ConditionEntry(name="samples", measured=1.0, limit=limit, outcome="inconclusive")
    sound = ConditionEntry(name="p99", measured=1.0, limit=1.0, outcome="pass")
    return step(1, "clients", level, 64, conditions=[sound, few], outcome="inconclusive", **changes)


def test_a_search_with_too_few_responses_states_how_many_are_required() -> None:
    """The number is that of the longest step at the lowest undecided level. The other steps had fewer responses."""
    open_ = bare(low=4.0, high=None, finding="unsettled")
    steps = [
        short(16.0, 300.0, due=9_000),
        short(8.0, 300.0, due=20, window_s=10.0),
        short(8.0, 12_000.0, due=100, window_s=40.0),
        short(4.0, 300.0, due=1, window_s=10.0),
        short(6.0, 300.0, due=1, window_s=10.0, partial=True),
        short(5.0, 300.0, due=1, window_s=10.0).model_copy(update={"kind": "rate"}),
    ]
    reason_text = "8 clients gave 100 answers in 40 s, and 12,000 are needed"
    assert reason(open_, steps, clients=70.0)[1].endswith(f"4 clients passed clearly and {reason_text}")
    assert reason(bare(low=4.0), steps, clients=70.0)[1].endswith(f"and 72 clients failed clearly; {reason_text}")
    assert reason(bare(low=4.0, high=8.0), steps, clients=7.0)[1].endswith("and 8 clients failed clearly")
    assert reason(bare(low=4.0, high=9.0), steps, clients=7.0)[1].endswith(
        f"and 9 clients failed clearly; {reason_text}"
    )
    step_entries = [short(8.0, 300.0, due=1, window_s=40.0)]
    assert reason(open_, step_entries, clients=70.0)[1].endswith("8 clients gave 1 answer in 40 s, and 300 are needed")


def test_a_search_with_contradicting_outcomes_counts_them() -> None:
    """The reader must check why the server is sometimes fast and sometimes slow. A longer test does not help."""
    steps = [step(n, "clients", 8.0, 64, outcome=outcome) for n, outcome in enumerate(("pass", "fail", "pass"))]
    enough = ConditionEntry(name="samples", measured=900.0, limit=300.0, outcome="pass")
    steps.append(step(9, "clients", 8.0, 64, outcome="inconclusive", conditions=[enough]))
    assert reason(bare(low=4.0, high=16.0), steps, clients=9.0)[1].endswith(
        "16 clients failed clearly; 8 clients was measured: 2 × pass, 1 × fail, 1 × inconclusive"
    )


@pytest.mark.parametrize(
    ("steps", "status", "words"),
    [
        ([], OPEN, "no step was measured to its end"),
        ([(8.0, "pass", {"partial": True})], PARTIAL, "no step was measured to its end"),
        ([(8.0, "pass", {})], MET, "1 step passed"),
        ([(8.0, "pass", {}), (8.0, "fail", {"partial": True})], MET, "1 step passed"),
        ([(8.0, "pass", {}), (8.0, "pass", {}), (8.0, "fail", {"reason": "waited"})], MET, "2 steps passed"),
        (
            [(8.0, "fail", {}), (16.0, "fail", {}), (8.0, "fail", {}), (4.0, "inconclusive", {})],
            *(MISSED, "missed its SLA at 8 clients, 16 clients"),
        ),
        (
            [(8.0, "fail", {"reason": "p99"}), (16.0, "fail", {"reason": "errors"})],
            *(MISSED, "missed p99 and errors at 8 clients, 16 clients"),
        ),
        ([(8.0, "pass", {}), (4.0, "inconclusive", {})], OPEN, "inconclusive at 4 clients"),
        ([(8.0, "inconclusive", {}), (4.0, "generator-limited", {})], LIMITED, "generator-limited at 4 clients"),
        (
            [(8.0, "fail", {"reason": "waited"}), (4.0, "generator-limited", {})],
            *(Verdict.INVALID, "not measured at 8 clients: the generator or the server waited for processors that "
              "other processes used, in every step"),
        ),
    ],
)  # fmt: skip
def test_fixed_levels_are_described(
    steps: list[tuple[float, str, dict[str, Any]]], status: Verdict, words: str
) -> None:
    step_entries = [
        step(n, "clients", level, 64, phase="fixed", outcome=outcome, **changes)
        for n, (level, outcome, changes) in enumerate(steps)
    ]
    (ruled,) = rulings(report(target(endpoints=[endpoint("/block", 64, capacities=[], steps=step_entries)])))
    assert (ruled.verdict, ruled.reason, ruled.name, ruled.kind) == (status, words, "/block", None)
    assert (ruled.gates, ruled.required, ruled.is_of_levels) == (True, None, False)


def test_fixed_levels_in_addition_to_a_search_have_a_ruling_only_if_they_prevent_a_result() -> None:
    """The search repeated those of its own steps that waited, so they do not prevent a result."""
    searched = step(1, "clients", 8.0, 64, outcome="generator-limited", reason="waited")
    failed = step(2, "clients", 8.0, 64, phase="fixed", outcome="fail")
    partial = step(3, "rate", 4.0, 64, phase="fixed", outcome="generator-limited", partial=True)
    entry = endpoint("/block", 64, capacities=[bare()], steps=[searched, failed, partial])
    (alone,) = rulings(report(target(endpoints=[entry])))
    assert (alone.name, alone.verdict) == ("/block (clients)", MET)
    limited = step(4, "rate", 4.0, 64, phase="fixed", outcome="generator-limited")
    beside = rulings(report(target("v2", endpoints=[endpoint("/block", 64, capacities=[bare()], steps=[limited])])))
    assert [(ruled.name, ruled.is_of_levels) for ruled in beside] == [
        ("/block (clients)", False),
        ("/block (fixed levels)", True),
    ]
    assert (beside[1].number, beside[1].target, beside[1].endpoint, beside[1].label) == (0, "v2", "block", "/block")
    assert (beside[1].kind, beside[1].required) == (None, None)
    assert (beside[1].verdict, beside[1].reason) == (LIMITED, "generator-limited at 4 requests/s")


def test_the_limit_of_a_search_gates_only_if_its_endpoint_is_required() -> None:
    """A fixed level at the generator's limit always makes the run invalid. The end of a search does not."""
    limited = bare("lower bound", low=0.0, high=None, stopped_by="generator-limited")
    fixed = step(1, "clients", 4.0, 64, phase="fixed", outcome="generator-limited")
    waited = bare(low=0.0, stopped_by="waited")
    endpoints = [
        endpoint("/block", 64, capacities=[bare()], steps=[]),
        endpoint("/a", 64, capacities=[limited], steps=[fixed]),
        endpoint("/b", 64, capacities=[waited], steps=[]),
        endpoint("/c", 64, capacities=[], steps=[step(2, "clients", 4.0, 64, outcome="fail")]),
    ]
    load_report = report(target(endpoints=endpoints), required={"block.clients": 1.0})
    assert [(ruling.name, ruling.gates) for ruling in rulings(load_report)] == [
        ("/block (clients)", True),
        ("/a (clients)", False),
        ("/a (fixed levels)", True),
        ("/b (clients)", True),
        ("/c", False),
    ]
    assert all(ruling.gates for ruling in rulings(report(target(endpoints=endpoints))))


def test_a_requirement_without_a_result_has_a_reason() -> None:
    """For a missing endpoint, an endpoint not searched by rate, and an interrupted test."""
    entry = endpoint("/block", 64, capacities=[bare()], steps=[])
    required = {"mempool.rate": 10.0, "block.rate": 2.0, "gone.clients": 1.0}
    load_report = report(target("v", endpoints=[entry]), required=required)
    _, *missing = rulings(load_report)
    assert [(ruled.name, ruled.endpoint, ruled.required, ruled.verdict) for ruled in missing] == [
        ("mempool (rate)", "mempool", 10.0, OPEN),
        ("/block (rate)", "block", 2.0, OPEN),
        ("gone (clients)", "gone", 1.0, OPEN),
    ]
    assert [ruled.reason for ruled in missing] == [
        "10 requests/s required, but it was not measured (not offered: 404, text instead of JSON)",
        "2 requests/s required, but it was not measured",
        "1 client required, but it was not measured",
    ]
    assert {(ruled.number, ruled.target) for ruled in missing} == {(0, "v")}
    broken = report(target(endpoints=[entry], interrupted=True), required=required)
    assert {ruled.verdict for ruled in rulings(broken)[1:]} == {PARTIAL}


def test_the_worst_result_is_first_and_names_the_server_if_there_are_several() -> None:
    failing = bare("nothing passed", low=0.0, high=1.0, condition=None)
    undecided = bare("unsettled", low=0.0, high=None, stopped_by="budget")
    endpoints = [
        endpoint(f"/{name}", 64, capacities=[capacity], steps=[])
        for name, capacity in (("a", undecided), ("b", bare()), ("c", failing))
    ]
    words = [
        "/c (clients): the lowest level, 1 client, clearly missed the SLA.",
        "/a (clients): no level passed clearly: the search ran out of steps.",
    ]
    alone = report(target("v1", endpoints=endpoints))
    assert verdict(alone) == (MISSED, words)
    both = report(target("v1", endpoints=endpoints), target("v2", endpoints=endpoints[1:2]))
    assert verdict(both) == (MISSED, [f"v1: {text}" for text in words])
    assert verdict(alone, rulings(alone)[:2]) == (OPEN, words[1:]), "given rulings are not computed again"


@pytest.mark.parametrize(("number", "more"), [(MOST_REASONS, 0), (MOST_REASONS + 3, 3)])
def test_many_reasons_are_counted(number: int, more: int) -> None:
    load_report = report()
    ruling = Ruling(0, "v", "a", "/a", "clients", None, MISSED, "missed")
    _, reasons = verdict(load_report, [ruling] * number)
    assert reasons[:MOST_REASONS] == ["/a (clients): missed."] * MOST_REASONS
    assert reasons[MOST_REASONS:] == ([f"{more} more are in the tables."] if more else [])


def test_an_unreachable_server_is_reported_first() -> None:
    gone = Departure(at="2026-11-20T10:11:12Z", why="it accepts no connections")
    entry = endpoint("/block", 64, capacities=[bare()], steps=[])
    away = target("v1", endpoints=[entry], gone=gone, interrupted=True)
    sentence = (
        "v1: the server was gone at 10:11:12 UTC (it accepts no connections); "
        "the report has the measurements up to then."
    )
    assert gone_text(away) == sentence
    assert verdict(report(away)) == (Verdict.GONE, [sentence])
    failed = endpoint("/c", 64, capacities=[], steps=[])
    words = "/c: no step was measured to its end."
    assert verdict(report(target("v1", endpoints=[failed], gone=gone))) == (Verdict.GONE, [sentence, words])
    assert gone_text(target("v2", endpoints=[entry])) == ""
    lost = Departure(at="2026-11-20T10:11:12Z", why="the worker is gone", generator="load generator 2 of 2")
    sentence = (
        "v1: load generator 2 of 2 was gone at 10:11:12 UTC (the worker is gone); "
        "the report has the measurements up to then."
    )
    alone = report(target("v1", endpoints=[entry], gone=lost, interrupted=True))
    assert verdict(alone) == (Verdict.GENERATOR_GONE, [sentence])
    assert load_document(alone).sentence.startswith("Load generator 2 of 2 went away at 10:11:12 UTC: the worker is")
    broken = target("v2", endpoints=[entry], interrupted=True)
    assert verdict(report(broken)) == (
        PARTIAL,
        ["v2: the test was interrupted; the report has the measurements up to then."],
    )


def test_runs_are_selected_by_whether_their_sla_was_met() -> None:
    """`sla:missed` selects stored runs: the labels are those of all earlier releases."""
    assert [sla_label(verdict) for verdict in (MET, MISSED, OPEN, LIMITED)] == [
        "met",
        "missed",
        "inconclusive",
        "generator-limited",
    ]


def test_levels_are_whole_clients_and_rounded_rates() -> None:
    assert [bare_level(value) for value in (12_345.0, 1234.56, 0.5)] == ["12,345", "1235", "0.5"]
    assert level_text(None, 2.0) == "2 clients"


RATES: dict[str, Any] = {"kind": "rate", "low": 0.25, "high": 0.5}


@pytest.mark.parametrize(
    ("changes", "required", "words"),
    [
        ({}, 0.25, "0.25 requests/s required, 0.25 requests/s passed clearly"),
        ({}, 0.75, "0.75 requests/s required, but 0.5 requests/s clearly missed the SLA (p99)"),
        ({}, 0.3, "0.3 requests/s required, but 0.25 requests/s passed clearly and 0.5 requests/s failed clearly"),
        (
            *({"low": 0.0, "finding": "nothing passed"}, None),
            "the lowest level, 0.5 requests/s, clearly missed the SLA (p99)",
        ),
    ],
)
def test_rates_are_shown_as_rates(changes: dict[str, Any], required: float | None, words: str) -> None:
    """As a number of clients, half a request per second would be zero."""
    requirement: dict[str, Any] = {} if required is None else {"rate": required}
    assert reason(bare(**{**RATES, **changes}), **requirement)[1] == words


def test_undecided_rates_are_shown_as_rates() -> None:
    """There are enough responses but no clear p99: the outcomes are stated, not the required number of responses."""
    unclear = [
        ConditionEntry(name="p99", measured=1.0, limit=1.0, outcome="inconclusive"),
        ConditionEntry(name="samples", measured=900.0, limit=300.0, outcome="pass"),
    ]
    steps = [step(1, "rate", 0.3, 64, outcome="inconclusive", conditions=unclear)]
    assert reason(bare(**RATES), steps, rate=0.4)[1].endswith(
        "0.5 requests/s failed clearly; 0.3 requests/s was measured: 1 × inconclusive"
    )
    few = [
        step(1, "rate", 0.3, 64, due=3, outcome="inconclusive", conditions=[*unclear[:1], short(1, 299).conditions[1]])
    ]
    assert reason(bare(**RATES), few, rate=0.4)[1].endswith("0.3 requests/s gave 3 answers in 10 s, and 299 are needed")


def test_a_ruling_names_its_server_endpoint_and_kind() -> None:
    """Includes the second server's endpoint without a search, and an endpoint with a dot in its id."""
    searched = endpoint("/block", 64, capacities=[bare()], steps=[])
    alone = endpoint("/a.b", 64, capacities=[], steps=[step(1, "clients", 8.0, 64)])
    load_report = report(
        target("v1", endpoints=[searched]),
        target("v2", endpoints=[alone]),
        required={"block.clients": 1, "c.d.rate": 2},
    )
    assert [
        (ruling.number, ruling.target, ruling.endpoint, ruling.label, ruling.kind) for ruling in rulings(load_report)
    ] == [
        (0, "v1", "block", "/block", "clients"),
        (0, "v1", "c.d", "c.d", "rate"),
        (1, "v2", "a.b", "/a.b", None),
        (1, "v2", "block", "block", "clients"),
        (1, "v2", "c.d", "c.d", "rate"),
    ]


def drift(what: str, outcome: str, **changes: Any) -> DriftEntry:
    """The drift of a step of 15 min at 8 clients."""
    values: dict[str, Any] = {"kind": "clients", "level": 8.0, "window_s": 900.0, "begin": 0.01, "rise": 0.12}
    return DriftEntry(
        **{**values, "what": what, "outcome": outcome, "low": 0.08, "high": 0.16, "limit": 0.1, **changes}
    )


UNKNOWN: dict[str, Any] = {"begin": None, "rise": None, "low": None, "high": None}


@pytest.mark.parametrize(
    ("drifts", "status", "words"),
    [
        ([drift("p50", "pass"), drift("p99", "pass")], MET, "no drift"),
        (
            [drift("p50", "inconclusive"), drift("p99", "fail"), drift("errors", "fail", window_s=600.0)],
            *(MISSED, "p99 +12.0 % (+8.0 … +16.0 %) over 900 s; errors +12.0 % (+8.0 … +16.0 %) over 600 s"),
        ),
        ([drift("p50", "pass"), drift("p99", "inconclusive", **UNKNOWN)], OPEN, "p99 not estimable over 900 s"),
        ([drift("p50", "pass"), drift("p99", "fail", limit=None)], MET, "no drift"),
    ],
)
def test_a_server_that_drifts_fails_whatever_its_capacity(
    drifts: list[DriftEntry], status: Verdict, words: str
) -> None:
    entry = endpoint("/block", 64, capacities=[bare()], steps=[], drifts=drifts)
    load_report = report(target("v2", endpoints=[entry]))
    _, ruled = rulings(load_report)
    assert (ruled.verdict, ruled.reason, ruled.name) == (status, words, "/block (drift)")
    assert (ruled.number, ruled.target, ruled.endpoint, ruled.label) == (0, "v2", "block", "/block")
    assert (ruled.kind, ruled.required, ruled.is_of_levels) == (None, None, True)
    assert verdict(load_report) == (status, [] if status is MET else [f"/block (drift): {words}."])


def test_a_drift_without_a_limit_has_no_ruling() -> None:
    entry = endpoint("/block", 64, capacities=[bare()], steps=[], drifts=[drift("p50", "pass", limit=None)])
    assert [ruled.name for ruled in rulings(report(target(endpoints=[entry])))] == ["/block (clients)"]


def test_every_case_of_an_endpoint_has_its_own_id() -> None:
    """A pipeline that stores the last of two cases with one id would lose the reason for the failure."""
    limited = step(1, "rate", 4.0, 64, phase="fixed", outcome="generator-limited")
    entry = endpoint("/block", 64, capacities=[bare()], steps=[limited], drifts=[drift("p99", "fail")])
    (suite,) = load_document(report(target(endpoints=[entry]))).suites
    assert [case.id for case in suite.cases][:3] == ["block.clients", "block.fixed", "block.drift"]


def test_the_first_sentence_counts_endpoints_and_not_rulings() -> None:
    """A soak without drift was reported as two endpoints: its fixed level and its drift."""
    entry = endpoint("/block", 64, capacities=[], steps=[step(1, "clients", 8.0, 64)], drifts=[drift("p50", "pass")])
    sentence = load_document(report(target("v1", endpoints=[entry]))).sentence
    assert sentence.startswith("SLA met: 1 endpoint stayed within ")
    assert " at every fixed level, without drift" in sentence


def test_a_miss_without_a_search_counts_no_capacities() -> None:
    long = step(1, "clients", 8.0, 64)
    entry = endpoint("/block", 64, capacities=[], steps=[long], seconds=seconds(long), drifts=[drift("p50", "fail")])
    document = load_document(report(target("v1", endpoints=[entry])))
    assert "capacity" not in document.sentence
    assert document.sentence.endswith(
        "look for what grows on the server under load: memory, tables, connections, logs."
    )
    # A single level has no curve. The timeline is open because it shows the change over time.
    sections = {section.id: section for section in document.sections}
    assert "latency" not in sections
    assert not sections["timelines"].closed


def test_an_inconclusive_drift_requires_a_longer_fixed_level() -> None:
    """The advice was to raise `steps.longest_s`, which lengthens only the steps of a search."""
    long = step(1, "clients", 8.0, 64)
    entry = endpoint("/block", 64, capacities=[], steps=[long], drifts=[drift("p50", "inconclusive")])
    sentence = load_document(report(target("v1", endpoints=[entry]))).sentence
    assert sentence.endswith("measure longer: raise `fixed.duration_s`.")
