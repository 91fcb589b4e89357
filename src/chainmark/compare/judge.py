"""The outcome of one metric: its change with an interval, compared with one effective margin."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from chainmark.compare.estimates import SideEstimates, combined, side_value
from chainmark.compare.noise import Archive, ArchiveSpread, difference_of_noise, scaled
from chainmark.compare.releases import Releases
from chainmark.core import units
from chainmark.core.comparison import Judgement, Outcome, Scale
from chainmark.core.metric import Better, Kind, Metric
from chainmark.stats import intervals, power
from chainmark.stats.intervals import Contrast, Spread, Working
from chainmark.stats.sequential import Looks, lone_levels
from chainmark.stats.special import t_quantile

# Assumed noise between runs without measurements: as observed for networks on one machine, so that an unchanged
# release does not fail by it.
ASSUMED_NOISE = 0.10
LEVEL_STATED = "the baseline is the level of"  # in the noise of a judgement
_LARGEST_LOG = 700.0  # e to this power is the largest ratio that a float can represent
ROUNDING = 1e-12
_POOLED = (Kind.COUNT, Kind.PROPORTION)


@dataclass(frozen=True)
class Bench:
    """The context of a judgement besides the two sides: earlier runs of equal builds, and the looks at the experiment.

    Without context, a judgement is based on the two sides alone, looked at once.

    Attributes:
        releases: the series of releases that shows the noise of single runs; None if a side has several.
    """

    archive: Archive | None = None
    looks: Looks = field(default_factory=lambda: Looks(((1, 1),), 1))
    releases: Releases | None = None

    def spread(self, metric: Metric, statistic: str, working: Working) -> ArchiveSpread | None:
        """The noise of a statistic between runs from the series of releases or the archive, if either shows it."""
        reported = self.releases.spread(metric.id, statistic, working) if self.releases else None
        if reported is not None:
            return reported
        return self.archive.spread(metric.id, statistic, working) if self.archive else None

    def level(self, archive: int = 0) -> float:
        """The error of an interval at each end, at this look, with the archive's degrees of freedom."""
        return lone_levels(replace(self.looks, archive=archive))[-1]


@dataclass(frozen=True)
class NotedContrast:
    """A contrast, the source of its noise, and the error of its interval at each end."""

    contrast: Contrast
    noise: str
    level: float


def working_scale(metric: Metric, baseline: SideEstimates, candidate: SideEstimates) -> Working:
    """The scale on which a metric is compared.

    Positive metrics by the logarithm of the ratio, counts by the ratio, all others by the difference. If a ratio
    does not exist (a positive metric with a value of 0 or below, a count whose baseline is 0) it is the difference.
    The same applies to counts so rare that the floor is the margin, because the ratio of two rare counts can be
    anything while their difference is well known.
    """
    if metric.kind is Kind.POSITIVE and min([*baseline.values, *candidate.values]) > 0.0:
        return Working.LOG
    if metric.kind is Kind.COUNT and baseline.total > 0.0:
        is_rare = metric.margin * baseline.total / baseline.exposure < metric.floor
        return Working.DIFFERENCE if is_rare else Working.RATIO
    return Working.DIFFERENCE


def _between_runs(
    metric: Metric, statistic: str, working: Working, sides: tuple[SideEstimates, SideEstimates], bench: Bench
) -> NotedContrast:
    """The interval from the differences between runs: those of both sides, and the archive's."""
    baseline, candidate = sides
    if working is Working.RATIO:
        noise = f"between {baseline.runs} + {candidate.runs} runs (Welch)"
        level = bench.level()
        return NotedContrast(intervals.welch_ratio(baseline.values, candidate.values, level), noise, level)
    values = [scaled(side.values, working) for side in sides]
    spread, archived = intervals.own_spread(*values), bench.spread(metric, statistic, working)
    noise = f"between {baseline.runs} + {candidate.runs} runs"
    if archived is not None and (contradiction := difference_of_noise(spread, archived)):
        noise += f", {contradiction}"
        archived = None
    elif archived is not None:
        noise += f" and {_named(archived)}"
    level = bench.level(round(archived.degrees_of_freedom) if archived else 0)
    return NotedContrast(intervals.pooled(values[0], values[1], working, archived, level), noise, level)


