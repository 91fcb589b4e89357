"""Slots of a host: known values, unknown values, and how long the host was busy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.progress import Silent
from chainmark.systems.cardano import slots
from chainmark.systems.cardano.filters import parse_conditions, slot_test
from chainmark.systems.cardano.rules import Rules
from chainmark.systems.cardano.slots import HostSlots, survey, write_slot_samples
from chainmark.systems.cardano.spans import measured_spans, published_spans, span_samples

from tests.unit.systems.cardano import naive_analysis
from tests.unit.systems.cardano.traces import GENESIS, Row, slot_row, slots_frame, troubled_slots

RIGHT, PUBLISHED = Rules(), Rules(published=True)


def _survey(folder: Path, hosts: dict[str, list[Row]], filters: Sequence[str] = ()) -> list[HostSlots]:
    slots_of_hosts = []
    for name, rows in sorted(hosts.items()):
        slots_frame(rows).write_parquet(folder / f"{name}.parquet")
        slots_of_hosts.append(survey(name, folder / f"{name}.parquet", parse_conditions(filters, [], len(hosts))))
    return slots_of_hosts


def _samples(
    folder: Path, hosts: dict[str, list[Row]], filters: Sequence[str] = (), rules: Rules = RIGHT
) -> pl.DataFrame:
    path = folder / "made.parquet"
    conditions = parse_conditions(filters, [], len(hosts))
    slots_of_hosts = _survey(folder, hosts, filters)
    rows = write_slot_samples(slots_of_hosts, conditions, GENESIS, rules, path=path, progress=Silent())
    frame = pl.read_parquet(path)
    assert frame.height == rows == sum(host.selected for host in slots_of_hosts)
    return frame


# --- samples -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("chunk", "read"), [(7, 5), (3, 11), (1000, 8), (2, 1000)])
def test_slots_of_all_hosts_are_ordered_and_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, read: int
) -> None:
    """Small chunks give many boundaries between them."""
    monkeypatch.setattr(slots, "CHUNK_ROWS", chunk * 4)
    monkeypatch.setattr(slots, "WAITING_ROWS", read * 4)
    monkeypatch.setattr(slots, "LEAST_ROWS", 1)
    hosts = {
        f"node-{number}": [slot_row(slot, starts=slot * 10 + number) for slot in range(3 + 9 * number, 61 - 5 * number)]
        for number in (0, 1, 10, 2)
    }
    del hosts["node-0"][20:40]
    frame = _samples(tmp_path, hosts)
    expected = sorted((row["slot"], name, float(row["starts"])) for name, rows in hosts.items() for row in rows)
    assert frame.select("slot", pl.col("host").cast(pl.String), "forge_loop_starts").rows() == expected
    assert frame["time_s"].to_list() == frame["slot"].cast(pl.Float64).to_list()
    assert not list(tmp_path.glob("*.parts"))


def test_the_number_of_buffered_rows_does_not_grow_with_the_hosts() -> None:
    """A thousand hosts are merged in the memory that 52 need; few hosts are read in large chunks."""
    assert [slots.rows_at_a_time(hosts) for hosts in (1, 52, 104, 1000)] == [8192, 8192, 4096, 425]
    assert all(slots.rows_at_a_time(hosts) * hosts <= slots.WAITING_ROWS for hosts in range(1, 1600))


def test_only_selected_slots_are_written_and_the_first_record_belongs_to_epoch_0(tmp_path: Path) -> None:
    """The first record of a host that starts late has no epoch, so a filter on the epoch removes it."""
    late = [slot_row(250, epoch=0, epoch_slot=0), *map(slot_row, range(251, 260))]
    hosts = {"a": [slot_row(slot) for slot in range(190, 210)], "b": late, "c": [slot_row(5)]}
    frame = _samples(tmp_path, hosts, ["EpochGEq=2"])
    assert frame.filter(pl.col("host") == "a")["slot"].to_list() == list(range(200, 210))
    assert frame.filter(pl.col("host") == "b")["slot"].to_list() == list(range(251, 260))
    of = {host.name: host for host in _survey(tmp_path, hosts, ["EpochGEq=2"])}
    assert (of["a"].records, of["a"].selected, of["a"].first, of["a"].last) == (20, 10, 200, 209)
    assert (of["c"].records, of["c"].selected, of["c"].first, of["c"].last) == (1, 0, None, None)


def test_a_selection_without_slots_gives_an_empty_file(tmp_path: Path) -> None:
    assert _samples(tmp_path, {"a": [slot_row(1)]}, ["EpochGEq=9"]).height == 0
    assert write_slot_samples([], [], GENESIS, RIGHT, path=tmp_path / "none.parquet", progress=Silent()) == 0
    assert pl.read_parquet(tmp_path / "none.parquet").columns == pl.read_parquet(tmp_path / "made.parquet").columns


def _column(folder: Path, rows: list[Row], metric: str, rules: Rules = RIGHT, filters: Sequence[str] = ()) -> list[Any]:
    values: list[Any] = _samples(folder, {"a": rows}, filters, rules)[metric].to_list()
    return values


def test_a_slot_without_a_line_has_no_density_or_0_by_the_published_rules(tmp_path: Path) -> None:
    rows = [slot_row(0), slot_row(1, density=None, utxo_entries=None)]
    assert _column(tmp_path, rows, "chain_density") == [0.2, None]
    assert _column(tmp_path, rows, "chain_density", PUBLISHED) == [0.2, 0.0]
    assert _column(tmp_path, rows, "utxo_entries", PUBLISHED) == [100.0, 0.0]


def test_a_slot_without_a_sample_has_no_resources_under_either_rules(tmp_path: Path) -> None:
    rows = [slot_row(0, cpu_percent=None, has_resources=False, sampled=False), slot_row(1, cpu_percent=3.5)]
    for rules in (RIGHT, PUBLISHED):
        assert _column(tmp_path, rows, "process_cpu_percent", rules) == [None, 3.5]


def test_the_mempool_is_known_from_its_first_line_even_in_a_filtered_slot(tmp_path: Path) -> None:
    rows = [
        slot_row(slot, mempool_reported=slot == 95, mempool_transactions=4 if slot >= 95 else 0)
        for slot in range(90, 103)
    ]
    values = _column(tmp_path, rows, "mempool_transactions")
    assert values == [None] * 5 + [4.0] * 8
    assert _column(tmp_path, rows, "mempool_transactions", filters=["EpochGEq=1"]) == [4.0] * 3
    assert _column(tmp_path, rows, "mempool_transactions", PUBLISHED)[:6] == [0.0] * 5 + [4.0]


def test_the_block_gap_is_unknown_before_the_first_block_context(tmp_path: Path) -> None:
    rows = [slot_row(slot, block_contexts=int(slot > 1), block_gap_slots=slot) for slot in range(4)]
    assert _column(tmp_path, rows, "block_gap_slots") == [None, None, 2.0, 3.0]
    assert _column(tmp_path, rows, "block_gap_slots", PUBLISHED) == [0.0, 1.0, 2.0, 3.0]


def test_transactions_are_0_only_on_a_host_that_traces_them(tmp_path: Path) -> None:
    """0 on a host that does not trace transactions would look like a network without load."""
    silent = [slot_row(slot) for slot in range(2)]
    telling = [slot_row(0), slot_row(1, transactions_collected=3, transactions_accepted=2, transactions_rejected=-1)]
    for metric, value in (("collected", 3.0), ("accepted", 2.0), ("rejected", -1.0)):
        assert _column(tmp_path, silent, f"transactions_{metric}") == [None, None]
        assert _column(tmp_path, silent, f"transactions_{metric}", PUBLISHED) == [0.0, 0.0]
        assert _column(tmp_path, telling, f"transactions_{metric}") == [0.0, value]


def test_a_silent_host_has_no_sample_under_either_rules(tmp_path: Path) -> None:
    """The catalogue's rule makes the published mean use 0 for it. No sample is added, so n remains correct."""
    rows = [slot_row(slot, ledger_view_s=None) for slot in range(100, 103)]
    assert _column(tmp_path, rows, "slot_ledger_view_s") == [None] * 3
    assert _column(tmp_path, rows, "slot_ledger_view_s", PUBLISHED) == [None] * 3


