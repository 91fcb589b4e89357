"""Generated clusters and their runs by `chainmark ingest`, in the form of the oracle and the truth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chainmark.core.progress import Silent
from chainmark.lab.importing import Importer
from chainmark.lab.synthetic import synthetic
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import importable
from chainmark.systems.cardano.block_work import METRICS as BLOCK_WORK

from tests.oracle.cluster_analysis import Key
from tests.unit.systems.cardano.clusters import import_request, logs_request

# Short epochs give several in a run of minutes; frequent blocks give enough of them.
SETTINGS = (
    "chain.epoch_slots=40",
    "chain.security_parameter=4",
    "chain.active_slots_coefficient=0.15",
    "workload.tps=3",
)
# The keys of each population in the order of the oracle and the truth.
KEYS = {
    "block": ("block",),
    "block_peer": ("block", "host"),
    "host": ("host",),
    "slot_host": ("slot", "host"),
    "span": ("slot", "host"),
    "block_region": ("block", "region"),
    "chained": ("block",),
}
Samples = dict[str, dict[Key, float]]


def generate(folder: Path, **changes: Any) -> Path:
    """Write a small cluster's logs."""
    order = {"slots": 240, "seed": 5, "hosts": 6, "settings": SETTINGS, **changes}
    synthetic(load_system("cardano")).synthesise(logs_request(folder, **order), Silent())
    return folder


def ingest(source: Path, store: Path, *, published: bool = False, **changes: Any) -> SealedRun:
    """Import the logs of a cluster."""
    importer = Importer(Store(store), importable(load_system("cardano")))
    return importer.make(import_request(source, published_rules=published, **changes), Silent()).run


def metric_ids(run: SealedRun) -> dict[str, str]:
    """The metrics' ids by the short names of the published reports, or by id for metrics without one.

    The cost of a block for a host is excluded: it is a regression over samples that are compared here. Another test
    compares it with the simulation's costs (tests/unit/systems/cardano/test_block_work.py).
    """
    return {m.published_id or m.id: m.id for m in run.catalogue.metrics if m.id not in BLOCK_WORK}


def samples_of(run: SealedRun) -> Samples:
    """Every sample of every metric, by its short name and its key."""
    by_metric: Samples = {}
    for population, keys in KEYS.items():
        own = {metric.id for metric in run.catalogue.metrics if metric.population == population}
        metrics = {name: metric for name, metric in metric_ids(run).items() if metric in own}
        frame = run.samples(population)
        rows = list(zip(*(frame[key].to_list() for key in keys), strict=True))
        assert len(set(rows)) == len(rows), f"samples of {population} have the same key"
        for name, metric_id in metrics.items():
            values = zip(rows, frame[metric_id].to_list(), strict=True)
            by_metric[name] = {key: value for key, value in values if value is not None}
    return by_metric


def with_values(samples: Mapping[str, Mapping[Key, float | None]]) -> Samples:
    """Only the samples that have a value."""
    return {name: {key: x for key, x in values.items() if x is not None} for name, values in samples.items()}


def differences(expected: Mapping[Key, float], got: Mapping[Key, float], tolerance: float = 0.0) -> list[str]:
    """The differences between two sets of samples, in words; empty if there are none. ``tolerance`` is relative."""
    messages = []
    for key in sorted(expected.keys() | got.keys(), key=str):
        a, b = expected.get(key), got.get(key)
        if a is None or b is None or abs(a - b) > tolerance * abs(a):
            messages.append(f"{key}: expected {a}, got {b}")
    return messages
