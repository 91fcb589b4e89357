"""One relay's log compared with what other hosts' logs imply for it, and with blockperf's rules."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import chainmark as cm
from chainmark.store.sealed import SealedRun

from tests.oracle.blockperf_samples import samples
from tests.unit.systems.cardano.clusters import ingest, make_cluster

RELAY = "node-2"
GENESIS = "genesis/genesis.shelley.json"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cluster(tmp_path_factory.mktemp("cluster") / "logs", hosts=6, slots=900, seed=5)


@pytest.fixture(scope="module")
def run(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> SealedRun:
    folder = tmp_path_factory.mktemp("alone")
    log = folder / "relay.log"
    log.write_bytes((cluster / RELAY / "stdout").read_bytes())
    return ingest(folder / "store", log, genesis=cluster / GENESIS, filters=()).run


def lines_of(cluster: Path, host: str) -> list[dict[str, Any]]:
    texts = (cluster / host / "stdout").read_text(encoding="utf-8").splitlines()
    return [json.loads(text) for text in texts if text.startswith("{")]


def system_start_s(cluster: Path) -> int:
    text = json.loads((cluster / GENESIS).read_text(encoding="utf-8"))["systemStart"]
    return round(datetime.fromisoformat(text).timestamp())


@pytest.fixture(scope="module")
def others(cluster: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """The other hosts' logs: blocks that they forged, their sizes, and what each sent and announced at which time."""
    by_role: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for folder in sorted(path.name for path in cluster.glob("node-*") if path.name != RELAY):
        for line in lines_of(cluster, folder):
            data, name = line["data"], line["ns"]
            if name == "Forge.Loop.ForgedBlock":
                by_role["forged"][data["block"]] = data | {"host": folder, "at": line["at"]}
            elif name == "Forge.Loop.AdoptedBlock":
                by_role["sizes"][data["blockHash"]] = {"size": data["blockSize"]}
            elif name == "BlockFetch.Server.SendBlock":
                by_role[f"sent by {folder}"].setdefault(data["block"], {"at": line["at"]})
    return by_role


def test_every_foreign_block_is_reported_with_its_slot_height_and_size(
    run: SealedRun, others: dict[str, dict[str, dict[str, Any]]]
) -> None:
    """The import does not read any forger's log, and the run contains every block that the relay received."""
    timelines = {row["block"]: row for row in run.events("block_timelines").iter_rows(named=True)}
    received = set(run.samples("received")["block"])
    assert len(received) > 40
    for block in received:
        forged = others["forged"][block]
        assert (timelines[block]["block_no"], timelines[block]["slot"]) == (forged["blockNo"], forged["slot"])
        assert timelines[block]["fetched_bytes"] == others["sizes"][block]["size"]
    top = max(row["block_no"] for row in timelines.values() if row["block_no"] is not None)
    missing = {block for block, timeline in others["forged"].items() if timeline["blockNo"] < top} - received
    # A block that it did not receive had a rival, or is the chain's first one, which blockperf discards.
    heights = [timeline["blockNo"] for timeline in others["forged"].values()]
    own = [row["block_no"] for row in timelines.values() if row["role"] == "forger"]
    assert all(
        [*heights, *own].count(others["forged"][block]["blockNo"]) > 1 or others["forged"][block]["blockNo"] == 0
        for block in missing
    )


def test_no_header_comes_before_the_forging_and_no_block_before_it_was_sent(
    run: SealedRun, cluster: Path, others: dict[str, dict[str, dict[str, Any]]]
) -> None:
    """The logs of the named peers show that they sent these blocks."""
    addresses = {}
    for name in (path.name for path in cluster.glob("node-*")):
        for line in lines_of(cluster, name):
            peer = line["data"].get("peer")
            if line["ns"].startswith("BlockFetch.Client.Completed") and isinstance(peer, dict):
                addresses[peer["connectionId"].split(" ")[0]] = name
    timelines = run.events("block_timelines").filter(pl.col("block").is_in(run.samples("received")["block"].implode()))
    for row in timelines.iter_rows(named=True):
        forged_ns = (
            pl.Series([others["forged"][row["block"]]["at"]])
            .str.to_datetime("%+", time_unit="ns")
            .dt.epoch("ns")
            .item()
        )
        assert row["noticed_ns"] > forged_ns
        sender = addresses[row["fetched_from"]]
        sent = others[f"sent by {sender}"][row["block"]]["at"]
        assert row["fetched_ns"] > pl.Series([sent]).str.to_datetime("%+", time_unit="ns").dt.epoch("ns").item() - 10**9


