"""A trace as a document: what the item is, when each place did what, and the log lines that show it."""

from __future__ import annotations

from chainmark.core import units
from chainmark.core.verdict import Verdict, shown
from chainmark.core.wording import capitalised, cut, first_sentence, some_of
from chainmark.report.blocks import Block, Column, Listing, Section, Table, TableCell, TableRow, one_line, row_of, words
from chainmark.report.document import Document
from chainmark.trails.regions import regions_section
from chainmark.trails.timeline import Times, log_place, reported_stages, timeline_chart, times_of
from chainmark.trails.trace import Neighbour, Trace, follow_command, short_key

UNSTATED, NOT_REACHED, NOT_OBSERVED = "not logged", "not reached", "not observed"
_LONGEST = "max"
_LONG_FACT = 32  # limit of a table; longer content is listed below it
_NAMED = 8


def trail_document(trace: Trace) -> Document:
    """Lay out a trace."""
    listing: list[Block] = [_listing(trace)] if trace.log_lines else []
    if trace.place_label:
        stages: list[Block] = [*_usual_table(trace)]
        places: list[Block] = [places_table(trace)]
    else:
        stages, places = [stages_table(trace)], []
    sections = [
        Section("whole", "Timeline", [facts_table(trace), timeline_chart(trace), *stages]),
        regions_section(trace),
        Section("places", f"{trace.place_label.capitalize()} by {trace.place_label}", places),
        Section("logs", "Log lines by stage", _log_tables(trace)),
        Section("lines", "Lines of the logs", listing),
    ]
    return Document(
        kind="trace",
        title=f"{trace.name.capitalize()} of {trace.subject}",
        subtitle=one_line([f"{trace.label} {trace.key}", f"run {trace.run_id}"]),
        verdict=Verdict.INFORMATIONAL,
        sentence=sentence(trace),
        suites=[shown(f"{trace.name.capitalize()} of {trace.subject}", [sentence(trace)])],
        sections=[section for section in sections if section.blocks],
        notes=[*([f"No map of regions: {trace.no_map}."] if trace.no_map else []), *missing(trace)],
        result=trace,
    )


def sentence(trace: Trace) -> str:
    """The last place, its delay, its longest step, and the log line to read."""
    if not trace.place_label:
        return _whole_sentence(trace)
    axis = times_of(trace)
    end = trace.stages[trace.end]
    reached = [
        (second, index) for index, place in enumerate(trace.places) if (second := place.seconds[trace.end]) is not None
    ]
    everywhere = len(trace.places) + len(trace.absent)
    count = f"{capitalised(trace.name)} was {end} on {len(reached)} of {units.plural(everywhere, trace.place_label)}"
    without = [place.place for place in trace.places if place.seconds[trace.end] is None] + trace.absent
    missing_ = (
        f"look at the log of {some_of(without, 1, f'{trace.place_label}s')}, without that stage" if without else ""
    )
    if not reached:
        return first_sentence(count, next_step=missing_)
    last, where = max(reached)
    slowest = trace.places[where]
    middle = "" if trace.median_s is None else f", {axis.with_unit(last - trace.median_s)} more than the median"
    text = f"{count}; the slowest, {slowest.place}, took {axis.with_unit(last)} from {trace.base_label}{middle}"
    steps = [
        (step, stage) for stage, step in enumerate(slowest.steps[: trace.end + 1]) if step is not None and step > 0.0
    ]
    if missing_ or not steps:
        return first_sentence(text, next_step=missing_)
    longest, stage = max(steps)
    line = log_place(trace, where, stage)
    read = f"read {line}" if line else f"see its log around “{trace.stages[stage]}”"
    waited = f"its longest stage was “{trace.stages[stage]}”, {axis.with_unit(longest)}"
    return first_sentence(text, waited, next_step=read)


def _whole_sentence(trace: Trace) -> str:
    """For an item without places: when it reached the end, or its last stage, and its longest step."""
    axis, place, usual = times_of(trace), trace.places[0], usual_of(trace, trace.last)
    second = place.seconds[trace.last] or 0.0
    when = f"{axis.with_unit(second)} after its {trace.base_label}"
    if not trace.is_done or trace.last < len(trace.stages) - 1:
        return first_sentence(
            f"{capitalised(trace.name)} ended as “{trace.outcome}”; its last stage was “{trace.stages[trace.last]}”, "
            f"{when}"
        )
    comparison = "" if usual is None else f", {difference(axis, second - usual)} the median {trace.label}"
    waited = waited_for(trace)
    longest = f"its longest stage was “{trace.stages[waited[1]]}”, {axis.with_unit(waited[0])}" if waited else ""
    name = capitalised(trace.name)
    return first_sentence(f"{name} was {trace.stages[trace.last]} {when}{comparison}", longest)


