"""Round trips between nodes: measured before a run, stored with the intended ones, and judged."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from chainmark._native import measure_round_trips
from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure
from chainmark.core.manifest import Gate, GateStatus
from chainmark.network.namespaces import Namespace

GATE_ID = "round_trips"
TOLERANCE_SHARE = 0.10
TOLERANCE_S = 0.002
# Few enough that pings do not wait for one another, and those of a pair so far apart that one hiccup of the machine
# does not affect most of them.
RATE_MAX_PER_S = 4000
PAIR_RATE_PER_S = 20
PATIENCE_S = 2.0
# A ping packet, with its headers.
PING_BYTES = 48
_NAMED = 3

ROUND_TRIP_SCHEMA: dict[str, type[pl.DataType]] = {
    "source": pl.String,
    "destination": pl.String,
    "intended_s": pl.Float64,
    "min_s": pl.Float64,
    "median_s": pl.Float64,
    "answered": pl.Int64,
    "sent": pl.Int64,
}


@dataclass(frozen=True)
class RoundTrip:
    """One ordered pair: its intended round trip, and that of ``answered`` of ``sent`` pings, in seconds."""

    source: str
    destination: str
    intended_s: float
    min_s: float | None
    median_s: float | None
    answered: int
    sent: int

    @property
    def measured_s(self) -> float | None:
        """The judged value: the median, as jitter makes the smallest of many smaller than intended."""
        return self.median_s

    @property
    def excess(self) -> float:
        """The deviation as a multiple of the tolerance; infinite if no ping returned."""
        if self.measured_s is None:
            return math.inf
        tolerance_s = max(TOLERANCE_SHARE * self.intended_s, TOLERANCE_S)
        return abs(self.measured_s - self.intended_s) / tolerance_s


def measured_round_trips(
    names: Sequence[str],
    namespaces: Sequence[Namespace],
    addresses: Sequence[str],
    intended_s: Callable[[str, str], float],
    samples: int,
) -> list[RoundTrip]:
    """Measure every ordered pair with ``samples`` datagrams each, spread over the required time.

    Raises:
        EnvironmentFailure: the machine does not allow the sockets.
    """
    pairs = [(source, destination) for source in names for destination in names if source != destination]
    try:
        times_ns = measure_round_trips(
            namespaces=[namespace.native for namespace in namespaces],
            addresses=list(addresses),
            pings=samples,
            rate_per_s=min(RATE_MAX_PER_S, max(1, PAIR_RATE_PER_S * len(pairs))),
            patience_s=PATIENCE_S + max((intended_s(*pair) for pair in pairs), default=0.0),
        )
    except OSError as error:
        raise EnvironmentFailure.from_native(error) from error
    return [
        RoundTrip(
            source,
            destination,
            intended_s(source, destination),
            min(result) / 1e9 if result else None,
            statistics.median(result) / 1e9 if result else None,
            len(result),
            samples,
        )
        for (source, destination), result in zip(pairs, times_ns, strict=True)
    ]


def round_trip_frame(measured: Sequence[RoundTrip]) -> pl.DataFrame:
    """One row for each ordered pair, in the order of the nodes."""
    rows = [tuple(getattr(round_trip, column) for column in ROUND_TRIP_SCHEMA) for round_trip in measured]
    return pl.DataFrame(rows, schema=ROUND_TRIP_SCHEMA, orient="row")


def round_trip_gate(measured: Sequence[RoundTrip]) -> Gate:
    """Whether every ordered pair's round trip is as intended, within 10 % or 2 ms, whichever is more."""
    beyond = sorted(
        (round_trip for round_trip in measured if round_trip.excess > 1), key=lambda round_trip: -round_trip.excess
    )
    worst = max(measured, key=lambda round_trip: round_trip.excess, default=None)
    named = [*map(_sentence, beyond[:_NAMED])]
    if len(beyond) > _NAMED:
        named.append(f"and {len(beyond) - _NAMED} more")
    return Gate(
        id=GATE_ID,
        label="Round trips as intended",
        status=GateStatus.FAIL if beyond else GateStatus.PASS,
        measured=_figures(worst) if worst else "one node, no pairs",
        limit=f"each pair's median within {units.plain_percent(TOLERANCE_SHARE)} or {units.duration(TOLERANCE_S)}",
        detail="; ".join(named),
    )


def _figures(round_trip: RoundTrip) -> str:
    pair = f"{round_trip.source}–{round_trip.destination}"
    if round_trip.measured_s is None:
        return f"{pair}: none of {round_trip.sent} pings were answered"
    result = f"{units.duration(round_trip.measured_s)} (median, n = {round_trip.answered})"
    return f"largest deviation {pair}: {result}, intended {units.duration(round_trip.intended_s)}"


def _sentence(round_trip: RoundTrip) -> str:
    return _figures(round_trip).removeprefix("largest deviation ")
