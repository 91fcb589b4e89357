"""Whether servers meet their SLAs: one ruling per capacity, and the verdict that gates a pipeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from chainmark.capacity.search import CUT_SHORT
from chainmark.core import units
from chainmark.core.load_report import (
    CapacityEntry,
    CourseEntry,
    DriftEntry,
    EndpointEntry,
    Kind,
    LoadReport,
    StepEntry,
    TargetEntry,
)
from chainmark.core.verdict import Verdict, worst
from chainmark.core.wording import enumerated

MOST_REASONS = 50


@dataclass(frozen=True)
class Ruling:
    """The ruling on one capacity of one endpoint of one server.

    Attributes:
        number: the server's index in the document, from 0.
        endpoint: its id; label: its name in reports.
        kind: None if no capacity was searched for, or if the fixed levels are judged in addition to a search.
        required: required clients or requests per second; None: its lowest level must pass.
        reason: a clause without the endpoint's name.
        gates: whether it counts for the whole. If some capacities are required, the others do not count.
        is_of_levels: it is about the fixed levels, in addition to those about the endpoint's capacities.
        is_of_drift: of these, whether it is about the drift of a long step.
        course: the ramp or the spike that it is about.
    """

    number: int
    target: str
    endpoint: str
    label: str
    kind: Kind | None
    required: float | None
    verdict: Verdict
    reason: str
    gates: bool = True
    is_of_levels: bool = False
    is_of_drift: bool = False
    course: str = ""

    @property
    def name(self) -> str:
        """The endpoint and the kind of load: "/block (clients)"."""
        if self.course:
            return f"{self.label} ({self.course})"
        if self.is_of_drift:
            return f"{self.label} (drift)"
        if self.is_of_levels:
            return f"{self.label} (fixed levels)"
        return f"{self.label} ({self.kind})" if self.kind else self.label


def level_text(kind: str | None, value: float) -> str:
    """A level with its unit: "64 clients", "1200 requests/s"."""
    return f"{bare_level(value)} requests/s" if kind == "rate" else units.plural(round(value), "client")


def bare_level(value: float) -> str:
    """A level as a figure: integers as such, others with four digits and without trailing zeros."""
    return units.tidy(value, 4)


def gone_text(target: TargetEntry) -> str:
    """A sentence that a server or a generator went away."""
    if target.gone is None:
        return ""
    at = units.utc_clock(target.gone.at)
    what = f"{target.gone.generator or 'the server'} was gone at {at} ({target.gone.why})"
    return f"{target.name}: {what}; the report has the measurements up to then."


def rulings(report: LoadReport) -> list[Ruling]:
    """One ruling for each capacity that was searched for or required, server by server."""
    ruled = [ruling for number in range(len(report.targets)) for ruling in _of_target(report, number)]
    if not report.required:
        return ruled
    return [replace(ruling, gates=ruling.required is not None or _makes_invalid(ruling)) for ruling in ruled]


def verdict(report: LoadReport, ruled: Sequence[Ruling] | None = None) -> tuple[Verdict, list[str]]:
    """The verdict of the whole, and its reasons: a sentence for each capacity that gates and is not met.

    Args:
        report: the document.
        ruled: its rulings, if they are known already.
    """
    ruled = [ruling for ruling in (rulings(report) if ruled is None else ruled) if ruling.gates]
    verdicts = {ruling.verdict for ruling in ruled}
    several = len(report.targets) > 1
    reasons = [
        f"{f'{ruling.target}: ' if several else ''}{ruling.name}: {ruling.reason}."
        for kind in Verdict
        for ruling in ruled
        if ruling.verdict is kind is not Verdict.PASS
    ]
    if len(reasons) > MOST_REASONS:
        omitted = len(reasons) - MOST_REASONS
        reasons = [*reasons[:MOST_REASONS], f"{omitted} more are in the tables."]
    for target in report.targets:
        if target.gone:
            verdicts.add(Verdict.GENERATOR_GONE if target.gone.generator else Verdict.GONE)
            reasons.insert(0, gone_text(target))
        elif target.interrupted:
            verdicts.add(Verdict.PARTIAL)
            reasons.insert(0, f"{target.name}: the test was interrupted; the report has the measurements up to then.")
    if not verdicts:
        return Verdict.INCONCLUSIVE, ["Nothing was measured."]
    return worst(verdicts), reasons


def _of_target(report: LoadReport, number: int) -> Iterator[Ruling]:
    target = report.targets[number]
    measured = set()
    for endpoint in target.endpoints:
        for capacity in endpoint.capacities:
            key = f"{endpoint.id}.{capacity.kind}"
            measured.add(key)
            required = report.required.get(key)
            ruled = _rule(capacity, required, endpoint.steps)
            yield Ruling(number, target.name, endpoint.id, endpoint.label, capacity.kind, required, *ruled)
        if not endpoint.capacities and (endpoint.steps or not endpoint.courses):
            yield Ruling(number, target.name, endpoint.id, endpoint.label, None, None, *_by_steps(endpoint))
        elif waited := _hindered([step for step in endpoint.steps if step.phase == "fixed"]):
            yield Ruling(number, target.name, endpoint.id, endpoint.label, None, None, *waited, is_of_levels=True)
        if drifted := _drifted(endpoint):
            ruling = Ruling(number, target.name, endpoint.id, endpoint.label, None, None, *drifted)
            yield replace(ruling, is_of_levels=True, is_of_drift=True)
        for course in dict.fromkeys(map(course_text, endpoint.courses)):
            runs = [item for item in endpoint.courses if course_text(item) == course]
            ruling = Ruling(number, target.name, endpoint.id, endpoint.label, None, None, *_of_course(runs))
            yield replace(ruling, is_of_levels=bool(endpoint.steps), course=course)
    for key in report.required:
        if key not in measured:
            yield _not_measured(report, number, key)


def _drifted(endpoint: EndpointEntry) -> tuple[Verdict, str] | None:
    """The rulings on the drift of long steps, if the SLA limits it."""
    judged = [drift for drift in endpoint.drifts if drift.limit is not None]
    for outcome, result in (("fail", Verdict.FAIL), ("inconclusive", Verdict.INCONCLUSIVE)):
        failing = [drift for drift in judged if drift.outcome == outcome]
        if failing:
            text = "; ".join(
                f"{drift.what} {drift_text(drift)} over {units.duration(drift.window_s)}" for drift in failing
            )
            return result, text
    return (Verdict.PASS, "no drift") if judged else None


def course_text(course: CourseEntry) -> str:
    """A ramp or a spike in words: "spike from 50 to 400 requests/s"."""
    return f"{course.what} from {bare_level(course.first)} to {level_text(course.kind, course.last)}"


def measured_text(course: CourseEntry) -> str:
    """The result of a ramp or a spike: "4.2 s", "312 requests/s"."""
    if course.note:
        return units.NOT_ESTIMABLE
    if course.measured is None:
        return "never" if course.what == "ramp" else "not recovered"
    return course_figure(course, course.measured)


def course_figure(course: CourseEntry, value: float) -> str:
    """A figure of a ramp or a spike with its unit."""
    return units.duration(value) if course.unit == "s" else level_text(course.kind, value)


def _of_course(runs: Sequence[CourseEntry]) -> tuple[Verdict, str]:
    """The outcome of all runs of a ramp or a spike; one that shows nothing about the server decides only if all do."""
    measured = [run for run in runs if not run.note]
    if not measured:
        waited = _hindered([run.step for run in runs])
        partial = Verdict.PARTIAL if runs[-1].step.partial else Verdict.INCONCLUSIVE
        return waited or (partial, runs[-1].note)
    known = ", ".join(dict.fromkeys(measured_text(run) for run in measured if run.measured is not None))
    outcomes = {course.outcome for course in measured}
    result = Verdict.FAIL if "fail" in outcomes else Verdict.PASS if outcomes == {"pass"} else Verdict.INCONCLUSIVE
    if runs[0].what == "ramp":
        held = "the SLA held up to its end" if result is Verdict.PASS else "neither clearly met nor clearly missed"
        return result, f"missed from {known}" if known and result is not Verdict.PASS else held
    limit = f", {units.duration(runs[0].limit)} allowed" if runs[0].is_asked else ""
    sometimes = " or not at all" if any(run.measured is None for run in measured) else ""
    return result, f"recovery after {known}{sometimes}{limit}" if known else f"no recovery{limit}"


def drift_text(drift_entry: DriftEntry) -> str:
    """By how much a figure changed, and its interval: "+12 % (+8 to +16 %)"."""
    if drift_entry.rise is None:
        return units.NOT_ESTIMABLE
    return f"{units.percent(drift_entry.rise)} ({units.percent_interval(drift_entry.low, drift_entry.high)})"


def _not_measured(report: LoadReport, number: int, key: str) -> Ruling:
    """The ruling on a required capacity without a result."""
    target, required = report.targets[number], report.required[key]
    id_, _, kind_name = key.rpartition(".")
    kind: Kind = "rate" if kind_name == "rate" else "clients"
    label = next((endpoint.label for endpoint in target.endpoints if endpoint.id == id_), id_)
    reason = f"{level_text(kind, required)} required, but it was not measured"
    if id_ in target.skipped:
        reason += f" ({target.skipped[id_]})"
    result = Verdict.PARTIAL if target.interrupted else Verdict.INCONCLUSIVE
    return Ruling(number, target.name, id_, label, kind, required, result, reason)


def _rule(capacity_entry: CapacityEntry, required: float | None, steps: Sequence[StepEntry]) -> tuple[Verdict, str]:
    """The ruling on a capacity by its requirement, or else by its lowest level."""
    if required is None:
        return _lowest(capacity_entry, steps)
    requirement = f"{level_text(capacity_entry.kind, required)} required"
    if capacity_entry.low >= required:
        return Verdict.PASS, f"{requirement}, {level_text(capacity_entry.kind, capacity_entry.low)} passed clearly"
    if capacity_entry.high is not None and capacity_entry.high <= required:
        missed = f" ({capacity_entry.condition})" if capacity_entry.condition else ""
        return (
            Verdict.FAIL,
            f"{requirement}, but {level_text(capacity_entry.kind, capacity_entry.high)} clearly missed the SLA{missed}",
        )
    passed = (
        f"{level_text(capacity_entry.kind, capacity_entry.low)} passed clearly"
        if capacity_entry.low > 0
        else "no level passed clearly"
    )
    return _undecided(capacity_entry), f"{requirement}, but {passed} and {_why(capacity_entry, steps)}"


def _lowest(capacity_entry: CapacityEntry, steps: Sequence[StepEntry]) -> tuple[Verdict, str]:
    if capacity_entry.low > 0.0:
        return Verdict.PASS, f"{level_text(capacity_entry.kind, capacity_entry.low)} passed clearly"
    if capacity_entry.finding == "nothing passed" and capacity_entry.high is not None:
        missed = f" ({capacity_entry.condition})" if capacity_entry.condition else ""
        return (
            Verdict.FAIL,
            f"the lowest level, {level_text(capacity_entry.kind, capacity_entry.high)}, clearly missed the SLA{missed}",
        )
    return _undecided(capacity_entry), f"no level passed clearly: {_why(capacity_entry, steps)}"


def _undecided(capacity_entry: CapacityEntry) -> Verdict:
    if capacity_entry.stopped_by in CUT_SHORT:
        return Verdict.PARTIAL
    if capacity_entry.stopped_by == "waited":
        return Verdict.INVALID
    return Verdict.GENERATOR_LIMITED if capacity_entry.stopped_by == "generator-limited" else Verdict.INCONCLUSIVE


def _why(capacity_entry: CapacityEntry, steps: Sequence[StepEntry]) -> str:
    """Why the search has no result."""
    ends = {
        "interrupted": "the search was interrupted",
        "server gone": "the server went away",
        "generator gone": "a load generator went away",
        "generator-limited": "the generator, not the server, was the limit",
        "waited": "the generator or the server waited for processors that other processes used",
        "ladder end": "that is the ladder's end",
        "budget": "the search ran out of steps",
    }
    if capacity_entry.stopped_by in ends:
        return ends[capacity_entry.stopped_by]
    failed = (
        f"{level_text(capacity_entry.kind, capacity_entry.high)} failed clearly"
        if capacity_entry.high is not None
        else ""
    )
    between = [
        step for step in steps
        if step.kind == capacity_entry.kind and not step.partial and step.level > capacity_entry.low
        and (capacity_entry.high is None or step.level < capacity_entry.high)
    ]  # fmt: skip
    return "; ".join(part for part in (failed, *_what_happened(between)) if part) or "no level failed clearly"


def _what_happened(steps: Sequence[StepEntry]) -> Iterator[str]:
    """Observations at the lowest of the levels that neither passed nor failed clearly."""
    if not steps:
        return
    lowest = min(step.level for step in steps)
    steps_at = [step for step in steps if step.level == lowest]
    level = level_text(steps_at[0].kind, lowest)
    longest = max(steps_at, key=lambda step: step.due)
    wanted = next(
        (
            condition.limit
            for condition in longest.conditions
            if condition.name == "samples" and condition.outcome != "pass"
        ),
        None,
    )
    if wanted is not None:
        answers, took = units.plural(longest.due, "answer"), units.duration(longest.window_s)
        yield f"{level} gave {answers} in {took}, and {units.count(round(wanted))} are needed"
        return
    counts = Counter(step.outcome for step in steps_at)
    yield f"{level} was measured: " + ", ".join(f"{count} × {outcome}" for outcome, count in counts.items())


def _by_steps(endpoint: EndpointEntry) -> tuple[Verdict, str]:
    """The outcome of an endpoint without a search: every complete step must pass."""
    complete = [step for step in endpoint.steps if not step.partial]
    if not complete:
        result = Verdict.PARTIAL if endpoint.steps else Verdict.INCONCLUSIVE
        return result, "no step was measured to its end"
    clean = [step for step in complete if step.reason != "waited"]
    if failed := [step for step in clean if step.outcome == "fail"]:
        missed = enumerated(list(dict.fromkeys(step.reason for step in failed if step.reason)))
        return Verdict.FAIL, f"missed {missed or 'its SLA'} at {_levels(failed)}"
    if waited := _hindered(complete):
        return waited
    if open_ := _levels(step for step in clean if step.outcome == "inconclusive"):
        return Verdict.INCONCLUSIVE, f"inconclusive at {open_}"
    return Verdict.PASS, f"{units.plural(len(clean), 'step')} passed"


def _hindered(steps: Sequence[StepEntry]) -> tuple[Verdict, str] | None:
    """Why a run is invalid: a level without a clean measurement, or one at the generator's limit."""
    complete = [step for step in steps if not step.partial]
    clean = [step for step in complete if step.reason != "waited"]
    measured = {(step.kind, step.level) for step in clean}
    if waited := _levels(step for step in complete if (step.kind, step.level) not in measured):
        reason = "the generator or the server waited for processors that other processes used, in every step"
        return Verdict.INVALID, f"not measured at {waited}: {reason}"
    if limited := _levels(step for step in clean if step.outcome == "generator-limited"):
        return Verdict.GENERATOR_LIMITED, f"generator-limited at {limited}"
    return None


def _levels(steps: Iterable[StepEntry]) -> str:
    """The levels of these steps, each once."""
    return ", ".join(dict.fromkeys(level_text(step.kind, step.level) for step in steps))


def _makes_invalid(ruling: Ruling) -> bool:
    """Whether it makes the run invalid, whatever is required: its gates fail because a process waited or was late."""
    return ruling.verdict is Verdict.INVALID or (ruling.kind is None and ruling.verdict is Verdict.GENERATOR_LIMITED)
