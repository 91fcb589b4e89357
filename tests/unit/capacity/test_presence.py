"""Servers that become unreachable during a test, and servers that only appear to."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chainmark.capacity.loadtest import FixedPlan, LoadPlan, LoadTestResult, run_load_test
from chainmark.capacity.loadtest import TargetServer as Loaded
from chainmark.capacity.model import Endpoint, Gone, LevelKind, LoadLevel, Phase, Request, Step, StepOutcome, Target
from chainmark.capacity.plan import SearchPlan
from chainmark.capacity.presence import Presence, takes_connections
from chainmark.capacity.search import Ask, Interrupted, StoppedBy
from chainmark.capacity.service_level import Sla
from chainmark.capacity.step import StepRunner, StepSettings
from chainmark.core.progress import Progress, Silent

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Latencies, finished

ENDPOINTS = tuple(Endpoint(name, f"/{name}", (Request("GET", f"/{name}"),)) for name in ("first", "second"))


@dataclass
class World:
    """A server that responds for a number of steps and then stops. Only pauses advance the time.

    Attributes:
        steps: number of steps with responses.
        kind: of the failures from then on.
        listens: whether the server still accepts connections.

    """

    steps: int
    kind: str = "connect"
    listens: bool = False
    now_s: float = 0.0
    begun: int = 0
    requested: list[str] = field(default_factory=list)

    def pause(self, seconds: float) -> None:
        """Advance the time."""
        self.now_s += seconds

    def runner(
        self, target: Target, endpoint: Endpoint, sla: Sla, settings: StepSettings, progress: Progress
    ) -> StepRunner:
        """A step runner with an engine of this world."""
        make: Callable[[str], Any] = lambda text: _Load(self, endpoint.id, json.loads(text))  # noqa: E731
        return StepRunner(
            target, endpoint, sla, settings, progress, make, Latencies, self.pause, lambda: self.now_s,
            listens=lambda _: self.listens,
        )  # fmt: skip


@dataclass
class _Load:
    world: World
    endpoint: str
    order: dict[str, Any]
    begun_s: float = 0.0
    stopped: bool = False

    @property
    def is_look(self) -> bool:
        return bool(self.order["duration_s"] == 0.5)

    @property
    def is_answered(self) -> bool:
        return self.world.begun <= self.world.steps

    def start(self) -> None:
        self.begun_s = self.world.now_s
        if not self.is_look:
            self.world.begun += 1
            self.world.requested.append(self.endpoint)

    def progress(self) -> str:
        passed = round(100 * (self.world.now_s - self.begun_s))
        failed = 0 if self.is_answered else passed
        state = {"phase": "window", "elapsed_s": 0, "planned_s": 11, "in_flight": 0, "queued": 0, "started": passed}
        return json.dumps({**state, "ok": passed - failed, "failed": failed, "unanswered": failed})

    def running(self) -> bool:
        return not self.stopped and self.world.now_s - self.begun_s < self.order["duration_s"]

    def stop(self) -> None:
        self.stopped = True

    def finish(self) -> dict[str, Any]:
        took_s = int(self.world.now_s - self.begun_s) + 1
        ended = "stopped" if self.stopped and not self.is_look else "time"
        if self.is_answered:
            return finished([0.02] * 400, self.order["duration_s"], answered=[40] * took_s, ended=ended)
        result = finished([], 1.0, failed=20, answered=[0] * took_s, ended=ended)
        result["classes"][0] |= {"class": self.world.kind, "status": None, "reported": {}}
        result["series"] |= {
            "failed": [20] + [0] * (took_s - 1),
            "errors": {self.world.kind: [20] + [0] * (took_s - 1)},
        }
        return result


def load_result(world: World) -> LoadTestResult:
    plan = LoadPlan(
        lambda _: Sla(), (SearchPlan.of_clients(last=8),), StepSettings(recovery_longest_s=5.0), FixedPlan(times=0)
    )
    return run_load_test([Loaded(TARGET, ENDPOINTS)], plan, make_runner=world.runner)


def test_an_unreachable_server_ends_the_test_and_fails_no_level() -> None:
    """This was reported as "0 clients, SLA missed" after minutes of requests to a closed port."""
    world = World(steps=2)
    result = load_result(world)
    assert result.gone is not None
    assert (result.gone.server, result.gone.why) == ("here", "it accepts no connections")
    answer = next(iter(result.servers[0].endpoint_results[0].answers.values()))
    assert (answer.stopped_by, answer.capacity, answer.high) == (StoppedBy.GONE, 2.0, None)
    assert answer.steps[-1].partial
    assert world.requested == ["first"] * 3, "no further request is sent to the other endpoint"
    assert world.now_s < 60.0


def test_a_server_that_hangs_for_a_minute_counts_as_unreachable() -> None:
    world = World(steps=1, kind="timeout", listens=True)
    result = load_result(world)
    assert result.gone is not None
    assert "does not respond to one client" in result.gone.why
    assert 60.0 <= world.now_s < 120.0


@pytest.mark.parametrize("steps", [100])
def test_a_server_that_responds_is_never_unreachable(steps: int) -> None:
    result = load_result(World(steps=steps))
    assert (result.gone, result.interrupted) == (None, False)


def test_a_restarting_server_is_not_unreachable() -> None:
    """It refuses connections twice and then accepts them again."""
    taken = iter([False, False, True])
    now = [0.0]
    presence = Presence(TARGET, now.append, lambda: now[-1], lambda _: next(taken))
    presence.begin()
    counts = {"ok": 5, "failed": 9, "unanswered": 9}
    assert not presence.is_lost(counts)
    for second in (2.5, 3.5, 4.5):
        now.append(second)
        assert not presence.is_lost(counts)


def test_error_responses_are_not_silence() -> None:
    now = [0.0]
    presence = Presence(TARGET, now.append, lambda: now[-1], lambda _: False)
    presence.begin()
    for second in range(20):
        now.append(float(second))
        assert not presence.is_lost({"ok": 0, "failed": 10 * second, "unanswered": 0})


def test_a_step_at_an_unreachable_server_ends_early() -> None:
    """Two minutes of requests to a closed port show no more than a few seconds."""
    world = World(steps=0)
    runner = world.runner(TARGET, ENDPOINTS[0], Sla(), StepSettings(duration_s=120.0), Silent())
    with pytest.raises(Interrupted) as ended:
        runner.measure(Ask(LoadLevel(LevelKind.CLIENTS, 4.0), Phase.PROBE))
    assert world.now_s < 20.0
    assert ended.value.gone is not None
    assert ended.value.step is not None
    assert ended.value.step.result.ended == "gave up", "the step is not reported as interrupted"


# --- one step at a time ---------------------------------------------------------------------------------------------

STARTED_NS = 1_700_000_000_000_000_000


@dataclass
class _Scripted:
    """Engines with prepared results, and a server that accepts connections or not.

    Attributes:
        ends: the result of each step or check.
        counts: successful and failed requests at each poll of a running step.

    """

    ends: list[dict[str, Any]]
    listens: bool = True
    counts: list[tuple[int, int]] = field(default_factory=list)
    orders: list[dict[str, Any]] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    sla: Sla = field(default_factory=Sla)
    requested: int = 0
    stopped: int = 0

    def runner(self, **settings: Any) -> StepRunner:
        return StepRunner(
            TARGET, ENDPOINT, self.sla, StepSettings(**settings), self, self._engine, Latencies, self.pauses.append,
            lambda: sum(self.pauses), listens=self._listens,
        )  # fmt: skip

    def measure(self, runner: StepRunner | None = None) -> Step:
        return (runner or self.runner()).measure(Ask(LoadLevel(LevelKind.CLIENTS, 4.0), Phase.PROBE))

    def stage(self, name: str) -> None:
        self.stages.append(name)

    def update(self, fraction: float, detail: str = "") -> None:
        pass

    def _listens(self, url: str) -> bool:
        assert url == TARGET.url
        self.requested += 1
        return self.listens

    def _engine(self, text: str) -> Any:
        self.orders.append(json.loads(text))
        return self

    def start(self) -> None:
        pass

    def progress(self) -> str:
        ok, failed = self.counts.pop(0)
        counts = {"ok": ok, "failed": failed, "unanswered": 0}
        return json.dumps({**counts, "phase": "window", "elapsed_s": 0, "planned_s": 1})

    def running(self) -> bool:
        return bool(self.counts)

    def stop(self) -> None:
        self.stopped += 1

    def finish(self) -> dict[str, Any]:
        return self.ends.pop(0)


def _silent(answered: list[int], failed: int = 20, kind: str = "timeout") -> dict[str, Any]:
    """These responses per second, and failures of one kind in the last second."""
    result = finished([0.1] * sum(answered), 10.0, failed, answered=answered)
    result["classes"][0] |= {"class": kind, "status": None, "reported": {}}
    failures = [*[0] * (len(answered) - 1), failed]
    result["series"] |= {"failed": failures, "errors": {kind: failures}}
    return result


THREE_SECONDS = [40, 40, 40, *[0] * 8]


def test_a_server_that_responds_again_after_a_silence_is_judged_by_the_step() -> None:
    """The check uses one client and waits as long as a server that clears its queue may take to respond."""
    script = _Scripted([_silent(THREE_SECONDS), finished([5.0] * 3, 0.5)])
    runner = script.runner(seed=7, records=50, drain_s=2.0, timeout_s=1.0, threads=3)
    step = script.measure(runner)
    assert (step.outcome, step.partial, runner.done) == (StepOutcome.FAIL, False, [step])
    assert script.stages[-1] == "/block: no response; checking whether the server is reachable"
    look = script.orders[1]
    assert look["mode"] == {"closed": {"clients": 1}}
    assert (look["warm_up_s"], look["duration_s"], look["drain_s"], look["timeout_s"]) == (0.0, 0.5, 60.0, 60.0)
    assert (look["give_up"], look["max_records"], look["threads"], look["seed"]) == (None, 0, 1, 7)
    assert (runner.looks.count, runner.looks.counts.due, script.stopped) == (1, 3, 1)


def test_a_server_that_stays_silent_was_unreachable_from_its_last_response_on() -> None:
    """Nothing in the step fails the server. Only the time at which it became unreachable is known."""
    script = _Scripted([_silent(THREE_SECONDS), _silent([0], kind="connect")], listens=False)
    runner = script.runner()
    with pytest.raises(Interrupted) as ended:
        script.measure(runner)
    assert ended.value.gone == Gone("here", STARTED_NS + 3_000_000_000, "it accepts no connections")
    assert ended.value.step is not None
    assert (ended.value.step.partial, ended.value.step.result.counts.ok) == (True, 120)
    assert runner.done == []


def test_a_server_that_stops_at_the_end_of_a_step_is_unreachable() -> None:
    """The silence is too short to be detected within the step, and the next step must not start."""
    failing = finished([0.1] * 300, failed=100, answered=[30] * 11)
    script = _Scripted([failing], listens=False)
    with pytest.raises(Interrupted) as ended:
        script.measure()
    assert ended.value.gone == Gone("here", STARTED_NS + 11_000_000_000, "it accepts no connections")
    assert ended.value.step is not None
    assert ended.value.step.partial
    assert len(script.orders) == 1, "no check is sent to a server that refuses connections"
    there = _Scripted([failing])
    assert there.measure().outcome is StepOutcome.FAIL
    assert there.requested == 1


@pytest.mark.parametrize(
    ("counts", "outcome"),
    [
        (finished([2.0] * 300), StepOutcome.FAIL),
        (finished([0.1] * 3000, failed=1), StepOutcome.PASS),
        (finished([0.1] * 3000), StepOutcome.PASS),
    ],
    ids=["slow", "one failure", "quick"],
)
def test_the_presence_of_a_responding_server_is_not_probed(counts: dict[str, Any], outcome: StepOutcome) -> None:
    """A search has dozens of steps, and connections of the probe would be part of its load."""
    script = _Scripted([counts], listens=False, sla=Sla(error_share=0.01))
    assert script.measure().outcome is outcome
    assert script.requested == 0


def test_an_interrupted_step_is_not_evidence_of_the_servers_presence() -> None:
    """Otherwise a user who presses Ctrl-C would wait for a minute."""
    script = _Scripted([_silent(THREE_SECONDS) | {"ended": "time"}], listens=False, counts=[(0, 0)])

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    runner = script.runner()
    runner.pause = interrupt
    with pytest.raises(Interrupted) as ended:
        script.measure(runner)
    assert ended.value.gone is None
    assert ended.value.step is not None
    assert (ended.value.step.partial, ended.value.step.result.ended) == (True, "stopped")
    assert (script.requested, script.stopped, len(script.orders)) == (0, 1, 1)


@pytest.mark.parametrize(
    ("look", "gone"),
    [
        (_silent([0], kind="connect"), True),
        (_silent([0], kind="reset"), True),
        (_silent([0], 1), True),
        (_silent([1]), False),  # one successful response
        (finished([], 0.5, failed=3), False),  # errors are responses
        (finished([], 0.5), False),  # no request was sent
    ],
    ids=["refused", "reset", "one request", "one answer", "errors", "nothing"],
)
def test_a_server_that_is_unreachable_before_the_first_step_ends_the_test(look: dict[str, Any], *, gone: bool) -> None:
    script = _Scripted([look, finished([0.1] * 300)], listens=False)
    runner = script.runner(recovery_longest_s=30.0)
    if not gone:
        script.measure(runner)
        return
    with pytest.raises(Interrupted) as ended:
        script.measure(runner)
    assert ended.value.gone == Gone("here", STARTED_NS, "it accepts no connections")
    assert ended.value.step is None
    assert len(script.orders) == 1


def test_a_server_that_accepts_connections_is_measured_despite_a_silent_check() -> None:
    script = _Scripted([_silent([0]), finished([0.1] * 300)])
    runner = script.runner(recovery_longest_s=30.0)
    script.measure(runner)
    assert runner.looks.reference_s is None


@pytest.mark.parametrize(
    ("counts", "looked"),
    [([(2, 0), (9, 0), (10, 0), (11, 0)], 2), ([(0, 4), (5, 5), (6, 5)], 1), ([(1, 0), (2, 0)], 2)],
    ids=["answers", "failures", "slow"],
)
def test_a_check_ends_after_ten_responses_or_its_timeout(counts: list[tuple[int, int]], looked: int) -> None:
    """A longer check would itself be a load between the steps."""
    script = _Scripted([finished([0.1] * 10, 0.5)], counts=counts)
    runner = script.runner(recovery_longest_s=30.0)
    runner.refer()
    assert script.pauses == [0.005] * looked
    assert (script.stopped, runner.looks.count, runner.looks.reference_s) == (1, 1, 0.1)
    runner.refer()
    assert len(script.orders) == 1, "the reference is already known"


# --- whether the server is present ----------------------------------------------------------------------------------


@dataclass
class _Silence:
    """A clock that a test sets, and a server that accepts connections or not."""

    now_s: float = 100.0
    takes: bool = False
    asked_at: list[float] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def presence(self) -> Presence:
        return Presence(TARGET, self.pause, lambda: self.now_s, self.listens)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds

    def listens(self, url: str) -> bool:
        assert url == TARGET.url
        self.asked_at.append(self.now_s - 100.0)
        return self.takes

    def lost_at(self, presence: Presence, until_s: float, counts_at: Callable[[float], dict[str, int]]) -> float | None:
        """Poll four times per second. Return the time at which the server counts as lost."""
        for quarter in range(round(4 * until_s)):
            self.now_s = 100.0 + quarter / 4
            if presence.is_lost(counts_at(quarter / 4)):
                return quarter / 4
        return None


def unanswered(at_s: float) -> dict[str, int]:
    """Seven responses, three of them errors, and a growing number of requests without a response."""
    return {"ok": 4, "failed": 3 + int(10 * at_s), "unanswered": int(10 * at_s)}


def test_a_server_is_lost_after_two_silent_seconds_and_three_refusals_one_second_apart() -> None:
    silence = _Silence()
    presence = silence.presence()
    presence.begin()
    assert silence.lost_at(presence, 9.0, unanswered) == 4.0
    assert silence.asked_at == [2.0, 3.0, 4.0]
    # The next step starts from zero, whatever the last one observed, even with a single response.
    presence.begin()
    silence.asked_at.clear()
    assert silence.lost_at(presence, 9.0, lambda at_s: {**unanswered(at_s), "ok": 1, "failed": int(10 * at_s)}) == 4.0
    assert silence.asked_at == [2.0, 3.0, 4.0]


def test_a_response_ends_a_silence() -> None:
    """The silence starts at the last response: at 3.5 s, after two refusals, one more response arrived."""
    silence = _Silence()
    presence = silence.presence()
    presence.begin()

    def counts_at(at_s: float) -> dict[str, int]:
        counts = unanswered(at_s)
        return counts | {"ok": counts["ok"] + (at_s >= 3.5)}

    assert silence.lost_at(presence, 20.0, counts_at) == 7.5
    assert silence.asked_at == [2.0, 3.0, 5.5, 6.5, 7.5]


def test_a_server_that_accepts_connections_is_probed_every_two_seconds() -> None:
    silence = _Silence(takes=True)
    presence = silence.presence()
    presence.begin()
    assert silence.lost_at(presence, 9.0, unanswered) is None
    assert silence.asked_at == [2.0, 4.0, 6.0, 8.0]


def test_the_server_is_not_probed_if_no_request_is_pending() -> None:
    """At the end of a step all requests have a response and no further ones are sent."""
    silence = _Silence()
    presence = silence.presence()
    presence.begin()
    assert silence.lost_at(presence, 9.0, lambda _: {"ok": 4, "failed": 3, "unanswered": 0}) is None
    assert silence.asked_at == []


@pytest.mark.parametrize(
    ("answers", "refuses", "pauses"),
    [([True], False, []), ([False, True], False, [1.0]), ([False, False, False], True, [1.0, 1.0])],
)
def test_a_server_refuses_after_three_refusals_one_second_apart(
    answers: list[bool], pauses: list[float], *, refuses: bool
) -> None:
    """By then a server that restarts at once accepts connections again."""
    left, paused = list(answers), list[float]()
    presence = Presence(TARGET, paused.append, lambda: 0.0, lambda _: left.pop(0))
    assert presence.refuses() is refuses
    assert (paused, left) == (pauses, [])


def test_a_silent_server_that_listens_is_probed_for_a_minute() -> None:
    silence = _Silence(takes=True)
    longest: list[float] = []

    def look(longest_s: float) -> bool:
        longest.append(longest_s)
        silence.now_s += 25.0
        return False

    assert silence.presence().gone(7, look) == Gone("here", 7, "it does not respond to one client within 60 s")
    assert longest == [60.0, 35.0, 10.0]
    longest.clear()

    def look_a_third(longest_s: float) -> bool:
        silence.now_s -= 5.0
        return look(longest_s)

    assert silence.presence().gone(7, look_a_third) is not None
    assert longest == [60.0, 40.0, 20.0], "the checks end after 60 s in total"
    longest.clear()
    assert silence.presence().gone(7, lambda longest_s: look(longest_s) or len(longest) == 2) is None
    assert longest == [60.0, 35.0]
    silence.takes = False
    longest.clear()
    assert silence.presence().gone(8, look) == Gone("here", 8, "it accepts no connections")
    assert longest == [60.0]


def test_the_probe_connects_to_the_servers_own_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/path"
        assert takes_connections(url)
    assert not takes_connections(url)
    attempts: list[tuple[tuple[str, int], float]] = []

    def refuse(address: tuple[str, int], timeout_s: float) -> None:
        attempts.append((address, timeout_s))
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refuse)
    for url in ("http://a.example", "https://b.example/x", "https://c.example:8443"):
        assert not takes_connections(url)
    assert attempts == [(("a.example", 80), 1.0), (("b.example", 443), 1.0), (("c.example", 8443), 1.0)]


def test_the_probe_connects_to_a_socket_in_the_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a timeout the probe would wait forever for a server that is stuck and whose queue is full."""
    timeouts_s = list[float | None]()

    class Timed(socket.socket):
        def connect(self, address: Any) -> None:
            timeouts_s.append(self.gettimeout())
            super().connect(address)

    monkeypatch.chdir(tmp_path)  # a socket's path has at most 107 characters
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("node.sock")
        server.listen()
        monkeypatch.setattr(socket, "socket", Timed)
        assert takes_connections("unix:node.sock")
    assert not takes_connections("unix:node.sock")
    assert timeouts_s == [1.0, 1.0]
