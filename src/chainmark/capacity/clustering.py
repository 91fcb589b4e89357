"""How much less the slow requests of a step show than the same number of independent ones.

Requests queue behind each other, so slow ones come in clusters. An interval that ignores this is too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chainmark.capacity.model import StepResult
from chainmark.stats import special
from chainmark.stats.estimable import RISK

# As many batches as show the variance between them, each as long as they allow.
BATCHES, FEWEST_BATCHES = 10, 5


def design_effect(counted: Sequence[int], of: Sequence[int]) -> float:
    """The variance of a share over that of independent requests, widened for the number of batches; at least 1.

    The seconds are joined to ten to nineteen batches of equal length; of fewer seconds, each is a batch. The variance
    between batches gives that of the share (method of batch means), and the t distribution allows for its own
    uncertainty. Fewer than five seconds do not show it: then it is 1.

    Args:
        counted: requests that count, per second.
        of: all requests, per second.

    Sources: Law (2015), "Simulation modeling and analysis", section 9.5.3; Kish (1965), "Survey sampling", section 8.2.
    """
    seconds = len(of)
    if seconds < FEWEST_BATCHES or not 0 < sum(counted) < sum(of):
        return 1.0
    length = max(1, seconds // BATCHES)
    batches = seconds // length
    left_out = seconds - batches * length
    part, whole = (
        np.asarray(column[left_out:], dtype=np.float64).reshape(batches, length).sum(axis=1) for column in (counted, of)
    )
    total = float(whole.sum())
    share = float(part.sum()) / total
    independent = share * (1.0 - share) * total
    if independent <= 0.0:
        return 1.0
    between = float(np.square(part - share * whole).sum()) * batches / (batches - 1)
    widening = special.t_quantile(1.0 - RISK / 2.0, batches - 1) / special.normal_quantile(1.0 - RISK / 2.0)
    return max(1.0, between / independent * widening**2)


def slow_effect(result: StepResult) -> float:
    """The design effect of the requests that missed the p99 limit, failed ones included."""
    series = result.series
    whole = result.whole_seconds()
    slow = [series.slow[at] + series.failed[at] for at in whole]
    return design_effect(slow, [series.ok[at] + series.failed[at] for at in whole])


def of_part(effect: float, requests: int, of: int) -> float:
    """The design effect for some of the requests: a cluster has that share of them, too.

    Source: Kish (1965), section 5.4: 1 + (cluster size - 1) x correlation.
    """
    return 1.0 + (effect - 1.0) * requests / of if of else 1.0
