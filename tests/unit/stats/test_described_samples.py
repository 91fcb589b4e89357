"""The description of a small run, and what is read back from its table, compared with values worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from chainmark.core.catalogue import Catalogue
from chainmark.core.metric import Better, Metric, MetricGroup, Population
from chainmark.stats import description, replicates, tracks
from chainmark.stats.bootstrap import generator, multiplicities
from chainmark.stats.centiles import centile
from chainmark.stats.description import (
    RUN_POINTS,
    SCHEMA,
    Descriptions,
    MetricDescription,
    curve_fractions,
    describe,
    joined_key,
    to_frame,
)
from chainmark.stats.packed import unpacked
from chainmark.stats.replicates import BAND_RESAMPLES

from tests.unit.compare.metric_cases import metric

SEED = 7
EVERYTHING = ["cdf", "series", "scatter"]


def _catalogue(population: Population, metrics: Sequence[Metric], trail: dict[str, Any] | None = None) -> Catalogue:
    return Catalogue(
        system="x",
        title="x",
        populations=[population],
        tables=[MetricGroup(id="all", title="all")],
        trails=[] if trail is None else [{"populations": [population.id], **trail}],
        metrics=[item.model_copy(update={"population": population.id}) for item in metrics],
    )


def _described(
    population: Population, values: dict[str, list[Any]], trail: dict[str, Any] | None = None, **settings: Any
) -> MetricDescription:
    """The metric ``x_s`` of a population."""
    catalogue = _catalogue(population, [metric(**settings)], trail)
    (described,) = describe(catalogue, {population.id: pl.DataFrame(values)}, SEED)
    return described


def _stored(described: MetricDescription) -> MetricDescription:
    return Descriptions(to_frame([described]), SEED).of(described.metric_id)


def _shown(described: MetricDescription) -> dict[str, Any]:
    """All that a description holds, as lists and numbers; what it does not hold is left out."""
    knots = described.knots
    shown: dict[str, Any] = {
        "id": described.metric_id, "rows": described.rows, "mean": described.mean, "squares": described.squares,
        "knots": [knots.values.tolist(), knots.below.tolist(), knots.at_or_below.tolist()],
        "means": {key: (means.of, means.squares, means.freedom) for key, means in described.means.items()},
        "tail": [(extreme.key, extreme.place, extreme.value) for extreme in described.tail],
    }  # fmt: skip
    if (drawn := described.replicates) is not None:
        shown |= {"places": drawn.places.tolist(), "counts": drawn.counts.tolist(), "coarse": drawn.coarse}
        if drawn.drawn is not None:
            shown["drawn"] = [drawn.drawn.rows.tolist(), drawn.drawn.cells.tolist(), drawn.drawn.block_length]
    if (track := described.track) is not None:
        lines = [line.tolist() for line in (track.time, track.value, track.low, track.high)]
        shown["track"] = [*lines, track.step]
    if (dots := described.dots) is not None:
        shown["dots"] = [dots.time.tolist(), dots.value.tolist(), dots.step]
    return shown


def _weights(metric_id: str, units: int) -> np.ndarray:
    """How often each unit is drawn, shape (resamples, units)."""
    return np.concatenate(list(multiplicities(generator(SEED, "bands", metric_id), units, 1.0, BAND_RESAMPLES)))


# --- a run with all parts -------------------------------------------------------------------------------------------

# Not in order of time. Two blocks are equally slow, one is so at two hosts of which one is unknown, and block 6 has no
# value.
FETCH = Population(
    id="fetch", label="x", keys=["time_s", "chain", "block", "host"], time_key="time_s", average_over=["host"],
    breakdowns=["host"],
)  # fmt: skip
TRAIL = {"key": ["chain", "block"], "place": "host"}
_WAITS = [1.5, 3.0, 3.0, 6.0, 6.0, 0.0, None]
SAMPLES = pl.DataFrame(
    {
        "time_s": [3.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0],
        "chain": ["main", "main", "main", "side", "main", "main", "main"],
        "block": [7, 8, 8, 10, 9, 7, 6],
        "host": ["B", "A", None, "A", "B", "A", "B"],
        **dict.fromkeys(("wait_s", "rate", "level", "dotted"), _WAITS),
        "silent": pl.Series([None] * 7, dtype=pl.Float64),
        "once": [None, None, 5.0, None, None, None, None],
    }
)
METRICS = [
    metric(id="wait_s", charts=EVERYTHING),
    metric(id="rate", better=Better.HIGHER, gating=True),
    metric(id="level", better=Better.NEITHER, charts=["series"]),
    metric(id="dotted", better=Better.NEITHER, charts=["scatter"]),
    metric(id="silent", charts=EVERYTHING),
    metric(id="absent", charts=EVERYTHING),
    metric(id="once", charts=["series"]),
]
WHOLE_RUN = _catalogue(FETCH, METRICS, TRAIL)

_VALUES = {
    "rows": 7, "mean": 3.25, "squares": 28.875, "knots": [[0.0, 1.5, 3.0, 6.0], [0, 1, 2, 4], [1, 2, 4, 6]],
    "means": {}, "tail": [],
}  # fmt: skip
_NOTHING = {"rows": 7, "mean": 0.0, "squares": 0.0, "knots": [[], [], []], "means": {}, "tail": []}
_BY_HOST = {"host": ({"A": (3.0, 3), "B": (3.75, 2)}, {"A": 18.0, "B": 10.125}, 3)}
_TRACK = [[1.0, 2.0, 3.0], [3.0, 6.0, 0.75], [3.0, 6.0, 0.0], [3.0, 6.0, 1.5], 1]
_DOTS = [[1.0, 1.0, 2.0, 2.0, 3.0, 3.0], [3.0, 3.0, 6.0, 6.0, 0.0, 1.5], 1]
# The values of each second at or below 0, 1.5, 3 and 6 s.
_OF_SECONDS = np.array([[0, 0, 2, 2], [0, 0, 0, 2], [1, 2, 2, 2]])
EXPECTED: dict[str, dict[str, Any]] = {
    "wait_s": _VALUES | {
        "means": _BY_HOST, "track": _TRACK, "dots": _DOTS,
        "tail": [("main-9", "B", 6.0), ("side-10", "A", 6.0), ("main-8", "", 3.0), ("main-7", "B", 1.5)],
        "places": [0, 1, 2, 3], "counts": (_weights("wait_s", 3) @ _OF_SECONDS).tolist(), "coarse": False,
        "drawn": [[2, 2, 3], [2, 2, 3, 3, 4, 0, 1], 1.0],
    },
    "rate": _VALUES | {
        "means": _BY_HOST,
        "tail": [("main-7", "A", 0.0), ("main-8", "", 3.0), ("main-9", "B", 6.0), ("side-10", "A", 6.0)],
    },
    "level": _VALUES | {"track": _TRACK},
    "dotted": _VALUES | {"dots": _DOTS},
    "silent": _NOTHING,
    "absent": _NOTHING,
    "once": _NOTHING | {"mean": 5.0, "knots": [[5.0], [0], [1]], "track": [[1.0], [5.0], [5.0], [5.0], 1]},
}  # fmt: skip


@pytest.mark.parametrize("large_rows", [3, 1_000_000])
def test_every_part_of_a_description_is_that_of_the_samples(large_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large population is described metric by metric, with the same result."""
    monkeypatch.setattr(description, "_LARGE_ROWS", large_rows)
    shown = [_shown(described) for described in describe(WHOLE_RUN, {"fetch": SAMPLES}, SEED)]
    assert shown == [{"id": metric_id, **expected} for metric_id, expected in EXPECTED.items()]


