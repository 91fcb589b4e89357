"""Changes as sums of the changes of their parts, on the scale of the judgement.

The system defines the parts of a value. Here they get their intervals, and are compared with the judged change, to
which they must add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from chainmark.compare.sides import SelectedRuns
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement, Scale, Split, SplitPart, Splits
from chainmark.core.errors import InternalError
from chainmark.core.wording import enumerated
from chainmark.stats.bootstrap import bootstrap_error_of_mean, optimal_block_length
from chainmark.stats.centiles import FloatArray
from chainmark.stats.intervals import LEVEL, own_spread
from chainmark.stats.special import t_quantile

# Permitted deviation of the sum of a side's parts from its judged value. A larger one is not explained by
# single blocks with incomplete data.
TOLERANCE = 0.01


@dataclass(frozen=True)
class MetricPart:
    """A part of a metric; ``of`` is the id of the part that contains it, "" for the parts of the whole."""

    id: str
    label: str
    of: str = ""


@dataclass(frozen=True)
class PartEffect:
    """A part on both sides, in the metric's unit.

    Attributes:
        standard_error: of the difference. degrees_of_freedom: None if it is known.
    """

    part: MetricPart
    baseline: float
    candidate: float
    standard_error: float
    degrees_of_freedom: float | None = None

    @property
    def half_width(self) -> float:
        """Half the 90 % interval of the difference, in the metric's unit."""
        return t_quantile(1.0 - LEVEL, self.degrees_of_freedom) * self.standard_error


@dataclass(frozen=True)
class PartedChange:
    """The parts of one metric's mean, in the report's order; ``basis`` is the source of their errors."""

    metric_id: str
    effects: Sequence[PartEffect]
    basis: str


@dataclass(frozen=True)
class Parted:
    """The parts of a comparison's metrics, from a system; see `chainmark.core.comparison.Splits`."""

    title: str
    changes: Sequence[PartedChange] = ()
    reason: str = ""
    notes: Sequence[str] = field(default_factory=list)


PartsOf = Callable[[Sequence[SelectedRuns]], Parted | None]


def effects(
    parts: Sequence[MetricPart], baseline: Sequence[FloatArray], candidate: Sequence[FloatArray]
) -> tuple[list[PartEffect], str]:
    """The parts' means on both sides, with the errors of their differences, and the source of these.

    With several runs on a side it is the spread between runs, as in a judgement, or the error within the runs if
    that is larger. With one run on each it is the error within the runs: the precision of this division, not
    the variation of the parts in another run.

    Args:
        parts: each one without parts of its own corresponds to a column, in order.
        baseline: per run, shape (samples, columns) in time order, in the metric's unit.
        candidate: likewise.
    """
    leaves = [part.id for part in parts if not any(other.of == part.id for other in parts)]
    part_effects = []
    for part in parts:
        columns = [index for index, leaf in enumerate(leaves) if leaf == part.id or _is_within(leaf, part.id, parts)]
        left, right = ([run[:, columns].sum(axis=1) for run in side] for side in (baseline, candidate))
        part_effects.append(_effect(part, left, right))
    runs = f"{len(baseline)} + {len(candidate)}"
    return part_effects, f"between {runs} runs" if len(baseline) + len(candidate) > 2 else "within one run per side"


def _is_within(leaf: str, part_id: str, parts: Sequence[MetricPart]) -> bool:
    above = {part.id: part.of for part in parts}
    while leaf := above[leaf]:
        if leaf == part_id:
            return True
    return False


def _effect(part: MetricPart, baseline: Sequence[FloatArray], candidate: Sequence[FloatArray]) -> PartEffect:
    means = [[float(run.mean()) for run in side] for side in (baseline, candidate)]
    within = math.hypot(*(_mean_error(run) / len(side) for side in (baseline, candidate) for run in side))
    error, freedom = within, None
    if len(baseline) + len(candidate) > 2:
        spread = own_spread(means[0], means[1])
        between = math.sqrt(spread.variance * (1.0 / len(baseline) + 1.0 / len(candidate)))
        error, freedom = max(within, between), spread.degrees_of_freedom
    left, right = (math.fsum(side) / len(side) for side in means)
    return PartEffect(part, left, right, error, freedom)


def _mean_error(series: FloatArray) -> float:
    """Standard error of the mean of samples in time order, which may be autocorrelated."""
    return bootstrap_error_of_mean(series, optimal_block_length(series))


