"""The search for the highest level that meets the SLA.

The next measurement follows from the previous ones alone, so a search can be resumed from the steps of an interrupted
one. No clock, no input, no output.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from chainmark.capacity.course import Course
from chainmark.capacity.model import ConditionResult, Gone, LoadLevel, Phase, Step, StepCondition, StepOutcome
from chainmark.capacity.plan import SearchPlan
from chainmark.capacity.sla import share_interval

# Repetitions of a step whose processes waited for others.
REPETITIONS = 2


@dataclass(frozen=True)
class Ask:
    """A step to run.

    Attributes:
        extended: longer than usual, because a step of usual length was inconclusive here.
        course: how the load changes; ``level`` is its maximum.
    """

    level: LoadLevel
    phase: Phase
    extended: bool = False
    course: Course | None = None


class Interrupted(Exception):  # noqa: N818 - somebody ended it; nothing went wrong
    """A step ended early: its observer stopped it, or the server or a generator went away.

    Args:
        step: its results until then, if there are any.
        gone: the server or the generator, if that was the reason.
    """

    def __init__(self, step: Step | None = None, gone: Gone | None = None) -> None:
        super().__init__("the step was interrupted")
        self.step = step
        self.gone = gone


class StoppedBy(StrEnum):
    """Why the capacity is not higher, or not known more precisely."""

    P99 = "p99"
    P95 = "p95"
    ERRORS = "errors"
    ACHIEVED = "achieved"
    LADDER_END = "ladder end"
    GENERATOR = "generator-limited"
    WAITED = "waited"
    FIRST_STEP = "first step"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    GONE = "server gone"
    GENERATOR_GONE = "generator gone"


CUT_SHORT = frozenset({StoppedBy.INTERRUPTED, StoppedBy.GONE, StoppedBy.GENERATOR_GONE})


class CapacityFinding(StrEnum):
    """How reliable a result is."""

    FOUND = "found"
    LOWER_BOUND = "lower bound"
    NOTHING_PASSED = "nothing passed"
    NOT_CONFIRMED = "not confirmed"
    UNSETTLED = "unsettled"


@dataclass(frozen=True)
class Confirmation:
    """All measurements that decided about one level.

    Attributes:
        outcomes: one each, in order; those inconclusive even when extended count as their point estimates show.
        shown: how many of them are beyond their interval, not only by the point estimate.
        slower: requests slower than the p99 limit, in all measurements together.
        n: requests due, together.
        low: the 95 % interval of that share, as wide as clusters of slow requests make it.
        high: likewise.
    """

    level: LoadLevel
    outcomes: tuple[StepOutcome, ...]
    shown: int
    slower: int
    n: int
    low: float
    high: float

    @property
    def agree(self) -> bool:
        """Whether all have the same outcome."""
        return len(set(self.outcomes)) == 1

    @property
    def passed(self) -> int:
        """How many of them passed."""
        return self.outcomes.count(StepOutcome.PASS)


@dataclass(frozen=True)
class Contested:
    """A capacity that most measurements confirm and some contradict, with the level that none contradicts.

    Attributes:
        at: the measurements at the capacity.
        capacity: the next lower level at which all measurements passed; 0 if there is none.
        best_pass: the median step at that level.
    """

    at: Confirmation
    capacity: float
    best_pass: Step | None


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    Attributes:
        best_pass: the median step (by p99) of those that passed at the capacity.
        first_fail: the median step of those that did not pass at the level above, or at the lowest level.
        stopped_by: why it ends there.
        condition: the condition that the first fail missed, whatever ended the search.
        capacity: clients, or requests per second; 0 if the lowest level failed, None if nothing was decided.
        contested: set if the measurements at the capacity disagree.
        gone: the server, if that ended the search.
        low: every measurement up to this level passed clearly; 0 if none did.
        high: every measurement from this level on failed clearly; None if none did.
        steps: all measured steps, in order.
        confirmations: of the best pass and of the first fail, if they exist.
        confirmed: both were measured as often as planned, and all measurements of each agree.
    """

    best_pass: Step | None
    first_fail: Step | None
    stopped_by: StoppedBy
    condition: StepCondition | None
    finding: CapacityFinding
    capacity: float | None
    low: float
    high: float | None
    steps: tuple[Step, ...]
    confirmations: tuple[Confirmation, ...]
    confirmed: bool
    contested: Contested | None = None
    gone: Gone | None = None


