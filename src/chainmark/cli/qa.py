"""`chainmark qa`: a release qualified against the one before, by a whole plan of scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import typer

import chainmark
from chainmark.cli.common import KeepHomes, Output, Seed, open_store, shows_result
from chainmark.cli.console import Expose, ExposedProgress, TerminalProgress, err, progress
from chainmark.cli.experiment import SideSettings
from chainmark.compare.qa import QaRuns, ScenarioRuns
from chainmark.core.errors import UsageError
from chainmark.core.qa_plan import Role, ScenarioKind, ScenarioPlan
from chainmark.core.qa_report import QaReport
from chainmark.core.saturation import SaturationReport, SaturationTest
from chainmark.core.tool import tool_version
from chainmark.lab.hardware import machine_facts
from chainmark.lab.protocols import QualifiableSystem, qualifiable, swept
from chainmark.lab.qa_plans import read_plan
from chainmark.lab.qualifying import QaMade, QaOrder, Qualifier, ScenarioMade
from chainmark.lab.schedules import Step
from chainmark.lab.sweeping import FRESH_NETWORKS, GRID_ORDER
from chainmark.network.host import host_facts
from chainmark.store.runs import SealedRun
from chainmark.systems.base import load_system

INTERRUPTED = 130
_MINUTE_S = 60.0


class QaProgress:
    """A qualification's progress on stderr: where it is, of how many runs, and about how long it still takes."""

    def __init__(self, bars: TerminalProgress | ExposedProgress) -> None:
        self._bars = bars
        self._title = ""

    def scenario(self, scenario: ScenarioPlan, lacking: Sequence[str]) -> None:
        """Name a scenario; say what it lacks."""
        self._title = scenario.title
        told = f": not run, it needs {'; '.join(lacking)}" if lacking else ""
        self._bars.say(f"{scenario.title}{told}")

    def begin(self, step: Step, number: int, total: int, left_s: float | None = None) -> None:
        """Announce a run."""
        side = step.side.partition("/")[2] or step.side
        heading = f"run {number} of {total} · {self._title} · {step.version} ({side}) · {_left(left_s or 0.0)}"
        self._bars.begin(step, number, total, left_s, heading)

    def again(self, step: Step, because: str) -> None:
        """Say why a run is made once more."""
        self._bars.say(f"{step.version} ({step.side}) is run once more: {because}")

    def end(self, run: SealedRun) -> None:
        """Say how a run ended."""
        self._bars.end(run)

    def stage(self, name: str) -> None:
        """A new stage begins."""
        self._bars.stage(name)

    def update(self, fraction: float, detail: str = "") -> None:
        """Move the bar."""
        self._bars.update(fraction, detail)


