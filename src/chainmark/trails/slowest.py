"""The slowest items of a run as a document: from the tail of a distribution to the items in it."""

from __future__ import annotations

from chainmark.core import units
from chainmark.core.verdict import Verdict, shown
from chainmark.core.wording import first_sentence
from chainmark.report.blocks import Block, Column, Section, Table, TableCell, TableRow, one_line, phrased, row_of, words
from chainmark.report.document import Document
from chainmark.report.phrases import Phrase
from chainmark.trails.document import difference, usual_of
from chainmark.trails.timeline import Times
from chainmark.trails.trace import SlowestTraces, Trace, follow_address, follow_command


def slowest_document(result: SlowestTraces) -> Document:
    """Lay out the slowest items, and those that did not reach the end."""
    sentence = _sentence(result)
    title = f"Slowest {result.label}s of {result.subject}"
    outcomes: list[Block] = [_outcomes_table(result)] if result.outcomes else []
    others: list[Block] = [_others_table(result)] if result.others else []
    sections = [
        Section("slowest", "The slowest", [_slowest_table(result)] if result.slowest else []),
        Section("others", "Other outcomes", others),
        Section("outcomes", "Outcomes", outcomes),
    ]
    example = next((trace for trace in [*result.slowest, *result.others]), None)
    return Document(
        kind="slowest",
        title=title,
        subtitle=one_line([f"run {result.run_id}"]),
        verdict=Verdict.INFORMATIONAL,
        sentence=sentence,
        suites=[shown(title, [sentence])],
        sections=[section for section in sections if section.blocks],
        notes=[f"To show the timeline of a {result.label}: `{example.command}`"] if example else [],
        result=result,
    )


def _sentence(result: SlowestTraces) -> str:
    counted = units.plural(result.counted, result.label)
    failed = sum(count for outcome, count in result.outcomes.items() if outcome != result.done)
    ends = (
        f"{units.plural(failed, result.label)} of {units.count(result.total)} did not reach the last stage"
        if failed
        else ""
    )
    if not result.slowest:
        return first_sentence(f"No counted {result.label} reached the last stage", ends)
    axis, slowest = _axis(result), result.slowest[0]
    end = _end(slowest)
    usual = _usual(slowest)
    comparison = "" if usual is None else f", {difference(axis, end - usual)} the median"
    name = slowest.key if slowest.number is None else slowest.number
    text = f"{result.label.capitalize()} {name}, the slowest of {counted}, was"
    when = f"{slowest.stages[_stage(slowest)]} {axis.with_unit(end)} after its {slowest.base_label}"
    return first_sentence(f"{text} {when}{comparison}", ends,
                          next_step=f"see `{follow_command(result.trail_id, result.run_id, slowest.key)}`")  # fmt: skip


def _stage(trace: Trace) -> int:
    """The stage by which items are compared: that of most places."""
    return trace.end if trace.place_label else trace.last


def _usual(trace: Trace) -> float | None:
    """The median of that stage; None for items with places, where it is of medians and not of the last places."""
    return None if trace.place_label else usual_of(trace, trace.last)


def _end(trace: Trace) -> float:
    """The time at which the last place reached the end, s."""
    return max((second for place in trace.places if (second := place.seconds[_stage(trace)]) is not None), default=0.0)


def _axis(result: SlowestTraces) -> Times:
    """One unit for all times of the list."""
    seconds = [_end(trace) for trace in [*result.slowest, *result.others]]
    unit = units.display_unit("s", seconds)
    decimals = min(3, units.decimals_for([unit.of(second) for second in seconds]))
    return Times(unit, decimals, unit.symbol)


def _named(trace: Trace) -> TableCell:
    name = trace.key if trace.number is None else str(trace.number)
    return phrased(Phrase(name, address=follow_address(trace.trail_id, trace.run_id, trace.key)))


def _listed(result: SlowestTraces, trace: Trace) -> list[TableCell]:
    known = {fact.label: fact.value for fact in trace.facts}
    return [TableCell(known.get(label, "")) for label in result.listed]


def _slowest_table(result: SlowestTraces) -> Table:
    axis, first = _axis(result), result.slowest[0]
    is_beside = any(_usual(trace) is not None for trace in result.slowest)
    rows = []
    for trace in result.slowest:
        end, usual = _end(trace), _usual(trace)
        longest = _longest(trace)
        apart = [axis.text(None if usual is None else end - usual, signed=True)] if is_beside else []
        waited = ["", ""] if longest is None else [trace.stages[longest[1]], axis.text(longest[0])]
        place = [trace.places[longest[2]].place if longest else ""] if trace.place_label else []
        texts = [axis.text(end), *apart, *place, *waited]
        rows.append(TableRow([_named(trace), *map(TableCell, texts), *_listed(result, trace)]))
    columns = [
        *words(result.label),
        Column(f"{first.stages[_stage(first)]}, {axis.title} after {first.base_label}"),
        *([Column(f"vs. median, {axis.title}")] if is_beside else []),
        *words(*([first.place_label] if first.place_label else []), "waited longest for"),
        Column(f"waited, {axis.title}"),
        *words(*result.listed),
    ]
    counted = f"{units.count(result.counted)} of {units.plural(result.total, result.label)} are {result.counted_label}"
    note = [f"{counted}; the slowest are of these."] if result.counted_label else []
    return Table("slowest", f"The slowest {result.label}s", columns, rows, note, sortable=True)


def _longest(trace: Trace) -> tuple[float, int, int] | None:
    """At the place that reached the end last: its longest step, s, the stage, and the place."""
    end = _stage(trace)
    reached = [(second, index) for index, place in enumerate(trace.places)
               if (second := place.seconds[end]) is not None]  # fmt: skip
    if not reached:
        return None
    _, last = max(reached)
    steps = enumerate(trace.places[last].steps[: end + 1])
    return max(((step, stage, last) for stage, step in steps if step is not None and step > 0.0), default=None)


def _others_table(result: SlowestTraces) -> Table:
    axis = _axis(result)
    rows = [
        TableRow([_named(trace), *map(TableCell, (trace.outcome, trace.stages[_stage(trace)], axis.text(_end(trace)))),
                  *_listed(result, trace)])
        for trace in result.others
    ]  # fmt: skip
    after = Column(f"{axis.title} after {result.others[0].base_label}")
    columns = [*words(result.label, "outcome", "last stage"), after, *words(*result.listed)]
    return Table("others", f"The first {result.label}s with other outcomes", columns, rows)


def _outcomes_table(result: SlowestTraces) -> Table:
    rows = [row_of(name, units.count(count)) for name, count in result.outcomes.items()]
    return Table("outcomes", "Outcomes", [*words("outcome"), Column(f"{result.label}s")], rows)
