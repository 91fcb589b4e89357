"""Import a range of a Prometheus server's data about a CometBFT network as a run.

The data of our own scrapes and samplers come from the same families; what no metrics page reports (the transactions'
latencies, missing votes, disk use) has no data. A node is a target (job and instance) that exposes the consensus height
under `cometbft_` or, as Tendermint did, `tendermint_`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from chainmark.core import units
from chainmark.core.catalogue import Catalogue, load_catalogue
from chainmark.core.caveats import contradicts
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Configuration, Fact, HostFacts, Scalar, Subject
from chainmark.core.progress import Progress
from chainmark.core.wording import enumerated
from chainmark.lab.profiles import apply_setting, check_profile
from chainmark.lab.protocols import Imported, ImportRequest
from chainmark.network.prometheus_api import LiveServer, Prometheus, PrometheusSource, StoredResponses
from chainmark.store.files import json_bytes, write_bytes
from chainmark.store.unfinished import UnfinishedRun
from chainmark.systems.cometbft.analyse import Window
from chainmark.systems.cometbft.heights import LAST_HEIGHT
from chainmark.systems.cometbft.ingest import SCRAPE_SCHEMA
from chainmark.systems.cometbft.prometheus_gates import Coverage, GateLimits, PrometheusGateInputs, find_gates
from chainmark.systems.cometbft.prometheus_nodes import (
    LOAD,
    NAMESPACES,
    NODE_FAMILIES,
    NOT_STATED,
    PROCESS_FAMILIES,
    TOTAL,
    Fetched,
    PrometheusSettings,
    Range,
    fetch,
)
from chainmark.systems.cometbft.prometheus_samples import RATE_SCHEMA, rates, samples_of

ANSWERS = "prometheus"
ORDERED = "import.json"


def recognises(path: Path) -> bool:
    """Whether a folder holds the responses that an import stored, as `raw/prometheus` of its run does."""
    return (path / ORDERED).is_file()


def ingest_server(order: ImportRequest, run: UnfinishedRun, progress: Progress) -> Imported:
    """Import a range of a server's data into a run.

    Raises:
        UsageError: there is no version or range, or nothing of CometBFT in it.
        EnvironmentFailure: the server cannot be reached, or does not respond.
    """
    if order.begin_ns is None or order.end_ns is None:
        raise UsageError("no time range was given", "for example `--from 2026-01-01T10:00:00Z --duration 90s`")
    requested = Range(order.begin_ns, order.end_ns, _settings(order.settings))
    return _ingest(order.version, requested, LiveServer(str(order.source)), run, progress)


def ingest_recorded(order: ImportRequest, run: UnfinishedRun, progress: Progress) -> Imported:
    """The same from the stored responses of such an import.

    Raises:
        UsageError: they were changed, or others are needed.
    """
    folder = order.path
    content = _read_order(folder / ORDERED)
    settings = _settings(order.settings, content["settings"])
    requested = Range(content["begin_ns"], content["end_ns"], settings)
    source = StoredResponses(folder, content["server"])
    return _ingest(order.version or content["version"], requested, source, run, progress)


def _settings(changes: Iterable[str], content: Mapping[str, Any] | None = None) -> PrometheusSettings:
    reported = dict(content or {})
    for change in changes:
        reported = apply_setting(reported, change)
    return check_profile(PrometheusSettings, reported)


def _read_order(path: Path) -> dict[str, Any]:
    content = _json_of(path)
    missing = {"server", "version", "begin_ns", "end_ns", "settings"} - content.keys()
    if missing:
        raise UsageError(f"{path} was changed after the import: `{min(missing)}` is missing")
    return content


def _json_of(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read ({error})") from error
    if not isinstance(content, dict):
        raise UsageError(f"{path} was changed after the import")
    return content


def _ingest(
    version: str | None, requested: Range, source: PrometheusSource, run: UnfinishedRun, progress: Progress
) -> Imported:
    if version is None:
        raise UsageError(
            "a Prometheus server does not report which version of CometBFT ran", "give the version: `--as v1.0.1`"
        )
    path = run.raw / ANSWERS
    content = {
        "server": source.place,
        "version": version,
        "begin_ns": requested.begin_ns,
        "end_ns": requested.end_ns,
        "settings": requested.settings.model_dump(mode="json"),
    }
    write_bytes(path / ORDERED, json_bytes(content))
    with Prometheus(source, path) as prometheus:
        fetched = fetch(prometheus, requested, progress)
        warnings = list(prometheus.warnings)
    progress.stage("analysing")
    window = Window(requested.begin_ns, requested.end_ns)
    samples = samples_of(fetched, window)
    for name, frame in samples.items():
        run.write_samples(name, frame)
    run.write_events("scrapes", fetched.scrapes, SCRAPE_SCHEMA)
    run.write_events("rates", rates(fetched.scrapes, window), RATE_SCHEMA)
    return _imported(fetched, requested, content, ImportedSamples(samples, warnings), run)


@dataclass(frozen=True)
class ImportedSamples:
    """The result of an import: its samples, and the server's warnings."""

    samples: Mapping[str, pl.DataFrame]
    warnings: Sequence[str]


