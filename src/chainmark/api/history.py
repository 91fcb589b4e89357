"""The history of workloads, and what is noted beside it: changes of the set-up, which are no noise, and anchors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chainmark.api.context import store_at
from chainmark.compare.history import history_report
from chainmark.core.epoch import Epoch
from chainmark.core.errors import UsageError
from chainmark.core.times import nanoseconds_of_time, utc_text
from chainmark.core.tool import tool_version
from chainmark.report.document import Document
from chainmark.report.layouts import document_of
from chainmark.store.notes import Notes, read_notes, write_notes
from chainmark.store.runs import Store
from chainmark.systems.base import load_system


def history(reference: str, *, store: Store | Path | str | None = None) -> list[Document]:
    """Every figure over the releases of a workload, and where its level changed.

    Args:
        reference: a run or a version: its workload and machine are meant. The series may go on after it.
        store: where the runs are.

    Returns:
        A document for every workload and machine of that version.

    Raises:
        UsageError: nothing matches, or there are fewer than four releases.

    Example:
        >>> runs = cm.ingest("cardano", releases)
        >>> cm.history("9.9.0")[0].sentence
        'The level of 10 of 11 figures changed over 9 releases.'
    """
    kept = store_at(store)
    epochs = read_notes(kept.root).epochs
    return [
        document_of(history_report(group[-1], kept.series(group), epochs, tool_version()))
        for group in kept.groups(reference)
    ]


def note(
    system: str,
    since: str,
    text: str,
    *,
    metrics: Sequence[str] = (),
    store: Store | Path | str | None = None,
) -> Epoch:
    """Note that runs were made with another set-up from some day on.

    What differs across that day is not taken for noise, and a comparison across it does not judge the metrics that it
    changed.

    Args:
        system: whose runs.
        since: "2025-08-01", or a time with its zone.
        text: what was changed: "new hosts".
        metrics: ids of those that it changed; none: any, and then a comparison across it is judged all the same.
        store: where the runs are.

    Raises:
        UsageError: the time or a metric is unknown, or this was noted before.

    Example:
        >>> cm.note("cardano", "2025-08-01", "new hosts", metrics=["rss_mib"]).since
        '2025-08-01T00:00:00Z'
    """
    catalogue = load_system(system).catalogue()
    for metric in metrics:
        catalogue.metric(metric)
    moment = since if "T" in since else f"{since}T00:00:00Z"
    epoch = Epoch(system=system, since=utc_text(nanoseconds_of_time(moment)), text=text, metrics=tuple(metrics))
    root = store_at(store).root
    notes = read_notes(root)
    if any((one.system, one.since) == (epoch.system, epoch.since) for one in notes.epochs):
        raise UsageError(
            f"a change of {since} is noted already", f"`chainmark history remove {system} {since}` takes it away"
        )
    write_notes(root, notes.model_copy(update={"epochs": [*notes.epochs, epoch]}))
    return epoch


def pin(system: str, version: str | None, *, store: Store | Path | str | None = None) -> None:
    """Pin the version that all later ones are also compared with, so that a slow drift is seen; None takes it away.

    Raises:
        UsageError: there is no run of it.

    Example:
        >>> cm.pin("cometbft", "v1.0.1")
        >>> cm.notes().anchors
        {'cometbft': 'v1.0.1'}
    """
    kept = store_at(store)
    notes = read_notes(kept.root)
    anchors = {name: one for name, one in notes.anchors.items() if name != system}
    if version is not None:
        kept.select(version)
        anchors[load_system(system).name] = version
    write_notes(kept.root, notes.model_copy(update={"anchors": anchors}))


def unnote(system: str, since: str, *, store: Store | Path | str | None = None) -> None:
    """Take the note of a change away.

    Raises:
        UsageError: there is none of that time.

    Example:
        >>> epoch = cm.note("cardano", "2025-08-01", "new hosts")
        >>> cm.unnote("cardano", "2025-08-01")
    """
    root = store_at(store).root
    notes = read_notes(root)
    left = [one for one in notes.epochs if not (one.system == system and one.since.startswith(since))]
    if len(left) == len(notes.epochs):
        raise UsageError(f"no change of `{system}` is noted at {since}", "`chainmark history list` shows all")
    write_notes(root, notes.model_copy(update={"epochs": left}))


def notes(store: Store | Path | str | None = None) -> Notes:
    """All that is noted.

    Example:
        >>> cm.notes().epochs
        []
    """
    return read_notes(store_at(store).root)
