"""The words of a saturation test, once for all of its tables and renderings."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.report.blocks import TableCell
from chainmark.report.phrases import Emphasis
from chainmark.systems.cometbft.saturation.results import (
    Cell,
    Figure,
    Measure,
    Saturation,
    SaturationResult,
    SaturationVersion,
    Standing,
    State,
)

WORDS: dict[State, str] = {
    "found": "FOUND",
    "lower bound": "LOWER BOUND",
    "leaning": "NOT CLEAR",
    "contradictory": "UNDECIDED",
    "nothing kept up": "NOTHING KEPT UP",
    "no data": "NO DATA",
}
# The worst is the document's own.
_WORST: tuple[State, ...] = ("no data", "contradictory", "nothing kept up", "leaning", "lower bound", "found")
STANDINGS: dict[Standing, Emphasis] = {
    "kept up": "plain",
    "leans to kept up": "caution",
    "leans to saturated": "caution",
    "saturated": "worse",
    "no data": "quiet",
}
MEASURES: dict[Measure, str] = {
    "committed": "of all that was offered",
    "pace": "of what was due in the window",
}
QUIET = TableCell(units.UNSET, emphasis="quiet")


def state_of(report: SaturationResult) -> State:
    """The worst state of the versions that were measured, or, if none was, of all."""
    measured = report.measured or report.versions
    states = {version.chosen.state for version in measured}
    return next((state for state in _WORST if state in states), "no data")


def per_s(load: float | None) -> str:
    """A load: "400 tx/s"."""
    return units.UNSET if load is None else f"{units.count(round(load))} tx/s"


def between(found: Saturation) -> str:
    """The bracket: "at least 200, below 800 tx/s"."""
    if found.high_per_s is None:
        return f"at least {per_s(found.low_per_s)}"
    if not found.low_per_s:
        return f"below {per_s(found.high_per_s)}"
    return f"at least {units.count(found.low_per_s)}, below {per_s(found.high_per_s)}"


def configuration(found: Saturation) -> str:
    """The connections and rate chosen: "c=1, r=400"."""
    return units.UNSET if found.connections is None else f"c={found.connections}, r={found.rate_per_s}"


def found_text(found: Saturation) -> str:
    """The load, or why there is none, in few words."""
    if found.load_per_s is not None:
        return per_s(found.load_per_s)
    return {"lower bound": "beyond the test", "contradictory": "undecided"}.get(found.state, "none")


def sentence(report: SaturationResult) -> str:
    """What was found of every version."""
    parts = [f"{version.label} {_clause(version.chosen)}" for version in report.versions]
    return "; ".join(parts) + "." if parts else "Nothing was measured."


def _clause(found: Saturation) -> str:
    bracket = between(found)
    if found.state == "found":
        return f"keeps up with {per_s(found.load_per_s)} ({configuration(found)})"
    if found.state == "leaning":
        return (
            f"keeps up with {per_s(found.load_per_s)} by the values ({configuration(found)}), and surely with {bracket}"
        )
    if found.state == "contradictory":
        return f"contradicts itself: its saturation load is {bracket}"
    if found.state == "lower bound":
        return f"keeps up with every load that was tested (up to {configuration(found)})"
    return "keeps up with no load that was tested" if found.state == "nothing kept up" else "has no run that counts"


def reasons(report: SaturationResult) -> list[str]:
    """Why, version by version and measure by measure."""
    return [
        f"{version.label}, {MEASURES[found.measure]}: {found_text(found)}: {found.reason}."
        for version in report.versions
        for found in version.saturations
    ]


def rule(report: SaturationResult) -> str:
    """The rule that chooses the load."""
    return (
        "The saturation load is the largest connections × rate such that it and every smaller tested load have "
        f"processed at least {units.plain_percent(1.0 - report.tolerance)} of what was offered, in each cell of equal "
        "load, while every cell of every larger load has processed less. The chosen configuration is the one at that "
        "load with the fewest connections; where no load is found, of the largest one up to which all are kept up. "
        "Sure are the loads whose 90 % intervals lie wholly on one side."
    )


def count_of(cell: Cell) -> TableCell:
    """Processed transactions, a mean over the runs, with the share of what was offered."""
    if cell.committed is None or cell.efficiency is None:
        return QUIET
    share = units.plain_percent(cell.efficiency.value, decimals=1)
    return TableCell(units.count(round(cell.committed)), share, emphasis=STANDINGS[cell.standing])


def figure_cell(figure: Figure | None, factor: float, decimals: int, emphasis: Emphasis = "plain") -> TableCell:
    """A figure with its interval as its tail."""
    if figure is None:
        return QUIET
    text = units.number(figure.value * factor, decimals)
    if figure.low is None or figure.high is None:
        return TableCell(text, emphasis=emphasis)
    low, high = (units.number(value * factor, decimals) for value in (figure.low, figure.high))
    return TableCell(text, f"({low} … {high})", emphasis=emphasis)


def decimals(figures: Sequence[Figure | None]) -> int:
    """For figures printed in one column: four digits of the largest."""
    return units.decimals_for([figure.value for figure in figures if figure is not None])


def total(cell: Cell, read: str) -> str:
    """A sum of the books over the runs that count; unset where a source does not tell."""
    values = [getattr(run, read) for run in cell.runs if not run.excluded]
    if not values or any(value is None for value in values):
        return units.UNSET
    return units.count(sum(sum(value.values()) if isinstance(value, dict) else value for value in values))


def runs_of(version: SaturationVersion) -> str:
    """How many runs count."""
    made = sum(len(cell.runs) for cell in version.cells)
    used = sum(cell.used for cell in version.cells)
    return units.plural(made, "run") if made == used else f"{used} of {units.plural(made, 'run')}"
