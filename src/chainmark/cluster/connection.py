"""A connection to a Dask cluster, with its workers as machines over which functions are mapped."""

from __future__ import annotations

import ipaddress
import logging
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from chainmark.cluster.probe import about
from chainmark.cluster.working import TOPIC
from chainmark.core import units
from chainmark.core.errors import ChainmarkError, EnvironmentFailure, LostMachineError, UsageError
from chainmark.core.parts import Part, Result, Taken, anywhere, as_it_is, equally_long, map_parts, unwatched
from chainmark.core.times import utc_now
from chainmark.core.tool import tool_version

if TYPE_CHECKING:
    from distributed import Client

CONNECT_S = 20.0
# A dead worker is restarted within seconds, by its nanny or by the process that started the nanny.
LOST_S = 60.0
LOOK_S = 1.0
# The longest call of an object on a machine: it may stop fifty nodes, or receive a program.
CALL_S = 120.0
# A worker without a heartbeat for so long hangs. Its scheduler would keep it for five minutes.
SILENT_S = 20.0
CLOSE_S = 2.0
# The resource of a worker that is reserved for load and observation.
LOAD = "load"
START_HINT = "start a scheduler with `dask scheduler`, and a worker on every machine with `dask worker tcp://HOST:8786`"
LOST_HINT = "see its log; `chainmark cluster check` shows the remaining ones"
TLS_HINT = (
    "set the certificates in Dask's configuration: DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …__TLS__CLIENT__CERT and "
    "…__TLS__CLIENT__KEY, or a file in ~/.config/dask"
)
SCHEMES = ("tcp", "tls", "ws", "wss")

Answer = TypeVar("Answer")


def library() -> Any:
    """Dask's package.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import distributed  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(
            "a cluster needs the library dask.distributed, which is not installed",
            "`pip install 'chainmark[cluster]'`",
        ) from error
    return distributed


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the engine's own messages: an error of ours reports a lost connection, and large parts are intended."""
    from dask import config  # noqa: PLC0415 - an extra

    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        with config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def check_address(address: str) -> None:
    """Check that an address is that of a scheduler.

    Raises:
        UsageError: it is none.
    """
    parts = urlsplit(address)
    try:
        is_whole = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port is not None
    except ValueError:
        is_whole = False
    if not is_whole:
        raise UsageError(f"`{address}` is not the address of a cluster's scheduler", "e.g. `tcp://10.0.0.1:8786`")


def machine_of(address: str) -> str:
    """The machine of a worker's address."""
    return urlsplit(address).hostname or address


