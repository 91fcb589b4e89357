"""Tests of the oracle of the cluster analysis: hand-written lines and event sequences, and the generator's truth."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.cluster_analysis import analyse, distribution, read_logs, runs
from tests.oracle.cluster_blocks import Timelines, block_samples, peer_samples, rebuild
from tests.oracle.cluster_lines import HostLog, read_line, time_ns
from tests.oracle.cluster_runs import differences, generate, with_values
from tests.oracle.cluster_slots import Chain, Slot, slots_of, whole_percent
from tests.oracle.cluster_truth import Truth

START = "2026-02-05T18:52:16Z"
CHAIN = Chain(time_ns(START), 10**9, 100, 10, 0.05, 90_112)
HASHES = {name: digit * 64 for name, digit in (("first", "a"), ("second", "b"), ("third", "c"))}
FAULTS = {
    "none": (),
    "of the network": ("restart:node-2@100-130", "crash:node-3@190", "stall:node-4@90-130", "fork:node-0@110"),
    "of the lines": (
        "dropped:node-2=3%",
        "corrupt:node-3=3%",
        "foreign:node-3=3%",
        "truncated:all",
        "gap:node-1@120-150",
    ),
    "of the clocks": ("clock-offset:all=±200ms", "clock-drift:all=±60ppm", "late:node-5@120"),
    "of the announcements": ("falling-edges:node-0", "non-blocking:node-1=60%", "rollback:node-1=60%"),
}


def at(seconds: float) -> str:
    return f"2026-02-05T18:52:{16 + seconds:012.9f}Z"


def line(seconds: float, namespace: Any, **data: Any) -> bytes:
    content = {"at": at(seconds), "ns": namespace, "data": data, "sev": "Info", "thread": "1", "host": "any"}
    return json.dumps(content).encode()


def sample(seconds: float, cpu: int, allocated: int) -> bytes:
    keys = ("CentiGC", "CentiMut", "GcsMajor", "GcsMinor", "Live", "RSS", "CentiBlkIO", "Threads")
    return line(seconds, "Resources", CentiCpu=cpu, Alloc=allocated, **dict.fromkeys(keys, 0))


def log_of(*lines: bytes, name: str = "node-0") -> HostLog:
    log = HostLog(name)
    for log_line in lines:
        read_line(log, log_line)
    return log


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"Listening on http://127.0.0.1:12798", "not_object"),
        (b"", "not_object"),
        (b'{"at":"2026-02-05T18:52:17Z","ns":"Forge', "malformed_envelope"),
        (line(1, "LedgerMetrics", slot=1).replace(b"LedgerM", b"\xff\x00"), "malformed_envelope"),
        (line(1, "Net.Peers", kind="Any"), "ignored"),
        (line(1, "LedgerMetrics", slot=1, utxoSize=4, chainDensity=0.05), "decoded"),
        (line(1, "LedgerMetrics", slot=464.0, utxoSize=4, chainDensity=1), "decoded"),
        (line(1, "LedgerMetrics", slot=-1, utxoSize=4, chainDensity=0.05), "malformed_body"),
        (line(1, "LedgerMetrics", slot=1, chainDensity=0.05), "malformed_body"),
        (line(1, ["cardano.node.Forge"], credentials="C", val={"kind": "TraceNodeNotLeader", "slot": 1}), "decoded"),
        (line(1, "Forge.Loop.ForgeTickedLedgerState", kind="TraceForgeTickedLedgerState", slot=1), "decoded"),
        (line(1, "ChainSync.ServerHeader.Update", risingEdge=False, addBlock="a" * 64), "skipped"),
        (line(1, "ChainSync.ServerHeader.Update", blockingRead=False, addBlock="a" * 64), "skipped"),
        (line(1, "ChainSync.ServerHeader.Update", rollBackTo="a" * 64), "skipped"),
        (line(1, "ChainSync.ServerHeader.Update", addBlock="a" * 64 + "@1"), "decoded"),
        (line(1, "ChainSync.ServerHeader.Update"), "malformed_body"),
        (line(1, "TxSubmission.TxInbound.Processed", accepted=1, rejected=-1), "decoded"),
    ],
)
def test_a_line_belongs_to_one_class(text: bytes, expected: str) -> None:
    assert log_of(text).classes == {expected: 1}


def test_the_last_time_is_read_even_from_a_truncated_line() -> None:
    log = log_of(b"noise", line(3, "Net.Peers"), line(7, "Net.Peers", kind="cut")[:70])
    assert (log.first_ns, log.last_ns) == (time_ns(at(3)), time_ns(at(7)))
    assert log.emitted == 1


def test_percents_are_rounded_up_in_single_precision() -> None:
    assert whole_percent(0, Fraction(1)) == 0
    assert whole_percent(3, Fraction(1)) == 3
    assert whole_percent(3, Fraction(1_000_100, 1_000_000)) == 3
    assert whole_percent(3, Fraction(999_900, 1_000_000)) == 4
    assert whole_percent(5, Fraction(0)) == 0


def test_centiles_are_elements_of_the_sample() -> None:
    bars = distribution(float(x) for x in range(52))
    by_fraction = dict(zip((0.5, 0.8, 0.9, 0.95, 1.0), (26, 41, 46, 49, 51), strict=True))
    places = {0.5: 7, 0.8: 11, 0.9: 14, 0.95: 16, 1.0: 28}
    assert {c: bars.centiles[place] for c, place in places.items()} == by_fraction
    assert (bars.n, bars.mean, bars.low, bars.high) == (52, 25.5, 0, 51)


def timeline(*, published: bool) -> list[Slot]:
    lines = [
        sample(0.3, 100, 2**30),
        line(1.001, "Forge.Loop.StartLeadershipCheck", slot=1),
        line(1.002, "Forge.Loop.BlockContext", **{"current slot": 1, "tipBlockNo": 5}),
        line(1.004, "Forge.Loop.NodeNotLeader", slot=1),
        sample(1.3, 190, 2**30 + 3 * 2**20 + 5),
        line(1.7, "LedgerMetrics", slot=1, utxoSize=9, chainDensity=0.25),
        line(4.001, "Forge.Loop.StartLeadershipCheck", slot=4),
        line(4.0025, "Forge.Loop.StartLeadershipCheck", slot=4),
        sample(4.3, 10, 2**20),
    ]
    return slots_of(log_of(*lines), CHAIN, published=published)


def test_slots_by_the_published_rules() -> None:
    slots = timeline(published=True)
    assert [slot.slot for slot in slots] == [0, 1, 2, 3, 4]
    assert [slot.starts for slot in slots] == [0, 1, 0, 0, 2]
    assert [slot.block_gap for slot in slots] == [0, 0, 1, 2, 3]
    # A gap carries the density over; a new slot has none until it is reported.
    assert [slot.density for slot in slots] == [0.0, 0.25, 0.25, 0.25, 0.0]
    percents = [slot.resources and slot.resources["CentiCpu"] for slot in slots]
    assert percents[:4] == [1, 90, 90, 90]
    assert [slot.resources and slot.resources["Alloc"] for slot in slots][:4] == [1024, 3, 0, 0]
    # The process restarted: the counter fell, and wraps.
    restarted = slots[4].resources
    assert restarted is not None
    assert (restarted["Alloc"] or 0) > 10**12
    assert slots[4].deltas_s(CHAIN)["started"] == 0.0025


def test_slots_by_the_exact_rules() -> None:
    slots = timeline(published=False)
    assert [slot.density for slot in slots] == [None, 0.25, None, None, None]
    assert [slot.resources is None for slot in slots] == [False, False, True, True, False]
    # The process restarted: it used 0.1 s of its own in the 3 s since the previous sample.
    assert [(slot.resources or {}).get("CentiCpu") for slot in slots] == [None, 90.0, None, None, 10 / 3]
    assert (slots[1].resources or {})["Alloc"] == (3 * 2**20 + 5) / 2**20
    deltas = slots[1].deltas_s(CHAIN)
    assert deltas["block_context"] == 0.001
    assert deltas["leadership"] == 0.003, "without a ledger view it counts from the start of the loop"
    assert deltas["ledger_view"] is None


def three_blocks() -> dict[str, HostLog]:
    """Two blocks, the second forged without an announcement, on three hosts."""

    def forging(slot: int, block: str, number: int, parent: str) -> list[bytes]:
        return [
            line(slot + 0.001, "Forge.Loop.StartLeadershipCheck", slot=slot),
            line(slot + 0.003, "Forge.Loop.NodeIsLeader", slot=slot),
            line(slot + 0.01, "Forge.Loop.ForgedBlock", slot=slot, block=block, blockNo=number, blockPrev=parent),
            line(slot + 0.06, "Forge.Loop.AdoptedBlock", blockHash=block, blockSize=3000 + number),
        ]

    def receiving(slot: int, block: str, number: int, late_s: float) -> list[bytes]:
        return [
            line(slot + late_s, "ChainSync.Client.DownloadedHeader", slot=slot, blockNo=number, block=block),
            line(slot + late_s + 0.1, "BlockFetch.Client.SendFetchRequest", head=block, length=1),
            line(slot + late_s + 0.3, "BlockFetch.Client.CompletedBlockFetch", block=block),
            line(slot + late_s + 0.6, "ChainDB.AddBlockEvent.AddedToCurrentChain", newtip=f"{block}@{slot}"),
        ]

    first, two, three = HASHES.values()
    announced = line(2.02, "ChainSync.ServerHeader.Update", addBlock=f"{first}@2")
    lines = {
        "node-0": [
            *forging(2, first, 0, "GenesisHash"),
            announced,
            *receiving(5, two, 1, 0.2),
            *forging(9, three, 2, two),
        ],
        "node-1": [*receiving(2, first, 0, 0.1), *forging(5, two, 1, first), *receiving(9, three, 2, 0.1)],
        "node-2": [*receiving(2, first, 0, 0.2), *receiving(5, two, 1, 0.3)[1:]],
    }
    return {name: log_of(*sorted(host_lines), name=name) for name, host_lines in lines.items()}


@pytest.mark.parametrize("published", [False, True])
def test_the_timeline_of_three_blocks(published: bool) -> None:
    logs = three_blocks()
    timelines = {name: Timelines(published, not published).read(log) for name, log in logs.items()}
    main = rebuild(timelines, CHAIN, [("BMinimumAdoptions", 1)])
    assert timelines["node-2"][HASHES["second"]].error == "Request of an unknown block"
    assert [(block.hash, block.forger) for block in main.blocks] == [
        (HASHES["second"], "node-1"),
        (HASHES["first"], "node-0"),
    ], "the last block is not part of the chain"
    second, first = (block_samples(block, published=published) for block in main.blocks)
    assert first["cdfForgerAnnounce"] == pytest.approx(0.01)
    assert second["cdfForgerAnnounceCum"] == (0.01 if published else None)
    assert first["cdfForgerForge"] == pytest.approx(0.007), "without a snapshot it counts from the leadership"
    assert first["cdfPeerNoticeFirst"] == pytest.approx(0.1)
    assert first["cdf0.50"] == pytest.approx(0.7)
    assert first["cdf1.00"] == pytest.approx(0.8)
    assert second["cdf1.00"] == pytest.approx(0.8), "a host in error does not count as an adopter"
    assert peer_samples(main.blocks[1]).keys() == {"node-1", "node-2"}
    assert peer_samples(main.blocks[0])["node-0"]["cdfPeerFetch"] == pytest.approx(0.2)


def test_runs_of_busy_slots() -> None:
    slots = [Slot(number) for number in (4, 5, 9, 10, 11)]
    sequences = runs(slots, lambda slot: slot.slot != 9)
    assert [[slot.slot for slot in run] for run in sequences] == [[4, 5], [10, 11]]


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS.keys())
def test_the_oracle_matches_the_truth(tmp_path: Path, faults: tuple[str, ...]) -> None:
    """The oracle reads the lines, the truth precedes them: both agree on every sample."""
    folder = generate(tmp_path / "cluster", faults=faults)
    expected = with_values(Truth(folder).samples())
    got = with_values(analyse(folder, read_logs(folder), published=False).samples)
    assert len(expected["cdf1.00"]) >= 5, "too few blocks for a comparison"
    for metric, values in expected.items():
        # The truth has no row for slots in which a process starts and its forge loop is not yet running.
        known = {key: value for key, value in got[metric].items() if key in values}
        assert differences(values, known) == [], metric
