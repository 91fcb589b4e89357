"""Measurements of one build that is run repeatedly."""

from __future__ import annotations

from pydantic import BaseModel

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.result import JudgedResult
from chainmark.core.verdict import Verdict


class NoiseRow(BaseModel):
    """How much one figure differs between runs of one build.

    Attributes:
        values: one per valid run, in order of execution; mean: of them.
        deviation: standard deviation between runs, as a share of the value if `is_relative`, else in the unit.
        low, high: its 90 % interval.
        margin: the worsening that a verdict accepts: a share if `is_relative`, else in the unit.
    """

    metric_id: str
    label: str
    statistic: str
    unit: str
    is_relative: bool
    values: list[float]
    mean: float
    deviation: float
    low: float
    high: float
    margin: float


class AAReport(JudgedResult):
    """``aa.json``.

    Attributes:
        splits: number of ways to split the runs into two releases, by verdict.
        runs_a_side: in each of them.
        left_out: the reason for each run that is not counted.
    """

    runs: list[str]
    left_out: dict[str, str]
    noise: list[NoiseRow]
    splits: dict[Verdict, int]
    runs_a_side: int
    archive_runs: int
    caveats: CaveatsField = Caveats()