def test_a_stored_description_is_read_back_without_loss() -> None:
    described = describe(WHOLE_RUN, {"fetch": SAMPLES}, SEED)
    frame = to_frame(described)
    stored = Descriptions(frame, SEED)
    for place, own in enumerate(described):
        assert _shown(stored.of(own.metric_id)) == _shown(own)
        assert stored.tail(own.metric_id) == list(own.tail)
        assert stored.row(own.metric_id).equals(frame[place])


def test_the_table_has_the_same_columns_whatever_it_holds() -> None:
    """Otherwise descriptions of several runs could not be joined."""
    assert to_frame([]).schema == pl.Schema(SCHEMA)
    assert to_frame([MetricDescription("x_s", 0)]).schema == pl.Schema(SCHEMA)


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param({}, id="no population"),
        pytest.param({"fetch": SAMPLES[:0]}, id="no rows"),
        pytest.param({"fetch": SAMPLES[6:]}, id="no value in any row"),
    ],
)
def test_a_population_without_a_value_has_no_rows(frames: dict[str, pl.DataFrame]) -> None:
    shown = [_shown(described) for described in describe(WHOLE_RUN, frames, SEED)]
    assert shown == [{"id": metric_id, **_NOTHING, "rows": 0} for metric_id in EXPECTED]


