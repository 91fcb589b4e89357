"""The first sentence of a load test: what users notice, at which load, how certain that is, and the next step."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.capacity.verdict import Ruling, bare_level, level_text, verdict
from chainmark.core import units
from chainmark.core.load_report import CapacityEntry, EndpointEntry, ExhaustedEntry, LoadReport, TargetEntry
from chainmark.core.verdict import Verdict
from chainmark.core.wording import enumerated, first_sentence, some_of
from chainmark.report.load_text import (
    capacity_of,
    condition_text,
    interval_text,
    names_of,
    sla_text,
    slas_of,
)

_NAMED = 3
_TOO_SLOW = ("p99", "p95")


def sentence(report: LoadReport, ruled: Sequence[Ruling]) -> str:
    """What users notice, where, how certain that is, and the next step."""
    gating = [ruling for ruling in ruled if ruling.gates]
    result, _ = verdict(report, ruled)
    gone = next((target for target in report.targets if target.gone), None)
    if gone is not None and gone.gone is not None:
        at = units.utc_clock(gone.gone.at)
        by_generator = gone.gone.generator
        who, log = (by_generator.capitalize(), "its worker") if by_generator else (gone.name, gone.name)
        step = f"look at the log of {log} around {at}, then repeat the test"
        return first_sentence(f"{who} went away at {at}: {gone.gone.why}", _counted(report, gating), next_step=step)
    if not gating:
        return first_sentence("Nothing was measured", next_step="repeat the test")
    if result is Verdict.PASS:
        clauses = [f"SLA met: {_sustained(report, gating)}", *_compared(report), *contested_texts(report)]
        return first_sentence(*clauses, next_step=_after_pass(report))
    worst = next((ruling for ruling in gating if ruling.verdict is result), gating[0])
    if result is Verdict.PARTIAL and worst.verdict is not result:
        step = "repeat the test for the rest"
        return first_sentence("The test was interrupted", _counted(report, gating), next_step=step)
    missed = "SLA missed: " if result is Verdict.FAIL else ""
    clauses = [
        f"{missed}{noticed(report, worst)}",
        _counted(report, gating, worst),
        *_compared(report),
        *contested_texts(report),
    ]
    return first_sentence(*clauses, next_step=next_step(report, worst))


def noticed(report: LoadReport, ruling: Ruling) -> str:
    """What users notice of one capacity that is not met: "/block responds too slowly (p99 above 1 s) from 64 on"."""
    capacity = _capacity(report, ruling)
    subject = _who(report, ruling)
    if ruling.verdict is not Verdict.FAIL or capacity is None or capacity.high is None:
        return f"{subject} {ruling.verdict.predicate()}: {ruling.reason}"
    high = level_text(capacity.kind, capacity.high)
    level = f"at {high} or more" if capacity.low > 0.0 else f"even at {high}"
    result = f"{subject} {_effect(capacity, _endpoint(report, ruling))} {level} (95 % confidence)"
    required = "" if ruling.required is None else level_text(capacity.kind, ruling.required)
    if capacity.low > 0.0:
        sustained = bare_level(capacity.low) if required else level_text(capacity.kind, capacity.low)
        return f"{result}; it sustains {sustained}{f' of the {required} that are required' if required else ''}"
    return f"{result}, and {required} are required" if required else result


def _compared(report: LoadReport) -> list[str]:
    """The change of each server's capacities relative to the first server, if their intervals do not overlap."""
    first, *others = names_of(report.targets)
    return [
        f"{name} sustains {share} {word} load than {first} "
        f"({len(clear)} of {units.plural(len(changes), 'capacity', 'capacities')})"
        for place, name in enumerate(others, start=1)
        if (changes := [change for change in report.changes if change.target == place])
        for word, clear in (
            ("less", [change for change in changes if change.high is not None and change.high < 0.0]),
            ("more", [change for change in changes if change.low is not None and change.low > 0.0]),
        )
        if (share := _share([abs(change.point) for change in clear if change.point is not None]))
    ]


def _share(changes: Sequence[float]) -> str:
    ends = [units.plain_percent(change, decimals=0) for change in (min(changes), max(changes))] if changes else []
    return " to ".join(dict.fromkeys(ends))


