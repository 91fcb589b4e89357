"""Breakdowns by host: outliers and figures agree with the samples."""

from __future__ import annotations

import statistics

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.compare import compare
from chainmark.compare.breakdowns import MOST_VALUES, _breakdown, _joined, _spread, breakdowns_of
from chainmark.compare.inputs import LoadedRun
from chainmark.compare.samples import ChartSide
from chainmark.core.comparison import Breakdown, Comparison, Scale
from chainmark.core.manifest import Grouping
from chainmark.stats import description
from chainmark.stats.description import TAIL_SAMPLES
from chainmark.stats.keyed_means import Means, coded, means_of
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun

from tests.unit.compare.synthetic_runs import sides, with_hosts
from tests.unit.store.trail_runs import SLOW, SLOW_FACTOR, Timelines, catalogue, sealed

HOSTS, BLOCKS = 8, 12


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[SealedRun, SealedRun]:
    """Baseline and candidate. The candidate is slightly slower."""
    store = Store(tmp_path_factory.mktemp("store"))
    return sealed(store, Timelines(HOSTS, BLOCKS).fill()), sealed(
        store, Timelines(HOSTS, BLOCKS, factor=1.2).fill(), "v2"
    )


@pytest.fixture(scope="module")
def comparison(runs: tuple[SealedRun, SealedRun]) -> Comparison:
    """The comparison of the two runs."""
    return compare([runs[0]], [runs[1]], tool_version="0")


def test_only_deciding_or_charted_metrics_are_broken_down(comparison: Comparison) -> None:
    assert {item.metric_id for item in comparison.breakdowns} == {"fetch_s"}


def test_a_slow_host_is_an_outlier(comparison: Comparison, runs: tuple[SealedRun, SealedRun]) -> None:
    breakdown = comparison.breakdowns[0]
    assert breakdown.values[0] == SLOW
    assert breakdown.stands_out == ["both", *[""] * (HOSTS - 1)]
    assert breakdown.scale is Scale.RELATIVE
    for side, run in zip((breakdown.baseline, breakdown.candidate), runs, strict=True):
        frame = run.samples("block_host").drop_nulls("fetch_s").group_by("host").agg(pl.col("fetch_s").mean(), pl.len())
        means = dict(frame.select("host", "fetch_s").rows())
        assert dict(zip(breakdown.values, side, strict=True)) == pytest.approx(means, rel=1e-5)
    counts = dict(runs[0].samples("block_host").drop_nulls("fetch_s").group_by("host").len().rows())
    assert dict(zip(breakdown.values, breakdown.baseline_n, strict=True)) == counts
    assert breakdown.candidate[0] == pytest.approx(SLOW_FACTOR * (breakdown.median_candidate or 0.0), rel=0.1)
    pairs = zip(breakdown.baseline, breakdown.candidate, strict=True)
    change = [right / left - 1.0 for left, right in pairs]  # type: ignore[operator]
    assert breakdown.change == pytest.approx(change, rel=1e-3)


@given(
    usual=st.lists(st.floats(0.95, 1.05), min_size=6, max_size=12),
    wild=st.floats(2.0, 50.0),
    where=st.integers(0, 5),
)
def test_one_extreme_host_is_an_outlier_and_the_ordinary_ones_are_not(
    usual: list[float], wild: float, where: int
) -> None:
    """Hosts within the margin of the median are alike, however close together the others are."""
    metric = catalogue().metric("fetch_s")
    means = {f"node-{index}": (value, 1) for index, value in enumerate(usual)}
    assert _spread(Means(means), metric).outlying == set()
    means[f"node-{where}"] = (wild, 1)
    assert f"node-{where}" in _spread(Means(means), metric).outlying


def test_a_few_samples_that_differ_by_chance_are_not_outliers() -> None:
    """A block's time varies much more than a host's mean. A host with two blocks must not be blamed for one of them."""
    means = {f"node-{index}": (1.0 + 0.001 * index, 1000) for index in range(8)} | {"rare": (2.0, 2)}
    metric = catalogue().metric("fetch_s")
    wide, narrow = ({name: spread * count for name, (_, count) in means.items()} for spread in (1.0, 0.001))
    assert _spread(Means(means, wide, freedom=8000), metric).outlying == set()
    assert _spread(Means(means, narrow, freedom=8000), metric).outlying == {"rare"}