def splits_of(parted: Parted | None, judgements: Sequence[Judgement], catalogue: Catalogue) -> Splits | None:
    """The parts of every judged change of a mean, on the scale of its judgement.

    The parts of each side are those of its runs' plain mean. A judged value may differ from that slightly: it is the
    runs' geometric mean, and single samples may lack a part. It is divided like the plain mean.

    Raises:
        InternalError: the parts of a part do not add up to it.
    """
    if parted is None:
        return None
    splits, unlike = [], []
    by_metric = {change.metric_id: change for change in parted.changes}
    for judgement in judgements:
        change = by_metric.get(judgement.metric_id)
        if change is None or judgement.statistic != "mean" or judgement.change is None:
            continue
        split = _split(change, judgement)
        if split is None:
            unlike.append(catalogue.metric(judgement.metric_id).label)
        else:
            splits.append(split)
    notes = list(parted.notes) if splits else []
    if unlike:
        off = f"the known parts of {enumerated(unlike)} do not add up to the measured value"
        notes.append(f"{off} (more than {units.plain_percent(TOLERANCE)} off): too many samples lack a part")
    missing = parted.reason or ("" if splits else enumerated(notes) or "no judged metric has parts")
    return Splits(title=parted.title, splits=splits, unknown_reason=missing, notes=notes if splits else [])


def splits_between(parted: Parted, baseline: Mapping[str, float], candidate: Mapping[str, float]) -> Splits:
    """The parts of the changes between two sets of means that were not judged.

    Args:
        baseline: by metric id, in the metric's unit.
        candidate: likewise.
    """
    splits = [divided(change, (baseline[change.metric_id], candidate[change.metric_id])) for change in parted.changes]
    complete = [split for split in splits if split is not None]
    missing = parted.reason or ("" if complete else "the known parts do not add up to the values")
    return Splits(title=parted.title, splits=complete, unknown_reason=missing, notes=list(parted.notes))


def _split(change: PartedChange, judgement: Judgement) -> Split | None:
    """For a baseline that is the level of several releases, the change from the named run: only a run has parts."""
    base, other = judgement.baseline.value, judgement.candidate.value
    if judgement.change is None or base is None or other is None:
        return None
    values = [value for value in judgement.baseline.per_run if value is not None]
    if len(values) == 1 and not math.isclose(values[0], base):
        result = divided(change, (values[0], other), judgement.statistic, judgement.scale)
        reported = {"basis": f"{change.basis}, against the baseline's own run instead of the level of releases"}
        return None if result is None else result.model_copy(update=reported)
    split = divided(change, (base, other), judgement.statistic, judgement.scale)
    return None if split is None else split.model_copy(update={"change": judgement.change})


def divided(
    change: PartedChange, values: tuple[float, float], statistic: str = "mean", scale: Scale = Scale.RELATIVE
) -> Split | None:
    """The change between two values of a metric, divided; None if the parts of one do not add up to it.

    Args:
        change: the parts of both values.
        values: the metric's own, baseline and candidate, in its unit.
        statistic: the statistic of the values.
        scale: RELATIVE gives fractions of the baseline.

    Raises:
        InternalError: the parts of a part do not add up to it.
    """
    _check(change)
    top_level = [effect for effect in change.effects if not effect.part.of]
    plain = [
        math.fsum(sides)
        for sides in zip(*((part_effect.baseline, part_effect.candidate) for part_effect in top_level), strict=True)
    ]
    if not all(plain):
        return None
    factors = [value / total for value, total in zip(values, plain, strict=True)]
    if max(abs(factor - 1.0) for factor in factors) > TOLERANCE:
        return None
    unit = 1.0 if scale is Scale.ABSOLUTE else 1.0 / abs(values[0])
    parts = []
    for effect in change.effects:
        moved = (effect.candidate * factors[1] - effect.baseline * factors[0]) * unit
        half, part = effect.half_width * unit, effect.part
        parts.append(
            SplitPart(id=part.id, label=part.label, of=part.of, change=moved, low=moved - half, high=moved + half)
        )
    return Split(
        metric_id=change.metric_id,
        statistic=statistic,
        scale=scale,
        change=(values[1] - values[0]) * unit,
        basis=change.basis,
        parts=parts,
    )


def _check(change: PartedChange) -> None:
    """A part with parts is their sum, on both sides."""
    for effect in change.effects:
        inner = [other for other in change.effects if other.part.of == effect.part.id]
        for side in ("baseline", "candidate") if inner else ():
            sizes = [getattr(part_effect, side) for part_effect in inner]
            if not math.isclose(math.fsum(sizes), getattr(effect, side), abs_tol=1e-12):
                raise InternalError(
                    f"the parts of `{effect.part.id}` of {change.metric_id} do not add up to it on the {side}"
                )
