"""Checks that reject logs before anything is measured: each limit, and each error message with its hint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from chainmark.core.errors import UsageError
from chainmark.systems.cardano.accounting import Head, HostSummary, LineCounts, MalformedLine
from chainmark.systems.cardano.checks import (
    check_any,
    check_heads,
    check_one_network,
    check_read,
    genesis_hint,
    implied_start,
)
from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.logs import ClusterLogs, HostLogs
from chainmark.systems.cardano.unread import Unread

from tests.unit.systems.cardano.traces import GENESIS, forger, key, observer, slot_ns, timelines_frame

START = "2026-02-02T02:40:00Z"
OWN_GENESIS = "give the network's genesis with `--genesis FILE`"
ALONE = "import each network separately: `--exclude {}` excludes a host and may be repeated"


def log(name: str, late_s: Sequence[float] = (0.0, 0.0, 0.0), *, size: int = 1, **head: Any) -> Any:
    """A log whose forge loop was this late in the first slots."""
    starts = [(slot, slot_ns(slot) + round(late * 1e9)) for slot, late in enumerate(late_s)]
    content = {"objects": 10, "backward": 0, "problem": None, "starts": starts} | head
    return SimpleNamespace(name=name, stored_bytes=size, head=Head.model_construct(None, **content))


def cluster(*hosts: tuple[str, list[Any]], unread: Sequence[Unread] = ()) -> ClusterLogs:
    return ClusterLogs(Path(), tuple(HostLogs(name, tuple(files)) for name, files in hosts), unread=tuple(unread))


def late(**hosts: float) -> ClusterLogs:
    """Hosts with one log each, by the lateness of their forge loops."""
    return cluster(*((name, [log(f"{name}/log", [seconds] * 3)]) for name, seconds in hosts.items()))


def refused(logs: ClusterLogs, genesis: Genesis = GENESIS) -> tuple[str, str | None]:
    with pytest.raises(UsageError) as error:
        check_heads(logs, genesis)
    return error.value.message, error.value.hint


def test_hosts_whose_slots_match_the_genesis_are_accepted() -> None:
    """A host that hung may begin an hour late. A host without a forge loop gives no evidence."""
    check_heads(late(a=0.0, b=3600.0, c=-3600.0), GENESIS)
    check_heads(cluster(("a", [log("a/log", [])]), ("b", [log("b/log", [])])), GENESIS)


@pytest.mark.parametrize("seconds", [30.0, -30.0])
def test_all_clocks_may_be_off_by_30_seconds(seconds: float) -> None:
    check_heads(late(a=seconds, b=seconds), GENESIS)


@pytest.mark.parametrize(
    ("seconds", "begin"),
    [
        (31.0, "31.0 seconds later"),
        (-59.0, "59.0 seconds earlier"),
        (60.0, "1.0 minutes later"),
        (3600.0, "1.0 hours later"),
        (86_400.0, "1.0 days later"),
        (-129_600.0, "1.5 days earlier"),
    ],
)
def test_slots_that_match_no_host_belong_to_another_genesis(seconds: float, begin: str) -> None:
    message, hint = refused(late(a=seconds + (1.0 if seconds > 0 else -1.0), b=seconds))
    assert message == (
        f"these logs do not match the genesis: it has slots of 1 s from {START} on, but the logs' slots begin {begin}"
    )
    assert hint is not None
    assert hint.startswith(f"{OWN_GENESIS}; with slots of 1 s, theirs began at `--set genesis.system_start=2026-0")


def test_long_slots_may_differ_by_two_between_genesis_and_logs() -> None:
    slow = replace(GENESIS, slot_length_s=20.0)
    logs = cluster(("a", [log("a/log", starts=[(slot, slow.slot_start_ns(slot) + 40 * 10**9) for slot in range(3)])]))
    check_heads(logs, slow)
    beyond = cluster(("a", [log("a/log", starts=[(slot, slow.slot_start_ns(slot) + 41 * 10**9) for slot in range(3)])]))
    message, hint = refused(beyond, slow)
    assert "it has slots of 20 s from 2026-02-02T02:40:00Z on, but the logs' slots begin 41.0 seconds later" in message
    assert (hint or "").endswith(
        "with slots of 20 s, theirs began at `--set genesis.system_start=2026-02-02T02:40:41Z`"
    )


def test_hosts_with_another_start_belong_to_another_network() -> None:
    """The host that is furthest off is reported; if it is a single host, it is the first one to exclude."""
    message, hint = refused(late(a=0.0, b=3601.0, c=7200.0, d=10.0))
    assert message == (
        "logs of two different networks: the slots of b and c begin 2.0 hours later than those of the genesis, which "
        "the other hosts match"
    )
    assert hint == ALONE.format("b")
    assert "365.0 days earlier" in refused(late(a=0.0, b=-365 * 86_400.0, c=3700.0))[0]


def test_a_host_without_lines_is_reported_with_the_reason() -> None:
    rest = ("b", [log("b/log")])
    empty = cluster(("a", [log("a/1", size=0), log("a/2", size=0)]), rest)
    assert refused(empty) == ("a has no log lines: a/1 and a/2 is empty", "`--exclude a` excludes it")
    none = cluster(("a", []), rest, unread=[Unread("ab/x.zip", "packed")])
    assert refused(none) == ("a has no log lines: its folder has no log in it", "`--exclude a` excludes it")
    packed = cluster(("a", []), rest, unread=[Unread("a/x.zip", "packed"), Unread("b/y.zip", "packed")])
    message, hint = refused(packed)
    assert message == "a has no log lines: not read: a/x.zip (packed)"
    assert (hint or "").startswith("logs must be UTF-8 text")
    assert (hint or "").endswith("; `--exclude a` excludes it")
    check_heads(cluster(("a", [log("a/1", size=0), log("a/2")]), rest), GENESIS)


def test_a_log_in_reverse_order_is_reported() -> None:
    logs = cluster(("a", [log("a/1"), log("a/2", backward=9)]))
    assert refused(logs) == (
        "the lines of a/2 are in reverse order",
        "logs must start with the oldest line: `tac FILE` reverses a file",
    )


def test_logs_of_two_runs_in_one_folder_are_reported_before_a_wrong_genesis() -> None:
    """Only if slots are as long as in the genesis: otherwise nothing is known about the start of slot 0."""
    two = cluster(("a", [log("a/1"), log("a/2", [90_000.0] * 3)]))
    assert refused(two)[0].startswith("these are logs of 2 runs, whose slot 0 began at ")
    assert refused(two, replace(GENESIS, slot_length_s=2.0))[0].startswith("these logs do not match the genesis")
    slow = [log(f"a/{day}", starts=[(slot, slot_ns(20 * slot + day * 90_000)) for slot in range(3)]) for day in (0, 1)]
    near = refused(cluster(("a", slow)), replace(GENESIS, slot_length_s=20.3))[0]
    assert near.startswith("these are logs of 2 runs"), "a difference within the clocks' error decides nothing"


def test_files_without_node_messages_are_refused() -> None:
    def message_of(*files: Any) -> str:
        with pytest.raises(UsageError) as error:
            check_any(cluster(("a", list(files))))
        assert (error.value.hint or "").endswith("as cardano-node, docker or `journalctl -o json` print them")
        return error.value.message

    empty_log = log("a/1", objects=0)
    assert (
        message_of(empty_log)
        == "no logs: a/1: its name is that of a log, but it contains no line that cardano-node prints"
    )
    assert message_of(log("a/1", objects=0, problem="no JSON")).endswith("no line that cardano-node prints (no JSON)")
    empty = [log(f"a/{number}", objects=0, size=0) for number in (1, 2)]
    assert message_of(*empty) == "no logs: a/1 and a/2: their names are those of logs, but they contain no lines"
    assert message_of(empty[0], empty_log).endswith("they contain no line that cardano-node prints")
    check_any(cluster(("a", [empty_log, log("a/2")])))


def test_the_hint_for_a_missing_genesis_contains_the_values_in_the_logs() -> None:
    second = genesis_hint(late(a=0.4, b=0.2))
    assert second == (
        f"give it with `--genesis FILE`, or state it; for slots of 1 s it is `--set genesis.system_start={START}`"
    )
    once = cluster(("a", [log("a/1", starts=[(100, slot_ns(100))])]))
    assert genesis_hint(once) == second, "one round does not show the length of a slot"
    half = log("a/1", starts=[(2 * slot, slot_ns(slot)) for slot in range(5)])
    assert genesis_hint(cluster(("a", [half]))) == (
        "give it with `--genesis FILE`, or state it; according to the logs it is "
        f"`--set genesis.system_start={START} --set genesis.slot_length_s=0.5`"
    )
    nothing = genesis_hint(cluster(("a", [log("a/1", [])])))
    assert nothing.startswith("give it with `--genesis FILE`, or state what is known: `--set")
    with pytest.raises(UsageError, match=r"^these are logs of 2 runs"):
        genesis_hint(late(a=0.0, b=90_000.0))


def test_the_start_is_that_of_most_rounds_despite_outliers() -> None:
    logs = cluster(("a", [log("a/1", [500.0, 0.0, 0.0])]), ("b", [log("b/1", [7.0, 0.0, 0.0])]))
    assert implied_start(logs, 1.0) == START
    assert implied_start(cluster(("a", [log("a/1", starts=[(100, slot_ns(100))])])), 2.0) == "2026-02-02T02:38:20Z"
    assert implied_start(cluster(("a", [log("a/1", [])])), 1.0) is None


# --- checks that need the whole logs ---------------------------------------------------------------------------------


def host(loop_s: float | None = 0.002, **changed: Any) -> HostSummary:
    counts: dict[str, Any] = {
        "raw_lines": 299, "objects": 10, "decoded": 5, "malformed_examples": [], "first_ns": slot_ns(0),
        "last_ns": slot_ns(100), "names": {}, "network_magic": None,
    }  # fmt: skip
    fields: dict[str, Any] = {
        "line_counts": LineCounts.model_construct(**counts | changed),
        "loop_offsets_s": None if loop_s is None else (-1e9, loop_s, 1e9),
    }
    return HostSummary.model_construct(**fields)


def refused_read(genesis: Genesis = GENESIS, /, **hosts: HostSummary) -> tuple[str, str | None]:
    with pytest.raises(UsageError) as error:
        check_read(hosts, genesis)
    return error.value.message, error.value.hint


def test_a_host_without_usable_lines_is_reported_with_the_reason() -> None:
    check_read({"a": host(), "b": host(objects=1, decoded=0)}, GENESIS)
    nothing = host(raw_lines=0, objects=0, decoded=0)
    assert refused_read(a=host(), b=nothing) == ("b has no log lines", "`--exclude b` excludes it")
    line = MalformedLine(file="/logs/b/stdout", line=12, reason="no JSON", text="x")
    message, hint = refused_read(a=host(), b=host(objects=0, decoded=0, malformed_examples=[line]))
    assert message == "none of the 299 lines of b can be read as a trace message; line 12 of stdout: no JSON"
    assert hint == (
        "logs are JSON lines as cardano-node, docker or `journalctl -o json` print them; `--exclude b` excludes it"
    )
    message, _ = refused_read(a=host(), b=host(objects=0, decoded=0))
    assert message == "none of the 299 lines of b can be read as a trace message"


def test_the_hint_for_nodes_without_usable_traces_lists_the_required_ones() -> None:
    message, hint = refused_read(a=host(decoded=0), b=host(decoded=0))
    assert message == "these are a node's messages, but none of them concerns slots, blocks or resources"
    assert hint == "nodes must trace Forge.Loop, ChainSync.Client, BlockFetch.Client and ChainDB.AddBlockEvent at Info"


def test_logs_that_end_before_the_start_of_the_chain_are_refused() -> None:
    """The logs must reach the chain's first moment. One host with a longer log is enough to check its slots."""
    old, begun = host(None, last_ns=slot_ns(0) - 1), host(None, last_ns=slot_ns(0))
    assert refused_read(a=old, b=host(None, last_ns=slot_ns(-60)), c=host(None, last_ns=None)) == (
        "these logs do not match the genesis: they end at 2026-02-02T02:39:59Z, but its slot 0 began at "
        "2026-02-02T02:40:00Z",
        OWN_GENESIS,
    )
    check_read({"a": old, "b": begun}, GENESIS)
    check_read({"a": host(None, last_ns=None)}, GENESIS)


