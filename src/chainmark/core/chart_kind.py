"""The kinds of charts of a metric: their names in catalogues, and what every document needs to know of them.

A new kind is a member here, with a function in ``compare/charts.py`` that computes its points.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

ChartLook = Literal["shares", "changes", "lines", "dots"]
ChartSource = Literal["replicates", "track", "dots"]


class ChartKind(StrEnum):
    """The kinds of charts, each drawn the same way for every metric of every system."""

    look: ChartLook  # how its lines are drawn: with changes, the margin is shown, too
    needs: ChartSource  # the part of a run's description that its points are computed from, besides the distribution
    in_summaries: bool  # shown in reports on several comparisons, too, which lines of every run would make long
    follows: str  # the kind that it accompanies wherever a catalogue names that one

    def __new__(
        cls, name: str, look: ChartLook, needs: ChartSource, in_summaries: bool = False, follows: str = ""
    ) -> Self:
        """A member, whose value is its name in catalogues."""
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.look, kind.needs, kind.in_summaries, kind.follows = look, needs, in_summaries, follows
        return kind

    CDF = "cdf", "shares", "replicates", True  # distribution of all samples, both sides, with a band
    SHIFT = "shift", "changes", "replicates", True, "cdf"  # the change of its quantiles
    SERIES = "series", "lines", "track"  # value over time since the start of the window, one line per run
    SCATTER = "scatter", "dots", "dots"  # one dot per sample over time