def test_one_extreme_sample_does_not_make_a_host_an_outlier() -> None:
    usual = [1.0 + 0.001 * (index % 10) for index in range(30)]
    names = [f"node-{host}" for host in range(8) for _ in usual]
    metric = catalogue().metric("fetch_s")
    wild = [*usual * 7, *usual[:-1], 60.0]
    assert _spread(means_of(coded(pl.Series(names)), np.array(wild)), metric).outlying == set()
    slow = [*usual * 7, *(3.0 * value for value in usual)]
    assert _spread(means_of(coded(pl.Series(names)), np.array(slow)), metric).outlying == {"node-7"}


@given(
    rows=st.lists(
        st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.floats(-1e3, 1e3))), min_size=1, max_size=60
    )
)
def test_means_are_those_of_each_value(rows: list[tuple[str, float | None]]) -> None:
    column = coded(pl.Series([name for name, _ in rows]))
    means = means_of(column, np.array([float("nan") if value is None else value for _, value in rows]))
    own = {name: [value for other, value in rows if other == name and value is not None] for name, _ in rows}
    own = {name: values for name, values in own.items() if values}
    assert {name: count for name, (_, count) in means.of.items()} == {name: len(values) for name, values in own.items()}
    for name, values in own.items():
        assert means.of[name][0] == pytest.approx(statistics.fmean(values), abs=1e-9)
        squares = sum((value - statistics.fmean(values)) ** 2 for value in values)
        assert means.squares[name] == pytest.approx(squares, rel=1e-6, abs=1e-6)
    assert means.freedom == sum(len(values) - 1 for values in own.values())


def test_many_hosts_are_limited_and_the_outliers_are_preserved() -> None:
    baseline, candidate = (side[0] for side in sides(repetitions=1, seconds=30))
    means = {f"node-{index:03d}": 1.0 + 0.0001 * (index % 7) for index in range(3 * MOST_VALUES)}
    means["node-100"] = 9.0
    breakdowns = compare([with_hosts(means, baseline)], [with_hosts(means, candidate)], tool_version="0").breakdowns
    cpu = next(item for item in breakdowns if item.metric_id == "cpu_cores")
    assert (len(cpu.values), cpu.left_out) == (MOST_VALUES, 2 * MOST_VALUES)
    assert cpu.values[0] == "node-100"
    assert cpu.stands_out.count("both") == 1