def test_forge_loops_are_compared_with_the_genesis_by_their_medians() -> None:
    message, hint = refused_read(a=host(31.0), b=host(None))
    assert "the logs' slots begin 31.0 seconds later" in message
    assert hint == OWN_GENESIS
    assert "the slots of b begin 2.0 hours later" in refused_read(a=host(), b=host(7200.0))[0]


@pytest.mark.parametrize("magic", ["42", "NetworkMagic {unNetworkMagic = 42}", None, "1.5", "4 or 2", "x42", ""])
def test_a_network_magic_is_parsed_and_an_invalid_one_is_ignored(magic: str | None) -> None:
    check_read({"a": host(network_magic=magic), "b": host()}, GENESIS)


def test_a_different_magic_means_a_different_network() -> None:
    foreign = host(network_magic="43")
    assert refused_read(a=foreign, b=foreign, c=host()) == (
        "these logs do not match the genesis: their network magic is 43, its is 42",
        OWN_GENESIS,
    )
    summaries = {"a": host(network_magic="42"), "b": foreign, "c": foreign}
    assert refused_read(**summaries) == (
        "logs of two different networks: the magic of b and c is 43, that of the others 42",
        ALONE.format("b"),
    )
    # The magic is missing from a genesis given by options: it is taken from the first host.
    stated = replace(GENESIS, network_magic=None)
    assert refused_read(stated, **summaries)[0].startswith("logs of two different networks: the magic of b and c is 43")
    check_read({"a": foreign, "b": foreign}, stated)
    check_read({"a": host()}, stated)
    assert "the magic of b is 43, that of the others 42" in refused_read(a=host(network_magic="42"), b=foreign)[0]
    assert "their network magic is 43, its is 42" in refused_read(a=foreign)[0]


