"""The words and figures of a load test, shared by all of its tables and charts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from chainmark.capacity.figures import FEWEST_FOR_P95, FEWEST_FOR_P99
from chainmark.capacity.verdict import bare_level, level_text
from chainmark.core import units
from chainmark.core.load_report import (
    CapacityEntry,
    Centile,
    EndpointEntry,
    Kind,
    LoadReport,
    ServiceLevel,
    StepEntry,
    TargetEntry,
)
from chainmark.report.blocks import TableCell, TableRow
from chainmark.report.phrases import Emphasis

KINDS: tuple[Kind, ...] = ("clients", "rate")
KIND_NAMES: dict[Kind, str] = {"clients": "Concurrency", "rate": "Arrival rate"}
KIND_WORDS: dict[Kind, str] = {"clients": "clients", "rate": "arrival rate"}
KIND_AXES: dict[Kind, str] = {"clients": "clients", "rate": "requests due per second"}
BEYOND = "∞"
NOT_DECIDED = "not decided"
MS = units.DisplayUnit("ms", 1e3)
_MOST_MS_DECIMALS = 3

CENTILES_ARE = (
    f"{units.NOT_ESTIMABLE}: p99 needs at least {FEWEST_FOR_P99} requests, p95 at least {FEWEST_FOR_P95}; "
    f"the maximum is not substituted. {BEYOND}: so many requests had no correct "
    "response that the percentile has no finite value."
)
ERRORS_ARE = (
    "Error rate: the share of the sent requests that failed: wrong status, wrong content, timeout or connection error."
)
INTERVALS_ARE = (
    "Interval: every measurement passed clearly (95 %) up to its lower level, and failed clearly from its upper level "
    "upwards."
)


def centile_notes(rows: Sequence[TableRow]) -> list[str]:
    """The meaning of the words that replace a centile, if there are any."""
    words = {units.NOT_ESTIMABLE, BEYOND}
    return [CENTILES_ARE] if any(cell.text in words for row in rows for cell in row.cells) else []


def centile_cell(centile: Centile) -> TableCell:
    """A centile of all due requests, in ms, or why there is none."""
    if centile.value_s is not None:
        return milliseconds(centile.value_s)
    if centile.missing == "never answered":
        return TableCell(BEYOND, emphasis="worse")
    return TableCell(units.NOT_ESTIMABLE, emphasis="quiet")


def milliseconds(seconds: float, emphasis: Emphasis = "plain") -> TableCell:
    """A latency in ms, the unit of all these tables, with at most four digits."""
    value = seconds * MS.factor
    return TableCell(units.number(value, min(_MOST_MS_DECIMALS, units.decimals_for([value]))), emphasis=emphasis)


def per_second(value: float) -> TableCell:
    """Responses per second, with four digits."""
    return TableCell(units.number(value, min(_MOST_MS_DECIMALS, units.decimals_for([value]))))


def percent_figure(share: float | None, decimals: int = 2) -> TableCell:
    """A share as a percentage without its sign. A value above zero never reads as zero."""
    if share is None or not math.isfinite(share):
        return TableCell(units.NO_DATA, emphasis="quiet")
    least = 10.0**-decimals
    if 0.0 < share * 100.0 < least / 2.0:
        return TableCell(f"< {units.number(least, decimals)}")
    return TableCell(units.number(share * 100.0, decimals))


def capacity_text(capacity_entry: CapacityEntry) -> str:
    """The capacity without false precision: "825", "≥ 500" at a ladder's end, "not decided"."""
    if capacity_entry.capacity is None:
        return NOT_DECIDED
    if capacity_entry.contested:
        return f"{bare_level(capacity_entry.capacity)} (not confirmed)"
    if capacity_entry.finding == "lower bound":
        return f"≥ {bare_level(capacity_entry.capacity)}" if capacity_entry.capacity > 0.0 else NOT_DECIDED
    return bare_level(capacity_entry.capacity)


def capacity_emphasis(capacity_entry: CapacityEntry) -> Emphasis:
    """Zero capacity is bad; an uncertain or unconfirmed one asks for caution."""
    if capacity_entry.finding == "nothing passed":
        return "worse"
    return "plain" if capacity_entry.finding == "found" else "caution"


def interval_text(capacity_entry: CapacityEntry) -> str:
    """From the level that passed clearly to the one that failed clearly: "825 … 850"."""
    low = bare_level(capacity_entry.low)
    if capacity_entry.high is None:
        return f"≥ {low}" if capacity_entry.low > 0.0 else "open"
    return f"{low} … {bare_level(capacity_entry.high)}"


