"""Whole measurements of a running network, and its samplers: everything that was seen, in order, and nothing lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chainmark.core.compressed import open_zstd
from chainmark.core.errors import EnvironmentFailure
from chainmark.core.manifest import Incident
from chainmark.systems.cometbft import workload
from chainmark.systems.cometbft.launch import NetworkFailure
from chainmark.systems.cometbft.workload import (
    LoadRequest,
    Measurement,
    PendingTransactions,
    _profiling,
    _ticking,
    measure,
)

from tests.unit.systems.cometbft.scripted_network import (
    NS,
    Companion,
    Listener,
    Load,
    Process,
    Scripted,
    State,
    both,
    counts,
    load_order,
    scripted,
)


class Ticker:
    """A sampler that is never due."""

    def __init__(self, calls: list[object], action: object, name: str) -> None:
        self._calls = calls
        calls.append((action, name))

    def stop(self) -> None:
        """Record it."""
        self._calls.append("ticker stopped")

    def error(self) -> None:
        """It has none."""


class Scraper:
    """A scraper whose pages the test gives."""

    def __init__(self, calls: list[object], pages: Mapping[str, bytes], urls: Mapping[str, str], folder: Path) -> None:
        self._calls, self.last_pages = calls, pages
        calls.append((urls, folder))
        self.stored, self.missed = {"node0": 5, "node1": 6}, {"node0": 1, "node1": 2}

    def scrape(self) -> None:
        """Store nothing."""

    def close(self) -> None:
        """Record it."""
        self._calls.append("scraper closed")


class Sampler:
    """A sampler of processes that do not exist."""

    def __init__(self, calls: list[object], pids: Mapping[str, list[int]]) -> None:
        self._calls = calls
        calls.append(pids)

    def tickers(self) -> list[Ticker]:
        """Its only one."""
        return [Ticker(self._calls, "sample", "own")]

    def processes(self) -> str:
        """The samples."""
        return "processes"

    def pressure(self) -> str:
        """The samples."""
        return "pressure"


class Samplers:
    """The samplers of a run; ``calls`` records how they are made and stopped, ``pages`` are the last scraped ones."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[object] = []
        self.pages: dict[str, bytes] = {}
        monkeypatch.setattr(workload, "Ticker", partial(Ticker, self.calls))
        monkeypatch.setattr(workload, "Scraper", partial(Scraper, self.calls, self.pages))
        monkeypatch.setattr(workload, "ResourceSampler", partial(Sampler, self.calls))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    return scripted(tmp_path, monkeypatch)


@pytest.fixture
def samplers(monkeypatch: pytest.MonkeyPatch) -> Samplers:
    return Samplers(monkeypatch)


@contextmanager
def _sampled(samplers: Samplers) -> Iterator[list[Any]]:
    scraper, sampler = Scraper(samplers.calls, {}, {}, Path()), Sampler(samplers.calls, {})
    samplers.calls.clear()
    with _ticking(cast(Any, sampler), cast(Any, scraper)) as tickers:
        assert samplers.calls == [("sample", "own"), (scraper.scrape, "scrape")]
        yield cast(list[Any], tickers)


def test_all_samplers_stop_with_the_run(samplers: Samplers) -> None:
    with _sampled(samplers) as tickers:
        assert len(tickers) == 2
    assert samplers.calls[2:] == ["ticker stopped", "ticker stopped", "scraper closed"]


def test_the_scraped_pages_are_closed_after_a_failure(samplers: Samplers) -> None:
    with pytest.raises(ZeroDivisionError), _sampled(samplers) as tickers:
        tickers.insert(0, SimpleNamespace(stop=lambda: 1 / 0))
    assert samplers.calls[-1] == "scraper closed"


class Taker:
    """Records the calls of a profile taker."""

    made: tuple[object, ...] = ()
    calls: list[str] = []  # noqa: RUF012 - a fixture renews it

    def __init__(self, *arguments: object) -> None:
        type(self).made = arguments

    def start(self) -> None:
        """Record it."""
        self.calls.append("start")

    def finish(self) -> list[str]:
        """One profile is missing."""
        self.calls.append("finish")
        return ["node1 has no heap profile"]

    def stop(self) -> None:
        """Record it."""
        self.calls.append("stop")


@pytest.fixture
def taker(monkeypatch: pytest.MonkeyPatch) -> type[Taker]:
    own = type("Own", (Taker,), {"calls": []})
    monkeypatch.setattr(workload, "ProfileTaker", own)
    return own


