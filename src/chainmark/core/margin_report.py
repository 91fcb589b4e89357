"""What margins could be, given the noise that is known, before anything is run."""

from __future__ import annotations

from pydantic import BaseModel

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.result import Result


class MarginRow(BaseModel):
    """One gating figure: its noise, and the margin in force and the learnt one with what each would decide.

    Attributes:
        deviation: standard deviation of one run, as a share of the value.
        degrees_of_freedom: with which it is known.
        noise: what shows it.
        margin: the worsening in force, as a share; the floor is not in it, because it depends on the baseline.
        widened_from: the figure's own margin, beyond which it is worse, where re-runs widened ``margin``.
        learnt: the margin that three deviations of a re-run make, within the bounds.
        inside_noise: not even a pair of runs without any change between them would be called equal by ``margin``;
            ``learnt_inside_noise`` by ``learnt``, which an upper bound can bring about.
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
        low, high: the bounds of what is learnt.
    """

    sentence: str
    rows: list[MarginRow]
    unknown: list[str]
    low: float
    high: float
    caveats: CaveatsField = Caveats()
