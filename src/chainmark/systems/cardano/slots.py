"""Samples of the slots: what every host did and used in every accepted slot.

A run of 64,000 slots on 52 hosts has 3.3 million of them, so they are assembled some thousand slots at a time and are
never all in memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from chainmark.core import units
from chainmark.core.progress import Progress
from chainmark.core.storage import storage_errors
from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.filters import FilterCondition, slot_test
from chainmark.systems.cardano.rules import Rules
from chainmark.systems.cardano.tables import check_slots_table

# Records of all hosts that wait to be sorted, 100 MB, and the minimum and maximum per host.
WAITING_ROWS = 52 * 8192
MOST_ROWS, LEAST_ROWS = 8192, 256
# Number of rows that are sorted at a time; several copies of them exist meanwhile.
CHUNK_ROWS = 52 * 1024
ROW_GROUP_ROWS = 32_768
# Metrics that are a column of the slot records as the decoder leaves them under either rules.
COPIED: Mapping[str, str] = {
    "forge_loop_starts": "starts",
    "process_cpu_percent": "cpu_percent",
    "gc_cpu_percent": "gc_percent",
    "mutator_cpu_percent": "mutator_percent",
    "major_gcs": "major_gcs",
    "minor_gcs": "minor_gcs",
    "rss_mib": "rss_mib",
    "heap_mib": "heap_mib",
    "live_mib": "live_mib",
    "allocated_mib_per_s": "alloc_mib",
    "network_read_kib_per_s": "net_read_kib",
    "network_written_kib_per_s": "net_write_kib",
    "file_read_kib_per_s": "file_read_kib",
    "file_written_kib_per_s": "file_write_kib",
    "slot_started_s": "started_s",
    "slot_block_context_s": "block_context_s",
    "slot_ledger_state_s": "ledger_state_s",
    "slot_ledger_view_s": "ledger_view_s",
    "slot_leadership_s": "leadership_s",
    "block_io_percent": "block_io_percent",
}
# Metrics that the ledger reports once per slot, if it does.
LEDGER: Mapping[str, str] = {"chain_density": "density", "utxo_entries": "utxo_entries"}
# Metrics that are valid from the slot on in which the host first reported them, by their source.
REPORTED_BY: Mapping[str, pl.Expr] = {
    "block_gap_slots": pl.col("block_contexts") > 0,
    "mempool_transactions": pl.col("mempool_reported"),
    "mempool_rejected_transactions": pl.col("mempool_reported"),
}
# Metrics that are known in every slot, and 0 in most, if the host reports anything that they count.
COUNTED_BY: Mapping[str, pl.Expr] = {
    "transactions_collected": pl.col("transactions_collected") != 0,
    "transactions_accepted": (pl.col("transactions_accepted") != 0) | (pl.col("transactions_rejected") != 0),
    "transactions_rejected": (pl.col("transactions_accepted") != 0) | (pl.col("transactions_rejected") != 0),
}
COUNTED_COLUMNS = {"mempool_rejected_transactions": "rejected_transactions"}


def rows_at_a_time(hosts: int) -> int:
    """Number of records of each host that are read at a time; the decoder writes as many, so none is read twice."""
    return max(LEAST_ROWS, min(MOST_ROWS, WAITING_ROWS // max(1, hosts)))


@dataclass(frozen=True)
class HostSlots:
    """A summary of a host's slot records.

    Attributes:
        records, selected: before and after the conditions.
        first, last: the first and last selected slot; None without any.
        known_from: by metric the first slot from which it is known; absent if it never is.
        counted: the metrics that count something that the host reports.
    """

    name: str
    path: Path
    records: int
    selected: int
    first: int | None
    last: int | None
    known_from: Mapping[str, int]
    counted: frozenset[str]


def survey(name: str, path: Path, conditions: Sequence[FilterCondition]) -> HostSlots:
    """Read what must be known of a whole host before its slots are processed in batches."""
    check_slots_table(path, name)
    expression = slot_test(conditions)
    slot = pl.col("slot")
    result = (
        pl.scan_parquet(path)
        .select(
            records=pl.len(),
            selected=slot.filter(expression).len(),
            first=slot.filter(expression).min(),
            last=slot.filter(expression).max(),
            **{f"from_{metric}": slot.filter(reported).min() for metric, reported in REPORTED_BY.items()},
            **{f"any_{metric}": reported.any() for metric, reported in COUNTED_BY.items()},
        )
        .collect()
        .row(0, named=True)
    )
    return HostSlots(
        name=name,
        path=path,
        records=result["records"],
        selected=result["selected"],
        first=result["first"],
        last=result["last"],
        known_from={metric: start for metric in REPORTED_BY if (start := result[f"from_{metric}"]) is not None},
        counted=frozenset(metric for metric in COUNTED_BY if result[f"any_{metric}"]),
    )


def metrics_of(host: HostSlots, rules: Rules) -> dict[str, pl.Expr]:
    """Every slot metric of one host, f64.

    The correct rules leave unknown values empty; the published ones use 0, except for resources, which are omitted.
    """
    result = {metric: pl.col(column) for metric, column in COPIED.items()}
    result |= {metric: pl.col(COUNTED_COLUMNS.get(metric, metric)) for metric in (*REPORTED_BY, *COUNTED_BY)}
    result |= {metric: pl.col(column) for metric, column in LEDGER.items()}
    if rules.published:
        for metric in LEDGER:
            result[metric] = result[metric].fill_null(0.0)
    else:
        for metric in REPORTED_BY:
            start = host.known_from.get(metric)
            expression = pl.lit(value=False) if start is None else pl.col("slot") >= start
            result[metric] = pl.when(expression).then(result[metric])
        for metric in COUNTED_BY.keys() - host.counted:
            result[metric] = pl.lit(None)
    return {metric: expression.cast(pl.Float64) for metric, expression in sorted(result.items())}


def write_slot_samples(
    hosts: Sequence[HostSlots],
    conditions: Sequence[FilterCondition],
    genesis: Genesis,
    rules: Rules,
    *,
    path: Path,
    progress: Progress,
) -> int:
    """Write the selected slots of all hosts as one Parquet file, by slot, then host; returns the number of rows.

    Args:
        hosts: in order.
        path: of the file.
    """
    names = pl.Enum([host.name for host in hosts])
    parts = path.with_name(f"{path.name}.parts")
    with storage_errors(path):
        parts.mkdir(parents=True)
        rows, total = 0, max(1, sum(host.selected for host in hosts))
        at_a_time = rows_at_a_time(len(hosts))
        readers = [_Reader(host, conditions, _selection(host, genesis, rules, names), at_a_time) for host in hosts]
        # A file without rows first, so that the file exists.
        files = [parts / "0.parquet"]
        _no_rows(names).write_parquet(files[0])
        for number, chunk in enumerate(_in_order(readers), start=1):
            files.append(parts / f"{number}.parquet")
            chunk.write_parquet(files[-1], compression="lz4")
            rows += chunk.height
            progress.update(rows / total, f"{units.count(rows)} of {units.count(total)} slots")
        pl.scan_parquet(files).sink_parquet(
            path, compression="zstd", statistics=True, row_group_size=ROW_GROUP_ROWS, maintain_order=True
        )
        shutil.rmtree(parts)
    return rows


class _Reader:
    """The selected slots of one host, read some thousand at a time.

    Attributes:
        unread: number of selected slots that are still in the file.
        waiting: those that were read and not yet emitted, ascending.
    """

    def __init__(
        self, host: HostSlots, conditions: Sequence[FilterCondition], columns: Sequence[pl.Expr], at_a_time: int
    ) -> None:
        self._path, self._test, self._columns = host.path, slot_test(conditions), columns
        self._offset, self._at_a_time = 0, at_a_time
        self.unread = host.selected
        self.waiting = pl.DataFrame(schema={"slot": pl.Int64})

    @property
    def is_dry(self) -> bool:
        """Whether no slot waits."""
        return self.waiting.is_empty()

    @property
    def first(self) -> int:
        """The first waiting slot, if any."""
        return int(self.waiting["slot"][0])

    @property
    def last(self) -> int:
        """The last waiting slot, if any."""
        return int(self.waiting["slot"][-1])

    def piece(self) -> pl.LazyFrame:
        """The next records, as far as they are selected."""
        piece = pl.scan_parquet(self._path).slice(self._offset, self._at_a_time)
        self._offset += self._at_a_time
        return piece.filter(self._test).select(self._columns)

    def take(self, piece: pl.DataFrame) -> None:
        """Add records to the waiting ones."""
        self.unread -= piece.height
        self.waiting = piece

    def give(self, until: int) -> pl.DataFrame:
        """Emit the waiting slots up to a slot."""
        count = int(self.waiting["slot"].search_sorted(until, side="right"))
        given, self.waiting = self.waiting[:count], self.waiting[count:]
        return given


def _in_order(readers: Sequence[_Reader]) -> Iterator[pl.DataFrame]:
    """The rows of all hosts by slot, then host, some thousand at a time; never an empty frame."""
    chunk_slots = max(1, CHUNK_ROWS // max(1, len(readers)))
    while True:
        while dry := [reader for reader in readers if reader.is_dry and reader.unread]:
            for reader, piece in zip(dry, pl.collect_all([reader.piece() for reader in dry]), strict=True):
                reader.take(piece)
        ready = [reader for reader in readers if not reader.is_dry]
        if not ready:
            return
        # Beyond the last waiting slot of a host with more to read, its rows are not known yet.
        reached = min((reader.last for reader in ready if reader.unread), default=max(reader.last for reader in ready))
        while ready and (low := min(reader.first for reader in ready)) <= reached:
            until = min(low + chunk_slots - 1, reached)
            yield pl.concat([reader.give(until) for reader in ready]).sort("slot", "host")
            ready = [reader for reader in ready if not reader.is_dry]


def _no_rows(names: pl.Enum) -> pl.DataFrame:
    metrics = sorted([*COPIED, *REPORTED_BY, *COUNTED_BY, *LEDGER])
    return pl.DataFrame(
        schema={"slot": pl.Int64, "host": names, "time_s": pl.Float64, **dict.fromkeys(metrics, pl.Float64)}
    )


def _selection(host: HostSlots, genesis: Genesis, rules: Rules, names: pl.Enum) -> list[pl.Expr]:
    return [
        pl.col("slot"),
        pl.lit(host.name, dtype=names).alias("host"),
        (pl.col("slot") * genesis.slot_length_s).alias("time_s"),
        *(expression.alias(metric) for metric, expression in metrics_of(host, rules).items()),
    ]
