"""Modelled figures in print: with their standard error, and without differences that are not significant."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from chainmark.core import units
from chainmark.core.metric import Kind, Metric
from chainmark.report.blocks import TableCell
from chainmark.report.phrases import Emphasis
from chainmark.report.wording import NOT_COMPARED
from chainmark.systems.cardano.model.results import SIGNIFICANT_STANDARD_ERRORS, Modelled, ScenarioFigure

NO_DIFFERENCE = "≈ 0"
_MOST_DECIMALS = 9
ERRORS_ARE = "±: one standard error of the simulation."
JOINED_ERRORS_ARE = (
    "±: one standard error of the simulation; for adoption, it includes the model's error for published runs."
)
_LEAST_SHOWN = 0.0005  # a change that prints as 0.0 % is not a change to a reader, however significant it is
NO_DIFFERENCE_IS = (
    f"{NO_DIFFERENCE}: no visible difference: within {units.tidy(SIGNIFICANT_STANDARD_ERRORS)} standard "
    f"errors, or below {units.tidy(_LEAST_SHOWN * 100.0)} %."
)


@dataclass(frozen=True)
class RowScale:
    """The format of the figures of one row: one unit, one number of decimals."""

    unit: units.DisplayUnit
    decimals: int

    def figure(self, value: float | None, emphasis: Emphasis = "plain") -> TableCell:
        """A figure without its own error: measured, or from a formula."""
        if value is None:
            return TableCell()
        return TableCell(units.number(self.unit.of(value), self.decimals), emphasis=emphasis)

    def modelled(self, value: Modelled, emphasis: Emphasis = "plain") -> TableCell:
        """A figure of the simulation."""
        error = spread(self.unit.of(value.standard_error), self.decimals)
        return TableCell(units.number(self.unit.of(value.value), self.decimals), error, emphasis)

    def label(self, name: str) -> str:
        """A row's name with the unit of its figures."""
        return f"{name}, {self.unit.symbol}" if self.unit.symbol else name


def row_scale(
    unit: str, values: Iterable[float | None], errors: Iterable[float], beside: Iterable[float | None] = ()
) -> RowScale:
    """The scale on which all values of a row are readable, to the first digit of the smallest standard error.

    Args:
        unit: the metric's own unit.
        values: all printed values of the row, in that unit.
        errors: their standard errors.
        beside: values of other rows that must have the same unit.
    """
    known = list(values)
    shown = units.display_unit(unit, [*known, *beside])
    uncertain = [scaled for error in errors if (scaled := shown.of(error))]
    # ``decimals_for`` keeps two digits of an uncertainty: that of an interval, which is wider than a standard error.
    uncertainty = 10.0 * min(uncertain) if uncertain else None
    return RowScale(shown, units.decimals_for([shown.of(value) for value in known], uncertainty))


def spread(error: float | None, decimals: int) -> str:
    """A standard error after its figure: "± 0.003", or "± <0.001" if it is smaller than the last digit."""
    if error is None:
        return "± ?"
    if error == 0.0:
        return "± 0"
    if 0.0 < error <= 0.5 * 10.0**-decimals:
        return f"± <{units.number(10.0**-decimals, decimals)}"
    return f"± {units.number(error, decimals)}"


def change_cell(cell: ScenarioFigure, base: Modelled, metric: Metric, scale: RowScale) -> TableCell:
    """The change of one figure against the base scenario; words if it is not significant."""
    change = cell.change
    if change is None or not math.isfinite(change.value) or not math.isfinite(change.standard_error):
        return TableCell(NOT_COMPARED, emphasis="quiet")
    if not cell.changed:
        return TableCell(NO_DIFFERENCE, emphasis="quiet")
    if is_relative(metric, base.value):
        fraction = change.value / base.value
        if abs(fraction) < _LEAST_SHOWN:
            return TableCell(NO_DIFFERENCE, emphasis="quiet")
        return percent_cell(change.relative_to(base.value))
    value, error = scale.unit.of(change.value), scale.unit.of(change.standard_error)
    decimals = max(scale.decimals, _decimals_of(error or value))
    symbol = units.symbol_of_change(scale.unit)
    return TableCell(units.number(value, decimals, signed=True), f"{spread(error, decimals)} {symbol}".rstrip())


def _decimals_of(size: float | None) -> int:
    """The number of decimals that shows the first digit: a value larger than its error is not printed as 0."""
    if not size or not math.isfinite(size):
        return 0
    return min(_MOST_DECIMALS, max(0, -math.floor(math.log10(abs(size)))))


def is_relative(metric: Metric, base: float) -> bool:
    """Whether a metric's changes are printed as a share of the base's value."""
    return metric.kind is not Kind.DIFFERENCE and math.isfinite(base) and base > 0.0


def percent_cell(change: Modelled, emphasis: Emphasis = "plain") -> TableCell:
    """A relative change with its standard error, both in percent: to a tenth, if it is known to one."""
    fraction, error = change.value, change.standard_error
    decimals = 0 if error >= 0.01 or abs(fraction) >= 0.9995 else 1
    text = units.number(fraction * 100.0, decimals, signed=True)
    return TableCell(text, "%" if error == 0.0 else f"{spread(error * 100.0, decimals)} %", emphasis)


def difference_cell(measured: float, modelled: Modelled, metric: Metric, scale: RowScale) -> TableCell:
    """The model's error relative to the measured value."""
    cell = ScenarioFigure(
        modelled=modelled, change=Modelled(value=modelled.value - measured, standard_error=modelled.standard_error)
    )
    return change_cell(cell, Modelled(value=measured, standard_error=0.0), metric, scale)
