"""The verdict on two sides, from their runs' summaries: definitions, judged metrics, the archive and exclusions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from chainmark.compare.decide import Decided, decide, merged_catalogue, of_measured
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement, Outcome
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.manifest import ExperimentLength, ExperimentPlace, Gate, GateStatus, Status
from chainmark.core.metric import Metric, MetricGroup, Population, SharedFact
from chainmark.core.verdict import Verdict
from chainmark.stats.sequential import Looks

from tests.unit.compare.metric_cases import metric, spread, stub_run
from tests.unit.compare.synthetic_runs import SyntheticRun

QUIET, NOISY = 0.002, 0.08
EARLY = ExperimentLength(most=6, stops_early=True)


def gating(name: str, **settings: Any) -> Metric:
    return metric(id=name, label=f"gating {name[0]}", gating=True, **settings)


LATENCY, INTERVAL = gating("latency_s", order=2), gating("interval_s", order=1)
MEMORY = metric(id="memory_bytes", label="memory", unit="B", order=3)


def catalogue(*metrics: Metric, **settings: Any) -> Catalogue:
    defaults = {
        "system": "x",
        "title": "X",
        "populations": [Population(id="block", label="blocks", keys=["height"])],
        "tables": [MetricGroup(id="all", title="All")],
        "metrics": list(metrics),
    }
    return Catalogue.model_validate(defaults | settings)


WHOLE = catalogue(LATENCY, INTERVAL, MEMORY)


def run(version: str, number: int, means: Mapping[str, float | None], described: Catalogue = WHOLE) -> SyntheticRun:
    """A run with these means and its catalogue."""
    synthetic = stub_run(version, 1.0, number)
    synthetic.catalogue = described
    synthetic._summaries = {
        name: MetricSummary(
            metric_id=name, distribution=None, estimates={"mean": Estimate(value=mean, standard_error=None, method="")}
        )
        for name, mean in means.items()
    }
    return synthetic


def side(version: str, deviation: float = QUIET, described: Catalogue = WHOLE, **centres: float) -> list[SyntheticRun]:
    """Three runs. The mean of every metric is 1 unless given in ``centres``."""
    columns = {item.id: spread(centres.get(item.id, 1.0), deviation) for item in described.metrics}
    return [run(version, number, {name: column[number] for name, column in columns.items()}, described)
            for number in range(3)]  # fmt: skip


def judged(decision: Decided, metric_id: str) -> Judgement:
    return next(item for item in decision.judgements if item.metric_id == metric_id)


def fail(synthetic: SyntheticRun, label: str = "load met") -> None:
    synthetic.manifest.gates.append(Gate(id="load_met", label=label, status=GateStatus.FAIL, measured="1", limit="2"))


def looked_at(deviation: float, length: ExperimentLength = EARLY, runs: tuple[int, int] = (3, 3)) -> Decided:
    """The decision on an experiment with planned ``length``, of which ``runs`` per side were made."""
    first, second = (of_experiment(side(name, deviation), length)[:n] for name, n in zip("ab", runs, strict=True))
    return decide(first, second)


def of_experiment(runs: Sequence[SyntheticRun], length: ExperimentLength) -> Sequence[SyntheticRun]:
    for number, synthetic in enumerate(runs):
        place = ExperimentPlace(id="e", side="s", repetition=number, position=number, length=length)
        synthetic.manifest.experiment = place
    return runs


# --- definitions of metrics -----------------------------------------------------------------------------------------


def test_metrics_missing_from_the_candidate_are_added_to_its_definitions() -> None:
    """Otherwise a metric that the candidate's release removed would disappear from the report, with any regression."""
    block, host = (Population(id=name, label=f"{name}s", keys=[name]) for name in ("block", "host"))
    old = catalogue(
        LATENCY,
        metric(id="gone_s", population="host", table="old"),
        populations=[block.model_copy(update={"label": "old blocks"}), host],
        tables=[MetricGroup(id="old", title="Old"), MetricGroup(id="all", title="Old title")],
        title="Old",
        trails=[{"key": "old"}],
        published={"style": "old"},
        conditions=[SharedFact(id="old", label="old", explanation="")],
    )
    new = catalogue(
        LATENCY.model_copy(update={"margin": 0.2}),
        populations=[block],
        title="New",
        trails=[{"key": "new"}],
        published={"style": "new"},
        conditions=[SharedFact(id="new", label="new", explanation="", makes_incomparable=["latency_s"])],
    )
    merged = merged_catalogue(old, new)
    assert (merged.system, merged.title, merged.trails, merged.published) == (
        new.system,
        "New",
        new.trails,
        new.published,
    )
    assert merged.conditions == new.conditions
    assert [(item.id, item.margin) for item in merged.metrics] == [("latency_s", 0.2), ("gone_s", 0.1)]
    assert merged.populations == [block, host]
    assert [(item.id, item.title) for item in merged.tables] == [("all", "All"), ("old", "Old")]
    # Metrics of the candidate alone are present in any case.
    assert merged_catalogue(new, old).metric("gone_s").table == "old"