# --- the order of rows ----------------------------------------------------------------------------------------------

SECOND = Population(id="second", label="x", keys=["time_s"], time_key="time_s")
UNORDERED = Population(id="request", label="x", keys=["request"])


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_samples_of_one_time_are_ordered_by_their_values(order: list[int]) -> None:
    """A chart must not depend on the order in which a run stores its rows."""
    rows = [(1.0, 3.0), (1.0, 4.0), (2.0, 5.0)]
    columns = {"time_s": [rows[row][0] for row in order], "x_s": [rows[row][1] for row in order]}
    shown = _shown(_described(SECOND, columns, charts=EVERYTHING))
    assert shown["track"] == [[1.0, 1.0, 2.0], [3.0, 4.0, 5.0], [3.0, 4.0, 5.0], [3.0, 4.0, 5.0], 1]
    assert shown["dots"] == [[1.0, 1.0, 2.0], [3.0, 4.0, 5.0], 1]


def test_neighbours_on_a_long_chart_are_averaged_and_their_number_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracks, "_SERIES_POINTS", 2)
    described = _described(SECOND, {"time_s": [1.0, 1.5, 3.0], "x_s": [3.0, 4.0, 5.0]}, charts=["series"])
    for one in (described, _stored(described)):
        assert _shown(one)["track"] == [[1.25, 3.0], [3.5, 5.0], [3.0, 5.0], [4.0, 5.0], 2]


def test_samples_without_a_time_are_not_drawn_over_time() -> None:
    shown = _shown(_described(UNORDERED, {"request": ["a", "b"], "x_s": [1.0, 2.0]}, charts=EVERYTHING))
    assert "track" not in shown
    assert "dots" not in shown
    assert shown["counts"] == np.cumsum(_weights("x_s", 2), axis=1).tolist()


def test_only_drawn_figures_are_rounded_to_six_digits() -> None:
    trail = {"key": "time_s"}
    described = _described(SECOND, {"time_s": [2.123456789], "x_s": [1.23456789]}, trail, charts=EVERYTHING)
    shown = _shown(described)
    assert (shown["track"][:2], shown["dots"][:2]) == ([[2.12346], [1.23457]], [[2.12346], [1.23457]])
    assert shown["tail"] == [("2.123456789", "", 1.23457)]
    assert (shown["mean"], shown["knots"][0]) == (1.23456789, [1.23456789])


# --- the most extreme samples ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trail", "tail"),
    [
        pytest.param(None, [], id="not followed"),
        pytest.param({"key": "request", "place": "host"}, [("b", "A", 2.0), ("a", "B", 1.0)], id="at a place"),
        pytest.param({"key": "request"}, [("b", "", 2.0), ("a", "", 1.0)], id="one place"),
        pytest.param({"key": "request", "place": "z"}, [("b", "", 2.0), ("a", "", 1.0)], id="place not recorded"),
        pytest.param({"key": ["request", "z"], "place": "host"}, [], id="part of the key not recorded"),
    ],
)
def test_extreme_samples_are_named_as_the_trail_names_its_items(
    trail: dict[str, Any] | None, tail: list[tuple[str, str, float]]
) -> None:
    columns: dict[str, list[Any]] = {"request": ["a", "b"], "host": ["B", "A"], "x_s": [1.0, 2.0]}
    assert _shown(_described(UNORDERED, columns, trail, gating=True))["tail"] == tail


