"""One scenario of a qualification, without samples: its request, its runs, its verdict and its texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from chainmark.compare.qa_scenarios import (
    QaRuns,
    ScenarioRuns,
    Scenarios,
    SecondRule,
    _reduced,
    incomparable_metrics,
)
from chainmark.core.attachment import Attachment, Finding, Opinion, OpinionRow
from chainmark.core.catalogue import Catalogue
from chainmark.core.chart_kind import ChartKind
from chainmark.core.comparison import Breakdown, ChartData, Comparison, Followed, Outcome
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.manifest import Gate, GateKind, GateStatus, Incident, Status, Subject
from chainmark.core.metric import MetricGroup, Population, SharedFact
from chainmark.core.profiled import Profiled
from chainmark.core.qa_plan import QaPlan, ScenarioPlan
from chainmark.core.qa_report import Incomparable, QaScenario
from chainmark.core.verdict import Verdict
from chainmark.core.wording import sentence_of

from tests.unit.compare.metric_cases import metric
from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

METRICS = [
    metric(id="a_s", label="latency", gating=True, statistics=["mean", "p50"], population="block"),
    metric(id="c_s", label="rounds", order=2, population="block"),
    metric(id="d_s", label="votes", order=3, population="block"),
    metric(id="b_bytes", label="size", unit="B", table="sizes", population="block"),
]
CATALOGUE = Catalogue(
    system="cometbft",
    title="CometBFT",
    populations=[Population(id="block", label="blocks", keys=["height", "time_s"], time_key="time_s")],
    tables=[MetricGroup(id="all", title="All"), MetricGroup(id="sizes", title="Sizes")],
    conditions=[
        SharedFact(id="time_source", label="block time", explanation="Another clock.", makes_incomparable=["d_s"])
    ],
    metrics=METRICS,
)
BASE = {"id": "one", "title": "One", "question": "Is it?", "method": "So.", "profile": "cometbft/demo"}
SHOWN = {**BASE, "kind": "informational", "gating": False}
GATE = Gate(id="load", label="load met", status=GateStatus.FAIL, measured="91 %", limit="98 %")


class Swept(Attachment):
    """The result of a sweep."""

    def finding(self) -> Finding:
        """A finding that fails."""
        return Finding(Verdict.FAIL, "It saturates earlier.", ["at 400 tx/s"])


class Rule:
    """A second rule with an opinion on every judged metric."""

    def rows(self, comparison: Comparison) -> Sequence[OpinionRow]:
        """One row per judgement."""
        return [
            OpinionRow(metric_id=judgement.metric_id, statistic=judgement.statistic)
            for judgement in comparison.judgements
        ]

    def verdict(self, rows: Sequence[OpinionRow]) -> Opinion:
        """An opinion that does not fail."""
        return Opinion(fails=not rows)


def run(side: str, number: int, factor: float = 1.0, *, version: str = "", clock: str = "BFT") -> SyntheticRun:
    """A run without samples. The positions of both sides alternate."""
    label = version or {"baseline": "v1", "candidate": "v2"}.get(side, "v2")
    position = 2 * number + (side != "baseline")
    described = manifest(label, number, side=side, position=position, run_id=f"{side}-{number}", gates=[])
    described.conditions = {"time_source": clock}
    described.workload = {"z.rate": 200, "a.nodes": 4}
    summaries = {
        metric.id: MetricSummary(
            metric_id=metric.id,
            distribution=None,
            estimates={"mean": Estimate(value=factor * (1.0 + 0.001 * number), standard_error=None, method="stub")},
            samples=40,
        )
        for metric in METRICS
    }
    return SyntheticRun(described, CATALOGUE, {}, summaries)


def pair(factor: float = 1.0, **settings: Any) -> dict[str, Sequence[SyntheticRun]]:
    return {
        "baseline": [run("baseline", number) for number in (1, 2, 3)],
        "candidate": [run("candidate", number, factor, **settings) for number in (1, 2, 3)],
    }


def scenarios(
    *runs_of_scenarios: ScenarioRuns,
    rule: SecondRule | None = None,
    versions: tuple[str, str] = ("v1", "v2"),
    margins: Mapping[str, float] | None = None,
    plots: Sequence[dict[str, object]] = (),
    history: Sequence[SyntheticRun] = (),
) -> Scenarios:
    old, new = (Subject(system="cometbft", name="CometBFT", version=version) for version in versions)
    plans = [scenario.plan.model_dump() for scenario in runs_of_scenarios]
    plan = QaPlan.model_validate({"system": "cometbft", "name": "p", "title": "P", "description": "d",
                                  "scenario": plans, "plot": list(plots), "margins": margins or {}})  # fmt: skip
    return Scenarios(
        QaRuns(plan, "qa-1", 7, old, new, runs_of_scenarios, ("", ""), [], CATALOGUE, "0.1.0", rule), history
    )


def of(plan: Mapping[str, object], runs_by_side: Mapping[str, Sequence[SyntheticRun]], **more: Any) -> ScenarioRuns:
    return ScenarioRuns(ScenarioPlan.model_validate(plan), f"qa-{plan['id']}", runs_by_side, **more)


def judged(scenario: ScenarioRuns, *others: ScenarioRuns, **settings: Any) -> QaScenario:
    return scenarios(*others, scenario, **settings).judged(scenario)


def test_a_scenario_states_its_request_its_runs_and_its_results() -> None:
    """A report needs everything that it shows in separate fields of the scenario's result."""
    plan = {**BASE, "settings": ["load.rate=1"], "needs": ["cores:4"], "tables": ["sizes"]}
    scenario = judged(of(plan, pair(1.5), profile_description="A load."), rule=Rule())
    shown = scenario.model_dump(include=set(QaScenario.model_fields) - {"comparison", "reasons", "advice", "runs"})
    assert shown == {
        "id": "one", "title": "One", "question": "Is it?", "method": "So.", "kind": "comparison", "gating": True,
        "profile_name": "cometbft/demo", "profile_description": "A load.", "settings": ["load.rate=1"],
        "repetitions": 3, "needs": ["cores:4"], "lacking": [], "experiment": "qa-one", "date": "2026-11-20",
        "result": Verdict.FAIL, "sentence": scenario.sentence, "repeated": [], "tables": ["sizes"], "beside": [],
        "workload": [{"label": "a.nodes", "value": "4"}, {"label": "z.rate", "value": "200"}], "incomparable": [],
        "second_rule": [{"metric_id": item.id, "statistic": "mean"} for item in METRICS], "plots": [], "swept": None,
        "sides": [
            {"id": name, "label": version, "version": version, "conditions": {"time_source": "BFT"},
             "run_ids": [f"{name}-{number}" for number in (1, 2, 3)]}
            for name, version in (("baseline", "v1"), ("candidate", "v2"))
        ],
    }  # fmt: skip
    assert scenario.comparison is not None
    assert scenario.reasons == scenario.comparison.reasons
    assert scenario.advice == scenario.comparison.advice
    assert scenario.comparison.tool_version == "0.1.0"
    assert scenario.sentence.startswith("V2 is worse") or "latency" in scenario.sentence
    # Runs are listed in the order in which they were made, whatever their side.
    order = [f"{side}-{number}" for number in (1, 2, 3) for side in ("baseline", "candidate")]
    assert [line.run_id for line in scenario.runs] == order


