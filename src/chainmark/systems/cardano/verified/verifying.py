"""Compare their figures with ours: which agree, by how much the others differ, and what one side lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import caveats_of
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Manifest
from chainmark.store.sealed import SealedRun
from chainmark.systems.cardano.filters import parse_conditions
from chainmark.systems.cardano.published.entries import published_of
from chainmark.systems.cardano.published.figures import Cdf, OverHosts, PublishedFigures, figures_of
from chainmark.systems.cardano.verified.files import BLOCKS, SINGLE, SLOTS, SUMMARY, Theirs, read_theirs
from chainmark.systems.cardano.verified.results import FigureTally, Verification, VerifiedFigure
from chainmark.systems.cardano.verified.statistics import (
    HIGH,
    LOW,
    MEDIAN,
    SIZE,
    VALUE,
    Statistic,
    Statistics,
    scalar_of,
    statistics_of,
)

# Their databases keep times as seconds in doubles, which today are 2^-22 s apart: a difference of two is off by that.
CLOCK_S = 2.0**-22
# Of means and standard deviations that are summed in another order.
SUMMED = 1e-9
# As a share of a figure's largest value: the tolerance of a mean, and of the standard deviation of nearly equal values.
CANCELLED = 1e-12
RULES = "by the rules of the published analysis"
ROUNDING = [
    "Rounding of durations and times: 0.24 µs, the resolution of times in the databases of the published analysis.",
    "Rounding of other figures: a relative difference of 10⁻⁹, because sums are formed in another order, and at least "
    "10⁻¹² of the figure's largest value. Numbers of samples must be equal.",
]
PRINTED = "Rounding of printed figures: one unit of their last digit, because they are truncated."
_SECONDS, _COUNT = "s", ""
_UNITS = {"cdfRuntime": _SECONDS, "cdfLogLineRate": "Hz", "CentiBlkIO": "%", "cdfHostSlots": "slots"}
_TIMED = ("sumDomainTime", "sumStartSpread", "sumStopSpread")
_INGEST_AGAIN = "import its logs again with `chainmark ingest`, which now stores these figures"


def verify(run: SealedRun, path: Path, catalogue: Catalogue, tool_version: str) -> Verification:
    """Compare the figures of a file of the published analysis with those of a run by the same rules.

    Args:
        run: made from the same logs.
        path: the file.
        catalogue: the labels and units of the figures.
        tool_version: recorded in the result.

    Raises:
        UsageError: the file is not one of theirs, is of another run or workload, or has no figure that the run has; or
            the run has no such figures.
    """
    figures = figures_of(run)
    if figures is None:
        raise UsageError(f"the run `{run.run_id}` has no figures by the published rules", _INGEST_AGAIN)
    theirs = read_theirs(path)
    check_same_run(theirs, run.manifest)
    names = _Names(catalogue)
    verified_figures = list(_laid_out(theirs, figures, names))
    result = Verification(
        tool_version=tool_version,
        run_id=run.run_id,
        subject=f"{run.manifest.subject.name} {run.manifest.subject.version}",
        file=path.name,
        kind=theirs.kind,
        rules=RULES,
        rounding=[*ROUNDING, *([PRINTED] if theirs.printed else [])],
        tallies=_tallies(verified_figures),
        figures=[figure for figure in verified_figures if not figure.group or not figure.agrees],
        caveats=caveats_of([run.manifest]),
    )
    if not result.compared:
        raise UsageError(
            f"`{path}` has no figure in common with the run `{run.run_id}`",
            f"the run has {', '.join(list(figures.figures)[:6])} …; a CDF's file is named after its figure",
        )
    return result


class _Names:
    """The catalogue's figures."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._metrics = {metric.published_id: metric for metric in catalogue.metrics if metric.published_id}

    def label(self, figure: str) -> str:
        """Its label here, otherwise their name."""
        metric = self._metrics.get(figure)
        return published_of(metric).label or metric.label if metric else figure

    def unit(self, figure: str) -> str:
        """Its unit here."""
        if figure.startswith(_TIMED):
            return _SECONDS
        return self._metrics[figure].unit if figure in self._metrics else _UNITS.get(figure, _COUNT)


def _laid_out(theirs: Theirs, published_figures: PublishedFigures, names: _Names) -> Iterator[VerifiedFigure]:
    """Every statistic of either side, in the file's order, then the run's additional ones."""
    ours = {name: figure for name, figure in published_figures.figures.items() if _belongs(name, figure, theirs)}
    for name in [*theirs.figures, *(name for name in ours if name not in theirs.figures)]:
        reported = theirs.figures.get(name, {})
        own = _own(ours.get(name), reported)
        place = _Place(name, names.label(name), names.unit(name))
        for statistic in [
            *reported,
            *(item for item in own if item not in reported and not _is_finer(item, reported, theirs)),
        ]:
            least = max(theirs.printed.get((name, statistic), 0.0), _cancelled(own, statistic.group))
            yield _beside(place, statistic, reported.get(statistic), own.get(statistic), least)


def _belongs(name: str, figure: Cdf | OverHosts, theirs: Theirs) -> bool:
    """Whether a file of this kind usually has this figure of the run, unless it is present anyway."""
    if name in theirs.figures:
        return True
    is_of_logs = name.startswith(("sum", "cdfLog")) or name == "cdfRuntime"
    kinds = {
        BLOCKS: isinstance(figure, Cdf) and not is_of_logs,
        SLOTS: isinstance(figure, OverHosts),
        SUMMARY: is_of_logs,
        SINGLE: False,
    }
    return kinds[theirs.kind]