def is_open(address: str) -> bool:
    """Whether others can read and change traffic to an address: it is another machine's, without TLS."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    try:
        is_own = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_own = host == "localhost"
    return parts.scheme not in ("tls", "wss") and not is_own


@dataclass(frozen=True)
class Worker:
    """A worker as its scheduler knows it.

    Attributes:
        scratch: its folder.
        for_load: whether it was started with ``--resources load=1``: reserved for load and observation.
    """

    address: str
    name: str
    threads: int
    memory_bytes: int
    scratch: str
    for_load: bool

    @property
    def machine(self) -> str:
        """The address of its machine."""
        return machine_of(self.address)


class Cluster:
    """A cluster while a command uses it: `chainmark.core.parts.Machines`."""

    def __init__(self, address: str, client: Client) -> None:
        self.address = address
        self._client = client
        self._used: dict[str, bool] = {}  # the machines of the first objects, and whether they are for load

    @property
    def threads(self) -> int:
        """The number of parts that its workers process at the same time."""
        return sum(worker.threads for worker in self.workers())

    @property
    def client(self) -> Client:
        """Dask's client."""
        return self._client

    def workers(self) -> list[Worker]:
        """The current workers, by their machines and names.

        Raises:
            EnvironmentFailure: the scheduler is gone.
        """
        return sorted(
            (
                Worker(
                    address,
                    str(item["name"]),
                    item["nthreads"],
                    item["memory_limit"] or 0,
                    item["local_directory"],
                    for_load=item["resources"].get(LOAD, 0) > 0,
                )
                for address, item in self._known().items()
            ),
            key=lambda worker: (worker.machine, worker.name),
        )

    def _known(self) -> dict[str, dict[str, Any]]:
        """What the scheduler knows of each worker, by its address.

        Raises:
            EnvironmentFailure: the scheduler is gone.
        """
        with self._failures():
            known: dict[str, dict[str, Any]] | None = self._client.scheduler_info(n_workers=-1).get("workers")
            if known is None:  # what a client that has just lost its scheduler answers
                raise CancelledError
        return known

    def heartbeat(self, worker: str) -> float | None:
        """The time of a worker's last heartbeat by the scheduler's clock; None if it has none.

        Raises:
            EnvironmentFailure: the scheduler is gone.
        """
        return self._known().get(worker, {}).get("last_seen")

    def warnings(self) -> list[str]:
        """What a user must know about the network between the machines, in sentences."""
        addresses = [self.address, *(worker.address for worker in self.workers())]
        machines = sorted({machine_of(address) for address in addresses if is_open(address)})
        if not machines:
            return []
        return [
            f"the cluster at {self.address} has connections over a network ({', '.join(machines)}) without TLS: anyone "
            "who reaches one of its ports can run programs there and read the traffic; use it only inside a private "
            "network, or start it with `tls://`"
        ]

    def run(self, function: Callable[..., Answer], workers: Sequence[str], **arguments: Any) -> dict[str, Any]:
        """The results, or exceptions, of a function that runs on workers in parallel to their work, by address."""
        with self._failures():
            results: dict[str, Any] = self._client.run(function, workers=list(workers), on_error="return", **arguments)
        return results

    def check_alike(self) -> None:
        """Check that every used worker has this version of chainmark, so that a part is the same on any of them.

        Raises:
            EnvironmentFailure: there is no worker, or one is of another version.
        """
        workers = [worker for worker in self.workers() if not self._used or worker.machine in self._used]
        if not workers:
            raise EnvironmentFailure(f"the cluster at {self.address} has no workers", START_HINT)
        own = tool_version()
        for address, answer in self.run(about, [worker.address for worker in workers]).items():
            version = None if isinstance(answer, Exception) else answer["chainmark"]
            if version != own:
                has = "no chainmark or an older one" if version is None else f"chainmark {version}"
                raise EnvironmentFailure(
                    f"the worker {address} has {has}, but this machine has chainmark {own}",
                    f"`chainmark cluster check --on {self.address}` shows every worker",
                )

    def ask_each(self, function: Callable[[Part], Result], question: Part) -> dict[str, Result]:
        """See `Machines`."""
        machines = sorted({worker.machine for worker in self.workers()})
        result: list[Result] = self.map(
            partial(_ask, function, question),
            machines,
            at=lambda machine: [machine],
        )
        return dict(zip(machines, result, strict=True))

    def map(
        self,
        function: Callable[[Part], Result],
        parts: Sequence[Part],
        *,
        at: Callable[[Part], Collection[str]] = anywhere,
        take: Callable[[Part, Result], Taken] = as_it_is,
        weight: Callable[[Part], float] = equally_long,
        watch: Callable[[Mapping[int, Any]], None] = unwatched,
    ) -> list[Taken]:
        """See `Machines`."""
        prefix = f"chainmark-{uuid.uuid4().hex}"
        executor = _OnWorkers(self._client, prefix, at)
        lost = _Lost(self, [frozenset(at(part)) for part in parts])
        reports: dict[int, Any] = {}

        def hear(event: Any) -> None:
            run, _, place = str(event[1].get("key")).rpartition("-")
            if run == prefix:
                reports[int(place)] = event[1]["report"]

        def look() -> None:
            lost.check()
            watch(dict(reports))

        def taken(numbered: tuple[int, Part], result: Result) -> Taken:
            lost.done(numbered[0])
            return take(numbered[1], result)

        with self._failures(), self._reports(hear):
            return map_parts(
                partial(_named, function),
                list(enumerate(parts)),
                executor,
                weight=lambda numbered: weight(numbered[1]),
                watch=look,
                take=taken,
            )

    @contextmanager
    def objects(self, make: Callable[[], Any]) -> Iterator[dict[str, Callable[..., Any]]]:
        """See `Machines`: an actor of the engine on the first worker of each machine."""
        # Programs of 70 MB do not pass through the scheduler.
        self._client.direct_to_workers = True
        first = {worker.machine: worker for worker in reversed(self.workers())}
        self._used = self._used or _roles(first.values())
        lost = sorted(machine for machine, role in self._used.items() if _roles(first.values()).get(machine) != role)
        if lost:
            raise LostMachineError(f"the worker on {lost[0]} is lost ({utc_now()})", LOST_HINT, "")
        first = {machine: worker for machine, worker in first.items() if machine in self._used}
        prefix = f"chainmark-{uuid.uuid4().hex}"
        with self._failures():
            futures = {
                machine: self._client.submit(
                    make, key=f"{prefix}-{machine}", workers=[worker.address], actor=True, pure=False
                )
                for machine, worker in first.items()
            }
            # The futures keep the actors: when they are released, or this client is gone, the engine drops them.
            actors = {machine: future.result() for machine, future in futures.items()}
        yield {machine: _Object(self, first[machine], actor) for machine, actor in actors.items()}

    def for_load(self) -> frozenset[str]:
        """See `Machines`."""
        return frozenset(machine for machine, is_for_load in _roles(self.workers()).items() if is_for_load)

    def wait_for_replacement(self, worker: str, within_s: float) -> bool:
        """See `Machines`; workers that have a nanny are restarted by it, and others may come at another address."""
        deadline = time.monotonic() + within_s
        while True:
            known = self.workers()
            roles = _roles(each for each in known if each.address != worker)
            if worker not in {each.address for each in known} and not Counter(self._used.values()) - Counter(
                roles.values()
            ):
                break
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK_S)
        kept = {machine: role for machine, role in self._used.items() if roles.get(machine) == role}
        for role in (Counter(self._used.values()) - Counter(kept.values())).elements():
            kept[next(machine for machine in sorted(roles) if roles[machine] == role and machine not in kept)] = role
        self._used = kept
        self.check_alike()
        return True

    @contextmanager
    def _reports(self, hear: Callable[[Any], None]) -> Iterator[None]:
        self._client.subscribe_topic(TOPIC, hear)
        try:
            yield
        finally:
            with suppress(Exception):  # the scheduler may be gone, and then there is no report
                self._client.unsubscribe_topic(TOPIC)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Convert the engine's exceptions to errors of ours."""
        distributed = library()
        try:
            yield
        except distributed.scheduler.KilledWorker as error:
            raise EnvironmentFailure(
                f"workers of the cluster died repeatedly at the same part, the last one at {error.last_worker.address}",
                "see their logs; the most frequent reason is too little memory",
            ) from error
        except (CancelledError, OSError) as error:
            if isinstance(error, OSError) and error.filename is not None:
                raise  # a file of this machine
            raise EnvironmentFailure(
                f"the cluster's scheduler at {self.address} is gone: it was stopped or restarted, or cannot be reached",
                "run the command again when the scheduler is available; all files on disk are intact",
            ) from error


