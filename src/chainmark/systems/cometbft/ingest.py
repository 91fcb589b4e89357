"""Turn raw data into typed events: transactions matched to blocks by hash, blocks, scrapes; with full accounting.

Every frame below is written to ``events/``. Times are nanoseconds since the epoch, by the load machine's clock unless
they come from a header.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import polars as pl
from prometheus_client.parser import text_string_to_metric_families

from chainmark._native import decode_transaction
from chainmark.core import units
from chainmark.core.progress import Progress
from chainmark.network.sampling import read_pages
from chainmark.store.schema import Schema
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.cometbft.answers import ACCEPTED, ANSWERS, MISSING, REJECTED, UNSENT, answer_names
from chainmark.systems.cometbft.rpc import Block, Failure, RpcClient
from chainmark.systems.cometbft.workload import Measurement

if TYPE_CHECKING:
    from chainmark._native import LoadResult

HASH_BYTES = 32
# Accepted transactions in no block, which a mempool may hold without listing them.
PENDING_OR_LOST = "pending or lost"
TRANSACTION_SCHEMA: Schema = {
    "connection": pl.UInt32, "sequence": pl.UInt32, "due_ns": pl.Int64, "sent_ns": pl.Int64, "answered_ns": pl.Int64,
    "answer": pl.String, "check_code": pl.UInt32, "size_bytes": pl.UInt32, "hash": pl.Binary, "height": pl.Int64,
    "index_in_block": pl.Int64,
}  # fmt: skip
BLOCK_SCHEMA: Schema = {
    "height": pl.Int64, "time_ns": pl.Int64, "observed_ns": pl.Int64, "proposer": pl.String, "round": pl.Int64,
    "missing_votes": pl.Int64, "transactions": pl.Int64, "header_transactions": pl.Int64, "size_bytes": pl.Int64,
}  # fmt: skip
# Our transactions that are in a block and were not executed.
FAILED_SCHEMA: Schema = {
    "hash": pl.Binary, "height": pl.Int64, "index_in_block": pl.Int64, "code": pl.Int64, "codespace": pl.String,
    "log": pl.String,
}  # fmt: skip
SCRAPE_SCHEMA: Schema = {"time_ns": pl.Int64, "host": pl.String, "metric": pl.String, "value": pl.Float64}

# Of the histogram of the consensus steps, whose buckets are too wide for anything but the mean.
STEP_SUM, STEP_COUNT = STEP_TOTALS = (
    "cometbft_consensus_step_duration_seconds_sum",
    "cometbft_consensus_step_duration_seconds_count",
)
# Families of the nodes' metrics pages that the analysis or the diagnostics use; complete pages are stored as well.
SCRAPED_FAMILIES = (
    "cometbft_mempool_size",
    "cometbft_p2p_peers",
    "cometbft_p2p_message_send_bytes",
    "cometbft_p2p_message_receive_bytes",
    "cometbft_consensus_height",
    "cometbft_consensus_rounds",
    "process_start_time_seconds",
    "go_goroutines",
    "go_memstats_heap_alloc_bytes",
    *STEP_TOTALS,
)


@dataclass(frozen=True)
class Events:
    """The typed events of one run; without blocks if no node was left to read the chain from."""

    transactions: pl.DataFrame
    blocks: pl.DataFrame
    scrapes: pl.DataFrame
    scrape_counts: dict[str, int]
    foreign_transactions: int
    duplicates: int
    undecodable: int
    failed: pl.DataFrame | None = None  # None: not queried

    def write(self, run: UnfinishedRun) -> None:
        """Store them with the run."""
        run.write_events("transactions", self.transactions, TRANSACTION_SCHEMA)
        run.write_events("blocks", self.blocks, BLOCK_SCHEMA)
        if self.failed is not None:
            run.write_events("failed", self.failed, FAILED_SCHEMA)
        run.write_events("scrapes", self.scrapes, SCRAPE_SCHEMA)


@dataclass(frozen=True)
class ChainReading:
    """How a chain is read.

    Attributes:
        experiment_id: the ID in our transactions.
        has_results: whether to query which transactions of a block the application failed to execute.
        by_hash: whether our transactions are identified by hash, as they carry no ID.
    """

    experiment_id: bytes
    has_results: bool = False
    by_hash: bool = False


def collect(measurement: Measurement, reading: ChainReading, progress: Progress) -> Events:
    """Read the chain over RPC and turn all collected data into events."""
    progress.stage("reading the chain")
    blocks, sizes = _read_blocks(measurement, progress)
    observed = observed_commits(measurement.observed)
    places, counts = _places(blocks, _recogniser(reading, measurement.records["hash"]))
    failed = _failed(measurement, blocks, places) if reading.has_results else None
    # A failed transaction is in a block, but not committed.
    for digest in [] if failed is None else failed["hash"]:
        del places[digest]
    progress.stage("decoding the scrapes")
    scrapes, scrape_counts = read_scrapes(measurement.scrape_files)
    return Events(
        transactions=_transactions(measurement.records, places),
        blocks=_blocks(blocks, sizes, observed),
        scrapes=scrapes,
        scrape_counts=scrape_counts,
        foreign_transactions=counts["foreign"],
        duplicates=counts["duplicates"],
        undecodable=counts["undecodable"],
        failed=failed,
    )


def _failed(measurement: Measurement, blocks: list[Block], places: Mapping[bytes, tuple[int, int]]) -> pl.DataFrame:
    """Our transactions that the application failed to execute, in block order."""
    rows: list[tuple[bytes, int, int, int, str, str]] = []
    if measurement.reader is not None:
        with RpcClient(measurement.reader.rpc_address, timeout_s=60.0) as client:
            for block in blocks:
                hashes = block.hashes()
                failures: Mapping[int, Failure] = client.failures(block.height) if hashes else {}
                rows += [
                    (hashes[index], block.height, index, failure.code, failure.codespace, failure.log)
                    for index, failure in failures.items()
                    if places.get(hashes[index]) == (block.height, index)
                ]
    return pl.DataFrame(rows, schema=FAILED_SCHEMA, orient="row")


def failure_reasons(events: Events) -> list[str]:
    """The number of transactions that failed in a block, by reason."""
    if events.failed is None:
        return []
    by_code = events.failed.group_by("code", "codespace").agg(pl.len(), pl.col("log").first()).sort("codespace", "code")
    return [
        f"{units.count(row['len'])} × failed in a block with code {row['code']}"
        f"{' of ' + row['codespace'] if row['codespace'] else ''}: {row['log'] or 'no reason stated'}"
        for row in by_code.iter_rows(named=True)
    ]


def _recogniser(reading: ChainReading, hashes: bytes) -> Callable[[bytes, bytes], str]:
    """The class of a transaction in a block, by its bytes and its hash: "ours", "foreign" or "undecodable"."""
    if reading.by_hash:
        sent = set(_digests(hashes))
        return lambda _, digest: "ours" if digest in sent else "foreign"

    def by_payload(transaction: bytes, _: bytes) -> str:
        decoded = decode_transaction(transaction)
        if decoded is None:
            return "undecodable"
        return "ours" if decoded["experiment_id"] == reading.experiment_id else "foreign"

    return by_payload


def _digests(hashes: bytes) -> list[bytes]:
    return [hashes[start : start + HASH_BYTES] for start in range(0, len(hashes), HASH_BYTES)]


def _read_blocks(measurement: Measurement, progress: Progress) -> tuple[list[Block], dict[int, tuple[int, int]]]:
    if measurement.reader is None:
        return [], {}
    first, last = max(1, measurement.first_height), measurement.last_height
    with RpcClient(measurement.reader.rpc_address, timeout_s=60.0) as client:
        blocks = []
        for height in range(first, last + 1):
            blocks.append(client.block(height))
            progress.update((height - first + 1) / (last - first + 1), f"block {height}")
        return blocks, client.block_sizes(first, last)


def observed_commits(messages: list[tuple[int, bytes]]) -> dict[int, int]:
    """When each height's commit event arrived: height → ns. The first arrival counts."""
    observed: dict[int, int] = {}
    for received_ns, message in messages:
        value = json.loads(message).get("result", {}).get("data", {}).get("value", {})
        height = value.get("header", {}).get("height")
        if height is not None:
            observed.setdefault(int(height), received_ns)
    return observed


