"""Length of steps, early ends of steps, and results of interrupted steps."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.capacity.advice import clients_for_enough, extended_seconds, give_up, requests_wanted, step_seconds
from chainmark.capacity.model import LevelKind, LoadLevel, Phase, Step, StepOutcome, StepRequest, StepResult, Waits
from chainmark.capacity.plan import SearchPlan
from chainmark.capacity.search import Ask, Interrupted, StoppedBy, search
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge, share_interval
from chainmark.capacity.step import StepRunner, StepSettings, run_step
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.progress import LiveFigures, LiveSource, Silent

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Latencies, Server, finished

SLA = Sla()


class SimulatedEngine:
    """The engine's interface for a simulated server. It takes no time."""

    def __init__(self, order: StepRequest, server: Server) -> None:
        self.order, self.server = order, server
        self.calls: list[str] = []
        self.left = 2

    def start(self) -> None:
        """Record the call."""
        self.calls.append("start")

    def progress(self) -> str:
        """The state as JSON."""
        state: dict[str, Any] = {"phase": "window", "elapsed_s": 5.5, "planned_s": 11.0, "ok": 1200, "failed": 3}
        return json.dumps(state | {"started": 1210, "in_flight": 7, "queued": 40, "unanswered": 0})

    def stop(self) -> None:
        """Record the call."""
        self.calls.append("stop")

    def running(self) -> bool:
        """Return True for the first two calls."""
        self.left -= 1
        return self.left >= 0

    def finish(self) -> dict[str, Any]:
        """The simulated server's result for the order."""
        self.calls.append("finish")
        return self.server.run(self.order)


class Bench:
    """A step runner for a simulated server, with the orders that it sent."""

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
        """Create an engine from a JSON order, like the native one."""
        step_request = json.loads(text)
        self.orders.append(step_request)
        closed = "closed" in step_request["mode"]
        level = (
            LoadLevel(LevelKind.CLIENTS, step_request["mode"]["closed"]["clients"])
            if closed
            else LoadLevel(LevelKind.RATE, step_request["mode"]["open"]["rate_per_s"])
        )
        timings = {key: step_request[key] for key in ("warm_up_s", "duration_s", "timeout_s")}
        self.engines.append(SimulatedEngine(StepRequest(TARGET, ENDPOINT, level, **timings), self.server))
        return self.engines[-1]


def clients(number: int, phase: Phase = Phase.PROBE, extended: bool = False) -> Ask:
    return Ask(LoadLevel(LevelKind.CLIENTS, float(number)), phase, extended)


def step(result: dict[str, Any]) -> Step:
    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.CLIENTS, 1.0), 1.0, 10.0)
    return judge(StepResult.of(order, result), SLA, Phase.PROBE, read_histogram=Latencies)


def test_a_step_is_as_long_as_its_requests_require() -> None:
    assert requests_wanted(Sla(min_requests=10)) == 299
    assert step_seconds(None, SLA, 10.0, 120.0) == 10.0
    assert step_seconds(1000.0, SLA, 10.0, 120.0) == 10.0
    assert step_seconds(5.0, SLA, 10.0, 120.0) == 66.0
    assert step_seconds(0.1, SLA, 10.0, 120.0) == 120.0, "a slow endpoint must not extend a step without limit"
    assert step_seconds(0.0, SLA, 10.0, 120.0) == 120.0
    assert step_seconds(0.5, SLA, 10.0, 2000.0) == 658.0
    assert clients_for_enough(0.001, SLA, 60.0) == 1


def test_an_inconclusive_step_is_lengthened_by_the_missing_requests() -> None:
    few = step(finished([0.1] * 100))
    straddling = step(finished([0.1] * 990 + [1.5] * 10))
    assert few.outcome is straddling.outcome is StepOutcome.INCONCLUSIVE
    assert extended_seconds(straddling, SLA, 10.0, 120.0) == 40.0
    assert extended_seconds(straddling, SLA, 10.0, 25.0) == 25.0
    assert extended_seconds(few, SLA, 10.0, 120.0) == 40.0
    # At 300 per second, 10,000 requests and a tenth more are required. Nothing else is undecided.
    many = Sla(min_requests=10_000)
    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.CLIENTS, 1.0), 1.0, 10.0)
    short = judge(StepResult.of(order, finished([0.1] * 3000)), many, Phase.PROBE, read_histogram=Latencies)
    assert short.outcome is StepOutcome.INCONCLUSIVE
    assert extended_seconds(short, many, 10.0, 120.0) == 37.0