def test_two_logs_of_one_host_name_must_overlap_in_time() -> None:
    parts = {"a": host(names={"x": 9}, last_ns=slot_ns(10)), "b": host(names={"x": 9}, first_ns=slot_ns(11))}
    assert refused_read(**parts)[0].startswith("a and b are both logs of the host x")


# --- blocks that connect hosts ----------------------------------------------------------------------------------------


def _timelines(folder: Path, rows: Mapping[str, list[dict[str, Any]]]) -> dict[str, Path]:
    paths = {name: folder / f"{name}.parquet" for name in rows}
    for name, path in paths.items():
        timelines_frame(rows[name]).write_parquet(path)
    return paths


def _stranger(number: int = 1, branch: str = "c") -> dict[str, Any]:
    """A block of another chain, as its forger reports it."""
    return forger(number, number, branch=branch, parent=key(number - 1, branch))


def test_hosts_belong_to_one_network_if_blocks_connect_them(tmp_path: Path) -> None:
    """A third host or a common parent is enough. A host that knows no block belongs to no network."""
    rows = {
        "a": [forger(1, 5), observer(2, 10)],
        "c": [observer(3, 15), observer(4, 20)],
        "b": [observer(2, 10), observer(3, 15)],
        "d": [forger(5, 25)],
        "e": [],
    }
    assert check_one_network(_timelines(tmp_path, rows)) == []
    assert check_one_network(_timelines(tmp_path, {"e": []})) == []


