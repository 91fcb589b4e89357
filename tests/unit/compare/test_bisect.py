"""The metric that a search follows, and the contents of its steps and report."""

from __future__ import annotations

import pytest

from chainmark.compare.bisect import differs, followed_of, judgement_of
from chainmark.compare.decide import Decided, decide
from chainmark.core.bisect_report import SideState, Way
from chainmark.core.chart_kind import ChartKind
from chainmark.core.comparison import Scale
from chainmark.core.errors import UsageError
from chainmark.core.verdict import Verdict
from chainmark.report.layouts import document_of
from chainmark.stats.intervals import Working

from tests.unit.compare import searched_runs
from tests.unit.compare.searched_runs import CHANGE, LAST, REPORTED, searched
from tests.unit.compare.synthetic_runs import sides
from tests.unit.lab.line_system import CATALOGUE


def _decided(**factors: float) -> Decided:
    return decide(*sides(factors, run_noise=0.01))


def test_the_metric_with_the_clearest_change_is_followed() -> None:
    followed = followed_of(_decided(cpu_cores=1.4, block_interval_s=1.2, tx_latency_s=2.0), None)
    assert followed is not None
    assert followed.metric is not None
    assert (followed.metric.id, followed.sign, followed.scale) == ("tx_latency_s", 1.0, Scale.RELATIVE)
    assert followed_of(_decided(), None) is None


def test_a_named_metric_is_followed_only_if_it_differs() -> None:
    decided = _decided(goroutines_count=0.8)
    followed = followed_of(decided, "goroutines_count")
    assert followed is not None
    assert (followed.sign, followed.working) == (-1.0, Working.LOG)
    assert differs(judgement_of(decided, "goroutines_count"))
    assert followed_of(decided, "rss_bytes") is None
    with pytest.raises(UsageError, match="`nothing` is not a judged metric"):
        judgement_of(decided, "nothing")


def test_a_statistic_can_be_named() -> None:
    decided = _decided(tx_latency_s=1.5)
    assert judgement_of(decided, "tx_latency_s.p99").statistic == "p99"
    assert judgement_of(decided, "tx_latency_s").statistic == "p50"


def test_values_increase_towards_the_bad_side_and_changes_are_reported_with_their_sign() -> None:
    decided = _decided(committed_tx_per_s=0.7)
    followed = followed_of(decided, None)
    assert followed is not None
    good, bad = (side.included[0].data for side in (decided.baseline, decided.candidate))
    values = followed.value(bad), followed.value(good)
    assert values[0] is not None
    assert values[1] is not None
    assert values[0] > values[1]
    assert followed.reported_change(values[0] - values[1]) == pytest.approx(-0.3, abs=0.02)


def test_the_steps_show_how_the_range_of_revisions_shrank() -> None:
    report = searched({5: REPORTED[5]})
    assert (report.way, report.first, report.last) == (Way.FOUND, CHANGE, CHANGE)
    left = [step.left for step in report.steps]
    assert left == sorted(left, reverse=True)
    assert left[-1] == 1
    for step in report.steps:
        assert step.outcome is (SideState.BAD if step.place >= CHANGE else SideState.GOOD)
    assert report.skipped == {5: REPORTED[5]}
    assert len(report.chances) == LAST
    assert report.references == [f"{report.experiment}/commit{place}" for place in (CHANGE - 1, CHANGE)]


def test_a_report_of_every_end_can_be_read_in_every_medium() -> None:
    for report, verdict in (
        (searched(REPORTED), Verdict.PASS),
        (searched(noise=0.15, factor=2.0, most_runs=10), Verdict.INCONCLUSIVE),
        (searched(factor=1.0, noise=0.01), Verdict.INCONCLUSIVE),
    ):
        document = document_of(report)
        assert document.verdict is verdict
        assert "commit12" in document.text()
        assert "commit12" in document.html()
        assert document.pdf().startswith(b"%PDF")
        assert "<testsuite " in document.junit()


def test_the_charts_of_the_tracked_metric_show_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of other metrics, and lines of single runs, are in the comparison that the report refers to."""
    metrics = [metric.model_copy(update={"charts": [ChartKind.CDF]}) for metric in CATALOGUE.metrics]
    monkeypatch.setattr(searched_runs, "CATALOGUE", CATALOGUE.model_copy(update={"metrics": metrics}))
    report = searched()
    assert report.step_across is not None
    assert [chart.id for chart in report.step_across.charts] == [f"{report.metric_id}-cdf", f"{report.metric_id}-shift"]
    assert report.ends.charts == []
    assert f"{report.metric_id}-cdf" in {chart.id for chart in document_of(report).charts()}