@given(st.integers(1, 200_000), st.floats(0.0, 0.5))
def test_an_abandoned_step_would_have_failed_whatever_followed(expected: int, tolerated: float) -> None:
    """Otherwise a step that could still pass would be ended one request too early."""
    give_up_reason = give_up(Sla(error_share=tolerated), expected)
    assert give_up_reason is not None
    for count, limit in ((give_up_reason.slow, 0.01), (give_up_reason.failed, tolerated)):
        assert 1 <= count <= expected
        if count < expected:
            assert share_interval(count, expected)[0] > limit
        assert count == 1 or share_interval(count - 1, expected)[0] <= limit


def test_no_step_is_abandoned_without_data() -> None:
    assert give_up(SLA, 0) is None


def test_a_search_runs_through_the_engine() -> None:
    """4 workers of 50 ms each serve 80 clients within one second."""
    bench = Bench(Server(4, 0.05, sla=Sla(p99_s=1.02)))
    result = search(bench.runner.measure, SearchPlan.of_clients())
    assert result.capacity == pytest.approx(81, rel=0.1)
    assert all(engine.calls == ["start", "finish"] for engine in bench.engines)
    assert len({order["seed"] for order in bench.orders}) == len(bench.orders)


def test_slow_endpoints_get_longer_steps() -> None:
    """At 4 responses per second a step of 10 s has 40 requests, and a p99 requires 299."""
    bench = Bench(Server(1, 0.25))
    bench.runner.measure(clients(1))
    bench.runner.measure(clients(1, extended=True))
    bench.runner.measure(clients(2))
    assert [order["duration_s"] for order in bench.orders] == [10.0, 83.0, 83.0]
    rates = Bench(Server(1, 0.25))
    rates.runner.measure(Ask(LoadLevel(LevelKind.RATE, 2.0), Phase.PROBE))
    assert rates.orders[0]["duration_s"] == 120.0


def test_timeouts_follow_from_the_sla() -> None:
    """With a limit of 10 s, a timeout of 10 s would turn slow responses into errors."""
    bench = Bench(Server(1, 0.01, sla=Sla(p99_s=10.0)))
    bench.runner.measure(clients(1))
    assert (bench.orders[0]["timeout_s"], bench.orders[0]["warm_up_s"]) == (20.0, 10.0)


def test_hopeless_steps_are_abandoned_but_never_at_fixed_levels() -> None:
    """Levels that are compared must be measured in the same way on both sides, even if they must fail."""
    bench = Bench(Server(1, 0.01), records=1000)
    bench.runner.measure(clients(1))
    bench.runner.measure(clients(2))
    bench.runner.measure(clients(2, Phase.FIXED))
    assert bench.orders[0]["give_up"] is None, "the number of requests is not known yet"
    assert bench.orders[1]["give_up"]["slow_s"] == 1.0
    assert bench.orders[2]["give_up"] is None
    assert [order["max_records"] for order in bench.orders] == [0, 0, 1000]


@pytest.mark.parametrize("pause_s", [30.0, 0.5])
def test_a_pause_is_made_between_steps(pause_s: float) -> None:
    bench = Bench(Server(1, 0.01), cool_down_s=pause_s)
    bench.runner.measure(clients(1))
    assert pause_s not in bench.pauses
    bench.runner.measure(clients(2))
    assert bench.pauses.count(pause_s) == 1
    assert bench.runner.looks.count == 0, "no wait for recovery is configured"


def test_ctrl_c_stops_the_engine_and_the_partial_result_is_stored() -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    bench = Bench(Server(1, 0.01), pause=interrupt)
    with pytest.raises(Interrupted) as interrupted:
        bench.runner.measure(clients(1))
    assert bench.engines[0].calls == ["start", "stop", "finish"]
    assert interrupted.value.step is not None
    assert interrupted.value.step.partial
    assert bench.runner.done == [], "an incomplete step is not a measurement of this level"
    result = search(Bench(Server(1, 0.01), pause=interrupt).runner.measure, SearchPlan.of_clients())
    assert (result.stopped_by, len(result.steps)) == (StoppedBy.INTERRUPTED, 1)


