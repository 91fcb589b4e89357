"""Lines of a Cardano node's log, read one by one with the standard library: the oracle of the decoder.

It follows only the description of the published analysis. It is plain and slow, keeps everything in memory, and shares
no code with the decoder.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import zstandard

NS_PER_S = 10**9
ENVELOPE = ("at", "ns", "data", "host", "thread")
AT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,12}))?(?:Z|\+00:00)")
AT_IN_TEXT = re.compile(r'"at"\s*:\s*"([^"]*)"')
HASH = re.compile(r"[0-9a-fA-F]{64}")
SWITCHED = "Switched"

# The message, its namespace since 10.5, its earlier namespace, and its kind in the oldest nodes.
INTERPRETERS = (
    ("Resources", "Resources", "Resources", "Resources"),
    # The description of the published analysis does not contain this name, but the oldest nodes print it.
    ("Resources", None, None, "ResourceStats"),
    (
        "LoopStart",
        "Forge.Loop.StartLeadershipCheck",
        "Forge.Loop.StartLeadershipCheckPlus",
        "TraceStartLeadershipCheck",
    ),
    ("BlockContext", "Forge.Loop.BlockContext", "Forge.BlockContext", "TraceBlockContext"),
    ("LedgerState", "Forge.Loop.LedgerState", "Forge.LedgerState", "TraceLedgerState"),
    ("LedgerView", "Forge.Loop.LedgerView", "Forge.LedgerView", "TraceLedgerView"),
    ("Leads", "Forge.Loop.NodeIsLeader", "Forge.NodeIsLeader", "TraceNodeIsLeader"),
    ("LeadsNot", "Forge.Loop.NodeNotLeader", "Forge.NodeNotLeader", "TraceNodeNotLeader"),
    ("Ticked", "Forge.Loop.TickedLedgerState", "Forge.TickedLedgerState", "TraceForgeTickedLedgerState"),
    ("MempoolSnapshot", "Forge.Loop.MempoolSnapshot", "Forge.MempoolSnapshot", "TraceForgingMempoolSnapshot"),
    ("Forged", "Forge.Loop.ForgedBlock", "Forge.ForgedBlock", "TraceForgedBlock"),
    (
        "Header",
        "ChainSync.Client.DownloadedHeader",
        "ChainSyncClient.ChainSyncClientEvent.DownloadedHeader",
        "ChainSyncClientEvent.TraceDownloadedHeader",
    ),
    ("Request", "BlockFetch.Client.SendFetchRequest", "BlockFetchClient.SendFetchRequest", "SendFetchRequest"),
    (
        "Fetched",
        "BlockFetch.Client.CompletedBlockFetch",
        "BlockFetchClient.CompletedBlockFetch",
        "CompletedBlockFetch",
    ),
    ("AnnounceWhole", None, None, "ChainSyncServerEvent.TraceChainSyncServerRead.AddBlock"),
    (
        "Announce",
        "ChainSync.ServerHeader.Update",
        "ChainSyncServerEvent.TraceChainSyncServerUpdate",
        "ChainSyncServerEvent.TraceChainSyncServerReadBlocked.AddBlock",
    ),
    ("Send", "BlockFetch.Server.SendBlock", "BlockFetchServer.SendBlock", "TraceBlockFetchServerSendBlock"),
    (
        "Added",
        "ChainDB.AddBlockEvent.AddedToCurrentChain",
        "ChainDB.AddBlockEvent.AddedToCurrentChain",
        "TraceAddBlockEvent.AddedToCurrentChain",
    ),
    ("SelfAdopted", "Forge.Loop.AdoptedBlock", "Forge.AdoptedBlock", "TraceAdoptedBlock"),
    (
        "Snapshot",
        "ChainDB.LedgerEvent.TookSnapshot",
        "TraceLedgerEvent.TookSnapshot",
        "TraceSnapshotEvent.TookSnapshot",
    ),
    ("LedgerMetrics", "LedgerMetrics", "LedgerMetrics", "LedgerMetrics"),
    ("TxsAcked", "TraceBenchTxSubServAck", "TraceBenchTxSubServAck", "TraceBenchTxSubServAck"),
    ("TxsCollected", "TxSubmission.TxInbound.Collected", "TraceTxSubmissionCollected", "TraceTxSubmissionCollected"),
    ("TxsProcessed", "TxSubmission.TxInbound.Processed", "TraceTxSubmissionProcessed", "TraceTxSubmissionProcessed"),
    ("MempoolTxs", "Mempool.AddedTx", "Mempool.AddedTx", "TraceMempoolAddedTx"),
    ("MempoolTxs", "Mempool.RemoveTxs", "Mempool.RemoveTxs", "TraceMempoolRemoveTxs"),
    ("RejectedTx", "Mempool.RejectedTx", "Mempool.RejectedTx", "TraceMempoolRejectedTx"),
    ("GeneratorSummary", "Benchmark.BenchTxSubSummary", "TraceBenchTxSubSummary", "TraceBenchTxSubSummary"),
)
# Messages that the published analysis has no interpreter for.
UNPUBLISHED = (
    (
        SWITCHED,
        "ChainDB.AddBlockEvent.SwitchedToAFork",
        "ChainDB.AddBlockEvent.SwitchedToAFork",
        "TraceAddBlockEvent.SwitchedToAFork",
    ),
    ("Snapshot", "ChainDB.LedgerEvent.Snapshot.TookSnapshot", None, None),
)
RESOURCES = {
    "CentiCpu": True, "CentiGC": True, "CentiMut": True, "GcsMajor": True, "GcsMinor": True, "Alloc": True,
    "Live": True, "Heap": False, "RSS": True, "CentiBlkIO": True, "NetRd": False, "NetWr": False, "FsRd": False,
    "FsWr": False, "Threads": True,
}  # fmt: skip


class Malformed(Exception):  # noqa: N818 - a class of lines, not an error of the reader
    """The analysis cannot use the line."""


@dataclass(frozen=True)
class Event:
    """The content of a line: ``kind`` as in the table above, ``at_ns`` since 1970, and values by kind."""

    kind: str
    at_ns: int
    slot: int = 0
    block: str = ""
    number: int = 0
    values: dict[str, Any] = field(default_factory=dict)


@dataclass
class HostLog:
    """All data read from one host."""

    name: str
    classes: Counter[str] = field(default_factory=Counter)
    events: list[Event] = field(default_factory=list)
    first_ns: int | None = None
    last_ns: int | None = None
    # The classes and events that the published analysis ignores.
    unseen_classes: Counter[str] = field(default_factory=Counter)
    unseen_events: set[int] = field(default_factory=set)

    def as_published(self) -> HostLog:
        """The same log as the published analysis reads it."""
        classes = self.classes - self.unseen_classes
        classes["ignored"] += self.unseen_classes.total()
        events = [event for place, event in enumerate(self.events) if place not in self.unseen_events]
        return HostLog(self.name, classes, events, self.first_ns, self.last_ns)

    @property
    def raw_lines(self) -> int:
        """All lines."""
        return self.classes.total()

    @property
    def emitted(self) -> int:
        """Lines with a readable envelope."""
        return self.classes.total() - self.classes["not_object"] - self.classes["malformed_envelope"]


def time_ns(text: Any) -> int:
    """ISO 8601 in UTC to nanoseconds since 1970; further digits are truncated."""
    match = AT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second = (int(match[part]) for part in range(1, 7))
    days = (date(year, month, day) - date(1970, 1, 1)).days
    whole_s = ((days * 24 + hour) * 60 + minute) * 60 + second
    return whole_s * NS_PER_S + int((match[7] or "").ljust(9, "0")[:9])


def unsigned(data: dict[str, Any], key: str, default: int | None = None, *, signed: bool = False) -> int:
    """An integer of the data; 464.0 is an integer, true is not."""
    value = data.get(key)
    if value is None and default is not None:
        return default
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or (value < 0 and not signed):
        raise Malformed(f"{key} is no number of that kind")
    return value


def number(data: dict[str, Any], key: str, default: float | None = None) -> float:
    """A number of the data."""
    value = data.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise Malformed(f"{key} is no number")
    return float(value)


def hash_of(data: dict[str, Any], key: str, *, prefix: bool = False) -> str:
    """A block's hash; with ``prefix`` the first 64 characters of a longer text."""
    value = data.get(key)
    text = value[:64] if isinstance(value, str) and prefix else value
    if not isinstance(text, str) or not HASH.fullmatch(text):
        raise Malformed(f"{key} is no hash")
    return text.lower()


