"""Servers that go away in the middle of a test, and servers that only seem to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from chainmark.capacity.loadtest import FixedPlan, LoadPlan, LoadResult, run_load_test
from chainmark.capacity.loadtest import Server as Loaded
from chainmark.capacity.model import Endpoint, Request, Target
from chainmark.capacity.plan import SearchPlan
from chainmark.capacity.presence import Presence
from chainmark.capacity.search import StoppedBy
from chainmark.capacity.sla import Sla
from chainmark.capacity.step import StepRunner, StepSettings
from chainmark.core.progress import Progress

from tests.unit.capacity.queueing import TARGET, Latencies, finished

ENDPOINTS = tuple(Endpoint(name, f"/{name}", (Request("GET", f"/{name}"),)) for name in ("first", "second"))


@dataclass
class World:
    """A server that answers so many steps and then no more; times pass by pauses.

    Attributes:
        steps: that it answers.
        kind: of the failures from then on.
        listens: whether it still takes connections.
    """

    steps: int
    kind: str = "connect"
    listens: bool = False
    now_s: float = 0.0
    begun: int = 0
    asked: list[str] = field(default_factory=list)

    def pause(self, seconds: float) -> None:
        """Time goes by."""
        self.now_s += seconds

    def runner(
        self, target: Target, endpoint: Endpoint, sla: Sla, settings: StepSettings, progress: Progress
    ) -> StepRunner:
        """One whose engine is this world."""
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
            self.world.asked.append(self.endpoint)

    def progress(self) -> str:
        passed = round(100 * (self.world.now_s - self.begun_s))
        failed = 0 if self.is_answered else passed
        told = {"phase": "window", "elapsed_s": 0, "planned_s": 11, "in_flight": 0, "queued": 0, "started": passed}
        return json.dumps({**told, "ok": passed - failed, "failed": failed, "unanswered": failed})

    def running(self) -> bool:
        return not self.stopped and self.world.now_s - self.begun_s < self.order["duration_s"]

    def stop(self) -> None:
        self.stopped = True

    def finish(self) -> dict[str, Any]:
        took_s = int(self.world.now_s - self.begun_s) + 1
        ended = "stopped" if self.stopped and not self.is_look else "time"
        if self.is_answered:
            return finished([0.02] * 400, self.order["duration_s"], answered=[40] * took_s, ended=ended)
        told = finished([], 1.0, failed=20, answered=[0] * took_s, ended=ended)
        told["classes"][0] |= {"class": self.world.kind, "status": None, "told": {}}
        told["series"] |= {"failed": [20] + [0] * (took_s - 1), "errors": {self.world.kind: [20] + [0] * (took_s - 1)}}
        return told


def load_result(world: World) -> LoadResult:
    plan = LoadPlan(
        lambda _: Sla(), (SearchPlan.of_clients(last=8),), StepSettings(recovery_longest_s=5.0), FixedPlan(times=0)
    )
    return run_load_test([Loaded(TARGET, ENDPOINTS)], plan, make_runner=world.runner)


def test_a_server_that_is_gone_ends_the_test_and_fails_no_level() -> None:
    """It was "0 clients, SLA missed" after minutes of asking a closed port."""
    world = World(steps=2)
    result = load_result(world)
    assert result.gone is not None
    assert (result.gone.server, result.gone.why) == ("here", "it takes no connections")
    answer = next(iter(result.servers[0].found[0].answers.values()))
    assert (answer.stopped_by, answer.capacity, answer.high) == (StoppedBy.GONE, 2.0, None)
    assert answer.steps[-1].partial
    assert world.asked == ["first"] * 3, "nothing else is asked of it"
    assert world.now_s < 60.0


def test_a_server_that_hangs_is_waited_for_a_minute_and_then_gone() -> None:
    world = World(steps=1, kind="timeout", listens=True)
    result = load_result(world)
    assert result.gone is not None
    assert "answers nothing" in result.gone.why
    assert 60.0 <= world.now_s < 120.0


@pytest.mark.parametrize("steps", [100])
def test_a_server_that_answers_is_never_gone(steps: int) -> None:
    result = load_result(World(steps=steps))
    assert (result.gone, result.interrupted) == (None, False)


def test_a_server_that_somebody_restarts_is_not_gone() -> None:
    """Refused twice, it takes connections again."""
    taken = iter([False, False, True])
    now = [0.0]
    presence = Presence(TARGET, now.append, lambda: now[-1], lambda _: next(taken))
    presence.begin()
    told = {"ok": 5, "failed": 9, "unanswered": 9}
    assert not presence.is_lost(told)
    for second in (2.5, 3.5, 4.5):
        now.append(second)
        assert not presence.is_lost(told)


def test_errors_that_a_server_answers_are_no_silence() -> None:
    now = [0.0]
    presence = Presence(TARGET, now.append, lambda: now[-1], lambda _: False)
    presence.begin()
    for second in range(20):
        now.append(float(second))
        assert not presence.is_lost({"ok": 0, "failed": 10 * second, "unanswered": 0})
