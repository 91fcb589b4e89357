"""A second, plain implementation of block diffusion: the oracle of the simulator.

It follows only the description in docs/concepts/simulation.md, with the standard library's random numbers and heap, one
block at a time. It shares no code and no random draws with the simulator: only the distributions must agree.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

NEVER = math.inf
CENTILES = (0.50, 0.80, 0.90, 0.92, 0.94, 0.96, 0.98, 1.00)


def torus(hosts: int, regions: int) -> list[list[int]]:
    """Upstream peers: ring neighbours, two chords, one host of every other region."""
    members = [[host for host in range(hosts) if host % regions == region] for region in range(regions)]
    lists = []
    for host in range(hosts):
        own, index = members[host % regions], host // regions
        peers = {own[(index + offset) % len(own)] for offset in (1, -1, len(own) // 3, 2 * len(own) // 3)}
        others = [members[(host + other) % regions] for other in range(1, regions)]
        lists.append(sorted((peers | {there[index % len(there)] for there in others if there}) - {host}))
    return lists


@dataclass
class Oracle:
    """One network; ``scenario`` is the dictionary that the simulator receives, with a torus topology."""

    scenario: dict[str, Any]
    seed: int
    events: int = 0
    windows: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cluster = self.scenario["cluster"]
        self.random = random.Random(self.seed)
        self.hosts: int = cluster["hosts"]
        self.regions = len(cluster["regions"])
        self.rtt_s = cluster["rtt_s"]
        self.upstream = torus(self.hosts, self.regions)
        for host, peers in enumerate(self.upstream):
            peers.sort(key=lambda peer, host=host: self.rtt(host, peer))  # type: ignore[misc]
        self.downstream: list[list[int]] = [[] for _ in range(self.hosts)]
        for host, peers in enumerate(self.upstream):
            for peer in peers:
                self.downstream[peer].append(host)

    def rtt(self, a: int, b: int) -> float:
        """The round-trip time in seconds."""
        return float(self.rtt_s[a % self.regions][b % self.regions])

    def log_normal(self, mean: float, variation: float) -> float:
        """A log-normal random number with this mean and coefficient of variation."""
        variance = math.log(1 + variation * variation)
        return mean * math.exp(self.random.gauss(-variance / 2, math.sqrt(variance))) if mean > 0 else 0.0

    def exponential(self, mean: float) -> float:
        """An exponential random number with this mean."""
        return self.random.expovariate(1 / mean)

    def blocks(self, count: int) -> Iterator[list[float]]:
        """The adoption times of all hosts in seconds since the slot's start, block by block."""
        now = 0.0
        for number in range(count):
            now += self.exponential(self.scenario["block_interval_s"])
            yield self.spread(number % self.hosts, now)

    def body_rounds(self, host: int, peer: int, sent: float) -> int:
        """The TCP round trips for a body, and the window that the link keeps."""
        p = self.scenario["parameters"]
        same = host % self.regions == peer % self.regions
        mss = p["segment_bytes_in_region"] if same else p["segment_bytes"]
        segments = math.ceil((self.scenario["block_bytes"] + 60) / mss)
        initial = p["initial_window_segments"]
        end, since = self.windows.get((peer, host), (initial, 0.0))
        window = initial + (end - initial) * 2 ** (-max(0.0, sent - since) / p["window_memory_s"])
        rounds = next(k for k in itertools.count(1) if window * (2**k - 1) >= segments)
        idle_since = sent + rounds * self.rtt(host, peer)
        self.windows[peer, host] = (min(window + segments, p["window_limit_segments"]), idle_since)
        return rounds

    def spread(self, forger: int, slot: float) -> list[float]:
        """One block, from the start of its slot until every host adopted it: seconds by host."""
        return Block(self, forger, slot).run()


