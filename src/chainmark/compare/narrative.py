"""A draft of what is said of a release: how the runs were made, what was observed table by table, what follows.

Every sentence about a change names it with its interval. A change is called one by the judgement's own rules: a gating
metric that is worse, better or has a trend, and a diagnostic that moved. Where the interval holds no change, the figure
is within what a re-run does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chainmark.compare.judge import LEVEL_STATED
from chainmark.compare.verdict import FALSE_DISCOVERIES
from chainmark.core import units
from chainmark.core.by_workload import ByWorkload
from chainmark.core.comparison import Comparison, Judgement, Outcome, Side
from chainmark.core.metric import Better
from chainmark.core.release_page import ChangeEvidence, Chapter, Sentence
from chainmark.core.wording import (
    change_text,
    enumerated,
    half_width,
    margin_of,
    name_of,
    sentence_of,
    some_of,
    worse_beyond,
)

SET_UP, OBSERVATIONS, CONCLUSION = "Set-up", "Observations", "Conclusion"
_DECIDED = frozenset({Outcome.WORSE, Outcome.EQUAL, Outcome.BETTER})
_NAMED_MOST, _SHORT_REVISION = 4, 10
TOO_UNCERTAIN = "too uncertain to be called a change among so many figures (q > 0.05)"
TOO_SMALL = "too small to matter (below 2 %, or below the metric's floor in its unit)"


@dataclass(frozen=True)
class _Found:
    """One judgement under one workload."""

    against: str
    workload: str
    comparison: Comparison
    judgement: Judgement

    @property
    def name(self) -> str:
        return name_of(self.comparison.catalogue, self.judgement)

    @property
    def has_interval(self) -> bool:
        one = self.judgement
        return None not in (one.change, one.low, one.high)

    @property
    def is_change(self) -> bool:
        """Whether it is called a change, by the rules of its judgement."""
        one = self.judgement
        if not one.gating:
            return one.moved
        return self.has_interval and (one.trend or one.outcome in {Outcome.WORSE, Outcome.BETTER})

    @property
    def is_uncertain(self) -> bool:
        """Whether it is no change because many figures are looked at."""
        return self.judgement.q_different is not None and self.judgement.q_different > FALSE_DISCOVERIES

    @property
    def holds_none(self) -> bool:
        """Whether its interval holds no change."""
        return self.has_interval and (self.judgement.low or 0.0) <= 0.0 <= (self.judgement.high or 0.0)

    @property
    def is_worse(self) -> bool:
        return self._better is not Better.NEITHER and self.rises == (self._better is Better.LOWER)

    @property
    def is_better(self) -> bool:
        return self._better is not Better.NEITHER and not self.is_worse

    @property
    def _better(self) -> Better:
        return self.comparison.catalogue.metric(self.judgement.metric_id).better

    @property
    def rises(self) -> bool:
        return (self.judgement.change or 0.0) > 0.0

    @property
    def distance(self) -> float:
        """How far the change is from none, in halves of its interval."""
        one = self.judgement
        return abs(one.change or 0.0) / (((one.high or 0.0) - (one.low or 0.0)) / 2.0 or float("inf"))

    @property
    def figures(self) -> str:
        """The change with its interval: "+2.3 % (−7.3 … +12.9 %)"."""
        unit = units.display_unit(self._metric_unit, self.values)
        said = change_text(self.judgement, unit)
        change, interval = (f"{text} {said.unit}".rstrip() for text in (said.change, f"{said.low} … {said.high}"))
        return f"{change} ({interval})"

    @property
    def named(self) -> str:
        """The same behind the metric's name."""
        return f"{self.name} {self.figures}"

    @property
    def placed(self) -> str:
        """The same with the workload."""
        return f"{self.name} under {self.workload}, {self.figures}"

    @property
    def from_to(self) -> str:
        """Both values in one unit: "from 42.3 to 21.4 MiB/s"."""
        unit = units.display_unit(self._metric_unit, self.values)
        values = [unit.of(value) for value in self.values]
        decimals = units.decimals_for(values, half_width(self.judgement, unit))
        left, right = (units.number(value, decimals) for value in values)
        return f"from {left} to {right} {unit.symbol}".rstrip()

    @property
    def margin(self) -> str:
        """The margin up to which the figure is equal, with its own where re-runs widened that."""
        wide = margin_of(self.judgement, self.comparison.catalogue.metric(self.judgement.metric_id))
        return f"{wide}, widened from {self.worse_beyond}" if self.judgement.worse_beyond is not None else wide

    @property
    def worse_beyond(self) -> str:
        """The margin beyond which the figure is worse."""
        metric = self.comparison.catalogue.metric(self.judgement.metric_id)
        return worse_beyond(self.judgement, metric) or margin_of(self.judgement, metric)

    @property
    def evidence(self) -> ChangeEvidence:
        one = self.judgement
        return ChangeEvidence(
            against=self.against,
            workload=self.workload,
            metric_id=one.metric_id,
            statistic=one.statistic,
            change=one.change or 0.0,
            low=one.low or 0.0,
            high=one.high or 0.0,
        )

    @property
    def _metric_unit(self) -> str:
        return self.comparison.catalogue.metric(self.judgement.metric_id).unit

    @property
    def values(self) -> list[float | None]:
        return [self.judgement.baseline.value, self.judgement.candidate.value]


