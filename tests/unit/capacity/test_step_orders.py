"""What the orders of steps contain, how long steps of a mix are, and what is shown or raised while they run."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from chainmark.capacity.access import Access
from chainmark.capacity.advice import give_up
from chainmark.capacity.course import Ramp, Spike
from chainmark.capacity.generators import GeneratorGone
from chainmark.capacity.model import (
    HTTP_2,
    Gone,
    LevelKind,
    MixPart,
    Phase,
    StepCondition,
    StepOutcome,
    StepRequest,
)
from chainmark.capacity.plan import SearchPlan
from chainmark.capacity.search import Ask, Interrupted
from chainmark.capacity.service_level import Sla
from chainmark.capacity.step import run_step
from chainmark.core.progress import LiveFigures, LiveSource, Silent

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Server, finished
from tests.unit.capacity.test_step import Bench, SimulatedEngine, clients, measured, rate, step

# Every fourth request is of the rarer one.
MIX = replace(ENDPOINT, parts=(MixPart("a", "/a", 1.0, 1, Sla(p99_s=0.02)), MixPart("b", "/b", 3.0, 1, Sla())))


def mixed(**settings: Any) -> Bench:
    """A bench whose endpoint is a mix."""
    bench = Bench(Server(1, 0.01), **settings)
    bench.runner.endpoint = MIX
    return bench


# --- mixes ----------------------------------------------------------------------------------------------------------


def test_a_step_of_a_mix_is_long_enough_for_its_rarest_endpoint() -> None:
    """At 10 per second, it has 2.5: 328.9 of them take 132 s. After 400 in 10 s, it had 10 per second: 33 s."""
    runner = mixed(longest_s=500.0).runner
    assert runner.order(rate(10.0)).duration_s == 132.0
    runner.done.append(measured(step(finished([0.1] * 400)), 2, 400, 10.0))
    assert runner.order(clients(2, extended=True)).duration_s == 33.0


@pytest.mark.parametrize(
    ("plan", "first"),
    [
        # 328.9 requests of the rarest endpoint in 10 s.
        (SearchPlan.of_rates(), 131.6),
        (SearchPlan.of_rates(first=200.0), 200.0),
        (SearchPlan.of_rates(last=100.0), 100.0),
        # 1 s each, every fourth one in 60 s.
        (SearchPlan.of_clients(), 22.0),
    ],
    ids=["rates", "a higher first rate", "a lower last rate", "clients"],
)
def test_a_search_of_a_mix_starts_where_the_rarest_endpoint_has_enough_responses(
    plan: SearchPlan, first: float
) -> None:
    runner = mixed(longest_s=60.0, think_s=0.25).runner
    runner.looks.reference_s = 0.75
    assert runner.fitted(plan) == replace(plan, first=first)


def test_a_step_of_a_mix_is_judged_by_each_endpoints_own_sla(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = mixed()
    figures = finished([0.1] * 500)
    part = {"counts": figures["counts"], "latency": figures["latency"], "errors": {}}
    monkeypatch.setattr(bench.server, "run", lambda _: finished([0.1] * 1000) | {"parts": [part, part]})
    missed = bench.runner.measure(clients(1))
    assert (missed.outcome, missed.reason, missed.reason_part) == (StepOutcome.FAIL, StepCondition.P99, "a")


# --- orders ---------------------------------------------------------------------------------------------------------


def test_optional_settings_reach_the_engine() -> None:
    """A profile that states them would otherwise describe another load."""
    bench = Bench(Server(1, 0.01), streams=4, request_coding="gzip", think_s=0.5)
    bench.runner.target = replace(TARGET, http_version=HTTP_2)
    sent = json.loads(bench.runner.order(clients(3)).to_json())
    assert sent["mode"] == {"closed": {"clients": 3, "think_s": 0.5}}
    assert (sent["streams"], sent["request_coding"], sent["max_slowest"], sent["course"]) == (4, "gzip", 20, [])


@pytest.mark.parametrize("expected", [7, 400, 1200])
def test_the_counts_that_end_a_step_are_whole(expected: int) -> None:
    """The engine counts requests."""
    limits = give_up(Sla(), expected)
    assert limits is not None
    assert all(isinstance(count, int) for count in (limits.slow, limits.failed))


def test_a_course_begins_at_its_first_level() -> None:
    ramp, spike = Ramp(LevelKind.CLIENTS, 1.0, 64.0, 90.0), Spike(LevelKind.RATE, 50.0, 500.0)
    assert (ramp.start, spike.start) == (clients(1).level, rate(50.0).level)


def test_a_course_reaches_the_engine_and_sets_the_length() -> None:
    ramp = Ramp(LevelKind.CLIENTS, 1.0, 64.0, 90.0)
    order = Bench(Server(1, 0.01)).runner.order(Ask(ramp.peak, Phase.RAMP, course=ramp))
    assert (order.course, order.duration_s) == (((0.0, 1.0), (90.0, 64.0)), 90.0)


def test_clients_do_not_think_while_the_server_is_checked() -> None:
    """Otherwise their pauses would leave most checks of half a second without a response."""
    bench = Bench(Server(1, 0.01), think_s=5.0, recovery_longest_s=30.0)
    bench.runner.refer()
    assert [order["mode"] for order in bench.orders] == [{"closed": {"clients": 1}}]


def test_the_pauses_of_clients_lengthen_the_first_step() -> None:
    """Two clients with 1 s for each request and 0.5 s of thinking send 4 requests in 3 s: 328.9 take 247 s."""
    runner = Bench(Server(1, 0.01), think_s=0.5, longest_s=500.0).runner
    runner.looks.reference_s = 1.0
    assert runner.order(clients(2)).duration_s == 247.0


# --- during and after a step ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("phase", "p50_s", "p99_s"), [("window", 0.02, 0.3), ("warm-up", None, None)])
def test_latencies_are_shown_during_the_window_only(phase: str, p50_s: float | None, p99_s: float | None) -> None:
    """Those of the warm-up are not part of the result."""
    figures: list[LiveFigures] = []

    class Onlooker(Silent):
        @contextmanager
        def live(self, source: LiveSource) -> Iterator[None]:
            figures.append(source())
            yield

    class Telling(SimulatedEngine):
        def progress(self) -> str:
            return json.dumps({**json.loads(super().progress()), "phase": phase, "p50_s": 0.02, "p99_s": 0.3})

    order = StepRequest(TARGET, ENDPOINT, clients(1).level, 1.0, 10.0)
    run_step(order, Onlooker(), lambda _: Telling(order, Server(1, 0.01)), lambda _: None)
    assert [(figure.p50_s, figure.p99_s) for figure in figures] == [(p50_s, p99_s)]


@pytest.mark.parametrize(("status", "renewals"), [(401, 1), (500, 0)])
def test_credentials_are_renewed_only_after_the_server_rejected_them(
    status: int, renewals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that fetches a token may be slow, or limited in how often it may run."""
    renewed: list[str] = []

    class Counted(Access):
        def outdate(self) -> None:
            renewed.append("outdated")

    bench = Bench(Server(1, 0.01))
    bench.runner.target = replace(TARGET, access=Counted())
    rejecting = finished([0.01] * 300, failed=1)
    rejecting["classes"][0]["status"] = status
    monkeypatch.setattr(bench.server, "run", lambda _: rejecting)
    bench.runner.measure(clients(1))
    assert len(renewed) == renewals


def test_a_generator_that_went_away_is_named_with_the_time() -> None:
    def refuse(text: str) -> SimulatedEngine:
        raise GeneratorGone("load generator 2 of 2", "it does not respond")

    order = StepRequest(TARGET, ENDPOINT, clients(1).level, 1.0, 10.0)
    before_ns = time.time_ns()
    with pytest.raises(Interrupted) as ended:
        run_step(order, make_engine=refuse)
    gone = ended.value.gone
    assert gone is not None
    assert gone == Gone("here", gone.at_ns, "it does not respond", "load generator 2 of 2")
    assert before_ns <= gone.at_ns <= time.time_ns()
