"""The history of workloads, and the notes on it: changes of the set-up, which are not noise, and anchors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from chainmark.api.charting import charted
from chainmark.api.context import store_at
from chainmark.api.noting import noted_of
from chainmark.compare.history import history_report
from chainmark.core.epoch import Annotation, Epoch
from chainmark.core.errors import UsageError
from chainmark.core.history_report import HistoryReport
from chainmark.core.noted import Noted
from chainmark.core.times import nanoseconds_of_time, utc_text
from chainmark.core.tool import tool_version
from chainmark.report.document import Document
from chainmark.report.layouts import document_of
from chainmark.store.notes import Notes, read_notes, write_notes
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.base import load_system

__all__ = ["annotate", "history", "note", "notes", "pin", "unnote"]

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(T|$)")
_MOST_SIDES = 8  # releases in one chart


def history(reference: str, *, store: Store | Path | str | None = None) -> list[Document]:
    """Every figure over the releases of a workload, and where its level changed.

    Args:
        reference: a run or a version of the workload and machine. The series may continue after it.
        store: where the runs are.

    Returns:
        A document for every workload and machine of that version.

    Raises:
        UsageError: nothing matches, or there are fewer than four releases.

    Example:
        >>> runs = cm.ingest("cardano", releases)
        >>> cm.history("9.9.0")[0].sentence.split("; ")[1]
        'the level of 10 of 11 metrics changed over 9 releases'
    """
    run_store = store_at(store).held()
    noted = read_notes(run_store.root)
    return [_document(group, run_store.series(group), noted) for group in run_store.groups(reference)]


def _document(group: Sequence[SealedRun], series: Sequence[SealedRun], noted: Notes) -> Document:
    """The history of a workload, with the charts of the releases at which something changed."""
    report = _with_notes(group, series, noted)
    runs = {run.run_id: run for run in series}
    sides = {release.label: [runs[name] for name in release.run_ids] for release in report.at_changes(_MOST_SIDES)}
    return charted(document_of(report), sides)


def _with_notes(group: Sequence[SealedRun], series: Sequence[SealedRun], noted: Notes) -> HistoryReport:
    """The history of a workload, and the notes on the runs of each release."""
    report = history_report(group[-1], series, noted.epochs, tool_version())
    of_run = {run.run_id: noted_of(run.manifest) for run in series}
    releases = [
        release.model_copy(
            update={"notes": [*release.notes, *_annotated([of_run[name] for name in release.run_ids], noted)]}
        )
        for release in report.releases
    ]
    return report.model_copy(update={"releases": releases})


def _annotated(runs: Sequence[Noted], noted: Notes) -> list[str]:
    return [annotation.text for annotation in noted.annotations if any(map(annotation.is_about, runs))]


def note(
    system: str,
    since: str,
    text: str,
    *,
    metrics: Sequence[str] = (),
    until: str | None = None,
    store: Store | Path | str | None = None,
) -> Epoch | Annotation:
    """Record that runs from some day on were made with another set-up, or attach a note as `annotate` does.

    Differences across that day do not count as noise, and a comparison across it does not judge the affected
    metrics.

    Args:
        system: the system of the runs.
        since: "2025-08-01", or a time with its zone; or a run or a version, to annotate it.
        text: the change: "new hosts".
        metrics: ids of the affected metrics; none: any, and then a comparison across it judges them all the same.
        until: the last day of the runs to annotate; None: the set-up changed.
        store: where the runs are.

    Raises:
        UsageError: the time, run or metric is unknown, or the change is already recorded.

    Example:
        >>> cm.note("cardano", "2025-08-01", "new hosts", metrics=["rss_mib"]).since
        '2025-08-01T00:00:00Z'
    """
    if until is not None or not _DAY.match(since):
        if metrics:
            hint = "give the day on which the change took effect"
            raise UsageError("`--metric` applies only to a change of the set-up", hint)
        return annotate(since, text, system=system, until=until, store=store)
    catalogue = load_system(system).catalogue()
    for metric in metrics:
        catalogue.metric(metric)
    epoch = Epoch(system=system, since=_moment(since), text=text, metrics=tuple(metrics))
    root = store_at(store).root
    notes = read_notes(root)
    if any((item.system, item.since) == (epoch.system, epoch.since) for item in notes.epochs):
        raise UsageError(
            f"there is already a note of a change at {since}",
            f"`chainmark history remove {system} {since}` removes it",
        )
    write_notes(root, notes.model_copy(update={"epochs": [*notes.epochs, epoch]}))
    return epoch


def annotate(
    reference: str,
    text: str,
    *,
    system: str | None = None,
    until: str | None = None,
    store: Store | Path | str | None = None,
) -> Annotation:
    """Attach a note to a run, to a version's runs, or to all runs of some days, without changing the runs.

    It is shown with these runs: in lists, in their own documents, and first in every comparison.

    Args:
        reference: a run, a version, or the first time: "2025-08-01".
        text: the note: "node-3's clock was 40 ms late".
        system: the system of the runs; required for a time.
        until: the last time; a day counts in full.
        store: where the runs are.

    Raises:
        UsageError: nothing matches, or a time is given without its end or its system.

    Example:
        >>> cm.annotate("v1.0.1", "the generator shared a host").version
        'v1.0.1'
    """
    run_store = store_at(store)
    if until is not None:
        if system is None:
            raise UsageError("a note on a range of days requires a system", "give the system")
        annotation = Annotation(
            system=load_system(system).name, text=text, since=_moment(reference), until=_moment(until, is_end=True)
        )
    else:
        run = run_store.select(reference)[-1].manifest
        version = reference.removeprefix("version:")
        is_version = version in {run.subject.version, *run.subject.aliases}
        reach = {"version": version} if is_version else {"run": run.run_id}
        annotation = Annotation(system=run.subject.system, text=text, **reach)
    notes = read_notes(run_store.root)
    write_notes(run_store.root, notes.model_copy(update={"annotations": [*notes.annotations, annotation]}))
    return annotation


def _moment(text: str, *, is_end: bool = False) -> str:
    """A time or a day in UTC; the end of the day if it ends a period."""
    moment = text if "T" in text else f"{text}T{'23:59:59' if is_end else '00:00:00'}Z"
    return utc_text(nanoseconds_of_time(moment))


def pin(system: str, version: str | None, *, store: Store | Path | str | None = None) -> None:
    """Pin the version that all later ones are also compared with, to detect a slow drift; None removes it.

    Raises:
        UsageError: there is no run of it.

    Example:
        >>> cm.pin("cometbft", "v1.0.1")
        >>> cm.notes().anchors
        {'cometbft': 'v1.0.1'}
    """
    run_store = store_at(store)
    notes = read_notes(run_store.root)
    anchors = {name: anchor for name, anchor in notes.anchors.items() if name != system}
    if version is not None:
        run_store.select(version)
        anchors[load_system(system).name] = version
    write_notes(run_store.root, notes.model_copy(update={"anchors": anchors}))


def unnote(system: str, since: str, *, store: Store | Path | str | None = None) -> None:
    """Remove the notes of a change, or those of a run, of a version or of a period.

    Args:
        system: the system.
        since: the start of the noted time, of the run's id or of the version.
        store: where the runs are.

    Raises:
        UsageError: there is none.

    Example:
        >>> epoch = cm.note("cardano", "2025-08-01", "new hosts")
        >>> cm.unnote("cardano", "2025-08-01")
    """
    root = store_at(store).root
    notes = read_notes(root)
    remaining = [epoch for epoch in notes.epochs if not (epoch.system == system and epoch.since.startswith(since))]
    others = [
        annotation
        for annotation in notes.annotations
        if not (annotation.system == system and annotation.reach.startswith(since))
    ]
    if len(remaining) == len(notes.epochs) and len(others) == len(notes.annotations):
        raise UsageError(
            f"there is no note of a change of `{system}` at {since}", "`chainmark history list` shows all notes"
        )
    write_notes(root, notes.model_copy(update={"epochs": remaining, "annotations": others}))


def notes(store: Store | Path | str | None = None) -> Notes:
    """All notes.

    Example:
        >>> cm.notes().epochs
        []
    """
    return read_notes(store_at(store).root)
