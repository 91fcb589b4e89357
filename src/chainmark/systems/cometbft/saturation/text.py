"""The texts of a saturation test, shared by all of its tables and renderings."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.verdict import Verdict
from chainmark.core.wording import command, enumerated, first_sentence
from chainmark.report.blocks import TableCell
from chainmark.report.phrases import Emphasis
from chainmark.systems.cometbft.saturation.results import (
    CellFigure,
    LoadCell,
    Measure,
    Saturation,
    SaturationResult,
    SaturationVersion,
    Standing,
    State,
    candidate_verdict,
)

# As shown, if not by the value in files.
_STATE_TEXTS: dict[State, str] = {
    "unclear": "not clear",
    "contradictory": "undecided",
    "nothing kept up": "no load sustained",
}
_WORST: tuple[State, ...] = ("no data", "contradictory", "nothing kept up", "unclear", "lower bound", "found")
STANDINGS: dict[Standing, Emphasis] = {
    "kept up": "plain",
    "leans to kept up": "caution",
    "leans to saturated": "caution",
    "saturated": "worse",
    "no data": "quiet",
}
MEASURES: dict[Measure, str] = {
    "committed": "of all offered transactions",
    "pace": "of the transactions due in the window",
}
QUIET = TableCell(units.UNSET, emphasis="quiet")


def state_text(state: State) -> str:
    """The state of a search for the saturation load, in a table."""
    return _STATE_TEXTS.get(state, state)


def state_of(report: SaturationResult) -> State:
    """The worst state of the measured versions, or of all if none was measured."""
    measured = report.measured or report.versions
    states = {version.chosen.state for version in measured}
    return next((state for state in _WORST if state in states), "no data")


def per_s(load: float | None) -> str:
    """A load: "400 tx/s"."""
    return units.UNSET if load is None else f"{units.count(round(load))} tx/s"


def between(saturation: Saturation) -> str:
    """The bracket: "at least 200, below 800 tx/s"."""
    if saturation.high_per_s is None:
        return f"at least {per_s(saturation.low_per_s)}"
    if not saturation.low_per_s:
        return f"below {per_s(saturation.high_per_s)}"
    return f"at least {units.count(saturation.low_per_s)}, below {per_s(saturation.high_per_s)}"


def configuration(saturation: Saturation) -> str:
    """The selected connections and rate: "c=1, r=400"."""
    return units.UNSET if saturation.connections is None else f"c={saturation.connections}, r={saturation.rate_per_s}"


def saturation_text(saturation: Saturation) -> str:
    """The load, or why there is none, briefly."""
    if saturation.load_per_s is not None:
        return per_s(saturation.load_per_s)
    return {"lower bound": "beyond the test", "contradictory": "undecided"}.get(saturation.state, "none")


def sentence(report: SaturationResult) -> str:
    """Up to which load each version processes its transactions, how certain that is, and what to do next."""
    versions = [f"{version.label} {_clause(version.chosen)}" for version in report.versions]
    if not versions:
        return first_sentence("Nothing was measured", next_step="run the test again")
    return first_sentence(*_against(report), *versions, next_step=_next_step(report))


def _against(report: SaturationResult) -> list[str]:
    """The versions that saturate at a load that the first one clearly sustains."""
    if not report.measured:
        return []
    base, *others = report.measured
    worse = [version for version in others if candidate_verdict(base.chosen, version.chosen) is Verdict.FAIL]
    return [
        f"{version.label} falls behind at {per_s(version.chosen.high_per_s)}, although {base.label} sustains "
        f"{per_s(base.chosen.low_per_s)}"
        for version in worse
    ]


def _clause(saturation: Saturation) -> str:
    """The outcome of the transactions of one version, and how certain that is."""
    loads = f"{per_s(saturation.load_per_s)} ({configuration(saturation)})"
    if saturation.state == "found":
        high = saturation.high_per_s
        surely = "" if high is None else f" and falls behind at {per_s(high)} and above"
        return f"sustains {loads}{surely} (90 % intervals)"
    if saturation.state == "unclear":
        return f"probably sustains {loads}, certainly {between(saturation)} (90 % intervals)"
    if saturation.state == "contradictory":
        return f"has contradictory results: its saturation load is {between(saturation)}"
    if saturation.state == "lower bound":
        return f"sustains every tested load (up to {configuration(saturation)})"
    return "sustains no tested load" if saturation.state == "nothing kept up" else "has no valid run"


def _next_step(report: SaturationResult) -> str:
    """What would improve the result, for the least certain version."""
    measured = report.measured
    if not measured:
        return ""
    state = state_of(report)
    version = next(item for item in measured if item.chosen.state == state)
    chosen = version.chosen
    if report.interrupted:
        return f"finish the test: {command('saturation', '--resume', report.experiment)}"
    if report.verdict is Verdict.FAIL:
        return f"see how both process {per_s(measured[0].chosen.low_per_s)} under “Versions at equal loads”"
    if limits := dict.fromkeys(
        text.partition(":")[0] for cell in version.cells for run in cell.runs for text in run.limits
    ):
        return f"repeat on a faster or idle machine, as this one may have been the limit ({enumerated(list(limits))})"
    if state == "found" and chosen.high_per_s is not None:
        return f"to narrow it down, test loads between {units.count(chosen.low_per_s)} and {per_s(chosen.high_per_s)}"
    largest = max((cell.load_per_s for cell in version.cells), default=0)
    least = min((cell.load_per_s for cell in version.cells), default=0)
    return {
        "lower bound": f"to find the limit, test loads above {per_s(largest)} (`saturation.rates`)",
        "nothing kept up": f"test loads below {per_s(least)} (`saturation.rates`)",
        "no data": "see why the runs are excluded, then repeat them",
    }.get(state, f"repeat with more than {units.plural(_runs_per_cell(version), 'run')} per load (`--repeat`)")


def _runs_per_cell(version: SaturationVersion) -> int:
    return max((cell.used for cell in version.cells), default=1)


def reasons(report: SaturationResult) -> list[str]:
    """The reasons, version by version and measure by measure."""
    return [
        f"{version.label}, {MEASURES[saturation.measure]}: {saturation_text(saturation)}: {saturation.reason}."
        for version in report.versions
        for saturation in version.saturations
    ]


def rule(report: SaturationResult) -> str:
    """The rule that selects the load."""
    return (
        "The saturation load is the highest load (connections × rate) at which it and every lower tested load have "
        f"processed at least {units.plain_percent(1.0 - report.tolerance)} of the offered transactions, in each cell "
        "of equal load, while every cell of every higher load has processed less. The chosen "
        "configuration has the fewest connections at that load. If no load meets this rule, it is that of the highest "
        "load up to which all loads are sustained. The bounds are loads whose 90 % intervals are entirely on one side "
        "of the threshold."
    )


def count_of(cell: LoadCell) -> TableCell:
    """Processed transactions, a mean over the runs, with their share of the offered ones."""
    if cell.committed is None or cell.efficiency is None:
        return QUIET
    share = units.plain_percent(cell.efficiency.value, decimals=1)
    return TableCell(units.count(round(cell.committed)), share, emphasis=STANDINGS[cell.standing])


def figure_cell(figure: CellFigure | None, factor: float, decimals: int, emphasis: Emphasis = "plain") -> TableCell:
    """A figure with its interval as its tail."""
    if figure is None:
        return QUIET
    text = units.number(figure.value * factor, decimals)
    if figure.low is None or figure.high is None:
        return TableCell(text, emphasis=emphasis)
    low, high = (units.number(value * factor, decimals) for value in (figure.low, figure.high))
    return TableCell(text, f"({low} … {high})", emphasis=emphasis)


def decimals(figures: Sequence[CellFigure | None]) -> int:
    """For figures printed in one column: four digits of the largest."""
    return units.decimals_for([figure.value for figure in figures if figure is not None])


def total(cell: LoadCell, read: str) -> str:
    """A sum of the counts over the runs that count; unset if a source does not report it."""
    values = [getattr(run, read) for run in cell.runs if not run.excluded]
    if not values or any(value is None for value in values):
        return units.UNSET
    return units.count(sum(sum(value.values()) if isinstance(value, dict) else value for value in values))


def runs_of(version: SaturationVersion) -> str:
    """The number of runs that count."""
    made = sum(len(cell.runs) for cell in version.cells)
    used = sum(cell.used for cell in version.cells)
    return units.plural(made, "run") if made == used else f"{used} of {units.plural(made, 'run')}"
