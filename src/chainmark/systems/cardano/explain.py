"""Explanations: whether the reported stages of a run reproduce its reported adoption times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from chainmark.compare.inputs import LoadedRun
from chainmark.compare.split import splits_between
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Splits
from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.core.wording import first_sentence
from chainmark.systems.capabilities import ModelRequest, ModelSource
from chainmark.systems.cardano.calibration import Calibration, calibrate, differs
from chainmark.systems.cardano.figures import (
    ADOPTION,
    ANNOUNCED,
    BLOCK_SIZE,
    FETCH,
    FIRST_FETCH,
    FIRST_NOTICE,
    FORGING_STAGES,
    FRACTIONS,
    SENDING,
    STAGE_METRICS,
    Figures,
)
from chainmark.systems.cardano.formula import formula_for
from chainmark.systems.cardano.model.results import Explanation, Modelled, PartRow, RoundTripRow, ShareRow, WholeRow
from chainmark.systems.cardano.network import LOGS_MISSING
from chainmark.systems.cardano.predict import (
    SIZES_NOTE,
    contributions,
    curve,
    fitted_note,
    is_benchmark,
    known_size,
)
from chainmark.systems.cardano.published.reader import ReportFigures
from chainmark.systems.cardano.record import allowed
from chainmark.systems.cardano.simulation import Simulate, Simulator, simulator_on
from chainmark.systems.cardano.sources import WITHOUT_TOPOLOGY, read_source
from chainmark.systems.cardano.split.parted import lacks, published_parts, ways_of
from chainmark.systems.cardano.split.simulated import shares

SAMPLING_ERRORS = 2.0
NOTES = (
    "a limit is about twice the model's root mean square error against published runs that it was not fitted to, "
    "combined with twice the standard error of the measured figure, if known",
    "± is one standard error of the simulation; for an inferred round trip it includes the sampling of the measured "
    "fetch duration, and 7 ms, the difference between two workloads on one cluster",
    "an unexplained 1.00 adoption usually has a cause that no stage shows, such as single late hosts",
)


def explain(
    source: ModelSource, order: ModelRequest, progress: Progress, catalogue: Catalogue, simulate: Simulate | None = None
) -> Explanation:
    """Fit the model to a run's stages and compare its adoption times with the measured ones.

    Raises:
        UsageError: the source has no own figures, or cannot be used.
    """
    given = read_source(source, order.seed, catalogue)
    if given.figures is None:
        raise UsageError(
            f"{source.label} is a profile, which has no measurements to explain",
            "give a run or a published report; use `chainmark predict` for profiles",
        )
    if order.changes:
        raise UsageError("an explanation does not accept changes", "use `chainmark predict` for what-ifs")
    given.figures.adoption()
    progress.stage(f"fitting the model to {given.title}")
    simulator = Simulator(order.blocks, order.threads, simulate=simulate or simulator_on(order.machines))
    calibration = calibrate(
        given.figures, given.start, simulator, progress.update, pings_s=given.pings_s, doubt_s=given.doubt_s
    )
    whole = whole_rows(given.figures, calibration)
    size_note = () if known_size(given.figures.block_bytes) else (SIZES_NOTE,)
    return Explanation(
        title=f"Does the model reproduce the measurement? {given.title}",
        source=source.label,
        catalogue=catalogue,
        seed=order.seed,
        blocks=calibration.simulated.blocks,
        explained=not any(row.flagged for row in whole),
        sentence=_sentence(whole, calibration, catalogue, network_doubts(given.notes)),
        whole=whole,
        parts=_parts(given.figures, calibration, catalogue),
        round_trips=_round_trips(calibration, given.pings_s),
        curve=curve(0, calibration.simulated),
        contribution_metric_ids=list(ADOPTION),
        fractions=dict(zip(ADOPTION, FRACTIONS, strict=True)),
        contributions=list(contributions(0, calibration.simulated)),
        shares=_shares(source, given.figures, calibration),
        split=_against(source, given.figures, catalogue),
        notes=[fitted_note(calibration, pinged=given.pinged), *given.notes, *size_note, *NOTES],
        caveats=given.figures.caveats,
    )


def _against(source: ModelSource, figures: Figures, catalogue: Catalogue) -> Splits | None:
    """The network's part of the changes against a published report's baseline; nothing for other sources."""
    if source.document is None:
        return None
    report = ReportFigures(source.document, catalogue)
    baseline = report.versions[0]
    if baseline == figures.version:
        return None
    values = report.figures(baseline).values
    parted = published_parts(values, figures.values)
    return splits_between(replace(parted, title=f"{parted.title}, against {baseline}"), values, figures.values)


def _shares(source: ModelSource, figures: Figures, calibration: Calibration) -> list[ShareRow]:
    """The parts of network and nodes in a run's adoptions by its own logs, if they contain them."""
    ways = ways_of(LoadedRun(source.run)) if source.run is not None else None
    return shares(ways, calibration.simulated, figures) if ways is not None and not lacks(ways) else []


def limits(figures: Figures) -> dict[str, float]:
    """The maximum |error| per adoption centile, from the errors for published runs and the number of blocks of the run.

    Twice the standard error of a measured mean is added to the record's limit, if the run has it.
    """
    by_record = allowed(figures.block_bytes)
    sampling = {
        metric: SAMPLING_ERRORS * figures.standard_errors.get(metric, 0.0) / value if figures.sampling_known else 0.0
        for metric, value in figures.adoption().items()
    }
    return {metric: math.hypot(by_record[metric], sampling[metric]) for metric in sampling}