class _OnWorkers(Executor):
    """Dask's own executor, with a unique key per part and the machines that may process it."""

    def __init__(self, client: Client, prefix: str, at: Callable[[Any], Collection[str]]) -> None:
        # Never reuse the result of an equal call: the logs may have changed.
        self._executor = client.get_executor(pure=False)
        self._prefix, self._at = prefix, at

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        ((place, part),) = arguments
        submitted: Future[Any] = self._executor.submit(
            function, (place, part), key=f"{self._prefix}-{place}", workers=sorted(self._at(part)) or None
        )
        return submitted


class _Object:
    """An object on a worker. Once the worker is lost, no call waits for it again.

    Args:
        cluster: that of the worker.
        worker: where the object is.
        actor: the engine's handle of it.
    """

    def __init__(self, cluster: Cluster, worker: Worker, actor: Any) -> None:
        self._cluster, self._worker, self._actor = cluster, worker, actor
        self._lost_at, self._reason = "", Exception()

    def __call__(self, *arguments: Any) -> Any:
        if self._lost_at:
            raise self._lost() from self._reason
        # An actor looks for its client in the context of the calling thread.
        with self._cluster.client.as_current():
            try:
                return self._result(self._actor.call(*arguments))
            except (RuntimeError, ValueError, OSError) as error:  # the engine's answers if the worker is gone
                if isinstance(error, OSError) and error.filename is not None:
                    raise  # a file of the worker's machine
                self._cluster.workers()  # raises if it is the scheduler that is gone
                self._lost_at, self._reason = utc_now(), error
                raise self._lost() from error

    def _result(self, answer: Any) -> Any:
        """Wait for an answer while the worker has heartbeats.

        Raises:
            TimeoutError: it has none, or the call takes too long.
        """
        begun = heard = time.monotonic()
        heartbeat = None
        while not answer.done():
            with suppress(TimeoutError):  # one of the object itself is raised below
                return answer.result(LOOK_S)
            now, newest = time.monotonic(), self._cluster.heartbeat(self._worker.address)
            if newest != heartbeat:
                heartbeat, heard = newest, now
            if now - heard > SILENT_S or now - begun > CALL_S:
                raise TimeoutError(f"no answer from {self._worker.address}")
        return answer.result(CALL_S)

    def _lost(self) -> LostMachineError:
        return LostMachineError(
            f"the worker on {self._worker.machine} is lost, and with it what ran there ({self._lost_at})",
            LOST_HINT,
            self._worker.address,
        )


