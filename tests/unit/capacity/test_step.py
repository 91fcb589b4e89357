"""How long steps are, when they end early, and what becomes of an interrupted one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.capacity.advice import give_up, lengthened_seconds, requests_wanted, step_seconds
from chainmark.capacity.model import Level, LevelKind, Outcome, Phase, Step, StepOrder, StepResult
from chainmark.capacity.plan import SearchPlan
from chainmark.capacity.search import Ask, Interrupted, StoppedBy, search
from chainmark.capacity.sla import Sla, judge, share_interval
from chainmark.capacity.step import StepRunner, StepSettings, run_step
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.progress import LiveFigures, LiveSource, Silent

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Latencies, Server, finished

SLA = Sla()


class SimulatedEngine:
    """The engine's face before a simulated server, which needs no time."""

    def __init__(self, order: StepOrder, server: Server) -> None:
        self.order, self.server = order, server
        self.calls: list[str] = []
        self.left = 2

    def start(self) -> None:
        """Noted."""
        self.calls.append("start")

    def progress(self) -> str:
        """As JSON."""
        told: dict[str, Any] = {"phase": "window", "elapsed_s": 5.5, "planned_s": 11.0, "ok": 1200, "failed": 3}
        return json.dumps(told | {"started": 1210, "in_flight": 7, "queued": 40, "unanswered": 0})

    def stop(self) -> None:
        """Noted."""
        self.calls.append("stop")

    def running(self) -> bool:
        """Twice asked, it still is."""
        self.left -= 1
        return self.left >= 0

    def finish(self) -> dict[str, Any]:
        """What the server does with the order."""
        self.calls.append("finish")
        return self.server.run(self.order)


class Bench:
    """A runner over a simulated server, with the orders it gave."""

    def __init__(self, server: Server, pause: Callable[[float], None] = lambda _: None, **settings: Any) -> None:
        self.orders: list[dict[str, Any]] = []
        self.engines: list[SimulatedEngine] = []
        self.pauses: list[float] = []
        self.server = server

        def noted(seconds: float) -> None:
            self.pauses.append(seconds)
            pause(seconds)

        self.runner = StepRunner(
            TARGET,
            ENDPOINT,
            server.sla,
            StepSettings(**settings),
            make_engine=self.engine,
            read_histogram=Latencies,
            pause=noted,
        )

    def engine(self, text: str) -> SimulatedEngine:
        """As the native engine is made, from JSON."""
        told = json.loads(text)
        self.orders.append(told)
        closed = "closed" in told["mode"]
        level = (
            Level(LevelKind.CLIENTS, told["mode"]["closed"]["clients"])
            if closed
            else Level(LevelKind.RATE, told["mode"]["open"]["rate_per_s"])
        )
        timings = {key: told[key] for key in ("warm_up_s", "duration_s", "timeout_s")}
        self.engines.append(SimulatedEngine(StepOrder(TARGET, ENDPOINT, level, **timings), self.server))
        return self.engines[-1]


def clients(number: int, phase: Phase = Phase.PROBE, lengthened: bool = False) -> Ask:
    return Ask(Level(LevelKind.CLIENTS, float(number)), phase, lengthened)


def step(told: dict[str, Any]) -> Step:
    order = StepOrder(TARGET, ENDPOINT, Level(LevelKind.CLIENTS, 1.0), 1.0, 10.0)
    return judge(StepResult.of(order, told), SLA, Phase.PROBE, read_histogram=Latencies)


def test_a_step_is_as_long_as_its_requests_need() -> None:
    assert requests_wanted(Sla(min_requests=10)) == 299
    assert step_seconds(None, SLA, 10.0, 120.0) == 10.0
    assert step_seconds(1000.0, SLA, 10.0, 120.0) == 10.0
    assert step_seconds(5.0, SLA, 10.0, 120.0) == 66.0
    assert step_seconds(0.1, SLA, 10.0, 120.0) == 120.0, "a slow endpoint must not take all day"
    assert step_seconds(0.0, SLA, 10.0, 120.0) == 120.0


def test_an_inconclusive_step_is_lengthened_by_what_it_lacks() -> None:
    few = step(finished([0.1] * 100))
    straddling = step(finished([0.1] * 990 + [1.5] * 10))
    assert few.outcome is straddling.outcome is Outcome.INCONCLUSIVE
    assert lengthened_seconds(straddling, SLA, 10.0, 120.0) == 40.0
    assert lengthened_seconds(straddling, SLA, 10.0, 25.0) == 25.0
    assert lengthened_seconds(few, SLA, 10.0, 120.0) == 40.0


@given(st.integers(1, 200_000), st.floats(0.0, 0.5))
def test_what_is_given_up_has_failed_whatever_follows(expected: int, tolerated: float) -> None:
    """Given up one request too early, a step would end that could still have passed."""
    found = give_up(Sla(error_share=tolerated), expected)
    assert found is not None
    for count, limit in ((found.slow, 0.01), (found.failed, tolerated)):
        assert 1 <= count <= expected
        if count < expected:
            assert share_interval(count, expected)[0] > limit
        assert count == 1 or share_interval(count - 1, expected)[0] <= limit


