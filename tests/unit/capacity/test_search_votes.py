"""How the measurements of one level are counted together, and how a search ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scipy import stats

from chainmark.capacity.model import (
    Gone,
    LevelKind,
    LoadLevel,
    Phase,
    Step,
    StepCondition,
    StepOutcome,
    StepRequest,
    StepResult,
)
from chainmark.capacity.plan import SearchPlan
from chainmark.capacity.search import Ask, Interrupted, StoppedBy, answer, next_ask, search
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Latencies, finished
from tests.unit.capacity.test_search import CLIENTS, levels, measured, threshold

PASS, FAIL = StepOutcome.PASS, StepOutcome.FAIL
INCONCLUSIVE, GENERATOR = StepOutcome.INCONCLUSIVE, StepOutcome.GENERATOR_LIMITED


def asked(clients: float, phase: Phase = Phase.PROBE, *, extended: bool = True) -> Ask:
    return Ask(LoadLevel(LevelKind.CLIENTS, clients), phase, extended)


def steps_of(clients: float, *outcomes: StepOutcome) -> list[Step]:
    """The measurements of one level."""
    return [measured(asked(clients), outcome) for outcome in outcomes]


def answered_in(clients: float, latency_s: float | None) -> Step:
    """A step whose 1,000 requests all took this long, or all failed, with a limit of 0.4 s."""
    sent = finished([], failed=1000) if latency_s is None else finished([latency_s] * 1000, answered=[100] * 11)
    ask = asked(clients)
    order = StepRequest(TARGET, ENDPOINT, ask.level, 1.0, 10.0)
    return judge(StepResult.of(order, sent), Sla(p99_s=0.4), ask.phase, ask.extended, Latencies)


# --- the decision about a level ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at_four", "capacity"), [((PASS, FAIL, FAIL, PASS, FAIL), 2.0), ((FAIL, PASS, PASS, FAIL, PASS), 4.0)]
)
def test_most_of_five_measurements_decide(at_four: tuple[StepOutcome, ...], capacity: float) -> None:
    assert answer([*steps_of(2.0, PASS), *steps_of(4.0, *at_four)], CLIENTS).capacity == capacity


@pytest.mark.parametrize(
    ("latencies_s", "shown"),
    [([0.3, 0.1, 0.2], 2), ([0.2, 0.3, 0.1], 0), ([0.2, 0.1], 0), ([0.1, 0.2], 1)],
)
def test_the_step_shown_for_a_capacity_is_the_median(latencies_s: list[float], shown: int) -> None:
    """The fastest one would promise too much. Of two, it is the slower one."""
    steps = [answered_in(2.0, latency_s) for latency_s in latencies_s]
    assert answer(steps, CLIENTS).best_pass is steps[shown]


@pytest.mark.parametrize(("latencies_s", "shown"), [([0.5, None, 3.0], 0), ([3.0, 1.5, 2.0], 2)])
def test_the_step_shown_for_a_failure_is_the_median(latencies_s: list[float | None], shown: int) -> None:
    """A step without a correct response has no latency, and is not the median of the others."""
    steps = [answered_in(2.0, latency_s) for latency_s in latencies_s]
    assert answer(steps, CLIENTS).first_fail is steps[shown]


@pytest.mark.parametrize(
    ("counts", "slower", "n", "effect"),
    [
        ([(10, 1000, 2.0), (0, 0, 1.0), (20, 3000, 4.0)], 30, 4000, 3.5),
        ([(30, 1000, 1.0)], 30, 1000, 1.0),
    ],
)
def test_measurements_are_counted_together_with_their_clusters(
    counts: list[tuple[int, int, float]], slower: int, n: int, effect: float
) -> None:
    """Slow requests in clusters show less. The effect is the mean by requests: (1,000 x 2 + 3,000 x 4) / 4,000."""
    steps = []
    for count, of, its_effect in counts:
        step = measured(asked(2.0), FAIL)
        p99 = step.condition(StepCondition.P99)
        assert p99 is not None
        steps.append(replace(step, limits=(replace(p99, count=count, n=of, effect=its_effect), *step.limits[1:])))
    (together,) = answer(steps, CLIENTS).confirmations
    assert (together.slower, together.n) == (slower, n)
    share = slower / effect, n / effect
    low = stats.beta.ppf(0.025, share[0], share[1] - share[0] + 1.0)
    high = stats.beta.ppf(0.975, share[0] + 1.0, share[1] - share[0])
    assert (together.low, together.high) == pytest.approx((low, high), rel=1e-6)


def test_measurements_without_a_request_show_nothing() -> None:
    ask = asked(2.0)
    empty = StepResult.of(StepRequest(TARGET, ENDPOINT, ask.level, 1.0, 10.0), finished([]))
    (together,) = answer([judge(empty, Sla(), ask.phase, True, Latencies)], CLIENTS).confirmations
    assert (together.slower, together.n, together.low, together.high) == (0, 0, 0.0, 1.0)


def test_a_disputed_lowest_level_leaves_no_capacity() -> None:
    result = answer([*steps_of(1.0, PASS, FAIL, PASS), *steps_of(2.0, FAIL)], CLIENTS)
    contested = result.contested
    assert contested is not None
    assert (contested.capacity, contested.best_pass) == (0.0, None)
    assert contested.at == result.confirmations[0]


def test_an_inconclusive_level_with_enough_responses_ends_the_clear_interval() -> None:
    steps = [*steps_of(1.0, PASS), *steps_of(2.0, INCONCLUSIVE), *steps_of(4.0, PASS)]
    assert answer(steps, CLIENTS).low == 1.0


# --- the next measurement ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [Phase.BISECT, Phase.CONFIRM])
def test_an_inconclusive_step_is_repeated_for_the_same_purpose(phase: Phase) -> None:
    step = measured(asked(2.0, phase, extended=False), INCONCLUSIVE)
    assert next_ask([step], CLIENTS) == asked(2.0, phase)


@pytest.mark.parametrize(
    ("outcomes", "measures_above"),
    [((FAIL, FAIL, FAIL), False), ((INCONCLUSIVE, GENERATOR, FAIL), False), ((INCONCLUSIVE, FAIL, FAIL), True)],
)
def test_a_level_above_is_measured_only_if_the_server_failed_unclearly(
    outcomes: tuple[StepOutcome, ...], *, measures_above: bool
) -> None:
    """The steps above a clear failure, or above the generator's limit, would show nothing more."""
    unclear = [replace(step, point_outcome=FAIL) for step in steps_of(2.0, *outcomes)]
    following = next_ask([*steps_of(1.0, PASS, PASS, PASS), *unclear], CLIENTS)
    assert (following is not None and following.level.value == 4.0) == measures_above