def test_a_margin_of_the_plan_overrides_that_of_the_catalogue() -> None:
    assert judged(of(BASE, pair(1.5))).result is Verdict.FAIL
    assert judged(of(BASE, pair(1.5)), margins={"a_s": 0.9}).result is Verdict.PASS


@pytest.mark.parametrize(
    ("judges", "gating", "result"),
    [(None, ["a_s"], Verdict.FAIL), (["c_s"], ["c_s"], Verdict.FAIL), ([], [], Verdict.PASS)],
)
def test_only_the_metrics_that_the_plan_names_decide(
    judges: list[str] | None, gating: list[str], result: Verdict
) -> None:
    """All metrics are half as large again. A disturbed network is slower, which must not fail its scenario."""
    scenario = judged(of({**BASE, "judges": judges}, pair(1.5)))
    assert scenario.comparison is not None
    assert [item.metric_id for item in scenario.comparison.judgements if item.gating] == gating
    assert scenario.result is result


@pytest.mark.parametrize(
    ("plan", "lacking", "gating"),
    [
        ({}, [], True),
        ({}, ["namespaces"], True),
        ({"judges": ["c_s"]}, ["namespaces"], True),
        ({"judges": []}, [], True),
        ({"judges": []}, ["namespaces"], False),  # a disturbance that few machines permit
        ({"gating": False}, [], False),
    ],
)
def test_only_disturbances_that_the_machine_lacks_do_not_keep_a_release_from_passing(
    plan: dict[str, object], lacking: list[str], gating: bool
) -> None:
    assert judged(of({**BASE, **plan}, {} if lacking else pair(), lacking=lacking)).gating is gating


