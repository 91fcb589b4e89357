"""The result of a ramp or a spike: up to which level the SLA held, and when a server had recovered.

Both are read from the records of single requests, by windows of as many requests as a p99 needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from chainmark.capacity.course import Course, Ramp, Spike, level_at
from chainmark.capacity.engine import IDLE_CLOSE, RECORD_CLASSES, RIGHT
from chainmark.capacity.model import Step, StepOutcome
from chainmark.capacity.service_level import Sla
from chainmark.core import units
from chainmark.core.load_report import LEVEL_UNITS, CourseUnit
from chainmark.stats import special
from chainmark.stats.centiles import centile_with_limits
from chainmark.stats.estimable import RISK, fewest_for_upper_bound

# A p99 needs this many requests.
WINDOW = fewest_for_upper_bound(0.99)
_TOLERATED = 0.01
_NS = 1e9

_Floats = npt.NDArray[np.float64]
_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CourseStep:
    """One run of a load that changes."""

    course: Course
    step: Step


@dataclass(frozen=True)
class CourseResult:
    """The result of one run.

    Attributes:
        unit: of ``measured``, its interval and its limit.
        measured: of a spike, the time from its end until the first response of the window that is as before; of a ramp,
            the level from which on the SLA was missed. None: there is none, or it is not known.
        low, high: of a spike, the same by the 95 % interval of the p99 before; of a ramp, the levels at the start and
            the end of that window. None: open.
        before_s, peak_s: of a spike, the p99 before it and at its peak; None: not estimable.
        limit: the longest permitted recovery, or the ramp's last level, up to which the SLA must hold.
        note: why there is no result.
    """

    unit: CourseUnit
    measured: float | None
    low: float | None
    high: float | None
    limit: float
    outcome: StepOutcome
    before_s: float | None = None
    peak_s: float | None = None
    note: str = ""


@dataclass(frozen=True)
class _Requests:
    """All requests of a window by due time: seconds after the warm-up, latency, and whether there was no response."""

    due_s: _Floats
    latency_s: _Floats
    failed: _Flags

    def between(self, begin_s: float, end_s: float) -> _Requests:
        inside = (self.due_s >= begin_s) & (self.due_s < end_s)
        return _Requests(self.due_s[inside], self.latency_s[inside], self.failed[inside])

    def __len__(self) -> int:
        return len(self.due_s)


def result_of(step: CourseStep, sla: Sla) -> CourseResult:
    """The result of a ramp or a spike."""
    if isinstance(step.course, Ramp):
        return _ramp(step.course, step.step, sla)
    return _spike(step.course, step.step, sla)


def _spike(course: Spike, step: Step, sla: Sla) -> CourseResult:
    limit_s = course.after_s if sla.recovery_s is None else sla.recovery_s
    requests, reason = _requests(step)
    before = requests.between(0.0, course.before_s)
    after = requests.between(course.over_s, course.length_s)
    if not reason and min(len(before), len(after)) < WINDOW:
        fewest = units.plural(min(len(before), len(after)), "request")
        reason = f"a p99 needs {WINDOW} requests before the spike and after it, and there were {fewest}"
    p99s = None if reason else _p99_with_limits(before)
    if p99s is None:
        reason = reason or "more than 1 % of the requests failed before the spike"
        return CourseResult("s", None, None, None, limit_s, StepOutcome.INCONCLUSIVE, note=reason)
    p99_s, least_s, most_s = p99s
    # A higher limit is reached earlier.
    measured, low, high = (
        _back_after(after, course, item * (1.0 + course.recovery_share)) for item in (p99_s, most_s, least_s)
    )
    peak = requests.between(course.before_s + course.rise_s, course.over_s)
    at_peak = _p99_with_limits(peak) if len(peak) >= WINDOW else None
    return CourseResult(
        unit="s",
        measured=measured,
        low=low,
        high=high,
        limit=limit_s,
        outcome=_recovered(course, sla, measured, low, high),
        before_s=p99_s,
        peak_s=at_peak[0] if at_peak else None,
    )


def _recovered(course: Spike, sla: Sla, measured: float | None, low: float | None, high: float | None) -> StepOutcome:
    """Whether it recovered within the limit, or, without a limit, while it was observed."""
    limit_s = sla.recovery_s
    if limit_s is None:
        if measured is not None:
            return StepOutcome.PASS
        return StepOutcome.FAIL if low is None else StepOutcome.INCONCLUSIVE
    if high is not None and high <= limit_s:
        return StepOutcome.PASS
    if low is None:
        return StepOutcome.FAIL if limit_s <= course.after_s else StepOutcome.INCONCLUSIVE
    return StepOutcome.FAIL if low > limit_s else StepOutcome.INCONCLUSIVE


def _back_after(after: _Requests, course: Spike, limit_s: float) -> float | None:
    """Time until the first response of the first window with at most 1 % slower; None: there is no such window."""
    slow = after.failed | (after.latency_s > limit_s)
    within = np.flatnonzero(_in_windows(slow) <= _TOLERATED * WINDOW)
    if not len(within):
        return None
    # The window may begin with requests that were still slow.
    first = int(within[0]) + int(np.argmin(slow[within[0] :]))
    return float(after.due_s[first] + after.latency_s[first] - course.over_s)


def _p99_with_limits(requests: _Requests) -> tuple[float, float, float] | None:
    """The p99 of a window or more and its 95 % limits; None: more than 1 % failed."""
    answered = np.sort(requests.latency_s[~requests.failed])
    return centile_with_limits(answered, len(requests), 0.99)


def _ramp(course: Ramp, step: Step, sla: Sla) -> CourseResult:
    unit = LEVEL_UNITS[course.kind.value]
    requests, reason = _requests(step)
    if not reason and len(requests) < WINDOW:
        reason = f"a p99 needs {WINDOW} requests, and there were {len(requests)}"
    if reason:
        return CourseResult(unit, None, None, None, course.last, StepOutcome.INCONCLUSIVE, note=reason)
    slow = requests.failed | (requests.latency_s > sla.p99_s)
    # A response in time may still be an error.
    looks = len(requests) - WINDOW + 1
    missed = (_in_windows(slow) >= _clearly_above(_TOLERATED, looks)) | (
        _in_windows(requests.failed) >= _clearly_above(sla.error_share, looks)
    )
    windows = np.flatnonzero(missed)
    if not len(windows):
        return CourseResult(unit, None, course.last, None, course.last, StepOutcome.PASS)
    window = int(windows[0])
    first = window + int(np.argmax(slow[window : window + WINDOW]))
    low, measured, high = (
        level_at(course.points, float(requests.due_s[at])) for at in (window, first, window + WINDOW - 1)
    )
    return CourseResult(unit, measured, low, high, course.last, StepOutcome.FAIL)


@cache
def _clearly_above(share: float, windows: int) -> int:
    """The count of a window's requests that exceeds this share with confidence, corrected for the number of windows."""
    risk = RISK / windows
    return next((n for n in range(1, WINDOW + 1) if special.binomial_at_least(n, WINDOW, share) <= risk), WINDOW + 1)


