"""Three or more versions: each is judged as if it were alone with the baseline, and the worst verdict counts."""

from __future__ import annotations

import pytest

from chainmark.compare import compare
from chainmark.compare.side_by_side import compare_side_by_side
from chainmark.core.chart_kind import ChartKind
from chainmark.core.errors import UsageError
from chainmark.core.manifest import GateStatus
from chainmark.core.side_by_side import SideBySide
from chainmark.core.verdict import Verdict

from tests.unit.compare.published_runs import run
from tests.unit.compare.synthetic_runs import SyntheticRun


def _side(version: str, factor: float = 1.0, *, seed: int) -> list[SyntheticRun]:
    return [run(version, number, factor=factor, seed=seed + number) for number in (1, 2, 3)]


@pytest.fixture(scope="module")
def sides() -> list[list[SyntheticRun]]:
    return [_side("1.0", seed=10), _side("1.1", seed=20), _side("1.2", 1.5, seed=30)]


@pytest.fixture(scope="module")
def comparison(sides: list[list[SyntheticRun]]) -> SideBySide:
    return compare_side_by_side(sides, tool_version="test")


def test_each_candidate_is_judged_as_if_alone(sides: list[list[SyntheticRun]], comparison: SideBySide) -> None:
    """A candidate must not pass or fail because of other candidates in the table."""
    alone = compare(sides[0], sides[1], tool_version="test")
    assert comparison.comparisons[0].judgements == alone.judgements
    assert [comparison.verdict for comparison in comparison.comparisons] == [Verdict.PASS, Verdict.FAIL]


def test_the_worst_verdict_counts_and_the_sentence_names_each_candidate(comparison: SideBySide) -> None:
    """A machine reads the exit code and a person reads the sentence. Both must report the regression."""
    assert comparison.verdict is Verdict.FAIL
    assert comparison.sentence.startswith("1.2 fails; 1.1 passes. 1.2 is worse than ")
    assert comparison.title == "CometBFT 1.1 and 1.2 against 1.0"
    assert comparison.labels == ["1.0", "1.1", "1.2"]


def test_a_regression_outweighs_a_candidate_that_cannot_be_judged(sides: list[list[SyntheticRun]]) -> None:
    """A candidate that cannot be judged must not hide that another one fails."""
    other = _side("1.3", seed=40)
    for synthetic in other:
        synthetic.manifest.workload["load.rate_tx_per_s"] = 999
    result = compare_side_by_side([sides[0], other, sides[2]], tool_version="test")
    assert result.comparisons[0].verdict is Verdict.INVALID
    assert any(gate.status is GateStatus.FAIL for gate in result.comparisons[0].gates)
    assert result.verdict is Verdict.FAIL
    assert result.sentence.startswith("1.2 fails; 1.3 cannot be judged. 1.2 is worse than ")
    without = compare_side_by_side([sides[0], other, sides[1]], tool_version="test")
    assert without.verdict is Verdict.INVALID


def test_all_versions_are_in_one_chart_and_in_the_manifest(comparison: SideBySide) -> None:
    """The baseline is drawn once, and every version has its own line."""
    chart = next(chart for chart in comparison.charts if chart.metric_id == "spread_s")
    assert [line.label for line in chart.lines] == ["1.0", "1.1", "1.2"]
    assert all(comparison.charts == [] for comparison in comparison.comparisons)
    assert comparison.facts[0].label == "Identifier"
    assert comparison.facts[0].values == ["1.0", "1.1", "1.2"]


def test_a_kind_of_chart_is_shown_with_all_versions_if_it_is_for_summaries(
    sides: list[list[SyntheticRun]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report knows no kind by its name: a new one is shown, too, even if it has only lines of single runs."""
    monkeypatch.setattr(ChartKind.SERIES, "in_summaries", True)
    monkeypatch.setattr(ChartKind.SERIES, "follows", "cdf")
    charts = compare_side_by_side(sides, tool_version="test").charts
    chart = next(chart for chart in charts if chart.kind is ChartKind.SERIES)
    assert list(dict.fromkeys(line.side for line in chart.lines)) == ["1.0", "1.1", "1.2"]
    assert len({(line.side, line.run_id) for line in chart.lines}) == len(chart.lines) == sum(map(len, sides))
    assert {chart.kind for chart in charts} == {ChartKind.CDF, ChartKind.SERIES}


def test_the_same_runs_give_the_same_bytes(sides: list[list[SyntheticRun]], comparison: SideBySide) -> None:
    """The order of the runs of a version must not change the report."""
    again = compare_side_by_side([list(reversed(side)) for side in sides], tool_version="test")
    assert again.model_dump_json() == comparison.model_dump_json()


def test_versions_with_one_name_are_numbered_and_a_run_named_twice_is_rejected(sides: list[list[SyntheticRun]]) -> None:
    """Two columns with one name cannot be distinguished, and a run compared with itself shows nothing."""
    again = _side("1.1", seed=50)
    for number, synthetic in enumerate(again):
        synthetic.manifest.run_id = f"demo-again-{number}"
    result = compare_side_by_side([sides[0], sides[1], again], tool_version="test")
    assert result.labels == ["1.0", "1.1 (1)", "1.1 (2)"]
    with pytest.raises(UsageError, match=r"the run `demo-1\.1-1` was given for version 2 and for version 3"):
        compare_side_by_side([sides[0], sides[1], sides[1]], tool_version="test")


def test_two_sides_have_no_side_by_side_report(sides: list[list[SyntheticRun]]) -> None:
    """Two sides have a different kind of report."""
    with pytest.raises(UsageError, match="three versions"):
        compare_side_by_side(sides[:2], tool_version="test")
