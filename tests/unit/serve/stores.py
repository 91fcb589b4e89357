"""Stores of many sealed runs. Only a few runs are summarised; the others are copies with other figures."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from chainmark.capacity.tables import STEP_SCHEMA
from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import MetricSummary
from chainmark.core.manifest import Manifest
from chainmark.stats.description import LAYOUT, describe, to_frame
from chainmark.stats.samples import FrameSamples
from chainmark.store.runs import Store

from tests.unit.compare.synthetic_runs import SyntheticRun, run

PROFILES = ("demo", "saturation", "churn", "wan")
GROWING = "rss_bytes"
GROWS_FROM = 0.6  # from this share of the releases on, the metric is larger by a fifth


def filled(
    root: Path,
    *,
    releases: int,
    repetitions: int = 1,
    profiles: int = 1,
    seed: int = 1,
    charts: bool = False,
    steps: bool = False,
) -> list[str]:
    """Fill a store with runs, oldest first, and return their names. In each workload, one metric changes once."""
    base, drawn = run("v1.0.0", seconds=20, drawn=charts), random.Random(seed)
    summaries = [summary.model_dump(mode="json") for summary in base.summaries().values()]
    store, run_ids = Store(root), []
    for release in range(releases):
        for profile in PROFILES[:profiles]:
            for repetition in range(1, repetitions + 1):
                manifest = _manifest(base, release, profile, repetition)
                own = list(_figures(summaries, drawn, grown=release >= GROWS_FROM * releases))
                run_ids.append(_seal(store, base, manifest, own, steps=steps))
    return run_ids


def _manifest(base: SyntheticRun, release: int, profile: str, repetition: int) -> Manifest:
    began = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(
        days=release, minutes=10 * repetition + PROFILES.index(profile)
    )
    started, version = began.strftime("%Y-%m-%dT%H:%M:%SZ"), f"v1.{release}.0"
    content = base.manifest.model_dump(mode="json") | {
        "run_id": f"cometbft-{profile}-{version}-{began:%Y%m%dT%H%M%S}-{repetition:04x}",
        "subject": {**base.manifest.subject.model_dump(mode="json"), "version": version, "binary_sha256": version},
        "profile_name": f"cometbft/{profile}",
        "workload": {**base.manifest.workload, "name": profile},
        "experiment": {
            "id": f"{profile}-{release}",
            "side": "subject",
            "repetition": repetition,
            "position": repetition,
        },
        "started_at": started,
        "ended_at": (began + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return Manifest.model_validate(content)


def _figures(summaries: list[dict[str, Any]], drawn: random.Random, *, grown: bool) -> Iterator[MetricSummary]:
    for summary in deepcopy(summaries):
        factor = drawn.lognormvariate(0.0, 0.01) * (1.2 if grown and summary["metric_id"] == GROWING else 1.0)
        for estimate in summary["estimates"].values():
            if estimate["value"] is not None:
                estimate["value"] *= factor
        yield MetricSummary.model_validate(summary)


def _seal(store: Store, base: SyntheticRun, manifest: Manifest, summaries: list[MetricSummary], *, steps: bool) -> str:
    unfinished = store.create("cometbft", manifest.profile_name, manifest.subject.version, {})
    path = unfinished.path.rename(unfinished.path.with_name(manifest.run_id))
    unfinished.path, unfinished.run_id = path, manifest.run_id
    for name, frame in base.frames.items():
        unfinished.write_samples(name, frame)
    unfinished.write_description(_description(charts=base.catalogue.metrics[0].charts != []), LAYOUT)
    if steps:
        unfinished.write_events("steps", _steps(), STEP_SCHEMA)
    return unfinished.seal(manifest, Catalogue.model_validate(base.catalogue), summaries).run_id


@cache
def _description(*, charts: bool) -> pl.DataFrame:
    base = run("v1.0.0", seconds=20, drawn=charts)
    return to_frame(describe(base.catalogue, FrameSamples(base.frames), 1))


def _steps() -> pl.DataFrame:
    """The steps of a search that found 32 clients, with the data of its curve."""
    levels = [(2.0**power, phase) for power in range(6) for phase in ("probe", "confirm")]
    columns = {
        "endpoint": ["block"] * len(levels),
        "kind": ["clients"] * len(levels),
        "level": [level for level, _ in levels],
        "phase": [phase for _, phase in levels],
        "outcome": ["pass"] * len(levels),
        "p99_s": [0.002 * level for level, _ in levels],
    }
    unknown = [pl.lit(None, dtype=kind).alias(name) for name, kind in STEP_SCHEMA.items() if name not in columns]
    return pl.DataFrame(columns).with_columns(unknown).select(list(STEP_SCHEMA))


def damage(root: Path, run_id: str, name: str, content: bytes | None) -> None:
    """Replace or remove a file of a sealed run."""
    path = root / "runs" / run_id / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)


def unfinished(root: Path, name: str, state: dict[str, object]) -> None:
    """Create a folder without a seal."""
    folder = root / "runs" / name
    folder.mkdir(parents=True)
    (folder / "unfinished.json").write_text(json.dumps(state), encoding="utf-8")
