"""Runs that a command has just made, as a terminal shows them: whether each is valid, and the next commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from chainmark.core import units
from chainmark.core.caveats import Caveats
from chainmark.core.manifest import GateStatus, Manifest
from chainmark.core.result import Result
from chainmark.core.verdict import Verdict, worst
from chainmark.core.wording import enumerated, first_sentence
from chainmark.report.blocks import Block, Column, Listing, Remark, Remarks, Section, Table, one_line, row_of, words
from chainmark.report.document import Document
from chainmark.report.run_document import RunRecord, counts_table, gate_case, sources_text
from chainmark.report.wording import GATE_LOOKS, GATE_MARKS, LOOKS

_NOTES_SHOWN = 12
_FACTS_SHOWN = 3  # of each run in a list
_EXISTED = "already imported, unchanged"


class NewRuns(Result):
    """Several runs that were made by one command."""

    caveats: Caveats


def shown_runs(
    documents: Sequence[Document], existing: Collection[str], commands: Sequence[tuple[str, str]], remedy: str = ""
) -> Document:
    """Shorten the document of one run, or list several.

    Args:
        documents: the complete document of each run.
        existing: ids of the runs that were in the store before.
        commands: what to do next: a caption and a command each.
        remedy: what to do if a run is not valid.
    """
    if len(documents) == 1:
        document = _shortened(documents[0], existing, commands)
    else:
        document = _listed(documents, existing, commands)
    if document.verdict is Verdict.PASS or not remedy:
        return document
    return replace(document, notes=[*document.notes, remedy])


def _shortened(document: Document, existing: Collection[str], commands: Sequence[tuple[str, str]]) -> Document:
    manifest = _manifest(document)
    blocks = _missed([manifest])
    if counts := counts_table(manifest):
        blocks.append(counts)
    more = document.notes[_NOTES_SHOWN:]
    notes = [*([_EXISTED] if manifest.run_id in existing else []), *document.notes[:_NOTES_SHOWN]]
    notes += [f"{units.plural(len(more), 'more note')} in `chainmark runs show`"] if more else []
    parts = [
        document.subtitle,
        f"until {units.utc(manifest.ended_at)}",
        sources_text(manifest) if manifest.sources else "",
    ]
    return replace(document, subtitle=one_line(parts), sections=_sections(blocks, commands), notes=notes)


def _listed(documents: Sequence[Document], existing: Collection[str], commands: Sequence[tuple[str, str]]) -> Document:
    manifests = [_manifest(document) for document in documents]
    new = sum(manifest.run_id not in existing for manifest in manifests)
    rows = [
        row_of(
            manifest.subject.version,
            manifest.run_id,
            manifest.status.value,
            "; ".join(fact.value for fact in manifest.facts[:_FACTS_SHOWN]),
            emphasis="plain" if document.verdict is Verdict.PASS else LOOKS[document.verdict].emphasis,
        )
        for document, manifest in zip(documents, manifests, strict=True)
    ]
    columns = [*words("version"), Column("run", kind="code"), *words("status")]
    runs = Table("runs", "", [*columns, Column("facts", kind="words", if_any=True)], rows)
    verdict = worst(document.verdict for document in documents)
    title = units.plural(len(documents), "run")
    statuses = Counter(manifest.status.value for manifest in manifests)
    counted = (
        enumerated([f"{count} {status}" for status, count in statuses.items()])
        if len(statuses) > 1
        else f"all are {manifests[0].status.value}"
    )
    tool_version, date = documents[-1].tool_version, documents[-1].date
    return Document(
        kind="runs",
        title=title,
        subtitle="",
        verdict=verdict,
        sentence=first_sentence(f"{title}, {new} of them new", counted),
        suites=[suite for document in documents for suite in document.suites],
        sections=_sections([runs, *_missed(manifests)], commands),
        notes=[],
        result=NewRuns(
            tool_version=tool_version,
            title=title,
            subtitle="",
            date=date,
            caveats=Caveats.joined(document.caveats for document in documents),
        ),
        date=date,
        tool_version=tool_version,
    )


def _manifest(document: Document) -> Manifest:
    record = document.result
    if not isinstance(record, RunRecord):
        raise TypeError(f"{document.kind} is not a document of a run")
    return record.manifest


def _missed(manifests: Sequence[Manifest]) -> list[Block]:
    """The gates that were not met; of several runs with the run."""
    items = [
        Remark(
            f"{f'{manifest.run_id}: ' if len(manifests) > 1 else ''}{gate.label}: {gate_case(gate).reason}",
            GATE_MARKS[gate.status],
            GATE_LOOKS[gate.status],
        )
        for manifest in manifests
        for gate in manifest.gates
        if gate.status is not GateStatus.PASS
    ]
    return [Remarks("missed", "Gates that were not met", items)] if items else []


def _sections(blocks: Iterable[Block], commands: Sequence[tuple[str, str]]) -> list[Section]:
    listing = [Listing("next", "Next", list(commands))] if commands else []
    return [Section("new-runs", "", [*blocks, *listing])]
