"""Samples of perturbations, joining nodes and broken connections, compared with values worked out by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from chainmark.systems.cometbft.analyse import (
    NS,
    Window,
    joiner_samples,
    joiner_second_samples,
    perturbation_samples,
)
from chainmark.systems.cometbft.connections import broken_connections, consensus_failures, disconnection_warnings
from chainmark.systems.cometbft.disturb import PERTURBATION_SCHEMA, planned_starts
from chainmark.systems.cometbft.gates import restarted_nodes
from chainmark.systems.cometbft.profile import Perturbation
from chainmark.systems.cometbft.rotating import HEIGHT_SCHEMA, JOINER_SCHEMA
from chainmark.systems.cometbft.workload import _stopped

WINDOW = Window(10 * NS, 40 * NS)


def test_a_recovery_starts_at_the_end_of_the_disturbance_in_the_column_of_its_kind() -> None:
    rows = [
        (1, "kill", "node3", "", 12 * NS, 17 * NS, 18 * NS + NS // 2, 20, 24),
        (2, "pause", "node3", "", 25 * NS, 35 * NS, None, 30, 37),
    ]
    samples = perturbation_samples(pl.DataFrame(rows, schema=PERTURBATION_SCHEMA, orient="row"), WINDOW)
    assert samples["perturbation"].to_list() == ["1 kill", "2 pause"]
    assert samples["time_s"].to_list() == pytest.approx([2.0, 15.0])
    assert samples["recovery_kill_s"].to_list() == [1.5, None]
    # The node did not recover, so it has no recovery time. A gate reports this.
    assert samples["recovery_pause_s"].to_list() == [None, None]
    assert samples["blocks_missed"].to_list() == [4.0, 7.0]
    assert "recovery_restart_s" not in samples.columns


def test_kinds_of_perturbations_are_columns_in_order_of_occurrence() -> None:
    """The same sources must give the same bytes."""
    kinds = [f"kind_{number}" for number in range(12)]
    rows = [(place, kind, "node0", "", 12 * NS, 13 * NS, 14 * NS, 1, 2) for place, kind in enumerate(kinds)]
    frame = perturbation_samples(pl.DataFrame(rows, schema=PERTURBATION_SCHEMA, orient="row"), WINDOW)
    assert [name for name in frame.columns if name.startswith("recovery_")] == [f"recovery_{kind}_s" for kind in kinds]


def test_perturbations_are_in_order_of_time_and_kinds_in_profile_order() -> None:
    """The same sources must give the same bytes."""
    rows = [
        (2, "pause", "node1", "", 12 * NS, 13 * NS, 14 * NS, 1, 2),
        (2, "pause", "node0", "", 12 * NS, 13 * NS, 14 * NS, 1, 2),
        (1, "kill", "node4", "", 12 * NS, 13 * NS, 14 * NS, 1, 2),
        (3, "restart", "node0", "", 11 * NS, 13 * NS, 14 * NS, 1, 2),
        *((number, "kill", "node0", "", number * NS, 90 * NS, 91 * NS, 1, 2) for number in range(20, 40)),
    ]
    frame = perturbation_samples(pl.DataFrame(rows, schema=PERTURBATION_SCHEMA, orient="row"), WINDOW)
    first = frame.select("perturbation", "host").rows()[:4]
    assert first == [("3 restart", "node0"), ("1 kill", "node4"), ("2 pause", "node0"), ("2 pause", "node1")]
    kinds = ["recovery_pause_s", "recovery_kill_s", "recovery_restart_s"]
    assert [column for column in frame.columns if column.startswith("recovery")] == kinds


def test_joining_nodes_are_in_order_of_time() -> None:
    begun_ns = {"b": 13 * NS, "c": 12 * NS, "a": 13 * NS}
    rows = [(host, at_ns, at_ns, None, None, True) for host, at_ns in begun_ns.items()]
    joiners = pl.DataFrame(rows, schema=JOINER_SCHEMA, orient="row")
    memory = pl.DataFrame({"host": ["c", "c", "a"], "rss_bytes": [3, 2, 1]})
    frame = joiner_samples(joiners, memory, WINDOW)
    # The node that was never sampled, because it died at once, was started and has a row.
    assert frame.select("host", "joiner_rss_max_bytes").rows() == [("c", 3.0), ("a", 1.0), ("b", None)]
    looks = [(second * NS, host, 1, 1, True) for second in (12, 11) for host in ("b", "c", "a")]
    heights = joiner_second_samples(pl.DataFrame(looks, schema=HEIGHT_SCHEMA, orient="row"), WINDOW)
    assert heights.select("time_s", "host").rows() == [(second, host) for second in (1.0, 2.0) for host in "abc"]


def test_the_speed_of_a_joining_node_is_blocks_divided_by_time() -> None:
    joiners = pl.DataFrame(
        [
            ("joiner0", 12 * NS, 13 * NS, 16 * NS, 40, True),
            ("joiner1", 20 * NS, 21 * NS, None, None, False),
            ("joiner2", None, None, None, None, False),
        ],
        schema=JOINER_SCHEMA,
        orient="row",
    )
    processes = pl.DataFrame(
        {"host": ["joiner0", "joiner0", "joiner1", "node0"], "rss_bytes": [100, 300, 50, 900]},
    )
    samples = joiner_samples(joiners, processes, WINDOW)
    assert samples["host"].to_list() == ["joiner0", "joiner1"]
    assert samples["catch_up_s"].to_list() == [4.0, None]
    assert samples["catch_up_blocks"].to_list() == [40.0, None]
    assert samples["catch_up_blocks_per_s"].to_list() == [10.0, None]
    assert samples["joiner_rss_max_bytes"].to_list() == [300.0, 50.0]


def test_the_last_sample_of_a_second_counts_for_the_heights() -> None:
    rows = [
        (10 * NS + 1, "joiner0", 0, 5, True),
        (10 * NS + 2, "joiner0", 3, 6, True),
        (11 * NS, "joiner0", 6, 6, False),
        (9 * NS, "joiner0", 0, 1, True),  # before the window
    ]
    samples = joiner_second_samples(pl.DataFrame(rows, schema=HEIGHT_SCHEMA, orient="row"), WINDOW)
    assert samples["time_s"].to_list() == [0.0, 1.0]
    assert samples["joiner_height_blocks"].to_list() == [3.0, 6.0]
    assert samples["network_height_blocks"].to_list() == [6.0, 6.0]


def test_a_planned_start_is_not_a_restart_but_a_further_one_is() -> None:
    rows = [("node2", 1.0), ("node2", 7.0), ("node3", 1.0), ("node3", 7.0), ("node3", 9.0)]
    scrapes = pl.DataFrame(rows, schema=["host", "value"], orient="row").with_columns(
        metric=pl.lit("process_start_time_seconds")
    )
    plans = [
        Perturbation(kind="kill", nodes=[2, 3], at_s=1),
        Perturbation(kind="pause", nodes=[3], at_s=5, for_s=1),  # starts no new process
    ]
    assert planned_starts(plans) == Counter({"node2": 1, "node3": 1})
    assert restarted_nodes(scrapes, planned_starts(plans)) == ["node3"]
    assert restarted_nodes(scrapes) == ["node2", "node3"]


LINE = (
    'E[2026-11-21|22:09:17.771] Stopping peer for error   module=p2p peer="Peer{{MConn{{127.0.0.1:59934}} cd8f in}}" '
)


def _log(folder: Path, name: str, *ends: str) -> Path:
    path = folder / f"{name}.log"
    path.write_text("".join(LINE.format() + f"err={end}\n" for end in ends) + "I[…] Executed block module=state\n")
    return path


def test_dropped_peers_are_counted_by_reason_without_the_address(tmp_path: Path) -> None:
    panic = '"recovered from panic: unwrapping message: unknown message: <nil>"'
    logs = {
        "node0": _log(tmp_path, "node0", "EOF", '"read tcp 127.0.0.1:1->127.0.0.1:2: connection reset by peer"', "EOF"),
        "node1": _log(tmp_path, "node1", panic, panic),
        "node2": _log(tmp_path, "node2"),
    }
    broken = broken_connections(logs)
    assert broken["node0"] == Counter({"EOF": 2, "read tcp : connection reset by peer": 1})
    assert broken["node1"] == Counter({panic.strip('"'): 2})
    assert broken["node2"] == Counter()
    (warning,) = disconnection_warnings(broken)
    assert warning.startswith("nodes dropped peers 5 times (node0, node1): 2 × `EOF`, 2 × `recovered from panic")


def test_a_warning_about_many_nodes_names_the_first_ones() -> None:
    (warning,) = disconnection_warnings({f"node{number}": Counter({"pong timeout": 1}) for number in range(200)})
    named = "node0, node1, node2, node3, node4, node5 and 194 more"
    assert warning == f"nodes dropped peers 200 times ({named}): 200 × `pong timeout`"


@pytest.mark.parametrize(
    ("reasons", "end"), [(3, "`c`"), (4, "`c` and 1 other reason"), (5, "`c` and 2 other reasons")]
)
def test_rare_reasons_of_disconnections_are_only_counted(reasons: int, end: str) -> None:
    (warning,) = disconnection_warnings({"node0": Counter({name: 9 - at for at, name in enumerate("abcde"[:reasons])})})
    assert warning.endswith(end)


def test_normal_disconnections_give_no_warning(tmp_path: Path) -> None:
    """Seeds close connections on purpose. If two nodes dial each other at the same time, one of them hangs up."""
    logs = {"node0": _log(tmp_path, "node0", "EOF", '"write tcp 127.0.0.1:1->127.0.0.1:2: broken pipe"')}
    assert disconnection_warnings(broken_connections(logs)) == []
    assert disconnection_warnings({"node0": Counter()}) == []


def test_a_node_whose_consensus_ended_is_reported_with_its_first_reason(tmp_path: Path) -> None:
    """The log lines are those of CometBFT and of a chain's program, with terminal colours."""
    lines = {
        "node0": 'E[x] CONSENSUS FAILURE!!! module=consensus err="wrong AppHash.  Expected A, got B. Check" stack="s"',
        "node1": 'ERR CONSENSUS FAILURE!!! \x1b[36merr=\x1b[0m\x1b[31m"no votes"\x1b[0m module=consensus',
        "node2": 'E[x] prevote step: consensus deems this block invalid module=consensus err="wrong AppHash"',
    }
    logs = {name: tmp_path / name for name in lines}
    for name, line in lines.items():
        logs[name].write_text(line + "\n", encoding="utf-8")
    assert consensus_failures(logs) == {"node0": "wrong AppHash", "node1": "no votes"}


def test_a_node_without_new_blocks_while_others_have_some_has_stopped() -> None:
    before = {"node0": 10, "node1": 10, "node2": 9}
    assert _stopped(before, {"node0": 14, "node1": 14, "node2": 9}) == {"node2": "it stayed at height 9 of 14"}
    assert _stopped(before, {"node0": 14, "node1": 13, "node2": 12}) == {}
    # Too few blocks to decide, or no node has new blocks.
    assert _stopped(before, {"node0": 12, "node1": 12, "node2": 9}) == {}
    assert _stopped(before, {}) == {}
