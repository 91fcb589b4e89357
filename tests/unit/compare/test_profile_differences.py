"""Profiles of two sides: the reported functions, their intervals, and a graph that contains all calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import polars as pl
import pytest
from scipy import stats

from chainmark.compare import profiles
from chainmark.compare.profiles import profiled
from chainmark.compare.sides import exclusion, select
from chainmark.core.manifest import Gate, GateStatus, Status
from chainmark.core.profiled import Profiled
from chainmark.core.profiles import ProfilesRecord

from tests.unit.compare.profiled_runs import ProfiledRun, Stacks, profiled_run
from tests.unit.compare.synthetic_runs import SyntheticRun, catalogue, manifest


def _results(
    baseline: Sequence[ProfiledRun], candidate: Sequence[ProfiledRun], *plain: Sequence[SyntheticRun]
) -> Profiled:
    profiled_pair = profiled(baseline, candidate, plain or ([], []), is_asked=False)
    assert profiled_pair is not None
    return profiled_pair


SLOW = ("main", "finalize", "hash")
SAME = ("main", "gossip")


def test_the_function_that_changed_comes_first_with_the_interval_over_the_nodes() -> None:
    """With one run per side, each node is compared with the same node of the other side."""
    before = [{SLOW: 1.0, SAME: 5.0}, {SLOW: 1.2, SAME: 2.0}, {SLOW: 0.8, SAME: 3.0}]
    after = [{SLOW: 2.0, SAME: 4.0}, {SLOW: 2.3, SAME: 3.1}, {SLOW: 1.7, SAME: 2.9}]
    (change,) = _results([profiled_run("v0", before)], [profiled_run("v1", after)]).changes
    first, second = change.functions
    assert (first.function, second.function) == ("hash", "gossip")
    assert [first.baseline, first.candidate] == pytest.approx([0.01, 0.02])
    oracle = stats.ttest_rel([0.02, 0.023, 0.017], [0.01, 0.012, 0.008]).confidence_interval(0.90)
    assert [first.low, first.high] == pytest.approx([oracle.low, oracle.high])
    assert second.low is not None
    assert second.low < 0.0 < (second.high or 0.0)
    assert change.basis.startswith("between 3 nodes of one run per side")
    assert change.per == "block and node"


def test_a_node_is_compared_with_itself_although_others_have_no_profile() -> None:
    """A wrong pair would show the difference between two nodes as a change, or hide a change."""
    before: list[Stacks] = [{SLOW: 1.0}, {SLOW: 2.0}, {SLOW: 4.0}, {}]
    after: list[Stacks] = [{}, {SLOW: 2.5}, {SLOW: 4.7}, {SLOW: 9.0}]
    (change,) = _results([profiled_run("v0", before)], [profiled_run("v1", after)]).changes
    oracle = stats.ttest_rel([0.025, 0.047], [0.02, 0.04]).confidence_interval(0.90)
    assert [change.functions[0].low, change.functions[0].high] == pytest.approx([oracle.low, oracle.high])
    assert change.basis.startswith("between 2 nodes of one run per side")


def test_with_several_runs_per_side_the_interval_is_that_between_runs() -> None:
    before = [
        profiled_run("v0", [{SLOW: value}], number=number) for number, value in enumerate((1.0, 1.3, 0.9), start=1)
    ]
    after = [profiled_run("v1", [{SLOW: value}], number=number) for number, value in enumerate((2.0, 2.2), start=4)]
    (change,) = _results(before, after).changes
    oracle = stats.ttest_ind([0.02, 0.022], [0.01, 0.013, 0.009], equal_var=False).confidence_interval(0.90)
    assert [change.functions[0].low, change.functions[0].high] == pytest.approx([oracle.low, oracle.high])
    assert change.basis == "between 3 + 2 runs"


def test_one_node_per_side_has_no_interval_and_is_still_shown() -> None:
    (change,) = _results([profiled_run("v0", [{SLOW: 1.0}])], [profiled_run("v1", [{SLOW: 2.0, SAME: 0.1}])]).changes
    assert [(function.function, function.low, function.high) for function in change.functions] == [
        ("hash", None, None),
        ("gossip", None, None),
    ]
    assert "no interval" in change.basis


def test_a_function_of_only_one_side_is_reported_with_all_functions_it_calls() -> None:
    (change,) = _results(
        [profiled_run("v0", [{SAME: 1.0}])], [profiled_run("v1", [{SAME: 1.0, SLOW: 3.0, ("main", "finalize"): 1.0}])]
    ).changes
    changed = {function.function: function for function in change.functions}
    assert [changed["finalize"].change, changed["hash"].change] == pytest.approx([0.01, 0.03])
    assert changed["finalize"].within_candidate == pytest.approx(0.04)
    assert changed["finalize"].within_baseline == 0.0


def test_memory_profiles_show_growth_and_are_not_divided_by_the_work() -> None:
    before = profiled_run("v0", [{SLOW: 100.0}], kind="heap", begin=[{SLOW: 90.0}])
    after = profiled_run("v1", [{SLOW: 300.0}], kind="heap", begin=[{SLOW: 50.0}])
    (change,) = _results([before], [after]).changes
    (function,) = change.functions
    assert (function.baseline, function.candidate, function.grown_baseline, function.grown_candidate) == (
        100.0,
        300.0,
        10.0,
        250.0,
    )
    assert change.per == "node"


def test_goroutines_are_reported_by_start_and_current_location() -> None:
    (change,) = _results(
        [profiled_run("v0", [{("serve", "wait"): 2.0}], kind="goroutine")],
        [profiled_run("v1", [{("serve", "wait"): 9.0, ("loop",): 1.0}], kind="goroutine")],
    ).changes
    assert [(function.function, function.change) for function in change.functions] == [
        ("serve … wait", 7.0),
        ("loop", 1.0),
    ]
    assert {function.within_candidate for function in change.functions} == {0.0}, "no place calls another one"


def test_the_graph_contains_all_calls() -> None:
    """Calls are drawn within their callers, and the outermost call is as wide as all of them."""
    many: dict[tuple[str, ...], float] = {("main", f"f{number}", "leaf"): 1.0 + number % 7 for number in range(2_000)}
    (change,) = _results([profiled_run("v0", [many])], [profiled_run("v1", [{**many, SLOW: 900.0}])]).changes
    frames = change.frames
    assert len(frames) <= profiles.MOST_FRAMES
    root = frames[0]
    assert [root.baseline, root.candidate] == pytest.approx([change.baseline, change.candidate])
    assert change.candidate - change.baseline == pytest.approx(9.0)
    for depth in range(1, 4):
        level = [frame for frame in frames if frame.depth == depth]
        assert all(left.end <= right.begin + 1e-9 for left, right in pairwise(level))
        parents = [frame for frame in frames if frame.depth == depth - 1]
        assert all(any(p.begin - 1e-9 <= f.begin and f.end <= p.end + 1e-4 for p in parents) for f in level)
    (rest,) = [frame for frame in frames if frame.is_rest and frame.depth == 2]
    assert rest.function == profiles.REST
    assert rest.candidate == pytest.approx(sum(many.values()) / 100.0)


def test_the_overhead_of_profiling_is_reported_with_or_without_an_interval() -> None:
    record = ProfilesRecord(kinds=["cpu"], work=100.0, cost_metric="peer_count")

    def plain(version: str, values: Sequence[float]) -> list[SyntheticRun]:
        return [
            SyntheticRun(manifest(version, number, seed=number), catalogue(), {"node": _peers(value)})
            for number, value in enumerate(values)
        ]

    def taken(version: str, value: float) -> ProfiledRun:
        run = profiled_run(version, [{SLOW: 1.0}], record=record)
        run.frames = {"node": _peers(value)}
        return run

    profiled_pair = _results([taken("v0", 3.5)], [taken("v1", 4.0)], plain("v0", [3.0, 3.2]), plain("v1", [4.0]))
    baseline, candidate = profiled_pair.costs
    assert [baseline.profiled, baseline.plain] == pytest.approx([3.5, 3.1])
    oracle = stats.ttest_ind([3.5], [3.0, 3.2]).confidence_interval(0.90)
    assert [baseline.low, baseline.high] == pytest.approx([oracle.low, oracle.high])
    assert (candidate.low, candidate.high, candidate.n_profiled, candidate.n_plain) == (None, None, 1, 1)


def _peers(value: float) -> pl.DataFrame:
    return pl.DataFrame({"host": ["node0"], "peer_count": [value], "clock_offset_s": [0.0]})


def test_missing_or_empty_profiles_are_reported_with_their_side() -> None:
    record = ProfilesRecord(
        kinds=["cpu", "mutex"], missing=["profiles of node2 are missing (cpu): 404"], empty=["mutex"]
    )
    broken = profiled_run("v1", [{SLOW: 1.0}], record=record)
    gate = Gate(id="load_met", label="offered load met", status=GateStatus.FAIL, measured="91 %", limit=">= 98 %")
    broken.manifest = broken.manifest.model_copy(update={"status": Status.INVALID, "gates": [gate]})
    assert _results([profiled_run("v0", [{SLOW: 1.0}])], [broken]).notes == [
        "candidate: profiles of node2 are missing (cpu): 404",
        "candidate: the run with profiles is invalid (offered load met: 91 %)",
        "candidate: the profiles `mutex` are empty: they record data only if the program enables them",
    ]


def test_a_side_without_profiles_is_reported_only_on_request() -> None:
    runs = [profiled_run("v0", [{SLOW: 1.0}])]
    assert profiled(runs, [], ([], []), is_asked=False) is None
    profiled_pair = profiled(runs, [], ([], []), is_asked=True)
    assert profiled_pair is not None
    assert (profiled_pair.changes, profiled_pair.is_asked) == ([], True)


def test_a_run_with_profiles_is_never_judged() -> None:
    """Profiling slows a run down. Next to other runs it would cause a false alarm, and alone an unfair comparison."""
    plain = SyntheticRun(manifest("v1", 1), catalogue(), {})
    taken = profiled_run("v1", [{SLOW: 1.0}], number=2)
    among = select("candidate", [plain, taken])
    assert [run.run_id for run in among.runs] == [plain.manifest.run_id]
    alone = select("candidate", [taken])
    assert alone.included == []
    assert exclusion(taken.manifest) == "profiles were taken of its nodes (cpu), which slows it down"
