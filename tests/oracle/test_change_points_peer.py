"""Our splits of a series must match those of Apache Otava's E-divisive, with the same statistic."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from chainmark.stats.change_points import _best_split, _distances
from chainmark.store.paths import cache_directory

OTAVA = "apache-otava==0.8.0"
INSTALL_TIMEOUT_S = 600


@pytest.fixture(scope="session")
def calculator() -> Any:
    """Otava's pair distances alone: the whole tool requires another numpy and clients of four databases."""
    folder = cache_directory() / "peers" / OTAVA.replace("==", "-")
    if not (folder / "otava").is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), OTAVA]
        subprocess.run(command, check=True, timeout=INSTALL_TIMEOUT_S)
    sys.path.append(str(folder))
    try:
        return importlib.import_module("otava.change_point_divisive.calculator").PairDistanceCalculator
    finally:
        sys.path.remove(str(folder))


@pytest.mark.parametrize("lengths", [(12, 8, 10), (4, 4), (20, 20), (30, 5)])
def test_the_best_split_agrees_with_the_peer(calculator: Any, lengths: tuple[int, ...]) -> None:
    """Splits that isolate one value are excluded. We do not make them, because one outlier would give two changes."""
    random = np.random.default_rng(sum(lengths))
    compared = 0
    for _ in range(200):
        levels = random.normal(0.0, 2.0, len(lengths))
        series = np.repeat(levels, lengths) + random.normal(0.0, 1.0, sum(lengths))
        theirs = calculator(series).get_next_candidate([slice(0, len(series))])
        ours = _best_split(_distances(series), [(0, len(series))])
        assert ours is None or ours[0] <= theirs.qhat + 1e-9
        if ours is not None and ours[0] >= theirs.qhat - 1e-9:
            assert ours[1] == theirs.index
            compared += 1
    assert compared >= 120
