"""A long step that becomes slower or has more errors is reported. It fails if the SLA limits the drift."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from chainmark.capacity.drift import SHORTEST_S, Drift, Drifting, drifts_of, memory_drifts_of
from chainmark.capacity.measured import StepSeries
from chainmark.capacity.model import (
    Endpoint,
    LevelKind,
    LoadLevel,
    Phase,
    Request,
    Step,
    StepOutcome,
    StepRequest,
    StepResult,
)
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge
from chainmark.network.server_series import Name, Readings

from tests.unit.capacity.queueing import TARGET, Latencies, finished

AGREED = Sla(p99_s=1.0, drift_share=0.1)
ENDPOINT = Endpoint("block", "/block", (Request("GET", "/block"),))
Course = Callable[[np.ndarray], np.ndarray]


def _step(p50_s: Course, failed: Course = np.zeros_like, seconds: int = 1200, phase: Phase = Phase.FIXED) -> Step:
    """A step of ``seconds`` after a warm-up of 2 s, with 100 requests per second.

    The functions get the elapsed share of the step, from 0 to 1.
    """
    times = np.clip((np.arange(seconds + 2) - 2) / seconds, 0.0, 1.0)
    medians, failures = p50_s(times), failed(times).astype(int)
    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.RATE, 100.0), 2.0, float(seconds))
    whole = finished([0.01] * 1000, window_s=float(seconds), answered=[100] * (seconds + 2))
    series: dict[str, Any] = {**whole["series"], "p50_s": [float(median) for median in medians]}
    series |= {"p99_s": [3.0 * float(median) for median in medians], "failed": [int(failure) for failure in failures]}
    result = StepResult.of(order, {**whole, "series": StepSeries.model_validate(series).model_dump()})
    return judge(result, Sla(), phase, read_histogram=Latencies)


def _of(step: Step, sla: Sla = AGREED) -> dict[Drifting, Drift]:
    return {drift.what: drift for drift in drifts_of([step], sla)}


def _noisy(course: Course) -> Course:
    rng = np.random.default_rng(5)
    return lambda times: course(times) * rng.lognormal(0.0, 0.05, len(times))


def test_a_steady_server_has_no_drift() -> None:
    drifts = _of(_step(_noisy(lambda times: np.full_like(times, 0.01))))
    assert {drift.outcome for drift in drifts.values()} == {StepOutcome.PASS}
    assert drifts[Drifting.P50].begin == pytest.approx(0.01, rel=0.05)
    assert abs(drifts[Drifting.P50].rise or 1.0) < 0.05


@pytest.mark.parametrize(
    ("rise", "outcome"), [(0.5, StepOutcome.FAIL), (0.1, StepOutcome.INCONCLUSIVE), (0.02, StepOutcome.PASS)]
)
def test_a_server_that_becomes_slower_drifts(rise: float, outcome: StepOutcome) -> None:
    """For example a server whose heap or tables grow."""
    drift = _of(_step(_noisy(lambda times: 0.01 * (1.0 + rise * times))))[Drifting.P50]
    assert drift.outcome is outcome
    assert drift.low is not None
    assert drift.high is not None
    assert drift.low < rise < drift.high
    assert drift.high - drift.low < 0.1


def test_a_stall_is_not_a_drift() -> None:
    """Half a minute of twenty is an outlier of the trend, however slow it is. The SLA judges it."""
    drifts = _of(_step(_noisy(lambda times: np.where((times > 0.8) & (times < 0.825), 1.0, 0.01))))
    assert drifts[Drifting.P50].outcome is StepOutcome.PASS


def test_errors_that_increase_over_time_are_a_drift() -> None:
    drifts = _of(_step(_noisy(lambda times: np.full_like(times, 0.01)), lambda times: np.round(8.0 * times)))
    assert drifts[Drifting.ERRORS].outcome is StepOutcome.FAIL
    assert drifts[Drifting.ERRORS].rise == pytest.approx(8.0 / 108.0, rel=0.15)
    assert drifts[Drifting.P50].outcome is StepOutcome.PASS


def test_errors_are_a_share_of_all_responses() -> None:
    """25 of 125 per second, from the start to the end."""
    drift = _of(_step(lambda times: np.full_like(times, 0.01), lambda times: np.full_like(times, 25.0)))[
        Drifting.ERRORS
    ]
    assert (drift.begin, drift.rise) == pytest.approx((0.2, 0.0))


def test_a_drift_without_a_limit_in_the_sla_is_reported_and_fails_nothing() -> None:
    drifts = _of(_step(_noisy(lambda times: 0.01 * (1.0 + times))), Sla())
    assert {(drift.limit, drift.outcome) for drift in drifts.values()} == {(None, StepOutcome.PASS)}
    assert drifts[Drifting.P50].rise == pytest.approx(1.0, rel=0.1)


def test_only_long_complete_steps_at_fixed_levels_are_checked() -> None:
    flat: Course = lambda times: np.full_like(times, 0.01)  # noqa: E731
    short, probe = _step(flat, seconds=int(SHORTEST_S) - 1), _step(flat, phase=Phase.PROBE)
    broken = replace(_step(flat), partial=True)
    assert drifts_of([short, probe, broken], AGREED) == []
    silent = _step(lambda times: np.where(times < 0.5, 0.01, np.nan))
    columns = [None if value is None or math.isnan(value) else value for value in silent.result.series.p50_s]
    series = silent.result.series.model_copy(update={"p50_s": columns})
    step = replace(silent, result=silent.result.model_copy(update={"series": series}))
    assert (_of(step)[Drifting.P50].rise, _of(step)[Drifting.P50].outcome) == (None, StepOutcome.INCONCLUSIVE)


@pytest.mark.parametrize(("sla", "outcome"), [(AGREED, StepOutcome.INCONCLUSIVE), (Sla(), StepOutcome.PASS)])
def test_a_drift_that_cannot_be_estimated_is_inconclusive_only_if_the_sla_limits_it(
    sla: Sla, outcome: StepOutcome
) -> None:
    """If a server did not respond for a while, or in no time at all, no line or no relative change can be computed."""
    step = _step(lambda times: np.full_like(times, 0.01))
    series = step.result.series
    nobody = series.model_copy(update={"p50_s": [None] * len(series.p50_s), "p99_s": [0.0] * len(series.p99_s)})
    idle = nobody.model_copy(update={name: [0] * 100 + getattr(series, name)[100:] for name in ("ok", "failed")})
    drifts = _of(replace(step, result=step.result.model_copy(update={"series": idle})), sla)
    for drift in drifts.values():
        assert (drift.begin, drift.rise, drift.low, drift.high, drift.outcome) == (None, None, None, None, outcome)
        assert (drift.level, drift.window_s) == (LoadLevel(LevelKind.RATE, 100.0), 1200.0)
    limits = [drift.limit for drift in drifts.values()]
    assert limits == ([None] * 3 if sla.drift_share is None else [0.1, 0.1, AGREED.error_share])


def test_a_drift_has_the_step_and_the_limit() -> None:
    """The step is the shortest that is long enough, and the server slows down linearly, so that the line is exact."""
    drifts = _of(_step(lambda times: 0.01 * (1.0 + times), seconds=int(SHORTEST_S)))
    assert [(drift.limit, drift.level.value, drift.window_s) for drift in drifts.values()] == [
        (0.1, 100.0, SHORTEST_S),
        (0.1, 100.0, SHORTEST_S),
        (AGREED.error_share, 100.0, SHORTEST_S),
    ]
    # 60 intervals of 10 s. The middle of the first is at 4.5 s and that of the last at 594.5 s.
    assert drifts[Drifting.P50].begin == pytest.approx(0.01 * (1.0 + 4.5 / 600.0))
    assert drifts[Drifting.P50].rise == pytest.approx(590.0 / 604.5)


def test_the_warm_up_and_the_time_after_the_window_are_ignored() -> None:
    """The few responses after the end of the window are not evidence about the server within it."""
    step = _step(lambda times: 0.01 * (1.0 + times), seconds=659)
    series = step.result.series
    changed = {name: [*getattr(series, name), *[9.0] * 90] for name in ("p50_s", "p99_s")}
    changed |= {name: [*getattr(series, name), *[0] * 90] for name in ("ok", "failed")}
    changed["second"] = [*series.second, *range(661, 751)]
    late = replace(step, result=step.result.model_copy(update={"series": series.model_copy(update=changed)}))
    cold = {name: [50.0] * 2 + getattr(series, name)[2:] for name in ("p50_s", "p99_s")}
    early = replace(step, result=step.result.model_copy(update={"series": series.model_copy(update=cold)}))
    assert _of(late) == _of(early) == _of(step)


def _memory(step: Step, end_s: int = 660) -> Readings:
    """A reading per second until then: 1 GB that double in the window of 600 s, and 9 GB before and after it."""
    times_s: Any = np.arange(-60, end_s) + 0.5
    begin_ns = step.result.started_ns + step.result.warm_up_s * 1e9
    used = np.where((times_s > 0.0) & (times_s < 600.0), 1e9 * (1.0 + times_s / 600.0), 9e9)
    return Readings(Name("process", "memory", "bytes"), begin_ns + times_s * 1e9, used)


@pytest.mark.parametrize(
    ("limit", "outcome"), [(None, StepOutcome.PASS), (0.9, StepOutcome.FAIL), (1.0, StepOutcome.PASS)]
)
def test_memory_drifts_by_its_means_over_the_window(limit: float | None, outcome: StepOutcome) -> None:
    """Memory used during the warm-up and after the window, such as by the next step, is not part of the drift."""
    flat: Course = lambda times: np.full_like(times, 0.01)  # noqa: E731
    step, short = (_step(flat, seconds=seconds) for seconds in (600, 599))
    (drift,) = memory_drifts_of([short, step], Sla(drift_share=0.5, memory_drift_share=limit), _memory(step))
    assert (drift.what, drift.level, drift.started_ns) == (Drifting.MEMORY, step.level, step.result.started_ns)
    assert (drift.window_s, drift.limit, drift.outcome) == (600.0, limit, outcome)
    # The middles of the first and of the last of 60 intervals are at 5 s and 595 s.
    assert drift.begin == pytest.approx(1e9 * 605.0 / 600.0)
    assert [drift.rise, drift.low, drift.high] == pytest.approx([590.0 / 605.0] * 3)


@pytest.mark.parametrize(("limit", "outcome"), [(None, StepOutcome.PASS), (0.5, StepOutcome.INCONCLUSIVE)])
def test_memory_that_was_read_in_part_of_a_step_has_an_unknown_drift(limit: float | None, outcome: StepOutcome) -> None:
    """The rise over the observed part is not that over the step. The last interval, from 590 s on, has no reading."""
    step = _step(lambda times: np.full_like(times, 0.01), seconds=600)
    sla = Sla(memory_drift_share=limit)
    (drift,) = memory_drifts_of([step], sla, _memory(step, end_s=590))
    assert (drift.what, drift.level, drift.limit, drift.outcome) == (Drifting.MEMORY, step.level, limit, outcome)
    assert (drift.begin, drift.rise, drift.low, drift.high) == (None, None, None, None)
    assert memory_drifts_of([step], sla, _memory(step, end_s=0)) == [], "the step was not observed"