def test_four_hosts_are_too_few_for_an_outlier() -> None:
    baseline, candidate = (side[0] for side in sides(repetitions=1, seconds=30))
    means = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 5.0}
    breakdowns = compare([with_hosts(means, baseline)], [with_hosts(means, candidate)], tool_version="0").breakdowns
    cpu = next(item for item in breakdowns if item.metric_id == "cpu_cores")
    assert set(cpu.stands_out) == {""}
    assert cpu.z == [None] * 4
    assert cpu.median_baseline == 1.0, "they still have a median"
    cpu = _by_node(means | {"e": 1.0}, means | {"e": 1.0})
    assert (cpu.values[0], cpu.stands_out[0]) == ("d", "both"), "five are enough"
    assert cpu.z == [3.98947, *[0.0] * 4]


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_the_tail_is_the_same_whether_all_rows_or_the_outermost_are_sorted(
    better: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The boundary of the outermost rows is tested with ties, few distinct values and missing values."""
    rng = np.random.default_rng(7)
    for things in (3, 40):
        values = [None if draw < 0.1 else round(draw, 1) for draw in rng.random(400).tolist()]
        keys = [f"thing-{number}" for number in rng.integers(0, things, 400).tolist()]
        thing, column = pl.Series(keys), pl.Series(values, dtype=pl.Float64).to_numpy()
        tables = []
        for few in (1, 8, 10_000):
            monkeypatch.setattr(description, "_FEW_ROWS", few)
            rows = description._tail_rows(column, [thing], None, lowest=better == "higher")
            tables.append([(column[row], thing[row]) for row in rows])
        assert tables[0] == tables[1] == tables[2]
        assert len(tables[0]) == min(things, TAIL_SAMPLES)


def test_a_distant_region_has_no_outliers_except_a_slow_host_in_it() -> None:
    """Eleven warnings about the locations of hosts would hide the one about the fault."""
    metric = catalogue().metric("fetch_s")
    near = {f"near-{index}": (1.0 + 0.01 * index, 100) for index in range(20)}
    far = {f"far-{index}": (3.0 + 0.03 * index, 100) for index in range(11)}
    regions = {name: name.partition("-")[0] for name in [*near, *far]}
    assert _spread(Means(near | far), metric).outlying == set(far)
    assert _spread(Means(near | far), metric, regions).outlying == set()
    slow = near | far | {"far-10": (9.0, 100), "near-3": (3.0, 100)}
    spread = _spread(Means(slow), metric, regions)
    assert spread.outlying == {"far-10", "near-3"}  # 3 s is normal in the far region but not in the near one
    assert spread.medians["far-10"] == pytest.approx(3.15)


def test_outliers_of_small_regions_are_judged_by_the_spread_within_all_regions() -> None:
    metric = catalogue().metric("fetch_s")
    means = {f"{region}-{index}": (base + 0.01 * index, 100) for region, base in (("a", 1.0), ("b", 2.0), ("c", 3.0))
             for index in range(4)}  # fmt: skip
    means |= {"b-3": (5.0, 100), "alone-0": (9.0, 100)}
    regions = {name: name.partition("-")[0] for name in means}
    assert _spread(Means(means), metric, regions).outlying == {"b-3"}


def test_every_run_has_equal_weight_and_its_samples_are_counted() -> None:
    """A longer run must not decide alone. A host that is missing in a run has the mean of the others."""
    runs = [Means({"a": (1.0, 1)}, {"a": 0.5}, 1), Means({"a": (4.0, 9), "b": (7.0, 2)}, {"a": 1.5, "b": 1.0}, 9)]
    joined = _joined(runs)
    assert joined.of == {"a": (2.5, 10), "b": (7.0, 2)}
    assert (joined.squares, joined.freedom) == ({"a": 2.0, "b": 1.0}, 10)


def test_each_side_is_judged_within_its_own_groups() -> None:
    """Hosts may be moved between two runs. A distant host must not be an outlier for the other side's location."""
    baseline, candidate = (side[0] for side in sides(repetitions=1, seconds=30))
    means = {f"near-{index}": 1.0 + 0.01 * index for index in range(9)} | {f"far-{index}": 3.0 for index in range(3)}
    regions = {name: name.partition("-")[0] for name in means}
    baseline.manifest.groups = {"node": Grouping(label="region", of=regions)}
    candidate.manifest.groups = {"node": Grouping(label="region", of=dict.fromkeys(means, "near"))}
    compared = compare([with_hosts(means, baseline)], [with_hosts(means, candidate)], tool_version="0")
    cpu = next(item for item in compared.breakdowns if item.metric_id == "cpu_cores")
    outliers = dict(zip(cpu.values, cpu.stands_out, strict=True))
    assert {name: where for name, where in outliers.items() if where} == {f"far-{i}": "candidate" for i in range(3)}
    assert cpu.group_label == "region"
    far = cpu.values.index("far-0")
    assert (cpu.group_medians_baseline[far], cpu.group_medians_candidate[far]) == pytest.approx((3.0, 1.055), abs=1e-5)


def _by_node(before: dict[str, float], after: dict[str, float]) -> Breakdown:
    """The CPU usage of the nodes of two runs."""
    baseline, candidate = (side[0] for side in sides(repetitions=1, seconds=30))
    compared = compare([with_hosts(before, baseline)], [with_hosts(after, candidate)], tool_version="0")
    return next(item for item in compared.breakdowns if item.metric_id == "cpu_cores")


def test_a_host_of_one_side_has_no_value_on_the_other() -> None:
    """Of the outliers, those that changed by more than the margin come first."""
    usual = dict.fromkeys("abcde", 1.0)
    cpu = _by_node({**usual, "f": 1.0, "g": 9.0}, {**usual, "f": 1.3, "h": 1.0})
    assert cpu.values == ["f", "g", *"abcde", "h"]
    assert cpu.stands_out == ["candidate", "baseline", *[""] * 6]
    assert cpu.baseline == [1.0, 9.0, *[1.0] * 5, None]
    assert cpu.candidate == [1.3, None, *[1.0] * 6]
    assert (cpu.baseline_n, cpu.candidate_n) == ([30] * 7 + [0], [30, 0] + [30] * 6)
    assert cpu.change == [0.3, None, *[0.0] * 5, None]
    assert (cpu.scale, cpu.median_baseline, cpu.median_candidate) == (Scale.RELATIVE, 1.0, 1.0)
    assert (cpu.group_label, cpu.group_medians_baseline, cpu.group_medians_candidate) == ("", [], [])


def test_changes_are_absolute_if_a_mean_is_not_positive() -> None:
    cpu = _by_node({"a": -0.5, "b": 2.0}, {"a": 0.5, "b": 3.0})
    assert (cpu.scale, cpu.values, cpu.change) == (Scale.ABSOLUTE, ["a", "b"], [1.0, 1.0])


def _figures(before: Means, after: Means, **changes: object) -> Breakdown:
    """The breakdown of a metric with these means, without samples."""
    metric = catalogue().metric("fetch_s").model_copy(update={"margin": 0.25, "floor": 0.5, **changes})
    sides_without_runs = [ChartSide("baseline", "v1", []), ChartSide("candidate", "v2", [])]
    return _breakdown(metric, "host", sides_without_runs, (before, after))


def test_values_that_changed_come_first_then_by_distance_then_by_name() -> None:
    """Their scores are those of the side on which they are more extreme; a change of the margin is not larger."""
    before = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.5, "e": 2.0, "f": 2.0, "gone": 1.9}
    after = {"a": 1.0, "b": 1.0, "c": 1.25, "d": 1.5, "e": 2.0, "f": 2.75, "new": 1.5}
    figures = _figures(Means({name: (value, 1) for name, value in before.items()}),
                       Means({name: (value, 1) for name, value in after.items()}))  # fmt: skip
    assert figures.values == ["f", "a", "b", "c", "e", "gone", "d", "new"]
    figures = _figures(Means({"a": (1.0, 1)}), Means({"a": (2.0, 1)}))
    assert (figures.median_baseline, figures.median_candidate) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("before", "after", "scale"),
    [
        pytest.param({"a": 4.0, "b": 0.5}, {"a": 4.8, "b": 0.65}, Scale.RELATIVE, id="by 30 % instead of 20 %"),
        pytest.param({"a": -0.5, "b": 3.0}, {"a": -0.2, "b": 3.8}, Scale.ABSOLUTE, id="by 0.8 s instead of 0.3 s"),
    ],
)
def test_the_order_depends_on_the_scale_of_changes(
    before: dict[str, float], after: dict[str, float], scale: Scale
) -> None:
    figures = _figures(Means({name: (value, 1) for name, value in before.items()}),
                       Means({name: (value, 1) for name, value in after.items()}))  # fmt: skip
    assert (figures.scale, figures.values) == (scale, ["b", "a"])