def test_nothing_is_given_up_where_nothing_is_known() -> None:
    assert give_up(SLA, 0) is None


def test_a_search_runs_through_the_engine() -> None:
    """4 workers of 50 ms are 80 clients within a second."""
    bench = Bench(Server(4, 0.05, sla=Sla(p99_s=1.02)))
    found = search(bench.runner.measure, SearchPlan.of_clients())
    assert found.capacity == pytest.approx(81, rel=0.1)
    assert all(engine.calls == ["start", "finish"] for engine in bench.engines)
    assert len({order["seed"] for order in bench.orders}) == len(bench.orders)


def test_slow_endpoints_get_longer_steps() -> None:
    """At 4 answers a second a step of 10 s has 40 requests, and a p99 needs 299."""
    bench = Bench(Server(1, 0.25))
    bench.runner.measure(clients(1))
    bench.runner.measure(clients(1, lengthened=True))
    bench.runner.measure(clients(2))
    assert [order["duration_s"] for order in bench.orders] == [10.0, 83.0, 83.0]
    rates = Bench(Server(1, 0.25))
    rates.runner.measure(Ask(Level(LevelKind.RATE, 2.0), Phase.PROBE))
    assert rates.orders[0]["duration_s"] == 120.0


def test_times_follow_from_the_agreement() -> None:
    """With a limit of 10 s a timeout of 10 s would make errors of slow answers."""
    bench = Bench(Server(1, 0.01, sla=Sla(p99_s=10.0)))
    bench.runner.measure(clients(1))
    assert (bench.orders[0]["timeout_s"], bench.orders[0]["warm_up_s"]) == (20.0, 10.0)


def test_hopeless_steps_are_given_up_but_never_at_fixed_levels() -> None:
    """What is compared must be measured alike on both sides, hopeless or not."""
    bench = Bench(Server(1, 0.01), records=1000)
    bench.runner.measure(clients(1))
    bench.runner.measure(clients(2))
    bench.runner.measure(clients(2, Phase.FIXED))
    assert bench.orders[0]["give_up"] is None, "how many requests there will be is not known yet"
    assert bench.orders[1]["give_up"]["slow_s"] == 1.0
    assert bench.orders[2]["give_up"] is None
    assert [order["max_records"] for order in bench.orders] == [0, 0, 1000]


def test_a_pause_is_made_between_steps() -> None:
    bench = Bench(Server(1, 0.01), cool_down_s=30.0)
    bench.runner.measure(clients(1))
    assert 30.0 not in bench.pauses
    bench.runner.measure(clients(2))
    assert bench.pauses.count(30.0) == 1
    assert bench.runner.looks.count == 0, "no wait was asked for"


def test_ctrl_c_stops_the_engine_and_keeps_the_part() -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    bench = Bench(Server(1, 0.01), pause=interrupt)
    with pytest.raises(Interrupted) as interrupted:
        bench.runner.measure(clients(1))
    assert bench.engines[0].calls == ["start", "stop", "finish"]
    assert interrupted.value.step is not None
    assert interrupted.value.step.partial
    assert bench.runner.done == [], "it is no measurement of this level"
    found = search(Bench(Server(1, 0.01), pause=interrupt).runner.measure, SearchPlan.of_clients())
    assert (found.stopped_by, len(found.steps)) == (StoppedBy.INTERRUPTED, 1)


def test_whoever_waits_is_told_how_far_it_is() -> None:
    told: list[tuple[float | str, str]] = []

    class Listener:
        def stage(self, name: str) -> None:
            told.append((name, ""))

        def update(self, fraction: float, detail: str = "") -> None:
            told.append((fraction, detail))

    bench = Bench(Server(1, 0.01))
    bench.runner.progress = Listener()
    bench.runner.measure(clients(2))
    assert told[:2] == [("/block: 2 clients (probe)", ""), (0.5, "window, 1200 answered, 3 failed")]


def test_who_looks_while_a_step_lasts_is_told_where_all_requests_are() -> None:
    """1,210 of the 1,250 that were due by now are sent."""
    told: list[LiveFigures] = []

    class Onlooker(Silent):
        @contextmanager
        def live(self, source: LiveSource) -> Iterator[None]:
            told.append(source())
            yield

    bench = Bench(Server(1, 0.01))
    bench.runner.progress = Onlooker()
    bench.runner.measure(clients(2))
    assert told == [LiveFigures(offered=1250, sent=1210, accepted=1200, failed=3, in_flight=7)]


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ValueError("the URL `x` is none\nhint: http://host:port"), UsageError),
        (ConnectionError("the host `x` is not known\nhint: is it written rightly?"), EnvironmentFailure),
    ],
)
def test_what_the_engine_refuses_is_told_as_a_sentence(raised: Exception, expected: type[UsageError]) -> None:
    def refuse(text: str) -> SimulatedEngine:
        raise raised

    order = StepOrder(TARGET, ENDPOINT, Level(LevelKind.CLIENTS, 1.0), 1.0, 10.0)
    with pytest.raises(expected) as told:
        run_step(order, make_engine=refuse)
    assert told.value.hint is not None
    assert "\n" not in told.value.message
