"""The metrics of a load test: a catalogue built from its endpoints and fixed levels.

A level is part of its metric's name. Measurements at other levels are other metrics, and are never compared with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainmark.capacity.course import Course, Ramp
from chainmark.capacity.loadtest import EndpointResult
from chainmark.capacity.model import Endpoint, LevelKind, LoadLevel
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.chart_kind import ChartKind
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population, SharedFact

SEARCHES = "search"
ATTEMPT = "attempt"
STEP = "step"
TIME = "time_s"
LATENCY = "latency_s"
FAILED = "error_share"
# If the repetitions of one level scatter by more than this, one run per side cannot give a verdict.
CAPACITY_NOISE = 0.05
LATENCY_NOISE = 0.05
LATENCY_FLOOR_S = 0.0005
ERROR_FLOOR = 0.001
KEPT_UP_TO = "kept_up_to"
RECOVERY = "recovery_s"
# A queue empties in about this time, and a ramp or a spike is one run of the load.
RECOVERY_FLOOR_S = 1.0
COURSE_NOISE = 0.1
_CAPACITY = {
    LevelKind.CLIENTS: ("clients", "max clients", "clients"),
    LevelKind.RATE: ("per_s", "max rate", "req/s"),
}
CONDITIONS = [
    SharedFact(
        id="scenario",
        label="scenario",
        explanation="What is special about the server or the data differs, so the servers did different work.",
    ),
    SharedFact(
        id="network",
        label="network",
        explanation="The servers serve different networks, so the same endpoint reads different data.",
    ),
    SharedFact(
        id="hardware",
        label="servers' hardware",
        explanation="The servers run on different machines, so a difference may be the machines'.",
    ),
]


def level_name(level: LoadLevel) -> str:
    """A level as part of a name: "400_per_s", "12_5_per_s", "16_clients"."""
    value = f"{level.value:.6g}".replace(".", "_").replace("e+", "e")
    return f"{value}_{'per_s' if level.kind is LevelKind.RATE else 'clients'}"


def population_id(endpoint_id: str, level: LoadLevel) -> str:
    """Metrics of the requests to one endpoint at one fixed level."""
    return f"{endpoint_id}_at_{level_name(level)}"


def course_id(endpoint_id: str, course: Course) -> str:
    """Metrics of the runs of a ramp or a spike at one endpoint; its population and the prefix of its metrics."""
    levels = f"{level_name(course.start).removesuffix('_per_s').removesuffix('_clients')}_to_{level_name(course.peak)}"
    return f"{endpoint_id}_{course.phase}_{levels}"


def courses_of(endpoint_result: EndpointResult) -> tuple[Course, ...]:
    """Ramps and spikes at an endpoint, each once."""
    return tuple(dict.fromkeys(course.course for course in endpoint_result.courses))


def capacity_id(endpoint_id: str, kind: LevelKind) -> str:
    """Metrics of an endpoint's capacity."""
    return f"{endpoint_id}_capacity_{_CAPACITY[kind][0]}"


def levels_of(endpoint_result: EndpointResult) -> tuple[LoadLevel, ...]:
    """The fixed levels at which an endpoint was measured."""
    return tuple(sorted({step.level for step in endpoint_result.fixed}))


def load_catalogue_of(system: str, title: str, endpoint_results: Sequence[EndpointResult]) -> Catalogue:
    """The catalogue of a load test with these results."""
    measured = [(endpoint.endpoint, tuple(endpoint.answers), levels_of(endpoint)) for endpoint in endpoint_results]
    parts = [
        (part, (), levels_of(endpoint)) for endpoint in endpoint_results for part, _ in parts_of(endpoint.endpoint)
    ]
    catalogue = _catalogue(system, title, [*measured, *parts])
    courses = [(endpoint.endpoint, course) for endpoint in endpoint_results for course in courses_of(endpoint)]
    populations = [_course_population(endpoint, course) for endpoint, course in courses]
    metrics = [metric for endpoint, course in courses for metric in _course_metrics(endpoint, course)]
    return catalogue.model_copy(
        update={
            "populations": [*catalogue.populations, *populations],
            "metrics": [*catalogue.metrics, *metrics],
        }
    )


def parts_of(mix: Endpoint) -> list[tuple[Endpoint, range]]:
    """The endpoints of a mix as they are measured within it, and the indices of their requests in its order."""
    result, begin = [], 0
    for part in mix.parts:
        endpoint = Endpoint(f"{mix.id}_{part.id}", f"{part.label} within the mix", ())
        result.append((endpoint, range(begin, begin + part.requests)))
        begin += part.requests
    return result


def typical_catalogue(system: str, title: str, endpoints: Sequence[Endpoint]) -> Catalogue:
    """The metrics of a load test of these endpoints, with one level as an example."""
    level = LoadLevel(LevelKind.RATE, 100.0)
    return _catalogue(system, title, [(endpoint, tuple(LevelKind), (level,)) for endpoint in endpoints])


