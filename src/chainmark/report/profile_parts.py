"""Explanations of a change: the profiles of both sides, and the metrics that a catalogue names for it."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.comparison import Comparison, Outcome
from chainmark.core.profiled import FunctionChange, ProfileChange, ProfileCost, Profiled
from chainmark.core.profiles import KINDS
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
_NAMED = 3  # functions per sentence
TITLE = "Possible causes"


def why_sections(comparison: Comparison, rows: Sequence[JudgedRow]) -> list[Section]:
    """Explanations of a change for the worse; without one, only a note that there are profiles."""
    profiled = comparison.profiled
    is_worse = any(judgement.gating and judgement.outcome is Outcome.WORSE for judgement in comparison.judgements)
    if not is_worse and not (profiled and profiled.is_asked):
        return (
            [Section("explained", TITLE, [_available_profiles(profiled)], media=ON_PAGES)]
            if profiled and profiled.changes
            else []
        )
    blocks: list[Block] = [*_profiles(comparison, profiled)] if profiled else []
    table = explaining_table(comparison, rows)
    blocks += [table] if table.rows else []
    plain = [block for block in blocks if not isinstance(block, Chart)]
    return [
        Section("explained", TITLE, blocks, media=HTML),
        Section("explained-in-tables", TITLE, plain, folded=False, media=EVERYWHERE - HTML),
    ]


def _available_profiles(profiled: Profiled) -> Remarks:
    runs = enumerated([item for side in profiled.runs.values() for item in side])
    return Remarks("profiles-kept", "", [f"Profiles of both sides are available: `--why` shows them (runs {runs})."])


def _profiles(comparison: Comparison, profiled: Profiled) -> list[Block]:
    messages = [_sentence(change, comparison.labels) for change in profiled.changes]
    blocks: list[Block] = [Remarks("profiles", "", messages)] if messages else []
    for change in profiled.changes:
        blocks += [
            _table(change, comparison.labels, change.functions[:_ON_TERMINAL], TERMINAL),
            _table(change, comparison.labels, change.functions, ON_PAGES),
        ]
        blocks += [flame_graph(change, comparison.labels)] if change.frames else []
    about = [
        *_runs(comparison, profiled),
        *(_cost(comparison, cost) for cost in profiled.costs),
        *map(capitalised, profiled.notes),
    ]
    return [*blocks, Remarks("profiles-about", "About the profiles", [_ended(item) for item in about])]


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith(".") else f"{sentence}."


def _sentence(change: ProfileChange, labels: Sequence[str]) -> str:
    """The change of a kind, and where it is clearest."""
    unit = units.display_unit(change.unit, [change.baseline, change.candidate])
    left, right = (units.quantity(value, change.unit) for value in (change.baseline, change.candidate))
    difference = change.candidate - change.baseline
    sign = 1.0 if KINDS[change.kind].is_waiting else difference
    clear = [function for function in change.functions if _is_clear(function) and function.change * sign > 0.0]
    clear = sorted(clear, key=lambda item: (-abs(item.change), item.function))[:_NAMED]
    named = [f"{_short(item.function)} ({_signed(item, unit)})" for item in clear]
    functions = f"; the clearest change is in {enumerated(named)}" if named else "; no single function changed clearly"
    share = f" ({units.percent(difference / change.baseline)})" if change.baseline > 0.0 else ""
    sentence = f"{capitalised(change.label)} per {change.per}: {left} in {labels[0]}, {right} in {labels[1]}{share}"
    return f"{sentence}{functions}."


def _signed(change: FunctionChange, unit: units.DisplayUnit) -> str:
    scaled = change.change * unit.factor
    decimals = units.decimals_for([scaled], _half(change, unit))
    return f"{units.number(scaled, decimals, signed=True)} {unit.symbol}".rstrip()


def _half(change: FunctionChange, unit: units.DisplayUnit) -> float | None:
    """Half the interval; None if there is none."""
    return None if change.low is None or change.high is None else (change.high - change.low) / 2.0 * unit.factor


def _is_clear(change: FunctionChange) -> bool:
    return change.low is not None and change.high is not None and (change.low > 0.0 or change.high < 0.0)


def _short(function: str) -> str:
    """Without the path of its module: "server.(*Pool).reserve"."""
    return " … ".join(part.rpartition("/")[2] for part in function.split(" … "))


def _table(
    change: ProfileChange, labels: Sequence[str], functions: Sequence[FunctionChange], media: frozenset[Medium]
) -> Table:
    """The functions that changed most clearly, with their intervals."""
    is_grown = any(function.grown_baseline is not None for function in functions)
    is_called = any(function.within_baseline or function.within_candidate for function in functions)
    unit = units.display_unit(
        change.unit, [value for function in functions for value in (function.baseline, function.candidate)]
    )
    columns = [
        *words("function"),
        *map(Column, labels),
        Column("change"),
        Column("90 % interval", kind="intervals"),
        *([Column("including callees", below=True)] if is_called else []),
        *(Column(label, group="growth in the window", below=True) for label in labels if is_grown),
    ]
    short = [_short(function.function) for function in functions]
    names = [
        function.function if short.count(name) > 1 else name for function, name in zip(functions, short, strict=True)
    ]
    rows = [
        _row(name, function, unit, is_called=is_called, is_grown=is_grown)
        for name, function in zip(names, functions, strict=True)
    ]
    listed = f"{len(functions)} of {units.plural(change.functions_in_all, 'function')}, the clearest change first"
    notes = [
        f"{listed}; per {change.per}{f', in {unit.symbol}' if unit.symbol else ''}. A function includes its "
        f"calls of the standard library. Intervals: {change.basis}; they do not affect the verdict."
    ]
    title = f"{capitalised(change.label)} by function"
    return Table(f"functions-{change.kind}-{min(media)}", title, columns, rows, notes, sortable=True, media=media)


def _row(name: str, item: FunctionChange, unit: units.DisplayUnit, *, is_called: bool, is_grown: bool) -> TableRow:
    scaled = [value * unit.factor for value in (item.baseline, item.candidate, item.change)]
    decimals = units.decimals_for(scaled, _half(item, unit))
    emphasis: Emphasis = "plain" if _is_clear(item) else "quiet"

    def figure(value: float, *, signed: bool = False) -> str:
        return units.number(value * unit.factor, decimals, signed=signed)

    interval = units.NOT_ESTIMABLE
    if item.low is not None and item.high is not None:
        interval = f"{figure(item.low, signed=True)} … {figure(item.high, signed=True)}"
    cells = [figure(item.baseline), figure(item.candidate)]
    more = [figure(item.within_candidate - item.within_baseline, signed=True)] if is_called else []
    more += [figure(value or 0.0, signed=True) for value in (item.grown_baseline, item.grown_candidate) if is_grown]
    change = TableCell(figure(item.change, signed=True), emphasis=emphasis)
    return row_of(name, *cells, change, TableCell(interval, emphasis=emphasis), *more)


def _runs(comparison: Comparison, profiled: Profiled) -> list[str]:
    if not profiled.runs:
        return [
            "neither side has a run with profiles: `chainmark run PROFILE --version V --profile cpu,heap` creates one"
        ]
    named = [
        f"{enumerated(runs)} of {label}" for label, runs in zip(comparison.labels, profiled.runs.values(), strict=True)
    ]
    text = "`go tool pprof` opens the files in raw/profiles of a run"
    return [f"The profiles are from runs that are not judged: {enumerated(named)}; {text}"]


def _cost(comparison: Comparison, cost: ProfileCost) -> str:
    """The cost of profiling per side, with its interval or a note that there is none."""
    metric = comparison.catalogue.metric(cost.metric_id)
    label = dict(zip(("baseline", "candidate"), comparison.labels, strict=True))[cost.side]
    change = units.percent((cost.profiled - cost.plain) / cost.plain if cost.plain else None)
    between = "one run: no interval"
    if cost.low is not None and cost.high is not None and cost.plain:
        between = f"90 % interval {units.percent_interval(cost.low / cost.plain, cost.high / cost.plain)}"
    plain, taken = (units.quantity(value, metric.unit) for value in (cost.plain, cost.profiled))
    runs = f"{units.plural(cost.n_profiled, 'run')} with profiles, {cost.n_plain} without"
    return f"Overhead of profiling {label}: {metric.label} {plain} → {taken}, {change} ({between}; {runs})"
