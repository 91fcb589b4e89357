"""The rulings on ramps and spikes, as sentences: all runs of one course decide, except those without evidence."""

from __future__ import annotations

from typing import Any

import pytest

from chainmark.capacity.verdict import course_figure, course_text, measured_text, rulings, verdict
from chainmark.core.load_report import CourseEntry, StepEntry
from chainmark.core.verdict import Verdict

from tests.unit.report.load_samples import bare, endpoint, report, step, target

MET, MISSED, OPEN = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE


def spike(outcome: str, measured: float | None, **changes: Any) -> CourseEntry:
    """A spike from 50 to 400 requests per second, after which an SLA allows a recovery of 5 s."""
    values: dict[str, Any] = {
        "what": "spike", "kind": "rate", "first": 50.0, "last": 400.0, "step": step(7, "rate", 400.0, 64), "unit": "s",
        "measured": measured, "low": None, "high": None, "limit": 5.0, "is_asked": True, "outcome": outcome,
    }  # fmt: skip
    return CourseEntry(**{**values, **changes})


def ramp(outcome: str, measured: float | None, **changes: Any) -> CourseEntry:
    """A ramp from 0.5 to 400 requests per second."""
    values = {"what": "ramp", "first": 0.5, "unit": "req/s", "limit": 400.0, "is_asked": False, **changes}
    return spike(outcome, measured, **values)


def unknown(note: str, **changes: Any) -> CourseEntry:
    """A spike that shows nothing about the server; the changes are those of its step."""
    return spike("inconclusive", None, note=note, step=step(7, "rate", 400.0, 64, **changes))


OF_CLIENTS: dict[str, Any] = {"kind": "clients", "first": 1.0, "last": 64.0, "unit": "clients"}


@pytest.mark.parametrize(
    ("courses", "status", "words"),
    [
        ([spike("pass", 4.2)], MET, "recovery after 4.2 s, 5 s allowed"),
        ([spike("pass", 4.2, is_asked=False)], MET, "recovery after 4.2 s"),
        ([spike("fail", 0.25, limit=0.1)], MISSED, "recovery after 250 ms, 100 ms allowed"),
        ([spike("pass", 4.2), spike("pass", 3.0), spike("pass", 4.2)], MET, "recovery after 4.2 s, 3 s, 5 s allowed"),
        ([spike("pass", 3.0), spike("inconclusive", 5.1)], OPEN, "recovery after 3 s, 5.1 s, 5 s allowed"),
        ([spike("inconclusive", 5.1), spike("fail", 9.0)], MISSED, "recovery after 5.1 s, 9 s, 5 s allowed"),
        ([unknown("it was interrupted"), spike("pass", 3.0)], MET, "recovery after 3 s, 5 s allowed"),
        ([ramp("pass", None)], MET, "the SLA held up to its end"),
        ([ramp("fail", 312.0), ramp("fail", 0.75)], MISSED, "missed from 312 requests/s, 0.75 requests/s"),
        ([ramp("fail", 1.0, **OF_CLIENTS)], MISSED, "missed from 1 client"),
        ([ramp("inconclusive", 312.0)], OPEN, "missed from 312 requests/s"),
        ([ramp("pass", None), ramp("fail", 312.0)], MISSED, "missed from 312 requests/s"),
        ([ramp("inconclusive", None)], OPEN, "neither clearly met nor clearly missed"),
        ([spike("fail", None)], MISSED, "no recovery, 5 s allowed"),
        ([spike("fail", None, is_asked=False)], MISSED, "no recovery"),
        ([spike("pass", 4.2), spike("fail", None)], MISSED, "recovery after 4.2 s or not at all, 5 s allowed"),
        ([spike("pass", 4.2), spike("generator-limited", 4.2)], OPEN, "recovery after 4.2 s, 5 s allowed"),
        ([ramp("pass", 312.0)], MET, "the SLA held up to its end"),
    ],
)
def test_the_runs_of_a_course_decide_by_the_worst_of_them(
    courses: list[CourseEntry], status: Verdict, words: str
) -> None:
    """A recovery in seconds must not be read as a level, nor a level as a time."""
    load_report = report(target(endpoints=[endpoint("/block", 64, capacities=[], steps=[], courses=courses)]))
    (ruled,) = rulings(load_report)
    assert (ruled.verdict, ruled.reason) == (status, words)
    assert verdict(load_report) == (status, [] if status is MET else [f"{ruled.name}: {words}."])


