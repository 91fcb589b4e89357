"""A sweep as a scenario of a qualification."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chainmark.compare.qa import qa_report
from chainmark.compare.qa_scenarios import ScenarioRuns
from chainmark.core.manifest import Subject
from chainmark.core.verdict import Verdict
from chainmark.lab.qa_plans import read_plan
from chainmark.systems.capabilities import qualifiable
from chainmark.systems.cometbft.saturation.document import SaturationReport
from chainmark.systems.cometbft.saturation.results import Knee, Saturation, SaturationVersion, State
from chainmark.systems.cometbft.system import SYSTEM

from tests.unit.compare import qa_runs
from tests.unit.compare.synthetic_runs import sides


def _saturated(label: str, low: int, high: int | None, state: State = "found") -> SaturationVersion:
    """A version that certainly sustains ``low`` per second, and certainly not ``high``."""
    saturation = Saturation(
        measure="committed", threshold=0.9, state=state, load_per_s=low or None, low_per_s=low, high_per_s=high,
        connections=1, rate_per_s=low, reason="by hand",
    )  # fmt: skip
    knee = Knee(load_per_s=None, low_per_s=None, high_per_s=None, throughput_per_s=None, latency_s=None, basis="none")
    subject = Subject(system="cometbft", name="CometBFT", version=label)
    return SaturationVersion(
        label=label, subject=subject, published=False, source="", expected="", latency_is="", latency_kind="",
        throughput_is="", cells=[], saturations=[saturation], knee=knee,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("candidate", "result"),
    [
        (_saturated("v1.0.1", 800, 1600), Verdict.PASS),
        (_saturated("v1.0.1", 1600, None, "lower bound"), Verdict.PASS),
        (_saturated("v1.0.1", 400, 800), Verdict.FAIL),
        (_saturated("v1.0.1", 400, 1600, "unclear"), Verdict.INCONCLUSIVE),
        (_saturated("v1.0.1", 0, None, "no data"), Verdict.INVALID),
    ],
)
def test_a_sweep_is_judged_by_its_confirmed_results(candidate: SaturationVersion, result: Verdict) -> None:
    """If the intervals leave open which version sustains more, neither version is better."""
    baseline_runs, candidate_runs = sides(seconds=20, repetitions=1)
    common = {"question": "q", "method": "m", "profile": "cometbft/saturation"}
    scenario: dict[str, object] = {"id": "saturation", "title": "Saturation", "kind": "sweep", **common}
    qa_run = qa_runs.made_of(baseline_runs, candidate_runs, scenarios=[qa_runs.SCENARIOS[0], scenario])
    document = SaturationReport(
        title="t", system="cometbft", profile_name="p", experiment="e", started_at="", tool_version="0", seed=1,
        tolerance=0.1, order="", versions=[_saturated("v0.38.17", 800, 1600), candidate],
    )  # fmt: skip
    sweep = ScenarioRuns(
        qa_run.plan.scenarios[1],
        "qa-saturation",
        {"baseline": baseline_runs, "candidate": candidate_runs},
        swept=document,
    )
    report = qa_report(type(qa_run)(**{**qa_run.__dict__, "scenarios": [sweep]}))
    assert report.scenarios[0].result is result
    assert report.scenarios[0].swept == document


def test_a_candidate_that_saturates_at_half_the_load_cannot_pass_the_standard_plan() -> None:
    """Good latencies below that load must not help: here they are equal."""
    scenario = read_plan(qualifiable(SYSTEM), "standard").scenario("saturation")
    baseline_runs, candidate_runs = sides(seconds=20, repetitions=3)
    qa_run = qa_runs.made_of(baseline_runs, candidate_runs, scenarios=[qa_runs.SCENARIOS[0], scenario.model_dump()])

    def verdict(candidate: SaturationVersion) -> Verdict:
        document = SaturationReport(
            title="t", system="cometbft", profile_name="p", experiment="e", started_at="", tool_version="0", seed=1,
            tolerance=0.1, order="", versions=[_saturated("v0.38.17", 800, 1600), candidate],
        )  # fmt: skip
        runs = {"baseline": baseline_runs, "candidate": candidate_runs}
        sweep = ScenarioRuns(qa_run.plan.scenarios[1], "qa-saturation", runs, swept=document)
        return qa_report(replace(qa_run, scenarios=[qa_run.scenarios[0], sweep])).verdict

    assert verdict(_saturated("v1.0.1", 400, 800)) is Verdict.FAIL
    assert verdict(_saturated("v1.0.1", 800, 1600)) is Verdict.PASS
