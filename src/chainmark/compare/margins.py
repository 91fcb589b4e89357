"""Margins learnt from the differences of re-runs, and the decisions that a margin allows, before any run."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from chainmark.compare.judge import Bench, accepted_band
from chainmark.compare.noise import ArchiveSpread
from chainmark.core.catalogue import Bounds, Catalogue, Margins
from chainmark.core.margin_report import MarginRow
from chainmark.core.metric import Better, Kind, Metric
from chainmark.core.wording import judged_name
from chainmark.stats.intervals import Working
from chainmark.stats.special import t_cdf, t_quantile

# For the change of a re-run, which is a difference of two runs.
DEVIATIONS = 3.0
_RUNS_A_SIDE = (1, 2, 3)


def learnt_margin(deviation: float, better: Better, bounds: Bounds) -> float:
    """The relative margin that accepts the noise of re-runs: three standard deviations of the change of a re-run.

    A re-run differs from its run by the noise of both, so the deviation of that change is √2 that of one run. With a
    margin of three such deviations, nine in ten unchanged releases are called equal with one run per side if the noise
    is well known.

    Args:
        deviation: the standard deviation of one run, on the scale of logarithms.
        better: whether the margin is for improvements.
        bounds: the limits that the team permits for a margin.

    Returns:
        A fraction of the baseline, like a catalogue's margin.
    """
    change = DEVIATIONS * math.sqrt(2.0) * deviation
    relative = -math.expm1(-change) if better is Better.HIGHER else math.expm1(change)
    return min(max(relative, bounds.low), bounds.high)


def chance_to_pass(margin: float, deviation: float, freedom: float, runs: int, level: float) -> float:
    """The probability that this many runs per side call an unchanged release equal.

    That is P(d + t·e < m) for a change d of an unchanged release with the standard error e = s·√(2/R), which is known
    with ν degrees of freedom and 2(R − 1) of the runs' own: T(m/e − t), T being the distribution of t.

    Args:
        margin: the accepted worsening, on the scale of logarithms.
        deviation: of one run, on the same scale; its estimate is used as the true value.
        freedom: of the deviation.
        runs: per side.
        level: the error of the interval at either end.

    Source: two one-sided tests, Schuirmann (1987).
    """
    error, known = deviation * math.sqrt(2.0 / runs), freedom + 2.0 * (runs - 1)
    return t_cdf(margin / error - t_quantile(1.0 - level, known), known)


def is_inside_noise(margin: float, deviation: float, freedom: float, level: float) -> bool:
    """Whether a pair of runs without any change is not shown to be equal by a margin.

    Args:
        margin, deviation, freedom, level: as for `chance_to_pass`.
    """
    return margin <= t_quantile(1.0 - level, freedom) * math.sqrt(2.0) * deviation


def learnable(metric: Metric) -> bool:
    """Whether a margin can be learnt for a metric: it decides, and is compared by its ratio."""
    return metric.gating and metric.kind is Kind.POSITIVE


def learnt_margins(catalogue: Catalogue, bench: Bench, bounds: Bounds) -> Margins:
    """Margins by metric id, without metrics whose noise is unknown.

    Args:
        catalogue: of the comparison.
        bench: knows the noise.
        bounds: the team's limits.

    Returns:
        If a metric is judged by several statistics, the margin of the noisiest.
    """
    results: dict[str, float] = {}
    for metric, _, spread in _noises(catalogue, bench):
        margin = learnt_margin(math.sqrt(spread.variance), metric.better, bounds)
        results[metric.id] = max(margin, results.get(metric.id, 0.0))
    return results


def widened_margins(catalogue: Catalogue, bench: Bench, widest: float, retained: Collection[str] = ()) -> Margins:
    """Margins by metric id that accept the noise of re-runs: for `Catalogue.with_widened`, if wider than its own.

    Such a margin widens the band of equality, but not the limit of worse: a change shown to be beyond the
    metric's own margin stays a regression. Margins that were set or learnt are a team's decision and stay.

    Args:
        catalogue: with the margins in force.
        bench: knows the noise.
        widest: the limit for all margins.
        retained: the metrics whose margins were set or learnt.
    """
    result = learnt_margins(catalogue, bench, Bounds(0.0, widest))
    return {name: margin for name, margin in result.items() if name not in retained}


def margin_rows(catalogue: Catalogue, bench: Bench, bounds: Bounds) -> list[MarginRow]:
    """The decisions that the margins in force and the learnt ones allow.

    Args:
        catalogue: with the margins in force.
        bench, bounds: as for `learnt_margins`.
    """
    learnt = catalogue.with_margins(learnt_margins(catalogue, bench, bounds))
    level = bench.level()
    rows = []
    for metric, statistic, spread in _noises(catalogue, bench):
        deviation, freedom = math.sqrt(spread.variance), spread.degrees_of_freedom
        current, other = _worsening(metric), _worsening(learnt.metric(metric.id))
        chances, learnt_chances = (
            {runs: chance_to_pass(margin, deviation, freedom, runs, level) for runs in _RUNS_A_SIDE}
            for margin in (current, other)
        )
        rows.append(
            MarginRow(
                metric_id=metric.id,
                label=judged_name(metric, statistic),
                statistic=statistic,
                deviation=deviation,
                degrees_of_freedom=freedom,
                noise=spread.source,
                margin=metric.accepted,
                widened_from=metric.margin if metric.accepted > metric.margin else None,
                learnt=learnt.metric(metric.id).margin,
                inside_noise=is_inside_noise(current, deviation, freedom, level),
                learnt_inside_noise=is_inside_noise(other, deviation, freedom, level),
                chances=chances,
                learnt_chances=learnt_chances,
            )
        )
    return rows


def unknown_noise(catalogue: Catalogue, rows: Sequence[MarginRow]) -> list[str]:
    """The names of the gating metrics without a row."""
    reported = {(row.metric_id, row.statistic) for row in rows}
    return [
        judged_name(metric, statistic)
        for metric in catalogue.ordered()
        for statistic in metric.judged_by
        if metric.gating and (metric.id, statistic) not in reported
    ]


def _worsening(metric: Metric) -> float:
    """The margin of worsening on the scale of logarithms, without the floor, which depends on the baseline's value."""
    plain = metric.model_copy(update={"floor": 0.0, "margin": metric.accepted})
    band = accepted_band(plain, 1.0, Working.LOG)
    return -band[0] if metric.better is Better.HIGHER else band[1]


def _noises(catalogue: Catalogue, bench: Bench) -> list[tuple[Metric, str, ArchiveSpread]]:
    judged = [(metric, name) for metric in catalogue.ordered() if learnable(metric) for name in metric.judged_by]
    results = [(metric, name, bench.spread(metric, name, Working.LOG)) for metric, name in judged]
    return [(metric, name, spread) for metric, name, spread in results if spread is not None and spread.variance > 0.0]