def _places(
    blocks: list[Block], what: Callable[[bytes, bytes], str]
) -> tuple[dict[bytes, tuple[int, int]], dict[str, int]]:
    """The first position of each of our transactions: hash → (height, index); and the other findings."""
    places: dict[bytes, tuple[int, int]] = {}
    counts = {"foreign": 0, "duplicates": 0, "undecodable": 0}
    for block in blocks:
        for index, (transaction, digest) in enumerate(zip(block.transactions, block.hashes(), strict=True)):
            kind = what(transaction, digest)
            if kind != "ours":
                counts[kind] += 1
            elif digest in places:
                counts["duplicates"] += 1
            else:
                places[digest] = (block.height, index)
    return places, counts


def _transactions(records: LoadResult, places: Mapping[bytes, tuple[int, int]]) -> pl.DataFrame:
    """One row per offered transaction, in the order of connection and sequence."""
    digests = _digests(records["hash"])
    results = [places.get(digest) for digest in digests]
    frame = pl.DataFrame(
        {
            "connection": np.frombuffer(records["connection"], "<u4"),
            "sequence": np.frombuffer(records["sequence"], "<u4"),
            "due_ns": np.frombuffer(records["due_ns"], "<i8"),
            "sent_ns": np.frombuffer(records["sent_ns"], "<i8"),
            "answered_ns": np.frombuffer(records["answered_ns"], "<i8"),
            "answer": pl.Series(answer_names(records["class"]), dtype=pl.String),
            "check_code": np.frombuffer(records["check_code"], "<u4"),
            "size_bytes": np.frombuffer(records["size_bytes"], "<u4"),
            "hash": pl.Series(digests, dtype=pl.Binary),
            "height": pl.Series([place and place[0] for place in results], dtype=pl.Int64),
            "index_in_block": pl.Series([place and place[1] for place in results], dtype=pl.Int64),
        }
    )
    # Below 0 means "never".
    return frame.with_columns(
        pl.when(pl.col(name) >= 0).then(pl.col(name)) for name in ("sent_ns", "answered_ns")
    ).sort("connection", "sequence")


