"""CPU time that other processes used during a step: which seconds count, and which processes are excluded."""

from __future__ import annotations

import os
import socket
from typing import Any, cast

import numpy as np
import psutil
import pytest

from chainmark.capacity.generators import Generators, Process
from chainmark.capacity.model import (
    LevelKind,
    LoadLevel,
    Phase,
    StepCondition,
    StepOutcome,
    StepRequest,
    StepResult,
    Waits,
)
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge
from chainmark.capacity.witness import MachineWitness
from chainmark.network.witness import Behind, PressureSeconds

from tests.unit.capacity.elsewhere import Elsewhere
from tests.unit.capacity.queueing import ENDPOINT, TARGET, Latencies, finished

NOWHERE = "http://192.0.2.1:80"  # its processes are not on this machine


class _Seen:
    """A witness with prepared readings that records the requested times."""

    def __init__(self, ran: list[float], waited: list[float], contended: list[float], stolen: list[float]) -> None:
        self.seconds = PressureSeconds(*map(np.array, (ran, waited, contended, stolen)))
        self.edges_s: list[float] = []

    def between(self, edges_ns: np.ndarray) -> PressureSeconds:
        """Return the prepared readings."""
        self.edges_s = ((edges_ns - 1_700_000_000_000_000_000) / 1e9).tolist()
        return self.seconds


def _result(
    cpu_s: list[float], waited_s: list[float | None], window_s: float = 3.0, warm_up_s: float = 1.0
) -> StepResult:
    """A step with a warm-up, a window and a drain time."""
    result: dict[str, Any] = finished([0.1] * 400, window_s=window_s, answered=[100] * len(cpu_s))
    result["series"] |= {"cpu_s": cpu_s, "waited_s": waited_s}
    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.CLIENTS, 8.0), warm_up_s=warm_up_s, duration_s=window_s)
    return StepResult.of(order, result)


def _waits(result: StepResult, seen: _Seen) -> Waits:
    watch = MachineWitness(NOWHERE)
    watch._server = seen  # type: ignore[assignment]
    return watch.waits(result)


