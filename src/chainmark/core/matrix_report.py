"""The result of a plan of load tests: a load test for every measured cell, and the reasons for the others."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.load_report import LoadReport
from chainmark.core.manifest import Fact
from chainmark.core.result import Result
from chainmark.core.verdict import Verdict


class CellEntry(BaseModel):
    """One cell.

    Attributes:
        words: the labels of the cell, by key: scenario, hardware, deployment and those of its system.
        report: without charts and series; None if nothing was measured.
        missing: why nothing was measured; ``ended``: the status for that.
        gates: whether that counts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: str
    server: str
    words: dict[str, str] = {}
    run_id: str = ""
    report: LoadReport | None = None
    missing: str = ""
    ended: Verdict | None = None
    gates: bool = True

    @property
    def name(self) -> str:
        """The name of the cell."""
        return f"{self.scenario} on {self.server}"


class MatrixReport(Result):
    """``load-plan.json``.

    Attributes:
        plan: its name; experiment: the experiment of its runs.
        machine: the machine that generated the load.
        interrupted: `--resume` continues it.
    """

    system: str
    plan: str
    description: str
    experiment: str
    machine: list[Fact]
    interrupted: bool
    cells: list[CellEntry]
    caveats: CaveatsField = Caveats()
