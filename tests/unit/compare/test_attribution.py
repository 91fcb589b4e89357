"""A change on some hosts is reported with their names, and a change on all hosts without names."""

from __future__ import annotations

import pytest

from chainmark.compare import compare
from chainmark.compare.attribution import MOST_NAMED, located
from chainmark.core.comparison import Comparison, Outcome, Scale

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
