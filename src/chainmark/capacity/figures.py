"""A step's figures as every output tells them: the one place where they are taken from what was measured."""

from __future__ import annotations

from chainmark.capacity.model import Step
from chainmark.core.load_report import StepFigures


def figures_of(step: Step) -> StepFigures:
    """The figures of a step; books and latencies bear the names that the engine gives them."""
    result = step.result
    measured = dict(result.latency_all) | dict(result.books)
    return StepFigures(
        kind=step.level.kind.value,
        level=step.level.value,
        phase=step.phase.value,
        outcome=step.outcome.value,
        leaning=step.leaning.value,
        reason=step.reason.value if step.reason else None,
        lengthened=step.lengthened,
        partial=step.partial,
        ended=result.ended,
        warm_up_s=result.warm_up_s,
        window_s=result.window_s,
        ok_per_s=result.ok_per_s,
        lag_p99_s=result.lag.p99_s,
        generator_cpu_share=result.generator_cpu_share,
        bytes_in=result.bytes_in,
        **{name: measured[name] for name in StepFigures.model_fields.keys() & measured.keys()},
    )
