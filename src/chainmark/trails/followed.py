"""The tails in a comparison's report: the blocks in them, and the traces of some of these blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from chainmark.core import units
from chainmark.core.comparison import Comparison, Followed
from chainmark.core.former_names import renamed
from chainmark.report.blocks import (
    HTML,
    IN_FULL,
    MARKDOWN,
    PDF,
    Block,
    Column,
    Details,
    Medium,
    Remark,
    Remarks,
    Section,
    Table,
    one_line,
    phrased,
    row_of,
    words,
)
from chainmark.report.phrases import Phrase, Phrases
from chainmark.trails.document import missing, places_table, sentence, stages_table
from chainmark.trails.results import Tail, TailSample
from chainmark.trails.timeline import timeline_chart
from chainmark.trails.trace import Trace, short_key

_TAILS_ON_TERMINAL = 3


@dataclass(frozen=True)
class TailItem:
    """One sample of a tail. ``anchor`` is its trace's anchor in the HTML report; "" if it is not included."""

    text: str
    anchor: str
    command: str


@dataclass(frozen=True)
class TailRow:
    """One metric's tail on one side: "slowest in 10.6.2: block 1234 (1.31 s), …"."""

    metric_id: str
    metric: str
    is_candidate: bool
    gating: bool
    lead: str
    items: list[TailItem]


class Tails(Followed):
    """All tails in the report's order, and the traces of the most informative of their samples."""

    tails: list[Tail]
    traces: Annotated[list[Trace], renamed("traces", "stories")]

    def closing(self, comparison: Comparison) -> list[Remark]:
        """The worst of the candidate's samples, and how to follow them."""
        tails = [tail for tail in self.rows(comparison) if tail.gating and tail.is_candidate]
        worst = [(tail, tail.items[0]) for tail in tails[:_TAILS_ON_TERMINAL]]
        return [Remark(f"{tail.metric}, {tail.lead}: {item.text}; see `{item.command}`") for tail, item in worst]

    def leads(self, comparison: Comparison, metric_id: str) -> list[Phrases]:
        """The tails of a metric as sentences that link to the traces: "slowest in 10.6.2: block 1234 (1.31 s), …"."""
        tails = [self._row(comparison, tail) for tail in self.tails if tail.metric_id == metric_id]
        return [(Phrase(f"{tail.lead}: "), *_samples(tail)) for tail in tails]

    def tail(self, comparison: Comparison, metric_id: str) -> list[tuple[str, float, str, str]]:
        """The samples of a metric's tails whose traces are in the report."""
        sides = {"baseline": comparison.labels[0], "candidate": comparison.labels[1]}
        return [
            (sides[tail.side], sample.value, item.text, item.anchor)
            for tail in self.tails
            if tail.metric_id == metric_id
            for sample, item in zip(tail.samples, self._row(comparison, tail).items, strict=True)
            if item.anchor
        ]

    def sections(self, comparison: Comparison) -> list[Section]:
        """Every tail, and the timelines of some of them, each folded."""
        title, rows = "Timelines of extreme samples", self.rows(comparison)
        table = _tails_table(rows, IN_FULL)
        whole = Details("tails-details", "The most extreme samples of every metric", [table])
        timelines = [_timeline(trace, _anchor(index)) for index, trace in enumerate(self.traces)]
        return [
            Section("timelines", title, [whole, *timelines], closed=True, media=HTML),
            Section("tails-on-paper", title, [table], media=PDF),
            Section("tails-in-brief", f"Tails ({len(rows)})", [_tails_table(rows, MARKDOWN)], media=MARKDOWN),
        ]

    def rows(self, comparison: Comparison) -> list[TailRow]:
        """All tails in words."""
        return [self._row(comparison, tail) for tail in self.tails]

    def _row(self, comparison: Comparison, tail: Tail) -> TailRow:
        metric = comparison.catalogue.metric(tail.metric_id)
        is_candidate = tail.side == "candidate"
        label = comparison.candidate.label if is_candidate else comparison.baseline.label
        compared = [
            sample.value for other in self.tails if other.metric_id == tail.metric_id for sample in other.samples
        ]
        unit = units.display_unit(metric.unit, compared)
        decimals = units.decimals_for([unit.of(value) for value in compared])

        def item(sample: TailSample) -> TailItem:
            name = f"{tail.label} {short_key(sample.key) if sample.number is None else sample.number}"
            place = f" at {sample.place}" if sample.place else ""
            value = f"{units.number(unit.of(sample.value), decimals)} {unit.symbol}".rstrip()
            anchor = "" if sample.trace_index is None else _anchor(sample.trace_index)
            return TailItem(f"{name}{place} ({value})", anchor, sample.command)

        items = [item(sample) for sample in tail.samples]
        lead = f"{tail.extreme} in {label}"
        return TailRow(metric.id, metric.label, is_candidate, metric.gating, lead, items)


def _anchor(trace: int) -> str:
    """The anchor of a trace in the HTML report."""
    return f"life-{trace}"


def _samples(tail: TailRow) -> Phrases:
    parts = [(Phrase(", "), Phrase(item.text, item.anchor)) for item in tail.items]
    return tuple(phrase for pair in parts for phrase in pair)[1:]


def _tails_table(tails: Sequence[TailRow], media: frozenset[Medium]) -> Table:
    """The most extreme samples of every metric, and the command that shows the first."""
    rows = [row_of(tail.metric, tail.lead, phrased(*_samples(tail)), tail.items[0].command) for tail in tails]
    columns = [*words("metric", "tail", "samples"), Column("to see the first", kind="code")]
    return Table("tails", "", columns, rows, media=media)


def _timeline(trace: Trace, anchor: str) -> Details:
    known = [(trace.label, trace.key), *((fact.label, fact.value) for fact in trace.facts), ("run", trace.run_id)]
    facts = one_line(f"{label} {value}" for label, value in known)
    figure = replace(timeline_chart(trace), id=anchor, title="")
    blocks: list[Block] = [
        Remarks(f"{anchor}-sentence", "", [sentence(trace), facts]),
        figure,
        places_table(trace, f"{anchor}-places") if trace.place_label else stages_table(trace, f"{anchor}-stages"),
        Remarks(f"{anchor}-notes", "", missing(trace)),
    ]
    return Details(anchor, f"Timeline of {trace.name}, {trace.subject}", blocks, media=HTML)
