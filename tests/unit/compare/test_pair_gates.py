"""Gates on the pair of sides and differences between the sides, with runs without samples."""

from __future__ import annotations

from typing import Any

import pytest

from chainmark.compare.gates import (
    NOT_STATED,
    condition_differences,
    configuration_differences,
    incomparable,
    more_runs_may_pass,
    pair_gates,
    rules,
    same_workload,
    workload_differences,
)
from chainmark.compare.sides import SelectedRuns, select
from chainmark.core.catalogue import Catalogue
from chainmark.core.manifest import ConfigChange, Configuration, ExperimentPlace, Gate, GateStatus, Status
from chainmark.core.metric import MetricGroup, Population, SharedFact, Weighting

from tests.unit.compare.metric_cases import metric
from tests.unit.compare.synthetic_runs import HOST, SyntheticRun, manifest

BAD = Gate(id="x", label="x", status=GateStatus.FAIL, measured="1", limit="2")
PLAIN = [Population(id="host_second", label="hosts × seconds", keys=["host", "time_s"], average_over=["host"])]


def stub(name: str, *, valid: bool = True, populations: list[Population] | None = None, **changes: Any) -> SyntheticRun:
    """A run of a side. ``changes`` replace fields of its manifest."""
    described = manifest("v1", 1, run_id=name, **changes)
    described.gates = [] if valid else [BAD]
    tables = [MetricGroup(id="all", title="All")]
    used_populations = PLAIN if populations is None else populations
    return SyntheticRun(
        described, Catalogue(system="x", title="X", populations=used_populations, tables=tables, metrics=[]), {}
    )


def side(name: str, *runs: SyntheticRun) -> SelectedRuns:
    return select(name, runs)


def gates(baseline: SelectedRuns, candidate: SelectedRuns) -> dict[str, Gate]:
    all_gates = pair_gates(baseline, candidate, workload_differences(baseline, candidate))
    return {gate.id: gate for gate in all_gates}


def pair(**candidate: Any) -> tuple[SelectedRuns, SelectedRuns]:
    return side("baseline", stub("a")), side("candidate", stub("b", **candidate))


def test_equal_sides_pass_every_gate() -> None:
    by_id = gates(*pair())
    assert list(by_id) == [
        *("baseline_runs_valid", "candidate_runs_valid", "workload_equal", "window_equal", "hardware_equal"),
        *("one_build_a_side", "rules_equal", "one_experiment"),
    ]
    assert {gate.status for gate in by_id.values()} == {GateStatus.PASS}
    measured = {name: gate.measured for name, gate in by_id.items()}
    assert measured["workload_equal"] == measured["window_equal"] == measured["rules_equal"] == "equal"
    assert measured["baseline_runs_valid"] == "1 of 1 runs"
    assert measured["hardware_equal"] == HOST.hardware_class
    assert measured["one_build_a_side"] == "one binary per side"
    assert all(gate.detail == "" for gate in by_id.values())
    # The label and the limit of each gate in the report.
    everywhere = "equal in every run of both sides"
    assert [(gate.label, gate.limit) for gate in by_id.values()] == [
        ("valid runs of the baseline", "at least half of the runs, and at least one"),
        ("valid runs of the candidate", "at least half of the runs, and at least one"),
        ("same workload", everywhere),
        ("same analysis window", everywhere),
        ("same hardware class", "one class in every run of both sides"),
        ("one build per side", "one binary per side"),
        ("same averaging rules", everywhere),
        ("both sides in one experiment", "one experiment"),
    ]


def test_more_runs_help_only_if_too_few_are_valid() -> None:
    """An experiment continues to make runs, unless the sides differ in ways that no additional run changes."""
    assert [name for name, gate in gates(*pair()).items() if more_runs_may_pass(gate)] == [
        "baseline_runs_valid", "candidate_runs_valid",
    ]  # fmt: skip


PASS, WARN, FAIL = GateStatus.PASS, GateStatus.WARN, GateStatus.FAIL


