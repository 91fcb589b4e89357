"""A run as comparisons read it: what is read, how often, and by whose definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest

from chainmark.compare import inputs
from chainmark.compare.inputs import LoadedRun
from chainmark.core.distribution import MetricSummary
from chainmark.core.metric import Better, Metric, Population
from chainmark.stats.description import to_frame
from chainmark.store.runs import Store

from tests.unit.compare.synthetic_runs import SyntheticRun, run
from tests.unit.store.trail_runs import SLOW, Timelines, sealed


@dataclass
class CountingRun(SyntheticRun):
    """A run that records what is read of it."""

    reads: list[tuple[str, Sequence[str] | None]] = field(default_factory=list)
    summarised: int = 0

    def summaries(self) -> dict[str, MetricSummary]:
        """All summaries."""
        self.summarised += 1
        return super().summaries()

    def samples(self, population_id: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Samples of a population."""
        self.reads.append((population_id, columns))
        return super().samples(population_id, columns)


class IndexedRun(CountingRun):
    """A run that can return single values from its store's index."""

    def value(self, metric_id: str, statistic: str) -> float | None:
        """One statistic."""
        return 1.5 if (metric_id, statistic) == ("cpu_cores", "mean") else None

    def standard_error(self, metric_id: str, statistic: str) -> float | None:
        """Its standard error."""
        return 0.25 if (metric_id, statistic) == ("cpu_cores", "mean") else None


def _made(kind: type[CountingRun] = CountingRun, *, drawn: bool = False) -> CountingRun:
    made = run("v1.0.1", seconds=30, drawn=drawn)
    return kind(made.manifest, made.catalogue, dict(made.frames))


def test_single_values_of_an_indexed_run_do_not_need_its_summaries() -> None:
    """A history of hundreds of runs reads a few values of each."""
    indexed = _made(IndexedRun)
    loaded = LoadedRun(indexed)
    assert (loaded.value("cpu_cores", "mean"), loaded.standard_error("cpu_cores", "mean")) == (1.5, 0.25)
    assert (loaded.value("cpu_cores", "p99"), indexed.summarised) == (None, 0)


def test_values_of_other_runs_are_from_their_summaries_which_are_read_once() -> None:
    made = _made()
    loaded = LoadedRun(made)
    estimate = made.summaries()["cpu_cores"].estimates["mean"]
    made.summarised = 0
    assert loaded.value("cpu_cores", "mean") == estimate.value
    assert loaded.standard_error("cpu_cores", "mean") == estimate.standard_error
    assert (loaded.value("no_such_metric", "mean"), loaded.summary("no_such_metric")) == (None, None)
    assert made.summarised == 1


