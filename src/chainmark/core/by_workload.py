"""Two versions under several workloads: one comparison each, and one verdict."""

from __future__ import annotations

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.comparison import Comparison
from chainmark.core.result import JudgedResult

BY_WORKLOAD_SCHEMA = 1


class ByWorkload(JudgedResult):
    """``by-workload.json``.

    Attributes:
        verdict: the worst of the comparisons', in the order fail, invalid, inconclusive, pass.
        labels: what the workloads are called, no two alike; comparisons: one each, whole, without charts.
        unmatched: what only one of the versions was run under, a sentence each.
    """

    schema_version: int = BY_WORKLOAD_SCHEMA
    labels: list[str]
    comparisons: list[Comparison]
    unmatched: list[str]
    caveats: CaveatsField = Caveats()
