"""One measurement of a running network: load, observation, sampling, and draining until all activity has ended."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from chainmark._native import ZstdWriter
from chainmark.core import units
from chainmark.core.errors import EnvironmentFailure, LostMachineError
from chainmark.core.manifest import Incident
from chainmark.core.progress import Progress, live_figures
from chainmark.core.storage import require_space, storage_errors
from chainmark.core.times import NS
from chainmark.network.links import LinkStats
from chainmark.network.pprof import ProfileTaker
from chainmark.network.remote import REPORT_AGE_S
from chainmark.network.sampling import ResourceSampler, Scraper, Ticker
from chainmark.systems.cometbft.applications.loading import Prepared
from chainmark.systems.cometbft.connections import broken_connections, consensus_failures
from chainmark.systems.cometbft.current import current_figures
from chainmark.systems.cometbft.disturb import CuttableLinks, Disturber
from chainmark.systems.cometbft.generating import GeneratorOrder, LoadSource, RemoteGenerators, TransactionGenerator
from chainmark.systems.cometbft.instruments import Companion, Instruments
from chainmark.systems.cometbft.launch import CometNetwork, CometNode, NetworkFailure
from chainmark.systems.cometbft.profile import CometBFTProfile, Load
from chainmark.systems.cometbft.rotating import Rotation
from chainmark.systems.cometbft.rpc import RpcClient, RpcError

if TYPE_CHECKING:
    from chainmark._native import LoadResult

Answer = TypeVar("Answer")

POLL_S = 0.2
NODES_ASKED_AT_ONCE = 16
STALL_LOOK_S = 1.0  # pages are scraped no more often
BLOCKS_AFTER_DRAIN = 2
# A node may be a block behind when it is queried.
STOPPED_BLOCKS = 3


@dataclass(frozen=True)
class PendingTransactions:
    """The content of the mempools of the responding nodes when draining ended.

    Attributes:
        hashes: of all transactions that were listed; a node lists at most the first hundred, without paging.
        fullest: transactions in the fullest mempool.
        unseen: number of unlisted transactions in all of them, including duplicates; None if a living node did not
            respond.
    """

    hashes: frozenset[bytes] = frozenset()
    fullest: int = 0
    unseen: int | None = 0


@dataclass
class Measurement:
    """The data collected while the network ran; not yet interpreted.

    Attributes:
        broken_off: why the run ended early: the network had stopped. "" if it ran to its end.
        stopped: living nodes that no longer followed the chain at the end, by name, with the evidence.
        reader: the living node with the greatest height; None if no node responded any more, and the chain is unknown.
    """

    start_ns: int
    records: LoadResult
    observed: list[tuple[int, bytes]]
    processes: pl.DataFrame
    pressure: pl.DataFrame
    scrape_files: dict[str, Path]
    scrapes_missed: int
    first_height: int
    last_height: int
    drained: bool
    waiting: PendingTransactions
    reader: CometNode | None
    observer_reconnects: int
    broken_off: str = ""
    stopped: Mapping[str, str] = field(default_factory=dict)
    incidents: list[Incident] = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)
    links: LinkStats | None = None
    disturber: Disturber | None = None
    rotation: Rotation | None = None
    broken_connections: dict[str, Counter[str]] = field(default_factory=dict)
    profiles_missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class LoadRequest:
    """The load of one run: what to offer, the seed, and the ID; the profile defines everything else.

    ``profiles`` are the kinds to record of the nodes over the window.
    """

    profile: CometBFTProfile
    seed: int
    experiment_id: bytes
    links: CuttableLinks | None = None
    profiles: tuple[str, ...] = ()

    @property
    def load(self) -> Load:
        """The profile's load."""
        return self.profile.load


