"""The network of an imported run: what the import stored of it, and the cluster that models it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chainmark.core import units
from chainmark.core.errors import InvalidRunError
from chainmark.store.sealed import SealedRun
from chainmark.systems.cardano.figures import ADOPTED, FETCH, Figures, Mean
from chainmark.systems.cardano.lateness import lateness
from chainmark.systems.cardano.scenario import (
    EXPECTED_S,
    PINGS_S,
    PINGS_SPREAD_S,
    REGIONS,
    ClusterRequest,
    Matrix,
    Parameters,
    Region,
    link_of,
)
from chainmark.systems.cardano.topology import ListedHost, ListedTopology
from chainmark.systems.cardano.trips import MeasuredTrip

DOCUMENT = "network"
LOGS_MISSING = "the run has no logs"
# Round trip between hosts of one region, if unknown: those of the benchmark cluster are 0.15 to 0.25 ms apart.
IN_REGION_S = 0.0002
# A link without any fetch, if its length is unknown.
UNKNOWN_S = 0.1
SEGMENT_BYTES, INITIAL_WINDOW = 1448.0, 10.0
LEAST_ROUND_TRIP_S = 1e-4
# The number of blocks per forger is taken from the run only up to this many blocks: beyond that rounding is harmless.
FORGED_MOST = 3000
# Standard deviations of an assumed round trip, as shares: of the benchmark's two nearer links, which needed no change
# in 70 published runs, and of its longest, whose routing went from 0.234 to 0.288 s.
PINGED_DOUBT, ROUTED_DOUBT = 0.02, 0.06
# The number of parts into which the sizes of a run's blocks are divided.
SHAPE_POINTS = 65


class KnownNetwork(BaseModel):
    """Facts about a cluster besides its logs, by its own host names.

    Attributes:
        hosts: as the topology lists them.
        round_trips: between regions, as pinged or stated; in any order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    hosts: Annotated[list[ListedHost], Field(min_length=1)]
    round_trips: list[MeasuredTrip] = []


@dataclass(frozen=True)
class OwnCluster:
    """A run's own cluster.

    Attributes:
        pings_s: round trips between its regions as pinged, on it or on the reference cluster; NaN if unknown.
        pinged: whether all are from the cluster itself.
        doubt_s: standard deviations of the assumed round trips; infinite for a guess.
        notes: what was assumed.
    """

    order: ClusterRequest
    pings_s: Matrix
    pinged: bool
    doubt_s: Matrix
    notes: tuple[str, ...]


def own_cluster(run: SealedRun, figures: Figures) -> OwnCluster | None:
    """The cluster that an imported run was measured on; None if its hosts are unknown.

    Raises:
        InvalidRunError: the stored facts cannot be read.
    """
    known = known_network(run)
    if known is None:
        return _assumed(run, figures)
    hosts, notes = _forging(_connected(known.hosts), _forged(run))
    return _placed(hosts, known.round_trips, figures, [*_unlogged(len(hosts), figures.hosts), *notes])


def _unlogged(listed: int, logged: int) -> list[str]:
    if logged >= listed:
        return []
    measured = f"adoption was measured on {units.plural(logged, 'host')}, but is modelled on {units.count(listed)}"
    return [f"{LOGS_MISSING} of {units.plural(listed - logged, 'host')} of the topology: {measured}"]


def with_own_samples(figures: Figures, run: SealedRun) -> Figures:
    """Add figures that only an imported run's samples contain: fetches between regions, sizes, late hosts.

    Raises:
        InvalidRunError: its samples cannot be read.
    """
    sizes = run.samples("block", ["block_size_bytes"])["block_size_bytes"].drop_nulls()
    hosts = run.samples("host", ["host"]).height
    late = lateness(run.samples("block_peer", ["block", ADOPTED]), Parameters().straggler_s)
    return replace(figures, hosts=hosts, fetches=_fetches(run), block_bytes_shape=size_shape(sizes), lateness=late)


def _fetches(run: SealedRun) -> dict[tuple[str, str], Mean]:
    """Mean fetch durations by pair of regions; the spread is that of blocks, whose hosts fetch at the same time."""
    fetched = run.samples("block_peer", ["block", "link", FETCH]).drop_nulls()
    ends = fetched["link"].str.split_exact("→", 1).struct.rename_fields(["a", "b"]).struct.unnest()
    pairs = fetched.with_columns(a=pl.min_horizontal(ends["a"], ends["b"]), b=pl.max_horizontal(ends["a"], ends["b"]))
    by_block = pairs.group_by("a", "b", "block").agg(pl.col(FETCH).mean(), n=pl.len())
    result = {}
    for a, b in by_block.select("a", "b").unique().sort("a", "b").iter_rows():
        of = by_block.filter((pl.col("a") == a) & (pl.col("b") == b)).sort("block")
        values, weights = of[FETCH].to_numpy(), of["n"].to_numpy()
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf
        result[a, b] = Mean(float(np.average(values, weights=weights)), error, len(values))
    return result