def _blocks(blocks: list[Block], sizes: Mapping[int, tuple[int, int]], observed: Mapping[int, int]) -> pl.DataFrame:
    """One row per block. Its round and missing votes are in the next block's commit, so the last one has none."""
    following = {block.height - 1: block for block in blocks}

    def commit(height: int, name: str) -> int | None:
        return getattr(following[height], name) if height in following else None

    return pl.DataFrame(
        {
            "height": [block.height for block in blocks],
            "time_ns": [block.time_ns for block in blocks],
            "observed_ns": [observed.get(block.height) for block in blocks],
            "proposer": [block.proposer for block in blocks],
            "round": [commit(block.height, "last_round") for block in blocks],
            "missing_votes": [commit(block.height, "last_missing_votes") for block in blocks],
            "transactions": [len(block.transactions) for block in blocks],
            "header_transactions": [sizes.get(block.height, (None, None))[1] for block in blocks],
            "size_bytes": [sizes.get(block.height, (None, None))[0] for block in blocks],
        },
        schema=BLOCK_SCHEMA,
    ).sort("height")


def read_scrapes(files: Mapping[str, Path]) -> tuple[pl.DataFrame, dict[str, int]]:
    """The chosen families of every scraped page, labels summed up, and how many lines were read, kept and ignored."""
    rows: list[tuple[int, str, str, float]] = []
    counts = {"pages": 0, "lines": 0, "kept": 0, "ignored": 0}
    for host, path in files.items():
        for time_ns, page in read_pages(path):
            values, lines, retained = read_page(page)
            rows += [(time_ns, host, name, value) for name, value in values.items()]
            counts["pages"] += 1
            counts["lines"] += lines
            counts["kept"] += retained
            counts["ignored"] += lines - retained
    return pl.DataFrame(rows, schema=SCRAPE_SCHEMA, orient="row").sort("time_ns", "host", "metric"), counts


