"""One scenario of a qualification: what is asked, made, judged and said of it, where no samples need be drawn."""

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
from chainmark.core.comparison import Breakdown, ChartData, ChartKind, Comparison, Followed, Outcome
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.manifest import Gate, GateKind, GateStatus, Incident, Status, Subject
from chainmark.core.metric import MetricGroup, Population, SharedFact
from chainmark.core.profiled import Profiled
from chainmark.core.qa_plan import QaPlan, ScenarioPlan
from chainmark.core.qa_report import Incomparable, QaScenario
from chainmark.core.verdict import Verdict

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
    """What a sweep found."""

    def finding(self) -> Finding:
        """It fails."""
        return Finding(Verdict.FAIL, "It saturates earlier.", ["at 400 tx/s"])


class Rule:
    """A second rule with an opinion of every judged figure."""

    def rows(self, comparison: Comparison) -> Sequence[OpinionRow]:
        """One a judgement."""
        return [OpinionRow(metric_id=one.metric_id, statistic=one.statistic) for one in comparison.judgements]

    def verdict(self, rows: Sequence[OpinionRow]) -> Opinion:
        """It fails nothing."""
        return Opinion(fails=not rows)


def run(side: str, number: int, factor: float = 1.0, *, version: str = "", clock: str = "BFT") -> SyntheticRun:
    """A run without samples; runs of both sides take turns."""
    label = version or {"baseline": "v1", "candidate": "v2"}.get(side, "v2")
    position = 2 * number + (side != "baseline")
    described = manifest(label, number, side=side, position=position, run_id=f"{side}-{number}", gates=[])
    described.conditions = {"time_source": clock}
    described.workload = {"z.rate": 200, "a.nodes": 4}
    summaries = {
        one.id: MetricSummary(
            metric_id=one.id,
            distribution=None,
            estimates={"mean": Estimate(value=factor * (1.0 + 0.001 * number), standard_error=None, method="stub")},
            samples=40,
        )
        for one in METRICS
    }
    return SyntheticRun(described, CATALOGUE, {}, summaries)


def pair(factor: float = 1.0, **settings: Any) -> dict[str, Sequence[SyntheticRun]]:
    return {
        "baseline": [run("baseline", number) for number in (1, 2, 3)],
        "candidate": [run("candidate", number, factor, **settings) for number in (1, 2, 3)],
    }


def scenarios(
    *made: ScenarioRuns,
    rule: SecondRule | None = None,
    versions: tuple[str, str] = ("v1", "v2"),
    margins: Mapping[str, float] | None = None,
    plots: Sequence[dict[str, object]] = (),
    history: Sequence[SyntheticRun] = (),
) -> Scenarios:
    old, new = (Subject(system="cometbft", name="CometBFT", version=version) for version in versions)
    plans = [one.plan.model_dump() for one in made]
    plan = QaPlan.model_validate({"system": "cometbft", "name": "p", "title": "P", "description": "d",
                                  "scenario": plans, "plot": list(plots), "margins": margins or {}})  # fmt: skip
    return Scenarios(QaRuns(plan, "qa-1", 7, old, new, made, ("", ""), [], CATALOGUE, "0.1.0", rule), history)


def of(plan: Mapping[str, object], made: Mapping[str, Sequence[SyntheticRun]], **more: Any) -> ScenarioRuns:
    return ScenarioRuns(ScenarioPlan.model_validate(plan), f"qa-{plan['id']}", made, **more)


def judged(one: ScenarioRuns, *others: ScenarioRuns, **settings: Any) -> QaScenario:
    return scenarios(*others, one, **settings).judged(one)


