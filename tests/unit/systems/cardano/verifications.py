"""Verifications built by hand, with a constant document for the golden files."""

from __future__ import annotations

from chainmark.systems.cardano.verified.results import FigureTally, Verification, VerifiedFigure
from chainmark.systems.cardano.verified.verifying import ROUNDING, RULES

_START, _STARTS, _GONE = ("cdfForgerStart", "Started", "s"), ("cdfStarts", "Forge loop starts", "units"), "cdfLeads"


def _figure(of: tuple[str, str, str], statistic: str, theirs: float, ours: float, group: str = "") -> VerifiedFigure:
    name, label, unit = of
    rounding = abs(theirs) * 1e-9 + (2.4e-7 if unit == "s" else 0.0)
    return VerifiedFigure(
        figure=name, label=label, unit=unit, group=group, statistic=statistic, theirs=theirs, ours=ours,
        difference=ours - theirs, rounding=rounding, agrees=abs(ours - theirs) <= rounding,
    )  # fmt: skip


def verification(*, differs: bool = False) -> Verification:
    """Three figures: one of blocks, one over hosts, and one that the run lacks."""
    off = 0.000_31 if differs else 0.0
    figures = [
        _figure(_START, "size", 2327.0, 2327.0),
        _figure(_START, "average", 0.001_230_45, 0.001_230_47 + off),
        _figure(_START, "0.99", 0.004_1, 0.004_1),
        _figure(_STARTS, "average", 0.996_1, 0.996_1),
        VerifiedFigure(figure=_GONE, label=_GONE, unit="", group="", statistic="average", theirs=0.0012, ours=None),
    ]
    if differs:
        figures.append(_figure(_STARTS, "place 3 of 52", 0.99, 0.98, "hosts at 0.5"))
    tallies = [
        FigureTally(figure=_START[0], label=_START[1], unit="s", compared=3, differing=int(differs), only_theirs=0,
                    only_ours=0),
        FigureTally(figure=_STARTS[0], label=_STARTS[1], unit="units", compared=1740, differing=int(differs),
                    only_theirs=0, only_ours=0),
        FigureTally(figure=_GONE, label=_GONE, unit="", compared=0, differing=0, only_theirs=1, only_ours=0),
    ]  # fmt: skip
    return Verification(
        tool_version="0.0.0", run_id="cardano-value-10.6.2-20260205T185217-1a2b3c4d", subject="Cardano 10.6.2",
        file="clusterperf.json", kind="clusterperf", rules=RULES, rounding=ROUNDING, tallies=tallies, figures=figures,
    )  # fmt: skip