def test_the_definitions_are_those_of_the_judged_runs() -> None:
    """The first run, which a gate excluded, may have been made with an older catalogue."""
    older = catalogue(LATENCY, metric(id="older_s"))
    for spoilt in (0, 1):
        pair = side("a"), side("b")
        pair[spoilt][0].catalogue = older
        fail(pair[spoilt][0])
        decision = decide(*pair)
        assert [item.id for item in decision.catalogue.metrics] == ["latency_s", "interval_s", "memory_bytes"]
        assert {item.outcome for item in decision.judgements if item.gating} == {Outcome.EQUAL}


def test_a_metric_that_the_candidate_lost_has_no_data_and_does_not_pass() -> None:
    decision = decide(side("a"), side("b", described=catalogue(LATENCY, MEMORY)))
    assert judged(decision, "interval_s").outcome is Outcome.NO_DATA
    assert judged(decision, "interval_s").note == "candidate: not in the catalogue"
    assert decision.finding.verdict is Verdict.INCONCLUSIVE
    assert decision.undecided == ["gating i"]


def test_configured_margins_override_those_of_the_catalogue() -> None:
    pair = side("a"), side("b", latency_s=1.15)
    for margin, outcome in ((None, Outcome.WORSE), (0.3, Outcome.EQUAL)):
        decision = decide(*pair, margins={} if margin is None else {"latency_s": margin})
        assert judged(decision, "latency_s").outcome is outcome
        assert decision.catalogue.metric("latency_s").margin == (margin or 0.1)
        assert judged(decision, "interval_s").margin_high == pytest.approx(0.1)
    assert of_measured({"latency_s": 0.3, "other_s": 0.2, "memory_bytes": 0.1}, pair[1]) == {
        "latency_s": 0.3,
        "memory_bytes": 0.1,
    }


# --- judged metrics -------------------------------------------------------------------------------------------------


def test_baseline_and_candidate_are_not_swapped() -> None:
    """If they were swapped, every improvement would be a regression."""
    decision = decide(side("a"), side("b", latency_s=1.5, interval_s=0.5))
    assert [item.metric_id for item in decision.judgements] == ["interval_s", "latency_s", "memory_bytes"]
    assert [item.outcome for item in decision.judgements[:2]] == [Outcome.BETTER, Outcome.WORSE]
    assert judged(decision, "latency_s").change == pytest.approx(0.5)
    assert judged(decision, "latency_s").baseline.value == pytest.approx(1.0)
    assert judged(decision, "latency_s").candidate.value == pytest.approx(1.5)
    assert (decision.labels, decision.finding.verdict) == (("a", "b"), Verdict.FAIL)
    assert decision.finding.sentence.startswith("b is worse than a: gating l +50.0 %")
    assert (decision.baseline.version, decision.candidate.version) == ("a", "b")
    assert [item.p_worse_adjusted is None for item in decision.judgements] == [False, False, True]
    assert [item.q_different is None for item in decision.judgements] == [False, False, False]


def test_only_undecided_gating_metrics_are_named() -> None:
    """A release engineer reads what to measure again. Decided metrics and diagnostics would be misleading."""
    decision = decide(side("a"), side("b", latency_s=0.5, memory_bytes=2.0))
    assert (decision.undecided, decision.finding.verdict) == ([], Verdict.PASS)
    assert decide(side("a"), side("b", latency_s=1.5)).undecided == ["gating l"]
    noisy = decide(side("a", NOISY), side("b", NOISY))
    assert {item.outcome for item in noisy.judgements} == {Outcome.INCONCLUSIVE}
    assert noisy.undecided == ["gating i", "gating l"]