def narrative(results: Sequence[ByWorkload], settings: Sequence[str]) -> list[Chapter]:
    """The chapters in the published order.

    Args:
        results: the comparisons with each baseline, by workload.
        settings: what the runs did, a sentence a workload, as their system tells it.
    """
    chapters = [Chapter(part=SET_UP, title="What was compared, and how", sentences=_set_up(results, settings))]
    for result in results:
        against = "" if len(results) == 1 else f" against {result.comparisons[0].labels[0]}"
        for table in result.comparisons[0].catalogue.tables:
            if sentences := _observed(_of_table(result, table.id), result.labels):
                chapters.append(Chapter(part=OBSERVATIONS + against, title=table.title + against, sentences=sentences))
    concluded = [sentence for result in results for sentence in _concluded(result)]
    return [*chapters, Chapter(part=CONCLUSION, title="What follows", sentences=concluded)]


def _all(result: ByWorkload) -> list[_Found]:
    against = result.comparisons[0].labels[0]
    return [
        _Found(against, label, one, judgement)
        for label, one in zip(result.labels, result.comparisons, strict=True)
        for judgement in one.judgements
    ]


def _of_table(result: ByWorkload, table: str) -> list[_Found]:
    """What stands in a table, without what is zero everywhere."""
    found = [one for one in _all(result) if one.comparison.catalogue.metric(one.judgement.metric_id).table == table]
    told = {one.judgement.metric_id for one in found if any(one.values)}
    return [one for one in found if one.judgement.metric_id in told]


def _set_up(results: Sequence[ByWorkload], settings: Sequence[str]) -> list[Sentence]:
    first = results[0].comparisons[0]
    before = enumerated([_version(result.comparisons[0].baseline) for result in results])
    told = [f"{_version(first.candidate)} is compared with {before}, under {enumerated(results[0].labels)}.", *settings]
    told += _runs(results)
    told += _differences(results)
    told += _noise(results)
    told.append(
        "Brackets hold 90 % intervals. A figure is within what a re-run does where its interval holds no change; a "
        "change is called one only by the rules of the verdict, which counts how many figures are looked at."
    )
    return [Sentence(text=text) for text in told]


def _version(side: Side) -> str:
    told = [
        f"revision {side.subject.revision[:_SHORT_REVISION]}" if side.subject.revision else "",
        side.subject.build or "",
    ]
    beside = ", ".join(filter(None, told))
    return f"{side.label} ({beside})" if beside else side.label


def _runs(results: Sequence[ByWorkload]) -> Iterator[str]:
    counts = {len(side.runs) for one in results for each in one.comparisons for side in (each.baseline, each.candidate)}
    least, most = min(counts), max(counts)
    number = units.plural(least, "run") if least == most else f"{least} to {most} runs"
    yield f"Each version has {number} under each workload. Each workload is judged by itself; the verdict is the worst."