def read_page(page: str) -> tuple[dict[str, float], int, int]:
    """The chosen families of one page, its number of lines with a value, and how many of them count.

    A family is summed over its labels, except for the consensus steps, which are separate: "NAME:Propose".
    """
    lines = [line for line in page.splitlines() if line and not line.startswith("#")]
    # The parser reads a page in milliseconds, but there are hundreds, and most of their lines are histogram buckets.
    chosen = [line for line in lines if line.startswith(SCRAPED_FAMILIES)]
    values: dict[str, float] = {}
    retained = 0
    for family in text_string_to_metric_families("\n".join(chosen) + "\n"):
        for sample in family.samples:
            name = sample.name.removesuffix("_total")
            if name in SCRAPED_FAMILIES:
                if name in STEP_TOTALS:
                    name = f"{name}:{sample.labels.get('step', '')}"
                values[name] = values.get(name, 0.0) + sample.value
                retained += 1
    return values, len(lines), retained


@dataclass(frozen=True)
class TransactionCounts:
    """The outcome of every transaction, and inconsistencies.

    Attributes:
        counts: by account, the number per class.
        problems: sums that do not balance: an error in the collected data; empty if there is none.
        contradictions: behaviour that contradicts the nodes' own responses: transactions refused, yet committed.
        lost: number of transactions that were accepted and are in no block and in no mempool; None if unknown.
        unsure: number of further ones in no block, which are lost unless they are among the unlisted ones in mempools.
    """

    counts: dict[str, dict[str, int]]
    problems: list[str]
    contradictions: list[str] = field(default_factory=list)
    lost: int | None = None
    unsure: int = 0


def balance(events: Events, measurement: Measurement, offered_by_profile: int | None) -> TransactionCounts:
    """Account for every transaction: offered = unsent + rejected + accepted; accepted = committed + pending + lost.

    If the application may fail accepted transactions, accepted = committed + failed + pending + lost.

    Every class is counted independently, so that the check of the sums is meaningful: responses by the load generator,
    committed from the blocks, pending from the mempools, and lost by hash: accepted, in no block and in no living
    node's mempool when draining ended. A transaction without a response counts as accepted when it is in a block or in
    a mempool, otherwise as rejected. If mempools hold more than their nodes list, lost is only the number that exceeds
    the unlisted ones, and the rest is a class of its own, "pending or lost".
    """
    failed = frozenset() if events.failed is None else frozenset(events.failed["hash"])
    table = _with_ends(events.transactions, measurement.waiting.hashes, failed)
    answers = {name: table.filter(pl.col("answer") == name).height for name in ANSWERS}
    item = _StateCounts.of(table)
    account = {
        "offered": table.height,
        "unsent": _sum(answers, UNSENT),
        "rejected": _sum(answers, REJECTED) + _sum(answers, MISSING) - item.unanswered,
        "accepted": _sum(answers, ACCEPTED) + item.unanswered,
    }
    counts = {"transactions": account, "answers": answers, "metric lines": events.scrape_counts}
    if measurement.reader is None:
        return TransactionCounts(counts, _problems(counts, events, offered_by_profile))
    unseen = measurement.waiting.unseen
    unsure = item.lost if unseen is None else min(item.lost, unseen)
    account |= {
        "committed": item.committed,
        **({} if events.failed is None else {"failed": item.failed}),
        "pending": item.waiting,
        "lost": item.lost - unsure,
        **({PENDING_OR_LOST: unsure} if unsure else {}),
        "rejected but committed": item.refused_committed,
    }
    counts["chain"] = {
        "blocks": events.blocks.height,
        "transactions in blocks": int(events.blocks["transactions"].sum()),
        "ours": item.in_blocks,
        "duplicates": events.duplicates,
        "of other experiments": events.foreign_transactions,
        "not a payload": events.undecodable,
    }
    contradictions = []
    if item.refused_committed:
        contradictions.append(f"{units.count(item.refused_committed)} rejected transactions were committed")
    problems = _problems(counts, events, offered_by_profile)
    return TransactionCounts(counts, problems, contradictions, item.lost - unsure, unsure)


