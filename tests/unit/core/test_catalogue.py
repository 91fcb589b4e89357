"""Catalogues: what refers to something must find it, and a run keeps the part that it has samples of."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from chainmark.core.catalogue import Catalogue
from chainmark.core.metric import Condition, Metric, Population, Table


def _metric(identifier: str, population: str, table: str) -> Metric:
    return Metric.model_validate(
        {
            "id": identifier,
            "label": identifier,
            "unit": "s",
            "kind": "positive",
            "better": "lower",
            "statistics": ["mean"],
            "judged_by": "mean",
            "table": table,
            "order": 1,
            "population": population,
            "description": "Made up.",
            "source": ["nothing"],
        }
    )


def _catalogue(*, makes_incomparable: list[str]) -> Catalogue:
    return Catalogue(
        system="made-up",
        title="Made up",
        populations=[Population(id=name, label=name, keys=["key"]) for name in ("block", "joiner")],
        tables=[Table(id=name, title=name) for name in ("blocks", "joiners")],
        conditions=[
            Condition(id="clock", label="clock", explanation="It matters.", makes_incomparable=makes_incomparable)
        ],
        metrics=[
            _metric("interval_s", "block", "blocks"),
            _metric("size_s", "block", "blocks"),
            _metric("catch_up_s", "joiner", "joiners"),
        ],
    )


def test_a_run_keeps_what_it_has_samples_of() -> None:
    """A fixed-load test is not reported to lack data of nodes that never joined."""
    whole = _catalogue(makes_incomparable=["interval_s", "catch_up_s"])
    part = whole.sampled({"block": ["key", "interval_s"]})
    assert [metric.id for metric in part.metrics] == ["interval_s"]
    assert [population.id for population in part.populations] == ["block"]
    assert [table.id for table in part.tables] == ["blocks"]
    assert part.conditions[0].makes_incomparable == ["interval_s"]
    # It is as valid as the whole, and can be read again.
    assert Catalogue.model_validate_json(part.model_dump_json()) == part


def test_nothing_is_left_out_of_a_run_that_has_everything() -> None:
    whole = _catalogue(makes_incomparable=[])
    assert whole.sampled({"block": ["interval_s", "size_s"], "joiner": ["catch_up_s"]}) == whole


def test_a_condition_that_names_no_metric_is_refused() -> None:
    with pytest.raises(ValidationError, match="condition `clock` names the unknown metric `intervall_s`"):
        _catalogue(makes_incomparable=["intervall_s"])