def test_the_progress_of_a_step_is_shown() -> None:
    messages: list[tuple[float | str, str]] = []

    class Listener:
        def stage(self, name: str) -> None:
            messages.append((name, ""))

        def update(self, fraction: float, detail: str = "") -> None:
            messages.append((fraction, detail))

    bench = Bench(Server(1, 0.01))
    bench.runner.progress = Listener()
    bench.runner.measure(clients(2))
    assert messages[:2] == [("/block: 2 clients (probe)", ""), (0.5, "window, 1200 answered, 3 failed")]


def test_the_state_of_all_requests_is_available_during_a_step() -> None:
    """1,210 of the 1,250 requests due by now are sent."""
    figures: list[LiveFigures] = []

    class Onlooker(Silent):
        @contextmanager
        def live(self, source: LiveSource) -> Iterator[None]:
            figures.append(source())
            yield

    bench = Bench(Server(1, 0.01))
    bench.runner.progress = Onlooker()
    bench.runner.measure(clients(2))
    assert figures == [LiveFigures(offered=1250, sent=1210, accepted=1200, failed=3, in_flight=7)]


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ValueError("the URL `x` is none\nhint: http://host:port"), UsageError),
        (ConnectionError("the host `x` is not known\nhint: is it written rightly?"), EnvironmentFailure),
    ],
)
def test_an_error_of_the_engine_is_a_sentence(raised: Exception, expected: type[UsageError]) -> None:
    def refuse(text: str) -> SimulatedEngine:
        raise raised

    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.CLIENTS, 1.0), 1.0, 10.0)
    with pytest.raises(expected) as error:
        run_step(order, make_engine=refuse)
    assert error.value.hint is not None
    assert "\n" not in error.value.message


# --- orders sent to the engine --------------------------------------------------------------------------------------


def rate(per_s: float, phase: Phase = Phase.PROBE, extended: bool = False) -> Ask:
    return Ask(LoadLevel(LevelKind.RATE, per_s), phase, extended)


def test_every_setting_reaches_the_engine() -> None:
    """A setting that is not passed on has no effect although a profile states it."""
    settings: dict[str, Any] = {"drain_s": 7.0, "timeout_s": 3.0, "requests_per_connection": 5, "threads": 2}
    bench = Bench(Server(1, 0.01), schedule="poisson", connections=17, drawing="sequence", seed=40, **settings)
    bench.runner.measure(rate(50.0))
    bench.runner.measure(clients(3))
    first, second = bench.orders
    assert first["mode"] == {"open": {"rate_per_s": 50.0, "schedule": "poisson", "connections": 17}}
    assert second["mode"] == {"closed": {"clients": 3}}
    assert {key: first[key] for key in settings} == settings
    assert (first["url"], first["order"]) == (TARGET.url, "sequence")
    assert [request["path"] for request in first["requests"]] == ["/block"]
    assert (first["seed"], second["seed"]) == (40, 41), "the server would cache the same requests in the same order"
    assert json.loads(Bench(Server(1, 0.01)).runner.order(clients(1)).to_json())["order"] == "random"
    level = bench.runner.done[1]
    assert (level.level, level.endpoint, level.phase, level.extended) == (clients(3).level, "block", "probe", False)


@pytest.mark.parametrize(
    ("chosen", "p99_s", "of_clients", "of_rate"),
    [
        (None, 0.2, 1.0, 1.0),
        (None, 1.5, 1.5, 2.0),
        (None, 30.0, 10.0, 10.0),
        (0.0, 1.0, 0.0, 0.0),
        (2.5, 1.0, 2.5, 3.0),
    ],
)
def test_the_warm_up_is_as_long_as_the_queue_requires(
    chosen: float | None, p99_s: float, of_clients: float, of_rate: float
) -> None:
    """At a fixed rate it is a whole number of seconds.

    Otherwise the window would start within a second of the series.
    """
    runner = Bench(Server(1, 0.01, sla=Sla(p99_s=p99_s)), warm_up_s=chosen).runner
    assert (runner.order(clients(1)).warm_up_s, runner.order(rate(1.0)).warm_up_s) == (of_clients, of_rate)