def _own(figure: Cdf | OverHosts | None, statistics: Statistics) -> Statistics:
    if figure is None:
        return {}
    if isinstance(figure, Cdf) and Statistic("", VALUE) in statistics:
        return scalar_of(figure)
    return statistics_of(figure)


def _is_finer(statistic: Statistic, statistics: Statistics, theirs: Theirs) -> bool:
    """Chart data contain only centiles, and older files no medians: statistics that they never have are not missing."""
    return bool(theirs.printed) or bool(statistic.group) or (bool(statistics) and statistic.name == MEDIAN)


def _cancelled(own: Statistics, group: str) -> float:
    """The tolerance of a mean or standard deviation of a group's values, however small it is itself."""
    return max(abs(own.get(Statistic(group, name), 0.0)) for name in (LOW, HIGH)) * CANCELLED


class _Place(NamedTuple):
    figure: str
    label: str
    unit: str


def _beside(
    place: _Place, statistic: Statistic, theirs: float | None, ours: float | None, least: float
) -> VerifiedFigure:
    is_size = statistic.name == SIZE
    reported: dict[str, Any] = {"figure": place.figure, "label": place.label, "unit": _COUNT if is_size else place.unit}
    reported |= {"group": statistic.group, "statistic": statistic.name, "theirs": theirs, "ours": ours}
    if theirs is None or ours is None:
        return VerifiedFigure(**reported)
    clock_s = CLOCK_S if place.unit == _SECONDS else 0.0
    rounding = 0.0 if is_size else max(max(abs(theirs), abs(ours)) * SUMMED + clock_s, least)
    difference = ours - theirs
    return VerifiedFigure(**reported, difference=difference, rounding=rounding, agrees=abs(difference) <= rounding)


def _tallies(verified_figures: list[VerifiedFigure]) -> list[FigureTally]:
    by_name: dict[str, list[VerifiedFigure]] = {}
    for figure in verified_figures:
        by_name.setdefault(figure.figure, []).append(figure)
    return [
        FigureTally(
            figure=name,
            label=parts[0].label,
            unit=next((part.unit for part in parts if part.unit), _COUNT),
            compared=sum(part.agrees is not None for part in parts),
            differing=sum(part.agrees is False for part in parts),
            only_theirs=sum(part.ours is None for part in parts),
            only_ours=sum(part.theirs is None for part in parts),
        )
        for name, parts in by_name.items()
    ]


# --- whether it is the same run --------------------------------------------------------------------------------------

_GENERATOR = {
    "workload.tps": "tps",
    "workload.tx_inputs": "inputs_per_tx",
    "workload.tx_outputs": "outputs_per_tx",
    "workload.tx_payload_bytes": "add_tx_size",
}
_GENESIS = {
    "chain.slot_length_s": "slotLength",
    "chain.epoch_slots": "epochLength",
    "chain.active_slots_coefficient": "activeSlotsCoeff",
}
_ANOTHER = "give the file of the analysis of the same logs"


def check_same_run(theirs: Theirs, manifest: Manifest) -> None:
    """Compare a file's facts about its run with ours, as far as both have them.

    Raises:
        UsageError: it is of another cluster, workload, chain or choice of filters.
    """
    workload = manifest.workload
    hosts = workload.get("network.hosts")
    if theirs.hosts is not None and hosts is not None and theirs.hosts != hosts:
        raise UsageError(f"`{theirs.path}` is of {theirs.hosts} hosts, but the run of {hosts}", _ANOTHER)
    generator = theirs.stated.get("sumWorkload") or theirs.stated.get("sumGenerator")
    _hold("workload", theirs, generator, _GENERATOR, manifest)
    _hold("chain", theirs, theirs.stated.get("sumGenesis"), _GENESIS, manifest)
    _check_start(theirs, manifest)
    _check_filters(theirs, manifest)


def _hold(what: str, theirs: Theirs, stated: Any, keys: Mapping[str, str], manifest: Manifest) -> None:
    if not isinstance(stated, dict):
        return
    for ours, name in keys.items():
        reported, known = stated.get(name), manifest.workload.get(ours)
        if reported is not None and known is not None and reported != known:
            raise UsageError(
                f"`{theirs.path}` is of another {what}: its {name} is {reported}, the run's {known}", _ANOTHER
            )


def _check_start(theirs: Theirs, manifest: Manifest) -> None:
    stated = theirs.stated.get("sumGenesis")
    text = stated.get("systemStart") if isinstance(stated, dict) else None
    reported = {fact.label: fact.value for fact in manifest.facts}
    known = " ".join(reported.get(f"Cluster system start {part}", "") for part in ("date", "time")).strip()
    if not isinstance(text, str) or not known:
        return
    try:
        start = datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError as error:
        raise UsageError(
            f"`{theirs.path}` has the invalid network start `{text}`", "the start must be a time"
        ) from error
    if start != known:
        raise UsageError(f"`{theirs.path}` is of a network started at {start}, the run's at {known}", _ANOTHER)


def _check_filters(theirs: Theirs, manifest: Manifest) -> None:
    stated, known = theirs.stated.get("sumFilters"), manifest.workload.get("analysis.filters")
    if stated is None or not isinstance(known, list):
        return
    if not isinstance(stated, list) or len(stated) != 2 or not isinstance(stated[1], list):
        raise UsageError(f"`{theirs.path}` is malformed at `sumFilters`: two lists were expected", _ANOTHER)
    messages = [str(parse_condition) for parse_condition in parse_conditions([], stated[1], theirs.hosts or 1)]
    if sorted(messages) != sorted(map(str, known)):
        raise UsageError(
            f"`{theirs.path}` is of other filters: {', '.join(messages) or 'none'}, the run's are "
            f"{', '.join(map(str, known)) or 'none'}",
            "`chainmark ingest --filter` analyses the logs by those",
        )
