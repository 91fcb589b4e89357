"""The rate of a counter as Prometheus computes it, so that figures here equal those of published plots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chainmark.core.times import NS

# If a range's edge is nearer to a sample than that many mean steps, the counter's growth is assumed to cover it.
_REACH = 1.1


def extrapolated_rate(
    times_ns: NDArray[np.int64], values: NDArray[np.float64], at_ns: NDArray[np.int64], window_ns: int
) -> NDArray[np.float64]:
    """``rate(x[window])`` of PromQL at each of some moments.

    The increase between the first and the last sample of the window, plus the losses by counter resets, extrapolated to
    the window's edges but not beyond half a mean step if they are further away, and not before the moment at which the
    counter would have been zero (Prometheus, promql/functions.go, `extrapolatedRate`).

    Args:
        times_ns: shape (n,), of the samples, ascending.
        values: shape (n,).
        at_ns: shape (m,), the windows' ends; a window is closed at both.
        window_ns: its length.

    Returns:
        Shape (m,), per second; NaN if a window holds fewer than two samples.
    """
    rates = np.full(len(at_ns), np.nan)
    falls = np.concatenate([[0.0], np.where(np.diff(values) < 0, values[:-1], 0.0)]) if len(values) else values
    lost = np.cumsum(falls)
    first = np.searchsorted(times_ns, at_ns - window_ns, side="left")
    last = np.searchsorted(times_ns, at_ns, side="right") - 1
    for index in np.flatnonzero(last > first):
        low, high = first[index], last[index]
        increase = values[high] - values[low] + lost[high] - lost[low]
        sampled_ns = float(times_ns[high] - times_ns[low])
        step_ns = sampled_ns / float(high - low)
        before_ns = float(times_ns[low] - (at_ns[index] - window_ns))
        after_ns = float(at_ns[index] - times_ns[high])
        if increase > 0 and values[low] >= 0:
            before_ns = min(before_ns, sampled_ns * (values[low] / increase))
        before_ns = before_ns if before_ns < _REACH * step_ns else step_ns / 2
        after_ns = after_ns if after_ns < _REACH * step_ns else step_ns / 2
        rates[index] = increase * ((sampled_ns + before_ns + after_ns) / sampled_ns) / (window_ns / NS)
    return rates
