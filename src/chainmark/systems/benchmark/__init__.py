"""Any command as a system under test: how long it takes, and how much of the processor and of the memory."""

from chainmark.systems.benchmark.system import SYSTEM

__all__ = ["SYSTEM"]
