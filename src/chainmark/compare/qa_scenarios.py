"""One scenario of a qualification, from its runs to its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from chainmark.compare.assemble import compare
from chainmark.compare.attribution import located
from chainmark.compare.charts import deciding
from chainmark.compare.decide import of_measured
from chainmark.compare.estimates import SideEstimates, collect
from chainmark.compare.gates import condition_differences, incomparable
from chainmark.compare.inputs import LoadedRun, RunData
from chainmark.compare.judge import Bench, judge, unjudged
from chainmark.compare.noise import Archive
from chainmark.compare.qa_plots import PlotSide, plot_of
from chainmark.compare.sides import exclusion, joined_conditions, select
from chainmark.core import units
from chainmark.core.attachment import Attachment, Opinion, OpinionRow
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Comparison, Judgement, Outcome
from chainmark.core.manifest import Fact, Scalar, Subject
from chainmark.core.metric import Metric
from chainmark.core.profiled import Profiled
from chainmark.core.qa_plan import QaPlan, ScenarioKind, ScenarioPlan
from chainmark.core.qa_report import (
    BesideRow,
    Incomparable,
    QaPlot,
    QaScenario,
    RunLine,
    SideLine,
)
from chainmark.core.verdict import Verdict
from chainmark.core.wording import capitalised, enumerated, sentence_of


@dataclass(frozen=True)
class ScenarioRuns:
    """The runs of one scenario.

    Attributes:
        sides: the runs of each side, valid or not, including repetitions of invalid ones; as far as there are any.
        lacking: missing requirements; then it has no runs.
        repeats: by the id of a run that repeats an invalid one, the id of that one.
        failures: by side, why a run of it could not be made.
        profile_description: the description in its profile.
        swept: of a sweep, the system's result.
        profiled: of a comparison, the comparison of the sides' profiles.
    """

    plan: ScenarioPlan
    experiment: str
    sides: Mapping[str, Sequence[RunData]]
    lacking: Sequence[str] = ()
    repeats: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    profile_description: str = ""
    swept: Attachment | None = None
    profiled: Profiled | None = None

    def all_runs(self) -> list[RunData]:
        """In order of execution."""
        runs = [run for runs in self.sides.values() for run in runs]
        return sorted(runs, key=lambda run: (run.manifest.started_at, run.manifest.run_id))


class SecondRule(Protocol):
    """The rule of a system's published reports, which is shown for comparison and decides nothing."""

    def rows(self, comparison: Comparison) -> Sequence[OpinionRow]:
        """All judged metrics by this rule."""

    def verdict(self, rows: Sequence[OpinionRow]) -> Opinion:
        """The rule's joint conclusion."""


@dataclass(frozen=True)
class QaRuns:
    """All runs of a plan; ``commits`` are the baseline's and the candidate's, "" if unknown."""

    plan: QaPlan
    experiment: str
    seed: int
    baseline: Subject
    candidate: Subject
    scenarios: Sequence[ScenarioRuns]
    commits: tuple[str, str]
    machine: Sequence[Fact]
    catalogue: Catalogue
    tool_version: str
    second_rule: SecondRule | None = None


def incomparable_metrics(comparison: Comparison) -> list[Incomparable]:
    """The metrics that a differing condition makes incomparable, in the catalogue's order."""
    because = incomparable(comparison.catalogue, comparison.condition_differences)
    return [
        Incomparable(metric_id=metric.id, label=metric.label, because=because[metric.id])
        for metric in comparison.catalogue.ordered()
        if metric.id in because
    ]


@dataclass(frozen=True)
class _Judged:
    """The result of one kind of scenario."""

    result: Verdict
    sentence: str
    reasons: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    comparison: Comparison | None = None
    beside: list[BesideRow] = field(default_factory=list)


