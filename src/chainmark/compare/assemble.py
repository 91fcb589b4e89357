"""The comparison of two sides, from their runs to ``comparison.json``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from chainmark.compare.attribution import located
from chainmark.compare.build_differences import build_differences
from chainmark.compare.builds import build_caveats, title_of
from chainmark.compare.costs import costs_of
from chainmark.compare.decide import Decided, Past, decide
from chainmark.compare.facts import facts_beside
from chainmark.compare.false_alarms import re_run_alarms
from chainmark.compare.gates import (
    configuration_differences,
)
from chainmark.compare.inputs import RunData
from chainmark.compare.next_step import Clues, with_next_step
from chainmark.compare.sample_distributions import describe_samples
from chainmark.compare.sides import BASELINE, CANDIDATE, SelectedRuns, are_interleaved, describe
from chainmark.compare.split import PartsOf, splits_of
from chainmark.core.catalogue import NO_MARGINS, Catalogue, Margins
from chainmark.core.caveats import Caveats, caveats_of
from chainmark.core.comparison import (
    AnchorView,
    Comparison,
    Followed,
)
from chainmark.core.false_alarms import FalseAlarms
from chainmark.core.parts import Machines
from chainmark.core.profiled import Profiled
from chainmark.core.question import Question

Follow = Callable[[Sequence[SelectedRuns], Catalogue], Followed | None]


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
    machines: Machines | None = None,
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
        machines: other machines that describe the samples; they need not have the runs.
        tool_version: recorded in the result.

    Returns:
        The content of a report. The same runs give the same bytes, in any order.

    Raises:
        UsageError: a side is empty or mixes versions, the sides are of different systems, or a margin is of a metric
            that is not judged.
        ChainmarkError: the machines failed.

    Source: docs/concepts/verdict.md.
    """
    decided = decide(baseline, candidate, history, past, margins, judges=judges)
    left, right, catalogue, names = decided.baseline, decided.candidate, decided.catalogue, decided.labels
    finding = costs_of(decided) if question is Question.COST else decided.finding
    judgements = decided.judgements
    date = max(run.manifest.started_at for run in [*left.runs, *right.runs])[:10]
    described = describe_samples(catalogue, (left, right), names, machines)
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
