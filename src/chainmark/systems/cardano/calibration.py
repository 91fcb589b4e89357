"""Fit the model to one measured run, by the run's own stages; its adoption centiles are not used.

What no table states is inferred from what it does state, in a few steps with common random numbers:

- the header's service from the first peer's notice after the announcement;
- the body's service from the first peer's fetch after that notice, and the server's part of it from the time at
which the forger began to send;
- the round trips between regions from the mean fetch duration, which is mostly round trips: if a run reports it by
pair of regions, each pair's from its own; otherwise the longest link gets the deviation from the expectation, and all
links get a third of it. If no host has a peer in its own region, a first fetch is a round trip too. Then the body's
service cannot be separated from it, and is taken from published runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from chainmark.systems.cardano.figures import (
    ANNOUNCED,
    FETCH,
    FIRST_FETCH,
    FIRST_NOTICE,
    SENDING,
    Figures,
    Lateness,
    Mean,
)
from chainmark.systems.cardano.model.results import Modelled
from chainmark.systems.cardano.record import ONE_ROUND_BYTES
from chainmark.systems.cardano.scenario import ClusterRequest, Matrix, Parameters, Scenario
from chainmark.systems.cardano.simulation import OnProgress, Simulated, Simulator
from chainmark.systems.cardano.topology import ListedTopology

STEPS = 5
# The first fetch is the smallest of several, so it moves a little less than the service's mean.
SERVICE_GAIN = 1.15
# Runs of one version under the two workloads, a day apart, imply round trips that differ by 9 to 10 ms (standard
# deviation): the unmodelled part of a run is 7 ms of each.
KNOWN_ERROR_S = 0.007
# The same as a share of a round trip of 250 ms, which those were.
KNOWN_ERROR = 0.028
# Growth of a mean fetch duration between two regions per round trip, as a share of its rounds: a body that comes from
# there may have been requested from another peer first.
FETCH_SLOPE = 0.5
# Number of blocks needed to infer the duration of fetches between two regions.
FETCHES_LEAST = 10
# Peers that are no farther than this are neighbours.
NEAR_S = 0.002
ROUND_TRIP_MAX_S = 60.0
# A round trip is reported as different if it differs by this many standard errors.
CLEARLY = 3.0
# Slow blocks became half as frequent with this release.
FEWER_SLOW_BLOCKS_FROM = (11,)
SERVICE_MIN_S, SERVICE_MAX_S = 1e-5, 60.0
ROUND_TRIP_FACTOR_MAX = 4.0
CLOSE_ENOUGH_S = 2e-5
# The share of an unexpected fetch duration that is attributed to all links, and not to the longest one: routing changes
# one link, load and loss change all. One mean per run cannot separate them; a third fits the adoption times of the runs
# up to 10.2, under both workloads.
SHARED = 1.0 / 3.0
# The step with which the slope of the fetch duration is measured, as a share of the round trip.
SLOPE_STEP = 0.03
LEAST_SLOPE = 0.05
# From this share of the shortest detour on, some bodies take the detour.
NEAR_DETOUR = 0.97


@dataclass(frozen=True)
class FarLink:
    """The pair of regions that are farthest apart; ``observers`` is the share of (forger, observer) pairs across it."""

    a: int
    b: int
    name: str
    measured_s: float
    observers: float


def differs(inferred: Modelled, ping_s: float) -> bool:
    """Whether an inferred round trip clearly differs from the pinged one; false without a ping."""
    return abs(inferred.value - ping_s) > CLEARLY * inferred.standard_error


@dataclass(frozen=True)
class Calibration:
    """A run's scenario with all inferred values.

    Attributes:
        simulated: the figures of that scenario.
        link: the pair whose round trip was inferred; None if all hosts are in one region.
        round_trip: its value with its standard error, if this link alone caused the whole difference; the scenario
            attributes a third of the difference to all links.
        expected: the cluster with the round trips that the fit began with.
        round_trips: every pair of regions whose round trip was inferred, by index.
        server_share_inferred: whether the run reported when its forgers began to send.
    """

    scenario: Scenario
    simulated: Simulated
    link: FarLink | None
    round_trip: Modelled | None
    server_share_inferred: bool
    expected: ClusterRequest
    round_trips: Mapping[tuple[int, int], Modelled]

    @property
    def round_trip_differs(self) -> bool:
        """Whether the inferred round trip clearly differs from the pings."""
        if self.link is None or self.round_trip is None:
            return False
        return differs(self.round_trip, self.link.measured_s)

    @property
    def detour_s(self) -> float | None:
        """The detour by a third region, if it is about as short: then no fetch shows how long the link is."""
        if self.link is None or self.round_trip is None:
            return None
        rtt, cluster = self.expected.rtt_s, self.expected
        detours = [
            rtt[self.link.a][c] + rtt[c][self.link.b] for c in cluster.counts() if c not in (self.link.a, self.link.b)
        ]
        shortest = min(detours, default=math.inf)
        return shortest if self.round_trip.value > NEAR_DETOUR * shortest else None


def calibrate(
    figures: Figures,
    start: Scenario,
    simulator: Simulator,
    on_progress: OnProgress | None = None,
    *,
    pings_s: Matrix | None = None,
    doubt_s: Matrix | None = None,
) -> Calibration:
    """Fit the model to a run.

    Args:
        start: the run's network, with its stages and block size, the expected round trips, and the model's constants.
        pings_s: round trips that pings measured, region by region; None: those of ``start``.
        doubt_s: standard deviations of the expected round trips; None: unknown.

    Raises:
        UsageError: the network or a stage is invalid.
    """
    link = far_link(start.cluster, pings_s)
    scenario = start.model_copy(update={"parameters": _first_guess(figures, start.parameters)})
    pairs = _known_pairs(figures, start.cluster, doubt_s)
    reported = on_progress or (lambda fraction: None)
    simulated = simulator.run(scenario)
    for step in range(STEPS):
        reported((step + 1) / (STEPS + 1))
        better = _step(scenario, simulated, figures, link, pairs)
        if _close(scenario, better):
            break
        scenario = better
        simulated = simulator.run(scenario)
    round_trip = None
    trips = {pair: _own_round_trip(scenario, simulated, pair, known) for pair, known in pairs.items()}
    if link is not None and pairs:
        round_trip = trips.get((link.a, link.b))
    elif link is not None and FETCH in figures.values:
        round_trip = _round_trip(
            scenario, simulated, figures, _measured_slope(scenario, simulated, simulator, link), link
        )
        alone_s = _far_alone_s(start.cluster, scenario.cluster, link)
        round_trip = round_trip.model_copy(update={"value": alone_s})
        trips = {(link.a, link.b): round_trip}
    return Calibration(
        scenario,
        simulated,
        link if round_trip is not None else None,
        round_trip,
        SENDING in figures.values,
        start.cluster,
        trips,
    )


def _first_guess(figures: Figures, parameters: Parameters) -> Parameters:
    small = figures.block_bytes < ONE_ROUND_BYTES
    slow = parameters.slow_block_probability
    late = figures.lateness
    return parameters.model_copy(
        update={
            # Fitted to the published runs: a constant and a cost per byte.
            "body_service_s": 0.0049 + 74e-9 * min(figures.block_bytes, 1e6),
            "server_share": 0.5 if small else 0.25,
            "slow_block_probability": slow / 2.0 if figures.release >= FEWER_SLOW_BLOCKS_FROM else slow,
            **({} if late is None else _late(late, parameters)),
        }
    )


def _late(late: Lateness, parameters: Parameters) -> dict[str, float]:
    """The run's own slow blocks and stragglers, instead of those of published runs."""
    return {
        "slow_block_probability": late.slow_share,
        "slow_adoption_s": parameters.slow_adoption_s if late.slow_s is None else late.slow_s,
        "straggler_probability": late.late_share,
        "straggler_s": parameters.straggler_s if late.late_s is None else late.late_s,
    }


