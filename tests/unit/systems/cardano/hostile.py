"""Folders of logs as they occur in practice: copied, mixed up, partly compressed, partly missing."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import re
import shutil
import socket
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

Change = Callable[[Path], None]
HOSTS = ("node-0", "node-1", "node-2")
START = "2026-02-05T18:52:16Z"
AT = "2026-02-05T18:52:15.5Z"


def logs_of(folder: Path) -> Iterator[Path]:
    """The log of every host."""
    return (folder / host / "stdout" for host in HOSTS)


def rewrite(change: Callable[[str], str | None], *hosts: str) -> Change:
    """Change the lines of the named hosts' logs, or of all logs if no host is named; None drops a line."""

    def apply(folder: Path) -> None:
        for host in hosts or HOSTS:
            path = folder / host / "stdout"
            lines = [change(line) for line in path.read_text(encoding="utf-8").splitlines()]
            path.write_text("".join(f"{line}\n" for line in lines if line is not None), encoding="utf-8")

    return apply


def copy(source: str, target: str, pack: Callable[[bytes], bytes] = bytes) -> Change:
    """Copy a file, optionally compressed."""

    def apply(folder: Path) -> None:
        path = folder / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pack((folder / source).read_bytes()))

    return apply


def move(source: str, target: str) -> Change:
    """Rename a file or folder."""

    def apply(folder: Path) -> None:
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        (folder / source).rename(folder / target)

    return apply


def pack(path: str, packed: str, packer: Callable[[bytes], bytes]) -> Change:
    """Replace a file by its compressed form."""

    def apply(folder: Path) -> None:
        content = (folder / path).read_bytes()
        (folder / path).unlink()
        (folder / packed).write_bytes(packer(content))

    return apply


def link(path: str, target: str) -> Change:
    """Replace a path by a symbolic link."""

    def apply(folder: Path) -> None:
        remove(path)(folder)
        (folder / path).symlink_to(target)

    return apply


def hard_link(path: str, target: str) -> Change:
    """Give a file a second name."""

    def apply(folder: Path) -> None:
        remove(path)(folder)
        (folder / path).hardlink_to(folder / target)

    return apply


def pipe(path: str) -> Change:
    """Create a named pipe that nobody writes to: reading it blocks forever."""

    def apply(folder: Path) -> None:
        remove(path)(folder)
        os.mkfifo(folder / path)

    return apply


def listener(path: str) -> Change:
    """Create a Unix socket, as nodes have for their clients."""

    def apply(folder: Path) -> None:
        directory = os.open(folder, os.O_RDONLY)
        server_socket = socket.socket(socket.AF_UNIX)
        try:
            server_socket.bind(f"/proc/self/fd/{directory}/{path}")  # the path itself may be too long for a socket
        finally:
            server_socket.close()
            os.close(directory)

    return apply


def remove(path: str) -> Change:
    """Remove a file or folder if it exists."""

    def apply(folder: Path) -> None:
        victim = folder / path
        if victim.is_dir() and not victim.is_symlink():
            shutil.rmtree(victim)
        else:
            victim.unlink(missing_ok=True)

    return apply


def write(path: str, content: str | bytes) -> Change:
    """Write a file with this content."""

    def apply(folder: Path) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())

    return apply


def every(change: Callable[[str], Change]) -> Change:
    """Apply the same change to every host."""

    def apply(folder: Path) -> None:
        for host in HOSTS:
            change(host)(folder)

    return apply


def together(*changes: Change) -> Change:
    """Apply several changes in order."""

    def apply(folder: Path) -> None:
        for change in changes:
            change(folder)

    return apply