@pytest.mark.parametrize(("rows", "tail"), [(3, "cba"), (4, "dcba"), (8, "hgfed")])
def test_the_tail_has_five_items_if_the_first_rows_looked_at_have_fewer(
    rows: int, tail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(description, "_FEW_ROWS", 2)
    columns: dict[str, list[Any]] = {"request": list("abcdefgh"[:rows]), "x_s": [float(row) for row in range(rows)]}
    described = _described(UNORDERED, columns, {"key": "request"}, gating=True)
    assert "".join(extreme.key for extreme in described.tail) == tail


def test_an_item_of_several_columns_has_one_name() -> None:
    frame = pl.DataFrame({"chain": ["main", "side"], "block": [12, 3]})
    assert frame.select(joined_key(["chain", "block"], "item")).to_dict(as_series=False) == {
        "item": ["main-12", "side-3"]
    }


# --- figures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "mean", "squares"),
    [
        ([10.0, 0.0, 10.0], 20.0 / 3.0, 200.0 / 3.0),
        ([0.0, 10.0, 0.0], 10.0 / 3.0, 200.0 / 3.0),
        pytest.param([0.1, 0.1, 0.1], 0.1, 0.0, id="their sum divided by 3 is more than 0.1"),
    ],
)
def test_the_mean_is_among_the_values(values: list[float], mean: float, squares: float) -> None:
    described = _described(UNORDERED, {"request": list("abc"), "x_s": values})
    assert described.mean == (pytest.approx(mean) if squares else mean)
    assert described.squares == pytest.approx(squares)


def test_distributions_are_drawn_from_end_to_end_with_a_point_in_the_tail() -> None:
    assert curve_fractions(3).tolist() == [0.0, 0.5, 0.999, 1.0]


def test_counts_of_resamples_are_stored_as_differences_from_those_of_the_run() -> None:
    """Differences are small and take little space."""
    values = [1.0] * 400 + [2.0] * 500 + [3.0] * 300
    described = _described(UNORDERED, {"request": list(range(1200)), "x_s": values}, charts=["cdf"])
    expected = np.add.reduceat(_weights("x_s", 1200).astype(int), [0, 400, 900], axis=1)
    shown = _shown(described)
    assert shown["counts"] == expected.cumsum(axis=1).tolist()
    assert "drawn" not in shown
    less = unpacked(to_frame([described])["resampled"][0]).reshape(3, BAND_RESAMPLES)
    assert less.T.tolist() == (expected - [400, 500, 300]).tolist()
    assert _shown(_stored(described)) == shown


def test_a_sample_of_many_values_is_exact_where_distributions_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither all values nor resamples at all of the stored values are kept."""
    monkeypatch.setattr(replicates, "_FEW_ROWS", 1)
    values = np.arange(5000.0) ** 2
    described = _described(UNORDERED, {"request": list(range(5000)), "x_s": values.tolist()}, charts=["cdf"])
    fractions = curve_fractions(RUN_POINTS)
    assert described.knots.centiles(fractions).tolist() == [centile(values, float(part)) for part in fractions]
    shown = _shown(described)
    assert len(shown["places"]) < len(shown["knots"][0]) < 5000
    assert shown["coarse"], "pairs of rows are resampled"
    assert "drawn" not in shown
    assert _shown(_stored(described)) == shown


# --- reading --------------------------------------------------------------------------------------------------------


class Recorded:
    """Samples that record which columns are read: those of a large run do not fit in memory together."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self.read: list[Sequence[str] | None] = []

    def samples(self, _population_id: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Those of the named columns."""
        self.read.append(columns)
        return self.frame[list(columns)] if columns else pl.DataFrame()


@pytest.mark.parametrize(("gating", "keys"), [(True, [["request"]]), (False, [[]])])
def test_only_the_columns_that_a_description_needs_are_read_and_each_metric_once(
    keys: list[list[str]], *, gating: bool
) -> None:
    """The names of a trail's items are needed for metrics with a tail only."""
    population = Population(id="block", label="x", keys=["block"])
    source = Recorded(pl.DataFrame({"block": [1, 2], "request": ["a", "b"], "x_s": [1.0, 2.0]}))
    charts = ["series", "scatter"]
    describe(_catalogue(population, [metric(gating=gating, charts=charts)], {"key": "request"}), source, SEED)
    assert source.read == [["block"], ["block"], *keys, ["x_s"]]