def measure(network: CometNetwork, order: LoadRequest, raw: Path, progress: Progress) -> Measurement:
    """Offer the load, observe the commits, sample the machine, and wait until the mempools are really empty.

    Raises:
        UsageError: the transaction size cannot be reached by the payload's encoding.
        NetworkFailure: a node died before the load began, or the load's node cannot be reached.
        EnvironmentFailure: the disk is full.
    """
    if deaths := network.processes.deaths():
        raise NetworkFailure(network, "; ".join(deaths))
    targets = [network.node(f"node{index}") for index in order.load.targets]
    sampler = ResourceSampler(network.pids())
    scraper = Scraper(network.pages(), raw / "scrapes")
    load = _load_source(network, order, targets)
    with _ticking(sampler, scraper) as tickers, _observing(network, load) as observed:
        first_height, _ = furthest(network)
        start_ns = _start(network, load)
        instruments = Instruments(network, sampler, scraper)
        disturber, rotation = _companions(instruments, order, start_ns)
        companions: list[Companion] = [item for item in (disturber, rotation) if item is not None]
        stall = Stall(order.profile.gates.no_block_max_s, network.height_of)
        watch = _Watch(
            network,
            tickers,
            raw,
            companions,
            lambda is_intended: stall.look(scraper.last_pages, is_intended=is_intended),
        )
        with (
            live_figures(progress, lambda: current_figures(load, order.load.total_rate_per_s, scraper.last_pages)),
            _profiling(network, order, raw / "profiles", start_ns) as profiles_missing,
        ):
            progress.stage(f"offering {order.load.total_rate_per_s} tx/s")
            records = _run_load(load, watch, progress)
            before = heights_of(network)
            progress.stage("draining the mempools")
            drained = _drain(watch, order.load.drain_timeout_s, progress)
            watch.look_for_deaths()
        # In this order: what leaves a mempool in the meantime is in a block that is read.
        waiting = _waiting(network)
        reached = heights_of(network)
        last_height, reader = _furthest(network, reached)
        logs = network.logs()
        broken, stopped = broken_connections(logs), _stopped(before, reached) | consensus_failures(logs)
        observer_reconnects = load.reconnects()
    processes, pressure = network.resources(sampler)
    _write_observed(raw / "commits.jsonl.zst", observed)
    return Measurement(
        start_ns=start_ns,
        records=records,
        observed=observed,
        processes=processes,
        pressure=pressure,
        scrape_files={name: raw / "scrapes" / f"{name}.prom.zst" for name in scraper.stored},
        scrapes_missed=sum(scraper.missed.values()),
        first_height=first_height,
        last_height=last_height,
        drained=drained,
        waiting=waiting,
        stopped=stopped,
        reader=reader,
        observer_reconnects=observer_reconnects,
        broken_off=watch.broken_off,
        incidents=sorted([*watch.incidents, *instruments.incidents], key=lambda incident: incident.time_ns),
        deaths=watch.deaths,
        links=network.links.stats() if network.links else None,
        disturber=disturber,
        rotation=rotation,
        broken_connections=broken,
        profiles_missing=profiles_missing,
    )


def _companions(
    instruments: Instruments, order: LoadRequest, start_ns: int
) -> tuple[Disturber | None, Rotation | None]:
    """Other activities while the load runs, if there are any."""
    profile = order.profile
    window_start_ns = start_ns + round(order.load.warm_up_s * 1e9)
    disturber = rotation = None
    if profile.perturbation:
        disturber = Disturber(
            instruments, profile.perturbation, window_start_ns, profile.recovery_timeout_s, order.links
        )
    if profile.rotating.joiners:
        rotation = Rotation(instruments, profile.rotating)
    return disturber, rotation


def _load_source(network: CometNetwork, order: LoadRequest, targets: list[CometNode]) -> LoadSource:
    """The load by the hosts that are reserved for it, or else by this process."""
    load, prepared = order.load, network.prepared or Prepared()
    arguments = {
        "targets": [node.websocket_url for node in targets for _ in range(load.connections)],
        "rate_per_connection": load.rate,
        "duration_s": load.warm_up_s + load.duration_s,
        "size_bytes": load.size_bytes,
        "method": load.method,
        "schedule": load.schedule,
        "seed": order.seed,
        "experiment_id": order.experiment_id,
        "answer_timeout_s": load.answer_timeout_s,
        "send_grace_s": load.send_grace_s,
        "given": prepared.given,
    }
    whole = GeneratorOrder(arguments, targets[0].websocket_url, prepared.bank_sends)
    return RemoteGenerators(network.measuring, whole) if network.measuring else TransactionGenerator(whole)


def _start(network: CometNetwork, load: LoadSource) -> int:
    with _reaching(network):
        return load.start()


@contextmanager
def _reaching(network: CometNetwork) -> Iterator[None]:
    """The nodes were healthy just before."""
    try:
        yield
    except LostMachineError:
        raise
    except EnvironmentFailure as failure:
        deaths = network.processes.deaths()
        raise NetworkFailure(
            network, "; ".join(deaths) or failure.message, failure.hint, died=bool(deaths)
        ) from failure


