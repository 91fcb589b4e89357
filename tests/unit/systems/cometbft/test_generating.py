"""A load that several generators offer together: what each one does, and their records as those of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.network.agent import HostAgent
from chainmark.network.remote import RemoteHost
from chainmark.systems.cometbft.generating import (
    TIMES,
    GeneratorOrder,
    RemoteGenerators,
    TransactionGenerator,
    joined,
)
from chainmark.systems.cometbft.placement import spread
from chainmark.systems.cometbft.shape import Member, Role
from chainmark.systems.cometbft.system import _machines

if TYPE_CHECKING:
    from chainmark._native import LoadResult

LOAD: dict[str, Any] = {
    "targets": [f"ws://127.0.0.1:{port}/" for port in range(1, 6)],
    "rate_per_connection": 10,
    "duration_s": 1.0,
    "size_bytes": 256,
    "method": "sync",
    "schedule": "even",
    "seed": 1,
    "experiment_id": bytes(16),
    "answer_timeout_s": 1.0,
    "send_grace_s": 0.0,
    "given": None,
}


@pytest.mark.parametrize(("count", "firsts"), [(1, [0]), (2, [0, 2]), (3, [0, 1, 3]), (9, [0, 1, 2, 3, 4])])
def test_every_connection_is_made_by_one_generator(count: int, firsts: list[int]) -> None:
    """One that is made twice or by none changes the load; with too many generators, some have nothing to do."""
    parts = GeneratorOrder(LOAD, "ws://127.0.0.1:1/").split(count)
    assert [target for part in parts for target in part.load["targets"]] == LOAD["targets"]
    assert [part.load["share"] for part in parts] == [(first, 5) for first in firsts]
    assert [part.observed_url for part in parts] == ["ws://127.0.0.1:1/"] + [None] * (len(parts) - 1)


def _records(connection: int, cpu_s: float, wall_s: float, errors: dict[str, int]) -> LoadResult:
    def column(value: int, kind: str) -> bytes:
        return np.array([value, value], dtype=kind).tobytes()

    return {
        "connection": column(connection, "<u4"),
        "sequence": np.array([0, 1], dtype="<u4").tobytes(),
        "due_ns": column(10 * connection, "<i8"),
        "sent_ns": column(10 * connection + 1, "<i8"),
        "answered_ns": column(10 * connection + 2, "<i8"),
        "class": bytes([connection, connection]),
        "check_code": column(connection, "<u4"),
        "hash": bytes([connection]) * 64,
        "size_bytes": column(256 + connection, "<u4"),
        "rows": 2,
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "reconnects": 1 + connection,
        "late_answers": 10 + connection,
        "unmatched_answers": 20 + connection,
        "errors": errors,
    }


def test_the_records_of_all_generators_are_those_of_one_load() -> None:
    """A sum that leaves a generator out would balance all the same."""
    both = joined([_records(0, 1.0, 10.0, {"a": 1, "b": 2}), _records(1, 2.0, 5.0, {"b": 3})])
    connections = np.frombuffer(both["connection"], "<u4")
    assert connections.tolist() == [0, 0, 1, 1]
    assert np.frombuffer(both["sequence"], "<u4").tolist() == [0, 1, 0, 1]
    times = {name: np.frombuffer(both[name], "<i8").tolist() for name in TIMES}
    assert times == {"due_ns": [0, 0, 10, 10], "sent_ns": [1, 1, 11, 11], "answered_ns": [2, 2, 12, 12]}
    assert (both["class"], both["hash"]) == (bytes([0, 0, 1, 1]), bytes(64) + bytes([1]) * 64)
    assert np.frombuffer(both["check_code"], "<u4").tolist() == [0, 0, 1, 1]
    assert np.frombuffer(both["size_bytes"], "<u4").tolist() == [256, 256, 257, 257]
    assert (both["rows"], both["reconnects"], both["late_answers"], both["unmatched_answers"]) == (4, 3, 21, 41)
    assert both["errors"] == {"a": 1, "b": 5}
    assert (both["cpu_s"], both["wall_s"]) == (2.0, 5.0), "the busiest generator"


def test_an_impossible_load_is_refused_on_its_host(tmp_path: Path) -> None:
    agent = HostAgent(tmp_path)
    try:
        host = RemoteHost("10.0.0.1", agent.call)
        with pytest.raises(UsageError, match="transaction size of 1 bytes is too small"):
            RemoteGenerators([host], GeneratorOrder({**LOAD, "size_bytes": 1}, None))
        host.ask_time()
        source = RemoteGenerators([host], GeneratorOrder(LOAD, "ws://127.0.0.1:1/"))
        for ask in (source.observe, source.start):
            with pytest.raises(EnvironmentFailure, match=r"127\.0\.0\.1:1"):
                ask()
        assert not source.running()
        shown = source.progress()
        assert shown["offered"] == 50
    finally:
        agent.call("close")
    assert source.progress() == shown, "the display of a run ends without an error when a host is lost"
    with pytest.raises(EnvironmentFailure, match="stopped"):
        source.running()


def test_larger_hosts_run_more_nodes() -> None:
    """Consecutive nodes are on different hosts as long as that is fair."""
    hosts = [RemoteHost(name, str) for name in "abc"]

    def names(cores: tuple[int, ...]) -> str:
        members = [Member(f"node{number}", Role.VALIDATOR, "", "v1.0.1", (), (), pex=False) for number in range(8)]
        return "".join(host.address for host in spread(members, list(zip(hosts, cores, strict=True))))

    assert names((2, 2, 2)) == "abcabcab"
    assert names((2, 2, 12)) == "cccccabc"


@pytest.mark.parametrize(
    ("cores", "expected"),
    [([1], "1 machine of 1 core"), ([2] * 200, "200 machines of 2 cores"),
     ([4, 2, 2], "2 machines of 2 cores and 1 machine of 4 cores")],
)  # fmt: skip
def test_the_machines_of_the_nodes_are_described_by_their_cores(cores: list[int], expected: str) -> None:
    """A comparison shows this if the sides differ; a list of 200 numbers could not be read."""
    assert _machines(cores) == expected


def test_a_generator_ends_with_the_agent_of_its_host(tmp_path: Path) -> None:
    """Its client was killed: it must not load the nodes for ever."""
    agent = HostAgent(tmp_path)
    agent.call("hold", "generator", TransactionGenerator, GeneratorOrder(LOAD, None))
    assert agent.call("ask", "generator", "progress")["offered"] == 50
    agent.call("close")
    assert agent._objects == {}