class _Lost:
    """Detects parts for which no machine has been available for a while."""

    def __init__(self, cluster: Cluster, wanted: Sequence[frozenset[str]]) -> None:
        self._cluster = cluster
        self._open = dict(enumerate(wanted))
        self._looked = self._seen = time.monotonic()

    def done(self, place: int) -> None:
        del self._open[place]

    def check(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return
        self._looked = now
        available = {worker.machine for worker in self._cluster.workers()}
        missing = [
            machines for machines in self._open.values() if not (machines & available if machines else available)
        ]
        if not missing:
            self._seen = now
        elif now - self._seen > LOST_S:
            names, lasted = " or ".join(sorted(missing[0])) or "any machine", units.duration(LOST_S)
            raise EnvironmentFailure(
                f"the cluster at {self._cluster.address} has had no worker on {names} for {lasted}, and all "
                "remaining parts need one",
                f"{START_HINT}; then run the command again",
            )


def _roles(workers: Iterable[Worker]) -> dict[str, bool]:
    """The machines of workers, and whether each is reserved for load."""
    roles: dict[str, bool] = {}
    for worker in workers:
        roles[worker.machine] = roles.get(worker.machine, False) or worker.for_load
    return roles


def _named(function: Callable[[Part], Result], numbered: tuple[int, Part]) -> Result:
    """A part on its worker; an error names the worker's machine."""
    from distributed import get_worker  # noqa: PLC0415 - an extra, which every worker has

    try:
        return function(numbered[1])
    except ChainmarkError as error:
        error.message = f"{error.message} (on the worker {get_worker().address})"
        raise


def _ask(function: Callable[[Part], Result], question: Part, _machine: str) -> Result:
    return function(question)


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """A cluster while the context lasts.

    Raises:
        UsageError: the address is invalid, or Dask is not installed.
        EnvironmentFailure: the scheduler cannot be reached.
    """
    check_address(address)
    distributed = library()
    is_tls = urlsplit(address).scheme in ("tls", "wss")
    if is_tls and distributed.Security().get_connection_args("client")["ssl_context"] is None:
        raise UsageError(f"{address} uses TLS, but no certificates are configured", TLS_HINT)
    with _quiet():
        client = _client(address)
        try:
            yield Cluster(address, client)
        finally:
            with suppress(Exception):  # if the scheduler is gone there is nothing left to close
                client.close(timeout=CLOSE_S)


def _client(address: str) -> Client:
    try:
        client: Client = library().Client(address, timeout=CONNECT_S, set_as_default=False, name="chainmark")
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        hint = TLS_HINT if address.startswith(("tls:", "wss:")) else START_HINT
        raise EnvironmentFailure(
            f"the cluster's scheduler at {address} cannot be reached: {_reason(error)}", hint
        ) from error
    return client


def _reason(error: BaseException) -> str:
    """The innermost reason from the network, on one line."""
    reasons = [error]
    while (inner := reasons[-1].__cause__ or reasons[-1].__context__) is not None:
        reasons.append(inner)
    messages = [" ".join(str(reason).split()) for reason in reasons if isinstance(reason, OSError)]
    return next((text for text in reversed(messages) if text), str(error) or type(error).__name__)
