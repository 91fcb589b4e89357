"""Predictions: the source's network and every what-if, side by side."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import Caveats
from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.systems.capabilities import ModelRequest, ModelSource
from chainmark.systems.cardano.calibration import Calibration, calibrate
from chainmark.systems.cardano.figures import ADOPTED, ADOPTION, ANNOUNCED, CENTILES, FETCH, FORGING_STAGES, FRACTIONS
from chainmark.systems.cardano.formula import formula_for
from chainmark.systems.cardano.model.results import (
    AdoptionCurve,
    Contribution,
    Modelled,
    Prediction,
    ScenarioEntry,
    ScenarioFigure,
    ScenarioRow,
    ScenarioSplits,
)
from chainmark.systems.cardano.record import joined, record
from chainmark.systems.cardano.scenario import Scenario, Stages
from chainmark.systems.cardano.simulation import Simulate, Simulated, Simulator, simulator_on
from chainmark.systems.cardano.sources import Input, read_source
from chainmark.systems.cardano.split.simulated import simulated_splits
from chainmark.systems.cardano.topology import RandomPeers
from chainmark.systems.cardano.whatif import Edit, FetchMean, apply_edits, parse_change

CURVE_FRACTIONS = tuple(round(0.025 * place, 3) for place in range(1, 41))
# The stages of an adoption time, by the simulator's names, in words.
PARTS = {
    "forging": "forging",
    "announcement": "announcing",
    "header": "headers",
    "round_trips": "round trips",
    "extra_rounds": "further TCP rounds",
    "request": "fetch decisions",
    "body": "bodies",
    "adoption": "adoption",
    "tails": "slow blocks and stragglers",
}
FORMULA_HOSTS = 52
# Networks with one change of every sweep.
COMBINATIONS_MAX = 32
LIMITS_OF_THE_MODEL = (
    "standard errors are of the simulation; those of adoption centiles include the model's root mean "
    "square error for published runs that it was not fitted to, as a share of the figure or of the change",
    "the errors exclude effects that the model does not include: packet loss, other load on the processors, forks, "
    "hosts of different speed, and the mempool",
    "the error of the model for published runs is 1 to 2 % per adoption centile: a difference below 2 % for full "
    "blocks, below 1 % for small ones, is not a prediction",
)
SIZES_NOTE = "the model was validated only with blocks of 3 kB and 89 kB; other sizes follow from TCP's rules alone"
HOSTS_NOTE = "no published run has more than 52 hosts: for larger clusters the model is not validated"
FEW_BLOCKS = 10
COLD_NOTE = (
    "a batch begins with cold connections, which dominate batches of a few blocks: simulate more blocks for "
    "figures of large blocks"
)
KNOWN_SIZES_BYTES = ((2_500.0, 3_500.0), (80_000.0, 92_000.0))


@dataclass(frozen=True)
class SimulatedNetwork:
    """One network to simulate."""

    label: str
    changes: tuple[str, ...]
    scenario: Scenario
    notes: tuple[str, ...] = ()


def predict(
    source: ModelSource, order: ModelRequest, progress: Progress, catalogue: Catalogue, simulate: Simulate | None = None
) -> Prediction:
    """Simulate the source's network and every what-if with common random numbers.

    Raises:
        UsageError: the source or a change cannot be used.
    """
    simulate = simulate or simulator_on(order.machines)
    given = read_source(source, order.seed, catalogue)
    # Every change is tried before the simulation.
    arms(given.start, order)
    base, calibration = _fitted(given, order, progress, simulate)
    simulator = Simulator(order.blocks, order.threads, simulate=simulate)
    if calibration is None:
        progress.stage("simulating the network")
        as_it_is = simulator.run(base, progress.update)
    else:
        as_it_is = calibration.simulated
    planned = arms(base, order, partial(_fetch_mean, as_it_is))
    results = [as_it_is]
    if len(planned) > 1:
        progress.stage(f"simulating {units.plural(len(planned) - 1, 'what-if')}")
    for number, arm in enumerate(planned[1:]):

        def report_progress(fraction: float, number: int = number, label: str = arm.label) -> None:
            progress.update((number + fraction) / (len(planned) - 1), label)

        results.append(simulator.run(arm.scenario, report_progress))
    return Prediction(
        title=f"Block propagation predicted: {given.title}",
        source=source.label,
        catalogue=catalogue,
        seed=order.seed,
        scenarios=[
            ScenarioEntry(
                label=arm.label,
                changes=list(arm.changes),
                hosts=arm.scenario.cluster.host_count,
                blocks=result.blocks,
            )
            for arm, result in zip(planned, results, strict=True)
        ],
        rows=_rows(catalogue, given, planned, results),
        curves=[curve(index, result) for index, result in enumerate(results)],
        contribution_metric_ids=list(ADOPTION),
        fractions=dict(zip(ADOPTION, FRACTIONS, strict=True)),
        contributions=[part for index, result in enumerate(results) for part in contributions(index, result)],
        splits=[
            ScenarioSplits(scenario=index, splits=simulated_splits(results[0], result, arm.scenario.block_bytes))
            for index, (arm, result) in enumerate(zip(planned, results, strict=True))
            if index
        ],
        notes=_notes(given, planned, calibration, results),
        caveats=given.figures.caveats if given.figures else Caveats(),
    )


def _fitted(
    given: Input, order: ModelRequest, progress: Progress, simulate: Simulate
) -> tuple[Scenario, Calibration | None]:
    if given.figures is None:
        return given.start, None
    progress.stage(f"fitting the model to {given.title}")
    simulator = Simulator(order.blocks, order.threads, simulate=simulate)
    calibration = calibrate(
        given.figures, given.start, simulator, progress.update, pings_s=given.pings_s, doubt_s=given.doubt_s
    )
    return calibration.scenario, calibration


def _fetch_mean(simulated: Simulated, link: tuple[int, int] | None) -> float | None:
    """The fetch durations, of all or between two regions."""
    if link is None:
        return simulated.mean(FETCH)
    result = simulated.fetch_between(*link)
    return None if result is None else result.value


def arms(base: Scenario, order: ModelRequest, fetch_mean: FetchMean | None = None) -> list[SimulatedNetwork]:
    """The networks to simulate: the base, each change alone unless only all together are requested, and all together.

    Changes of the same target exclude each other: they are a sweep, and each of them is combined with the others.

    Raises:
        UsageError: a change cannot be used, or there are too many networks.
    """
    edits = [parse_change(change, base, fetch_mean) for change in dict.fromkeys(order.changes)]
    sweeps: dict[str, list[Edit]] = {}
    for edit in edits:
        sweeps.setdefault(edit.target, []).append(edit)
    networks = math.prod(len(sweep) for sweep in sweeps.values())
    if networks > COMBINATIONS_MAX:
        raise UsageError(f"these changes combine to {networks} networks", f"at most {COMBINATIONS_MAX} are simulated")
    simulated_networks = [SimulatedNetwork("base", (), base)]
    sets: list[Sequence[Edit]] = [] if order.together else [[edit] for edit in edits]
    if len(sweeps) > 1 or (edits and order.together):
        sets += itertools.product(*sweeps.values())
    for chosen in sets:
        labels = tuple(edit.label for edit in chosen)
        notes = tuple(note for edit in chosen for note in edit.notes)
        simulated_networks.append(SimulatedNetwork(" and ".join(labels), labels, apply_edits(base, chosen), notes))
    return simulated_networks


# --- the document ------------------------------------------------------------------------------------------------


def _rows(
    catalogue: Catalogue, given: Input, planned: Sequence[SimulatedNetwork], results: Sequence[Simulated]
) -> list[ScenarioRow]:
    opinions = [_formula(given, planned[0].scenario, arm.scenario, results[0]) for arm in planned]
    rows = []
    for metric in catalogue.ordered():
        if any(metric.id not in result.names or not math.isfinite(result.mean(metric.id)) for result in results):
            continue
        known = [record(arm.scenario.block_bytes).get(metric.id, 0.0) for arm in planned]
        cells = [
            ScenarioFigure(
                modelled=joined(result.modelled(metric.id), known[index]),
                change=None if index == 0 else joined(result.difference(results[0], metric.id), known[index]),
                formula=opinions[index].get(metric.id),
            )
            for index, result in enumerate(results)
        ]
        measured = given.figures.values.get(metric.id) if given.figures is not None else None
        rows.append(ScenarioRow(metric_id=metric.id, measured=measured, cells=cells))
    return rows


def _formula(given: Input, base: Scenario, changed: Scenario, simulated: Simulated) -> dict[str, float]:
    """The formula's adoption centiles; empty if it does not apply.

    It is valid for one cluster and two sizes of blocks, and of the possible changes only for those of its stages.
    """
    formula = formula_for(changed.block_bytes)
    same_network = changed.model_copy(update={"stages": base.stages}) == base
    others = {"self_adopted_s", "request_s", "fetched_to_announced_s"}
    unnamed = any(getattr(changed.stages, name) != getattr(base.stages, name) for name in others)
    if formula is None or not same_network or unnamed or not is_benchmark(base):
        return {}
    reported = given.figures.values if given.figures is not None else {}
    figures = {name: reported.get(name, simulated.mean(name)) for name in (ANNOUNCED, ADOPTED, FETCH)}
    figures[ANNOUNCED] += _forging_s(changed.stages) - _forging_s(base.stages)
    figures[ADOPTED] += changed.stages.adopted_s - base.stages.adopted_s
    return formula.adoption_s(figures)


def is_benchmark(scenario: Scenario) -> bool:
    """Whether it is like the cluster of the published runs."""
    cluster = scenario.cluster
    counts = sorted(cluster.counts().values())
    return (
        cluster.host_count == FORMULA_HOSTS and counts == [17, 17, 18] and not isinstance(cluster.topology, RandomPeers)
    )


def _forging_s(stages: Stages) -> float:
    return sum(float(getattr(stages, name)) for name in FORGING_STAGES)


def curve(scenario: int, simulated: Simulated) -> AdoptionCurve:
    """The mean time until each share of the hosts had adopted."""
    points = [simulated.modelled(f"curve_{units.number(fraction, 3)}") for fraction in CURVE_FRACTIONS]
    return AdoptionCurve(
        scenario=scenario,
        fractions=list(CURVE_FRACTIONS),
        values=[point.value for point in points],
        standard_errors=[point.standard_error for point in points],
    )


def contributions(scenario: int, simulated: Simulated) -> Iterator[Contribution]:
    """The contribution of each stage to each adoption centile; they sum to it."""
    for name, words in PARTS.items():
        values = [simulated.mean(f"part_{name}_{centile}") for centile in CENTILES]
        yield Contribution(scenario=scenario, stage=words, values=values)


def _notes(
    given: Input, planned: Sequence[SimulatedNetwork], calibration: Calibration | None, results: Sequence[Simulated]
) -> list[str]:
    notes = [
        f"each network's blocks were simulated in {len(results[0].values)} batches with the same random draws; slow "
        "blocks were simulated in addition, a quarter as many, and weighted by their frequency",
        *given.notes,
    ]
    if calibration is not None:
        notes.append(fitted_note(calibration, pinged=given.pinged))
    notes += list(dict.fromkeys(note for arm in planned for note in arm.notes))
    if any(not known_size(arm.scenario.block_bytes) for arm in planned):
        notes.append(SIZES_NOTE)
    if any(arm.scenario.cluster.host_count > FORMULA_HOSTS for arm in planned):
        notes.append(HOSTS_NOTE)
    if min(result.blocks_per_batch for result in results) < FEW_BLOCKS:
        notes.append(COLD_NOTE)
    return [*notes, *LIMITS_OF_THE_MODEL]


def known_size(size_bytes: float) -> bool:
    """Whether blocks of about that size were among the published runs."""
    return any(low <= size_bytes <= high for low, high in KNOWN_SIZES_BYTES)


def fitted_note(calibration: Calibration, *, pinged: bool = False) -> str:
    """The inferred values, in a sentence; ``pinged``: compared with pings of the cluster itself."""
    parameters = calibration.scenario.parameters
    header, body = units.duration(parameters.header_service_s), units.duration(parameters.body_service_s)
    text = (
        f"inferred from the measured stages, not from adoption: {header} to send and check a "
        f"header, {body} to read, send and receive a body"
    )
    if calibration.link is not None and calibration.round_trip is not None:
        trip: Modelled = calibration.round_trip
        text += (
            f", a round trip {calibration.link.name} of "
            f"{units.quantity_with_error(trip.value, trip.standard_error, 's')}"
        )
        if not math.isnan(calibration.link.measured_s):
            source = "pings" if pinged else "pings of the reference"
            text += f" ({source}: {units.duration(calibration.link.measured_s)})"
    if calibration.detour_s is not None:
        text += (
            f"; it may be longer: the route through a third region takes {units.duration(calibration.detour_s)}, and "
            "the fetch durations do not show anything longer"
        )
    return text
