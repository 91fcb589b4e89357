"""Several generators, one schedule, one result: local processes, processes on a cluster, and the loss of one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import chainmark as cm
from chainmark.capacity.engine import GENERATOR_LIMIT, native_engine
from chainmark.capacity.generators import Generators, Process
from chainmark.capacity.model import (
    Endpoint,
    LevelKind,
    LoadLevel,
    Phase,
    Request,
    StepOutcome,
    StepRequest,
    StepResult,
    Target,
)
from chainmark.capacity.sla import judge
from chainmark.capacity.step import run_step
from chainmark.capacity.witness import MachineWitness
from chainmark.core.errors import ExitCode
from chainmark.core.load_report import LoadReport
from chainmark.core.manifest import GateStatus
from chainmark.core.progress import Silent
from chainmark.core.verdict import Verdict
from chainmark.lab import loading
from chainmark.lab.protocols import ServiceRequest
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.http import SYSTEM

from tests.real.dask_cluster import local_cluster, wait_for_workers, watching
from tests.real.load_servers import Asked, Queue, Reply, always, known_profile, known_test, serving
from tests.support import ATTEMPTS
from tests.unit.capacity.elsewhere import Elsewhere

RATE, CLIENTS = LevelKind.RATE, LevelKind.CLIENTS
WORK = Endpoint("work", "/work", (Request("GET", "/work"), Request("GET", "/work?2")))
QUICK = always(Reply(after_s=0.005))


@dataclass
class Killing:
    """Responds at once; kills a generator during its ``at``-th request."""

    at: int
    kill: Callable[[], None]
    done: list[int] = field(default_factory=list)

    def __call__(self, request: Asked) -> Reply:
        """The server's response."""
        if request.number == self.at and not self.done:
            self.done.append(request.number)
            self.kill()
        return Reply(after_s=0.002)


def _order(url: str, kind: LevelKind, level: float, duration_s: float = 1.0) -> StepRequest:
    target = Target("known", url)
    return StepRequest(target, WORK, LoadLevel(kind, level), warm_up_s=0.2, duration_s=duration_s, max_records=100_000)


def _due_ns(result: StepResult) -> bytes:
    assert result.records is not None
    return result.records.due_ns


@pytest.mark.quiet
def test_two_processes_send_the_same_requests_as_one() -> None:
    others = set(psutil.Process().children(recursive=True))  # servers that the tests share
    with serving(QUICK) as server, Generators.here(2) as generators:
        order = _order(server.url, RATE, 300.0)
        alone = run_step(order, make_engine=native_engine)
        before = server.requested.total()
        both = run_step(order, make_engine=generators.make)
        assert (both.counts, both.warm_up) == (alone.counts, alone.warm_up)
        assert _due_ns(both) == _due_ns(alone)
        assert server.requested.total() - before == both.counts.sent + both.warm_up.sent
        # Both requests alternate, although each process sends every second one.
        assert server.requested["/work"] == server.requested["/work?2"]
        assert ([generator.lost for generator in both.generators], both.threads, both.ended) == (["", ""], 2, "time")

        clients = run_step(_order(server.url, CLIENTS, 5.0), make_engine=generators.make)
        assert (clients.counts.failed, clients.connections.opened) == (0, 5)
        assert clients.counts.ok == clients.counts.due == clients.latency.n > 0

        def interrupted(_: float) -> None:
            raise KeyboardInterrupt

        stopped = run_step(_order(server.url, CLIENTS, 5.0, 60.0), make_engine=generators.make, pause=interrupted)
        assert (stopped.ended, stopped.counts.failed) == ("stopped", 0)
    assert set(psutil.Process().children(recursive=True)) <= others


