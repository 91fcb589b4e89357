"""The series of each node, and when it saw each block: an error would mix machines or invent blocks."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.errors import UsageError
from chainmark.core.times import NS
from chainmark.systems.cometbft.heights import HEIGHT, LAST_HEIGHT, first_sights, last_block_values
from chainmark.systems.cometbft.prometheus import contradictions
from chainmark.systems.cometbft.prometheus_nodes import name_hosts


def _labels(*targets: tuple[str, str]) -> list[dict[str, str]]:
    return [{"job": job, "instance": instance, "zone": instance[-1]} for job, instance in targets]


@pytest.mark.parametrize(
    ("targets", "names"),
    [
        ([("a", "10.0.0.1:1"), ("b", "10.0.0.2:1")], ["a", "b"]),
        ([("qa", "10.0.0.1:1"), ("qa", "10.0.0.2:1")], ["10.0.0.1:1", "10.0.0.2:1"]),
        ([("a", "x:1"), ("a", "x:2"), ("b", "x:1")], ["a/x:1", "a/x:2", "b/x:1"]),
        ([("", "x:1"), ("b", "x:2")], ["x:1", "x:2"]),
    ],
)
def test_a_node_is_named_by_its_distinguishing_label(targets: list[tuple[str, str]], names: list[str]) -> None:
    assert name_hosts(_labels(*targets), "auto") == dict(zip(names, targets, strict=True))


def test_another_label_names_nodes_if_it_distinguishes_them() -> None:
    assert list(name_hosts(_labels(("qa", "x:1"), ("qa", "x:2")), "zone")) == ["1", "2"]
    with pytest.raises(UsageError, match="does not distinguish"):
        name_hosts(_labels(("qa", "x:1"), ("qb", "y:1")), "zone")
    with pytest.raises(UsageError, match="does not distinguish"):
        name_hosts(_labels(("qa", "x:1")), "region")


def test_nodes_labelled_as_another_version_are_reported() -> None:
    """If half of a network was not upgraded, the run's version would be wrong."""
    versions = {"v0.38.17": ["node1", "node3"], "v1.0.1": ["node0", "node2"], "canary": ["node4"]}
    assert contradictions(versions, "v1.0.1") == [
        "the series of node1 and node3 are labelled version v0.38.17, not v1.0.1"
    ]
    assert contradictions(versions, "my-branch") == []
    assert contradictions({}, "v1.0.1") == []


def _scrapes(rows: Sequence[tuple[float, str, str, float]]) -> pl.DataFrame:
    schema = {"time_ns": pl.Int64, "host": pl.String, "metric": pl.String, "value": pl.Float64}
    return pl.DataFrame([(round(row[0] * NS), *row[1:]) for row in rows], schema=schema, orient="row")


def test_heights_between_two_scrapes_are_spread_evenly() -> None:
    seen = first_sights(_scrapes([(0, "a", LAST_HEIGHT, 5), (1, "a", LAST_HEIGHT, 6), (7, "a", LAST_HEIGHT, 9)]))
    assert seen["height"].to_list() == [6, 7, 8, 9]
    assert [seen_ns / NS for seen_ns in seen["seen_ns"]] == [1, 3, 5, 7]
    assert seen["block_interval_s"].to_list() == [None, 2, 2, 2]


def test_the_first_node_to_report_a_height_counts_and_lagging_nodes_are_ignored() -> None:
    rows = [(0.0, "a", LAST_HEIGHT, 5.0), (1.0, "a", LAST_HEIGHT, 6.0), (2.0, "a", LAST_HEIGHT, 7.0)]
    behind = [(0.5, "b", LAST_HEIGHT, 1.0), (1.5, "b", LAST_HEIGHT, 2.0), (2.5, "b", LAST_HEIGHT, 3.0)]
    assert first_sights(_scrapes([*rows, *behind])).equals(first_sights(_scrapes(rows)))
    together = [(time_s, "b", metric, height - 3.0) for time_s, _, metric, height in rows]
    assert first_sights(_scrapes([*rows, *together])).equals(first_sights(_scrapes(rows)))


def test_a_missing_last_height_is_derived_from_the_next_height() -> None:
    last = [(0.0, "a", LAST_HEIGHT, 5.0), (1.0, "a", LAST_HEIGHT, 6.0), (2.0, "a", LAST_HEIGHT, 7.0)]
    upcoming = [(time_s, host, HEIGHT, height + 1) for time_s, host, _, height in last]
    assert first_sights(_scrapes(upcoming)).equals(first_sights(_scrapes(last)))
    # A page is not written atomically. If its values disagree, the figures belong to the last height.
    torn = [(time_s, host, HEIGHT, height) for time_s, host, _, height in last]
    assert first_sights(_scrapes([*torn, *last])).equals(first_sights(_scrapes(last)))


@given(st.lists(st.integers(0, 4), min_size=2, max_size=60), st.integers(1, 10))
def test_no_block_is_lost_or_invented(steps: list[int], every_s: int) -> None:
    heights, height = [], 100
    for step in steps:
        height += step
        heights.append(height)
    rows = [(float(every_s * index), "a", LAST_HEIGHT, float(height)) for index, height in enumerate(heights)]
    seen = first_sights(_scrapes(rows))
    grown = [index for index in range(1, len(heights)) if heights[index] > heights[index - 1]]
    if not grown:
        assert seen.is_empty()
        return
    assert seen["height"].to_list() == list(range(heights[grown[0]], heights[-1] + 1))
    whole_s = every_s * (grown[-1] - grown[0])
    assert seen["block_interval_s"].sum() == pytest.approx(whole_s)


def test_the_last_scrape_of_a_block_is_used_and_the_majority_of_nodes_wins() -> None:
    family = "cometbft_consensus_num_txs"
    rows = [
        (time_s, host, metric, value)
        for time_s, host, height, transactions in [
            (1.0, "a", 6, 40),  # still shows the previous block
            (2.0, "a", 6, 50),
            (1.5, "b", 6, 50),
            (1.7, "c", 6, 40),
        ]
        for metric, value in ((LAST_HEIGHT, height), (family, transactions))
    ]
    assert last_block_values(_scrapes(rows))["block_transactions"].rows() == [(6, 50.0)]
