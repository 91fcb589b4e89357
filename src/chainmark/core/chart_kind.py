"""The kinds of charts of a metric: their names in catalogues, and everything that is the same for all metrics.

A new kind is a member here, with a function in ``compare/charts.py`` that computes its points.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Self

ChartSource = Literal["replicates", "track", "dots"]


@dataclass(frozen=True)
class ChartLook:
    """How the lines of a kind are drawn, in the terms of the charts of all documents.

    Attributes:
        values: the axis of the metric's values.
        pooled, single: the marks of a side's line and of a single run's.
        span: the mark from ``low`` to ``high``, if a line has them; ``opacity``: of it.
        across: the figures of the other axis, "names" for a row per side; ``ends``: of that axis.
        is_change: the values are changes, shown around no change and with the metric's margin.
        has_tail: the highest 1 % are in a chart of their own if they would take most of the axis, and link to samples.
    """

    values: Literal["x", "y"] = "y"
    pooled: Literal["line", "points"] = "line"
    single: Literal["line", "points"] = "line"
    span: Literal["band", "interval"] = "band"
    opacity: float = 0.1
    across: Literal["figures", "percent", "quantiles", "names"] = "figures"
    ends: tuple[float, float] | None = None
    is_change: bool = False
    has_tail: bool = False


class ChartKind(StrEnum):
    """The kinds of charts, each drawn the same way for every metric of every system."""

    look: ChartLook
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

    @property
    def is_for_terminals(self) -> bool:
        """Whether characters can show it: a row per side."""
        return self.look.across == "names"

    # Distribution of all samples, both sides, with a band.
    CDF = (
        "cdf",
        ChartLook("x", opacity=0.18, across="percent", ends=(0.0, 1.0), has_tail=True),
        "replicates",
        True,
    )
    # The change of its quantiles.
    SHIFT = (
        "shift",
        ChartLook(opacity=0.25, across="quantiles", ends=(0.0, 1.0), is_change=True),
        "replicates",
        True,
        "cdf",
    )
    # Value over time since the start of the window, one line per run.
    SERIES = "series", ChartLook(), "track"
    # One dot per sample over time.
    SCATTER = "scatter", ChartLook(single="points"), "dots"
