"""The result of the comparison of their figures with ours."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from chainmark.core.caveats import Caveats, CaveatsField

VERIFICATION_SCHEMA = 1


class VerifiedFigure(BaseModel):
    """One statistic of one figure, from their file and from the run by the same rules.

    Attributes:
        figure: the published analysis's name of it; ``label``, ``unit``: the names here.
        group: "" is the figure itself; otherwise the distribution over hosts.
        theirs, ours: in the figure's unit; None on the side that lacks it.
        difference: ours minus theirs.
        rounding: the tolerance within which the two agree, in the figure's unit.
        agrees: None if one side lacks it.
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
    """A summary of one figure: how many of its statistics both sides have, and how many agree."""

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
        file: as given; ``kind``: which of the published analysis's files it is.
        rules: the rules of the run's figures, in a sentence.
        rounding: the tolerances, in a sentence each.
        tallies: every figure of either side.
        figures: every figure's own statistics, and those over its hosts that differ or that one side lacks.
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