@pytest.mark.parametrize(("headline", "values"), [([], ""), (["b_bytes"], " Size: 1.002 B with v1, 1.503 B with v2.")])
def test_the_values_of_the_headline_follow_the_sentence_of_a_judged_comparison(
    headline: list[str], values: str
) -> None:
    scenario = judged(of({**BASE, "headline": headline}, pair(1.5)))
    assert scenario.comparison is not None
    assert scenario.sentence == sentence_of(scenario.comparison.sentence) + values


def test_the_row_of_a_run_has_its_position_gates_and_unplanned_events() -> None:
    runs_by_side = pair()
    synthetic = runs_by_side["candidate"][1]
    synthetic.manifest.warnings = ["a slow disk"]
    synthetic.manifest.incidents = [
        Incident(time_ns=1, what="node1 died"),
        Incident(time_ns=2, what="node2 was stopped", planned=True),
    ]
    synthetic.manifest.gates, synthetic.manifest.status = [GATE], Status.INVALID
    scenario = judged(of(BASE, runs_by_side, repeats={"candidate-3": "candidate-2"}))
    lines = {line.run_id: line for line in scenario.runs}
    assert lines["candidate-2"].model_dump(exclude={"gates", "started_at"}) == {
        "run_id": "candidate-2", "side": "candidate", "repetition": 2, "position": 5, "valid": False, "repeats": "",
        "warnings": ["a slow disk"], "incidents": ["node1 died"],
    }  # fmt: skip
    assert lines["candidate-2"].gates == [GATE]
    assert lines["candidate-2"].started_at == synthetic.manifest.started_at
    assert (lines["candidate-3"].valid, lines["candidate-3"].repeats) == (True, "candidate-2")
    assert scenario.repeated == [
        "candidate, repetition 2, was invalid (load met: 91 %, required 98 %) and was repeated: valid"
    ]


@pytest.mark.parametrize(
    ("kind", "status", "ended"),
    [(GateKind.INSTRUMENT, Status.INVALID, "invalid again"), (GateKind.SUBJECT, Status.FAILED, "failed")],
)
def test_a_repeated_run_states_the_outcome_of_the_repetition(kind: GateKind, status: Status, ended: str) -> None:
    runs_by_side = pair()
    first, again = runs_by_side["candidate"][0], runs_by_side["candidate"][1]
    first.manifest.gates = [GATE, GATE.model_copy(update={"label": "hosts alive"})]
    first.manifest.status = Status.INVALID
    again.manifest.gates, again.manifest.status = [GATE.model_copy(update={"kind": kind})], status
    repeats = {"candidate-1": "gone", "candidate-2": "candidate-1"}
    (message,) = judged(of(BASE, runs_by_side, repeats=repeats)).repeated
    assert message.endswith(f": {ended}")
    assert "(load met: 91 %, required 98 %; hosts alive: 91 %, required 98 %)" in message


def test_a_run_outside_an_experiment_has_no_position() -> None:
    synthetic = run("candidate", 1)
    synthetic.manifest.experiment = None
    (line,) = judged(
        of({**SHOWN, "sides": [{"id": "candidate", "version": "candidate"}]}, {"candidate": [synthetic]})
    ).runs
    assert (line.side, line.repetition, line.position) == ("", 0, 0)


