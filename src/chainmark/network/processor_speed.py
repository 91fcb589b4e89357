"""How fast this machine's processors are while a run is measured, by the CPU time of a fixed amount of work.

The CPU time of the same work depends on what else uses the hardware: on a virtual machine it may change by a third
within minutes although no other process runs. `docs/concepts/validity.md` has the measurements.
"""

from __future__ import annotations

from chainmark._native import ReferenceWork

INTERVAL_S = 0.1
# CPU time of the work on a processor with a speed of 1. Its value only sets the unit.
NOMINAL_S = 0.0008


class ProcessorSpeed:
    """The CPU time of the work so far, and how often it was done."""

    def __init__(self) -> None:
        self._work = ReferenceWork()
        self.cpu_s = 0.0
        self.times = 0

    def measure(self) -> None:
        """Do the work once."""
        self.cpu_s += self._work.perform()
        self.times += 1