def next_step(report: LoadReport, ruling: Ruling) -> str:
    """The next step for a capacity that is not met, based on the observations."""
    capacity = _capacity(report, ruling)
    match ruling.verdict:
        case Verdict.INCONCLUSIVE:
            return _raised_setting(ruling, capacity)
        case Verdict.GENERATOR_LIMITED:
            return "run the load generator on a faster machine, because it was the limit"
        case Verdict.INVALID:
            return "repeat the test while nothing else uses the machine"
        case Verdict.PARTIAL:
            return "repeat the test"
    return _after_fail(report, ruling)


def _after_fail(report: LoadReport, ruling: Ruling) -> str:
    """Where to look for what limits the server."""
    if ruling.is_of_drift:
        return "look for what grows on the server under load: memory, tables, connections, logs"
    target = _target(report, ruling)
    exhausted = _exhausted(_endpoint(report, ruling), ruling)
    if exhausted is not None and exhausted.resource is not None and exhausted.level is not None:
        level = level_text(exhausted.kind, exhausted.level)
        return f"look at {exhausted.resource} first, which limited it from {level} on"
    if exhausted is None and not target.sources:
        return "monitor the server under load (`--server-pid`, `--scrape`) to see what limits it"
    return "monitor more of the server (`--scrape`, `--postgres`): nothing that was monitored was exhausted"


def _raised_setting(ruling: Ruling, capacity: CapacityEntry | None) -> str:
    """The setting that decides an inconclusive capacity, or level, if it is raised."""
    if capacity is not None and capacity.stopped_by == "ladder end":
        return f"raise `search.{capacity.kind}_last` to reach the limit"
    of_fixed_levels = ruling.kind is None and not ruling.course
    return f"measure longer: raise `{'fixed.duration_s' if of_fixed_levels else 'steps.longest_s'}`"


def contested_texts(report: LoadReport) -> list[str]:
    """The level and the counts of each capacity that was confirmed and also contradicted."""
    several = len(report.targets) > 1
    texts = []
    for target in report.targets:
        for endpoint in target.endpoints:
            for capacity in endpoint.capacities:
                if capacity.contested:
                    name = f"{f'{target.name} ' if several else ''}{endpoint.label} ({capacity.kind})"
                    level = level_text(capacity.kind, capacity.contested.level)
                    times = f"{capacity.contested.passed} of {capacity.contested.measured} times"
                    texts.append(f"not confirmed: {name}, {level} passed {times}")
    return [*texts[:_NAMED], f"{len(texts) - _NAMED} more not confirmed"] if len(texts) > _NAMED else texts


def _counted(report: LoadReport, gating: Sequence[Ruling], first: Ruling | None = None) -> str:
    """How many capacities are met, and the names of the others, without the one that was named first."""
    capacities = [ruling for ruling in gating if ruling.kind is not None]
    if capacities == [first]:
        return ""
    met = sum(ruling.verdict is Verdict.PASS for ruling in capacities)
    kind = "required " if report.required else ""
    texts = (
        [f"{met} of {units.plural(len(capacities), f'{kind}capacity', f'{kind}capacities')} met"] if capacities else []
    )
    for result in Verdict:
        names = [
            f"{_who(report, ruling)} ({ruling.name.rpartition(' (')[2]}"
            if ruling.name != ruling.label
            else _who(report, ruling)
            for ruling in gating
            if ruling.verdict is result is not Verdict.PASS and ruling is not first
        ]
        also = "also " if first and first.verdict is result else ""
        texts += [f"{also}{result.value}: {some_of(names, _NAMED)}"] if names else []
    return "; ".join(texts)


def _sustained(report: LoadReport, gating: Sequence[Ruling]) -> str:
    """What every endpoint sustains; for requirements, how many are met and which one only just."""
    slas = slas_of(report)
    within = f"within {sla_text(slas[0])}" if len(slas) == 1 else "within their SLAs"
    decided = [(item, capacity) for item in gating if (capacity := _capacity(report, item)) is not None]
    if not decided:
        endpoints = len({(ruling.target, ruling.endpoint) for ruling in gating})
        return f"{units.plural(endpoints, 'endpoint')} stayed {within} {_loads(gating)}"
    required = [(item, capacity) for item, capacity in decided if item.required]
    if required:
        nearest, capacity = min(required, key=lambda pair: pair[1].low / (pair[0].required or 1.0))
        required_level = level_text(capacity.kind, nearest.required or 0.0)
        text = f"{_who(report, nearest)} sustains {_level(capacity)}, {required_level} are required"
        count = units.plural(len(required), "required capacity", "required capacities")
        return f"All {count} are met {within}; the nearest: {text}" if len(required) > 1 else f"{text}, {within}"
    by_endpoint: dict[str, list[str]] = {}
    for ruling, capacity in decided:
        by_endpoint.setdefault(_who(report, ruling), []).append(_level(capacity))
    texts = [f"{endpoint} sustains {enumerated(levels)}" for endpoint, levels in by_endpoint.items()]
    return f"{some_of(texts, _NAMED, 'endpoints')} {within}"


