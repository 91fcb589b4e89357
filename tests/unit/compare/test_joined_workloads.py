"""The joint result of two versions under several workloads: the worst verdict, and which workloads led to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chainmark.compare.workloads import Pair, joined
from chainmark.core.by_workload import ByWorkload
from chainmark.core.catalogue import Catalogue
from chainmark.core.caveats import Caveats
from chainmark.core.chart_kind import ChartKind
from chainmark.core.comparison import ChartData, Comparison, Judgement, Outcome, Side
from chainmark.core.manifest import Subject
from chainmark.core.metric import MetricGroup, Population
from chainmark.core.verdict import Verdict

from tests.unit.compare.metric_cases import metric

CATALOGUE = Catalogue(
    system="x",
    title="X",
    populations=[Population(id="block", label="blocks", keys=["height"])],
    tables=[MetricGroup(id="all", title="All")],
    metrics=[metric(id="a_s", label="latency", gating=True), metric(id="b_s", label="size", order=2)],
)


def _side(name: str, version: str) -> Side:
    named: dict[str, Any] = {"label": version, "subject": Subject(system="x", name=name, version=version)}
    return Side.model_construct(**named)


def _comparison(verdict: Verdict, *judgements: Judgement, **fields: Any) -> Comparison:
    """A comparison with only the fields that the joint result reads."""
    defaults: dict[str, Any] = {
        "tool_version": "1.2", "baseline": _side("X", "v1"), "candidate": _side("X", "v2"), "date": "2026-01-03",
        "sentence": "", "charts": [], "caveats": Caveats(), "catalogue": CATALOGUE,
    }  # fmt: skip
    return Comparison.model_construct(**{**defaults, "verdict": verdict, "judgements": list(judgements), **fields})


def _judgement(
    metric_id: str, outcome: Outcome, *, gating: bool = True, worse_beyond: float | None = None
) -> Judgement:
    fields: dict[str, Any] = {"metric_id": metric_id, "statistic": "mean", "gating": gating, "outcome": outcome}
    return Judgement.model_construct(worse_beyond=worse_beyond, **fields)


def _joined(comparisons: Sequence[Comparison], alone: Sequence[str] = ()) -> ByWorkload:
    """The joint result of workloads named a, b, c and so on."""
    pairs = [Pair(label, [], []) for label, _ in zip("abcde", comparisons, strict=False)]
    return joined(pairs, comparisons, alone)


def test_the_joint_result_names_the_versions_and_has_everything_of_its_comparisons() -> None:
    """The first comparison names the versions. A summary has only the charts of metrics that decide."""
    charts = [
        ChartData(id=f"{name}-{kind.value}", metric_id=name, kind=kind, title="", x_label="", y_label="", lines=[])
        for name in ("a_s", "b_s")
        for kind in (ChartKind.CDF, ChartKind.SCATTER)
    ]
    first = _comparison(Verdict.PASS, charts=charts, caveats=Caveats(badges=("SYNTHETIC",)))
    other = {"tool_version": "1.3", "baseline": _side("Y", "v8"), "candidate": _side("Y", "v9"), "date": "2026-01-02"}
    second = _comparison(Verdict.FAIL, caveats=Caveats(sentences=("the label says v3",)), **other)
    result = _joined([first, second], alone=["only v1 was run under z"])
    assert (result.tool_version, result.title) == ("1.2", "X v2 against v1")
    assert (result.subtitle, result.date) == ("2 workloads · 2026-01-03", "2026-01-03")
    assert (result.verdict, result.sentence) == (Verdict.FAIL, "v2 fails under b and passes under a.")
    assert (result.labels, result.unmatched) == (["a", "b"], ["only v1 was run under z"])
    assert result.caveats == Caveats(badges=("SYNTHETIC",), sentences=("the label says v3",))
    assert [chart.id for chart in first.charts] == ["a_s-cdf", "a_s-scatter", "b_s-cdf", "b_s-scatter"]
    assert result.comparisons == [first.model_copy(update={"charts": charts[:1]}), second]


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        ([Verdict.INFORMATIONAL], "v2 is shown with its costs under a."),
        ([Verdict.PASS, Verdict.PASS, Verdict.FAIL, Verdict.PASS], "v2 fails under c and passes under a, b and d."),
        ([Verdict.PASS] * 4 + [Verdict.FAIL], "v2 fails under 1 of 5 workloads and passes under 4 of 5 workloads."),
    ],
)
def test_a_few_workloads_are_named_and_many_are_counted(verdicts: list[Verdict], sentence: str) -> None:
    assert _joined([_comparison(verdict) for verdict in verdicts]).sentence == sentence


def test_the_sentence_of_the_worst_workload_follows_with_its_name() -> None:
    verdicts = {"low": Verdict.INCONCLUSIVE, "high": Verdict.FAIL, "mid": Verdict.PASS}
    comparisons = [_comparison(verdict, sentence=f"blocks under {name} load") for name, verdict in verdicts.items()]
    result = joined([Pair(name, [], []) for name in verdicts], comparisons, [])
    assert result.sentence == (
        "v2 fails under high, is inconclusive under low and passes under mid. High: blocks under high load."
    )


def test_a_pass_states_what_it_left_undecided_and_how_many_margins_are_wider() -> None:
    """Otherwise a noisy lab would look like one that shows that nothing became worse."""
    passed = _comparison(
        Verdict.PASS,
        _judgement("a_s", Outcome.INCONCLUSIVE, worse_beyond=0.1),
        _judgement("b_s", Outcome.EQUAL),
        _judgement("b_s", Outcome.INCONCLUSIVE, gating=False, worse_beyond=0.1),
    )
    failed = _comparison(
        Verdict.FAIL, _judgement("a_s", Outcome.WORSE, worse_beyond=0.1), _judgement("b_s", Outcome.INCONCLUSIVE)
    )
    verdicts = "v2 fails under b and passes under a"
    assert _joined([passed, failed]).sentence == (
        f"{verdicts}; undecided within re-run noise: latency under a; 2 of 4 margins widened to re-run noise."
    )
    undecided = _comparison(Verdict.PASS, _judgement("a_s", Outcome.INCONCLUSIVE), _judgement("b_s", Outcome.EQUAL))
    assert _joined([undecided]).sentence == "v2 passes under a; undecided within re-run noise: latency under a."