def envelope_of(line: bytes) -> dict[str, Any]:
    """The line as an object with all keys of a log object, `at` as nanoseconds, `ns` as text."""
    try:
        content = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
        if not isinstance(content, dict) or any(key not in content for key in ENVELOPE):
            raise Malformed("keys are missing")
        content["at"] = time_ns(content["at"])
    except ValueError as error:
        raise Malformed(str(error)) from error
    spaces = content["ns"]
    if isinstance(spaces, list) and spaces and all(isinstance(part, str) for part in spaces):
        content["ns"] = ".".join(spaces)
    if not isinstance(content["ns"], str):
        raise Malformed("ns is no namespace")
    return content


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def unwrap(data: Any) -> tuple[dict[str, Any], str]:
    """The part to be interpreted, and its kind."""
    if not isinstance(data, dict):
        return {}, ""
    if "kind" not in data and isinstance(data.get("credentials"), str) and isinstance(data.get("val"), dict):
        data = data["val"]
    kind = data.get("kind")
    return data, kind if isinstance(kind, str) else ""


def interpreter_of(namespace: str, kind: str) -> tuple[str | None, bool]:
    """The interpreter of a message, and whether the published analysis also has it.

    It is the first whose namespace or kind matches, in the order of the columns.
    """
    name = _interpreter_of(namespace, kind, INTERPRETERS)
    return (name, True) if name else (_interpreter_of(namespace, kind, UNPUBLISHED), False)


