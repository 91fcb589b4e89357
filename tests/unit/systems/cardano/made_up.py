"""Invented runs of a known network: results of the simulator in the form of a report or of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chainmark.core.distribution import Distribution, Estimate, MetricSummary
from chainmark.core.manifest import HostFacts, Manifest, Status, Subject
from chainmark.core.progress import Silent
from chainmark.lab.profiles import read_profile
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.capabilities import ModelRequest, WhatIf
from chainmark.systems.cardano import SYSTEM
from chainmark.systems.cardano.figures import KNOWN
from chainmark.systems.cardano.profile import CardanoProfile
from chainmark.systems.cardano.scenario import Scenario
from chainmark.systems.cardano.simulation import Simulator

SEED = 11
BLOCKS = 320  # ten per batch: fast, and precise enough for these tests
QUIET = Silent()


def order(*changes: WhatIf, blocks: int = BLOCKS, together: bool = False, seed: int = SEED) -> ModelRequest:
    """A request with few blocks."""
    return ModelRequest(changes=changes, together=together, blocks=blocks, seed=seed)


def profile(reference: str = "cardano/value", *settings: str) -> CardanoProfile:
    """A shipped profile with settings."""
    return SYSTEM.profile(read_profile(reference, settings))


def measured(scenario: Scenario, blocks: int = BLOCKS) -> dict[str, float]:
    """The model's figures of a simulated network, in the catalogue's order."""
    simulated = Simulator(blocks).run(scenario)
    return {metric.id: simulated.mean(metric.id) for metric in SYSTEM.catalogue().metrics if metric.id in KNOWN}


def report(versions: Mapping[str, Mapping[str, float]], **changed: Any) -> dict[str, Any]:
    """A published report with one column per version."""
    names = {metric.id: metric for metric in SYSTEM.catalogue().metrics}
    first = next(iter(versions.values()))
    rows = [
        {
            "label": f"{names[metric].label}, {names[metric].unit}",
            "metric": names[metric].label,
            "unit": names[metric].unit,
            "values": [f"{figures[metric]:.6g}" for figures in versions.values()],
        }
        for metric in first
    ]
    content = {
        "title": "made up",
        "workload": "value-only",
        "versions": list(versions),
        "manifest": {"Machines": ["52"] * len(versions), "Blocks analysed": ["2200"] * len(versions)},
        "tables": {"Everything": {"columns": list(versions), "rows": rows}},
    }
    return {**content, **changed}


def write(path: Path, content: object) -> Path:
    """Write JSON."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def sealed_run(
    folder: Path, figures: Mapping[str, float], system: str = "cardano", of: CardanoProfile | None = None
) -> SealedRun:
    """A run whose metrics have these means."""
    run = Store(folder).create(system, "cardano/value", "10.6.2", {})
    manifest = Manifest(
        run_id=run.run_id,
        subject=Subject(system=system, name="Cardano", version="10.6.2"),
        profile_name="cardano/value",
        profile=(of or profile()).model_dump(mode="json"),
        workload={},
        tool_version="test",
        seed=1,
        started_at="2026-02-12T10:38:55Z",
        ended_at="2026-02-13T04:00:00Z",
        host=HostFacts(cpu_model="made up", cores=8, memory_bytes=2**34, kernel="6", operating_system="Linux"),
        status=Status.VALID,
    )
    summaries = [
        MetricSummary(
            metric_id=metric,
            distribution=Distribution(n=2200, n_null=0, mean=value, sd=None, min=value, max=value, centiles=[]),
            estimates={"mean": Estimate(value=value, standard_error=abs(value) / 1000.0, method="made up")},
        )
        for metric, value in figures.items()
    ]
    return run.seal(manifest, SYSTEM.catalogue(), summaries)
