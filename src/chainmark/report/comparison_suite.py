"""The cases of a comparison: one for each metric that gates, and one for each that is only shown."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.comparison import Comparison, Judgement, Outcome
from chainmark.core.manifest import GateStatus, Status
from chainmark.core.question import Question
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.report.judged_rows import JudgedRow, RowMaker
from chainmark.report.split_parts import split_sentence

_OF_OUTCOME = {
    Outcome.WORSE: Verdict.FAIL,
    Outcome.EQUAL: Verdict.PASS,
    Outcome.BETTER: Verdict.PASS,
}
_OF_GATE = {GateStatus.FAIL: Verdict.INVALID, GateStatus.UNKNOWN: Verdict.INCONCLUSIVE}


def comparison_suite(comparison: Comparison, label: str | None = None, rows: Sequence[JudgedRow] = ()) -> Suite:
    """The candidate's suite: its metrics in the report's order, then the gates of the pair.

    Args:
        comparison: of the candidate with its baseline.
        label: the suite's name.
        rows: the comparison's rows, if they exist already.
    """
    rows = rows or RowMaker(comparison).rows()
    cases = [_case(comparison, *pair) for pair in zip(comparison.judgements, rows, strict=True)]
    cases += [
        Case(
            f"gate.{gate.id}",
            gate.label,
            _OF_GATE.get(gate.status, Verdict.PASS),
            f"{gate.measured}; required: {gate.limit}",
            gates=gate.status is not GateStatus.UNKNOWN,
        )
        for gate in comparison.gates
    ]
    cases += _failed_runs(comparison)
    properties = [
        ("title", comparison.title),
        ("verdict", comparison.verdict.value),
        ("baseline", comparison.baseline.label),
        ("candidate", comparison.candidate.label),
        ("profile", comparison.profile_name),
        ("chainmark", comparison.tool_version),
    ]
    return Suite(
        label or comparison.title,
        cases,
        properties,
        started_at=comparison.date,
        output=[comparison.sentence, *comparison.reasons, *comparison.advice],
    )


def _failed_runs(comparison: Comparison) -> list[Case]:
    """The case of the runs that a subject failed, if there are any."""
    messages = []
    for side in (comparison.candidate, comparison.baseline):
        failed = [run for run in side.runs if run.status is Status.FAILED]
        if failed:
            reasons = "; ".join(f"{run.run_id}: {run.excluded_because}" for run in failed)
            messages.append(f"{side.label} failed {len(failed)} of {units.plural(len(side.runs), 'run')} ({reasons})")
    if not messages:
        return []
    verdict = comparison.failed_runs_verdict
    label = "runs failed by the subject"
    return [
        Case("runs.failed", label, verdict or Verdict.INFORMATIONAL, "; ".join(messages), gates=verdict is not None)
    ]


def _case(comparison: Comparison, judgement: Judgement, row: JudgedRow) -> Case:
    figures = {
        "baseline": judgement.baseline.value,
        "candidate": judgement.candidate.value,
        "change": judgement.change,
        "low": judgement.low,
        "high": judgement.high,
    }
    split = comparison.splits.split_of(judgement.metric_id, judgement.statistic) if comparison.splits else None
    figures |= {f"change.{part.id}": part.change for part in split.parts} if split else {}
    causes = f"; {split_sentence(split, comparison.catalogue.metric(split.metric_id))}" if split else ""
    return Case(
        f"{judgement.metric_id}.{judgement.statistic}",
        row.label,
        _verdict(comparison, judgement),
        f"{row.label_with_unit}: {row.baseline} → {row.candidate}, {row.change_with_unit}, "
        f"{units.plain_percent(comparison.confidence)} "
        f"interval {row.interval}: {row.outcome}{causes}",
        gates=judgement.gating,
        figures={name: value for name, value in figures.items() if value is not None},
    )


def _verdict(comparison: Comparison, judgement: Judgement) -> Verdict:
    """A metric that does not gate is shown, whatever its outcome; nothing is judged in an invalid comparison."""
    if not judgement.gating or comparison.question is Question.COST:
        return Verdict.INFORMATIONAL
    if comparison.verdict is Verdict.INVALID:
        return Verdict.INVALID
    if judgement.worse_alone and comparison.verdict is not Verdict.FAIL:  # a fail has a failure
        return Verdict.INCONCLUSIVE
    return _OF_OUTCOME.get(judgement.outcome, Verdict.INCONCLUSIVE)
