"""Whether a server is as fast as it was before the load: short checks with one client, between the steps.

No figure of a step includes their requests, but they are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from chainmark.capacity.engine import ReadHistogram, native_histogram
from chainmark.capacity.measured import NO_REQUESTS, RequestCounts
from chainmark.capacity.model import LoadLevel, StepResult

# A check ends after this many responses, or after this time.
LOOK_REQUESTS = 10
LOOK_S = 0.5
# Recovered means at most this much slower than at first: 50 % is the noise of a few requests, and one
# millisecond that of a scheduler.
SLOWER = 1.5
GRACE_S = 0.001
# Between two checks, a tenth of the time waited so far.
_PAUSE_SHARE = 0.1
_PAUSE_SHORTEST_S = 0.05
_PAUSE_LONGEST_S = 1.0


@dataclass(frozen=True)
class Unrecovered:
    """A wait without recovery.

    Attributes:
        level: of the step before it.
        waited_s: length of the wait.
        p50_s: of the last check; None: most of its requests failed.
        reference_s: the latency to return to.
    """

    level: LoadLevel
    waited_s: float
    p50_s: float | None
    reference_s: float


@dataclass
class HealthProbes:
    """The checks at one endpoint of one server.

    Attributes:
        reference_s: median latency at one client before the first step; None: not known, or most requests failed.
        count: checks so far; the first is the reference.
        counts: the counts of their requests.
        unrecovered: the waits without recovery.
    """

    reference_s: float | None = None
    count: int = 0
    counts: RequestCounts = NO_REQUESTS
    unrecovered: list[Unrecovered] = field(default_factory=list)

    def add(self, result: StepResult) -> None:
        """Count the requests of a check."""
        self.count += 1
        self.counts += result.warm_up + result.counts

    def limit_s(self) -> float | None:
        """A median up to this counts as recovered."""
        return None if self.reference_s is None else SLOWER * self.reference_s + GRACE_S


@dataclass
class Recovery:
    """The wait after the last step of a load test, which the next measurement makes first.

    Shared by all endpoints and servers of a test, so that none starts while a server still recovers.
    """

    owed: Callable[[], None] | None = None

    def owe(self, wait: Callable[[], None]) -> None:
        """Record that a step ended."""
        self.owed = wait

    def settle(self) -> None:
        """Wait, if there was a step since."""
        wait, self.owed = self.owed, None
        if wait is not None:
            wait()


def median_s(result: StepResult, read_histogram: ReadHistogram = native_histogram) -> float | None:
    """Of all requests, with failures slower than any response; None if half of them failed, or there were none."""
    half = 0.5 * result.counts.due
    if not result.counts.ok or half > result.counts.ok:
        return None
    return read_histogram(result.latency.hdr).quantile(half / result.counts.ok)


@dataclass(frozen=True)
class WaitPlan:
    """How to wait.

    Attributes:
        look: a check of at most this many seconds; returns the median.
        longest_s: the longest wait.
        clock: seconds, from any origin.
        tell: receives the progress (0 to 1) and the last value.
    """

    look: Callable[[float], float | None]
    longest_s: float
    clock: Callable[[], float]
    pause: Callable[[float], None]
    tell: Callable[[float, float | None], None]

    def until_back(self, looks: HealthProbes, level: LoadLevel) -> None:
        """Check until the server is as fast as before; record it if that takes too long.

        The last value is the reference from then on: a server that stays slower costs the longest wait once.
        """
        reference_s, limit_s = looks.reference_s, looks.limit_s()
        if reference_s is None or limit_s is None:
            return
        begun_s = self.clock()
        while True:
            p50_s = self.look(max(LOOK_S, self.longest_s - (self.clock() - begun_s)))
            if p50_s is not None and p50_s <= limit_s:
                return
            waited_s = self.clock() - begun_s
            if waited_s >= self.longest_s:
                looks.unrecovered.append(Unrecovered(level, waited_s, p50_s, reference_s))
                looks.reference_s = reference_s if p50_s is None else p50_s
                return
            self.tell(waited_s / self.longest_s, p50_s)
            pause_s = min(max(_PAUSE_SHARE * waited_s, _PAUSE_SHORTEST_S), _PAUSE_LONGEST_S)
            self.pause(min(pause_s, self.longest_s - waited_s))
