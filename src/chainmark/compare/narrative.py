"""A draft text about a release: how the runs were made, the observations table by table, the conclusion.

Every sentence about a change names it with its interval. The judgement's own rules define a change: a gating
metric that is worse, better or has a trend, and a diagnostic that moved. If the interval contains zero, the value
is within the noise of re-runs.
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
TOO_UNCERTAIN = "too uncertain to count as a change among so many metrics (q > 0.05)"
TOO_SMALL = "too small to matter (below 2 %, or below the metric's floor in its unit)"


@dataclass(frozen=True)
class _JudgedChange:
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
        item = self.judgement
        return None not in (item.change, item.low, item.high)

    @property
    def is_change(self) -> bool:
        """Whether it is called a change by the rules of its judgement."""
        item = self.judgement
        if not item.gating:
            return item.moved
        return self.has_interval and (item.trend or item.outcome in {Outcome.WORSE, Outcome.BETTER})

    @property
    def is_uncertain(self) -> bool:
        """Whether it is not called a change only because of the correction for many metrics."""
        return self.judgement.q_different is not None and self.judgement.q_different > FALSE_DISCOVERIES

    @property
    def holds_none(self) -> bool:
        """Whether its interval contains zero."""
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
        """The change over half of its interval."""
        item = self.judgement
        return abs(item.change or 0.0) / (((item.high or 0.0) - (item.low or 0.0)) / 2.0 or float("inf"))

    @property
    def figures(self) -> str:
        """The change with its interval: "+2.3 % (−7.3 … +12.9 %)"."""
        unit = units.display_unit(self._metric_unit, self.values)
        change_figures = change_text(self.judgement, unit)
        change, interval = (
            f"{text} {change_figures.unit}".rstrip()
            for text in (change_figures.change, f"{change_figures.low} … {change_figures.high}")
        )
        return f"{change} ({interval})"

    @property
    def named(self) -> str:
        """The same after the metric's name."""
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
        """The margin up to which the value is equal, with its own if re-runs widened that."""
        wide = margin_of(self.judgement, self.comparison.catalogue.metric(self.judgement.metric_id))
        return f"{wide}, widened from {self.worse_beyond}" if self.judgement.worse_beyond is not None else wide

    @property
    def worse_beyond(self) -> str:
        """The margin beyond which the value is worse."""
        metric = self.comparison.catalogue.metric(self.judgement.metric_id)
        return worse_beyond(self.judgement, metric) or margin_of(self.judgement, metric)

    @property
    def evidence(self) -> ChangeEvidence:
        item = self.judgement
        return ChangeEvidence(
            against=self.against,
            workload=self.workload,
            metric_id=item.metric_id,
            statistic=item.statistic,
            change=item.change or 0.0,
            low=item.low or 0.0,
            high=item.high or 0.0,
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
        settings: description of the runs' load, a sentence per workload, from their system.
    """
    chapters = [Chapter(part=SET_UP, title="Versions and method", sentences=_set_up(results, settings))]
    for result in results:
        against = "" if len(results) == 1 else f" against {result.comparisons[0].labels[0]}"
        for table in result.comparisons[0].catalogue.tables:
            if sentences := _observed(_of_table(result, table.id), result.labels):
                chapters.append(Chapter(part=OBSERVATIONS + against, title=table.title + against, sentences=sentences))
    concluded = [sentence for result in results for sentence in _concluded(result)]
    return [*chapters, Chapter(part=CONCLUSION, title="Results", sentences=concluded)]


def _all(result: ByWorkload) -> list[_JudgedChange]:
    against = result.comparisons[0].labels[0]
    return [
        _JudgedChange(against, label, comparison, judgement)
        for label, comparison in zip(result.labels, result.comparisons, strict=True)
        for judgement in comparison.judgements
    ]


def _of_table(result: ByWorkload, table: str) -> list[_JudgedChange]:
    """The rows of a table, without those that are zero everywhere."""
    results = [
        item for item in _all(result) if item.comparison.catalogue.metric(item.judgement.metric_id).table == table
    ]
    metric_ids = {item.judgement.metric_id for item in results if any(item.values)}
    return [item for item in results if item.judgement.metric_id in metric_ids]


def _set_up(results: Sequence[ByWorkload], settings: Sequence[str]) -> list[Sentence]:
    first = results[0].comparisons[0]
    before = enumerated([_version(result.comparisons[0].baseline) for result in results])
    messages = [
        f"{_version(first.candidate)} is compared with {before}, under {enumerated(results[0].labels)}.",
        *settings,
    ]
    messages += _runs(results)
    messages += _differences(results)
    messages += _noise(results)
    messages.append(
        "Values in brackets are 90 % intervals. A metric is within re-run noise if its interval contains zero. Whether "
        "a change is significant is decided by the verdict, which corrects for the number of metrics."
    )
    return [Sentence(text=text) for text in messages]


def _version(side: Side) -> str:
    messages = [
        f"revision {side.subject.revision[:_SHORT_REVISION]}" if side.subject.revision else "",
        side.subject.build or "",
    ]
    notes = ", ".join(filter(None, messages))
    return f"{side.label} ({notes})" if notes else side.label


def _runs(results: Sequence[ByWorkload]) -> Iterator[str]:
    counts = {
        len(side.runs)
        for by_workload in results
        for each in by_workload.comparisons
        for side in (each.baseline, each.candidate)
    }
    least, most = min(counts), max(counts)
    number = units.plural(least, "run") if least == most else f"{least} to {most} runs"
    yield (
        f"Each version has {number} under each workload. Each workload is judged separately, and the worst verdict "
        "counts."
    )


def _differences(results: Sequence[ByWorkload]) -> list[str]:
    """The conditions on which the sides differ, each once."""
    reported: dict[str, None] = {}
    for comparison in (each for result in results for each in result.comparisons):
        for item in comparison.condition_differences:
            text = f"The {item.label} differs: {item.baseline} with {comparison.labels[0]}, {item.candidate} with "
            reported[" ".join([f"{text}{comparison.labels[1]}.", item.explanation]).strip()] = None
    return list(reported)


def _noise(results: Sequence[ByWorkload]) -> Iterator[str]:
    """The source of the noise in the intervals, and the reference of the comparison."""
    counters: dict[str, Counter[str]] = {}
    is_level = False
    for item in (each for result in results for each in _all(result) if each.judgement.gating):
        source = item.judgement.noise.partition(";")[0]
        is_level = is_level or LEVEL_STATED in item.judgement.noise
        if source:
            counters.setdefault(item.workload, Counter())[source] += 1
    parts = [f"{sources.most_common(1)[0][0]} under {workload}" for workload, sources in counters.items()]
    if parts:
        yield f"For most gating metrics, the noise between runs is estimated from: {'; '.join(parts)}."
    wider = dict.fromkeys(
        entry.name
        for result in results
        for entry in _all(result)
        if entry.judgement.gating and entry.judgement.worse_beyond is not None
    )
    if wider:
        yield (
            f"Re-runs of one build may exceed the margins of {enumerated(list(wider))}. These margins are widened to "
            "three standard deviations of the change between re-runs. A change beyond the original margin is still "
            "worse."
        )
    if is_level:
        yield (
            "The baseline of a metric is the common level of the releases up to the named one if several releases "
            "share that level. Otherwise it is the run of the named version, which is what the published tables show."
        )


def _observed(results: Sequence[_JudgedChange], workloads: Sequence[str]) -> list[Sentence]:
    """The observations in a table: each change across the workloads, then the unchanged metrics by workload."""
    changed = dict.fromkeys((item.judgement.metric_id, item.judgement.statistic) for item in results if item.is_change)
    sentences = []
    for pair in changed:
        unchanged = [
            item
            for item in results
            if (item.judgement.metric_id, item.judgement.statistic) == pair and item.has_interval
        ]
        sentences.append(_change(unchanged))
    rest = [item for item in results if (item.judgement.metric_id, item.judgement.statistic) not in changed]
    for workload in workloads:
        in_workload = [item for item in rest if item.workload == workload]
        sentences += _unchanged(workload, in_workload, others=bool(changed))
    return sentences


def _change(results: Sequence[_JudgedChange]) -> Sentence:
    clauses = [f"under {item.workload} {_clause(item)}" for item in results]
    return Sentence(text=f"{results[0].name}: {'; '.join(clauses)}.", evidence=[item.evidence for item in results])


def _clause(item: _JudgedChange) -> str:
    """The observation of one metric, with its interval."""
    if item.holds_none:
        return f"it stays within re-run noise, {item.figures}"
    moves = f"it {'rises' if item.rises else 'falls'} {item.from_to}, {item.figures}"
    if not item.is_change:
        return f"{moves}, which is {TOO_UNCERTAIN if item.is_uncertain else TOO_SMALL}"
    kind = ", a cost" if item.is_worse else ", an improvement" if item.is_better else ""
    if item.judgement.gating and item.is_worse and item.margin:
        kind += _against_margin(item)
    return moves + kind


def _against_margin(item: _JudgedChange) -> str:
    """The position of a cost relative to its margin."""
    if item.judgement.outcome is Outcome.WORSE:
        return f" beyond the margin of {item.worse_beyond}"
    if item.judgement.outcome in _DECIDED:
        return f" within the margin of {item.margin}"
    return f", undecided whether within the margin of {item.margin}"


def _unchanged(workload: str, results: Sequence[_JudgedChange], *, others: bool) -> Iterator[Sentence]:
    within = [entry for entry in results if entry.holds_none]
    if within:
        yield _within(workload, within, len(results), others=others)
    undecided = [entry for entry in within if entry.judgement.gating and entry.judgement.outcome not in _DECIDED]
    if undecided:
        reported = "; ".join(f"{entry.named}, margin {entry.margin}" for entry in undecided)
        yield Sentence(
            text=f"Under {workload} a worsening beyond the margin is not excluded: {reported}.",
            evidence=[entry.evidence for entry in undecided],
        )
    rest = [entry for entry in results if entry.has_interval and not entry.holds_none]
    for reason, items in (
        (TOO_UNCERTAIN, [entry for entry in rest if entry.is_uncertain]),
        (TOO_SMALL, [entry for entry in rest if not entry.is_uncertain]),
    ):
        if items:
            reported = "; ".join(f"{entry.name} {entry.from_to}, {entry.figures}" for entry in items)
            text = f"Under {workload} {reason}: {reported}."
            yield Sentence(text=text, evidence=[entry.evidence for entry in items])
    absent: dict[str, list[str]] = {}
    for item in results:
        if not item.has_interval:
            absent.setdefault(item.judgement.note or item.judgement.outcome.value, []).append(item.name)
    for reason, names in absent.items():
        yield Sentence(text=f"Not compared under {workload} ({reason}): {some_of(names, _NAMED_MOST, 'metrics')}.")


def _within(workload: str, within: Sequence[_JudgedChange], count: int, *, others: bool) -> Sentence:
    """A sentence about the metrics of a table within the noise of re-runs.

    Args:
        workload: the workload.
        within: these metrics.
        count: number of the table's metrics without a change under any workload.
        others: whether there are metrics with a change.
    """
    furthest = max(within, key=lambda item: item.distance)
    evidence = [item.evidence for item in within]
    if len(within) == 1:
        text = f"Under {workload}, {furthest.name} stays within re-run noise, {furthest.figures}."
        return Sentence(text=text, evidence=evidence)
    other = "other " if others else ""
    subject = f"the other {count}" if others else "both" if count == 2 else f"all {count}"
    which = subject if len(within) == count else f"{len(within)} of the {other}{count}"
    text = (
        f"Under {workload}, {which} metrics stay within re-run noise; the largest change relative to its interval is "
    )
    return Sentence(text=f"{text}{furthest.named}.", evidence=evidence)


def _concluded(result: ByWorkload) -> list[Sentence]:
    """The verdict against one baseline, and the metrics that cause it."""
    results = _all(result)
    gating = [item for item in results if item.judgement.gating and item.has_interval]
    left = result.comparisons[0].labels[0]
    verdict = Sentence(
        text=f"Against {left}, {sentence_of(result.sentence)}", evidence=[item.evidence for item in gating]
    )
    decided = [item for item in gating if item.judgement.outcome in _DECIDED]
    worse = [item for item in gating if item.judgement.outcome is Outcome.WORSE]
    sentences = [verdict]
    if worse:
        sentences.append(_listed("Worse than the margin allows", worse))
    elif decided:
        text = (
            f"Of {units.plural(len(gating), 'gating metric')}, {len(decided)} are decided, and none of these is worse "
            "than its margin allows."
        )
        sentences.append(Sentence(text=text, evidence=[item.evidence for item in decided]))
    for title, chosen in (
        (
            "Costs within the margin",
            [item for item in gating if item.is_change and item.is_worse and item not in worse],
        ),
        ("Improvements", [item for item in gating if item.judgement.outcome is Outcome.BETTER]),
        ("Improvements among the diagnostics", [item for item in results if _is_moved(item) and item.is_better]),
        ("Costs among the diagnostics", [item for item in results if _is_moved(item) and item.is_worse]),
        ("Undecided", [item for item in gating if item.judgement.outcome not in _DECIDED]),
    ):
        if chosen:
            sentences.append(_listed(title, chosen))
    return sentences


def _is_moved(item: _JudgedChange) -> bool:
    return item.judgement.moved and not item.judgement.gating and item.has_interval


def _listed(title: str, results: Sequence[_JudgedChange]) -> Sentence:
    text = "; ".join(item.placed for item in results)
    return Sentence(text=f"{title}: {text}.", evidence=[item.evidence for item in results])
