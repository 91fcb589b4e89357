"""Looks, tables and correlated metrics for tests of the sequential decision."""

from __future__ import annotations

import math

import numpy as np

from chainmark.stats.centiles import FloatArray
from chainmark.stats.sequential import DRAWS, FamilyTest, Looks, family_test

NOTHING = np.empty((0, 0))
MARGIN = math.log(1.1)


def looks_at(*runs: int, planned: int | None = None, archive: int = 0) -> Looks:
    return Looks(tuple((count, count) for count in runs), planned or runs[-1], archive)


def once(baseline: FloatArray, candidate: FloatArray, archive: FloatArray = NOTHING, draws: int = DRAWS) -> FamilyTest:
    looks = Looks(((len(baseline), len(candidate)),), min(len(baseline), len(candidate)), len(archive))
    return family_test(baseline, candidate, archive, looks, draws=draws)


def correlated(rng: np.random.Generator, *shape: int, shared: float = 0.9) -> FloatArray:
    """Normal values whose last axis, the metrics, has this pairwise correlation."""
    common = rng.standard_normal((*shape[:-1], 1))
    return np.asarray(math.sqrt(shared) * common + math.sqrt(1.0 - shared) * rng.standard_normal(shape))
