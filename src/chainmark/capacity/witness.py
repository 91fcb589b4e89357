"""Whether the generator or the server waited for a processor during a step, second by second."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from chainmark.capacity.measured import StepSeries
from chainmark.capacity.model import StepResult, Waits
from chainmark.network.run_queue import lost_share
from chainmark.network.witness import Behind, Witness, listening_processes

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
    """Observes the generating machine, and the server's processes if they run on it."""

    def __init__(self, url: str) -> None:
        pids = listening_processes(url)
        self._server = Witness(lambda: pids, Behind(lambda: pids))
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._server)
        return self

    def __exit__(self, *ended: object) -> None:
        self._stack.close()

    def waits(self, result: StepResult) -> Waits:
        """Shares of each second, and of the window."""
        series = result.series
        second = np.array([*series.second, len(series.second)])
        seen = self._server.between(result.started_ns + second * _NS)
        begin, end = result.warm_up_s, result.warm_up_s + result.window_s
        window = [at for at in series.second if at >= begin - 0.5 and at + 1 <= end + 0.5]
        generator = _Account(*_generator_times(series), seen.contended)
        server = _Account(seen.ran, seen.waited, seen.contended)
        return Waits(
            generator=generator.share(window),
            server=server.share(window),
            stolen=float(np.mean(seen.stolen[window])) if window else None,
            generator_by_second=tuple(generator.share([at]) for at in series.second),
            server_by_second=tuple(server.share([at]) for at in series.second),
            stolen_by_second=tuple(map(float, seen.stolen)),
        )


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
