"""Complete comparisons of synthetic runs: verdicts, gates, differences, charts, determinism."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from chainmark.compare import compare
from chainmark.core.chart_kind import ChartKind
from chainmark.core.comparison import (
    Comparison,
    Judgement,
    Outcome,
)
from chainmark.core.errors import ExitCode, UsageError
from chainmark.core.manifest import ConfigChange, Configuration, Gate, GateStatus
from chainmark.core.metric import Metric, Weighting
from chainmark.core.verdict import Verdict
from chainmark.report.comparison_document import comparison_document
from chainmark.report.validity import summary
from chainmark.stats import replicates

from tests.unit.compare.synthetic_runs import HOST, SyntheticRun, catalogue, run, sides

ROOT = Path(__file__).parents[3]


def compared(
    baseline: Sequence[SyntheticRun], candidate: Sequence[SyntheticRun], history: Sequence[SyntheticRun] = ()
) -> Comparison:
    return compare(baseline, candidate, history=history, tool_version="test")


def judgement(comparison: Comparison, metric_id: str, statistic: str = "mean") -> Judgement:
    return next(item for item in comparison.judgements if (item.metric_id, item.statistic) == (metric_id, statistic))


def failed_gate() -> Gate:
    return Gate(id="load_met", label="load met", status=GateStatus.FAIL, measured="91 %", limit=">= 98 %")


@pytest.fixture(scope="module")
def equal() -> Comparison:
    return compared(*sides({"goroutines_count": 0.7}, drawn=True))


def test_an_equal_release_passes_with_its_margins_stated(equal: Comparison) -> None:
    assert equal.verdict is Verdict.PASS
    assert equal.sentence.startswith("All 8 gating metrics of v1.0.1 are shown to be within their margins (10 % for 6")
    assert equal.sentence.endswith("of v0.38.17 or better")
    assert equal.title == "CometBFT v1.0.1 against v0.38.17"
    assert equal.subtitle == "profile cometbft/demo · 3 + 3 runs, interleaved · 2026-11-20"
    assert (equal.baseline.label, equal.candidate.label) == ("v0.38.17", "v1.0.1")
    assert equal.advice == []
    moved = [item.metric_id for item in equal.judgements if item.moved]
    assert "goroutines_count" in moved


def test_every_judged_statistic_of_every_metric_is_listed_in_the_reports_order(equal: Comparison) -> None:
    expected = [(metric.id, name) for metric in catalogue().ordered() for name in metric.judged_by]
    assert [(item.metric_id, item.statistic) for item in equal.judgements] == expected
    assert len(equal.distributions) == 2 * len(catalogue().metrics)


def test_a_regression_fails_and_names_the_metrics() -> None:
    comparison = compared(*sides({"tx_latency_s": 1.38, "block_interval_s": 1.37}))
    assert comparison.verdict is Verdict.FAIL
    assert comparison.sentence.startswith("v1.0.1 is worse than v0.38.17: tx latency p99 +38.1 % (90 % interval +3")
    assert "block interval +3" in comparison.sentence
    assert "90 % interval" in comparison.sentence
    assert judgement(comparison, "tx_latency_s", "p99").outcome is Outcome.WORSE


def test_a_gating_metric_without_data_is_never_a_pass() -> None:
    baseline, candidate = sides()
    for synthetic in candidate:
        synthetic.frames["node_second"] = synthetic.frames["node_second"].drop("rss_bytes")
    comparison = compared(baseline, candidate)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert judgement(comparison, "rss_bytes").outcome is Outcome.NO_DATA
    assert (
        comparison.reasons[0] == "resident memory has no data (candidate: no samples): a missing metric is never a pass"
    )


def test_a_metric_that_vanished_from_the_catalogue_is_still_listed() -> None:
    baseline, candidate = sides(repetitions=2)
    for synthetic in candidate:
        metrics = [metric for metric in synthetic.catalogue.metrics if metric.id != "cpu_cores"]
        synthetic.catalogue = synthetic.catalogue.model_copy(update={"metrics": metrics})
    comparison = compared(baseline, candidate)
    assert judgement(comparison, "cpu_cores").outcome is Outcome.NO_DATA
    assert judgement(comparison, "cpu_cores").note == "candidate: not in the catalogue"
    assert comparison.catalogue.metric("cpu_cores").label == "CPU"
    assert comparison.verdict is not Verdict.PASS


def test_a_noisy_lab_is_inconclusive_and_states_how_many_runs_to_add() -> None:
    comparison = compared(*sides(run_noise=0.12, repetitions=2))
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert any("decide this with 80 % probability" in text for text in comparison.advice)


def test_a_different_workload_is_invalid_and_nothing_is_judged() -> None:
    baseline, candidate = sides(repetitions=2)
    for synthetic in candidate:
        synthetic.manifest.workload["load.rate_tx_per_s"] = 100
        synthetic.manifest.workload["window.start_s"] = 60
    comparison = compared(baseline, candidate)
    assert comparison.verdict is Verdict.INVALID
    assert comparison.workload_differences == {"load.rate_tx_per_s": [50, 100], "window.start_s": [30, 60]}
    assert "load.rate_tx_per_s is 50 against 100" in comparison.sentence
    failing = {gate.id for gate in comparison.gates if gate.status is GateStatus.FAIL}
    assert failing == {"workload_equal", "window_equal"}
    for item in comparison.judgements:
        assert item.outcome is Outcome.INCONCLUSIVE
        assert item.note.startswith("not judged: the workloads differ")
        assert (item.change, item.low, item.high, item.p_worse) == (None, None, None, None)
    assert judgement(comparison, "cpu_cores").baseline.value is not None


def test_other_hardware_is_invalid() -> None:
    baseline, candidate = sides(repetitions=2)
    candidate[1].manifest.host = HOST.model_copy(update={"cores": 16})
    comparison = compared(baseline, candidate)
    assert comparison.verdict is Verdict.INVALID
    assert "the hardware differs" in comparison.sentence


def gate(comparison: Comparison, gate_id: str) -> Gate:
    return next(item for item in comparison.gates if item.id == gate_id)


@pytest.mark.parametrize("stated", [0, 1])
def test_unstated_machines_and_binaries_are_not_a_difference(stated: int) -> None:
    baseline, candidate = sides(repetitions=2)
    for synthetic in [*baseline, *candidate][stated:]:
        synthetic.manifest.host = HOST.model_copy(update={"cores": 0, "cpu_model": "not stated"})
        synthetic.manifest.subject = synthetic.manifest.subject.model_copy(update={"binary_sha256": None})
    comparison = compared(baseline, candidate)
    hardware, builds = gate(comparison, "hardware_equal"), gate(comparison, "one_build_a_side")
    assert comparison.verdict is not Verdict.INVALID
    text = comparison_document(comparison).text()
    assert (
        "? 2 gates could not be checked: same hardware class, one build per side" in text
    )  # a check mark would claim that they were checked
    assert "✓ not stated" not in comparison_document(comparison).markdown()
    assert "2 could not be checked" in summary(comparison)[0]
    assert hardware.status is GateStatus.UNKNOWN
    assert hardware.measured == ("AMD EPYC 7B13 × 8, 32 GiB against not stated" if stated else "not stated")
    assert (builds.status, builds.measured) == (GateStatus.UNKNOWN, "not stated")


def test_runs_averaged_by_different_rules_are_invalid() -> None:
    baseline, candidate = sides(repetitions=2)
    for synthetic in candidate:
        changed = [
            population.model_copy(update={"weighting": Weighting.KEYS, "lowest_means": 3})
            if population.id == "node_second"
            else population
            for population in synthetic.catalogue.populations
        ]
        synthetic.catalogue = synthetic.catalogue.model_copy(update={"populations": changed})
    comparison = compared(baseline, candidate)
    assert comparison.verdict is Verdict.INVALID
    assert "the sides use different averaging rules (nodes × seconds: the mean over every node" in comparison.sentence
    assert "the mean of the 3 lowest means per node" in comparison.sentence
    assert comparison.advice == ["analyse one side again with the rules of the other, then compare again"]
    assert gate(compared(*sides(repetitions=2)), "rules_equal").status is GateStatus.PASS


def test_all_means_of_a_metric_agree_if_hosts_have_equal_weight() -> None:
    baseline, candidate = sides(repetitions=1)
    for synthetic in (*baseline, *candidate):
        changed = [
            item.model_copy(update={"weighting": Weighting.KEYS}) if item.id == "node_second" else item
            for item in synthetic.catalogue.populations
        ]
        synthetic.catalogue = synthetic.catalogue.model_copy(update={"populations": changed})
        frame = synthetic.frames["node_second"]
        synthetic.frames["node_second"] = frame.filter((pl.col("node") != "node0") | (pl.col("time_s") < 20.0))
    comparison = compared(baseline, candidate)
    rows = {(row.metric_id, row.side): row for row in comparison.distributions}
    for name in ("cpu_cores", "threads_count", "mempool_txs_count"):
        shown = judgement(comparison, name)
        assert rows[name, "baseline"].mean == shown.baseline.value
        assert rows[name, "candidate"].mean == shown.candidate.value


def test_bands_of_bundled_units_are_close_to_those_of_single_units(monkeypatch: pytest.MonkeyPatch) -> None:
    baseline, candidate = sides(repetitions=1, drawn=True, seconds=150)
    monkeypatch.setattr(replicates, "MOST_BUNDLES", 1_000_000)
    exact = {chart.id: chart for chart in compared(baseline, candidate).charts}
    monkeypatch.setattr(replicates, "MOST_BUNDLES", 60)
    coarse = {chart.id: chart for chart in compared(baseline, candidate).charts}
    assert coarse.keys() == exact.keys()
    for name in ("tx_latency_s-cdf", "cpu_cores-cdf", "cpu_cores-shift", "block_interval_s-cdf"):
        assert "of bundles of neighbouring units" in coarse[name].note
        assert "of bundles of neighbouring units" not in exact[name].note
        for own, other in zip(coarse[name].lines, exact[name].lines, strict=True):
            assert (own.x, own.y) == (other.x, other.y)
            widths = [
                sum(high - low for low, high in zip(line.low or [], line.high or [], strict=True))
                for line in (own, other)
            ]
            assert widths[0] == pytest.approx(widths[1], rel=0.25)


def test_a_run_with_a_failed_gate_is_listed_and_excluded() -> None:
    baseline, candidate = sides(repetitions=4)
    candidate[1].manifest.gates.append(failed_gate())
    comparison = compared(baseline, candidate)
    assert comparison.verdict is not Verdict.INVALID
    reasons = [entry.excluded_because for entry in comparison.candidate.runs]
    assert reasons == [None, "load met: 91 %, required >= 98 %", None, None]
    assert any(candidate[1].manifest.run_id in text for text in comparison.reasons)
    assert len(judgement(comparison, "cpu_cores").candidate.per_run) == 3
    assert judgement(comparison, "cpu_cores").noise == "between 4 + 3 runs"


@pytest.mark.parametrize(("failing", "invalid"), [(1, False), (2, True), (3, True)])
def test_fewer_than_half_of_a_sides_runs_are_not_enough(failing: int, *, invalid: bool) -> None:
    baseline, candidate = sides()
    for synthetic in baseline[:failing]:
        synthetic.manifest.gates.append(failed_gate())
    assert (compared(baseline, candidate).verdict is Verdict.INVALID) == invalid


@pytest.mark.parametrize("side", [0, 1])
def test_exactly_half_of_a_sides_runs_are_enough(side: int) -> None:
    """Two of four: the comparison warns and is judged by the two valid runs."""
    pair = sides(repetitions=4)
    for synthetic in pair[side][:2]:
        synthetic.manifest.gates.append(failed_gate())
    comparison = compared(*pair)
    valid = gate(comparison, f"{('baseline', 'candidate')[side]}_runs_valid")
    assert (valid.status, valid.measured) == (GateStatus.WARN, "2 of 4 runs")
    assert valid.detail.count("load met: 91 %, required >= 98 %") == 2
    other = gate(comparison, f"{('candidate', 'baseline')[side]}_runs_valid")
    assert (other.status, other.measured, other.detail) == (GateStatus.PASS, "4 of 4 runs", "")
    assert comparison.verdict is not Verdict.INVALID
    number_of_runs = [4, 4]
    number_of_runs[side] = 2
    assert judgement(comparison, "cpu_cores").noise == f"between {number_of_runs[0]} + {number_of_runs[1]} runs"


@pytest.mark.parametrize("side", [0, 1])
def test_an_empty_side_is_a_usage_error(side: int) -> None:
    pair = list(sides(repetitions=1))
    pair[side] = []
    with pytest.raises(UsageError, match="has no runs") as caught:
        compared(*pair)
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.hint


def test_different_systems_mixed_versions_and_shared_runs_are_usage_errors() -> None:
    baseline, candidate = sides(repetitions=2)
    with pytest.raises(UsageError, match=r"mixes the versions v0\.38\.17 and v1\.0\.1"):
        compared([*baseline, candidate[0]], candidate[1:])
    with pytest.raises(UsageError, match="on both sides"):
        compared(baseline, baseline)
    with pytest.raises(UsageError, match="twice"):
        compared([baseline[0], baseline[0]], candidate)
    other = candidate[0].manifest.subject.model_copy(update={"system": "mesh"})
    candidate[0].manifest.subject = other
    with pytest.raises(UsageError, match="cometbft and mesh") as caught:
        compared(baseline, candidate)
    assert caught.value.hint


def test_equal_versions_are_distinguished_by_their_role() -> None:
    baseline = [run("v1.0.1", r, seed=r) for r in (1, 2)]
    candidate = [run("v1.0.1", r, side="candidate", seed=10 + r) for r in (1, 2)]
    comparison = compared(baseline, candidate)
    assert (comparison.baseline.label, comparison.candidate.label) == ("v1.0.1 (baseline)", "v1.0.1 (candidate)")


def test_conditions_that_differ_warn_with_the_catalogues_words(equal: Comparison) -> None:
    (difference,) = equal.condition_differences
    assert (difference.id, difference.baseline, difference.candidate) == ("time_source", "BFT", "proposer-based")
    assert "lags the commit" in difference.explanation


def test_configuration_differences_are_distinguished_from_changes() -> None:
    baseline, candidate = sides(repetitions=1)
    baseline[0].manifest.configuration = Configuration(
        effective={"a.toml": {"same": 1, "default": 1, "set": 1, "gone": True}}, changed={}
    )
    candidate[0].manifest.configuration = Configuration(
        effective={"a.toml": {"same": 1, "default": 2, "set": 9, "new": [1, 2]}},
        changed={"a.toml": {"set": ConfigChange(default=1, used=9)}},
    )
    comparison = compared(baseline, candidate)
    rows = [
        (d.key, d.baseline, d.candidate, d.only_in, d.is_default_change) for d in comparison.configuration_differences
    ]
    assert rows == [
        ("default", 1, 2, None, True),
        ("gone", True, None, "baseline", True),
        ("new", None, [1, 2], "candidate", True),
        ("set", 1, 9, None, False),
    ]
    assert comparison.changed_from_default["candidate"]["a.toml"]["set"].used == 9


def test_single_runs_use_the_archive_and_the_other_sides_repetitions() -> None:
    baseline, candidate = sides()
    history = [run("v0.37.0", r, seed=500 + r) for r in range(1, 5)]
    assert (
        "noise between 3 + 1 runs and 4 of the archive"
        in judgement(compared(baseline, candidate[:1], history), "cpu_cores").noise
    )
    assert "archive of 4 runs" in judgement(compared(baseline[:1], candidate[:1], history), "cpu_cores").noise
    alone = compared(baseline[:1], candidate[:1])
    assert "assumed noise, 10 %" in judgement(alone, "block_interval_s").noise
    assert any("assumed, not measured" in text for text in alone.advice)


def _numbers(value: object) -> list[float]:
    if isinstance(value, dict):
        return [number for item in value.values() for number in _numbers(item)]
    if isinstance(value, list):
        return [number for item in value for number in _numbers(item)]
    return [value] if isinstance(value, float) else []


def test_the_same_runs_give_the_same_bytes_in_any_order(equal: Comparison) -> None:
    baseline, candidate = sides({"goroutines_count": 0.7}, drawn=True)
    for synthetic in [*baseline, *candidate]:
        for name, frame in synthetic.frames.items():
            synthetic.frames[name] = frame.sample(fraction=1.0, shuffle=True, seed=3)
    again = compared(baseline[::-1], candidate[::-1])
    assert again.model_dump_json() == equal.model_dump_json()
    assert all(math.isfinite(number) for number in _numbers(json.loads(equal.model_dump_json())))
    assert Comparison.model_validate_json(equal.model_dump_json()) == equal


def test_every_chart_that_a_metric_defines_exists(equal: Comparison) -> None:
    expected = {f"{metric.id}-{kind}" for metric in catalogue().metrics for kind in metric.drawn}
    assert {chart.id for chart in equal.charts} == expected
    assert {chart.kind for chart in equal.charts} >= {"cdf", "shift", "series", "scatter"}


def test_the_shift_of_quantiles_accompanies_the_distribution_and_can_be_drawn_alone() -> None:
    metric = next(metric for metric in catalogue().metrics if ChartKind.CDF in metric.charts)
    for named, drawn in ((["cdf", "shift"], ["cdf", "shift"]), (["cdf"], ["cdf", "shift"]), (["shift"], ["shift"])):
        assert Metric.model_validate({**metric.model_dump(), "charts": named}).drawn == drawn


def test_charts_are_well_formed(equal: Comparison) -> None:
    for chart in equal.charts:
        for line in chart.lines:
            assert len(line.x) == len(line.y) > 0
            for edge in (line.low, line.high):
                assert edge is None or len(edge) == len(line.x)
            if line.low is not None and line.high is not None and chart.kind is not ChartKind.CDF:
                assert all(a <= y <= b for a, y, b in zip(line.low, line.y, line.high, strict=True))
            if chart.kind is ChartKind.CDF:
                assert len(line.x) <= 400
                assert line.x == sorted(line.x)
                assert (line.y[0], line.y[-1]) == (0.0, 1.0)
                assert 0.999 in line.y
            if line.low is not None and line.high is not None and chart.kind is ChartKind.CDF:
                assert all(a <= x <= b for a, x, b in zip(line.low, line.x, line.high, strict=True))


def test_a_cdf_has_a_pooled_line_with_a_band_and_one_thin_line_per_run(equal: Comparison) -> None:
    chart = next(chart for chart in equal.charts if chart.id == "tx_latency_s-cdf")
    assert [line.run_id is None for line in chart.lines] == [True, False, False, False] * 2
    assert [line.low is None for line in chart.lines] == [False, True, True, True] * 2
    assert "runs resampled, then blocks of time" in chart.note


def test_long_lines_and_scatter_plots_are_thinned_with_a_note() -> None:
    baseline, candidate = sides(repetitions=1, drawn=True)
    for synthetic in (*baseline, *candidate):
        frame = synthetic.frames["transaction"]
        copies = [frame.with_columns(due_s=frame["due_s"] + 60.0 * step) for step in range(8)]
        synthetic.frames["transaction"] = pl.concat(copies)
        second = synthetic.frames["second"]
        synthetic.frames["second"] = second[[0] * 2500].with_columns(time_s=pl.Series(range(2500)).cast(pl.Float64))
    charts = {chart.id: chart for chart in compared(baseline, candidate).charts}
    scatter, series = charts["tx_latency_s-scatter"], charts["committed_tx_per_s-series"]
    assert all(len(line.x) <= 20_000 for line in scatter.lines)
    assert scatter.note == "thinned to at least one sample in 2, plus the extremes"
    pooled = charts["tx_latency_s-cdf"].lines[0]
    assert (min(scatter.lines[0].y), max(scatter.lines[0].y)) == (pooled.x[0], pooled.x[-1])
    assert all(len(line.x) <= 1000 for line in series.lines)
    assert "thinned" in series.note
    assert "does not include noise between runs" in charts["tx_latency_s-cdf"].note


def test_the_bytes_do_not_depend_on_the_number_of_threads() -> None:
    program = (
        "import hashlib; from tests.unit.compare.synthetic_runs import sides; from chainmark.compare import compare;"
        "found = compare(*sides(repetitions=1, drawn=True), tool_version='test').model_dump_json();"
        "print(hashlib.sha256(found.encode()).hexdigest())"
    )
    outputs = set()
    for threads in ("1", "7"):
        limits = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads)
        paths = {"PYTHONPATH": os.pathsep.join(["src", "."])}
        done = subprocess.run(
            [sys.executable, "-c", program], env=os.environ | limits | paths, cwd=ROOT, capture_output=True, check=True
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_a_series_has_the_mean_and_the_range_of_the_nodes(equal: Comparison) -> None:
    line = next(chart for chart in equal.charts if chart.id == "cpu_cores-series").lines[0]
    baseline, _ = sides({"goroutines_count": 0.7})
    frame = baseline[0].frames["node_second"]
    expected = frame.group_by("time_s").agg(
        mean=pl.col("cpu_cores").mean(), low=pl.col("cpu_cores").min(), high=pl.col("cpu_cores").max()
    )
    expected = expected.sort("time_s")
    assert line.x == expected["time_s"].to_list()
    assert line.y == pytest.approx(expected["mean"].to_list(), rel=1e-5)
    assert line.low == pytest.approx(expected["low"].to_list(), rel=1e-5)
    assert line.high == pytest.approx(expected["high"].to_list(), rel=1e-5)
