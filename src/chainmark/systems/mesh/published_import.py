"""The published page of cardano-rosetta-java's load tests as runs: one for every release and scenario."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import polars as pl

from chainmark.capacity.metrics import ATTEMPT, CONDITIONS, SEARCHES, capacity_metric
from chainmark.capacity.model import LevelKind
from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary
from chainmark.core.errors import UsageError
from chainmark.core.labels import ENDPOINT
from chainmark.core.manifest import (
    Configuration,
    Fact,
    Gate,
    GateStatus,
    HostFacts,
    Scalar,
    Source,
    Subject,
)
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population
from chainmark.core.progress import Progress
from chainmark.lab.loading import STANDARD
from chainmark.lab.protocols import Imported, ImportRequest
from chainmark.stats.rounding import with_rounding
from chainmark.stats.summarise import summarise
from chainmark.store.files import hash_file
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.mesh.bodies import READS
from chainmark.systems.mesh.pruning import PRUNING, pruning_words
from chainmark.systems.mesh.published import (
    EndpointRow,
    EndpointTable,
    PublishedScenario,
    read_published_page,
    tables,
)

NAME = "cardano-rosetta-java"
PUBLISHED = "published"
NOT_STATED = "not stated"
_FIGURES = {
    "p95_s": ("p95 at max clients", "s", Better.LOWER),
    "p99_s": ("p99 at max clients", "s", Better.LOWER),
    "error_share": ("non-2xx share at max clients", "fraction", Better.LOWER),
    "answered_per_s": ("response rate at max clients", "req/s", Better.HIGHER),
}
# The page's column of each, and the factor from its unit to ours.
_COLUMNS = {
    "p95_s": ("p95_ms", 1e-3),
    "p99_s": ("p99_ms", 1e-3),
    "error_share": ("error_percent", 1e-2),
    "answered_per_s": ("requests_per_s", 1.0),
}


def parts_of(order: ImportRequest) -> list[str]:
    """The names of the page's tables: "v1.2.9/mid/pruning enabled, 7 days/Docker Compose".

    Raises:
        UsageError: the file is another kind of page, or has no table of the requested version.
    """
    results = [name for table, name in _tables(order) if order.version in {None, table.version}]
    if not results:
        versions = ", ".join(dict.fromkeys(table.version for table, _ in _tables(order)))
        raise UsageError(f"the page has no table for `{order.version}`", f"versions on the page: {versions}")
    return results


def ingest_published(order: ImportRequest, run: UnfinishedRun, progress: Progress) -> Imported:
    """Import one table of the page into a run.

    Raises:
        UsageError: the page has no such table.
    """
    progress.stage(f"reading {order.part}")
    for table, name in _tables(order):
        if name == order.part:
            samples = _samples(table.scenario)
            run.write_samples(SEARCHES, samples)
            run.write_document(PUBLISHED, table)
            return _imported(order, table, name, samples)
    raise UsageError(f"the page has no table `{order.part}`")


def _tables(order: ImportRequest) -> Iterator[tuple[EndpointTable, str]]:
    seen: dict[str, int] = {}
    for table in tables(read_published_page(order.path)):
        name = "/".join([table.version, *scenario_words(table.scenario)])
        seen[name] = seen.get(name, 0) + 1
        yield table, name if seen[name] == 1 else f"{name}/{seen[name]}"


def scenario_words(scenario: PublishedScenario) -> list[str]:
    """The distinguishing properties of a scenario, in words."""
    return list(_stated(scenario).values())


def _stated(scenario: PublishedScenario) -> dict[str, str]:
    """The page's facts about a scenario, by key of the workload; of older releases it states less."""
    pruning = f"pruning {_pruning(scenario)}" if scenario.pruning else None
    words = {"scenario.profile": scenario.profile, "scenario.pruning": pruning, "scenario.variant": scenario.variant}
    return {key: word for key, word in words.items() if word}


def _pruning(scenario: PublishedScenario) -> str:
    retained = f", {scenario.retained_days} days" if scenario.retained_days else ""
    return f"{scenario.pruning}{retained}"


def labels_of(scenario: PublishedScenario) -> dict[str, list[str]]:
    """The search labels of a run of the table, as of measured ones; see `Manifest.labels`."""
    is_huge = scenario.address_transactions is not None
    reported = {
        "scenario": [scenario.variant, "huge address"] if is_huge else [STANDARD],
        "hardware": [word for word in (scenario.profile, scenario.machine) if word],
        "deployment": [scenario.deployment or ""],
        PRUNING.id: pruning_words(_pruning(scenario), str(scenario.pruning)) if scenario.pruning else [],
        ENDPOINT: [row.endpoint for row in scenario.rows],
    }
    return {key: words for key, words in reported.items() if any(words)}


def endpoint_id(label: str) -> str:
    """The ID of the same endpoint in chainmark."""
    same = next((read.id for read in READS if label in {read.label, read.path}), None)
    return same or re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")