# --- spans ---------------------------------------------------------------------------------------------------------


def _spans(usage: Sequence[float | None], first: int = 10, **changed: Any) -> list[tuple[int, int, int | None]]:
    rows = [slot_row(first + n, cpu_percent=value, sampled=value is not None) for n, value in enumerate(usage)]
    frame = slots_frame([row | changed for row in rows])
    spans: list[tuple[int, int, int | None]] = (
        measured_spans(frame, GENESIS.epoch_slots).select("slot", "cpu_span_slots", "cpu_span_epoch_slots").rows()
    )
    return spans


def test_a_single_busy_slot_is_a_span_of_one() -> None:
    assert _spans([1.0, 85.0, 84.99, 99.0, 100.0]) == [(11, 1, None), (13, 2, None)]


def test_a_slot_without_a_sample_counts_only_between_busy_slots() -> None:
    assert _spans([None, 90.0, None, None, 90.0, None, 1.0, None, 90.0]) == [(11, 4, None), (18, 1, None)]


def test_a_missing_slot_and_a_new_process_end_a_span() -> None:
    rows = [slot_row(slot, cpu_percent=90.0) for slot in (10, 11, 14, 15)]
    rows.append(slot_row(16, cpu_percent=None, sampled=True))
    rows.append(slot_row(17, cpu_percent=90.0))
    frame = measured_spans(slots_frame(rows), GENESIS.epoch_slots)
    assert frame.select("slot", "cpu_span_slots").rows() == [(10, 2), (14, 2), (17, 1)]


