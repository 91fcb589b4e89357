"""What a comparison's report says of its tails: the blocks in them, and the life of some of these blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chainmark.core import units
from chainmark.core.comparison import Comparison, Tail, TailSample
from chainmark.systems.cardano.trails.story import Story, short_key
from chainmark.report.blocks import (
    Block,
    Column,
    Details,
    Medium,
    Remarks,
    Table,
    TableCell,
    TableRow,
    one_line,
    phrased,
    words,
)
from chainmark.report.phrases import Phrase, Phrases
from chainmark.systems.cardano.trails.timeline import timeline_chart
from chainmark.systems.cardano.trails.document import missing, places_table, sentence

ON_SCREEN: frozenset[Medium] = frozenset({"html"})


@dataclass(frozen=True)
class TailItem:
    """One sample of a tail. ``anchor`` is where its story stands in the HTML report; "" where it has none there."""

    text: str
    anchor: str
    command: str


@dataclass(frozen=True)
class TailRow:
    """One metric's tail on one side: "slowest in 10.6.2: block 1234 (1.31 s), …"."""

    metric_id: str
    metric: str
    side: str
    is_candidate: bool
    gating: bool
    lead: str
    items: list[TailItem]


def tail_rows(comparison: Comparison) -> list[TailRow]:
    """All tails, in the report's order."""
    return [_tail_row(comparison, tail) for tail in comparison.tails]


def _tail_row(comparison: Comparison, tail: Tail) -> TailRow:
    metric = comparison.catalogue.metric(tail.metric_id)
    label = {"baseline": comparison.baseline.label, "candidate": comparison.candidate.label}.get(tail.side, tail.side)
    beside = [one.value for other in comparison.tails if other.metric_id == tail.metric_id for one in other.samples]
    unit = units.display_unit(metric.unit, beside)
    decimals = units.decimals_for([unit.of(value) for value in beside])

    def item(sample: TailSample) -> TailItem:
        name = f"{tail.label} {short_key(sample.key) if sample.number is None else sample.number}"
        place = f" at {sample.place}" if sample.place else ""
        value = f"{units.number(unit.of(sample.value), decimals)} {unit.symbol}".rstrip()
        anchor = "" if sample.story is None else story_anchor(sample.story)
        return TailItem(f"{name}{place} ({value})", anchor, sample.command)

    return TailRow(
        metric_id=metric.id,
        metric=metric.label,
        side=label,
        is_candidate=tail.side == "candidate",
        gating=metric.gating,
        lead=f"{tail.extreme} in {label}",
        items=[item(sample) for sample in tail.samples],
    )


def story_anchor(index: int) -> str:
    """Where a story stands in the HTML report."""
    return f"life-{index}"


def told_in(tail: TailRow) -> Phrases:
    """A tail as a sentence that leads to the stories: "slowest in 10.6.2: block 1234 (1.31 s), …"."""
    return (Phrase(f"{tail.lead}: "), *_samples(tail))


def _samples(tail: TailRow) -> Phrases:
    parts = [(Phrase(", "), Phrase(item.text, item.anchor)) for item in tail.items]
    return tuple(phrase for pair in parts for phrase in pair)[1:]


def tails_table(comparison: Comparison, media: frozenset[Medium]) -> Table:
    """The most extreme samples of every metric, and the command that shows the first."""
    rows = [
        TableRow([
            TableCell(tail.metric),
            TableCell(tail.lead),
            phrased(*_samples(tail)),
            TableCell(tail.items[0].command),
        ])
        for tail in tail_rows(comparison)
    ]  # fmt: skip
    columns = [*words("metric", "tail", "samples"), Column("to see the first", kind="code")]
    return Table("tails", "", columns, rows, media=media)


def lives(comparison: Comparison) -> list[Details]:
    """The lives of some blocks of the tails, each folded."""
    return [_life(story, story_anchor(index)) for index, story in enumerate(comparison.stories)]


def _life(story: Story, anchor: str) -> Details:
    known = [(story.label, story.key), *((fact.label, fact.value) for fact in story.facts), ("run", story.run_id)]
    facts = one_line(f"{label} {value}" for label, value in known)
    figure = replace(timeline_chart(story), id=anchor, title="")
    blocks: list[Block] = [
        Remarks(f"{anchor}-told", "", [sentence(story), facts]),
        figure,
        places_table(story, f"{anchor}-places"),
        Remarks(f"{anchor}-notes", "", missing(story)),
    ]
    return Details(anchor, f"Life of {story.name}, {story.subject}", blocks, media=ON_SCREEN)
