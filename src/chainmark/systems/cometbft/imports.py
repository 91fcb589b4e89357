"""Importable measurements of external CometBFT networks, and the reader of each kind of source.

A URL is queried as a Prometheus server; a file or folder is read by the first reader that recognises its content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.lab.protocols import Imported, ImportRequest
from chainmark.store.objects import is_server
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.cometbft import prometheus
from chainmark.systems.cometbft.published import recognises_report
from chainmark.systems.cometbft.published_import import ingest_report, report_parts
from chainmark.systems.cometbft.raw_csv import ingest_raw, raw_parts, recognises_raw


def _no_parts(_order: ImportRequest) -> list[str]:
    return []


@dataclass(frozen=True)
class Reader:
    """One kind of source.

    Attributes:
        title: what it reads, for the error message if no reader recognises a source.
        recognises: whether a file or folder is of this kind, by its content; false also for an unreadable one.
        ingest: see :meth:`chainmark.lab.protocols.ImportableSystem.ingest`.
        parts: see :meth:`chainmark.lab.protocols.PartedSystem.parts`.
        options: see :meth:`chainmark.lab.protocols.ConfigurableImports.import_options`.
    """

    title: str
    recognises: Callable[[Path], bool]
    ingest: Callable[[ImportRequest, UnfinishedRun, Progress], Imported]
    parts: Callable[[ImportRequest], list[str]] = _no_parts
    options: frozenset[str] = frozenset()


# In the order in which they are tried.
READERS: tuple[Reader, ...] = (
    Reader(
        "responses of a Prometheus server that an import stored (`raw/prometheus` of its run)",
        prometheus.recognises,
        prometheus.ingest_recorded,
        options=frozenset({"settings"}),
    ),
    Reader(
        "reports of the load test: the text of the report tool, or the table of a release (`*_report_tabbed.txt`)",
        recognises_report,
        ingest_report,
        report_parts,
    ),
    Reader("the report tool's `raw.csv`", recognises_raw, ingest_raw, raw_parts, frozenset({"keep_events"})),
)
SERVER = Reader(
    "a Prometheus server",
    lambda _path: False,
    prometheus.ingest_server,
    options=frozenset({"settings", "begin_ns"}),
)


def reader_of(order: ImportRequest) -> Reader:
    """The reader of this source.

    Raises:
        UsageError: there is none.
    """
    if isinstance(order.source, str):
        if not is_server(order.source):
            raise UsageError(
                f"{order.source} is not the address of a Prometheus server", "e.g. `http://localhost:9090`"
            )
        return SERVER
    path = order.path
    if not path.exists():
        raise UsageError(f"there is no folder or file `{path}`", "give a file, a folder, or a Prometheus server's URL")
    for reader in READERS:
        if reader.recognises(path):
            return reader
    known = "; ".join(reader.title for reader in READERS)
    raise UsageError(f"`{path}` has an unrecognised format", f"supported measurements of CometBFT: {known}")