@pytest.mark.parametrize(("capacity", "required"), [(3.0, 100.0), (3.0, 1.5), (100.0, 50.0)])
def test_a_requirement_that_the_other_levels_decide_is_not_measured(capacity: float, required: float) -> None:
    plan = replace(CLIENTS, required=required)
    assert levels(search(threshold(capacity), plan)) == levels(search(threshold(capacity), CLIENTS))


# --- the end ----------------------------------------------------------------------------------------------------------


def test_a_search_that_needs_its_whole_budget_is_complete() -> None:
    """1, 2, 4 and 3 clients, and both ends twice more."""
    result = search(threshold(3.0), SearchPlan(LevelKind.CLIENTS, 1.0, 1024.0, budget_steps=8))
    assert levels(result) == [1.0, 2.0, 4.0, 3.0, 3.0, 4.0, 3.0, 4.0]
    assert (result.stopped_by, result.confirmed) == (StoppedBy.P99, True)


@pytest.mark.parametrize(
    ("gone", "stopped_by"),
    [
        (Gone("here", 7, "it accepts no connections"), StoppedBy.GONE),
        (Gone("here", 7, "it does not respond", "load generator 2 of 2"), StoppedBy.GENERATOR_GONE),
        (None, StoppedBy.INTERRUPTED),
    ],
    ids=["server", "generator", "user"],
)
def test_the_reason_for_an_early_end_is_known(gone: Gone | None, stopped_by: StoppedBy) -> None:
    def measure(ask: Ask) -> Step:
        raise Interrupted(gone=gone)

    result = search(measure, CLIENTS)
    assert (result.stopped_by, result.gone, result.capacity) == (stopped_by, gone, None)
    assert str(Interrupted()) == "the step was interrupted"
