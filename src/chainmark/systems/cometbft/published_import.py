"""Reports of CometBFT's own load tests as runs: one for every experiment of a table or of the report tool's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Configuration, Fact, Gate, GateStatus, HostFacts, Scalar, Source, Subject
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population, SharedFact
from chainmark.core.progress import Progress
from chainmark.core.times import NS
from chainmark.lab.protocols import Imported, ImportRequest
from chainmark.stats.rounding import with_rounding
from chainmark.stats.summarise import summarise
from chainmark.store.files import hash_file
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.cometbft.experiments import (
    LATENCY_IS,
    LOAD_S,
    NAME,
    UNSTATED,
    LoadExperiment,
    ordered_experiment,
    parts_of_source,
)
from chainmark.systems.cometbft.published import PublishedExperiment, published_cell, read_report

PROFILE = "cometbft/published"
EXPERIMENTS = "experiment"
KEY = "experiment"
POPULATION = Population(id=EXPERIMENTS, label="experiments of a published report", keys=[KEY])
TABLE = MetricGroup(id="published", title="Published experiment")
BLOCK_TIME = SharedFact(
    id="block_time",
    label="block time",
    explanation="Published latencies end at the header time of the next block, which under proposer-based timestamps "
    "is about timeout_commit later than under BFT time. The reports do not state which was used.",
)
# id: label, unit, better direction, description.
_METRICS: Mapping[str, tuple[str, str, Better, str]] = {
    "published_transactions": (
        "processed", "tx", Better.HIGHER, "Transactions of the experiment in blocks (Total Valid Tx).",
    ),
    "published_share": (
        "processed share", "fraction", Better.HIGHER, f"Processed over connections × rate × {LOAD_S} s (P/E).",
    ),
    "published_per_s": ("processed per second", "tx/s", Better.HIGHER, f"Processed over the {LOAD_S} s of load."),
    "published_latency_mean_s": ("latency, mean", "s", Better.LOWER, f"Mean latency, {LATENCY_IS}."),
    "published_latency_min_s": ("latency, minimum", "s", Better.NEITHER, f"Minimum latency, {LATENCY_IS}."),
    "published_latency_max_s": ("latency, maximum", "s", Better.NEITHER, f"Maximum latency, {LATENCY_IS}."),
    "published_latency_sd_s": ("latency, sd", "s", Better.NEITHER, f"Standard deviation of the latency, {LATENCY_IS}."),
    "published_negative_latencies": (
        "negative latencies", "tx", Better.NEITHER, "Transactions whose block appears to precede their creation.",
    ),
}  # fmt: skip
# Printed as Go prints durations, to the nanosecond; all other figures are counts.
_IN_NS = tuple(id_ for id_, (_, unit, _, _) in _METRICS.items() if unit == "s")
# The metrics by which a release is judged if there is only a table: its throughput, and its latency.
_GATING = ("published_per_s", "published_latency_mean_s")


@dataclass(frozen=True)
class PublishedLoad:
    """One experiment of an import.

    Attributes:
        first_ns, last_ns: its period, ns since 1970-01-01 UTC; 0 if unknown.
    """

    experiment: LoadExperiment
    first_ns: int = 0
    last_ns: int = 0
    counts: Mapping[str, dict[str, int]] = field(default_factory=dict)
    warnings: Sequence[str] = ()


def report_parts(order: ImportRequest) -> list[str]:
    """The names of the experiments, in the file's order: c1-r200-93024f38.

    Raises:
        UsageError: the file is of another kind, or two experiments would have one name.
    """
    return parts_of_source(order.path, read_report(order.path).experiments)


def ingest_report(order: ImportRequest, run: UnfinishedRun, progress: Progress) -> Imported:
    """Import one experiment of the report into a run.

    Raises:
        UsageError: there is no such experiment, or its version is unknown.
    """
    progress.stage(f"reading {order.part}")
    report = read_report(order.path)
    experiment = ordered_experiment(order, report.experiments)
    samples = _samples(experiment)
    run.write_samples(EXPERIMENTS, samples)
    accounting = {"expected": experiment.expected, "processed": experiment.valid}
    counts = {
        "transactions, as published": accounting,
        "lines of the report": dict(report.lines),
        "experiments of the report": {"read": len(report.experiments)},
    }
    warnings = [f"{units.count(experiment.negative)} latencies are negative: the machines' clocks differed"]
    load = PublishedLoad(experiment, counts=counts, warnings=warnings if experiment.negative else [])
    catalogue = Catalogue(
        system="cometbft",
        title=NAME,
        populations=[POPULATION],
        tables=[TABLE],
        conditions=[BLOCK_TIME],
        metrics=published_metrics(),
    )
    figures = with_rounding(summarise(catalogue, {EXPERIMENTS: samples}, 0), dict.fromkeys(_IN_NS, 1.0 / NS))
    return replace(imported(order, load, catalogue), summaries=figures)


def _samples(experiment: PublishedExperiment) -> pl.DataFrame:
    known = experiment.valid > 0
    durations = {"mean": experiment.mean_ns, "min": experiment.min_ns, "max": experiment.max_ns, "sd": experiment.sd_ns}
    return pl.DataFrame(
        {
            KEY: [experiment.id],
            "published_transactions": [float(experiment.valid)],
            "published_share": [published_cell(experiment).efficiency],
            "published_per_s": [experiment.valid / LOAD_S],
            **{f"published_latency_{name}_s": [value / NS if known else None] for name, value in durations.items()},
            "published_negative_latencies": [float(experiment.negative)],
        },
        schema={KEY: pl.String, **dict.fromkeys(_METRICS, pl.Float64)},
    )


def published_metrics() -> list[Metric]:
    """A report's figures of an experiment."""
    return [
        Metric(
            id=id_,
            label=label,
            unit=unit,
            kind=Kind.DIFFERENCE,
            better=better,
            statistics=["mean"],
            judged_by=["mean"],
            table=TABLE.id,
            order=place,
            gating=id_ in _GATING,
            population=EXPERIMENTS,
            description=description,
            source=["the published report"],
        )
        for place, (id_, (label, unit, better, description)) in enumerate(_METRICS.items(), start=1)
    ]


