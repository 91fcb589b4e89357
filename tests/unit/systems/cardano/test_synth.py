"""Synthetic logs, read by a second, plain reader that implements only the rules of the published analysis."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard

from chainmark.core.errors import UsageError
from chainmark.core.progress import Silent
from chainmark.lab.synthetic import SyntheticRequest, synthetic
from chainmark.systems.base import load_system
from chainmark.systems.cardano.synth import ClusterContent

from tests.unit.systems.cardano.clusters import logs_request

SYSTEM = synthetic(load_system("cardano"))
HOSTS = 5
FAULTS = {
    "none": (),
    "of the network": (
        "late:node-1@40",
        "restart:node-2@80-110",
        "crash:node-3@150",
        "stall:node-4@60-100",
        "fork:node-0@90",
    ),
    "of the lines": (
        "gap:node-1@50-80",
        "dropped:node-2=5%",
        "duplicated:node-2=5%",
        "corrupt:node-3=3%",
        "foreign:node-3=3%",
        "truncated:all",
        "wrong-host:node-0=elsewhere",
        "no-announcement:node-4=40%",
        "no-send:node-4=40%",
    ),
    "of the clocks and edges": (
        "clock-offset:all=±2s",
        "clock-drift:all=±60ppm",
        "falling-edges:node-0",
        "non-blocking:node-1=60%",
        "rollback:node-1=60%",
        "missed-start:node-2=10%",
        "double-start:node-2=10%",
        "limited-adoptions:node-3=0.05",
    ),
}
STAGES = ("forged", "noticed", "requested", "fetched", "announced", "sent", "adopted", "self_adopted")
LOOP = ("started", "block_context", "ledger_state", "ledger_view", "leadership")

# By namespace, or by kind for unknown namespaces: the stage, and the key that holds the block's hash.
BY_NAME = {
    "Forge.Loop.ForgedBlock": ("forged", "block"),
    "ChainSync.Client.DownloadedHeader": ("noticed", "block"),
    "BlockFetch.Client.SendFetchRequest": ("requested", "head"),
    "BlockFetch.Client.CompletedBlockFetch": ("fetched", "block"),
    "ChainSync.ServerHeader.Update": ("announced", "addBlock"),
    "BlockFetch.Server.SendBlock": ("sent", "block"),
    "ChainDB.AddBlockEvent.AddedToCurrentChain": ("adopted", "newtip"),
    "ChainDB.AddBlockEvent.SwitchedToAFork": ("adopted", "newtip"),
    "Forge.Loop.AdoptedBlock": ("self_adopted", "blockHash"),
    "TraceForgedBlock": ("forged", "block"),
    "ChainSyncClientEvent.TraceDownloadedHeader": ("noticed", "block"),
    "SendFetchRequest": ("requested", "head"),
    "CompletedBlockFetch": ("fetched", "block"),
    "ChainSyncServerEvent.TraceChainSyncServerUpdate": ("announced", "addBlock"),
    "TraceBlockFetchServerSendBlock": ("sent", "block"),
    "TraceAddBlockEvent.AddedToCurrentChain": ("adopted", "newtip"),
    "TraceAddBlockEvent.SwitchedToAFork": ("adopted", "newtip"),
    "TraceAdoptedBlock": ("self_adopted", "blockHash"),
}
LOOP_KINDS = {
    "TraceStartLeadershipCheck": "started",
    "TraceBlockContext": "block_context",
    "TraceLedgerState": "ledger_state",
    "TraceLedgerView": "ledger_view",
    "TraceNodeIsLeader": "leadership",
    "TraceNodeNotLeader": "leadership",
}


def order(folder: Path, **changes: Any) -> SyntheticRequest:
    settings = ("chain.active_slots_coefficient=0.15", "workload.tps=3")
    return logs_request(folder, **{"slots": 200, "seed": 3, "hosts": HOSTS, "settings": settings, **changes})


def make(folder: Path, **changes: Any) -> ClusterContent:
    made = SYSTEM.synthesise(order(folder, **changes), Silent())
    assert isinstance(made, ClusterContent)
    return made


def text_of(path: Path) -> bytes:
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
    return path.read_bytes()


def lines_of(host: Path) -> Iterator[dict[str, Any]]:
    """The lines of a host that are log objects, from the oldest file to the newest."""
    for path in sorted(host.iterdir()):
        for line in text_of(path).split(b"\n"):
            try:
                content = json.loads(line.decode("utf-8"))
            except (UnicodeDecodeError, json.JSONDecodeError):
                continue
            if isinstance(content, dict) and {"at", "ns", "data", "host", "thread"} <= content.keys():
                yield content


def time_ns(at: str) -> int:
    whole, _, fraction = at.removesuffix("Z").partition(".")
    seconds = datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp()
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0"))


class Reader:
    """First times of every stage by block, last times of the loop's stages by slot. Both as printed in the logs."""

    def __init__(self, host: Path) -> None:
        self.blocks: dict[tuple[str, str], int] = {}
        self.slots: dict[tuple[int, str], int] = {}
        self.starts: dict[int, int] = defaultdict(int)
        for line in lines_of(host):
            data = line["data"]
            if "kind" not in data and isinstance(data.get("credentials"), str) and isinstance(data.get("val"), dict):
                data = data["val"]
            self.read(line, data)

    def read(self, line: dict[str, Any], data: dict[str, Any]) -> None:
        """Read one log object with its data unwrapped."""
        name = line["ns"] if isinstance(line["ns"], str) else line["ns"][0]
        stage, key = BY_NAME.get(name) or BY_NAME.get(data.get("kind", ""), ("", ""))
        if stage == "announced" and (
            data.get("risingEdge") is False or data.get("blockingRead") is False or "rollBackTo" in data
        ):
            return
        if stage:
            self.blocks.setdefault((data[key][:64], stage), time_ns(line["at"]))
        elif loop := LOOP_KINDS.get(data.get("kind", "")):
            slot = int(data["slot"] if "slot" in data else data["current slot"])
            self.slots[slot, loop] = time_ns(line["at"])
            self.starts[slot] += loop == "started"