def test_a_scenario_says_what_was_asked_and_made_and_found() -> None:
    """Whatever a report shows of a scenario stands in its result, each thing in its own place."""
    plan = {**BASE, "settings": ["load.rate=1"], "needs": ["cores:4"], "tables": ["sizes"]}
    found = judged(of(plan, pair(1.5), profile_description="A load."), rule=Rule())
    shown = found.model_dump(include=set(QaScenario.model_fields) - {"comparison", "reasons", "advice", "runs"})
    assert shown == {
        "id": "one", "title": "One", "question": "Is it?", "method": "So.", "kind": "comparison", "gating": True,
        "profile_name": "cometbft/demo", "profile_description": "A load.", "settings": ["load.rate=1"],
        "repetitions": 3, "needs": ["cores:4"], "lacking": [], "experiment": "qa-one", "date": "2026-11-20",
        "result": Verdict.FAIL, "sentence": found.sentence, "repeated": [], "tables": ["sizes"], "beside": [],
        "workload": [{"label": "a.nodes", "value": "4"}, {"label": "z.rate", "value": "200"}], "incomparable": [],
        "second_rule": [{"metric_id": one.id, "statistic": "mean"} for one in METRICS], "plots": [], "swept": None,
        "sides": [
            {"id": name, "label": version, "version": version, "conditions": {"time_source": "BFT"},
             "run_ids": [f"{name}-{number}" for number in (1, 2, 3)]}
            for name, version in (("baseline", "v1"), ("candidate", "v2"))
        ],
    }  # fmt: skip
    assert found.comparison is not None
    assert found.reasons == found.comparison.reasons
    assert found.advice == found.comparison.advice
    assert found.comparison.tool_version == "0.1.0"
    assert found.sentence.startswith("V2 is worse") or "latency" in found.sentence
    # In the order in which they were made, whatever their sides.
    order = [f"{side}-{number}" for number in (1, 2, 3) for side in ("baseline", "candidate")]
    assert [line.run_id for line in found.runs] == order


def test_a_margin_of_the_plan_counts_instead_of_the_catalogues() -> None:
    assert judged(of(BASE, pair(1.5))).result is Verdict.FAIL
    assert judged(of(BASE, pair(1.5)), margins={"a_s": 0.9}).result is Verdict.PASS


def test_a_line_of_a_run_has_its_place_its_gates_and_what_happened_unplanned() -> None:
    made = pair()
    one = made["candidate"][1]
    one.manifest.warnings = ["a slow disk"]
    one.manifest.incidents = [
        Incident(time_ns=1, what="node1 died"),
        Incident(time_ns=2, what="node2 was stopped", planned=True),
    ]
    one.manifest.gates, one.manifest.status = [GATE], Status.INVALID
    found = judged(of(BASE, made, repeats={"candidate-3": "candidate-2"}))
    lines = {line.run_id: line for line in found.runs}
    assert lines["candidate-2"].model_dump(exclude={"gates", "started_at"}) == {
        "run_id": "candidate-2", "side": "candidate", "repetition": 2, "position": 5, "valid": False, "repeats": "",
        "warnings": ["a slow disk"], "incidents": ["node1 died"],
    }  # fmt: skip
    assert lines["candidate-2"].gates == [GATE]
    assert lines["candidate-2"].started_at == one.manifest.started_at
    assert (lines["candidate-3"].valid, lines["candidate-3"].repeats) == (True, "candidate-2")
    assert found.repeated == [
        "candidate, repetition 2, was invalid (load met: 91 %, required 98 %) and was repeated: valid"
    ]


@pytest.mark.parametrize(
    ("kind", "status", "ended"),
    [(GateKind.INSTRUMENT, Status.INVALID, "invalid again"), (GateKind.SUBJECT, Status.FAILED, "failed")],
)
def test_a_run_that_was_made_again_says_how_that_ended(kind: GateKind, status: Status, ended: str) -> None:
    made = pair()
    first, again = made["candidate"][0], made["candidate"][1]
    first.manifest.gates = [GATE, GATE.model_copy(update={"label": "hosts alive"})]
    first.manifest.status = Status.INVALID
    again.manifest.gates, again.manifest.status = [GATE.model_copy(update={"kind": kind})], status
    repeats = {"candidate-1": "gone", "candidate-2": "candidate-1"}
    (told,) = judged(of(BASE, made, repeats=repeats)).repeated
    assert told.endswith(f": {ended}")
    assert "(load met: 91 %, required 98 %; hosts alive: 91 %, required 98 %)" in told


def test_a_run_outside_an_experiment_has_no_place() -> None:
    one = run("candidate", 1)
    one.manifest.experiment = None
    (line,) = judged(of({**SHOWN, "sides": [{"id": "candidate", "version": "candidate"}]}, {"candidate": [one]})).runs
    assert (line.side, line.repetition, line.position) == ("", 0, 0)


@pytest.mark.parametrize(
    ("changes", "expected"), [({}, 3), ({"repetitions": 5}, 5), ({"most_runs": 6}, 3), ({"gating": False}, 3)]
)
def test_the_repetitions_are_those_that_were_needed_or_planned(changes: dict[str, object], expected: int) -> None:
    assert judged(of({**BASE, **changes}, pair())).repetitions == expected