def imported(order: ImportRequest, load: PublishedLoad, catalogue: Catalogue) -> Imported:
    """The facts about a run that every import of a published experiment records.

    Raises:
        UsageError: its version is unknown.
    """
    if order.version is None:
        raise UsageError("the measured version is unknown", "give the version, such as `--as v1.0.0-alpha.2`")
    experiment = load.experiment
    workload: dict[str, Scalar | list[Scalar]] = {
        "load.connections": experiment.connections,
        "load.rate": experiment.rate,
        "load.size_bytes": experiment.size_bytes,
        "method": "published: one batch a second of CometBFT's load tool",
    }
    path = order.path
    return Imported(
        subject=Subject(system="cometbft", name=NAME, version=order.version),
        profile_name=PROFILE,
        profile=dict(workload),
        workload=workload,
        conditions={"block_time": UNSTATED},
        configuration=Configuration(),
        counts={name: dict(account) for name, account in load.counts.items()},
        facts=[
            Fact(label="Load", value=f"c={experiment.connections}, r={experiment.rate}, {experiment.size_bytes} bytes"),
            Fact(label="Experiment", value=experiment.id),
        ],
        gates=[_complete(load)],
        sources=[Source(path=path.name, size_bytes=path.stat().st_size, blake3=hash_file(path))],
        host=HostFacts(cpu_model=UNSTATED, cores=0, memory_bytes=0, kernel=UNSTATED, operating_system=UNSTATED),
        first_ns=load.first_ns,
        last_ns=load.last_ns,
        options={"part": experiment.part},
        printed=isinstance(experiment, PublishedExperiment),
        catalogue=catalogue,
        warnings=list(load.warnings),
    )


def _complete(load: PublishedLoad) -> Gate:
    malformed = sum(account.get("malformed", 0) for account in load.counts.values())
    return Gate(
        id="complete",
        label="every line was parsed",
        status=GateStatus.WARN if malformed else GateStatus.PASS,
        measured=f"{units.count(malformed)} malformed",
        limit="0 malformed",
    )
