"""The search, compared with queueing theory and run against servers with irregular behaviour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.capacity.loadtest import EndpointResult
from chainmark.capacity.model import (
    LevelKind,
    LoadLevel,
    Phase,
    Step,
    StepCondition,
    StepOutcome,
    StepRequest,
    StepResult,
    Waits,
)
from chainmark.capacity.plan import LINEAR_LADDER, SearchPlan
from chainmark.capacity.report import endpoint_entry
from chainmark.capacity.search import Ask, CapacityFinding, Interrupted, SearchResult, StoppedBy, search
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge
from chainmark.core.errors import UsageError
from chainmark.core.load_report import ContestedLevel

from tests.unit.capacity.queueing import (
    ENDPOINT,
    TARGET,
    Latencies,
    Server,
    closed_exponential_slower,
    finished,
    highest,
    md_1_slower,
    mm_c_slower,
)

CLIENTS = SearchPlan.of_clients()
RATES = SearchPlan.of_rates()
SEEDS = 20


@cache
def engine_result(outcome: StepOutcome) -> dict[str, Any]:
    """The engine's result of a step with this outcome."""
    latencies = {
        StepOutcome.PASS: [0.1] * 1000,
        StepOutcome.FAIL: [0.1] * 900 + [1.5] * 100,
        StepOutcome.GENERATOR_LIMITED: [0.1] * 900 + [1.5] * 100,
        StepOutcome.INCONCLUSIVE: [0.1] * 991 + [1.5] * 9,
    }[outcome]
    cpu_s = 9.9 if outcome is StepOutcome.GENERATOR_LIMITED else 0.1
    return finished(latencies, answered=[100] * 11, cpu_s=cpu_s)


def measured(ask: Ask, outcome: StepOutcome) -> Step:
    """A judged step with this outcome."""
    order = StepRequest(TARGET, ENDPOINT, ask.level, 1.0, 10.0)
    step = judge(StepResult.of(order, engine_result(outcome)), Sla(), ask.phase, ask.extended, Latencies)
    assert step.outcome is outcome
    return step


def threshold(capacity: float, beyond: StepOutcome = StepOutcome.FAIL) -> Callable[[Ask], Step]:
    """A server without noise that passes up to a threshold."""
    return lambda ask: measured(ask, StepOutcome.PASS if ask.level.value <= capacity else beyond)


def levels(result: SearchResult) -> list[float]:
    return [step.level.value for step in result.steps]


MM_1 = highest(lambda rate: mm_c_slower(rate, 1, 0.002, 0.05) <= 0.01, 1.0, 500.0)
MM_1_LONG = highest(lambda rate: mm_c_slower(rate, 1, 0.01, 1.0) <= 0.01, 1.0, 100.0)
MM_4 = highest(lambda rate: mm_c_slower(rate, 4, 0.01, 0.1) <= 0.01, 1.0, 400.0)
MD_1 = highest(lambda rate: md_1_slower(rate, 0.01, 0.1) <= 0.01, 1.0, 100.0)
CLOSED_M = max(c for c in range(1, 200) if closed_exponential_slower(c, 4, 0.05, 1.0) <= 0.01)
THEORY: dict[str, tuple[SearchPlan, float, dict[str, Any]]] = {
    # Deterministic: the capacity is k / S, whatever the limit.
    "D/D/4": (RATES, 80.0, {"workers": 4, "service_s": 0.05}),
    "M/D/1": (RATES, MD_1, {"workers": 1, "service_s": 0.01, "schedule": "poisson", "sla": Sla(p99_s=0.1)}),
    "M/M/1": (
        RATES,
        MM_1,
        {"workers": 1, "service_s": 0.002, "service": "exponential", "schedule": "poisson", "sla": Sla(p99_s=0.05)},
    ),
    # The limit is a hundred service times: a step of 10 s ends before the queue reaches its steady state.
    "M/M/1, near its load": (
        RATES,
        MM_1_LONG,
        {"workers": 1, "service_s": 0.01, "service": "exponential", "schedule": "poisson"},
    ),
    "M/M/4": (
        RATES,
        MM_4,
        {"workers": 4, "service_s": 0.01, "service": "exponential", "schedule": "poisson", "sla": Sla(p99_s=0.1)},
    ),
    # c clients wait c S / k. 81 clients wait 1.0125 s.
    "closed, constant": (CLIENTS, 81.0, {"workers": 4, "service_s": 0.05, "sla": Sla(p99_s=1.02)}),
    "closed, exponential": (CLIENTS, float(CLOSED_M), {"workers": 4, "service_s": 0.05, "service": "exponential"}),
}