def cannot_be_decided_by_one_pair(metric: Metric) -> bool:
    """Whether one run per side, with the assumed noise, cannot show that an unchanged metric is within its margin.

    By the margin alone: the floor's effect depends on values that are not known yet.
    """
    if metric.kind is not Kind.POSITIVE:
        return False
    error = max(metric.default_noise, ASSUMED_NOISE) * math.sqrt(2.0)
    return math.log1p(metric.margin) <= t_quantile(1.0 - Bench().level(), None) * error


def _within_squared(side: SideEstimates, *, logarithmic: bool) -> float:
    errors = side.log_standard_errors if logarithmic else side.standard_errors
    return math.fsum(error * error for error in errors) / (side.runs * side.runs)


def _shown(own: Spread, known: ArchiveSpread | None, runs: str) -> tuple[Spread | None, str]:
    """The noise that the side with several runs and the archive show, and its name; None if neither shows any."""
    if own.degrees_of_freedom == 0.0:
        return known, known.source if known else ""
    noise = f"noise between {runs} runs"
    if known is None:
        return own, noise
    if contradiction := difference_of_noise(own, known):
        return own, f"{noise}, {contradiction}"
    both = Spread(own.squares + known.squares, own.degrees_of_freedom + known.degrees_of_freedom)
    return both, f"{noise} and {_named(known)}"


def _named(known: ArchiveSpread) -> str:
    return known.description or f"{known.runs} of the archive"


def _assumed_unit(metric: Metric, value: float) -> float:
    """The reference of the assumed noise: the value; of a proportion the rarer outcome, mostly failures."""
    return min(abs(value), abs(1.0 - value)) if metric.kind is Kind.PROPORTION else abs(value)


def _single_run(
    metric: Metric, statistic: str, working: Working, sides: tuple[SideEstimates, SideEstimates], bench: Bench
) -> NotedContrast:
    """One run on a side: the noise between runs comes from the other side and the archive, or is assumed."""
    baseline, candidate = sides
    own_spread = intervals.own_spread(*(scaled(side.values, working) for side in sides))
    spread, noise = _shown(own_spread, bench.spread(metric, statistic, working), f"{baseline.runs} + {candidate.runs}")
    base, other = combined(metric, baseline) or 0.0, combined(metric, candidate) or 0.0
    logarithmic = working is Working.LOG
    assumed = max(metric.default_noise, ASSUMED_NOISE)
    unit = 1.0 if logarithmic else max(_assumed_unit(metric, value) for value in (base, other))
    deviation = math.sqrt(spread.variance) if spread else assumed * unit
    noise = noise if spread else f"assumed noise, {units.plain_percent(assumed)} between runs"
    within_a = _within_squared(baseline, logarithmic=logarithmic)
    within_b = _within_squared(candidate, logarithmic=logarithmic)
    between_a, between_b = deviation**2 / baseline.runs, deviation**2 / candidate.runs
    if baseline.level is not None:
        between_a, within_a = baseline.level.variance, 0.0
        noise += f"; {LEVEL_STATED} {units.plural(baseline.level.runs, 'release')}"
    if working is Working.RATIO:
        ratio = other / base
        within_a, between_a = within_a * ratio * ratio, between_a * ratio * ratio
    within, between = within_a + within_b, between_a + between_b
    if within > between:
        noise = f"within-run error, which is larger than the {noise}"
    error = math.sqrt(max(within, between))
    change = intervals.difference_of(base, other)
    if working is Working.RATIO:
        error, change = error / base, change / base
    elif logarithmic:
        change = math.log1p(change / base)
    freedom = spread.degrees_of_freedom if spread else None
    level = bench.level()
    contrast = intervals.from_standard_error(change, error, freedom, working, level)
    return NotedContrast(intervals.not_below_zero(contrast) if working is Working.RATIO else contrast, noise, level)


def _pooled(
    metric: Metric, working: Working, baseline: SideEstimates, candidate: SideEstimates, level: float
) -> NotedContrast:
    totals = (round(baseline.total), float(baseline.exposure), round(candidate.total), float(candidate.exposure))
    if metric.kind is Kind.PROPORTION:
        return NotedContrast(intervals.newcombe(*totals, level), "binomial (Newcombe) on the pooled totals", level)
    make = intervals.poisson_ratio if working is Working.RATIO else intervals.poisson_difference
    return NotedContrast(make(*totals, level), "Poisson on the pooled totals", level)