def usual_of(trace: Trace, stage: int) -> float | None:
    """The median of a stage over all such items; None if unknown."""
    return trace.usual_s[stage] if stage < len(trace.usual_s) else None


def difference(axis: Times, seconds: float) -> str:
    """The difference from another time, in words."""
    return f"{axis.with_unit(abs(seconds))} {'later' if seconds >= 0.0 else 'sooner'} than"


def waited_for(trace: Trace) -> tuple[float, int] | None:
    """The longest step of an item without places, s, and its stage; None if no step took time."""
    steps = [(step, stage) for stage, step in enumerate(trace.places[0].steps) if step is not None and step > 0.0]
    return max(steps, default=None)


def stages_table(trace: Trace, id_: str = "stages") -> Table:
    """Every stage of an item without places, next to the median of all such items if known."""
    # A step of some µs must be visible next to one of seconds.
    axis = Times(units.DisplayUnit("ms", 1e3), 3, f"ms after {trace.base_label}")
    place, longest = trace.places[0], waited_for(trace)
    rows = []
    for stage, second in enumerate(place.seconds):
        absent = TableCell(NOT_REACHED if stage > trace.last else NOT_OBSERVED, emphasis="caution")
        is_longest = longest is not None and stage == longest[1]
        own = [
            TableCell(trace.stages[stage]),
            absent if second is None else TableCell(axis.text(second)),
            TableCell(axis.text(place.steps[stage]), emphasis="caution" if is_longest else "plain"),
        ]
        rows.append(TableRow([*own, *map(TableCell, _beside_usual(trace, axis, stage))]))
    headings = [f"this {trace.label}", "since the previous stage"]
    headings += [f"median {trace.label}", "difference"] if trace.usual_s else []
    notes = [f"Medians over the {trace.label}s {trace.counted_label or 'of the run'}."] if trace.usual_s else []
    return Table(id_, f"Stages, {axis.title}", [*words("stage"), *map(Column, headings)], rows, notes)


def _beside_usual(trace: Trace, axis: Times, stage: int) -> list[str]:
    """The median of a stage over all such items, and the difference from it; empty if no median is known."""
    if not trace.usual_s:
        return []
    second, usual = trace.places[0].seconds[stage], usual_of(trace, stage)
    apart = None if second is None or usual is None else second - usual
    return [axis.text(usual), axis.text(apart, signed=True)]


def facts_table(trace: Trace) -> Table:
    """The facts about the item."""
    facts = [(fact.label, fact.value) for fact in trace.facts]
    if trace.number is not None:
        facts.insert(0, (trace.number_label or "number", str(trace.number)))
    if trace.base_ns is not None:
        facts.append((trace.base_label, units.utc_of_nanoseconds(trace.base_ns)))
    short = [row_of(label, value) for label, value in facts if len(value) <= _LONG_FACT]
    long = [f"{label}: {value}." for label, value in facts if len(value) > _LONG_FACT]
    return Table("facts", f"The {trace.label}", words("", ""), short, notes=long)


def _usual_table(trace: Trace) -> list[Table]:
    """When half of the places had reported each stage, next to the median of all such items."""
    axis = times_of(trace)
    rows = []
    for stage in reported_stages(trace):
        usual = usual_of(trace, stage)
        own = trace.medians_s[stage] if stage < len(trace.medians_s) else None
        if usual is not None and own is not None:
            difference = axis.text(own - usual, signed=True)
            rows.append(row_of(trace.stages[stage], axis.text(own), axis.text(usual), difference))
    if not rows:
        return []
    columns = [*words("stage"), *map(Column, (f"this {trace.label}", f"median {trace.label}", "difference"))]
    note = f"Medians over {trace.place_label}s and over the analysed {trace.label}s of the run."
    return [Table("usual", f"Comparison with the median {trace.label}, {axis.title}", columns, rows, [note])]


