"""What a plan of load tests found: a load test for every cell that was measured, and why the others were not."""

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
        words: what names the cell, by key: scenario, hardware, deployment and what its system adds.
        report: without what is only drawn, and without seconds; None where nothing was measured.
        missing: why nothing was measured; ``ended``: what that counts as.
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
        """What the cell is called."""
        return f"{self.scenario} on {self.server}"


class MatrixReport(Result):
    """``load-plan.json``.

    Attributes:
        plan: its name; experiment: under which its runs are found.
        machine: that made the load.
        interrupted: it goes on with `--resume`.
    """

    system: str
    plan: str
    description: str
    experiment: str
    machine: list[Fact]
    interrupted: bool
    cells: list[CellEntry]
    caveats: CaveatsField = Caveats()
