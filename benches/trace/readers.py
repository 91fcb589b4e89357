"""One reader of log lines in a separate process: it reads lines and writes typed events as Parquet.

``python benches/trace/readers.py READER THREADS OUT FILE…`` prints seconds, CPU seconds and rows as JSON. All readers
extract the same messages with the same fields. Each reader imports its own libraries, so that no other reader needs
them.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

NAMESPACES = (
    "Resources", "Forge.Loop.StartLeadershipCheck", "Forge.Loop.BlockContext", "Forge.Loop.LedgerState",
    "Forge.Loop.LedgerView", "Forge.Loop.NodeIsLeader", "Forge.Loop.NodeNotLeader",
    "Forge.Loop.ForgeTickedLedgerState", "Forge.Loop.ForgingMempoolSnapshot", "Forge.Loop.ForgedBlock",
    "Forge.Loop.AdoptedBlock", "ChainSync.Client.DownloadedHeader", "BlockFetch.Client.SendFetchRequest",
    "BlockFetch.Client.CompletedBlockFetch", "ChainSync.ServerHeader.Update", "BlockFetch.Server.SendBlock",
    "ChainDB.AddBlockEvent.AddedToCurrentChain", "ChainDB.AddBlockEvent.SwitchedToAFork", "LedgerMetrics",
    "TxSubmission.TxInbound.Collected", "TxSubmission.TxInbound.Processed", "Mempool.AddedTx", "Mempool.RemoveTxs",
    "Mempool.RejectedTx",
)  # fmt: skip
INTEGERS = (
    "slot", "current slot", "tipBlockNo", "blockNo", "length", "chainLengthDelta", "blockSize", "size", "count",
    "accepted", "rejected", "utxoSize", "CentiCpu", "CentiGC", "CentiMut", "GcsMajor", "GcsMinor", "Alloc", "Live",
    "Heap", "RSS", "CentiBlkIO", "NetRd", "NetWr", "FsRd", "FsWr", "Threads",
)  # fmt: skip
NUMBERS = ("chainDensity",)
TEXTS = ("block", "blockPrev", "head", "addBlock", "newtip", "blockHash")
BATCH_ROWS = 65_536


def _in_parts(files: list[str], threads: int, read: Callable[[tuple[int, str]], int]) -> int:
    with ThreadPoolExecutor(threads) as executor:
        return sum(executor.map(read, enumerate(files)))


def chainmark(files: list[str], out: Path, threads: int) -> int:
    """The project's own decoder, one file after the other on every thread."""
    native: Any = import_module("chainmark._native")

    def read(part: tuple[int, str]) -> int:
        number, path = part
        order = {
            "host": f"part-{number}",
            "files": [path],
            "published_rules": False,
            "system_start_ns": 0,
            "slot_length_s": 1.0,
            "epoch_slots": 8000,
            "security_parameter": 40,
            "active_slots_coefficient": 0.05,
            "slots_out": None,
            "block_timelines_out": None,
            "events_out": str(out / f"{number}.parquet"),
        }
        summary = json.loads(native.TraceDecoder(json.dumps(order)).run() or "{}")
        return int(summary["line_counts"]["decoded"])

    return _in_parts(files, threads, read)


