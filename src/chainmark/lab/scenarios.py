"""The contents of a qualification: every scenario with its profiles, unmet requirements, and runs in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pydantic import BaseModel

from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.core.qa_plan import QaPlan, Role, ScenarioKind, ScenarioPlan, SidePlan
from chainmark.lab.profiles import read_profile
from chainmark.lab.protocols import QualifiableSystem, SweptSystem, pinned
from chainmark.lab.schedules import Arm, PlannedRun, grid_steps, interleaved
from chainmark.lab.sweeping import Bisected
from chainmark.network.host import host_facts
from chainmark.store.sealed import SealedRun

# A single pair does not show its own noise.
LEAST_ROUNDS = 2
_CORES = "cores:"
_MEMORY = "memory:"


@dataclass(frozen=True)
class QaRequest:
    """One qualification to make.

    Attributes:
        settings: of every scenario's profile, as `--set` takes them; of_version: of the sides that run that version.
    """

    plan: QaPlan
    baseline: str
    candidate: str
    seed: int = 1
    settings: tuple[str, ...] = ()
    of_version: Mapping[Role, Sequence[str]] = field(default_factory=dict)
    keep_homes: bool = False

    def version(self, role: Role) -> str:
        """The version with a role."""
        return self.baseline if role == "baseline" else self.candidate


@dataclass
class ScenarioMade:
    """The state of a scenario.

    Attributes:
        lacking: clauses on unmet requirements; if there are any it was not run.
        sides: the profile of each side.
        steps: the runs to make, in order; none if a requirement is unmet. If it continues until it is decided, the
            maximum; of a bisection all runs that it may need.
        search: which of the steps are made, if that depends on the results.
        rounds: runs per side after which it was decided; None: not before the last.
        names: by side, its name in its runs' places; of a sweep, with the load.
        done: the sealed runs by position; one that repeats an invalid run comes after all planned ones.
        failures: by side, why a run of it could not be made, even at the second attempt.
    """

    plan: ScenarioPlan
    experiment: str
    lacking: list[str]
    sides: dict[str, BaseModel]
    steps: list[PlannedRun] = field(default_factory=list)
    names: dict[str, set[str]] = field(default_factory=dict)
    done: dict[int, SealedRun] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    rounds: int | None = None
    search: Bisected | None = None

    @property
    def wanted(self) -> list[PlannedRun]:
        """The runs to be made, as far as known."""
        if self.search is not None:
            made = [step for step in self.steps if step.position in self.done]
            rest = [step for step in self.steps if step.position not in self.done]
            return [*made, *rest[: max(0, self.search.most - len(made))]]
        return [step for step in self.steps if not self.is_over(step)]

    @property
    def may_end_sooner(self) -> bool:
        """Whether a decision may make some of the planned runs unnecessary."""
        if self.search is not None:
            return sum(step.position in self.done for step in self.steps) < self.search.most
        if not self.steps or not self.plan.goes_on or self.rounds is not None:
            return False
        last = self.of_round(self.plan.planned_runs)
        return self.plan.planned_runs > LEAST_ROUNDS and not any(step.position in self.done for step in last)

    def is_over(self, step: PlannedRun) -> bool:
        """Whether earlier rounds decided the scenario, so this run is unnecessary."""
        return self.rounds is not None and step.repetition > self.rounds

    def looks_after(self, step: PlannedRun) -> bool:
        """Whether the results decide, after this run, if another round follows."""
        return self.plan.goes_on and self.rounds is None and step is self.of_round(step.repetition)[-1]

    @property
    def runs(self) -> list[SealedRun]:
        """Valid and invalid ones, sorted by position, repetitions of invalid ones last."""
        return [run for _, run in sorted(self.done.items())]

    @property
    def repeats(self) -> dict[str, str]:
        """By the ID of a run that repeats an invalid one, the ID of that one."""
        planned = len(self.steps)
        return {
            run.run_id: self.done[position - planned].run_id
            for position, run in sorted(self.done.items())
            if position >= planned and position - planned in self.done
        }

    def of_round(self, repetition: int) -> list[PlannedRun]:
        """The runs of a round, in order."""
        return [step for step in self.steps if step.repetition == repetition]

    def of_side(self, side: str) -> list[SealedRun]:
        """The runs of one side; of a sweep at all loads."""
        return [run for run in self.runs if (place := run.manifest.experiment) and place.side in self.names[side]]


def prepared(
    system: QualifiableSystem,
    order: QaRequest,
    scenario: ScenarioPlan,
    experiment_id: str,
    *,
    is_hosted: bool = False,
) -> ScenarioMade:
    """A scenario with its profiles checked, and its unmet requirements.

    Args:
        is_hosted: the nodes run on other machines, which check themselves whether they are large enough.
    """
    lack = partial(_lack, system, order=order, scenario=scenario, is_hosted=is_hosted)
    lacking = [text for need in scenario.needs if (text := lack(need))]
    if scenario.kind is ScenarioKind.SWEEP and order.baseline == order.candidate:
        lacking.append("two different versions")
    sides = {} if lacking else {side.id: profile_of(system, order, scenario, side) for side in scenario.sides}
    scenario_made = ScenarioMade(scenario, f"{experiment_id}-{scenario.id}", lacking, sides)
    scenario_made.names = {side.id: {side.id} for side in scenario.sides}
    if scenario.kind is ScenarioKind.SWEEP and not lacking:
        _schedule_sweep(system, scenario_made, order)
    elif not lacking:
        arms = [Arm(side.id, order.version(side.version), sides[side.id]) for side in scenario.sides]
        scenario_made.steps = interleaved(arms, scenario.planned_runs)
    return scenario_made


def profile_of(system: QualifiableSystem, order: QaRequest, scenario: ScenarioPlan, side: SidePlan) -> BaseModel:
    """The profile that a side runs, checked."""
    versions = {"baseline": order.baseline, "candidate": order.candidate}
    given = [*scenario.settings, *order.settings, *order.of_version.get(side.version, ()), *side.settings]
    settings = [_filled(text, versions) for text in given]
    try:
        return pinned(system, system.profile(read_profile(scenario.profile, settings)))
    except UsageError as error:
        raise UsageError(f"the scenario `{scenario.id}` cannot be run: {error.message}", error.hint) from error


def _lack(system: QualifiableSystem, need: str, *, order: QaRequest, scenario: ScenarioPlan, is_hosted: bool) -> str:
    """The missing part of a requirement; "" if none."""
    if is_hosted:
        return "" if need.startswith((_CORES, _MEMORY)) else f"all nodes on one machine ({need})"
    host = host_facts()
    if need.startswith(_CORES):
        wanted = _amount(need, _CORES)
        return "" if host.cores >= wanted else f"{wanted} processors; this machine has {host.cores}"
    if need.startswith(_MEMORY):
        wanted = _amount(need, _MEMORY)
        result = host.memory_bytes / 2**30
        return "" if result >= wanted else f"{wanted} GiB of memory; this machine has {units.number(result, 1)}"
    versions = dict.fromkeys(order.version(side.version) for side in scenario.sides)
    return system.lacking(need, tuple(versions))


def _schedule_sweep(system: QualifiableSystem, made: ScenarioMade, order: QaRequest) -> None:
    """Every load with both versions, in the order and under the names of a saturation test."""
    if not isinstance(system, SweptSystem):
        raise UsageError(
            f"chainmark cannot find the saturation point of `{system.name}`",
            f"remove the scenario `{made.plan.id}` from the plan",
        )
    roles: dict[str, Role] = {order.candidate: "candidate", order.baseline: "baseline"}
    plan, versions = system.sweep_plan(made.sides["baseline"]), (order.baseline, order.candidate)
    if plan.search == "bisect":
        made.search = Bisected(system, plan, versions, made.plan.planned_runs)
        cells = made.search.cells
    else:
        cells = grid_steps(plan.loads, versions, made.plan.planned_runs, order.seed)
    for position, cell in enumerate(cells):
        side = roles[cell.version]
        made.steps.append(cell.step(system.at_load(made.sides[side], cell.load), position))
        made.names[side].add(made.steps[-1].side)


def _amount(need: str, prefix: str) -> int:
    text = need.removeprefix(prefix)
    if not text.isdigit():
        raise UsageError(
            f"`{need}` is not a valid requirement of a scenario", "for example `cores:4` or `memory:8` (GiB)"
        )
    return int(text)


def _filled(text: str, versions: Mapping[str, str]) -> str:
    for name, version in versions.items():
        text = text.replace(f"{{{name}}}", version)
    return text