class Scenarios:
    """The scenarios of one report."""

    def __init__(self, made: QaRuns, history: Sequence[RunData]) -> None:
        self.made = made
        self.history = history
        self.by_id = {scenario.plan.id: scenario for scenario in made.scenarios}

    def judged(self, scenario_runs: ScenarioRuns) -> QaScenario:
        """One scenario with its result."""
        plan, rule = scenario_runs.plan, self.made.second_rule
        sides = self._sides(scenario_runs)
        judged = self._judged_scenario(scenario_runs, sides)
        comparison = judged.comparison
        runs = scenario_runs.all_runs()
        lines = [_run_line(run, scenario_runs.repeats) for run in runs]
        return QaScenario(
            id=plan.id,
            title=plan.title,
            question=plan.question,
            method=plan.method,
            kind=plan.kind,
            # Few machines permit every disturbance. The first screen names those that were not tried.
            gating=plan.gating and not (plan.judges == [] and scenario_runs.lacking),
            profile_name=plan.profile,
            profile_description=scenario_runs.profile_description,
            settings=plan.settings,
            repetitions=_repetitions(plan, lines),
            needs=plan.needs,
            lacking=list(scenario_runs.lacking),
            experiment=scenario_runs.experiment if runs else "",
            date=max((run.manifest.started_at for run in runs), default="")[:10],
            result=judged.result,
            sentence=judged.sentence,
            reasons=judged.reasons,
            advice=judged.advice,
            sides=[_side_line(id_, label, side) for id_, label, side in sides],
            runs=lines,
            repeated=_repeated(lines),
            workload=_facts(runs[0].manifest.workload) if runs else [],
            comparison=comparison,
            tables=plan.tables,
            beside=judged.beside,
            incomparable=incomparable_metrics(comparison) if comparison else [],
            second_rule=list(rule.rows(comparison)) if rule and comparison else [],
            plots=self._plots(plan, sides),
            swept=scenario_runs.swept,
        )

    def _sides(self, scenario_runs: ScenarioRuns) -> list[tuple[str, str, Sequence[RunData]]]:
        """The sides with runs, in order, each with a unique label."""
        runs: list[tuple[str, str, Sequence[RunData]]] = []
        if scenario_runs.plan.beside and (other := self.by_id[scenario_runs.plan.beside].sides.get("candidate")):
            runs.append((f"{scenario_runs.plan.beside}/candidate", self.made.candidate.version, other))
        same = self.made.baseline.version == self.made.candidate.version
        for side in scenario_runs.plan.sides:
            version = self.made.baseline.version if side.version == "baseline" else self.made.candidate.version
            words = side.label or (side.id if same else "")
            label = f"{version} ({words})" if words and words != version else version
            taken = [label for _, label, _ in runs]
            label = f"{label} ({scenario_runs.plan.title})" if label in taken else label
            if scenario_runs.sides.get(side.id):
                runs.append((side.id, label, scenario_runs.sides[side.id]))
        return runs

    def _judged_scenario(
        self, scenario_runs: ScenarioRuns, sides: Sequence[tuple[str, str, Sequence[RunData]]]
    ) -> _Judged:
        if scenario_runs.lacking:
            needs = [f"it requires {text}" for text in scenario_runs.lacking]
            return _Judged(Verdict.NOT_RUN, f"Not run: {enumerated(needs)}.", needs)
        missing = [side.id for side in scenario_runs.plan.sides if not scenario_runs.sides.get(side.id)]
        if missing and (scenario_runs.plan.kind is not ScenarioKind.INFORMATIONAL or not sides):
            reasons = _failed(scenario_runs) or [f"there is no run of {enumerated(missing)}"]
            return _Judged(Verdict.INVALID, f"The scenario could not be run: {'; '.join(reasons)}.", reasons)
        if scenario_runs.plan.kind is ScenarioKind.COMPARISON:
            return self._compared(scenario_runs)
        judged = (
            self._shown(scenario_runs, sides)
            if scenario_runs.swept is None
            else _swept(scenario_runs.plan, scenario_runs.swept)
        )
        reported = f"{judged.sentence} A part of it could not be run." if scenario_runs.failures else judged.sentence
        return replace(judged, sentence=reported, reasons=[*_failed(scenario_runs), *judged.reasons])

    def _compared(self, scenario_runs: ScenarioRuns) -> _Judged:
        """Baseline against candidate by the verdict of every comparison."""
        full = compare(
            scenario_runs.sides["baseline"],
            scenario_runs.sides["candidate"],
            history=self.history,
            margins=of_measured(self.made.plan.margins, [run for side in scenario_runs.sides.values() for run in side]),
            judges=scenario_runs.plan.judges,
            tool_version=self.made.tool_version,
            why=scenario_runs.profiled,
        )
        comparison = _reduced(full)
        result, reasons = comparison.verdict, list(comparison.reasons)
        if scenario_runs.failures:
            reasons = [*_failed(scenario_runs), *reasons]
            result = result if result is Verdict.FAIL else Verdict.INVALID
        by_statistic = {(item.metric_id, item.statistic): [item] for item in comparison.judgements}
        versions = [self.made.baseline.version, self.made.candidate.version]
        sentence, values = sentence_of(comparison.sentence), self._headline(scenario_runs.plan, versions, by_statistic)
        if scenario_runs.plan.gating:
            sentence = f"{sentence} {values}".rstrip()
        else:
            result, sentence = Verdict.INFORMATIONAL, values or sentence
        return _Judged(result, sentence, reasons, list(comparison.advice), comparison)

    def _shown(self, scenario_runs: ScenarioRuns, sides: Sequence[tuple[str, str, Sequence[RunData]]]) -> _Judged:
        """Sides next to each other, each against the first, without a verdict."""
        selected = [select(id_, list(runs)) for id_, _, runs in sides]
        included = [side.included or side.runs for side in selected]
        compared = {run.run_id for side in selected for run in side.runs}
        bench = Bench(Archive(compared, selected[0].first, self.history))
        held = [
            incomparable(self.made.catalogue, condition_differences(self.made.catalogue, selected[0], side))
            for side in selected[1:]
        ]
        rows = []
        for metric in self.made.catalogue.ordered():
            is_in_plan = metric.table in scenario_runs.plan.tables or metric.id in scenario_runs.plan.headline
            if not (metric.gating or is_in_plan or any(metric.id in because for because in held)):
                continue
            for statistic in metric.judged_by:
                base = collect(included[0], metric, statistic)
                judgements = [
                    _beside(metric, statistic, (base, collect(runs, metric, statistic)), bench, because)
                    for runs, because in zip(included[1:], held, strict=True)
                ] or [judge(metric, statistic, base, base, bench)]
                if any(item.baseline.samples or item.candidate.samples for item in judgements):
                    rows.append(BesideRow(metric_id=metric.id, statistic=statistic, judgements=judgements))
        left_out = [pair for side in selected for pair in side.excluded.items()]
        invalid = [f"the run {run_id} is excluded: {reason}" for run_id, reason in left_out]
        labels = enumerated([label for _, label, _ in sides])
        unusable = [label for (_, label, _), side in zip(sides, selected, strict=True) if not side.included]
        if unusable:
            reasons = list(
                dict.fromkeys(reason for side in selected if not side.included for reason in side.excluded.values())
            )
            text = f"There is no valid run of {enumerated(unusable)}: {'; '.join(reasons)}."
            return _Judged(Verdict.INVALID, text, invalid, beside=rows)
        values = {(row.metric_id, row.statistic): row.judgements for row in rows}
        text = self._headline(scenario_runs.plan, [label for _, label, _ in sides], values)
        return _Judged(Verdict.INFORMATIONAL, text or f"Measured for information only: {labels}.", invalid, beside=rows)

    def _headline(
        self, plan: ScenarioPlan, labels: Sequence[str], result: Mapping[tuple[str, str], Sequence[Judgement]]
    ) -> str:
        """Every side's values of the metrics that the plan names for the result; "" if there are none."""
        messages = []
        for metric in (item for name in plan.headline for item in self.made.catalogue.metrics if item.id == name):
            judgements = result.get((metric.id, metric.judged_by[0]))
            if judgements:
                values = [judgements[0].baseline.value, *(item.candidate.value for item in judgements)][: len(labels)]
                messages.append(_values_text(metric, metric.judged_by[0], labels, values))
        return f"{capitalised('; '.join(messages))}." if messages else ""

    def _plots(self, plan: ScenarioPlan, sides: Sequence[tuple[str, str, Sequence[RunData]]]) -> list[QaPlot]:
        drawn = []
        for _, label, runs in sides:
            valid = [run for run in runs if exclusion(run.manifest) is None]
            drawn.append(PlotSide(label, [LoadedRun(run) for run in valid or runs]))
        qa_plots = [plot_of(plot_plan, drawn, self.made.catalogue) for plot_plan in self.made.plan.plots_of(plan)]
        return [plot for plot in qa_plots if plot]


