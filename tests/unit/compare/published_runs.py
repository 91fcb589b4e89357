"""Simulated runs of a system with published benchmarks, for the published style and side-by-side reports."""

from __future__ import annotations

import numpy as np
import polars as pl

from chainmark.core.catalogue import Catalogue
from chainmark.core.manifest import Fact
from chainmark.core.metric import Metric, Population, Weighting

from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

HOSTS = 5
SLOTS = 40
# The fields of an entry that concern published reports, all unset.
_SHOWN = {
    **dict.fromkeys(("label", "unit", "org_label", "org_unit", "width", "chart", "chart_style")),
    "logarithmic": False,
}


def catalogue(*, lowest_means: int | None = None) -> Catalogue:
    """Two tables whose order and labels in published reports differ from those of chainmark."""
    common = {
        "kind": "positive",
        "better": "lower",
        "statistics": ["mean"],
        "judged_by": ["mean"],
        "charts": ["cdf"],
        "source": ["made up"],
    }
    metrics = [
        {
            "id": "spread_s", "published_id": "cdfSpread", "label": "Spread", "unit": "s", "table": "spreading",
            "order": 1, "population": "block", "gating": True, "description": "How long it takes.",
            "published": _SHOWN | {"width": 4, "chart": 2, "logarithmic": True},
        },
        {
            "id": "memory_mib", "published_id": "RSS", "label": "Memory", "unit": "MiB", "table": "resource",
            "order": 1, "population": "slot_host", "gating": False, "description": "What it holds.",
            "published": _SHOWN | {"width": 5, "chart": 1, "label": "Kernel RSS", "org_unit": "MB"},
        },
        {
            "id": "delay_s", "published_id": "cdfDelay", "label": "Delay", "unit": "s", "table": "spreading",
            "order": 2, "population": "block", "description": "Drawn before, in no table.",
            "published": _SHOWN | {"chart": 3, "chart_style": "org"},
        },
        {
            "id": "own_s", "label": "Our own", "unit": "s", "table": "spreading", "order": 3, "population": "block",
            "description": "Nobody published it.",
        },
    ]  # fmt: skip
    slot_host = Population(
        id="slot_host",
        label="slots × hosts",
        keys=["slot", "host", "time_s"],
        time_key="time_s",
        average_over=["host"],
        weighting=Weighting.KEYS,
        lowest_means=lowest_means,
    )
    return Catalogue.model_validate(
        {
            "system": "demo",
            "title": "Demo chain",
            "populations": [
                {"id": "block", "label": "blocks", "keys": ["block", "time_s"], "time_key": "time_s"},
                slot_host,
            ],
            "tables": [{"id": "spreading", "title": "Spreading"}, {"id": "resource", "title": "Resource Usage"}],
            "published": {
                "tables": ["resource", "spreading"],
                "dictionary": [
                    {"title": "Spreading metrics", "tables": ["spreading"]},
                    {"title": "Machine metrics", "tables": ["resource"]},
                ],
                "beside_version": "Era",
                "workload": "workload.name",
            },
            "metrics": [Metric.model_validate(common | metric) for metric in metrics],
        }
    )


def run(
    version: str, repetition: int = 1, *, factor: float = 1.0, seed: int = 1, lowest_means: int | None = None
) -> SyntheticRun:
    """One run, determined by its seed. ``factor`` multiplies the spreading times."""
    rng = np.random.default_rng(seed)
    described = manifest(version, repetition, side=version, position=seed, seed=seed).model_copy(
        update={
            "run_id": f"demo-{version}-{repetition}",
            "experiment": None,
            "conditions": {},
            "facts": [
                Fact(label="Identifier", value=version),
                Fact(label="Era", value="conway"),
                Fact(label="Machines", value=str(HOSTS)),
                Fact(label="Run time, s", value=f"{1000 + 10 * repetition}.5"),
            ],
        }
    )
    blocks = np.arange(120)
    spread = factor * rng.lognormal(-0.4, 0.1, blocks.size)
    hosts = np.repeat(np.arange(HOSTS), SLOTS)
    frames = {
        "block": pl.DataFrame(
            {
                "block": blocks,
                "time_s": 20.0 * blocks,
                "spread_s": spread,
                "delay_s": rng.random(blocks.size) * 0.01,
                "own_s": spread / 3.0,
            }
        ),
        "slot_host": pl.DataFrame(
            {
                "slot": np.tile(np.arange(SLOTS), HOSTS),
                "host": [f"node-{host}" for host in hosts],
                "time_s": np.tile(np.arange(SLOTS, dtype=float), HOSTS),
                "memory_mib": 8000.0 + 100.0 * hosts + rng.random(hosts.size),
            }
        ),
    }
    return SyntheticRun(described, catalogue(lowest_means=lowest_means), frames)
