"""The load and the observation of commits: by this process, or together by the processes of other machines."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from chainmark._native import EventObserver, TransactionLoad
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.network.processes import preferred_threads

if TYPE_CHECKING:
    from chainmark._native import BankSends, LoadProgress, LoadResult
    from chainmark.network.clocks import ClockOffset
    from chainmark.network.remote import RemoteHost

# NewBlockHeader is published right after NewBlock, in the same call, without the block's transactions. So the node need
# not encode megabytes of JSON per block for us, which would change the measurement.
COMMIT_QUERY = "tm.event='NewBlockHeader'"
# The name of a generator among the objects of a host's agent.
GENERATOR = "generator"
# Generators dial their nodes before the common beginning, which takes some round trips.
BEGIN_AFTER_S = 2.0
POLL_S = 0.1
_NEVER_NS = -1
_LEAST_S = 1e-9
_Time = Literal["due_ns", "sent_ns", "answered_ns"]
TIMES: tuple[_Time, ...] = ("due_ns", "sent_ns", "answered_ns")
_Column = Literal[_Time, "connection", "sequence", "class", "check_code", "hash", "size_bytes"]


class LoadSource(Protocol):
    """A load that is started once and finished once, and the commits observed meanwhile, by this machine's clock."""

    def observe(self) -> None:
        """Subscribe to the commits.

        Raises:
            EnvironmentFailure: the node does not accept that.
        """

    def start(self) -> int:
        """Start the schedule; return its time 0 in ns since the epoch.

        Raises:
            EnvironmentFailure: a node cannot be reached; nothing was sent.
        """

    def progress(self) -> LoadProgress:
        """The number of transactions so far."""

    def running(self) -> bool:
        """Whether transactions are still sent, or responses awaited."""

    def stop(self) -> None:
        """End the schedule now; responses are still awaited."""

    def finish(self) -> LoadResult:
        """Wait for the end; return the records."""

    def end_observation(self) -> list[tuple[int, bytes]]:
        """The observed messages with the time of their arrival in ns since the epoch."""

    def reconnects(self) -> int:
        """How often the subscription to the commits was lost."""


