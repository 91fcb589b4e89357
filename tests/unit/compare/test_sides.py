"""The two sides of a comparison: judged runs, their order, and rejected input."""

from __future__ import annotations

from typing import Any

import pytest

from chainmark.compare.sides import are_interleaved, check_pair, describe, exclusion, joined_conditions, labels, select
from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import UsageError
from chainmark.core.manifest import (
    ExperimentPlace,
    Gate,
    GateKind,
    GateStatus,
    HostFacts,
    Incident,
    Manifest,
    Status,
    Subject,
    status_of,
)

from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

EMPTY = Catalogue(system="x", title="x", populations=[], tables=[], metrics=[])
MORNING, NOON = "2026-11-20T08:00:00Z", "2026-11-20T12:00:00Z"


def gate(name: str, status: GateStatus = GateStatus.FAIL) -> Gate:
    return Gate(id=name, label=f"gate {name}", status=status, measured=f"{name} found", limit=f"{name} wanted")


def place(position: int, experiment: str = "e1") -> ExperimentPlace:
    return ExperimentPlace(id=experiment, side="baseline", repetition=position + 1, position=position)


def stub(name: str, version: str = "v1", **changes: Any) -> SyntheticRun:
    return SyntheticRun(manifest(version, 1, run_id=name, **{"experiment": None, **changes}), EMPTY, {})


def order(*runs: SyntheticRun) -> list[str]:
    return [run.run_id for run in select("baseline", runs[::-1]).runs]


@pytest.mark.parametrize(
    ("gates", "status"),
    [
        ([], Status.VALID),
        ([gate("a", GateStatus.PASS), gate("b", GateStatus.WARN)], Status.VALID),
        ([gate("a", GateStatus.PASS), gate("b")], Status.INVALID),
        ([gate("a")], Status.INVALID),
    ],
)
def test_a_run_is_valid_if_it_met_all_of_its_gates(gates: list[Gate], status: Status) -> None:
    assert status_of(gates) is status
    described = manifest("v1", 1, gates=gates, status=status)
    assert described.failed_gates == [gate for gate in gates if gate.status is GateStatus.FAIL]
    assert (exclusion(described) is None) == (status is Status.VALID)


def test_the_reason_for_not_judging_a_run_names_every_failed_gate() -> None:
    described: Manifest = manifest("v1", 1, gates=[gate("a"), gate("b", GateStatus.PASS), gate("c")])
    assert exclusion(described) == "gate a: a found, required a wanted; gate c: c found, required c wanted"
    marked = manifest("v1", 1, gates=[], status=Status.INVALID)
    assert exclusion(marked) == "the run is marked invalid"


def test_the_reason_for_not_judging_a_run_names_the_cause() -> None:
    """If the network was slow on a busy machine, the machine is the reason and not the network."""
    mixed = [gate("a").model_copy(update={"kind": GateKind.SUBJECT}), gate("b")]
    assert exclusion(manifest("v1", 1, gates=mixed, status=Status.INVALID)) == "gate b: b found, required b wanted"
    failed = exclusion(manifest("v1", 1, gates=mixed, status=Status.FAILED))
    assert failed is not None
    assert "gate a: a found" in failed
    assert "gate b" not in failed
    only = exclusion(manifest("v1", 1, gates=mixed[:1], status=Status.INVALID))
    assert only == "gate a: a found, required a wanted"


def test_runs_with_profiles_are_not_judged_and_are_excluded_if_there_are_others() -> None:
    """Profiling takes time and would look like a regression."""
    slow, plain = stub("a", profiles=["cpu", "heap"]), stub("b")
    chosen = select("baseline", [slow, plain])
    assert [run.run_id for run in chosen.runs] == ["b"]
    assert chosen.excluded == {}
    alone = select("baseline", [slow])
    assert alone.excluded == {"a": "profiles were taken of its nodes (cpu, heap), which slows it down"}


def test_runs_are_listed_in_the_order_in_which_they_were_made() -> None:
    """Runs are ordered by time, then by position in the experiment, then by name."""
    late, early = stub("a", started_at=NOON), stub("z", started_at=MORNING)
    assert order(early, late) == ["z", "a"]
    together = [stub("c"), stub("b", experiment=place(1)), stub("a", experiment=place(2, "e2"))]
    assert order(*together) == ["c", "b", "a"]
    assert order(stub("a"), stub("b", experiment=place(0))) == ["a", "b"]


def test_the_runs_of_one_experiment_are_in_its_order_whatever_the_clock() -> None:
    """This must hold even if the clock of the machine was set back between two runs."""
    first = stub("b", started_at=NOON, experiment=place(0))
    second = stub("a", started_at=MORNING, experiment=place(1))
    assert order(first, second) == ["b", "a"]
    other = stub("a", started_at=MORNING, experiment=place(1, "e2"))
    assert order(other, first) == ["a", "b"], "runs of different experiments are ordered by time"
    alone = stub("c", started_at=MORNING)
    assert order(alone, first) == ["c", "b"]