@pytest.mark.parametrize(
    ("changes", "expected"), [({}, 3), ({"repetitions": 5}, 5), ({"most_runs": 6}, 3), ({"gating": False}, 3)]
)
def test_the_repetitions_are_those_required_or_planned(changes: dict[str, object], expected: int) -> None:
    assert judged(of({**BASE, **changes}, pair())).repetitions == expected


def test_a_scenario_with_missing_requirements_was_not_run() -> None:
    scenario = judged(of({**BASE, "most_runs": 6}, {}, lacking=["64 processors", "namespaces"]))
    assert (scenario.result, scenario.repetitions, scenario.experiment, scenario.date) == (Verdict.NOT_RUN, 6, "", "")
    assert scenario.sentence == "Not run: it requires 64 processors and it requires namespaces."
    assert scenario.reasons == ["it requires 64 processors", "it requires namespaces"]
    assert (scenario.lacking, scenario.sides, scenario.workload) == (["64 processors", "namespaces"], [], [])
    assert (scenario.comparison, scenario.incomparable, scenario.second_rule) == (None, [], [])


def test_a_side_that_could_not_be_run_makes_a_comparison_invalid_with_the_reason() -> None:
    plan = {**BASE, "sides": [{"id": "baseline", "version": "baseline"},
                              {"id": "candidate", "version": "candidate", "label": "the new one"}]}  # fmt: skip
    runs_by_side = {"baseline": pair()["baseline"]}
    scenario = judged(of(plan, runs_by_side, failures={"candidate": "no port", "other": "no disk"}))
    why = ["no run of the new one succeeded: no port", "no run of other succeeded: no disk"]
    assert (scenario.result, scenario.reasons) == (Verdict.INVALID, why)
    assert scenario.sentence == f"The scenario could not be run: {why[0]}; {why[1]}."
    assert judged(of(plan, {})).sentence == "The scenario could not be run: there is no run of baseline and candidate."
    nothing = judged(of({**SHOWN, "sides": [{"id": "far", "version": "candidate"}]}, {}))
    assert (nothing.result, nothing.reasons) == (Verdict.INVALID, ["there is no run of far"])


def test_a_run_that_could_not_be_made_invalidates_a_pass_but_not_a_failure() -> None:
    """It is unknown what the missing runs would have shown. A regression remains a regression."""
    failures = {"candidate": "no port"}
    passed, failed = (judged(of(BASE, pair(factor), failures=failures)) for factor in (1.0, 1.5))
    assert (passed.result, failed.result) == (Verdict.INVALID, Verdict.FAIL)
    assert passed.reasons[0] == failed.reasons[0] == "no run of candidate succeeded: no port"
    assert len(failed.reasons) > 1


def test_a_comparison_shown_for_information_is_summarized_by_its_headline() -> None:
    scenario = judged(of({**BASE, "gating": False, "headline": ["a_s", "b_bytes"]}, pair(2.0)))
    assert scenario.result is Verdict.INFORMATIONAL
    assert (
        scenario.sentence == "Latency, mean: 1.002 s with v1, 2.004 s with v2; size: 1.002 B with v1, 2.004 B with v2."
    )
    plain = judged(of({**BASE, "gating": False}, pair(2.0)))
    assert plain.comparison is not None
    assert plain.sentence.rstrip(".").lower() == plain.comparison.sentence.rstrip(".").lower()


def test_a_sweep_is_judged_by_the_finding_of_its_system() -> None:
    plan = {**BASE, "kind": "sweep"}
    scenario = judged(of(plan, pair(), swept=Swept()))
    assert (scenario.result, scenario.sentence, scenario.reasons) == (
        Verdict.FAIL, "It saturates earlier.", ["at 400 tx/s"],
    )  # fmt: skip
    assert scenario.swept == Swept()
    assert judged(of({**plan, "gating": False}, pair(), swept=Swept())).result is Verdict.INFORMATIONAL
    part = judged(of(plan, pair(), swept=Swept(), failures={"candidate": "no port"}))
    assert part.sentence == "It saturates earlier. A part of it could not be run."
    assert part.reasons == ["no run of candidate succeeded: no port", "at 400 tx/s"]