Measure = Callable[[Ask], Step]


def search(measure: Measure, plan: SearchPlan, done: Iterable[Step] = ()) -> SearchResult:
    """Search for the capacity.

    Args:
        measure: runs and judges one step; raises `Interrupted` to end the search.
        plan: the levels, the gap, the budget.
        done: steps of the same search before an interruption, in order.
    """
    steps = list(done)
    while len(steps) < plan.budget_steps:
        ask = next_ask(steps, plan)
        if ask is None:
            return answer(steps, plan)
        try:
            steps.append(measure(ask))
        except Interrupted as interrupted:
            measured = [*steps, interrupted.step] if interrupted.step else steps
            return replace(answer(measured, plan, _ended_by(interrupted)), gone=interrupted.gone)
    stopped = None if next_ask(steps, plan) is None else StoppedBy.BUDGET
    return answer(steps, plan, stopped)


def _ended_by(interrupted: Interrupted) -> StoppedBy:
    if interrupted.gone is None:
        return StoppedBy.INTERRUPTED
    return StoppedBy.GENERATOR_GONE if interrupted.gone.generator else StoppedBy.GONE


def next_ask(steps: Sequence[Step], plan: SearchPlan) -> Ask | None:
    """The next measurement after these steps; None when the search is complete."""
    complete = [step for step in steps if not step.partial]
    deciding = _deciding(complete)
    if complete and (not deciding or deciding[-1] is not complete[-1]):
        last = complete[-1]
        return Ask(last.level, last.phase, extended=last.extended or not last.waited)
    if deciding and deciding[-1].waited:
        # The machine is busy: nothing can be learnt about the server now.
        return None
    decisions = _Votes(complete)
    next_level = _next_level(decisions, plan)
    if next_level is None:
        return None
    level, phase = next_level
    return Ask(level, phase, extended=decisions.needed_length(level))


def _next_level(votes: _Votes, plan: SearchPlan) -> tuple[LoadLevel, Phase] | None:
    best, worst = votes.bracket()
    if best is None and worst is None:
        return plan.start(), Phase.PROBE
    if worst is None and best is not None:
        further = plan.above(best)
    elif best is None and worst is not None:
        further = plan.below(worst)
    else:
        further = None
    if further is not None:
        return further, Phase.PROBE
    middle = plan.between(best, worst) if best is not None and worst is not None else None
    if middle is not None:
        return middle, Phase.BISECT
    # Interleaved, so that a change of the server during the measurement affects both levels.
    open_ends = [level for level in (best, worst) if level is not None and votes.count(level) < plan.times]
    if open_ends:
        return min(open_ends, key=votes.count), Phase.CONFIRM
    required = plan.required_level()
    if required is not None and votes.leave_open(required):
        return required, Phase.CONFIRM
    # If the first level fails, but not clearly, no measurement bounds the interval above. A ladder ends at its fail.
    higher = plan.above(worst) if worst is not None and not plan.ladder and votes.leave_end_open(worst) else None
    return (higher, Phase.PROBE) if higher is not None else None


def _deciding(steps: Iterable[Step]) -> list[Step]:
    """The deciding steps. One whose processes waited decides only after the permitted number of repetitions."""
    result = []
    repeated: list[Step] = []
    for step in steps:
        if not step.waited:
            repeated = []
            result += [step] if _decides(step) else []
            continue
        repeated = [*(item for item in repeated if item.level == step.level), step]
        result += [step] if len(repeated) > REPETITIONS else []
    return result


