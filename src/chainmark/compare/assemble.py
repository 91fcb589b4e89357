"""The comparison of two sides, from their runs to ``comparison.json``."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from chainmark.compare.attribution import located
from chainmark.compare.breakdowns import breakdowns_of
from chainmark.compare.build_differences import build_differences
from chainmark.compare.builds import build_caveats, title_of
from chainmark.compare.charts import charts_of
from chainmark.compare.costs import costs_of
from chainmark.compare.decide import Decided, Past, decide
from chainmark.compare.estimates import mean_of
from chainmark.compare.facts import facts_beside
from chainmark.compare.false_alarms import re_run_alarms
from chainmark.compare.gates import (
    configuration_differences,
)
from chainmark.compare.inputs import RunData
from chainmark.compare.next_step import Clues, with_next_step
from chainmark.compare.samples import ChartSide, RunSamples, SideSamples
from chainmark.compare.sides import BASELINE, CANDIDATE, SelectedRuns, are_interleaved, describe
from chainmark.compare.split import PartsOf, splits_of
from chainmark.core.catalogue import NO_MARGINS, Catalogue, Margins
from chainmark.core.caveats import Caveats, caveats_of
from chainmark.core.comparison import (
    AnchorView,
    Breakdown,
    ChartData,
    Comparison,
    DistributionRow,
    EffectSize,
    Followed,
)
from chainmark.core.distribution import STANDARD_CENTILES
from chainmark.core.false_alarms import FalseAlarms
from chainmark.core.metric import Metric, Population
from chainmark.core.profiled import Profiled
from chainmark.core.question import Question
from chainmark.stats.effects import TwoSamples
from chainmark.stats.estimable import has_rank

Follow = Callable[[Sequence[SelectedRuns], Catalogue], Followed | None]
_Sides = Callable[[], list[ChartSide]]  # each call makes new ones, which cache the samples of one metric

_METRICS_AT_A_TIME = 2  # more would hold more samples at a time


def _mean(metric: Metric, population: Population, samples: SideSamples) -> float:
    """The mean of the runs' means, each by its population's weighting, weighted by their samples."""
    results = [(run.knots.n, _run_mean(metric, population, run)) for run in samples.present]
    if len(results) == 1:
        return results[0][1]
    return math.fsum(n * mean for n, mean in results) / sum(n for n, _ in results)


def _run_mean(metric: Metric, population: Population, run: RunSamples) -> float:
    summary = run.run.summary(metric.id) if population.average_over else None
    mean = mean_of(summary) if summary else None
    return run.described.mean if mean is None else mean


def _deviation(samples: SideSamples) -> float | None:
    """The pooled samples' standard deviation about their plain mean."""
    results = [(run.knots.n, run.described.mean, run.described.squares) for run in samples.present]
    n = sum(item for item, _, _ in results)
    if n < 2:
        return None
    mean = math.fsum(item * mean_of_run for item, mean_of_run, _ in results) / n
    apart = math.fsum(item * (mean_of_run - mean) ** 2 for item, mean_of_run, _ in results) if len(results) > 1 else 0.0
    return math.sqrt((math.fsum(squares for _, _, squares in results) + apart) / (n - 1))


def _distribution_row(metric: Metric, population: Population, side: ChartSide) -> DistributionRow:
    samples = side.samples(metric, population)
    rows = sum(run.described.rows for run in samples.runs)
    pooled = samples.pooled
    if pooled.n == 0:
        return DistributionRow(
            metric_id=metric.id, side=side.name, n=0, n_null=rows, mean=None, sd=None, min=None, max=None, centiles=[]
        )
    values = pooled.centiles(np.array(STANDARD_CENTILES)).tolist()
    return DistributionRow(
        metric_id=metric.id,
        side=side.name,
        n=pooled.n,
        n_null=rows - pooled.n,
        mean=_mean(metric, population, samples),
        sd=_deviation(samples),
        min=float(pooled.values[0]),
        max=float(pooled.values[-1]),
        centiles=[
            (fraction, value if has_rank(pooled.n, fraction) else None)
            for fraction, value in zip(STANDARD_CENTILES, values, strict=True)
        ],
    )


