"""The status of a run that follows from its gates, and the component that failed."""

from __future__ import annotations

import pytest

from chainmark.core.manifest import Gate, GateKind, GateStatus, HostFacts, Status, status_of

from tests.unit.compare.synthetic_runs import manifest

SUBJECT, INSTRUMENT = GateKind.SUBJECT, GateKind.INSTRUMENT


def _gate(kind: GateKind, status: GateStatus = GateStatus.FAIL, *, conclusive: bool = False) -> Gate:
    return Gate(id="g", label="g", status=status, measured="m", limit="l", kind=kind, conclusive=conclusive)


@pytest.mark.parametrize(
    ("gates", "status"),
    [
        ([], Status.VALID),
        ([_gate(SUBJECT)], Status.FAILED),
        ([_gate(INSTRUMENT)], Status.INVALID),
        # An overloaded machine explains missing commits, but not a node that died.
        ([_gate(SUBJECT), _gate(INSTRUMENT)], Status.INVALID),
        ([_gate(INSTRUMENT), _gate(SUBJECT, conclusive=True)], Status.FAILED),
        *(
            ([_gate(SUBJECT, status, conclusive=True)], Status.VALID)
            for status in GateStatus
            if status is not GateStatus.FAIL
        ),
    ],
)
def test_the_status_of_a_run_follows_from_its_failed_gates(gates: list[Gate], status: Status) -> None:
    assert status_of(gates) is status


def test_deciding_gates_are_the_gates_of_the_failed_component() -> None:
    """The report of a failed run must name the node that died, not the load that was late because of it."""
    run = manifest("v1", 1)
    died, late = _gate(SUBJECT, conclusive=True), _gate(INSTRUMENT)
    run.gates[:] = [late, _gate(SUBJECT, GateStatus.WARN), died]
    run.status = Status.FAILED
    assert (run.deciding_gates, run.failed_gates) == ([died], [late, died])
    run.status = Status.INVALID
    assert run.deciding_gates == [late]


@pytest.mark.parametrize(
    ("status", "profiles", "expected"),
    [
        (Status.VALID, [], True),
        (Status.FAILED, [], True),  # evidence against its side
        (Status.INVALID, [], False),
        (Status.VALID, ["cpu"], False),  # taking profiles costs time
        (Status.INVALID, ["cpu"], False),
    ],
)
def test_runs_whose_measurement_failed_or_was_disturbed_are_no_evidence(
    status: Status, profiles: list[str], expected: bool
) -> None:
    run = manifest("v1", 1)
    run.status, run.profiles = status, profiles
    assert run.is_evidence is expected


def test_the_cell_of_a_run_is_given_by_its_labels() -> None:
    """Runs of two cells are not repetitions. An endpoint is not part of a cell."""
    run = manifest("v1", 1)
    run.labels = {"load": ["high", "400 tx/s"], "endpoint": ["a:80"]}
    assert run.cell == {"load": "high"}


def test_machines_of_one_class_share_model_cores_and_memory() -> None:
    """A few MiB reserved by a kernel do not make a different machine."""
    host = HostFacts(cpu_model="EPYC", cores=8, memory_bytes=2**35 - 2**20, kernel="6.1", operating_system="Debian")
    assert host.hardware_class == "EPYC × 8, 32 GiB"
    assert host.model_copy(update={"cores": 0}).hardware_class == "EPYC"
