"""Figures of ramps and spikes, on a queue whose backlog can be computed by hand, and the limits of their evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from chainmark.capacity.course import Course, Ramp, Spike, level_at
from chainmark.capacity.engine import GENERATOR_LIMIT, IDLE_CLOSE, RIGHT, UNSENT
from chainmark.capacity.loadtest import EndpointResult
from chainmark.capacity.metrics import load_catalogue_of
from chainmark.capacity.model import LevelKind, StepOutcome, StepRequest, StepResult, Waits
from chainmark.capacity.recovering import (
    WINDOW,
    CourseResult,
    CourseStep,
    _clearly_above,
    _in_windows,
    _recovered,
    result_of,
)
from chainmark.capacity.report import endpoint_entry
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge
from chainmark.capacity.tables import samples_of
from chainmark.capacity.verdict import verdict
from chainmark.core.load_report import CourseEntry, CourseUnit
from chainmark.core.verdict import Verdict
from chainmark.report.blocks import Table
from chainmark.report.load_document import load_document

from tests.unit.capacity.queueing import ENDPOINT, TARGET, FloatArray, Latencies, recorded
from tests.unit.report.load_samples import report, step, target

CAPACITY_PER_S = 200.0
# The peak adds 200 requests to the queue. Afterwards the spare capacity of 100 per second clears them in 2 s.
SPIKE = Spike(LevelKind.RATE, 100.0, 300.0, before_s=5.0, peak_s=2.0, after_s=10.0)
RAMP = Ramp(LevelKind.RATE, 50.0, 450.0, 40.0)


def _due_s(course: Course) -> FloatArray:
    """When requests are due: the inverse of the integral of the course, in small steps."""
    times = np.linspace(0.0, course.length_s, 400_000)
    knots = np.array(course.points)
    # A jump has two levels at the same time. The later one applies from then on.
    knots[:, 0] += 1e-9 * np.arange(len(knots))
    area = np.concatenate([[0.0], np.cumsum(np.diff(times) * np.interp(times, *knots.T)[:-1])])
    return np.interp(np.arange(int(area[-1])), area, times)


def _queued_s(due_s: FloatArray, service_s: FloatArray) -> FloatArray:
    """Latencies with one worker and first come, first served."""
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
    """The course on a queue. Requests due in ``failing`` fail at once."""
    due_s = _due_s(course)
    latency_s = _queued_s(due_s, np.full(len(due_s), service_s))
    failed = (due_s >= failing[0]) & (due_s < failing[1])
    return _recorded(course, due_s, latency_s, kinds=np.where(failed, "status", RIGHT), waits=waits, **changed)


def _recorded(
    course: Course,
    due_s: FloatArray,
    latency_s: FloatArray,
    *,
    kinds: Any = RIGHT,
    warm_up_s: float = 0.0,
    waits: Waits | None = None,
    **changed: Any,
) -> CourseStep:
    """A run of these requests. ``kinds`` is the class of all requests, or one class per request."""
    engine_result = recorded(due_s + warm_up_s, latency_s, kinds, window_s=course.length_s)
    order = StepRequest(TARGET, ENDPOINT, course.peak, warm_up_s, course.length_s, course=course.points)
    result = StepResult.of(order, {**engine_result, **changed})
    return CourseStep(course, judge(result, Sla(), course.phase, read_histogram=Latencies, waits=waits))


def _of(course_step: CourseStep, **agreed: float) -> CourseResult:
    return result_of(course_step, Sla(p99_s=0.1, **agreed))


def test_the_server_has_recovered_when_its_backlog_is_cleared() -> None:
    result = _of(_run(SPIKE))
    assert result.measured == pytest.approx(2.0, abs=0.1)
    assert result.low == pytest.approx(2.0, abs=0.1)
    assert result.high == result.low
    assert result.outcome is StepOutcome.PASS
    assert result.before_s == pytest.approx(0.005, abs=1e-4)
    # At the peak the queue grows to 200 requests, which take one second.
    assert result.peak_s == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(("allowed_s", "outcome"), [(3.0, StepOutcome.PASS), (1.0, StepOutcome.FAIL)])
def test_a_recovery_that_takes_too_long_misses_the_sla(allowed_s: float, outcome: StepOutcome) -> None:
    assert _of(_run(SPIKE), recovery_s=allowed_s).outcome is outcome


def test_a_server_that_never_recovers_fails_with_the_observed_time_as_its_figure() -> None:
    """Otherwise a candidate that never recovers would have no figure, and the regression would be missed."""
    stuck = _run(replace(SPIKE, after_s=5.0), failing=(6.0, 99.0))
    result = _of(stuck)
    assert (result.measured, result.low, result.outcome, result.note) == (None, None, StepOutcome.FAIL, "")
    assert _of(stuck, recovery_s=60.0).outcome is StepOutcome.INCONCLUSIVE, "observed for less than the allowed time"
    (samples,) = [
        frame
        for name, frame in samples_of([EndpointResult(ENDPOINT, Sla(), courses=[stuck])]).items()
        if "spike" in name
    ]
    assert samples["block_spike_100_to_300_per_s_recovery_s"].to_list() == [5.0]


@pytest.mark.parametrize(("limit_s", "measured", "low", "high", "outcome"), [
    (None, 3.0, 2.0, None, StepOutcome.PASS),
    (None, None, 2.0, None, StepOutcome.INCONCLUSIVE),
    (None, None, None, None, StepOutcome.FAIL),
    (5.0, 4.0, 3.0, 5.0, StepOutcome.PASS),
    (5.0, 4.0, 3.0, 5.1, StepOutcome.INCONCLUSIVE),
    (5.0, 4.0, 3.0, None, StepOutcome.INCONCLUSIVE),
    (5.0, 6.0, 5.0, 7.0, StepOutcome.INCONCLUSIVE),
    (5.0, 6.0, 5.1, 7.0, StepOutcome.FAIL),
    (10.0, None, None, None, StepOutcome.FAIL),
    (10.1, None, None, None, StepOutcome.INCONCLUSIVE),
])  # fmt: skip
def test_a_recovery_is_judged_by_its_interval(
    limit_s: float | None, measured: float | None, low: float | None, high: float | None, outcome: StepOutcome
) -> None:
    """A limit met by chance is not a pass, and a recovery observed for less than the allowed time cannot fail."""
    assert _recovered(SPIKE, Sla(recovery_s=limit_s), measured, low, high) is outcome


# 299 requests before the spike at ten per second, as many at its peak, and the others after it.
_SLOW = Spike(LevelKind.RATE, 10.0, 20.0, before_s=29.9, rise_s=5.0, peak_s=30.0, after_s=60.0)


def _steady(before: FloatArray, peak: FloatArray, after: FloatArray, **more: Any) -> CourseStep:
    """Requests with these latencies before the spike, at its peak and after it."""
    begins = (0.0, _SLOW.before_s + _SLOW.rise_s, _SLOW.over_s)
    # The last request of each part is due just before the next part begins.
    due_s = np.concatenate([
        np.linspace(begin, end, len(part), endpoint=False)
        for begin, end, part in zip(begins, (_SLOW.before_s, _SLOW.over_s, _SLOW.length_s), (before, peak, after),
                                    strict=True)
    ])  # fmt: skip
    return _recorded(_SLOW, due_s, np.concatenate([before, peak, after]), **more)


def test_the_figures_of_a_spike_are_computed_from_its_requests() -> None:
    """By hand: before the spike 1 to 299 ms, so p99 is 297 ms, with an interval within 292 … 299 ms."""
    before, peak = np.arange(1, 300)[::-1] / 1000.0, np.arange(1, 300) / 100.0
    # Falls by 1 ms per request from 500 ms. The limits are 1.2 × (297, 292, 299) ms.
    after = np.maximum(0.5 - np.arange(600) / 1000.0, 0.0)
    after[10], after[200] = 0.1, 0.9  # one in a hundred may be slow
    for more in ({}, {"warm_up_s": 7.0}):
        result = _of(_steady(before, peak, after, **more))
        assert [result.before_s, result.peak_s] == pytest.approx([0.297, 2.97])
        # The first window may have two slower requests. The first response within 356.4 ms is the 145th, with 356 ms.
        assert result.measured == pytest.approx(144 * 0.1 + 0.356)
        assert result.low == pytest.approx(142 * 0.1 + 0.358)
        assert result.high == pytest.approx(150 * 0.1 + 0.350)
        assert (result.limit, result.outcome, result.note) == (60.0, StepOutcome.PASS, "")
    within = _of(_steady(before, peak, after), recovery_s=14.8)
    assert (within.limit, within.outcome) == (14.8, StepOutcome.INCONCLUSIVE)
    assert _of(_steady(before, peak[:298], after)).peak_s is None


def test_the_p99_before_a_spike_counts_failed_requests_as_the_slowest() -> None:
    before, peak = np.arange(1, 300) / 1000.0, np.full(299, 2.0)
    after = np.zeros(299)

    def with_failed(number: int) -> CourseResult:
        classes = np.full(len(before) + len(peak) + len(after), RIGHT, dtype=object)
        classes[:number] = "status"
        return _of(_steady(before, peak, after, kinds=classes))

    assert with_failed(2).before_s == pytest.approx(0.299)
    assert with_failed(3).before_s is None
    assert "failed before the spike" in with_failed(3).note


def test_the_p99_of_a_large_sample_has_an_interval_from_order_statistics() -> None:
    """Of 1,000 requests the 990th, between the 983rd and the 997th: ±1.96 standard deviations of a binomial count."""
    before = np.arange(1, 1001) / 1000.0
    after = np.arange(1200, 1, -1) / 1000.0
    result = _of(_steady(before, np.full(299, 2.0), after))
    apart = 60.0 / len(after)
    shown = [None if value is None else round(value, 6) for value in (result.before_s, result.low, result.high)]
    least, most = 1.2 * 0.983, 1.2 * 0.997
    firsts = [round(next(at * apart + after[at] for at in range(len(after)) if after[at] <= limit), 6)
              for limit in (most, least)]  # fmt: skip
    assert shown == [0.99, *firsts]


def test_a_request_on_an_idle_connection_that_the_server_closed_is_not_counted() -> None:
    """The engine sends it again, and the response to the second request is a separate record."""
    before, peak, after = np.full(299, 0.1), np.full(299, 2.0), np.full(299, 0.1)
    classes = np.full(len(before) * 3, RIGHT, dtype=object)
    classes[:1] = IDLE_CLOSE
    result = _of(_steady(before, peak, after, kinds=classes))
    assert result.note == f"{_FEW} 298 requests"


def test_fast_errors_are_not_a_recovery() -> None:
    """A server that rejects requests at once after a spike has a better p99 than before it."""
    result = _of(_run(SPIKE, failing=(7.0, 10.0)))
    assert result.measured == pytest.approx(3.0, abs=0.1)


def test_a_ramp_reports_the_level_at_which_the_sla_was_missed() -> None:
    """Above 200 per second the backlog grows. It reaches 0.1 s when the rate is 220."""
    result = _of(_run(RAMP))
    assert result.measured == pytest.approx(220.0, abs=3.0)
    assert result.unit == "req/s"
    assert None not in (result.low, result.high)
    assert (result.low or 999.0) <= (result.measured or 0.0) <= (result.high or 0.0)
    assert result.outcome is StepOutcome.FAIL
    enough = _of(_run(replace(RAMP, last=150.0)))
    assert (enough.measured, enough.outcome) == (None, StepOutcome.PASS)


def _even_ramp(latency_s: FloatArray, **more: Any) -> CourseStep:
    """A ramp whose requests are evenly distributed over time."""
    return _recorded(RAMP, np.linspace(0.0, RAMP.duration_s, len(latency_s), endpoint=False), latency_s, **more)


def _level(request: int, requests: int) -> float:
    return 50.0 + 400.0 * request / requests


@pytest.mark.parametrize("requests", [WINDOW, 3000])
def test_a_ramp_is_missed_at_the_first_window_that_is_significantly_slow(requests: int) -> None:
    """The exact binomial test has one error probability for all windows together. 0.1 s is still within the limit."""
    begin = requests // 2
    windows = requests - WINDOW + 1
    most = next(n for n in range(1, WINDOW) if binom.sf(n - 1, WINDOW, 0.01) <= 0.05 / windows)
    latency_s = np.full(requests, 0.1)
    latency_s[begin : begin + most - 1] = 0.11
    assert _of(_even_ramp(latency_s)) == CourseResult("req/s", None, 450.0, None, 450.0, StepOutcome.PASS)
    latency_s[begin + most - 1] = 0.11
    result = _of(_even_ramp(latency_s))
    first = max(0, begin + most - WINDOW)
    shown = [_level(at, requests) for at in (begin, first, first + WINDOW - 1)]
    assert [result.measured, result.low, result.high] == pytest.approx(shown)
    assert (result.limit, result.outcome) == (450.0, StepOutcome.FAIL)


def test_the_first_error_ends_a_ramp_if_no_error_is_allowed() -> None:
    """Even if the error is fast. If it counted as a slow response, one of many would be allowed."""
    kinds = np.full(3000, RIGHT, dtype=object)
    kinds[1500] = "status"
    course_step = _even_ramp(np.full(3000, 0.01), kinds=kinds)
    assert _of(course_step).outcome is StepOutcome.PASS
    result = _of(course_step, error_share=0.0)
    shown = [_level(at, 3000) for at in (1500, 1500 - WINDOW + 1, 1500)]
    assert [result.measured, result.low, result.high] == pytest.approx(shown)


@pytest.mark.parametrize(("course", "time_s", "level"), [
    (RAMP, -1.0, 50.0), (RAMP, 0.0, 50.0), (RAMP, 10.0, 150.0), (RAMP, 40.0, 450.0), (RAMP, 99.0, 450.0),
    (SPIKE, 4.9, 100.0), (SPIKE, 5.0, 300.0), (SPIKE, 6.9, 300.0), (SPIKE, 7.0, 100.0), (SPIKE, 99.0, 100.0),
    (replace(SPIKE, rise_s=2.0), 6.5, 250.0), (replace(SPIKE, rise_s=2.0), 8.9, 300.0),
])  # fmt: skip
def test_the_level_at_a_time_equals_the_engines(course: Course, time_s: float, level: float) -> None:
    """The engine and the report must agree on the level at which a ramp missed its SLA."""
    assert level_at(course.points, time_s) == pytest.approx(level)


def test_a_ramp_does_not_fail_a_server_with_an_allowed_share_of_errors() -> None:
    """Of thousands of windows of one ramp, some have twice as many errors by chance: 30 % of such ramps would fail."""
    fails = 0
    for seed in range(40):
        slow = np.random.default_rng(seed).random(3000) < 0.01
        fails += bool(_in_windows(slow).max() >= _clearly_above(0.01, 3000 - WINDOW + 1))
    assert fails <= 4
    assert _clearly_above(0.0, 2702) == 1, "if no error is allowed, one is too many"
    assert _clearly_above(0.99, 1) == WINDOW, "all 299 exceed 99 % by chance with probability 0.99^299 = 4.95 %"
    assert _clearly_above(0.99, 2) == WINDOW + 1, "which is above 2.5 %: no number is too many"
    assert _clearly_above(1.0, 1) == WINDOW + 1, "if all requests may fail, no number is too many"


def _limited(course_step: CourseStep) -> CourseStep:
    return replace(course_step, step=replace(course_step.step, outcome=StepOutcome.GENERATOR_LIMITED))


_WINDOW, _THERE = "a p99 needs 299", " there were"
_FEW = f"{_WINDOW} requests before the spike and after it, and{_THERE}"
_WAITED = "the generator or the server waited for processors that other processes used"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (lambda: _run(replace(SPIKE, before_s=2.0)), f"{_FEW} 200 requests"),
        (lambda: _run(replace(SPIKE, after_s=2.0)), f"{_FEW} 200 requests"),
        (lambda: _run(SPIKE, failing=(0.0, 4.0)), "more than 1 % of the requests failed before the spike"),
        (lambda: _run(SPIKE, records=None), "there were more requests than `fixed.records`"),
        (lambda: _run(SPIKE, records_left_out=1), "there were more requests than `fixed.records`"),
        (lambda: _limited(_run(RAMP)), "the generator was the limit"),
        (lambda: _run(SPIKE, ended="stopped"), "it was interrupted"),
        (lambda: _run(SPIKE, waits=Waits(0.5, None, None)), _WAITED),
        (lambda: _even_ramp(np.full(298, 0.01)), f"{_WINDOW} requests, and{_THERE} 298"),
    ],
)
def test_a_course_without_evidence_about_the_server_is_inconclusive(changed: Any, why: str) -> None:
    run = changed()
    unit: CourseUnit
    unit, limit = ("req/s", run.course.last) if isinstance(run.course, Ramp) else ("s", run.course.after_s)
    assert _of(run) == CourseResult(unit, None, None, None, limit, StepOutcome.INCONCLUSIVE, note=why)


def test_the_report_judges_and_shows_each_course_and_the_comparison_has_its_metric() -> None:
    result = EndpointResult(ENDPOINT, Sla(recovery_s=1.0), courses=[_run(SPIKE), _run(SPIKE), _run(RAMP)])
    entry = endpoint_entry(result, {}, read_histogram=Latencies)
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
    catalogue = load_catalogue_of("http", "known", [result])
    samples = samples_of([result])
    for metric in catalogue.metrics:
        values = samples[metric.population][metric.id].to_list()
        assert len(values) == (2 if "spike" in metric.id else 1)
        assert all(value is not None for value in values)


def test_a_course_has_the_error_share_of_the_requests_that_the_server_received() -> None:
    """Of 3,000 requests the generator could not make 3, and the server had closed the connection of 20 while idle."""
    kinds = np.full(3000, RIGHT, dtype=object)
    kinds[:3000:300], kinds[7:3000:150], kinds[11:3000:1000] = "status", IDLE_CLOSE, GENERATOR_LIMIT
    ramp = _even_ramp(np.full(3000, 0.01), kinds=kinds)
    samples = samples_of([EndpointResult(ENDPOINT, Sla(), courses=[ramp, ramp])])["block_ramp_50_to_450_per_s"]
    assert samples.rows() == [(attempt, 450.0, pytest.approx(10 / 2977)) for attempt in (1, 2)]
    unsent = _even_ramp(np.full(WINDOW, 0.01), kinds=np.where(np.arange(WINDOW) < 1, "status", UNSENT))
    samples = samples_of([EndpointResult(ENDPOINT, Sla(), courses=[unsent])])["block_ramp_50_to_450_per_s"]
    assert samples.rows() == [(1, 50.0, 1.0)], "only one request was sent, and the SLA was missed from the start"


def test_a_course_without_evidence_about_the_server_is_no_sample() -> None:
    result = EndpointResult(ENDPOINT, Sla(), courses=[_limited(_run(RAMP))])
    samples = samples_of([result])["block_ramp_50_to_450_per_s"]
    assert samples.is_empty()
    metrics = [metric.id for metric in load_catalogue_of("http", "known", [result]).metrics]
    assert samples.columns == ["attempt", *metrics]


@pytest.mark.parametrize(
    ("what", "kind", "unit"), [("spike", "rate", "s"), ("ramp", "rate", "req/s"), ("ramp", "clients", "clients")]
)
def test_a_document_sealed_without_units_is_read_with_units(what: str, kind: str, unit: str) -> None:
    """Otherwise its figures would be read as seconds of a ramp, or could not be read."""
    known: dict[str, Any] = {"what": what, "kind": kind, "first": 1.0, "last": 2.0, "step": step(0, "rate", 8.0, 64.0)}
    old = {**known, "measured": 1.5, "low": 1.0, "high": None, "limit": 2.0, "outcome": "pass"}
    assert CourseEntry.model_validate(old).unit == unit
