"""The verdict of a qualification: only scenarios that were run and decided can pass, and gaps are reported."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from chainmark.compare.qa import qa_report
from chainmark.core.attachment import OpinionRow
from chainmark.core.comparison import Outcome
from chainmark.core.qa_report import QaReport, QaScenario
from chainmark.core.verdict import Verdict
from chainmark.systems.cometbft.ten_percent_rule.results import RuleConcordance, TenPercentRow

from tests.unit.compare import qa_runs
from tests.unit.compare.synthetic_runs import run, sides


@pytest.fixture(scope="module")
def equal() -> QaReport:
    """The report on a candidate that equals its baseline."""
    return qa_runs.report()


def _scenario(report: QaReport, scenario_id: str) -> QaScenario:
    return next(scenario for scenario in report.scenarios if scenario.id == scenario_id)


def test_an_equal_release_passes_by_its_gating_scenarios(equal: QaReport) -> None:
    assert equal.verdict is Verdict.PASS
    results = {scenario.id: scenario.result for scenario in equal.scenarios}
    assert results["fixed-load"] is Verdict.PASS
    assert results["emulation"] is Verdict.INFORMATIONAL
    assert equal.rows[0].version == f"v1.0.1 ({qa_runs.COMMIT[:12]})"
    comparison = equal.scenarios[0].comparison
    assert comparison is not None
    own = [difference for difference in comparison.configuration_differences if difference.is_default_change]
    assert own
    assert equal.configuration_differences == own
    assert equal.condition_rows == [
        (difference.label, difference.baseline, difference.candidate, difference.explanation)
        for difference in comparison.condition_differences
    ]
    assert equal.condition_rows[0][0] == "block time"
    assert equal.second_opinion is not None
    assert "judged figures" in equal.second_opinion.in_words()


def test_a_scenario_that_was_not_run_is_reported_with_its_requirement_and_never_passes(equal: QaReport) -> None:
    """A machine that is too small must not make a release look tested."""
    big = _scenario(equal, "big")
    assert big.result is Verdict.NOT_RUN
    assert "64 processors; this machine has 2" in big.sentence
    assert any("200 nodes" in notice and "64 processors" in notice for notice in equal.notices)
    gating: list[dict[str, object]] = [
        {**scenario, "gating": True} if scenario["id"] == "big" else scenario for scenario in qa_runs.SCENARIOS
    ]
    assert qa_runs.report(scenarios=gating).verdict is Verdict.INCONCLUSIVE


def test_a_regression_fails_whatever_else_passes() -> None:
    report = qa_runs.report({"tx_latency_s": 1.5})
    assert report.verdict is Verdict.FAIL
    assert "fails Fixed load" in report.sentence
    assert any("tx latency" in reason for reason in report.reasons)


def _judging(*metrics: str) -> list[dict[str, object]]:
    """The scenarios of the sample plan. The first one judges only these metrics."""
    return [{**qa_runs.SCENARIOS[0], "judges": list(metrics)}, *qa_runs.SCENARIOS[1:]]


def test_a_scenario_judges_only_the_metrics_that_it_names() -> None:
    slower = qa_runs.report({"tx_latency_s": 1.5}, scenarios=_judging("block_interval_s"))
    assert slower.verdict is Verdict.PASS
    assert "The only gating metric of v1.0.1" in slower.scenarios[0].sentence
    assert qa_runs.report({"block_interval_s": 1.5}, scenarios=_judging("block_interval_s")).verdict is Verdict.FAIL


@pytest.mark.parametrize(("which", "verdict"), [((), "pass"), ((1,), "fail"), ((0,), "pass"), ((0, 1), "inconclusive")])
def test_failed_runs_decide_a_scenario_that_judges_no_metric(which: tuple[int, ...], verdict: str) -> None:
    """A candidate whose nodes do not recover does not pass, although recovery times are not judged."""
    runs = sides({"tx_latency_s": 1.5}, seconds=qa_runs.SECONDS)
    for side in which:
        qa_runs.failed(runs[side][0], "node3 did not recover after kill")
    report = qa_report(qa_runs.made_of(*runs, scenarios=_judging()))
    assert (report.scenarios[0].result, report.verdict) == (verdict, verdict)
    if 1 in which:
        assert "v1.0.1 failed 1 of 3 runs: node3 did not recover after kill" in report.scenarios[0].sentence
    else:
        assert "v1.0.1 passed its runs" in report.scenarios[0].sentence


def test_a_disturbance_that_the_machine_does_not_permit_is_named_and_does_not_prevent_a_pass() -> None:
    """Cutting connections requires root: without it, no release could pass."""
    big = {**qa_runs.SCENARIOS[2], "gating": True, "judges": []}
    report = qa_runs.report(scenarios=[*qa_runs.SCENARIOS[:2], big])
    assert report.verdict is Verdict.PASS
    assert _scenario(report, "big").result is Verdict.NOT_RUN
    assert any("200 nodes" in notice for notice in report.notices)


def test_failed_runs_do_not_hide_that_a_scenario_was_run_differently() -> None:
    baseline, candidate = sides(seconds=qa_runs.SECONDS)
    for synthetic in candidate:
        synthetic.manifest.workload["load.rate"] = 100
    report = qa_report(qa_runs.made_of(baseline, candidate, scenarios=_judging()))
    assert report.scenarios[0].result is Verdict.INVALID


def _ten_per_cent(row: OpinionRow) -> TenPercentRow:
    assert isinstance(row, TenPercentRow)
    return row


def test_an_incomparable_metric_is_not_a_regression() -> None:
    """Latencies by header times differ by one second if the block time does, although nothing is slower."""
    slower = qa_runs.report({"rpc_latency_s": 2.0})
    assert any(
        _ten_per_cent(row).ours_fails for row in slower.scenarios[0].second_rule if row.metric_id == "rpc_latency_s"
    )
    report = qa_runs.report({"rpc_latency_s": 2.0}, incomparable=["rpc_latency_s"])
    scenario = report.scenarios[0]
    row = next(_ten_per_cent(row) for row in scenario.second_rule if row.metric_id == "rpc_latency_s")
    assert row.concordance is RuleConcordance.NOT_COMPARABLE
    assert not row.ours_fails
    assert "BFT against proposer-based" in row.why
    assert scenario.comparison is not None
    judged = next(item for item in scenario.comparison.judgements if item.metric_id == "rpc_latency_s")
    assert judged.outcome is Outcome.NOT_COMPARABLE
    assert not judged.moved
    assert report.notices[0].startswith("Not comparable: RPC latency.")


def test_an_invalid_run_that_was_repeated_is_reported() -> None:
    baseline, candidate = sides(seconds=qa_runs.SECONDS)
    qa_runs.invalid(candidate[1])
    again = run("v1.0.1", 2, side="candidate", seed=777, seconds=qa_runs.SECONDS)
    again.manifest.run_id += "-again"
    qa_run = qa_runs.made_of(baseline, [*candidate, again])
    first = qa_run.scenarios[0]
    repeats = {again.manifest.run_id: candidate[1].manifest.run_id}
    scenarios = [type(first)(first.plan, first.experiment, first.sides, repeats=repeats), *qa_run.scenarios[1:]]
    report = qa_report(type(qa_run)(**{**qa_run.__dict__, "scenarios": scenarios}))
    messages = report.scenarios[0].repeated
    assert len(messages) == 1
    assert "offered load met: 91 %, required >= 98 %" in messages[0]
    assert messages[0].endswith("was repeated: valid")
    assert any("Run again" in notice for notice in report.notices)


def test_a_scenario_that_could_not_be_run_is_invalid() -> None:
    baseline, candidate = sides(seconds=qa_runs.SECONDS)
    qa_run = qa_runs.made_of(baseline, candidate)
    first = qa_run.scenarios[0]
    broken = type(first)(
        first.plan, first.experiment, {"baseline": baseline}, failures={"candidate": "a port is in use"}
    )
    report = qa_report(type(qa_run)(**{**qa_run.__dict__, "scenarios": [broken, *qa_run.scenarios[1:]]}))
    assert report.verdict is Verdict.INVALID
    assert "a port is in use" in report.scenarios[0].sentence


def test_scenarios_shown_for_information_are_summarized_by_their_figures() -> None:
    """The text "shown for information" is of no use to a reader of the first page."""
    baseline, candidate = sides(seconds=qa_runs.SECONDS)
    scenarios = [dict(scenario) for scenario in qa_runs.SCENARIOS]
    scenarios[1]["headline"] = ["tx_latency_s"]
    report = qa_report(qa_runs.made_of(baseline, candidate, scenarios=scenarios))
    scenario = _scenario(report, "emulation")
    row = next(row for row in scenario.beside if (row.metric_id, row.statistic) == ("tx_latency_s", "p50"))
    near, far = row.judgements[0].baseline.value, row.judgements[0].candidate.value
    assert near is not None
    assert far is not None
    match = re.fullmatch(
        r"Tx latency, p50: ([\d.]+) (m?s) with v1\.0\.1, ([\d.]+) m?s with v1\.0\.1 \(far\)\.", scenario.sentence
    )
    assert match, scenario.sentence
    scale = 1000.0 if match[2] == "ms" else 1.0
    assert float(match[1]) == pytest.approx(near * scale, rel=1e-3)
    assert float(match[3]) == pytest.approx(far * scale, rel=1e-3)
    assert next(row.reason for row in report.rows if row.scenario == scenario.title) == scenario.sentence


def test_scenarios_shown_for_information_are_shown_without_a_side_that_could_not_be_run() -> None:
    """Such a scenario exists to find, for example, that a network of two releases does not even start."""
    baseline, candidate = sides(seconds=qa_runs.SECONDS)
    qa_run = qa_runs.made_of(baseline, candidate)
    scenario = next(scenario for scenario in qa_run.scenarios if scenario.plan.id == "emulation")
    failing = replace(scenario, failures={"near": "node0 was not healthy within 60 s of its start"})
    scenarios = [failing if other is scenario else other for other in qa_run.scenarios]
    shown = _scenario(qa_report(replace(qa_run, scenarios=scenarios)), "emulation")
    assert shown.result is Verdict.INFORMATIONAL
    assert shown.sentence.endswith("A part of it could not be run.")
    assert shown.reasons[0] == "no run of near succeeded: node0 was not healthy within 60 s of its start"
    assert shown.beside


def test_emulation_is_shown_together_with_the_candidate_without_it(equal: QaReport) -> None:
    scenario = _scenario(equal, "emulation")
    assert [side.label for side in scenario.sides] == ["v1.0.1", "v1.0.1 (far)"]
    row = next(row for row in scenario.beside if row.metric_id == "tx_latency_s" and row.statistic == "p50")
    assert row.judgements[0].change == pytest.approx(1.0, abs=0.1)
    assert {line.side for line in scenario.plots[0].chart.lines} == {"v1.0.1", "v1.0.1 (far)"}


def test_the_same_runs_give_the_same_bytes(equal: QaReport) -> None:
    assert qa_runs.report().model_dump_json() == equal.model_dump_json()


def test_a_plot_has_every_side_and_its_published_limit(equal: QaReport) -> None:
    plots = {plot.id: plot for plot in equal.scenarios[0].plots}
    assert set(plots) == {"latencies", "block_rate", "memory", "mempool"}
    # Per side, 3 runs with 4 nodes each and one mean.
    assert len(plots["memory"].chart.lines) == 2 * (3 * 4 + 1)
    assert plots["memory"].beyond_limit  # 180 MB on an axis with a maximum of 100
    assert not plots["mempool"].beyond_limit
    # One block every 1.2 s is 50 per minute. Any 20 s contain one block more or less.
    for line in plots["block_rate"].chart.lines:
        assert all(abs(value - 50.0) <= 3.0 for value in line.y)


def test_a_dot_is_the_mean_of_samples_that_ended_together(equal: QaReport) -> None:
    """The level line is the mean of all samples, whatever the number of samples per dot is."""
    chart = next(plot for plot in equal.scenarios[0].plots if plot.id == "latencies").chart
    level = next(line for line in chart.lines if line.run_id is None and line.side == "v0.38.17")
    baseline, _ = sides(seconds=qa_runs.SECONDS)
    values = [value for run in baseline for value in run.frames["transaction"]["tx_latency_s"].drop_nulls().to_list()]
    assert level.y[0] == pytest.approx(math.fsum(values) / len(values), rel=1e-4)
    assert level.y[0] == level.y[1]
