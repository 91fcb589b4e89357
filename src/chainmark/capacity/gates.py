"""Whether a load test's run may be compared: it is complete, and no other load disturbed its generator or server."""

from __future__ import annotations

from chainmark.capacity.loadtest import ServerResult
from chainmark.capacity.search import StoppedBy
from chainmark.capacity.sla import WAITED_SHARE
from chainmark.core import units
from chainmark.core.manifest import Gate, GateStatus


def load_gates(result: ServerResult, *, broken_off: str = "") -> list[Gate]:
    """Whether the run may be compared: it was not aborted, and the generator kept its schedule at fixed levels.

    Args:
        result: the results of one server.
        broken_off: what ended the test early; "" if nothing did.
    """
    done = sum(len(endpoint.steps()) for endpoint in result.endpoint_results)
    gates = [
        Gate(
            id="complete",
            label="the whole test was run",
            status=GateStatus.FAIL if broken_off else GateStatus.PASS,
            measured=f"{units.plural(done, 'step')}{f', then {broken_off}' if broken_off else ''}",
            limit="not interrupted",
        )
    ]
    gates.append(_waited_gate(result))
    fixed = [step for endpoint in result.endpoint_results for step in endpoint.fixed if not step.waited]
    lags = [step.result.lag.p99_s for step in fixed if step.result.lag.p99_s is not None]
    limited = sum(step.outcome.value == "generator-limited" for step in fixed)
    gates.append(
        Gate(
            id="generator",
            label="the generator kept its schedule",
            status=GateStatus.FAIL if limited else GateStatus.PASS,
            measured=f"{limited} of {len(fixed)} steps at fixed levels were limited by the generator"
            + (f"; lag p99 at most {units.duration(max(lags))}" if lags else ""),
            limit="none",
        )
    )
    return gates


def _waited_gate(result: ServerResult) -> Gate:
    """Whether the deciding steps ran while other processes left the processors to the generator and the server."""
    answers = [answer for endpoint in result.endpoint_results for answer in endpoint.answers.values()]
    waited_count = sum(answer.stopped_by is StoppedBy.WAITED and answer.capacity is None for answer in answers)
    levels = {(endpoint.endpoint.id, step.level) for endpoint in result.endpoint_results for step in endpoint.fixed}
    clean = {
        (endpoint.endpoint.id, step.level)
        for endpoint in result.endpoint_results
        for step in endpoint.fixed
        if not step.waited
    }
    waited_count += len(levels - clean)
    steps = [step for endpoint in result.endpoint_results for step in endpoint.steps()]
    shares = [worst[0] for step in steps if step.waits and (worst := step.waits.worst())]
    waited = sum(step.waited for step in steps)
    measured = f"{waited} of {units.plural(len(steps), 'step')} waited"
    if shares:
        measured += f", the worst for {units.plain_percent(max(shares), decimals=1)} of its time"
    status = GateStatus.FAIL if waited_count else GateStatus.PASS
    if steps and not shares:
        status, measured = GateStatus.UNKNOWN, "this kernel does not tell"
    return Gate(
        id="waited",
        label="waits for a processor, generator and server",
        status=status,
        measured=measured,
        limit=f"≤ {units.plain_percent(WAITED_SHARE)} in the steps that decide",
    )
