"""Runs that the subject failed decide the verdict, whatever the figures of the other runs are."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from chainmark.compare import compare
from chainmark.compare.decide import decide
from chainmark.compare.failures import RunFailures, judge_failures
from chainmark.compare.inputs import LoadedRun
from chainmark.compare.sides import SelectedRuns
from chainmark.core.comparison import Comparison, Outcome
from chainmark.core.manifest import Gate, GateKind, GateStatus, Status
from chainmark.core.verdict import Verdict
from chainmark.report.comparison_document import comparison_document
from chainmark.report.terminal import print_document

from tests.unit.compare.metric_cases import stub_run
from tests.unit.compare.synthetic_runs import SyntheticRun, sides

QUIET = 0.002  # the remaining runs of three per side are enough for a decision
DEATH = "node2 was killed by SIGKILL"


def _gate(*, conclusive: bool, kind: GateKind = GateKind.SUBJECT, measured: str = DEATH) -> Gate:
    return Gate(
        id="nodes_alive",
        label="no node was lost",
        status=GateStatus.FAIL,
        measured=measured,
        limit="all alive",
        kind=kind,
        conclusive=conclusive,
    )


def _spoil(runs: Sequence[SyntheticRun], status: Status = Status.FAILED, measured: str = DEATH) -> None:
    kind = GateKind.SUBJECT if status is Status.FAILED else GateKind.INSTRUMENT
    for run in runs:
        run.manifest.gates.append(_gate(conclusive=status is Status.FAILED, kind=kind, measured=measured))
        run.manifest.status = status


def _compared(
    baseline: int = 0, candidate: int = 0, *, factors: dict[str, float] | None = None, repetitions: int = 3
) -> Comparison:
    """A comparison with this many failed runs on each side."""
    left, right = sides(factors, repetitions=repetitions, run_noise=QUIET)
    _spoil(left[:baseline])
    _spoil(right[:candidate])
    return compare(left, right, tool_version="test")


def test_a_candidate_that_fails_a_run_which_the_baseline_passes_fails() -> None:
    comparison = _compared(candidate=1)
    assert comparison.verdict is Verdict.FAIL
    logs = f"look at `raw/logs` of the run {comparison.candidate.runs[0].run_id}"
    assert comparison.sentence == f"v1.0.1 failed 1 of 3 runs: {DEATH}; v0.38.17 failed none of 3; {logs}"
    expected = "v1.0.1 may be worse than v0.38.17 by more than the margin: extra rounds +0.053"
    assert any(text.startswith(expected) for text in comparison.reasons), "the metrics are still reported"
    assert [run.status for run in comparison.candidate.runs] == [Status.FAILED, Status.VALID, Status.VALID]
    assert any("raw/logs" in text for text in comparison.advice)


def test_failed_runs_are_a_junit_case() -> None:
    """Otherwise a pipeline would show a failed suite without a failed test."""
    document = comparison_document(_compared(candidate=1))
    (case,) = [case for case in document.suites[0].cases if case.id == "runs.failed"]
    assert (case.verdict, case.gates) == (Verdict.FAIL, True)
    assert case.reason.startswith("v1.0.1 failed 1 of 3 runs (cometbft-demo-v1.0.1-")
    assert f"no node was lost: {DEATH}, required all alive" in case.reason
    (shown,) = [case for case in comparison_document(_compared(baseline=1)).suites[0].cases if case.id == "runs.failed"]
    assert (shown.verdict, shown.gates) == (Verdict.INFORMATIONAL, False)
    sound = comparison_document(_compared()).suites[0].cases
    assert not [case for case in sound if case.id == "runs.failed"]


def test_the_figures_of_failed_runs_are_excluded_from_metrics_with_a_note() -> None:
    comparison = _compared(candidate=1)
    assert all(len(item.candidate.per_run) == 2 for item in comparison.judgements)
    assert any("failed runs are excluded from all metrics" in text for text in comparison.reasons)


def test_a_candidate_that_fails_all_runs_fails_and_has_no_judged_metric() -> None:
    comparison = _compared(candidate=3)
    assert comparison.verdict is Verdict.FAIL
    assert comparison.sentence.startswith("v1.0.1 failed 3 of 3 runs: ")
    assert {item.outcome for item in comparison.judgements} == {Outcome.INCONCLUSIVE}
    assert {item.note for item in comparison.judgements} == {"not judged: the candidate passed no run"}


def test_better_figures_do_not_compensate_for_failed_runs() -> None:
    assert _compared(candidate=1, factors={"tx_latency_s": 0.5}).verdict is Verdict.FAIL


def test_worse_figures_are_reported_together_with_failed_runs() -> None:
    comparison = _compared(candidate=1, factors={"tx_latency_s": 1.5})
    assert comparison.verdict is Verdict.FAIL
    assert "; and v1.0.1 is worse than v0.38.17: tx latency" in comparison.sentence


def test_a_failing_baseline_is_a_weak_reference_and_the_metrics_decide() -> None:
    comparison = _compared(baseline=1)
    assert comparison.verdict is Verdict.PASS
    assert comparison.sentence.startswith("All 8 gating metrics of v1.0.1 are shown to be within their margins")
    assert comparison.sentence.endswith(f"; however, v0.38.17 failed 1 of 3 runs: {DEATH}; v1.0.1 failed none of 3")
    assert any("a baseline with failed runs is a weak reference" in text for text in comparison.reasons)
    screen = io.StringIO()
    print_document(comparison_document(comparison), Console(file=screen, width=120))
    assert f"v0.38.17 failed 1 of 3 runs: {DEATH}" in " ".join(screen.getvalue().split())
    assert _compared(baseline=1, factors={"tx_latency_s": 1.5}).verdict is Verdict.FAIL


def test_a_baseline_without_a_passed_run_cannot_be_compared_with() -> None:
    comparison = _compared(baseline=3)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert any("v0.38.17 passed no run" in text for text in comparison.reasons)
    assert comparison.sentence.startswith("v0.38.17 failed 3 of 3 runs: ")


@pytest.mark.parametrize(
    ("baseline", "candidate", "repetitions", "verdict"),
    [
        (1, 1, 3, Verdict.INCONCLUSIVE),
        (3, 3, 3, Verdict.INCONCLUSIVE),
        (2, 1, 3, Verdict.INCONCLUSIVE),
        # 8 of 14 runs failed, 7 of them the candidate's: p = 7 · 1 / comb(14, 8) = 0.0023.
        (1, 7, 7, Verdict.FAIL),
    ],
)
def test_no_candidate_passes_if_both_fail_and_fishers_test_shows_which_fails_more(
    baseline: int, candidate: int, repetitions: int, verdict: Verdict
) -> None:
    comparison = _compared(baseline, candidate, repetitions=repetitions)
    assert comparison.verdict is verdict
    assert f"v1.0.1 failed {candidate} of {repetitions} runs" in comparison.sentence
    assert f"v0.38.17 failed {baseline} of {repetitions} runs" in comparison.sentence
    more = "fails more often" if verdict is Verdict.FAIL else "is not shown to fail more often"
    assert any(f"v1.0.1 {more} than v0.38.17 (Fisher's exact test" in text for text in comparison.reasons)


def test_invalid_runs_are_not_failures() -> None:
    left, right = sides(run_noise=QUIET)
    _spoil(right[:1], Status.INVALID)
    comparison = compare(left, right, tool_version="test")
    assert comparison.verdict is not Verdict.FAIL
    assert "failed" not in comparison.sentence
    assert any(f"the candidate's run {right[0].manifest.run_id} is not judged" in text for text in comparison.reasons)


def test_a_failed_run_does_not_make_a_side_too_small_to_be_judged() -> None:
    """Two of three runs failed and one is invalid. The failures are enough evidence for a verdict."""
    left, right = sides()
    _spoil(right[:2])
    _spoil(right[2:], Status.INVALID)
    comparison = compare(left, right, tool_version="test")
    assert comparison.verdict is Verdict.FAIL
    gate = next(gate for gate in comparison.gates if gate.id == "candidate_runs_valid")
    assert (gate.status, gate.measured) == (GateStatus.WARN, "2 of 3 runs, 2 of them failed")
    assert gate.detail.startswith(right[2].manifest.run_id)


def test_sides_that_must_not_be_compared_stay_invalid() -> None:
    left, right = sides()
    _spoil(right[:1])
    for run in right:
        run.manifest.workload["load.rate_tx_per_s"] = 1
    comparison = compare(left, right, tool_version="test")
    assert comparison.verdict is Verdict.INVALID
    assert any("v1.0.1 failed 1 of 3 runs" in text for text in comparison.reasons)


def test_many_reasons_are_counted_and_the_first_are_listed() -> None:
    left, right = sides()
    for number, run in enumerate(right):
        _spoil([run], measured=f"node{number} died")
    comparison = compare(left, right, tool_version="test")
    assert comparison.sentence.startswith("v1.0.1 failed 3 of 3 runs: node0 died; node1 died, and 1 other reason; ")


# --- from the runs' manifests alone ---------------------------------------------------------------------------------

NO_FIGURES = "failed runs are excluded from all metrics: the figures of a broken network do not show its performance"


def _side(name: str, passed: int, *causes: str, invalid: int = 0) -> SelectedRuns:
    """A side with this many passed runs, then one failed run per cause, then invalid runs."""
    runs = [stub_run(name, 1.0, number) for number in range(passed + len(causes) + invalid)]
    for run, cause in zip(runs[passed:], causes, strict=False):
        _spoil([run], measured=cause)
    _spoil(runs[passed + len(causes) :], Status.INVALID, "too slow")
    excluded = {run.manifest.run_id: f"because of {run.manifest.run_id}" for run in runs[passed:]}
    return SelectedRuns(name, [LoadedRun(run) for run in runs], excluded)


def _failures(baseline: SelectedRuns, candidate: SelectedRuns) -> RunFailures:
    return judge_failures((baseline, candidate), ("A", "B"))


def test_nothing_is_reported_if_no_run_failed() -> None:
    assert _failures(_side("a", 2), _side("b", 2, invalid=1)) == RunFailures(None, "", [])


def test_failure_counts_and_their_consequence_are_described() -> None:
    """The candidate's failures come first because they decide.

    If only the baseline failed, its failures are described.
    """
    only_candidate = _failures(_side("a", 3), _side("b", 2, "x"))
    assert only_candidate == RunFailures(
        Verdict.FAIL,
        "B failed 1 of 3 runs: x; A failed none of 3",
        ["failed by B: b-2: because of b-2", NO_FIGURES],
    )
    only_baseline = _failures(_side("a", 2, "x"), _side("b", 3))
    assert only_baseline == RunFailures(
        None,
        "A failed 1 of 3 runs: x; B failed none of 3",
        [
            "failed by A: a-2: because of a-2",
            "A failed runs that B passed: a baseline with failed runs is a weak reference",
            NO_FIGURES,
        ],
    )
    no_baseline = _failures(_side("a", 0, "x", "y"), _side("b", 1))
    assert no_baseline.verdict is Verdict.INCONCLUSIVE
    assert no_baseline.reasons == [
        "failed by A: a-0: because of a-0; a-1: because of a-1",
        "A passed no run: there are no figures to compare B with",
        NO_FIGURES,
    ]


@pytest.mark.parametrize(
    ("candidate", "verdict", "more"),
    [
        # Of 6 runs per side, 1 of the baseline and 5 of the candidate failed: p = (6 · 6 + 1) / comb(12, 6) = 0.040.
        (5, Verdict.FAIL, "B fails more often than A (Fisher's exact test, one-sided: p = 0.040, required 0.05)"),
        # 1 of the baseline and 4 of the candidate failed: p = (15 · 6 + 6) / comb(12, 5) = 0.121.
        (4, Verdict.INCONCLUSIVE, "B is not shown to fail more often than A (Fisher's exact test, one-sided: p = 0.12"),
        # The baseline fails more often. This is neither a failure of the candidate nor a pass.
        (0, None, "A failed runs that B passed"),
    ],
)  # fmt: skip
def test_failing_more_often_is_judged_by_the_candidates_tail(
    candidate: int, verdict: Verdict | None, more: str
) -> None:
    failures = _failures(_side("a", 5, "x"), _side("b", 6 - candidate, *["x"] * candidate))
    assert failures.verdict is verdict
    assert failures.reasons[-2].startswith(more)
    assert failures.reasons[-1] == NO_FIGURES
    if candidate:
        assert failures.reasons[-2].endswith("required 0.05); a candidate with failed runs does not pass")
        assert [text[:11] for text in failures.reasons[:-2]] == ["failed by B", "failed by A"]


def test_invalid_runs_neither_dilute_nor_prove_failures() -> None:
    """Whether the subject would have failed them is unknown. With 30 of them counted as passed, p would be 0.0006."""
    failures = _failures(_side("a", 5, "x", invalid=30), _side("b", 2, *["x"] * 4))
    assert failures.verdict is Verdict.INCONCLUSIVE
    failures = _failures(_side("a", 5, "x"), _side("b", 1, *["x"] * 5, invalid=30))
    assert failures.verdict is Verdict.FAIL


def test_a_candidate_that_fails_less_often_than_its_baseline_does_not_fail() -> None:
    assert _failures(_side("a", 1, *["x"] * 5), _side("b", 5, "x")).verdict is Verdict.INCONCLUSIVE


def test_a_probability_of_exactly_five_percent_is_a_failure() -> None:
    """Two of 20 runs failed, and only one is the candidate's: p = 19 / comb(20, 2) = 0.1. Two of 40: 0.05."""
    assert _failures(_side("a", 18, "x"), _side("b", 0, "x")).verdict is Verdict.INCONCLUSIVE
    failures = _failures(_side("a", 38, "x"), _side("b", 0, "x"))
    assert failures.verdict is Verdict.FAIL
    assert failures.reasons[-2].startswith("B fails more often than A ")


