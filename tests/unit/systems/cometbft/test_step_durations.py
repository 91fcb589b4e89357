"""The durations of consensus steps, from the totals of the nodes' histograms."""

from __future__ import annotations

import polars as pl
import pytest

from chainmark.systems.cometbft.analyse import NS, STEPS, Window, step_samples
from chainmark.systems.cometbft.ingest import SCRAPE_SCHEMA, STEP_COUNT, STEP_SUM, read_page
from chainmark.systems.cometbft.system import CometBft

PAGE = """\
# TYPE cometbft_consensus_step_duration_seconds histogram
cometbft_consensus_step_duration_seconds_bucket{chain_id="c",step="Propose",le="0.1"} 3
cometbft_consensus_step_duration_seconds_sum{chain_id="c",step="Propose"} 1.5
cometbft_consensus_step_duration_seconds_count{chain_id="c",step="Propose"} 4
cometbft_consensus_step_duration_seconds_sum{chain_id="c",step="Commit"} 0.2
cometbft_consensus_step_duration_seconds_count{chain_id="c",step="Commit"} 5
"""


def test_a_page_is_read_per_step_without_buckets() -> None:
    values, lines, number_retained = read_page(PAGE)
    assert values == {
        f"{STEP_SUM}:Propose": 1.5,
        f"{STEP_COUNT}:Propose": 4.0,
        f"{STEP_SUM}:Commit": 0.2,
        f"{STEP_COUNT}:Commit": 5.0,
    }
    assert (lines, number_retained) == (5, 4)


def test_totals_without_a_step_are_stored_without_a_name() -> None:
    """They must not be mistaken for the totals of a named step."""
    values, *_ = read_page(PAGE.replace('step="Commit"', 'part="all"'))
    assert values[f"{STEP_SUM}:"] == 0.2
    assert values[f"{STEP_SUM}:Propose"] == 1.5


def _scrapes(*totals: tuple[float, float, float], host: str = "node0", step: str = "Propose") -> pl.DataFrame:
    """Scrapes of a step: times in s, with sum and count."""
    rows = [
        (round(time_s * NS), host, f"{name}:{step}", value)
        for time_s, total, count in totals
        for name, value in ((STEP_SUM, total), (STEP_COUNT, count))
    ]
    return pl.DataFrame(rows, schema=SCRAPE_SCHEMA, orient="row")


WINDOW = Window(10 * NS, 20 * NS)


def test_the_mean_covers_the_steps_that_ended_in_the_window() -> None:
    """Four steps in the window took 0.8 s in total. Steps before and after the window do not count."""
    frame = step_samples(
        _scrapes((5, 9.0, 9), (10, 10.0, 10), (15, 10.3, 12), (19.9, 10.8, 14), (21, 99.0, 15)), WINDOW
    )
    assert frame["step_propose_s"].to_list() == [pytest.approx(0.2)]
    assert frame["step_commit_s"].to_list() == [None]


def test_a_single_step_has_a_mean_unaffected_by_other_steps_and_totals() -> None:
    """Each node and step is computed separately. Unknown steps and other totals are omitted."""
    once = _scrapes((10, 10.0, 10), (19, 10.7, 11), host="node1", step="Commit")
    first = _scrapes((10, 1.0, 1), (19, 2.0, 5))
    second = _scrapes((10, 1.0, 1), (19, 2.0, 3), step="Commit")
    others = _scrapes((10, 1.0, 1), (19, 9.0, 2), host="node2", step="Nap")
    odd = _scrapes((10, 1.0, 1), (19, 9.0, 2), host="node3").with_columns(metric=pl.lit("other:Propose"))
    frame = step_samples(pl.concat([once, first, second, others, odd]), WINDOW).sort("host")
    assert frame.columns == ["host", *STEPS.values()]
    assert frame["host"].to_list() == ["node0", "node1"]
    assert frame["step_propose_s"].to_list() == [pytest.approx(0.25), None]
    assert frame["step_commit_s"].to_list() == [pytest.approx(0.5), pytest.approx(0.7)]


def test_a_restarted_or_idle_node_has_no_mean() -> None:
    anew = _scrapes((10, 10.0, 10), (15, 0.1, 1), (19, 20.0, 30))
    idle = _scrapes((10, 10.0, 10), (19, 10.0, 10), host="node1")
    assert step_samples(pl.concat([anew, idle]), WINDOW).sort("host")["step_propose_s"].to_list() == [None, None]
    assert step_samples(anew.clear(), WINDOW).is_empty()


def test_a_page_with_unchanged_totals_does_not_discard_the_others() -> None:
    """Nodes are scraped more often than a step ends, so equal totals do not mean a restart."""
    frame = _scrapes((10, 10.0, 10), (12, 10.0, 10), (15, 10.6, 12), (19, 10.6, 12))
    assert step_samples(frame, WINDOW)["step_propose_s"].to_list() == [pytest.approx(0.3)]


def test_every_step_is_an_explanatory_metric() -> None:
    metric_ids = {metric.id for metric in CometBft().catalogue().metrics if metric.explains}
    assert metric_ids == set(STEPS.values())
