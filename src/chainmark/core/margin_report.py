"""Possible margins at the known noise, before anything is run."""

from __future__ import annotations

from pydantic import BaseModel

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.result import Result


class MarginRow(BaseModel):
    """One gating figure: its noise, and the margin in force and the learnt one with the decisions that each allows.

    Attributes:
        deviation: standard deviation of one run, as a share of the value.
        degrees_of_freedom: of the deviation.
        noise: its source.
        margin: the worsening in force, as a share; without the floor, because it depends on the baseline.
        widened_from: the figure's own margin, beyond which it is worse, if re-runs widened ``margin``.
        learnt: the margin of three deviations of a re-run, within the bounds.
        inside_noise: even a pair of runs without any change would not be called equal by ``margin``;
            ``learnt_inside_noise`` by ``learnt``, which an upper bound can cause.
        chances: of an unchanged release being equal by ``margin``, by runs per side; ``learnt_chances`` by ``learnt``.
    """

    metric_id: str
    label: str
    statistic: str
    deviation: float
    degrees_of_freedom: float
    noise: str
    margin: float
    widened_from: float | None = None
    learnt: float
    inside_noise: bool
    learnt_inside_noise: bool
    chances: dict[int, float]
    learnt_chances: dict[int, float]


class MarginReport(Result):
    """``margins.json``.

    Attributes:
        rows: of the gating metrics whose noise is known, in the report's order.
        unknown: names of those whose noise is not known; their margins stay.
        low, high: the bounds of learnt margins.
    """

    sentence: str
    rows: list[MarginRow]
    unknown: list[str]
    low: float
    high: float
    caveats: CaveatsField = Caveats()