def test_a_scenario_that_lacks_something_was_not_run() -> None:
    found = judged(of({**BASE, "most_runs": 6}, {}, lacking=["64 processors", "namespaces"]))
    assert (found.result, found.repetitions, found.experiment, found.date) == (Verdict.NOT_RUN, 6, "", "")
    assert found.sentence == "Not run: it requires 64 processors and it requires namespaces."
    assert found.reasons == ["it requires 64 processors", "it requires namespaces"]
    assert (found.lacking, found.sides, found.workload) == (["64 processors", "namespaces"], [], [])
    assert (found.comparison, found.incomparable, found.second_rule) == (None, [], [])


def test_a_side_that_could_not_be_made_leaves_a_comparison_invalid_with_the_reason() -> None:
    plan = {**BASE, "sides": [{"id": "baseline", "version": "baseline"},
                              {"id": "candidate", "version": "candidate", "label": "the new one"}]}  # fmt: skip
    made = {"baseline": pair()["baseline"]}
    found = judged(of(plan, made, failures={"candidate": "no port", "other": "no disk"}))
    why = ["no run of the new one succeeded: no port", "no run of other succeeded: no disk"]
    assert (found.result, found.reasons) == (Verdict.INVALID, why)
    assert found.sentence == f"The scenario could not be run: {why[0]}; {why[1]}."
    assert judged(of(plan, {})).sentence == "The scenario could not be run: there is no run of baseline and candidate."
    nothing = judged(of({**SHOWN, "sides": [{"id": "far", "version": "candidate"}]}, {}))
    assert (nothing.result, nothing.reasons) == (Verdict.INVALID, ["there is no run of far"])


def test_a_run_that_could_not_be_made_spoils_a_pass_and_no_failure() -> None:
    """Of the runs that are missing nobody knows what they would have shown; a regression is one all the same."""
    failures = {"candidate": "no port"}
    passed, failed = (judged(of(BASE, pair(factor), failures=failures)) for factor in (1.0, 1.5))
    assert (passed.result, failed.result) == (Verdict.INVALID, Verdict.FAIL)
    assert passed.reasons[0] == failed.reasons[0] == "no run of candidate succeeded: no port"
    assert len(failed.reasons) > 1


def test_a_comparison_that_is_only_shown_is_told_by_its_headline() -> None:
    found = judged(of({**BASE, "gating": False, "headline": ["a_s", "b_bytes"]}, pair(2.0)))
    assert found.result is Verdict.INFORMATIONAL
    assert found.sentence == "Latency, mean: 1.002 s with v1, 2.004 s with v2; size: 1.002 B with v1, 2.004 B with v2."
    plain = judged(of({**BASE, "gating": False}, pair(2.0)))
    assert plain.comparison is not None
    assert plain.sentence.rstrip(".").lower() == plain.comparison.sentence.rstrip(".").lower()


def test_a_sweep_is_judged_by_what_its_system_found() -> None:
    plan = {**BASE, "kind": "sweep"}
    found = judged(of(plan, pair(), swept=Swept()))
    assert (found.result, found.sentence, found.reasons) == (
        Verdict.FAIL, "It saturates earlier.", ["at 400 tx/s"],
    )  # fmt: skip
    assert found.swept == Swept()
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


def test_sides_that_are_only_shown_are_each_held_against_the_first() -> None:
    found = judged(_three(headline=["c_s"], tables=["sizes"]))
    assert (found.result, found.comparison) == (Verdict.INFORMATIONAL, None)
    assert [side.label for side in found.sides] == ["v1", "v2 (far)", "v2"]
    # What gates, what its tables and its headline ask for, and what a condition makes incomparable.
    assert [(row.metric_id, row.statistic) for row in found.beside] == [(one.id, "mean") for one in METRICS]
    changes = [[item.change for item in row.judgements] for row in found.beside]
    assert [changes[0], changes[1], changes[3]] == [[pytest.approx(1.0), pytest.approx(2.0)]] * 3
    votes = found.beside[2].judgements
    assert [item.outcome is Outcome.NOT_COMPARABLE for item in votes] == [True, False]
    assert votes[0].note.startswith("not comparable: ")
    assert "BFT" in votes[0].note
    assert [votes[0].baseline.value, votes[0].candidate.value] == pytest.approx([1.0015, 2.003], rel=1e-4)
    assert found.sentence == "Rounds: 1.001 s with v1, 2.003 s with v2 (far), 3.004 s with v2."


