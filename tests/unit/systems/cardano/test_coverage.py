"""The shares of known blocks below which a run gets a warning or is invalid."""

from __future__ import annotations

import pytest

from chainmark.core.manifest import GateStatus
from chainmark.systems.cardano.gates import coverage_status


@pytest.mark.parametrize(
    ("coverage", "status"),
    [
        (None, GateStatus.PASS),
        (1.0, GateStatus.PASS),
        (0.99, GateStatus.PASS),
        (0.9899, GateStatus.WARN),
        (0.95, GateStatus.WARN),
        (0.9499, GateStatus.FAIL),
        (0.0, GateStatus.FAIL),
    ],
)
def test_the_coverage_of_a_chain_determines_its_status(coverage: float | None, status: GateStatus) -> None:
    assert coverage_status(coverage) is status
