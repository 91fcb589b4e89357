"""The verdict of two sides, from their runs' summaries alone, as an experiment needs it after every round."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from chainmark.compare.adjusted import Sides, sides_of
from chainmark.compare.estimates import SideEstimates
from chainmark.compare.failures import RunFailures, judge_failures
from chainmark.compare.family import Family, Gated, family_of
from chainmark.compare.gates import condition_differences, incomparable, pair_gates, workload_differences
from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.compare.judge import Bench, judge, unjudged, working_scale
from chainmark.compare.looks import looks_of
from chainmark.compare.margins import learnt_margins, widened_margins
from chainmark.compare.noise import Archive
from chainmark.compare.past import noise_notes
from chainmark.compare.releases import Releases
from chainmark.compare.sides import BASELINE, CANDIDATE, SelectedRuns, check_pair, labels, select
from chainmark.compare.verdict import OwnMargins, VerdictFinding, adjust, find, problem, with_failures, without_metrics
from chainmark.core.catalogue import NO_MARGINS, WIDEST, Bounds, Catalogue, Margins
from chainmark.core.comparison import ConditionDifference, Judgement, Outcome
from chainmark.core.epoch import Epoch
from chainmark.core.manifest import Gate, Scalar, failed_gates
from chainmark.core.metric import Metric, StatisticName
from chainmark.core.question import BaselineKind
from chainmark.core.wording import name_of
from chainmark.stats.intervals import Working


def merged_catalogue(baseline: Catalogue, candidate: Catalogue) -> Catalogue:
    """The candidate's catalogue, extended by metrics of the baseline's alone, so that a missing metric is still listed.

    Args:
        baseline: of the baseline's first judged run.
        candidate: of the candidate's.
    """
    metric_ids = {metric.id for metric in candidate.metrics}
    missing = [metric for metric in baseline.metrics if metric.id not in metric_ids]
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
        trails=candidate.trails,
        published=candidate.published,
        metrics=[*candidate.metrics, *missing],
    )


def _as_printed(catalogue: Catalogue, runs: Sequence[LoadedRun]) -> Catalogue:
    """The catalogue in which every metric is judged by the statistics that imported reports contain, if any.

    A report prints means. A run with logs that is judged by its median would have no counterpart.
    """
    printed_statistics = {
        metric.id: metric.statistics for run in runs if run.manifest.printed for metric in run.catalogue.metrics
    }
    changed = [
        metric.model_copy(update={"judged_by": judged})
        if (judged := _shared_statistics(metric, printed_statistics.get(metric.id, metric.statistics)))
        else metric
        for metric in catalogue.metrics
    ]
    return catalogue.model_copy(update={"metrics": changed}) if printed_statistics else catalogue


def _shared_statistics(metric: Metric, printed: Sequence[StatisticName]) -> list[StatisticName]:
    """The statistics to judge a metric by if one side has only those."""
    return [name for name in metric.judged_by if name in printed] or [
        name for name in printed if name in metric.statistics
    ]


def of_measured(margins: Margins, runs: Sequence[RunData]) -> Margins:
    """The margins whose metrics some of the runs measured: not all scenarios of a plan measure the same."""
    measured_ids = {metric.id for run in runs for metric in run.catalogue.metrics}
    return {metric_id: margin for metric_id, margin in margins.items() if metric_id in measured_ids}


_SETTLED = (Outcome.EQUAL, Outcome.BETTER)


@dataclass(frozen=True)
class Decided:
    """Two sides and their judgements, before descriptions and charts."""

    baseline: SelectedRuns
    candidate: SelectedRuns
    catalogue: Catalogue
    labels: tuple[str, str]
    workload_differences: dict[str, list[Scalar | list[Scalar]]]
    condition_differences: list[ConditionDifference]
    gates: list[Gate]
    judgements: list[Judgement]
    family: Family
    failures: RunFailures
    finding: VerdictFinding
    own_margins: OwnMargins
    releases: Releases | None = None

    @property
    def undecided(self) -> list[str]:
        """The names of the gating metrics without a decision."""
        open_ = [item for item in self.judgements if item.gating and item.outcome not in _SETTLED]
        return [name_of(self.catalogue, item) for item in open_]

    def chances(self) -> dict[int, float]:
        """By runs per side up to the last planned look, the probability that the decision has been reached."""
        table = self.family.table
        if table is None:
            return {}
        further = range(max(table.looks.runs[-1]) + 1, table.looks.planned + 1)
        return table.forecast(further).decided if further else {}


def decide(
    baseline: Sequence[RunData],
    candidate: Sequence[RunData],
    history: Sequence[RunData] = (),
    past: Past | None = None,
    margins: Margins = NO_MARGINS,
    *,
    judges: Collection[str] | None = None,
) -> Decided:
    """Judge a candidate against a baseline, without reading samples.

    Args:
        baseline: one or more runs of one version.
        candidate: likewise, of the same system.
        history: archived runs; those of equal builds, and those of many releases, show the noise between runs.
        past: how the releases among them are used.
        margins: margins that replace the catalogue's.
        judges: the IDs of the metrics that decide; if there are none, only failed runs do. None: all gating ones.

    Raises:
        UsageError: a side is empty or mixes versions, the sides are of different systems, or a margin is of a metric
            that is not judged.

    Source: docs/concepts/verdict.md.
    """
    left, right = select(BASELINE, baseline), select(CANDIDATE, candidate)
    check_pair(left, right)
    merged = merged_catalogue((left.included or left.runs)[0].catalogue, (right.included or right.runs)[0].catalogue)
    merged = _as_printed(merged.judging(judges), [*(left.included or left.runs), *(right.included or right.runs)])
    compared = {run.run_id for side in (left, right) for run in side.runs}
    releases = _releases(left, right, history, past or Past())
    bench = Bench(Archive(compared, left.first, history), looks_of(left, right), releases)
    catalogue, chosen = _judged_by(merged, margins, bench, past or Past())
    workload = workload_differences(left, right)
    conditions = condition_differences(catalogue, left, right)
    gates = pair_gates(left, right, workload)
    because = {**incomparable(catalogue, conditions), **_divided(releases, catalogue, left, right)}
    pair = _Pair(catalogue, left, right, gates, because, bench, past or Past())
    result, gated = pair.gated()
    family = family_of(gated, bench)
    judgements = adjust(result, family, catalogue)
    names = labels(left, right)
    failures = judge_failures((left, right), names)
    own = find(
        (judgements, family), gates, (left, right), names, catalogue, by_history=releases is not None, own=chosen
    )
    if judges is not None and not judges:
        own = without_metrics(own, names)
    finding = with_failures(own, failures)
    if releases is not None:
        finding = replace(finding, reasons=[*finding.reasons, *noise_notes(releases, judgements, catalogue)])
    return Decided(
        left,
        right,
        catalogue,
        names,
        workload,
        conditions,
        gates,
        judgements,
        family,
        failures,
        finding,
        chosen,
        releases,
    )


@dataclass(frozen=True)
class Past:
    """How earlier releases are used.

    Attributes:
        epochs: recorded changes of the set-up.
        baseline: the reference of a candidate: the level of the releases up to the baseline, if there are
            enough of them, or the baseline's own run alone.
        learnt: bounds of the margins that are learnt from re-runs; None: the catalogue's margins are in force.
        widest: if a series of releases shows the noise of single runs, the limit to which the band of equality may
            be widened for re-runs that exceed the catalogue's margin; None: nothing is widened.
    """

    epochs: Sequence[Epoch] = ()
    baseline: BaselineKind = BaselineKind.RUN
    learnt: Bounds | None = None
    widest: float | None = WIDEST


def _judged_by(catalogue: Catalogue, margins: Margins, bench: Bench, past: Past) -> tuple[Catalogue, OwnMargins]:
    """The catalogue with the margins that were set, and the learnt or widened ones if requested."""
    learnt = NO_MARGINS if past.learnt is None else learnt_margins(catalogue, bench, past.learnt)
    margins_used = OwnMargins(frozenset(margins), frozenset(learnt) - frozenset(margins))
    chosen = catalogue.with_margins({**learnt, **margins})
    if bench.releases is not None and past.widest is not None:
        chosen = chosen.with_widened(widened_margins(chosen, bench, past.widest, margins_used.all))
    return chosen, margins_used


def _releases(left: SelectedRuns, right: SelectedRuns, history: Sequence[RunData], past: Past) -> Releases | None:
    """The series of releases, if a side has a single run and there are enough of them."""
    runs = [*(left.included or left.runs), *(right.included or right.runs)]
    if min(len(left.included), len(right.included)) != 1:
        return None
    releases = Releases(runs, history, past.epochs)
    return releases if releases.are_enough else None


def _divided(
    releases: Releases | None, catalogue: Catalogue, left: SelectedRuns, right: SelectedRuns
) -> dict[str, str]:
    """Metrics affected by a recorded change of the set-up between the sides, each with the reason."""
    if releases is None:
        return {}
    runs = [*left.included, *right.included]
    result = {metric.id: releases.noted_between(metric.id, *runs) for metric in catalogue.metrics}
    return {
        metric_id: f"the set-up changed on {epoch.since[:10]} ({epoch.text})"
        for metric_id, epoch in result.items()
        if epoch is not None and epoch.metrics
    }


@dataclass(frozen=True)
class _Pair:
    """The references for the judgement of both sides."""

    catalogue: Catalogue
    baseline: SelectedRuns
    candidate: SelectedRuns
    gates: Sequence[Gate]
    incomparable_because: Mapping[str, str]
    bench: Bench
    past: Past

    def gated(self) -> tuple[list[Judgement], list[Gated]]:
        """All judgements in the report's order, and the gating ones with the values behind them."""
        failed = [problem(gate) for gate in failed_gates(self.gates)] or _without_figures(self.baseline, self.candidate)
        judgements, gating = [], []
        for metric in self.catalogue.ordered():
            for statistic in metric.judged_by:
                sides = self._sides(metric, statistic)
                judgements.append(self._judged(metric, statistic, sides, failed))
                if metric.gating:
                    gating.append(Gated(metric, statistic, sides.baseline, sides.candidate, judgements[-1]))
        return judgements, gating

    def _levelled(self, metric: Metric, statistic: str, left: SideEstimates, right: SideEstimates) -> SideEstimates:
        """The baseline with the level of the releases up to it instead of its run, if requested and available."""
        releases = self.bench.releases
        if releases is None or self.past.baseline is BaselineKind.RUN or left.runs != 1 or not right.values:
            return left
        working = working_scale(metric, left, right)
        level = releases.level((metric.id, statistic, working), self.baseline.included[0])
        if level is None or level.runs == 1:
            return left
        value = math.exp(level.value) if working is Working.LOG else level.value
        return replace(left, values=[value], level=level)

    def _sides(self, metric: Metric, statistic: str) -> Sides:
        left, right = (side.included or side.runs for side in (self.baseline, self.candidate))
        sides = sides_of(self.catalogue, metric, statistic, left, right)
        if sides.note:  # the previous releases' data were not adjusted
            return sides
        return replace(sides, baseline=self._levelled(metric, statistic, sides.baseline, sides.candidate))

    def _judged(self, metric: Metric, statistic: str, sides: Sides, failed: list[str]) -> Judgement:
        left, right = sides.baseline, sides.candidate
        if failed:
            note = f"not judged: {', '.join(failed)}"
            return unjudged(metric, statistic, left, right, outcome=Outcome.INCONCLUSIVE, note=note)
        if metric.id in self.incomparable_because:
            note = f"not comparable: {self.incomparable_because[metric.id]}"
            return unjudged(metric, statistic, left, right, outcome=Outcome.NOT_COMPARABLE, note=note)
        if sides.unlike:
            return unjudged(metric, statistic, left, right, outcome=Outcome.INCONCLUSIVE, note=sides.unlike)
        judged = judge(metric, statistic, left, right, self.bench)
        notes = [note for note in (judged.note, sides.note) if note]
        return judged.model_copy(update={"note": "; ".join(notes)})


def _without_figures(*sides: SelectedRuns) -> list[str]:
    """Sides that failed every run: their figures are shown and never judged."""
    return [f"the {side.name} passed no run" for side in sides if not side.included]