@pytest.mark.parametrize("kind", [CLIENTS, RATE])
def test_a_killed_generator_is_named_and_its_part_of_the_load_is_lost(kind: LevelKind) -> None:
    """The step ends at once, is limited by the generator, and its counts add up. The next step is complete again."""
    places = (Process(), Process())
    server_kills = Killing(60, lambda: os.kill(places[1].pid, signal.SIGKILL))
    with serving(server_kills) as server, Generators(places) as generators:
        order = _order(server.url, kind, {CLIENTS: 4.0, RATE: 200.0}[kind], 60.0)
        result = run_step(order, make_engine=generators.make)
        (error,) = [error for error in result.errors if error.kind == GENERATOR_LIMIT]
        assert error.detail.startswith("generator 2 of 2 was lost: its process ")
        assert error.detail.endswith(" ended by signal 9")
        assert result.counts.failed == error.count > 0
        assert (result.ended, result.window_s < 30.0) == ("gave up", True)
        if kind is RATE:
            # All requests due until the end. The lost generator had every second one.
            due = round(200.0 * (result.window_s + 0.2))
            assert result.counts.due + result.warm_up.due == pytest.approx(due, abs=2)
            assert result.counts.failed == pytest.approx(result.counts.due / 2, abs=1)
        step = judge(result, known_profile().endpoint_sla("work"), Phase.PROBE)
        assert step.outcome is StepOutcome.GENERATOR_LIMITED
        again = run_step(_order(server.url, kind, order.level.value), make_engine=generators.make)
        assert (again.counts.failed, [generator.lost for generator in again.generators]) == (0, ["", ""])


class Endless(Process):
    """A generator that never reports the end of its load."""

    def ask(self, command: str, argument: Any = None) -> dict[str, Any]:
        """Its reply."""
        reply = super().ask(command, argument)
        return {"answer": {**reply["answer"], "phase": "measuring"}} if command == "progress" else reply


def test_a_generator_whose_load_does_not_end_is_not_waited_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended, so that no later step has its load too."""
    monkeypatch.setattr("chainmark.capacity.generators._OVERDUE_S", 0.0)
    endless = Endless()
    with serving(QUICK) as server, Generators((Process(), endless)) as both:
        order = replace(_order(server.url, CLIENTS, 4.0), drain_s=0.5, timeout_s=0.5)
        result = run_step(order, make_engine=both.make)
        (error,) = [error for error in result.errors if error.kind == GENERATOR_LIMIT]
        assert error.detail == "generator 2 of 2 was lost: its load did not end within 2.2 s"
        assert endless.pid == 0


@pytest.mark.quiet
def test_the_capacity_does_not_depend_on_the_number_of_generators(tmp_path: Path) -> None:
    """Each of n clients waits n/k service times: p99 exceeds T at k·T/S clients."""
    queue, limit_s = Queue(workers=4, service_s=0.01), 0.2
    profile: dict[str, Any] = {
        "sla": {"p99_s": limit_s},
        "search": {"clients_first": 60, "relative_gap": 0.1},
        "steps": {"warm_up_s": limit_s, "generators": 2},
    }
    for _ in range(ATTEMPTS):  # a stall of the machine reduces the capacity of this queue
        queue.free_at_s.clear()
        with serving(queue) as server:
            test = known_test(Store(tmp_path), server, **profile)
        (target,) = test.report.targets
        (capacity,) = target.endpoints[0].capacities
        if capacity.capacity == pytest.approx(queue.per_s * limit_s, rel=0.1):
            break
    assert capacity.capacity == pytest.approx(queue.per_s * limit_s, rel=0.1)
    assert ("Load generators", "2 processes on this machine") in [(fact.label, fact.value) for fact in target.facts]
    counts = test.runs[0].manifest.counts["requests to /work"]
    assert counts["failed"] == counts["unsent"] == 0


def _generator_gate(run: SealedRun) -> GateStatus:
    return next(gate.status for gate in run.manifest.gates if gate.id == "generator")


FIXED = {"search": {"kinds": []}, "fixed": {"clients": {"work": [4]}, "times": 1, "duration_s": 2}}


def test_a_run_that_lost_a_generator_is_invalid_with_that_reason(tmp_path: Path) -> None:
    places = (Process(), Process())
    killing = Killing(60, lambda: os.kill(places[0].pid, signal.SIGKILL))
    tester = loading.Tester(Store(tmp_path), SYSTEM, watching=None, generators=lambda _: Generators(places))
    with serving(killing) as server:
        order = ServiceRequest(Target("known", server.url))
        test = tester.make(known_profile(**FIXED), [order], 1, Silent())
    (run,) = test.runs
    assert (run.manifest.status.value, _generator_gate(run)) == ("invalid", GateStatus.FAIL)
    (warning,) = [text for text in run.manifest.warnings if "was lost" in text]
    assert warning.startswith("/work: 4 clients: generator 1 of 2 was lost: its process ")


PROFILE = """
system = "http"
sla = { p99_s = 1.0 }
steps = { warm_up_s = 0.2, cool_down_s = 0, recovery_longest_s = 0 }
search = { kinds = [] }
fixed = { clients = { work = [4] }, times = 1, duration_s = 2 }

