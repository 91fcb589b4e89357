"""The commit or published version with which a verdict changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from chainmark.api.clusters import machines_for_nodes, requested_cluster
from chainmark.api.comparing import How, pair_comparison
from chainmark.api.context import (
    Accepted,
    Cancellation,
    Relay,
    Settings,
    as_margins,
    measuring,
    refuse_with_resume,
    resolve_launchable,
    store_at,
)
from chainmark.api.experimenting import MOST_RUNS, is_over, kinds_by_default, resumable, take_profiles
from chainmark.compare.bisect import (
    Known,
    SearchTarget,
    archived,
    differs,
    followed_of,
    is_equal,
    judgement_of,
    steps_of,
)
from chainmark.compare.bisect_result import Searched, bisect_report
from chainmark.compare.decide import Decided, decide
from chainmark.core import units
from chainmark.core.bisect_report import BisectReport, SideState, Way
from chainmark.core.catalogue import Margins
from chainmark.core.comparison import Comparison
from chainmark.core.errors import UsageError
from chainmark.core.manifest import ExperimentLength, Status, failed_gates
from chainmark.core.progress import Progress
from chainmark.core.times import utc_now
from chainmark.core.tool import tool_version
from chainmark.core.verdict import Verdict
from chainmark.lab.bisecting import GOOD, Bisection, Bisector, BisectRequest, read_search
from chainmark.lab.machine import machine_to_itself
from chainmark.lab.protocols import LaunchableSystem
from chainmark.lab.revisions import RevisionLine, commits_between, diffstat, versions_between
from chainmark.lab.schedules import forth_and_back
from chainmark.report.document import Document
from chainmark.report.layouts import document_of
from chainmark.stats.change_place import pair_of, runs_left
from chainmark.stats.intervals import Spread
from chainmark.stats.sequential import FIRST_LOOK
from chainmark.store.live import LiveSearch, LiveStep, remove_live, write_live
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.systems.base import load_system
from chainmark.systems.capabilities import launchable, versioned

__all__ = ["bisect"]

MOST_IN_ALL = 120
_LENGTH = ExperimentLength(most=MOST_RUNS, stops_early=True)


def bisect(
    profile: str | Path | None = None,
    *,
    good: str | None = None,
    bad: str | None = None,
    repo: Path | str | None = None,
    metric: str | None = None,
    most_runs: int | None = None,
    resume: str | None = None,
    settings: Settings | None = None,
    margins: Margins | Sequence[str] | None = None,
    seed: int = 1,
    keep_homes: bool = False,
    on: str | None = None,
    expose: str | None = None,
    no_wait: bool = False,
    store: Store | Path | str | None = None,
    progress: Progress | None = None,
    cancel: Cancellation | None = None,
) -> Document:
    """Find the first commit, or published version, that changes the verdict; at most 5 % of searches are wrong.

    First, alternating runs of both ends establish the change. Then the revision that bisects the remaining candidates
    is measured, next to fresh runs of the ends, until its side is known; a revision that turns out doubtful is measured
    again. At the end the two revisions around the result run once more with profiles, if the system supports them.

    Args:
        profile: a shipped profile's name, or the path of a TOML file; None to resume.
        good, bad: two versions, or two commits of ``repo``, the good one before the bad one.
        repo: a checkout of a git repository; None: search the published versions of the system.
        metric: the metric to track, or one of its statistics (``METRIC.p99``); it may also be better on the bad side.
            None: the bad side must fail, and the gating metric that is most clearly worse is tracked.
        most_runs: number of runs after which the search ends; None: 120, or as ordered.
        resume: an interrupted search to continue.
        settings: changes of the profile.
        margins: by metric id, the relative change to accept instead of the catalogue's.
        seed, keep_homes, on, expose, no_wait, store, progress, cancel: as in `run`.

    Raises:
        UsageError: the profile, a setting, a version, the repository or the metric cannot be used.
        InvalidRunError: the measurement failed repeatedly.
        EnvironmentFailure: the machine or a node did not do what the runs need.

    Example:
        >>> small = {"load.warm_up_s": 2, "load.duration_s": 8}
        >>> document = cm.bisect(
        ...     "cometbft/demo", good="v0.38.17", bad="v1.0.1", metric="node_goroutines", most_runs=4, settings=small
        ... )
        >>> document.kind, document.result.revisions[0].label
        ('bisect', 'v0.38.17')
    """
    run_store = store_at(store)
    with measuring(progress, cancel, expose, no_wait) as listener:
        if resume is not None:
            refuse_with_resume(
                resume, {"--good": good, "--bad": bad, "--repo": repo, "--metric": metric, "--set": settings}
            )
            bisection = _resumed(resume, most_runs, run_store, listener)
        else:
            if profile is None or good is None or bad is None:
                raise UsageError(
                    "a search requires a profile, a good version and a bad version",
                    "for example `--good v0.38.17 --bad v1.0.1`; or continue a search: `--resume ID`",
                )
            system, resolved = resolve_launchable(profile, settings)
            line = _line(system, good, bad, None if repo is None else Path(repo))
            order = BisectRequest(
                repo=None if repo is None else str(Path(repo).resolve()),
                metric=metric,
                most_runs=most_runs or MOST_IN_ALL,
                margins=dict(as_margins(margins)),
                seed=seed,
                keep_homes=keep_homes,
            )
            _check_metrics(system, order)
            bisection = Bisector(run_store, system).begin(resolved, line, order, listener)
        system = bisection.series.lab.system
        requested = requested_cluster(on, profile, settings)
        with machines_for_nodes(system, requested, listener, bisection.folder) as machines:
            bisection.series = bisection.series.on(machines)
            return document_of(_Search(bisection, run_store, listener).report())


def _line(system: LaunchableSystem, good: str, bad: str, repo: Path | None) -> RevisionLine:
    if repo is not None:
        return commits_between(repo, good, bad)
    return versions_between(system.title, versioned(system).published_versions((good, bad)), good, bad)


def _check_metrics(system: LaunchableSystem, order: BisectRequest) -> None:
    """Reject a metric that no run has before anything is run."""
    catalogue = system.catalogue()
    catalogue.with_margins(order.margins)
    metric_ids = {metric.id for metric in catalogue.metrics}
    if order.metric is not None and order.metric.partition(".")[0] not in metric_ids:
        raise UsageError(
            f"`{order.metric}` is not a metric of {system.title}", f"`chainmark metrics {system.name}` lists them"
        )


def _resumed(reference: str, most_runs: int | None, store: Store, listener: Relay) -> Bisection:
    folder, record = read_search(store, reference)
    record.order.most_runs = most_runs or record.order.most_runs
    return Bisector(store, launchable(load_system(record.system))).resume(folder, record, listener)


@dataclass(frozen=True)
class _Search:
    """One session of a search; its folder shows the path so far."""

    made: Bisection
    store: Store
    listener: Relay
    path: list[LiveStep] = field(default_factory=list)

    def report(self) -> BisectReport:
        """Make the missing runs and return the result."""
        made = self.made
        self._check_ends()
        with machine_to_itself(self.listener), made.folder.locked(), resumable(made, self.listener):
            made.visit(made.last)
            try:
                return self._searched()
            finally:
                remove_live(made.folder.path)

    def _show(self, place: int, followed: SearchTarget | None = None) -> None:
        """Report the path so far, and the revision that is measured now."""
        made = self.made
        revisions = made.record.revisions
        live = LiveSearch(
            experiment=made.id, pid=os.getpid(), good=revisions[GOOD].title, bad=revisions[made.last].title,
            revisions=len(revisions), most_runs=made.record.order.most_runs, followed=followed.name if followed else "",
            trying=revisions[place].title, runs=len(made.runs), left=self.path[-1].left if self.path else made.last,
            steps=self.path, updated_at=utc_now(),
        )  # fmt: skip
        write_live(made.folder.path, live)

    def _check_ends(self) -> None:
        made = self.made
        for place in (GOOD, made.last):
            made.prepare(place)
        if (GOOD, made.last) in made.equal:
            names = [made.record.revisions[place].label for place in (GOOD, made.last)]
            raise UsageError(f"{names[0]} and {names[1]} give identical binaries", "there is no change to search for")

    def _searched(self) -> BisectReport:
        made, margins = self.made, self.made.record.order.margins
        decided = self._ends()
        ends = pair_comparison(*self._first_runs(), self.store, How(accepted=Accepted(margins)))
        followed = followed_of(decided, made.record.order.metric)
        if followed is None:
            way = Way.NO_CHANGE if self._is_unchanged(decided) else Way.UNCLEAR
            return bisect_report(Searched(made, ends, way), tool_version())
        self.listener.tell(f"the change is established; searching by {followed.name}")
        archive = archived(made, followed, self._elsewhere())
        known = self._narrowed(followed, archive)
        answer = known.row.answer(known.chances)
        way = Way.UNDECIDED if answer is None else Way.FOUND if answer.at - answer.before == 1 else Way.RANGE
        result = Searched(made, ends, way, known, steps_of(made, followed, archive))
        if answer is not None:
            across = self._across(answer.before, answer.at, followed)
            result = replace(result, step_across=across, stat=self._stat(answer.at, way))
        return bisect_report(result, tool_version())

    def _elsewhere(self) -> list[SealedRun]:
        """Archived runs that may show the noise, without those of this search."""
        runs = self.store.alike(self.made.runs.values())
        return [run for run in runs if run.manifest.experiment is None or run.manifest.experiment.id != self.made.id]

    def _first_runs(self) -> tuple[list[SealedRun], list[SealedRun]]:
        return self.made.of(GOOD, 0), self.made.of(self.made.last, 0)

    def _ends(self) -> Decided:
        """Run both ends in turn until it is decided whether there is a change to search for."""
        made = self.made
        while True:
            counts = [sum(run.manifest.is_evidence for run in side) for side in self._first_runs()]
            if min(counts) >= FIRST_LOOK:
                decided = decide(*self._first_runs(), self._elsewhere(), margins=made.record.order.margins)
                is_last = len(made.record.visits) > 1 or len(made.runs) >= min(
                    made.record.order.most_runs, 2 * MOST_RUNS
                )
                if is_last or self._is_settled(decided):
                    return decided
            for place, count in forth_and_back(list(zip((GOOD, made.last), counts, strict=True)), min(counts)):
                if count == min(counts):
                    self._show(place)
                    made.make(place, _LENGTH)

    def _is_settled(self, decided: Decided) -> bool:
        """Whether the ends need no more runs; reports what is undecided."""
        metric = self.made.record.order.metric
        if metric is None:
            return is_over(decided, MOST_RUNS, self.listener)
        judgement = judgement_of(decided, metric)
        if failed_gates(decided.gates) or differs(judgement) or is_equal(judgement):
            return True
        self.listener.tell(f"it is still undecided whether {metric} differs between the ends")
        return False

    def _is_unchanged(self, decided: Decided) -> bool:
        metric = self.made.record.order.metric
        return decided.finding.verdict is Verdict.PASS if metric is None else is_equal(judgement_of(decided, metric))

    def _narrowed(self, followed: SearchTarget, archive: Spread | None) -> Known:
        """Measure the revision that halves the probability until the result is certain, or no more runs are allowed."""
        made = self.made
        for step in steps_of(made, followed, archive):
            if step.chance is not None:
                self._step(step.place, step.outcome, step.chance, step.left, step.pairs)
        while True:
            known = Known.of(made, followed, archive)
            place = known.turn()
            if place is None or len(made.runs) >= made.record.order.most_runs:
                return known
            equal = made.equal
            self._show(place, followed)
            if not made.prepare(place):
                self._report_skipped(place)
            elif made.equal == equal:
                self._pair(known, place)

    def _pair(self, known: Known, place: int) -> None:
        made = self.made
        made.visit(place)
        turn = len(made.of(place, len(made.record.visits) - 1))
        for item in pair_of(place, known.seen.places.tolist(), made.last, turn):
            self._show(item, known.followed)
            run = made.make(item)
            if item == place and (reason := self._says_nothing(known.followed, run, place)):
                made.skip(place, reason)
                self._report_skipped(place)
                return
        self._report_step(Known.of(made, known.followed, known.row.archive), place)

    def _says_nothing(self, followed: SearchTarget, run: SealedRun, place: int) -> str:
        """Why a revision cannot be measured, according to its runs; "" if it can."""
        if followed.metric is None or followed.value(run) is not None:
            return ""
        if run.manifest.status is Status.VALID:
            return f"its run has no {followed.name}"
        return self.made.fails_again(place)

    def _report_skipped(self, place: int) -> None:
        made = self.made
        self.listener.tell(f"{made.record.revisions[place].title} is skipped: {made.record.skipped[place]}")

    def _report_step(self, known: Known, place: int) -> None:
        """Report the step, the state of the decision, and the expected number of further runs."""
        made, likely = self.made, known.row.likely(known.chances)
        pairs = len(made.of(place, len(made.record.visits) - 1))
        self._step(place, known.side_of(place), known.chance_at(place), likely.at - likely.before, pairs)
        left = runs_left(known.row, known.seen, place, made.record.order.most_runs)
        chance = units.chance(known.chance_at(place))
        self.listener.tell(
            f"step {len(made.record.visits) - 1} · {made.record.revisions[place].title}: it contains the change "
            f"with a probability of {chance}; {units.plural(likely.at - likely.before, 'revision')} remaining, about "
            f"{units.plural(left, 'more run')}"
        )

    def _step(self, place: int, outcome: SideState, chance: float, left: int, pairs: int) -> None:
        """Report the state of a revision; further messages about the same revision replace the last one."""
        if self.path and self.path[-1].place == place:
            self.path.pop()
        title = self.made.record.revisions[place].title
        step = LiveStep(place=place, revision=title, outcome=outcome, chance=chance, left=left, pairs=pairs)
        self.path.append(step)

    def _across(self, before: int, at: int, followed: SearchTarget) -> Comparison | None:
        """The comparison of the two revisions around the result, with their profiles unless failures were searched."""
        made = self.made
        sides = [made.of(place) for place in (before, at)]
        if not all(sides):
            return None
        kinds = kinds_by_default(made.series.lab.system) if followed.metric else ()
        if kinds:
            take_profiles(partial(made.take_profiles, (before, at), kinds), self.listener)
        how = How(accepted=Accepted(made.record.order.margins), why=bool(kinds))
        return pair_comparison(sides[0], sides[1], self.store, how)

    def _stat(self, at: int, way: Way) -> list[str]:
        repo, commit = self.made.record.order.repo, self.made.record.revisions[at].commit
        return diffstat(Path(repo), commit) if repo and commit and way is Way.FOUND else []
