"""The network's and the nodes' parts of a comparison's changes of adoption: from logs, or from means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chainmark.compare.estimates import mean_of
from chainmark.compare.inputs import LoadedRun
from chainmark.compare.sides import SelectedRuns
from chainmark.compare.split import Parted, PartedChange, effects
from chainmark.core import units
from chainmark.core.errors import InvalidRunError
from chainmark.systems.cardano.figures import ADOPTION, KNOWN
from chainmark.systems.cardano.split.parts import OF_PATHS, TITLE
from chainmark.systems.cardano.split.paths import COLUMNS, Ways, trace
from chainmark.systems.cardano.split.stages import HOSTS, stage_split, why_not
from chainmark.systems.cardano.tables import timelines_name

BLOCKS_LEAST = 20
TRACED_LEAST = 0.95
OF_LOGS = (
    "from the logs: the path of each body from its forger to the host whose adoption is the centile, hop by hop; the "
    "network part is the number of hops, and the additional time of hops between regions over hops within one ({})",
    "bodies that take a different number of TCP rounds count as network, although a node may be the cause; a slow "
    "host that others fetch around makes paths longer",
)
OF_STAGES = (
    "by the stages' means: the network part is the formula's multiple of the fetch duration, minus the nodes' part of "
    "a first fetch, which is mostly within a region; what the formula does not explain counts as node",
    "a table does not show where bodies came from: if a node reads or sends all bodies more slowly, only the first "
    "fetch shows it, and the rest of such a change counts as network",
)
WITHIN_RUNS = (
    "with one run per side, the intervals show the uncertainty of this split, not the variation of the node's part "
    "between runs"
)


def causes_of(sides: Sequence[SelectedRuns]) -> Parted | None:
    """The parts of adoption on two sides; None if one has no run that is judged.

    Without logs, if the cluster has as many hosts as those that the formula was fitted to, by the stages.
    """
    runs = [side.included for side in sides]
    if not all(runs):
        return None
    ways = [[ways_of(run) for run in side] for side in runs]
    reason = next((reason for side in ways for item in side if (reason := lacks(item))), "")
    if not reason:
        return _by_ways([[item for item in side if item is not None] for side in ways])
    return _by_stages(runs, reason)


def ways_of(run: LoadedRun) -> Ways | None:
    """The paths in a run's events; None if it has none, or of an earlier format."""
    try:
        events = run.scan_events(timelines_name(run.catalogue))
    except InvalidRunError:  # made from figures alone
        return None
    if events is None or not set(COLUMNS) <= set(events.collect_schema().names()):
        return None
    switches = run.manifest.workload.get("analysis.count_switches", True)
    return trace(events, switches_count=bool(switches))


def lacks(ways: Ways | None) -> str:
    """Why a run's paths cannot be used, as a clause; "" if they can."""
    if ways is None:
        return "a run has no events that show which host each body came from: import its logs again"
    untraced = f"only {units.plain_percent(ways.traced / max(1, ways.blocks))} of a run's blocks can be traced back"
    reasons = {
        "the hosts' regions are unknown: import the logs with `--topology FILE`": not ways.regions,
        "all hosts of a run are in one region, so no route between regions could change": ways.regions == 1,
        "the logs do not show which host a body came from": not ways.known,
        f"a run has {units.plural(ways.blocks, 'block')}, but at least {BLOCKS_LEAST} are needed": (
            ways.blocks < BLOCKS_LEAST
        ),
        f"{untraced} to their forgers from host to host": ways.traced < TRACED_LEAST * ways.blocks,
        "no host had a body from its own region, so the nodes' part of a hop is unknown": (
            not ways.within_counts.any()
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _by_ways(sides: Sequence[Sequence[Ways]]) -> Parted:
    hops = [sum(ways.within_mean_s for ways in side) / len(side) for side in sides]
    reference_s = sum(hops) / 2.0
    changes = []
    for place, metric in enumerate(ADOPTION):
        values = [[ways.parts(place, reference_s) for ways in side] for side in sides]
        part_effects, basis = effects(OF_PATHS, *values)
        changes.append(PartedChange(metric, part_effects, basis))
    both = " and ".join(units.quantity(hop, "s") for hop in hops)
    alone = [WITHIN_RUNS] if all(len(side) == 1 for side in sides) else []
    return Parted(TITLE, changes, notes=[OF_LOGS[0].format(both), *OF_LOGS[1:], *alone])


def published_parts(baseline: Mapping[str, float], candidate: Mapping[str, float]) -> Parted:
    """The parts of adoption between two columns of published tables, by metric id; or why there are none."""
    changes = stage_split(baseline, candidate)
    if not changes:
        return Parted(TITLE, reason=why_not(baseline, candidate))
    return Parted(TITLE, changes, notes=OF_STAGES)


def _by_stages(runs: Sequence[Sequence[LoadedRun]], reason: str) -> Parted:
    if not all(_hosts(run) == HOSTS for side in runs for run in side):
        return Parted(TITLE, reason=reason)
    means = [_means(side) for side in runs]
    changes = stage_split(means[0], means[1], (len(runs[0]), len(runs[1])))
    if not changes:
        unknown = why_not(means[0], means[1])
        return Parted(TITLE, reason=f"{reason}; the stages do not show it either, because {unknown}")
    return Parted(TITLE, changes, notes=[f"not from logs: {reason}", *OF_STAGES])


def _hosts(run: LoadedRun) -> int | None:
    result = run.manifest.workload.get("network.hosts")
    return result if isinstance(result, int) else None


def _means(runs: Sequence[LoadedRun]) -> Mapping[str, float]:
    """The means over runs of the means that all of them have."""
    messages = []
    for run in runs:
        summaries = {metric: summary for metric in KNOWN if (summary := run.summary(metric)) is not None}
        messages.append({metric: mean for metric, item in summaries.items() if (mean := mean_of(item)) is not None})
    return {
        metric: sum(run[metric] for run in messages) / len(messages) for metric in set.intersection(*map(set, messages))
    }
