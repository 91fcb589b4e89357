"""What a comparison's report says of its tails: the blocks in them, and the life of some of these blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chainmark.core import units
from chainmark.core.comparison import Comparison, Tail, TailSample
from chainmark.core.trail import Story, short_key
from chainmark.report.chart import Chart
from chainmark.report.sheet import Table
from chainmark.report.timeline import timeline_chart
from chainmark.report.trail_sheet import missing, places_table, sentence


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


@dataclass(frozen=True)
class LifePart:
    """The life of one block as a folded part of the HTML report."""

    anchor: str
    title: str
    sentence: str
    facts: list[tuple[str, str]]
    table: Table
    notes: list[str]


def life_parts(comparison: Comparison) -> list[LifePart]:
    """All stories, as the HTML report shows them."""
    return [_life_part(story, story_anchor(index)) for index, story in enumerate(comparison.stories)]


def _life_part(story: Story, anchor: str) -> LifePart:
    facts = [(story.label, story.key), *((fact.label, fact.value) for fact in story.facts), ("run", story.run_id)]
    return LifePart(
        anchor=anchor,
        title=f"Life of {story.name}, {story.subject}",
        sentence=sentence(story),
        facts=facts,
        table=places_table(story, f"{anchor}-places"),
        notes=missing(story),
    )


def life_charts(comparison: Comparison) -> list[Chart]:
    """How each story's timeline is drawn."""
    return [
        replace(timeline_chart(story), id=story_anchor(index))
        for index, story in enumerate(comparison.stories)
    ]  # fmt: skip