def refused(message: str, hint: str, *runs: SyntheticRun) -> None:
    with pytest.raises(UsageError) as caught:
        select("baseline", runs)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_side_is_of_one_version_and_names_each_run_once() -> None:
    refused("the baseline has no runs", "`chainmark runs list` shows what can be compared")
    refused("the baseline contains the run `a` twice", "give each run once", stub("a"), stub("b"), stub("a"))
    refused(
        "the baseline mixes the versions v1 and v2",
        "give runs of only one version per side",
        stub("a"),
        stub("b", "v2"),
    )


def test_sides_of_two_systems_or_with_a_run_in_common_are_rejected() -> None:
    left = select("baseline", [stub("a"), stub("b")])
    strange = Subject(system="mesh", name="Mesh", version="v1")
    with pytest.raises(UsageError) as caught:
        check_pair(left, select("candidate", [stub("c", subject=strange)]))
    assert caught.value.message == "runs of different systems cannot be compared: cometbft and mesh"
    assert caught.value.hint == "`chainmark runs list` shows the system of every run"
    with pytest.raises(UsageError) as caught:
        check_pair(left, select("candidate", [stub("c"), stub("b")]))
    assert caught.value.message == "the run `b` is on both sides"
    assert caught.value.hint == "a run cannot be compared with itself; give two different sets of runs"
    check_pair(left, select("candidate", [stub("c")]))


def test_sides_are_named_by_version_and_equal_versions_also_by_role() -> None:
    left, right = select("baseline", [stub("a")]), select("candidate", [stub("b", "v2")])
    assert labels(left, right) == ("v1", "v2")
    assert labels(left, select("candidate", [stub("b")])) == ("v1 (baseline)", "v1 (candidate)")


FAILED: dict[str, Any] = {"gates": [gate("a")], "status": Status.INVALID}
BECAUSE = "gate a: a found, required a wanted"


def test_the_judged_runs_define_the_conditions_of_their_side() -> None:
    """A run with a failed gate may have other conditions. It is used only if there is no other run."""
    other = {"cpu_model": "other", "cores": 2, "memory_bytes": 2**30, "kernel": "x", "operating_system": "y"}
    bad = stub("a", started_at=MORNING, conditions={"time": "odd"}, host=HostFacts.model_validate(other), **FAILED)
    good = [stub("b", started_at=NOON, conditions={"z": "1", "time": "BFT"}), stub("c", conditions={"time": "PBTS"})]
    side = select("baseline", [bad, *good])
    assert [run.run_id for run in side.included] == ["c", "b"]
    assert side.excluded == {"a": BECAUSE}
    assert joined_conditions(side) == {"time": "PBTS, BFT", "z": "1"}
    assert list(joined_conditions(side)) == ["time", "z"]
    assert describe(side, "v1").host.cpu_model != "other"
    nobody = select("baseline", [bad])
    assert joined_conditions(nobody) == {"time": "odd"}
    assert describe(nobody, "v1").host.cpu_model == "other"


def test_the_report_lists_every_run_with_its_counts_and_the_reason_if_it_is_not_judged() -> None:
    stated: dict[str, Any] = {
        "counts": {"transactions": {"offered": 7}},
        "incidents": [Incident(time_ns=1, what="a node stopped")],
        "warnings": ["slow"],
    }
    bad = stub("a", started_at=MORNING, experiment=place(3), **FAILED, **stated)
    listed = describe(select("baseline", [bad, stub("b", started_at=NOON)]), "the label")
    assert (listed.label, listed.subject.version) == ("the label", "v1")
    first, second = listed.runs
    assert (first.run_id, first.started_at, first.repetition, first.position) == ("a", MORNING, 4, 3)
    assert (first.gates, first.excluded_because) == (FAILED["gates"], BECAUSE)
    assert {"counts": first.counts, "incidents": first.incidents, "warnings": first.warnings} == stated
    assert (second.repetition, second.position, second.excluded_because) == (None, None, None)


def test_a_listed_run_has_its_own_status() -> None:
    """Readers of the JSON count failed runs by this status."""
    listed = describe(select("baseline", [stub("a"), stub("b", **FAILED)]), "v1").runs
    assert {run.run_id: run.status for run in listed} == {"a": Status.VALID, "b": Status.INVALID}


@pytest.mark.parametrize(
    ("baseline", "candidate", "experiment", "expected"),
    [
        ((0, 3), (1, 2), "e1", True),
        ((1, 2), (0, 3), "e1", True),
        ((0, 2), (1,), "e1", True),
        ((0, 1), (2, 3), "e1", False),
        ((2, 3), (0, 1), "e1", False),
        ((0, 3), (1, 2), "e2", False),
        ((0, 3), (1, 2), None, False),
    ],
)
def test_only_runs_of_one_experiment_are_interleaved(
    baseline: tuple[int, ...], candidate: tuple[int, ...], experiment: str | None, *, expected: bool
) -> None:
    """Otherwise a slow drift of the machine counts as a change of the release, which the report must state."""
    left = select("baseline", [stub(f"a{at}", experiment=place(at)) for at in baseline])
    right = [stub(f"b{at}", "v2", experiment=place(at, experiment) if experiment else None) for at in candidate]
    assert are_interleaved(left, select("candidate", right)) is expected
