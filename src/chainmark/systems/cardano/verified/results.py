"""What setting their figures beside ours came to."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from chainmark.core.caveats import Caveats, CaveatsField

VERIFICATION_SCHEMA = 1


class VerifiedFigure(BaseModel):
    """One statistic of one figure, as they tell it and as the run keeps it by the same rules.

    Attributes:
        figure: what the published analysis calls it; ``label``, ``unit``: what it is called here.
        group: "" is the figure itself; else how the hosts lie in it.
        theirs, ours: in the figure's unit; None on the side that lacks it.
        difference: ours less theirs.
        rounding: by how much the two may differ and still agree, in the figure's unit.
        agrees: None where one side lacks it.
    """

    model_config = ConfigDict(frozen=True)

    figure: str
    label: str
    unit: str
    group: str
    statistic: str
    theirs: float | None
    ours: float | None
    difference: float | None = None
    rounding: float | None = None
    agrees: bool | None = None


class FigureTally(BaseModel):
    """One figure in short: how many of its statistics both sides have, and how many agree."""

    figure: str
    label: str
    unit: str
    compared: int
    differing: int
    only_theirs: int
    only_ours: int


class Verification(BaseModel):
    """The whole result.

    Attributes:
        file: as it was given; ``kind``: which of the files of the published analysis it is.
        rules: by which the run's figures were made, in a sentence.
        rounding: what is taken for rounding, in a sentence each.
        tallies: every figure that either side has.
        figures: every figure's own statistics, and of those of the hosts in it all that differ or that one side lacks.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: int = VERIFICATION_SCHEMA
    tool_version: str
    run_id: str
    subject: str
    file: str
    kind: str
    rules: str
    rounding: list[str]
    tallies: list[FigureTally]
    figures: list[VerifiedFigure]
    caveats: CaveatsField = Caveats()

    @property
    def compared(self) -> int:
        """Statistics that both sides have."""
        return sum(tally.compared for tally in self.tallies)

    @property
    def differing(self) -> int:
        """Those that do not agree."""
        return sum(tally.differing for tally in self.tallies)