def size_shape(sizes: pl.Series) -> tuple[float, ...]:
    """Sizes over their mean at evenly spaced shares of the blocks; empty if they are all equal."""
    if sizes.is_empty() or sizes.min() == sizes.max():
        return ()
    values = np.quantile(sizes.to_numpy(), np.linspace(0.0, 1.0, SHAPE_POINTS))
    # The mean of a draw from them, by linear interpolation.
    mean = float(np.mean((values[1:] + values[:-1]) / 2.0))
    return tuple(float(value) for value in values / mean)


def known_network(run: SealedRun) -> KnownNetwork | None:
    """The stored facts of a run's cluster; None if there are none.

    Raises:
        InvalidRunError: they cannot be read.
    """
    content = run.document(DOCUMENT)
    if content is None:
        return None
    try:
        return KnownNetwork.model_validate(content)
    except ValidationError as error:
        raise InvalidRunError(
            f"run `{run.run_id}` is damaged: its network is invalid ({error.error_count()} errors)",
            f"`chainmark runs verify {run.run_id}` shows what changed",
        ) from error


def _assumed(run: SealedRun, figures: Figures) -> OwnCluster | None:
    """Hosts without a topology: in the regions that an older run stored, otherwise by the benchmark's rule."""
    grouping = run.manifest.groups.get("host")
    if grouping is None:
        return None
    hosts = dense_torus(grouping.of)
    if len(hosts) < 2:
        return None
    note = (
        "the connections of the hosts are not stored with this run; a dense torus is assumed; "
        "import its logs again with their topology"
    )
    forging, notes = _forging(hosts, _forged(run))
    return _placed(forging, [], figures, [note, *notes])