def places_table(trace: Trace, id_: str = "places", *, sortable: bool = True) -> Table:
    """Every stage's time at every place, with the time since the previous stage."""
    axis = times_of(trace)
    stages = reported_stages(trace)
    has_roles = any(place.role for place in trace.places)
    silent = {(item.stage, place) for item in trace.missing_stages for place in item.places}
    rows, long = [], []
    for index in trace.rows:
        place = trace.places[index]
        cells = [TableCell(place.place), *([TableCell(place.role)] if has_roles else [])]
        for label, fact in zip(trace.place_facts, place.facts, strict=True):
            cells.append(TableCell(cut(fact, _LONG_FACT)))
            long += [f"{place.place}, {label}: {fact}."] if len(fact) > _LONG_FACT else []
        cells += [_time(trace, axis, index, stage, is_silent=(stage, place.place) in silent) for stage in stages]
        rows.append(TableRow(cells))
    notes = [
        f"“+”: the time since the previous stage on the same {trace.place_label}. “{_LONGEST}”: the longest such time "
        "in the column.",
        *long,
    ]
    columns = words(trace.place_label, *(["role"] if has_roles else []))
    columns += [Column(fact, kind="words", if_any=True) for fact in trace.place_facts]
    columns += [Column(trace.stages[stage], spare_tail=True) for stage in stages]
    return Table(id_, f"{axis.title}", columns, rows, notes, sortable=sortable, tails="times since the previous stage")


def _time(trace: Trace, axis: Times, index: int, stage: int, *, is_silent: bool) -> TableCell:
    place = trace.places[index]
    second, step = place.seconds[stage], place.steps[stage]
    if second is None:
        return TableCell(UNSTATED, emphasis="caution") if is_silent else TableCell()
    slowest = trace.slowest[stage] == index
    tail = f"{axis.text(step, signed=True)}{f' {_LONGEST}' if slowest else ''}" if step is not None else ""
    return TableCell(axis.text(second), tail, emphasis="caution" if slowest else "plain")


def _log_tables(trace: Trace) -> list[Table]:
    """The lines of every file, stage by stage."""
    stages = reported_stages(trace)
    rows = []
    for place in (trace.places[index] for index in trace.rows):
        for file in dict.fromkeys(result for result in place.files if result is not None):
            lines = [
                str(line) if result == file and line is not None else ""
                for result, line in zip(place.files, place.lines, strict=True)
            ]
            name = trace.files[file]
            whole = name if place.place in name else f"{place.place}: {name}"
            rows.append(row_of(whole, *(lines[stage] for stage in stages)))
    if not rows:
        return []
    columns = [*words("file"), *(Column(trace.stages[stage]) for stage in stages)]
    return [Table("logs", "Log line number of each stage", columns, rows, sortable=True)]


def _listing(trace: Trace) -> Listing:
    entries = []
    for line in trace.log_lines:
        problem = f": {line.problem}" if line.problem else ""
        caption = f"{line.place} {trace.stages[line.stage]}, {line.file}:{line.line}{problem}"
        entries.append((caption, line.text))
    return Listing("lines", "Log lines", entries)


def missing(trace: Trace) -> list[str]:
    """What the trace lacks, the others with its number, and how to show it again."""
    notes = []
    places = f"{trace.place_label}s"
    if trace.shown:
        are = "is" if len(trace.rows) == 1 else "are"
        notes.append(f"Only {len(trace.rows)} of {len(trace.places)} {places} {are} shown, as requested.")
    if trace.absent:
        notes.append(f"{some_of(trace.absent, _NAMED, places)}: no event of this {trace.label}.")
    notes += [
        f"“{trace.stages[item.stage]}” was not logged by {some_of(item.places, _NAMED, places)}."
        for item in trace.missing_stages
    ]
    notes += [_rival(trace, other) for other in trace.neighbours]
    if not trace.place_label:
        notes.append(f"The slowest {trace.label}s of the run: `{follow_command(trace.trail_id, trace.run_id)}`")
    return [*notes, f"To show this timeline again: `{trace.command}`"]


def _rival(trace: Trace, other: Neighbour) -> str:
    facts = ", ".join(f"{fact.label} {fact.value}" for fact in other.facts)
    known = f"known to {units.plural(other.places, trace.place_label)}{f' ({facts})' if facts else ''}"
    number = f"{trace.number_label or 'number'} {trace.number}"
    return f"Another {trace.label} has the same {number}: {short_key(other.key)}, {known}."