def test_a_host_that_received_no_block_is_reported_but_not_refused(tmp_path: Path) -> None:
    rows = {"a": [forger(1, 5)], "b": [observer(1, 5)], "c": [_stranger()]}
    assert check_one_network(_timelines(tmp_path, rows)) == ["c"]


def test_the_start_of_the_chain_does_not_connect_hosts(tmp_path: Path) -> None:
    """It is the parent of the first block of every chain."""
    rows = {"a": [forger(0, 5)], "b": [observer(0, 5)], "c": [forger(0, 6, branch="c")]}
    assert check_one_network(_timelines(tmp_path, rows)) == ["c"]


def test_hosts_with_blocks_unknown_to_others_belong_to_another_network(tmp_path: Path) -> None:
    rows = {
        "x": [observer(1, 6, branch="c")],
        "a": [forger(1, 5)],
        "b": [observer(1, 5)],
        "z": [_stranger(branch="d")],
    }
    with pytest.raises(UsageError) as error:
        check_one_network(_timelines(tmp_path, rows))
    assert error.value.message == "logs of two different networks: a and b and x share no block"
    assert error.value.hint == ALONE.format("x")
    # x and y know each other: each forged only its own blocks, but the parents connect them.
    common = {name: [observer(1, 5)] for name in "abc"}
    pair = {**common, "x": [_stranger(1)], "y": [_stranger(2), observer(3, 9, branch="c")]}
    with pytest.raises(UsageError, match=r"^logs of two different networks: a, b and c and x and y share no block$"):
        check_one_network(_timelines(tmp_path, pair))


def test_a_table_without_times_shows_no_received_blocks(tmp_path: Path) -> None:
    frame = timelines_frame([observer(1, 6, branch="c", noticed_ns=None)])
    assert frame.get_column("noticed_ns").null_count() == 1
    frame.write_parquet(tmp_path / "x.parquet")
    rows = _timelines(tmp_path, {"a": [forger(1, 5)], "b": [observer(1, 5)]})
    assert check_one_network({**rows, "x": tmp_path / "x.parquet"}) == ["x"]
    assert pl.read_parquet(tmp_path / "x.parquet").height == 1