def _differences(results: Sequence[ByWorkload]) -> list[str]:
    """On which conditions the sides differ, each once."""
    told: dict[str, None] = {}
    for one in (each for result in results for each in result.comparisons):
        for item in one.condition_differences:
            text = f"The {item.label} differs: {item.baseline} with {one.labels[0]}, {item.candidate} with "
            told[" ".join([f"{text}{one.labels[1]}.", item.explanation]).strip()] = None
    return list(told)


def _noise(results: Sequence[ByWorkload]) -> Iterator[str]:
    """Where the noise of the intervals is from, and what the figures are compared with."""
    found: dict[str, Counter[str]] = {}
    is_level = False
    for one in (each for result in results for each in _all(result) if each.judgement.gating):
        source = one.judgement.noise.partition(";")[0]
        is_level = is_level or LEVEL_STATED in one.judgement.noise
        if source:
            found.setdefault(one.workload, Counter())[source] += 1
    parts = [f"{sources.most_common(1)[0][0]} ({workload})" for workload, sources in found.items()]
    if parts:
        yield f"The noise between runs is known, for most gating figures, from: {'; '.join(parts)}."
    wider = dict.fromkeys(
        one.name
        for result in results
        for one in _all(result)
        if one.judgement.gating and one.judgement.worse_beyond is not None
    )
    if wider:
        yield (
            f"Re-running one build may exceed the margins of {enumerated(list(wider))}: they are widened to three "
            "standard deviations of what a re-run changes, and beyond its own margin a figure is worse all the same."
        )
    if is_level:
        yield (
            "A figure's baseline is the level of the releases up to the one named where several stand together, and "
            "its own run elsewhere; the published tables show the named version's own run."
        )


def _observed(found: Sequence[_Found], workloads: Sequence[str]) -> list[Sentence]:
    """What a table shows: each change across the workloads, then workload by workload what is none."""
    changed = dict.fromkeys((one.judgement.metric_id, one.judgement.statistic) for one in found if one.is_change)
    sentences = []
    for pair in changed:
        alike = [
            one for one in found if (one.judgement.metric_id, one.judgement.statistic) == pair and one.has_interval
        ]
        sentences.append(_change(alike))
    rest = [one for one in found if (one.judgement.metric_id, one.judgement.statistic) not in changed]
    for workload in workloads:
        own = [one for one in rest if one.workload == workload]
        sentences += _unchanged(workload, own, others=bool(changed))
    return sentences


def _change(found: Sequence[_Found]) -> Sentence:
    clauses = [f"under {one.workload} {_clause(one)}" for one in found]
    return Sentence(text=f"{found[0].name}: {'; '.join(clauses)}.", evidence=[one.evidence for one in found])


def _clause(one: _Found) -> str:
    """What one figure did, with its interval."""
    if one.holds_none:
        return f"it stays within what a re-run does, {one.figures}"
    moves = f"it {'rises' if one.rises else 'falls'} {one.from_to}, {one.figures}"
    if not one.is_change:
        return f"{moves}, which is {TOO_UNCERTAIN if one.is_uncertain else TOO_SMALL}"
    kind = ", a cost" if one.is_worse else ", an improvement" if one.is_better else ""
    if one.judgement.gating and one.is_worse and one.margin:
        kind += _against_margin(one)
    return moves + kind


def _against_margin(one: _Found) -> str:
    """Where a cost lies against its margin."""
    if one.judgement.outcome is Outcome.WORSE:
        return f" beyond the margin of {one.worse_beyond}"
    if one.judgement.outcome in _DECIDED:
        return f" within the margin of {one.margin}"
    return f", of which it is open whether it is within the margin of {one.margin}"