def _catalogue(
    system: str, title: str, measured: Sequence[tuple[Endpoint, tuple[LevelKind, ...], tuple[LoadLevel, ...]]]
) -> Catalogue:
    populations = [Population(id=SEARCHES, label="capacity searches", keys=[ATTEMPT])]
    metrics: list[Metric] = []
    for endpoint, kinds, levels in measured:
        metrics += [capacity_metric(endpoint.id, endpoint.label, kind, order) for order, kind in enumerate(kinds, 1)]
        for number, level in enumerate(levels):
            populations.append(
                Population(
                    id=population_id(endpoint.id, level),
                    label=f"requests to {endpoint.label} at {level}",
                    keys=[STEP, TIME],
                    time_key=TIME,
                )
            )
            metrics += _fixed(endpoint, level, 10 + 2 * number)
    tables = [MetricGroup(id=endpoint.id, title=endpoint.label) for endpoint, _, _ in measured]
    return Catalogue(
        system=system, title=title, populations=populations, tables=tables, conditions=CONDITIONS, metrics=metrics
    )


def capacity_metric(endpoint_id: str, label: str, kind: LevelKind, order: int) -> Metric:
    """The metric of an endpoint's capacity; ``label`` is the endpoint's label."""
    _, words, unit = _CAPACITY[kind]
    return Metric(
        id=capacity_id(endpoint_id, kind),
        label=f"{label} {words}",
        unit=unit,
        kind=Kind.POSITIVE,
        better=Better.HIGHER,
        statistics=["mean"],
        judged_by=["mean"],
        table=endpoint_id,
        order=order,
        population=SEARCHES,
        default_noise=CAPACITY_NOISE,
        gating=True,
        description=f"The highest level that {label} sustains within its SLA in most of its repeated measurements; 0 "
        "where the lowest level fails. If they disagree, the load test itself reports a lower one.",
        source=["load steps"],
    )


def _course_population(endpoint: Endpoint, course: Course) -> Population:
    noun = "ramps" if isinstance(course, Ramp) else "spikes"
    id_ = course_id(endpoint.id, course)
    return Population(id=id_, label=f"{noun} of {endpoint.label} {_course_words(course)}", keys=[ATTEMPT])


def _course_words(course: Course) -> str:
    return f"from {course.start} to {course.peak}"


def _course_metrics(endpoint: Endpoint, course: Course) -> list[Metric]:
    name, label = course_id(endpoint.id, course), f"{endpoint.label} {_course_words(course)}"
    properties: dict[str, Any] = {"table": endpoint.id, "population": name, "source": ["load records"], "gating": True}
    failed = Metric(
        id=f"{name}_{FAILED}",
        label=f"{label}, errors",
        unit="fraction",
        kind=Kind.DIFFERENCE,
        better=Better.LOWER,
        statistics=["mean"],
        judged_by=["mean"],
        order=51,
        floor=ERROR_FLOOR,
        default_noise=COURSE_NOISE,
        description=f"Share of the requests that failed, of each {course.phase} {_course_words(course)}.",
        **properties,
    )
    if isinstance(course, Ramp):
        _, words, unit = _CAPACITY[course.kind]
        measured = Metric(
            id=f"{name}_{KEPT_UP_TO}",
            label=f"{label}, {words}",
            unit=unit,
            kind=Kind.POSITIVE,
            better=Better.HIGHER,
            statistics=["mean"],
            judged_by=["mean"],
            order=50,
            default_noise=COURSE_NOISE,
            description="The level from which on the SLA was missed while the load rose; a ramp that never "
            "missed it counts with its last level.",
            **properties,
        )
    else:
        measured = Metric(
            id=f"{name}_{RECOVERY}",
            label=f"{label}, recovery",
            unit="s",
            kind=Kind.POSITIVE,
            better=Better.LOWER,
            statistics=["mean", "max"],
            judged_by=["mean"],
            order=50,
            floor=RECOVERY_FLOOR_S,
            default_noise=COURSE_NOISE,
            description="From the end of the spike until 99 % of the answers are as quick as before it, within "
            f"{units.plain_percent(course.recovery_share)}; what had not recovered counts with the "
            f"{units.duration(course.after_s)} for which it was watched.",
            **properties,
        )
    return [measured, failed]


def _fixed(endpoint: Endpoint, level: LoadLevel, order: int) -> list[Metric]:
    population = population_id(endpoint.id, level)
    since = "when a request was due" if level.kind is LevelKind.RATE else "the start of a request"
    return [
        Metric(
            id=f"{population}_{LATENCY}",
            label=f"{endpoint.label} latency at {level}",
            unit="s",
            kind=Kind.POSITIVE,
            better=Better.LOWER,
            statistics=["mean", "p50", "p90", "p95", "p99", "max"],
            judged_by=["p50", "p99"],
            table=endpoint.id,
            order=order,
            population=population,
            floor=LATENCY_FLOOR_S,
            default_noise=LATENCY_NOISE,
            gating=True,
            charts=[ChartKind.CDF, ChartKind.SCATTER],
            description=f"Time from {since} to the last byte of its correct response, at {level}.",
            source=["load records"],
        ),
        Metric(
            id=f"{population}_{FAILED}",
            label=f"{endpoint.label} errors at {level}",
            unit="fraction",
            kind=Kind.PROPORTION,
            better=Better.LOWER,
            statistics=["mean"],
            judged_by=["mean"],
            table=endpoint.id,
            order=order + 1,
            population=population,
            floor=ERROR_FLOOR,
            gating=True,
            description=f"Share of the requests at {level} that failed: unexpected status, wrong content, timeout "
            "or connection error.",
            source=["load records"],
        ),
    ]
