"""A change on some hosts is reported with their names, and a change on all hosts without names."""

from __future__ import annotations

import pytest

from chainmark.compare import compare
from chainmark.compare.attribution import MOST_NAMED, apart, located
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Breakdown, Comparison, Judgement, Outcome, Scale, SideValue
from chainmark.core.metric import Kind, MetricGroup, Population

from tests.unit.compare.metric_cases import metric
from tests.unit.compare.synthetic_runs import sides, with_hosts

HOSTS = [f"node{index}" for index in range(8)]
USUAL = dict.fromkeys(HOSTS, 0.1)


def _compared(candidate: dict[str, float], baseline: dict[str, float] = USUAL) -> Comparison:
    left, right = sides(repetitions=3, seconds=30)
    return compare(
        [with_hosts(baseline, run) for run in left], [with_hosts(candidate, run) for run in right], tool_version="0"
    )


def _reported(comparison: Comparison) -> list[str]:
    return [reason for reason in comparison.reasons if "node by node" in reason]


def test_two_hosts_that_cost_more_are_named_and_the_others_are_not() -> None:
    """The mean over all nodes shows that a release needs more memory. Operators must know that only seeds do."""
    sentences = _reported(_compared({**USUAL, "node1": 0.3, "node6": 0.22, "node2": 0.099}))
    assert sentences == [
        "CPU, node by node, by means only: node1 (+200 %) and node6 (+120 %) changed by more than the margin of "
        "10 %, the other 6 by −1.0 … 0.0 %"
    ]


def test_a_change_of_all_hosts_is_reported_as_such() -> None:
    sentences = _reported(_compared({host: 0.12 + 0.001 * index for index, host in enumerate(HOSTS)}))
    assert sentences == [
        "CPU, node by node, by means only: all 8 changed by more than the margin of 10 %, +20.0 … +27.0 %"
    ]  # fmt: skip


def test_the_most_changed_of_many_hosts_are_named() -> None:
    (sentence,) = _reported(_compared({host: 0.1 + 0.02 * index for index, host in enumerate(HOSTS)}))
    assert "7 of 8, mostly node7 (+140 %), node6 (+120 %)" in sentence
    assert sentence.count("(") == MOST_NAMED


@pytest.mark.parametrize("factor", [1.0, 1.05, 0.95])
def test_a_change_within_the_margin_is_not_attributed(factor: float) -> None:
    """One host's noise must not be reported if the metric itself has not changed."""
    assert _reported(_compared(dict.fromkeys(HOSTS, 0.1 * factor) | {"node3": 0.112 * factor})) == []


def test_the_only_changed_host_of_two_hundred_is_listed() -> None:
    """It resembles many other hosts on both sides, so that only its change distinguishes it."""
    before = {f"node{index:03d}": 0.0915 + 0.017 * index / 199 for index in range(200)} | {"node150": 0.0953}
    comparison = _compared({**before, "node150": 0.1051}, before)
    cpu = next(item for item in comparison.breakdowns if item.metric_id == "cpu_cores")
    assert cpu.left_out > 100
    assert cpu.values[0] == "node150"


def test_hosts_that_changed_in_the_other_direction_are_among_the_others() -> None:
    (sentence,) = _reported(_compared({**USUAL, "node0": 0.5, "node7": 0.05}))
    assert "node0 (+400 %) changed by more" in sentence
    assert sentence.endswith("the other 7 by −50.0 … 0.0 %")


def test_a_host_that_only_one_side_has_is_not_compared() -> None:
    (sentence,) = _reported(_compared({**USUAL, "node0": 0.9, "node9": 5.0}))
    assert "node9" not in sentence
    assert "the other 7 by" in sentence


def test_a_metric_that_is_not_judged_is_not_attributed() -> None:
    comparison = _compared({**USUAL, "node1": 0.4})
    diagnostics = [item.model_copy(update={"gating": False}) for item in comparison.judgements]
    assert located(diagnostics, comparison.breakdowns, comparison.catalogue) == {}
    absolute = [item.model_copy(update={"scale": Scale.ABSOLUTE}) for item in comparison.breakdowns]
    assert located(comparison.judgements, absolute, comparison.catalogue) == {}


