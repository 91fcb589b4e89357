"""Block samples as blockperf and openblockperf compute them, line by line with the standard library: the oracle.

It follows only their definitions. A block's events are ordered by time. The header is the first event of its kind, the
fetch is the first that completed, the request is the first to the peer of that fetch, and the adoption is the first
extension of the chain or switch to a fork. It keeps everything in memory and shares no code with the decoder.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

KINDS = {
    "DownloadedHeader": "header",
    "ChainSyncClientEvent.TraceDownloadedHeader": "header",
    "SendFetchRequest": "request",
    "CompletedBlockFetch": "fetched",
    "AddedToCurrentChain": "adopted",
    "TraceAddBlockEvent.AddedToCurrentChain": "adopted",
    "SwitchedToAFork": "adopted",
    "TraceAddBlockEvent.SwitchedToAFork": "adopted",
}


@dataclass(frozen=True)
class Event:
    """The content of one line about a block."""

    at: datetime
    kind: str
    data: dict[str, Any]
    peer: tuple[str, str]


def _peer(data: dict[str, Any]) -> tuple[str, str]:
    peer = data.get("peer", {})
    if "connectionId" in peer:
        address, _, port = peer["connectionId"].split(" ")[1].rpartition(":")
        return address, port
    remote = peer.get("remote", {})
    return remote.get("addr", ""), remote.get("port", "")


def _block(kind: str, data: dict[str, Any]) -> str:
    name = {"request": "head", "adopted": "newtip"}.get(kind, "block")
    return str(data[name]).strip('"').partition("@")[0]


def unwrapped(line: str) -> str:
    """The node's line, without the wrapper that journald or docker added."""
    if "MESSAGE={" in line:
        return line.partition("MESSAGE=")[2].partition("\n")[0]
    if not line.startswith("{"):
        return line[line.index(": {") + 2 :] if ": {" in line else ""
    record = json.loads(line)
    return str(record.get("MESSAGE", record.get("log", line)))


def events(lines: Iterable[str]) -> dict[str, list[Event]]:
    """The events of each block, in the order of time."""
    by_block: dict[str, list[Event]] = defaultdict(list)
    for line in lines:
        text = unwrapped(line)
        if not text.startswith("{"):
            continue
        record = json.loads(text)
        data = record["data"]
        kind = KINDS.get(data.get("kind", ""))
        if kind is not None:
            at = datetime.fromisoformat(record["at"][:26].rstrip("Z") + "+00:00")
            by_block[_block(kind, data)].append(Event(at, kind, data, _peer(data)))
    return {block: sorted(events, key=lambda event: event.at) for block, events in by_block.items()}


def _first(events_of_block: list[Event], kind: str) -> Event | None:
    return next((event for event in events_of_block if event.kind == kind), None)


def _ms(span: timedelta) -> int:
    return int(span.total_seconds() * 1000)


def sample(events_of_block: list[Event], slot_zero: datetime) -> dict[str, Any] | None:
    """The sample of one block; None if it is incomplete or outside the limits."""
    header, fetched, adopted = (_first(events_of_block, kind) for kind in ("header", "fetched", "adopted"))
    if header is None or fetched is None or adopted is None:
        return None
    request = next((event for event in events_of_block if event.kind == "request" and event.peer == fetched.peer), None)
    if request is None:
        return None
    number = header.data["blockNo"]
    row = {
        "block_hash": _block("header", header.data),
        "block_number": number["unBlockNo"] if isinstance(number, dict) else int(number),
        "slot": header.data["slot"],
        "block_size": fetched.data["size"],
        "header_delta": _ms(header.at - slot_zero - timedelta(seconds=header.data["slot"])),
        "block_request_delta": _ms(request.at - header.at),
        "block_response_delta": _ms(fetched.at - request.at),
        "block_adopt_delta": _ms(adopted.at - fetched.at),
        "header_remote_addr": header.peer[0],
        "header_remote_port": header.peer[1],
        "block_remote_addr": fetched.peer[0],
        "block_remote_port": fetched.peer[1],
    }
    deltas = [value for name, value in row.items() if name.endswith("_delta")]
    sane = all(-6000 < value < 600_000 for value in deltas) and 0 < row["block_size"] < 10_000_000
    return row if sane and row["block_number"] > 0 and row["slot"] > 0 else None


def samples(lines: Iterable[str], slot_zero_s: int) -> list[dict[str, Any]]:
    """The samples of a log, by height and hash."""
    slot_zero = datetime.fromtimestamp(slot_zero_s, UTC)
    rows = [row for events in events(lines).values() if (row := sample(events, slot_zero)) is not None]
    return sorted(rows, key=lambda row: (row["block_number"], row["block_hash"]))
