"""One step judged by the SLA: clear outcomes, likely outcomes, and whether the server or the generator is the cause."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from chainmark.capacity.model import (
    ConditionResult,
    LevelKind,
    LoadLevel,
    Phase,
    Step,
    StepCondition,
    StepOutcome,
    StepRequest,
    StepResult,
)
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge, machine_limits, share_interval
from chainmark.core.errors import UsageError
from chainmark.stats.estimable import fewest_for_upper_bound

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Latencies, finished, histogram

CLIENTS = LoadLevel(LevelKind.CLIENTS, 8.0)
RATE = LoadLevel(LevelKind.RATE, 100.0)


def step(result: dict[str, Any], sla: Sla | None = None, level: LoadLevel = CLIENTS) -> Step:
    order = StepRequest(TARGET, ENDPOINT, level, warm_up_s=1.0, duration_s=10.0)
    return judge(StepResult.of(order, result), sla or Sla(), Phase.PROBE, read_histogram=Latencies)


def limit(of: Step, name: StepCondition) -> ConditionResult:
    result = of.condition(name)
    assert result is not None
    return result


def mixed(quick: int, slow: int) -> list[float]:
    return [0.1] * quick + [1.5] * slow


@given(st.integers(2, 5000), st.data())
def test_the_interval_is_that_of_clopper_and_pearson(n: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, n - 1))
    exact = stats.binomtest(count, n).proportion_ci(0.95, method="exact")
    assert share_interval(count, n) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_with_none_or_all_the_interval_is_one_sided() -> None:
    """Then 299 fast requests are enough to show a p99, which is why 299 are required."""
    assert share_interval(0, 299)[1] <= 0.01 < share_interval(0, 298)[1]
    assert share_interval(20, 20) == pytest.approx((0.05 ** (1 / 20), 1.0))
    assert share_interval(0, 0) == (0.0, 1.0)


def test_clustered_requests_count_as_fewer_independent_ones() -> None:
    """With twice the variance, 20 slow requests of 1,000 show as much as 10 independent ones of 500."""
    assert share_interval(20, 1000, 2.0) == share_interval(10, 500)


def test_slow_requests_of_a_single_second_do_not_show_a_failure() -> None:
    """Such a cluster is evidence of one slow second, not of fifty slow requests.

    By hand: nine seconds deviate by 5 slow requests from their mean of 5 and one by 45. The binomial variance is 47.5.
    The last factor is the t quantile for 9 degrees of freedom over the normal one.
    """
    judged = step(finished(mixed(950, 50), answered=[0] + [100] * 10, slow=[0] * 10 + [50]))
    p99 = limit(judged, StepCondition.P99)
    effect = 2500.0 / 47.5 * (2.262157 / 1.959964) ** 2
    assert p99.effect == pytest.approx(effect, rel=1e-5)
    assert (p99.low, p99.high) == pytest.approx(share_interval(50 / effect, 1000 / effect), rel=1e-4)
    assert (judged.outcome, judged.point_outcome) == (StepOutcome.INCONCLUSIVE, StepOutcome.FAIL)
    assert step(finished(mixed(950, 50))).outcome is StepOutcome.FAIL, "the same number without clusters"


def test_a_percentile_requires_a_number_of_requests() -> None:
    assert (fewest_for_upper_bound(0.99), fewest_for_upper_bound(0.95)) == (299, 59)


@given(st.integers(0, 2**32 - 1), st.integers(299, 700), st.integers(0, 12), st.integers(0, 12))
def test_p99_within_the_limit_is_at_most_one_in_a_hundred_slower(seed: int, n: int, failed: int, unsent: int) -> None:
    """The share and the percentile are two forms of one condition. A failed request is slower than any response."""
    latencies = np.random.default_rng(seed).gamma(4.0, 0.1, n)
    judged = limit(step(finished(latencies, failed=failed, unsent=unsent)), StepCondition.P99)
    ordered = np.sort([*latencies, *[np.inf] * (failed + unsent)])
    p99 = ordered[int(np.ceil(0.99 * len(ordered) - 1e-9)) - 1]
    assert judged.met == (p99 <= 1.0)
    assert judged.measured == (None if np.isinf(p99) else pytest.approx(p99))


def test_clear_steps_pass_and_fail() -> None:
    passed, failed = step(finished(mixed(1000, 2))), step(finished(mixed(960, 40)))
    assert (passed.outcome, passed.point_outcome, passed.reason) == (StepOutcome.PASS, StepOutcome.PASS, None)
    assert (failed.outcome, failed.point_outcome, failed.reason) == (
        StepOutcome.FAIL,
        StepOutcome.FAIL,
        StepCondition.P99,
    )


@pytest.mark.parametrize(("slow", "point_outcome"), [(9, StepOutcome.PASS), (12, StepOutcome.FAIL)])
def test_an_interval_across_the_limit_is_inconclusive_but_leans(slow: int, point_outcome: StepOutcome) -> None:
    """If about 10 of 1,000 requests are slow, neither a pass nor a failure is shown."""
    judged = step(finished(mixed(1000 - slow, slow)))
    assert (judged.outcome, judged.point_outcome) == (StepOutcome.INCONCLUSIVE, point_outcome)


def test_p99_of_ten_requests_is_never_their_maximum() -> None:
    judged = step(finished([0.1] * 9 + [0.9]))
    p99 = limit(judged, StepCondition.P99)
    assert p99.measured is None
    assert p99.note == "not estimable from 10 requests"
    assert judged.outcome is StepOutcome.INCONCLUSIVE
    assert limit(judged, StepCondition.SAMPLES).outcome is StepOutcome.INCONCLUSIVE


def test_few_requests_can_show_a_failure() -> None:
    """If all of eight requests are slow, 292 more are not required."""
    assert step(finished([2.0] * 8)).outcome is StepOutcome.FAIL


def test_a_step_without_responses_does_not_pass() -> None:
    judged = step(finished([]))
    assert (judged.outcome, judged.point_outcome) == (StepOutcome.INCONCLUSIVE, StepOutcome.FAIL)


def test_errors_are_the_reason_if_they_and_not_latency_caused_the_failure() -> None:
    """3 % of errors push p99 beyond every limit. Reporting a slow server would mislead its owner."""
    judged = step(finished([0.1] * 970, failed=30))
    assert limit(judged, StepCondition.P99).outcome is StepOutcome.FAIL
    assert judged.reason is StepCondition.ERRORS
    assert step(finished(mixed(900, 70), failed=30)).reason is StepCondition.P99


def test_a_step_without_errors_meets_any_error_limit() -> None:
    assert step(finished([0.1] * 400), Sla(error_share=0.0)).outcome is StepOutcome.PASS
    assert step(finished([0.1] * 399, failed=1), Sla(error_share=0.0)).outcome is StepOutcome.FAIL


def test_p95_decides_if_it_is_limited() -> None:
    result = finished([0.1] * 900 + [0.5] * 100)
    assert step(result).outcome is StepOutcome.PASS
    assert step(result, Sla(p95_s=0.3)).reason is StepCondition.P95


def test_a_rate_that_is_not_achieved_fails_before_it_is_slow() -> None:
    """An excess of 5 % for 10 s makes a backlog of only half a second, and p99 would still pass."""
    result = finished(np.linspace(0.0, 0.5, 20_000), answered=[1904] * 11)
    judged = step(result, level=LoadLevel(LevelKind.RATE, 2000.0))
    assert limit(judged, StepCondition.P99).outcome is StepOutcome.PASS
    assert (judged.outcome, judged.reason) == (StepOutcome.FAIL, StepCondition.ACHIEVED)


def test_a_queue_at_the_end_of_the_window_is_not_an_overload() -> None:
    """6 of 400 requests are pending when the window ends, as at any other time. This is within chance."""
    judged = step(finished([0.15] * 400, answered=[40] * 10 + [34]), level=LoadLevel(LevelKind.RATE, 40.0))
    achieved = limit(judged, StepCondition.ACHIEVED)
    assert (achieved.met, achieved.outcome) == (False, StepOutcome.INCONCLUSIVE)


@pytest.mark.parametrize(
    "load", [{"lag_s": [0.2] * 500}, {"cpu_s": 9.0}], ids=["late by a fifth of a second", "busy for 90 % of the time"]
)
def test_the_server_is_not_blamed_for_a_late_generator(load: dict[str, Any]) -> None:
    answered = [100] * 11
    slow = step(finished(mixed(900, 100), answered=answered, **load), level=RATE)
    assert (slow.outcome, slow.point_outcome) == (StepOutcome.GENERATOR_LIMITED, StepOutcome.GENERATOR_LIMITED)
    # A late generator only increases latencies, which are measured from the due time. A pass remains valid.
    assert step(finished([0.1] * 1000, answered=answered, **load), level=RATE).outcome is StepOutcome.PASS
    assert step(finished([0.1] * 900, failed=100, answered=answered, **load), level=RATE).outcome is StepOutcome.FAIL


def test_clients_have_no_schedule_to_lag_behind() -> None:
    judged = step(finished(mixed(900, 100), lag_s=[0.2] * 500))
    assert judged.outcome is StepOutcome.FAIL
    assert judged.condition(StepCondition.ACHIEVED) is None


def test_an_interrupted_step_decides_nothing() -> None:
    assert step(finished([0.1] * 1000, ended="stopped")).partial


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"p99_s": 0.0}, "p99_s"),
        ({"p99_s": 121.0}, "p99_s"),
        ({"p95_s": 1.0}, "p95_s"),
        ({"error_share": 1.5}, "error_share"),
        ({"achieved_share": 1.1}, "achieved_share"),
        ({"min_requests": 0}, "min_requests"),
        ({"p98_s": 1.0}, "p98_s"),
        ({"p99_s": float("nan")}, "p99_s"),
    ],
)
def test_impossible_limits_are_rejected_by_name(values: dict[str, Any], names: str) -> None:
    with pytest.raises(UsageError) as refused:
        Sla.of(values)
    assert f"`{names}`" in refused.value.message
    assert "\n" not in refused.value.message


def without_room(ok: int, no_room: int, failed: int = 0) -> dict[str, Any]:
    """A step in which some requests exceeded a limit of the generator's machine."""
    result = finished([0.1] * ok, failed=failed + no_room)
    limit: dict[str, Any] = {
        "class": "generator", "status": None, "reported": {}, "detail": "too many open files; raise `ulimit -n`",
        "example": "", "first_s": 1.0,
    }  # fmt: skip
    classes = [{**entry, "count": failed} for entry in result["classes"] if failed]
    return {**result, "classes": [*classes, {**limit, "count": no_room}]}


