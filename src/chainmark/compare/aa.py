"""One build against itself: the noise between its runs, and the verdicts on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from chainmark.compare.decide import decide
from chainmark.compare.estimates import collect
from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.compare.judge import accepted_band, working_scale
from chainmark.compare.noise import scaled
from chainmark.compare.sides import select
from chainmark.core.aa_report import AAReport, NoiseRow
from chainmark.core.caveats import caveats_of
from chainmark.core.errors import InvalidRunError, UsageError
from chainmark.core.metric import Better, Metric
from chainmark.core.verdict import Verdict
from chainmark.core.wording import enumerated
from chainmark.stats.intervals import LEVEL, Working, mean_and_variance
from chainmark.stats.special import binomial_at_least, poisson_mean_at_least

LEAST_RUNS = 4
MOST_SPLITS = 40
# The largest number of independent comparisons that the halves amount to.
MOST_TRIALS = 15
_ROUNDING = 1e-9


def aa_report(runs: Sequence[RunData], history: Sequence[RunData], tool_version: str) -> AAReport:
    """Measure the noise of a build's runs, and judge every half of them against the other half.

    Args:
        runs: of one version under one profile.
        history: archived runs, which a verdict would use as well.
        tool_version: recorded in the result.

    Raises:
        InvalidRunError: fewer than four runs are valid.
        UsageError: there are fewer than four.
    """
    side = select("build", runs)
    if len(side.included) < LEAST_RUNS:
        failure = InvalidRunError if side.excluded else UsageError
        raise failure(
            f"only {len(side.included)} of {len(side.runs)} runs are valid; the noise between runs needs {LEAST_RUNS}",
            "; ".join(side.excluded.values()) or "use more runs: `--repeat 8`",
        )
    valid = [run for run in runs if run.manifest.run_id in {item.run_id for item in side.included}]
    valid.sort(key=lambda run: (run.manifest.started_at, run.manifest.run_id))
    splits = dict.fromkeys((Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL), 0)
    for left, right in _halves(valid):
        result = decide(left, right, history).finding.verdict
        splits[result] = splits.get(result, 0) + 1
    judged = [(metric, name) for metric in side.included[0].catalogue.ordered() for name in metric.judged_by]
    rows = [row for metric, name in judged if metric.gating and (row := _noise(metric, name, side.included))]
    manifest, verdict = side.first, _verdict(splits, len(valid) // 2 * 2)
    run_ids = {run.manifest.run_id for run in runs}
    return AAReport(
        tool_version=tool_version,
        title=f"{manifest.subject.name} {manifest.subject.version} against itself",
        subtitle=f"profile {manifest.profile_name} · {len(valid)} runs · {manifest.started_at[:10]}",
        date=max(run.manifest.started_at for run in valid)[:10],
        verdict=verdict,
        sentence=_sentence(verdict, splits, len(valid) // 2, rows),
        runs=[run.manifest.run_id for run in valid],
        left_out=side.excluded,
        noise=rows,
        splits=splits,
        runs_a_side=len(valid) // 2,
        archive_runs=sum(run.manifest.run_id not in run_ids for run in history),
        caveats=caveats_of(run.manifest for run in side.runs),
    )


def _halves(runs: Sequence[RunData]) -> Iterator[tuple[list[RunData], list[RunData]]]:
    """Evenly chosen halves of the runs as the candidate's; an odd last run is omitted."""
    even = runs[: len(runs) // 2 * 2]
    indices = range(len(even))
    ways = [set(chosen) for chosen in combinations(indices, len(even) // 2)]
    for number in range(min(MOST_SPLITS, len(ways))):
        chosen = ways[number * len(ways) // min(MOST_SPLITS, len(ways))]
        yield [even[index] for index in indices if index not in chosen], [even[index] for index in sorted(chosen)]


def _noise(metric: Metric, statistic: str, runs: Sequence[LoadedRun]) -> NoiseRow | None:
    side = collect(runs, metric, statistic)
    if side.runs < 2:
        return None
    working = working_scale(metric, side, side)
    working = Working.DIFFERENCE if working is Working.RATIO else working
    freedom = side.runs - 1.0
    mean, variance = mean_and_variance(scaled(side.values, working))
    band = accepted_band(metric, math.exp(mean) if working is Working.LOG else mean, working)
    worst = band[0] if metric.better is Better.HIGHER else band[1]
    # A sum of squares over its variance is chi-squared: twice a gamma variable of half the degrees of freedom.
    most, least = (2.0 * poisson_mean_at_least(freedom / 2.0, below) for below in (1.0 - LEVEL, LEVEL))
    return NoiseRow(
        metric_id=metric.id,
        label=metric.label,
        statistic=statistic,
        unit=metric.unit,
        is_relative=working is Working.LOG,
        values=side.values,
        mean=math.fsum(side.values) / len(side.values),
        deviation=math.sqrt(variance),
        low=math.sqrt(variance * freedom / most),
        high=math.sqrt(variance * freedom / least),
        margin=abs(math.expm1(worst) if working is Working.LOG else worst),
    )


def false_alarms_exceed(share: float, runs: int) -> bool:
    """Whether the share of halves judged worse contradicts the verdict's error rate of 5 %.

    The halves share their runs. They amount to as many independent comparisons as the runs have degrees of
    freedom, and, because at most 40 halves are judged, to at most 15. With runs without a change, margins of 0 and
    a known or an unknown noise, at most 1.2 % exceed it (4,000 simulated cases each of 4, 6, 8, 12 and 16 runs).

    Args:
        share: of the halves, those judged worse.
        runs: number of runs.

    Source: the binomial distribution, one-sided at 5 %.
    """
    trials = min(runs - 1, MOST_TRIALS)
    return binomial_at_least(math.floor(share * trials + _ROUNDING), trials, LEVEL) <= LEVEL


def _verdict(splits: dict[Verdict, int], runs: int) -> Verdict:
    """A measurement is a result, however small the sample: only too many false alarms are a failure."""
    total = sum(splits.values())
    if splits.get(Verdict.INVALID) == total:
        return Verdict.INVALID
    return Verdict.FAIL if false_alarms_exceed(splits[Verdict.FAIL] / total, runs) else Verdict.PASS


def _sentence(verdict: Verdict, splits: dict[Verdict, int], runs: int, rows: Sequence[NoiseRow]) -> str:
    total = sum(splits.values())
    counts = enumerated([f"{count} {result.predicate(count)}" for result, count in splits.items() if count])
    noisy = max(rows, key=lambda row: row.deviation / row.margin if row.margin > 0.0 else 0.0)
    begin = "Too many false alarms: of" if verdict is Verdict.FAIL else "Of"
    text = (
        f"{begin} {total} comparisons of one half of these runs with the other half, {runs} runs per side, {counts}; "
        f"the noisiest metric relative to its margin is {noisy.label} ({noisy.statistic})"
    )
    all_pass = splits.get(Verdict.PASS) == total
    return text if all_pass else f"{text}; reduce that noise first, or use more runs per side"