THREE = [{"id": "near", "version": "baseline"}, {"id": "far", "version": "candidate", "label": "far"},
         {"id": "none", "version": "candidate"}]  # fmt: skip


def _three_sides() -> dict[str, Sequence[SyntheticRun]]:
    return {name: [run(name, number, factor, version=version, clock=clock) for number in (1, 2)]
            for name, factor, version, clock in (("near", 1.0, "v1", "BFT"), ("far", 2.0, "v2", "proposer"),
                                                 ("none", 3.0, "v2", "BFT"))}  # fmt: skip


def _three(**settings: Any) -> ScenarioRuns:
    return of({**SHOWN, "sides": THREE, **settings}, _three_sides())


def test_sides_shown_for_information_are_each_compared_with_the_first() -> None:
    scenario = judged(_three(headline=["c_s"], tables=["sizes"]))
    assert (scenario.result, scenario.comparison) == (Verdict.INFORMATIONAL, None)
    assert [side.label for side in scenario.sides] == ["v1", "v2 (far)", "v2"]
    # The gating metrics, the metrics of its tables and its headline, and those that a condition makes incomparable.
    assert [(row.metric_id, row.statistic) for row in scenario.beside] == [(metric.id, "mean") for metric in METRICS]
    changes = [[item.change for item in row.judgements] for row in scenario.beside]
    assert [changes[0], changes[1], changes[3]] == [[pytest.approx(1.0), pytest.approx(2.0)]] * 3
    votes = scenario.beside[2].judgements
    assert [item.outcome is Outcome.NOT_COMPARABLE for item in votes] == [True, False]
    assert votes[0].note.startswith("not comparable: ")
    assert "BFT" in votes[0].note
    assert [votes[0].baseline.value, votes[0].candidate.value] == pytest.approx([1.0015, 2.003], rel=1e-4)
    assert scenario.sentence == "Rounds: 1.001 s with v1, 2.003 s with v2 (far), 3.004 s with v2."


def test_tables_that_were_not_requested_are_not_shown() -> None:
    scenario = judged(
        of({**SHOWN, "sides": THREE[:2]}, {"near": [run("near", 1, version="v1")], "far": [run("far", 1)]})
    )
    assert [row.metric_id for row in scenario.beside] == ["a_s"]
    assert scenario.sentence == "Measured for information only: v1 and v2 (far)."
    shown_options = {**SHOWN, "sides": THREE[:2], "tables": ["sizes"]}
    runs_by_side = {"near": [run("near", 1, version="v1")], "far": [run("far", 1)]}
    assert [row.metric_id for row in judged(of(shown_options, runs_by_side)).beside] == ["a_s", "b_bytes"]


def test_a_single_side_is_shown_without_a_comparison() -> None:
    plan = {**SHOWN, "headline": ["a_s"], "sides": [{"id": "far", "version": "candidate"}]}
    scenario = judged(of(plan, {"far": [run("far", 1)]}))
    assert scenario.sentence == "Latency, mean: 1.001 s with v2."
    assert [len(row.judgements) for row in scenario.beside] == [1]


def test_a_side_without_a_valid_run_makes_a_shown_comparison_invalid_with_the_reason() -> None:
    scenario_runs = _three()
    for broken, limit in zip(scenario_runs.sides["far"], ("98 %", "99 %"), strict=True):
        broken.manifest.gates, broken.manifest.status = [GATE.model_copy(update={"limit": limit})], Status.INVALID
    scenario = judged(scenario_runs)
    assert scenario.result is Verdict.INVALID
    whys = ["load met: 91 %, required 98 %", "load met: 91 %, required 99 %"]
    assert scenario.sentence == f"There is no valid run of v2 (far): {whys[0]}; {whys[1]}."
    assert scenario.reasons == [f"the run far-{number} is excluded: {why}" for number, why in enumerate(whys, start=1)]
    assert scenario.beside
    some = _three()
    some.sides["far"][0].manifest.gates = [GATE]
    some.sides["far"][0].manifest.status = Status.INVALID
    counted = judged(some)
    assert (counted.result, counted.reasons) == (Verdict.INFORMATIONAL, scenario.reasons[:1])
    assert counted.beside[0].judgements[0].candidate.value == pytest.approx(2.004), "only the valid run is used"


