"""Every metric of a comparison against every side: one cell each, coloured by the position of its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chainmark.core.comparison import Comparison, Judgement, Outcome
from chainmark.core.side_by_side import SideBySide
from chainmark.report.blocks import Section
from chainmark.report.document import Document
from chainmark.report.judged_rows import JudgedRow, RowMaker
from chainmark.report.phrases import computed_address

_LOOKS = {Outcome.WORSE: "worse", Outcome.BETTER: "better", Outcome.EQUAL: "within"}
_MOST_RELEVANT = 99.0
_STRONGEST = 3

# The content of each tab, by the IDs of sections; the last one shows all remaining sections.
TABS: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("", "Overview", frozenset({"verdict", "verdicts", "validity"})),
    ("metrics", "All metrics", frozenset({"metrics"})),
    ("charts", "Charts", frozenset({"charts"})),
    ("split", "Node or network", frozenset({"split"})),
    ("why", "Why (profiles)", frozenset({"explained"})),
    ("configuration", "Configuration", frozenset({"facts", "manifest", "configuration", "builds"})),
    ("more", "More", frozenset()),
)
WHOLE = "all"


@dataclass(frozen=True)
class ComparedFigure:
    """One metric on one side.

    Attributes:
        look: "worse", "better", "within" the margin, "moved" if neither direction is better, or "unknown".
        strength: the change in margins, 0 to 3.
    """

    value: str
    change: str
    interval: str
    outcome: str
    look: str
    strength: int


@dataclass(frozen=True)
class MatrixRow:
    """One metric and statistic on all sides.

    Attributes:
        how: addresses of the pages on its computation, for the first run of each side.
        relevance: its largest change in margins.
    """

    id: str
    label: str
    how: str
    baseline: str
    gating: bool
    relevance: float
    cells: list[ComparedFigure]


def comparisons_in(document: Document) -> list[Comparison]:
    """The comparisons that a document was made of: one per candidate."""
    result = document.result
    if isinstance(result, SideBySide):
        return result.comparisons
    return [result] if isinstance(result, Comparison) else []


def labels_of(document: Document) -> list[str]:
    """The names of its sides, the baseline first."""
    result = document.result
    if isinstance(result, SideBySide):
        return result.labels
    return list(result.labels) if isinstance(result, Comparison) else []


def matrix(comparisons: Sequence[Comparison]) -> list[MatrixRow]:
    """A line for each metric and statistic, in the order of the comparisons' reports."""
    result: dict[str, list[tuple[Judgement, JudgedRow] | None]] = {}
    for place, comparison in enumerate(comparisons):
        rows = RowMaker(comparison, comparisons).rows()
        for judgement, row in zip(comparison.judgements, rows, strict=True):
            sides = result.setdefault(f"{judgement.metric_id}.{judgement.statistic}", [None] * len(comparisons))
            sides[place] = judgement, row
    system, runs = (comparisons[0].catalogue.system, _first_runs(comparisons)) if comparisons else ("", [])
    return [_line(id_, sides, system, runs) for id_, sides in result.items()]


def _first_runs(comparisons: Sequence[Comparison]) -> list[str]:
    """The first run of every side that counts."""
    sides = [comparisons[0].baseline, *(comparison.candidate for comparison in comparisons)]
    firsts = (next((run.run_id for run in side.runs if run.excluded_because is None), "") for side in sides)
    return list(dict.fromkeys(filter(None, firsts)))


def _line(id_: str, sides: Sequence[tuple[Judgement, JudgedRow] | None], system: str, runs: Sequence[str]) -> MatrixRow:
    judgement, first = next(side for side in sides if side is not None)
    return MatrixRow(
        id=id_,
        label=first.label_with_unit,
        how=computed_address(system, judgement.metric_id, judgement.statistic, runs),
        baseline=first.baseline,
        gating=any(side is not None and side[1].gating for side in sides),
        relevance=round(max(_margins(side[0]) for side in sides if side is not None), 2),
        cells=[_EMPTY if side is None else _cell(*side) for side in sides],
    )


_EMPTY = ComparedFigure("", "no data", "", "no data", "unknown", 0)


def _cell(judgement: Judgement, row: JudgedRow) -> ComparedFigure:
    return ComparedFigure(
        value=row.candidate,
        change=row.change_with_unit,
        interval=row.interval,
        outcome=row.outcome,
        look="moved" if row.outcome == "moved" else _LOOKS.get(judgement.outcome, "unknown"),
        strength=min(int(_margins(judgement)), _STRONGEST),
    )


def _margins(judgement: Judgement) -> float:
    """The change in margins; 0 if either is unknown."""
    if judgement.change is None or not judgement.margin_high:
        return 0.0
    return min(abs(judgement.change) / judgement.margin_high, _MOST_RELEVANT)


def tabs_of(document: Document) -> list[tuple[str, str]]:
    """The non-empty tabs: their names in addresses, and their titles."""
    shown = [(name, title) for name, title, _ in TABS if _sections(document, name)]
    return [*shown, (WHOLE, "Everything")]


def tab_of(document: Document, tab: str) -> Document:
    """The content of a tab of a document."""
    return document if tab == WHOLE else replace(document, sections=_sections(document, tab), notes=[])


def _sections(document: Document, tab: str) -> list[Section]:
    claimed = {id_ for _, _, ids in TABS for id_ in ids}
    wanted = next((ids for name, _, ids in TABS if name == tab), frozenset[str]())
    seen = document.seen_on("html").sections
    return [section for section in seen if (section.id in wanted if wanted else section.id not in claimed)]