_FEW = "there were too few requests"
_WAITED: dict[str, Any] = {"outcome": "generator-limited", "reason": "waited"}


@pytest.mark.parametrize(
    ("courses", "status", "words"),
    [
        ([unknown(_FEW)], OPEN, _FEW),
        ([unknown(_FEW, partial=True)], Verdict.PARTIAL, _FEW),
        ([unknown(_FEW), unknown("first"), unknown("it was interrupted", partial=True)],
         Verdict.PARTIAL, "it was interrupted"),
        ([unknown("it was interrupted", partial=True), unknown("second", partial=True), unknown(_FEW)], OPEN, _FEW),
        ([unknown("the generator was the limit", outcome="generator-limited"), unknown(_FEW)],
         Verdict.GENERATOR_LIMITED, "generator-limited at 400 requests/s"),
        ([unknown("a process waited", **_WAITED)],
         Verdict.INVALID, "not measured at 400 requests/s: the generator or the server waited for processors that "
         "other processes used, in every step"),
    ],
)  # fmt: skip
def test_a_course_without_evidence_is_neither_met_nor_missed(
    courses: list[CourseEntry], status: Verdict, words: str
) -> None:
    """The last run gives the reason, unless the generator was the limit or a process waited in one."""
    (ruled,) = rulings(report(target(endpoints=[endpoint("/block", 64, capacities=[], steps=[], courses=courses)])))
    assert (ruled.verdict, ruled.reason) == (status, words)


@pytest.mark.parametrize(("steps", "is_of_levels"), [([], False), ([step(1, "clients", 8.0, 64, phase="fixed")], True)])
def test_each_course_has_its_own_ruling_with_the_names_of_its_server_and_endpoint(
    steps: list[StepEntry], is_of_levels: bool
) -> None:
    """The runs of the ramp are between those of the spike, and the server is the second."""
    courses = [spike("pass", 4.0), ramp("fail", 300.0), spike("pass", 3.0)]
    first = target("v1", endpoints=[endpoint("/a", 64, capacities=[bare()], steps=[])])
    entry = endpoint("/block", 64, capacities=[], steps=steps, courses=courses)
    ruled = [ruling for ruling in rulings(report(first, target("v2", endpoints=[entry]))) if ruling.course]
    assert [(ruling.name, ruling.course, ruling.reason) for ruling in ruled] == [
        ("/block (spike from 50 to 400 requests/s)", "spike from 50 to 400 requests/s",
         "recovery after 4 s, 3 s, 5 s allowed"),
        ("/block (ramp from 0.5 to 400 requests/s)", "ramp from 0.5 to 400 requests/s", "missed from 300 requests/s"),
    ]  # fmt: skip
    for ruling in ruled:
        assert (ruling.number, ruling.target, ruling.endpoint, ruling.label) == (1, "v2", "block", "/block")
        assert (ruling.kind, ruling.required, ruling.is_of_levels) == (None, None, is_of_levels)
        assert (ruling.gates, ruling.is_of_drift) == (True, False)


@pytest.mark.parametrize(
    ("course", "name", "result"),
    [
        (spike("pass", 4.25), "spike from 50 to 400 requests/s", "4.25 s"),
        (spike("fail", None), "spike from 50 to 400 requests/s", "not recovered"),
        (unknown(_FEW), "spike from 50 to 400 requests/s", "not estimable"),
        (ramp("fail", 0.75), "ramp from 0.5 to 400 requests/s", "0.75 requests/s"),
        (ramp("pass", None), "ramp from 0.5 to 400 requests/s", "never"),
        (ramp("fail", 2.0, **OF_CLIENTS), "ramp from 1 to 64 clients", "2 clients"),
    ],
)
def test_the_result_of_a_run_is_shown_with_its_unit(course: CourseEntry, name: str, result: str) -> None:
    """Tables show each run, and a run without a result must not appear as zero or as never missed."""
    assert (course_text(course), measured_text(course)) == (name, result)


def test_the_ends_of_an_interval_have_the_unit_of_its_figure() -> None:
    figures = [course_figure(course, 0.5) for course in (spike("pass", 4.0), ramp("fail", 300.0))]
    assert figures == ["500 ms", "0.5 requests/s"]
