"""Why a verdict is what it is, and what to do next: each reason and each advice for its own cause, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from chainmark.compare.judge import Judged
from chainmark.compare.sides import SelectedRuns
from chainmark.compare.verdict import Finding, adjust, find, is_failure
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement, Outcome, Scale, SideValue
from chainmark.core.manifest import Gate, GateStatus
from chainmark.core.metric import Better, Metric, Population, Table
from chainmark.core.verdict import Verdict

from tests.unit.compare.metric_cases import metric, stub_run

EQUAL, BETTER, WORSE = Outcome.EQUAL, Outcome.BETTER, Outcome.WORSE
FIRST = "look at the charts of the worse metrics and at the configuration differences before any repeat"


def item(name: str, outcome: Outcome, *, enough: int | None = 3, **changes: Any) -> Judged:
    """A gating judgement of ``name``: +5 % (3 to 7 %), a margin of 10 %, p = 0.01 before and after Holm."""
    fields: dict[str, Any] = {
        "metric_id": f"{name}_s",
        "statistic": "mean",
        "gating": True,
        "baseline": SideValue(value=1.0, per_run=[1.0], samples=10),
        "candidate": SideValue(value=1.05, per_run=[1.05], samples=10),
        "scale": Scale.RELATIVE,
        "change": 0.05,
        "low": 0.03,
        "high": 0.07,
        "margin_low": -0.1,
        "margin_high": 0.1,
        "outcome": outcome,
        "p_worse": 0.01,
        "p_worse_holm": 0.01,
        "p_different": 0.01,
        "noise": "between 3 + 3 runs (Welch)",
        "note": "",
    }
    return Judged(Judgement.model_validate(fields | changes), enough)


def described(names: list[str], **settings: Any) -> Catalogue:
    metrics = [metric(id=f"{name}_s", label=f"metric {name}", gating=True, **settings) for name in names]
    populations = [Population(id="block", label="blocks", keys=["height"])]
    return Catalogue(
        system="x", title="X", populations=populations, tables=[Table(id="all", title="All")], metrics=metrics
    )


def selected(name: str, runs: int, excluded: dict[str, str] | None = None) -> SelectedRuns:
    loaded = [stub_run("v", 1.0, number) for number in range(runs)]
    return SelectedRuns(name, loaded, excluded or {})


def found(
    items: list[Judged],
    *,
    runs: tuple[int, int] = (3, 3),
    gates: list[Gate] | None = None,
    excluded: dict[str, str] | None = None,
    catalogue: Catalogue | None = None,
) -> Finding:
    names = [one.judgement.metric_id.removesuffix("_s") for one in items]
    pair = (selected("baseline", runs[0]), selected("candidate", runs[1], excluded))
    return find(items, gates or [], pair, ("A", "B"), catalogue or described(names))


CHANGE = "+5.0 % (90 % interval +3.0 … +7.0 %)"
GOAL = "to show with 80 % power that an equal release is within 10 % on every gating metric"


def test_all_equal_is_a_pass_with_its_power() -> None:
    result = found([item("a", EQUAL, enough=3), item("b", EQUAL, enough=7), item("c", EQUAL, enough=5)])
    assert result.verdict is Verdict.PASS
    assert result.sentence == "All 3 gating metrics of B are shown to be within 10 % of A or better"
    assert result.reasons == ["3 gating metrics judged by 90 % intervals, none reaches its margin"]
    assert result.advice == [f"{GOAL}: 7 runs a side suffice (the noisiest is metric b)"]


def test_what_is_better_is_named_in_a_pass() -> None:
    result = found([item("a", BETTER, change=-0.2, low=-0.25, high=-0.15), item("b", EQUAL)])
    assert result.verdict is Verdict.PASS
    assert result.reasons[1:] == ["better: metric a −20.0 % (90 % interval −25.0 … −15.0 %)"]


def test_metrics_that_no_number_of_runs_would_decide_are_named() -> None:
    result = found([item("a", EQUAL, enough=None), item("b", EQUAL), item("c", EQUAL, enough=None)])
    assert result.advice == [f"{GOAL}: 50 runs a side are not enough for metric a and metric c"]


def test_power_is_told_of_what_could_be_judged() -> None:
    """A metric without a p-value was not judged, a diagnostic does not count."""
    items = [
        item("a", EQUAL, enough=2),
        item("b", Outcome.NO_DATA, enough=9, p_worse=None, note="candidate: no samples"),
        item("c", EQUAL, enough=8, gating=False),
    ]
    assert found(items).advice[-1] == f"{GOAL}: 2 runs a side suffice (the noisiest is metric a)"
    nobody = found([item("b", Outcome.NO_DATA, p_worse=None, note="candidate: no samples")])
    assert not any("power" in text for text in nobody.advice)


def test_margins_of_their_own_are_told_beside_the_commonest() -> None:
    wide: dict[str, Any] = {"margin_high": 0.25, "margin_low": -0.25}
    result = found([item("a", EQUAL), item("b", EQUAL, **wide), item("c", EQUAL)])
    assert "within their margins (10 % for 2 of 3) of A or better" in result.sentence
    assert result.reasons[1:] == ["margins of their own (from the catalogue's margin or floor): metric b 25 %"]
    unknown = found([item("a", EQUAL, margin_high=None, margin_low=None)])
    assert unknown.sentence == "The only gating metric of B is shown to be within their margins of A or better"
    assert unknown.reasons[1:] == []


def test_margins_in_the_metrics_own_unit_are_told_with_it() -> None:
    """A margin of a difference without its unit would be read as a share."""
    absolute: dict[str, Any] = {"scale": Scale.ABSOLUTE, "margin_high": 0.5, "margin_low": -0.5}
    other = absolute | {"margin_high": 0.25, "margin_low": -0.25}
    items = [item("a", EQUAL, **absolute), item("b", EQUAL, **other), item("c", EQUAL, **other)]
    result = found([*items, item("d", EQUAL, **absolute), item("e", EQUAL, **absolute), item("f", EQUAL)])
    assert "within their margins (500 ms for 3 of 6) of A or better" in result.sentence
    assert result.reasons[1:] == [
        "margins of their own (from the catalogue's margin or floor): metric b 250 ms, metric c 250 ms, metric f 10 %"
    ]
    undecided = found([item("a", Outcome.INCONCLUSIVE, runs_needed=5, **absolute)])
    assert undecided.reasons[0].endswith("reaches past the margin of 500 ms")


def test_everything_better_is_named_in_one_sentence() -> None:
    result = found([item("a", BETTER), item("b", BETTER)])
    assert result.reasons[1:] == [f"better: metric a {CHANGE}, metric b {CHANGE}"]


def test_a_failure_is_named_with_what_is_left_open_beside_it() -> None:
    items = [
        item("a", WORSE),
        item("b", Outcome.INCONCLUSIVE, runs_needed=5, p_worse_holm=1.0),
        item("c", WORSE, p_worse_holm=0.2),
        item("d", EQUAL, trend=True),
    ]
    result = found(items)
    assert result.verdict is Verdict.FAIL
    assert result.sentence == f"B is worse than A: metric a {CHANGE}"
    assert result.reasons == [
        f"worse: metric a {CHANGE}",
        f"metric b is undecided: {CHANGE} reaches past the margin of 10 %",
        f"metric c looks worse, {CHANGE}, but not when 4 gating metrics are judged together "
        "(Holm-adjusted p = 0.200, required 0.05)",
        f"metric d is within its margin, but worse by more than noise: {CHANGE}",
    ]
    assert result.advice == [
        FIRST,
        "to decide metric b, run 2 more runs a side",
        "run 3 more runs a side to confirm or refute what looks worse",
        f"{GOAL}: 3 runs a side suffice (the noisiest is metric a)",
    ]


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({}, True),
        ({"p_worse_holm": 0.05}, True),
        ({"p_worse_holm": 0.0501}, False),
        ({"p_worse_holm": None}, False),
        ({"gating": False}, False),
        ({"outcome": EQUAL}, False),
        ({"outcome": Outcome.INCONCLUSIVE}, False),
    ],
)
def test_only_a_gating_metric_that_is_worse_after_holm_fails(changes: dict[str, Any], *, failure: bool) -> None:
    outcome = changes.pop("outcome", WORSE) if "outcome" in changes else WORSE
    assert is_failure(item("a", outcome, **changes).judgement) == failure


def test_a_diagnostic_that_is_worse_does_not_fail_a_release() -> None:
    result = found([item("a", EQUAL), item("b", WORSE, gating=False)])
    assert (result.verdict, result.sentence.split(" of B")[0]) == (Verdict.PASS, "The only gating metric")


def test_everything_that_keeps_a_verdict_open_is_a_reason() -> None:
    items = [
        item("a", Outcome.NO_DATA, note="candidate: no samples", p_worse=None, p_worse_holm=None),
        item("b", Outcome.NOT_COMPARABLE, note="not comparable: time differs", p_worse=None, p_worse_holm=None),
        item("c", Outcome.INCONCLUSIVE, runs_needed=None),
        item("d", BETTER),
        item("e", Outcome.NO_DATA, note="baseline: no samples", p_worse=None, p_worse_holm=None),
    ]
    result = found(items, runs=(4, 2), excluded=None)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.sentence == (
        "B against A is not decided: of 5 gating metrics, 4 could not be judged or decided: "
        "metric a, metric b, metric c and metric e"
    )
    assert result.reasons == [
        "metric a has no data (candidate: no samples): a missing metric is never a pass",
        "metric b is not comparable: time differs",
        f"metric c is undecided: {CHANGE} reaches past the margin of 10 %",
        "metric e has no data (baseline: no samples): a missing metric is never a pass",
    ]
    assert result.advice[:2] == [
        "to decide metric c, reduce its noise or widen its margin: 50 runs a side would not suffice",
        "find out why metric a and metric e has no data; the runs' books say what was read and skipped",
    ]


@pytest.mark.parametrize("blocked", [Outcome.NO_DATA, Outcome.NOT_COMPARABLE, Outcome.INCONCLUSIVE, WORSE])
def test_one_open_metric_among_equal_ones_is_no_pass(blocked: Outcome) -> None:
    result = found([item("a", EQUAL), item("b", blocked, note="x", p_worse_holm=0.2), item("c", BETTER)])
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.sentence.endswith("of 3 gating metrics, 1 could not be judged or decided: metric b")


@pytest.mark.parametrize(
    ("runs", "needed", "advice"),
    [
        ((3, 3), 5, "run 2 more runs a side"),
        ((3, 9), 4, "run 1 more run a side"),
        ((9, 3), 4, "run 1 more run a side"),
        ((1, 1), 1, "run 2 more runs a side: its change lies near the margin, where more runs are needed than the 1 a"),
        ((4, 5), 4, "run 4 more runs a side: its change lies near the margin, where more runs are needed than the 4 a"),
        ((5, 4), 2, "run 4 more runs a side: its change lies near the margin, where more runs are needed than the 2 a"),
    ],
)
def test_how_many_runs_more_would_decide(runs: tuple[int, int], needed: int, advice: str) -> None:
    """From the side that has fewer: at least two, and as many again where the noise is not what keeps it open."""
    result = found([item("a", Outcome.INCONCLUSIVE, runs_needed=needed)], runs=runs)
    assert result.advice[0].startswith(f"to decide metric a, {advice}")


@pytest.mark.parametrize(("runs", "more"), [((1, 4), 2), ((2, 2), 2), ((5, 3), 3)])
def test_what_looks_worse_is_confirmed_by_as_many_runs_again(runs: tuple[int, int], more: int) -> None:
    result = found([item("a", WORSE, p_worse_holm=0.2)], runs=runs)
    assert result.advice[0] == f"run {more} more runs a side to confirm or refute what looks worse"


def test_assumed_noise_is_said_once() -> None:
    items = [item("a", EQUAL, noise="assumed noise, 3 % between runs"), item("b", EQUAL)]
    words = "the noise between runs is assumed, not measured: run at least 3 runs a side, or keep an archive of runs"
    assert found(items).advice.count(words) == 1
    assert words not in found(items[1:]).advice
    diagnostic = item("a", EQUAL, noise="assumed noise, 3 % between runs", gating=False)
    assert words not in found([diagnostic, items[1]]).advice


def gate(name: str, status: GateStatus = GateStatus.FAIL) -> Gate:
    return Gate(id=name, label=f"label {name}", status=status, measured=f"measured {name}", limit="limit")


def test_only_runs_that_are_judged_count_towards_those_that_are_needed() -> None:
    """Of four runs of the candidate two are left: the advice is about three more, not one."""
    excluded = {"v-0": "x: 1", "v-3": "y: 2"}
    result = found([item("a", Outcome.INCONCLUSIVE, runs_needed=5)], runs=(4, 4), excluded=excluded)
    assert result.advice[0] == "to decide metric a, run 3 more runs a side"
    assert result.reasons[1:] == [
        "the candidate's run v-0 is not judged: x: 1",
        "the candidate's run v-3 is not judged: y: 2",
    ]
    entries, catalogue = [item("a", Outcome.INCONCLUSIVE, runs_needed=5)], described(["a"])
    pair = (SelectedRuns("baseline", selected("baseline", 4).runs, excluded), selected("candidate", 4))
    assert find(entries, [], pair, ("A", "B"), catalogue).advice[0] == result.advice[0]


def test_a_failure_alone_asks_for_no_confirmation() -> None:
    result = found([item("a", WORSE), item("b", EQUAL)])
    assert result.advice == [FIRST, f"{GOAL}: 3 runs a side suffice (the noisiest is metric a)"]
    both = found([item("a", WORSE), item("b", WORSE)])
    assert both.sentence == f"B is worse than A: metric a {CHANGE}, metric b {CHANGE}"


def test_what_is_merely_undecided_does_not_look_worse() -> None:
    result = found([item("a", Outcome.INCONCLUSIVE, runs_needed=5), item("b", EQUAL)])
    assert result.advice == [
        "to decide metric a, run 2 more runs a side",
        f"{GOAL}: 3 runs a side suffice (the noisiest is metric a)",
    ]


def test_two_gating_metrics_are_all_of_them() -> None:
    result = found([item("a", EQUAL), item("b", EQUAL)])
    assert result.sentence == "All 2 gating metrics of B are shown to be within 10 % of A or better"


def test_nothing_that_gates_is_no_pass() -> None:
    result = found([item("a", EQUAL, gating=False)])
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.sentence == "B against A is not decided: the catalogue has no gating metric"


@pytest.mark.parametrize(
    ("name", "problem", "remedy"),
    [
        (
            *("workload_equal", "the workloads differ"),
            "repeat one side with the other's workload, then compare again",
        ),
        (
            *("window_equal", "the analysis windows differ"),
            "analyse both sides over the same window, then compare again",
        ),
        (
            *("hardware_equal", "the hardware differs"),
            "repeat one side on the other's hardware class, then compare again",
        ),
        (
            *("rules_equal", "the sides average by different rules"),
            "analyse one side again by the other's rules, then compare again",
        ),
        (
            *("baseline_runs_valid", "too few runs of the baseline are valid"),
            "repeat the runs that failed a gate, then compare again",
        ),
        (
            *("candidate_runs_valid", "too few runs of the candidate are valid"),
            "repeat the runs that failed a gate, then compare again",
        ),
        ("other", "label other: not met", "repeat the runs that failed a gate, then compare again"),
    ],
)
def test_a_failed_gate_makes_it_invalid_whatever_was_judged(name: str, problem: str, remedy: str) -> None:
    result = found([item("a", WORSE)], gates=[gate("fine", GateStatus.PASS), gate(name)], excluded={"v-1": "x: 1"})
    assert result.verdict is Verdict.INVALID
    assert result.sentence == f"B and A cannot be compared: {problem} (measured {name})"
    assert result.reasons == [
        f"{problem}: measured {name}, required limit",
        "the candidate's run v-1 is not judged: x: 1",
    ]
    assert result.advice == [remedy]


def test_several_failed_gates_share_a_remedy() -> None:
    names = ["baseline_runs_valid", "candidate_runs_valid", "workload_equal"]
    result = found([], gates=[gate(name) for name in names])
    assert len(result.reasons) == 3
    assert result.advice == [
        "repeat the runs that failed a gate, then compare again",
        "repeat one side with the other's workload, then compare again",
    ]


def test_a_warning_does_not_make_it_invalid_and_mixed_builds_are_told() -> None:
    gates = [gate("one_build_a_side", GateStatus.WARN), gate("hardware_equal", GateStatus.WARN)]
    result = found([item("a", EQUAL)], gates=gates)
    assert result.verdict is Verdict.PASS
    assert result.reasons[1:] == ["a side mixes builds: measured one_build_a_side"]
    calm = found([item("a", EQUAL)], gates=[gate("one_build_a_side", GateStatus.PASS)])
    assert calm.reasons[1:] == []


def _moved(base: float | None, other: float | None, *, floor: float = 0.0, p: float = 0.001) -> bool:
    entry: Metric = metric(id="a_s", label="metric a", better=Better.NEITHER, floor=floor)
    sides: dict[str, Any] = {
        "baseline": SideValue(value=base, per_run=[base], samples=1),
        "candidate": SideValue(value=other, per_run=[other], samples=1),
    }
    catalogue = described(["a"]).model_copy(update={"metrics": [entry]})
    (result,) = adjust([item("a", EQUAL, gating=False, p_different=p, **sides)], catalogue)
    assert result.judgement.q_different == p
    return result.judgement.moved


@pytest.mark.parametrize(
    ("base", "other", "floor", "moved"),
    [
        (100.0, 103.0, 0.0, True),
        (100.0, 97.0, 0.0, True),  # a fall is a move as well
        (-100.0, -103.0, 0.0, True),
        (100.0, 97.99, 0.0, True),  # 2 % are of the baseline
        (100.0, 102.03, 0.0, True),
        (100.0, 102.0, 0.0, False),  # 2 % are not worth a reader's time
        (-100.0, -101.0, 0.0, False),
        (100.0, 110.0, 10.0, True),
        (100.0, 109.9, 10.0, False),
        (0.0, 0.1, 0.0, True),
        (0.0, 0.0, 0.0, False),
        (None, 5.0, 0.0, False),
        (5.0, None, 0.0, False),
    ],
)
def test_when_a_diagnostic_has_moved(base: float | None, other: float | None, floor: float, *, moved: bool) -> None:
    assert _moved(base, other, floor=floor) == moved


@pytest.mark.parametrize(("p", "moved"), [(0.0, True), (0.05, True), (0.0501, False)])
def test_a_diagnostic_moves_at_five_percent(p: float, *, moved: bool) -> None:
    assert _moved(1.0, 2.0, p=p) == moved


def test_families_are_corrected_by_their_own_size() -> None:
    """Holm over the gating metrics with one without data counted in; Benjamini-Hochberg over the tested diagnostics."""
    items = [
        item("a", WORSE, p_worse=0.02),
        item("b", EQUAL, p_worse=0.5),
        item("c", Outcome.NO_DATA, p_worse=None, p_worse_holm=None),
        item("d", EQUAL, gating=False, p_different=0.01, p_worse=None, p_worse_holm=None),
        item("e", EQUAL, gating=False, p_different=0.03, p_worse=None, p_worse_holm=None),
        item("f", Outcome.NO_DATA, gating=False, p_different=None, p_worse=None, p_worse_holm=None),
    ]
    result = [one.judgement for one in adjust(items, described(list("abcdef")))]
    assert [one.p_worse_holm for one in result] == [pytest.approx(0.06), 1.0, None, None, None, None]
    assert [one.q_different for one in result] == [None, None, None, pytest.approx(0.02), pytest.approx(0.03), None]