def test_equal_causes_are_listed_once_and_at_most_two() -> None:
    def sentence_of(*causes: str) -> str:
        return _failures(_side("a", 1), _side("b", 0, *causes)).sentence.removesuffix("; A failed none of 1")

    assert sentence_of("x", "y", "x") == "B failed 3 of 3 runs: x; y"
    assert sentence_of("x", "y", "z", "z") == "B failed 4 of 4 runs: x; y, and 1 other reason"
    assert sentence_of("x", "y", "z", "w") == "B failed 4 of 4 runs: x; y, and 2 other reasons"


def test_the_cause_of_a_failed_run_is_the_finding_of_its_deciding_gate() -> None:
    """If the machine may explain the gate, the gate is named, because its measured value alone is not enough."""
    side = _side("b", 1, "x")
    failed = side.runs[1].manifest
    failed.gates[-1:] = [
        _gate(conclusive=True, kind=GateKind.INSTRUMENT, measured="late"),
        _gate(conclusive=False, measured="3 of 4"),
        _gate(conclusive=True, measured="node2 died"),
    ]
    assert (
        _failures(_side("a", 2), side).sentence == "B failed 1 of 2 runs: no node was lost: 3 of 4; A failed none of 2"
    )
    del failed.gates[-2]
    assert _failures(_side("a", 2), side).sentence == "B failed 1 of 2 runs: node2 died; A failed none of 2"
    failed.gates.clear()
    assert "B failed 1 of 2 runs: because of b-1; " in _failures(_side("a", 2), side).sentence


def test_three_start_attempts_of_a_node_are_a_reason_of_any_verdict() -> None:
    """They are not failures, but whoever approves the release must know of them."""
    baseline, candidate = sides(repetitions=3, run_noise=0.002)
    cause = "the application of node1 exited with code 1"
    warned = Gate(
        id="started", label="every node started at the first try", status=GateStatus.WARN, measured=cause,
        limit="no failed try", kind=GateKind.SUBJECT,
    )  # fmt: skip
    candidate[1].manifest.gates.append(warned)
    finding = decide(baseline, candidate).finding
    assert finding.verdict is Verdict.PASS
    sentence = f"the candidate did not meet in 1 of 3 runs: every node started at the first try ({cause})"
    assert sentence in finding.reasons
    assert not any("first try" in reason for reason in decide(*sides(run_noise=0.002)).finding.reasons)