def _step(scenario: Scenario, simulated: Simulated, figures: Figures, link: FarLink | None, pairs: Pairs) -> Scenario:
    """One step towards the run's own figures."""
    reported, mean, old = figures.values, simulated.mean, scenario.parameters
    ratio, missing = 1.0, 0.0
    if FIRST_NOTICE in reported:
        # The rest, apart from the path, is the header's service.
        path_s = _first_way_s(scenario.cluster)
        wanted = reported[FIRST_NOTICE] - reported[ANNOUNCED] - path_s
        had = mean(FIRST_NOTICE) - mean(ANNOUNCED) - path_s
        ratio = min(4.0, max(0.25, wanted / had)) if had > 0.0 else 1.0
    if FIRST_NOTICE in reported and FIRST_FETCH in reported and _has_neighbours(scenario.cluster):
        missing = (reported[FIRST_FETCH] - reported[FIRST_NOTICE]) - (mean(FIRST_FETCH) - mean(FIRST_NOTICE))
    service = _service(old.body_service_s + SERVICE_GAIN * missing)
    share = old.server_share
    if SENDING in reported and math.isfinite(mean(SENDING)):
        server = old.body_service_s * old.server_share + SERVICE_GAIN * (reported[SENDING] - mean(SENDING))
        share = min(1.0, max(0.0, server / service))
    parameters = old.model_copy(
        update={
            "header_service_s": _service(old.header_service_s * ratio),
            "body_service_s": service,
            "server_share": share,
        }
    )
    changed = scenario.model_copy(update={"parameters": parameters})
    if pairs:
        return _with_own_round_trips(changed, simulated, pairs)
    if link is None or FETCH not in reported:
        return changed
    return _with_round_trip(changed, simulated, reported[FETCH] - mean(FETCH), link)


