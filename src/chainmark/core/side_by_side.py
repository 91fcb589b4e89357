"""Three or more versions side by side: every further one compared with the first."""

from __future__ import annotations

from pydantic import BaseModel

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.comparison import ChartData, Comparison
from chainmark.core.result import JudgedResult

SIDE_BY_SIDE_SCHEMA = 1


class FactRow(BaseModel):
    """One row of the manifest: a fact with its value in every version."""

    label: str
    values: list[str]


class SideBySide(JudgedResult):
    """``side-by-side.json``.

    Attributes:
        verdict: the worst of the comparisons', in the order fail, invalid, inconclusive, pass.
        labels: unique names of the versions: the baseline, then the candidates.
        comparisons: one per candidate, each complete, without charts.
        facts: the key facts in the runs' manifests, for every version.
        charts: all versions in one plot; ``line.side`` is the version's label.
    """

    schema_version: int = SIDE_BY_SIDE_SCHEMA
    labels: list[str]
    comparisons: list[Comparison]
    facts: list[FactRow]
    charts: list[ChartData]
    caveats: CaveatsField = Caveats()
