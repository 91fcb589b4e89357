"""Notes on runs, shown with every result that uses them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from chainmark.core.caveats import Caveats
from chainmark.core.comparison import Comparison
from chainmark.core.epoch import Annotation
from chainmark.core.manifest import Manifest
from chainmark.core.noted import Noted
from chainmark.core.wording import some_of
from chainmark.report.blocks import with_chart_note
from chainmark.report.document import Document
from chainmark.store.notes import Notes, read_notes
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

_NAMED_MOST = 3


def noted_of(manifest: Manifest) -> Noted:
    """The reader of a run's notes."""
    subject = manifest.subject
    names = [subject.version, *subject.aliases]
    return Noted(subject.system, manifest.run_id, names, manifest.started_at, manifest.ended_at)


def caveats_noted(manifests: Iterable[Manifest], store: Store) -> Caveats:
    """The notes on runs, one sentence each, and the changes of the set-up between them.

    Args:
        manifests: of all runs behind a result.
        store: the store with the notes.
    """
    notes, runs = read_notes(store.root), list(manifests)
    messages = [
        _about(annotation, [run for run in runs if annotation.is_about(noted_of(run))])
        for annotation in notes.annotations
    ]
    return Caveats(sentences=tuple(filter(None, [*messages, *_divided(notes, runs)])))


def noted(document: Document, runs: Iterable[SealedRun], store: Store) -> Document:
    """A document with the notes on its runs on its first screen and below its charts.

    Args:
        document: of a result with caveats about its data.
        runs: all runs behind it.
        store: the store with the notes.
    """
    caveats = caveats_noted([run.manifest for run in runs], store)
    if not caveats.sentences:
        return document
    joined = Caveats.joined([document.caveats, caveats])
    text = "; ".join(caveats.sentences)
    sections = [replace(section, blocks=with_chart_note(section.blocks, text)) for section in document.sections]
    return replace(document, result=document.result.model_copy(update={"caveats": joined}), sections=sections)


def _about(note: Annotation, runs: Sequence[Manifest]) -> str:
    """The note with the versions that it concerns; "" if it concerns none of the runs."""
    if not runs:
        return ""
    versions = dict.fromkeys(run.subject.version for run in runs)
    reach = f" ({note.reach})" if not note.version else ""
    return f"note on {some_of(list(versions), _NAMED_MOST)}{reach}: {note.text}"


def _divided(notes: Notes, runs: Sequence[Manifest]) -> list[str]:
    """The changes of the set-up with some of the runs before, and some after."""
    systems = {run.subject.system for run in runs}
    return [
        f"note: the set-up changed on {epoch.since[:10]} ({epoch.text}), between the runs that are compared"
        for epoch in notes.epochs
        if epoch.system in systems and len({run.started_at >= epoch.since for run in runs}) > 1
    ]


def with_notes(comparison: Comparison, manifests: Iterable[Manifest], store: Store) -> Comparison:
    """A comparison with the notes on its runs: on its first screen, and under its charts over time.

    Args:
        comparison: of these runs.
        manifests: of the runs of both sides.
        store: the store with the notes.
    """
    noted = caveats_noted(manifests, store)
    if not noted.sentences:
        return comparison
    text = "; ".join(noted.sentences)
    charts = [
        chart.model_copy(update={"note": f"{chart.note}; {text}" if chart.note else text})
        if chart.kind.needs == "track"
        else chart
        for chart in comparison.charts
    ]
    return comparison.model_copy(update={"caveats": Caveats.joined([comparison.caveats, noted]), "charts": charts})