def test_noise_is_not_attributed_to_a_host() -> None:
    """Otherwise the host that differs most by chance would be named, and somebody would investigate it."""
    comparison = _compared({**USUAL, "node1": 0.4})
    judgement = next(item for item in comparison.judgements if item.metric_id == "cpu_cores")
    assert located([judgement], comparison.breakdowns, comparison.catalogue)
    unclear = judgement.model_copy(update={"low": -0.1, "outcome": Outcome.INCONCLUSIVE})
    assert located([unclear], comparison.breakdowns, comparison.catalogue) == {}
    single = {side: value.model_copy(update={"per_run": value.per_run[:1]})
              for side, value in (("baseline", judgement.baseline), ("candidate", judgement.candidate))}  # fmt: skip
    for sides_of_one_run in (single, {"baseline": single["baseline"]}, {"candidate": single["candidate"]}):
        undecided = judgement.model_copy(update={**sides_of_one_run, "outcome": Outcome.INCONCLUSIVE})
        assert located([undecided], comparison.breakdowns, comparison.catalogue) == {}
    worse = judgement.model_copy(update={**single, "outcome": Outcome.WORSE})
    assert located([worse], comparison.breakdowns, comparison.catalogue)


def test_a_change_is_attributed_by_the_first_breakdown_of_its_metric() -> None:
    """The order of a population's breakdowns is that of its catalogue."""
    comparison = _compared({**USUAL, "node1": 0.4})
    (cpu,) = (item for item in comparison.breakdowns if item.metric_id == "cpu_cores")
    other = cpu.model_copy(update={"values": [f"other {name}" for name in cpu.values]})
    for first, named in (([cpu, other], "node1"), ([other, cpu], "other node1")):
        (sentence,) = located(comparison.judgements, first, comparison.catalogue).values()
        assert f"by means only: {named} (" in sentence


# --- breakdowns by hand ---------------------------------------------------------------------------------------------

ABSOLUTE = {"scale": Scale.ABSOLUTE, "margin_low": -0.005, "margin_high": 0.005}


def _catalogue(unit: str = "s") -> Catalogue:
    blocks = Population(id="block", label="blocks", keys=["height", "host"], average_over=["host"])
    tables = [MetricGroup(id="all", title="All")]
    metrics = [metric(Kind.DIFFERENCE, unit=unit)]
    return Catalogue(system="x", title="X", populations=[blocks], tables=tables, metrics=metrics)


def _judged(change: float = 0.2, **fields: object) -> Judgement:
    """A change of a relative metric with two runs per side, whose interval excludes zero."""
    sides_of_two = {"value": 0.1, "per_run": [0.1, 0.1], "samples": 20}
    defaults = {
        "metric_id": "x_s", "statistic": "mean", "gating": True, "baseline": SideValue.model_validate(sides_of_two),
        "candidate": SideValue.model_validate(sides_of_two), "scale": Scale.RELATIVE, "change": change,
        "low": change - 0.001, "high": change + 0.001, "margin_low": -0.1, "margin_high": 0.1,
        "outcome": Outcome.INCONCLUSIVE,
    }  # fmt: skip
    return Judgement.model_validate(defaults | fields)


def _by_host(*changes: float | None, scale: Scale = Scale.RELATIVE, left_out: int = 0) -> Breakdown:
    """These changes of the hosts a, b, c and so on."""
    n = len(changes)
    names = [chr(ord("a") + index) for index in range(n)]
    return Breakdown(
        metric_id="x_s", key="host", scale=scale, values=names, baseline=[0.1] * n, candidate=[0.1] * n,
        baseline_n=[9] * n, candidate_n=[9] * n, change=list(changes), z=[None] * n, stands_out=[""] * n,
        median_baseline=0.1, median_candidate=0.1, left_out=left_out,
    )  # fmt: skip


def _located(judgement: Judgement, breakdown: Breakdown, unit: str = "s") -> str:
    """The sentence without its beginning."""
    sentence = located([judgement], [breakdown], _catalogue(unit)).get("x_s", "")
    return sentence.removeprefix("x, host by host, by means only: ")