def contrast_of(
    metric: Metric, statistic: str, baseline: SideEstimates, candidate: SideEstimates, bench: Bench
) -> NotedContrast:
    """The change with its interval, on the metric's working scale.

    Args:
        metric: defines how its values are compared.
        statistic: "mean", "p99" …
        baseline: at least one run with a value.
        candidate: likewise.
        bench: the archive, and the looks at the experiment.

    Returns:
        For counts and proportions the wider of the interval between runs and the one of the pooled totals.
    """
    working = working_scale(metric, baseline, candidate)
    between = (_between_runs if min(baseline.runs, candidate.runs) > 1 else _single_run)(
        metric, statistic, working, (baseline, candidate), bench
    )
    if metric.kind not in _POOLED:
        return between
    pooled = _pooled(metric, working, baseline, candidate, bench.level())
    narrower, wider = sorted((between, pooled), key=lambda noted: noted.contrast.width)
    return replace(wider, noise=f"{wider.noise}, wider than {narrower.noise}")


def effective_margin(metric: Metric, base: float, scale: Scale, margin: float | None = None) -> float:
    """The joint margin of the margin and the floor: ``max(margin, floor / |base|)``, on ``scale``.

    Args:
        metric: its relative margin, and its floor in the unit.
        base: the baseline's value, in the unit.
        scale: RELATIVE gives a fraction of the baseline, ABSOLUTE the unit.
        margin: another relative margin than the metric's own.
    """
    absolute = max((metric.margin if margin is None else margin) * abs(base), metric.floor)
    return absolute if scale is Scale.ABSOLUTE else absolute / abs(base)


def _band(margin: float, working: Working) -> tuple[float, float]:
    if working is not Working.LOG:
        return -margin, margin
    return math.log1p(-margin) if margin < 1.0 else -math.inf, math.log1p(margin)


@dataclass(frozen=True)
class Direction:
    """A contrast with worse up: the only place where better and worse get a sign.

    Attributes:
        low, high: the interval of the worsening.
        margin: the worsening beyond which it is worse.
        accepted: the worsening up to which it is equal: the margin, or more if re-runs alone exceed that.
        p_worse: one-sided p-value of a worsening beyond the margin.
        sign: +1 when a larger value is worse, -1 when a smaller one is.
    """

    low: float
    high: float
    margin: float
    accepted: float
    p_worse: float
    sign: int


Band = tuple[float, float]  # the lower and the upper end of a change, on the working scale


def towards_worse(better: Better, contrast: Contrast, band: Band, accepted: Band) -> Direction:
    """Turn a contrast so that worse is up.

    Args:
        better: LOWER or HIGHER; NEITHER is treated as LOWER and must not be judged by it.
        contrast: candidate against baseline.
        band: beyond it a change is worse.
        accepted: within it a change is equal.
    """
    if better is Better.HIGHER:
        return Direction(-contrast.high, -contrast.low, -band[0], -accepted[0], contrast.p_below(band[0]), -1)
    return Direction(contrast.low, contrast.high, band[1], accepted[1], contrast.p_above(band[1]), 1)


def decide(direction: Direction, *, above_floor: bool) -> Outcome:
    """The outcome, in the order worse, better, equal, inconclusive.

    Args:
        direction: the interval of the worsening, and the margin.
        above_floor: whether the change is at least the metric's floor.
    """
    if direction.low > direction.margin + ROUNDING * abs(direction.margin):
        return Outcome.WORSE
    if direction.high < 0.0 and above_floor:
        return Outcome.BETTER
    if direction.high < direction.accepted:
        return Outcome.EQUAL
    return Outcome.INCONCLUSIVE


def _displayed(value: float, working: Working) -> float | None:
    """A working value on the display scale; None if it has no finite one."""
    if not math.isfinite(value) or (working is Working.LOG and value > _LARGEST_LOG):
        return None
    return math.expm1(value) if working is Working.LOG else value


def _notes(metric: Metric, working: Working, baseline: SideEstimates, candidate: SideEstimates) -> list[str]:
    notes = []
    if metric.kind is Kind.POSITIVE and working is Working.DIFFERENCE:
        notes.append("a run's value is 0 or below, so the difference is compared instead of the ratio")
    if metric.kind is Kind.COUNT and working is Working.DIFFERENCE:
        reason = "the floor is the margin" if baseline.total > 0.0 else "the baseline has no events"
        notes.append(f"{reason}, so the difference is compared instead of the ratio")
    for name, side in (("baseline", baseline), ("candidate", candidate)):
        if side.runs < len(side.per_run):
            notes.append(f"estimable in {side.runs} of {len(side.per_run)} runs of the {name}")
    if metric.better is Better.NEITHER:
        notes.append("neither direction is better: only the size of the change is judged")
    return notes


