"""The saturation load of a version, and whether a release may replace the previous one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import BaseModel

from chainmark.api.charting import charted
from chainmark.api.clusters import machines_for_nodes, requested_cluster
from chainmark.api.comparing import explained_by
from chainmark.api.context import (
    Cancellation,
    Relay,
    Settings,
    as_margins,
    as_settings,
    check_repeat,
    installed,
    measuring,
    refuse,
    refuse_with_resume,
    resolve_profile,
    store_at,
)
from chainmark.api.experimenting import is_over, kinds_by_default
from chainmark.api.noting import noted
from chainmark.api.releasing import Signature, release
from chainmark.compare.decide import Decided, decide, of_measured
from chainmark.compare.qa import qa_report
from chainmark.compare.qa_scenarios import QaRuns, ScenarioRuns
from chainmark.core import units
from chainmark.core.attachment import Attachment
from chainmark.core.catalogue import Margins
from chainmark.core.comparison import Outcome
from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.core.qa_plan import Role, ScenarioKind, ScenarioPlan
from chainmark.core.tool import tool_version
from chainmark.core.verdict import Verdict
from chainmark.core.wording import enumerated
from chainmark.lab.hardware import machine_facts
from chainmark.lab.protocols import ImportableSystem, QualifiableSystem, pinned
from chainmark.lab.qa_plans import read_plan
from chainmark.lab.qualifying import QaMade, Qualifier
from chainmark.lab.scenarios import QaRequest, ScenarioMade
from chainmark.lab.session import name_of
from chainmark.lab.sweeping import Sweep, Sweeper, SweepRequest, SweepTest, order_description
from chainmark.network.host import host_facts
from chainmark.report.document import Document
from chainmark.report.layouts import document_of
from chainmark.stats.sequential import FIRST_LOOK
from chainmark.store.experiments import experiment_folder, find_experiment
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import qualifiable
from chainmark.systems.sweeping import SaturableSystem, saturable, second_rule_of

__all__ = ["Experiment", "qualify", "saturation"]

VERSION_MARK = "@"
STANDARD = "standard"  # the default plan


@dataclass(frozen=True)
class Experiment:
    """The result of many runs; with ``is_interrupted`` some are missing, and ``resume=id`` continues.

    Attributes:
        id: the experiment of the runs; "" if nothing was run.
        document: None if there are too few runs for one.
    """

    id: str
    document: Document | None
    is_interrupted: bool

    @property
    def verdict(self) -> Verdict:
        """The document's verdict; without a document, a partial one."""
        return self.document.verdict if self.document else Verdict.PARTIAL

    @property
    def frame(self) -> pl.DataFrame:
        """The document's cases as a table; empty without a document."""
        return self.document.frame if self.document else pl.DataFrame()

    def _repr_html_(self) -> str:
        return self.document._repr_html_() if self.document else ""