@pytest.mark.parametrize(
    ("chosen", "p99_s", "timeout_s"), [(None, 1.0, 10.0), (None, 5.5, 11.0), (0.5, 1.0, 0.5), (2.0, 8.0, 2.0)]
)
def test_slow_and_failed_requests_are_distinguished(chosen: float | None, p99_s: float, timeout_s: float) -> None:
    runner = Bench(Server(1, 0.01, sla=Sla(p99_s=p99_s)), timeout_s=chosen).runner
    assert runner.order(clients(1)).timeout_s == timeout_s


def test_the_length_of_a_step_follows_from_the_throughput_of_the_best_lower_level() -> None:
    """The throughput of a higher level is not evidence, as an overloaded server responds less often."""
    bench = Bench(Server(2, 0.25), duration_s=1.0, longest_s=500.0)
    bench.runner.measure(clients(1))
    (level,) = bench.runner.done
    bench.runner.done.append(measured(level, 2, due=40))
    bench.runner.done.append(measured(level, 3, due=4))
    bench.runner.done.append(measured(level, 9, due=400))
    # 299 requests and a tenth more are 328.9 requests, at the throughput of level 1 and at 40 per second.
    assert bench.runner.order(clients(1)).duration_s == math.ceil(328.9 / level.result.due_per_s)
    assert bench.runner.order(clients(2)).duration_s == 9.0
    assert bench.runner.order(clients(8)).duration_s == 9.0
    assert bench.runner.order(clients(9)).duration_s == 1.0
    assert bench.runner.order(rate(5.0)).duration_s == 66.0, "a fixed rate is known in advance"


def measured(of: Step, number: int, due: int, window_s: float = 1.0) -> Step:
    """The same step at another level, with this number of successful responses."""
    order = StepRequest(TARGET, ENDPOINT, clients(number).level, 1.0, window_s)
    return replace(of, result=StepResult.of(order, finished([0.1] * due, window_s)))


def test_the_length_of_the_first_step_follows_from_a_probe_with_one_client() -> None:
    runner = Bench(Server(1, 0.01)).runner
    assert runner.order(clients(2)).duration_s == 10.0
    runner.looks.reference_s = 0.5
    # Two clients with 0.5 s per request each send 4 requests per second.
    assert runner.order(clients(2)).duration_s == 83.0
    assert runner.order(clients(1)).duration_s == 120.0


def test_a_step_duration_above_the_longest_is_used_as_configured() -> None:
    runner = Bench(Server(1, 0.01), duration_s=200.0, longest_s=120.0).runner
    assert runner.order(clients(2)).duration_s == 200.0
    assert runner.order(rate(0.001)).duration_s == 200.0
    assert runner.order(rate(0.001, extended=True)).duration_s == 200.0


def test_a_lengthened_step_is_four_times_the_shortest_at_its_level() -> None:
    """A step that was already extended for a confirmation is not extended again."""
    bench = Bench(Server(1, 0.01), duration_s=10.0)
    straddling = step(finished([0.1] * 990 + [1.5] * 10))
    bench.runner.done += [replace(straddling, result=measured(straddling, 4, 1000, 5.0).result)]
    bench.runner.done += [replace(straddling, result=measured(straddling, 2, 4000, 40.0).result)]
    bench.runner.done += [replace(straddling, result=measured(straddling, 2, 1500, 15.0).result)]
    assert bench.runner.order(clients(2, extended=True)).duration_s == 60.0
    assert bench.runner.order(clients(4, extended=True)).duration_s == 40.0
    assert bench.runner.order(clients(2)).duration_s == 10.0
    assert bench.runner.order(clients(3, extended=True)).duration_s == 10.0, "an unmeasured level lacks no requests"


def test_a_step_is_abandoned_based_on_the_requests_it_can_still_have() -> None:
    """With too few expected requests it would end although it could pass. With too many it would never end early."""
    bench = Bench(Server(1, 0.01), duration_s=4.0)
    assert bench.runner.order(clients(1)).give_up is None
    order = bench.runner.order(rate(100.0))
    assert order.give_up == give_up(SLA, 400)
    level = step(finished([0.1] * 300))
    bench.runner.done += [measured(level, 1, 150), measured(level, 2, 100)]
    # At most twice the highest measured throughput.
    assert bench.runner.order(clients(8)).duration_s == 4.0
    assert bench.runner.order(clients(8)).give_up == give_up(SLA, 1200)
    assert bench.runner.order(rate(100.0)).give_up == give_up(SLA, 400)
    patient = Bench(Server(1, 0.01), end_hopeless=False).runner
    assert patient.order(rate(100.0)).give_up is None