def test_the_shares_of_a_step_are_those_of_its_window() -> None:
    """Five seconds: one of warm-up, three of the window, one of draining.

    In the first and the last all time is lost.
    """
    seen = _Seen(
        ran=[0.0, 1.0, 1.0, 2.0, 0.0],
        waited=[9.0, 0.5, 0.0, 0.5, 9.0],
        contended=[9.0, 0.25, 1.0, 0.75, 9.0],
        stolen=[0.9, 0.1, 0.2, 0.3, 0.9],
    )
    waits = _waits(_result([0.0, 0.5, 1.0, 0.5, 0.0], [9.0, 0.25, 0.5, 0.25, 9.0]), seen)
    assert seen.edges_s == pytest.approx([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    # In the window the generator runs for 2 s and waits for 1 s, all of it because of other processes.
    assert waits.generator == pytest.approx(1.0 / 3.0)
    assert waits.server == pytest.approx(1.0 / 5.0)
    assert waits.stolen == pytest.approx(0.2)
    # In each second, the lost time is limited to the time that other processes used.
    assert waits.generator_by_second == pytest.approx((1.0, 0.25 / 0.75, 0.5 / 1.5, 0.25 / 0.75, 1.0))
    assert waits.server_by_second == pytest.approx((1.0, 0.25 / 1.5, 0.0, 0.5 / 2.5, 1.0))
    assert waits.stolen_by_second == (0.9, 0.1, 0.2, 0.3, 0.9)


def test_a_step_that_ended_before_its_window_has_no_share() -> None:
    seen = _Seen([1.0], [1.0], [1.0], [0.5])
    waits = _waits(_result([1.0], [1.0]), seen)
    assert (waits.generator, waits.server, waits.stolen) == (None, None, None)
    assert waits.generator_by_second == (0.5,)


@pytest.mark.parametrize(
    ("warm_up_s", "window_s", "seconds"), [(1.0, 2.5, 3), (1.0, 2.4, 2), (1.5, 2.0, 3), (1.0, 0.4, 0)]
)
def test_a_second_counts_if_at_least_half_of_it_is_in_the_window(
    warm_up_s: float, window_s: float, seconds: int
) -> None:
    stolen = [0.0, 1.0, 2.0, 3.0, 4.0]
    seen = _Seen([0.0] * 5, [0.0] * 5, [0.0] * 5, stolen)
    waits = _waits(_result([0.0] * 5, [0.0] * 5, window_s, warm_up_s), seen)
    assert waits.stolen == (float(np.mean(stolen[1 : 1 + seconds])) if seconds else None)


def test_a_figure_that_the_kernel_does_not_report_is_unknown() -> None:
    nothing = [float("nan")] * 4
    waits = _waits(_result([0.5] * 4, [None] * 4), _Seen(nothing, nothing, [1.0] * 4, [0.0] * 4))
    assert (waits.generator, waits.server, waits.stolen) == (None, None, 0.0)
    assert waits.generator_by_second == (None,) * 4


def test_a_server_on_this_machine_is_observed_during_the_step() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        watch = MachineWitness(f"http://127.0.0.1:{server.getsockname()[1]}")
    assert watch._server._pids() == {os.getpid()}
    # A process that the server connects to belongs to the server and is not one of the other processes.
    assert isinstance(watch._server._behind, Behind)
    assert watch._server._behind._pids() == {os.getpid()}
    with watch:
        assert watch._server._ticker is not None
    assert watch._server._rows


@pytest.mark.parametrize(
    ("waits", "worst"),
    [
        (Waits(0.2, 0.1, 0.0), (0.2, "the generator's threads")),
        (Waits(None, 0.1, 0.05), (0.1, "the server's processes")),
        (Waits(0.0, 0.1, 0.2), (0.2, "the whole machine, by its hypervisor")),
        (Waits(None, None, None), None),
    ],
)
def test_the_worst_share_is_reported_with_its_owner(waits: Waits, worst: tuple[float, str] | None) -> None:
    assert waits.worst() == worst


@pytest.mark.parametrize(
    ("share", "met"), [(0.1, True), (0.101, False), (0.0, True), (None, True)], ids=["at", "above", "none", "unknown"]
)
def test_a_step_counts_unless_other_processes_used_more_than_a_tenth(share: float | None, *, met: bool) -> None:
    """Otherwise the step measures the machine, so it neither passes nor fails the server."""
    step = judge(
        _result([0.1] * 5, [0.0] * 5), Sla(), Phase.PROBE, read_histogram=Latencies, waits=Waits(share, None, None)
    )
    result = step.condition(StepCondition.WAITED)
    assert result is not None
    assert (result.measured, result.limit, result.met) == (share, 0.1, met)
    assert result.outcome is (StepOutcome.PASS if met else StepOutcome.FAIL)
    assert step.outcome is (StepOutcome.PASS if met else StepOutcome.GENERATOR_LIMITED)
    assert step.point_outcome is step.outcome
    assert step.waits == Waits(share, None, None)
    assert step.reason is (None if met else StepCondition.WAITED)
    assert result.note == (
        "this kernel does not tell"
        if share is None
        else "share of the time in which they wanted to run: the generator's threads"
    )


def test_errors_on_a_busy_machine_are_still_the_servers() -> None:
    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.CLIENTS, 8.0), warm_up_s=1.0, duration_s=10.0)
    failing = StepResult.of(order, finished([0.1] * 300, failed=100))
    step = judge(failing, Sla(), Phase.PROBE, read_histogram=Latencies, waits=Waits(0.5, None, None))
    assert (step.outcome, step.reason) == (StepOutcome.FAIL, StepCondition.ERRORS)
    slow = judge(
        StepResult.of(order, finished([0.1] * 300 + [2.0] * 100)),
        Sla(),
        Phase.PROBE,
        read_histogram=Latencies,
        waits=Waits(0.5, None, None),
    )
    assert (slow.outcome, slow.reason) == (StepOutcome.GENERATOR_LIMITED, StepCondition.WAITED)
    assert judge(failing, Sla(), Phase.PROBE, read_histogram=Latencies).condition(StepCondition.WAITED) is None


def test_several_generators_on_this_machine_do_not_compete_with_each_other() -> None:
    """Otherwise every load test of a small machine with two generators would be invalid."""
    with Generators.here(2) as generators:
        watch = MachineWitness(NOWHERE, generators)
        pids = {cast(Process, place).pid for place in generators.places}
        assert 0 not in pids
        assert pids <= set(watch._server._behind())
        assert watch._others == []
    assert Generators.here(1).by_machine() == {}, "no process was started for it"


def test_of_a_machine_whose_generator_is_lost_the_other_work_is_unknown() -> None:
    """As zero it would look like a quiet machine."""
    result = _result([1.0] * 5, [0.5] * 5)
    with Generators([Elsewhere(), Elsewhere()]) as generators:
        watch = MachineWitness(NOWHERE, generators)
        with watch:
            for place in generators.places:
                psutil.Process(cast(Process, place).pid).kill()
        waits = watch.waits(result)
    assert waits.generator is None
    assert waits.generator_by_second == (None,) * 5