@pytest.mark.parametrize("name", THEORY)
def test_the_capacity_is_that_of_queueing_theory(name: str) -> None:
    """A reported capacity that is off by more than 10 % would be that of another server."""
    plan, true, server = THEORY[name]
    answers = [search(Server(seed=seed, **server).measure, plan) for seed in range(SEEDS)]
    errors = [abs((answer.capacity or 0.0) / true - 1.0) for answer in answers]
    assert sorted(errors)[-2] <= 0.10, "all seeds except one"
    assert float(np.median(errors)) <= 0.06
    # So close to its capacity a server passes and fails by turns. The search reports this, and the capacity stays
    # valid.
    assert all(answer.finding in {CapacityFinding.FOUND, CapacityFinding.NOT_CONFIRMED} for answer in answers)
    assert all(answer.stopped_by in {StoppedBy.P99, StoppedBy.ACHIEVED} for answer in answers)
    inside = [answer.low <= true <= (answer.high or np.inf) for answer in answers]
    assert np.mean(inside) >= 0.9, "the interval is the range of clear steps, not a 95 % interval"


def test_the_formulas_of_queueing_theory_agree() -> None:
    """M/M/1 has a closed form. An M/D/1 at half load has half the mean wait and a thinner tail."""
    assert mm_c_slower(400.0, 1, 0.002, 0.05) == pytest.approx(np.exp(-(500.0 - 400.0) * 0.05))
    assert md_1_slower(50.0, 0.01, 0.01) == pytest.approx(0.5), "a new request finds the worker busy half of the time"
    assert closed_exponential_slower(4, 4, 0.05, 0.1) == pytest.approx(np.exp(-2.0))


@given(st.floats(0.5, 30_000.0))
def test_a_rate_without_noise_is_bracketed_to_five_per_cent(capacity: float) -> None:
    result = search(threshold(capacity), RATES)
    assert result.capacity is not None
    assert result.high is not None
    assert result.low == result.capacity <= capacity < result.high <= result.capacity * 1.0502
    assert (result.confirmed, result.stopped_by) == (True, StoppedBy.P99)
    assert len(result.steps) <= 26


@given(st.integers(1, 1023))
def test_clients_without_noise_are_bracketed_to_one_or_five_per_cent(capacity: int) -> None:
    result = search(threshold(float(capacity)), CLIENTS)
    assert result.capacity is not None
    assert result.high is not None
    assert result.low == result.capacity <= capacity < result.high <= result.capacity + max(1.0, 0.05 * result.capacity)
    assert all(level == int(level) for level in levels(result))


def test_best_pass_and_first_fail_are_measured_three_times_in_turn() -> None:
    result = search(threshold(3.0), CLIENTS)
    confirming = [step.level.value for step in result.steps if step.phase is Phase.CONFIRM]
    assert levels(result)[:4] == [1.0, 2.0, 4.0, 3.0]
    assert confirming == [3.0, 4.0, 3.0, 4.0]
    assert [confirmation.outcomes for confirmation in result.confirmations] == [
        (StepOutcome.PASS,) * 3,
        (StepOutcome.FAIL,) * 3,
    ]
    assert [(confirmation.slower, confirmation.n) for confirmation in result.confirmations] == [(0, 3000), (300, 3000)]


@given(st.integers(1, 1023), st.floats(0.5, 2_000.0))
def test_a_required_capacity_is_decided_without_noise(capacity: int, required: float) -> None:
    """If the required level lies between the last pass and the first failure, the search must measure it."""
    result = search(threshold(float(capacity)), replace(CLIENTS, required=required))
    assert result.high is not None
    within = 1.0 <= required <= CLIENTS.last
    assert (result.low >= required) == (capacity >= required) or not within
    assert (result.high <= np.ceil(required)) == (capacity < required) or not within


