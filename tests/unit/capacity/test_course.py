"""What ramps and spikes show of a queue whose backlog can be computed by hand, and what they must not claim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from chainmark.capacity.agreement import Sla
from chainmark.capacity.course import Course, Ramp, Spike
from chainmark.capacity.engine import RECORD_CLASSES, RIGHT
from chainmark.capacity.loadtest import Found
from chainmark.capacity.metrics import load_catalogue_of
from chainmark.capacity.model import LevelKind, Outcome, StepOrder, StepResult, Waits
from chainmark.capacity.recovering import WINDOW, CourseResult, CourseStep, _clearly_above, _in_windows, result_of
from chainmark.capacity.report import endpoint_entry
from chainmark.capacity.sla import judge
from chainmark.capacity.tables import samples_of
from chainmark.capacity.verdict import verdict
from chainmark.core.verdict import Verdict
from chainmark.report.blocks import Table
from chainmark.report.load_document import load_document

from tests.unit.capacity.queueing import ENDPOINT, TARGET, FloatArray, Latencies, finished
from tests.unit.report.load_samples import report, target

CAPACITY_PER_S = 200.0
# 200 requests above what is served, which the hundred per second that are left then work off in 2 s.
SPIKE = Spike(LevelKind.RATE, 100.0, 300.0, before_s=5.0, peak_s=2.0, after_s=10.0)
RAMP = Ramp(LevelKind.RATE, 50.0, 450.0, 40.0)


def _due_s(course: Course) -> FloatArray:
    """When requests are due: the inverse of the area below the course, by small steps."""
    times = np.linspace(0.0, course.length_s, 400_000)
    knots = np.array(course.points)
    # A jump has two levels at one time, of which the later one counts from then on.
    knots[:, 0] += 1e-9 * np.arange(len(knots))
    area = np.concatenate([[0.0], np.cumsum(np.diff(times) * np.interp(times, *knots.T)[:-1])])
    return np.interp(np.arange(int(area[-1])), area, times)


def _queued_s(due_s: FloatArray, service_s: FloatArray) -> FloatArray:
    """First come, first served, by one."""
    ends, end = [], 0.0
    for due, service in zip(due_s, service_s, strict=True):
        end = max(end, due) + service
        ends.append(end)
    return np.array(ends) - due_s


def _run(
    course: Course,
    service_s: float = 1.0 / CAPACITY_PER_S,
    failing: tuple[float, float] = (0.0, 0.0),
    waits: Waits | None = None,
    **changed: Any,
) -> CourseStep:
    """The course on a queue; what is due in ``failing`` is refused at once."""
    due_s = _due_s(course)
    latency_s = _queued_s(due_s, np.full(len(due_s), service_s))
    failed = (due_s >= failing[0]) & (due_s < failing[1])
    refused = next(number for number, name in enumerate(RECORD_CLASSES) if name == "status")
    records = {
        "due_ns": (due_s * 1e9).astype("<i8").tobytes(),
        "latency_ns": (latency_s * 1e9).astype("<i8").tobytes(),
        "service_ns": (latency_s * 1e9).astype("<i8").tobytes(),
        "request": np.zeros(len(due_s), "<u4").tobytes(),
        "class": np.where(failed, refused, RECORD_CLASSES.index(RIGHT)).astype("u1").tobytes(),
    }
    told = finished(latency_s[~failed], course.length_s, int(failed.sum())) | {"records": records}
    order = StepOrder(TARGET, ENDPOINT, course.peak, 0.0, course.length_s, course=course.points)
    result = StepResult.of(order, {**told, "records_left_out": 0, **changed})
    return CourseStep(course, judge(result, Sla(), course.phase, read_histogram=Latencies, waits=waits))


def _of(one: CourseStep, **agreed: float) -> CourseResult:
    return result_of(one, Sla(p99_s=0.1, **agreed))


def test_a_backlog_is_recovered_from_when_it_is_worked_off() -> None:
    found = _of(_run(SPIKE))
    assert found.measured == pytest.approx(2.0, abs=0.1)
    assert found.low == pytest.approx(2.0, abs=0.1)
    assert found.high == found.low
    assert found.outcome is Outcome.PASS
    assert found.before_s == pytest.approx(0.005, abs=1e-4)
    # At its peak the queue grows to 200, a second's work.
    assert found.peak_s == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(("allowed_s", "outcome"), [(3.0, Outcome.PASS), (1.0, Outcome.FAIL)])
def test_a_recovery_that_takes_too_long_misses_the_agreement(allowed_s: float, outcome: Outcome) -> None:
    assert _of(_run(SPIKE), recovery_s=allowed_s).outcome is outcome


def test_a_server_that_never_comes_back_fails_and_counts_with_the_time_it_was_watched() -> None:
    """Else a candidate that is stuck for ever would have no figure, and so no regression."""
    stuck = _run(replace(SPIKE, after_s=5.0), failing=(6.0, 99.0))
    found = _of(stuck)
    assert (found.measured, found.low, found.outcome, found.note) == (None, None, Outcome.FAIL, "")
    assert _of(stuck, recovery_s=60.0).outcome is Outcome.INCONCLUSIVE, "nobody watched it for so long"
    (samples,) = [
        frame for name, frame in samples_of([Found(ENDPOINT, Sla(), courses=[stuck])]).items() if "spike" in name
    ]
    assert samples["block_spike_100_to_300_per_s_recovery_s"].to_list() == [5.0]


def test_quick_errors_are_no_recovery() -> None:
    """A server that refuses at once after a spike has a better p99 than before it."""
    found = _of(_run(SPIKE, failing=(7.0, 10.0)))
    assert found.measured == pytest.approx(3.0, abs=0.1)


def test_a_ramp_names_the_level_at_which_the_agreement_was_missed() -> None:
    """Above 200 per second the backlog grows; 0.1 s of it are there when the rate is 220."""
    found = _of(_run(RAMP))
    assert found.measured == pytest.approx(220.0, abs=3.0)
    assert None not in (found.low, found.high)
    assert (found.low or 999.0) <= (found.measured or 0.0) <= (found.high or 0.0)
    assert found.outcome is Outcome.FAIL
    enough = _of(_run(replace(RAMP, last=150.0)))
    assert (enough.measured, enough.outcome) == (None, Outcome.PASS)


def test_a_ramp_does_not_fail_a_server_whose_errors_are_as_many_as_are_allowed() -> None:
    """Of thousands of windows of one ramp, some have twice as many errors by chance: 30 % of such ramps would fail."""
    fails = 0
    for seed in range(40):
        slow = np.random.default_rng(seed).random(3000) < 0.01
        fails += bool(_in_windows(slow).max() >= _clearly_above(0.01, 3000 - WINDOW + 1))
    assert fails <= 4
    assert _clearly_above(0.0, 2702) == 1, "where none is allowed, one is too many"


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (lambda: _run(replace(SPIKE, before_s=2.0)), "there were 200 requests"),
        (lambda: _run(replace(SPIKE, after_s=2.0)), "there were 200 requests"),
        (lambda: _run(SPIKE, failing=(0.0, 4.0)), "failed before the spike"),
        (lambda: _run(SPIKE, records=None), "`fixed.records`"),
        (lambda: _run(SPIKE, ended="stopped"), "interrupted"),
        (lambda: _run(SPIKE, waits=Waits(0.5, None, None)), "waited for a processor"),
        (lambda: _run(replace(RAMP, duration_s=1.0)), "a p99 needs 299 requests"),
    ],
)
def test_what_says_nothing_about_the_server_is_not_judged(one: Any, why: str) -> None:
    found = _of(one())
    assert why in found.note
    assert (found.measured, found.outcome) == (None, Outcome.INCONCLUSIVE)


def test_the_document_judges_and_shows_each_course_and_a_comparison_has_its_metric() -> None:
    found = Found(ENDPOINT, Sla(recovery_s=1.0), courses=[_run(SPIKE), _run(SPIKE), _run(RAMP)])
    entry = endpoint_entry(found, {}, read_histogram=Latencies)
    whole = report(target(endpoints=[entry]))
    ended, reasons = verdict(whole)
    assert ended is Verdict.FAIL
    assert [reason.split(": ")[0] for reason in reasons] == [
        "/block (spike from 100 to 300 requests/s)",
        "/block (ramp from 50 to 450 requests/s)",
    ]
    assert reasons[0].endswith("1 s allowed.")
    document = load_document(whole)
    assert [case.id for suite in document.suites for case in suite.cases][:2] == [
        "block.spike_from_100_to_300_requests/s",
        "block.ramp_from_50_to_450_requests/s",
    ]
    tables = {block.id: block for section in document.sections for block in section.blocks if isinstance(block, Table)}
    assert (len(tables["spikes-0"].rows), len(tables["ramps-0"].rows)) == (2, 1)
    catalogue = load_catalogue_of("http", "known", [found])
    samples = samples_of([found])
    for metric in catalogue.metrics:
        values = samples[metric.population][metric.id].to_list()
        assert len(values) == (2 if "spike" in metric.id else 1)
        assert all(value is not None for value in values)
