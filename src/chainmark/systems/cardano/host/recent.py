"""The last blocks of one host's log while it is being written."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl

from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.core.progress import Silent
from chainmark.core.times import utc_text
from chainmark.lab.protocols import ImportRequest
from chainmark.report.blocks import Column, Table, TableRow, row_of, words
from chainmark.systems.cardano.analyse import read_block_timelines
from chainmark.systems.cardano.decoding import Reading, decode
from chainmark.systems.cardano.documents import (
    GENESIS,
    Genesis,
    StatedGenesis,
    find_genesis,
    given_document,
    resolve_genesis,
)
from chainmark.systems.cardano.logs import ClusterLogs, HostLogs, LogFile
from chainmark.systems.cardano.received import DELAYS, SAMPLE, received_blocks
from chainmark.systems.cardano.rules import Rules
from chainmark.systems.cardano.slots import rows_at_a_time

# Lines without one of these contain nothing about the arrival of a block.
MARKS = (
    b"DownloadedHeader",
    b"SendFetchRequest",
    b"CompletedBlockFetch",
    b"AddedToCurrentChain",
    b"SwitchedToAFork",
    b"ForgedBlock",
)


def to_follow(order: ImportRequest, stated: StatedGenesis) -> ImportRequest:
    """The request with the genesis next to the log.

    Raises:
        UsageError: it is a folder, another document is given, or there is no genesis.
    """
    if order.options.keys() - {GENESIS}:
        raise UsageError(
            "`--follow` does not accept other import options", "import the log afterwards with those options"
        )
    if order.path.is_dir():
        raise UsageError(
            f"`{order.path}` is a folder, but only a file can be followed", "give the log file that is being written"
        )
    genesis = find_genesis(order.path.parent, given_document(order, GENESIS))
    import_request = replace(order, options={} if genesis is None else {GENESIS: genesis})
    genesis_of(import_request, stated)
    return import_request


def genesis_of(order: ImportRequest, stated: StatedGenesis) -> Genesis:
    """The genesis of a followed log: needed from its first block on.

    Raises:
        UsageError: there is none.
    """
    return resolve_genesis(given_document(order, GENESIS), stated)[0]


def recent_blocks(window: Path, genesis: Genesis) -> Table:
    """The blocks that a part of a log covers completely, oldest first; each row's anchor is its block.

    Args:
        window: lines of the log, of which the first may lack their predecessors.
        genesis: of the network.
    """
    block_timelines = _block_timelines(window, genesis)
    blocks = received_blocks(block_timelines, genesis).filter(pl.col("class") == SAMPLE).sort("adoption_ns")
    columns = [*words("height", "slot start"), *map(Column, ("header", "request", "fetch", "adopt", "adopted after"))]
    return Table("recent", "", [*columns, *words("from")], [_row(row) for row in blocks.iter_rows(named=True)])


def _row(row: dict[str, object]) -> TableRow:
    figures = [units.quantity(float(str(row[name])), "s") for name in (*DELAYS, "received_adopted_s")]
    start = units.utc_clock(utc_text(int(str(row["slot_start_ns"]))))
    table_row = row_of(units.count(int(str(row["block_no"]))), start, *figures, str(row["fetched_from"]))
    return TableRow(table_row.cells, anchor=str(row["block"]))


def _block_timelines(window: Path, genesis: Genesis) -> pl.DataFrame:
    folder = window.with_suffix(".decoded")
    folder.mkdir()
    try:
        reading = Reading(genesis, Rules(published=False, count_switches=True), folder, None, rows_at_a_time(1))
        log = LogFile(window, window.name, window.stat().st_size)
        traces, *_ = decode(ClusterLogs(window.parent, (HostLogs("host", (log,)),)), reading, 1, Silent())
        return read_block_timelines(traces, genesis, {})
    finally:
        shutil.rmtree(folder)
