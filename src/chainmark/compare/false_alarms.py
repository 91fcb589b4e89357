"""The false alarms of a history: re-runs of one build, judged as two releases by the noise of the others."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl

from chainmark.compare.decide import Decided, Past, decide
from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.compare.noise import build_of
from chainmark.compare.releases import Releases
from chainmark.core import units
from chainmark.core.caveats import caveats_of
from chainmark.core.comparison import Outcome
from chainmark.core.distribution import Estimate
from chainmark.core.errors import UsageError
from chainmark.core.false_alarms import PROMISED, FalseAlarms, HistoryCheck, SplitAlarms
from chainmark.core.manifest import Manifest
from chainmark.core.verdict import Verdict
from chainmark.core.wording import change_with_interval, name_of
from chainmark.stats.intervals import LEVEL
from chainmark.stats.samples import FrameSamples
from chainmark.stats.special import binomial_at_least, normal_quantile
from chainmark.stats.summarise import summarise

MOST_PAIRS = 12  # the newest; more take too long
MOST_SPLITS = 4
_BLOCKS = 20  # of time, alternating between the halves, so that both contain a drift within the run
_LEAST_SAMPLES = 100  # per half
_EXAMPLES = 6


def re_run_alarms(like: RunData, history: Sequence[RunData], past: Past) -> FalseAlarms:
    """Judge every run of a build against its previous run, without either in the noise (leave-one-out).

    Args:
        like: a run of the workload and machine in question.
        history: any runs.
        past: as for the verdict that this accompanies.

    Returns:
        An empty result if no build was run again.
    """
    runs = [LoadedRun(run) for run in history]  # read once for all pairs
    series = Releases([LoadedRun(like)], runs, past.epochs, leave_out=False)
    changed = {(change.metric_id, change.started) for change in series.setup_changes}
    by_id = {run.manifest.run_id: run for run in runs}
    false_alarms = FalseAlarms()
    for re_run, other in list(_re_runs(series.runs))[-MOST_PAIRS:]:
        decided = decide([by_id[re_run.run_id]], [by_id[other.run_id]], runs, replace(past, learnt=None))
        since = other.manifest.started_at
        aside = {metric_id for metric_id, started in changed if started == since}
        false_alarms = _counted(false_alarms, _named(re_run, other), decided, aside)
    return false_alarms


def _re_runs(series: Sequence[LoadedRun]) -> Iterator[tuple[LoadedRun, LoadedRun]]:
    """Consecutive runs of one build, the oldest first."""
    groups: dict[str, list[LoadedRun]] = {}
    for run in series:
        groups.setdefault(build_of(run), []).append(run)
    pairs = [pair for group in groups.values() for pair in pairwise(group)]
    yield from sorted(pairs, key=lambda pair: (pair[1].manifest.started_at, pair[1].run_id))


def _named(item: LoadedRun, other: LoadedRun) -> str:
    first, second = (run.manifest.started_at[:10] for run in (item, other))
    return f"{other.manifest.subject.version}, {first} and {second}"


def _counted(so_far: FalseAlarms, name: str, decided: Decided, changed: Collection[str]) -> FalseAlarms:
    """The counts with one more pair; a pair that shows a changed set-up counts as neither correct nor wrong."""
    judgements, catalogue = decided.judgements, decided.catalogue
    aside = [item for item in judgements if item.outcome is Outcome.NOT_COMPARABLE or item.metric_id in changed]
    judged = [item for item in judgements if item not in aside and item.beyond_noise is not None]
    gating, moved = [item for item in judged if item.gating], [item for item in judged if item.beyond_noise]
    messages = [
        f"{name_of(catalogue, item)} of {name}: {change_with_interval(item, catalogue.metric(item.metric_id))}"
        for item in moved
    ]
    return FalseAlarms(
        pairs=[*so_far.pairs, name],
        figures=so_far.figures + len(judged),
        moved=so_far.moved + len(moved),
        gating=so_far.gating + len(gating),
        worse=so_far.worse + sum(item.outcome is Outcome.WORSE for item in gating),
        undecided=so_far.undecided + sum(item.outcome is Outcome.INCONCLUSIVE for item in gating),
        alarmed=so_far.alarmed + any(item.gating for item in moved),
        set_aside=so_far.set_aside + len(aside),
        examples=[*so_far.examples, *messages],
    )


def split_alarms(runs: Sequence[RunData]) -> SplitAlarms:
    """Split the newest runs that have samples into halves, and judge one against the other by their errors alone.

    The halves differ only by chance, so of independent figures one in twenty is beyond 1.96 standard errors;
    many more indicate that the error within a run is underestimated.

    Args:
        runs: the oldest first.

    Source: docs/concepts/verdict.md, "False alarms".
    """
    result = SplitAlarms()
    for run in reversed(runs):
        if run.manifest.printed or len(result.runs) == MOST_SPLITS:
            continue
        distances = list(_distances(run))
        if distances:
            beyond = sum(abs(distance) > normal_quantile(1.0 - PROMISED / 2.0) for distance in distances)
            result = SplitAlarms(
                runs=[*result.runs, run.manifest.run_id],
                figures=result.figures + len(distances),
                moved=result.moved + beyond,
            )
    return result


def _distances(run: RunData) -> Iterator[float]:
    """The difference of the halves over its standard error, for every judged figure."""
    timed = {
        population.id: population.time_key
        for population in run.catalogue.populations
        if population.time_key is not None
    }
    frames = {name: frame for name in timed if not (frame := run.samples(name)).is_empty()}
    halves = [
        {name: _half(frame, timed[name], half_number) for name, frame in frames.items()} for half_number in (0, 1)
    ]
    columns = {name: frame.columns for name, frame in halves[0].items() if len(frame) >= _LEAST_SAMPLES}
    if not columns:
        return
    catalogue = run.catalogue.sampled(columns)
    messages = [
        {
            metric_summary.metric_id: metric_summary
            for metric_summary in summarise(catalogue, FrameSamples(half), run.manifest.seed)
        }
        for half in halves
    ]
    for metric in catalogue.ordered():
        for statistic in metric.judged_by:
            left, right = (half[metric.id].estimates.get(statistic) for half in messages)
            if left is not None and right is not None and (distance := _distance(left, right)) is not None:
                yield distance


def _half(frame: pl.DataFrame, time_key: str, place: int) -> pl.DataFrame:
    """Every other block of time."""
    time = frame[time_key].cast(pl.Float64).to_numpy()
    start, end = float(np.nanmin(time)), float(np.nanmax(time))
    block = np.minimum(np.floor((time - start) / max(end - start, 1e-9) * _BLOCKS), _BLOCKS - 1)
    return frame.filter(pl.Series(block % 2 == place))


def _distance(left: Estimate, right: Estimate) -> float | None:
    errors = (left.standard_error, right.standard_error)
    if left.value is None or right.value is None or None in errors:
        return None
    error = math.hypot(*(item or 0.0 for item in errors))
    return (right.value - left.value) / error if error > 0.0 else None


def history_check(like: RunData, history: Sequence[RunData], past: Past, tool_version: str) -> HistoryCheck:
    """The false alarms of a history as a result: over re-runs of its builds, and over splits of its runs.

    It fails if significantly more than 5 % of the pairs have a gating figure reported as moved. A pair counts once,
    because its figures move together.

    Args:
        like, history, past: as for `re_run_alarms`.
        tool_version: recorded in the result.

    Raises:
        UsageError: no build was run again, and no run has samples to split.
    """
    false_alarms = re_run_alarms(like, history, past)
    series = Releases([LoadedRun(like)], history, leave_out=False).runs
    series_ids = {run.run_id for run in series}
    splits = split_alarms([run for run in history if run.manifest.run_id in series_ids])
    if not false_alarms.figures and not splits.figures:
        raise UsageError(
            "no build in this history has re-runs, and no run has samples to split",
            "measure one build several times: `chainmark aa PROFILE --version V`",
        )
    pairs = len(false_alarms.pairs)
    exceeds = bool(pairs) and binomial_at_least(false_alarms.alarmed, pairs, PROMISED) <= LEVEL
    manifest: Manifest = like.manifest
    return HistoryCheck(
        tool_version=tool_version,
        title=f"{manifest.subject.name}: false alarms in the history",
        subtitle=f"profile {manifest.profile_name} · {units.plural(len(series), 'run')}",
        date=max(run.manifest.started_at for run in series)[:10],
        verdict=Verdict.FAIL if exceeds else Verdict.PASS,
        sentence=false_alarms.rate_sentence or "no build has re-runs: only splits of single runs were judged",
        re_runs=false_alarms.model_copy(update={"examples": false_alarms.examples[:_EXAMPLES]}),
        splits=splits,
        caveats=caveats_of(run.manifest for run in series),
    )