def test_a_search_starts_at_a_level_where_the_longest_step_has_enough_responses() -> None:
    """One client of a slow endpoint would run for minutes without a result."""
    runner = Bench(Server(1, 0.01), longest_s=60.0).runner
    plan = SearchPlan.of_clients(first=2, last=64)
    assert runner.fitted(plan) is plan, "the latency of the server is not known"
    runner.looks.reference_s = 2.0
    # 328.9 responses of 2 s each in 60 s.
    assert runner.fitted(plan).first == 11.0
    assert replace(runner.fitted(plan), first=2.0) == plan
    runner.looks.reference_s = 0.001
    assert runner.fitted(plan).first == 2.0
    runner.looks.reference_s = 50.0
    assert runner.fitted(plan).first == 64.0
    runner.looks.reference_s = 2.0
    for other in (SearchPlan.of_rates(), SearchPlan.of_ladder(LevelKind.CLIENTS, (1.0, 4.0))):
        assert runner.fitted(other) is other
    usual = Bench(Server(1, 0.01), duration_s=60.0, longest_s=1.0).runner
    usual.looks.reference_s = 2.0
    assert usual.fitted(plan).first == 11.0


# --- during a step --------------------------------------------------------------------------------------------------


def test_the_progress_of_a_step_is_polled_ten_times_per_second() -> None:
    bench = Bench(Server(1, 0.01))
    bench.runner.measure(clients(2))
    assert bench.pauses == [0.1, 0.1]
    bench.runner.measure(clients(2))
    assert bench.pauses == [0.1] * 4, "no other pause is configured"


@pytest.mark.parametrize(
    ("state", "fraction", "reported"),
    [
        ({"phase": "warm-up", "elapsed_s": 0.5, "ok": 1, "failed": 0}, 0.25, "warm-up, 1 answered"),
        (
            {"phase": "drain", "elapsed_s": 3.0, "ok": 12_000, "failed": 15_000},
            1.0,
            "drain, 12,000 answered, 15,000 failed",
        ),
    ],
)
def test_the_progress_of_a_step_includes_failures(state: dict[str, Any], fraction: float, reported: str) -> None:
    """A step that waits for its last responses is shown as complete, and not as more than that."""
    seen: list[tuple[float, str]] = []

    class Listener(Silent):
        def update(self, fraction: float, detail: str = "") -> None:
            seen.append((fraction, detail))

    class Telling(SimulatedEngine):
        def progress(self) -> str:
            return json.dumps({"planned_s": 2.0, **state})

    order = StepRequest(TARGET, ENDPOINT, clients(1).level, 1.0, 10.0)
    run_step(order, Listener(), lambda _: Telling(order, Server(1, 0.01)), lambda _: None)
    assert seen[0] == (fraction, reported)


def test_a_step_that_ends_by_itself_is_not_abandoned() -> None:
    for ended in ("time", "gave up"):
        server = Server(1, 0.01)
        server.run = lambda _, ended=ended: finished([0.01] * 300, ended=ended)  # type: ignore[method-assign, misc]
        bench = Bench(server)
        level = bench.runner.measure(clients(1))
        assert (level.result.ended, level.partial) == (ended, False)
        assert bench.runner.done == [level]


def test_the_machine_is_observed_during_a_step_and_the_readings_are_stored() -> None:
    """Otherwise a step on a busy machine would fail the server."""
    bench = Bench(Server(1, 0.01))
    noted: list[str] = []

    class Watch:
        def __enter__(self) -> Self:
            noted.append("begin")
            return self

        def __exit__(self, *ended: object) -> None:
            noted.append(f"end after {bench.engines[-1].calls[-1]}")

        def waits(self, result: StepResult) -> Waits:
            noted.append(str(result.level))
            return Waits(0.5, None, None)

    bench.runner.watching = Watch
    level = bench.runner.measure(clients(2))
    assert noted == ["begin", "end after finish", "2 clients"]
    assert (level.waits, level.outcome) == (Waits(0.5, None, None), StepOutcome.GENERATOR_LIMITED)
    bench.runner.watching = None
    assert bench.runner.measure(clients(2)).waits is None
