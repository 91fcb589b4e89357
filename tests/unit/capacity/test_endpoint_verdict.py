"""What gates a pipeline: a capacity's interval against what is required, and nothing decided where nothing is known."""

from __future__ import annotations

from typing import Any

import pytest

from chainmark.capacity.verdict import (
    level_text,
    rulings,
    verdict,
)
from chainmark.core.load_report import LoadReport
from chainmark.core.verdict import Verdict
from chainmark.report.load_document import load_document

from tests.unit.report.load_samples import bare, endpoint, report, step, target, with_answer

MET, MISSED, PARTIAL, LIMITED, OPEN = (
    Verdict.PASS,
    Verdict.FAIL,
    Verdict.PARTIAL,
    Verdict.GENERATOR_LIMITED,
    Verdict.INCONCLUSIVE,
)


@pytest.mark.parametrize(
    ("required", "found"),
    [(1.0, MET), (64.0, MET), (64.5, OPEN), (71.9, OPEN), (72.0, MISSED), (500.0, MISSED)],
)
def test_a_required_capacity_is_met_below_its_interval_and_missed_above_it(required: float, found: Verdict) -> None:
    """64 clients passed clearly and 72 failed clearly: between them a gate must not guess."""
    said, reasons = verdict(with_answer(bare(), required={"block.clients": required}))
    assert said is found
    assert bool(reasons) is (found is not MET)