[[request]]
endpoint = "work"
path = "/work"
"""


@pytest.mark.quiet
def test_workers_of_a_cluster_generate_the_load_until_one_is_killed(tmp_path: Path) -> None:
    profile = tmp_path / "work.toml"
    profile.write_text(PROFILE, encoding="utf-8")

    def loaded(url: str) -> SealedRun:
        (run,) = cm.load(profile, url, on=cluster.address, store=tmp_path / "store").runs
        return run.sealed

    with local_cluster() as cluster, watching(cluster) as seen:
        for number in (2, 3):
            cluster.start_worker(number)
        wait_for_workers(seen, {"w2", "w3"})
        addresses = sorted(worker.address for worker in seen.workers())
        with serving(QUICK) as server:
            run = loaded(server.url)
        assert _generator_gate(run) is GateStatus.PASS
        facts = {fact.label: fact.value for fact in run.manifest.facts}
        assert facts["Load generators"] == f"2 processes, on {addresses[0]} and {addresses[1]}"
        assert run.manifest.counts["requests to /work"]["failed"] == 0

        with serving(Killing(100, lambda: cluster.kill("w3"))) as server:
            run = loaded(server.url)
        assert run.manifest.status.value == "invalid"
        assert any(
            "generator 2 of 2 was lost: the worker tcp://127.0.0.3:" in warning for warning in run.manifest.warnings
        )


@pytest.mark.quiet
def test_a_search_ends_when_the_worker_of_a_generator_is_gone(tmp_path: Path) -> None:
    """No further step could succeed, and a faster machine would not help. The step in which it was lost remains."""
    search = 'search = { kinds = ["rate"], rate_first = 100, rate_last = 400 }'
    fixed = "fixed = { clients = { work = [4] }, times = 1, duration_s = 2 }"
    text = PROFILE.replace("search = { kinds = [] }", search).replace(fixed, "").replace("0.2,", "0.2, duration_s = 4,")
    profile = tmp_path / "work.toml"
    profile.write_text(text, encoding="utf-8")
    with local_cluster() as cluster, watching(cluster) as seen:
        for number in (2, 3):
            cluster.start_worker(number)
        wait_for_workers(seen, {"w2", "w3"})

        kill_soon = threading.Timer(2.5, cluster.kill, ["w3"])

        class AtFirstStep(Silent):
            def stage(self, name: str) -> None:
                if ": 100/s" in name and kill_soon.ident is None:
                    kill_soon.start()

        with serving(QUICK) as server:
            loaded = cm.load(profile, server.url, on=cluster.address, store=tmp_path / "store", progress=AtFirstStep())
    (document,) = loaded.documents
    assert document.verdict is Verdict.GENERATOR_GONE
    assert document.verdict.exit_code is ExitCode.ENVIRONMENT
    assert document.sentence.startswith("Load generator 2 of 2 went away at ")
    assert ": the worker tcp://127.0.0.3:" in document.sentence
    report = document.result
    assert isinstance(report, LoadReport)
    (entry,) = report.targets[0].endpoints
    (capacity,) = entry.capacities
    assert (capacity.stopped_by, capacity.finding) == ("generator gone", "unsettled")
    (step,) = entry.steps
    assert step.failed > 0
    assert {error.kind for error in step.errors} == {GENERATOR_LIMIT}
    (run,) = loaded.runs
    assert "load generator 2 of 2 was gone" in "; ".join(gate.measured for gate in run.sealed.manifest.failed_gates)


def _busy_s() -> float:
    """Let another process compute; return its CPU time in seconds."""
    before = psutil.Process().cpu_times().children_user
    subprocess.run([sys.executable, "-c", "sum(range(20_000_000))"], check=True)
    return psutil.Process().cpu_times().children_user - before


def test_other_work_on_the_machine_of_a_generator_counts_and_not_that_of_this_one() -> None:
    """The load comes from there: this machine's other work slows nothing.

    Work of low priority would not count, so this test is not one of those that run at the lowest priority.
    """
    with Generators([Elsewhere(), Elsewhere()]) as generators:
        watch = MachineWitness("http://192.0.2.1:80", generators)
        with watch:
            begin_ns = time.time_ns()
            busy_s = _busy_s()
            edges_ns = np.array([begin_ns, time.time_ns()], dtype=float)
        (contended_s,) = watch._contended(np.array([1000.0]), edges_ns)
    assert 0.5 * busy_s < contended_s < 1000.0
