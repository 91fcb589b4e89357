"""Two versions under several workloads: one comparison each, and one verdict."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.comparison import Comparison
from chainmark.core.verdict import Verdict

BY_WORKLOAD_SCHEMA = 1


class ByWorkload(BaseModel):
    """``by-workload.json``.

    Attributes:
        verdict: the worst of the comparisons', in the order fail, invalid, inconclusive, pass.
        labels: what the workloads are called, no two alike; comparisons: one each, whole, without charts.
        unmatched: what only one of the versions was run under, a sentence each.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: int = BY_WORKLOAD_SCHEMA
    tool_version: str
    title: str
    subtitle: str
    date: str
    verdict: Verdict
    sentence: str
    labels: list[str]
    comparisons: list[Comparison]
    unmatched: list[str]
    caveats: CaveatsField = Caveats()
