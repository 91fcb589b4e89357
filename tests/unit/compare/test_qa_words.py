"""Texts of a qualification about all scenarios: the verdict, the next steps, the remarks, and the method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from chainmark.compare.qa import advice, method, notices, overall, qa_report, verdict_row
from chainmark.compare.qa_scenarios import QaRuns, ScenarioRuns
from chainmark.core.attachment import Opinion, OpinionRow
from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import A_A, Caveats
from chainmark.core.comparison import Comparison, ConditionDifference, ConfigurationDifference
from chainmark.core.manifest import BESIDE, Fact, Gate, GateKind, GateStatus, Subject
from chainmark.core.qa_plan import ScenarioKind
from chainmark.core.qa_report import Incomparable, QaScenario, RunLine
from chainmark.core.verdict import Verdict

from tests.unit.compare import qa_runs
from tests.unit.compare.metric_cases import stub_run

CANDIDATE = Subject(system="x", name="X", version="v2")
GATE = Gate(id="g", label="load met", status=GateStatus.FAIL, measured="9", limit="10")


def scenario(title: str, result: Verdict, **changes: Any) -> QaScenario:
    base: dict[str, Any] = {
        "id": title, "title": title, "question": "?", "method": "m", "kind": ScenarioKind.COMPARISON, "gating": True,
        "profile_name": "p", "repetitions": 2, "result": result, "sentence": f"{title} {result.value}.",
    }  # fmt: skip
    return QaScenario(**{**base, **changes})


def runs_of_plan(*beside: str) -> QaRuns:
    """A plan whose scenarios have one run per side. Another network ran on the machine during the named scenarios."""
    plan = qa_runs.plan()
    scenarios = []
    for number, planned in enumerate(plan.scenarios):
        run = stub_run("v1", 1.0, number)
        run.manifest.facts = [Fact(label=BESIDE if planned.id in beside else "other", value="1 more network")]
        scenarios.append(ScenarioRuns(planned, f"qa-{planned.id}", {"baseline": [run]}))
    empty = Catalogue(system="x", title="X", populations=[], tables=[], metrics=[])
    base = Subject(system="x", name="X", version="v1")
    return QaRuns(plan, "qa-1", 7, base, CANDIDATE, scenarios, ("", ""), [], empty, "0.1.0")


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        ([Verdict.PASS, Verdict.PASS], Verdict.PASS),
        ([Verdict.PASS, Verdict.NOT_RUN], Verdict.INCONCLUSIVE),
        ([Verdict.PASS, Verdict.INCONCLUSIVE], Verdict.INCONCLUSIVE),
        ([Verdict.INCONCLUSIVE, Verdict.INVALID], Verdict.INVALID),
        ([Verdict.INVALID, Verdict.FAIL, Verdict.PASS], Verdict.FAIL),
        ([], Verdict.INCONCLUSIVE),
    ],
)
def test_the_worst_gating_scenario_decides_and_an_empty_report_does_not_pass(
    results: list[Verdict], verdict: Verdict
) -> None:
    judged = [scenario(f"s{number}", result) for number, result in enumerate(results)]
    shown = scenario("shown", Verdict.FAIL, gating=False)
    assert overall([*judged, shown], CANDIDATE)[0] is verdict


def test_every_gating_scenario_is_named_with_its_result_and_reason() -> None:
    """Readers of the first page must see which scenario failed.

    A scenario without reasons is named with its sentence.
    """
    scenarios = [
        scenario("A", Verdict.PASS, reasons=["fine"]),
        scenario("B", Verdict.INCONCLUSIVE, reasons=["noise"]),
        scenario("C", Verdict.FAIL, reasons=["slower", "larger"]),
        scenario("D", Verdict.INVALID),
        scenario("E", Verdict.NOT_RUN),
        scenario("F", Verdict.FAIL),
    ]
    _, sentence, reasons = overall(scenarios, CANDIDATE)
    assert sentence == (
        "X v2 fails C and F; it cannot be judged in D; it is inconclusive in B; it was not run in E; it passes A. "
        "C: C fail."
    )
    assert reasons == ["C: slower", "C: larger", "F: F fail.", "D: D invalid.", "B: noise", "E: E not run."]
    assert overall([scenario("A", Verdict.FAIL, gating=False)], CANDIDATE)[1:] == ("Nothing was judged.", [])


@pytest.mark.parametrize(
    ("titles", "sentence"),
    [
        (["Load"], "X v2 passes Load. Load pass."),  # its title is already in the sentence
        (["Load", "Size"], "X v2 passes Load and Size. Load: Load pass. Size: Size pass."),
    ],
)
def test_results_have_titles_only_if_there_are_several(titles: list[str], sentence: str) -> None:
    """Of several scenarios, readers must see which result belongs to which."""
    shown = scenario("Shown", Verdict.INFORMATIONAL, gating=False)
    assert overall([*(scenario(title, Verdict.PASS) for title in titles), shown], CANDIDATE)[1] == sentence


def test_advice_is_about_what_keeps_a_release_from_passing() -> None:
    scenarios = [
        scenario("A", Verdict.PASS, advice=["nothing"]),
        scenario("B", Verdict.INCONCLUSIVE, advice=["more runs", "less noise"]),
        scenario("C", Verdict.FAIL, gating=False, advice=["nothing"]),
        scenario("D", Verdict.NOT_RUN, lacking=["4 processors", "a Linux"]),
        scenario("E", Verdict.NOT_RUN, lacking=["a Linux"]),
    ]
    expected = [
        "B: more runs",
        "B: less noise",
        "to test D, provide 4 processors",
        "to test D and E, provide a Linux",
    ]
    assert advice(scenarios, "qa-1") == expected
    resumed = "`--resume qa-1` runs what is still missing"
    assert advice([*scenarios, scenario("F", Verdict.INVALID, gating=False)], "qa-1") == [*expected, resumed]


def test_notices_state_each_fact_once_before_any_figure() -> None:
    held = [Incomparable(metric_id=name, label=name, because="the time differs") for name in ("a", "b")]
    other = Incomparable(metric_id="c", label="c", because="another clock")
    scenarios = [
        scenario("A", Verdict.INVALID, incomparable=[*held, other]),
        scenario("B", Verdict.NOT_RUN, lacking=["4 processors", "a Linux"], repeated=["v1, repetition 2, was invalid"]),
        scenario("C", Verdict.PASS, incomparable=held),
    ]
    end = "Such a difference does not count as a regression."
    assert notices(scenarios) == [
        f"Not comparable: a and b. The time differs. {end}",
        f"Not comparable: c. Another clock. {end}",
        "Invalid: A. A invalid.",
        "Not run: B. It requires 4 processors and a Linux. The result does not cover it.",
        "Run again: B, v1, repetition 2, was invalid.",
    ]


def _runs(*gates: Gate | None) -> list[RunLine]:
    return [
        RunLine(run_id=f"r{number}", side="baseline", repetition=1, position=number, started_at="", valid=gate is None,
                gates=[gate] if gate else [])
        for number, gate in enumerate(gates)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        ([None], "1 run on one machine", ),
        ([None, None], "none of them was invalidated by a gate"),
        ([None, GATE], "1 of them was invalidated by a gate and is not counted"),
        ([GATE, GATE], "2 of them were invalidated by a gate and are not counted"),
    ],
)  # fmt: skip
def test_invalid_runs_are_counted_in_words(gates: list[Gate | None], expected: str) -> None:
    assert expected in method(runs_of_plan(), [scenario("A", Verdict.PASS, runs=_runs(*gates))])[1]


def test_runs_that_the_release_failed_are_not_invalid() -> None:
    failed = GATE.model_copy(update={"kind": GateKind.SUBJECT, "conclusive": True})
    scenarios, two = ([scenario("A", Verdict.PASS, runs=_runs(None, *[failed] * count))] for count in (1, 2))
    assert method(runs_of_plan(), scenarios)[1].endswith(
        "none of them was invalidated by a gate; the version under test failed 1 of them, which counts against it."
    )
    assert "; the version under test failed 2 of them" in method(runs_of_plan(), two)[1]
    several = [*scenarios, scenario("B", Verdict.PASS, runs=_runs(GATE))]
    assert method(runs_of_plan(), several)[1].startswith(
        "3 runs on one machine, each on a fresh network and each sealed with"
    )


def test_the_method_section_describes_the_procedure() -> None:
    lines = method(runs_of_plan(), [])
    assert lines[0] == "Plan “sample”: Made up."
    assert lines[1:] == [
        "0 runs on one machine, each on a fresh network and each sealed with all collected data; none of "
        "them was invalidated by a gate.",
        "The runs of both versions alternate (A B B A A B …). A slow drift of the machine therefore affects both "
        "equally.",
        "Every run is estimated separately. The verdict is based on the differences between runs: the 90 % interval "
        "of each metric is compared with one margin, 10 % or the metric's own if that is larger.",
        "Seed 7; a run's seed is this seed plus its position.",
    ]


def test_scenarios_that_shared_the_machine_are_named() -> None:
    """Their latencies are not those of an otherwise idle machine."""
    lines = method(runs_of_plan("emulation", "big"), [])
    assert len(lines) == 6
    assert lines[3] == (
        "In With latency emulation and 200 nodes, both sides ran at the same time on this machine. These scenarios "
        "test whether and when something happens, not how fast the network is under load. Their latencies and CPU use "
        "are not comparable with those of a network that has the machine to itself."
    )


def test_a_row_has_the_commit_or_a_prefix_of_the_checksum() -> None:
    qa_scenario = scenario("A", Verdict.PASS, date="2026-01-02")
    known = replace(runs_of_plan(), commits=("older", "4ced46d"))
    row = verdict_row(qa_scenario, known)
    assert (row.scenario, row.date, row.version, row.result, row.reason) == (
        "A", "2026-01-02", "v2 (4ced46d)", Verdict.PASS, "A pass.",
    )  # fmt: skip
    summed = CANDIDATE.model_copy(update={"revision": "h1:0123456789abcdefgh"})
    assert verdict_row(qa_scenario, replace(runs_of_plan(), candidate=summed)).version == "v2 (h1:0123456789abc)"
    assert verdict_row(qa_scenario, runs_of_plan()).version == "v2"


def test_a_report_of_scenarios_that_could_not_be_run_has_its_plan_and_the_time_of_its_runs() -> None:
    known = runs_of_plan()
    times = ["2026-01-02T10:00:00Z", "2026-01-03T09:00:00Z", "2026-01-01T11:00:00Z"]
    scenarios = []
    for scenario_runs, moment in zip(known.scenarios, times, strict=True):
        (run,) = scenario_runs.sides["baseline"]
        run.manifest.started_at, run.manifest.ended_at = moment, moment.replace(":00Z", ":40Z")
        run.manifest.contradictions = ["the label says v3"] if moment is times[0] else []
        scenarios.append(replace(scenario_runs, lacking=["a Linux"]))
    machine = [Fact(label="Processor", value="one")]
    report = qa_report(replace(known, scenarios=scenarios, commits=("a", "b"), machine=machine))
    assert (report.tool_version, report.title) == ("0.1.0", "QA of X v2 against v1")
    assert (report.system, report.plan, report.plan_title, report.plan_description) == (
        "cometbft", "sample", "A sample", "Made up.",
    )  # fmt: skip
    assert (report.experiment, report.seed, report.commits, report.machine) == ("qa-1", 7, ("a", "b"), machine)
    assert (report.date, report.started_at, report.ended_at) == ("2026-01-03", times[2], "2026-01-03T09:00:40Z")
    assert (report.baseline.version, report.candidate.version) == ("v1", "v2")
    assert (report.verdict, report.sentence) == (Verdict.INCONCLUSIVE, "X v2 was not run in Fixed load.")
    assert report.reasons == ["Fixed load: it requires a Linux"]
    assert report.advice == ["to test Fixed load, With latency emulation and 200 nodes, provide a Linux"]
    assert [scenario.result for scenario in report.scenarios] == [Verdict.NOT_RUN] * 3
    assert [row.scenario for row in report.rows] == [scenario.title for scenario in report.scenarios]
    assert report.notices == notices(report.scenarios)
    assert report.method == method(known, report.scenarios)
    assert report.caveats.sentences == ("the label says v3",)
    assert (report.second_opinion, report.configuration_differences, report.condition_rows) == (None, [], [])
    assert report.catalogue == known.catalogue
    empty = qa_report(replace(known, scenarios=[]))
    assert (empty.date, empty.started_at, empty.ended_at, empty.scenarios) == ("", "", "", [])


def _compared(**fields: Any) -> Comparison:
    """A comparison with only these fields."""
    return Comparison.model_construct(**fields)


def test_a_report_takes_the_differences_between_versions_from_its_first_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It also states if all comparisons compare one build with itself."""
    settings = [
        ConfigurationDifference(file="f", key=key, baseline=1, candidate=2, is_default_change=own)
        for key, own in (("of the profile", False), ("of the version", True))
    ]
    condition = ConditionDifference(id="c", label="clock", baseline="a", candidate="b", explanation="why")
    compared = _compared(
        configuration_differences=settings, condition_differences=[condition], caveats=Caveats(badges=(A_A,))
    )
    other = _compared(configuration_differences=[], condition_differences=[], caveats=Caveats(badges=(A_A,)))
    rows = [OpinionRow(metric_id=name, statistic="mean") for name in "ab"]
    judged = iter(
        [
            scenario("A", Verdict.INVALID, comparison=compared, second_rule=rows[:1]),
            scenario("B", Verdict.NOT_RUN, lacking=["a Linux"]),
            scenario("C", Verdict.PASS, comparison=other, second_rule=rows[1:]),
        ]
    )
    history = [stub_run("v0", 1.0, 9)]

    class Known:
        def __init__(self, _made: QaRuns, archived: object) -> None:
            assert archived is history

        def judged(self, _one: ScenarioRuns) -> QaScenario:
            return next(judged)

    class Rule:
        def rows(self, _comparison: Comparison) -> list[OpinionRow]:
            return []

        def verdict(self, of: Sequence[OpinionRow]) -> Opinion:
            assert list(of) == rows
            return Opinion(fails=True)

    monkeypatch.setattr(import_module("chainmark.compare.qa"), "Scenarios", Known)
    report = qa_report(replace(runs_of_plan(), second_rule=Rule()), history)
    assert [difference.key for difference in report.configuration_differences] == ["of the version"]
    assert report.condition_rows == [("clock", "a", "b", "why")]
    assert report.title.endswith("QA of X v2 against v1")
    assert report.title.startswith("A/A: ")
    assert report.second_opinion == Opinion(fails=True)
    assert report.advice == [
        "to test B, provide a Linux",
        "`--resume qa-1` runs what is still missing",
    ]