@contextmanager
def _ticking(sampler: ResourceSampler, scraper: Scraper) -> Iterator[list[Ticker]]:
    tickers = [*sampler.tickers(), Ticker(scraper.scrape, "scrape")]
    try:
        yield tickers
    finally:
        try:
            for ticker in tickers:
                ticker.stop()
        finally:
            scraper.close()


@contextmanager
def _observing(network: CometNetwork, load: LoadSource) -> Iterator[list[tuple[int, bytes]]]:
    """The list is filled when the context exits."""
    messages: list[tuple[int, bytes]] = []
    with _reaching(network):
        load.observe()
    try:
        yield messages
    finally:
        messages.extend(load.end_observation())


@contextmanager
def _profiling(network: CometNetwork, order: LoadRequest, folder: Path, start_ns: int) -> Iterator[list[str]]:
    """Record the requested profiles over the window; afterwards the list states what is missing."""
    missing: list[str] = []
    if not order.profiles:
        yield missing
        return
    begin_ns = start_ns + round(order.load.warm_up_s * NS)
    places = {node.name: node.pprof_address for node in network.nodes}
    processes = {f"{node.name} application": [node.beside.pid] for node in network.nodes if node.beside is not None}
    window_ns = (begin_ns, begin_ns + round(order.load.duration_s * NS))
    taker = ProfileTaker(places, order.profiles, folder, window_ns, processes)
    taker.start()
    try:
        yield missing
        missing += taker.finish()
    finally:
        taker.stop()


class Stall:
    """Whether the network has stopped making blocks, by the nodes' metrics pages, without further queries."""

    def __init__(self, limit_s: float, height_of: Callable[[Mapping[str, bytes]], int]) -> None:
        self._limit_s = limit_s
        self._height_of = height_of
        self._height = -1
        self._since = self._looked = time.monotonic()

    def look(self, pages: Mapping[str, bytes], *, is_intended: bool) -> str:
        """Why the run should end, or "".

        Args:
            pages: the last scraped page by node.
            is_intended: whether the profile disturbs the nodes, which may halt the chain on purpose.
        """
        now = time.monotonic()
        if now - self._looked < STALL_LOOK_S:
            return ""
        self._looked = now
        height = self._height_of(pages)
        if height > self._height or is_intended:
            self._height, self._since = max(height, self._height), now
        if now - self._since <= self._limit_s:
            return ""
        return f"no block for {units.duration(self._limit_s)} at height {max(0, self._height)}"


class _Watch:
    """Watches a run for dead nodes, a dead sampler, a full disk, and a halted chain.

    It also triggers the next steps of the companions.
    """

    def __init__(
        self,
        network: CometNetwork,
        tickers: list[Ticker],
        folder: Path,
        companions: list[Companion],
        stalled: Callable[[bool], str],
    ) -> None:
        self.network = network
        self.companions = companions
        self.incidents: list[Incident] = []
        self.broken_off = ""
        self._tickers = tickers
        self._folder = folder
        self.deaths: list[str] = []
        self._stalled = stalled

    def look(self) -> bool:
        """Record what happened since the last check; return whether there is anything left to wait for.

        Raises:
            EnvironmentFailure: the run cannot continue, and the network is not the cause.
        """
        self.look_for_deaths(max_age_s=REPORT_AGE_S)
        require_space(self._folder)
        for ticker in self._tickers:
            if (error := ticker.error()) is not None:
                raise error
        if not self.broken_off:
            self.broken_off = self._stalled(not self.finished()) if self.network.alive() else "all nodes died"
            if self.broken_off:
                self.incidents.append(Incident(time_ns=time.time_ns(), what=self.broken_off))
        if self.broken_off:
            return False
        for companion in self.companions:
            companion.step()
        return True

    def look_for_deaths(self, *, max_age_s: float = 0.0) -> None:
        """Record the processes that ended unexpectedly."""
        for death in self.network.processes.deaths(max_age_s=max_age_s):
            if death not in self.deaths:
                self.deaths.append(death)
                self.incidents.append(Incident(time_ns=time.time_ns(), what=death))

    def rest(self) -> None:
        """Wait until the next check is due."""
        time.sleep(min([POLL_S, *(companion.rest_s() for companion in self.companions)]))

    def finished(self) -> bool:
        """Whether all activities besides the load are done."""
        return all(companion.finished() for companion in self.companions)


