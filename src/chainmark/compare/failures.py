"""Runs that the subject failed, and their effect on the verdict, independent of the other runs' figures."""

from __future__ import annotations

from dataclasses import dataclass

from chainmark.compare.sides import SelectedRuns
from chainmark.core import units
from chainmark.core.verdict import Verdict
from chainmark.stats.exact import fisher_more
from chainmark.stats.intervals import LEVEL

_MOST_CAUSES = 2  # failed runs per side in a sentence; the reasons list all


@dataclass(frozen=True)
class RunFailures:
    """The failed runs of both sides, and the conclusion.

    Attributes:
        verdict: FAIL, or INCONCLUSIVE, which forbids a PASS; None if the metrics alone decide.
        sentence: which side failed how often, and why; "" if no run failed.
        reasons: a sentence for every failed run, and the conclusion.
    """

    verdict: Verdict | None
    sentence: str
    reasons: list[str]


def judge_failures(sides: tuple[SelectedRuns, SelectedRuns], labels: tuple[str, str]) -> RunFailures:
    """Judge the failed runs.

    A candidate that failed a run while the baseline passed all of its own fails. If both failed, it fails if it
    failed significantly more often (Fisher's exact test, 5 %), and does not pass in any case. If only the baseline
    failed, the metrics decide, provided that the baseline passed a run.

    Args:
        sides: baseline and candidate; each has a run that is valid or failed.
        labels: their names.

    Source: docs/concepts/verdict.md, "Runs that the subject failed".
    """
    base, other = ((len(side.failed), side.telling) for side in sides)
    if not base[0] and not other[0]:
        return RunFailures(None, "", [])
    named = [_named(side, label) for side, label in zip(sides, labels, strict=True)]
    sentence = "; ".join(reversed(named) if other[0] else named)
    reasons = [
        _failed_runs_text(side, label) for side, label in zip(sides[::-1], labels[::-1], strict=True) if side.failed
    ]
    probability = fisher_more(*other, *base)
    if not base[0]:
        verdict: Verdict | None = Verdict.FAIL
    elif other[0]:
        verdict = Verdict.FAIL if probability <= LEVEL else Verdict.INCONCLUSIVE
        reasons.append(_compared(labels, probability))
    else:
        verdict = None if sides[0].included else Verdict.INCONCLUSIVE
        reasons.append(_weak_anchor(sides[0], labels))
    reasons.append(
        "failed runs are excluded from all metrics: the figures of a broken network do not show its performance"
    )
    return RunFailures(verdict, sentence, reasons)


def _named(side: SelectedRuns, label: str) -> str:
    failed = side.failed
    runs = units.plural(side.telling, "run")
    if not failed:
        return f"{label} failed none of {side.telling}"
    causes = list(dict.fromkeys(_cause(side, run.run_id) for run in failed))
    more = f", and {units.plural(len(causes) - _MOST_CAUSES, 'other reason')}" if len(causes) > _MOST_CAUSES else ""
    return f"{label} failed {len(failed)} of {runs}: {'; '.join(causes[:_MOST_CAUSES])}{more}"


def _cause(side: SelectedRuns, run_id: str) -> str:
    """The measured value without the requirement; of several gates the first, which is the most informative."""
    manifest = next(run.manifest for run in side.runs if run.run_id == run_id)
    for gate in manifest.deciding_gates:
        return gate.measured if gate.conclusive else f"{gate.label}: {gate.measured}"
    return side.excluded[run_id]


def _failed_runs_text(side: SelectedRuns, label: str) -> str:
    runs = "; ".join(f"{run.run_id}: {side.excluded[run.run_id]}" for run in side.failed)
    return f"failed by {label}: {runs}"


def _compared(labels: tuple[str, str], probability: float) -> str:
    more = "fails more often" if probability <= LEVEL else "is not shown to fail more often"
    return (
        f"{labels[1]} {more} than {labels[0]} (Fisher's exact test, one-sided: p = {units.probability(probability)}, "
        "required 0.05); a candidate with failed runs does not pass"
    )


def _weak_anchor(baseline: SelectedRuns, labels: tuple[str, str]) -> str:
    if baseline.included:
        return f"{labels[0]} failed runs that {labels[1]} passed: a baseline with failed runs is a weak reference"
    return f"{labels[0]} passed no run: there are no figures to compare {labels[1]} with"