@pytest.mark.parametrize(
    ("changes", "left_out", "sentence"),
    [
        ((0.3, 0.5), 0, "all 2 changed by more than the margin of 10 %, +30.0 … +50.0 %"),
        ((0.3, 0.1), 0, "a (+30.0 %) changed by more than the margin of 10 %, the other 1 by +10.0 %"),
        ((0.3, 0.0, 0.02), 7, "a (+30.0 %) changed by more than the margin of 10 %, "
         "the other 2 of the 3 listed by 0.0 … +2.0 %"),
        ((0.2, 0.4, 0.2, 0.3, 0.0), 0, "b (+40.0 %), d (+30.0 %), a (+20.0 %) and c (+20.0 %) "
         "changed by more than the margin of 10 %, the other 1 by 0.0 %"),
        ((0.1, 0.05), 0, ""),  # exactly at the margin
        ((0.3, None), 0, ""),  # a single host that both sides have
    ],
)  # fmt: skip
def test_the_sentence_about_the_hosts(changes: tuple[float | None, ...], left_out: int, sentence: str) -> None:
    assert _located(_judged(), _by_host(*changes, left_out=left_out)) == sentence


def test_hosts_of_a_metric_that_fell_are_those_that_fell() -> None:
    sentence = "a (−30.0 %) changed by more than the margin of 10 %, the other 2 by −10.0 … +40.0 %"
    assert _located(_judged(-0.2), _by_host(-0.3, -0.1, 0.4)) == sentence


def test_absolute_changes_have_a_unit_and_common_decimals() -> None:
    hosts = _by_host(0.012, 0.002, -0.0005, scale=Scale.ABSOLUTE)
    sentence = "a (+12.00 ms) changed by more than the margin of 5 ms, the other 2 by −0.500 … +2.000 ms"
    assert _located(_judged(0.006, **ABSOLUTE), hosts) == sentence
    hosts = _by_host(0.012, 0.002, -0.031, scale=Scale.ABSOLUTE)
    assert _located(_judged(0.006, **ABSOLUTE), hosts).endswith("the other 2 by −31.00 … +2.00 ms")
    sentence = "all 2 changed by more than the margin of 5 ms, +6.00 … +12.00 ms"
    assert _located(_judged(0.009, **ABSOLUTE), _by_host(0.012, 0.006, scale=Scale.ABSOLUTE)) == sentence
    counts = {**ABSOLUTE, "margin_low": -1.0, "margin_high": 1.0}
    sentence = "a (+3.000) changed by more than the margin of 1, the other 1 by 0.0"
    assert _located(_judged(2.0, **counts), _by_host(3.0, 0.0, scale=Scale.ABSOLUTE), "1") == sentence


@pytest.mark.parametrize("change", [0.2, -0.2])
@pytest.mark.parametrize(
    "fields",
    [
        {"margin_low": None, "margin_high": None}, {"margin_low": None}, {"margin_high": None},
        {"low": None}, {"high": None}, {"low": 0.0, "high": 0.4}, {"low": -0.4, "high": 0.0},
    ],
)  # fmt: skip
def test_a_change_without_a_margin_or_a_clear_interval_is_not_attributed(
    change: float, fields: dict[str, object]
) -> None:
    hosts = _by_host(3.0 * change, 0.0, 0.0)
    assert _located(_judged(change), hosts)
    assert _located(_judged(change, **fields), hosts) == ""


@pytest.mark.parametrize(
    ("changes", "hosts"),
    [
        ((0.3, 0.0), "a, unlike the other 1 host"),
        ((0.2, 0.3, 0.2, 0.0, 0.0, 0.1), "b, a and c, unlike the other 3 hosts"),
        ((0.2, 0.3, 0.2, 0.0, 0.1), ""),  # most of them changed
        ((*[0.2] * 4, *[0.0] * 4), "a, b, c and d, unlike the other 4 hosts"),
        ((*[0.2] * 5, *[0.0] * 9), ""),  # too many to look at
        ((0.1, 0.0), ""),
    ],
)
def test_a_few_hosts_that_alone_changed_are_named(changes: tuple[float, ...], hosts: str) -> None:
    assert apart(_judged(), [_by_host(*changes)], _catalogue()) == hosts