def test_requests_that_exceed_limits_of_the_generators_machine_are_not_server_errors() -> None:
    """Otherwise the search would report the operator's `ulimit -n` as the server's capacity."""
    level = step(without_room(ok=1000, no_room=500))
    assert (level.outcome, level.point_outcome) == (StepOutcome.GENERATOR_LIMITED, StepOutcome.GENERATOR_LIMITED)
    assert limit(level, StepCondition.ERRORS).outcome is StepOutcome.PASS
    assert limit(level, StepCondition.ERRORS).measured == 0.0
    result = limit(level, StepCondition.GENERATOR)
    assert result.measured == pytest.approx(1 / 3)
    assert "raise `ulimit -n`" in result.note


def test_server_errors_are_reported_together_with_unsent_requests() -> None:
    """Half of the requests that the server received failed."""
    level = step(without_room(ok=500, no_room=500, failed=500))
    assert (level.outcome, level.reason) == (StepOutcome.FAIL, StepCondition.ERRORS)
    assert limit(level, StepCondition.ERRORS).measured == 0.5


def test_a_step_can_pass_although_some_requests_hit_limits_of_the_machine() -> None:
    """These requests count as not completed in time, and the step is still good enough."""
    assert step(without_room(ok=9990, no_room=10)).outcome is StepOutcome.PASS
    assert step(without_room(ok=0, no_room=400)).outcome is StepOutcome.GENERATOR_LIMITED


