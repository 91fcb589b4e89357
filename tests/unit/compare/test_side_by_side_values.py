"""What versions side by side say about given comparisons: order, counts, names, caveats and lines of charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chainmark.compare import side_by_side
from chainmark.compare.decide import Past
from chainmark.compare.side_by_side import compare_side_by_side
from chainmark.core.caveats import A_A, Caveats
from chainmark.core.chart_kind import ChartKind
from chainmark.core.comparison import ChartData, ChartLine, Comparison
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Fact, Status
from chainmark.core.question import Question
from chainmark.core.side_by_side import FactRow, SideBySide
from chainmark.core.verdict import Verdict

from tests.unit.compare.metric_cases import stub_run
from tests.unit.compare.synthetic_runs import SyntheticRun
from tests.unit.report.samples import sample

FAIL, INVALID, PASS = Verdict.FAIL, Verdict.INVALID, Verdict.PASS


def _sides(*versions: str) -> list[list[SyntheticRun]]:
    """One run per version."""
    return [[stub_run(version, 1.0, number)] for number, version in enumerate(versions)]


def _given(verdict: Verdict = PASS, sentence: str = "", **changes: object) -> Comparison:
    return sample().model_copy(update={"verdict": verdict, "sentence": sentence, "charts": [], **changes})


def _result(
    monkeypatch: pytest.MonkeyPatch, comparisons: Sequence[Comparison], sides: list[list[SyntheticRun]] | None = None
) -> SideBySide:
    """The result with these comparisons in place of those of the runs."""
    left = iter(comparisons)
    monkeypatch.setattr(side_by_side, "compare", lambda *_sides, **_options: next(left))
    versions = [f"v{number}" for number in range(len(comparisons) + 1)]
    return compare_side_by_side(sides or _sides(*versions), tool_version="test")


def test_every_candidate_is_compared_with_the_first_side_under_the_same_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An option that is lost on the way, such as a margin, would change a verdict silently."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def record(*pair: Any, **options: Any) -> Comparison:
        calls.append((pair, options))
        return _given()

    monkeypatch.setattr(side_by_side, "compare", record)
    sides = _sides("v0", "v1", "v2")
    options: dict[str, Any] = {
        "history": _sides("old")[0],
        "past": Past(),
        "follow": lambda _sides, _catalogue: None,
        "parts": lambda _sides: None,
        "margins": {"x_s": 0.2},
        "question": Question.COST,
        "machines": object(),
        "tool_version": "1.2.3",
    }
    assert compare_side_by_side(sides, **options).tool_version == "1.2.3"
    assert calls == [((sides[0], sides[1]), options), ((sides[0], sides[2]), options)]
    calls.clear()
    compare_side_by_side(sides, tool_version="1.2.3")
    plain: dict[str, Any] = {
        **dict.fromkeys(options), "history": (), "margins": {}, "question": Question.WORSE, "tool_version": "1.2.3",
    }  # fmt: skip
    assert [options for _, options in calls] == [plain, plain]


def test_title_subtitle_date_and_facts_are_of_all_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = [
        [stub_run("v0", 1.0, 0), stub_run("v0", 1.0, 1)],
        [stub_run("v1", 1.0, 2), stub_run("v1", 1.0, 3)],
        [stub_run("v2", 1.0, 4)],
    ]
    sides[1][0].manifest.status = Status.INVALID
    sides[2][0].manifest.subject = sides[2][0].manifest.subject.model_copy(update={"name": "Renamed"})
    for side, era in zip(sides, ("one", "two", "three"), strict=True):
        for run in side:
            run.manifest.facts = [Fact(label="Era", value=era)]
    result = _result(monkeypatch, [_given(date="2026-03-02"), _given(date="2026-03-01")], sides)
    assert result.title == "Renamed v1 and v2 against v0"
    assert result.subtitle == "profile cometbft/demo · 2 + 1 + 1 runs · 2026-03-02"
    assert result.date == "2026-03-02"
    assert result.facts == [FactRow(label="Era", values=["one", "two", "three"])]
    sides[2][0].manifest.profile_name = "cometbft/other"
    subtitle = _result(monkeypatch, [_given(), _given()], sides).subtitle
    assert subtitle == "profiles cometbft/demo and cometbft/other · 2 + 1 + 1 runs · 2026-11-20"


@pytest.mark.parametrize(
    ("comparisons", "verdict", "sentence"),
    [
        ([(PASS, "One"), (FAIL, "Two")], FAIL, "v2 fails; v1 passes. Two."),
        ([(FAIL, "One"), (FAIL, "Two"), (PASS, "Three")], FAIL, "v1 and v2 fail; v3 passes. One."),
        ([(PASS, "One"), (INVALID, "Two"), (PASS, "")], INVALID, "v2 cannot be judged; v1 and v3 pass. Two."),
        ([(PASS, "One"), (PASS, "Two")], PASS, "v1 and v2 pass. One. Two."),
        ([(Verdict.INFORMATIONAL, ""), (Verdict.INFORMATIONAL, "")], Verdict.INFORMATIONAL,
         "v1 and v2 are shown with their costs."),
        ([(Verdict.INFORMATIONAL, ""), (FAIL, "")], FAIL, "v2 fails; v1 is shown with its costs."),
    ],
)  # fmt: skip
def test_the_sentence_names_the_versions_of_every_verdict_the_worst_first(
    monkeypatch: pytest.MonkeyPatch, comparisons: list[tuple[Verdict, str]], verdict: Verdict, sentence: str
) -> None:
    result = _result(monkeypatch, [_given(*each) for each in comparisons])
    assert (result.verdict, result.sentence) == (verdict, sentence)


@pytest.mark.parametrize(
    ("versions", "labels"),
    [
        (["v0", "v1", "v2"], ["v0", "v1", "v2"]),
        (["v0", "v1", "v1"], ["v0", "v1 (1)", "v1 (2)"]),
        (["v0", "v0", "v1", "v0"], ["v0 (1)", "v0 (2)", "v1", "v0 (3)"]),
    ],
)
def test_equal_versions_are_numbered(monkeypatch: pytest.MonkeyPatch, versions: list[str], labels: list[str]) -> None:
    result = _result(monkeypatch, [_given()] * (len(versions) - 1), _sides(*versions))
    assert result.labels == labels


@pytest.mark.parametrize(
    ("numbers", "message", "hint"),
    [
        ([[0], [1]], "a side-by-side comparison requires at least three versions",
         "compare two with `chainmark compare A B`"),
        ([[0], [1], [2], [3, 1]], "the run `v-1` was given for version 2 and for version 4",
         "give each run once; versions are numbered in the given order"),
        ([[0], [1], [0]], "the run `v-0` was given for version 1 and for version 3",
         "give each run once; versions are numbered in the given order"),
        ([[0], [], [1]], "the side 2 has no runs", "`chainmark runs list` shows what can be compared"),
    ],
)  # fmt: skip
def test_sides_that_cannot_be_listed_are_rejected_with_their_numbers(
    monkeypatch: pytest.MonkeyPatch, numbers: list[list[int]], message: str, hint: str
) -> None:
    sides = [[stub_run("v", 1.0, number) for number in side] for side in numbers]
    with pytest.raises(UsageError) as caught:
        _result(monkeypatch, [_given()] * 3, sides)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_caveats_name_simulated_runs_of_all_sides_and_versions_of_the_same_build(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sides = _sides("v0", "v1", "v2", "v3")
    sides[0][0].manifest.synthetic = True
    same = _given(caveats=Caveats(badges=(A_A,), sentences=("in the comparison alone",)))
    result = _result(monkeypatch, [same, _given(), same], sides)
    assert result.caveats == Caveats(
        badges=("SYNTHETIC", "A/A"),
        sentences=(
            "synthetic data: 1 of 4 runs: the logs were written by a simulation, not by nodes",
            "A/A: v1 and v0 are the same build",
            "A/A: v3 and v0 are the same build",
        ),
    )
    assert _result(monkeypatch, [_given(), _given()]).caveats == Caveats()


def _chart(name: str, *sides: str, kind: ChartKind = ChartKind.CDF, height: float = 0.0) -> ChartData:
    """A chart with one pooled line per side, of this height, and one of a single run."""
    lines = [ChartLine(side=side, run_id=None, label=f"{side} here", x=[0.0], y=[height]) for side in sides]
    single = ChartLine(side="candidate", run_id="run", label="one run", x=[0.0], y=[-1.0])
    return ChartData(
        id=name, metric_id="x_s", kind=kind, title=name, x_label="x", y_label="y", lines=[*lines, single], note="pooled"
    )


def test_a_chart_has_the_baseline_once_and_every_version_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither charts of single runs nor lines of a pair, such as a change, hide the charts after them."""
    both = ("candidate", "baseline")
    first = [
        _chart("series", *both, kind=ChartKind.SERIES),
        _chart("shift", "", kind=ChartKind.SHIFT),
        _chart("new", "candidate", height=1.0),
        _chart("cdf", "", *both, height=1.0),
    ]
    second = [_chart("cdf", *both, height=2.0), _chart("new", *both, height=2.0)]
    comparisons = [_given(charts=first), _given(charts=second)]
    result = _result(monkeypatch, comparisons)
    assert {
        chart.id: [(line.side, line.label, line.run_id, line.y) for line in chart.lines] for chart in result.charts
    } == {
        "new": [("v0", "v0", None, [2.0]), ("v1", "v1", None, [1.0]), ("v2", "v2", None, [2.0])],
        "cdf": [("v0", "v0", None, [1.0]), ("v1", "v1", None, [1.0]), ("v2", "v2", None, [2.0])],
    }
    assert [(chart.id, chart.title, chart.note) for chart in result.charts] == [
        ("new", "new", "pooled"), ("cdf", "cdf", "pooled"),
    ]  # fmt: skip
    assert result.comparisons == [each.model_copy(update={"charts": []}) for each in comparisons]