def _effect_size(metric: Metric, population: Population, sides: Sequence[ChartSide]) -> EffectSize | None:
    left, right = (side.samples(metric, population).pooled for side in sides)
    if left.n == 0 or right.n == 0:
        return None
    both = TwoSamples(left, right)
    gap, at = both.largest_gap()
    return EffectSize(
        metric_id=metric.id,
        probability_candidate_larger=both.probability_larger(),
        wasserstein=both.wasserstein(),
        largest_gap=gap,
        largest_gap_at=at,
    )


@dataclass(frozen=True)
class _Described:
    """Distributions of a metric's samples, in the report's order."""

    distributions: list[DistributionRow]
    effect_sizes: list[EffectSize]
    charts: list[ChartData]
    breakdowns: list[Breakdown]


def _chart_sides(sides: Sequence[SelectedRuns], labels: Sequence[str]) -> list[ChartSide]:
    both = zip(sides, labels, strict=True)
    return [ChartSide(side.name, label, side.included or side.runs) for side, label in both]


def _describe_samples(catalogue: Catalogue, sides: _Sides, seed: int) -> _Described:
    """Distributions of all metrics, from the descriptions that the runs store.

    Most of it is arithmetic on arrays, during which another thread can run.
    """
    for run in {run for side in sides() for run in side.runs}:
        run.read_description()  # once, not by every thread
    with ThreadPoolExecutor(_METRICS_AT_A_TIME) as pool:
        each = list(pool.map(lambda metric: _describe_metric(metric, catalogue, sides(), seed), catalogue.ordered()))
    return _Described(
        [row for metric in each for row in metric.distributions],
        [effect for metric in each for effect in metric.effect_sizes],
        [chart for metric in each for chart in metric.charts],
        [breakdown for metric in each for breakdown in metric.breakdowns],
    )


def _describe_metric(metric: Metric, catalogue: Catalogue, sides: Sequence[ChartSide], seed: int) -> _Described:
    population = catalogue.population(metric.population)
    effect = _effect_size(metric, population, sides)
    return _Described(
        [_distribution_row(metric, population, side) for side in sides],
        [effect] if effect else [],
        charts_of(sides, metric, population, seed),
        breakdowns_of(sides, metric, population),
    )


def _subtitle(baseline: SelectedRuns, candidate: SelectedRuns, date: str) -> str:
    names = list(dict.fromkeys([baseline.first.profile_name, candidate.first.profile_name]))
    noun = "profile" if len(names) == 1 else "profiles"
    runs = f"{len(baseline.included)} + {len(candidate.included)} runs"
    order = ", interleaved" if are_interleaved(baseline, candidate) else ""
    return f"{noun} {' and '.join(names)} · {runs}{order} · {date}"


def _beside_anchor(
    anchor: Sequence[RunData], candidate: Sequence[RunData], history: Sequence[RunData], past: Past | None
) -> AnchorView:
    """The gating metrics of the candidate against an older release, by that release's own runs."""
    decided = decide(anchor, candidate, history, Past(past.epochs, widest=past.widest) if past else None)
    gating = [item for item in decided.judgements if item.gating]
    return AnchorView(side=describe(decided.baseline, decided.labels[0]), judgements=gating)


def _alarms(decided: Decided, history: Sequence[RunData], past: Past | None) -> FalseAlarms | None:
    """How often the history used for the verdict reports a change where nothing was changed."""
    if decided.releases is None:
        return None
    like = (decided.candidate.included or decided.candidate.runs)[0]
    false_alarms = re_run_alarms(like.data, history, past or Past())
    return false_alarms if false_alarms.figures else None


