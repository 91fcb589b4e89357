"""Network and node parts of a simulated change, and of a run's adoptions next to the simulated ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from chainmark.compare.split import PartedChange, PartEffect, divided
from chainmark.core.comparison import Split
from chainmark.systems.cardano.figures import ADOPTION, CENTILES, Figures
from chainmark.systems.cardano.model.results import Modelled, ShareRow
from chainmark.systems.cardano.record import joined, record
from chainmark.systems.cardano.simulation import Simulated
from chainmark.systems.cardano.split.parts import NETWORK, NODE
from chainmark.systems.cardano.split.paths import Ways

# The side of the simulator's parts of an adoption.
SIMULATED = {
    NETWORK: ("round_trips", "extra_rounds"),
    NODE: ("forging", "announcement", "header", "request", "body", "adoption", "tails"),
}
BASIS = "the simulation's error, combined with the model's error for published runs"


def simulated_splits(base: Simulated, other: Simulated, block_bytes: float) -> list[Split]:
    """The change of every adoption centile from one simulated network to another."""
    splits = []
    for metric, centile in zip(ADOPTION, CENTILES, strict=True):
        known = record(block_bytes)[metric]
        effects = []
        for part, names in SIMULATED.items():
            columns = [f"part_{name}_{centile}" for name in names]
            sides = [math.fsum(simulated.mean(name) for name in columns) for simulated in (base, other)]
            change = joined(_together(other, columns, base), known)
            effects.append(PartEffect(part, sides[0], sides[1], change.standard_error))
        split = divided(PartedChange(metric, effects, BASIS), (base.mean(metric), other.mean(metric)))
        splits += [split] if split is not None else []
    return splits


def shares(ways: Ways, simulated: Simulated, figures: Figures) -> list[ShareRow]:
    """The network's and the nodes' part of every adoption centile of a run: by its logs, and simulated."""
    rows = []
    for place, (metric, centile) in enumerate(zip(ADOPTION, CENTILES, strict=True)):
        if metric not in figures.values:
            continue
        means = ways.parts(place, 0.0).mean(axis=0)
        measured = {NETWORK: float(means[0]), NODE: float(means[1:].sum())}
        for part, names in SIMULATED.items():
            modelled = _together(simulated, [f"part_{name}_{centile}" for name in names])
            rows.append(ShareRow(metric_id=metric, part=part.label, measured=measured[part], modelled=modelled))
    return rows


def _together(simulated: Simulated, names: Sequence[str], less: Simulated | None = None) -> Modelled:
    """The sum of some figures, or of their differences, batch by batch."""
    values = simulated.values[:, [simulated.names[name] for name in names]].sum(axis=1)
    if less is not None:
        values = values - less.values[:, [less.names[name] for name in names]].sum(axis=1)
    batches = values[np.isfinite(values)]
    error = float(np.std(batches, ddof=1)) / math.sqrt(len(batches)) if len(batches) > 1 else 0.0
    return Modelled(value=float(batches.mean()), standard_error=error)