def test_a_required_capacity_below_a_noisy_one_is_measured_itself() -> None:
    """Near its capacity a queue has no clear outcome.

    At a tenth below it has, but that level was not measured before.
    """
    server = THEORY["M/M/4"][2]
    plan = replace(RATES, required=0.9 * MM_4)
    open_before = [search(Server(seed=seed, **server).measure, RATES).low < 0.9 * MM_4 for seed in range(SEEDS)]
    open_now = [search(Server(seed=seed, **server).measure, plan).low < 0.9 * MM_4 for seed in range(SEEDS)]
    assert sum(open_before) >= 3
    assert sum(open_now) <= 2


def test_a_required_capacity_that_is_beyond_all_levels_is_not_measured() -> None:
    for required in (0.1, 2_000.0):
        assert levels(search(threshold(3.0), replace(CLIENTS, required=required))) == levels(
            search(threshold(3.0), CLIENTS)
        )


@given(st.integers(0, 2**32 - 1), st.sampled_from([CLIENTS, RATES, SearchPlan.of_ladder(LevelKind.CLIENTS)]))
def test_the_search_ends_whatever_the_server_responds(seed: int, plan: SearchPlan) -> None:
    """Random outcomes violate every monotonicity."""
    die = np.random.default_rng(seed)
    result = search(lambda ask: measured(ask, list(StepOutcome)[die.integers(4)]), plan)
    assert len(result.steps) <= plan.budget_steps
    assert result.capacity is not None or result.stopped_by is StoppedBy.BUDGET
    assert result.low <= (result.capacity or 0.0) <= (result.high or np.inf)


@pytest.mark.parametrize("plan", [CLIENTS, RATES], ids=["clients", "rates"])
def test_a_server_that_stalls_in_every_fifth_step_has_a_wide_interval(plan: SearchPlan) -> None:
    """Occasional stalls blur the capacity. The result never exceeds it, stays in the budget and has a wide interval."""
    true = 400.0 if plan.kind is LevelKind.RATE else 200.0
    sla_text = Sla(p99_s=0.5)
    answers = [search(Server(4, 0.01, stall=0.2, seed=seed, sla=sla_text).measure, plan) for seed in range(SEEDS)]
    assert max(len(answer.steps) for answer in answers) < plan.budget_steps
    assert {answer.stopped_by for answer in answers} <= {StoppedBy.P99, StoppedBy.ACHIEVED, StoppedBy.FIRST_STEP}
    assert all((answer.capacity or 0.0) <= 1.05 * true for answer in answers)
    sharp = [answer for answer in answers if answer.confirmed]
    assert len(sharp) < SEEDS / 2


def test_a_stall_while_probing_is_outvoted() -> None:
    """The step at 4 clients fails once. The two further measurements there must outweigh it."""
    stalled = iter([True])

    def measure(ask: Ask) -> Step:
        fails = ask.level.value > 100 or (ask.level.value == 4 and next(stalled, False))
        return measured(ask, StepOutcome.FAIL if fails else StepOutcome.PASS)

    result = search(measure, CLIENTS)
    assert result.capacity is not None
    assert 95 <= result.capacity <= 100
    assert result.low == 3.0, "not all measurements at 4 clients passed, so the interval begins below"


def test_a_pass_that_is_not_confirmed_is_stepped_down_from() -> None:
    seen: list[float] = []

    def measure(ask: Ask) -> Step:
        seen.append(ask.level.value)
        lucky = ask.level.value == 12 and seen.count(12.0) == 1
        return measured(ask, StepOutcome.PASS if ask.level.value <= 10 or lucky else StepOutcome.FAIL)

    result = search(measure, CLIENTS)
    assert (result.capacity, result.low) == (10.0, 10.0)
    assert result.high == 13.0, "12 clients passed once"


def test_a_first_step_that_fails_leaves_no_clients() -> None:
    result = search(Server(1, 2.0).measure, CLIENTS)
    assert (result.capacity, result.low, result.high) == (0.0, 0.0, 1.0)
    assert (result.stopped_by, result.condition) == (StoppedBy.FIRST_STEP, StepCondition.P99)
    assert result.finding is CapacityFinding.NOTHING_PASSED
    assert result.best_pass is None


