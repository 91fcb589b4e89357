"""Catalogues: references must exist, and a run keeps the part that it has samples of."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from pydantic import JsonValue, ValidationError

from chainmark.core.catalogue import Catalogue, FollowedBy, load_catalogue
from chainmark.core.errors import UsageError
from chainmark.core.metric import Metric, MetricGroup, Population, SharedFact


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
        tables=[MetricGroup(id=name, title=name) for name in ("blocks", "joiners")],
        conditions=[
            SharedFact(id="clock", label="clock", explanation="It matters.", makes_incomparable=makes_incomparable)
        ],
        metrics=[
            _metric("interval_s", "block", "blocks"),
            _metric("size_s", "block", "blocks"),
            _metric("catch_up_s", "joiner", "joiners"),
        ],
    )


def test_a_run_keeps_the_metrics_that_it_has_samples_of() -> None:
    """A fixed-load test must not report missing data of joining nodes, because it has none."""
    whole = _catalogue(makes_incomparable=["interval_s", "catch_up_s"])
    part = whole.sampled({"block": ["key", "interval_s"]})
    assert [metric.id for metric in part.metrics] == ["interval_s"]
    assert [population.id for population in part.populations] == ["block"]
    assert [table.id for table in part.tables] == ["blocks"]
    assert part.conditions[0].makes_incomparable == ["interval_s"]
    # The part is a valid catalogue and can be read again.
    assert Catalogue.model_validate_json(part.model_dump_json()) == part


def test_a_run_with_all_samples_keeps_the_whole_catalogue() -> None:
    whole = _catalogue(makes_incomparable=[])
    assert whole.sampled({"block": ["interval_s", "size_s"], "joiner": ["catch_up_s"]}) == whole


def test_a_condition_that_names_no_metric_is_refused() -> None:
    with pytest.raises(ValidationError, match="condition `clock` names the unknown metric `intervall_s`"):
        _catalogue(makes_incomparable=["intervall_s"])


def test_a_dangling_reference_is_refused_with_both_names() -> None:
    """A metric without its population would have no samples, and "no data" in every report."""
    whole = _catalogue(makes_incomparable=[]).model_dump()

    def refused(match: str, **changes: object) -> None:
        metrics = [whole["metrics"][0], {**whole["metrics"][1], **changes}]
        with pytest.raises(ValidationError, match=match):
            Catalogue.model_validate({**whole, "metrics": metrics})

    refused("metric `size_s` names the unknown population `blocks`", population="blocks")
    refused("metric `size_s` names the unknown table `block`", table="block")
    refused("metric `size_s` is adjusted for the unknown covariate `size`", adjusted_for=["size"])
    refused("metric `interval_s` is defined twice", id="interval_s")


def test_a_metric_is_adjusted_only_for_covariates_of_its_population() -> None:
    whole = _catalogue(makes_incomparable=[]).model_dump()
    whole["populations"][0]["covariates"] = [{"column": "size", "label": "the size"}]
    whole["metrics"][0]["adjusted_for"] = ["size"]
    assert Catalogue.model_validate(whole).metric("interval_s").adjusted_for == ["size"]
    whole["metrics"][2]["adjusted_for"] = ["size"]
    with pytest.raises(ValidationError, match="metric `catch_up_s` is adjusted for the unknown covariate `size`"):
        Catalogue.model_validate(whole)


def test_an_unknown_metric_is_refused_with_a_hint() -> None:
    with pytest.raises(UsageError, match=r"^`intervall_s` is not a metric of made-up$") as refused:
        _catalogue(makes_incomparable=[]).metric("intervall_s")
    assert refused.value.hint == "`chainmark metrics made-up` lists them"


def test_a_margin_set_by_the_user_is_not_widened() -> None:
    whole = _catalogue(makes_incomparable=[]).with_widened({"interval_s": 0.15, "catch_up_s": 0.2})
    catalogue = whole.with_margins({"interval_s": 0.3, "size_s": 0.08})
    assert [metric.margin for metric in catalogue.metrics] == [0.3, 0.08, 0.1]
    assert [metric.accepted for metric in catalogue.metrics] == [0.3, 0.08, 0.1]
    assert catalogue.tables == whole.tables
    assert whole.with_margins({}) == whole


def test_any_margin_above_zero_can_be_set() -> None:
    whole = _catalogue(makes_incomparable=[])
    assert whole.with_margins({"size_s": 2.0}).metric("size_s").margin == 2.0
    for margin in (0.0, -0.1, math.inf, math.nan):
        with pytest.raises(UsageError, match=rf"^the margin of `size_s` is {margin}$") as refused:
            whole.with_margins({"size_s": margin})
        assert refused.value.hint == "a margin must be above zero: 0.2 accepts 20 %"
    with pytest.raises(UsageError, match="`size` is not a metric"):
        whole.with_margins({"size": 0.2})


def test_re_runs_widen_a_margin_and_never_narrow_it() -> None:
    whole = _catalogue(makes_incomparable=[])
    catalogue = whole.with_widened({"interval_s": 0.15, "size_s": 0.1, "unknown_s": 0.5})
    assert [metric.widened for metric in catalogue.metrics] == [0.15, None, None]
    # A change beyond the configured margin is still worse.
    assert [metric.margin for metric in catalogue.metrics] == [0.1, 0.1, 0.1]
    assert whole.with_widened({"size_s": 0.05}) is whole


def test_samples_can_be_traced_by_the_trail_of_their_population() -> None:
    trails: list[dict[str, JsonValue]] = [
        {"populations": ["joiner"], "key": "node", "place": "join"},
        {"populations": ["block"], "key": "height", "place": "host", "events": "blocks"},
    ]
    whole = _catalogue(makes_incomparable=[]).model_copy(update={"trails": trails})
    assert whole.followed_by("block") == FollowedBy(("height",), "host")
    assert whole.followed_by("joiner") == FollowedBy(("node",), "join")
    assert whole.followed_by("request") is None
    part = whole.sampled({"block": ["key", "interval_s"]})
    assert part.followed_by("block") == FollowedBy(("height",), "host")
    assert part.followed_by("joiner") is None
    assert part.trails[1] == trails[1], "the system reads all trails"
    nowhere = whole.model_copy(update={"trails": [{"key": "height", "place": "host"}]})
    assert nowhere.followed_by("block") is nowhere.sampled({"block": ["interval_s"]}).followed_by("block") is None


def test_samples_can_be_traced_by_several_columns_and_without_a_place() -> None:
    """Requests of several hosts may have the same number."""
    trails: list[dict[str, JsonValue]] = [{"populations": ["joiner"], "key": ["host", "request"]}]
    whole = _catalogue(makes_incomparable=[]).model_copy(update={"trails": trails})
    assert whole.followed_by("joiner") == FollowedBy(("host", "request"), None)


@pytest.mark.parametrize(
    ("judges", "gating"),
    [
        (None, [True, False, True]),
        (["size_s", "unknown_s"], [False, True, False]),
        ([], [False, False, False]),
    ],
)
def test_only_the_chosen_metrics_are_judged(judges: list[str] | None, gating: list[bool]) -> None:
    """Without a choice, it is as the catalogue states. An empty choice judges no metric."""
    whole = _catalogue(makes_incomparable=[])
    metrics = [metric.model_copy(update={"gating": metric.id != "size_s"}) for metric in whole.metrics]
    catalogue = whole.model_copy(update={"metrics": metrics}).judging(judges)
    assert [metric.id for metric in catalogue.metrics] == ["interval_s", "size_s", "catch_up_s"]
    assert [metric.gating for metric in catalogue.metrics] == gating


def test_metrics_are_listed_by_table_then_order_then_name() -> None:
    whole = _catalogue(makes_incomparable=[])
    assert [metric.id for metric in whole.metrics_of("block")] == ["interval_s", "size_s"]
    interval, size, joined = whole.metrics
    later = interval.model_copy(update={"order": 2})
    named = size.model_copy(update={"id": "age_s"})
    mixed = whole.model_copy(update={"metrics": [joined, later, size, named]})
    assert [metric.id for metric in mixed.ordered()] == ["age_s", "size_s", "interval_s", "catch_up_s"]


WRITTEN = """
system = "made-up"
title = "Made up"
{population}
[[table]]
id = "blocks"
title = "Blocks"
[[condition]]
id = "clock"
label = "clock"
explanation = "It matters, µs by µs."
[[trail]]
populations = ["block"]
key = "height"
place = "host"
[published]
style = "letter"
[[metric]]
id = "interval_s"
label = "interval"
unit = "s"
kind = "positive"
better = "lower"
statistics = ["mean"]
judged_by = "mean"
table = "blocks"
order = 1
population = "block"
description = "Made up."
source = ["nothing"]
"""


def test_a_catalogue_is_read_with_all_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.toml"
    population = '[[population]]\nid = "block"\nlabel = "blocks"\nkeys = ["height"]'
    path.write_text(WRITTEN.format(population=population), encoding="utf-8")
    catalogue = load_catalogue(path)
    assert (catalogue.system, catalogue.title) == ("made-up", "Made up")
    assert [population.id for population in catalogue.populations] == ["block"]
    assert [table.id for table in catalogue.tables] == ["blocks"]
    assert [metric.id for metric in catalogue.metrics] == ["interval_s"]
    assert catalogue.conditions[0].explanation == "It matters, µs by µs."
    assert catalogue.followed_by("block") == FollowedBy(("height",), "host")
    assert catalogue.published == {"style": "letter"}
    without = WRITTEN.format(population=population)
    for part, following in (
        ("[[condition]]", "[[trail]]"),
        ("[[trail]]", "[published]"),
        ("[published]", "[[metric]]"),
    ):
        start, end = without.index(part), without.index(following)
        without = without[:start] + without[end:]
    path.write_text(without, encoding="utf-8")
    bare = load_catalogue(path)
    assert (bare.conditions, bare.trails, bare.published) == ([], [], None)


def test_a_catalogue_with_a_missing_part_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.toml"
    for population, lacking in (("", "'population'"), ("population = []", "names the unknown population `block`")):
        path.write_text(WRITTEN.format(population=population), encoding="utf-8")
        with pytest.raises(UsageError) as refused:
            load_catalogue(path)
        assert str(refused.value).startswith(f"the catalogue {path} is not valid: ")
        assert lacking in str(refused.value)
