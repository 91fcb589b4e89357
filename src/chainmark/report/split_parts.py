"""Judged changes as sums of parts: the causes of changes in a document."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Scale, Split, SplitPart, Splits
from chainmark.core.metric import Metric
from chainmark.core.wording import capitalised, enumerated, judged_name, sentence_of
from chainmark.report.blocks import (
    IN_FULL,
    MARKDOWN,
    ON_PAGES,
    TERMINAL,
    Block,
    Column,
    Details,
    Remarks,
    Section,
    Table,
    TableCell,
    TableRow,
    row_of,
    words,
)
from chainmark.report.phrases import Emphasis
from chainmark.report.wording import prose

_READ = (
    "±: half the width of the 90 % interval. The parts of a change add up to it. A part is grey if its interval "
    "contains zero. The verdict does not use the parts."
)


def split_sections(splits: Splits | None, catalogue: Catalogue, deciding: Collection[str] = ()) -> list[Section]:
    """The changes that are divided among causes, or why none is; empty if the system defines no causes.

    Args:
        splits: of a comparison.
        catalogue: for the names and units of its metrics.
        deciding: metrics that a terminal shows; all of them if none of these is divided.
    """
    if splits is None:
        return []
    brief = split_blocks(splits, catalogue, deciding)
    if splits.unknown_reason:
        return [Section("split", splits.title, brief)]
    table = replace(split_table(catalogue, splits.splits, "split"), media=ON_PAGES)
    notes = [sentence_of(capitalised(prose(note))) for note in splits.notes]
    basis = f"Intervals: {enumerated(list(dict.fromkeys(split.basis for split in splits.splits)))}."
    inner = _inner(catalogue, splits.splits)
    folded: list[Block] = [Details("split-inner", "Components of the parts", inner)] if inner else []
    blocks = [table, *folded, Remarks("split-notes", "", [*notes, basis, _READ])]
    return [
        Section("split-in-brief", splits.title, brief, media=TERMINAL),
        Section("split", splits.title, blocks, media=IN_FULL),
        Section("split-on-a-page", splits.title, [table, Remarks("split-notes-short", "", notes)], media=MARKDOWN),
    ]


def split_blocks(
    splits: Splits | None, catalogue: Catalogue, deciding: Collection[str] = (), of: str = ""
) -> list[Block]:
    """The same in short: a table of the deciding changes, or why nothing is divided.

    Args:
        splits: of a comparison.
        catalogue: for the names and units of its metrics.
        deciding: metrics that are shown; all of them if none of these is divided.
        of: name of the comparison, if a document has several.
    """
    if splits is None:
        return []
    title = f"{of}: {splits.title}" if of else splits.title
    if splits.unknown_reason:
        return [
            Remarks(
                "split-unknown",
                "",
                [f"{title}: the change cannot be attributed, because {prose(splits.unknown_reason)}"],
            )
        ]
    short = [split for split in splits.splits if split.metric_id in deciding] or splits.splits
    behind = f"±: half the width of the 90 % interval, from {short[0].basis}."
    return [replace(split_table(catalogue, short, "split-in-brief"), title=title, notes=[behind])]


def split_sentence(split: Split, metric: Metric) -> str:
    """For instance "of +3.1 %, +2.6 ± 0.4 % network and +0.5 ± 0.6 % node"."""
    unit = units.display_unit(metric.unit, [split.change])
    parts = [f"{_cell(split, part.change, unit, part).whole} {part.label}" for part in split.of()]
    return f"of {_cell(split, split.change, unit).whole}, {enumerated(parts)}"


def split_table(catalogue: Catalogue, splits: Sequence[Split], id_: str) -> Table:
    """One metric per row, with its change and the parts of it."""
    labels = list(dict.fromkeys(part.label for split in splits for part in split.of()))
    rows = [_row(catalogue, split, split.of(), labels) for split in splits]
    columns = [*words("metric"), Column("change"), *(Column(label) for label in labels)]
    return Table(id_, "", columns, rows, sortable=True, tails="half widths of 90 % intervals")


def _inner(catalogue: Catalogue, splits: Sequence[Split]) -> list[Block]:
    """The components of each part of the changes, if it has any."""
    tables: list[Block] = []
    for part in {part.id: part for split in splits for part in split.of() if split.of(part.id)}.values():
        labels = list(dict.fromkeys(split_part.label for split in splits for split_part in split.of(part.id)))
        rows = [_row(catalogue, split, split.of(part.id), labels, part.id) for split in splits]
        columns = [*words("metric"), Column(part.label), *(Column(label) for label in labels)]
        title = f"Components of the part “{part.label}”"
        tables.append(Table(f"split-{part.id}", title, columns, rows, sortable=True, tails="half widths"))
    return tables


def _row(
    catalogue: Catalogue, split: Split, parts: Sequence[SplitPart], labels: Sequence[str], whole: str = ""
) -> TableRow:
    metric = catalogue.metric(split.metric_id)
    unit = units.display_unit(metric.unit, [split.change])
    of = next((part for part in split.parts if part.id == whole), None)
    first = _cell(split, split.change, unit) if of is None else _cell(split, of.change, unit, of)
    result = {part.label: part for part in parts}
    cells = [
        _cell(split, result[label].change, unit, result[label]) if label in result else TableCell() for label in labels
    ]
    return row_of(judged_name(metric, split.statistic), first, *cells)


def _cell(split: Split, change: float, unit: units.DisplayUnit, part: SplitPart | None = None) -> TableCell:
    """A change, with half its interval; quiet if the interval contains no change."""
    half = None if part is None else (part.high - part.low) / 2.0
    emphasis: Emphasis = "quiet" if part is not None and part.low <= 0.0 <= part.high else "plain"
    if split.scale is Scale.RELATIVE:
        decimals, factor, symbol = units.percent_decimals(change, half), 100.0, "%"
    else:
        factor, symbol = unit.factor, units.symbol_of_change(unit)
        decimals = units.decimals_for([change * factor], None if half is None else half * factor)
    text = units.number(change * factor, decimals, signed=True)
    if half is None:
        return TableCell(text, symbol, emphasis)
    return TableCell(text, f"± {units.number(half * factor, decimals)} {symbol}".rstrip(), emphasis)
