"""The path of one item from region to region: its hops and their durations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Protocol

from chainmark.trails.trace import RegionHop, RegionMap, RegionOfMap, Trace


class RegionTrip(Protocol):
    """A measured or stated round trip between two regions."""

    @property
    def a(self) -> str:
        """One of them."""

    @property
    def b(self) -> str:
        """The other."""

    @property
    def mean_s(self) -> float:
        """Its duration."""


def region_map(
    trace: Trace, regions: Mapping[str, str], senders: Mapping[str, str], trips: Sequence[RegionTrip]
) -> tuple[RegionMap | None, str]:
    """The hops of a trace, or why there are none.

    Args:
        trace: of one item.
        regions: of its places, as far as known.
        senders: by place, the place from which it received the item, if known.
        trips: measured or stated round trips between regions.
    """
    names = sorted(set(regions.values()))
    if not names:
        return None, "the regions of the hosts are unknown: import the logs with `--topology FILE`"
    if len(names) == 1:
        return None, f"all hosts with a known region are in {names[0]}"
    times = {place.place: place.seconds[trace.end] for place in trace.places}
    hops: dict[tuple[str, str], list[float]] = {}
    for place, sender in senders.items():
        arrived, sent = times.get(place), times.get(sender)
        if arrived is not None and sent is not None and place in regions and sender in regions:
            hops.setdefault((regions[sender], regions[place]), []).append(arrived - sent)
    if not hops:
        return None, f"no log shows which {trace.place_label} sent the {trace.label} to another"
    known = {frozenset((trip.a, trip.b)): trip.mean_s for trip in trips}
    legs = [
        RegionHop(origin=pair[0], region=pair[1], places=len(seconds), median_s=median(seconds),
                  longest_s=max(seconds), round_trip_s=known.get(frozenset(pair)))
        for pair, seconds in sorted(hops.items())
    ]  # fmt: skip
    reported = len({place for place, seconds in times.items() if seconds is not None})
    result = RegionMap(
        regions=[_region(trace, name, regions) for name in names],
        hops=legs,
        unknown=max(0, reported - sum(hop.places for hop in legs) - len(_first(trace))),
    )
    return result, ""


def _first(trace: Trace) -> list[str]:
    """The origin of the item: no other place sent it there."""
    return [place.place for place in trace.places if place.seconds and place.seconds[0] is not None]


def _region(trace: Trace, name: str, regions: Mapping[str, str]) -> RegionOfMap:
    own = [place for place in trace.places if regions.get(place.place) == name]
    messages = [second for place in own if (second := place.seconds[trace.end]) is not None]
    return RegionOfMap(name=name, places=len(own), first_s=min(messages, default=None))
