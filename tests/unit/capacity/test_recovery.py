"""After a step the next one waits until the server is as fast as before the load, up to a maximum."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from chainmark.capacity.loadtest import FixedPlan, LoadPlan, TargetServer, run_load_test
from chainmark.capacity.model import Endpoint, LevelKind, LoadLevel, Phase, StepRequest, StepResult, Target
from chainmark.capacity.plan import SearchPlan
from chainmark.capacity.recovery import HealthProbes, Recovery, WaitPlan, median_s
from chainmark.capacity.report import recovery_notes
from chainmark.capacity.search import Ask, Interrupted
from chainmark.capacity.service_level import Sla
from chainmark.capacity.step import StepRunner, StepSettings
from chainmark.core.progress import Progress, Silent

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Latencies, finished

QUICK_S = 0.01


@dataclass
class World:
    """A clock that only pauses and requests advance, and a server that is slow for a while after each step.

    Attributes:
        slow_for_s: how long the server is slow after each step. Then it responds within ``QUICK_S`` again.
        slow_s: its latency until then; None: its responses fail.
        requested: the started steps and checks by endpoint: the level of a step, "look" for a check.

    """

    slow_for_s: float
    slow_s: float | None = 0.2
    now_s: float = 0.0
    slow_until_s: float = 0.0
    requested: list[tuple[str, str]] = field(default_factory=list)
    interrupt_at: int | None = None
    orders: list[dict[str, Any]] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def pause(self, seconds: float) -> None:
        """Advance the time."""
        self.now_s += seconds
        self.pauses.append(seconds)

    def latency_s(self) -> float | None:
        """Latency of a request at the current time."""
        return QUICK_S if self.now_s >= self.slow_until_s else self.slow_s

    def runner(
        self, target: Target, endpoint: Endpoint, sla: Sla, settings: StepSettings, progress: Progress
    ) -> StepRunner:
        """A step runner with an engine of this world."""
        return StepRunner(
            target,
            endpoint,
            sla,
            settings,
            progress,
            make_engine=lambda text: Load(self, endpoint.id, json.loads(text)),
            read_histogram=Latencies,
            pause=self.pause,
            clock=lambda: self.now_s,
        )


@dataclass
class Load:
    """The engine's interface. An order of half a second is a check, any other is a step."""

    world: World
    endpoint: str
    order: dict[str, Any]
    begun_s: float = 0.0
    stopped: bool = False

    @property
    def is_look(self) -> bool:
        """Whether this is a check of the server."""
        return bool(self.order["duration_s"] == 0.5)

    def start(self) -> None:
        """Record the order."""
        self.begun_s = self.world.now_s
        what = "look" if self.is_look else str(self.order["mode"]["closed"]["clients"])
        self.world.requested.append((self.endpoint, what))
        self.world.orders.append(self.order)

    def progress(self) -> str:
        """The state with the responses so far."""
        if self.world.interrupt_at == len(self.world.requested):
            raise KeyboardInterrupt
        return json.dumps(
            {"phase": "window", "elapsed_s": 0, "planned_s": 1, "ok": self.answers(), "failed": 0, "unanswered": 0}
        )

    def answers(self) -> int:
        """Number of responses so far, one after the other."""
        return int((self.world.now_s - self.begun_s) / (self.world.latency_s() or QUICK_S) + 1e-6)

    def running(self) -> bool:
        """Whether the order is not stopped and not complete."""
        return not self.stopped and self.world.now_s - self.begun_s < self.order["duration_s"]

    def stop(self) -> None:
        """Record the stop."""
        self.stopped = True

    def finish(self) -> dict[str, Any]:
        """A check returns the current latency. A step makes the server slow."""
        if self.is_look:
            latency_s, n = self.world.latency_s(), max(1, self.answers())
            return finished([latency_s] * n, 0.5) if latency_s is not None else finished([], 0.5, failed=n)
        self.world.slow_until_s = self.world.now_s + self.world.slow_for_s
        return finished([0.02] * 400)


def measured(world: World, clients: Sequence[int], **settings: Any) -> StepRunner:
    """A runner that has measured these levels."""
    step_settings = StepSettings(**{"recovery_longest_s": 30.0, **settings})
    runner = world.runner(TARGET, ENDPOINT, Sla(), step_settings, Silent())
    for number in clients:
        runner.measure(Ask(LoadLevel(LevelKind.CLIENTS, float(number)), Phase.PROBE))
    return runner


def test_the_next_step_starts_when_the_server_has_recovered() -> None:
    """Otherwise the backlog of one step would be measured in the next one."""
    world = World(slow_for_s=3.0)
    runner = measured(world, [4, 8])
    kinds = [what for _, what in world.requested]
    assert kinds[0] == "look", "the reference is measured before any load"
    assert kinds[1] == "4"
    assert set(kinds[2:-1]) == {"look"}
    assert len(kinds) > 4, "at least one check is slow and one is fast"
    assert kinds[-1] == "8"
    assert runner.looks.reference_s == QUICK_S
    assert runner.looks.unrecovered == []
    assert runner.looks.counts.due == runner.looks.counts.ok > 10