def test_a_metric_judged_by_two_statistics_is_judged_twice() -> None:
    both = catalogue(gating("latency_s", statistics=["mean", "p99"], judged_by=["p99", "mean"]))
    pair = side("a", described=both), side("b", described=both)
    for synthetic in [*pair[0], *pair[1]]:
        summary = synthetic._summaries["latency_s"]
        summary.estimates["p99"] = Estimate(value=9.0, standard_error=None, method="")
    decision = decide(*pair)
    assert [(item.statistic, item.baseline.value) for item in decision.judgements] == [
        ("p99", 9.0),
        ("mean", pytest.approx(1.0)),
    ]
    assert len(decision.family.adjusted) == 2


def test_only_gating_metrics_are_in_the_family() -> None:
    """A diagnostic that counted as a chance of failure would make all other failures less likely."""
    assert len(decide(side("a"), side("b")).family.adjusted) == 2
    alone = catalogue(LATENCY, *(metric(id=f"d{number}_s") for number in range(9)))
    assert len(decide(side("a", described=alone), side("b", described=alone)).family.adjusted) == 1


@pytest.mark.parametrize(
    ("judges", "verdict"),
    [
        (None, Verdict.FAIL),
        ({"interval_s"}, Verdict.FAIL),
        ({"latency_s"}, Verdict.PASS),
        ({"latency_s", "memory_bytes"}, Verdict.FAIL),  # a diagnostic decides if it is named
    ],
)
def test_only_the_metrics_that_a_scenario_names_decide(judges: set[str] | None, verdict: Verdict) -> None:
    decision = decide(side("a"), side("b", interval_s=1.5, memory_bytes=2.0), judges=judges)
    assert decision.finding.verdict is verdict
    expected = {"latency_s", "interval_s"} if judges is None else judges
    assert {item.metric_id for item in decision.judgements if item.gating} == expected


def test_a_scenario_that_no_metric_decides_passes_unless_a_run_failed() -> None:
    pair = side("a"), side("b", interval_s=1.5)
    passed = decide(*pair, judges=()).finding
    assert (passed.verdict, passed.sentence) == (Verdict.PASS, "b passed its runs")
    assert passed.reasons[0] == "only failed runs decide here, no metric"
    pair[1][0].manifest.status = Status.FAILED
    failed = decide(*pair, judges=())
    assert (failed.finding.verdict, failed.finding.sentence) == (Verdict.FAIL, failed.failures.sentence)


# --- sides that are not judged --------------------------------------------------------------------------------------


def test_sides_of_different_workloads_are_shown_and_not_judged() -> None:
    baseline, candidate = side("a"), side("b", latency_s=1.5)
    for synthetic in candidate:
        synthetic.manifest.workload = {**synthetic.manifest.workload, "load.rate": 1, "window.start_s": 7}
    decision = decide(baseline, candidate)
    assert decision.finding.verdict is Verdict.INVALID
    failed = {gate.id for gate in decision.gates if gate.status is GateStatus.FAIL}
    assert failed == {"workload_equal", "window_equal"}
    assert decision.workload_differences == {"load.rate": [None, 1], "window.start_s": [30, 7]}
    for item in decision.judgements:
        assert item.outcome is Outcome.INCONCLUSIVE
        assert item.note == "not judged: the workloads differ, the analysis windows differ"
        assert (item.change, item.p_worse, item.p_different, item.gating) == (
            None,
            None,
            None,
            item.metric_id != "memory_bytes",
        )
    assert judged(decision, "latency_s").candidate.value == pytest.approx(1.5)
    assert decision.family.adjusted == (None, None)


def test_the_figures_of_sides_without_a_passed_run_are_shown_and_not_judged() -> None:
    """The side without a passed run is named: the baseline, the candidate, or both."""
    for failed, expected in (
        ((0,), "the baseline"),
        ((1,), "the candidate"),
        ((0, 1), "the baseline passed no run, the candidate"),
    ):
        pair = side("a"), side("b", latency_s=1.5)
        for place in failed:
            for synthetic in pair[place]:
                synthetic.manifest.status = Status.FAILED
        decision = decide(*pair)
        assert {item.note for item in decision.judgements} == {f"not judged: {expected} passed no run"}
        assert decision.failures.sentence in decision.finding.sentence
        assert decision.failures.sentence.count("failed 3 of 3 runs") == len(failed)
        assert {item.outcome for item in decision.judgements} == {Outcome.INCONCLUSIVE}
        assert judged(decision, "latency_s").baseline.value == pytest.approx(1.0)
        assert judged(decision, "latency_s").candidate.per_run == pytest.approx(spread(1.5, QUIET))