def test_a_small_population_is_read_completely_once_and_a_large_one_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the population of nodes there are 4 rows of a key and 2 metrics: 12 cells."""
    monkeypatch.setattr(inputs, "_CACHED_CELLS", 12)
    made = _made()
    loaded = LoadedRun(made)
    for _ in range(3):
        assert loaded.samples("node", ["peer_count"]).columns == ["peer_count"]
    assert loaded.samples("node", ["node", "clock_offset_s"]).shape == (4, 2)
    assert made.reads == [("node", ["peer_count"]), ("node", None)]
    monkeypatch.setattr(inputs, "_CACHED_CELLS", 11)
    made = _made()
    loaded = LoadedRun(made)
    for _ in range(2):
        assert loaded.samples("node", ["peer_count"]).columns == ["peer_count"]
    assert made.reads == [("node", ["peer_count"])] * 2


def test_a_population_without_values_is_not_read() -> None:
    """A run that was imported without samples has no file of them, and one metric may have no summary."""
    made = _made()
    summaries = made.summaries()
    for metric in made.catalogue.metrics_of("node"):
        summaries[metric.id] = summaries[metric.id].model_copy(update={"distribution": None})
    loaded = LoadedRun(made)
    assert (loaded.samples("node").shape, made.reads) == ((0, 0), [])
    del summaries["clock_offset_s"]
    assert (LoadedRun(made).samples("node").shape, made.reads) == ((0, 0), [])
    del summaries["peer_count"]
    assert (LoadedRun(made).samples("node").shape, made.reads) == ((0, 0), [])


def test_samples_in_order_are_those_of_a_population_of_the_run() -> None:
    loaded = LoadedRun(_made())
    ordered = loaded.ordered("second")
    assert ordered is not None
    assert ordered is loaded.ordered("second"), "they are sorted once"
    assert ordered.height == 30
    assert loaded.ordered("no_such_population") is None


def _changed(metric: Metric, **changes: object) -> Metric:
    return metric.model_copy(update=changes)


def _description(loaded: LoadedRun, metric: Metric, population: Population) -> pl.DataFrame:
    return to_frame([loaded.described(metric, population)])


def test_samples_are_described_by_the_definitions_of_the_comparison() -> None:
    """The candidate's version may have begun to draw a metric, or to average it over the nodes.

    The description must then be that of a run with the same samples and the new definitions.
    """
    drawn, plain = (LoadedRun(_made(drawn=drawn)) for drawn in (True, False))
    metric, population = drawn.catalogue.metric("cpu_cores"), drawn.catalogue.population("node_second")
    expected = _description(drawn, metric, population)
    assert expected.equals(_description(plain, metric, population))
    own = plain.catalogue.metric("cpu_cores")
    assert not expected.equals(_description(plain, own, population))
    by_second = population.model_copy(update={"average_over": []})
    assert not expected.equals(_description(drawn, metric, by_second))


def test_the_description_of_a_run_is_used_if_only_names_and_margins_differ() -> None:
    made = _made(drawn=True)
    loaded = LoadedRun(made)
    metric, population = made.catalogue.metric("cpu_cores"), made.catalogue.population("node_second")
    own = loaded.described(metric, population)
    made.reads.clear()
    assert _description(loaded, _changed(metric, label="processors", margin=0.5), population).equals(to_frame([own]))
    assert list(loaded.tail(_changed(metric, label="processors"), population)) == list(own.tail)
    assert made.reads == []


def test_a_metric_that_the_run_does_not_know_has_no_samples() -> None:
    loaded = LoadedRun(_made())
    metric, population = loaded.catalogue.metric("cpu_cores"), loaded.catalogue.population("node_second")
    unknown = loaded.described(_changed(metric, id="new_metric"), population)
    assert (unknown.metric_id, unknown.rows, unknown.knots.n) == ("new_metric", 0, 0)
    elsewhere = population.model_copy(update={"id": "zone_second"})
    nowhere = loaded.described(_changed(metric, population="zone_second"), elsewhere)
    assert (nowhere.metric_id, nowhere.rows, nowhere.knots.n) == ("cpu_cores", 0, 0)


def test_the_order_of_samples_with_equal_keys_does_not_depend_on_their_order_in_the_file() -> None:
    columns = []
    for counts in ([3.0, 1.0, 2.0], [1.0, 2.0, 3.0]):
        made = _made()
        made.frames["node"] = pl.DataFrame({
            "node": ["node0"] * 3, "clock_offset_s": [0.0] * 3, "peer_count": counts,
        })  # fmt: skip
        ordered = LoadedRun(made).ordered("node")
        values = ordered.column("peer_count") if ordered else None
        columns.append([] if values is None else values.tolist())
    assert columns == [[1.0, 2.0, 3.0]] * 2


def test_the_tail_is_on_the_worse_side_of_the_comparison_s_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two versions may have declared that more is better."""
    loaded = LoadedRun(sealed(Store(tmp_path), Timelines(6, 10).fill()))
    metric, population = loaded.catalogue.metric("fetch_s"), loaded.catalogue.population("block_host")
    tail = loaded.tail(metric, population)
    assert {extreme.place for extreme in tail} == {SLOW}
    fastest = loaded.tail(_changed(metric, better=Better.HIGHER), population)
    monkeypatch.delattr(inputs, "describe_population")
    assert list(loaded.tail(metric, population)) == list(tail), "by its own definition no samples are read again"
    assert max(extreme.value for extreme in fastest) < min(extreme.value for extreme in tail)


def test_a_packed_description_is_by_the_definitions_of_the_comparison() -> None:
    """Another machine compares runs by it. It must not be that of another metric or population."""
    drawn, plain = (LoadedRun(_made(drawn=drawn)) for drawn in (True, False))
    metric, population = drawn.catalogue.metric("cpu_cores"), drawn.catalogue.population("node_second")
    expected = _description(drawn, metric, population)
    assert drawn.description_of(metric, population).equals(expected)
    assert plain.description_of(metric, population).equals(expected)
    by_second = population.model_copy(update={"average_over": []})
    averaged = drawn.description_of(metric, by_second)
    assert averaged.equals(_description(drawn, metric, by_second))
    assert not averaged.equals(expected)


class EventfulRun(CountingRun):
    """A run with events and with figures by other rules, each of one name."""

    def scan_events(self, name: str) -> pl.LazyFrame:
        """Events of one kind."""
        return {"blocks": pl.LazyFrame({"height": [1, 2]})}[name]

    def figures(self, name: str) -> pl.DataFrame | None:
        """One table."""
        return {"published": pl.DataFrame({"value": [1.5]})}.get(name)


def test_events_and_further_figures_are_those_of_the_given_name_if_the_run_has_any() -> None:
    loaded, plain = LoadedRun(_made(EventfulRun)), LoadedRun(_made())
    events, figures = loaded.scan_events("blocks"), loaded.figures("published")
    assert events is not None
    assert figures is not None
    assert (events.collect().to_dicts(), figures.to_dicts()) == ([{"height": 1}, {"height": 2}], [{"value": 1.5}])
    assert (loaded.figures("other"), plain.scan_events("blocks"), plain.figures("published")) == (None, None, None)