def test_metrics_without_samples_have_no_row_and_missing_values_are_marked() -> None:
    runs_by_side = _three_sides()
    for side in runs_by_side.values():
        for each in side:
            empty = MetricSummary(metric_id="a_s", distribution=None, estimates={})
            each._summaries["a_s"] = empty
    for each in runs_by_side["far"]:
        each._summaries["c_s"] = MetricSummary(metric_id="c_s", distribution=None, estimates={})
    scenario = judged(of({**SHOWN, "sides": THREE, "headline": ["a_s", "c_s"]}, runs_by_side))
    assert "a_s" not in [row.metric_id for row in scenario.beside]
    assert scenario.sentence == "Rounds: 1.001 s with v1, no data with v2 (far), 3.004 s with v2."
    two = of({**SHOWN, "sides": THREE[:2], "headline": ["c_s"]}, {name: runs_by_side[name] for name in ("near", "far")})
    assert "c_s" in {row.metric_id for row in judged(two).beside}, "a metric of one side alone is shown"


def test_noise_of_other_runs_counts_but_not_that_of_the_compared_runs() -> None:
    """With one run per side, noise would be assumed if the other runs of the store were ignored."""
    others = [run("old", number, 1.0 + 0.01 * number, version="v0") for number in range(4)]
    for each in others:
        each.manifest.subject = each.manifest.subject.model_copy(update={"binary_sha256": "same"})
    runs_by_side = {"baseline": [run("baseline", 1)], "candidate": [run("candidate", 1)]}
    scenario = of(BASE, runs_by_side)
    comparison = scenarios(scenario, history=[*others, *runs_by_side["baseline"]]).judged(scenario).comparison
    assert comparison is not None
    assert comparison.judgements[0].noise == "archive of 4 runs"
    near, far = [run("near", number, version="v1") for number in (1, 2)], [run("far", 1)]
    shown = of({**SHOWN, "sides": THREE[:2]}, {"near": near[:1], "far": far})
    history = [*others, *near[:1], run("near", 3, 9.0, version="v1")]
    assert scenarios(shown, history=history).judged(shown).beside[0].judgements[0].noise == "archive of 4 runs"
    assert "archive" not in judged(shown).beside[0].judgements[0].noise


def test_a_comparison_contains_the_profiles_of_its_sides() -> None:
    why = Profiled(runs={"baseline": ["p-1"]}, changes=[])
    comparison = judged(of(BASE, pair(), profiled=why)).comparison
    assert comparison is not None
    assert comparison.profiled == why


def test_the_candidate_of_another_scenario_is_first_and_labels_are_distinguished() -> None:
    other = of(BASE, pair())
    plan = {**SHOWN, "id": "two", "title": "Two", "beside": "one",
            "sides": [{"id": "candidate", "version": "candidate"}, {"id": "old", "version": "baseline"}]}  # fmt: skip
    runs_by_side = {"candidate": [run("candidate", 7)], "old": [run("old", 8, version="v1")]}
    scenario = judged(of(plan, runs_by_side), other)
    assert [(side.id, side.label) for side in scenario.sides] == [
        ("one/candidate", "v2"), ("candidate", "v2 (Two)"), ("old", "v1"),
    ]  # fmt: skip
    alone = judged(of(plan, runs_by_side), of(BASE, {}, lacking=["time"]))
    assert [side.id for side in alone.sides] == ["candidate", "old"]