@pytest.mark.parametrize(
    ("total", "failing", "status"),
    [
        *((1, 0, PASS), (1, 1, FAIL)),
        *((2, 0, PASS), (2, 1, WARN), (2, 2, FAIL)),
        *((3, 1, WARN), (3, 2, FAIL), (3, 3, FAIL)),
        *((4, 1, WARN), (4, 2, WARN), (4, 3, FAIL)),
        *((6, 3, WARN), (6, 4, FAIL)),
    ],
)
def test_at_least_half_of_the_runs_and_one_must_be_valid(total: int, failing: int, status: GateStatus) -> None:
    """None of one and one of three runs are too few. One of two and three of six are enough, with a warning."""
    runs = [stub(f"a{place}", valid=place >= failing) for place in range(total)]
    gate = gates(side("baseline", *runs), side("candidate", stub("b")))["baseline_runs_valid"]
    assert (gate.status, gate.measured) == (status, f"{total - failing} of {total} runs")
    assert gate.detail == "; ".join(f"a{place}: x: 1, required 2" for place in range(failing))
    mirrored = gates(side("baseline", stub("b")), side("candidate", *runs))
    assert mirrored["candidate_runs_valid"].status is status
    assert mirrored["baseline_runs_valid"].status is PASS


def test_runs_that_the_subject_failed_count_as_evidence() -> None:
    """Two of four runs failed and one is invalid: three count as evidence, and the number of failed runs is stated."""
    runs = [stub("a0"), *(stub(f"a{place}", valid=False) for place in (1, 2, 3))]
    for run in runs[1:3]:
        run.manifest.status = Status.FAILED
    gate = gates(side("baseline", *runs), side("candidate", stub("b")))["baseline_runs_valid"]
    assert (gate.status, gate.measured) == (WARN, "3 of 4 runs, 2 of them failed")
    assert gate.detail == "a3: x: 1, required 2"


def test_a_workload_must_be_equal_in_every_judged_run() -> None:
    baseline = side("baseline", stub("a1", workload={"rate": 1}), stub("a2", workload={"rate": 2}))
    candidate = side("candidate", stub("b", workload={"rate": 1, "size": 7}))
    assert workload_differences(baseline, candidate) == {"rate": [1, 2], "size": [None, 7]}
    by_id = gates(baseline, candidate)
    assert by_id["workload_equal"].status is GateStatus.FAIL
    assert by_id["workload_equal"].measured == "rate is 1 against 2, size is None against 7"
    assert by_id["window_equal"].status is GateStatus.PASS
    swapped = workload_differences(candidate, baseline)
    assert swapped == {"rate": [1, 2], "size": [7, None]}


def test_a_run_that_is_not_judged_does_not_count_in_the_workload_unless_none_is() -> None:
    baseline = side("baseline", stub("a1", workload={"rate": 9}, valid=False), stub("a2", workload={"rate": 1}))
    candidate = side("candidate", stub("b1", workload={"rate": 1}), stub("b2", workload={"rate": 8}, valid=False))
    assert workload_differences(baseline, candidate) == {}
    nobody = side("baseline", stub("a1", workload={"rate": 9}, valid=False))
    assert workload_differences(nobody, candidate) == {"rate": [9, 1]}
    assert workload_differences(candidate, nobody) == {"rate": [1, 9]}


def printed(name: str, **workload: int) -> SyntheticRun:
    """A run from a published report that states part of its workload."""
    run = stub(name, workload=workload)
    run.manifest.printed = True
    return run


def test_workload_properties_that_a_published_report_omits_are_not_a_difference() -> None:
    """The stated properties are compared with the other side. Reports with another load are not comparable."""
    report, logs = side("baseline", printed("a", rate=1)), stub("b", workload={"rate": 1, "size": 7})
    assert workload_differences(report, side("candidate", logs)) == {}
    assert workload_differences(side("baseline", logs), report) == {}
    assert workload_differences(report, side("candidate", printed("c", size=7))) == {}
    assert workload_differences(report, side("candidate", printed("c", rate=2, size=7))) == {"rate": [1, 2]}
    assert same_workload(report.first, logs.manifest)
    assert same_workload(logs.manifest, report.first)
    assert not same_workload(report.first, printed("c", rate=2, size=7).manifest)
    assert same_workload(report.first, printed("c", size=7).manifest)


