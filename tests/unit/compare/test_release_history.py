"""The history of a workload: only true changes are reported, not noise, outliers or new machines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from chainmark.core.epoch import Epoch
from chainmark.core.errors import UsageError
from chainmark.core.history_report import HistoryReport
from chainmark.core.metric import Kind, Metric
from chainmark.report.history_document import sparkline
from chainmark.report.layouts import document_of

from tests.unit.compare import release_histories
from tests.unit.compare.metric_cases import metric
from tests.unit.compare.release_histories import METRICS, RELEASES, STEP_AT, VERSIONS
from tests.unit.compare.release_histories import noisy as _noisy
from tests.unit.compare.release_histories import report as _report
from tests.unit.report.browser import page_without_complaints


def _results(report: HistoryReport) -> list[tuple[str, str]]:
    return [(series.metric_id, change.label) for series in report.series for change in series.changes]


def test_the_release_at_which_a_level_changed_is_named_with_the_size() -> None:
    noise = _noisy(1)
    report = _report(lambda day, metric: noise(day, metric) * (1.1 if metric.id == "m3_s" and day >= STEP_AT else 1.0))
    assert _results(report) == [("m3_s", f"v0.{STEP_AT}")]
    (change,) = next(series.changes for series in report.series if series.changes)
    assert change.low is not None
    assert change.high is not None
    assert change.low <= 0.1 <= change.high
    assert change.change == pytest.approx(0.1, abs=0.02)
    assert "1 of 8 metrics changed over 20 releases" in report.sentence


def test_shuffled_histories_show_at_most_the_stated_share_of_changes() -> None:
    """Forty histories of eight metrics without any change: at most two of them may show one."""
    assert sum(bool(_results(_report(_noisy(seed)))) for seed in range(40)) <= 5


def test_a_drift_that_no_neighbouring_pair_shows_is_found() -> None:
    noise = _noisy(2)
    report = _report(lambda day, metric: noise(day, metric) * (1.005**day if metric.id == "m0_s" else 1.0))
    assert {name for name, _ in _results(report)} == {"m0_s"}
    assert "gradual" in document_of(report).text()


def test_one_bad_run_is_not_a_change() -> None:
    noise = _noisy(3)
    assert _results(_report(lambda day, metric: noise(day, metric) * (2.0 if day == 9 else 1.0))) == []


@pytest.mark.parametrize("metrics", [("m0_s",), ()], ids=["named", "any"])
def test_a_change_caused_by_new_machines_is_not_a_change_of_a_release(metrics: tuple[str, ...]) -> None:
    noise = _noisy(4)

    def values(day: int, metric: Metric) -> float:
        return noise(day, metric) * (0.7 if metric.id == "m0_s" and day >= STEP_AT else 1.0)

    assert _results(_report(values)) == [("m0_s", f"v0.{STEP_AT}")]
    epoch = Epoch(system="cometbft", since="2026-01-12T06:00:00Z", text="new machines", metrics=metrics)
    report = _report(values, epochs=[epoch])
    assert _results(report) == []
    assert report.series[0].setups == [STEP_AT]
    assert report.releases[STEP_AT].notes == ["new machines"]
    assert "new machines" in document_of(report).text()


def test_a_rerun_far_from_its_build_shows_an_unnoted_change_of_the_set_up() -> None:
    """The same build has 30 % less, so the machine changed. Later runs are compared only with later runs."""
    versions = [f"v0.{number}" for number in range(14)] + ["v0.13", *(f"v0.{number}" for number in range(14, 20))]
    noise = _noisy(5)
    report = _report(lambda day, metric: noise(day, metric) * (0.7 if day >= 14 else 1.0), versions)
    assert [series.setups for series in report.series] == [[14]] * len(METRICS)
    assert _results(report) == []
    assert [release.label for release in report.releases if release.version == "v0.13"] == [
        "v0.13 of 2026-01-14",
        "v0.13 of 2026-01-15",
    ]


def test_reruns_of_one_build_are_one_release() -> None:
    versions = [f"v0.{number // 2}" for number in range(12)]
    report = _report(lambda day, metric: 1.0 + 0.02 * (day % 2), versions)
    assert [len(release.run_ids) for release in report.releases] == [2] * 6
    assert report.series[0].values == [pytest.approx((1.0 * 1.02) ** 0.5)] * 6  # geometric mean for ratios


def test_repeated_printed_figures_are_no_more_certain_than_their_rounding() -> None:
    """With two digits, repeated 0.02 and 0.03 would have an interval of zero width if the rounding was ignored."""
    report = _report(lambda day, metric: 0.03 if day >= STEP_AT else 0.02, error=0.01 / 12**0.5)
    for series in report.series:
        (change,) = series.changes
        assert series.is_relative
        assert change.change == pytest.approx(0.5)
        assert change.low is not None
        assert change.low < 0.45


def test_differences_have_a_unit_and_those_below_the_floor_are_not_listed() -> None:
    metrics = [
        metric(Kind.DIFFERENCE, id="big_s", label="big", floor=0.5),
        metric(Kind.DIFFERENCE, id="small_s", label="small", floor=50.0),
    ]
    report = _report(lambda day, metric: float(day >= STEP_AT) + 0.01 * (day % 2), metrics=metrics)
    assert _results(report) == [("big_s", f"v0.{STEP_AT}")]
    assert "worse by +1.0000 s (90 % interval +0.9915 … +1.0085 s)" in document_of(report).text()


def test_figures_compared_by_differences_are_averaged_and_reported_as_such() -> None:
    """A clock that is 3 ms off instead of 2 ms is not 50 % worse, although both values are above zero."""
    kinds = [metric(Kind.DIFFERENCE, id="off_s", label="off"), metric(id="long_s", label="long")]
    again = [1.9, 2.1]

    def values(day: int, _metric: Metric) -> float:
        return again[day - 8] if day in (8, 9) else (2.0 if day < STEP_AT else 3.0) + 0.1 * (day % 2)

    versions = [*VERSIONS[:9], *VERSIONS[8:-1]]
    long, off = _report(values, versions, metrics=kinds).series
    assert (off.is_relative, long.is_relative) == (False, True)
    assert off.values[8] == pytest.approx(2.0)
    assert long.values[8] == pytest.approx((1.9 * 2.1) ** 0.5)


def test_the_width_of_an_interval_includes_the_noise_and_the_errors_of_the_runs() -> None:
    noise = _noisy(9)
    clear = _report(lambda day, metric: noise(day, metric) * (1.2 if day >= STEP_AT else 1.0))
    for series in clear.series:
        (change,) = series.changes
        assert change.low is not None
        assert change.high is not None
        assert 0.17 < change.low < change.change < change.high < 0.24
    difference = [metric(Kind.DIFFERENCE, id="off_s", label="off")]

    def stepped(day: int, _metric: Metric) -> float:
        return 100.0 + (2.0 if day >= STEP_AT else 0.0)

    sure, unsure = (_report(stepped, metrics=difference, error=error).series[0].changes[0] for error in (0.01, 1.0))
    assert sure.low is not None
    assert unsure.low is not None
    assert sure.low > 1.9
    assert unsure.low < 1.5, "an error is in the unit of its metric"


def test_a_figure_removed_before_the_machines_changed_is_listed_until_then() -> None:
    moved = Epoch(system="cometbft", since="2026-01-16T12:00:00Z", text="new machines")
    early = Epoch(system="cometbft", since="2025-12-01T00:00:00Z", text="first machines")
    noise = _noisy(10)

    def values(day: int, metric: Metric) -> Any:
        return None if day >= STEP_AT and metric.id == "m0_s" else noise(day, metric)

    report = _report(values, epochs=[early, moved])
    gone = report.series[0]
    assert gone.values[STEP_AT:] == [None] * (RELEASES - STEP_AT)
    assert gone.setups == [16]
    assert gone.changes == []
    notes = [(place, release.notes) for place, release in enumerate(report.releases) if release.notes]
    assert notes == [(0, ["first machines"]), (16, ["new machines"])]
    assert report.subtitle.endswith(" · 20 releases · 2026-01-01 to 2026-01-20")
    assert report.date == "2026-01-20"


def test_too_few_releases_are_reported() -> None:
    with pytest.raises(UsageError, match="3 releases"):
        _report(_noisy(6), ["v1", "v2", "v3"])


def test_every_rendering_names_the_changes() -> None:
    noise = _noisy(7)
    document = document_of(_report(lambda day, metric: noise(day, metric) * (1.2 if day >= STEP_AT else 1.0)))
    for text in (document.text(), document.markdown(), document.html(), document.junit()):
        assert f"v0.{STEP_AT}" in text
    assert document.pdf().startswith(b"%PDF")


def test_the_page_draws_its_charts_in_a_browser(tmp_path: Path) -> None:
    """Only a browser can show whether a chart is drawn."""
    page_without_complaints(document_of(release_histories.stepped()).html(), tmp_path)


def test_the_first_sentence_has_the_change_its_interval_and_a_command() -> None:
    sentence = release_histories.stepped().sentence
    assert re.match(r"Since v0\.12, figure 0 became worse by \+10\.\d % \(90 % int.* \+\d.* %\); ", sentence)
    assert sentence.endswith("see what else changed with `chainmark compare v0.11 v0.12`.")


def test_every_figure_has_a_chart_and_the_first_ones_are_open() -> None:
    """A user would overlook a metric whose chart is missing."""
    metrics = [metric(id=f"m{number}_s", label=f"figure {number}") for number in range(15)]
    page = document_of(_report(_noisy(8), metrics=metrics)).html()
    assert all(f"history-m{number}_s-mean" in page for number in range(15))
    assert "3 further metrics" in page


def test_text_bars_span_the_values() -> None:
    assert sparkline([1.0, None, 8.0, 4.5]) == "▁ █▅"
    assert sparkline([3.0, 3.0]) == "▅▅"
    assert sparkline([]) == ""


def test_the_releases_of_charts_are_those_with_which_a_gating_metric_changed() -> None:
    report = release_histories.stepped()
    changed = {change.release for series in report.series if series.gating for change in series.changes}
    assert changed
    last = len(report.releases) - 1
    assert report.at_changes(8) == [report.releases[index] for index in sorted({0, *changed, last})]
    assert report.at_changes(2) == [report.releases[0], report.releases[last]]
    first, *rest = report.releases
    printed = report.model_copy(update={"releases": [first.model_copy(update={"is_printed": True}), *rest]})
    assert printed.at_changes(8)[0] is rest[0]