def test_sides_of_one_version_are_named_by_their_id_or_label() -> None:
    plan = {**SHOWN, "sides": [{"id": "a", "version": "baseline"}, {"id": "b", "version": "candidate", "label": "far"},
                               {"id": "v2", "version": "candidate"}]}  # fmt: skip
    runs_by_side = {name: [run(name, 1)] for name in ("a", "b", "v2")}
    scenario = judged(of(plan, runs_by_side), versions=("v2", "v2"))
    assert [side.label for side in scenario.sides] == ["v2 (a)", "v2 (far)", "v2"]


def test_metrics_made_incomparable_by_a_condition_are_named_with_the_condition() -> None:
    scenario = judged(of(BASE, pair(clock="proposer")))
    assert scenario.comparison is not None
    (incomparable,) = incomparable_metrics(scenario.comparison)
    assert scenario.incomparable == [incomparable]
    assert incomparable == Incomparable(metric_id="d_s", label="votes", because=incomparable.because)
    assert "block time" in incomparable.because


def test_a_plot_shows_the_valid_runs_or_all_runs_of_a_side_without_any() -> None:
    plot = {"id": "p", "title": "P", "metric": "a_s", "y_label": "s"}
    runs_by_side = pair()
    for side in runs_by_side.values():
        for each in side:
            values = {metric.id: [1.0, 1.0] for metric in METRICS[:3]}
            each.frames = {"block": pl.DataFrame({"height": [1, 2], "time_s": [1.0, 2.0], **values})}
            each._summaries.clear()
    broken = [runs_by_side["baseline"][0], *runs_by_side["candidate"]]
    for each in broken:
        each.manifest.gates, each.manifest.status = [GATE], Status.INVALID
    nothing = {"id": "q", "title": "Q", "metric": "b_bytes", "y_label": "B"}
    scenario = judged(of({**BASE, "plots": ["q", "p"]}, runs_by_side), plots=[plot, nothing])
    (drawn,) = scenario.plots
    assert drawn.id == "p"
    lines = [(line.side, line.run_id) for line in drawn.chart.lines]
    assert lines == [*(("v1", f"baseline-{number}") for number in (2, 3)),
                     *(("v2", f"candidate-{number}") for number in (1, 2, 3))]  # fmt: skip
    assert judged(of({**BASE, "plots": ["p"]}, {}, lacking=["x"]), plots=[plot]).plots == []


def test_a_comparison_is_stored_without_the_details_of_its_own_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stored comparison has the charts of gating metrics and the breakdowns with changes.

    `chainmark compare` computes the rest again.

    """
    whole = judged(of(BASE, pair(1.5))).comparison
    assert whole is not None
    populations = [
        population.model_copy(update={"average_over": ["host"]}) for population in whole.catalogue.populations
    ]
    hosts = [_by_host(name) for name in ("a_s", "c_s")]
    charts = [
        ChartData(id=f"{name}-{kind.value}", metric_id=name, kind=kind, title="", x_label="", y_label="", lines=[])
        for name in ("a_s", "c_s")
        for kind in ChartKind
    ]
    catalogue = whole.catalogue.model_copy(update={"populations": populations})
    full = whole.model_copy(
        update={"catalogue": catalogue, "breakdowns": hosts, "charts": charts, "followed": Followed()}
    )
    comparison = _reduced(full)
    assert [chart.id for chart in comparison.charts] == ["a_s-cdf", "a_s-shift"]
    monkeypatch.setattr(ChartKind.SCATTER, "in_summaries", True)
    assert [chart.id for chart in _reduced(full).charts] == ["a_s-cdf", "a_s-shift", "a_s-scatter"]
    assert (comparison.followed, comparison.breakdowns) == (None, hosts[:1])
    assert comparison.judgements == full.judgements


def _by_host(metric_id: str) -> Breakdown:
    """A breakdown by two hosts, of which one changed."""
    return Breakdown.model_validate({
        "metric_id": metric_id, "key": "host", "scale": "relative", "values": ["h1", "h2"], "baseline": [1.0, 1.0],
        "candidate": [2.0, 1.0], "baseline_n": [9, 9], "candidate_n": [9, 9], "change": [1.0, 0.0], "z": [None, None],
        "stands_out": ["", ""], "median_baseline": 1.0, "median_candidate": 1.5, "left_out": 0,
    })  # fmt: skip