def test_a_first_rate_that_fails_is_searched_below() -> None:
    result = search(threshold(3.0), RATES)
    assert levels(result)[:5] == [32.0, 16.0, 8.0, 4.0, 2.0]
    assert result.capacity == pytest.approx(3.0, rel=0.05)
    below_floor = search(threshold(0.1), RATES)
    assert (below_floor.capacity, below_floor.high, below_floor.stopped_by) == (0.0, 0.5, StoppedBy.FIRST_STEP)


def test_a_first_level_that_fails_unclearly_leaves_no_unbounded_interval() -> None:
    """A search that started just above the capacity reported an interval without an upper end."""

    def measure(ask: Ask) -> Step:
        order = StepRequest(TARGET, ENDPOINT, ask.level, 1.0, 10.0)
        slow = 0 if ask.level.value <= 31.0 else 12 if ask.level.value < 40.0 else 300
        result = StepResult.of(order, finished([0.1] * (1000 - slow) + [1.5] * slow, answered=[100] * 11))
        return judge(result, Sla(), ask.phase, ask.extended, Latencies)

    result = search(measure, RATES)
    assert result.capacity == pytest.approx(31.0, rel=0.05)
    assert (result.high, levels(result)[-1]) == (64.0, 64.0)
    assert levels(result).count(64.0) == 1


@pytest.mark.parametrize("plan", [SearchPlan.of_clients(last=64), SearchPlan.of_rates(last=2000.0)])
def test_a_server_that_never_fails_reaches_the_end_of_the_ladder(plan: SearchPlan) -> None:
    result = search(Server(100, 0.01).measure, plan)
    assert (result.capacity, result.low, result.high) == (plan.last, plan.last, None)
    assert (result.stopped_by, result.finding, result.condition) == (
        StoppedBy.LADDER_END,
        CapacityFinding.LOWER_BOUND,
        None,
    )
    assert levels(result).count(plan.last) == 3


def test_the_limit_of_the_generator_is_a_lower_bound() -> None:
    result = search(threshold(100.0, beyond=StepOutcome.GENERATOR_LIMITED), CLIENTS)
    assert (result.stopped_by, result.finding) == (StoppedBy.GENERATOR, CapacityFinding.LOWER_BOUND)
    assert result.capacity is not None
    assert 95 <= result.capacity <= 100
    assert result.high is None, "no step showed a failure of the server"


def test_errors_are_the_reason_if_they_end_the_search() -> None:
    def measure(ask: Ask) -> Step:
        order = StepRequest(TARGET, ENDPOINT, ask.level, 1.0, 10.0)
        refusing = finished([0.1] * 1000, failed=150 if ask.level.value > 175 else 0)
        return judge(StepResult.of(order, refusing), Sla(), ask.phase, ask.extended, Latencies)

    assert search(measure, CLIENTS).stopped_by is StoppedBy.ERRORS


def test_an_inconclusive_step_is_lengthened_once_and_then_decides() -> None:
    """9 slow requests of 1,000 are likely to pass at every length, so no step is run a third time."""
    result = search(lambda ask: measured(ask, StepOutcome.INCONCLUSIVE), SearchPlan.of_clients(last=4))
    assert levels(result) == [1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 4.0, 4.0]
    assert [step.extended for step in result.steps] == [False, True, False, True, False, True, True, True]
    assert result.capacity == 4.0
    assert result.low == 0.0, "no level passed clearly"
    assert result.confirmations[0].shown == 0


def test_a_capacity_from_too_few_requests_is_undecided() -> None:
    """With 20 requests in 40 s nothing failed, but no p99 was ever known."""
    server = Server(1, 2.0, sla=Sla(p99_s=9.0))
    result = search(server.measure, SearchPlan.of_clients(last=8))
    assert (result.capacity, result.finding) == (4.0, CapacityFinding.UNSETTLED)
    assert result.best_pass is not None
    p99 = result.best_pass.condition(StepCondition.P99)
    assert p99 is not None
    assert p99.measured is None