def test_changes_from_zero_are_absolute() -> None:
    figures = _figures(Means({"a": (0.0, 1)}), Means({"a": (2.0, 1)}))
    assert (figures.scale, figures.change) == (Scale.ABSOLUTE, [2.0])


def test_figures_have_six_digits() -> None:
    figures = _figures(Means({"a": (1.23456789, 1)}), Means({"a": (2.0, 1)}))
    assert (figures.baseline, figures.median_baseline) == ([1.23457], 1.23457)


def test_equal_values_have_no_distance() -> None:
    equal = Means(dict.fromkeys("abcde", (1.0, 1)))
    assert _figures(equal, equal).z == [0.0] * 5


def test_a_key_that_only_one_side_has_is_broken_down() -> None:
    """The other side's runs may be from before the key was recorded."""
    baseline, candidate = (side[0] for side in sides(repetitions=1, seconds=30))
    means = {f"node-{index}": 1.0 for index in range(5)} | {"slow": 9.0}
    run = with_hosts(means, candidate)
    del baseline.frames["node_second"]
    metric, population = run.catalogue.metric("cpu_cores"), run.catalogue.population("node_second")
    charted = [
        ChartSide("baseline", "v1", [LoadedRun(baseline)]),
        ChartSide("candidate", "v2", [LoadedRun(run)]),
    ]
    (cpu,) = breakdowns_of(charted, metric, population)
    assert (cpu.values[0], cpu.stands_out[0], cpu.median_baseline) == ("slow", "candidate", None)
    assert (cpu.baseline, cpu.z[1:]) == ([None] * 6, [0.0] * 5)


def test_the_spread_within_a_group_of_five_is_its_own_and_three_are_judged_by_that_of_all() -> None:
    """Hosts of a distant region vary more. Their spread must not hide an outlier of a near region."""
    metric = catalogue().metric("fetch_s")
    far = {f"far-{index}": (10.0 + 3.0 * index, 1) for index in range(8)}
    near = {f"near-{index}": (1.0 + 0.01 * index, 1) for index in range(4)} | {"near-4": (3.0, 1)}
    few = {"few-0": (1.0, 1), "few-1": (1.1, 1), "few-2": (1.2, 1), "few-3": (4.0, 1)}
    few |= {f"three-{index}": (1.0 + 0.05 * index, 1) for index in range(3)}
    few |= {"two-0": (1.0, 1), "two-1": (30.0, 1)}
    means = Means(far | near | few)
    spread = _spread(means, metric, {name: name.partition("-")[0] for name in means.of})
    assert spread.outlying == {"near-4"}
    assert {name for name in few if name in spread.scores} == {name for name in few if not name.startswith("two")}
    two = _spread(Means({"a-0": (1.0, 1), "b-0": (3.0, 1)}), metric, {"a-0": "a", "b-0": "b"})
    assert (two.scores, two.medians) == ({}, {"a-0": 1.0, "b-0": 3.0})