def cut(path: str, rest: str) -> Change:
    """Move the first half of a log to another file, whose name does not show that it is the older one."""

    def apply(folder: Path) -> None:
        lines = (folder / path).read_bytes().splitlines(keepends=True)
        (folder / rest).parent.mkdir(parents=True, exist_ok=True)
        (folder / rest).write_bytes(b"".join(lines[: len(lines) // 2]))
        (folder / path).write_bytes(b"".join(lines[len(lines) // 2 :]))

    return apply


def truncate(path: str, share: float) -> Change:
    """Truncate a file."""

    def apply(folder: Path) -> None:
        content = (folder / path).read_bytes()
        (folder / path).write_bytes(content[: int(len(content) * share)])

    return apply


def earlier_run(path: str) -> Change:
    """Add a log of node-1 from a run on the previous day, which nobody removed."""

    def apply(folder: Path) -> None:
        text = (
            (folder / "node-1" / "stdout").read_text(encoding="utf-8").replace('"at":"2026-02-05T', '"at":"2026-02-04T')
        )
        write(path, text)(folder)

    return apply


def named(name: str) -> Callable[[str], str]:
    """Change the host name in each line."""
    return lambda line: re.sub(r'"host":"[^"]*"', f'"host":"{name}"', line)


def utf16(content: bytes) -> bytes:
    """Encode as PowerShell's redirection does."""
    return content.decode().encode("utf-16")


def zipped(content: bytes) -> bytes:
    """Compress as a mail program does."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("stdout", content)
    return buffer.getvalue()


def tarred(content: bytes) -> bytes:
    """Pack as an administrator does."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo("stdout")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def xz(content: bytes) -> bytes:
    """Compress as logrotate does with `compresscmd xz`."""
    return lzma.compress(content, preset=1)


def old_lzma(content: bytes) -> bytes:
    """Compress as the predecessor of xz does."""
    return lzma.compress(content, format=lzma.FORMAT_ALONE, preset=1)


def bzip2(content: bytes) -> bytes:
    """Compress as logrotate does with `compresscmd bzip2`."""
    return bz2.compress(content)


def gz(content: bytes) -> bytes:
    """Compress as logrotate does by default."""
    return gzip.compress(content, mtime=0)


NO_GENESIS = remove("genesis")


def node_line(ns: str, data: Mapping[str, object], host: str, sev: str = "Info") -> str:
    """A line that a node prints when it starts."""
    envelope = {"at": AT, "ns": ns, "data": data, "sev": sev, "thread": "5", "host": host}
    return json.dumps(envelope, separators=(",", ":"))


def first_lines(lines: Callable[[str], list[str]]) -> Change:
    """Insert lines at the beginning of every host's log, with the time of its first line."""

    def apply(folder: Path) -> None:
        for path in logs_of(folder):
            text = path.read_text(encoding="utf-8")
            at = text.partition('{"at":"')[2].partition('"')[0]
            head = "".join(f"{line}\n" for line in lines(path.parent.name))
            path.write_text(head.replace(AT, at) + text, encoding="utf-8")

    return apply


def startup(magic: object) -> Change:
    """Insert the lines that nodes of version 10.x print when they start."""
    common = {
        "kind": "BasicInfoCommon",
        "configPath": "config.json",
        "networkMagic": magic,
        "protocol": "Byron; Shelley",
        "version": "10.5.4",
        "commit": "0000000",
        "nodeStartTime": "2026-02-05 18:52:15.4 UTC",
    }
    shelley = {
        "kind": "BasicInfoShelleyBased",
        "era": "Shelley",
        "systemStartTime": "2026-02-05 18:52:16 UTC",
        "slotLength": "1s",
        "epochLength": "EpochSize {unEpochSize = 8000}",
        "slotsPerKESPeriod": "129600",
    }
    return first_lines(
        lambda host: [
            node_line("Startup.Common", common, host),
            node_line("Startup.ShelleyBased", shelley, host),
            node_line("Startup.NetworkMagic", {"kind": "StartupNetworkMagic", "networkMagic": magic}, host),
            node_line("Startup.Time", {"kind": "StartupTime", "startupTime": "1770317535.4s"}, host),
        ]
    )


_NUMBERED = re.compile(
    r'"(slot|current slot|blockNo|tipBlockNo|length|blockSize|count|accepted|rejected|numTxs)":(-?\d+)'
)


def shown(form: Callable[[str, str], str]) -> Change:
    """Print the numbers of all messages in another form; ``form`` receives the key and the number."""
    return rewrite(lambda line: _NUMBERED.sub(lambda match: f'"{match[1]}":{form(match[1], match[2])}', line))


def as_object(key: str, number: str) -> str:
    """A number as Aeson prints a record: ``{"unSlotNo":5}``."""
    if "slot" in key:
        return f'{{"unSlotNo":{number}}}'
    return f'{{"unBlockNo":{number}}}' if "lockNo" in key else number


def as_shown(key: str, number: str) -> str:
    """A number as a Show instance prints it: ``"SlotNo {unSlotNo = 5}"``."""
    if "slot" in key:
        return f'"SlotNo {{unSlotNo = {number}}}"'
    return f'"BlockNo {number}"' if "lockNo" in key else f'"{number}"'


def chatter(severity: str) -> Change:
    """Add the messages that a node with this root severity prints and that the analysis does not use."""
    point = {"kind": "Point", "slot": 5, "hash": 64 * "a"}
    peer = {"connectionId": "127.0.0.1:30001 127.0.0.1:30000"}
    messages: list[tuple[str, dict[str, object]]] = [
        ("Startup.Time", {"kind": "StartupTime", "startupTime": "1770317535.4s"}),
        (
            "Startup.Byron",
            {"kind": "BasicInfoByron", "slotLength": "20s", "epochLength": "EpochSlots {unEpochSlots = 1}"},
        ),
        ("Forge.StateInfo.StateInfo", {"kind": "KESInfo", "credentials": "Cardano", "endPeriod": 0, "evolution": 62}),
        ("Forge.ThreadStats.ForgingStats", {"kind": "ForgingStats", "nodeCannotForgeNum": 0, "slotsMissed": 0}),
        ("BlockFetch.Client.AddedFetchRequest", {"kind": "AddedFetchRequest", "peer": peer}),
        ("BlockFetch.Decision.PeersFetch", {"kind": "PeerFetch", "decisions": []}),
        (
            "ChainDB.AddBlockEvent.AddedBlockToVolatileDB",
            {"kind": "AddedBlockToVolatileDB", "blockNo": "0", "block": point},
        ),
        (
            "ChainDB.AddBlockEvent.PoppedBlockFromQueue",
            {"kind": "TraceAddBlockEvent.PoppedBlockFromQueue", "risingEdge": True},
        ),
        ("ChainDB.AddBlockEvent.ChangingSelection", {"kind": "TraceAddBlockEvent.ChangingSelection", "block": point}),
        ("ChainSync.Client.RolledBack", {"kind": "RolledBack", "peer": peer, "tip": {"kind": "GenesisPoint"}}),
        ("ChainSync.ServerBlock.Update", {"kind": "ChainSyncServer.Update", "addBlock": f"{64 * 'a'}@5"}),
        (
            "BlockchainTime.CurrentSlotUnknown",
            {"kind": "CurrentSlotUnknown", "time": "2025-10-20 19:55:59.497907201 UTC"},
        ),
        ("Mempool.Synced", {"kind": "TraceMempoolSynced", "enclosingTime": {"tag": "RisingEdge"}}),
        (
            "TxSubmission.TxInbound.CanRequestMoreTxs",
            {"kind": "TraceTxInboundCanRequestMoreTxs", "count": 0, "peer": peer},
        ),
        ("Net.ConnectionManager.Remote.ConnectionManagerCounters", {"kind": "ConnectionManagerCounters", "state": {}}),
        ("Net.Peers.Ledger", {}),
    ]

    def apply(folder: Path) -> None:
        for path in logs_of(folder):
            lines = path.read_text(encoding="utf-8").splitlines()
            message = []
            for number, line in enumerate(lines):
                message.append(line)
                if number % 40 == 39 and line.startswith('{"at"'):
                    at = json.loads(line)["at"]
                    for ns, data in messages:
                        message.append(node_line(ns, data, path.parent.name, severity).replace(AT, at))
            path.write_text("".join(f"{line}\n" for line in message), encoding="utf-8")

    return apply