def test_differing_runs_of_one_side_are_reported_if_the_other_states_nothing() -> None:
    unlike = [stub("b", workload={"rate": 1, "size": 7}), stub("c", workload={"rate": 1, "size": 8})]
    assert workload_differences(side("baseline", printed("a", rate=1)), side("candidate", *unlike)) == {
        "size": [None, 7]
    }


def test_fully_stated_workloads_must_be_equal_as_a_whole() -> None:
    """A key that only one of them has means that the tests differ."""
    first_manifest, other = (
        stub("a", workload=workload).manifest for workload in ({"rate": 1}, {"rate": 1, "size": 7})
    )
    assert not same_workload(first_manifest, other)
    assert same_workload(first_manifest, first_manifest)


@pytest.mark.parametrize(
    ("key", "gate"),
    [
        ("window", "window_equal"),
        ("window.start_s", "window_equal"),
        ("windows", "workload_equal"),
        ("load.window", "workload_equal"),
    ],
)
def test_a_window_is_distinguished_from_the_load(key: str, gate: str) -> None:
    left, right = side("baseline", stub("a", workload={key: 1})), side("candidate", stub("b", workload={key: 2}))
    failed = [name for name, gate in gates(left, right).items() if gate.status is GateStatus.FAIL]
    assert failed == [gate]


UNKNOWN = {"cores": 0, "cpu_model": NOT_STATED}


@pytest.mark.parametrize(
    ("left", "right", "status", "measured", "is_stated"),
    [
        ({}, {"cores": 16}, GateStatus.FAIL, "{} against {}", False),
        ({}, UNKNOWN, GateStatus.UNKNOWN, "{} against not stated", True),
        (UNKNOWN, {}, GateStatus.UNKNOWN, "not stated against {}", True),
        (UNKNOWN, UNKNOWN, GateStatus.UNKNOWN, "not stated", True),
    ],
    ids=["other machines", "candidate unknown", "baseline unknown", "both unknown"],
)
def test_unstated_machines_do_not_differ(
    left: dict[str, Any], right: dict[str, Any], status: GateStatus, measured: str, *, is_stated: bool
) -> None:
    hosts = [HOST.model_copy(update=changes) for changes in (left, right)]
    by_id = gates(side("baseline", stub("a", host=hosts[0])), side("candidate", stub("b", host=hosts[1])))
    classes = [host.hardware_class for host in hosts if host.cores]
    assert by_id["hardware_equal"].status is status
    assert by_id["hardware_equal"].measured == measured.format(*classes)
    assert by_id["hardware_equal"].detail == ("runs without recorded hardware are assumed to share it" * is_stated)


def test_two_stated_machines_differ_even_with_an_unknown_one_present() -> None:
    hosts = [HOST, HOST.model_copy(update={"cores": 16}), HOST.model_copy(update=UNKNOWN)]
    left = side("baseline", *(stub(f"a{place}", host=host) for place, host in enumerate(hosts)))
    assert gates(left, side("candidate", stub("b")))["hardware_equal"].status is GateStatus.FAIL


def _built(name: str, *binaries: str | None) -> SelectedRuns:
    runs = []
    for place, binary in enumerate(binaries):
        run = stub(f"{name}{place}")
        run.manifest.subject = run.manifest.subject.model_copy(update={"binary_sha256": binary})
        runs.append(run)
    return side(name, *runs)


@pytest.mark.parametrize(
    ("left", "right", "status", "measured"),
    [
        (["x", "x"], ["y"], GateStatus.PASS, "one binary per side"),
        (["x", "y"], ["y"], GateStatus.WARN, "baseline: 2 binaries"),
        (["x"], ["z", "y", "x"], GateStatus.WARN, "candidate: 3 binaries"),
        (["x", "y"], ["z", "x"], GateStatus.WARN, "baseline: 2 binaries, candidate: 2 binaries"),
        (["x", None], ["y"], GateStatus.UNKNOWN, "not stated"),
        (["x"], [None], GateStatus.UNKNOWN, "not stated"),
        (["x", None, "y"], ["y"], GateStatus.WARN, "baseline: 2 binaries"),
    ],
)
def test_a_side_of_several_builds_warns(
    left: list[str | None], right: list[str | None], status: GateStatus, measured: str
) -> None:
    gate = gates(_built("baseline", *left), _built("candidate", *right))["one_build_a_side"]
    assert (gate.status, gate.measured) == (status, measured)
    noted = "differences between builds count as noise between runs"
    assert gate.detail == (noted if status is GateStatus.WARN else "")


