"""A load test: every endpoint of one or more servers searched, then measured at the same levels on all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial

from chainmark.capacity.course import Course
from chainmark.capacity.fixed import fixed_asks, fixed_levels
from chainmark.capacity.model import Endpoint, Gone, LevelKind, LoadLevel, Step, Target
from chainmark.capacity.plan import SearchPlan
from chainmark.capacity.recovering import CourseStep
from chainmark.capacity.recovery import HealthProbes, Recovery
from chainmark.capacity.search import CUT_SHORT, REPETITIONS, Ask, Interrupted, SearchResult, search
from chainmark.capacity.service_level import Sla
from chainmark.capacity.step import StepRunner, StepSettings
from chainmark.capacity.witness import Watching
from chainmark.core import units
from chainmark.core.progress import LiveSource, Progress, Silent, begin_step, live_figures, tell
from chainmark.network.server_series import Watched


@dataclass(frozen=True)
class TargetServer:
    """A target with its endpoints."""

    target: Target
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True)
class FixedPlan:
    """The levels at which all servers are measured alike.

    Attributes:
        shares: of the least capacity found, if no levels are given.
        levels: given levels by the endpoint's id.
        times: number of runs per level; 0: none.
        duration_s: length of each step's window.
    """

    shares: tuple[float, ...] = (0.5, 0.8)
    levels: Mapping[str, tuple[LoadLevel, ...]] = field(default_factory=dict)
    times: int = 3
    duration_s: float = 10.0


@dataclass(frozen=True)
class LoadPlan:
    """What is measured at each endpoint.

    Attributes:
        endpoint_sla: the SLA by the endpoint's id.
        searches: capacities to search for; may be empty.
        courses: by the endpoint's id, loads that change while they run.
        required: capacities to decide about, by "endpoint.kind".
    """

    endpoint_sla: Callable[[str], Sla]
    searches: tuple[SearchPlan, ...]
    settings: StepSettings
    fixed: FixedPlan = FixedPlan()
    courses: Mapping[str, tuple[Course, ...]] = field(default_factory=dict)
    required: Mapping[str, float] = field(default_factory=dict)


@dataclass
class EndpointResult:
    """The results of one endpoint of one server. ``looks``: requests between its steps, which no figure includes."""

    endpoint: Endpoint
    sla: Sla
    answers: dict[LevelKind, SearchResult] = field(default_factory=dict)
    fixed: list[Step] = field(default_factory=list)
    courses: list[CourseStep] = field(default_factory=list)
    looks: HealthProbes = field(default_factory=HealthProbes)

    def steps(self) -> list[Step]:
        """All steps, in order of execution."""
        return self.level_steps() + [course.step for course in self.courses]

    def level_steps(self) -> list[Step]:
        """The steps of the searches, at one level each; they come first."""
        return [step for answer in self.answers.values() for step in answer.steps] + self.fixed


@dataclass
class ServerResult:
    """The results of one server by endpoint, and what was read from it meanwhile."""

    server: TargetServer
    endpoint_results: list[EndpointResult] = field(default_factory=list)
    watched: Watched = field(default_factory=Watched)


@dataclass
class LoadTestResult:
    """The results of all servers.

    Attributes:
        interrupted: it ended early, and the results are incomplete.
        gone: the server that went away, if that ended the test.
    """

    servers: list[ServerResult]
    interrupted: bool = False
    gone: Gone | None = None


Watch = Callable[[str], Watching]
MakeRunner = Callable[[Target, Endpoint, Sla, StepSettings, Progress], StepRunner]


def run_load_test(
    servers: Sequence[TargetServer],
    plan: LoadPlan,
    progress: Progress | None = None,
    make_runner: MakeRunner = StepRunner,
    watching: Watch | None = None,
) -> LoadTestResult:
    """Measure every endpoint of every server. Ctrl-C, or a server that goes away, ends it with the results so far.

    The servers take turns from endpoint to endpoint, and from step to step at fixed levels, so that a machine that
    slows down affects all of them.

    Args:
        servers: with their endpoints.
        plan: what is measured.
        progress: receives the progress.
        make_runner: creates the runner of the steps.
        watching: creates a watcher of the machine during a step, from the server's URL; None: no watcher.

    Raises:
        UsageError, EnvironmentFailure: a step could not be run.
    """
    result = LoadTestResult([ServerResult(server) for server in servers])
    endpoints = {endpoint.id: endpoint for server in servers for endpoint in server.endpoints}
    listener = _Whole(progress or Silent(), len(endpoints))
    recovery = Recovery()
    for number, endpoint_id in enumerate(endpoints):
        listener.begin(number)
        test = _EndpointTest(endpoint_id, result, plan, listener, _sharing(recovery, make_runner, watching))
        try:
            test.run()
        except Interrupted as interrupted:
            result.interrupted, result.gone = True, interrupted.gone
        except KeyboardInterrupt:
            result.interrupted = True
        if result.interrupted:
            break
    return result


def _sharing(recovery: Recovery, make_runner: MakeRunner, watching: Watch | None) -> MakeRunner:
    """Create runners that wait for the recovery from the previous one's load, and that are watched."""

    def make(target: Target, endpoint: Endpoint, sla: Sla, settings: StepSettings, progress: Progress) -> StepRunner:
        runner = make_runner(target, endpoint, sla, settings, progress)
        return replace(runner, recovery=recovery, watching=partial(watching, target.url) if watching else None)

    return make