def truth_of(folder: Path, record: str) -> pl.DataFrame:
    return pl.read_parquet(folder / "truth.parquet").filter(pl.col("record") == record)


def printed(rows: pl.DataFrame, key: str, stages: tuple[str, ...]) -> dict[tuple[Any, str], int]:
    """The times that a reader must find according to the truth."""
    times_ns: dict[tuple[Any, str], int | None] = {}
    for row in rows.iter_rows(named=True):
        times_ns |= {(row[key], stage): row[f"{stage}_printed_ns"] for stage in stages}
    return {place: time for place, time in times_ns.items() if time is not None}


@pytest.mark.parametrize("formats", [("10.5",), ("10.7", "10.4:node-1,node-3", "legacy:node-2,node-4")], ids=str)
@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS.keys())
def test_an_independent_reader_finds_the_truth_to_the_nanosecond(
    tmp_path: Path, faults: tuple[str, ...], formats: tuple[str, ...]
) -> None:
    """Whatever faults a log has, its readable content is the content that the truth marks as readable."""
    folder = tmp_path / "logs"
    logs = make(folder, faults=faults, formats=formats)
    assert logs.lines_after_truth == 0
    blocks, slots = truth_of(folder, "block"), truth_of(folder, "slot")
    for host in (f"node-{number}" for number in range(HOSTS)):
        reader = Reader(folder / host)
        assert len(reader.blocks) > 50
        assert reader.blocks == printed(blocks.filter(pl.col("host") == host), "block", STAGES)
        of_host = slots.filter(pl.col("host") == host)
        assert reader.slots == printed(of_host, "slot", LOOP)
        starts = dict(of_host.select("slot", "loop_starts").iter_rows())
        assert {slot: count for slot, count in starts.items() if count} == {
            slot: count for slot, count in reader.starts.items() if count
        }


def test_without_faults_the_printed_times_are_exact(tmp_path: Path) -> None:
    make(tmp_path / "logs")
    for record, stages in (("block", STAGES), ("slot", LOOP)):
        rows = truth_of(tmp_path / "logs", record)
        for stage in stages:
            times = rows.select(f"{stage}_ns", f"{stage}_printed_ns", f"{stage}_written").drop_nulls(f"{stage}_ns")
            assert len(times) > 20
            assert (times[f"{stage}_ns"] == times[f"{stage}_printed_ns"]).all(), stage
            assert times[f"{stage}_written"].all(), stage


def test_counters_are_consistent(tmp_path: Path) -> None:
    """A mempool contains what was added and not removed. A restarted process counts from zero."""
    make(tmp_path / "logs", faults=("restart:node-1@100-130",), settings=("chain.active_slots_coefficient=0.15",))
    for number in range(HOSTS):
        held, collected, processed, falls, last = 0, 0, 0, 0, 0
        for line in lines_of(tmp_path / "logs" / f"node-{number}"):
            data = line["data"]
            match data.get("kind"):
                case "TraceMempoolAddedTx":
                    held += 1
                    assert data["mempoolSize"]["numTxs"] == held
                case "TraceMempoolRemoveTxs":
                    held -= len(data["txs"])
                    assert data["mempoolSize"]["numTxs"] == held
                    assert (held == 0) == (data["mempoolSize"]["bytes"] == 0)
                case "TraceTxSubmissionCollected":
                    collected += data["count"]
                case "TraceTxSubmissionProcessed":
                    processed += data["accepted"] + data["rejected"]
                    assert processed <= collected
                case "ResourceStats":
                    fell = data["CentiCpu"] < last
                    held, falls, last = (0 if fell else held), falls + fell, data["CentiCpu"]
                    assert 0 <= data["CentiCpu"] - data["CentiGC"] - data["CentiMut"] <= 1
        assert falls == (number == 1)
        assert collected - processed <= 6, "at most the last batch is unprocessed"


