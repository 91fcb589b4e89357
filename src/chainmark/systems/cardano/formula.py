"""The closed formula of adoption: a second opinion that needs no simulation.

For a centile c, ``adoption_c = slot_to_announced + fetched_to_adopted + k_c · fetch_duration + constant_c``: the wait
of every block at the forger and at the last host, and a number k_c of consecutive fetches. Its coefficients are fitted
to one cluster and one size of blocks, so it does not apply to other networks.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from chainmark.systems.cardano.figures import ADOPTED, ADOPTION, ANNOUNCED, BLOCK_SIZE, FETCH

# A block within this share of the fitted size belongs to that workload: published means vary by less than 1 %.
SAME_SIZE = 0.05
# If fetch durations differ by less, as a share of their mean, the effect of a longer one cannot be estimated.
LEAST_RANGE = 0.01


class Formula(BaseModel):
    """The coefficients for one workload: per adoption metric, ``k`` and ``constant_s``.

    Attributes:
        k_error: the standard errors of ``k``.
        step_error_s: error of the formula for the step from one run to the next, root mean square.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    workload: str
    block_bytes: float
    runs: int
    k: dict[str, float]
    constant_s: dict[str, float]
    k_error: dict[str, float]
    step_error_s: dict[str, float]

    def applies(self, block_bytes: float) -> bool:
        """Whether blocks of this size are those of the fitted workload."""
        return abs(block_bytes / self.block_bytes - 1.0) <= SAME_SIZE

    def adoption_s(self, figures: Mapping[str, float]) -> dict[str, float]:
        """The adoption centiles from slot start to announced, fetch duration, and fetched to adopted."""
        base = figures[ANNOUNCED] + figures[ADOPTED]
        return {metric: base + self.k[metric] * figures[FETCH] + self.constant_s[metric] for metric in self.k}


def fit_formula(workload: str, runs: Sequence[Mapping[str, float]]) -> Formula:
    """Least squares over measured runs, each given by its figures, in chronological order.

    Raises:
        ValueError: there are fewer than three runs, so nothing would be left to fit, or their fetch durations are all
            equal, so that the effect of a longer one cannot be estimated.
    """
    if len(runs) < 3:
        raise ValueError(f"a formula cannot be fitted to {len(runs)} runs")
    fetches = np.array([figures[FETCH] for figures in runs])
    if float(np.ptp(fetches)) <= LEAST_RANGE * float(fetches.mean()):
        raise ValueError("a formula cannot be fitted to runs whose fetch durations are all alike")
    design = np.column_stack([fetches, np.ones(len(runs))])
    spread = float(((fetches - fetches.mean()) ** 2).sum())
    coefficients: dict[str, tuple[float, float, float, float]] = {}
    for metric in ADOPTION:
        target = np.array([figures[metric] - figures[ANNOUNCED] - figures[ADOPTED] for figures in runs])
        solution = np.linalg.lstsq(design, target, rcond=None)[0]
        off = target - design @ solution
        error = math.sqrt(float((off**2).sum()) / (len(runs) - 2) / spread)
        step_s = math.sqrt(float((np.diff(off) ** 2).mean()))
        coefficients[metric] = (float(solution[0]), float(solution[1]), error, step_s)
    k, constant_s, k_error, step_error_s = (
        {metric: coefficient[place] for metric, coefficient in coefficients.items()} for place in range(4)
    )
    return Formula(
        workload=workload,
        block_bytes=float(np.mean([figures[BLOCK_SIZE] for figures in runs])),
        runs=len(runs),
        k=k,
        constant_s=constant_s,
        k_error=k_error,
        step_error_s=step_error_s,
    )


@cache
def formulas() -> tuple[Formula, ...]:
    """The fitted formulas of ``formula.toml``."""
    content = tomllib.loads(Path(__file__).with_name("formula.toml").read_text(encoding="utf-8"))
    return tuple(Formula.model_validate(entry) for entry in content["formula"])


def formula_for(block_bytes: float) -> Formula | None:
    """The formula for blocks of that size, or None if none was fitted."""
    return next((formula for formula in formulas() if formula.applies(block_bytes)), None)
