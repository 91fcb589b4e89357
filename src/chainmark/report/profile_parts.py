"""What explains a change: the profiles of both sides, and the metrics that a catalogue names for it."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.comparison import Comparison, Outcome
from chainmark.core.profiled import FunctionChange, ProfileChange, ProfileCost, Profiled
from chainmark.core.wording import capitalised, enumerated
from chainmark.report.blocks import (
    EVERYWHERE,
    HTML,
    ON_PAGES,
    TERMINAL,
    Block,
    Column,
    Medium,
    Remarks,
    Section,
    Table,
    TableCell,
    TableRow,
    row_of,
    words,
)
from chainmark.report.chart import Chart
from chainmark.report.flame import flame_graph
from chainmark.report.judged_rows import JudgedRow
from chainmark.report.metric_tables import explaining_table
from chainmark.report.phrases import Emphasis

_ON_TERMINAL = 5
_NAMED = 3  # functions in a sentence
TITLE = "What explains it"


def why_sections(comparison: Comparison, rows: Sequence[JudgedRow]) -> list[Section]:
    """What explains a change for the worse; where there is none, only that there are profiles."""
    found = comparison.profiled
    is_worse = any(one.gating and one.outcome is Outcome.WORSE for one in comparison.judgements)
    if not is_worse and not (found and found.is_asked):
        return (
            [Section("explained", TITLE, [_available_profiles(found)], media=ON_PAGES)]
            if found and found.changes
            else []
        )
    blocks: list[Block] = [*_profiles(comparison, found)] if found else []
    table = explaining_table(comparison, rows)
    blocks += [table] if table.rows else []
    plain = [block for block in blocks if not isinstance(block, Chart)]
    return [
        Section("explained", TITLE, blocks, media=HTML),
        Section("explained-in-tables", TITLE, plain, folded=False, media=EVERYWHERE - HTML),
    ]


def _available_profiles(found: Profiled) -> Remarks:
    runs = enumerated([one for side in found.runs.values() for one in side])
    return Remarks("profiles-kept", "", [f"Profiles of both sides are kept: `--why` shows them (runs {runs})."])


def _profiles(comparison: Comparison, found: Profiled) -> list[Block]:
    told = [_sentence(change, comparison.labels) for change in found.changes]
    blocks: list[Block] = [Remarks("profiles", "", told)] if told else []
    for change in found.changes:
        blocks += [
            _table(change, comparison.labels, change.functions[:_ON_TERMINAL], TERMINAL),
            _table(change, comparison.labels, change.functions, ON_PAGES),
        ]
        blocks += [flame_graph(change, comparison.labels)] if change.frames else []
    about = [
        *_runs(comparison, found),
        *(_cost(comparison, cost) for cost in found.costs),
        *map(capitalised, found.notes),
    ]
    return [*blocks, Remarks("profiles-about", "How they were taken", [_ended(one) for one in about])]


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith(".") else f"{sentence}."


def _sentence(change: ProfileChange, labels: Sequence[str]) -> str:
    """By how much a kind changed, and where that is clearest."""
    unit = units.display_unit(change.unit, [change.baseline, change.candidate])
    left, right = (units.quantity(value, change.unit) for value in (change.baseline, change.candidate))
    difference = change.candidate - change.baseline
    clear = [one for one in change.functions if _is_clear(one) and one.change * difference > 0.0]
    clear = sorted(clear, key=lambda one: (-abs(one.change), one.function))[:_NAMED]
    named = [f"{_short(one.function)} ({_signed(one, unit)})" for one in clear]
    where = f"; clear in {enumerated(named)}" if named else "; no single function changed clearly"
    share = f" ({units.percent(difference / change.baseline)})" if change.baseline > 0.0 else ""
    whole = f"{capitalised(change.label)} per {change.per}: {left} of {labels[0]}, {right} of {labels[1]}{share}"
    return f"{whole}{where}."


def _signed(one: FunctionChange, unit: units.DisplayUnit) -> str:
    scaled = one.change * unit.factor
    decimals = units.decimals_for([scaled], _half(one, unit))
    return f"{units.number(scaled, decimals, signed=True)} {unit.symbol}".rstrip()


def _half(one: FunctionChange, unit: units.DisplayUnit) -> float | None:
    """Half the interval; None where there is none."""
    return None if one.low is None or one.high is None else (one.high - one.low) / 2.0 * unit.factor


def _is_clear(one: FunctionChange) -> bool:
    return one.low is not None and one.high is not None and (one.low > 0.0 or one.high < 0.0)


def _short(function: str) -> str:
    """Without the path of its module: "consensus.(*State).finalizeCommit"."""
    return " … ".join(part.rpartition("/")[2] for part in function.split(" … "))


def _table(
    change: ProfileChange, labels: Sequence[str], functions: Sequence[FunctionChange], media: frozenset[Medium]
) -> Table:
    """The functions that changed most clearly, with their intervals."""
    is_grown = any(one.grown_baseline is not None for one in functions)
    is_called = any(one.within_baseline or one.within_candidate for one in functions)
    unit = units.display_unit(change.unit, [value for one in functions for value in (one.baseline, one.candidate)])
    columns = [
        *words("function"),
        *map(Column, labels),
        Column("change"),
        Column("90 % interval", kind="intervals"),
        *([Column("with all it calls", below=True)] if is_called else []),
        *(Column(label, group="grown in the window", below=True) for label in labels if is_grown),
    ]
    short = [_short(one.function) for one in functions]
    names = [one.function if short.count(name) > 1 else name for one, name in zip(functions, short, strict=True)]
    rows = [
        _row(name, one, unit, is_called=is_called, is_grown=is_grown)
        for name, one in zip(names, functions, strict=True)
    ]
    listed = f"{len(functions)} of {units.plural(change.functions_in_all, 'function')}, the clearest change first"
    notes = [
        f"{listed}; per {change.per}{f', in {unit.symbol}' if unit.symbol else ''}. A function counts with what it "
        f"uses of its language's own library. Intervals: {change.basis}; no verdict rests on them."
    ]
    title = f"{capitalised(change.label)} by function"
    return Table(f"functions-{change.kind}-{min(media)}", title, columns, rows, notes, sortable=True, media=media)


def _row(name: str, one: FunctionChange, unit: units.DisplayUnit, *, is_called: bool, is_grown: bool) -> TableRow:
    scaled = [value * unit.factor for value in (one.baseline, one.candidate, one.change)]
    decimals = units.decimals_for(scaled, _half(one, unit))
    emphasis: Emphasis = "plain" if _is_clear(one) else "quiet"

    def figure(value: float, *, signed: bool = False) -> str:
        return units.number(value * unit.factor, decimals, signed=signed)

    interval = units.NOT_ESTIMABLE
    if one.low is not None and one.high is not None:
        interval = f"{figure(one.low, signed=True)} … {figure(one.high, signed=True)}"
    cells = [figure(one.baseline), figure(one.candidate)]
    more = [figure(one.within_candidate - one.within_baseline, signed=True)] if is_called else []
    more += [figure(value or 0.0, signed=True) for value in (one.grown_baseline, one.grown_candidate) if is_grown]
    change = TableCell(figure(one.change, signed=True), emphasis=emphasis)
    return row_of(name, *cells, change, TableCell(interval, emphasis=emphasis), *more)


def _runs(comparison: Comparison, found: Profiled) -> list[str]:
    if not found.runs:
        return ["no run of both sides has profiles: `chainmark run PROFILE --version V --profile cpu,heap` makes one"]
    named = [
        f"{enumerated(runs)} of {label}" for label, runs in zip(comparison.labels, found.runs.values(), strict=True)
    ]
    told = "the files in raw/profiles of a run are opened by `go tool pprof`"
    return [f"The profiles are of runs that are not judged: {enumerated(named)}; {told}"]


def _cost(comparison: Comparison, cost: ProfileCost) -> str:
    """What profiling cost a side, with its interval or the lack of one."""
    metric = comparison.catalogue.metric(cost.metric_id)
    label = dict(zip(("baseline", "candidate"), comparison.labels, strict=True))[cost.side]
    change = units.percent((cost.profiled - cost.plain) / cost.plain if cost.plain else None)
    between = "one run: no interval"
    if cost.low is not None and cost.high is not None and cost.plain:
        between = f"90 % interval {units.percent_interval(cost.low / cost.plain, cost.high / cost.plain)}"
    plain, taken = (units.quantity(value, metric.unit) for value in (cost.plain, cost.profiled))
    runs = f"{units.plural(cost.n_profiled, 'run')} with profiles, {cost.n_plain} without"
    return f"What taking them cost {label}: {metric.label} {plain} → {taken}, {change} ({between}; {runs})"
