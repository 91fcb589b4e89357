"""`chainmark ingest` against a second implementation: every sample of every metric, by both sets of rules.

Generated clusters with many simultaneous faults, in all formats, compressed and rotated, are read twice: by the
package, and line by line by the oracle. Values that are exact by their rule must agree to the last bit.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chainmark.store.sealed import SealedRun

from tests.oracle.cluster_analysis import (
    Cluster,
    analyse,
    distribution,
    manifest_values,
    over_hosts,
    read_logs,
    shown_mean,
)
from tests.oracle.cluster_lines import HostLog
from tests.oracle.cluster_runs import Samples, differences, generate, ingest, metric_ids, samples_of, with_values

CLUSTERS: dict[str, dict[str, Any]] = {
    "hosts that end, stall, fork and lose lines": {
        "hosts": 8,
        "seed": 4,
        "compression": "zstd",
        "rotation": "300kB",
        "faults": (
            "crash:node-3@190",
            "stall:node-4@90-130",
            "fork:node-0@110",
            "gap:node-1@140-160",
            "duplicated:node-2=2%",
            "corrupt:node-5=2%",
            "foreign:node-5=2%",
            "truncated:all",
        ),
    },
    "formats, clocks and restarts": {
        "hosts": 7,
        "seed": 9,
        "compression": "gzip",
        "rotation": "3000",
        "formats": ("10.4", "legacy:node-6", "10.7:node-1"),
        "faults": (
            "restart:node-2@100-130",
            "late:node-1@120",
            "dropped:node-3=2%",
            "clock-offset:node-4=+2.25s",
            "clock-offset:node-2=-2.25s",
            "missed-start:node-0=5%",
            "double-start:node-5=5%",
            "limited-adoptions:node-6=0.2",
        ),
    },
    "announcements of every kind": {
        "hosts": 6,
        "seed": 2,
        "faults": (
            "falling-edges:all",
            "non-blocking:node-3=50%",
            "rollback:node-1=60%",
            "no-announcement:node-4=30%",
            "no-send:node-4=30%",
            "wrong-host:node-0=elsewhere",
            "clock-drift:all=±60ppm",
        ),
    },
}
# Quotients of other numbers than whole nanoseconds and powers of ten: the order of operations affects the last bit.
RATES = {"CentiCpu", "CentiGC", "CentiMut", "Alloc", "NetRd", "NetWr", "FsRd", "FsWr", "block_io_percent"}
SUMMED = 1e-12
# The mean of the hosts' means, by metric.
OF_HOSTS = ("slot_host", "span")
# The published analysis collects these only for its own use.
UNSHOWN = {"cdfLeads"}


@dataclass(frozen=True)
class Pair:
    """One cluster, read twice by the same rules."""

    run: SealedRun
    cluster: Cluster
    got: Samples
    expected: Samples

    def tolerance(self, metric: str) -> float:
        """The permitted relative difference of a single sample."""
        return SUMMED if metric in RATES and not self.cluster.published else 0.0


Logs = tuple[Path, dict[str, HostLog]]


@pytest.fixture(scope="module", params=list(CLUSTERS))
def logs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Logs:
    folder = generate(tmp_path_factory.mktemp("cluster") / "logs", **CLUSTERS[request.param])
    return folder, read_logs(folder)


@pytest.fixture(scope="module", params=[False, True], ids=["right", "published"])
def pair(logs: Logs, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder, read = logs
    run = ingest(folder, tmp_path_factory.mktemp("store"), published=request.param)
    cluster = analyse(folder, read, published=request.param)
    return Pair(run, cluster, samples_of(run), with_values(cluster.samples))


def test_every_sample_of_every_metric_agrees(pair: Pair) -> None:
    assert pair.expected.keys() - UNSHOWN == pair.got.keys()
    assert len(pair.expected["cdf1.00"]) >= 3, "too few blocks for a comparison"
    assert len(pair.expected["cdfStarts"]) >= 500
    for metric, values in pair.expected.items():
        if metric not in UNSHOWN:
            assert differences(values, pair.got[metric], pair.tolerance(metric)) == [], metric


def test_every_summary_of_every_metric_agrees(pair: Pair) -> None:
    """No figure that a report shows may depend on how the samples were stored."""
    summaries = pair.run.summaries()
    populations = {metric.id: metric.population for metric in pair.run.catalogue.metrics}
    for metric, metric_id in metric_ids(pair.run).items():
        expected = distribution(pair.expected[metric].values())
        got = summaries[metric_id].distribution
        assert (got.n if got else 0) == expected.n, metric
        if got is None:
            continue
        of_hosts = populations[metric_id] in OF_HOSTS
        mean = shown_mean(pair.cluster, metric) if of_hosts else expected.mean
        close = {"rel_tol": SUMMED, "abs_tol": 0.0}
        assert math.isclose(got.mean, mean, **close), metric
        if of_hosts and pair.cluster.published:
            expected = over_hosts(pair.cluster, metric)
        assert math.isclose(got.sd or 0.0, expected.sd, **close), metric
        tolerance = {"rel_tol": pair.tolerance(metric), "abs_tol": 0.0}
        assert math.isclose(got.min, expected.low, **tolerance), metric
        assert math.isclose(got.max, expected.high, **tolerance), metric
        for (fraction, value), element in zip(got.centiles, expected.centiles, strict=True):
            assert value is None or math.isclose(value, element, **tolerance), f"{metric} at {fraction}"


def test_the_same_29_centiles_are_computed(pair: Pair) -> None:
    """This includes centiles that so few samples cannot estimate, which a run omits from its summaries."""
    for metric, values in pair.got.items():
        expected = distribution(pair.expected[metric].values()).centiles
        tolerance = pair.tolerance(metric)
        assert distribution(values.values()).centiles == pytest.approx(expected, rel=tolerance, abs=0), metric


def test_every_line_is_counted_in_one_class(pair: Pair) -> None:
    counts = pair.run.manifest.counts
    for host, log in pair.cluster.logs.items():
        classes: Counter[str] = log.classes
        malformed = classes["malformed_envelope"] + classes["malformed_body"]
        got = counts[f"lines of {host}"]
        assert sum(got.values()) == log.raw_lines, host
        assert (got["malformed"], got["not objects"]) == (malformed, classes["not_object"]), host
        assert got["skipped"] == classes["skipped"], host
        if not pair.cluster.published:
            assert (got["decoded"], got["ignored"]) == (classes["decoded"], classes["ignored"]), host


def test_the_figures_of_the_first_table_agree(pair: Pair) -> None:
    shown = {fact.label: fact.value for fact in pair.run.manifest.facts}
    for label, value in manifest_values(pair.cluster).items():
        # Truncated to a width, never rounded; durations also lose a leading zero.
        text = repr(value).removeprefix("0") if "spread" in label else repr(value)
        text = text.removesuffix(".0") if "spread" in label or label == "Host run time, s" else text
        assert shown[label] == text[: len(shown[label])], label
        assert len(shown[label]) == len(text) or len(shown[label]) >= 4, label
