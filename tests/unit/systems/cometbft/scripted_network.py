"""A network with scripted heights and mempools, and a clock that only waiting moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chainmark.core.manifest import Configuration
from chainmark.core.progress import LiveFigures
from chainmark.systems.cometbft import workload
from chainmark.systems.cometbft.launch import CometNetwork, CometNode
from chainmark.systems.cometbft.network_plan import NodeEndpoints
from chainmark.systems.cometbft.profile import CometBFTProfile
from chainmark.systems.cometbft.rpc import RpcError
from chainmark.systems.cometbft.shape import Role
from chainmark.systems.cometbft.workload import LoadRequest

NS = 10**9
BEGAN_S = 100.0
EXPERIMENT = bytes(range(16))


class Clock:
    """A clock that starts at 100 s."""

    def __init__(self) -> None:
        self.now_s = BEGAN_S
        self.slept: list[float] = []

    def monotonic(self) -> float:
        """The current time."""
        return self.now_s

    def time_ns(self) -> int:
        """The current time in ns."""
        return round(self.now_s * NS)

    def sleep(self, seconds: float) -> None:
        """Move on to a later time."""
        self.slept.append(round(seconds, 6))
        self.now_s += seconds


@dataclass(frozen=True)
class State:
    """What one node reports: its height and its mempool, of which it lists only some transactions."""

    height: int
    listed: tuple[bytes, ...] = ()
    unlisted: int = 0

    @property
    def waiting(self) -> int:
        """The transactions in the mempool."""
        return len(self.listed) + self.unlisted


States = dict[str, State | None]


class Process:
    """A node's process."""

    is_here = True

    def __init__(self, pid: int = 1) -> None:
        self.pid = pid
        self.is_over = False

    def ended(self) -> bool:
        """Whether it has ended."""
        return self.is_over


@dataclass
class Processes:
    """The processes of the network; ``lost`` are the sentences about those that died."""

    lost: list[str] = field(default_factory=list)
    ages_s: list[float] = field(default_factory=list)

    def deaths(self, *, max_age_s: float = 0.0) -> list[str]:
        """All of them so far."""
        self.ages_s.append(max_age_s)
        return list(self.lost)

    def fetch_logs(self) -> None:
        """They are here."""

    def clocks(self) -> dict[str, object]:
        """There are no other machines."""
        return {}

    def joined(self, processes: object, pressure: object) -> tuple[object, object]:
        """Nothing to add."""
        return processes, pressure


class Scripted:
    """The network, and the queries that were sent to it.

    Attributes:
        states: what the nodes report; the next element applies after every wait, the last one for ever.
    """

    def __init__(self, folder: Path, clock: Clock, nodes: int = 2) -> None:
        self.clock = clock
        self.states: list[States] = [{}]
        self.queried: list[tuple[str, float]] = []
        self.pools: list[tuple[int, str]] = []
        self.processes = Processes()
        self.network = CometNetwork(
            [_node(folder, index) for index in range(nodes)], cast(Any, self.processes), Configuration(), {}, {}
        )

    def state(self, address: str) -> State:
        """The current state of a node."""
        states = self.states[min(len(self.clock.slept), len(self.states) - 1)]
        node = next(node for node in self.network.members if node.rpc_address == address)
        state = states.get(node.name)
        if state is None:
            raise RpcError(f"{node.name} does not respond")
        return state


def _node(folder: Path, index: int) -> CometNode:
    home = folder / f"node{index}"
    home.mkdir()
    (home / "node.log").touch()
    node = CometNode(f"node{index}", Role.VALIDATOR, NodeEndpoints(f"10.0.0.{index}"), home, Path("program"))
    node.current = cast(Any, Process(10 + index))
    return node


class Client:
    """Queries one node of its class's network."""

    world: Scripted

    def __init__(self, address: str, timeout_s: float) -> None:
        self.world.queried.append((address, timeout_s))
        self.address = address

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def height(self) -> int:
        """The node's height."""
        return self.world.state(self.address).height

    def mempool_size(self) -> int:
        """The transactions in its mempool."""
        return self.world.state(self.address).waiting

    def mempool(self) -> tuple[list[bytes], int]:
        """The listed ones, and the number of all."""
        state = self.world.state(self.address)
        return list(state.listed), state.waiting


