"""From the runs of a saturation test to its document: cells, the saturation load, the knee, versions at equal loads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from chainmark.compare.estimates import SideEstimates
from chainmark.compare.judge import Bench, judge, unjudged
from chainmark.core import units
from chainmark.core.comparison import Judgement, Outcome
from chainmark.core.metric import Metric
from chainmark.lab.schedules import KEEPING_UP, SweepLoad
from chainmark.lab.schedules import Standing as SweepStanding
from chainmark.lab.sweeping import SweepTest
from chainmark.stats.intervals import LEVEL, mean_and_variance, wilson_limits
from chainmark.stats.knee import DETECTOR, LEAST_POINTS, convex_knee, resampled_knee
from chainmark.stats.special import t_quantile
from chainmark.systems.cometbft.saturation.document import SaturationReport
from chainmark.systems.cometbft.saturation.results import (
    CellComparison,
    CellFigure,
    CellRun,
    Knee,
    LoadCell,
    Measure,
    RunFigure,
    Saturation,
    SaturationMetrics,
    SaturationVersion,
    Standing,
    State,
    VersionComparison,
    VersionRuns,
)

_ONE_SIDED = 1.0 - LEVEL
_AS_SWEPT: Mapping[Standing, SweepStanding] = {
    "kept up": "kept up",
    "leans to kept up": "leans to kept up",
    "leans to saturated": "leans to lost",
    "saturated": "lost",
    "no data": "no data",
}
# Between single runs of a cell: the published tables have one run each, and call a load sustained by it.
ASSUMED_NOISE = 0.03


# --- cells ----------------------------------------------------------------------------------------------------------


def cells_of(runs: Iterable[CellRun], tolerance: float) -> list[LoadCell]:
    """The runs by their loads, in the order of connections and rate.

    Args:
        runs: of one version, in any order.
        tolerance: a load is sustained if the share is at least one minus this.
    """
    by_load: dict[tuple[int, int], list[CellRun]] = {}
    for run in sorted(runs, key=lambda item: (item.connections, item.rate_per_s, item.position or 0, item.origin)):
        by_load.setdefault((run.connections, run.rate_per_s), []).append(run)
    return [_cell(cell_runs, 1.0 - tolerance) for cell_runs in by_load.values()]


def _cell(runs: list[CellRun], threshold: float) -> LoadCell:
    used = [run for run in runs if not run.excluded]
    efficiency = _share_figure(used)
    pace = _positive_figure([run.pace for run in used])
    return LoadCell(
        connections=runs[0].connections,
        rate_per_s=runs[0].rate_per_s,
        runs=runs,
        used=len(used),
        committed=sum(run.committed for run in used) / len(used) if used else None,
        efficiency=efficiency,
        pace=pace,
        throughput_per_s=_positive_figure([run.throughput_per_s for run in used]),
        latency_mean_s=_positive_figure([run.latency.mean for run in used if run.latency]),
        latency_p50_s=_positive_figure([run.latency.p50 for run in used if run.latency]),
        latency_p99_s=_positive_figure([run.latency.p99 for run in used if run.latency]),
        standing=_state_of(efficiency, threshold),
        pace_standing=_state_of(pace, threshold),
    )


def standings(
    cells: Sequence[LoadCell], load_of: Callable[[int, int], SweepLoad]
) -> list[dict[SweepLoad, SweepStanding]]:
    """By every known measure, the deciding one first: on which side of the threshold each load is."""
    loads = [load_of(cell.connections, cell.rate_per_s) for cell in cells]
    measures = [[cell.standing for cell in cells]]
    if any(cell.pace is not None for cell in cells):
        measures.append([cell.pace_standing for cell in cells])
    return [dict(zip(loads, map(_AS_SWEPT.__getitem__, measure), strict=True)) for measure in measures]


def _state_of(figure: CellFigure | None, threshold: float) -> Standing:
    if figure is None:
        return "no data"
    if figure.value >= threshold:
        return "kept up" if figure.low is not None and figure.low >= threshold else "leans to kept up"
    return "saturated" if figure.high is not None and figure.high < threshold else "leans to saturated"


def _share_figure(runs: Sequence[CellRun]) -> CellFigure | None:
    """The mean efficiency: the wider of the interval between runs and that of the pooled counts (Wilson)."""
    if not runs:
        return None
    between = _between([run.efficiency for run in runs])
    committed, offered = sum(run.committed for run in runs), sum(run.offered for run in runs)
    low, high = between.low, between.high
    basis = between.basis
    # More may be processed than was offered only if a source counts wrongly; then counts have no such interval.
    if offered > 0 and committed <= offered:
        wilson_low, wilson_high = wilson_limits(committed, offered, t_quantile(_ONE_SIDED, None))
        if low is None or high is None or wilson_high - wilson_low > high - low:
            low, high, basis = wilson_low, wilson_high, "binomial (Wilson) of the pooled counts"
    if between.value <= 1.0:
        high = None if high is None else min(1.0, high)
    low = None if low is None else max(0.0, low)
    return CellFigure(value=between.value, low=low, high=high, runs=len(runs), basis=basis)


def _positive_figure(figures: Iterable[RunFigure | None]) -> CellFigure | None:
    """The mean of a figure that is never negative."""
    known = [figure for figure in figures if figure is not None and math.isfinite(figure.value)]
    if not known:
        return None
    error = max((run_figure.standard_error or 0.0 for run_figure in known), default=0.0)
    cell_figure = _between([run_figure.value for run_figure in known], error)
    return cell_figure if cell_figure.low is None else cell_figure.model_copy(update={"low": max(0.0, cell_figure.low)})


def _between(values: Sequence[float], within: float = 0.0) -> CellFigure:
    """Mean and 90 % interval: Student's t over the runs, or, of one run, an assumed noise between runs.

    Args:
        values: one per run.
        within: a run's own standard error: a lower limit for that of a single run.
    """
    mean, variance = mean_and_variance(values)
    if len(values) > 1:
        half = t_quantile(_ONE_SIDED, len(values) - 1.0) * math.sqrt(variance / len(values))
        basis = f"between {len(values)} runs (Student's t)"
    else:
        error = max(ASSUMED_NOISE * abs(mean), within)
        half = t_quantile(_ONE_SIDED, None) * error
        basis = (
            "one run: its own error"
            if error > ASSUMED_NOISE * abs(mean)
            else f"one run: assumed noise of {units.plain_percent(ASSUMED_NOISE)} between runs"
        )
    return CellFigure(value=mean, low=mean - half, high=mean + half, runs=len(values), basis=basis)


# --- the saturation load ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Diagonal:
    """The cells of one load, which count as the same load."""

    load: int
    cells: list[LoadCell]
    standings: list[Standing]

    @property
    def keeps_up(self) -> bool:
        """By the values alone, whether every cell sustains its load."""
        return all(standing in KEEPING_UP for standing in self.standings)

    @property
    def saturated(self) -> bool:
        """By the values alone, whether no cell sustains its load."""
        return not any(standing in KEEPING_UP for standing in self.standings)

    @property
    def clearly_keeps_up(self) -> bool:
        return all(standing == "kept up" for standing in self.standings)

    @property
    def clearly_saturated(self) -> bool:
        return all(standing == "saturated" for standing in self.standings)


def _diagonals(cells: Sequence[LoadCell], standing: Callable[[LoadCell], Standing]) -> list[_Diagonal]:
    by_load: dict[int, list[LoadCell]] = {}
    for cell in cells:
        if standing(cell) != "no data":
            by_load.setdefault(cell.load_per_s, []).append(cell)
    return [
        _Diagonal(load, load_cells, [standing(cell) for cell in load_cells])
        for load, load_cells in sorted(by_load.items())
    ]


def _run_up(diagonals: Sequence[_Diagonal], meets: Callable[[_Diagonal], bool]) -> int:
    """The number of them, from the first on, that meet a condition without a gap."""
    return next((place for place, diagonal in enumerate(diagonals) if not meets(diagonal)), len(diagonals))


def saturation_of(cells: Sequence[LoadCell], tolerance: float, measure: Measure) -> Saturation:
    """The saturation load by a numeric rule, and the uncertainty from intervals and contradictions.

    The saturation load is the largest tested load which, like every smaller one, is processed by at least one minus
    the tolerance in each of its cells, while every cell of every larger load is below. Cells of equal connections ×
    rate are one load.

    Args:
        cells: of one version.
        tolerance: as above.
        measure: the share.
    """
    diagonals = _diagonals(
        cells, (lambda cell: cell.standing) if measure == "committed" else lambda cell: cell.pace_standing
    )
    sustained = _run_up(diagonals, lambda item: item.keeps_up)
    lost = _run_up(diagonals[::-1], lambda item: item.saturated)
    clearly_sustained = _run_up(diagonals, lambda item: item.clearly_keeps_up)
    clear_lost = _run_up(diagonals[::-1], lambda item: item.clearly_saturated)
    rest = diagonals[sustained : len(diagonals) - lost] if sustained + lost < len(diagonals) else []
    diagonal = diagonals[sustained - 1] if sustained and not rest and lost else None
    low = diagonals[clearly_sustained - 1].load if clearly_sustained else 0
    high = diagonals[len(diagonals) - clear_lost].load if clear_lost else None
    is_clear = diagonal is not None and diagonal.load == low and clear_lost == lost
    state: State
    if not diagonals:
        state, reason = "no data", "no valid run"
    elif rest:
        state, reason = "contradictory", _contradiction(rest, diagonals[sustained:], 1.0 - tolerance, measure)
    elif not sustained:
        state, reason = "nothing kept up", f"even the smallest load, {_per_s(diagonals[0].load)}, is not sustained"
    elif not lost:
        state, reason = "lower bound", f"every tested load, up to {_per_s(diagonals[-1].load)}, is sustained"
    elif is_clear:
        state, reason = "found", "no interval includes the threshold"
    else:
        state, reason = "unclear", _point_estimates(diagonals, 1.0 - tolerance, measure)
    best = diagonals[sustained - 1] if sustained else None
    chosen = min(best.cells, key=lambda cell: cell.connections) if best else None
    return Saturation(
        measure=measure,
        threshold=1.0 - tolerance,
        state=state,
        load_per_s=diagonal.load if diagonal else None,
        low_per_s=low,
        high_per_s=high,
        connections=chosen.connections if chosen else None,
        rate_per_s=chosen.rate_per_s if chosen else None,
        reason=reason,
    )


def reconciled(findings: Sequence[Saturation]) -> list[Saturation]:
    """The findings by all measures; a load that another measure clearly refutes is not selected.

    With a short load, the excess may fit the mempools, and is processed after the end: everything offered is committed,
    although the network did not keep up. Then no load is found.

    Args:
        findings: the first one selects the load.
    """
    first, *others = findings
    for other in others:
        limit = other.high_per_s
        if limit is None or first.rate_per_s is None or first.connections is None:
            continue
        if first.connections * first.rate_per_s >= limit:
            reported = f"{_per_s(first.load_per_s)} by its values" if first.load_per_s else "every tested load"
            first = first.model_copy(
                update={
                    "state": "contradictory",
                    "load_per_s": None,
                    "low_per_s": min(first.low_per_s, other.low_per_s),
                    "connections": other.connections,
                    "rate_per_s": other.rate_per_s,
                    "reason": f"it would be {reported}, but within the window {_per_s(limit)} and more are clearly not "
                    "sustained: the mempools held the excess, which was processed after the end; offer each "
                    "load for longer",
                }
            )
    return [first, *others]


def _per_s(load: float) -> str:
    return f"{units.count(round(load))} tx/s"


def _share(cell: LoadCell, measure: Measure) -> CellFigure | None:
    return cell.efficiency if measure == "committed" else cell.pace


def _cell_text(cell: LoadCell, measure: Measure) -> str:
    figure = _share(cell, measure)
    return f"{cell.name} {units.plain_percent(figure.value, decimals=1)}" if figure else cell.name


def _contradiction(rest: Sequence[_Diagonal], beyond: Sequence[_Diagonal], threshold: float, measure: Measure) -> str:
    mixed = next((diagonal for diagonal in rest if not diagonal.keeps_up and not diagonal.saturated), None)
    limit = units.plain_percent(threshold)
    if mixed is not None:
        text = " and ".join(_cell_text(cell, measure) for cell in mixed.cells)
        return f"the cells of one load, {_per_s(mixed.load)}, are on both sides of {limit}: {text}"
    first = beyond[0]
    again = next(diagonal for diagonal in beyond if diagonal.keeps_up)
    return (
        f"{_per_s(first.load)} is below {limit} ({_cell_text(first.cells[0], measure)}), but the larger load "
        f"{_per_s(again.load)} is not ({_cell_text(again.cells[0], measure)})"
    )


def _point_estimates(diagonals: Sequence[_Diagonal], threshold: float, measure: Measure) -> str:
    unclear = [
        cell
        for diagonal in diagonals
        for cell, standing in zip(diagonal.cells, diagonal.standings, strict=True)
        if standing not in {"kept up", "saturated"}
    ]
    parts = []
    for cell in unclear:
        figure = _share(cell, measure)
        if figure is not None and figure.low is not None and figure.high is not None:
            parts.append(f"{_cell_text(cell, measure)} ({units.plain_percent_interval(figure.low, figure.high)})")
    return f"by the point estimates: these intervals include {units.plain_percent(threshold)}: {', '.join(parts)}"


# --- the knee ---------------------------------------------------------------------------------------------------------


def knee_of(cells: Sequence[LoadCell], seed: int) -> Knee:
    """The knee of mean latency over throughput; cells of equal load are one point, their mean.

    Args:
        cells: of one version.
        seed: determines the resamples.
    """
    by_load: dict[int, list[list[tuple[float, float]]]] = {}
    for cell in cells:
        pairs = [
            (run.throughput_per_s.value, run.latency.mean.value)
            for run in cell.runs
            if not run.excluded and run.latency is not None and run.latency.mean is not None
        ]
        if pairs:
            by_load.setdefault(cell.load_per_s, []).append(pairs)
    loads = sorted(by_load)
    points = [_centre([_centre(pairs) for pairs in by_load[load]]) for load in loads]
    place = convex_knee(points)
    if place is None:
        few = len(points) < LEAST_POINTS
        why = f"too few loads for a knee: {len(points)}" if few else "the latency has no knee"
        return Knee(
            load_per_s=None, low_per_s=None, high_per_s=None, throughput_per_s=None, latency_s=None,
            basis=f"{DETECTOR}: {why}",
        )  # fmt: skip
    spread = resampled_knee(loads, [[pair for pairs in by_load[load] for pair in pairs] for load in loads], seed)
    repeated = all(len(pairs) > 1 for load in loads for pairs in by_load[load])
    if not repeated or spread is None:
        spread, reported = (
            None,
            "a load has a single run: no interval" if not repeated else "the resamples do not agree on a knee",
        )
    else:
        reported = f"interval from {spread.with_knee} of {spread.resamples} resamples of the repetitions"
    return Knee(
        load_per_s=loads[place],
        low_per_s=round(spread.low) if spread else None,
        high_per_s=round(spread.high) if spread else None,
        throughput_per_s=points[place][0],
        latency_s=points[place][1],
        basis=f"{DETECTOR}; {reported}",
    )


def _centre(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return math.fsum(x for x, _ in pairs) / len(pairs), math.fsum(y for _, y in pairs) / len(pairs)


# --- versions ---------------------------------------------------------------------------------------------------------


def evaluated(version: VersionRuns, tolerance: float, seed: int) -> SaturationVersion:
    """A version's cells with their figures, its saturation load and its knee.

    Args:
        version: its runs.
        tolerance: a load is sustained if the share is at least one minus this.
        seed: determines the resamples.
    """
    cells = cells_of(version.runs, tolerance)
    measures: list[Measure] = ["committed"]
    if any(cell.pace is not None for cell in cells):
        measures.append("pace")
    fields = {name: value for name, value in vars(version).items() if name != "runs"}
    saturations = reconciled([saturation_of(cells, tolerance, measure) for measure in measures])
    return SaturationVersion(**fields, cells=cells, saturations=saturations, knee=knee_of(cells, seed))


_Read = Callable[[CellRun], RunFigure | None]


def _questions(metrics: SaturationMetrics) -> list[tuple[Metric, str, _Read]]:
    return [
        (metrics.committed, "mean", lambda run: RunFigure(value=run.efficiency)),
        (metrics.throughput, "mean", lambda run: run.throughput_per_s),
        (metrics.latency, "mean", lambda run: run.latency.mean if run.latency else None),
        (metrics.latency, "p50", lambda run: run.latency.p50 if run.latency else None),
        (metrics.latency, "p99", lambda run: run.latency.p99 if run.latency else None),
    ]


def compare_versions(
    baseline: SaturationVersion, candidate: SaturationVersion, metrics: SaturationMetrics
) -> VersionComparison:
    """Two versions at their common loads, each figure with its interval and outcome."""
    left = {(cell.connections, cell.rate_per_s): cell for cell in baseline.cells}
    right = {(cell.connections, cell.rate_per_s): cell for cell in candidate.cells}
    same = bool(baseline.latency_kind) and baseline.latency_kind == candidate.latency_kind
    compared, left_out = [], []
    for key in sorted(left.keys() | right.keys()):
        first, second = left.get(key), right.get(key)
        if first is None or second is None:
            absent = baseline.label if first is None else candidate.label
            left_out.append(f"c={key[0]}, r={key[1]}: {absent} was not run at this load")
        elif not first.used or not second.used:
            absent = baseline.label if not first.used else candidate.label
            left_out.append(f"{first.name}: no valid run of {absent}")
        else:
            judged = _judged(first, second, metrics, same_latency=same)
            compared.append(CellComparison(connections=key[0], rate_per_s=key[1], judgements=judged))
    return VersionComparison(baseline=baseline.label, candidate=candidate.label, cells=compared, left_out=left_out)


def _judged(
    baseline: LoadCell, candidate: LoadCell, metrics: SaturationMetrics, *, same_latency: bool
) -> list[Judgement]:
    judgements = []
    for metric, statistic, read in _questions(metrics):
        left, right = (_estimates(cell, read) for cell in (baseline, candidate))
        if not left.values and not right.values:
            continue
        if metric is metrics.latency and not same_latency:
            note = "not judged: the two latencies may have different definitions"
            judgements.append(unjudged(metric, statistic, left, right, outcome=Outcome.INCONCLUSIVE, note=note))
        else:
            judgements.append(judge(metric, statistic, left, right, Bench()))
    return judgements


def _estimates(cell: LoadCell, read: _Read) -> SideEstimates:
    used = [run for run in cell.runs if not run.excluded]
    figures = [read(run) for run in used]
    known = [figure for figure in figures if figure is not None]
    return SideEstimates(
        per_run=[None if figure is None else figure.value for figure in figures],
        values=[figure.value for figure in known],
        standard_errors=[figure.standard_error or 0.0 for figure in known],
        log_standard_errors=[figure.log_standard_error or 0.0 for figure in known],
        # No share is above 1, whatever a source counts.
        total=float(sum(min(run.committed, run.offered) for run in used)),
        exposure=sum(run.offered for run in used),
        absence="" if known else "not stated",
    )


def saturation_report(test: SweepTest, versions: Sequence[VersionRuns], metrics: SaturationMetrics) -> SaturationReport:
    """The document.

    Args:
        test: as a whole.
        versions: in the order of the report; the first measured one is the baseline of the others, and the first
            published one of the other published ones. Published data are not compared with measured data: the machines
            differ.
        metrics: of the comparisons.
    """
    saturation_versions = [evaluated(version, test.tolerance, test.seed) for version in versions]
    sides = [
        [version for version in saturation_versions if version.published is published] for published in (False, True)
    ]
    comparisons = [compare_versions(side[0], other, metrics) for side in sides for other in side[1:]]
    measured = [version for version in versions if not version.published] or versions
    names = " and ".join(f"{version_runs.subject.name} {version_runs.subject.version}" for version_runs in measured)
    fields = vars(test) | {"title": test.title or f"Saturation of {names}"}
    return SaturationReport(**fields, versions=saturation_versions, comparisons=comparisons, metrics=metrics.all())