def test_battles_and_own_blocks_match_all_logs(
    run: SealedRun, cluster: Path, others: dict[str, dict[str, dict[str, Any]]]
) -> None:
    own = [line["data"] for line in lines_of(cluster, RELAY) if line["ns"] == "Forge.Loop.ForgedBlock"]
    heard = {line["data"]["block"] for line in lines_of(cluster, RELAY) if line["ns"].endswith("DownloadedHeader")}
    heights: dict[int, set[str]] = defaultdict(set)
    for record in own:
        heights[record["blockNo"]].add(record["block"])
    for block in heard & others["forged"].keys():
        heights[others["forged"][block]["blockNo"]].add(block)
    seen = run.events("block_timelines").filter(pl.col("role") != "error").group_by("block_no").agg(pl.col("block"))
    assert {height: set(blocks) for height, blocks in seen.iter_rows()} == heights
    report = json.loads(cm.host(run).json)
    assert report["chain"]["battles"] == sum(len(blocks) > 1 for blocks in heights.values())
    assert report["chain"]["forged"] == len(own)
    assert report["chain"]["missed_slots"] == 0


def _journal(line: str) -> str:
    return json.dumps({"__CURSOR": "s=1", "_PID": "7", "MESSAGE": line})


def _docker(line: str) -> str:
    return json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "2026-02-05T19:00:00Z"})


def _journal_text(line: str) -> str:
    return f"Feb 05 19:00:00 relay-1 cardano-node[758]: {line}"


def _journal_export(line: str) -> str:
    return f"__CURSOR=s=1\nPRIORITY=6\nMESSAGE={line}\n_PID=758\n"


@pytest.mark.parametrize("wrap", [str, _journal, _docker, _journal_text, _journal_export])
def test_samples_match_blockperf_for_every_log_format(cluster: Path, tmp_path: Path, wrap: Any) -> None:
    """The definitions follow their own rules, block by block. Their file can be compared with the run."""
    lines = [wrap(line) for line in (cluster / RELAY / "stdout").read_text(encoding="utf-8").splitlines()]
    (tmp_path / "relay.log").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    expected = samples(lines, system_start_s(cluster))
    assert len(expected) > 40
    run = ingest(tmp_path / "store", tmp_path / "relay.log", genesis=cluster / GENESIS, filters=()).run
    theirs = tmp_path / "theirs.jsonl"
    theirs.write_text("".join(json.dumps(row) + "\n" for row in expected), encoding="utf-8")
    beside = json.loads(cm.host(run, against=theirs).json)["beside"]
    assert beside["common"] == len(expected)
    assert beside["differences"] == beside["only_ours"] == beside["only_theirs"] == []
    assert beside["masked"] == 0
    # A changed value is reported.
    expected[3]["block_adopt_delta"] += 2
    theirs.write_text("".join(json.dumps(row) + "\n" for row in expected), encoding="utf-8")
    document = cm.host(run, against=theirs)
    assert (document.verdict, document.word) == (cm.Verdict.FAIL, "FAIL")


@pytest.mark.shared_data
def test_a_real_relay_of_mainnet_is_analysed(shared_data: Path, tmp_path: Path) -> None:
    """75 lines around one block of mainnet, in the format of 2023: the only real lines in these tests."""
    log = tmp_path / "relay.log"
    log.write_bytes((shared_data / "cardano" / "logs" / "legacy-8.1.1-relay.jsonl").read_bytes())
    run = ingest(tmp_path / "store", log, settings=("genesis.network=mainnet",), filters=()).run
    cut_off, whole = samples(log.read_text(encoding="utf-8").splitlines(), 1591566291)
    theirs = tmp_path / "theirs.jsonl"
    theirs.write_text("".join(json.dumps(row) + "\n" for row in (cut_off, whole)), encoding="utf-8")
    beside = json.loads(cm.host(run, against=theirs).json)["beside"]
    assert (beside["common"], beside["differences"], beside["not_in_log"]) == (1, [], [])
    # The log begins after the request for this block: blockperf uses a later header as the first one.
    assert beside["only_theirs"] == [[cut_off["block_number"], "header not logged before"]]
    assert cut_off["block_request_delta"] < 0