def test_a_build_that_is_not_judged_does_not_count_as_another_build() -> None:
    runs = [stub("a1"), stub("a2", valid=False)]
    runs[1].manifest.subject = runs[1].manifest.subject.model_copy(update={"binary_sha256": "another"})
    assert gates(side("baseline", *runs), side("candidate", stub("b")))["one_build_a_side"].status is PASS


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({}, "the mean over every host at each time, then over time"),
        ({"weighting": Weighting.SAMPLES}, "the mean of all samples"),
        ({"weighting": Weighting.KEYS}, "the mean of the means per host"),
        (
            {"weighting": Weighting.KEYS, "silent_keys_are_zero": True},
            "the mean of the means per host, 0 for those without samples",
        ),
        (
            {"weighting": Weighting.KEYS, "lowest_means": 3, "silent_keys_are_zero": True},
            "the mean of the 3 lowest means per host, 0 for those without samples",
        ),
        ({"weighting": Weighting.KEYS, "lowest_means": 3}, "the mean of the 3 lowest means per host"),
    ],
)
def test_sides_that_average_by_other_rules_cannot_be_compared(changes: dict[str, object], rule: str) -> None:
    populations = [PLAIN[0].model_copy(update=changes), Population(id="block", label="blocks", keys=["height"])]
    other = stub("b", populations=populations)
    assert rules(other.catalogue) == {"host_second": f"hosts × seconds: {rule}"}
    gate = gates(side("baseline", stub("a")), side("candidate", other))["rules_equal"]
    assert gate.status is (GateStatus.FAIL if changes else GateStatus.PASS)
    if changes:
        own = "hosts × seconds: the mean over every host at each time, then over time"
        assert gate.measured == f"{own} against hosts × seconds: {rule}"


def test_populations_are_compared_with_themselves_and_each_difference_is_reported() -> None:
    """Each population has its own rules, which is not a difference between the sides."""
    keys = ["height", "peer"]
    peers = Population(id="block_peer", label="blocks × peers", keys=keys, average_over=keys)
    rule = "the mean of the means per height and peer"
    peers_by = {
        weighting: peers.model_copy(update={"weighting": weighting})
        for weighting in (Weighting.KEYS, Weighting.SAMPLES)
    }
    ours = [PLAIN[0], peers_by[Weighting.KEYS]]
    baseline = side("baseline", stub("a", populations=ours))
    assert rules(baseline.runs[0].catalogue)["block_peer"] == f"blocks × peers: {rule}"
    assert gates(baseline, side("candidate", stub("b", populations=ours)))["rules_equal"].status is PASS
    other = [PLAIN[0].model_copy(update={"weighting": Weighting.SAMPLES}), peers_by[Weighting.SAMPLES]]
    gate = gates(baseline, side("candidate", stub("b", populations=other)))["rules_equal"]
    hosts = "hosts × seconds: the mean over every host at each time, then over time"
    samples = "the mean of all samples"
    assert gate.measured == (
        f"{hosts} against hosts × seconds: {samples}; blocks × peers: {rule} against blocks × peers: {samples}"
    )


def test_runs_that_are_not_judged_do_not_affect_hardware_and_rules() -> None:
    other = [PLAIN[0].model_copy(update={"weighting": Weighting.SAMPLES})]
    odd: dict[str, Any] = {"host": HOST.model_copy(update={"cores": 16}), "populations": other, "valid": False}
    by_id = gates(
        side("baseline", stub("a1"), stub("a2", **odd)),
        side("candidate", stub("b1"), stub("b2", **odd)),
    )
    assert by_id["hardware_equal"].status is by_id["rules_equal"].status is GateStatus.PASS
    nobody = gates(side("baseline", stub("a2", **odd)), side("candidate", stub("b1")))
    assert nobody["hardware_equal"].status is nobody["rules_equal"].status is GateStatus.FAIL
    nobody = gates(side("baseline", stub("a1")), side("candidate", stub("b2", **odd)))
    assert nobody["hardware_equal"].status is nobody["rules_equal"].status is GateStatus.FAIL