class Pool:
    """Does everything in turn, so that each test is the same every time."""

    def __init__(self, pools: list[tuple[int, str]], most: int, name: str) -> None:
        pools.append((most, name))

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def map(self, work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """The results."""
        return map(work, items)


def scripted(folder: Path, monkeypatch: pytest.MonkeyPatch, nodes: int = 2) -> Scripted:
    """A network that the measurement queries instead of a real one, one node after the other."""
    own = Scripted(folder, Clock(), nodes)

    monkeypatch.setattr(workload, "time", own.clock)
    monkeypatch.setattr(workload, "RpcClient", type("Own", (Client,), {"world": own}))
    monkeypatch.setattr(workload, "ThreadPoolExecutor", partial(Pool, own.pools))
    return own


class Listener:
    """Records the reported progress, and the live figures at the end."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.updates: list[tuple[float, str]] = []
        self.figures: LiveFigures | None = None

    def stage(self, name: str) -> None:
        """Record it."""
        self.stages.append(name)

    def update(self, fraction: float, detail: str = "") -> None:
        """Record it."""
        self.updates.append((round(fraction, 6), detail))

    @contextmanager
    def live(self, source: Callable[[], LiveFigures]) -> Iterator[None]:
        """Record the figures on leaving."""
        yield
        self.figures = source()


@dataclass
class Companion:
    """Another activity during the load."""

    is_finished: bool = True
    least_rest_s: float = 1.0
    calls: Counter[str] = field(default_factory=Counter)

    def step(self) -> None:
        """Count it."""
        self.calls["step"] += 1

    def rest_s(self) -> float:
        """A fixed time."""
        return self.least_rest_s

    def load_ended(self) -> None:
        """Count it."""
        self.calls["load ended"] += 1

    def finished(self) -> bool:
        """As the test sets it."""
        return self.is_finished


class Load:
    """A load source that records its calls.

    Args:
        progress: its counts at each check, until it ends.
        events: the observed messages.
    """

    def __init__(self, progress: Sequence[Mapping[str, int]] = (), events: Sequence[tuple[int, bytes]] = ()) -> None:
        self.calls: list[str] = []
        self._left = list(progress)
        self._last: Mapping[str, int] = progress[-1] if progress else {}
        self._events = list(events)
        self.failure: Exception | None = None

    def observe(self) -> None:
        """Record it; fail if the test wants that."""
        self.calls.append("observe")
        if self.failure is not None:
            raise self.failure

    def start(self) -> int:
        """Time 0 of the schedule."""
        self.calls.append("start")
        return 100 * NS

    def progress(self) -> Mapping[str, int]:
        """The next counts, then the last ones."""
        return self._left.pop(0) if self._left else self._last

    def running(self) -> bool:
        """Whether counts are left."""
        return bool(self._left)

    def stop(self) -> None:
        """Record it."""
        self.calls.append("stop")

    def finish(self) -> object:
        """The records."""
        self.calls.append("finish")
        return "records"

    def end_observation(self) -> list[tuple[int, bytes]]:
        """The messages."""
        self.calls.append("end observation")
        return self._events

    def reconnects(self) -> int:
        """Three losses of the subscription."""
        return 3


def counts(offered: int, due: int, sent: int, accepted: int) -> Mapping[str, int]:
    """The progress of a load; every response accepts."""
    return {"offered": offered, "due": due, "sent": sent, "answered": accepted, "accepted": accepted}


def ticker(error: Exception | None = None) -> Any:
    """A sampler that has failed, if there is an error."""
    return SimpleNamespace(error=lambda: error)


def load_order(**changes: Any) -> LoadRequest:
    """The default load on four validators, with these changes of the profile."""
    content = {"system": "cometbft", "name": "p", "network": {"validators": 4}, **changes}
    return LoadRequest(CometBFTProfile.model_validate(content), 7, EXPERIMENT)


def both(height: int, waiting: int = 0) -> States:
    """Two nodes in the same state."""
    return {name: State(height, unlisted=waiting) for name in ("node0", "node1")}
