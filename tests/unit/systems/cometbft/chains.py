"""A chain of four blocks, as a node returns it over RPC, with the records of its load. All values are known by hand."""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from chainmark._native import encode_transaction
from chainmark.network.sampling import PRESSURE_SCHEMA, PROCESS_SCHEMA
from chainmark.systems.cometbft.rpc import METAS_PER_CALL
from chainmark.systems.cometbft.workload import Measurement, PendingTransactions

if TYPE_CHECKING:
    from chainmark._native import LoadResult

NS = 10**9
OURS, THEIRS = (bytes([number] * 16) for number in (1, 2))
# Codes of `LoadResult.class`.
ACCEPTED, MEMPOOL_FULL, IN_CACHE, CHECK_CODE, RPC_ERROR, TIMEOUT, UNSENT = range(7)


def transaction(number: int, experiment: bytes = OURS) -> bytes:
    """A distinct payload for every number."""
    return encode_transaction(1, 200, 256, number, experiment, 7)


class Chain:
    """Responds to RPC calls. Height h has the time h s, the proposer ``P<h>`` and a size of 100 h bytes.

    Args:
        blocks: height → transactions.
        commits: height → round and missing votes of the commit *for that block*, which the next block holds.
        counted: height → the transaction count in the header, if it is wrong.
        failed: height → position in the block → the application's result for a failed transaction.
    """

    def __init__(
        self,
        blocks: Mapping[int, Sequence[bytes]],
        commits: Mapping[int, tuple[int, int]],
        counted: Mapping[int, int] | None = None,
        failed: Mapping[int, Mapping[int, Mapping[str, object]]] | None = None,
    ) -> None:
        self.blocks, self.commits, self.counted, self.failed = blocks, commits, counted or {}, failed or {}
        self.calls: list[tuple[str, dict[str, int]]] = []

    def call(self, method: str, **parameters: int) -> dict[str, Any]:
        """The ``result`` of a call."""
        self.calls.append((method, parameters))
        if method == "block":
            return {"block": self._block(parameters["height"])}
        if method == "block_results":
            height = parameters["height"]
            places = range(len(self.blocks[height]))
            return {"txs_results": [self.failed.get(height, {}).get(place, {"code": 0}) for place in places] or None}
        low, high = parameters["minHeight"], parameters["maxHeight"]
        assert high - low < METAS_PER_CALL
        metas = [self._meta(height) for height in range(high, low - 1, -1) if height in self.blocks]
        return {"block_metas": metas}

    def _block(self, height: int) -> dict[str, Any]:
        round_, missing = self.commits.get(height - 1, (0, 0))
        signatures = [{"block_id_flag": flag} for flag in [2, 2, 2, *([1, 3] * missing)[:missing]]]
        return {
            "header": {
                "height": str(height),
                "time": f"1970-01-01T00:00:{height:02d}Z",
                "proposer_address": f"P{height}",
            },
            "last_commit": {"round": round_, "signatures": signatures} if height > 1 else None,
            "data": {"txs": [base64.b64encode(transaction).decode() for transaction in self.blocks[height]] or None},
        }

    def _meta(self, height: int) -> dict[str, Any]:
        count = self.counted.get(height, len(self.blocks[height]))
        return {"header": {"height": str(height)}, "block_size": str(100 * height), "num_txs": str(count)}


def records(rows: Sequence[tuple[bytes | None, int]], **changes: object) -> LoadResult:
    """Transactions in the order of their schedule, one per millisecond: payload (None: unsent) and class.

    Each is sent 1 ms after it was due and answered 2 ms after, unless it is unsent or without a response.
    """
    due = [number * NS // 1000 for number in range(len(rows))]
    sent = [-1 if code == UNSENT else index + NS // 1000 for index, (_, code) in zip(due, rows, strict=True)]
    answered = [
        -1 if code in {UNSENT, TIMEOUT} else index + NS // 500 for index, (_, code) in zip(due, rows, strict=True)
    ]
    hashes = [bytes(32) if payload is None else hashlib.sha256(payload).digest() for payload, _ in rows]
    count = len(rows)
    columns = {
        "connection": struct.pack(f"<{count}I", *(number % 2 for number in range(count))),
        "sequence": struct.pack(f"<{count}I", *(number // 2 for number in range(count))),
        "due_ns": struct.pack(f"<{count}q", *due),
        "sent_ns": struct.pack(f"<{count}q", *sent),
        "answered_ns": struct.pack(f"<{count}q", *answered),
        "class": bytes(code for _, code in rows),
        "check_code": struct.pack(f"<{count}I", *(code * 11 if code == CHECK_CODE else 0 for _, code in rows)),
        "size_bytes": struct.pack(f"<{count}I", *(256 for _ in rows)),
        "hash": b"".join(hashes),
        "rows": count,
        "cpu_s": 1.0,
        "wall_s": 10.0,
    }
    return cast("LoadResult", columns | changes)


def measurement(load: LoadResult, first: int = 7, last: int = 9, **changes: object) -> Measurement:
    """The data collected in a run. ``changes`` replace its fields."""
    fields: dict[str, object] = {
        "start_ns": 0,
        "records": load,
        "observed": [],
        "processes": pl.DataFrame(schema=PROCESS_SCHEMA),
        "pressure": pl.DataFrame(schema=PRESSURE_SCHEMA),
        "scrape_files": {},
        "scrapes_missed": 0,
        "first_height": first,
        "last_height": last,
        "drained": True,
        "waiting": PendingTransactions(),
        "reader": SimpleNamespace(rpc_address="127.0.0.1"),
        "observer_reconnects": 0,
    }
    return Measurement(**cast("dict[str, Any]", fields | changes))