def compare(
    baseline: Sequence[RunData],
    candidate: Sequence[RunData],
    *,
    history: Sequence[RunData] = (),
    past: Past | None = None,
    anchor: Sequence[RunData] = (),
    follow: Follow | None = None,
    parts: PartsOf | None = None,
    why: Profiled | None = None,
    margins: Margins = NO_MARGINS,
    question: Question = Question.WORSE,
    judges: Collection[str] | None = None,
    tool_version: str,
) -> Comparison:
    """Compare a candidate with a baseline.

    Args:
        baseline: one or more runs of one version.
        candidate: likewise, of the same system.
        history: archived runs; if a side has one run, those of equal builds and of many releases show the noise
            between runs.
        past: how the releases among them are used.
        anchor: runs of a release that the candidate is also compared with, without effect on the verdict.
        follow: from the runs' system, if it can link samples to events.
        parts: likewise, if it knows the parts of metrics.
        why: the results of both sides' profiles, if there are any.
        margins: margins that replace the catalogue's.
        question: whether the candidate is judged, or its costs are reported.
        judges: the IDs of the metrics that decide; if there are none, only failed runs do. None: all gating ones.
        tool_version: recorded in the result.

    Returns:
        The content of a report. The same runs give the same bytes, in any order.

    Raises:
        UsageError: a side is empty or mixes versions, the sides are of different systems, or a margin is of a metric
            that is not judged.

    Source: docs/concepts/verdict.md.
    """
    decided = decide(baseline, candidate, history, past, margins, judges=judges)
    left, right, catalogue, names = decided.baseline, decided.candidate, decided.catalogue, decided.labels
    finding = costs_of(decided) if question is Question.COST else decided.finding
    judgements = decided.judgements
    date = max(run.manifest.started_at for run in [*left.runs, *right.runs])[:10]
    described = _describe_samples(catalogue, lambda: _chart_sides((left, right), names), left.first.seed)
    configuration = {BASELINE: left.first.configuration, CANDIDATE: right.first.configuration}
    differences = configuration_differences(configuration[BASELINE], configuration[CANDIDATE])
    builds = build_caveats(left, right, differences)
    built = build_differences(left.speaker.data, right.speaker.data)
    splits = splits_of(parts((left, right)), judgements, catalogue) if parts else None
    charted = frozenset(chart.metric_id for chart in described.charts)
    clues = Clues((left, right), described.breakdowns, why, differences, built, splits, charted)
    finding = with_next_step(finding, judgements, catalogue, clues)
    return Comparison(
        tool_version=tool_version,
        title=title_of(right.first.subject.name, names, builds),
        subtitle=_subtitle(left, right, date),
        date=date,
        verdict=finding.verdict,
        sentence=finding.sentence,
        reasons=[
            *finding.reasons,
            *located(judgements, described.breakdowns, catalogue).values(),
        ],
        advice=finding.advice,
        failed_runs_verdict=decided.failures.verdict,
        baseline=describe(left, names[0]),
        candidate=describe(right, names[1]),
        profile_name=right.first.profile_name,
        profile=right.first.profile,
        workload=right.first.workload,
        workload_differences=decided.workload_differences,
        gates=decided.gates,
        condition_differences=decided.condition_differences,
        configuration_differences=differences,
        changed_from_default={side: result.changed for side, result in configuration.items()},
        changed_per_node={side: result.changed_per_node for side, result in configuration.items()},
        facts=[(row.label, row.values[0], row.values[1]) for row in facts_beside([left.first, right.first])],
        judgements=judgements,
        distributions=described.distributions,
        effect_sizes=described.effect_sizes,
        charts=described.charts,
        followed=follow((left, right), catalogue) if follow else None,
        breakdowns=described.breakdowns,
        builds=built,
        question=question,
        false_alarms=_alarms(decided, history, past),
        anchor=_beside_anchor(anchor, candidate, history, past) if anchor else None,
        splits=splits,
        profiled=why,
        catalogue=catalogue,
        caveats=Caveats.joined([caveats_of(run.manifest for run in [*left.runs, *right.runs]), builds]),
    )
