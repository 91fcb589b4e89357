"""The charts of the published styles: the distributions of all versions in one plot, along either axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chainmark.report.chart import Axis, Layer, LegendSeries, Tooltip, columns_of


@dataclass(frozen=True)
class VersionLine:
    """One version's distribution: ``fractions[i]`` of the samples are at most ``values[i]``.

    ``low`` and ``high`` are a band around the values, if there is one.
    """

    label: str
    values: list[float]
    fractions: list[float]
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class DistributionAxes:
    """How versions' distributions are drawn.

    Attributes:
        values, fractions: the axes; only positive values can be drawn on a logarithmic one.
        upwards: the values on the vertical axis instead of the horizontal one.
        points: marks at every point of a line.
    """

    values: Axis
    fractions: Axis
    upwards: bool = False
    points: bool = False

    @property
    def logarithmic(self) -> bool:
        """Whether the axis of the values must be logarithmic in any case."""
        return self.values.log_beyond == 1.0

    def hidden(self, line: VersionLine) -> int:
        """The number of points of a line that cannot be drawn: on a logarithmic scale, those that are not positive."""
        return sum(value <= 0.0 for value in line.values) if self.logarithmic else 0


def distribution_layers(
    lines: Sequence[VersionLine], axes: DistributionAxes, labels: Sequence[str]
) -> dict[str, Any]:  # fmt: skip
    """The parameters of a ``Chart`` of versions' distributions, except its name and its position.

    Args:
        lines: one per version with samples.
        axes: how they are drawn.
        labels: of all versions, so that each keeps its style if another one has no samples.
    """
    rows = [row for line in lines for row in _points(line, axes)]
    along, across = ("y", "x") if axes.upwards else ("x", "y")
    place: dict[str, Any] = {along: "value", across: "fraction"}
    tips = [
        Tooltip("version", "label"),
        Tooltip("fraction", "fraction", ".4g"),
        Tooltip(axes.values.title or "value", "value", ".5g"),
    ]
    layers = []
    if any(line.low for line in lines):
        ends: dict[str, Any] = {along: "low", f"{along}2": "high", across: "fraction"}
        layers.append(Layer("band", **ends, colour="label", opacity=0.15))
    layers.append(
        Layer(
            "line",
            **place,
            colour="label",
            style="label",
            order="fraction",
            width=1.6,
            opacity=1,
            tips=tips,
            nearest=True,
        )
    )
    if axes.points:
        layers.append(Layer("points", **place, colour="label", size=18))
    return {
        along: axes.values,
        across: axes.fractions,
        "layers": layers,
        "data": {"points": columns_of(rows)},
        "series": {"label": LegendSeries(labels)},
    }


def _points(line: VersionLine, axes: DistributionAxes) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = []
    for index, (value, fraction) in enumerate(zip(line.values, line.fractions, strict=True)):
        if axes.logarithmic and value <= 0.0:
            continue
        point: dict[str, Any] = {"label": line.label, "value": value, "fraction": fraction}
        if line.low and line.high:
            point |= {"low": line.low[index], "high": line.high[index]}
        points.append(point)
    return points