def test_what_nobody_asked_for_is_not_shown() -> None:
    found = judged(of({**SHOWN, "sides": THREE[:2]}, {"near": [run("near", 1, version="v1")], "far": [run("far", 1)]}))
    assert [row.metric_id for row in found.beside] == ["a_s"]
    assert found.sentence == "For information only: v1 and v2 (far)."
    asked = {**SHOWN, "sides": THREE[:2], "tables": ["sizes"]}
    made = {"near": [run("near", 1, version="v1")], "far": [run("far", 1)]}
    assert [row.metric_id for row in judged(of(asked, made)).beside] == ["a_s", "b_bytes"]


def test_a_single_side_is_shown_as_it_is() -> None:
    plan = {**SHOWN, "headline": ["a_s"], "sides": [{"id": "far", "version": "candidate"}]}
    found = judged(of(plan, {"far": [run("far", 1)]}))
    assert found.sentence == "Latency, mean: 1.001 s with v2."
    assert [len(row.judgements) for row in found.beside] == [1]


def test_a_side_without_a_valid_run_leaves_what_is_shown_invalid_with_the_reason() -> None:
    one = _three()
    for broken, limit in zip(one.sides["far"], ("98 %", "99 %"), strict=True):
        broken.manifest.gates, broken.manifest.status = [GATE.model_copy(update={"limit": limit})], Status.INVALID
    found = judged(one)
    assert found.result is Verdict.INVALID
    whys = ["load met: 91 %, required 98 %", "load met: 91 %, required 99 %"]
    assert found.sentence == f"There is no valid run of v2 (far): {whys[0]}; {whys[1]}."
    assert found.reasons == [f"the run far-{number} is excluded: {why}" for number, why in enumerate(whys, start=1)]
    assert found.beside
    some = _three()
    some.sides["far"][0].manifest.gates = [GATE]
    some.sides["far"][0].manifest.status = Status.INVALID
    counted = judged(some)
    assert (counted.result, counted.reasons) == (Verdict.INFORMATIONAL, found.reasons[:1])
    assert counted.beside[0].judgements[0].candidate.value == pytest.approx(2.004), "by its valid run alone"


def test_metrics_without_samples_have_no_row_and_a_value_that_is_missing_is_said_to_be() -> None:
    made = _three_sides()
    for side in made.values():
        for each in side:
            empty = MetricSummary(metric_id="a_s", distribution=None, estimates={})
            each._summaries["a_s"] = empty
    for each in made["far"]:
        each._summaries["c_s"] = MetricSummary(metric_id="c_s", distribution=None, estimates={})
    found = judged(of({**SHOWN, "sides": THREE, "headline": ["a_s", "c_s"]}, made))
    assert "a_s" not in [row.metric_id for row in found.beside]
    assert found.sentence == "Rounds: 1.001 s with v1, no data with v2 (far), 3.004 s with v2."
    two = of({**SHOWN, "sides": THREE[:2], "headline": ["c_s"]}, {name: made[name] for name in ("near", "far")})
    assert "c_s" in {row.metric_id for row in judged(two).beside}, "what one side alone has is shown"


def test_noise_of_other_runs_counts_but_not_that_of_the_runs_that_are_held_against_each_other() -> None:
    """Of one run a side nobody knows the noise; without the store's other runs it would be assumed."""
    others = [run("old", number, 1.0 + 0.01 * number, version="v0") for number in range(4)]
    for each in others:
        each.manifest.subject = each.manifest.subject.model_copy(update={"binary_sha256": "same"})
    made = {"baseline": [run("baseline", 1)], "candidate": [run("candidate", 1)]}
    one = of(BASE, made)
    comparison = scenarios(one, history=[*others, *made["baseline"]]).judged(one).comparison
    assert comparison is not None
    assert comparison.judgements[0].noise == "archive of 4 runs"
    near, far = [run("near", number, version="v1") for number in (1, 2)], [run("far", 1)]
    shown = of({**SHOWN, "sides": THREE[:2]}, {"near": near[:1], "far": far})
    history = [*others, *near[:1], run("near", 3, 9.0, version="v1")]
    assert scenarios(shown, history=history).judged(shown).beside[0].judgements[0].noise == "archive of 4 runs"
    assert "archive" not in judged(shown).beside[0].judgements[0].noise