def test_checking_a_fast_server_takes_hardly_any_time() -> None:
    """A search has dozens of steps, so long checks would add up."""
    world = World(slow_for_s=0.0)
    runner = measured(world, range(1, 12))
    assert runner.looks.count == 11
    assert world.now_s - 11 * 11.0 < 11 * 0.25


def test_a_server_that_does_not_recover_is_waited_for_once_and_reported() -> None:
    """The next step still runs. For a server that stays slow, the maximum wait is spent only once."""
    world = World(slow_for_s=1e9)
    runner = measured(world, [4, 8, 16])
    (unrecovered,) = runner.looks.unrecovered
    assert 30.0 <= unrecovered.waited_s < 32.0
    assert (unrecovered.level.value, unrecovered.reference_s, unrecovered.p50_s) == (4.0, QUICK_S, 0.2)
    assert [what for _, what in world.requested if what != "look"] == ["4", "8", "16"]
    (note,) = recovery_notes(runner.looks)
    assert note.startswith("the server had not recovered 30")
    assert note.endswith("after a step at 4 clients: the median at one client was 200.0 ms, 10.00 ms before")


def test_a_server_that_rejects_everything_has_not_recovered() -> None:
    """Rejections are fast but are not successful responses."""
    world = World(slow_for_s=1e9, slow_s=None)
    runner = measured(world, [4, 8], recovery_longest_s=2.0)
    (unrecovered,) = runner.looks.unrecovered
    assert unrecovered.p50_s is None
    assert runner.looks.reference_s == QUICK_S
    assert runner.looks.counts.failed > 0
    assert "most requests of one client failed" in recovery_notes(runner.looks)[0]


def test_there_is_no_wait_if_none_is_configured() -> None:
    world = World(slow_for_s=1e9)
    runner = measured(world, [4, 8], recovery_longest_s=0.0)
    assert [what for _, what in world.requested] == ["4", "8"]
    assert runner.looks.count == 0
    stages: list[str] = []

    class Listener(Silent):
        def stage(self, name: str) -> None:
            stages.append(name)

    runner.progress = Listener()
    runner.measure(Ask(LoadLevel(LevelKind.CLIENTS, 16.0), Phase.PROBE))
    assert stages == ["/block: 16 clients (probe)"]


def test_a_short_wait_is_performed() -> None:
    """Even with a maximum of less than a second, the server is checked before the load and after each step."""
    world = World(slow_for_s=1e9)
    runner = measured(world, [4, 8], recovery_longest_s=0.5)
    kinds = [what for _, what in world.requested]
    assert kinds[:3] == ["look", "4", "look"]
    assert runner.looks.reference_s == 0.2
    assert len(runner.looks.unrecovered) == 1


def test_every_check_sends_the_same_requests_and_completes() -> None:
    """Other requests would have other latencies, and a check that ended early would have no median."""
    world = World(slow_for_s=3.0)
    measured(world, [4, 8, 16], seed=7)
    looks = [order for order in world.orders if order["duration_s"] == 0.5]
    steps = [order for order in world.orders if order["duration_s"] != 0.5]
    assert [order["seed"] for order in steps] == [7, 8, 9]
    assert steps[1]["give_up"] is not None
    assert {(order["seed"], order["give_up"], order["threads"], order["warm_up_s"]) for order in looks} == {
        (7, None, 1, 0.0)
    }


@pytest.mark.parametrize("during", [1, 3])
def test_ctrl_c_during_a_check_ends_the_test_and_its_requests_count(during: int) -> None:
    """This applies to the reference check and to checks between steps."""
    world = World(slow_for_s=3.0, interrupt_at=during)
    runner = world.runner(TARGET, ENDPOINT, Sla(), StepSettings(recovery_longest_s=30.0), Silent())
    steps = during // 2
    for number in range(steps):
        runner.measure(Ask(LoadLevel(LevelKind.CLIENTS, number + 1.0), Phase.PROBE))
    with pytest.raises(Interrupted) as interrupted:
        runner.measure(Ask(LoadLevel(LevelKind.CLIENTS, 8.0), Phase.PROBE))
    assert interrupted.value.step is None
    assert len(runner.done) == steps
    assert runner.looks.count == during - steps


