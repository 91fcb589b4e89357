"""A step's figures for every output: the only place that derives them from the measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from chainmark.capacity.model import LevelKind, Phase, Step, StepCondition
from chainmark.capacity.summaries import error_share
from chainmark.core.load_report import Centile, Centiles, ConditionEntry, FixedLevel, Kind, StepEntry, StepFigures
from chainmark.stats.estimable import fewest_for_upper_bound, has_upper_bound

# The fewest due requests for which a step's centile is reported.
FEWEST_FOR_P95 = fewest_for_upper_bound(0.95)
FEWEST_FOR_P99 = fewest_for_upper_bound(0.99)
_NOT_ESTIMABLE = Centile(value_s=None, missing="not estimable")
_NEVER_ANSWERED = Centile(value_s=None, missing="never answered")


def figures_of(step: Step) -> StepFigures:
    """The figures of a step; counts and latencies have the names that the engine gives them."""
    result = step.result
    measured = dict(result.latency_all) | dict(result.counts)
    return StepFigures(
        kind=step.level.kind.value,
        level=step.level.value,
        phase=step.phase.value,
        outcome=step.outcome.value,
        point_outcome=step.point_outcome.value,
        reason=step.reason.value if step.reason else None,
        extended=step.extended,
        partial=step.partial,
        ended=result.ended,
        warm_up_s=result.warm_up_s,
        window_s=result.window_s,
        ok_per_s=result.ok_per_s,
        lag_p99_s=result.lag.p99_s,
        generator_cpu_share=result.generator_cpu_share,
        bytes_in=result.bytes_in,
        wake_p99_s=result.wake.p99_s,
        generator_lost_share=step.waits.generator if step.waits else None,
        server_lost_share=step.waits.server if step.waits else None,
        stolen_share=step.waits.stolen if step.waits else None,
        closed_idle=result.closed_idle,
        repeated=result.connections.repeated,
        **{name: measured[name] for name in StepFigures.model_fields.keys() & measured.keys()},
    )


def centiles_of_due(step: StepFigures, conditions: Sequence[ConditionEntry]) -> Centiles:
    """The centiles of all due requests: as their conditions measured them, or else of the requests that ended."""
    measured = {
        condition.name: condition.measured
        for condition in conditions
        if condition.measured is not None and not condition.part
    }
    return Centiles(
        p50=_of_due(step, 0.5, step.p50_s),
        p95=_of_due(step, 0.95, measured.get(StepCondition.P95.value, step.p95_s)),
        p99=_of_due(step, 0.99, measured.get(StepCondition.P99.value, step.p99_s)),
    )


def _of_due(step: StepFigures, fraction: float, measured_s: float | None) -> Centile:
    if measured_s is None or not has_upper_bound(step.due, fraction):
        return _NOT_ESTIMABLE
    counted = step.due - step.closed_idle
    if counted - step.ok > (1.0 - fraction) * counted:
        return _NEVER_ANSWERED
    return Centile(value_s=measured_s)


def fixed_levels(steps: Sequence[StepEntry]) -> list[FixedLevel]:
    """The figures of the steps at fixed levels, level by level, without steps that were interrupted or had to wait."""
    step_entries: dict[tuple[Kind, float], list[StepEntry]] = {}
    for step in steps:
        if step.phase == Phase.FIXED.value and not step.partial and step.reason != StepCondition.WAITED.value:
            step_entries.setdefault((step.kind, step.level), []).append(step)
    order = [kind.value for kind in LevelKind]
    return [
        _fixed_level(step_entries[key]) for key in sorted(step_entries, key=lambda key: (order.index(key[0]), key[1]))
    ]


def _fixed_level(steps: Sequence[StepEntry]) -> FixedLevel:
    return FixedLevel(
        kind=steps[0].kind,
        level=steps[0].level,
        measured=len(steps),
        p50=_median([step.of_due.p50 for step in steps]),
        p99=_median([step.of_due.p99 for step in steps]),
        error_share=error_share(*steps),
    )


def _median(centiles: Sequence[Centile]) -> Centile:
    if _NOT_ESTIMABLE in centiles:
        return _NOT_ESTIMABLE
    middle_s = median(math.inf if centile.value_s is None else centile.value_s for centile in centiles)
    return Centile(value_s=middle_s) if math.isfinite(middle_s) else _NEVER_ANSWERED
