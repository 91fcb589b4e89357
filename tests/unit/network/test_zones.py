"""Zone tables: the shipped table equals the published table, and a user's own table is validated."""

from __future__ import annotations

import csv
from itertools import combinations
from pathlib import Path

import pytest

from chainmark.core.errors import UsageError
from chainmark.network.zones import load_zone_table


@pytest.mark.shared_data
def test_the_shipped_table_matches_the_published_one(shared_data: Path) -> None:
    """A different delay would make results incomparable with those of other teams that use the table."""
    with (shared_data / "cometbft" / "aws-latencies.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    table = load_zone_table("aws")
    assert list(table.zones) == header[1:]
    published = {(row[0], zone): float(value) for row in rows for zone, value in zip(header[1:], row[1:], strict=True)}
    assert dict(table.one_way_ms) == published


def test_asymmetric_pairs_keep_their_published_delays() -> None:
    table = load_zone_table("aws")
    both = {pair: (table.one_way_ms[pair], table.one_way_ms[pair[::-1]]) for pair in combinations(table.zones, 2)}
    assert {pair: ways for pair, ways in both.items() if ways[0] != ways[1]} == {
        ("Canada", "N_California"): (38, 39),
        ("Canada", "Seoul"): (85, 84),
        ("Oregon", "Singapore"): (84, 81),
        ("Ireland", "S_Paulo"): (88, 89),
        ("Tokyo", "Seoul"): (16, 17),
    }


def test_zones_are_assigned_in_table_order() -> None:
    table = load_zone_table("aws")
    zones = table.assign_in_turn([f"validator{index}" for index in range(16)])
    assert [zones["validator0"], zones["validator12"], zones["validator13"]] == [
        "N_Virginia",
        "Singapore",
        "N_Virginia",
    ]
    assert len(zones) == 16


GOOD = 'name = "two"\nsource = "us"\nzones = ["A", "B"]\n[one_way_ms]\nA = [0, 1.5]\nB = [2, 0]\n'


def test_a_custom_table_is_read_from_its_path(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(GOOD, encoding="utf-8")
    table = load_zone_table(str(path))
    assert table.one_way_ms["A", "B"] == 1.5
    assert table.one_way_ms["B", "A"] == 2


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("A = [0, 1.5]", "A = [0]", "the row of `A` has 1 values for 2 zones"),
        ("A = [0, 1.5]", "A = [3, 1.5]", "the delay within `A` must be 0"),
        ("A = [0, 1.5]", "A = [0, -1.5]", "`one_way_ms.A.1`: input should be greater than or equal to 0"),
        ("A = [0, 1.5]", "A = [0, nan]", "`one_way_ms.A.1`"),
        ("A = [0, 1.5]", "C = [0, 1.5]", "`A` must be in `zones` and have a row"),
        ('["A", "B"]', '["A", "A"]', "a zone is listed twice"),
        ('name = "two"\n', "", "`name`: field required"),
        ("[one_way_ms]", "[one_way_ms", "cannot be used"),
    ],
)
def test_an_invalid_table_is_refused_with_the_reason(tmp_path: Path, old: str, new: str, reason: str) -> None:
    path = tmp_path / "two.toml"
    path.write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_zone_table(str(path))
    assert reason in caught.value.message
    assert str(path) in caught.value.message


def test_a_missing_table_is_reported_with_the_available_ones() -> None:
    with pytest.raises(UsageError, match="no zone table `azure`") as caught:
        load_zone_table("azure")
    assert "`aws`" in str(caught.value.hint)