def _imported(
    fetched: Fetched,
    requested: Range,
    content: dict[str, object],
    imported_samples: ImportedSamples,
    run: UnfinishedRun,
) -> Imported:
    window = Window(requested.begin_ns, requested.end_ns)
    coverage = Coverage.of(fetched.scrapes, window, fetched.interval_s)
    settings = requested.settings
    limits = GateLimits(settings.complete_min, settings.blocks_min)
    judged = PrometheusGateInputs(
        coverage, limits, imported_samples.samples["block"].height, tuple(imported_samples.warnings)
    )
    version = str(content["version"])
    wrong = contradictions(fetched.versions, version)
    workload: dict[str, Scalar | list[Scalar]] = {
        "source": "Prometheus",
        "network.nodes": len(fetched.hosts),
        "scrape_interval_s": round(fetched.interval_s, 1),
        "window.seconds": window.seconds,
        **settings.workload,
    }
    facts = [Fact(label="Nodes", value=f"{len(fetched.hosts)}, chain {fetched.chain_id}")]
    facts.append(
        Fact(
            label="Read from",
            value=f"{content['server']}, one sample every {units.duration(fetched.interval_s)}",
        )
    )
    return Imported(
        subject=Subject(system="cometbft", name="CometBFT", version=version),
        profile_name="cometbft/prometheus",
        profile={**content, "hosts": {host: list(target) for host, target in sorted(fetched.hosts.items())}},
        workload=workload,
        conditions={},
        configuration=Configuration(),
        counts={"samples of the nodes": _counts(fetched)},
        facts=facts,
        gates=find_gates(judged),
        sources=run.sources(),
        host=HostFacts(cpu_model=NOT_STATED, cores=0, memory_bytes=0, kernel=NOT_STATED, operating_system=NOT_STATED),
        first_ns=requested.begin_ns,
        last_ns=requested.end_ns,
        options={},
        catalogue=catalogue_of_import(),
        incidents=coverage.incidents(),
        warnings=[*wrong, *imported_samples.warnings, *_missing(fetched)],
        contradictions=wrong,
    )


def contradictions(versions: Mapping[str, Sequence[str]], label: str) -> list[str]:
    """The nodes that are labelled as another version than the run.

    Args:
        versions: by version, the nodes with that label.
        label: the run's.
    """
    return [
        f"the series of {enumerated(nodes)} are labelled version {version}, not {label}"
        for version, nodes in versions.items()
        if contradicts(label, version)
    ]


def _counts(fetched: Fetched) -> dict[str, int]:
    by_host = fetched.scrapes.group_by("host").len().sort("host")
    return dict(zip(by_host["host"], by_host["len"], strict=True))


def _missing(fetched: Fetched) -> list[str]:
    """Families that some node does not expose, which leaves metrics without data."""
    wanted = [f"{NAMESPACES[0]}_{name}" for name in NODE_FAMILIES if not name.startswith("blocksync")]
    results = []
    for family in [*wanted, *PROCESS_FAMILIES]:
        having = fetched.scrapes.filter(pl.col("metric") == family)["host"].n_unique()
        if having < len(fetched.hosts):
            results.append(f"{len(fetched.hosts) - having} of {len(fetched.hosts)} nodes do not report {family}")
    if fetched.load.is_empty():
        results.append(f"no machine reports {LOAD}: the load average has no data")
    return results


def catalogue_of_import() -> Catalogue:
    """The metrics, with the source of those that our own runs read from blocks."""
    own = load_catalogue(Path(__file__).with_name("catalogue.toml"))
    changed = [
        metric.model_copy(update={"description": _SCRAPED[metric.id][0], "source": [_SCRAPED[metric.id][1]]})
        if metric.id in _SCRAPED
        else metric
        for metric in own.metrics
    ]
    return own.model_copy(update={"metrics": changed})


_SCRAPED = {
    "block_interval_s": (
        "Time between the scrapes that first had a height and the previous height on any node; heights that "
        "came between two scrapes share their time evenly. The mean is exact to one scrape interval over the window.",
        LAST_HEIGHT,
    ),
    "block_transactions": (
        "Transactions in a block, if it was scraped before the next block.",
        "cometbft_consensus_num_txs",
    ),
    "block_size_bytes": (
        "Size of a block, if it was scraped before the next block.",
        "cometbft_consensus_block_size_bytes",
    ),
    "block_extra_rounds": (
        "The last finished round of a node, in the last scrape before the next block.",
        "cometbft_consensus_rounds",
    ),
    "committed_per_s": (
        "Increase per second of the nodes' transaction count, spread evenly between scrapes, averaged over the nodes.",
        TOTAL,
    ),
    "machine_load1": ("The load average over one minute of the nodes' machines, averaged over the nodes.", LOAD),
    "node_cpu_per_transaction_s": (
        "Processor time of a node's process over the window, per transaction that the network committed in it.",
        f"process_cpu_seconds_total, {TOTAL}",
    ),
    "node_cpu_cores": ("Processor time used by a node's process per second.", "process_cpu_seconds_total"),
    "node_rss_bytes": ("Resident memory of a node's process.", "process_resident_memory_bytes"),
    "node_open_files": ("Open file descriptors of a node's process.", "process_open_fds"),
}