@dataclass(frozen=True)
class GeneratorOrder:
    """One generator's work.

    Attributes:
        load: the arguments of `TransactionLoad`.
        observed_url: of the node whose commits it observes; None: another generator does.
        bank_sends: transactions that only a generator of this process can make.
    """

    load: Mapping[str, Any]
    observed_url: str | None
    bank_sends: BankSends | None = None

    def split(self, count: int) -> list[GeneratorOrder]:
        """The same load for several generators: consecutive connections each, as equal in number as possible.

        The schedule is that of one generator. The first one observes. There are no more parts than connections.
        """
        targets = self.load["targets"]
        count = min(count, len(targets))
        ends = [len(targets) * part // count for part in range(count + 1)]
        return [
            GeneratorOrder(
                {**self.load, "targets": targets[first:end], "share": (first, len(targets))},
                self.observed_url if first == 0 else None,
            )
            for first, end in pairwise(ends)
        ]


class TransactionGenerator:
    """The load and the observation of this process, by its own clock: a `LoadSource` here, or a part of one elsewhere.

    Raises:
        UsageError: the load is impossible, such as a transaction size that the payload's encoding cannot have.
    """

    def __init__(self, order: GeneratorOrder) -> None:
        try:
            self._load = TransactionLoad(**order.load, bank_sends=order.bank_sends)
            url = order.observed_url
            self._observer = None if url is None else EventObserver(url, COMMIT_QUERY)
        except ValueError as error:
            raise UsageError.from_native(error) from error

    def observe(self) -> None:
        """See `LoadSource`."""
        if self._observer is not None:
            self._start(self._observer.start)

    def start(self, begin_ns: int | None = None) -> int:
        """See `LoadSource`; all generators of a load have the same beginning."""
        return int(self._start(lambda: self._load.start(begin_ns=begin_ns)))

    def _start(self, start: Any) -> Any:
        try:
            with preferred_threads():
                return start()
        except ConnectionError as error:
            raise EnvironmentFailure.from_native(error) from error

    def progress(self) -> LoadProgress:
        """See `LoadSource`."""
        return self._load.progress()

    def running(self) -> bool:
        """See `LoadSource`."""
        return self._load.running()

    def stop(self) -> None:
        """See `LoadSource`."""
        self._load.stop()

    def finish(self) -> LoadResult:
        """See `LoadSource`."""
        return self._load.finish()

    def end_observation(self) -> list[tuple[int, bytes]]:
        """See `LoadSource`."""
        return [] if self._observer is None else self._observer.stop()

    def reconnects(self) -> int:
        """See `LoadSource`."""
        return 0 if self._observer is None else self._observer.reconnects()


class RemoteGenerators:
    """One load by the generators of several hosts: a `LoadSource`. The first one observes."""

    def __init__(self, hosts: Sequence[RemoteHost], order: GeneratorOrder) -> None:
        parts = order.split(len(hosts))
        self._hosts = hosts[: len(parts)]
        self._last: LoadProgress = {"offered": 0, "due": 0, "sent": 0, "answered": 0, "accepted": 0}
        for host, part in zip(self._hosts, parts, strict=True):
            host.call("hold", GENERATOR, TransactionGenerator, part)

    def observe(self) -> None:
        """See `LoadSource`."""
        self._ask_one(self._hosts[0], "observe")

    def start(self) -> int:
        """See `LoadSource`."""
        begin_ns = time.time_ns() + round(BEGIN_AFTER_S * 1e9)
        with ThreadPoolExecutor(len(self._hosts), "starting") as pool:
            list(pool.map(lambda host: self._ask_one(host, "start", host.clock().to_there(begin_ns)), self._hosts))
        return begin_ns

    def progress(self) -> LoadProgress:
        """See `LoadSource`."""
        try:
            parts: list[LoadProgress] = self._ask("progress")
        except EnvironmentFailure:
            return self._last  # those who show it cannot do more; `running` reports the lost host
        self._last = {
            "offered": sum(part["offered"] for part in parts),
            "due": sum(part["due"] for part in parts),
            "sent": sum(part["sent"] for part in parts),
            "answered": sum(part["answered"] for part in parts),
            "accepted": sum(part["accepted"] for part in parts),
        }
        return self._last

    def running(self) -> bool:
        """See `LoadSource`."""
        return any(self._ask("running"))

    def stop(self) -> None:
        """See `LoadSource`."""
        self._ask("stop")

    def finish(self) -> LoadResult:
        """See `LoadSource`."""
        while self.running():  # a host that is busy with one call appears silent
            time.sleep(POLL_S)
        return joined([_by_this_clock(part, host.clock()) for host, part in self._each("finish")])

    def end_observation(self) -> list[tuple[int, bytes]]:
        """See `LoadSource`."""
        host = self._hosts[0]
        events = self._ask_one(host, "end_observation")
        times_ns = host.clock().to_here(np.array([time_ns for time_ns, _ in events], dtype=np.int64))
        return [(time_ns, message) for time_ns, (_, message) in zip(times_ns.tolist(), events, strict=True)]

    def reconnects(self) -> int:
        """See `LoadSource`."""
        return int(self._ask_one(self._hosts[0], "reconnects"))

    def _ask(self, method: str) -> list[Any]:
        return [answer for _, answer in self._each(method)]

    def _each(self, method: str) -> list[tuple[RemoteHost, Any]]:
        return [(host, self._ask_one(host, method)) for host in self._hosts]

    def _ask_one(self, host: RemoteHost, method: str, *arguments: Any) -> Any:
        return host.call("ask", GENERATOR, method, *arguments)


def _by_this_clock(part: LoadResult, clock: ClockOffset) -> LoadResult:
    for column in TIMES:
        there_ns = np.frombuffer(part[column], dtype="<i8")
        here_ns = np.where(there_ns == _NEVER_NS, _NEVER_NS, clock.to_here(there_ns))
        part[column] = here_ns.astype("<i8").tobytes()
    return part


def joined(parts: Sequence[LoadResult]) -> LoadResult:
    """The records of generators with consecutive connections, as those of one.

    CPU and wall time are those of the busiest generator: one that is overloaded is not excused by the others.
    """
    busiest = max(parts, key=lambda part: part["cpu_s"] / max(part["wall_s"], _LEAST_S))

    def column(name: _Column) -> bytes:
        return b"".join(part[name] for part in parts)

    return {
        "connection": column("connection"),
        "sequence": column("sequence"),
        "due_ns": column("due_ns"),
        "sent_ns": column("sent_ns"),
        "answered_ns": column("answered_ns"),
        "class": column("class"),
        "check_code": column("check_code"),
        "hash": column("hash"),
        "size_bytes": column("size_bytes"),
        "rows": sum(part["rows"] for part in parts),
        "cpu_s": busiest["cpu_s"],
        "wall_s": busiest["wall_s"],
        "reconnects": sum(part["reconnects"] for part in parts),
        "late_answers": sum(part["late_answers"] for part in parts),
        "unmatched_answers": sum(part["unmatched_answers"] for part in parts),
        "errors": dict(sum((Counter(part["errors"]) for part in parts), Counter())),
    }
