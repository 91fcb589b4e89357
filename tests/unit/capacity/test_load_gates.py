"""The gates that decide whether a load test's run may be compared. Each depends only on its own cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from chainmark.capacity.gates import load_gates
from chainmark.capacity.loadtest import EndpointResult, ServerResult, TargetServer
from chainmark.capacity.model import LevelKind, LoadLevel, Phase, Step, StepOutcome, StepRequest, StepResult, Waits
from chainmark.capacity.search import CapacityFinding, SearchResult, StoppedBy
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge
from chainmark.core.manifest import Gate, GateStatus

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Latencies, finished

OTHER = replace(ENDPOINT, id="other")
PASS, FAIL, UNKNOWN = GateStatus.PASS, GateStatus.FAIL, GateStatus.UNKNOWN


def step(clients: int = 8, share: float | None = 0.0, **changes: Any) -> Step:
    """A step in which other processes used this share of the CPU time. None: the kernel does not report it."""
    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.CLIENTS, float(clients)), 1.0, 10.0)
    result = StepResult.of(order, finished([0.1] * 3000, **changes))
    return judge(result, Sla(), Phase.FIXED, read_histogram=Latencies, waits=Waits(share, None, None))


def answer(stopped_by: StoppedBy, capacity: float | None, *steps: Step) -> SearchResult:
    return SearchResult(
        None, None, stopped_by, None, CapacityFinding.UNSETTLED, capacity, 0.0, None, steps, (), confirmed=False
    )


def gates(*results: EndpointResult, broken_off: str = "") -> dict[str, Gate]:
    result = ServerResult(TargetServer(TARGET, (ENDPOINT,)), list(results))
    all_gates = load_gates(result, broken_off=broken_off) if broken_off else load_gates(result)
    assert [gate.id for gate in all_gates] == ["complete", "waited", "generator"]
    return {gate.id: gate for gate in all_gates}


def of(fixed: Sequence[Step] = (), *answers: SearchResult, endpoint: Any = ENDPOINT) -> EndpointResult:
    return EndpointResult(endpoint, Sla(), dict(zip(LevelKind, answers, strict=False)), list(fixed))


def test_a_complete_test_on_a_quiet_machine_passes() -> None:
    searched = answer(StoppedBy.P99, 8.0, step(), step(share=0.031))
    by_id = gates(of([step(lag_s=[0.002] * 50), step(lag_s=[0.001] * 50)], searched), of([step()], endpoint=OTHER))
    assert {gate.status for gate in by_id.values()} == {PASS}
    assert [gate.label for gate in by_id.values()] == [
        "the whole test was run",
        "waits for a processor, generator and server",
        "the generator kept its schedule",
    ]
    assert [gate.measured for gate in by_id.values()] == [
        "5 steps",
        "0 of 5 steps waited, the worst for 3.1 % of its time",
        "0 of 3 steps at fixed levels were limited by the generator; lag p99 at most 2 ms",
    ]
    assert [gate.limit for gate in by_id.values()] == ["not interrupted", "≤ 10 % in the steps that decide", "none"]


def test_an_interrupted_test_is_not_complete() -> None:
    by_id = gates(of([step()]), broken_off="the server went away")
    assert (by_id["complete"].status, by_id["complete"].measured) == (FAIL, "1 step, then the server went away")
    assert by_id["waited"].status is by_id["generator"].status is PASS


@pytest.mark.parametrize(
    ("fixed", "status", "waited"),
    [
        ([step(8, 0.5)], FAIL, "1 of 1 step waited, the worst for 50.0 % of its time"),
        ([step(8, 0.5), step(8, 0.02)], PASS, "1 of 2 steps waited, the worst for 50.0 % of its time"),
        ([step(8, 0.5), step(16, 0.02)], FAIL, "1 of 2 steps waited, the worst for 50.0 % of its time"),
        ([step(8, 0.1)], PASS, "0 of 1 step waited, the worst for 10.0 % of its time"),
        ([step(8, None)], UNKNOWN, "this kernel does not tell"),
        ([step(8, None), step(8, 0.01)], PASS, "0 of 2 steps waited, the worst for 1.0 % of its time"),
        ([], PASS, "0 of 0 steps waited"),
    ],
    ids=["alone", "made again", "another level", "at the limit", "unknown", "partly known", "nothing measured"],
)
def test_a_fixed_level_whose_steps_all_waited_is_not_measured(
    fixed: list[Step], status: GateStatus, waited: str
) -> None:
    by_id = gates(of(fixed))
    assert (by_id["waited"].status, by_id["waited"].measured) == (status, waited)
    assert by_id["generator"].status is PASS, "the generator gate does not count time spent waiting for a CPU"


def test_a_level_is_measured_at_its_own_endpoint() -> None:
    """A clean measurement of another endpoint with as many clients is not evidence about this one."""
    by_id = gates(of([step(8, 0.5)]), of([step(8, 0.0)], endpoint=OTHER))
    assert by_id["waited"].status is FAIL


@pytest.mark.parametrize(
    ("stopped_by", "capacity", "status"),
    [
        (StoppedBy.WAITED, None, FAIL),
        (StoppedBy.WAITED, 8.0, PASS),
        (StoppedBy.BUDGET, None, PASS),
    ],
)
def test_a_search_whose_steps_all_waited_has_no_result(
    stopped_by: StoppedBy, capacity: float | None, status: GateStatus
) -> None:
    """A result found before it had to wait is kept. A fixed level that waited is not replaced by another one."""
    waited = answer(stopped_by, capacity, step(8, 0.5))
    assert gates(of([step(16, 0.5)], waited))["waited"].status is FAIL
    assert gates(of([], answer(stopped_by, capacity, step(8, 0.5))))["waited"].status is status


def test_a_late_generator_at_a_fixed_level_fails_the_gate() -> None:
    """A comparison of such levels would compare the generator. A search only reports the generator's limit."""
    late = replace(step(lag_s=[0.5] * 50), outcome=StepOutcome.GENERATOR_LIMITED)
    by_id = gates(of([late, step(lag_s=[0.25] * 50), step(16)]))
    assert by_id["generator"].status is FAIL
    assert by_id["generator"].measured == (
        "1 of 3 steps at fixed levels were limited by the generator; lag p99 at most 500 ms"
    )
    assert gates(of([], answer(StoppedBy.GENERATOR, 8.0, late)))["generator"].status is PASS
    nothing = gates(of([]))["generator"]
    assert (nothing.status, nothing.measured) == (PASS, "0 of 0 steps at fixed levels were limited by the generator")