def test_profiles_of_its_sides_stay_with_a_comparison() -> None:
    why = Profiled(runs={"baseline": ["p-1"]}, changes=[])
    comparison = judged(of(BASE, pair(), profiled=why)).comparison
    assert comparison is not None
    assert comparison.profiled == why


def test_the_candidate_of_another_scenario_stands_first_and_labels_are_told_apart() -> None:
    other = of(BASE, pair())
    plan = {**SHOWN, "id": "two", "title": "Two", "beside": "one",
            "sides": [{"id": "candidate", "version": "candidate"}, {"id": "old", "version": "baseline"}]}  # fmt: skip
    made = {"candidate": [run("candidate", 7)], "old": [run("old", 8, version="v1")]}
    found = judged(of(plan, made), other)
    assert [(side.id, side.label) for side in found.sides] == [
        ("one/candidate", "v2"), ("candidate", "v2 (Two)"), ("old", "v1"),
    ]  # fmt: skip
    alone = judged(of(plan, made), of(BASE, {}, lacking=["time"]))
    assert [side.id for side in alone.sides] == ["candidate", "old"]


def test_sides_of_one_version_are_called_by_what_they_are() -> None:
    plan = {**SHOWN, "sides": [{"id": "a", "version": "baseline"}, {"id": "b", "version": "candidate", "label": "far"},
                               {"id": "v2", "version": "candidate"}]}  # fmt: skip
    made = {name: [run(name, 1)] for name in ("a", "b", "v2")}
    found = judged(of(plan, made), versions=("v2", "v2"))
    assert [side.label for side in found.sides] == ["v2 (a)", "v2 (far)", "v2"]


def test_what_a_condition_makes_incomparable_is_named_with_the_condition() -> None:
    found = judged(of(BASE, pair(clock="proposer")))
    assert found.comparison is not None
    (one,) = incomparable_metrics(found.comparison)
    assert found.incomparable == [one]
    assert one == Incomparable(metric_id="d_s", label="votes", because=one.because)
    assert "block time" in one.because


def test_a_plot_shows_the_valid_runs_and_of_a_side_without_one_all() -> None:
    plot = {"id": "p", "title": "P", "metric": "a_s", "y_label": "s"}
    made = pair()
    for side in made.values():
        for each in side:
            values = {one.id: [1.0, 1.0] for one in METRICS[:3]}
            each.frames = {"block": pl.DataFrame({"height": [1, 2], "time_s": [1.0, 2.0], **values})}
            each._summaries.clear()
    broken = [made["baseline"][0], *made["candidate"]]
    for each in broken:
        each.manifest.gates, each.manifest.status = [GATE], Status.INVALID
    nothing = {"id": "q", "title": "Q", "metric": "b_bytes", "y_label": "B"}
    found = judged(of({**BASE, "plots": ["q", "p"]}, made), plots=[plot, nothing])
    (drawn,) = found.plots
    assert drawn.id == "p"
    lines = [(line.side, line.run_id) for line in drawn.chart.lines]
    assert lines == [*(("v1", f"baseline-{number}") for number in (2, 3)),
                     *(("v2", f"candidate-{number}") for number in (1, 2, 3))]  # fmt: skip
    assert judged(of({**BASE, "plots": ["p"]}, {}, lacking=["x"]), plots=[plot]).plots == []


def test_a_comparison_is_kept_without_what_its_own_report_shows() -> None:
    """Charts of what decides, and breakdowns of what changed somewhere; the rest `chainmark compare` makes again."""
    whole = judged(of(BASE, pair(1.5))).comparison
    assert whole is not None
    populations = [one.model_copy(update={"average_over": ["host"]}) for one in whole.catalogue.populations]
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
    kept = _reduced(full)
    assert [chart.id for chart in kept.charts] == ["a_s-cdf", "a_s-shift"]
    assert (kept.followed, kept.breakdowns) == (None, hosts[:1])
    assert kept.judgements == full.judgements


def _by_host(metric_id: str) -> Breakdown:
    """Two hosts, of which one changed."""
    return Breakdown.model_validate({
        "metric_id": metric_id, "key": "host", "scale": "relative", "values": ["h1", "h2"], "baseline": [1.0, 1.0],
        "candidate": [2.0, 1.0], "baseline_n": [9, 9], "candidate_n": [9, 9], "change": [1.0, 0.0], "z": [None, None],
        "stands_out": ["", ""], "median_baseline": 1.0, "median_candidate": 1.5, "left_out": 0,
    })  # fmt: skip
