"""A release page as a document: the text in the published order, the evidence, tables, hosts, charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from chainmark.core.release_page import Chapter, PublishedPart, ReleasePage
from chainmark.report.blocks import Block, Remarks, Section, one_line, with_chart_note
from chainmark.report.by_workload_document import verdicts_table, workload_blocks
from chainmark.report.comparison_suite import comparison_suite
from chainmark.report.document import Document
from chainmark.report.wording import prose


def release_document(page: ReleasePage) -> Document:
    """Lay out a release page."""
    judged = [Section(f"verdicts{number}", title, blocks) for number, title, blocks in _judged(page)]
    return Document(
        kind="release-page",
        title=page.title,
        subtitle=one_line([page.author, page.date]),
        verdict=page.verdict,
        sentence=prose(page.sentence),
        suites=[
            comparison_suite(comparison, f"{label}, against {comparison.labels[0]}")
            for result in page.against
            for label, comparison in zip(result.labels, result.comparisons, strict=True)
        ],
        sections=[section for section in [*_text(page), *judged, *_published(page)] if section.blocks],
        notes=[],
        result=page,
        contents=True,
        is_page=True,
    ).noted_once()


def _text(page: ReleasePage) -> Iterator[Section]:
    stated = [Remarks("statement", "Statement", [page.statement])] if page.statement else []
    for index, (part, chapters) in enumerate(groupby(page.text, key=lambda chapter: chapter.part)):
        blocks = [_chapter(index, number, chapter) for number, chapter in enumerate(chapters)]
        first: list[Block] = [*(stated if index == 0 else []), *blocks]
        yield Section(f"text-{index}", part, first, folded=False)


def _chapter(place: int, number: int, chapter: Chapter) -> Remarks:
    return Remarks(f"text-{place}-{number}", chapter.title, [prose(sentence.text) for sentence in chapter.sentences])


def _judged(page: ReleasePage) -> Iterator[tuple[int, str, list[Block]]]:
    """The evidence for the verdict, baseline by baseline."""
    for number, result in enumerate(page.against):
        title = "Verdict" if len(page.against) == 1 else f"Verdict against {result.comparisons[0].labels[0]}"
        blocks: list[Block] = [verdicts_table(result), *_rests(page, number)]
        if result.unmatched:
            blocks.append(Remarks("unmatched", "Not compared", result.unmatched))
        yield number, title, [replace(block, id=f"against-{number}-{block.id}") for block in blocks]


def _rests(page: ReleasePage, number: int) -> Iterator[Block]:
    result = page.against[number]
    for index, (label, comparison) in enumerate(zip(result.labels, result.comparisons, strict=True)):
        path = ("against", number, "comparisons", index)
        yield from workload_blocks(index, label, comparison, path, in_full=not page.published)


def _published(page: ReleasePage) -> Iterator[Section]:
    """The parts that readers of the system's published reports expect, workload by workload."""
    parts = page.published
    yield from _sections("analysis", "Analysis", parts, [part.tables() for part in parts])
    yield from _sections("parameters", "Manifest", parts, [part.parameters() for part in parts])
    charts = [
        with_chart_note(part.charts(), "; ".join(noted))
        for part, noted in zip(parts, page.noted or [[]] * len(parts), strict=True)
    ]
    yield from _sections("charts", "Appendix A: charts", parts, charts)
    words = parts[0].dictionary() if parts else ()
    yield Section("dictionary", "Appendix B: data dictionary", words)


def _sections(
    id_: str, title: str, parts: Sequence[PublishedPart], of_parts: Sequence[Sequence[Block]]
) -> Iterator[Section]:
    for index, (published_part, part_comparisons) in enumerate(zip(parts, of_parts, strict=True)):
        blocks = [replace(block, id=f"{block.id}-{index}") for block in part_comparisons]
        yield Section(f"{id_}-{index}", f"{title}: {published_part.workload()} workload", blocks)