def test_the_published_ladder_is_followed_rung_by_rung() -> None:
    assert len(LINEAR_LADDER) == 43
    result = search(threshold(50.0), SearchPlan.of_ladder(LevelKind.CLIENTS))
    assert levels(result)[:16] == [1, 2, *range(4, 53, 4), 48]
    assert (result.capacity, result.high) == (48.0, 52.0)
    assert search(threshold(9999.0), SearchPlan.of_ladder(LevelKind.CLIENTS)).stopped_by is StoppedBy.LADDER_END


def test_an_exhausted_budget_ends_the_search_with_the_known_levels() -> None:
    plan = SearchPlan(LevelKind.CLIENTS, 1.0, 1024.0, budget_steps=9)
    result = search(threshold(100.0), plan)
    assert len(result.steps) == 9
    assert (result.stopped_by, result.finding, result.confirmed) == (StoppedBy.BUDGET, CapacityFinding.UNSETTLED, False)
    assert (result.capacity, result.high) == (96.0, 128.0)


@given(st.integers(0, 20), st.booleans())
def test_an_interrupted_search_resumes_where_it_stopped(after: int, with_part: bool) -> None:
    """Otherwise a user would repeat ten minutes of measurement after Ctrl-C. An incomplete step decides nothing."""
    whole = search(Server(4, 0.05, seed=1).measure, CLIENTS)
    taken = iter(whole.steps)
    count = 0

    def until(ask: Ask) -> Step:
        nonlocal count
        if count == after:
            raise Interrupted(judged_part(ask) if with_part else None)
        count += 1
        return next(taken)

    first = search(until, CLIENTS)
    if after >= len(whole.steps):
        assert first == whole
        return
    assert (first.stopped_by, first.finding) == (StoppedBy.INTERRUPTED, CapacityFinding.UNSETTLED)
    assert len(first.steps) == after + with_part
    rest = iter(whole.steps[after:])
    again = search(lambda ask: next(rest), CLIENTS, done=first.steps)
    assert (again.capacity, again.low, again.high) == (whole.capacity, whole.low, whole.high)
    assert [step for step in again.steps if not step.partial] == list(whole.steps)


def judged_part(ask: Ask) -> Step:
    """The interrupted step, judged by the failures so far."""
    order = StepRequest(TARGET, ENDPOINT, ask.level, 1.0, 10.0)
    part = finished([2.0] * 50, window_s=0.7, ended="stopped")
    return judge(StepResult.of(order, part), Sla(), ask.phase, ask.extended, Latencies)


def test_interrupted_at_once_nothing_is_known() -> None:
    def measure(ask: Ask) -> Step:
        raise Interrupted

    result = search(measure, CLIENTS)
    assert (result.capacity, result.steps, result.stopped_by) == (None, (), StoppedBy.INTERRUPTED)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SearchPlan.of_clients(first=0),
        lambda: SearchPlan.of_clients(first=8, last=4),
        lambda: SearchPlan(LevelKind.CLIENTS, 1.5, 8.0),
        lambda: SearchPlan.of_rates(last=float("inf")),
        lambda: SearchPlan.of_rates(first=float("nan")),
        lambda: SearchPlan.of_rates(relative_gap=0.0),
        lambda: SearchPlan.of_rates(times=0),
        lambda: SearchPlan(LevelKind.RATE, 1.0, 8.0, factor=1.0),
        lambda: SearchPlan.of_ladder(LevelKind.CLIENTS, ()),
        lambda: SearchPlan.of_ladder(LevelKind.CLIENTS, (1.0, 4.0, 2.0)),
    ],
)
def test_impossible_plans_are_rejected(make: Callable[[], SearchPlan]) -> None:
    with pytest.raises(UsageError):
        make()


def test_a_plan_reaches_its_end_exactly() -> None:
    plan = SearchPlan.of_clients(last=100)
    assert plan.above(LoadLevel(LevelKind.CLIENTS, 64.0)) == LoadLevel(LevelKind.CLIENTS, 100.0)
    assert plan.above(LoadLevel(LevelKind.CLIENTS, 100.0)) is None


