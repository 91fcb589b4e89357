"""A story as a document: what the thing is, when each place did what, and which log lines say so."""

from __future__ import annotations

from statistics import median

from chainmark.core import units
from chainmark.core.verdict import Verdict, shown
from chainmark.core.wording import cut, first_sentence, some_of
from chainmark.report.blocks import Block, Column, Listing, Section, Table, TableCell, TableRow, one_line, row_of, words
from chainmark.report.document import Document
from chainmark.systems.cardano.trails.regions import regions_section
from chainmark.systems.cardano.trails.timeline import Times, log_place, reported_stages, timeline_chart, times_of
from chainmark.systems.cardano.trails.trace import BlockTrace, Neighbour, short_key

UNSTATED = "not logged"
_LONGEST = "max"
_LONG_FACT = 32  # what a table has room for; what is longer is told below it
_NAMED = 8


def trail_document(story: BlockTrace) -> Document:
    """Lay out a story."""
    listing: list[Block] = [_listing(story)] if story.log_lines else []
    sections = [
        Section("whole", "What happened", [facts_table(story), timeline_chart(story), *_usual_table(story)]),
        regions_section(story),
        Section("places", f"{story.place_label.capitalize()} by {story.place_label}", [places_table(story)]),
        Section("logs", "Where the logs say so", _log_tables(story)),
        Section("lines", "Lines of the logs", listing),
    ]
    return Document(
        kind="story",
        title=f"{story.name.capitalize()} of {story.subject}",
        subtitle=one_line([f"{story.label} {story.key}", f"run {story.run_id}"]),
        verdict=Verdict.INFORMATIONAL,
        word=story.label.upper(),
        sentence=sentence(story),
        suites=[shown(f"{story.name.capitalize()} of {story.subject}", [sentence(story)])],
        sections=[section for section in sections if section.blocks],
        notes=[*([f"No map of regions: {story.no_map}."] if story.no_map else []), *missing(story)],
        result=story,
    )


def sentence(story: BlockTrace) -> str:
    """Who was last, by how much, what took longest there, and which log line to read."""
    axis = times_of(story)
    end = story.stages[story.end]
    reached = [
        (second, index) for index, place in enumerate(story.places) if (second := place.seconds[story.end]) is not None
    ]
    everywhere = len(story.places) + len(story.absent)
    count = f"{story.name} was {end} on {len(reached)} of {units.plural(everywhere, story.place_label)}"
    without = [place.place for place in story.places if place.seconds[story.end] is None] + story.absent
    missing_ = (
        f"look at the log of {some_of(without, 1, f'{story.place_label}s')}, without that stage" if without else ""
    )
    if not reached:
        return first_sentence(count, next_step=missing_)
    last, where = max(reached)
    slowest = story.places[where]
    middle = "" if story.median_s is None else f", {axis.with_unit(last - story.median_s)} after the median"
    text = f"{count}; the slowest, {slowest.place}, after {axis.with_unit(last)}{middle}"
    steps = [
        (step, stage) for stage, step in enumerate(slowest.steps[: story.end + 1]) if step is not None and step > 0.0
    ]
    if missing_ or not steps:
        return first_sentence(text, next_step=missing_)
    longest, stage = max(steps)
    line = log_place(story, where, stage)
    read = f"read {line}" if line else f"see its log around “{story.stages[stage]}”"
    waited = f"it waited longest, {axis.with_unit(longest)}, for “{story.stages[stage]}”"
    return first_sentence(text, waited, next_step=read)


def facts_table(story: BlockTrace) -> Table:
    """What is known of the thing."""
    facts = [(fact.label, fact.value) for fact in story.facts]
    if story.number is not None:
        facts.insert(0, (story.number_label or "number", str(story.number)))
    if story.base_ns is not None:
        facts.append((story.base_label, units.utc_of_nanoseconds(story.base_ns)))
    short = [row_of(label, value) for label, value in facts if len(value) <= _LONG_FACT]
    long = [f"{label}: {value}." for label, value in facts if len(value) > _LONG_FACT]
    return Table("facts", f"The {story.label}", words("", ""), short, notes=long)


def _usual_table(story: BlockTrace) -> list[Table]:
    """When the half of the places had told each stage, beside the median of all such things."""
    axis = times_of(story)
    rows = []
    for stage in reported_stages(story):
        usual = story.usual_s[stage] if stage < len(story.usual_s) else None
        own = [second for place in story.places if (second := place.seconds[stage]) is not None]
        if usual is not None and own:
            here = median(own)
            difference = axis.text(here - usual, signed=True)
            rows.append(row_of(story.stages[stage], axis.text(here), axis.text(usual), difference))
    if not rows:
        return []
    columns = [*words("stage"), *map(Column, (f"this {story.label}", f"median {story.label}", "difference"))]
    note = f"Medians over {story.place_label}s, and over the {story.label}s of the run that count."
    return [Table("usual", f"Against the median {story.label}, {axis.title}", columns, rows, [note])]


