"""Hosts decoded on other machines; a host with most of the logs range by range, by all machines that can open them.

A range is looked through where the log is; its findings, a few percent of the log, are put together on this machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from chainmark.cluster.working import watched
from chainmark.core.errors import ChainmarkError, EnvironmentFailure, UsageError
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress
from chainmark.core.storage import storage_errors
from chainmark.store.contents import FileContent
from chainmark.systems.cardano.decoders import HostPart, HostReader, RangePart, RangeReader, read_here, shown, stage_of
from chainmark.systems.cardano.logs import HostLogs, LogFile

# Shorter ranges are not worth a message, and what is found in longer ones is a long message. Powers of two, as the
# lengths of all ranges.
LEAST_RANGE_BYTES, _MOST_RANGE_BYTES = 16 << 20, 256 << 20
# Ranges per thread, so that the threads end at about the same time.
_RANGES_PER_THREAD = 4
# A host is divided if it is longer than what each thread reads by this factor: putting it together is work, too.
_DIVIDED_FROM = 1.25


@dataclass(frozen=True)
class Decoded:
    """Another machine's result for a host's logs.

    Attributes:
        account: the host's accounting as JSON, or why its logs cannot be read; None if the reading was stopped.
        tables: the content of each table, by its key in the request.
    """

    account: str | ChainmarkError | None
    tables: dict[str, bytes] = field(default_factory=dict)


def read_elsewhere(
    read_there: Callable[[HostPart], Decoded],
    parts: Sequence[HostPart],
    hosts: Sequence[HostLogs],
    machines: Machines,
    *,
    threads: int,
    progress: Progress,
) -> list[Any]:
    """The accounting of hosts that other machines read; their tables are written here as each arrives.

    Args:
        read_there: `decode_there` or `count_there`.
        parts: in the order of the hosts.
        threads: on which the machines work at the same time.
    """
    show = shown(parts, progress)
    # What each thread reads if all read the same; a host with more makes the others wait.
    fair_bytes = max(1, sum(part.stored_bytes for part in parts) // threads)
    with TemporaryDirectory(prefix="chainmark-") as folder:
        pieces = [
            _ranges(part, host, fair_bytes, Path(folder) / str(number)) or [part]
            for number, (part, host) in enumerate(zip(parts, hosts, strict=True))
        ]
        results = machines.map(
            read_there,
            list(chain.from_iterable(pieces)),
            at=lambda part: part.at,
            take=_written,
            weight=lambda part: part.stored_bytes,
            watch=lambda reports: show(list(reports.values())),
        )
        remaining = iter(results)
        accounts = [
            _together(part, each, list(islice(remaining, len(each)))) for part, each in zip(parts, pieces, strict=True)
        ]
        divided = [account for account in accounts if isinstance(account, HostPart)]
        if divided:
            progress.stage(stage_of("putting together", divided))
        read = iter(read_here(divided, threads, progress) if divided else [])
        return [next(read) if isinstance(account, HostPart) else account for account in accounts]


def _ranges(part: HostPart, host: HostLogs, fair_bytes: int, folder: Path) -> list[HostPart]:
    """The ranges of a host's logs; none if the host is read as a whole.

    A line in a wrapper is left to who puts the findings together, with its text.
    """
    is_short = host.stored_bytes <= _DIVIDED_FROM * fair_bytes
    if is_short or len(host.at) == 1 or any(file.head.wrapper != "none" for file in host.files):
        return []
    wanted_bytes = min(max(fair_bytes // _RANGES_PER_THREAD, LEAST_RANGE_BYTES), _MOST_RANGE_BYTES)
    each_bytes = 1 << wanted_bytes.bit_length() - 1
    ranges = [(file, bounds) for file in host.files for bounds in _bounds(file, each_bytes)]
    result: list[HostPart] = []
    for number, (file, bounds) in enumerate(ranges):
        order = {
            "path": str(file.path),
            "range": bounds,
            "stored_bytes": file.stored_bytes,
            "findings_out": str(folder / f"{number}.findings"),
        }
        read_bytes = file.stored_bytes if bounds is None else bounds["end"] - bounds["start"]
        stored = () if file.stored is None else (file.stored,)
        contents = (file.content,) if host.at else ()
        result.append(RangePart(part.host, json.dumps(order), read_bytes, part.at, stored, part.copies, contents))
    return result if len(result) > 1 else []


def _bounds(file: LogFile, each_bytes: int) -> list[dict[str, int] | None]:
    """The ranges of a file; None is all of it."""
    if file.head.container != "plain" or file.stored_bytes <= each_bytes:
        return [None]
    begins = range(0, file.stored_bytes, each_bytes)
    return [{"start": begin, "end": min(begin + each_bytes, file.stored_bytes)} for begin in begins]


def _together(part: HostPart, pieces: Sequence[HostPart], results: Sequence[Any]) -> Any:
    """A host's accounting, or how to read the findings in its ranges."""
    failed = [result for result in results if not isinstance(result, str)]
    if failed or not isinstance(pieces[0], RangePart):
        return failed[0] if failed else results[0]
    findings: dict[str, list[str]] = {}
    for order in map(json.loads, (piece.order for piece in pieces)):
        findings.setdefault(order["path"], []).append(order["findings_out"])
    return replace(part, order=json.dumps({**json.loads(part.order), "findings": findings}), stored=())


def _written(part: HostPart, decoded: Decoded) -> str | ChainmarkError | None:
    order = json.loads(part.order)
    for key, content in decoded.tables.items():
        path = Path(order[key])
        with storage_errors(path):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
    return decoded.account


def decode_there(part: HostPart) -> Decoded:
    """Read a part on a worker's machine, with a separate folder for the tables.

    Raises:
        UsageError: the request is invalid.
        EnvironmentFailure: the files cannot be read, or are not those that were listed, or the tables cannot be
            written.
    """
    for content in part.contents:
        _check(content, part.host)
    with TemporaryDirectory(prefix="chainmark-") as folder:
        outs = {key: path for key, path in json.loads(part.order).items() if key.endswith("_out") and path is not None}
        own = {key: str(Path(folder) / Path(path).name) for key, path in outs.items()}
        there = replace(part, order=json.dumps({**json.loads(part.order), **own}))
        reader = RangeReader(there) if isinstance(there, RangePart) else HostReader(there)
        with watched(reader.cancel, reader.progress):
            account = reader.read()
        if account is None:
            return Decoded(None)
        return Decoded(account, {key: Path(path).read_bytes() for key, path in own.items()})


def _check(content: FileContent, host: str) -> None:
    """Check that a log is the one that was listed: ranges of different logs would give a run of neither."""
    with suppress(OSError):  # whoever reads it reports it
        if not content.is_unchanged():
            raise EnvironmentFailure(
                f"the log {content.path} is not the one that was listed: it was changed, or is another one here",
                f"repeat the import with the same logs on every worker, or `--exclude {host}`",
            )


def count_there(part: HostPart) -> Decoded:
    """The same of a host whose logs need not be readable."""
    try:
        return decode_there(part)
    except (UsageError, EnvironmentFailure) as error:
        return Decoded(error)
