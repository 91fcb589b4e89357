"""Servers that fail on purpose: every failure is classified correctly, and all counts add up."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from chainmark.capacity.model import Target, Tls
from chainmark.capacity.verdict import verdict
from chainmark.core.errors import EnvironmentFailure, ExitCode, UsageError
from chainmark.core.load_report import ErrorEntry, StepEntry
from chainmark.core.progress import Silent
from chainmark.lab.loading import LoadTest
from chainmark.lab.protocols import ServedSystem, ServiceRequest
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.http import SYSTEM as HTTP
from chainmark.systems.mesh import SYSTEM as MESH

from tests.real.load_servers import (
    Asked,
    Behaviour,
    Ends,
    LoadServer,
    Reply,
    Stalls,
    Then,
    always,
    every,
    known_profile,
    known_test,
    load_test,
    mesh_error,
    nobody_listens,
    self_signed,
    serving,
)

ONE = {"clients_first": 1, "clients_last": 1}
MESH_ERROR = mesh_error(12, "block not found", retriable=True)
REPORTED = {"code": "12", "message": "block not found", "retriable": "true"}


def _steps(test: LoadTest) -> list[StepEntry]:
    steps = test.report.targets[0].endpoints[0].steps
    for step in steps:
        assert step.due == step.ok + step.failed + step.unsent
        assert step.failed == sum(error.count for error in step.errors)
    return steps


def _exit_code(test: LoadTest) -> ExitCode:
    return verdict(test.report)[0].exit_code


def _failing(reply: Reply, tmp_path: Path, nth: int = 5) -> tuple[LoadTest, list[ErrorEntry]]:
    """Test a server that sends this reply to every nth request; return the errors of the first step."""
    with serving(Then(every(nth, reply))) as server:
        test = known_test(Store(tmp_path), server, search=ONE)
    (capacity,) = test.report.targets[0].endpoints[0].capacities
    assert (capacity.capacity, capacity.stopped_by, capacity.condition) == (0.0, "first step", "errors")
    assert _exit_code(test) is ExitCode.FAIL
    return test, _steps(test)[0].errors


def test_an_error_body_with_a_success_status_is_an_error(tmp_path: Path) -> None:
    """A load test that checks only the status would call this server perfect."""
    _, errors = _failing(Reply(MESH_ERROR, after_s=0.002), tmp_path)
    (error,) = errors
    assert (error.kind, error.status, error.reported) == ("wrong answer", 200, REPORTED)
    assert "/right" in error.detail


def test_a_server_error_is_reported_with_its_message(tmp_path: Path) -> None:
    test, errors = _failing(Reply(MESH_ERROR, 500, after_s=0.002), tmp_path)
    (error,) = errors
    assert (error.kind, error.status, error.reported) == ("status", 500, REPORTED)
    frame = test.runs[0].events("errors")
    assert frame.filter(pl.col("step") == 0)["count"].to_list() == [error.count]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(b"<html>busy</html>", content_type="text/html", after_s=0.002), "answer"),
        (Reply(b'{"right":false}', after_s=0.002), "wrong answer"),
        (Reply(ends=Ends.BEFORE, after_s=0.002), "closed"),
        (Reply(ends=Ends.HALF, after_s=0.002), "closed"),
        (Reply(ends=Ends.RESET, after_s=0.002), "reset"),
    ],
)
def test_other_failures_are_reported_by_kind(reply: Reply, kind: str, tmp_path: Path) -> None:
    _, errors = _failing(reply, tmp_path)
    assert {error.kind for error in errors} == {kind}


def test_a_server_that_goes_down_during_a_test_fails_no_level(tmp_path: Path) -> None:
    """The server is down, not slow: no level fails for it, earlier results are stored, others are not measured."""
    servers: list[LoadServer] = []

    def behaviour(request: Asked) -> Reply:
        if request.number == 1200:
            servers[0].go_down()
        return Reply(after_s=0.002)

    with serving(behaviour) as server:
        servers.append(server)
        search = {"clients_last": 64, "times": 3, "kinds": ["clients", "rate"]}
        test = known_test(Store(tmp_path), server, search=search)
    steps = _steps(test)
    assert not steps[0].partial
    assert steps[-1].partial
    assert not [step for step in steps[:-1] if step.outcome == "fail"]
    (target,) = test.report.targets
    assert target.gone is not None
    assert [name for name in target.skipped if "rate" in name]
    assert (_exit_code(test), test.runs[0].manifest.status.value) == (ExitCode.ENVIRONMENT, "invalid")
    assert "was gone at" in test.gone


@pytest.mark.quiet
def test_latency_during_a_stall_is_measured_from_the_due_time(tmp_path: Path) -> None:
    """A server stalls for 2 s of 4 s at 100/s: half of the requests wait for up to 2 s, and p99 shows it.

    A generator that waits for responses would send almost nothing meanwhile, and report a p99 of milliseconds.
    """
    fixed = {"times": 1, "duration_s": 4, "rates": {"work": [100]}}
    with serving(Then(Stalls(every_s=60, for_s=2, first_s=2))) as server:
        test = known_test(Store(tmp_path), server, search={"kinds": []}, fixed=fixed, steps={"warm_up_s": 1})
    (step,) = _steps(test)
    assert (step.due, step.ok, step.unsent) == (400, 400, 0)
    # A lower limit from the stall. A busy machine adds to it.
    assert step.p99_s is not None
    assert step.max_s is not None
    assert 0.95 * (2.0 - 0.01 * 4) < step.p99_s < 3.0
    assert 0.95 * 2.0 < step.max_s < 3.0
    samples = test.runs[0].samples("work_at_100_per_s")
    waited = samples.filter(pl.col("work_at_100_per_s_latency_s") > 0.05)
    assert 190 <= len(waited) < 300
    seconds = test.report.targets[0].endpoints[0].seconds
    assert max(second.in_flight + second.queued for second in seconds) > 90


@pytest.mark.quiet
def test_a_server_that_misses_its_sla_at_the_lowest_rate_has_no_capacity(tmp_path: Path) -> None:
    """A server that stalls for longer than its SLA allows sustains no rate, whatever its median."""
    search = {"kinds": ["rate"], "rate_first": 100, "rate_last": 100, "rate_floor": 100}
    with serving(Then(Stalls(every_s=1.0, for_s=0.5, first_s=0))) as server:
        test = known_test(Store(tmp_path), server, sla={"p99_s": 0.25}, search=search)
    (capacity,) = test.report.targets[0].endpoints[0].capacities
    assert (capacity.capacity, capacity.stopped_by, capacity.condition) == (0.0, "first step", "p99")
    assert _exit_code(test) is ExitCode.FAIL


def _refused(store: Path, system: ServedSystem, target: Target) -> EnvironmentFailure:
    profile = known_profile() if system is HTTP else system.profile({"system": "mesh", "name": "known"})
    with pytest.raises(EnvironmentFailure) as caught:
        load_test(Store(store), system, profile, ServiceRequest(target))
    assert "\n" not in caught.value.message
    assert caught.value.hint
    assert Store(store).unfinished() == []
    return caught.value


@pytest.mark.parametrize("system", [HTTP, MESH], ids=["http", "mesh"])
def test_a_server_that_is_down_is_reported(system: ServedSystem, tmp_path: Path) -> None:
    with nobody_listens() as url:
        error = _refused(tmp_path, system, Target("t", url))
    assert url in error.message


@pytest.mark.parametrize("system", [HTTP, MESH], ids=["http", "mesh"])
def test_an_unresolvable_host_is_reported(system: ServedSystem, tmp_path: Path) -> None:
    error = _refused(tmp_path, system, Target("t", "http://mesh.invalid:8080"))
    assert "mesh.invalid" in error.message
    assert "resolve" in error.message


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
@pytest.mark.parametrize("system", [HTTP, MESH], ids=["http", "mesh"])
def test_an_invalid_certificate_is_reported(system: ServedSystem, tmp_path: Path) -> None:
    context, certificate = self_signed(tmp_path, "mesh.example")
    with serving(always(Reply()), context) as server:
        assert "certificate" in _refused(tmp_path, system, Target("t", server.url)).message
        of_another = Target("t", server.url, Tls(ca_file=str(certificate)))
        assert "certificate" in _refused(tmp_path, system, of_another).message
        assert server.requested.total() == 0
        right = Target("t", server.url, Tls(ca_file=str(certificate), server_name="mesh.example"))
        if system is HTTP:
            HTTP.prepare(known_profile(), ServiceRequest(right), Silent())
            assert server.requested["/work"] == 1


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(b"not found", 404, content_type="text/plain"), "status 404"),
        (Reply(b'{"right":false}'), "/right"),
        (Reply(MESH_ERROR, 500), "block not found"),
        (Reply(b"hello"), "JSON"),
    ],
)
def test_a_request_that_fails_without_load_is_not_measured(reply: Reply, expected: str, tmp_path: Path) -> None:
    """If an endpoint's response is wrong without any load, the endpoint is not measured."""
    with serving(always(reply)) as server, pytest.raises(UsageError) as caught:
        known_test(Store(tmp_path), server)
    assert expected in caught.value.message
    assert "/work" in caught.value.message
    assert Store(tmp_path).sealed() == []