def places_table(story: BlockTrace, id_: str = "places", *, sortable: bool = True) -> Table:
    """Every stage's time at every place, with the time since the stage before."""
    axis = times_of(story)
    stages = reported_stages(story)
    has_roles = any(place.role for place in story.places)
    silent = {(item.stage, place) for item in story.untold for place in item.places}
    rows, long = [], []
    for index in story.rows:
        place = story.places[index]
        cells = [TableCell(place.place), *([TableCell(place.role)] if has_roles else [])]
        for label, fact in zip(story.place_facts, place.facts, strict=True):
            cells.append(TableCell(cut(fact, _LONG_FACT)))
            long += [f"{place.place}, {label}: {fact}."] if len(fact) > _LONG_FACT else []
        cells += [_time(story, axis, index, stage, is_silent=(stage, place.place) in silent) for stage in stages]
        rows.append(TableRow(cells))
    notes = [
        f"Behind a time, with “+”: since the stage before at the same {story.place_label}; “{_LONGEST}”: the longest "
        "of its column.",
        *long,
    ]
    columns = words(story.place_label, *(["role"] if has_roles else []), *story.place_facts)
    columns += [Column(story.stages[stage], spare_tail=True) for stage in stages]
    return Table(id_, f"{axis.title}", columns, rows, notes, sortable=sortable, tails="times since the stage before")


def _time(story: BlockTrace, axis: Times, index: int, stage: int, *, is_silent: bool) -> TableCell:
    place = story.places[index]
    second, step = place.seconds[stage], place.steps[stage]
    if second is None:
        return TableCell(UNSTATED, emphasis="caution") if is_silent else TableCell()
    slowest = story.slowest[stage] == index
    tail = f"{axis.text(step, signed=True)}{f' {_LONGEST}' if slowest else ''}" if step is not None else ""
    return TableCell(axis.text(second), tail, emphasis="caution" if slowest else "plain")


def _log_tables(story: BlockTrace) -> list[Table]:
    """The lines of every file, stage by stage."""
    stages = reported_stages(story)
    rows = []
    for place in (story.places[index] for index in story.rows):
        for file in dict.fromkeys(found for found in place.files if found is not None):
            lines = [
                str(line) if found == file and line is not None else ""
                for found, line in zip(place.files, place.lines, strict=True)
            ]
            name = story.files[file]
            whole = name if place.place in name else f"{place.place}: {name}"
            rows.append(row_of(whole, *(lines[stage] for stage in stages)))
    if not rows:
        return []
    columns = [*words("file"), *(Column(story.stages[stage]) for stage in stages)]
    return [Table("logs", "Line of each stage, in the folder that was imported", columns, rows, sortable=True)]


def _listing(story: BlockTrace) -> Listing:
    entries = []
    for found in story.log_lines:
        problem = f": {found.problem}" if found.problem else ""
        caption = f"{found.place} {story.stages[found.stage]}, {found.file}:{found.line}{problem}"
        entries.append((caption, found.text))
    return Listing("lines", "The lines", entries)


def missing(story: BlockTrace) -> list[str]:
    """What the story lacks, who else has its number, and how to see it again."""
    notes = []
    places = f"{story.place_label}s"
    if story.shown:
        notes.append(f"Of {len(story.places)} {places}, {len(story.rows)} are shown: those that were asked for.")
    if story.absent:
        notes.append(f"{some_of(story.absent, _NAMED, places)}: no event of this {story.label}.")
    notes += [
        f"“{story.stages[item.stage]}” was not logged by {some_of(item.places, _NAMED, places)}."
        for item in story.untold
    ]
    notes += [_rival(story, other) for other in story.neighbours]
    return [*notes, f"To see it again: {story.command}"]


def _rival(story: BlockTrace, other: Neighbour) -> str:
    facts = ", ".join(f"{fact.label} {fact.value}" for fact in other.facts)
    known = f"known to {units.plural(other.places, story.place_label)}"
    number = f"{story.number_label or 'number'} {story.number}"
    return f"Another {story.label} has the {number}: {short_key(other.key)}, {known}{f' ({facts})' if facts else ''}."