def duckdb(files: list[str], out: Path, threads: int) -> int:
    """DuckDB's reader of JSON with stated types; it must ignore lines whose keys have another type."""
    module: Any = import_module("duckdb")

    fields = [f'"{name}" BIGINT' for name in INTEGERS] + [f'"{name}" DOUBLE' for name in NUMBERS]
    fields += [f'"{name}" VARCHAR' for name in TEXTS]
    fields += ["mempoolSize STRUCT(numTxs BIGINT)", "peer STRUCT(connectionId VARCHAR)"]
    columns = f"{{'at': 'VARCHAR', ns: 'VARCHAR', data: 'STRUCT({', '.join(fields)})'}}"
    chosen = ", ".join(f'data."{name}"' for name in (*INTEGERS, *NUMBERS, *TEXTS))
    wanted = ", ".join(f"'{name}'" for name in NAMESPACES)
    connection = module.connect()
    connection.execute(f"SET threads = {threads}")
    connection.execute("SET preserve_insertion_order = false")
    target = out / "all.parquet"
    events = (
        f'SELECT epoch_ns(TRY_CAST("at" AS TIMESTAMP_NS)) AS at_ns, ns, {chosen},'  # noqa: S608 - our own names
        " data.mempoolSize.numTxs,"
        f" data.peer.connectionId FROM read_json({files!r}, format = 'newline_delimited', ignore_errors = true,"
        f" columns = {columns}) WHERE ns IN ({wanted})"
    )
    connection.execute(f"COPY ({events}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
    return int(connection.read_parquet(str(target)).count("*").fetchall()[0][0])


def polars(files: list[str], out: Path, threads: int) -> int:
    """Polars' streaming reader of JSON lines with stated types."""
    pl: Any = import_module("polars")

    data: dict[str, Any] = {name: pl.Int64() for name in INTEGERS} | {name: pl.Float64() for name in NUMBERS}
    data |= {name: pl.String() for name in TEXTS}
    data["mempoolSize"] = pl.Struct({"numTxs": pl.Int64()})
    data["peer"] = pl.Struct({"connectionId": pl.String()})
    frame = pl.scan_ndjson(
        files, schema={"at": pl.String(), "ns": pl.String(), "data": pl.Struct(data)}, ignore_errors=True
    )
    target = out / "all.parquet"
    at_ns = pl.col("at").str.to_datetime("%+", time_unit="ns", strict=False).dt.epoch("ns").alias("at_ns")
    frame.filter(pl.col("ns").is_in(NAMESPACES)).select(at_ns, "ns", "data").unnest("data").sink_parquet(
        target, compression="zstd"
    )
    return int(pl.scan_parquet(target).select(pl.len()).collect().item())


def _events(path: str) -> Iterator[tuple[Any, ...]]:
    module: Any = import_module("orjson")

    wanted = frozenset(NAMESPACES)
    keys = (*INTEGERS, *NUMBERS, *TEXTS)
    with Path(path).open("rb") as file:
        for line in file:
            try:
                content = module.loads(line)
            except module.JSONDecodeError:
                continue
            if content["ns"] not in wanted:
                continue
            data = content["data"]
            at = content["at"]
            whole = int(datetime.fromisoformat(at[:19] + "+00:00").timestamp()) * 10**9
            at_ns = whole + int(at[20:-1].ljust(9, "0")) if at[19] == "." else whole
            size, peer = data.get("mempoolSize"), data.get("peer")
            yield (
                at_ns,
                content["ns"],
                *(data.get(key) for key in keys),
                size and size.get("numTxs"),
                peer and peer.get("connectionId"),
            )


def _orjson_part(part: tuple[int, str, str]) -> int:
    pl: Any = import_module("polars")

    number, path, out = part
    schema = {"at_ns": pl.Int64(), "ns": pl.String()} | {name: pl.Int64() for name in INTEGERS}
    schema |= {name: pl.Float64() for name in NUMBERS} | {name: pl.String() for name in TEXTS}
    schema |= {"numTxs": pl.Int64(), "connectionId": pl.String()}
    rows: list[tuple[Any, ...]] = []
    written = 0

    def write() -> None:
        target = Path(out) / f"{number}-{written}.parquet"
        pl.DataFrame(rows, schema=schema, orient="row").write_parquet(target, compression="zstd")

    for row in _events(path):
        rows.append(row)
        if len(rows) == BATCH_ROWS:
            write()
            written += len(rows)
            rows.clear()
    write()
    return written + len(rows)


def orjson(files: list[str], out: Path, threads: int) -> int:
    """A Python loop around the fastest JSON parser for Python, with several processes instead of threads."""
    parts = [(number, path, str(out)) for number, path in enumerate(files)]
    if threads == 1:
        return sum(_orjson_part(part) for part in parts)
    with multiprocessing.get_context("spawn").Pool(threads) as pool:
        return sum(pool.imap_unordered(_orjson_part, parts))


READERS = {"chainmark": chainmark, "duckdb": duckdb, "polars": polars, "orjson": orjson}
PACKAGES = {"chainmark": "chainmark", "duckdb": "duckdb", "polars": "polars", "orjson": "orjson"}


def main() -> None:
    """Read once, after reading one small file, which makes the reader load all its libraries."""
    name, threads, out, *files = sys.argv[1:]
    reader = READERS[name]
    first = Path(out) / "first"
    first.mkdir(parents=True)
    small = first / "small"
    with Path(files[0]).open("rb") as source:
        small.write_bytes(b"".join(source.readline() for _ in range(2000)))
    reader([str(small)], first, 1)
    begin, cpu_begin_s = time.perf_counter(), _cpu_s()
    rows = reader(files, Path(out), int(threads))
    measured = {"seconds": time.perf_counter() - begin, "cpu_s": _cpu_s() - cpu_begin_s, "rows": rows}
    print(json.dumps({**measured, "version": version(PACKAGES[name]), "pid": os.getpid()}))


def _cpu_s() -> float:
    """Processor time in seconds of this process and of its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main()
