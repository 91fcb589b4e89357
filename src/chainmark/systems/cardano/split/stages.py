"""Network and node parts of a change with known means only: a published table, or a run that was made from one.

The closed formula of adoption gives each part's contribution to a centile: the forger's stages and adoption count once,
fetching k times. The time of a first fetch beyond the notice and the request is the nodes' part of fetching (reading,
sending and receiving a body within a region); the rest of the mean fetch duration is the network. The remainder that
the formula does not cover counts with the node, and widens the interval of both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from chainmark.compare.split import PartedChange, PartEffect
from chainmark.systems.cardano.figures import ADOPTED, ADOPTION, ANNOUNCED, BLOCK_SIZE, FETCH, FIRST_FETCH, FIRST_NOTICE
from chainmark.systems.cardano.formula import Formula, formula_for
from chainmark.systems.cardano.split.parts import ADOPTING, FORGING, HOPS, NETWORK, NODE, UNREPORTED

REQUEST = "peer_request_s"
NEEDED = (FETCH, ANNOUNCED, ADOPTED, BLOCK_SIZE)
OF_FIRST_FETCH = (FIRST_FETCH, FIRST_NOTICE, REQUEST)
HOSTS = 52  # of the cluster that the formula was fitted to


def stage_split(
    baseline: Mapping[str, float], candidate: Mapping[str, float], runs: tuple[int, int] = (1, 1)
) -> list[PartedChange]:
    """The parts of every adoption centile that both sides have; empty if no formula is for blocks of this size.

    Args:
        baseline: means by metric id, in the metrics' units.
        candidate: likewise.
        runs: number of runs of each mean.
    """
    if not all(metric in side for metric in NEEDED for side in (baseline, candidate)):
        return []
    formula, other = formula_for(baseline[BLOCK_SIZE]), formula_for(candidate[BLOCK_SIZE])
    if formula is None or formula is not other:
        return []
    messages = [metric for metric in ADOPTION if metric in baseline and metric in candidate]
    basis = f"the formula's errors over {formula.runs} published runs"
    return [PartedChange(metric, _effects(metric, baseline, candidate, formula, runs), basis) for metric in messages]


def why_not(baseline: Mapping[str, float], candidate: Mapping[str, float]) -> str:
    """Why there is no split by stages, in a clause."""
    lacking = next((metric for metric in NEEDED if metric not in baseline or metric not in candidate), None)
    if lacking is not None:
        return f"a side has no `{lacking}`"
    return "there is no formula for blocks of these sizes"


def _effects(
    metric: str,
    baseline: Mapping[str, float],
    candidate: Mapping[str, float],
    formula: Formula,
    runs: tuple[int, int],
) -> list[PartEffect]:
    k = formula.k[metric]
    serves = all(name in side for name in OF_FIRST_FETCH for side in (baseline, candidate))
    own = [_service_s(side) if serves else 0.0 for side in (baseline, candidate)]
    sides = (baseline, candidate)
    network = [k * (side[FETCH] - service) for side, service in zip(sides, own, strict=True)]
    stages = {
        FORGING: [side[ANNOUNCED] for side in sides],
        HOPS: [k * service for service in own],
        ADOPTING: [side[ADOPTED] for side in sides],
    }
    node = [side[metric] - part for side, part in zip(sides, network, strict=True)]
    rest = [whole - math.fsum(stage[place] for stage in stages.values()) for place, whole in enumerate(node)]
    missed = formula.step_error_s[metric] * math.sqrt((1.0 / runs[0] + 1.0 / runs[1]) / 2.0)
    moved_s = (candidate[FETCH] - own[1]) - (baseline[FETCH] - own[0])
    error = math.hypot(formula.k_error[metric] * moved_s, missed)
    service_error = formula.k_error[metric] * (own[1] - own[0])
    freedom = float(formula.runs - 2)
    parts = [(NETWORK, network, error), (NODE, node, error)]
    # The stages are printed figures, whose error is negligible.
    errors = {FORGING: 0.0, HOPS: abs(service_error), ADOPTING: 0.0}
    parts += [(part, values, errors[part]) for part, values in stages.items() if part is not HOPS or serves]
    parts.append((UNREPORTED, rest, error))
    return [PartEffect(part, values[0], values[1], wrong, freedom) for part, values, wrong in parts]


def _service_s(side: Mapping[str, float]) -> float:
    """The duration of a first fetch from its request: usually one within the forger's region."""
    return side[FIRST_FETCH] - side[FIRST_NOTICE] - side[REQUEST]