def unjudged(
    metric: Metric, statistic: str, baseline: SideEstimates, candidate: SideEstimates, *, outcome: Outcome, note: str
) -> Judgement:
    """A judgement that only shows the sides' values."""
    return Judgement(
        metric_id=metric.id,
        statistic=statistic,
        gating=metric.gating,
        baseline=side_value(metric, baseline),
        candidate=side_value(metric, candidate),
        scale=Scale.RELATIVE if metric.kind in {Kind.POSITIVE, Kind.COUNT} else Scale.ABSOLUTE,
        outcome=outcome,
        note=note,
    )


def _outcome(metric: Metric, direction: Direction, base: float, other: float, *, inside: bool) -> Outcome:
    if metric.better is Better.NEITHER:
        return Outcome.EQUAL if inside else Outcome.INCONCLUSIVE
    if direction.margin == 0.0 and base == 0.0 and other == 0.0:
        return Outcome.EQUAL
    return decide(direction, above_floor=abs(other - base) >= metric.floor)


def judge(metric: Metric, statistic: str, baseline: SideEstimates, candidate: SideEstimates, bench: Bench) -> Judgement:
    """Judge one statistic of one metric.

    Args:
        metric: its kind, direction, margin and floor.
        statistic: "mean", "p99" …
        baseline: the values of the judged runs of the baseline.
        candidate: likewise.
        bench: the archive, and the looks at the experiment.

    Returns:
        The judgement, before any correction for several metrics.

    Source: docs/concepts/verdict.md, "One metric".
    """
    named = (("baseline", baseline), ("candidate", candidate))
    absent = "; ".join(f"{name}: {side.absence}" for name, side in named if side.absence)
    plain = unjudged(metric, statistic, baseline, candidate, outcome=Outcome.NO_DATA, note=absent)
    if absent:
        return plain
    noted = contrast_of(metric, statistic, baseline, candidate, bench)
    return _judged(metric, plain, noted, baseline, candidate)


def accepted_band(metric: Metric, base: float, working: Working) -> tuple[float, float]:
    """The lower and the upper end of the accepted change on the working scale.

    Args:
        metric: its margin and floor.
        base: the baseline's value, in the unit.
        working: LOG, RATIO or DIFFERENCE.
    """
    scale = Scale.ABSOLUTE if working is Working.DIFFERENCE else Scale.RELATIVE
    return _band(effective_margin(metric, base, scale), working)


def _judged(
    metric: Metric, plain: Judgement, noted: NotedContrast, baseline: SideEstimates, candidate: SideEstimates
) -> Judgement:
    contrast, working = noted.contrast, noted.contrast.working
    base, other = plain.baseline.value or 0.0, plain.candidate.value or 0.0
    scale = Scale.ABSOLUTE if working is Working.DIFFERENCE else Scale.RELATIVE
    own, margin = (effective_margin(metric, base, scale, item) for item in (metric.margin, metric.accepted))
    band = _band(margin, working)
    direction = towards_worse(metric.better, contrast, _band(own, working), band)
    inside = band[0] < contrast.low and contrast.high < band[1]
    outcome = _outcome(metric, direction, base, other, inside=inside)
    notes = _notes(metric, working, baseline, candidate)
    if margin == 0.0 and outcome is Outcome.EQUAL:
        notes.append("0 on both sides without a floor: the interval shows how large an undetected change could be")
    results: dict[str, object] = {
        "scale": scale,
        "change": _displayed(contrast.change, working),
        "low": _displayed(contrast.low, working),
        "high": _displayed(contrast.high, working),
        "margin_low": -margin,
        "margin_high": margin,
        "worse_beyond": own if margin > own else None,
        "outcome": outcome,
        "equivalent": inside,
        "noise": noted.noise,
        "degrees_of_freedom": contrast.degrees_of_freedom,
        "p_different": contrast.p_different,
        "note": "; ".join(notes),
    }
    if metric.better is not Better.NEITHER:
        worst = power.detectable_worsening(
            direction.margin, contrast.standard_error, contrast.degrees_of_freedom, noted.level
        )
        results |= {
            # Half of the interval in the direction of worse, around no change.
            "inside_noise": 0.0 < direction.accepted <= direction.high - direction.sign * contrast.change,
            "trend": outcome is Outcome.EQUAL and direction.low > 0.0,
            "p_worse": direction.p_worse,
            "detectable": _displayed(direction.sign * worst, working),
        }
    return plain.model_copy(update=results)