def test_the_default_agreement_is_the_published_one() -> None:
    sla = Sla()
    assert (sla.p95_s, sla.p99_s, sla.error_share, sla.achieved_share, sla.min_requests) == (None, 1.0, 0.01, 0.99, 299)
    assert (sla.strictest_latency_s, Sla(p95_s=0.3).strictest_latency_s) == (1.0, 0.3)


@pytest.mark.parametrize("values", [{"p99_s": 120.0}, {"p99_s": 1e-5}, {"error_share": 0.5}, {"achieved_share": 1.0}])
def test_the_widest_limits_are_accepted(values: dict[str, Any]) -> None:
    assert Sla.of(values) == Sla(**values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"p95_s": 2.0}, "`p95_s` is 2, which never decides beside a `p99_s` of 1: it must be below"),
        ({"p98_s": 1.0}, "`p98_s` is not a limit of an SLA"),
        ({"min_requests": 0}, "the SLA's `min_requests` is 0, but it should be greater than or equal to 1"),
        ({"p99_s": 120.5}, "the SLA's `p99_s` is 120.5, but it should be less than or equal to 120"),
        ({"p99_s": 0.9e-5}, "the SLA's `p99_s` is 9e-06, but it should be greater than or equal to 0.00001"),
    ],
)
def test_the_error_of_an_invalid_sla_is_a_sentence(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        Sla.of(values)
    assert refused.value.message == message


@pytest.mark.parametrize(("due", "outcome"), [(298, StepOutcome.INCONCLUSIVE), (299, StepOutcome.PASS)])
def test_as_many_requests_as_bound_a_p99_are_enough(due: int, outcome: StepOutcome) -> None:
    judged = step(finished([0.1] * due))
    samples = limit(judged, StepCondition.SAMPLES)
    assert (samples.outcome, samples.measured, samples.limit, judged.outcome) == (outcome, due, 299.0, outcome)


@pytest.mark.parametrize(("slow", "met"), [(10, True), (11, False)])
def test_exactly_one_in_a_hundred_may_be_slow(slow: int, met: bool) -> None:
    p99 = limit(step(finished(mixed(1000 - slow, slow))), StepCondition.P99)
    assert (p99.met, p99.count, p99.n, p99.limit) == (met, slow, 1000, 1.0)
    assert (p99.low, p99.high) == pytest.approx(share_interval(slow, 1000))


def test_a_request_that_takes_exactly_the_limit_is_in_time() -> None:
    assert limit(step(finished([1.0] * 500)), StepCondition.P99).count == 0


@pytest.mark.parametrize(("failed", "met"), [(10, True), (11, False)])
def test_exactly_one_in_a_hundred_may_fail(failed: int, met: bool) -> None:
    """The share is that of sent requests. An unsent request is not an error."""
    judged = step(finished([0.1] * (1000 - failed), failed=failed, unsent=200))
    errors = limit(judged, StepCondition.ERRORS)
    assert (errors.met, errors.count, errors.n, errors.measured) == (met, failed, 1000, failed / 1000)
    assert (errors.low, errors.high) == pytest.approx(share_interval(failed, 1000))


def test_errors_are_judged_by_their_interval() -> None:
    for failed, outcome in ((2, StepOutcome.PASS), (12, StepOutcome.INCONCLUSIVE), (40, StepOutcome.FAIL)):
        assert limit(step(finished([0.1] * (1000 - failed), failed=failed)), StepCondition.ERRORS).outcome is outcome


def test_the_achieved_share_has_the_noise_of_its_queue() -> None:
    """By hand: 100 per second of 0.15 s are 15 in progress without a queue, so the error is 1.96 √30 / 1,000."""
    judged = step(finished([0.15] * 1000, answered=[100] * 10 + [99]), level=RATE)
    achieved = limit(judged, StepCondition.ACHIEVED)
    assert achieved.measured is not None
    half = 1.959964 * np.sqrt(30.0) / 1000.0
    assert achieved.low == pytest.approx(achieved.measured - half)
    assert achieved.high == pytest.approx(achieved.measured + half)
    # If requests wait, the length of the queue varies as well: 35 requests are in progress, of which 25 wait.
    queued = limit(step(finished([0.1] * 500 + [0.6] * 500, answered=[100] * 11), level=RATE), StepCondition.ACHIEVED)
    assert queued.measured is not None
    assert queued.high == pytest.approx(queued.measured + 1.959964 * np.sqrt(2.0 * (35.0 + 25.0**2)) / 1000.0)


@pytest.mark.parametrize(
    ("cpu_s", "lag_s", "p95_s", "measured", "allowed"),
    [
        (8.5, 0.0, None, 0.85, 0.85),
        (8.6, 0.0, None, 0.86, 0.85),
        (0.1, 0.05, None, 0.05, 0.05),  # 5 % of the limit of 1 s
        (0.1, 0.051, None, 0.051, 0.05),
        (0.1, 0.016, 0.3, 0.016, 0.015),  # 5 % of the strictest limit
        (0.1, 0.001, 0.01, 0.001, 0.001),  # but at least one millisecond
        (8.0, 0.06, None, 0.06, 0.05),  # the worse of both
        (9.0, 0.05, None, 0.90, 0.85),
    ],
)
def test_the_generator_is_responsible_if_it_was_late(
    cpu_s: float, lag_s: float, p95_s: float | None, measured: float, allowed: float
) -> None:
    engine_result = finished([0.005] * 1000, answered=[100] * 11, cpu_s=cpu_s, lag_s=[lag_s] * 1000)
    result = limit(step(engine_result, Sla(p95_s=p95_s), level=RATE), StepCondition.GENERATOR)
    met = measured <= allowed
    assert (result.met, result.outcome) == (met, StepOutcome.PASS if met else StepOutcome.FAIL)
    assert result.measured == pytest.approx(measured)
    assert result.limit == pytest.approx(allowed)


def test_unsent_requests_count_as_slower_than_any_limit() -> None:
    """Otherwise an overloaded generator that omits requests would report only the fast ones."""
    judged = step(finished([0.1] * 950, unsent=50))
    p99 = limit(judged, StepCondition.P99)
    assert (p99.count, p99.n, p99.met, p99.outcome) == (50, 1000, False, StepOutcome.FAIL)
    assert (p99.measured, p99.note) == (None, "50 of 1000 requests had no correct response")
    mixed_up = limit(step(finished([0.1] * 900, failed=70, unsent=30)), StepCondition.P99)
    assert mixed_up.note == "100 of 1000 requests had no correct response"


def test_a_rate_with_no_request_due_is_inconclusive() -> None:
    judged = step(finished([]), level=RATE)
    achieved, errors = limit(judged, StepCondition.ACHIEVED), limit(judged, StepCondition.ERRORS)
    assert (achieved.measured, achieved.outcome, achieved.met) == (None, StepOutcome.INCONCLUSIVE, False)
    assert achieved.note == "nothing was due"
    assert (errors.measured, errors.outcome, errors.met, errors.note) == (
        None,
        StepOutcome.PASS,
        True,
        "nothing was sent",
    )
    assert limit(step(finished([0.1])), StepCondition.ERRORS).note == ""
    assert judged.outcome is StepOutcome.INCONCLUSIVE


@pytest.mark.parametrize(("slow", "reason"), [(10, StepCondition.ERRORS), (11, StepCondition.P99)])
def test_errors_are_the_reason_while_at_most_one_in_a_hundred_is_slow_as_well(slow: int, reason: StepCondition) -> None:
    assert step(finished(mixed(950 - slow, slow), failed=50)).reason is reason


def test_requests_rejected_by_the_machine_are_generator_failures_whatever_their_share() -> None:
    result = limit(step(without_room(ok=9990, no_room=10)), StepCondition.GENERATOR)
    assert (result.outcome, result.met, result.limit) == (StepOutcome.FAIL, False, 0.0)
    assert result.note.endswith("too many open files; raise `ulimit -n`")


@pytest.mark.parametrize(
    ("slow", "outcome"), [(20, StepOutcome.PASS), (50, StepOutcome.INCONCLUSIVE), (90, StepOutcome.FAIL)]
)
def test_one_in_twenty_may_be_slower_than_the_p95(slow: int, outcome: StepOutcome) -> None:
    p95 = limit(step(finished([0.1] * (1000 - slow) + [0.5] * slow), Sla(p95_s=0.3)), StepCondition.P95)
    assert (p95.outcome, p95.met, p95.limit, p95.note) == (outcome, slow <= 50, 0.3, "")


def test_a_single_request_in_time_meets_the_sla_and_proves_nothing() -> None:
    p99 = limit(step(finished([0.1])), StepCondition.P99)
    assert (p99.met, p99.outcome) == (True, StepOutcome.INCONCLUSIVE)


def test_a_judged_step_has_its_result_phase_and_limits() -> None:
    result = StepResult.of(StepRequest(TARGET, ENDPOINT, RATE, 1.0, 10.0), finished([0.1] * 1000, answered=[100] * 11))
    for extended in (False, True):
        judged = judge(result, Sla(), Phase.BISECT, extended, Latencies)
        assert (judged.result, judged.phase, judged.extended) == (result, Phase.BISECT, extended)
    usual = judge(result, Sla(achieved_share=0.9, error_share=0.02), Phase.PROBE, read_histogram=Latencies)
    assert not usual.extended
    assert limit(usual, StepCondition.ACHIEVED).limit == 0.9
    assert limit(usual, StepCondition.ERRORS).limit == 0.02
    assert limit(step(finished([]), Sla(achieved_share=0.9), level=RATE), StepCondition.ACHIEVED).limit == 0.9


def test_the_reading_that_made_the_generator_late_is_reported() -> None:
    busy = step(finished([0.1] * 1000, answered=[100] * 11, cpu_s=9.0), level=RATE)
    assert limit(busy, StepCondition.GENERATOR).note == "share of the generator's processor time"
    late = step(finished([0.1] * 1000, answered=[100] * 11, lag_s=[0.2] * 1000), level=RATE)
    assert limit(late, StepCondition.GENERATOR).note == "p99 of the generator's lateness in seconds"


def test_an_unknown_limit_is_rejected_with_the_known_limits() -> None:
    with pytest.raises(UsageError) as refused:
        Sla.of({"p98_s": 1.0})
    limits = "p95_s, p99_s, error_share, achieved_share, min_requests, recovery_s, drift_share, memory_drift_share"
    assert refused.value.hint == f"limits: {limits}"


@pytest.mark.parametrize(
    ("wake_s", "p95_s", "allowed"),
    [
        (0.05, None, 0.05),  # 5 % of the limit of 1 s
        (0.051, None, 0.05),
        (0.016, 0.3, 0.015),  # 5 % of the strictest limit
        (0.005, 0.01, 0.005),  # but at least five milliseconds
    ],
)
def test_the_lateness_of_a_closed_loop_is_the_wake_up_delay_of_its_threads(
    wake_s: float, p95_s: float | None, allowed: float
) -> None:
    engine_result = finished([0.005] * 1000) | {"wake": histogram([wake_s] * 100)}
    result = limit(step(engine_result, Sla(p95_s=p95_s)), StepCondition.GENERATOR)
    assert (result.measured, result.limit) == pytest.approx((wake_s, allowed))
    assert result.met is (wake_s <= allowed)
    assert result.note == "p99 of how late the generator's threads woke, in seconds"
    # At a fixed rate the lateness is measured directly.
    at_a_rate = limit(
        step(finished([0.005] * 1000, answered=[100] * 11) | {"wake": engine_result["wake"]}, level=RATE), result.name
    )
    assert at_a_rate.note == "share of the generator's processor time"


@pytest.mark.parametrize(
    ("result", "point_outcome"),
    [
        (finished(mixed(988, 12), answered=[100] * 11, lag_s=[0.2] * 500), StepOutcome.GENERATOR_LIMITED),
        (finished([0.1] * 988, failed=12, answered=[100] * 11, lag_s=[0.2] * 500), StepOutcome.FAIL),
    ],
    ids=["slow", "errors"],
)
def test_a_likely_generator_limit_is_not_blamed_on_the_server(
    result: dict[str, Any], point_outcome: StepOutcome
) -> None:
    level = step(result, level=RATE)
    assert (level.outcome, level.point_outcome) == (StepOutcome.INCONCLUSIVE, point_outcome)


def test_an_idle_connection_closed_by_the_server_is_not_an_error() -> None:
    """The server did not process the request, which never reached it, so the request is neither failed nor slow."""
    result = finished([0.1] * 900, failed=100)
    (refused,) = result["classes"]
    result["classes"] = [refused | {"class": "idle close", "status": None, "count": 60}, refused | {"count": 40}]
    level = step(result)
    errors, p99 = limit(level, StepCondition.ERRORS), limit(level, StepCondition.P99)
    assert (errors.count, errors.n) == (40, 940)
    assert (p99.count, p99.n) == (40, 940)


def test_exactly_the_required_share_is_enough() -> None:
    result = finished([0.15] * 1000, answered=[100] * 10 + [97])
    share = limit(step(result, level=RATE), StepCondition.ACHIEVED).measured
    assert share is not None
    assert share < 1.0
    assert limit(step(result, Sla(achieved_share=share), level=RATE), StepCondition.ACHIEVED).met
    assert not limit(step(result, Sla(achieved_share=share + 1e-6), level=RATE), StepCondition.ACHIEVED).met


def test_no_noise_is_assumed_for_a_load_that_never_started() -> None:
    achieved = limit(step(finished([], unsent=1000, answered=[0] * 11), level=RATE), StepCondition.ACHIEVED)
    assert achieved.low == achieved.measured == achieved.high
    assert achieved.outcome is StepOutcome.FAIL


def test_the_slowest_response_is_the_p99_if_exactly_one_in_a_hundred_failed() -> None:
    assert limit(step(finished([0.1] * 989 + [0.7], failed=10)), StepCondition.P99).measured == 0.7


def test_every_limit_of_the_machine_is_reported_once() -> None:
    engine_result = without_room(ok=1000, no_room=30)
    files = engine_result["classes"][0] | {"count": 10}
    engine_result["classes"] = [files, files | {"detail": "no ports left"}, files]
    result = StepResult.of(StepRequest(TARGET, ENDPOINT, CLIENTS, 1.0, 10.0), engine_result)
    assert machine_limits(result) == "too many open files; raise `ulimit -n`; no ports left"