def stopped_text(capacity_entry: CapacityEntry, sla: ServiceLevel) -> str:
    """Why the capacity is not higher, or not known more precisely."""
    if capacity_entry.stopped_by == "first step":
        missed = condition_text(capacity_entry.condition, sla) if capacity_entry.condition else "unknown cause"
        return f"the lowest level failed: {missed}"
    ends = {
        "ladder end": "the ladder's end, nothing failed",
        "generator-limited": "the generator, not the server",
        "waited": "waited for a processor that other processes had",
        "budget": "the search ran out of steps",
        "interrupted": "interrupted",
        "server gone": "the server went away",
        "generator gone": "a load generator went away",
    }
    of_part = f" of {capacity_entry.condition_part}" if capacity_entry.condition_part else ""
    return ends.get(capacity_entry.stopped_by) or _condition_of(capacity_entry.stopped_by, of_part, sla)


def _condition_of(name: str, whose: str, sla: ServiceLevel) -> str:
    """An endpoint of a mix has its own SLA, so its limit is not that of the whole."""
    return f"{name}{whose}" if whose else condition_text(name, sla)


def condition_text(name: str, sla: ServiceLevel) -> str:
    """A missed condition with its limit: "p99 above 1 s"."""
    return {
        "p99": f"p99 above {units.duration(sla.p99_s)}",
        "p95": f"p95 above {units.duration(sla.p95_s)}" if sla.p95_s is not None else "p95",
        "errors": f"errors above {units.plain_percent(sla.error_share)}",
        "achieved": f"below {units.plain_percent(sla.achieved_share)} of the rate",
        "samples": "too few requests",
        "generator": "the generator's limit",
        "waited": "waited for a processor",
    }.get(name, name)


def sla_text(sla: ServiceLevel) -> str:
    """The limits in short: "p99 ≤ 1 s, errors ≤ 1 %"."""
    p95 = [] if sla.p95_s is None else [f"p95 ≤ {units.duration(sla.p95_s)}"]
    p99 = f"p99 ≤ {units.duration(sla.p99_s)}"
    return ", ".join([*p95, p99, f"errors ≤ {units.plain_percent(sla.error_share)}"])


def slas_of(report: LoadReport) -> list[ServiceLevel]:
    """The different SLAs, in order."""
    return list(dict.fromkeys(endpoint.sla for target in report.targets for endpoint in target.endpoints))


def capacity_of(endpoint: EndpointEntry, kind: Kind) -> CapacityEntry | None:
    """The result for this kind of load."""
    return next((capacity for capacity in endpoint.capacities if capacity.kind == kind), None)


def step_of(endpoint: EndpointEntry, kind: Kind, number: int | None) -> StepEntry | None:
    """A step by its number."""
    if number is None:
        return None
    return next((step for step in endpoint.steps if step.number == number and step.kind == kind), None)


def shown_step(endpoint: EndpointEntry, capacity_entry: CapacityEntry) -> StepEntry | None:
    """The step whose figures are next to the capacity."""
    return step_of(endpoint, capacity_entry.kind, capacity_entry.best_step)


def kinds_of(targets: Iterable[TargetEntry]) -> list[Kind]:
    """The kinds of load that were searched or measured."""
    listed = list(targets)
    kinds = {capacity.kind for target in listed for endpoint in target.endpoints for capacity in endpoint.capacities}
    kinds |= {step.kind for target in listed for endpoint in target.endpoints for step in endpoint.steps}
    return [kind for kind in KINDS if kind in kinds]


def names_of(targets: Sequence[TargetEntry]) -> list[str]:
    """The targets' names, made unique, so that no two columns or lines are confused."""
    names: list[str] = []
    for target in targets:
        name, turn = target.name, 2
        while name in names:
            name, turn = f"{target.name} ({turn})", turn + 1
        names.append(name)
    return names


def endpoint_ids(report: LoadReport) -> dict[str, str]:
    """All endpoints with their labels, in the order of their first appearance."""
    results: dict[str, str] = {}
    for target in report.targets:
        for endpoint in target.endpoints:
            results.setdefault(endpoint.id, endpoint.label)
    return results


def short_level(step: StepEntry) -> str:
    """A step's level in short form: "64", "1200/s"."""
    return bare_level(step.level) + ("/s" if step.kind == "rate" else "")


def level_of(step: StepEntry) -> str:
    """A step's level with its unit."""
    return level_text(step.kind, step.level)
