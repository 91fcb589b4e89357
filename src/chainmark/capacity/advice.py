"""How long a step must be, and when it may end early."""

from __future__ import annotations

import math

from chainmark.capacity.model import GiveUp, Step, StepOutcome
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import share_interval
from chainmark.stats.estimable import fewest_for_upper_bound

# A share's interval halves with four times the requests.
LENGTHENING = 4.0
# A throughput measured once is not the next one's.
_RESERVE = 1.1


def requests_wanted(sla: Sla) -> int:
    """As many as the SLA asks for, and as a p99 needs."""
    return max(sla.min_requests, fewest_for_upper_bound(0.99))


def step_seconds(per_s: float | None, sla: Sla, usual_s: float, longest_s: float) -> float:
    """How long to measure so that the SLA can be judged.

    Args:
        per_s: requests per second that are expected; None: unknown, and the step is a usual one.
        sla: says how many requests are wanted.
        usual_s: never shorter.
        longest_s: never longer, however slow the endpoint is.
    """
    if per_s is None:
        return min(usual_s, longest_s)
    wanted_s = requests_wanted(sla) * _RESERVE / per_s if per_s > 0.0 else math.inf
    # Whole seconds, which the figures of the series are of.
    return min(longest_s, max(usual_s, math.ceil(wanted_s) if wanted_s < longest_s else longest_s))


def clients_for_enough(latency_s: float, sla: Sla, longest_s: float) -> int:
    """The fewest clients that get enough answers in the longest step, each waiting so long for one."""
    return max(1, math.ceil(requests_wanted(sla) * _RESERVE * latency_s / longest_s))


def rate_for_enough(sla: Sla, share: float, usual_s: float) -> float:
    """The lowest rate at which a usual step has enough requests to the endpoint that has this share of them."""
    return requests_wanted(sla) * _RESERVE / (share * usual_s)


def extended_seconds(step: Step, sla: Sla, usual_s: float, longest_s: float, share: float = 1.0) -> float:
    """How long to measure where this step was inconclusive: four times as long, or until there are enough requests.

    ``share``: of the requests, those of the endpoint that is asked least.
    """
    enough_s = step_seconds(step.result.due_per_s * share, sla, usual_s, longest_s)
    few = any(limit.outcome is StepOutcome.INCONCLUSIVE and limit.name.value != "samples" for limit in step.limits)
    longer_s = max(usual_s, step.result.window_s) * LENGTHENING if few else usual_s
    return min(longest_s, max(enough_s, longer_s))


def give_up(sla: Sla, expected: int) -> GiveUp | None:
    """After how many slow or failed requests a step has failed, whatever the rest does.

    Args:
        sla: the SLA.
        expected: requests that the step has at most, or is expected to have; 0: unknown, and nothing is given up.
    """
    if expected <= 0:
        return None
    return GiveUp(sla.p99_s, _hopeless(0.01, expected), _hopeless(sla.error_share, expected))


def _hopeless(tolerated: float, n: int) -> int:
    """The least count of n whose share is shown to be above what is tolerated."""
    low, high = 1, n
    while low < high:
        middle = (low + high) // 2
        if share_interval(middle, n)[0] > tolerated:
            high = middle
        else:
            low = middle + 1
    return low