def test_no_endpoint_or_server_starts_with_the_backlog_of_another() -> None:
    """The reference of the second endpoint is also measured after the server has recovered."""
    world = World(slow_for_s=3.0)
    endpoints = tuple(Endpoint(name, f"/{name}", ENDPOINT.requests) for name in ("a", "b"))
    plan = LoadPlan(
        endpoint_sla=lambda _: Sla(),
        searches=(SearchPlan.of_clients(first=1, last=1, times=1),),
        settings=StepSettings(recovery_longest_s=30.0),
        fixed=FixedPlan(times=1, levels={name: (LoadLevel(LevelKind.CLIENTS, 2.0),) for name in "ab"}),
    )
    result = run_load_test([TargetServer(TARGET, endpoints)], plan, make_runner=world.runner)
    assert not result.interrupted
    assert [result.looks.reference_s for result in result.servers[0].endpoint_results] == [QUICK_S, QUICK_S]
    steps = [(name, what) for name, what in world.requested if what != "look"]
    assert steps == [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")]
    first_of_b = world.requested.index(("b", "look"))
    assert world.requested[first_of_b - 1] == ("a", "look"), "the wait checks the endpoint that was loaded"


@pytest.mark.parametrize(
    ("right", "failed", "expected"),
    [([0.1, 0.2, 0.3], 0, 0.2), ([0.1, 0.2, 0.3], 1, 0.2), ([0.1, 0.2], 2, 0.2), ([0.1], 2, None), ([], 0, None)],
)
def test_failures_count_as_slower_than_any_response(right: list[float], failed: int, expected: float | None) -> None:
    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.CLIENTS, 1.0), 0.0, 0.5)
    assert median_s(StepResult.of(order, finished(right, 0.5, failed)), Latencies) == expected


def test_the_reason_of_a_wait_is_shown() -> None:
    messages: list[tuple[float | str, str]] = []

    class Listener:
        def stage(self, name: str) -> None:
            messages.append((name, ""))

        def update(self, fraction: float, detail: str = "") -> None:
            messages.append((fraction, detail))

    for slow_s, message in ((0.2, "200 ms at one client"), (None, "not answered at one client")):
        world = World(slow_for_s=3.0, slow_s=slow_s)
        settings = StepSettings(recovery_longest_s=30.0)
        runner = world.runner(TARGET, ENDPOINT, Sla(), settings, Listener())
        messages.clear()
        runner.measure(Ask(LoadLevel(LevelKind.CLIENTS, 4.0), Phase.PROBE))
        runner.measure(Ask(LoadLevel(LevelKind.CLIENTS, 8.0), Phase.CONFIRM))
        stages = [place for place, (name, _) in enumerate(messages) if isinstance(name, str)]
        assert [messages[place][0] for place in stages] == [
            "/block: 4 clients (probe)",
            "/block: waiting until it is as quick as before 4 clients",
            "/block: 8 clients (confirm)",
        ]
        waited = messages[stages[1] + 1 : stages[2]]
        assert {detail for _, detail in waited} == {message}
        fractions = [fraction for fraction, _ in waited if isinstance(fraction, float)]
        assert fractions == sorted(fractions)
        assert 0.0 < fractions[-1] <= 0.11, "about 3 s of 30 s"


def test_a_configured_pause_precedes_the_first_check_of_the_server() -> None:
    """The pause alone may be long enough. A check before it would be wasted."""
    world = World(slow_for_s=3.0)
    measured(world, [4, 8], cool_down_s=20.0)
    assert [what for _, what in world.requested] == ["look", "4", "look", "8"]
    assert world.pauses.count(20.0) == 1


def test_a_check_waits_for_its_last_response_no_longer_than_the_longest_wait() -> None:
    """The first check waits as long as a step does. A check at the end of a wait uses the remaining time."""
    world = World(slow_for_s=1e9)
    runner = measured(world, [4, 8], recovery_longest_s=10.0, drain_s=20.0)
    drains = [order["drain_s"] for order in world.orders if order["duration_s"] == 0.5]
    assert drains[:2] == [20.0, 10.0]
    assert drains[1:] == sorted(drains[1:], reverse=True)
    assert drains[-1] < 2.0
    assert [order["drain_s"] for order in world.orders if order["duration_s"] != 0.5] == [20.0, 20.0]
    assert len(runner.looks.unrecovered) == 1
    short = World(slow_for_s=1.0)
    measured(short, [4, 8], drain_s=2.0)
    assert {order["drain_s"] for order in short.orders} == {2.0}


# --- the wait itself ------------------------------------------------------------------------------------------------

LEVEL = LoadLevel(LevelKind.CLIENTS, 4.0)