def _values_text(metric: Metric, statistic: str, labels: Sequence[str], values: Sequence[float | None]) -> str:
    """`block interval, mean: 1.31 s with v0.38.17, 1.18 s with v1.0.1`."""
    unit = units.display_unit(metric.unit, values)
    decimals = units.decimals_for([unit.of(value) for value in values])
    parts = []
    for label, value in zip(labels, values, strict=True):
        number = units.NO_DATA if value is None else f"{units.number(unit.of(value), decimals)} {unit.symbol}".strip()
        parts.append(f"{number} with {label}")
    kind = "" if metric.statistics == [statistic] else f", {statistic}"
    return f"{metric.label}{kind}: {', '.join(parts)}"


def _failed(scenario_runs: ScenarioRuns) -> list[str]:
    """The sides whose runs could not be made, and why."""
    labels = {side.id: side.label or side.id for side in scenario_runs.plan.sides}
    return [
        f"no run of {labels.get(side, side)} succeeded: {reason}" for side, reason in scenario_runs.failures.items()
    ]


def _beside(
    metric: Metric,
    statistic: str,
    sides: tuple[SideEstimates, SideEstimates],
    bench: Bench,
    held: Mapping[str, str],
) -> Judgement:
    """One side against the first one; without a change if a condition makes it meaningless."""
    if metric.id in held:
        note = f"not comparable: {held[metric.id]}"
        return unjudged(metric, statistic, *sides, outcome=Outcome.NOT_COMPARABLE, note=note)
    return judge(metric, statistic, *sides, bench)


