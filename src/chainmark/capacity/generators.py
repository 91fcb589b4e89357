"""Several generators, one schedule, one result: an engine that distributes its load over generators.

Generator i of n has the requests i, i + n, i + 2n … of the schedule, and every n-th client. All begin at the same wall
time, and the crate merges their measurements. When a generator is lost the step ends at once: its part of the schedule
is counted as not made, and the generator is named.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, Protocol, Self, cast

from chainmark import _native
from chainmark.capacity.engine import Engine, native_engine
from chainmark.capacity.generator import answer_here
from chainmark.core import units
from chainmark.core.errors import ChainmarkError
from chainmark.core.wording import enumerated
from chainmark.network.clocks import Exchange

MOST = 64
# Time from the start command until the start, enough for each generator to receive it on a busy machine.
_BEGIN_IN_S = 0.5
_LOOK_EVERY_S = 0.05
_EXCHANGES = 5
# Longer than any reply takes, including one with the records of a whole step.
_SILENT_S = 30.0
_END_S = 5.0
# After the last response that can still arrive; a busy machine is late.
_OVERDUE_S = 30.0
_READ_BYTES = 1 << 20
# An error of these commands is caused by the order or the network; later ones are caused by the generator.
_MAY_BE_REFUSED = ("make", "start")
_TOO_LATE = "should have begun already"
_SUMMED = ("started", "measured", "ok", "failed", "unanswered", "in_flight", "queued", "slow", "faults")
_PER_SECOND = ("ok_per_s", "failed_per_s")


class GeneratorLost(Exception):  # noqa: N818 - nothing here went wrong
    """A generator ended or no longer responds; the text describes the symptom."""


class GeneratorGone(Exception):  # noqa: N818 - nothing here went wrong
    """A generator that cannot be replaced, so that no further step is possible.

    Args:
        which: "load generator 2 of 2".
        why: the symptom, as a clause.
    """

    def __init__(self, which: str, why: str) -> None:
        super().__init__(f"{which}: {why}")
        self.which, self.why = which, why


class Place(Protocol):
    """Where a generator runs: in a process here, or on another machine."""

    @property
    def name(self) -> str:
        """Its name in a report: "this machine", or an address."""

    def ask(self, command: str, argument: Any = None) -> dict[str, Any]:
        """Send a command; the reply is that of :func:`.generator.replied`.

        Raises:
            GeneratorLost: there was no reply.
        """

    def close(self) -> None:
        """End the generator."""


class Process:
    """A generator in a process of its own on this machine, restarted after it was lost."""

    name = "this machine"

    def __init__(self) -> None:
        self._child: _Child | None = None

    @property
    def pid(self) -> int:
        """The ID of the running process; 0: there is none."""
        return self._child.pid if self._child else 0

    def ask(self, command: str, argument: Any = None) -> dict[str, Any]:
        """See :class:`Place`."""
        if self._child is None:
            self._child = _Child()
        try:
            return self._child.ask(command, argument)
        except GeneratorLost:
            self._child = None
            raise

    def close(self) -> None:
        """End it: it exits when its input is closed."""
        if self._child is not None:
            self._child.close()
            self._child = None


class _Child:
    """The program of `generator`, controlled over its standard input and output."""

    def __init__(self) -> None:
        # In a process group of its own: an interrupt of the command ends the step cleanly.
        command, pipe = [sys.executable, "-P", "-m", "chainmark.capacity.generator"], subprocess.PIPE
        self._popen = subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, process_group=0)
        self._to, self._from = cast(IO[bytes], self._popen.stdin), cast(IO[bytes], self._popen.stdout)
        self.pid = self._popen.pid
        self._read = bytearray()
        self._number = 0

    def ask(self, command: str, argument: Any) -> dict[str, Any]:
        self._number += 1
        self._write({"number": self._number, "command": command, "argument": argument})
        while True:
            reply: dict[str, Any] = json.loads(self._line())
            # An interrupted wait has left a reply unread.
            if reply["number"] == self._number:
                return reply

    def _write(self, request: dict[str, Any]) -> None:
        remaining = memoryview(json.dumps(request).encode() + b"\n")
        try:
            while remaining:
                remaining = remaining[os.write(self._to.fileno(), remaining) :]
        except OSError:
            raise self._lost() from None

    def _line(self) -> bytes:
        while (end := self._read.find(b"\n")) < 0:
            ready, _, _ = select.select([self._from], [], [], _SILENT_S)
            read = os.read(self._from.fileno(), _READ_BYTES) if ready else b""
            if not read:
                raise self._lost(silent=not ready)
            self._read += read
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        return line

    def _lost(self, *, silent: bool = False) -> GeneratorLost:
        if silent:
            self._popen.kill()
        self.close()
        if silent:
            return GeneratorLost(f"its process {self.pid} did not answer for {units.duration(_SILENT_S)}")
        status = self._popen.returncode
        return GeneratorLost(f"its process {self.pid} ended {f'by signal {-status}' if status < 0 else f'({status})'}")

    def close(self) -> None:
        with suppress(OSError):
            self._to.close()
        try:
            self._popen.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        self._from.close()


@dataclass
class WorkerPlace:
    """A generator on a worker of a cluster.

    Attributes:
        run: `chainmark.cluster.connection.Cluster.run`.
        address: the worker's.
        is_there: whether the cluster still has the worker; a call to a worker that has gone would block.
    """

    run: Callable[..., dict[str, Any]]
    address: str
    is_there: Callable[[str], bool]
    _key: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def name(self) -> str:
        """The worker."""
        return self.address

    def ask(self, command: str, argument: Any = None) -> dict[str, Any]:
        """See :class:`Place`."""
        try:
            if not self.is_there(self.address):
                raise GeneratorLost(f"the worker {self.address} is gone")
            completed = self.run(answer_here, [self.address], key=self._key, command=command, argument=argument)
        except ChainmarkError as error:
            raise GeneratorLost(f"the worker {self.address} cannot be asked: {error.message}") from error
        reply = completed.get(self.address)
        if not isinstance(reply, dict):
            raise GeneratorLost(f"the worker {self.address} does not answer ({reply or 'it is gone'})")
        return reply

    def close(self) -> None:
        """Leave no generator behind."""
        with suppress(GeneratorLost):
            self.ask("leave")


class Generators:
    """The generators of a load test, for the lifetime of the context; `make` creates its engines."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.places = tuple(places)

    @classmethod
    def here(cls, count: int | None = None) -> Self:
        """This number of processes on this machine; the first is this process itself."""
        return cls([Process() for _ in range(count or 1)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        for place in self.places:
            place.close()

    def described(self) -> str:
        """For a report: "2 processes on this machine"; "" if it is only this process."""
        names = [place.name for place in self.places]
        if set(names) != {Process.name}:
            return f"{units.plural(len(names), 'process', 'processes')}, on {enumerated(names)}"
        return f"{len(names)} processes on {Process.name}" if len(names) > 1 else ""

    def by_machine(self) -> dict[str, dict[int, Place]]:
        """The living ones by their process IDs, by the kernel of these; none if this process is the only generator."""
        result: dict[str, dict[int, Place]] = {}
        for place in self.places if self.described() else ():
            if (known := answer_of(place, "process")) is not None:
                result.setdefault(known["kernel"], {})[known["pid"]] = place
        return result

    def make(self, order_json: str) -> Engine:
        """An engine for one step. With fewer clients than generators, only as many generators are used.

        Raises:
            ValueError, ConnectionError: the order or the URL is not valid.
            GeneratorGone: a machine with a generator is lost, since an earlier step.
        """
        order = json.loads(order_json)
        mode = order["mode"]
        parts = mode["closed"]["clients"] if "closed" in mode else mode["open"]["connections"]
        places = self.places[: max(1, parts)]
        if len(places) == 1 and isinstance(places[0], Process):
            return native_engine(order_json)
        return _ManyEngines(places, order, order_json)


def answer_of(place: Place, command: str, argument: Any = None) -> Any:
    """The answer of one generator, outside a step; None if it is lost."""
    try:
        return place.ask(command, argument).get("answer")
    except GeneratorLost:
        return None


def ahead_ns(time_there: Callable[[], int | None]) -> int:
    """How far a generator's clock is ahead of this one, by the fastest exchange; 0 if it is lost."""
    exchanges: list[Exchange] = []
    for _ in range(_EXCHANGES):
        sent_ns, there_ns, received_ns = time.time_ns(), time_there(), time.time_ns()
        if there_ns is None:
            return 0
        exchanges.append(Exchange(sent_ns, there_ns, received_ns))
    return round(min(exchanges, key=lambda exchange: exchange.error_ns).offset_ns)


@dataclass
class _Lost:
    why: str
    at_s: float


class _ManyEngines:
    """One step's load, made by several generators: an :class:`.engine.Engine`."""

    def __init__(self, places: Sequence[Place], order: dict[str, Any], order_json: str) -> None:
        self._places, self._order, self._order_json = places, order, order_json
        self._planned_s = order["warm_up_s"] + order["duration_s"]
        self._latest_s = self._planned_s + order["drain_s"] + order["timeout_s"] + _OVERDUE_S
        self._begin_ns = 0
        self._ended = self._stopped = False
        self._seen: list[dict[str, Any]] = [{} for _ in places]
        self._lost: dict[int, _Lost] = {}
        for index in range(len(places)):
            share = {"index": index, "count": len(places)}
            self._ask(index, "make", json.dumps({**order, "share": share}))
        if self._lost:
            index = min(self._lost)
            raise GeneratorGone(f"load generator {index + 1} of {len(places)}", self._lost[index].why)

    def _ask(self, index: int, command: str, argument: Any = None) -> Any:
        """The generator's response; None if it is lost."""
        if index in self._lost:
            return None
        try:
            reply = self._places[index].ask(command, argument)
        except GeneratorLost as error:
            self._lost[index] = _Lost(str(error), self._elapsed_s())
            return None
        if "refused" not in reply:
            return reply["answer"]
        if command in _MAY_BE_REFUSED:
            raise (ConnectionError if reply["of_network"] else ValueError)(reply["refused"])
        self._lost[index] = _Lost(reply["refused"].partition("\n")[0], self._elapsed_s())
        return None

    def _elapsed_s(self) -> float:
        return max(0.0, (time.time_ns() - self._begin_ns) / 1e9) if self._begin_ns else 0.0

    def start(self) -> None:
        """Start all of them at the same moment."""
        offsets_ns = [
            0 if isinstance(place, Process) else ahead_ns(partial(self._ask, index, "time"))
            for index, place in enumerate(self._places)
        ]
        self._begin_ns = time.time_ns() + round(_BEGIN_IN_S * 1e9)
        for index, offset_ns in enumerate(offsets_ns):
            try:
                self._ask(index, "start", self._begin_ns + offset_ns)
            except ValueError as error:
                if _TOO_LATE not in str(error):
                    raise
                self._lost[index] = _Lost("its machine was too busy to begin with the others", 0.0)
        self._look()

    def _look(self) -> None:
        """Read the progress of each; end the step if one is lost, or if all together allow an early end."""
        for index in range(len(self._places)):
            self._seen[index] = self._ask(index, "progress") or self._seen[index]
        give_up = self._order["give_up"]
        is_hopeless = give_up and any(
            sum(seen.get(counted, 0) for seen in self._seen) >= give_up[limit]
            for counted, limit in (("slow", "slow"), ("faults", "failed"))
        )
        if (self._lost or is_hopeless) and not self._stopped:
            self.stop()

    def running(self) -> bool:
        """Whether one of them still sends or waits; queries them."""
        if not self._ended:
            self._look()
            if self._elapsed_s() > self._latest_s:
                self._give_up()
            self._ended = not self._unfinished()
        return not self._ended

    def _unfinished(self) -> list[int]:
        return [
            index for index, seen in enumerate(self._seen) if index not in self._lost and seen.get("phase") != "done"
        ]

    def _give_up(self) -> None:
        """End the generators whose load does not end by itself."""
        for index in self._unfinished():
            why = f"its load did not end within {units.duration(self._latest_s)}"
            self._lost[index] = _Lost(why, self._elapsed_s())
            self._places[index].close()

    def progress(self) -> str:
        """The state that :meth:`running` read last."""
        seen = [item for item in self._seen if item]
        reported = {name: sum(item[name] for item in seen) for name in _SUMMED}
        for name in _PER_SECOND:
            known = [item[name] for item in seen if item[name] is not None]
            reported[name] = sum(known) if known else None
        alive = [item for index, item in enumerate(self._seen) if item and index not in self._lost]
        phase = next((item["phase"] for item in alive if item["phase"] != "done"), "done")
        return json.dumps({**reported, "phase": phase, "elapsed_s": self._elapsed_s(), "planned_s": self._planned_s})

    def stop(self) -> None:
        """Start no more requests; wait for those in flight."""
        self._stopped = True
        for index in range(len(self._places)):
            self._ask(index, "stop")

    def finish(self) -> dict[str, Any]:
        """Wait for the end and return the measurements of all of them."""
        while self.running():
            time.sleep(_LOOK_EVERY_S)
        parts = [self._ask(index, "finish") for index in range(len(self._places))]
        outcomes = [text or self._of_lost(index) for index, text in enumerate(parts)]
        return _native.merge_http_loads(self._order_json, self._begin_ns, outcomes)

    def _of_lost(self, index: int) -> str:
        lost, seen = self._lost[index], self._seen[index]
        counts = {name: seen.get(name, 0) for name in ("started", "measured")}
        return json.dumps({"lost": {"why": lost.why, "at_ns": round(lost.at_s * 1e9), **counts}})