class Block:
    """One block during its diffusion through the network."""

    def __init__(self, network: Oracle, forger: int, slot: float) -> None:
        p, s = network.scenario["parameters"], network.scenario["stages"]
        self.network, self.forger, self.slot, self.p, self.s = network, forger, slot, p, s
        self.slow = network.random.random() < p["slow_block_probability"]
        fast = network.random.random() < p["fast_block_probability"]
        gain = 0.8 * p["fast_block_share"] * s["ticked_s"]
        self.shift = -gain if fast else gain * p["fast_block_probability"] / (1 - p["fast_block_probability"])
        self.adopted = [NEVER] * network.hosts
        self.fetched = [NEVER] * network.hosts
        self.candidates: list[list[int]] = [[] for _ in range(network.hosts)]
        self.flying = [0] * network.hosts
        self.deciding = [False] * network.hosts
        self.last = [-NEVER] * network.hosts
        self.queue: list[tuple[float, int, Callable[[float, int, int], None], int, int]] = []
        self.order = itertools.count()

    def plan(self, time: float, what: Callable[[float, int, int], None], host: int, peer: int = -1) -> None:
        """Schedule an event."""
        heapq.heappush(self.queue, (time, next(self.order), what, host, peer))

    def run(self) -> list[float]:
        """Forge the block, and wait until every host adopted it."""
        self.forge()
        while self.queue:
            now, _, what, host, peer = heapq.heappop(self.queue)
            self.network.events += 1
            if what == self.announce or self.fetched[host] == NEVER:
                what(now, host, peer)
        return self.adopted

    def forge(self) -> None:
        """The time from the slot's start to the announcement, and the forger's own adoption."""
        p, s, draw = self.p, self.s, self.network.log_normal
        stages = ("started", "block_context", "ledger_state", "ledger_view", "leadership", "snapshot", "forged")
        forged = sum(draw(s[f"{stage}_s"], p["forging_variation"]) for stage in stages)
        ticked = s["ticked_s"] - p["slow_block_probability"] * p["slow_forging_s"] + self.shift
        forged += draw(ticked, p["forging_variation"])
        if self.slow:
            forged += self.network.exponential(p["slow_forging_s"])
        self.fetched[self.forger] = forged
        self.adopted[self.forger] = forged + self.validation(s["self_adopted_s"])
        self.plan(forged + draw(s["announced_s"], p["forging_variation"]), self.announce, self.forger)

    def validation(self, mean: float, less: float = 0.0) -> float:
        """The time to adopt; its mean does not depend on slow blocks or on ``less``."""
        p = self.p
        mean += self.shift - p["slow_block_probability"] * p["slow_adoption_s"] - less
        extra = self.network.exponential(p["slow_adoption_s"]) if self.slow else 0.0
        return self.network.log_normal(mean, p["adoption_variation"]) + extra

    def announce(self, now: float, host: int, _: int) -> None:
        """Announce the block to every downstream peer in turn."""
        for k, other in enumerate(self.network.downstream[host]):
            service = self.network.log_normal(self.p["header_service_s"], self.p["header_variation"])
            self.plan(now + k * 15e-6 + self.network.rtt(host, other) / 2 + service, self.header, other, host)

    def header(self, now: float, host: int, peer: int) -> None:
        """Another peer has the block: decide soon, but not too often."""
        self.candidates[host].append(peer)
        if not self.deciding[host] and self.flying[host] < self.p["fetch_concurrency"]:
            self.deciding[host] = True
            wait = self.network.log_normal(self.s["request_s"], self.p["request_variation"])
            self.plan(max(now + wait, self.last[host] + self.p["decision_interval_s"]), self.decide, host)

    def decide(self, now: float, host: int, _: int) -> None:
        """Request the block from the nearest peers."""
        self.deciding[host], self.last[host] = False, now
        self.candidates[host].sort(key=self.network.upstream[host].index)
        while self.candidates[host] and self.flying[host] < self.p["fetch_concurrency"]:
            self.flying[host] += 1
            self.request(now, host, self.candidates[host].pop(0))

    def request(self, now: float, host: int, peer: int) -> None:
        """The request, the transfer in round trips, and the way back."""
        p, rtt = self.p, self.network.rtt(host, peer)
        server = p["body_service_s"] * p["server_share"]
        sent = now + rtt / 2 + self.network.log_normal(server, p["body_variation"])
        rounds = self.network.body_rounds(host, peer, self.slot + sent)
        travel = rtt * (rounds - 0.5) + self.network.scenario["block_bytes"] / p["bandwidth_bytes_per_s"]
        client = self.network.log_normal(p["body_service_s"] - server, p["body_variation"])
        self.plan(now + (sent + travel + client - now) * p["fetch_factor"], self.body, host, peer)

    def body(self, now: float, host: int, _: int) -> None:
        """The first copy of the body: adopt it, and announce it at once."""
        p = self.p
        self.fetched[host] = now
        straggling = p["straggler_probability"] * p["straggler_s"]
        self.adopted[host] = now + self.validation(self.s["adopted_s"], straggling)
        if self.network.random.random() < p["straggler_probability"]:
            self.adopted[host] += self.network.exponential(p["straggler_s"])
        delay = self.network.log_normal(self.s["fetched_to_announced_s"], p["announcement_variation"])
        self.plan(now + delay, self.announce, host)
