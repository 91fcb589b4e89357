"""Two versions in turn until the verdict is decided, and one version against itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from chainmark.api.charting import charted
from chainmark.api.clusters import machines_for_nodes, requested_cluster
from chainmark.api.comparing import How, compared
from chainmark.api.context import (
    Accepted,
    Cancellation,
    Relay,
    Settings,
    as_choice,
    as_settings,
    check_repeat,
    installed,
    measuring,
    profiles_of,
    refuse_with_resume,
    resolve_launchable,
    store_at,
)
from chainmark.api.learning import learnt_before
from chainmark.api.noting import noted
from chainmark.compare.aa import LEAST_RUNS, aa_report
from chainmark.compare.decide import Decided, Past, decide
from chainmark.compare.false_alarms import history_check
from chainmark.compare.gates import more_runs_may_pass
from chainmark.compare.judge import cannot_be_decided_by_one_pair
from chainmark.core import units
from chainmark.core.catalogue import Margins
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import ExperimentLength, failed_gates
from chainmark.core.profiles import CPU, GOROUTINE, HEAP
from chainmark.core.progress import Progress
from chainmark.core.question import BaselineKind
from chainmark.core.tool import tool_version
from chainmark.core.verdict import Verdict
from chainmark.core.wording import enumerated
from chainmark.lab.attempts import MOST_ATTEMPTS, failed_measurement
from chainmark.lab.bisecting import Bisection
from chainmark.lab.experimenting import Experimenter, OpenExperiment, read_record
from chainmark.lab.machine import machine_to_itself
from chainmark.lab.protocols import LaunchableSystem, ProfiledSystem
from chainmark.lab.running import Lab
from chainmark.lab.schedules import LONE_SIDE, Arm
from chainmark.network.host import host_facts
from chainmark.report.document import Document
from chainmark.report.layouts import document_of
from chainmark.stats.sequential import FIRST_LOOK
from chainmark.store.experiments import find_experiment
from chainmark.store.notes import read_notes
from chainmark.store.runs import Store
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import launchable

__all__ = ["aa", "aa_of_history", "experiment"]

MOST_RUNS = 8
# An experiment with a smaller probability of a decision ends, once it has shown its noise.
HOPELESS, LEAST_BEFORE_GIVING_UP = 0.05, 4


def experiment(
    profile: str | Path | None = None,
    *,
    baseline: str | None = None,
    candidate: str | None = None,
    repeat: int | None = None,
    most_runs: int = MOST_RUNS,
    resume: str | None = None,
    more: int = 0,
    settings: Settings | None = None,
    baseline_settings: Settings | None = None,
    candidate_settings: Settings | None = None,
    margins: Margins | Sequence[str] | None = None,
    seed: int = 1,
    keep_homes: bool = False,
    profiles: str | None = None,
    why: bool = False,
    on: str | None = None,
    expose: str | None = None,
    no_wait: bool = False,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> Document:
    """Run two versions in turn (A B B A A B …) until the verdict is decided, and compare them.

    Args:
        profile: a shipped profile's name, or the path of a TOML file; None to resume.
        baseline, candidate: the two versions.
        repeat: a fixed number of runs per side; None: at least two, until the decision.
        most_runs: limit of runs per side if the number is not fixed.
        resume: an experiment to continue, instead of starting one.
        more: runs per side to add to the planned ones when resuming.
        settings: changes of the profile for both sides.
        baseline_settings, candidate_settings: for one side only.
        margins: by metric id, the relative change to accept instead of the catalogue's; fixed at the start.
        profiles: kinds of profiles to take of the nodes in one further run per side, which is not judged; None:
            "cpu,heap,goroutine", as far as the system's nodes support them; "none": no further run.
        why: show the results of profiles even if nothing became worse.
        on: as in `run`; an experiment that is resumed needs it again.
        seed, keep_homes, expose, no_wait, store, progress, cancel: as in `run`.

    Raises:
        UsageError: the profile, a setting, a margin or a version cannot be used, or there is no such experiment.
        EnvironmentFailure: the machine or a node did not do what the runs need.

    Example:
        >>> small = {"load.warm_up_s": 2, "load.duration_s": 8}
        >>> document = cm.experiment(
        ...     "cometbft/demo", baseline="v0.38.17", candidate="v1.0.1", repeat=1, settings=small
        ... )
        >>> document.kind, "tx_latency_s.p50" in document.frame["id"]
        ('comparison', True)
    """
    run_store = store_at(store)
    with measuring(progress, cancel, expose, no_wait) as listener:
        if resume is not None:
            refuse_with_resume(resume, {"--margin": margins})
            planned = _resumed(resume, more, run_store, listener)
        else:
            if profile is None or baseline is None or candidate is None:
                raise UsageError(
                    "an experiment requires a profile and two versions", "or continue an experiment: `--resume ID`"
                )
            if repeat is not None:
                check_repeat(repeat)
            common = as_settings(settings)
            sides = {
                "baseline": (baseline, [*common, *as_settings(baseline_settings)]),
                "candidate": (candidate, [*common, *as_settings(candidate_settings)]),
            }
            system, arms = _arms(profile, sides, listener)
            length = ExperimentLength(most=repeat or max(most_runs, FIRST_LOOK), stops_early=repeat is None)
            _warn_of_equal_builds(system, arms, listener)
            _warn_of_single_runs(system, arms[0], length, run_store, listener)
            accepted = _accepted(margins, system, arms[0], run_store, listener)
            planned = Experimenter(run_store, system).begin(
                arms,
                length,
                seed,
                listener,
                accepted,
                keep_homes=keep_homes,
                profiles=_profiles(system, profiles),
            )
        system = planned.series.lab.system
        requested = requested_cluster(on, profile, settings)
        with machines_for_nodes(system, requested, listener, planned.folder) as machines:
            planned.series = planned.series.on(machines)
            return _until_decided(planned, run_store, listener, why=why)


def kinds_by_default(system: LaunchableSystem) -> tuple[str, ...]:
    """The default, as far as the system supports it: where its nodes use the CPU and memory, and where they wait."""
    kinds = system.profile_kinds if isinstance(system, ProfiledSystem) else ()
    return tuple(kind for kind in (CPU, HEAP, GOROUTINE) if kind in kinds)


def _profiles(system: LaunchableSystem, text: str | None) -> tuple[str, ...]:
    if text is None:
        return kinds_by_default(system)
    return profiles_of(system, text)


def aa(
    profile: str | Path,
    version: str,
    *,
    repeat: int = 8,
    settings: Settings | None = None,
    seed: int = 1,
    keep_homes: bool = False,
    on: str | None = None,
    expose: str | None = None,
    no_wait: bool = False,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> Document:
    """Run one version repeatedly: how much its figures differ, and how often the verdict raises a false alarm.

    The runs stay in the store, where later verdicts use their noise.

    Args:
        profile: a shipped profile's name, or the path of a TOML file.
        version: what to run.
        repeat: number of valid runs, at least four; those in which the measurement fails are repeated.
        settings, seed, keep_homes, on, expose, no_wait, store, progress, cancel: as in `run`.

    Raises:
        UsageError: the profile, a setting or the version cannot be used, or `repeat` is below four.
        InvalidRunError: fewer than four runs are valid.
        EnvironmentFailure: the machine or a node did not do what the runs need.

    Example:
        >>> small = {"load.warm_up_s": 2, "load.duration_s": 8}
        >>> document = cm.aa("cometbft/demo", "v1.0.1", repeat=4, settings=small)
        >>> document.kind
        'aa'
    """
    check_repeat(repeat, LEAST_RUNS)
    run_store = store_at(store)
    system, resolved = resolve_launchable(profile, settings)
    with measuring(progress, cancel, expose, no_wait) as listener:
        arm = Arm(LONE_SIDE, installed(system, [version], listener, resolved)[version], resolved)
        with machines_for_nodes(system, requested_cluster(on, profile, settings), listener) as machines:
            lab = Lab(run_store, system, machines)
            lab_runs = lab.repeat(arm, repeat, seed, listener, keep_homes=keep_homes, attempts=MOST_ATTEMPTS)
        report = aa_report(lab_runs, run_store.alike(lab_runs), tool_version())
        counted = [run for run in lab_runs if run.run_id in report.runs]
        return noted(charted(document_of(report), {version: counted}, in_full=True), lab_runs, run_store)


def _accepted(
    margins: Margins | Sequence[str] | None, system: LaunchableSystem, arm: Arm, store: Store, listener: Relay
) -> Margins:
    """The margins of an experiment, fixed before its first run; reports the learnt ones to the listener.

    Raises:
        UsageError: one cannot be used for a judgement, or none can be learnt.
    """
    accepted = as_choice(margins)
    given, bounds = accepted.margins, accepted.learnt
    system.catalogue().with_margins(given)
    if bounds is None:
        return given
    learnt = learnt_before(system.name, system.workload(arm.profile), host_facts().cpu_model, bounds, store)
    text = ", ".join(f"{metric} {units.plain_percent(margin, decimals=1)}" for metric, margin in learnt.items())
    listener.tell(f"margins learnt from earlier runs: {text}")
    return {**learnt, **given}


def aa_of_history(reference: str, *, store: Store | Path | str | None = None) -> Document:
    """How often the lab reports a change in re-runs of one build, from the history of a run; nothing is run.

    Args:
        reference: a run, a version or an experiment with the workload and machine in question.
        store: where the runs are.

    Raises:
        UsageError: nothing matches, or no build was run again and no run has samples to split.

    Example:
        >>> cm.aa_of_history("v1.0.1").kind
        'aa'
    """
    run_store = store_at(store)
    run = run_store.select(reference)[-1]
    past = Past(read_notes(run_store.root).epochs, BaselineKind.HISTORY)
    history = run_store.alike([run])
    return noted(document_of(history_check(run, history, past, tool_version())), run_store.series([run]), run_store)


def _arms(
    profile: str | Path, sides: Mapping[str, tuple[str, Sequence[str]]], listener: Relay
) -> tuple[LaunchableSystem, list[Arm]]:
    """Both sides with their profiles and installed versions."""
    resolved = {side: resolve_launchable(profile, settings) for side, (_, settings) in sides.items()}
    profiles = [profile for _, profile in resolved.values()]
    system, _ = next(iter(resolved.values()))
    _warn_of_different_workloads(system.workload(profiles[0]), system.workload(profiles[1]), listener)
    arms = []
    for side, (version, _) in sides.items():
        side_settings = resolved[side][1]
        arms.append(Arm(side, installed(system, [version], listener, side_settings)[version], side_settings))
    return system, arms


def _resumed(reference: str, more: int, store: Store, listener: Relay) -> OpenExperiment:
    record = read_record(find_experiment(store, reference))
    system = launchable(load_system(record.system))
    for arm in record.arms.values():
        installed(system, [arm.version], listener, system.profile(arm.profile))
    return Experimenter(store, system).resume(reference, more, listener)


def _until_decided(made: OpenExperiment, store: Store, listener: Relay, *, why: bool = False) -> Document:
    """Continue round by round; an interrupted experiment can be resumed."""
    with machine_to_itself(listener), made.folder.locked(), resumable(made, listener):
        made.folder.write(made.record)
        while made.rounds < made.most and not _is_over(made, store, listener):
            if not made.next_round():
                break
        if not all(made.sides()):  # the measurement failed repeatedly before the other side's turn
            last = made.runs[-1].manifest
            raise failed_measurement(last, last.subject.version, made.id)
        take_profiles(made.take_profiles, listener)
    document = compared(made.sides(), store, How(accepted=Accepted(made.record.margins), why=why))
    made.folder.conclude(document.verdict, document.sentence)
    return document


@contextmanager
def resumable(made: OpenExperiment | Bisection, listener: Relay) -> Iterator[None]:
    """If work ends early and some of its runs are finished, tell how to continue."""
    try:
        yield
    except (KeyboardInterrupt, EnvironmentFailure):
        if made.runs:
            listener.tell(f"interrupted: the finished runs are kept; continue with `--resume {made.id}`")
        raise


def take_profiles(take: Callable[[], None], listener: Relay) -> None:
    """Make further runs with profiles; a failure does not prevent the verdict."""
    try:
        take()
    except EnvironmentFailure as error:
        listener.say(f"warning: no profiles were collected: {error.message}")


def _is_over(made: OpenExperiment, store: Store, listener: Relay) -> bool:
    """Whether the verdict is decided, or unlikely to be decided."""
    is_added = made.rounds >= made.record.length.most
    if made.rounds < FIRST_LOOK or not made.record.length.stops_early or is_added:
        return False
    baseline, candidate = made.sides()
    decided = decide(baseline, candidate, store.alike(made.runs), margins=made.record.margins)
    return is_over(decided, made.record.length.most, listener)


def is_over(decided: Decided, most: int, listener: Relay) -> bool:
    """Report the state of the decision; whether it is reached, or more runs will not help.

    Args:
        decided: of the runs so far.
        most: largest planned number of runs per side.
        listener: receives progress messages.
    """
    if decided.finding.verdict in {Verdict.PASS, Verdict.FAIL}:
        return True
    sides = decided.baseline, decided.candidate
    rounds = min(side.telling for side in sides)
    lasting = [gate for gate in failed_gates(decided.gates) if not more_runs_may_pass(gate)]
    if all(side.included for side in sides) and lasting:
        listener.tell("the two sides cannot be compared, and more runs will not change that")
        return True
    chances = decided.chances()
    final_chance = chances.get(most, 0.0)
    progress_text = f"after {units.plural(rounds, 'run')} per side undecided: {enumerated(decided.undecided)}"
    listener.tell(
        f"{progress_text}; {units.plain_percent(final_chance)} probability of a decision with {most} runs per side"
        if chances
        else progress_text
    )
    # A shorter experiment ends before its last round.
    least = LEAST_BEFORE_GIVING_UP if most > LEAST_BEFORE_GIVING_UP else LEAST_BEFORE_GIVING_UP - 1
    if not chances or rounds < least or final_chance >= HOPELESS:
        return False
    listener.tell("stopped: the remaining planned runs are unlikely to lead to a decision")
    return True


def _warn_of_single_runs(
    system: LaunchableSystem, arm: Arm, length: ExperimentLength, store: Store, listener: Relay
) -> None:
    """Warn before the runs about metrics that they cannot decide: those with a margin inside the assumed noise."""
    if length.most > 1 or store.shows_noise(system.name, system.workload(arm.profile), host_facts().cpu_model):
        return
    gating = [metric for metric in system.catalogue().metrics if metric.gating]
    hopeless = [metric.label for metric in gating if cannot_be_decided_by_one_pair(metric)]
    if hopeless:
        listener.say(
            f"warning: one run per side cannot decide these metrics for an equal release: {enumerated(hopeless)}. "
            f"Their noise between runs is unknown and is assumed to exceed their margins (measure it with "
            f"`chainmark aa`, or omit `--repeat 1`)"
        )


def _warn_of_equal_builds(system: LaunchableSystem, arms: Sequence[Arm], listener: Relay) -> None:
    """Warn before the runs that two names are of one build: a commit or a build may have been forgotten."""
    binaries = {subject.version: subject.binary_sha256 for subject, _ in system.installed()}
    left, right = (binaries.get(arm.version) for arm in arms)
    is_intended = arms[0].version == arms[1].version or arms[0].profile != arms[1].profile
    if left is not None and left == right and not is_intended:
        names = enumerated([arm.version for arm in arms])
        listener.say(f"warning: {names} are the same build: the comparison will be an A/A")


def _warn_of_different_workloads(
    baseline: Mapping[str, object], candidate: Mapping[str, object], listener: Relay
) -> None:
    """Report before the runs the caveats that the comparison will have after them."""
    for key in sorted(baseline.keys() | candidate.keys()):
        left, right = baseline.get(key), candidate.get(key)
        if left != right:
            listener.say(
                f"warning: the workloads differ ({key} is {left} against {right}): the comparison will be invalid"
            )
