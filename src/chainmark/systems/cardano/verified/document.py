"""Their figures next to ours as a document: differences first, then every figure, then what one side lacks."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.core.wording import first_sentence, some_of
from chainmark.report.blocks import (
    ON_PAGES,
    Block,
    Column,
    Details,
    Section,
    Table,
    TableCell,
    TableRow,
    one_line,
    row_of,
    words,
)
from chainmark.report.document import Document
from chainmark.systems.cardano.verified.results import FigureTally, Verification, VerifiedFigure

AGREES, DIFFERS = "✓", "✗"
_DIGITS = 9  # of a figure: enough to show a rounding of one part in 10⁹
_COARSE = 2  # of a difference and of a rounding
_NAMED = 6
_SHOWN_DIFFERENCES = 200  # a file of another run differs everywhere


def verification_document(verification: Verification) -> Document:
    """Lay out the result of the comparison."""
    differing = [figure for figure in verification.figures if figure.agrees is False]
    lacking = [figure for figure in verification.figures if figure.agrees is None]
    own = [figure for figure in verification.figures if not figure.group]
    sections = [
        Section("differences", "Differences", _differences(differing), folded=False),
        Section("summary", "Figure by figure", [_tally_table(verification)]),
        Section("figures", "Every statistic", [_everything(own)], media=ON_PAGES),
        Section("lacking", "Figures on one side only", _lacking(lacking)),
    ]
    return Document(
        kind="verification",
        title=f"{verification.subject}: {verification.file} compared with the run",
        subtitle=one_line([f"run {verification.run_id}", verification.rules]),
        verdict=Verdict.FAIL if differing else Verdict.PASS,
        sentence=_sentence(verification),
        suites=[Suite(verification.file, [_case(verification, tally) for tally in verification.tallies])],
        sections=[section for section in sections if section.blocks],
        notes=[f"The figures of the run are computed {verification.rules}.", *verification.rounding],
        result=verification,
        tool_version=verification.tool_version,
    )


def _sentence(verification: Verification) -> str:
    compared = units.plural(verification.compared, "figure")
    if not verification.differing:
        agree = "agrees" if verification.compared == 1 else "agree"
        one_sided = sum(figure.agrees is None for figure in verification.figures)
        rest = f"; {units.plural(one_sided, 'other')} {'is' if one_sided == 1 else 'are'} on one side only"
        return f"{compared} of {verification.file} {agree} with the run's within rounding{rest if one_sided else ''}."
    differ = "differs" if verification.differing == 1 else "differ"
    return first_sentence(
        f"{units.count(verification.differing)} of {compared} of {verification.file} {differ} from the run's",
        _largest_difference([figure for figure in verification.figures if figure.agrees is False]),
        next_step="check that the run is of the same logs, then read the differences below",
    )


def _largest_difference(differing: Sequence[VerifiedFigure]) -> str:
    """The difference that is largest in relation to the file's figure."""
    relative = [
        (abs(figure.ours - figure.theirs) / abs(figure.theirs), figure)
        for figure in differing
        if figure.ours is not None and figure.theirs
    ]
    if not relative:
        return ""
    share, figure = max(relative, key=lambda item: item[0])
    return f"the largest difference is {units.plain_percent(share)}, of {figure.figure}, {figure.statistic}"


def _case(verification: Verification, tally: FigureTally) -> Case:
    """One figure with all its statistics."""
    if not tally.compared:
        side = "the file" if tally.only_ours else "the run"
        return Case(tally.figure, tally.label, Verdict.INFORMATIONAL, f"{side} does not have it", gates=False)
    reason = f"{units.count(tally.compared)} compared, {units.count(tally.differing)} differ"
    average = _average(verification, tally)
    figures: dict[str, float | str] = {"compared": float(tally.compared), "differing": float(tally.differing)}
    if average is not None and average.theirs is not None and average.ours is not None:
        figures |= {"theirs": average.theirs, "ours": average.ours}
    verdict = Verdict.FAIL if tally.differing else Verdict.PASS
    return Case(tally.figure, tally.label, verdict, reason, figures=figures)