def _in_words(answer: SearchResult, kind: LevelKind) -> str:
    """What a search found, for progress messages."""
    if answer.capacity is None:
        result = f"nothing was decided ({kind})"
    else:
        result = str(LoadLevel(kind, answer.capacity)) if answer.capacity else f"no level passed ({kind})"
    return f"{result}, stopped by {answer.stopped_by}, {units.plural(len(answer.steps), 'step')}"


def _measure_unhindered(runner: StepRunner, ask: Ask, steps: list[Step]) -> None:
    """Measure a fixed level; repeat it, up to a limit, where other processes had the processors."""
    for _ in range(1 + REPETITIONS):
        steps.append(runner.measure(ask))
        if not steps[-1].waited:
            return


@dataclass
class _Whole:
    """Reports the progress of the whole test, of which the endpoints are parts."""

    progress: Progress
    endpoints: int
    done: int = 0

    def begin(self, number: int) -> None:
        self.done = number

    def stage(self, name: str) -> None:
        self.progress.stage(f"{self.done + 1}/{self.endpoints} {name}")

    def step(self, name: str) -> None:
        begin_step(self.progress, f"{self.done + 1}/{self.endpoints} {name}")

    def tell(self, text: str) -> None:
        tell(self.progress, f"{self.done + 1}/{self.endpoints} {text}")

    def update(self, fraction: float, detail: str = "") -> None:
        self.progress.update(fraction, detail)

    def live(self, source: LiveSource) -> AbstractContextManager[None]:
        return live_figures(self.progress, source)


class _EndpointTest:
    """One endpoint on all servers that have it."""

    def __init__(
        self, endpoint_id: str, result: LoadTestResult, plan: LoadPlan, progress: Progress, make_runner: MakeRunner
    ) -> None:
        self.plan = plan
        self.progress = progress
        self.make_runner = make_runner
        self.parts: list[tuple[Target, EndpointResult]] = []
        for server in result.servers:
            endpoint = next((each for each in server.server.endpoints if each.id == endpoint_id), None)
            if endpoint is not None:
                endpoint_result = EndpointResult(endpoint, plan.endpoint_sla(endpoint_id))
                server.endpoint_results.append(endpoint_result)
                self.parts.append((server.server.target, endpoint_result))

    def run(self) -> None:
        """Measure it.

        Raises:
            Interrupted: it ended early; the results so far contain what was measured.
        """
        for search_plan in self.plan.searches:
            for target, part in self.parts:
                runner = self._runner(target, part)
                required = self.plan.required.get(f"{part.endpoint.id}.{search_plan.kind.value}")
                answer = search(runner.measure, replace(runner.fitted(search_plan), required=required))
                part.answers[search_plan.kind] = answer
                tell(self.progress, f"{part.endpoint.label}: {_in_words(answer, search_plan.kind)}")
                if answer.stopped_by in CUT_SHORT:
                    raise Interrupted(gone=answer.gone)
        self._fixed()
        for course in self.plan.courses.get(self.parts[0][1].endpoint.id, ()):
            self._course(course)

    def _course(self, course: Course) -> None:
        """The servers take turns, as at fixed levels; each starts with a runner that has seen no other load."""
        ask = Ask(course.peak, course.phase, course=course)
        runners = [(self._runner(target, part), part) for target, part in self.parts]
        for turn in range(course.times):
            for runner, result in runners if turn % 2 == 0 else runners[::-1]:
                steps: list[Step] = []
                try:
                    _measure_unhindered(runner, ask, steps)
                except Interrupted as interrupted:
                    steps += [interrupted.step] if interrupted.step else []
                    raise
                finally:
                    result.courses += [CourseStep(course, step) for step in steps]

    def _runner(
        self, target: Target, endpoint_result: EndpointResult, settings: StepSettings | None = None
    ) -> StepRunner:
        settings = settings or self.plan.settings
        runner = self.make_runner(target, endpoint_result.endpoint, endpoint_result.sla, settings, self.progress)
        return replace(runner, looks=endpoint_result.looks)

    def _fixed(self) -> None:
        settings = replace(self.plan.settings, duration_s=self.plan.fixed.duration_s)
        runners = [(self._runner(target, part, settings), part) for target, part in self.parts]
        for turn, ask in enumerate(fixed_asks(self._levels(), self.plan.fixed.times)):
            for runner, result in runners if turn % 2 == 0 else runners[::-1]:
                try:
                    _measure_unhindered(runner, ask, result.fixed)
                except Interrupted as interrupted:
                    result.fixed += [interrupted.step] if interrupted.step else []
                    raise

    def _levels(self) -> tuple[LoadLevel, ...]:
        """The given levels, or else shares of the least capacity, in requests per second if that was searched for."""
        endpoint_id = self.parts[0][1].endpoint.id
        if endpoint_id in self.plan.fixed.levels:
            return self.plan.fixed.levels[endpoint_id]
        for kind in (LevelKind.RATE, LevelKind.CLIENTS):
            answers = [part.answers.get(kind) for _, part in self.parts]
            capacities = [answer.capacity for answer in answers if answer and answer.capacity]
            if capacities and len(capacities) == len(self.parts):
                return fixed_levels(kind, capacities, self.plan.fixed.shares)
        return ()
