"""The decoder's tables against the truth of generated logs; cancellation, rejected input, and missing files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from chainmark._native import TraceDecoder, scan_head
from chainmark.core.errors import EnvironmentFailure
from chainmark.systems.cardano.accounting import read_summary
from chainmark.systems.cardano.documents import read_genesis

from tests.unit.systems.cardano.clusters import make_cluster

LOOP = ("started", "block_context", "ledger_state", "ledger_view", "leadership", "ticked", "snapshot")
LINES = ("forged", "requested", "fetched", "announced", "sent")
FAULTS = ("gap:node-1@50-80", "restart:node-2@60-80", "duplicated:node-3=20%", "foreign:node-3=5%", "late:node-0@20")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cluster(tmp_path_factory.mktemp("decoder") / "logs", faults=FAULTS)


def _order(cluster: Path, out: Path, host: str, **changes: Any) -> dict[str, Any]:
    genesis = read_genesis(cluster / "genesis" / "genesis.shelley.json")
    order = {
        "host": host,
        "files": [str(cluster / host / "stdout")],
        "published_rules": False,
        "system_start_ns": genesis.system_start_ns,
        "slot_length_s": genesis.slot_length_s,
        "epoch_slots": genesis.epoch_slots,
        "security_parameter": genesis.security_parameter,
        "active_slots_coefficient": genesis.active_slots_coefficient,
        "slots_out": str(out / "slots.parquet"),
        "block_timelines_out": str(out / "timelines.parquet"),
        "events_out": str(out / "events.parquet"),
    }
    return order | changes


def _run(order: dict[str, Any]) -> dict[str, Any]:
    text = TraceDecoder(json.dumps(order)).run()
    assert text is not None
    summary: dict[str, Any] = json.loads(text)
    return summary


@pytest.mark.parametrize("host", ["node-0", "node-1", "node-2", "node-3"])
def test_slots_and_timelines_match_the_lines(cluster: Path, tmp_path: Path, host: str) -> None:
    order = _order(cluster, tmp_path, host)
    summary = _run(order)
    truth = pl.read_parquet(cluster / "truth.parquet").filter(pl.col("host") == host)

    slots = pl.read_parquet(tmp_path / "slots.parquet")
    assert slots["slot"].to_list() == list(range(slots["slot"][0], slots["slot"][-1] + 1))
    ran = truth.filter(pl.col("record") == "slot").join(slots, on="slot", how="left", suffix="_read")
    assert ran["started_printed_ns"].count() > 50
    since_ns = pl.col("started_printed_ns") - order["system_start_ns"] - pl.col("slot") * 10**9
    # Polars is not used for this division: it multiplies by a rounded 1e-9.
    reported_s = [None if ns is None else ns / 1e9 for ns in ran.select(since_ns).to_series()]
    assert ran["started_s"].to_list() == reported_s
    frame = ran.filter(pl.col("started_printed_ns").is_not_null())
    assert frame["density"].equals(frame["density_read"], null_equal=True)

    blocks = truth.filter(pl.col("record") == "block")
    timelines = pl.read_parquet(tmp_path / "timelines.parquet").filter(pl.col("role") != "error")
    known = timelines.join(blocks, on="block", how="left", suffix="_told")
    assert known["slot"].equals(known["slot_told"])
    for stage in (*LOOP, *LINES):
        assert known[f"{stage}_ns"].equals(known[f"{stage}_printed_ns"], null_equal=True), stage
    lines = (cluster / host / "stdout").read_text(encoding="utf-8", errors="replace").splitlines()
    for block, line in known.select("block", "sent_line").drop_nulls().iter_rows():
        assert block in lines[line - 1]

    events = pl.read_parquet(tmp_path / "events.parquet")
    assert events.height == summary["line_counts"]["decoded"]
    sent = events.filter(pl.col("message") == "sent").group_by("block").agg(pl.col("at_ns").first())
    assert dict(sent.with_columns(pl.col("block").bin.encode("hex")).iter_rows()).items() >= {
        (block, at_ns) for block, at_ns in known.select("block", "sent_ns").drop_nulls().iter_rows()
    }


def test_a_decoder_cancelled_before_its_start_returns_and_leaves_nothing(cluster: Path, tmp_path: Path) -> None:
    decoder = TraceDecoder(json.dumps(_order(cluster, tmp_path, "node-0")))
    decoder.cancel()
    assert decoder.run() is None
    assert list(tmp_path.iterdir()) == []


def test_a_decoder_reports_its_progress(cluster: Path, tmp_path: Path) -> None:
    order = _order(cluster, tmp_path, "node-0")
    decoder = TraceDecoder(json.dumps(order))
    assert decoder.progress() == (0, 0)
    decoder.run()
    assert decoder.progress()[0] == Path(order["files"][0]).stat().st_size


def test_a_missing_log_is_reported_by_name(cluster: Path, tmp_path: Path) -> None:
    missing = str(tmp_path / "gone")
    with pytest.raises(FileNotFoundError) as failure:
        _run(_order(cluster, tmp_path, "node-0", files=[missing]))
    assert failure.value.filename == missing
    with pytest.raises(FileNotFoundError):
        scan_head(missing, 10)


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"slot_length_s": 0.0}, "slot_length_s is 0"), ({"epoch_slots": 0}, "epoch_slots is 0"), ({"spare": 1}, "spare")],
)
def test_an_invalid_request_is_refused_with_a_hint(
    cluster: Path, tmp_path: Path, changes: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named) as refusal:
        TraceDecoder(json.dumps(_order(cluster, tmp_path, "node-0", **changes)))
    message, _, hint = str(refusal.value).partition("\nhint: ")
    assert "\n" not in message
    assert hint


def test_the_first_lines_of_a_file_identify_it(cluster: Path) -> None:
    head = json.loads(scan_head(str(cluster / "node-1" / "stdout"), 2000))
    assert head["container"] == "plain"
    assert list(head["names"]) == ["node-1"]
    slots = [slot for slot, _ in head["starts"]]
    assert slots == sorted(slots)
    assert len(slots) == 20


@pytest.mark.parametrize(("place", "value"), [("line_counts.spare", 1), ("bytes", None)])
def test_a_summary_of_another_core_version_is_refused_with_the_differing_field(
    cluster: Path, tmp_path: Path, place: str, value: object
) -> None:
    result = _run(_order(cluster, tmp_path, "node-0"))
    assert read_summary("node-0", json.dumps(result)).model_dump(mode="json") == result
    *parents, last = place.split(".")
    of = result
    for parent in parents:
        of = of[parent]
    of[last] = value
    with pytest.raises(EnvironmentFailure, match=f"for node-0 is not as expected at `{place}`"):
        read_summary("node-0", json.dumps(result))