def _run_load(load: LoadSource, watch: _Watch, progress: Progress) -> LoadResult:
    try:
        while load.running() and watch.look():
            state = load.progress()
            detail = f"{units.count(state['sent'])} sent, {units.count(state['accepted'])} accepted"
            progress.update(state["due"] / max(1, state["offered"]), detail)
            watch.rest()
    finally:
        load.stop()
        records = load.finish()
    for companion in watch.companions:
        companion.load_ended()
    return records


def _stopped(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, str]:
    """The nodes that made no block while the mempools were drained and others made some."""
    last = max(after.values(), default=0)
    if last - max(before.values(), default=0) < STOPPED_BLOCKS:
        return {}
    stuck = {name: height for name, height in after.items() if before.get(name) == height}
    return {name: f"it stayed at height {height} of {last}" for name, height in stuck.items()}


def furthest(network: CometNetwork) -> tuple[int, CometNode | None]:
    """The greatest height of the living nodes, and its node; 0 and None if none responds."""
    return _furthest(network, heights_of(network))


def _furthest(network: CometNetwork, reached: Mapping[str, int]) -> tuple[int, CometNode | None]:
    name = max(reached, key=lambda item: reached[item], default=None)
    return (0, None) if name is None else (reached[name], network.node(name))


def heights_of(network: CometNetwork) -> dict[str, int]:
    """The heights of the living nodes, as far as they respond."""
    return {name: height for name, height in _answers(network, RpcClient.height).items() if height is not None}


def _answers(network: CometNetwork, question: Callable[[RpcClient], Answer]) -> dict[str, Answer | None]:
    """The answers of the living nodes; None from one that hangs or has just died, which the watch records."""

    def ask(node: CometNode) -> Answer | None:
        with suppress(RpcError), RpcClient(node.rpc_address, timeout_s=2.0) as client:
            return question(client)
        return None

    nodes = network.alive()
    with ThreadPoolExecutor(NODES_ASKED_AT_ONCE, "asking") as pool:
        return {node.name: answer for node, answer in zip(nodes, pool.map(ask, nodes), strict=True)}


def _waiting(network: CometNetwork) -> PendingTransactions:
    """The current content of the living nodes' mempools, by hash as far as they list it."""
    answers = _answers(network, RpcClient.mempool).values()
    known = [answer for answer in answers if answer is not None]
    hashes = frozenset(hash_ for listed, _ in known for hash_ in listed)
    unseen = sum(max(0, size - len(listed)) for listed, size in known) if len(known) == len(answers) else None
    return PendingTransactions(hashes, max((size for _, size in known), default=0), unseen)


def _drain(watch: _Watch, timeout_s: float, progress: Progress) -> bool:
    """Wait until all mempools stay empty for two more blocks, and no activity besides the load remains.

    The limit is for the transactions: two blocks take as long as the network needs for them, unless it stops.

    Returns:
        Whether that state was reached.
    """
    began = time.monotonic()
    empty_at: int | None = None
    while watch.look():
        elapsed = time.monotonic() - began
        pending, height = _mempools(watch.network)
        if pending != 0:
            empty_at = None
        elif empty_at is None:
            empty_at = height
        elif height >= empty_at + BLOCKS_AFTER_DRAIN and watch.finished():
            return True
        if elapsed >= timeout_s and empty_at is None and watch.finished():
            return False
        shown = "no node responds" if pending is None else f"{units.plural(pending, 'transaction')} in the mempools"
        share = min(1.0, elapsed / timeout_s) if timeout_s else 1.0
        progress.update(share, shown if empty_at is None else "two more blocks")
        watch.rest()
    return False


def _mempools(network: CometNetwork) -> tuple[int | None, int]:
    """The fullest mempool of the living nodes, and the height that all have reached; None and 0 if none responds."""
    answers = _answers(network, lambda client: (client.mempool_size(), client.height())).values()
    known = [answer for answer in answers if answer is not None]
    return (max(size for size, _ in known), min(height for _, height in known)) if known else (None, 0)


def _write_observed(path: Path, observed: list[tuple[int, bytes]]) -> None:
    """Store the events as received: the time of arrival in ns, a tab, the message."""
    with storage_errors(path), ZstdWriter(path) as file:
        for received_ns, message in observed:
            file.write(str(received_ns).encode() + b"\t" + message + b"\n")