class _Interrupts:
    """A progress listener that raises KeyboardInterrupt when a condition on stage and progress is met."""

    def __init__(self, when: Callable[[str, float], bool]) -> None:
        self.when = when
        self.name = ""

    def stage(self, name: str) -> None:
        """Record the stage that begins."""
        self.name = name
        self.update(0.0)

    def update(self, fraction: float, detail: str = "") -> None:
        """Raise KeyboardInterrupt if the condition is met."""
        if self.when(self.name, fraction):
            raise KeyboardInterrupt


def _interrupted(tmp_path: Path, when: Callable[[str, float], bool]) -> tuple[LoadTest, SealedRun]:
    behaviour: Behaviour = always(Reply(after_s=0.005))
    with serving(behaviour) as server:
        search = {"clients_first": 2, "clients_last": 4}
        test = known_test(Store(tmp_path), server, _Interrupts(when), search=search)
    (run,) = test.runs
    assert test.interrupted
    assert run.verify() == []
    assert run.manifest.status == "invalid"
    (gate,) = [gate for gate in run.manifest.gates if gate.id == "complete"]
    assert gate.status == "fail"
    assert "interrupted" in gate.measured
    return test, run


def test_ctrl_c_during_a_step_stores_its_partial_result(tmp_path: Path) -> None:
    test, run = _interrupted(tmp_path, lambda name, fraction: "4 clients" in name and fraction > 0.5)
    steps = _steps(test)
    # A level may be measured twice if a busy machine left too few responses. Only the last step is partial.
    assert [step.partial for step in steps] == [*[False] * (len(steps) - 1), True]
    assert 0.0 < steps[-1].window_s < 1.0
    assert steps[-1].due > 0
    assert run.events("steps")["partial"].to_list() == [step.partial for step in steps]
    (capacity,) = test.report.targets[0].endpoints[0].capacities
    assert (capacity.stopped_by, capacity.finding) == ("interrupted", "unsettled")
    assert test.report.targets[0].interrupted


def test_ctrl_c_between_steps_stores_the_measured_steps(tmp_path: Path) -> None:
    test, _ = _interrupted(tmp_path, lambda name, fraction: "4 clients" in name and fraction == 0.0)
    assert {step.level for step in _steps(test)} == {2.0}