def _figures(row: EndpointRow) -> dict[str, float | None]:
    failed = row.max_concurrency == 0
    error = row.error_percent
    return {
        "p95_s": None if failed else row.p95_ms / 1e3,
        "p99_s": None if failed else row.p99_ms / 1e3,
        "error_share": None if failed or error is None else error / 100.0,
        "answered_per_s": None if failed else row.requests_per_s,
    }


def _samples(scenario: PublishedScenario) -> pl.DataFrame:
    columns: dict[str, float | None] = {}
    for row in scenario.rows:
        id_ = endpoint_id(row.endpoint)
        columns[f"{id_}_capacity_clients"] = float(row.max_concurrency)
        columns |= {f"{id_}_{PUBLISHED}_{name}": value for name, value in _figures(row).items()}
    schema = {ATTEMPT: pl.Int64, **dict.fromkeys(columns, pl.Float64)}
    return pl.DataFrame({ATTEMPT: [1], **{name: [value] for name, value in columns.items()}}, schema=schema)


def _summaries(scenario: PublishedScenario, catalogue: Catalogue, samples: pl.DataFrame) -> list[MetricSummary]:
    """The figures with the uncertainty of their digits; a number of clients is a count."""
    digits: dict[str, float] = {}
    for row in scenario.rows:
        id_ = endpoint_id(row.endpoint)
        for name, (column, factor) in _COLUMNS.items():
            if column in row.last_digits:
                digits[f"{id_}_{PUBLISHED}_{name}"] = row.last_digits[column] * factor
    return with_rounding(summarise(catalogue, {SEARCHES: samples}, 0), digits)


def _catalogue(scenario: PublishedScenario) -> Catalogue:
    metrics: list[Metric] = []
    for row in scenario.rows:
        id_ = endpoint_id(row.endpoint)
        metrics.append(capacity_metric(id_, row.endpoint, LevelKind.CLIENTS, 1))
        metrics += [_metric(id_, row.endpoint, name, order) for order, name in enumerate(_FIGURES, start=2)]
    return Catalogue(
        system="mesh",
        title="Mesh API",
        populations=[Population(id=SEARCHES, label="published tables", keys=[ATTEMPT])],
        tables=[MetricGroup(id=endpoint_id(row.endpoint), title=row.endpoint) for row in scenario.rows],
        conditions=CONDITIONS,
        metrics=metrics,
    )


def _metric(id_: str, label: str, name: str, order: int) -> Metric:
    words, unit, better = _FIGURES[name]
    return Metric(
        id=f"{id_}_{PUBLISHED}_{name}",
        label=f"{label} {words}",
        unit=unit,
        kind=Kind.DIFFERENCE if name == "error_share" else Kind.POSITIVE,
        better=better,
        statistics=["mean"],
        judged_by=["mean"],
        table=id_,
        order=order,
        population=SEARCHES,
        floor=0.001 if name == "error_share" else 0.0,
        description="As the published page states it, for the step with the most clients that met the SLA. Measured "
        "with a new connection for every request, and with at most 50,000 requests.",
        source=["the published page"],
    )


def _imported(order: ImportRequest, table: EndpointTable, name: str, samples: pl.DataFrame) -> Imported:
    scenario, day = table.scenario, table.date
    catalogue = _catalogue(scenario)
    day_ns = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 10**9
    words = ", ".join(scenario_words(scenario)) or STANDARD
    workload: dict[str, Scalar | list[Scalar]] = {
        "sla.p99_s": scenario.sla_s,
        **_stated(scenario),
        **({"deployment": scenario.deployment} if scenario.deployment else {}),
        "method": "published: ab, a new connection for every request",
    }
    facts = [
        Fact(label="Machine", value=scenario.machine or NOT_STATED),
        Fact(label="Scenario", value=words),
        Fact(label="Deployment", value=scenario.deployment or NOT_STATED),
    ]
    return Imported(
        subject=Subject(system="mesh", name=NAME, version=table.version),
        profile_name=f"mesh/{PUBLISHED}",
        profile=scenario.model_dump(mode="json", exclude={"rows"}),
        workload=workload,
        conditions={"scenario": words, "network": NOT_STATED},
        configuration=Configuration(),
        counts={"rows of the table": {"read": len(scenario.rows)}},
        facts=facts,
        labels=labels_of(scenario),
        gates=[
            Gate(
                id="complete",
                label="all rows of the table were read",
                status=GateStatus.PASS,
                measured=f"{len(scenario.rows)} rows",
                limit="all",
            )
        ],
        sources=[Source(path=order.path.name, size_bytes=order.path.stat().st_size, blake3=hash_file(order.path))],
        host=HostFacts(
            cpu_model=scenario.machine or NOT_STATED,
            cores=0,
            memory_bytes=0,
            kernel=NOT_STATED,
            operating_system=NOT_STATED,
        ),
        first_ns=day_ns,
        last_ns=day_ns,
        options={"part": name},
        printed=True,
        catalogue=catalogue,
        summaries=_summaries(scenario, catalogue, samples),
        warnings=list(scenario.notes),
    )
