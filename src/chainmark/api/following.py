"""Following one thing of a run, such as a block, and what one host's log tells its operator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chainmark.api.context import store_at
from chainmark.api.noting import noted
from chainmark.api.runs import RunReference, open_run
from chainmark.report.document import Document
from chainmark.store.runs import Store
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import FollowRequest, followable, of_hosts


def block(
    run: RunReference,
    key: str | int,
    *,
    trail: str = "block",
    hosts: Sequence[str] = (),
    lines: Path | str | None = None,
    store: Store | Path | str | None = None,
) -> Document:
    """Show the life of one block: when every host did what with it, and which log lines say so.

    Args:
        run: the run, by its id, a beginning of it, or a version with one run.
        key: the block's hash, the beginning of it, or its height.
        trail: what to follow instead, as the run's catalogue calls it.
        hosts: show only these; none means all.
        lines: the folder that the run's logs were imported from, to print the lines themselves.
        store: where the run is.

    Raises:
        UsageError: there is no such block, host or file, or nothing of the run can be followed.

    Example:
        >>> document = cm.block("v1", 3)
        >>> document.sentence.partition(";")[0]
        'block 3 was adopted on 6 of 6 hosts'
    """
    retained = store_at(store)
    sealed = open_run(run, retained).sealed
    order = FollowRequest(str(key), trail, tuple(hosts), None if lines is None else Path(lines))
    document = followable(load_system(sealed.manifest.subject.system)).follow(sealed, order)
    return noted(document, [sealed], retained)


def host(
    run: RunReference,
    *,
    against: Path | str | None = None,
    samples: Path | str | None = None,
    store: Store | Path | str | None = None,
) -> Document:
    """What the log of one host shows its operator: how late blocks came, from whom, what the host used.

    Args:
        run: of one host's log, by its id, a beginning of it, or a version with one run.
        against: the samples that blockperf or openblockperf wrote of the same host, to be set beside; the verdict is
            then whether they agree.
        samples: where to write the samples: `.csv` by blockperf's names, `.jsonl` by openblockperf's.
        store: where the run is.

    Raises:
        UsageError: the run is not of one host, or a file cannot be used.

    Example:
        >>> log = logs / "node-0" / "stdout"
        >>> (run,) = cm.ingest("cardano", log, filters=[], genesis=logs / "genesis" / "genesis.shelley.json")
        >>> cm.host(run).kind
        'host'
    """
    retained = store_at(store)
    sealed = open_run(run, retained).sealed
    files = [None if path is None else Path(path) for path in (against, samples)]
    document = of_hosts(load_system(sealed.manifest.subject.system)).host(sealed, *files)
    return noted(document, [sealed], retained)