def _swept(plan: ScenarioPlan, sweep: Attachment) -> _Judged:
    """The system's result of its sweep."""
    finding = sweep.finding()
    return _Judged(finding.verdict if plan.gating else Verdict.INFORMATIONAL, finding.sentence, finding.reasons)


def _reduced(comparison: Comparison) -> Comparison:
    """Without the content of the comparison's own report: `chainmark compare` makes that from the same runs."""
    places = located(comparison.judgements, comparison.breakdowns, comparison.catalogue)
    breakdowns = [item for item in comparison.breakdowns if item.metric_id in places]
    return comparison.model_copy(update={"charts": deciding(comparison), "followed": None, "breakdowns": breakdowns})


def _run_line(run: RunData, repeats: Mapping[str, str]) -> RunLine:
    manifest = run.manifest
    place = manifest.experiment
    return RunLine(
        run_id=manifest.run_id,
        side=place.side if place else "",
        repetition=place.repetition if place else 0,
        position=place.position if place else 0,
        started_at=manifest.started_at,
        valid=exclusion(manifest) is None,
        gates=manifest.gates,
        repeats=repeats.get(manifest.run_id, ""),
        warnings=manifest.warnings,
        incidents=[incident.what for incident in manifest.incidents if not incident.planned],
    )


def _repetitions(plan: ScenarioPlan, runs: Sequence[RunLine]) -> int:
    """Runs of each side; for a sequential scenario, the number until the decision."""
    return max((run.repetition for run in runs), default=plan.planned_runs) if plan.goes_on else plan.planned_runs


def _side_line(side: str, label: str, runs: Sequence[RunData]) -> SideLine:
    selected = select(side, list(runs))
    return SideLine(
        id=side,
        label=label,
        version=selected.version,
        run_ids=[run.run_id for run in selected.runs],
        conditions=joined_conditions(selected),
    )


def _repeated(lines: Sequence[RunLine]) -> list[str]:
    by_id = {line.run_id: line for line in lines}
    messages = []
    for line in lines:
        first = by_id.get(line.repeats)
        if first is None:
            continue
        gates = "; ".join(f"{gate.label}: {gate.measured}, required {gate.limit}" for gate in first.failed_gates)
        ended = "failed" if line.failed else "valid" if line.valid else "invalid again"
        messages.append(f"{first.side}, repetition {first.repetition}, was invalid ({gates}) and was repeated: {ended}")
    return messages


def _facts(workload: Mapping[str, Scalar | list[Scalar]]) -> list[Fact]:
    return [Fact(label=key, value=units.scalar(value)) for key, value in sorted(workload.items())]