def _unchanged(workload: str, found: Sequence[_Found], *, others: bool) -> Iterator[Sentence]:
    within = [one for one in found if one.holds_none]
    if within:
        yield _within(workload, within, len(found), others=others)
    undecided = [one for one in within if one.judgement.gating and one.judgement.outcome not in _DECIDED]
    if undecided:
        told = "; ".join(f"{one.named}, margin {one.margin}" for one in undecided)
        yield Sentence(
            text=f"Under {workload} a worsening beyond the margin is not excluded: {told}.",
            evidence=[one.evidence for one in undecided],
        )
    rest = [one for one in found if one.has_interval and not one.holds_none]
    for why, own in (
        (TOO_UNCERTAIN, [one for one in rest if one.is_uncertain]),
        (TOO_SMALL, [one for one in rest if not one.is_uncertain]),
    ):
        if own:
            told = "; ".join(f"{one.name} {one.from_to}, {one.figures}" for one in own)
            text = f"Under {workload} {why}: {told}."
            yield Sentence(text=text, evidence=[one.evidence for one in own])
    absent: dict[str, list[str]] = {}
    for one in found:
        if not one.has_interval:
            absent.setdefault(one.judgement.note or one.judgement.outcome.value, []).append(one.name)
    for why, names in absent.items():
        yield Sentence(text=f"Not compared under {workload} ({why}): {some_of(names, _NAMED_MOST, 'figures')}.")


def _within(workload: str, within: Sequence[_Found], count: int, *, others: bool) -> Sentence:
    """What is said of the figures of a table that stay within what a re-run does.

    Args:
        workload: under which.
        within: these figures.
        count: of the figures of the table that are no change under any workload.
        others: whether there are figures that are one.
    """
    furthest = max(within, key=lambda one: one.distance)
    evidence = [one.evidence for one in within]
    if len(within) == 1:
        text = f"Under {workload}, {furthest.name} stays within what a re-run does, {furthest.figures}."
        return Sentence(text=text, evidence=evidence)
    other = "other " if others else ""
    whole = f"the other {count}" if others else "both" if count == 2 else f"all {count}"
    which = whole if len(within) == count else f"{len(within)} of the {other}{count}"
    text = f"Under {workload}, {which} figures stay within what a re-run does; the furthest from no change is "
    return Sentence(text=f"{text}{furthest.named}.", evidence=evidence)


def _concluded(result: ByWorkload) -> list[Sentence]:
    """The verdict against one baseline, and the figures that make it so."""
    found = _all(result)
    gating = [one for one in found if one.judgement.gating and one.has_interval]
    right, left = result.comparisons[0].labels[1], result.comparisons[0].labels[0]
    verdict = Sentence(
        text=f"{right} against {left}: {sentence_of(result.sentence)}", evidence=[one.evidence for one in gating]
    )
    decided = [one for one in gating if one.judgement.outcome in _DECIDED]
    worse = [one for one in gating if one.judgement.outcome is Outcome.WORSE]
    sentences = [verdict]
    if worse:
        sentences.append(_listed("Worse than the margin allows", worse))
    elif decided:
        text = (
            f"Of {units.plural(len(gating), 'gating figure')} {len(decided)} are decided, and none of these is worse "
            "than its margin allows."
        )
        sentences.append(Sentence(text=text, evidence=[one.evidence for one in decided]))
    for title, chosen in (
        ("Costs within the margin", [one for one in gating if one.is_change and one.is_worse and one not in worse]),
        ("Improvements", [one for one in gating if one.judgement.outcome is Outcome.BETTER]),
        ("Improvements among the diagnostics", [one for one in found if _is_moved(one) and one.is_better]),
        ("Costs among the diagnostics", [one for one in found if _is_moved(one) and one.is_worse]),
        ("Open", [one for one in gating if one.judgement.outcome not in _DECIDED]),
    ):
        if chosen:
            sentences.append(_listed(title, chosen))
    return sentences


def _is_moved(one: _Found) -> bool:
    return one.judgement.moved and not one.judgement.gating and one.has_interval


def _listed(title: str, found: Sequence[_Found]) -> Sentence:
    told = "; ".join(one.placed for one in found)
    return Sentence(text=f"{title}: {told}.", evidence=[one.evidence for one in found])