def test_conditions_are_listed_in_the_catalogues_order_with_unknown_ones_last() -> None:
    conditions = [
        SharedFact(id=name, label=f"the {name}", explanation=f"because {name}", makes_incomparable=metrics)
        for name, metrics in (("z", ["x_s", "y_s"]), ("same", ["w_s"]), ("m", ["y_s"]))
    ]
    metrics = [metric(id=name) for name in ("w_s", "x_s", "y_s")]
    catalogue = Catalogue(
        system="x",
        title="X",
        populations=[Population(id="block", label="blocks", keys=["height"])],
        tables=[MetricGroup(id="all", title="All")],
        metrics=metrics,
        conditions=conditions,
    )
    left = side("baseline", stub("a", conditions={"z": "1", "same": "s", "m": "1", "b": "1"}))
    right = side("candidate", stub("b", conditions={"z": "2", "same": "s", "m": "3", "a": "2"}))
    differences = condition_differences(catalogue, left, right)
    assert [
        (difference.id, difference.label, difference.baseline, difference.candidate, difference.explanation)
        for difference in differences
    ] == [
        ("z", "the z", "1", "2", "because z"),
        ("m", "the m", "1", "3", "because m"),
        ("a", "a", NOT_STATED, "2", ""),
        ("b", "b", "1", NOT_STATED, ""),
    ]
    assert incomparable(catalogue, differences) == {
        "x_s": "the z differs (1 against 2)",
        "y_s": "the z differs (1 against 2) and the m differs (1 against 3)",
    }


def test_settings_are_compared_by_value_and_true_differs_from_1() -> None:
    left = Configuration(
        effective={"b.toml": {"on": True, "same": 1, "list": [1, 2]}, "a.toml": {"k": 1}},
        changed={"b.toml": {"on": ConfigChange(default=False, used=True)}},
    )
    right = Configuration(effective={"b.toml": {"on": 1, "same": 1, "list": [1, 2]}, "c.toml": {"k": 2}})
    differences = configuration_differences(left, right)
    assert [
        (difference.file, difference.key, difference.baseline, difference.candidate) for difference in differences
    ] == [
        ("a.toml", "k", 1, None),
        ("b.toml", "on", True, 1),
        ("c.toml", "k", None, 2),
    ]
    assert [difference.only_in for difference in differences] == ["baseline", None, "candidate"]
    # A setting that either side configured is not a changed default.
    assert [difference.is_default_change for difference in differences] == [True, False, True]
    mirrored = configuration_differences(right, left)
    assert [difference.is_default_change for difference in mirrored] == [True, False, True]


def _placed(experiment: str, position: int, **changes: Any) -> SyntheticRun:
    place = ExperimentPlace(id=experiment, side="a", repetition=0, position=position)
    return stub(f"{experiment}-{position}", experiment=place, **changes)


def test_sides_of_two_experiments_warn_because_a_machine_drifts() -> None:
    """Runs of one afternoon agree with each other but are not evidence about the next afternoon."""
    left = side("baseline", _placed("e1", 0, started_at="2026-11-25T19:21:00Z"))
    gate = gates(left, side("candidate", _placed("e1", 1)))["one_experiment"]
    assert (gate.status, gate.measured) == (GateStatus.PASS, "one experiment")
    two = gates(left, side("candidate", _placed("e2", 0, started_at="2026-11-26T08:00:00Z")))["one_experiment"]
    assert two.status is GateStatus.WARN
    assert "the baseline from 2026-11-25 19:21 UTC, the candidate from 2026-11-26 08:00 UTC" in two.measured
    assert two.detail == (
        "changes of the machine in between count as changes of the release; `chainmark experiment` measures both "
        "sides alternately"
    )


def test_it_is_unknown_whether_imported_runs_were_interleaved() -> None:
    assert "one_experiment" not in gates(
        side("baseline", _placed("e1", 0)), side("candidate", stub("b", experiment=None))
    )