def _loads(gating: Sequence[Ruling]) -> str:
    """What was judged where no capacity was searched: fixed levels, drift, ramps and spikes."""
    levels = ["at every fixed level"] if any(not (item.course or item.is_of_drift) for item in gating) else []
    courses = [f"in the {item.course} ({item.reason})" for item in gating if item.course]
    drift = ", without drift" if any(item.is_of_drift for item in gating) else ""
    return f"{enumerated([*levels, *dict.fromkeys(courses)])}{drift}"


def _level(capacity: CapacityEntry) -> str:
    """A capacity with its interval: "64 clients (64 … 66)"."""
    value = capacity.low if capacity.capacity is None else capacity.capacity
    least = "at least " if capacity.high is None else ""
    interval = "" if capacity.high is None else f" ({interval_text(capacity)})"
    return f"{least}{level_text(capacity.kind, value)}{interval}"


def _after_pass(report: LoadReport) -> str:
    """The next step if everything is met: find the limit, repeat, or keep the result."""
    capacities = [
        capacity for target in report.targets for endpoint in target.endpoints for capacity in endpoint.capacities
    ]
    if any(capacity.contested for capacity in capacities):
        return "repeat the test to confirm it"
    if report.required:
        return ""
    if unlimited := sorted({capacity.kind for capacity in capacities if capacity.stopped_by == "ladder end"}):
        return f"raise {enumerated([f'`search.{kind}_last`' for kind in unlimited])} to find the limit"
    return "keep this as the requirement of later tests: `--write-require FILE`" if capacities else ""


def _effect(capacity: CapacityEntry, endpoint: EndpointEntry | None) -> str:
    name = capacity.condition or ""
    text = condition_text(name, endpoint.sla) if endpoint and not capacity.condition_part else name
    of_part = f" of {capacity.condition_part}" if capacity.condition_part else ""
    if name in _TOO_SLOW and endpoint and _most_failed(capacity, endpoint):
        return f"fails most requests ({text}{of_part}; failed requests count as slower)"
    if name in _TOO_SLOW:
        return f"responds too slowly ({text}{of_part})"
    if name == "errors":
        return f"fails too many requests ({text}{of_part})"
    if name == "achieved":
        return f"falls behind ({text}{of_part})"
    return "misses its SLA"


def _most_failed(capacity: CapacityEntry, endpoint: EndpointEntry) -> bool:
    """Whether most requests failed at the first level that fails; a step given up early may not show that limit."""
    steps = [step for step in endpoint.steps if (step.kind, step.level) == (capacity.kind, capacity.high)]
    return sum(step.failed - step.closed_idle for step in steps) > sum(step.ok for step in steps)


def _who(report: LoadReport, ruling: Ruling) -> str:
    return f"{ruling.target} {ruling.label}" if len(report.targets) > 1 else ruling.label


def _target(report: LoadReport, ruling: Ruling) -> TargetEntry:
    return report.targets[ruling.number]


def _endpoint(report: LoadReport, ruling: Ruling) -> EndpointEntry | None:
    return _target(report, ruling).endpoint(ruling.endpoint)


def _capacity(report: LoadReport, ruling: Ruling) -> CapacityEntry | None:
    endpoint = _endpoint(report, ruling)
    if endpoint is None or ruling.kind is None or ruling.is_of_levels:
        return None
    return capacity_of(endpoint, ruling.kind)


def _exhausted(endpoint: EndpointEntry | None, ruling: Ruling) -> ExhaustedEntry | None:
    """What limited the endpoint; at fixed levels, which have no kind, the first resource that did."""
    entries = [
        exhausted for exhausted in (endpoint.exhausted if endpoint else []) if ruling.kind in (None, exhausted.kind)
    ]
    return next((exhausted for exhausted in entries if exhausted.resource is not None), entries[0] if entries else None)