def test_only_metrics_made_incomparable_by_a_condition_are_not_judged() -> None:
    clock = SharedFact(id="clock", label="clock", explanation="", makes_incomparable=["latency_s"])
    described = catalogue(LATENCY, INTERVAL, MEMORY, conditions=[clock])
    baseline = side("a", described=described)
    candidate = side("b", described=described, latency_s=1.5)
    for name, runs in (("old", baseline), ("new", candidate)):
        for synthetic in runs:
            synthetic.manifest.conditions = {"clock": name}
    decision = decide(baseline, candidate)
    latency = judged(decision, "latency_s")
    assert latency.outcome is Outcome.NOT_COMPARABLE
    assert latency.note == "not comparable: clock differs (old against new)"
    assert (latency.gating, latency.change) == (True, None)
    assert latency.candidate.value == pytest.approx(1.5)
    assert judged(decision, "interval_s").outcome is Outcome.EQUAL
    assert [(item.id, item.baseline, item.candidate) for item in decision.condition_differences] == [
        ("clock", "old", "new")
    ]
    assert decision.undecided == ["gating l"]


# --- the archive and earlier looks ----------------------------------------------------------------------------------


def test_the_archive_has_runs_of_the_baselines_machine_except_the_compared_ones() -> None:
    """With one run per side, the noise in the archive decides whether 15 % is worse."""
    only = catalogue(LATENCY)

    def version_run(version: str, number: int, mean: float) -> SyntheticRun:
        return run(version, number, {"latency_s": mean}, only)

    baseline, candidate = [version_run("a", 0, 1.0)], [version_run("b", 0, 1.2)]
    quiet = [version_run("h", number, value) for number, value in enumerate([1.0, 1.004, 0.996, 1.002, 0.998] * 2)]
    assert judged(decide(baseline, candidate), "latency_s").noise.startswith("assumed")
    with_archive = decide(baseline, candidate, quiet)
    assert with_archive.finding.verdict is Verdict.FAIL
    assert "assumed" not in judged(with_archive, "latency_s").noise
    assert with_archive.family.table is not None, "the test of the family also uses the noise of the archive"
    assert len(with_archive.family.table.archive) == len(quiet) - 1
    # A store also contains the compared runs, which must be excluded.
    again = decide(baseline, candidate, [*quiet, *baseline, *candidate])
    assert judged(again, "latency_s") == judged(with_archive, "latency_s")
    for own in (baseline, candidate):
        alike = [*own, *(version_run(own[0].manifest.subject.version, number, 9.0) for number in (1,))]
        assert judged(decide(baseline, candidate, alike), "latency_s").noise.startswith("assumed")
    elsewhere = [version_run("h", number, value) for number, value in enumerate([1.0, 1.004, 0.996])]
    for other in elsewhere:
        other.manifest.host = other.manifest.host.model_copy(update={"cores": 64})
    assert judged(decide(baseline, candidate, elsewhere), "latency_s").noise.startswith("assumed")
    # A candidate without recorded hardware is assumed to share the baseline's.
    unknown = candidate[0].manifest.host.model_copy(update={"cpu_model": "", "cores": 0, "memory_bytes": 0})
    candidate[0].manifest.host = unknown
    assert judged(decide(baseline, candidate, quiet), "latency_s").noise == judged(with_archive, "latency_s").noise


def test_every_look_at_an_experiment_is_accounted_for() -> None:
    """Otherwise an experiment that is checked until it fails will fail eventually."""
    decision = looked_at(NOISY)
    assert decision.family.table is not None
    assert decision.family.table.looks == Looks(((2, 2), (3, 3)), 6)
    loose = looked_at(NOISY, ExperimentLength(most=3, stops_early=False))
    assert decision.family.level < loose.family.level


def test_the_chances_of_a_decision_are_shown_for_the_remaining_looks() -> None:
    """A user who waits for an experiment must know whether its next runs may end it."""
    chances = looked_at(0.04).chances()
    assert list(chances) == [4, 5, 6]
    assert list(chances.values()) == sorted(chances.values())
    assert 0.0 < chances[4] < chances[6] <= 1.0
    assert looked_at(0.04, EARLY.model_copy(update={"most": 3})).chances() == {}
    assert list(looked_at(0.04, runs=(3, 2)).chances()) == [4, 5, 6]


def test_without_known_noise_there_are_no_chances() -> None:
    decision = looked_at(QUIET, runs=(1, 1))
    assert (decision.family.table, decision.chances()) == (None, {})
