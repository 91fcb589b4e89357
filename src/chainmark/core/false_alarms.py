"""How often a lab reports a change in re-runs of one build."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from chainmark.core import units
from chainmark.core.caveats import Caveats, CaveatsField
from chainmark.core.result import JudgedResult

PROMISED = 0.05


class FalseAlarms(BaseModel):
    """Re-runs of one build judged as two releases, each pair by the noise of all other runs.

    Attributes:
        pairs: names of the judged pairs of runs.
        figures: number of judged figures in all pairs, gating and diagnostic; ``moved``: those reported as moved.
        gating: deciding figures; of them ``worse`` and ``undecided``.
        alarmed: pairs with a gating figure that is reported as moved.
        set_aside: figures that were not judged, because they show a change of the set-up and not noise.
        examples: figures that were reported as moved.
    """

    model_config = ConfigDict(extra="forbid")

    pairs: list[str] = []
    figures: int = 0
    moved: int = 0
    gating: int = 0
    worse: int = 0
    undecided: int = 0
    alarmed: int = 0
    set_aside: int = 0
    examples: list[str] = []

    @property
    def rate_sentence(self) -> str:
        """The rate in a sentence, next to a verdict; "" if nothing was judged."""
        if not self.figures:
            return ""
        pairs = units.plural(len(self.pairs), "re-run")
        return (
            f"false alarms in this history: {self.moved} ({units.plain_percent(self.moved / self.figures)}) of "
            f"{units.plural(self.figures, 'result')} of {pairs} of one build were judged as moved, each with the noise "
            f"of the others; the promised limit is {units.plain_percent(PROMISED)}"
        )


class SplitAlarms(BaseModel):
    """Runs split into two equivalent halves, each half judged by its own error.

    Attributes:
        runs: number of split runs.
        figures: number of judged figures in all of them; ``moved``: those beyond the 95 % of their error.
    """

    model_config = ConfigDict(extra="forbid")

    runs: list[str] = []
    figures: int = 0
    moved: int = 0


class HistoryCheck(JudgedResult):
    """``aa.json`` of a history."""

    re_runs: FalseAlarms
    splits: SplitAlarms
    caveats: CaveatsField = Caveats()
