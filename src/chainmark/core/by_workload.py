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
        labels: unique names of the workloads; comparisons: one each, complete, with the charts of gating metrics.
        unmatched: workloads of only one of the versions, a sentence each.
    """

    schema_version: int = BY_WORKLOAD_SCHEMA
    labels: list[str]
    comparisons: list[Comparison]
    unmatched: list[str]
    caveats: CaveatsField = Caveats()
