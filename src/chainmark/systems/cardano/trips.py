"""Round trips between a cluster's regions: as the pings next to its logs measured them, or as a user states them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from chainmark.core.errors import UsageError
from chainmark.systems.cardano.scenario import Region, link_of
from chainmark.systems.cardano.topology import ListedTopology

PING_HINT = (
    "use one row per ping, with `source`, `dest` (hosts of the topology), `time` (ms), and `size` where it varies"
)
PING_BYTES = 64
ROUND_TRIP_MAX_S = 60.0
RTT_HINT = "for example `--set network.rtt_s.EU-AP=0.25`"


class MeasuredTrip(BaseModel):
    """The mean round trip between two regions, with the standard deviation of that mean from link to link."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    a: str
    b: str
    mean_s: Annotated[float, Field(gt=0, le=ROUND_TRIP_MAX_S)]
    spread_s: Annotated[float, Field(ge=0, le=ROUND_TRIP_MAX_S)] = 0.0


def read_pings(path: Path, topology: ListedTopology) -> list[MeasuredTrip]:
    """The round trips between regions: the mean over links of each link's mean, either way.

    Raises:
        UsageError: the file is not one of pings between hosts of the topology.
    """
    try:
        pings = pl.read_csv(path)
        chosen = pings.filter(pl.col("size") == _size(pings)) if "size" in pings.columns else pings
        links = chosen.group_by("source", "dest").agg(pl.col("time").cast(pl.Float64).mean() / 1e3)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UsageError(f"{path} does not contain pings: {error}", PING_HINT) from error
    regions = {host.name: host.region for host in topology.hosts}
    results: dict[tuple[str, str], list[float]] = {}
    for source, destination, seconds in links.sort("source", "dest").iter_rows():
        if source in regions and destination in regions:
            a, b = sorted((regions[source], regions[destination]))
            results.setdefault((a, b), []).append(seconds)
    if not results:
        raise UsageError(f"{path} contains no pings between hosts of the topology", PING_HINT)
    return [_trip(path, pair, pl.Series(values)) for pair, values in sorted(results.items())]


def _size(pings: pl.DataFrame) -> int:
    sizes = pings["size"].unique().to_list()
    return PING_BYTES if PING_BYTES in sizes else min(sizes)


def _trip(path: Path, pair: tuple[str, str], seconds: pl.Series) -> MeasuredTrip:
    mean, spread = float(seconds.mean() or 0.0), float(seconds.std() or 0.0)  # type: ignore[arg-type]
    if not 0.0 < mean <= ROUND_TRIP_MAX_S:
        raise UsageError(f"{path} has pings of {mean} s between {pair[0]} and {pair[1]}", PING_HINT)
    return MeasuredTrip(a=pair[0], b=pair[1], mean_s=mean, spread_s=spread)


def stated_trips(stated: Mapping[str, float], regions: list[Region]) -> list[MeasuredTrip]:
    """Round trips as `--set` states them, by links: "EU-AP".

    Raises:
        UsageError: a link is not between two regions of the topology.
    """
    trips = []
    for link, seconds in stated.items():
        pair = link_of(regions, link)
        if pair is None:
            known = ", ".join(region.name for region in regions)
            raise UsageError(f"`{link}` is not a pair of regions", f"known regions: {known}; {RTT_HINT}")
        trips.append(MeasuredTrip(a=regions[pair[0]].name, b=regions[pair[1]].name, mean_s=seconds))
    return trips
