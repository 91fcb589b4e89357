"""How long a step must be, and when it may end early."""

from __future__ import annotations

import math

from chainmark.capacity.model import GiveUp, Step, StepOutcome
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import share_interval
from chainmark.stats.estimable import fewest_for_upper_bound

# The interval of a share halves with four times the requests.
LENGTHENING = 4.0
# A single measured throughput does not predict the next one exactly.
_RESERVE = 1.1


def requests_wanted(sla: Sla) -> int:
    """The number of requests that the SLA requires and a p99 needs."""
    return max(sla.min_requests, fewest_for_upper_bound(0.99))


def step_seconds(per_s: float | None, sla: Sla, usual_s: float, longest_s: float) -> float:
    """How long to measure so that the SLA can be judged.

    Args:
        per_s: expected requests per second; None: unknown, and the step has its usual length.
        sla: sets the number of requests.
        usual_s: the shortest length.
        longest_s: the longest length, however slow the endpoint is.
    """
    if per_s is None:
        return min(usual_s, longest_s)
    wanted_s = requests_wanted(sla) * _RESERVE / per_s if per_s > 0.0 else math.inf
    # Whole seconds, because the series has one value per second.
    return min(longest_s, max(usual_s, math.ceil(wanted_s) if wanted_s < longest_s else longest_s))


def clients_for_enough(latency_s: float, sla: Sla, longest_s: float) -> int:
    """The fewest clients that get enough responses in the longest step, each waiting this long for one."""
    return max(1, math.ceil(requests_wanted(sla) * _RESERVE * latency_s / longest_s))


def rate_for_enough(sla: Sla, share: float, usual_s: float) -> float:
    """The lowest rate at which a usual step has enough requests to the endpoint with this share of them."""
    return requests_wanted(sla) * _RESERVE / (share * usual_s)


def extended_seconds(step: Step, sla: Sla, usual_s: float, longest_s: float, share: float = 1.0) -> float:
    """How long to measure if this step was inconclusive: four times as long, or until there are enough requests.

    ``share``: fraction of the requests that the least requested endpoint receives.
    """
    enough_s = step_seconds(step.result.due_per_s * share, sla, usual_s, longest_s)
    few = any(limit.outcome is StepOutcome.INCONCLUSIVE and limit.name.value != "samples" for limit in step.limits)
    longer_s = max(usual_s, step.result.window_s) * LENGTHENING if few else usual_s
    return min(longest_s, max(enough_s, longer_s))


def give_up(sla: Sla, expected: int) -> GiveUp | None:
    """The number of slow or failed requests after which a step has failed, whatever follows.

    Args:
        sla: the SLA.
        expected: largest or expected number of requests of the step; 0: unknown, and the step is never given up.
    """
    if expected <= 0:
        return None
    return GiveUp(sla.p99_s, _hopeless(0.01, expected), _hopeless(sla.error_share, expected))


def _hopeless(tolerated: float, n: int) -> int:
    """The smallest count out of n that shows a share above the tolerated one."""
    low, high = 1, n
    while low < high:
        middle = (low + high) // 2
        if share_interval(middle, n)[0] > tolerated:
            high = middle
        else:
            low = middle + 1
    return low
