"""The entries of a history, field by field: releases, set-ups, figures, and changes that are certain enough."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from chainmark.compare.history import FALSE_DISCOVERIES, history_report
from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.epoch import Epoch
from chainmark.core.errors import UsageError
from chainmark.core.history_report import HistoryReport
from chainmark.core.metric import Better, Kind, Metric, MetricGroup, Population
from chainmark.stats.multiple import benjamini_hochberg

from tests.unit.compare.metric_cases import metric
from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

X = metric(label="latency", gating=True, better=Better.HIGHER)
Value = float | None | tuple[float | None, float]  # a value with or without a standard error


def run(version: str, day: int, values: Mapping[str, Value], metrics: Sequence[Metric] = (X,)) -> SyntheticRun:
    started = f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}T00:00:00Z"
    described = manifest(version, 1, run_id=f"{version}-{day}", started_at=started, conditions={}, experiment=None)
    described.configuration = described.configuration.model_copy(update={"effective": {}})
    catalogue = Catalogue(
        system="cometbft",
        title="x",
        populations=[Population(id="block", label="blocks", keys=["height"])],
        tables=[MetricGroup(id="all", title="All")],
        metrics=list(metrics),
    )
    summaries = {}
    for entry in metrics:
        estimates = {}
        for statistic in entry.statistics:
            figure = values.get(f"{entry.id}.{statistic}", values.get(entry.id))
            value, error = figure if isinstance(figure, tuple) else (figure, None)
            estimates[statistic] = Estimate(value=value, standard_error=error, method="made up")
        summaries[entry.id] = MetricSummary(metric_id=entry.id, distribution=None, estimates=estimates)
    return SyntheticRun(described, catalogue, {}, summaries)


def report(runs: Sequence[SyntheticRun], epochs: Sequence[Epoch] = ()) -> HistoryReport:
    return history_report(runs[-1], runs, epochs, "9.9")


def epoch(day: int, text: str, **changes: object) -> Epoch:
    since = f"2026-01-{day:02d}T12:00:00Z"
    return Epoch(**{"system": "cometbft", "since": since, "text": text, **changes})


def series(values: Sequence[Value], metric: Metric = X, epochs: Sequence[Epoch] = ()) -> HistoryReport:
    return report([run(f"v{day}", day, {metric.id: value}, [metric]) for day, value in enumerate(values)], epochs)


NOTICED = {"rises": "blocks come {} later", "falls": "blocks come {} sooner"}
STEP = [1.0, 1.01, 1.0, 1.01, 1.0, 1.01, 1.0, 1.01, 2.0, 2.01, 2.0, 2.01, 2.0, 2.01, 2.0, 2.01]


def test_a_history_names_its_releases_and_its_figures() -> None:
    runs = [run(f"v{day}", day, {"x_s": 1.0 + day}) for day in range(5)]
    runs[1].manifest.printed = True
    again, later = run("v3", 8, {"x_s": 4.0}), run("v4", 9, {"x_s": 7.0})
    again.manifest.tool_version, later.manifest.tool_version = "0.2.0", "0.3.0"
    shown = report([*reversed(runs), again, later], [epoch(3, "new hosts"), epoch(3, "elsewhere", system="other")])
    assert shown.model_dump(include={"tool_version", "title", "subtitle", "date", "sentence", "false_discoveries"}) == {
        "tool_version": "9.9", "title": "History of CometBFT", "date": "2026-01-05", "false_discoveries": 0.05,
        "subtitle": "profile cometbft/demo · 5 releases · 2026-01-01 to 2026-01-05",
        "sentence": "No metric changed its level over 5 releases; v4 alone is not judged here; judge it with "
        "`chainmark compare v3 v4`.",
    }  # fmt: skip
    assert shown.caveats.badges == ("PRINTED",)
    assert [
        (release.label, release.version, release.started_at[:10], release.run_ids) for release in shown.releases
    ] == [
        *((f"v{day}", f"v{day}", f"2026-01-0{day + 1}", [f"v{day}-{day}"]) for day in range(3)),
        ("v3", "v3", "2026-01-04", ["v3-3", "v3-8"]),
        ("v4", "v4", "2026-01-05", ["v4-4", "v4-9"]),
    ]
    assert [release.is_printed for release in shown.releases] == [False, True, False, False, False]
    assert [release.notes for release in shown.releases] == [[], [], [], ["new hosts"], []]
    assert [[difference.what for difference in release.changed] for release in shown.releases] == [
        [], ["version"], ["version"], ["version", "chainmark"], ["version", "chainmark"],
    ]  # fmt: skip
    assert shown.releases[4].changed[1].model_dump() == {"what": "chainmark", "before": "0.2.0", "after": "0.3.0"}
    (only,) = shown.series
    assert only.model_dump(exclude={"values"}) == {
        "metric_id": "x_s", "statistic": "mean", "label": "latency", "unit": "s", "better": Better.HIGHER,
        "gating": True, "is_relative": True, "setups": [3], "changes": [],
    }  # fmt: skip
    assert only.values == pytest.approx([1.0, 2.0, 3.0, 4.0, math.sqrt(5.0 * 7.0)])


def test_fewer_than_four_releases_are_rejected_with_a_hint_how_to_get_more() -> None:
    with pytest.raises(UsageError, match=r"^this workload has 3 releases, but a history requires 4$") as refused:
        series([1.0, 2.0, 3.0])
    assert refused.value.hint == "`chainmark ingest` imports logs and published reports of earlier releases"
    assert len(series([1.0, 2.0, 3.0, 4.0]).releases) == 4


def test_a_build_before_and_after_a_new_set_up_is_two_releases_with_their_days() -> None:
    runs = [run(f"v{day}", day, {"x_s": 1.0}) for day in range(4)] + [run("v2", 7, {"x_s": 1.0})]
    history = report(runs, [epoch(5, "new hosts")])
    assert [release.label for release in history.releases] == ["v0", "v1", "v2 of 2026-01-03", "v3", "v2 of 2026-01-08"]
    assert history.series[0].setups == [4]
    assert len(report(runs).releases) == 4
    at_once = Epoch(system="cometbft", since="2026-01-08T00:00:00Z", text="new hosts")
    both = report(runs, [at_once])
    assert both.series[0].setups == [4], "a run at the exact time of the change belongs to the new set-up"
    assert [release.notes for release in both.releases][-1] == ["new hosts"]


def test_a_note_is_shown_only_at_the_first_release_after_it() -> None:
    at_once = Epoch(system="cometbft", since="2026-01-03T00:00:00Z", text="new hosts")
    history = series([1.0] * 5, epochs=[at_once, epoch(1, "new clocks")])
    assert [release.notes for release in history.releases] == [[], ["new clocks"], ["new hosts"], [], []]
    assert history.series[0].setups == [1, 2]


def test_an_unnoted_change_of_the_set_up_applies_only_to_the_figures_that_show_it() -> None:
    """A re-run that differs from its build in one figure is not evidence about the other figures."""
    noise, metrics = random.Random(5), [X, metric(id="y_s", order=2)]
    versions = [f"v{number}" for number in range(14)] + [f"v{number}" for number in range(13, 20)]
    runs = [
        run(version, day, {metric.id: math.exp(noise.gauss(0.0, 0.01)) for metric in metrics}, metrics)
        for day, version in enumerate(versions)
    ]
    for synthetic in runs[14:]:
        estimate = synthetic.summaries()["x_s"].estimates["mean"]
        changed = estimate.model_copy(update={"value": 0.7 * (estimate.value or 0.0)})
        synthetic.summaries()["x_s"].estimates["mean"] = changed
    history = report(runs)
    assert [series.setups for series in history.series] == [[14], []]
    assert all(series.changes == [] for series in history.series)


def test_every_judged_statistic_of_every_metric_is_a_figure() -> None:
    tail = metric(id="y_s", statistics=["mean", "p99"], judged_by=["p99", "mean"], order=2)
    runs = [run(f"v{day}", day, {"x_s": 1.0, "y_s.mean": 2.0, "y_s.p99": 3.0}, [tail, X]) for day in range(4)]
    series_of_metrics = report(runs).series
    assert [(series.metric_id, series.statistic) for series in series_of_metrics] == [
        ("x_s", "mean"),
        ("y_s", "p99"),
        ("y_s", "mean"),
    ]
    assert [series.values[0] for series in series_of_metrics] == pytest.approx([1.0, 3.0, 2.0])


def test_a_mean_is_over_runs_with_the_figure_and_geometric_for_ratios() -> None:
    two = [run(f"v{day // 2}", day, {"x_s": value}) for day, value in enumerate([2.0, 8.0, 3.0, None, *[1.0] * 6])]
    assert report(two).series[0].values == [pytest.approx(4.0), pytest.approx(3.0), 1.0, 1.0, 1.0]
    zero = [run(f"v{day // 2}", day, {"x_s": value}) for day, value in enumerate([0.0, 8.0, *[1.0] * 6])]
    line = report(zero).series[0]
    assert line.values[0] == pytest.approx(4.0), "a ratio to 0 is meaningless"
    assert line.is_relative
    below = report([run(f"v{day}", day, {"x_s": float(day)}) for day in range(4)])
    assert not below.series[0].is_relative
    none = report([run(f"v{day}", day, {"x_s": None}) for day in range(4)])
    assert (none.series[0].values, none.series[0].is_relative, none.series[0].changes) == ([None] * 4, False, [])


def test_a_change_has_a_position_a_size_and_an_interval() -> None:
    history = series(STEP)
    assert history.sentence == (
        "Since v8, latency became better by +100 % (90 % interval +99 … +100 %); the level of 1 of 1 "
        "metric changed over 16 releases; see what else changed with `chainmark compare v7 v8`."
    )
    (change,) = history.series[0].changes
    assert (change.release, change.label, change.is_gradual) == (8, "v8", False)
    assert change.change == pytest.approx(0.99, abs=0.01)
    assert change.low is not None
    assert change.high is not None
    assert 0.95 < change.low < change.change < change.high < 1.03
    assert 0.0 < change.p_value <= 0.05
    assert change.q_value == change.p_value
    difference = series(STEP, metric(kind=Kind.DIFFERENCE))
    (plain,) = difference.series[0].changes
    assert plain.change == pytest.approx(1.0, abs=1e-9)
    assert plain.low is not None
    assert 0.95 < plain.low < 1.0


@pytest.mark.parametrize(
    ("values", "settings", "change"),
    [
        (STEP, NOTICED, "blocks come 100 % later (90 % interval 99–100 %)"),
        ([1.0 + (value - 1.0) / 2.0 for value in STEP], NOTICED,
         "blocks come 49.9 % later (90 % interval 49.4–50.3 %)"),
        (STEP[::-1], NOTICED, "blocks come 49.9 % sooner (90 % interval 49.6–50.1 %)"),
        ([2000.0 * value for value in STEP], {"kind": Kind.DIFFERENCE},
         "latency became worse by +2000 s (90 % interval +1981 … +2019 s)"),
        ([0.004 * value for value in STEP], {"kind": Kind.DIFFERENCE},
         "latency became worse by +4.000 ms (90 % interval +3.962 … +4.038 ms)"),
        ([2**20 * (2.0 * (place > 7) + 0.126 * (place % 2)) for place in range(16)],
         {"kind": Kind.DIFFERENCE, "unit": "B"},
         "latency became worse by +2.00 MiB (90 % interval +1.88 … +2.12 MiB)"),
        (STEP, {"better": Better.NEITHER}, "latency changed by +100 % (90 % interval +99 … +100 %)"),
    ],
)  # fmt: skip
def test_a_change_is_described_in_the_catalogues_words_and_unit(
    values: list[float], settings: dict[str, Any], change: str
) -> None:
    history = series(values, metric(label="latency", **settings))
    assert history.system == "cometbft"
    assert history.sentence.startswith(f"Since v8, {change}; ")


def test_a_gradual_change_names_both_ends_of_the_history() -> None:
    drift = [1.005**day * (1.0 + 0.002 * (day * 7 % 3 - 1)) for day in range(24)]
    sentence = series(drift).sentence
    assert sentence.startswith("Gradually, mostly around v19, latency became better by +3.0 % (90 % interval ")
    assert sentence.endswith("; see how the first and the last release differ with `chainmark compare v0 v23`.")


@pytest.mark.parametrize("other", [Better.LOWER, Better.NEITHER])
@pytest.mark.parametrize("by", [0.5, 1.0])
def test_regressions_are_named_before_later_changes(other: Better, by: float) -> None:
    metrics = [metric(label="latency"), metric(id="y_s", label="other", better=other, order=2)]
    worse = [1.0 + by * (value - 1.0) for value in STEP]
    later = [*[2.0, 2.01] * 6, *[1.0, 1.01] * 2]
    runs = [run(f"v{day}", day, {"x_s": worse[day], "y_s": later[day]}, metrics) for day in range(16)]
    assert report(runs).sentence.startswith("Since v8, latency became worse by +")
    both = [run(f"v{day}", day, {"x_s": worse[day], "y_s": 3.0 - later[day]}, metrics) for day in range(16)]
    named = "Since v12, other" if other is Better.LOWER else "Since v8, latency"
    assert report(both).sentence.startswith(f"{named} became worse by +")


def test_builds_of_one_version_are_compared_by_run() -> None:
    """For two builds named v8, a comparison by version would select both builds on both sides."""
    runs = [run(f"v{min(day, 8)}", day, {"x_s": 1.0}) for day in range(10)]
    noted = report(runs, [epoch(9, "new hosts")])
    assert noted.sentence.endswith("; judge it with `chainmark compare v8-8 v8-9`.")


def test_the_position_of_a_change_is_that_of_its_release_if_others_have_no_figure() -> None:
    (change,) = series([None, None, *STEP[:8], None, *STEP[8:]]).series[0].changes
    assert (change.release, change.label) == (11, "v11")


def test_changes_too_small_to_matter_are_not_listed() -> None:
    tiny = [1.0 + 0.00001 * (day % 2) for day in range(8)]
    for size, listed in ((0.0005, 0), (0.002, 1)):
        history = series([*tiny, *(value * (1.0 + size) for value in tiny)])
        assert len(history.series[0].changes) == listed
    for floor, listed in ((0.9, 1), (1.1, 0)):
        history = series(STEP, metric(kind=Kind.DIFFERENCE, floor=floor))
        assert len(history.series[0].changes) == listed
    down = series(STEP[::-1], metric(kind=Kind.DIFFERENCE, floor=0.9))
    assert [change.change for change in down.series[0].changes] == [pytest.approx(-1.0, abs=1e-9)]


def test_a_change_at_a_new_set_up_is_not_a_change_of_a_release() -> None:
    assert series(STEP, epochs=[epoch(8, "new hosts")]).series[0].changes == []
    assert series(STEP, epochs=[epoch(8, "new hosts", metrics=("x_s",))]).series[0].setups == [8]
    for other in (epoch(8, "new hosts", metrics=("y_s",)), epoch(8, "new hosts", system="other")):
        line = series(STEP, epochs=[other]).series[0]
        assert (line.setups, len(line.changes)) == ([], 1)
    # The figure appeared after the first change of the set-up and is missing after the last one.
    late = series([None, None, None, *STEP, None], epochs=[epoch(2, "first"), epoch(11, "then"), epoch(19, "last")])
    assert late.series[0].setups == [2, 11, 19]
    assert late.series[0].changes == []


def test_errors_within_runs_are_averaged_by_squares_on_the_scale_of_the_figure() -> None:
    """The interval is at least as wide as these errors: relative to the value for ratios, otherwise in the unit."""
    wide = [(value, 0.1 * value) for value in STEP]
    for some_metric, unit in ((X, STEP), (metric(kind=Kind.DIFFERENCE), [1.0] * len(STEP))):
        all_ = [(value, 0.1 * each) for value, each in zip(STEP, unit, strict=True)]
        some = [
            (value, 0.2 * each * (place % 4 == 0)) for place, (value, each) in enumerate(zip(STEP, unit, strict=True))
        ]
        plain, every, fourth = (_width(series(values, some_metric)) for values in (STEP, all_, some))
        assert plain < 0.3 * every
        assert fourth == pytest.approx(every, rel=1e-6)
    few = [(value, 0.1 * value) if place % 4 == 0 else value for place, value in enumerate(STEP)]
    assert _width(series(few)) == pytest.approx(_width(series(wide)), rel=1e-6), "unknown errors are ignored"
    metrics = [X, metric(id="y_s", order=2)]
    longer: list[Value] = [*wide, 1.0]
    lacking = [run(f"v{day}", day, {"x_s": value, "y_s": 1.0}, metrics) for day, value in enumerate(longer)]
    del lacking[-2].summaries()["x_s"], lacking[-1].summaries()["x_s"]
    assert report(lacking).series[0].values[-2:] == [None, None]
    again = [run(f"v{day // 2}", day, {"x_s": value}) for day, value in enumerate(v for v in wide for _ in (0, 1))]
    assert _width(report(again)) == pytest.approx(_width(series(wide)), rel=1e-6), "every run of a build counts"


def _width(history: HistoryReport) -> float:
    (change,) = history.series[0].changes
    assert change.low is not None
    assert change.high is not None
    return change.high - change.low


def test_only_changes_significant_among_all_figures_are_listed() -> None:
    """A figure without a change also counts as one of the tests."""
    noisy = [1.01, 0.98, 1.01, 1.02, 0.95, 0.94, 1.13, 1.05, 1.05, 1.15, 1.08, 1.13]
    alone = series(noisy).series[0].changes
    assert len(alone) == 1
    assert 0.01 < alone[0].p_value <= FALSE_DISCOVERIES
    names = [f"m{number}_s" for number in range(6)]
    metrics = [metric(id=name, order=number) for number, name in enumerate(names)]

    def among(clear: Sequence[str], length: int = 16) -> HistoryReport:
        runs = [
            run(f"v{day}", day, {name: STEP[day] if name in clear else 1.0 for name in names}, metrics)
            for day in range(length)
        ]
        return report(runs)

    history = among(names[1:3])
    assert [series.metric_id for series in history.series if series.changes] == names[1:3]
    p_values = [series.changes[0].p_value for series in history.series if series.changes]
    expected = benjamini_hochberg([*p_values, 1.0, 1.0, 1.0, 1.0])[:2]
    assert [series.changes[0].q_value for series in history.series if series.changes] == pytest.approx(expected)
    assert expected[0] > p_values[0]
    runs = [
        run(f"v{day}", day, {name: noisy[day] if name == names[2] else 1.0 for name in names}, metrics)
        for day in range(len(noisy))
    ]
    assert all(series.changes == [] for series in report(runs).series)