def _left(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return "less than a minute left"
    return f"about {round(seconds / _MINUTE_S)} min left"


@shows_result
def qa(
    system: Annotated[str, typer.Argument(help="The system, e.g. `cometbft`.")],
    baseline: Annotated[str | None, typer.Option(help="The release before, e.g. `v0.38.17`.")] = None,
    candidate: Annotated[str | None, typer.Option(help="The release that is judged, e.g. `v1.0.1`.")] = None,
    plan: Annotated[
        str, typer.Option(help="A shipped plan (`quick`, `standard`, `full`) or a TOML file.")
    ] = "standard",
    resume: Annotated[
        str | None,
        typer.Option(metavar="EXPERIMENT", help="Go on with what was interrupted, or show it again."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change the profile of every scenario."),
    ] = None,
    set_baseline: SideSettings = None,
    set_candidate: SideSettings = None,
    seed: Seed = 1,
    keep_homes: KeepHomes = False,
    expose: Expose = None,
    *,
    output: Output,
) -> None:
    """Qualify a release: run every scenario of a plan with both versions, judge it, and write the QA report.

    Example: `chainmark qa cometbft --baseline v0.38.17 --candidate v1.0.1 --html qa.html --pdf qa.pdf`

    What this machine cannot do is listed as not run, with what it needs. Interrupted, it goes on with `--resume`.
    """
    lab = qualifiable(load_system(system))
    qualifier = Qualifier(open_store(), lab)
    if resume is None:
        order = _order(lab, (baseline, candidate), plan, seed, settings or [])
        of_version: dict[Role, Sequence[str]] = {"baseline": set_baseline or [], "candidate": set_candidate or []}
        order = replace(order, of_version=of_version, keep_homes=keep_homes)
    else:
        if any((settings, set_baseline, set_candidate)):
            raise UsageError(f"`{resume}` has its settings already", "leave out `--set` when you resume")
        order = _resumed(qualifier, resume, {"baseline": baseline, "candidate": candidate})
    for version in dict.fromkeys((order.baseline, order.candidate)):
        with err.status(f"installing {lab.title} {version}"):
            lab.install(version)
    with progress(expose) as bars:
        listener = QaProgress(bars)
        made = qualifier.resume(resume, listener, keep_homes=keep_homes) if resume else qualifier.make(order, listener)
    err.print(f"experiment {made.experiment}", markup=False)
    if made.interrupted:
        err.print(f"interrupted: the finished runs are kept; go on with `--resume {made.experiment}`", markup=False)
        raise typer.Exit(INTERRUPTED)
    report = _report(lab, made)
    output.present(report)
    raise typer.Exit(report.verdict.exit_code)


def _order(
    system: QualifiableSystem, versions: tuple[str | None, str | None], plan: str, seed: int, settings: Sequence[str]
) -> QaOrder:
    baseline, candidate = versions
    if baseline is None or candidate is None:
        raise UsageError("a qualification needs two versions", "for example `--baseline v0.38.17 --candidate v1.0.1`")
    return QaOrder(read_plan(system, plan), baseline, candidate, seed, tuple(settings))


def _resumed(qualifier: Qualifier, resume: str, versions: Mapping[str, str | None]) -> QaOrder:
    """What was ordered when it began; what is named again must be the same."""
    ordered = qualifier.ordered(resume)
    known = {"baseline": ordered.baseline, "candidate": ordered.candidate}
    other = next((name for name, told in versions.items() if told and told != known[name]), None)
    if other:
        raise UsageError(
            f"`{resume}` was begun with the {other} {known[other]}, not {versions[other]}",
            "leave out the versions when you resume",
        )
    return ordered


def _report(system: QualifiableSystem, made: QaMade) -> QaReport:
    """The report of all runs; those of other experiments show the noise where a side has one run."""
    hosts = [run.manifest.host for one in made.scenarios for run in one.runs]
    runs = QaRuns(
        plan=made.order.plan,
        experiment=made.experiment,
        seed=made.order.seed,
        baseline=made.subjects["baseline"],
        candidate=made.subjects["candidate"],
        scenarios=[_scenario(system, one, made) for one in made.scenarios],
        commits=(system.commit(made.order.baseline), system.commit(made.order.candidate)),
        machine=machine_facts(hosts[0] if hosts else host_facts()),
        catalogue=system.catalogue(),
        tool_version=tool_version(),
    )
    history = open_store().alike(run for one in made.scenarios for run in one.runs)
    return chainmark.qa_report(runs, history)


def _saturation(system: QualifiableSystem, one: ScenarioMade, made: QaMade) -> SaturationReport | None:
    """The document of a sweep; None where a version has no run."""
    lab = swept(system)
    sides = {side.id: one.of_side(side.id) for side in one.plan.sides}
    if not all(sides.values()):
        return None
    versions = [
        lab.swept_version(made.order.version(side.version), sides[side.id])
        for side in one.plan.sides
    ]  # fmt: skip
    profile = next(iter(one.sides.values()))
    test = SaturationTest(
        title=one.plan.title,
        system=system.name,
        profile_name=one.plan.profile,
        experiment=one.experiment,
        started_at=min(run.manifest.started_at for run in one.runs),
        tool_version=tool_version(),
        seed=made.order.seed,
        tolerance=lab.sweep_plan(profile).tolerance,
        order=GRID_ORDER,
        machine=[],
        notes=[FRESH_NETWORKS],
    )
    return chainmark.saturation_report(test, versions, lab.sweep_metrics())


def _scenario(system: QualifiableSystem, one: ScenarioMade, made: QaMade) -> ScenarioRuns:
    described = next((str(getattr(profile, "description", "")) for profile in one.sides.values()), "")
    return ScenarioRuns(
        plan=one.plan,
        experiment=one.experiment,
        sides={side.id: found for side in one.plan.sides if (found := one.of_side(side.id))},
        lacking=one.lacking,
        repeats=one.repeats,
        failures=one.failures,
        profile_description=described,
        saturation=_saturation(system, one, made) if one.plan.kind is ScenarioKind.SWEEP else None,
    )