@dataclass(frozen=True)
class _RegionPair:
    """The round trip between two regions: the expectation, and what the run's fetches show.

    Attributes:
        expected_s: with the standard deviation ``doubt_s``, which is infinite if it is a guess.
        fetch: the mean fetch duration between them.
    """

    expected_s: float
    doubt_s: float
    fetch: Mean

    def weight(self, rounds: float) -> float:
        """The weight of the fetches against the expectation, 0 to 1."""
        if math.isinf(self.doubt_s):
            return 1.0
        return self.doubt_s**2 / (self.doubt_s**2 + self.error_s(rounds) ** 2)

    def error_s(self, rounds: float) -> float:
        """The standard error of the round trip by the fetches."""
        return self.fetch.standard_error / (FETCH_SLOPE * rounds)


Pairs = Mapping[tuple[int, int], _RegionPair]


def _known_pairs(figures: Figures, cluster: ClusterRequest, doubt_s: Matrix | None) -> Pairs:
    """The pairs of different regions for which the run reports fetch durations."""
    regions = cluster.regions
    result = {}
    for a in range(len(regions)):
        for b in range(a + 1, len(regions)):
            mean = figures.fetch_between(regions[a], regions[b])
            if mean is not None and mean.blocks >= FETCHES_LEAST:
                doubt = math.inf if doubt_s is None else doubt_s[a][b]
                result[a, b] = _RegionPair(cluster.rtt_s[a][b], doubt, mean)
    return result


def _with_own_round_trips(scenario: Scenario, simulated: Simulated, pairs: Pairs) -> Scenario:
    """Every pair's round trip from its own fetches, weighted with the expectation."""
    matrix = [list(row) for row in scenario.cluster.rtt_s]
    rounds = _rounds(simulated)
    for (a, b), pair in pairs.items():
        modelled = simulated.fetch_between(a, b)
        if modelled is None:
            continue
        old, weight = matrix[a][b], pair.weight(rounds)
        step = weight * (pair.fetch.value - modelled.value) / rounds + (1.0 - weight) * (pair.expected_s - old)
        # A step changes no round trip by more than half, however far off it began.
        matrix[a][b] = matrix[b][a] = min(ROUND_TRIP_MAX_S, max(old / 2.0, min(2.0 * old, old + step)))
    return scenario.model_copy(update={"cluster": scenario.cluster.model_copy(update={"rtt_s": matrix})})