@pytest.mark.parametrize(
    ("changes", "found"),
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
def test_without_a_requirement_the_lowest_level_must_pass(changes: dict[str, Any], found: Verdict) -> None:
    """A server whose first level fails misses its agreement; one that nobody could load is not judged."""
    assert verdict(with_answer(bare(**changes)))[0] is found


@pytest.mark.parametrize(
    ("stopped_by", "found"), [("ladder end", OPEN), ("generator-limited", LIMITED), ("interrupted", PARTIAL)]
)
def test_a_requirement_above_the_end_of_a_test_is_not_missed(stopped_by: str, found: Verdict) -> None:
    """The test's own limit says nothing against the server."""
    answer = bare("lower bound", capacity=500.0, low=500.0, high=None, stopped_by=stopped_by)
    said, reasons = verdict(with_answer(answer, required={"block.clients": 600.0}))
    assert said is found
    assert "600 clients required" in reasons[0]


def test_only_what_is_required_gates_where_something_is() -> None:
    """Who asks for blocks must not be stopped by an endpoint that nobody uses; it is shown all the same."""
    nothing = bare("nothing passed", capacity=0.0, low=0.0, high=1.0, stopped_by="first step")
    unused = endpoint("/mempool", 64, capacities=[nothing])
    used = endpoint("/block", 64, capacities=[bare()])
    assert verdict(report(target(endpoints=[used, unused])))[0] is MISSED
    made = report(target(endpoints=[used, unused]), required={"block.clients": 64.0})
    assert verdict(made) == (MET, [])
    assert [(one.name, one.verdict, one.gates) for one in rulings(made)] == [
        ("/block (clients)", MET, True),
        ("/mempool (clients)", MISSED, False),
    ]
    made = report(target(endpoints=[used, unused]), required={"block.clients": 72.0})
    assert verdict(made)[0] is MISSED


def test_what_was_found_missing_outweighs_what_could_not_be_found() -> None:
    """An interrupted test that has shown a miss has shown it."""
    failed = endpoint("/block", 64, capacities=[bare("nothing passed", capacity=0.0, low=0.0, high=1.0)])
    made = report(target(endpoints=[failed], interrupted=True))
    said, reasons = verdict(made)
    assert said is MISSED
    assert "interrupted" in reasons[0]
    assert "/block (clients)" in reasons[1]
    assert verdict(report(target(interrupted=True)))[0] is PARTIAL


def test_a_required_endpoint_that_was_not_measured_is_not_met() -> None:
    """A pipeline that asks for an endpoint that the server does not offer must not turn green."""
    made = report(required={"mempool.rate": 10.0})
    said, reasons = verdict(made)
    assert said is OPEN
    assert "mempool (rate): 10 requests/s required, but it was not measured (not offered" in reasons[0]


def test_every_server_gates_by_itself_even_under_the_same_name() -> None:
    """Two runs of one version are two servers."""
    made = report(target("2.0.0"), target("2.0.0", 0.5), required={"network_status.clients": 50.0})
    ruled = [one for one in rulings(made) if one.required]
    assert [(one.number, one.verdict) for one in ruled] == [(0, MET), (1, MISSED)]


@pytest.mark.parametrize(
    ("outcomes", "found"),
    [(["pass", "pass"], MET), (["pass", "fail"], MISSED), (["inconclusive", "pass"], OPEN),
     (["generator-limited", "inconclusive"], LIMITED), ([], OPEN)],
)  # fmt: skip
def test_fixed_levels_without_a_search_must_all_pass(outcomes: list[str], found: Verdict) -> None:
    """Load points alone can gate as well."""
    steps = [step(n, "clients", 8.0, 64, phase="fixed", outcome=one) for n, one in enumerate(outcomes, start=1)]
    one = endpoint("/block", 64, capacities=[], steps=steps)
    assert verdict(report(target(endpoints=[one])))[0] is found


_WAITED = {"phase": "fixed", "outcome": "generator-limited", "leaning": "generator-limited", "reason": "waited"}


@pytest.mark.parametrize("searched", [True, False], ids=["beside a search", "alone"])
@pytest.mark.parametrize("required", [{}, {"block.clients": 64.0}], ids=["nothing required", "a capacity required"])
def test_a_fixed_level_that_only_waited_is_not_measured(searched: bool, required: dict[str, float]) -> None:
    """Its run is invalid, so a comparison would leave it out: a green document would hide that until then."""
    fixed = [step(1, "clients", 8.0, 64, phase="fixed"), step(2, "clients", 16.0, 64, **_WAITED)]
    one = endpoint("/block", 64, capacities=[bare()] if searched else [], steps=fixed)
    made = report(target(endpoints=[one]), required=required if searched else {})
    said, reasons = verdict(made)
    assert said is Verdict.INVALID
    assert said.exit_code == 4
    assert "not measured at 16 clients: the generator or the server waited" in reasons[0]
    document = load_document(made)
    assert document.verdict is Verdict.INVALID
    assert "invalid: /block" in document.sentence
    cases = [case for suite in document.suites for case in suite.cases if case.id != "mempool"]
    assert [case.verdict for case in cases] == [MET, Verdict.INVALID] if searched else [Verdict.INVALID]
    assert len({case.id for case in cases}) == len(cases)
    again = endpoint(
        "/block", 64, capacities=one.capacities, steps=[*fixed, step(3, "clients", 16.0, 64, phase="fixed")]
    )
    assert verdict(report(target(endpoints=[again]), required=made.required)) == (MET, [])


def test_a_fixed_level_at_the_generators_limit_is_said_beside_a_search() -> None:
    """Its gate makes the run invalid, too; and what a server failed outweighs what could not be measured."""
    limited = step(1, "rate", 8.0, 64, phase="fixed", outcome="generator-limited", reason="generator")
    beside = endpoint("/block", 64, capacities=[bare()], steps=[limited])
    assert verdict(report(target(endpoints=[beside])))[0] is LIMITED
    failed = step(2, "clients", 16.0, 64, phase="fixed", outcome="fail")
    alone = endpoint("/block", 64, capacities=[], steps=[step(3, "clients", 8.0, 64, **_WAITED), failed])
    assert verdict(report(target(endpoints=[alone])))[0] is MISSED


def test_nothing_measured_is_inconclusive() -> None:
    """An empty document passes nothing."""
    empty = LoadReport(**{**report().model_dump(), "targets": []})
    assert verdict(empty) == (OPEN, ["Nothing was measured."])


def test_levels_have_their_unit() -> None:
    """A client is a whole one; rates carry no useless digits."""
    assert level_text("clients", 1.0) == "1 client"
    assert level_text("rate", 1200.0) == "1200 requests/s"
    assert level_text("rate", 0.15625) == "0.1562 requests/s"