def _with_ends(transactions: pl.DataFrame, waiting: frozenset[bytes], failed: frozenset[bytes]) -> pl.DataFrame:
    """The transactions with their state: ``committed``, ``failed`` in a block, or, in a mempool only, ``waiting``."""
    committed = transactions["height"].is_not_null()
    held, refused = (
        pl.Series([digest in hashes for digest in transactions["hash"]], dtype=pl.Boolean)
        for hashes in (waiting, failed)
    )
    return transactions.with_columns(committed=committed, failed=refused, waiting=held & ~committed & ~refused)


@dataclass(frozen=True)
class _StateCounts:
    """Counts of transactions by their state and by their response."""

    in_blocks: int
    committed: int  # and not refused
    failed: int  # and not refused
    waiting: int
    lost: int  # accepted, in no block and listed by no mempool
    refused_committed: int
    unanswered: int  # and in a block or in a mempool, so that they were accepted

    @classmethod
    def of(cls, table: pl.DataFrame) -> Self:
        """Of the frame with ``committed``, ``failed`` and ``waiting``."""
        in_blocks = pl.col("committed") | pl.col("failed")
        is_there = in_blocks | pl.col("waiting")
        unanswered = pl.col("answer").is_in(MISSING)
        accepted = pl.col("answer").is_in(ACCEPTED)
        refused = pl.col("answer").is_in(REJECTED)
        conditions = {
            "in_blocks": in_blocks,
            "committed": pl.col("committed") & ~refused,
            "failed": pl.col("failed") & ~refused,
            "waiting": pl.col("waiting"),
            "lost": accepted & ~is_there,
            "refused_committed": refused & in_blocks,
            "unanswered": unanswered & is_there,
        }
        return cls(**{name: table.filter(condition).height for name, condition in conditions.items()})


def _sum(counts: Mapping[str, int], names: Iterable[str]) -> int:
    return sum(counts[name] for name in names)


def _problems(counts: Mapping[str, Mapping[str, int]], events: Events, offered_by_profile: int | None) -> list[str]:
    account = counts["transactions"]
    equations: list[tuple[str, int, str, Sequence[str]]] = [
        ("offered", account["offered"], "unsent + rejected + accepted", ("unsent", "rejected", "accepted"))
    ]
    if "committed" in account:
        ends = [name for name in ("committed", "failed", "pending", "lost", PENDING_OR_LOST) if name in account]
        reported = "committed + failed + pending + lost" if "failed" in account else "committed + pending + lost"
        equations.append(("accepted", account["accepted"], reported, ends))
    sums = [(left, a, right, _sum(account, names)) for left, a, right, names in equations]
    if "chain" in counts:
        sums += _chain_sums(counts["chain"], events.blocks)
    if offered_by_profile is not None:
        sums.append(("offered", account["offered"], "the schedule", offered_by_profile))
    problems = [f"{left} {units.count(a)} ≠ {right} {units.count(b)}" for left, a, right, b in sums if a != b]
    unmatched = events.blocks.filter(pl.col("header_transactions").is_null()).height
    if unmatched:
        problems.append(f"{unmatched} blocks have no header count")
    return problems


def _chain_sums(chain: Mapping[str, int], blocks: pl.DataFrame) -> list[tuple[str, int, str, int]]:
    ours = _sum(chain, ("ours", "duplicates", "of other experiments", "not a payload"))
    header_sum = int(blocks["header_transactions"].sum())
    return [
        ("transactions in blocks", chain["transactions in blocks"], "ours + duplicates + others", ours),
        ("transactions in blocks", chain["transactions in blocks"], "the headers' counts", header_sum),
    ]