def _own_round_trip(scenario: Scenario, simulated: Simulated, pair: tuple[int, int], item: _RegionPair) -> Modelled:
    """A round trip inferred from the fetches between its own regions, with what makes it uncertain."""
    value = scenario.cluster.rtt_s[pair[0]][pair[1]]
    modelled = simulated.fetch_between(*pair)
    rounds = _rounds(simulated)
    sampling = math.sqrt(item.weight(rounds)) * item.error_s(rounds)
    noise = modelled.standard_error / rounds if modelled is not None else 0.0
    return Modelled(value=value, standard_error=math.hypot(KNOWN_ERROR * value, sampling, noise))


def _rounds(simulated: Simulated) -> float:
    rounds = simulated.mean("rounds_mean")
    return rounds if math.isfinite(rounds) else 1.0


def _first_way_s(cluster: ClusterRequest) -> float:
    """Half the mean round trip from a forger to its nearest peer; zero if it has one in its region."""
    if not isinstance(cluster.topology, ListedTopology):
        return 0.0
    place = {host.name: cluster.region_number(host.region) or 0 for host in cluster.topology.hosts}
    nearest: dict[str, float] = {}
    for host in cluster.topology.hosts:
        for peer in host.producers:
            a, b = place[peer], place[host.name]
            half_s = 0.0 if a == b else cluster.rtt_s[a][b] / 2.0
            nearest[peer] = min(half_s, nearest.get(peer, math.inf))
    pools = {host.name: host.pools for host in cluster.topology.hosts if host.name in nearest}
    total = sum(pools.values())
    return sum(nearest[name] * pools[name] for name in pools) / total if total else 0.0


def _has_neighbours(cluster: ClusterRequest) -> bool:
    """Whether forgers have peers in their own regions, so that a first fetch is not a long round trip."""
    return _first_way_s(cluster) < NEAR_S


def _service(seconds: float) -> float:
    return min(SERVICE_MAX_S, max(SERVICE_MIN_S, seconds))


def _with_round_trip(scenario: Scenario, simulated: Simulated, missing_s: float, link: FarLink) -> Scenario:
    slope = _expected_slope(simulated, link)
    if slope <= 0.0:
        return scenario
    moved = _moved(scenario, link, (1.0 - SHARED) * missing_s / slope)
    factor = 1.0 + SHARED * missing_s / _expected_travel_s(simulated, scenario.cluster)
    matrix = [
        [value if a == b else value * max(0.5, factor) for b, value in enumerate(row)]
        for a, row in enumerate(moved.cluster.rtt_s)
    ]
    return moved.model_copy(update={"cluster": moved.cluster.model_copy(update={"rtt_s": matrix})})


def _far_alone_s(start: ClusterRequest, fitted: ClusterRequest, link: FarLink) -> float:
    """The longest link's round trip, if it alone caused the whole deviation from the expectation."""
    extra_s = _mean_round_trip_s(fitted) - _mean_round_trip_s(start)
    return start.rtt_s[link.a][link.b] + extra_s / link.observers


def _expected_travel_s(simulated: Simulated, cluster: ClusterRequest) -> float:
    """The part of the mean fetch duration that is round trips between regions: observers × rounds × round trip."""
    return simulated.mean("rounds_mean") * _mean_round_trip_s(cluster)


def _mean_round_trip_s(cluster: ClusterRequest) -> float:
    """The mean over all pairs of hosts; a pair within a region counts as zero."""
    counts = cluster.counts()
    n = sum(counts.values())
    pairs = [(a, b) for a in counts for b in counts if a < b]
    return sum(2.0 * counts[a] * counts[b] / (n * (n - 1)) * cluster.rtt_s[a][b] for a, b in pairs)


def _moved(scenario: Scenario, link: FarLink, by_s: float) -> Scenario:
    """The scenario with another round trip of the link, limited to possible values."""
    matrix = [list(row) for row in scenario.cluster.rtt_s]
    low, high = link.measured_s / ROUND_TRIP_FACTOR_MAX, link.measured_s * ROUND_TRIP_FACTOR_MAX
    matrix[link.a][link.b] = matrix[link.b][link.a] = min(high, max(low, matrix[link.a][link.b] + by_s))
    return scenario.model_copy(update={"cluster": scenario.cluster.model_copy(update={"rtt_s": matrix})})