def _in_windows(flags: _Flags) -> npt.NDArray[np.int64]:
    """The number of flagged requests in each window, by the window's first request."""
    sums = np.concatenate([[0], np.cumsum(flags)])
    counts: npt.NDArray[np.int64] = sums[WINDOW:] - sums[:-WINDOW]
    return counts


def _requests(step: Step) -> tuple[_Requests, str]:
    """The records of a step, and why they show nothing about the server; "" if they do."""
    records = step.result.records
    none: Any = np.empty(0)
    if records is None or step.result.records_left_out:
        return _Requests(none, none, none.astype(bool)), "there were more requests than `fixed.records`"
    classes = np.frombuffer(records.classes, dtype="u1")
    counted = classes != RECORD_CLASSES.index(IDLE_CLOSE)
    due_s = np.frombuffer(records.due_ns, dtype="<i8")[counted] / _NS - step.result.warm_up_s
    latency_s = np.frombuffer(records.latency_ns, dtype="<i8")[counted] / _NS
    requests = _Requests(due_s, latency_s, classes[counted] != RECORD_CLASSES.index(RIGHT))
    if step.partial:
        return requests, "it was interrupted"
    if step.waited:
        return requests, "the generator or the server waited for processors that other processes used"
    return requests, "the generator was the limit" if step.outcome is StepOutcome.GENERATOR_LIMITED else ""
