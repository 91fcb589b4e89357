"""Values of a model: no difference smaller than its error is printed, and none without its error."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainmark.core.metric import Kind
from chainmark.report.blocks import Table, TableCell, short_labels
from chainmark.report.wording import NOT_COMPARED
from chainmark.systems.cardano.model.modelled import (
    NO_DIFFERENCE,
    change_cell,
    percent_cell,
    row_scale,
    spread,
)
from chainmark.systems.cardano.model.results import SIGNIFICANT_STANDARD_ERRORS, Modelled, Prediction, ScenarioFigure

from tests.unit.report.pages import unfolded
from tests.unit.systems.cardano.prediction_samples import catalogue, document_of, prediction
from tests.unit.systems.cardano.test_prediction import squeezed, terminal

SIZES = st.floats(min_value=1e-9, max_value=1e9)
SIGNED = st.one_of(SIZES, SIZES.map(lambda size: -size), st.just(0.0))
METRICS = st.sampled_from(catalogue().metrics)


@st.composite
def cells(draw: st.DrawFn) -> ScenarioFigure:
    """A cell with any change and any error."""
    value, error, change = draw(SIGNED), draw(st.one_of(SIZES, st.just(0.0))), draw(SIGNED)
    return ScenarioFigure(
        modelled=Modelled(value=value, standard_error=error),
        change=draw(st.one_of(st.none(), st.just(Modelled(value=change, standard_error=error)))),
    )


@st.composite
def predictions(draw: st.DrawFn) -> Prediction:
    """The sample prediction with other values in every cell."""
    forecast = prediction(3)
    rows = [
        row.model_copy(update={"cells": [row.cells[0], *(draw(cells()) for _ in row.cells[1:])]})
        for row in forecast.rows
    ]
    return forecast.model_copy(update={"rows": rows})


def changes_of(document: Prediction) -> list[tuple[ScenarioFigure, TableCell]]:
    """Every change against the base, with the cell that prints it."""
    changes = []
    rows = {row.metric_id: row for row in document.rows}
    metrics = {metric.label: metric.id for metric in document.catalogue.metrics}
    for block in document_of(document).blocks():
        if isinstance(block, Table) and block.id.startswith("table-"):
            places = [place for place, column in enumerate(block.columns) if column.heading == "change"]
            for row in block.rows:
                if not row.second:
                    given_cells = rows[metrics[row.cells[0].text.rpartition(",")[0]]].cells[1:]
                    changes += list(zip(given_cells, [row.cells[place] for place in places], strict=True))
    return changes


@settings(max_examples=30)  # each of which has more than a hundred cells
@given(predictions())
def test_an_insignificant_difference_is_never_printed_as_a_number(document: Prediction) -> None:
    pairs = changes_of(document)
    assert len(pairs) == 3 * len(document.rows)
    for cell, printed in pairs:
        if cell.change is None:
            assert printed.whole == NOT_COMPARED
        elif abs(cell.change.value) <= SIGNIFICANT_STANDARD_ERRORS * cell.change.standard_error:
            assert printed.whole == NO_DIFFERENCE
        elif printed.whole != NO_DIFFERENCE:
            assert printed.text[0] == ("+" if cell.change.value > 0 else "−")
            assert re.search("[1-9]", printed.text)


def test_an_insignificant_difference_is_not_a_number_in_any_format() -> None:
    """This includes notes, the text of a chart and downloads: only the document itself contains the number."""
    forecast = prediction(1)
    rows = [
        row.model_copy(
            update={
                "cells": [
                    row.cells[0],
                    row.cells[1].model_copy(update={"change": Modelled(value=0.07773, standard_error=0.05)}),
                ]
            }
        )
        for row in forecast.rows
    ]
    document = forecast.model_copy(update={"rows": rows})
    shares = {f"{0.07773 / row.cells[0].modelled.value * 100.0:.1f}" for row in rows if row.cells[0].modelled.value}
    page = unfolded(document_of(document).html()).split('id="source-data"', 1)[0]
    for text in (terminal(document, 140), document_of(document).markdown(), squeezed(page.rpartition("</style>")[2])):
        assert "7.77" not in text
        for share in shares:
            assert f"+{share} " not in text


@given(METRICS, SIZES, st.floats(min_value=0.0, max_value=1e6), SIGNED)
def test_a_change_that_is_printed_has_its_error_and_unit(
    metric: object, value: float, error: float, change: float
) -> None:
    some_metric = next(entry for entry in catalogue().metrics if entry == metric)
    cell = ScenarioFigure(
        modelled=Modelled(value=value + change, standard_error=error),
        change=Modelled(value=change, standard_error=error),
    )
    base = Modelled(value=value, standard_error=error)
    scale = row_scale(some_metric.unit, [value, value + change], [error])
    printed = change_cell(cell, base, some_metric, scale)
    if printed.text == NO_DIFFERENCE:
        return
    # An error so small that its share of the base rounds to zero is not printed.
    assert "±" in printed.tail or error == 0.0 or (value > 0.0 and error / value == 0.0)
    if some_metric.kind is not Kind.DIFFERENCE:
        assert printed.tail.endswith("%")


@pytest.mark.parametrize(
    ("fraction", "error", "printed"),
    [
        (0.1423, 0.0031, "+14.2 ± 0.3 %"),
        (-0.0004, 0.0001, "0.0 ± <0.1 %"),
        (0.8212, 0.021, "+82 ± 2 %"),
        (1.5, 0.003, "+150 ± <1 %"),
        (1.0, 0.0, "+100 %"),
        (-0.0691, 0.00001, "−6.9 ± <0.1 %"),
    ],
)
def test_changes_are_printed_with_their_known_digits(fraction: float, error: float, printed: str) -> None:
    assert percent_cell(Modelled(value=fraction, standard_error=error)).whole == printed


def test_a_significant_but_negligible_difference_is_shown_as_no_change() -> None:
    metric = catalogue().metric("fetch_s")
    cell = ScenarioFigure(
        modelled=Modelled(value=1.0001, standard_error=0.1), change=Modelled(value=0.0001, standard_error=0.00001)
    )
    printed = change_cell(cell, Modelled(value=1.0, standard_error=0.1), metric, row_scale("s", [1.0], [0.1]))
    assert printed.whole == NO_DIFFERENCE


@pytest.mark.parametrize(
    ("error", "decimals", "printed"),
    [
        (0.0031, 3, "± 0.003"),
        (0.0, 3, "± 0"),
        (1e-9, 3, "± <0.001"),
        (12.0, 0, "± 12"),
        (0.2, 0, "± <1"),
        (None, 1, "± ?"),
    ],
)
def test_an_error_is_never_printed_as_zero(error: float | None, decimals: int, printed: str) -> None:
    assert spread(error, decimals) == printed


@given(SIZES, SIZES)
def test_a_figure_is_printed_to_the_first_digit_of_its_error(value: float, error: float) -> None:
    scale = row_scale("1", [value], [error])
    printed = scale.modelled(Modelled(value=value, standard_error=error))
    shown = printed.tail.removeprefix("± ").replace(",", "")
    assert shown.startswith("<") or re.search("[1-9]", shown)


@pytest.mark.parametrize(
    ("labels", "short", "shared"),
    [
        (["0.50 adoption", "0.80 adoption", "1.00 adoption"], ["0.50", "0.80", "1.00"], "adoption"),
        (["tx latency p50", "tx latency p99"], ["p50", "p99"], "tx latency"),
        (["time a to b", "time c to b"], ["a", "c"], "time to b"),
        (["same", "same"], ["same", "same"], ""),
        (["only one"], ["only one"], ""),
        ([], [], ""),
    ],
)
def test_the_common_part_of_all_labels_is_shown_once(labels: list[str], short: list[str], shared: str) -> None:
    assert short_labels(labels) == (short, shared)
