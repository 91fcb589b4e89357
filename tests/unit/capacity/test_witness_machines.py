"""The work of other processes on all machines whose generators make the load."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from chainmark.capacity.generators import Generators
from chainmark.capacity.witness import MachineWitness
from chainmark.network.processes import kernel_of_processes

NOWHERE = "http://192.0.2.1:80"  # its processes are not on this machine
AHEAD_NS = 5_000_000_000
EDGES_NS = np.array([1e9, 2e9, 3e9])


@dataclass
class _Generator:
    """A generator on a machine whose clock is five seconds ahead.

    Attributes:
        contended: what other processes used there, by the second; None: it does not tell.
    """

    kernel: str
    pid: int
    contended: list[float] | None = None
    name: str = "another machine"
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def ask(self, command: str, argument: Any = None) -> dict[str, Any]:
        """Record the command."""
        self.asked.append((command, argument))
        process = {"kernel": self.kernel, "pid": self.pid}
        now_ns = time.time_ns() + AHEAD_NS
        return {"answer": {"process": process, "watch": True, "time": now_ns, "contended": self.contended}[command]}

    def close(self) -> None:
        """Nothing to end."""


HERE = _Generator(kernel_of_processes(), 6)


@pytest.mark.parametrize(
    ("generators", "contended"),
    [
        ([_Generator("a", 7, [0.25, 0.5]), _Generator("b", 8, [0.125, 0.0])], [0.375, 0.5]),
        ([HERE, _Generator("a", 7, [0.25, 0.5])], [4.25, 2.5]),
        ([_Generator("a", 7, [0.25, 0.5]), _Generator("b", 8)], [np.nan, np.nan]),
    ],
    ids=["two elsewhere", "one here", "one does not tell"],
)
def test_the_work_of_others_is_that_of_the_generating_machines(
    generators: list[_Generator], contended: list[float]
) -> None:
    """This machine, on which others use 4 s and 2 s, counts only if it generates load."""
    watch = MachineWitness(NOWHERE, Generators(generators))
    found = watch._contended(np.array([4.0, 2.0]), EDGES_NS)
    assert found.tolist() == pytest.approx(contended, nan_ok=True)


def test_a_machine_is_observed_once_and_asked_by_its_own_clock() -> None:
    """Its other generator belongs to the measurement and is not one of the other processes."""
    first, second = _Generator("a", 7, [0.0, 0.0]), _Generator("a", 8, [0.0, 0.0])
    watch = MachineWitness(NOWHERE, Generators([first, second]))
    with watch:
        pass
    watch._contended(np.zeros(2), EDGES_NS)
    asked = {command: argument for command, argument in first.asked if command != "process"}
    assert asked["watch"] == {"url": NOWHERE, "ours": [7, 8]}
    assert asked["contended"] == pytest.approx((EDGES_NS + AHEAD_NS).tolist(), abs=1e8)
    assert second.asked == [("process", None)]