def _profiled(warm_up_s: float = 2.0) -> LoadRequest:
    plain = load_order(load={"warm_up_s": warm_up_s, "duration_s": 3.5})
    return LoadRequest(plain.profile, plain.seed, plain.experiment_id, profiles=("cpu", "heap"))


def test_profiles_are_recorded_over_the_window(world: Scripted, taker: type[Taker]) -> None:
    world.network.members[1].beside = cast(Any, Process(99))
    with _profiling(world.network, _profiled(), Path("profiles"), 100 * NS) as missing:
        assert (missing, taker.calls) == ([], ["start"])
    assert missing == ["node1 has no heap profile"]
    assert taker.calls == ["start", "finish", "stop"]
    assert taker.made == (
        {"node0": "10.0.0.0:6060", "node1": "10.0.0.1:6060"},
        ("cpu", "heap"),
        Path("profiles"),
        (102 * NS, 105 * NS + NS // 2),
        {"node1 application": [99]},
    )


def test_no_profiles_are_recorded_unless_requested_and_none_after_a_failure(
    world: Scripted, taker: type[Taker]
) -> None:
    with _profiling(world.network, load_order(), Path("profiles"), 0) as missing:
        pass
    assert (missing, taker.calls) == ([], [])
    with pytest.raises(ZeroDivisionError), _profiling(world.network, _profiled(), Path("profiles"), 0):
        raise ZeroDivisionError
    assert taker.calls == ["start", "stop"]


def test_nothing_is_measured_if_a_node_has_already_died(world: Scripted, tmp_path: Path) -> None:
    world.processes.lost = ["node0 died", "node1 died"]
    with pytest.raises(NetworkFailure) as error:
        measure(world.network, load_order(), tmp_path, Listener())
    assert (error.value.message, error.value.network, error.value.died) == (
        "node0 died; node1 died",
        world.network,
        True,
    )


@pytest.mark.usefixtures("samplers")
@pytest.mark.parametrize("step", ["observe", "start"])
def test_a_network_that_accepts_no_load_is_not_measured(
    world: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def refuse() -> None:
        raise EnvironmentFailure("refused")

    load = Load()
    monkeypatch.setattr(load, step, refuse)
    monkeypatch.setattr(workload, "TransactionGenerator", lambda _: load)
    with pytest.raises(NetworkFailure, match=r"^refused$") as error:
        measure(world.network, load_order(), tmp_path, Listener())
    assert error.value.network is world.network


PAGE = b"cometbft_consensus_latest_block_height 21\n"
EVENTS = [(101, b"first"), (202, b"second")]


class Acting(Companion):
    """Perturbs until 2 s after the beginning; meanwhile one node dies, another one at the very end."""

    def __init__(self, world: Scripted, instruments: Any) -> None:
        super().__init__()
        self.world, self.instruments = world, instruments

    def step(self) -> None:
        """Kill a node that was not to die."""
        if not self.instruments.incidents:
            self.instruments.incidents.append(Incident(time_ns=100 * NS, what="planned", planned=True))
            self.world.processes.lost.append("node1 died")

    def finished(self) -> bool:
        """From the last check of the load on."""
        if len(self.world.clock.slept) == 18:
            self.world.processes.lost = ["node1 died", "node0 died"]
        return len(self.world.clock.slept) >= 16


def _log(world: Scripted, node: int, line: str) -> None:
    (world.network.members[node].home / "node.log").write_text(f"E[x] {line}\n")


def test_a_measurement_holds_everything_that_was_seen(
    world: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taker: type[Taker], samplers: Samplers
) -> None:
    """The network is halted for 2 s on purpose, longer than it may otherwise be."""
    listener = Listener()
    samplers.pages["node0"] = PAGE
    load = Load([counts(8, 6, 2, 1)] * 16, EVENTS)
    monkeypatch.setattr(workload, "TransactionGenerator", lambda _: load)
    actings: list[Acting] = []

    def disturber(instruments: Any, *_: object) -> Acting:
        assert instruments.network is world.network
        assert isinstance(instruments.sampler, Sampler)
        assert isinstance(instruments.scraper, Scraper)
        actings.append(Acting(world, instruments))
        return actings[-1]

    joining = Companion(least_rest_s=0.15)
    monkeypatch.setattr(workload, "Disturber", disturber)
    monkeypatch.setattr(workload, "Rotation", lambda *_: joining)
    _log(world, 0, "Stopping peer for error module=p2p err=EOF")
    _log(world, 1, 'CONSENSUS FAILURE!!! module=consensus err="wrong AppHash"')
    world.network.links = cast(Any, SimpleNamespace(stats=lambda: "statistics"))
    world.states = [{"node0": State(5), "node1": State(4)}, *[both(10)] * 16, both(11)]
    world.states += [{"node0": State(12), "node1": State(13)}]
    order = load_order(
        load={"warm_up_s": 2.0, "duration_s": 3.0, "rate": 2},
        gates={"no_block_max_s": 1.0},
        perturbation=[{"kind": "kill", "nodes": [1], "at_s": 1}],
        rotating={"joiners": 1},
    )
    order = LoadRequest(order.profile, order.seed, order.experiment_id, profiles=("cpu",))

    measured = measure(world.network, order, tmp_path, listener)

    assert measured == Measurement(
        start_ns=100 * NS,
        records=cast(Any, "records"),
        observed=EVENTS,
        processes=cast(Any, "processes"),
        pressure=cast(Any, "pressure"),
        scrape_files={name: tmp_path / "scrapes" / f"{name}.prom.zst" for name in ("node0", "node1")},
        scrapes_missed=3,
        first_height=5,
        last_height=13,
        drained=True,
        waiting=PendingTransactions(),
        reader=world.network.node("node1"),
        observer_reconnects=3,
        broken_off="",
        stopped={"node1": "wrong AppHash"},
        incidents=[
            Incident(time_ns=100 * NS, what="planned", planned=True),
            Incident(time_ns=100 * NS + 15 * NS // 100, what="node1 died"),
            Incident(time_ns=world.clock.time_ns(), what="node0 died"),
        ],
        deaths=["node1 died", "node0 died"],
        links=cast(Any, "statistics"),
        disturber=cast(Any, actings[0]),
        rotation=cast(Any, joining),
        broken_connections={"node0": Counter({"EOF": 1}), "node1": Counter()},
        profiles_missing=["node1 has no heap profile"],
    )
    assert samplers.calls == [
        {"node0": [10], "node1": [11]},
        ({f"node{index}": f"http://10.0.0.{index}:26660/metrics" for index in range(2)}, tmp_path / "scrapes"),
        ("sample", "own"),
        (cast(Any, samplers.calls[3])[0], "scrape"),
        *["ticker stopped"] * 2,
        "scraper closed",
    ]
    assert load.calls == ["observe", "start", "stop", "finish", "end observation"]
    assert taker.made[2:4] == (tmp_path / "profiles", (102 * NS, 105 * NS))
    assert listener.stages == ["offering 2 tx/s", "draining the mempools"]
    assert listener.figures is not None
    assert (listener.figures.schedule_lag_s, listener.figures.heights) == (2.0, {"node0": 21})
    with open_zstd(tmp_path / "commits.jsonl.zst") as file:
        assert file.read() == b"101\tfirst\n202\tsecond\n"


def _offer(monkeypatch: pytest.MonkeyPatch, polls: int) -> None:
    load = Load([counts(8, 6, 2, 1)] * polls)
    monkeypatch.setattr(workload, "TransactionGenerator", lambda _: load)


@pytest.mark.usefixtures("samplers")
def test_a_measurement_tells_which_nodes_stopped_while_transactions_wait(
    world: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _offer(monkeypatch, 1)
    _log(world, 0, 'CONSENSUS FAILURE!!! module=consensus err="wrong AppHash"')
    world.states = [both(5), {"node0": State(10), "node1": State(9)}, {"node0": State(13, (b"a",)), "node1": State(9)}]
    measured = measure(world.network, load_order(load={"drain_timeout_s": 0.3}), tmp_path, Listener())
    assert not measured.drained
    assert world.clock.slept == [0.2] * 3
    assert measured.waiting == PendingTransactions(frozenset({b"a"}), 1, 0)
    assert measured.stopped == {"node0": "wrong AppHash", "node1": "it stayed at height 9 of 13"}
    assert (measured.last_height, measured.reader) == (13, world.network.node("node0"))
    assert (measured.links, measured.disturber, measured.rotation) == (None, None, None)
    assert measured.profiles_missing == []


def test_a_measurement_ends_when_the_network_halts(
    world: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, samplers: Samplers
) -> None:
    """It is not read from any node, as none responds."""
    _offer(monkeypatch, 100)
    samplers.pages["node0"] = PAGE
    measured = measure(world.network, load_order(gates={"no_block_max_s": 1.5}), tmp_path, Listener())
    assert measured.broken_off == "no block for 1.5 s at height 21"
    assert [incident.what for incident in measured.incidents] == [measured.broken_off]
    assert (measured.first_height, measured.last_height, measured.reader, measured.drained) == (0, 0, None, False)