def dense_torus(regions: Mapping[str, str]) -> list[ListedHost]:
    """Hosts connected by the benchmark's rule: a ring with two chords per region, and one host of each other region."""
    members: dict[str, list[str]] = {}
    for host, region in regions.items():
        members.setdefault(region, []).append(host)
    listed_hosts = []
    for region, own in members.items():
        for place, host in enumerate(own):
            others = [targets[place % len(targets)] for name, targets in members.items() if name != region]
            n = len(own)
            ring = [own[(place + step) % n] for step in (1, n - 1, n // 3, 2 * n // 3)]
            producers = [peer for peer in dict.fromkeys([*others, *ring]) if peer != host]
            listed_hosts.append(ListedHost(name=host, region=region, producers=producers))
    return listed_hosts


def _connected(hosts: Sequence[ListedHost]) -> list[ListedHost]:
    """The hosts with only those producers that are listed, each once."""
    names = {host.name for host in hosts}
    return [
        host.model_copy(
            update={"producers": [key for key in dict.fromkeys(host.producers) if key in names and key != host.name]}
        )
        for host in hosts
    ]


def _forged(run: SealedRun) -> Counter[str]:
    """How many of the analysed blocks each host forged."""
    return Counter(run.samples("block", ["forger"])["forger"].drop_nulls().to_list())


def _forging(hosts: Sequence[ListedHost], forged: Mapping[str, int]) -> tuple[list[ListedHost], list[str]]:
    """The hosts, each forging as often as it did in the run; by their pools if the run does not report it."""
    reported = {host.name: forged.get(host.name, 0) for host in hosts}
    if not any(reported.values()):
        return list(hosts), ["the forgers of this run are unknown: hosts forge in proportion to their pools"]
    share = min(1.0, FORGED_MOST / sum(reported.values()))
    weighted = [host.model_copy(update={"pools": round(reported[host.name] * share)}) for host in hosts]
    silent = sum(host.pools == 0 for host in weighted)
    note = "hosts forge as often as in the run"
    return weighted, [f"{note}; {units.plural(silent, 'host')} forged none of its blocks" if silent else note]


# --- distances ---------------------------------------------------------------------------------------------------


def _placed(
    hosts: list[ListedHost], trips: Sequence[MeasuredTrip], figures: Figures, notes: Sequence[str]
) -> OwnCluster:
    """The hosts at the known distances: pinged or stated, of the reference, or by the run's own fetches."""
    regions = known_regions(host.region for host in hosts)
    n = len(regions)
    rtt, spread, pings, doubts = ([[0.0] * n for _ in range(n)] for _ in range(4))
    origins: dict[str, list[str]] = {}
    links = _links(hosts, regions)
    for a in range(n):
        for b in range(a, n):
            distance = _distance(regions, a, b, trips, figures)
            values = (distance.rtt_s, distance.spread_s, distance.ping_s, distance.doubt * distance.rtt_s)
            for matrix, value in zip((rtt, spread, pings, doubts), values, strict=True):
                matrix[a][b] = matrix[b][a] = value
            if (a, b) in links and a != b:
                origins.setdefault(distance.origin, []).append(f"{regions[a].name}–{regions[b].name}")
    order = ClusterRequest(
        hosts=len(hosts), topology=ListedTopology(hosts=hosts), regions=regions, rtt_s=rtt, rtt_spread_s=spread
    )
    messages = [f"round trips {', '.join(names)}: {origin}" for origin, names in origins.items()]
    return OwnCluster(
        order=order,
        pings_s=pings,
        pinged=bool(origins) and set(origins) == {PINGED},
        doubt_s=doubts,
        notes=(_network_note(hosts, regions), *notes, *messages),
    )


def _network_note(hosts: Sequence[ListedHost], regions: Sequence[Region]) -> str:
    return f"the network is the run's own: {units.plural(len(hosts), 'host')} in {units.plural(len(regions), 'region')}"


PINGED = "as pinged or stated"
REFERENCE = "not known for this cluster; starting values from the reference's pings"
FETCHED = "not known; starting values from the run's own fetches"
NOTHING = "not known, and without fetches"


@dataclass(frozen=True)
class _Distance:
    rtt_s: float
    spread_s: float
    ping_s: float
    origin: str
    doubt: float = math.inf  # as a share of it


def _distance(regions: Sequence[Region], a: int, b: int, trips: Sequence[MeasuredTrip], figures: Figures) -> _Distance:
    for trip in trips:
        if link_of(regions, f"{trip.a}-{trip.b}") in ((a, b), (b, a)):
            return _Distance(trip.mean_s, trip.spread_s, trip.mean_s, PINGED, PINGED_DOUBT)
    item, other = (REGIONS.index(regions[place]) if regions[place] in REGIONS else None for place in (a, b))
    if item is not None and other is not None:
        expected, spread, ping = (matrix[item][other] for matrix in (EXPECTED_S, PINGS_SPREAD_S, PINGS_S))
        return _Distance(expected, spread, ping, REFERENCE, PINGED_DOUBT if expected == ping else ROUTED_DOUBT)
    if a == b:
        return _Distance(IN_REGION_S, 0.0, math.nan, NOTHING)
    fetched = figures.fetch_between(regions[a], regions[b])
    if fetched is None:
        return _Distance(UNKNOWN_S, 0.0, math.nan, NOTHING)
    guess = max(LEAST_ROUND_TRIP_S, fetched.value / _rounds(figures.block_bytes))
    return _Distance(guess, 0.0, math.nan, FETCHED)


def _rounds(size_bytes: float) -> int:
    """Rounds of a cold TCP connection."""
    sent = window = INITIAL_WINDOW
    rounds = 1
    while sent * SEGMENT_BYTES < size_bytes:
        window *= 2.0
        sent += window
        rounds += 1
    return rounds


def known_regions(names: Iterable[str]) -> list[Region]:
    """The regions of that name, those of the benchmark cluster by its short names, in the order of first mention."""
    regions: list[Region] = []
    for name in dict.fromkeys(names):
        benchmark = next((region for region in REGIONS if name in (region.name, *region.aliases)), None)
        region = benchmark or Region(name=name)
        if region not in regions:
            regions.append(region)
    return regions


def _links(hosts: Sequence[ListedHost], regions: Sequence[Region]) -> set[tuple[int, int]]:
    """The pairs of regions between which there are connections."""
    place = {host.name: _place(regions, host.region) for host in hosts}
    ends = [(place[host.name], place[peer]) for host in hosts for peer in host.producers]
    return {(min(pair), max(pair)) for pair in ends}


def _place(regions: Sequence[Region], name: str) -> int:
    return next(index for index, region in enumerate(regions) if name in (region.name, *region.aliases))
