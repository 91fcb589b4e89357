"""Whether the generator or the server waited for a processor during a step, second by second."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Protocol, Self

import numpy as np

from chainmark.capacity.generators import Generators, ahead_ns, answer_of
from chainmark.capacity.measured import StepSeries
from chainmark.capacity.model import StepResult, Waits
from chainmark.network.processes import kernel_of_processes
from chainmark.network.run_queue import lost_share
from chainmark.network.witness import server_witness

_NS = 1e9


class Watching(Protocol):
    """Observes the machine while a step runs."""

    def __enter__(self) -> Self:
        """Start of the step."""

    def __exit__(self, *ended: object) -> None:
        """End of the step."""

    def waits(self, result: StepResult) -> Waits:
        """What was observed during it."""


class MachineWitness:
    """Observes the generating machines, and the server's processes on them.

    Args:
        url: the server's.
        generators: those of the load; None: only this process.
    """

    def __init__(self, url: str, generators: Generators | None = None) -> None:
        self._url = url
        machines = generators.by_machine() if generators else {}
        here = machines.pop(kernel_of_processes(), {})
        self._generates = bool(here) or not machines
        self._others = [(next(iter(places.values())), [*places]) for places in machines.values()]
        self._server = server_witness(url, here)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for place, pids in self._others:
            answer_of(place, "watch", {"url": self._url, "ours": pids})
        self._stack.enter_context(self._server)
        return self

    def __exit__(self, *ended: object) -> None:
        self._stack.close()

    def waits(self, result: StepResult) -> Waits:
        """Shares of each second, and of the window."""
        series = result.series
        edges_ns = result.started_ns + np.array([*series.second, len(series.second)]) * _NS
        seen = self._server.between(edges_ns)
        begin, end = result.warm_up_s, result.warm_up_s + result.window_s
        window = [at for at in series.second if at >= begin - 0.5 and at + 1 <= end + 0.5]
        generator = _Account(*_generator_times(series), self._contended(seen.contended, edges_ns))
        server = _Account(seen.ran, seen.waited, seen.contended)
        return Waits(
            generator=generator.share(window),
            server=server.share(window),
            stolen=float(np.mean(seen.stolen[window])) if window else None,
            generator_by_second=tuple(generator.share([at]) for at in series.second),
            server_by_second=tuple(server.share([at]) for at in series.second),
            stolen_by_second=tuple(map(float, seen.stolen)),
        )

    def _contended(self, here: np.ndarray, edges_ns: np.ndarray) -> np.ndarray:
        """CPU time of others on all machines with generators; NaN if one of them does not report it."""
        total = here if self._generates else np.zeros_like(here)
        for place, _ in self._others:
            offset_ns = ahead_ns(partial(answer_of, place, "time"))
            there = answer_of(place, "contended", [int(edge) + offset_ns for edge in edges_ns])
            total = total + (np.nan if there is None else np.array(there))
        return total


def _generator_times(series: StepSeries) -> tuple[np.ndarray, np.ndarray]:
    """The engine reads its threads' scheduler statistics: exact, and NaN where the kernel does not report them."""
    return np.array(series.cpu_s), np.array(series.waited_s, dtype=float)


@dataclass(frozen=True)
class _Account:
    """Seconds of processor time by the second."""

    ran: np.ndarray
    waited: np.ndarray
    contended: np.ndarray

    def share(self, seconds: list[int]) -> float | None:
        """Processor time lost in these seconds together."""
        if not seconds:
            return None
        ran_s, waited_s, contended_s = (float(item[seconds].sum()) for item in (self.ran, self.waited, self.contended))
        return lost_share(ran_s, waited_s, contended_s, float(len(seconds)))
