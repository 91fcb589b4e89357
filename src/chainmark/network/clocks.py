"""The clock of another machine, relative to this one: its offset and drift, from repeated exchanges of times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from chainmark.core import units
from chainmark.core.manifest import Fact, Gate, GateStatus

# Samples of a host are one second apart: an error of a tenth moves no sample out of its second's neighbourhood.
ERROR_MAX_S = 0.1
GATE_ID = "clocks"
# An exchange with a longer round trip than this many times the shortest one is not used: it was delayed somewhere.
LONGEST_TRIPS = 2.0
# Below it, the drift of ordinary clocks (20 ppm) is less than the error of an exchange, and would be noise.
LEAST_SPAN_S = 10.0
_LEAST_EXCHANGES = 5
_NS = 1e9


@dataclass(frozen=True)
class Exchange:
    """One question for the time: sent here, read there, answer received here, in ns since the epoch of each clock."""

    sent_ns: int
    there_ns: int
    received_ns: int

    @property
    def at_ns(self) -> int:
        """Its middle, by this machine's clock."""
        return (self.sent_ns + self.received_ns) // 2

    @property
    def offset_ns(self) -> float:
        """How far the other clock is ahead, if both ways took equally long."""
        # Whole numbers until the difference is formed: as a float, a time since the epoch is known to 256 ns.
        return (2 * self.there_ns - self.sent_ns - self.received_ns) / 2.0

    @property
    def error_ns(self) -> float:
        """The greatest error of the offset: the clock was read at some moment between sending and receiving."""
        return (self.received_ns - self.sent_ns) / 2.0


@dataclass(frozen=True)
class ClockOffset:
    """How far another clock is ahead: ``offset_ns`` at ``at_ns``, and more by ``drift`` of the time since.

    Attributes:
        at_ns: by this machine's clock.
        error_ns: greatest error at the exchanges.
        exchanges: number of those used.
    """

    at_ns: int
    offset_ns: float
    drift: float
    error_ns: float
    exchanges: int

    def to_here(self, there_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Times of the other clock as times of this machine's, shape (n,), in ns since the epoch."""
        # Of the time since `at_ns` itself, the offset is so small a part that the drift over it does not count.
        since_ns = (there_ns - self.at_ns) - self.offset_ns
        offsets = self.offset_ns + self.drift / (1.0 + self.drift) * since_ns
        return np.asarray(there_ns - np.rint(offsets).astype(np.int64), dtype=np.int64)

    def to_there(self, here_ns: int) -> int:
        """A time of this machine's clock as one of the other clock, in ns since the epoch."""
        return here_ns + round(self.offset_ns + self.drift * (here_ns - self.at_ns))


def clock_offset(exchanges: Sequence[Exchange]) -> ClockOffset:
    """The offset and drift by the exchanges with short round trips.

    The error is a bound, not a deviation: at each exchange the truth is within its own error of its offset, so within
    that and its residual of the line. An exchange with a long round trip says little, unless its offset is farther from
    the line than its own error: then the clock did not follow the line, for example because it was set.

    Args:
        exchanges: at least one, in any order.
    """
    shortest = min(exchange.error_ns for exchange in exchanges)
    used = [exchange for exchange in exchanges if exchange.error_ns <= LONGEST_TRIPS * shortest]
    at_ns, offsets_ns, errors_ns = _arrays(used)
    begin_ns, span_s = int(at_ns.min()), float(np.ptp(at_ns)) / _NS
    if len(used) >= _LEAST_EXCHANGES and span_s >= LEAST_SPAN_S:
        drift, at_begin = map(float, np.polyfit(at_ns - begin_ns, offsets_ns, 1))
        residuals = offsets_ns - (at_begin + drift * (at_ns - begin_ns))
        line = ClockOffset(begin_ns, at_begin, drift, float((np.abs(residuals) + errors_ns).max()), len(used))
    else:
        best = int(errors_ns.argmin())
        line = ClockOffset(int(at_ns[best]), float(offsets_ns[best]), 0.0, float(errors_ns[best]), len(used))
    return replace(line, error_ns=max(line.error_ns, _contradiction_ns(line, exchanges)))


def _arrays(
    exchanges: Sequence[Exchange],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    return (
        np.array([exchange.at_ns for exchange in exchanges], dtype=np.int64),
        np.array([exchange.offset_ns for exchange in exchanges]),
        np.array([exchange.error_ns for exchange in exchanges]),
    )


def _contradiction_ns(line: ClockOffset, exchanges: Sequence[Exchange]) -> float:
    """How far the clock was at least from the line at one of the exchanges; negative: nowhere for certain."""
    at_ns, offsets_ns, errors_ns = _arrays(exchanges)
    residuals = offsets_ns - (line.offset_ns + line.drift * (at_ns - line.at_ns))
    return float((np.abs(residuals) - errors_ns).max())


def greatest_difference_error_s(clocks: Iterable[ClockOffset]) -> float:
    """The greatest error of a time by one of these clocks minus a time by another of them; 0 for a single clock."""
    errors_ns = sorted(clock.error_ns for clock in clocks)
    return sum(errors_ns[-2:]) / _NS if len(errors_ns) > 1 else 0.0


def greatest_reading_error_s(clocks: Iterable[ClockOffset]) -> float:
    """The greatest error of a time by one of these clocks that is used without its offset."""
    return max((abs(clock.offset_ns) + clock.error_ns for clock in clocks), default=0.0) / _NS


def clock_gate(clocks: Mapping[str, ClockOffset]) -> Gate:
    """Whether the clocks of all hosts are known well enough to place their samples.

    Args:
        clocks: by the hosts' addresses, at least one.
    """
    worst = max(clocks, key=lambda host: clocks[host].error_ns)
    error_s = clocks[worst].error_ns / _NS
    return Gate(
        id=GATE_ID,
        label="the hosts' clocks are known",
        status=GateStatus.PASS if error_s <= ERROR_MAX_S else GateStatus.FAIL,
        measured=f"to {units.duration(error_s)} ({worst})",
        limit=f"≤ {units.duration(ERROR_MAX_S)}",
    )


def clock_facts(clocks: Mapping[str, ClockOffset]) -> list[Fact]:
    """Each host's clock in words."""
    return [Fact(label=f"Clock of {host}", value=_words(clock)) for host, clock in clocks.items()]


def _words(clock: ClockOffset) -> str:
    ahead = "ahead" if clock.offset_ns >= 0 else "behind"
    offset = f"{units.duration(abs(clock.offset_ns) / _NS)} {ahead}, ± {units.duration(clock.error_ns / _NS)}"
    drift = f", drift {units.number(1e6 * clock.drift, 1)} ppm" if clock.drift else ""
    return f"{offset}{drift} ({clock.exchanges} exchanges)"