def few(ask: Ask) -> Step:
    """A slow endpoint with 100 responses per client and step."""
    order = StepRequest(TARGET, ENDPOINT, ask.level, 1.0, 10.0)
    slow_s = 0.7 if ask.level.value <= 24 else 1.5
    result = finished([slow_s] * int(100 * ask.level.value), answered=[100] * 11)
    return judge(StepResult.of(order, result), Sla(), ask.phase, ask.extended, Latencies)


def test_a_level_with_too_few_responses_is_not_a_gap_below_passed_levels() -> None:
    """2, 4, 8, 16 and 24 clients passed clearly. The level of 1 client must not make this "no level passed clearly"."""
    result = search(few, CLIENTS)
    assert (result.capacity, result.low, result.high) == (24.0, 24.0, 25.0)
    assert result.finding is CapacityFinding.FOUND


def test_a_capacity_that_failed_once_is_not_confirmed_and_the_worse_figure_is_reported() -> None:
    seen: list[float] = []

    def measure(ask: Ask) -> Step:
        seen.append(ask.level.value)
        unlucky = ask.level.value == 10 and seen.count(10.0) == 2
        return measured(ask, StepOutcome.FAIL if ask.level.value > 10 or unlucky else StepOutcome.PASS)

    result = search(measure, CLIENTS)
    assert (result.capacity, result.confirmed, result.finding) == (10.0, False, CapacityFinding.NOT_CONFIRMED)
    assert result.contested is not None
    assert (result.contested.at.passed, len(result.contested.at.outcomes)) == (2, 3)
    assert result.contested.capacity == 8.0
    tested = EndpointResult(ENDPOINT, Sla(), {LevelKind.CLIENTS: result})
    (entry,) = endpoint_entry(tested, {}, read_histogram=Latencies).capacities
    assert (entry.capacity, entry.contested) == (8.0, ContestedLevel(level=10.0, passed=2, measured=3))
    assert entry.best_step is not None
    assert seen[entry.best_step] == 8.0, "the step shown for a capacity is one at that capacity"


def waiting(ask: Ask, share: float) -> Step:
    order = StepRequest(TARGET, ENDPOINT, ask.level, 1.0, 10.0)
    result = StepResult.of(order, engine_result(StepOutcome.PASS if ask.level.value <= 10 else StepOutcome.FAIL))
    waits = Waits(generator=share, server=None, stolen=0.0)
    return judge(result, Sla(), ask.phase, ask.extended, Latencies, waits=waits)


def test_a_step_that_waited_is_repeated_and_decides_nothing() -> None:
    """CPU use by other processes must not change the capacity."""
    busy = iter([0.5, 0.5] + [0.01] * 100)
    result = search(lambda ask: waiting(ask, next(busy)), CLIENTS)
    assert levels(result)[:4] == [1.0, 1.0, 1.0, 2.0]
    assert [step.outcome for step in result.steps[:3]] == [StepOutcome.GENERATOR_LIMITED] * 2 + [StepOutcome.PASS]
    assert not any(step.extended for step in result.steps), "a longer step would wait as well"
    assert (result.capacity, result.low, result.confirmed) == (10.0, 10.0, True)


def test_a_machine_that_stays_busy_ends_the_search_without_a_result() -> None:
    result = search(lambda ask: waiting(ask, 0.5), CLIENTS)
    assert levels(result) == [1.0] * 3
    assert (result.stopped_by, result.capacity, result.low, result.high) == (StoppedBy.WAITED, None, 0.0, None)


def test_steps_are_judged_without_wait_times_if_the_kernel_does_not_report_them() -> None:
    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.CLIENTS, 1.0), 1.0, 10.0)
    result = StepResult.of(order, engine_result(StepOutcome.PASS))
    step = judge(result, Sla(), Phase.PROBE, False, Latencies, waits=Waits(None, None, None))
    assert (step.outcome, step.waited) == (StepOutcome.PASS, False)


def test_a_busy_machine_during_confirmation_is_not_a_contradiction() -> None:
    """The repetition of the best passed level had to wait. The level is not confirmed further and not disputed."""
    shares = iter([0.0] * 8 + [0.5] * 100)
    result = search(lambda ask: waiting(ask, next(shares)), CLIENTS)
    assert (result.capacity, result.confirmed, result.contested) == (10.0, False, None)
