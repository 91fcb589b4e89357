"""The comparison of two sides, from their runs to ``comparison.json``."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.compare.charts import ChartSide, charts_of, pooled
from chainmark.compare.estimates import collect
from chainmark.compare.gates import (
    condition_differences,
    configuration_differences,
    pair_gates,
    workload_differences,
)
from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.compare.judge import Judged, judge, unjudged
from chainmark.compare.noise import Archive
from chainmark.compare.sides import BASELINE, CANDIDATE, SelectedRuns, check_pair, describe, labels, select
from chainmark.compare.verdict import adjust, find, problem
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import ChartData, Comparison, DistributionRow, EffectSize, Outcome
from chainmark.core.manifest import Gate, GateStatus
from chainmark.core.metric import Metric
from chainmark.stats.centiles import distribution
from chainmark.stats.effects import largest_gap, probability_larger, wasserstein


def merged_catalogue(baseline: Catalogue, candidate: Catalogue) -> Catalogue:
    """The candidate's catalogue, and what only the baseline's has, so that a metric that vanished is still listed.

    Args:
        baseline: of the baseline's first judged run.
        candidate: of the candidate's.
    """
    known = {metric.id for metric in candidate.metrics}
    missing = [metric for metric in baseline.metrics if metric.id not in known]
    if not missing:
        return candidate
    populations = {population.id for population in candidate.populations}
    tables = {table.id for table in candidate.tables}
    return Catalogue(
        system=candidate.system,
        title=candidate.title,
        populations=[*candidate.populations, *(item for item in baseline.populations if item.id not in populations)],
        tables=[*candidate.tables, *(item for item in baseline.tables if item.id not in tables)],
        conditions=candidate.conditions,
        metrics=[*candidate.metrics, *missing],
    )


def _judgements(
    catalogue: Catalogue, baseline: SelectedRuns, candidate: SelectedRuns, archive: Archive, gates: Sequence[Gate]
) -> list[Judged]:
    failed = [problem(gate) for gate in gates if gate.status is GateStatus.FAIL]
    result = []
    for metric in catalogue.ordered():
        for statistic in metric.judged_by:
            left = collect(baseline.included or baseline.runs, metric, statistic)
            right = collect(candidate.included or candidate.runs, metric, statistic)
            if failed:
                note = f"not judged: {', '.join(failed)}"
                plain = unjudged(metric, statistic, left, right, outcome=Outcome.INCONCLUSIVE, note=note)
                result.append(Judged(plain))
            else:
                result.append(judge(metric, statistic, left, right, archive))
    return result


def _distribution_row(metric: Metric, side: SelectedRuns) -> DistributionRow:
    runs = side.included or side.runs
    found = distribution(pooled(runs, metric))
    rows = sum(run.samples(metric.population).height for run in runs)
    if found is None:
        return DistributionRow(
            metric_id=metric.id, side=side.name, n=0, n_null=rows, mean=None, sd=None, min=None, max=None, centiles=[]
        )
    return DistributionRow(
        metric_id=metric.id,
        side=side.name,
        n=found.n,
        n_null=rows - found.n,
        mean=found.mean,
        sd=found.sd,
        min=found.min,
        max=found.max,
        centiles=found.centiles,
    )


def _effect_sizes(catalogue: Catalogue, baseline: SelectedRuns, candidate: SelectedRuns) -> list[EffectSize]:
    result = []
    for metric in catalogue.ordered():
        left = pooled(baseline.included or baseline.runs, metric)
        right = pooled(candidate.included or candidate.runs, metric)
        if len(left) == 0 or len(right) == 0:
            continue
        gap, at = largest_gap(left, right)
        result.append(
            EffectSize(
                metric_id=metric.id,
                probability_candidate_larger=probability_larger(left, right),
                wasserstein=wasserstein(left, right),
                largest_gap=gap,
                largest_gap_at=at,
            )
        )
    return result


def _interleaved(baseline: SelectedRuns, candidate: SelectedRuns) -> bool:
    """Whether one experiment made both sides, and neither was finished before the other began."""
    places = [[run.manifest.experiment for run in side.runs] for side in (baseline, candidate)]
    known = [place for side in places for place in side if place is not None]
    if len(known) < len(baseline.runs) + len(candidate.runs) or len({place.id for place in known}) > 1:
        return False
    left, right = ([place.position for place in side if place is not None] for side in places)
    return max(left) > min(right) and max(right) > min(left)


def _subtitle(baseline: SelectedRuns, candidate: SelectedRuns, date: str) -> str:
    names = list(dict.fromkeys([baseline.first.profile_name, candidate.first.profile_name]))
    noun = "profile" if len(names) == 1 else "profiles"
    runs = f"{len(baseline.included)} + {len(candidate.included)} runs"
    order = ", interleaved" if _interleaved(baseline, candidate) else ""
    return f"{noun} {' and '.join(names)} · {runs}{order} · {date}"


def _charts(
    catalogue: Catalogue, baseline: SelectedRuns, candidate: SelectedRuns, names: tuple[str, str]
) -> list[ChartData]:
    sides = [
        ChartSide(side.name, label, side.included or side.runs)
        for side, label in zip((baseline, candidate), names, strict=True)
    ]
    return [
        chart
        for metric in catalogue.ordered()
        for chart in charts_of(sides, metric, catalogue.population(metric.population), baseline.first.seed)
    ]


def compare(
    baseline: Sequence[RunData],
    candidate: Sequence[RunData],
    *,
    history: Sequence[RunData] = (),
    tool_version: str,
) -> Comparison:
    """Compare a candidate with a baseline.

    Args:
        baseline: one or more runs of one version.
        candidate: likewise, of the same system.
        history: archived runs; where a side has one run, those of equal builds show the noise between runs.
        tool_version: recorded in the result.

    Returns:
        Everything that a report shows. The same runs give the same bytes, in whatever order they are given.

    Raises:
        UsageError: a side is empty or mixes versions, or the sides are of different systems.

    Source: docs/concepts/verdict.md.
    """
    left, right = select(BASELINE, baseline), select(CANDIDATE, candidate)
    check_pair(left, right)
    catalogue = merged_catalogue((left.included or left.runs)[0].catalogue, (right.included or right.runs)[0].catalogue)
    names = labels(left, right)
    workload = workload_differences(left, right)
    conditions = condition_differences(catalogue, left, right)
    gates = pair_gates(left, right, workload)
    archive = Archive([*map(LoadedRun, history), *left.included, *right.included], left.first)
    judged = adjust(_judgements(catalogue, left, right, archive, gates), catalogue)
    finding = find(judged, gates, (left, right), names, catalogue)
    date = max(run.manifest.started_at for run in [*left.runs, *right.runs])[:10]
    configuration = {BASELINE: left.first.configuration, CANDIDATE: right.first.configuration}
    return Comparison(
        tool_version=tool_version,
        title=f"{right.first.subject.name} {names[1]} against {names[0]}",
        subtitle=_subtitle(left, right, date),
        date=date,
        verdict=finding.verdict,
        sentence=finding.sentence,
        reasons=finding.reasons,
        advice=finding.advice,
        baseline=describe(left, names[0]),
        candidate=describe(right, names[1]),
        profile_name=right.first.profile_name,
        profile=right.first.profile,
        workload=right.first.workload,
        workload_differences=workload,
        gates=gates,
        condition_differences=conditions,
        configuration_differences=configuration_differences(configuration[BASELINE], configuration[CANDIDATE]),
        changed_from_default={side: found.changed for side, found in configuration.items()},
        changed_per_node={side: found.changed_per_node for side, found in configuration.items()},
        judgements=[item.judgement for item in judged],
        distributions=[_distribution_row(metric, side) for metric in catalogue.ordered() for side in (left, right)],
        effect_sizes=_effect_sizes(catalogue, left, right),
        charts=_charts(catalogue, left, right, names),
        catalogue=catalogue,
    )
