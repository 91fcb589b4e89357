"""Any command as a system under test: its duration, CPU time and memory."""

from chainmark.systems.benchmark.system import SYSTEM

__all__ = ["SYSTEM"]
