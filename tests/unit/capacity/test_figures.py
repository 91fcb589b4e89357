"""The figures of steps and of fixed levels, with values computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from chainmark.capacity.figures import figures_of, fixed_levels
from chainmark.capacity.model import LevelKind, LoadLevel, Phase, StepRequest, StepResult, Waits
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge
from chainmark.core.load_report import Centile, ConditionEntry, ErrorEntry, Kind, StepEntry

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Latencies, finished, histogram
from tests.unit.report.load_samples import step

NOT_ESTIMABLE = Centile(value_s=None, missing="not estimable")
NEVER_ANSWERED = Centile(value_s=None, missing="never answered")


def _condition(name: str, measured: float | None, part: str = "") -> ConditionEntry:
    return ConditionEntry(name=name, measured=measured, limit=1.0, outcome="pass", part=part)


def _step(kind: Kind = "rate", level: float = 100.0, **changes: Any) -> StepEntry:
    """A step of 1,000 requests whose conditions measured nothing else than its figures."""
    counts = {"due": 1000, "ok": 1000, "failed": 0, "unsent": 0}
    latencies = {"p50_s": 0.1, "p95_s": 0.2, "p99_s": 0.4}
    return step(0, kind, level, 400.0, **{"conditions": [], "phase": "fixed", **counts, **latencies, **changes})


def _centiles(item: StepEntry) -> tuple[Centile, Centile, Centile]:
    return item.of_due.p50, item.of_due.p95, item.of_due.p99


def test_a_step_has_the_figures_of_its_measurements() -> None:
    result = finished([0.1] * 975, failed=20, unsent=5, lag_s=[0.003]) | {"wake": histogram([0.004])}
    result |= {"latency_all": histogram([0.2, 0.3]), "classes": [result["classes"][0] | {"class": "idle close"}]}
    result["connections"]["repeated"] = 3
    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.RATE, 100.0), 2.0, 10.0)
    waits = Waits(generator=0.01, server=0.02, stolen=0.03)
    judged = judge(StepResult.of(order, result), Sla(), Phase.FIXED, True, Latencies, waits=waits)
    figures = figures_of(judged)
    assert figures.model_dump() == {
        "kind": "rate", "level": 100.0, "phase": "fixed", "outcome": "inconclusive", "point_outcome": "pass",
        "reason": None, "extended": True, "partial": False, "ended": "time", "warm_up_s": 2.0, "window_s": 10.0,
        "due": 1000, "ok": 975, "failed": 20, "unsent": 5, "closed_idle": 20, "repeated": 3, "ok_per_s": 97.5,
        "p50_s": 0.2, "p90_s": 0.3, "p95_s": 0.3, "p99_s": 0.3, "max_s": 0.3, "lag_p99_s": 0.003, "wake_p99_s": 0.004,
        "generator_lost_share": 0.01, "server_lost_share": 0.02, "stolen_share": 0.03, "generator_cpu_share": 0.01,
        "bytes_in": 292_500,
    }  # fmt: skip


def test_a_step_that_missed_its_sla_has_the_reason() -> None:
    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.CLIENTS, 4.0), 2.0, 10.0)
    figures = figures_of(judge(StepResult.of(order, finished([1.5] * 300)), Sla(), Phase.PROBE, False, Latencies))
    assert (figures.outcome, figures.reason) == ("fail", "p99")
    assert (figures.generator_lost_share, figures.server_lost_share, figures.stolen_share) == (None, None, None)


def test_the_centiles_of_a_step_are_those_of_its_conditions() -> None:
    """A condition counts requests without a response as the slowest; those of an endpoint of a mix are its own."""
    conditions = [_condition("p99", 0.5), _condition("p99", 9.0, part="search"), _condition("p95", None)]
    assert _centiles(_step(conditions=conditions)) == (Centile(value_s=0.1), Centile(value_s=0.2), Centile(value_s=0.5))
    (_, p95, p99) = _centiles(_step(conditions=[_condition("p95", 0.3), _condition("p95", 8.0, part="search")]))
    assert (p95.value_s, p99.value_s) == (0.3, 0.4)


def test_a_centile_needs_enough_requests_and_a_value() -> None:
    """An upper bound of a p99 needs 299 requests, of a p95 59 and of a median 5."""
    few, fewer, fewest = (_step(due=due, ok=due) for due in (298, 58, 4))
    assert [item.value_s for item in _centiles(few)] == [0.1, 0.2, None]
    assert [item.value_s for item in _centiles(fewer)] == [0.1, None, None]
    assert _centiles(fewest) == (NOT_ESTIMABLE, NOT_ESTIMABLE, NOT_ESTIMABLE)
    assert _centiles(_step(p50_s=None)) == (NOT_ESTIMABLE, Centile(value_s=0.2), Centile(value_s=0.4))


@pytest.mark.parametrize(
    ("without_response", "answered"), [(10, (True, True, True)), (11, (True, True, False)), (51, (True, False, False)),
                                       (500, (True, False, False)), (501, (False, False, False))]
)  # fmt: skip
def test_a_centile_beyond_the_correct_responses_was_never_answered(
    without_response: int, answered: tuple[bool, ...]
) -> None:
    """Whether the others failed or were never sent. The p99 of 1,000 requests allows 10 of them."""
    ok = 1000 - without_response
    for item in (_step(ok=ok, failed=without_response), _step(ok=ok, unsent=without_response)):
        assert tuple(centile != NEVER_ANSWERED for centile in _centiles(item)) == answered


def test_a_request_on_an_idle_connection_that_the_server_closed_is_no_missing_response() -> None:
    """The engine may not repeat it, and the server never received it."""
    assert NEVER_ANSWERED not in _centiles(_step(ok=900, failed=100, closed_idle=100))
    # 9 of the other 900 may have no response.
    (_, _, allowed) = _centiles(_step(ok=891, failed=109, closed_idle=100))
    (_, p95, one_more) = _centiles(_step(ok=890, failed=110, closed_idle=100))
    assert (allowed.value_s, p95.value_s, one_more) == (0.4, 0.2, NEVER_ANSWERED)


def _errors(kind: str, count: int) -> list[ErrorEntry]:
    return [ErrorEntry(kind=kind, status=None, reported={}, detail="", count=count, first_s=1.0)]


def test_a_fixed_level_is_of_all_its_complete_repetitions() -> None:
    """Errors of one repetition of three must not disappear, nor be counted as if they were all."""
    steps = [
        _step(p50_s=0.1, p99_s=0.5),
        _step(p50_s=0.3, p99_s=0.7, ok=900, failed=100, errors=_errors("status", 100)),
        _step(p50_s=0.2, p99_s=0.6, ok=990, failed=10, closed_idle=10, errors=_errors("idle close", 10)),
        _step(partial=True, ok=0, failed=1000),
        _step(reason="waited", ok=0, failed=1000),
        _step(phase="probe", ok=0, failed=1000),
    ]
    (level,) = fixed_levels(steps)
    assert (level.kind, level.level, level.measured) == ("rate", 100.0, 3)
    # The p99 of the second was never answered, so it is the slowest of the three.
    assert (level.p50.value_s, level.p99.value_s) == (0.2, 0.6)
    assert level.error_share == pytest.approx(100 / 2990)


def test_fixed_levels_are_by_kind_and_size() -> None:
    steps = [_step("rate", 100.0), _step("clients", 16.0), _step("rate", 40.0), _step("clients", 4.0), _step("rate")]
    entries = fixed_levels(steps)
    assert [(entry.kind, entry.level, entry.measured) for entry in entries] == [
        ("clients", 4.0, 1), ("clients", 16.0, 1), ("rate", 40.0, 1), ("rate", 100.0, 2)
    ]  # fmt: skip


def test_the_centile_of_a_fixed_level_is_known_only_if_that_of_every_step_is() -> None:
    """Two repetitions that never answered 1 % have no median, although the third did."""
    lost = _step(ok=900, failed=100, errors=_errors("timeout", 100))
    (level,) = fixed_levels([lost, _step(), lost])
    assert (level.p50.value_s, level.p99) == (0.1, NEVER_ANSWERED)
    (level,) = fixed_levels([_step(due=100, ok=100), _step(), _step()])
    assert (level.p50.value_s, level.p99) == (0.1, NOT_ESTIMABLE)
    (level,) = fixed_levels([_step(due=0, ok=0)])
    assert (level.p50, level.error_share) == (NOT_ESTIMABLE, None)