def _decides(step: Step) -> bool:
    """A step that showed nothing about the server decides only after it was repeated, by its point estimates.

    The generator's limit does not decide at once, either: the machine may have been busy for a moment.
    """
    return not step.partial and (step.extended or step.outcome in {StepOutcome.PASS, StepOutcome.FAIL})


def _says_nothing(step: Step) -> bool:
    """Whether it has too few responses, and none that violates the SLA."""
    samples = step.condition(StepCondition.SAMPLES)
    few = samples is not None and samples.outcome is StepOutcome.INCONCLUSIVE
    return few and step.outcome is StepOutcome.INCONCLUSIVE and step.point_outcome is StepOutcome.PASS


class _Votes:
    """The decisions of the steps, by level."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.by_level: dict[LoadLevel, list[Step]] = defaultdict(list)
        for step in _deciding(steps):
            # A measurement that had to wait does not override one that had not.
            if not (step.waited and self.by_level[step.level]):
                self.by_level[step.level].append(step)

    def count(self, level: LoadLevel) -> int:
        """The measurements that decided about a level."""
        return len(self.by_level[level])

    def needed_length(self, level: LoadLevel) -> bool:
        """Whether its steps are inconclusive unless extended."""
        return any(step.extended for step in self.by_level[level])

    def passes(self, level: LoadLevel) -> bool:
        """The outcome of most measurements; that of the first while they are balanced."""
        passed = [step.point_outcome is StepOutcome.PASS for step in self.by_level[level]]
        return passed[0] if passed.count(True) * 2 == len(passed) else passed.count(True) * 2 > len(passed)

    def bracket(self) -> tuple[LoadLevel | None, LoadLevel | None]:
        """The lowest level that does not pass, and the highest below it that does."""
        worst = min((level for level in self.by_level if not self.passes(level)), default=None)
        below = (level for level in self.by_level if worst is None or level < worst)
        return max(below, default=None), worst

    def contested(self, level: LoadLevel) -> Contested | None:
        """The remaining capacity if the measurements of this level, which mostly passed, disagree."""
        at = self.confirmation(level)
        if at.agree:
            return None
        lower = [load_level for load_level in self.by_level if load_level < level]
        agreed = max(
            (load_level for load_level in lower if self.confirmation(load_level).passed == self.count(load_level)),
            default=None,
        )
        return Contested(at, agreed.value, self.median(agreed)) if agreed else Contested(at, 0.0, None)

    def clear(self) -> tuple[float, float | None]:
        """The ends of the interval: up to the first all passed clearly, from the second on all failed clearly.

        A level with too few responses to decide leaves no gap among those that passed.
        """
        levels = sorted(level for level in self.by_level if not all(map(_says_nothing, self.by_level[level])))
        low: float = 0.0
        for level in levels:
            if any(step.outcome is not StepOutcome.PASS for step in self.by_level[level]):
                break
            low = level.value
        high: float | None = None
        for level in reversed(levels):
            if any(step.outcome is not StepOutcome.FAIL for step in self.by_level[level]):
                break
            high = level.value
        return low, high

    def leave_open(self, level: LoadLevel) -> bool:
        """Whether a level was not measured, and the others do not clearly show its outcome."""
        low, high = self.clear()
        return level not in self.by_level and low < level.value and (high is None or level.value < high)

    def leave_end_open(self, worst: LoadLevel) -> bool:
        """Whether the highest measured level does not pass, and not clearly, because of the server."""
        outcomes = [step.outcome for step in self.by_level[worst]]
        unclear = StepOutcome.INCONCLUSIVE in outcomes and StepOutcome.GENERATOR_LIMITED not in outcomes
        return worst == max(self.by_level) and unclear

    def median(self, level: LoadLevel) -> Step:
        """Of the measurements with the level's outcome, the median by p99 (of two the later)."""
        passes = self.passes(level)
        agreeing = [step for step in self.by_level[level] if (step.point_outcome is StepOutcome.PASS) == passes]
        ordered = sorted(agreeing, key=lambda step: step.result.latency_all.p99_s or 0.0)
        return ordered[len(ordered) // 2]

    def confirmation(self, level: LoadLevel) -> Confirmation:
        """All of a level's measurements together."""
        steps = self.by_level[level]
        p99s = [limit for step in steps if (limit := step.condition(StepCondition.P99)) is not None]
        slower = sum(limit.count or 0 for limit in p99s)
        n = sum(limit.n or 0 for limit in p99s)
        low, high = share_interval(slower, n, _mean_effect(p99s))
        shown = sum(step.outcome is not StepOutcome.INCONCLUSIVE for step in steps)
        return Confirmation(level, tuple(step.point_outcome for step in steps), shown, slower, n, low, high)


def _mean_effect(conditions: Sequence[ConditionResult]) -> float:
    """The design effect of several measurements together: that of each by its requests."""
    requests = sum(condition.n or 0 for condition in conditions)
    return sum((condition.n or 0) * condition.effect for condition in conditions) / requests if requests else 1.0


def answer(steps: Sequence[Step], plan: SearchPlan, ended_by: StoppedBy | None = None) -> SearchResult:
    """The result of these steps, finished or not.

    Args:
        steps: in order.
        plan: their plan.
        ended_by: why the search ended early, if it did.
    """
    decisions = _Votes(steps)
    best, worst = decisions.bracket()
    first_fail = decisions.median(worst) if worst is not None else None
    stopped_by = ended_by or _stopped_by(best, first_fail)
    low, high = decisions.clear()
    confirmations = tuple(decisions.confirmation(level) for level in (best, worst) if level is not None)
    best_pass = decisions.median(best) if best is not None else None
    contested = decisions.contested(best) if best is not None else None
    if best is not None:
        capacity: float | None = best.value
    else:
        capacity = 0.0 if stopped_by in {StoppedBy.FIRST_STEP, StoppedBy.GENERATOR} else None
    finding = _finding(stopped_by, best_pass)
    settled = finding in {CapacityFinding.FOUND, CapacityFinding.LOWER_BOUND}
    return SearchResult(
        best_pass=best_pass,
        first_fail=first_fail,
        stopped_by=stopped_by,
        condition=first_fail.reason if first_fail else None,
        finding=CapacityFinding.NOT_CONFIRMED if contested and settled else finding,
        capacity=capacity,
        low=low,
        high=high,
        steps=tuple(steps),
        confirmations=confirmations,
        confirmed=bool(confirmations)
        and all(confirmation.agree and len(confirmation.outcomes) >= plan.times for confirmation in confirmations),
        contested=contested,
    )


def _stopped_by(best: LoadLevel | None, first_fail: Step | None) -> StoppedBy:
    if first_fail is None:
        return StoppedBy.LADDER_END
    if first_fail.point_outcome is StepOutcome.GENERATOR_LIMITED:
        return StoppedBy.WAITED if first_fail.waited else StoppedBy.GENERATOR
    if best is None or first_fail.reason is None:
        return StoppedBy.FIRST_STEP
    return StoppedBy(first_fail.reason.value)


def _finding(stopped_by: StoppedBy, best_pass: Step | None) -> CapacityFinding:
    samples = best_pass.condition(StepCondition.SAMPLES) if best_pass else None
    if stopped_by in {StoppedBy.BUDGET, *CUT_SHORT} or (samples and samples.outcome is not StepOutcome.PASS):
        return CapacityFinding.UNSETTLED
    if stopped_by in {StoppedBy.LADDER_END, StoppedBy.GENERATOR, StoppedBy.WAITED}:
        return CapacityFinding.LOWER_BOUND
    return CapacityFinding.NOTHING_PASSED if stopped_by is StoppedBy.FIRST_STEP else CapacityFinding.FOUND