def _expected_slope(simulated: Simulated, link: FarLink) -> float:
    """The growth of the mean fetch duration per round trip of the link: observers across it × rounds."""
    rounds = simulated.mean("rounds_mean")
    return link.observers * rounds if math.isfinite(rounds) else 0.0


def _measured_slope(scenario: Scenario, simulated: Simulated, simulator: Simulator, link: FarLink) -> float:
    """The same slope by simulation: much smaller if a detour is as short, so that bodies take it."""
    less = simulator.run(_moved(scenario, link, -SLOPE_STEP * scenario.cluster.rtt_s[link.a][link.b]))
    step_s = SLOPE_STEP * scenario.cluster.rtt_s[link.a][link.b]
    return simulated.difference(less, FETCH).value / step_s


def _close(old: Scenario, new: Scenario) -> bool:
    """Whether the step was too small for another simulation."""
    pairs = [
        (old.parameters.header_service_s, new.parameters.header_service_s),
        (old.parameters.body_service_s, new.parameters.body_service_s),
        (_server_s(old.parameters), _server_s(new.parameters)),
    ]
    for before, after in zip(old.cluster.rtt_s, new.cluster.rtt_s, strict=True):
        pairs += zip(before, after, strict=True)
    return all(abs(after - before) <= CLOSE_ENOUGH_S for before, after in pairs)


def _server_s(parameters: Parameters) -> float:
    return parameters.body_service_s * parameters.server_share


def _round_trip(scenario: Scenario, simulated: Simulated, figures: Figures, slope: float, link: FarLink) -> Modelled:
    """The inferred round trip, with its total uncertainty.

    The uncertainty of the mean fetch duration comes from the model's Monte Carlo error, and from the sampling and
    rounding of the measured mean. If the sampling is unknown, it comes from the number of blocks: their spread, and
    which regions happened to forge them. All of that is divided by the slope, and the known model error is added.
    """
    value = scenario.cluster.rtt_s[link.a][link.b]
    errors = [simulated.modelled(FETCH).standard_error, figures.standard_errors.get(FETCH, 0.0)]
    if not figures.sampling_known and figures.blocks:
        rounds = simulated.mean("rounds_mean")
        by_forger = rounds * _forger_spread_s(scenario.cluster) if math.isfinite(rounds) else 0.0
        errors.append(math.hypot(simulated.block_sd(FETCH), by_forger) / math.sqrt(figures.blocks))
    expected = _expected_slope(simulated, link)
    # A slope near 0 means that the fetch durations contain no information about this link.
    known = max(slope, LEAST_SLOPE * expected, 1e-6)
    missed = KNOWN_ERROR_S * max(1.0, expected / known)
    return Modelled(value=value, standard_error=math.hypot(missed, *(error / known for error in errors)))


def _forger_spread_s(cluster: ClusterRequest) -> float:
    """Standard deviation, over forgers, of the mean round trip to all observers."""
    counts = cluster.counts()
    n = sum(counts.values())
    if n < 2:
        return 0.0
    means = {a: sum(counts[b] * cluster.rtt_s[a][b] for b in counts if b != a) / (n - 1) for a in counts}
    overall = sum(counts[a] * means[a] for a in counts) / n
    return math.sqrt(sum(counts[a] * (means[a] - overall) ** 2 for a in counts) / n)


def far_link(cluster: ClusterRequest, pings_s: Matrix | None = None) -> FarLink | None:
    """The pair of regions with the longest round trip, or None if all hosts are in one region."""
    counts = cluster.counts()
    pairs = [(a, b) for a in counts for b in counts if a < b]
    if not pairs:
        return None
    a, b = max(pairs, key=lambda pair: (cluster.rtt_s[pair[0]][pair[1]], pair))
    n = sum(counts.values())
    return FarLink(
        a=a,
        b=b,
        name=cluster.link_name(a, b),
        measured_s=(pings_s or cluster.rtt_s)[a][b],
        observers=2.0 * counts[a] * counts[b] / (n * (n - 1)),
    )