def saturation(
    profile: str | Path,
    versions: str | Sequence[str] = (),
    *,
    repeat: int = 1,
    adaptive: bool = False,
    published: Sequence[Path | str] = (),
    resume: str | None = None,
    settings: Settings | None = None,
    seed: int = 1,
    keep_homes: bool = False,
    on: str | None = None,
    expose: str | None = None,
    no_wait: bool = False,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> Experiment:
    """Raise the load step by step to find the saturation load of each version.

    Args:
        profile: a shipped profile's name, or the path of a TOML file, with the loads.
        versions: the versions to test, the baseline first.
        repeat: runs of each version at each load.
        adaptive: search by doubling and halving instead of running the grid.
        published: published tables for comparison, ``FILE`` or ``FILE@VERSION``.
        resume: an interrupted experiment to continue.
        settings, seed, keep_homes, on, expose, no_wait, store, progress, cancel: as in `run`.

    Raises:
        UsageError: there is nothing to test, or the experiment to resume differs.
        EnvironmentFailure: a network could not be run.

    Example:
        >>> made = cm.saturation("cometbft/saturation", published=[f"{table}@v9.0"])
        >>> made.document.kind, made.id
        ('saturation', '')
    """
    check_repeat(repeat)
    version_names = [versions] if isinstance(versions, str) else list(versions)
    system, resolved = resolve_profile(profile, settings)
    lab = saturable(system)
    shown = [_published(lab, str(path)) for path in published]
    if not version_names and not shown:
        raise UsageError("no version was given", "for example `--version v1.0.1`")
    sweep: Sweep | None = None
    if version_names:
        resolved = pinned(lab, resolved)
        with measuring(progress, cancel, expose, no_wait) as listener:
            names = installed(lab, version_names, listener, resolved)
            chosen = tuple(names[version] for version in version_names)
            order = SweepRequest(chosen, repeat, seed, adaptive, keep_homes, resume)
            with machines_for_nodes(lab, requested_cluster(on, profile, settings), listener) as machines:
                sweep = Sweeper(store_at(store), lab, machines).make(resolved, order, listener)
    measured = [lab.swept_version(version, runs) for version, runs in (sweep.runs if sweep else {}).items() if runs]
    test = _test(lab, resolved, sweep, seed=seed, adaptive=adaptive)
    report = lab.saturation(test, [*measured, *shown])
    runs = {run.run_id: run for run in sweep.all_runs()} if sweep else {}
    sides = {label: [runs[name] for name in names if name in runs] for label, names in report.sides().items()}
    document = noted(charted(document_of(report), sides), runs.values(), store_at(store))
    return Experiment(sweep.experiment_id if sweep else "", document, bool(sweep and sweep.interrupted))


def _published(system: SaturableSystem, text: str) -> Any:
    """`FILE`, or `FILE@VERSION`; a file whose own name contains `@` is that file."""
    name, mark, version = text.rpartition(VERSION_MARK)
    path, label = (Path(name), version) if mark and name and not Path(text).exists() else (Path(text), None)
    if not path.is_file():
        raise UsageError(f"there is no file `{path}`", "for example `v1_report_tabbed.txt@v1.0.0-alpha.2`")
    return system.published_sweep(path, label)


def _test(
    system: SaturableSystem,
    profile: BaseModel,
    made: Sweep | None,
    *,
    seed: int,
    adaptive: bool,
) -> SweepTest:
    runs = made.all_runs() if made else []
    return SweepTest(
        title="",
        system=system.name,
        profile_name=name_of(profile) if made else "",
        experiment=made.experiment_id if made else "",
        started_at=min((run.manifest.started_at for run in runs), default=""),
        tool_version=tool_version(),
        seed=seed,
        tolerance=system.sweep_plan(profile).tolerance,
        order=order_description(system.sweep_plan(profile), adaptive=adaptive) if made else "",
        machine=machine_facts(runs[0].manifest.host if runs else host_facts()) if made else [],
        interrupted=made.interrupted if made else False,
    )


def qualify(
    system: str,
    *,
    baseline: str | Sequence[str] | None = None,
    candidate: str | None = None,
    plan: str = STANDARD,
    most_runs: int | None = None,
    resume: str | None = None,
    settings: Settings | None = None,
    baseline_settings: Settings | None = None,
    candidate_settings: Settings | None = None,
    margins: Margins | Sequence[str] | None = None,
    seed: int = 1,
    keep_homes: bool = False,
    on: str | None = None,
    signature: Signature | None = None,
    expose: str | None = None,
    no_wait: bool = False,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> Experiment:
    """Run every scenario of a plan with two versions, and judge the release by all of them.

    For a system whose nodes chainmark does not run, it judges imported runs with `release`.

    Args:
        system: the system.
        baseline, candidate: the previous release, and the one to judge; not needed to resume. For imported runs
            several baselines or none are possible.
        plan: a shipped plan's name, or the path of a TOML file.
        most_runs: limit of runs per side for every scenario that continues until it is decided; None: by the plan, or
            8.
        resume: an interrupted qualification to continue, or to show again.
        settings: changes of every scenario's profile; ``baseline_settings`` and ``candidate_settings`` for one side.
        margins: by metric id, the relative change to accept instead of the plan's or the catalogue's margin; for
            imported runs also ``["learnt"]``.
        seed, keep_homes, on, expose, no_wait, store, progress, cancel: as in `run`.
        signature: as in `release`, only for imported runs.

    Raises:
        UsageError: a version or the plan is missing or cannot be used, or an option is not for the system.

    Example:
        >>> made = cm.qualify("cometbft", baseline="v0.38.17", candidate="v1.0.1", plan=plan, settings=small)
        >>> made.document.kind, made.is_interrupted
        ('qa', False)
    """
    loaded_system, baselines = load_system(system), [baseline] if isinstance(baseline, str) else list(baseline or [])
    if not isinstance(loaded_system, QualifiableSystem) and isinstance(loaded_system, ImportableSystem):
        launched = {"--plan": plan != STANDARD, "--most-runs": most_runs, "--resume": resume, "--set": settings}
        launched |= {"--set-baseline": baseline_settings, "--set-candidate": candidate_settings}
        launched |= {"--expose": expose, "--no-wait": no_wait}
        refuse(
            launched, f"applies only to nodes that chainmark runs, and the runs of {loaded_system.title} are imported"
        )
        if candidate is None:
            raise UsageError("a qualification requires a candidate", "for example `--candidate 10.6.2`")
        page = release(
            system,
            candidate,
            baselines,
            margins=margins,
            signature=signature,
            store=store,
        )
        return Experiment("", page, False)
    lab = qualifiable(loaded_system)
    of_page = {"--author, --statement, --date or --page": signature}
    refuse(of_page, f"applies only to imported runs, and chainmark runs the nodes of {loaded_system.title}")
    if len(baselines) > 1:
        raise UsageError("a plan has only one baseline", f"give one of {enumerated(baselines)}")
    before = baselines[0] if baselines else None
    run_store = store_at(store)
    qualifier = Qualifier(run_store, lab)
    own: dict[Role, Sequence[str]] = {
        "baseline": as_settings(baseline_settings),
        "candidate": as_settings(candidate_settings),
    }
    with measuring(progress, cancel, expose, no_wait) as listener:
        if resume is None:
            order = _order(lab, (before, candidate), plan, seed, as_settings(settings))
            ordered = order.plan.with_most_runs(max(most_runs, FIRST_LOOK)) if most_runs else order.plan
            ordered = ordered.model_copy(update={"margins": {**ordered.margins, **as_margins(margins)}})
            order = replace(order, plan=ordered, of_version=own, keep_homes=keep_homes)
        else:
            of_sides = {f"--set-{role}": changes for role, changes in own.items()}
            refuse_with_resume(resume, {"--set": settings, **of_sides, "--most-runs": most_runs, "--margin": margins})
            given = {"baseline": before, "candidate": candidate}
            names = installed(lab, [version for version in given.values() if version], listener)
            order = _resumed(qualifier, resume, {role: names.get(version or "") for role, version in given.items()})
        lab.catalogue().with_margins(order.plan.margins)  # rejects invalid margins before anything runs
        qualifier = replace(
            qualifier,
            is_settled=_IsSettled(run_store, listener, order.plan.margins),
            explains=_Explains(run_store, lab, order.plan.margins),
        )
        names = installed(lab, [order.baseline, order.candidate], listener)
        order = replace(order, baseline=names[order.baseline], candidate=names[order.candidate])
        folder = find_experiment(run_store, resume) if resume else qualifier.new_folder(order)
        with machines_for_nodes(lab, on, listener, folder) as machines:
            qualifier = replace(qualifier, machines=machines)
            if resume:
                qualification = qualifier.resume(resume, listener, keep_homes=keep_homes)
            else:
                qualification = qualifier.make(order, listener, folder)
    if qualification.interrupted:
        return Experiment(qualification.experiment, None, True)
    runs = [run for scenario in qualification.scenarios for run in scenario.runs]
    report = qa_report(_qa_runs(lab, qualification, run_store), run_store.alike(runs))
    for scenario in report.scenarios:
        if scenario.experiment:
            experiment_folder(run_store, scenario.experiment).conclude(scenario.result, scenario.sentence)
    return Experiment(qualification.experiment, noted(document_of(report), runs, run_store), False)


def _decided(
    plan: ScenarioPlan, sides: tuple[Sequence[SealedRun], Sequence[SealedRun]], store: Store, margins: Margins
) -> Decided:
    """The verdict of one scenario so far."""
    runs = [run for side in sides for run in side]
    return decide(*sides, store.alike(runs), margins=of_measured(margins, runs), judges=plan.judges)


@dataclass(frozen=True)
class _IsSettled:
    """Whether a scenario is decided, or more runs are unlikely to decide it."""

    store: Store
    listener: Relay
    margins: Margins

    def __call__(self, plan: ScenarioPlan, baseline: Sequence[SealedRun], candidate: Sequence[SealedRun]) -> bool:
        decided = _decided(plan, (baseline, candidate), self.store, self.margins)
        if is_over(decided, plan.planned_runs, self.listener):
            counted = units.plural(min(len(baseline), len(candidate)), "run")
            self.listener.tell(f"after {counted} per side: {decided.finding.verdict}")
            return True
        return False


@dataclass(frozen=True)
class _Explains:
    """The profiles that explain a scenario in which a gating metric became worse."""

    store: Store
    system: QualifiableSystem
    margins: Margins

    def __call__(
        self, plan: ScenarioPlan, baseline: Sequence[SealedRun], candidate: Sequence[SealedRun]
    ) -> Sequence[str]:
        if len({run.manifest.subject.version for run in [*baseline, *candidate]}) == 1:
            return ()  # the profiles of one version on both sides are indistinguishable
        decided = _decided(plan, (baseline, candidate), self.store, self.margins)
        is_worse = any(judgement.gating and judgement.outcome is Outcome.WORSE for judgement in decided.judgements)
        return kinds_by_default(self.system) if is_worse else ()


def _order(
    system: QualifiableSystem, versions: tuple[str | None, str | None], plan: str, seed: int, settings: Sequence[str]
) -> QaRequest:
    baseline, candidate = versions
    if baseline is None or candidate is None:
        raise UsageError(
            "a qualification requires two versions", "for example `--baseline v0.38.17 --candidate v1.0.1`"
        )
    return QaRequest(read_plan(system, plan), baseline, candidate, seed, tuple(settings))


def _resumed(qualifier: Qualifier, resume: str, versions: Mapping[str, str | None]) -> QaRequest:
    """The order at the start; repeated options must be the same."""
    ordered = qualifier.ordered(resume)
    sides = {"baseline": ordered.baseline, "candidate": ordered.candidate}
    other = next((name for name, version in versions.items() if version and version != sides[name]), None)
    if other:
        raise UsageError(
            f"`{resume}` was started with the {other} {sides[other]}, not {versions[other]}",
            "omit the versions when you resume",
        )
    return ordered


def _qa_runs(system: QualifiableSystem, made: QaMade, store: Store) -> QaRuns:
    hosts = [run.manifest.host for scenario in made.scenarios for run in scenario.runs]
    return QaRuns(
        plan=made.order.plan,
        experiment=made.experiment,
        seed=made.order.seed,
        baseline=made.subjects["baseline"],
        candidate=made.subjects["candidate"],
        scenarios=[_scenario(system, scenario, made, store) for scenario in made.scenarios],
        commits=(system.commit(made.order.baseline), system.commit(made.order.candidate)),
        machine=machine_facts(hosts[0] if hosts else host_facts()),
        catalogue=system.catalogue(),
        tool_version=tool_version(),
        second_rule=second_rule_of(system),
    )


def _scenario(system: QualifiableSystem, scenario: ScenarioMade, made: QaMade, store: Store) -> ScenarioRuns:
    sides = {side.id: runs for side in scenario.plan.sides if (runs := scenario.of_side(side.id))}
    compared = scenario.plan.kind is ScenarioKind.COMPARISON and len(sides) > 1
    described = next((str(getattr(profile, "description", "")) for profile in scenario.sides.values()), "")
    return ScenarioRuns(
        plan=scenario.plan,
        experiment=scenario.experiment,
        sides=sides,
        lacking=scenario.lacking,
        repeats=scenario.repeats,
        failures=scenario.failures,
        profile_description=described,
        swept=_swept(saturable(system), scenario, made) if scenario.plan.kind is ScenarioKind.SWEEP else None,
        profiled=explained_by([sides["baseline"], sides["candidate"]], store) if compared else None,
    )


def _swept(system: SaturableSystem, scenario: ScenarioMade, made: QaMade) -> Attachment | None:
    """The result of a sweep; None if a version has no run."""
    sides = {side.id: scenario.of_side(side.id) for side in scenario.plan.sides}
    if not all(sides.values()):
        return None
    versions = [system.swept_version(made.order.version(side.version), sides[side.id]) for side in scenario.plan.sides]
    plan = system.sweep_plan(next(iter(scenario.sides.values())))
    test = SweepTest(
        title=scenario.plan.title,
        system=system.name,
        profile_name=scenario.plan.profile,
        experiment=scenario.experiment,
        started_at=min(run.manifest.started_at for run in scenario.runs),
        tool_version=tool_version(),
        seed=made.order.seed,
        tolerance=plan.tolerance,
        order=order_description(plan),
    )
    return system.saturation(test, versions)
