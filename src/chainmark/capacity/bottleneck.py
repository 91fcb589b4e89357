"""Which resource of a server was exhausted first as its load grew, from its use at each level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from chainmark.capacity.verdict import level_text
from chainmark.core import units
from chainmark.core.load_report import ExhaustedEntry, Kind, ResourceEntry, StepEntry

# A resource is full from this share of its limit on.
FULL_SHARE = 0.95
# A full resource stays full, up to noise …
_STAYS_SHARE = 0.9
# … and the throughput no longer grows, up to noise. Otherwise the resource was full without being the bottleneck.
_MORE_ANSWERS = 1.25
# Where this share of the requests waits in one place, that place is the bottleneck.
_WAITING_SHARE = 0.25
# For a level without a limit: it stays within this of its median, after it was below this share of it.
_FLAT_WITHIN = 0.1
_ROSE_FROM_SHARE = 0.7
_LOAD_GREW = 2.0
# Number of further resources that are reported with the first.
_LISTED_NEXT = 2
_LEAST_BESIDE_SHARE = 0.05

Sort = Literal["gauge", "counter", "waiting"]


@dataclass(frozen=True)
class LevelSeen:
    """One level of load and the responses at it.

    Attributes:
        missed: the SLA was missed there.
        limited: the generator was the limit, so the level shows nothing about the server.
    """

    level: float
    ok_per_s: float
    missed: bool = False
    limited: bool = False


@dataclass(frozen=True)
class ResourceUse:
    """The use of one resource.

    Attributes:
        label: its name in a sentence: "the server's CPU".
        unit: of ``used``; "fraction" for the share of time in which it is busy.
        sort: "waiting" for a count of what waits for it.
        used, shares: by level: the amount, and its share of the available amount where that is known.
        limit: the available amount, at the last level.
        highest: the largest amount ever observed.
        is_cpu: processor time.
    """

    label: str
    unit: str
    sort: Sort
    used: Mapping[float, float]
    shares: Mapping[float, float] = field(default_factory=dict)
    limit: float | None = None
    is_cpu: bool = False
    highest: float = 0.0


def first_exhausted(kind: Kind, levels: Sequence[LevelSeen], uses: Sequence[ResourceUse]) -> ExhaustedEntry:
    """The resource that was exhausted first, at the latest at the first level that missed the SLA.

    In this order: one with a known limit that reached it; one for which much of the load waited; one that stays
    constant while the load grows. Of several, the one that was first, then the one that was fuller before.

    Args:
        kind: of load.
        levels: in any order.
        uses: of every observed resource, the more informative first.
    """
    ordered = sorted(levels, key=lambda level: level.level)
    limited = next((level.level for level in ordered if level.limited), None)
    missed = next((level.level for level in ordered if level.missed), None)
    reported = [level for level in ordered if missed is None or level.level <= missed]
    # A full resource is full whatever limits the load; one that is not full may just have received too little load.
    if result := _first_full(reported, ordered, uses):
        return _exhausted(kind, *result, uses)
    if missed is None and limited is None:
        return _nothing(kind, uses, "no level missed the SLA, and ")
    if waiting := _first_waiting(kind, reported, ordered, uses):
        return _held_up(kind, *waiting, uses)
    if limited is not None and (missed is None or limited <= missed):
        sentence = f"the load generator, not the server, was the limit from {level_text(kind, limited)} on"
        return ExhaustedEntry(kind=kind, finding="generator", level=limited, sentence=sentence)
    if missed is not None and (flat := _first_flat(ordered, missed, uses)):
        return _stays(kind, flat, ordered[-1].level, uses)
    return _nothing(kind, uses)


def _first_full(
    levels: Sequence[LevelSeen], seen: Sequence[LevelSeen], uses: Sequence[ResourceUse]
) -> tuple[ResourceUse, float] | None:
    """The resource that reached its limit, and from which level on."""
    results = []
    for index, use in enumerate(uses):
        known = [entry for entry in levels if entry.level in use.shares]
        for at, item in enumerate(known):
            if not _is_full_from(use, known[at:]):
                continue
            if _no_more_answers(item, seen):
                results.append((item.level, -use.shares[known[at - 1].level] if at else -1.0, index, use))
                break
            # A processor may be busy with one client, and do more with several.
            if not use.is_cpu:
                break
    if not results:
        return None
    level, _, _, use = min(results)
    return use, level


def _is_full_from(use: ResourceUse, levels: Sequence[LevelSeen]) -> bool:
    """Whether it is full at the first of these levels and stays so."""
    first, *_ = shares = [use.shares[level.level] for level in levels]
    return first >= FULL_SHARE and min(shares) >= _STAYS_SHARE


def _no_more_answers(at: LevelSeen, levels: Iterable[LevelSeen]) -> bool:
    """Whether the throughput at higher levels is no larger than at this one."""
    return all(level.ok_per_s <= _MORE_ANSWERS * at.ok_per_s for level in levels if level.level > at.level)


def _first_waiting(
    kind: Kind, levels: Sequence[LevelSeen], seen: Sequence[LevelSeen], uses: Sequence[ResourceUse]
) -> tuple[ResourceUse, float] | None:
    """The resource for which most of the load waits, where that is much of it, and from which level on."""
    results = []
    for index, use in enumerate(uses):
        if use.sort != "waiting" or use.shares:
            continue
        known = [item for item in levels if item.level in use.used]
        enough = [item.level for item in known if _is_much(kind, item.level, use.used[item.level])]
        if enough and enough[-1] == known[-1].level and _no_more_answers(known[-1], seen):
            results.append((-use.used[enough[-1]], index, use, enough[0]))
    if not results:
        return None
    _, _, use, level = min(results)
    return use, level


def _is_much(kind: Kind, level: float, waiting: float) -> bool:
    """Whether a large share of the requests in flight waits; at a rate their number is unknown, so one is enough."""
    return waiting >= (max(1.0, _WAITING_SHARE * level) if kind == "clients" else 1.0)


def _first_flat(
    levels: Sequence[LevelSeen], missed: float, uses: Sequence[ResourceUse]
) -> tuple[ResourceUse, float, float] | None:
    """The resource whose use grew with the load and then stopped growing: from which level on, and at which value."""
    results = []
    for index, use in enumerate(uses):
        known = [entry for entry in levels if entry.level in use.used]
        if not (use.is_cpu or _is_count(use)):
            continue
        for at, item in enumerate(known):
            values = [use.used[later.level] for later in known[at:]]
            middle = median(values)
            rose = use.used[known[0].level] <= _ROSE_FROM_SHARE * middle
            grew = known[-1].level >= _LOAD_GREW * item.level
            flat = all(abs(value - middle) <= _FLAT_WITHIN * middle for value in values)
            if (
                rose
                and grew
                and flat
                and _is_bounded(use, middle)
                and item.level <= missed
                and _no_more_answers(item, levels)
            ):
                results.append((item.level, index, use, middle))
                break
    if not results:
        return None
    level, _, use, middle = min(results)
    return use, level, middle


def _is_count(use: ResourceUse) -> bool:
    """Whether it is a count with an unknown limit; rates and bytes level off wherever a server is full."""
    return use.sort == "gauge" and not use.shares and not use.unit.startswith("bytes")


def _is_bounded(use: ResourceUse, middle: float) -> bool:
    """Whether it stays constant because it has reached its maximum.

    An average use stays constant wherever a server is full. A bounded one stays at its largest observed value, and the
    processor time of a program that uses few cores at a time stays at a whole number of cores.
    """
    if use.is_cpu:
        whole = round(middle)
        return whole >= 1 and abs(middle - whole) <= _FLAT_WITHIN * whole
    return middle >= FULL_SHARE * use.highest > 0.0


def _exhausted(kind: Kind, use: ResourceUse, level: float, uses: Sequence[ResourceUse]) -> ExhaustedEntry:
    at_level = level_text(kind, level)
    share = units.plain_percent(min(1.0, use.shares[level]), decimals=0)
    amount = _amount(use, use.used[level])
    if use.is_cpu:
        of = f"{amount} of {_amount(use, use.limit)} {'core' if use.limit == 1.0 else 'cores'}"
        text = f"{use.label} reached {of} from {at_level} on"
    elif use.unit == "fraction":
        text = f"{use.label} was busy {share} of the time from {at_level} on"
    elif use.unit == "cores":
        text = f"{use.label} ran {share} of the time, on one core, from {at_level} on"
    else:
        was = "were" if use.label.endswith("s") else "was"
        text = f"{use.label} {was} full ({amount} of {_amount(use, use.limit)}) from {at_level} on"
    return _entry(kind, "exhausted", use, level, text + _beside(use, level, uses))


def _held_up(kind: Kind, use: ResourceUse, level: float, uses: Sequence[ResourceUse]) -> ExhaustedEntry:
    waiting = f"{_amount(use, use.used[max(use.used)])} {use.unit}".rstrip()
    text = f"{use.label} limited the server from {level_text(kind, level)} on: {waiting} waited"
    return _entry(kind, "waiting", use, level, text + _beside(use, level, uses))


def _stays(
    kind: Kind, flat: tuple[ResourceUse, float, float], last: float, uses: Sequence[ResourceUse]
) -> ExhaustedEntry:
    use, level, value = flat
    times = units.tidy(last / level, 2)
    of = f" of {_amount(use, use.limit)}" if use.limit is not None else ""
    of = f"{of} {use.unit}".rstrip()
    text = f"{use.label} stayed at {_amount(use, value)}{of} from {level_text(kind, level)} on"
    return _entry(kind, "flat", use, level, f"{text}, while the load grew {times}-fold" + _beside(use, level, uses))


def _nothing(kind: Kind, uses: Sequence[ResourceUse], before: str = "") -> ExhaustedEntry:
    sentence = f"{before}no monitored resource was exhausted"
    shares = [(share, use.label, level) for use in uses for level, share in use.shares.items()]
    if shares:
        share, label, level = max(shares)
        fullest = f"{label}, {units.plain_percent(share, decimals=0)} at {level_text(kind, level)}"
        sentence += f"; the fullest was {fullest}"
    return ExhaustedEntry(kind=kind, finding="nothing", sentence=sentence)


def _entry(
    kind: Kind, finding: Literal["exhausted", "waiting", "flat"], use: ResourceUse, level: float, reported: str
) -> ExhaustedEntry:
    return ExhaustedEntry(kind=kind, finding=finding, resource=use.label, level=level, sentence=reported)


def _beside(first: ResourceUse, level: float, uses: Sequence[ResourceUse]) -> str:
    """What else was used at that level: the processors, and the fullest resources after the first."""
    others = [use for use in uses if use is not first and use.label != first.label and level in use.shares]
    fuller = sorted(others, key=lambda resource_use: (not resource_use.is_cpu, -resource_use.shares[level]))
    messages = [
        f"{resource_use.label.removeprefix(_OWN)} {units.plain_percent(resource_use.shares[level], decimals=0)}"
        for resource_use in fuller
        if resource_use.is_cpu or resource_use.shares[level] >= _LEAST_BESIDE_SHARE
    ]
    return f"; {', '.join(messages[:_LISTED_NEXT])}" if messages else ""


_OWN = "the server's "


def _amount(use: ResourceUse, value: float | None) -> str:
    if value is None:
        return units.NO_DATA
    if use.unit == "bytes":
        return units.byte_size(round(value))
    return units.tidy(value, 2 if value < 100.0 else 4)


def exhausted_entries(steps: Sequence[StepEntry], resources: Sequence[ResourceEntry]) -> list[ExhaustedEntry]:
    """The bottleneck under each kind of load of one endpoint; empty where nothing was observed."""
    entries = []
    for kind in dict.fromkeys(step.kind for step in steps):
        chosen = _clean(step for step in steps if step.kind == kind and not step.partial)
        uses = [use for resource in resources if resource.uses and (use := _use_of(resource, chosen)).used]
        if uses:
            entries.append(first_exhausted(kind, list(_levels_of(chosen)), uses))
    return entries


def _clean(steps: Iterable[StepEntry]) -> dict[float, list[StepEntry]]:
    """The steps by level; steps that had to wait for other processes only where a level has no other."""
    by_level: dict[float, list[StepEntry]] = {}
    for step in steps:
        by_level.setdefault(step.level, []).append(step)
    return {
        level: [step for step in level_steps if step.reason != "waited"] or level_steps
        for level, level_steps in sorted(by_level.items())
    }


def _levels_of(chosen: Mapping[float, Sequence[StepEntry]]) -> Iterator[LevelSeen]:
    for level, steps in chosen.items():
        fails = sum(step.point_outcome == "fail" for step in steps)
        limited = all(step.outcome == "generator-limited" and step.reason != "waited" for step in steps)
        yield LevelSeen(level, median(step.ok_per_s for step in steps), 2 * fails > len(steps), limited)


def _use_of(resource: ResourceEntry, chosen: Mapping[float, Sequence[StepEntry]]) -> ResourceUse:
    """The medians of each level's steps."""
    uses = {use.step: use for use in resource.uses}
    used, shares, limit = {}, {}, None
    for level, steps in chosen.items():
        readings = [uses[step.number] for step in steps if step.number in uses]
        if readings:
            used[level] = median(use.mean for use in readings)
            limit = next((use.limit for use in readings if use.limit is not None), limit)
        if reported := [use.share for use in readings if use.share is not None]:
            shares[level] = median(reported)
    highest = max(use.highest for use in resource.uses)
    return ResourceUse(resource.label, resource.unit, resource.sort, used, shares, limit, resource.is_cpu, highest)