def _average(verification: Verification, tally: FigureTally) -> VerifiedFigure | None:
    """The statistic that a row of the short table shows: the average, or the figure's only one."""
    own = [figure for figure in verification.figures if figure.figure == tally.figure and not figure.group]
    return next((figure for figure in own if figure.statistic == "average"), own[0] if len(own) == 1 else None)


def _tally_table(verification: Verification) -> Table:
    columns = [
        *words("figure", "description"),
        Column("file", group="average"),
        Column("run", group="average"),
        Column("compared"),
        Column("differ"),
        Column("missing"),
        *words(""),
    ]
    rows = []
    for tally in verification.tallies:
        average = _average(verification, tally)
        lacking = tally.only_theirs + tally.only_ours
        mark = "" if not tally.compared else DIFFERS if tally.differing else AGREES
        cells = [
            TableCell(tally.figure),
            TableCell(tally.label if tally.label != tally.figure else ""),
            TableCell(_number(average.theirs if average else None), tally.unit),
            TableCell(_number(average.ours if average else None), tally.unit),
            TableCell(units.count(tally.compared)),
            TableCell(units.count(tally.differing)),
            TableCell(units.count(lacking) if lacking else ""),
            TableCell(mark, emphasis="worse" if tally.differing else "better"),
        ]
        rows.append(TableRow(cells, is_relevant=bool(tally.differing)))
    return Table("tally", "Figures of the file and of the run", columns, rows, sortable=True)


def _differences(differing: list[VerifiedFigure]) -> list[Block]:
    if not differing:
        return []
    more = len(differing) - _SHOWN_DIFFERENCES
    table = _table("differing", "Differences beyond rounding", differing[:_SHOWN_DIFFERENCES])
    if more > 0:
        table.notes.append(f"{units.plural(more, 'more figure')} differ; the JSON lists all.")
    return [table]


def _lacking(lacking: list[VerifiedFigure]) -> list[Block]:
    """Figure by figure the statistics that only one side has."""
    reported: dict[tuple[str, str], list[str]] = {}
    for figure in lacking:
        side = "the run" if figure.ours is None else "the file"
        reported.setdefault((figure.figure, side), []).append(
            f"{figure.group}: {figure.statistic}" if figure.group else figure.statistic
        )
    if not reported:
        return []
    columns = [*words("figure", "missing in"), Column("statistics"), *words("which")]
    rows = [
        row_of(figure, side, units.count(len(names)), some_of(names, _NAMED))
        for (figure, side), names in reported.items()
    ]
    return [Table("lacking", "Figures on one side only", columns, rows)]


def _everything(own: list[VerifiedFigure]) -> Block:
    both = [figure for figure in own if figure.agrees is not None]
    return Details("all", "All statistics of the file and of the run", [_table("all-figures", "", both)])


def _table(id_: str, title: str, figures: list[VerifiedFigure]) -> Table:
    columns = [*words("figure", "statistic"), Column("theirs"), Column("ours"), Column("difference")]
    columns += [Column("rounding"), *words("")]
    rows = []
    for figure in figures:
        mark = TableCell(AGREES, emphasis="better") if figure.agrees else TableCell(DIFFERS, emphasis="worse")
        cells = [
            TableCell(figure.figure),
            TableCell(f"{figure.group}: {figure.statistic}" if figure.group else figure.statistic),
            TableCell(_number(figure.theirs), figure.unit),
            TableCell(_number(figure.ours), figure.unit),
            TableCell(_number(figure.difference, _COARSE)),
            TableCell(_number(figure.rounding, _COARSE)),
            mark,
        ]
        rows.append(TableRow(cells))
    return Table(id_, title, columns, rows, dense=True)


def _number(value: float | None, digits: int = _DIGITS) -> str:
    return units.UNSET if value is None else units.tidy(value, digits)