def whole_rows(figures: Figures, calibration: Calibration) -> list[WholeRow]:
    """Every adoption centile that the run reports."""
    limit = limits(figures)
    formula = formula_for(figures.block_bytes) if is_benchmark(calibration.scenario) else None
    opinion = formula.adoption_s(figures.values) if formula is not None and FETCH in figures.values else {}
    rows = []
    for metric, measured in figures.adoption().items():
        modelled = calibration.simulated.modelled(metric)
        error = modelled.value / measured - 1.0
        rows.append(
            WholeRow(
                metric_id=metric,
                measured=measured,
                modelled=modelled,
                error=error,
                limit=limit[metric],
                flagged=abs(error) > limit[metric],
                formula=opinion.get(metric),
            )
        )
    return rows


def _parts(figures: Figures, calibration: Calibration, catalogue: Catalogue) -> list[PartRow]:
    inferred = {FIRST_NOTICE, FIRST_FETCH}
    if calibration.link is not None:
        inferred.add(FETCH)
    if calibration.server_share_inferred:
        inferred.add(SENDING)
    if any(STAGE_METRICS[stage] not in figures.values for stage in FORGING_STAGES):
        inferred.add(ANNOUNCED)  # the missing stages get the remainder
    calibrated = {*STAGE_METRICS.values(), BLOCK_SIZE, *inferred}
    simulated = calibration.simulated
    return [
        PartRow(
            metric_id=metric.id,
            measured=figures.values[metric.id],
            modelled=simulated.modelled(metric.id),
            calibrated=metric.id in calibrated,
        )
        for metric in catalogue.ordered()
        if metric.id in figures.values
        and metric.id not in ADOPTION
        and metric.id in simulated.names
        and math.isfinite(simulated.mean(metric.id))
    ]


def _round_trips(calibration: Calibration, pings_s: Sequence[Sequence[float]]) -> list[RoundTripRow]:
    cluster = calibration.scenario.cluster
    if not calibration.round_trips:
        return []
    present = list(cluster.counts())
    rows = []
    for pair in ((a, b) for a in present for b in present if a < b):
        ping_s, inferred = pings_s[pair[0]][pair[1]], calibration.round_trips.get(pair)
        if inferred is None and math.isnan(ping_s):
            continue
        assumed = inferred or Modelled(value=ping_s, standard_error=0.0)
        rows.append(
            RoundTripRow(
                link=cluster.link_name(*pair),
                measured_s=None if math.isnan(ping_s) else ping_s,
                inferred_s=assumed.value,
                standard_error_s=assumed.standard_error,
                inferred=inferred is not None,
                differs=inferred is not None and differs(inferred, ping_s),
            )
        )
    return rows


def network_doubts(notes: Sequence[str]) -> list[str]:
    """What to do if the network may differ from the measured one."""
    doubts = []
    if WITHOUT_TOPOLOGY in notes:
        doubts.append("import the run with its topology, which is assumed to be the benchmark's")
    if any(note.startswith(LOGS_MISSING) for note in notes):
        doubts.append("import the logs of every host of the topology")
    return doubts


def _sentence(whole: Sequence[WholeRow], calibration: Calibration, catalogue: Catalogue, doubts: Sequence[str]) -> str:
    """The hosts whose adoptions deviate from the stages' prediction, the deviation, and where to look."""
    flagged = [row for row in whole if row.flagged]
    routing = _routing(calibration)
    if not flagged:
        largest = max(whole, key=lambda row: abs(row.error))
        most = f"the largest error, {_error(largest)}, is that of {catalogue.metric(largest.metric_id).label}"
        reproduced = "The stages explain the adoption times"
        step = "use `chainmark predict` for what-ifs about this network"
        return f"{first_sentence(reproduced, most, next_step=step)}{routing}"
    worst = max(flagged, key=lambda row: abs(row.error) / row.limit)
    later = "later" if worst.error < 0.0 else "sooner"
    among = f" ({len(flagged)} of {len(whole)} centiles are beyond their limits)" if len(whole) > 1 else ""
    shown = (
        f"{catalogue.metric(worst.metric_id).label} came {later} than the stages explain: model {_error(worst)}{among}"
    )
    step = (
        "look for a delay that no stage shows"
        if worst.error < 0.0
        else "look for a stage whose measured duration is too long"
    )
    step = ", or ".join([*doubts, step])
    return f"{first_sentence(shown, next_step=step)}{routing}"


def _error(row: WholeRow) -> str:
    """The model's error with its interval and limit: "−10.9 % (95 % interval −12.1 … −9.7 %, limit ±5 %)"."""
    interval = units.percent_interval(*row.modelled_error.interval)
    return f"{units.percent(row.error)} (95 % interval {interval}, limit ±{units.plain_percent(row.limit)})"


def _routing(calibration: Calibration) -> str:
    """What the inferred round trip shows about the network, if it clearly differs from that of the pings."""
    link, trip = calibration.link, calibration.round_trip
    if link is None or trip is None or not calibration.round_trip_differs:
        return ""
    later = "later" if trip.value > link.measured_s else "earlier"
    return (
        f" The round trip {link.name} was {units.quantity_with_error(trip.value, trip.standard_error, 's')}, not the "
        f"{units.duration(link.measured_s)} of the pings: if hosts adopted {later} than on the pinged network, "
        "the cause is the routing, not the node."
    )
