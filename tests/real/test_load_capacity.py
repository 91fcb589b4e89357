"""The search finds the capacity that queueing theory gives for a known number of workers and service time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from chainmark.core.load_report import CapacityEntry
from chainmark.lab.loading import LoadTest
from chainmark.store.runs import Store

from tests.real.load_servers import Crowded, Exhausted, Queue, Reply, always, known_test, serving
from tests.unit.capacity.queueing import highest, mm_c_slower

pytestmark = pytest.mark.quiet

WITHIN = 0.1
ATTEMPTS = 3


def _results(store: Store, queue: Queue, true: float, **profile: Any) -> CapacityEntry:
    """The result of a search. It is repeated if a stall of the machine reduced the capacity."""
    for _ in range(ATTEMPTS):
        with serving(queue) as server:
            test = known_test(store, server, **profile)
        (capacity,) = test.report.targets[0].endpoints[0].capacities
        if capacity.capacity == pytest.approx(true, rel=WITHIN):
            break
    return capacity


def test_the_client_capacity_is_that_of_a_closed_queue(tmp_path: Path) -> None:
    """With more clients than workers, each of n clients waits n/k service times: p99 exceeds T at k·T/S clients."""
    queue, limit_s = Queue(workers=4, service_s=0.01), 0.5
    search = {"clients_first": 170, "relative_gap": 0.12, "times": 2}
    # The warm-up covers the first round, in which all clients start at once.
    profile = {"sla": {"p99_s": limit_s}, "search": search, "steps": {"warm_up_s": limit_s}}
    true = queue.per_s * limit_s
    capacity = _results(Store(tmp_path), queue, true, **profile)
    assert capacity.capacity == pytest.approx(true, rel=WITHIN)
    assert (capacity.stopped_by, capacity.finding) == ("p99", "found")


def test_the_rate_capacity_is_what_the_workers_sustain(tmp_path: Path) -> None:
    """No rate above k/S is sustained. After a second, p99 does not show the backlog yet, but the achieved rate does."""
    queue = Queue(workers=8, service_s=0.008)
    search = {"kinds": ["rate"], "rate_first": 800, "relative_gap": 0.12, "times": 2}
    capacity = _results(Store(tmp_path), queue, queue.per_s, sla={"p99_s": 0.5}, search=search)
    assert capacity.capacity == pytest.approx(queue.per_s, rel=WITHIN)


def test_a_server_that_rejects_excess_clients_is_limited_by_errors(tmp_path: Path) -> None:
    """Rejections are fast and p99 stays low. The errors end the search, and the report states which."""
    search = {"clients_first": 4, "clients_last": 64}
    for _ in range(ATTEMPTS):  # a machine that stalls leaves too few responses
        with serving(Crowded(room=6, service_s=0.015)) as server:
            test = known_test(Store(tmp_path), server, search=search)
        endpoint = test.report.targets[0].endpoints[0]
        (capacity,) = endpoint.capacities
        if capacity.finding == "found":
            break
    assert (capacity.capacity, capacity.stopped_by, capacity.finding) == (6.0, "errors", "found")
    assert capacity.fail_step is not None
    (error,) = endpoint.steps[capacity.fail_step].errors
    assert (error.kind, error.status) == ("status", 503)
    assert error.reported == {"code": "7", "message": "no room", "retriable": "true"}


def test_a_server_slower_than_its_sla_at_the_first_step(tmp_path: Path) -> None:
    with serving(always(Reply(after_s=0.05))) as server:
        test = known_test(Store(tmp_path), server, sla={"p99_s": 0.02}, search={"clients_first": 8})
    endpoint = test.report.targets[0].endpoints[0]
    (capacity,) = endpoint.capacities
    assert (capacity.capacity, capacity.stopped_by, capacity.condition) == (0.0, "first step", "p99")
    assert capacity.finding == "nothing passed"
    assert [step.level for step in endpoint.steps] == sorted((step.level for step in endpoint.steps), reverse=True)
    assert endpoint.met is False


def test_a_server_that_sustains_the_last_level_of_the_ladder(tmp_path: Path) -> None:
    with serving(always(Reply(after_s=0.005))) as server:
        test = known_test(Store(tmp_path), server, search={"clients_first": 2, "clients_last": 4})
    endpoint = test.report.targets[0].endpoints[0]
    (capacity,) = endpoint.capacities
    assert (capacity.capacity, capacity.stopped_by, capacity.finding) == (4.0, "ladder end", "lower bound")
    assert capacity.high is None
    assert endpoint.met is True


def _steps_of_one_and_four(store: Store, behaviour: Exhausted, **steps: float) -> LoadTest:
    levels = {"clients": {"work": [1, 4]}, "times": 2, "duration_s": 1}
    with serving(behaviour) as server:
        return known_test(store, server, search={"kinds": []}, fixed=levels, steps={"longest_s": 1, **steps})


def test_no_step_measures_the_backlog_of_the_previous_step(tmp_path: Path) -> None:
    """Steps with 1, 4, 4 and 1 clients: the last step must not measure a server that is still slow from the others."""
    test = _steps_of_one_and_four(Store(tmp_path), Exhausted(0.004, 0.06, for_s=0.8), recovery_longest_s=10)
    (target,) = test.report.targets
    first, *_, last = target.endpoints[0].steps
    assert (first.level, last.level) == (1.0, 1.0)
    assert first.max_s is not None
    # Slow is 60 ms: a busy machine adds far less to 4 ms.
    assert last.p50_s == pytest.approx(first.p50_s, abs=0.02)
    assert last.ok > 0.3 * first.ok
    assert target.endpoints[0].notes == []
    (between,) = [fact.value for fact in target.facts if fact.label == "Between the steps"]
    assert "from one client, 0 failed; not counted" in between
    counts = test.runs[0].manifest.counts
    assert counts["requests to /work"]["ok"] == sum(step.ok for step in target.endpoints[0].steps)
    assert between.startswith(f"{counts['requests to /work between the steps']['ok']} requests")


def test_a_server_that_does_not_recover_is_measured_and_reported(tmp_path: Path) -> None:
    test = _steps_of_one_and_four(Store(tmp_path), Exhausted(0.004, 0.06, for_s=1e6), recovery_longest_s=1)
    (endpoint,) = test.report.targets[0].endpoints
    assert len(endpoint.steps) == 4
    (note,) = endpoint.notes
    assert note.startswith("the server had not recovered 1")
    assert f"/work: {note}" in test.runs[0].manifest.warnings


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_rate_capacity_with_random_service_times_is_that_of_queueing_theory(tmp_path: Path, seed: int) -> None:
    """M/M/8: the highest rate with 99 % of responses in time follows from Erlang C, 11 % below the workers' limit.

    The search has levels on both sides of it: the result is wrong if the level 15 % above passes, or the one 3 % below
    fails. The required achieved share is low, so p99 decides.
    """
    workers, service_s, limit_s = 8, 0.005, 0.0325
    true = highest(lambda rate: mm_c_slower(rate, workers, service_s, limit_s) <= 0.01, 1.0, workers / service_s)
    assert 1.1 * true < workers / service_s
    profile: dict[str, Any] = {
        "sla": {"p99_s": limit_s, "achieved_share": 0.9},
        "search": {"kinds": ["rate"], "rate_first": 1150, "rate_floor": 1000, "relative_gap": 0.12},
        "steps": {"duration_s": 2, "longest_s": 2, "warm_up_s": 0, "schedule": "poisson"},
    }
    with serving(Queue(workers, service_s, exponential=True, source=random.Random(seed))) as server:
        test = known_test(Store(tmp_path), server, **profile)
    (endpoint,) = test.report.targets[0].endpoints
    (capacity,) = endpoint.capacities
    assert capacity.capacity is not None
    assert capacity.capacity <= (1.0 + WITHIN) * true
    late = any(step.outcome == "generator-limited" for step in endpoint.steps)
    if late or server.latest_s > limit_s / 2.0:
        pytest.skip("this machine is too busy to ask, or to answer, at the times that the queue gives")
    assert capacity.capacity == pytest.approx(true, rel=WITHIN)
    assert capacity.stopped_by == "p99"