def test_printed_delays_are_measured_from_the_slot(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    make(folder, faults=("clock-offset:node-2=+3s",))
    genesis = json.loads((folder / "genesis" / "genesis.shelley.json").read_text(encoding="utf-8"))
    start = time_ns(genesis["systemStart"])
    slots = dict(truth_of(folder, "block").select("block", "slot").unique().iter_rows())
    seen = 0
    for number in (0, 2):
        for path in (folder / f"node-{number}").iterdir():
            for line in path.read_text(encoding="utf-8").splitlines():
                if '"CompletedBlockFetch"' in line:
                    content = json.loads(line, parse_float=Decimal)
                    since = time_ns(content["at"]) - start - slots[content["data"]["block"]] * 10**9
                    assert content["data"]["delay"] * 10**9 == since
                    seen += 1
    assert seen > 20


@pytest.mark.parametrize(("compression", "suffix"), [("none", ""), ("gzip", ".gz"), ("zstd", ".zst")])
def test_rotated_and_compressed_files_contain_the_same_lines(tmp_path: Path, compression: str, suffix: str) -> None:
    make(tmp_path / "plain")
    logs = make(tmp_path / "other", compression=compression, rotation="2000", threads=1)
    for number in range(HOSTS):
        files = sorted((tmp_path / "other" / f"node-{number}").iterdir())
        assert len(files) > 2
        assert all(file.name.startswith("stdout-2026") and file.suffix in (suffix, file.suffix) for file in files)
        if suffix:
            assert {file.suffix for file in files} == {suffix}
        pieces = [text_of(file) for file in files]
        assert all(piece.count(b"\n") == 2000 for piece in pieces[:-1])
        assert b"".join(pieces) == (tmp_path / "plain" / f"node-{number}" / "stdout").read_bytes()
    stored = sum(file.stat().st_size for file in (tmp_path / "other").glob("node-*/*"))
    assert logs.stored_bytes == stored


def test_the_folder_describes_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    make(folder, system_start=datetime(2024, 2, 29, 12, 30, tzinfo=UTC), faults=("crash:node-1@120",))
    genesis = json.loads((folder / "genesis" / "genesis.shelley.json").read_text(encoding="utf-8"))
    assert genesis["systemStart"] == "2024-02-29T12:30:00Z"
    assert genesis["activeSlotsCoeff"] == 0.15
    topology = json.loads((folder / "topology.json").read_text(encoding="utf-8"))
    names = {node["name"] for node in topology["coreNodes"]}
    assert names == {path.name for path in folder.glob("node-*")} == {f"node-{number}" for number in range(HOSTS)}
    assert all(set(node["producers"]) < names for node in topology["coreNodes"])
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["meta"]
    assert meta["profile_content"]["analysis"]["filter_exprs"][0]["contents"]["contents"] == HOSTS - 1
    assert meta["manifest"]["cardano-node"]["version"] == meta["ident"] == "10.5.4"
    # The written topology can be used for another request.
    again = make(tmp_path / "again", topology=str(folder / "topology.json"), hosts=None)
    assert again.hosts == HOSTS
    fault = truth_of(folder, "fault").row(0, named=True)
    assert (fault["fault"], fault["host"]) == ("crash", "node-1")
    assert fault["fault_from_ns"] == time_ns("2024-02-29T12:32:00Z")


def test_stalls_and_late_starts_cause_fetches_of_several_blocks(tmp_path: Path) -> None:
    make(tmp_path / "logs", faults=("stall:node-1@40-90", "late:node-2@60"))
    longest = truth_of(tmp_path / "logs", "block").group_by("host").agg(pl.col("fetch_length").max())
    lengths = dict(longest.iter_rows())
    assert lengths["node-1"] > 2
    assert lengths["node-2"] > 2
    assert lengths["node-0"] <= 2


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"faults": ("explode",)}, "no kind of fault `explode`"),
        ({"faults": ("gap:node-9",)}, "no host `node-9`"),
        ({"faults": ("gap:node-1@500",)}, "outside the run"),
        ({"formats": ("11.3",)}, "`11.3` is not a known log format"),
        ({"formats": ("legacy:node-9",)}, "no host `node-9`"),
        ({"compression": "rar"}, "`rar` is not a known compression"),
        ({"rotation": "often"}, "`often` is not a valid size"),
        ({"rotation": "0"}, "`0` is not a valid size"),
        ({"hosts": 1}, "network.hosts"),
        ({"profile": "cardano/nothing"}, "cardano/nothing"),
        ({"slots": 2_000_000_000}, "2000000000 slots"),
    ],
)
def test_an_impossible_request_is_refused_before_anything_is_written(
    tmp_path: Path, changes: dict[str, Any], part: str
) -> None:
    with pytest.raises(UsageError) as caught:
        make(tmp_path / "logs", **changes)
    assert part in caught.value.message
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C interrupts the waiting thread, which stops the writing thread."""

    class Impatient(Silent):
        def update(self, fraction: float, detail: str = "") -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SYSTEM.synthesise(order(tmp_path / "logs", slots=200_000), Impatient())
    assert list(tmp_path.iterdir()) == []