@dataclass
class Clock:
    """A clock that checks and pauses advance, and the medians that the checks return. The last median repeats."""

    medians: list[float | None]
    look_s: float = 0.25
    now_s: float = 50.0
    longest: list[float] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    lines: list[tuple[float, float | None]] = field(default_factory=list)

    def look(self, longest_s: float) -> float | None:
        """Perform a check, which takes some time."""
        self.longest.append(longest_s)
        self.now_s += self.look_s
        return self.medians.pop(0) if len(self.medians) > 1 else self.medians[0]

    def pause(self, seconds: float) -> None:
        """Advance the time."""
        self.pauses.append(seconds)
        self.now_s += seconds

    def wait(self, looks: HealthProbes, longest_s: float = 10.0) -> None:
        """Wait until the server has recovered."""
        tell = lambda fraction, p50_s: self.lines.append((fraction, p50_s))  # noqa: E731
        WaitPlan(self.look, longest_s, lambda: self.now_s, self.pause, tell).until_back(looks, LEVEL)


@pytest.mark.parametrize(("p50_s", "looked"), [(0.151, 1), (0.1511, 2), (0.05, 1), (None, 2)])
def test_a_latency_within_150_percent_plus_a_millisecond_counts_as_recovered(p50_s: float | None, looked: int) -> None:
    """The tolerance covers the noise of a few requests and of the scheduler."""
    looks, clock = HealthProbes(reference_s=0.1), Clock([p50_s, 0.1])
    assert looks.limit_s() == pytest.approx(0.151)
    clock.wait(looks)
    assert len(clock.longest) == looked
    assert (looks.reference_s, looks.unrecovered) == (0.1, [])
    at_the_limit = Clock([looks.limit_s()])
    at_the_limit.wait(looks)
    assert len(at_the_limit.longest) == 1


def test_there_is_no_wait_without_a_reference() -> None:
    clock = Clock([9.0])
    looks = HealthProbes()
    clock.wait(looks)
    assert (looks.limit_s(), clock.longest, looks.unrecovered) == (None, [], [])


@pytest.mark.parametrize("longest_s", [30.0, 30.5, 31.0])
def test_checks_are_a_tenth_of_the_elapsed_wait_apart(longest_s: float) -> None:
    """Checks are frequent at first, as most servers recover at once, then one second apart, within the maximum wait."""
    clock = Clock([9.0])
    looks = HealthProbes(reference_s=0.1)
    clock.wait(looks, longest_s)
    waited, expected = 0.0, []
    while (waited := waited + 0.25) < longest_s:
        expected.append(min(max(0.05, 0.1 * waited), 1.0, longest_s - waited))
        waited += expected[-1]
    assert clock.pauses == pytest.approx(expected)
    assert clock.pauses[0] == 0.05
    assert max(clock.pauses) == 1.0
    assert clock.longest[0] == longest_s
    assert clock.longest[-1] == 0.5, "a check without enough time left could not complete"
    assert clock.lines[0][0] == pytest.approx(0.25 / longest_s)
    assert {p50_s for _, p50_s in clock.lines} == {9.0}
    assert all(0.0 < fraction < 1.0 for fraction, _ in clock.lines)
    assert len(clock.lines) == len(clock.longest) - 1
    (unrecovered,) = looks.unrecovered
    assert (unrecovered.level, unrecovered.p50_s, unrecovered.reference_s) == (LEVEL, 9.0, 0.1)
    assert unrecovered.waited_s == pytest.approx(clock.now_s - 50.0)
    assert longest_s <= unrecovered.waited_s <= longest_s + 0.25
    assert looks.reference_s == 9.0


def test_a_wait_that_ends_on_the_second_is_over() -> None:
    clock = Clock([9.0], look_s=10.0)
    looks = HealthProbes(reference_s=0.1)
    clock.wait(looks, 10.0)
    assert (len(clock.longest), clock.pauses, len(looks.unrecovered)) == (1, [], 1)


def test_a_check_that_failed_until_the_end_does_not_become_the_reference() -> None:
    looks = HealthProbes(reference_s=0.1)
    Clock([9.0, None], look_s=5.0).wait(looks)
    assert looks.reference_s == 0.1
    assert looks.unrecovered[0].p50_s is None


def test_only_the_last_step_is_waited_for_and_only_once() -> None:
    recovery, waited = Recovery(), list[str]()
    recovery.settle()
    recovery.owe(lambda: waited.append("first"))
    recovery.owe(lambda: waited.append("second"))
    recovery.settle()
    recovery.settle()
    assert waited == ["second"]


def test_all_requests_of_a_check_are_counted() -> None:
    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.CLIENTS, 1.0), 0.0, 0.5)
    result = finished([0.1] * 3, 0.5, failed=2, unsent=1)
    result["warm_up"] = {"due": 5, "sent": 5, "ok": 5, "failed": 0, "unsent": 0}
    looks = HealthProbes()
    looks.add(StepResult.of(order, result))
    looks.add(StepResult.of(order, finished([0.1], 0.5)))
    counts = looks.counts
    assert (looks.count, counts.due, counts.ok, counts.failed, counts.unsent) == (2, 12, 9, 2, 1)
