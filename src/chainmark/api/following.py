"""Timelines of single objects of a run, such as a block or a transaction, and one host's log for its operator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chainmark.api.charting import charted
from chainmark.api.context import store_at
from chainmark.api.noting import noted
from chainmark.api.runs import RunReference, open_run
from chainmark.report.document import Document
from chainmark.store.runs import Store
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import followable, of_hosts
from chainmark.trails.trail import FollowRequest

__all__ = ["block", "host", "request", "transaction"]


def block(
    run: RunReference,
    key: str | int | None = None,
    *,
    trail: str = "block",
    hosts: Sequence[str] = (),
    lines: Path | str | None = None,
    slowest: int = 10,
    store: Store | Path | str | None = None,
) -> Document:
    """Show the timeline of one block: when each host processed it, with the log lines.

    Args:
        run: the run, by its id, a beginning of it, or a version with one run.
        key: the block's hash, the beginning of it, or its height; None: list the slowest blocks of the run.
        trail: another kind of object, by its name in the run's catalogue.
        hosts: show only these; none: all.
        lines: the folder that the run's logs were imported from, to print the lines themselves.
        slowest: number of blocks in the list.
        store: where the run is.

    Raises:
        UsageError: there is no such block, host or file, or the run has no data for timelines.

    Example:
        >>> document = cm.block("v1", 3)
        >>> document.sentence.partition(";")[0]
        'Block 3 was adopted on 6 of 6 hosts'
    """
    run_store = store_at(store)
    sealed = open_run(run, run_store).sealed
    folder = None if lines is None else Path(lines)
    order = FollowRequest(None if key is None else str(key), trail, tuple(hosts), folder, slowest)
    document = followable(load_system(sealed.manifest.subject.system)).follow(sealed, order)
    return noted(document, [sealed], run_store)


def transaction(
    run: RunReference,
    key: str | None = None,
    *,
    slowest: int = 10,
    store: Store | Path | str | None = None,
) -> Document:
    """Show the timeline of one transaction: when it was due, sent, answered and in a block, next to the run's median.

    Args:
        run: the run, by its id, a beginning of it, or a version with one run.
        key: the transaction's key, or the beginning of its hash; None: the slowest transactions of the run are listed,
            with those that were not committed.
        slowest: number of transactions in the list.
        store: where the run is.

    Raises:
        UsageError: there is no such transaction, or the run does not record every transaction.

    Example:
        >>> (sample, *_) = cm.import_samples(folder / "transactions")
        >>> slow = cm.transaction(sample.id, store=folder / "transactions").result.slowest[0]
        >>> cm.transaction(sample.id, slow.key, store=folder / "transactions").result.outcome
        'committed'
    """
    return block(run, key, trail="transaction", slowest=slowest, store=store)


def request(
    run: RunReference,
    key: str | None = None,
    *,
    slowest: int = 10,
    store: Store | Path | str | None = None,
) -> Document:
    """Show the timeline of one request of a load test: when it was due, sent, its first byte received, and finished.

    The slowest requests of every step are stored.

    Args:
        run: the run, by its id, a beginning of it, or a version with one run.
        key: the step's number and the request's rank in it, as "3-1"; None: the slowest requests of the run are listed.
        slowest: number of requests in the list.
        store: where the run is.

    Raises:
        UsageError: there is no such request, or the run does not record the slowest ones.

    Example:
        >>> run = cm.load(profile, url).runs[0]
        >>> slowest = cm.request(run.id).result.slowest[0]
        >>> cm.request(run.id, slowest.key).result.stages
        ['due', 'sent', 'first byte', 'finished']
    """
    return block(run, key, trail="request", slowest=slowest, store=store)


def host(
    run: RunReference,
    *,
    against: Path | str | None = None,
    samples: Path | str | None = None,
    store: Store | Path | str | None = None,
) -> Document:
    """Show one host's log for its operator: how late blocks arrived, from which peers, and the node's resource use.

    Args:
        run: of one host's log, by its id, a beginning of it, or a version with one run.
        against: the samples that another tool wrote of the same host, for comparison; the verdict is then whether they
            agree.
        samples: output file of the samples; its suffix determines the format.
        store: where the run is.

    Raises:
        UsageError: the run is not of one host, or a file cannot be used.

    Example:
        >>> log = logs / "node-0" / "stdout"
        >>> (run,) = cm.ingest("cardano", log, filters=[], genesis=logs / "genesis" / "genesis.shelley.json")
        >>> cm.host(run).kind
        'host'
    """
    run_store = store_at(store)
    sealed = open_run(run, run_store).sealed
    files = [None if path is None else Path(path) for path in (against, samples)]
    document = of_hosts(load_system(sealed.manifest.subject.system)).host(sealed, *files)
    return noted(charted(document, {sealed.manifest.subject.version: [sealed]}), [sealed], run_store)