@pytest.mark.parametrize(
    ("first", "length", "is_at_boundary"),
    [(100, 5, True), (102, 3, True), (103, 5, False), (100, 4, False), (95, 20, True), (95, 9, False), (90, 240, True)],
)
def test_a_span_is_at_the_boundary_if_it_contains_slot_3_of_the_epoch(
    first: int, length: int, is_at_boundary: bool
) -> None:
    assert _spans([99.0] * length, first) == [(first, length, length if is_at_boundary else None)]


@given(seed=st.integers(0, 2**32), filters=st.sampled_from([[], ["EpSlotGEq=3"], ["SlotHasLeaders"]]))
def test_spans_match_a_naive_implementation(seed: int, filters: list[str]) -> None:
    frame = slots_frame(troubled_slots(seed)).filter(slot_test(parse_conditions(filters, [], 1)))
    rows = frame.rows(named=True)
    columns = ("slot", "cpu_span_slots", "cpu_span_epoch_slots")
    assert measured_spans(frame, 100).select(columns).rows() == naive_analysis.measured_spans(rows, 100)
    expected = naive_analysis.published_spans(rows)
    spans = published_spans(frame).select(columns).rows()
    silent: list[Any] = [(row["slot"], None, None) for row in rows[:1]]
    assert spans == (expected or silent)


def test_spans_of_hosts_are_in_order_of_time(tmp_path: Path) -> None:
    hosts = {
        name: [slot_row(slot, cpu_percent=90.0) for slot in span] for name, span in (("b", (5, 6, 9)), ("a", (5, 7)))
    }
    genesis = replace(GENESIS, slot_length_s=0.5)
    frame = span_samples(_survey(tmp_path, hosts), [], genesis, RIGHT)
    assert frame.select("host", "slot", "time_s", "cpu_span_slots").rows() == [
        ("a", 5, 2.5, 1.0),
        ("b", 5, 2.5, 2.0),
        ("a", 7, 3.5, 1.0),
        ("b", 9, 4.5, 1.0),
    ]
    assert span_samples([], [], genesis, RIGHT).is_empty()