def _interpreter_of(namespace: str, kind: str, table: Sequence[tuple[str | None, ...]]) -> str | None:
    short = kind.removeprefix("Cardano.Node.")
    for column, text in ((1, namespace), (2, namespace), (2, short), (3, kind)):
        for row in table:
            if text and row[column] == text:
                return row[0]
    return None


def of_slot(data: dict[str, Any]) -> dict[str, Any]:
    """A message that contains only a slot."""
    return {"slot": unsigned(data, "slot")}


def of_ledger(data: dict[str, Any], default: int | None = None) -> dict[str, Any]:
    """The ledger's figures."""
    values = {"utxo": unsigned(data, "utxoSize", default), "density": number(data, "chainDensity", default)}
    return {"slot": unsigned(data, "slot"), "values": values}


def of_processed(data: dict[str, Any]) -> dict[str, Any]:
    """Processed transactions; real nodes sometimes print a negative number of rejected ones."""
    return {"values": {"accepted": unsigned(data, "accepted"), "rejected": unsigned(data, "rejected", signed=True)}}


def of_mempool(data: dict[str, Any]) -> dict[str, Any]:
    """The size of the mempool."""
    size = data.get("mempoolSize")
    return {"number": unsigned(size if isinstance(size, dict) else {}, "numTxs")}


def of_forged(data: dict[str, Any]) -> dict[str, Any]:
    """A forged block."""
    parent = data.get("blockPrev")
    known = {"parent": parent if parent == "GenesisHash" else hash_of(data, "blockPrev")}
    number_ = unsigned(data, "blockNo")
    return {"slot": unsigned(data, "slot"), "block": hash_of(data, "block"), "number": number_, "values": known}


def of_header(data: dict[str, Any]) -> dict[str, Any]:
    """A header."""
    height = data.get("blockNo")
    height_no = unsigned(height, "unBlockNo") if isinstance(height, dict) else unsigned(data, "blockNo")
    return {"slot": unsigned(data, "slot"), "block": hash_of(data, "block"), "number": height_no}


def of_adoption(data: dict[str, Any]) -> dict[str, Any]:
    """A change of the selected chain."""
    return {"block": hash_of(data, "newtip", prefix=True), "number": unsigned(data, "chainLengthDelta", 1)}


def of_own_adoption(data: dict[str, Any]) -> dict[str, Any]:
    """The forger's own message."""
    return {"block": hash_of(data, "blockHash"), "number": 1, "values": {"size": unsigned(data, "blockSize")}}


def of_nothing(_: dict[str, Any]) -> dict[str, Any]:
    """A message of which only the presence matters."""
    return {}


READERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "Resources": lambda data: {
        "values": {key: unsigned(data, key, None if must else 0) for key, must in RESOURCES.items()}
    },
    "LoopStart": lambda data: of_ledger(data, 0),
    "BlockContext": lambda data: {"slot": unsigned(data, "current slot"), "number": unsigned(data, "tipBlockNo") - 1},
    **dict.fromkeys(("LedgerState", "LedgerView", "Leads", "LeadsNot", "Ticked", "MempoolSnapshot"), of_slot),
    "LedgerMetrics": of_ledger,
    "TxsCollected": lambda data: {"number": unsigned(data, "count")},
    "TxsProcessed": of_processed,
    "MempoolTxs": of_mempool,
    "Forged": of_forged,
    "Header": of_header,
    "Request": lambda data: {"block": hash_of(data, "head"), "number": unsigned(data, "length")},
    **dict.fromkeys(("Fetched", "Send"), lambda data: {"block": hash_of(data, "block")}),
    **dict.fromkeys(("Added", SWITCHED), of_adoption),
    "SelfAdopted": of_own_adoption,
}


def interpret(kind: str, at_ns: int, data: dict[str, Any]) -> Event | None:
    """The event that the data describe; None for announcements that do not count."""
    if kind in ("Announce", "AnnounceWhole"):
        return announcement(kind, at_ns, data)
    return Event(kind, at_ns, **READERS.get(kind, of_nothing)(data))


def announcement(kind: str, at_ns: int, data: dict[str, Any]) -> Event | None:
    """An announcement of a block; None for a falling edge, a non-blocking read or a rollback."""
    if kind == "AnnounceWhole":
        return Event("Announce", at_ns, block=hash_of(data, "block"))
    if data.get("risingEdge") is False or data.get("blockingRead") is False or data.get("rollBackTo") is not None:
        return None
    key = "addBlock" if data.get("addBlock") is not None else "block"
    return Event("Announce", at_ns, block=hash_of(data, key, prefix=True))


def read_line(log: HostLog, line: bytes) -> None:
    """Count one line in its class and store its event."""
    if not line.startswith(b"{"):
        log.classes["not_object"] += 1
        return
    match = AT_IN_TEXT.search(line.decode("utf-8", errors="replace"))
    with contextlib.suppress(ValueError):
        log.last_ns = time_ns(match[1] if match else None)
    try:
        content = envelope_of(line)
    except Malformed:
        log.classes["malformed_envelope"] += 1
        return
    if log.first_ns is None:
        log.first_ns = content["at"]
    data, kind = unwrap(content["data"])
    interpreter, published = interpreter_of(content["ns"], kind)
    class_, event = class_and_event(interpreter, content["at"], data)
    log.classes[class_] += 1
    if event is not None:
        log.events.append(event)
    if interpreter and not published:
        log.unseen_classes[class_] += 1
        if event is not None:
            log.unseen_events.add(len(log.events) - 1)


def class_and_event(interpreter: str | None, at_ns: int, data: dict[str, Any]) -> tuple[str, Event | None]:
    """The class of a readable line, and its event."""
    if interpreter is None:
        return "ignored", None
    try:
        event = interpret(interpreter, at_ns, data)
    except Malformed:
        return "malformed_body", None
    return ("skipped" if event is None else "decoded"), event


def text_of(path: Path) -> bytes:
    """The file's text."""
    stored = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(stored)
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().decompressobj().decompress(stored)
    return stored


def lines_of(text: bytes) -> Iterator[bytes]:
    """The lines of a text; a last line without newline counts."""
    lines = text.split(b"\n")
    yield from lines if lines[-1] else lines[:-1]


def first_time_ns(text: bytes) -> int:
    """The first readable time in a file: it determines the order of files, whatever their names."""
    for line in lines_of(text):
        match = AT_IN_TEXT.search(line.decode("utf-8", errors="replace")) if line.startswith(b"{") else None
        try:
            return time_ns(match[1] if match else None)
        except ValueError:
            continue
    return 0


def read_host(folder: Path) -> HostLog:
    """Read the files of one host, oldest first."""
    log = HostLog(folder.name)
    texts = [text_of(path) for path in sorted(folder.iterdir()) if path.name.startswith("stdout")]
    for text in sorted(texts, key=first_time_ns):
        for line in lines_of(text):
            read_line(log, line)
    return log
