"""Filters: exactly the named condition selects a block, and an unknown name is rejected."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from chainmark.core.errors import UsageError
from chainmark.systems.cardano.filters import (
    CONDITIONS,
    SETS,
    FilterCondition,
    block_test,
    parse_conditions,
    slot_test,
    with_slot_places,
)
from chainmark.systems.cardano.rules import Rules

from tests.unit.systems.cardano.traces import GENESIS

RIGHT, PUBLISHED = Rules(), Rules(published=True)


def _texts(names: list[str], expressions: list[Any] | None = None, hosts: int = 52) -> list[str]:
    return [str(condition) for condition in parse_conditions(names, expressions or [], hosts)]


def test_the_benchmarks_runs_have_three_and_four_conditions() -> None:
    """The benchmark's reports print these numbers."""
    value = ["BFullnessGEq 0.9", "EpochGEq 2", "BMinimumAdoptions 51"]
    assert _texts(["value"]) == value
    assert _texts(["plutus"]) == ["EpochGEq 2", "BFullnessGEq 0.03", "BFullnessLEq 0.1", "BMinimumAdoptions 51"]
    described = [{"tag": "CBlock", "contents": {"tag": "BMinimumAdoptions", "contents": 51}}]
    assert _texts(["size-full", "epoch3+"], described) == value


def test_a_condition_named_twice_applies_once() -> None:
    assert _texts(["value", "epoch3+"], ["EpochGEq=2"]) == _texts(["value"])


@pytest.mark.parametrize(
    "expression",
    [
        "EpochGEq=2",
        " EpochGEq = 2 ",
        '{"tag":"CSlot","contents":{"tag":"EpochGEq","contents":2}}',
        '[{"tag":"CSlot","contents":{"tag":"EpochGEq","contents":2.0}}]',
        {"tag": "CSlot", "contents": {"tag": "EpochGEq", "contents": 2}},
    ],
)
def test_an_expression_has_several_forms(expression: Any) -> None:
    assert parse_conditions([], [expression], 52) == [FilterCondition("EpochGEq", 2)]


@pytest.mark.parametrize("hosts", [1, 2, 52])
def test_without_a_number_all_hosts_except_the_forger_must_adopt(hosts: int) -> None:
    bare = {"tag": "CBlock", "contents": {"tag": "BMinimumAdoptions"}}
    for expression in ("BMinimumAdoptions", bare):
        assert parse_conditions([], [expression], hosts) == [FilterCondition("BMinimumAdoptions", hosts - 1)]


def test_every_set_can_be_read() -> None:
    for name in SETS:
        assert parse_conditions([name], [], 52)
    assert {condition.name for name in SETS for condition in parse_conditions([name], [], 52)} <= set(CONDITIONS)


@pytest.mark.parametrize(
    ("item", "part"),
    [
        ("size-ful", "`size-ful` is neither a set of filters nor a condition"),
        ("EpochGEq", "needs a whole number"),
        ("EpochGEq=two", "`EpochGEq=two` needs a whole number"),
        ("EpochGEq=1.5", "`EpochGEq=1.5` needs a whole number"),
        ("EpochGEq=-1", "at least 0"),
        ("BFullnessGEq=nan", "needs a number"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"tag":"CEpoch","contents":{}}', "not a condition on blocks"),
        ('{"tag":"CSlot","contents":{"tag":"EpochIs","contents":1}}', "has an unknown condition"),
        ('{"tag":"CBlock","contents":{"tag":"EpochGEq","contents":1}}', "in the wrong place"),
        ('{"tag":"CSlot","contents":{"tag":"BSizeGEq","contents":1}}', "in the wrong place"),
        ('{"tag":"CBlock","contents":{"tag":"BSizeGEq","contents":true}}', "needs a whole number"),
        ("7", "neither a set"),
        ("[7]", "not a condition on blocks"),
    ],
)
def test_an_unknown_filter_is_refused_with_the_available_ones(item: str, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_conditions([item], [], 52)
    assert part in caught.value.message
    assert "size-full" in (caught.value.hint or "")
    assert "BMinimumAdoptions" in (caught.value.hint or "")


# --- blocks --------------------------------------------------------------------------------------------------------

_BLOCK = {
    "slot": 205,
    "size_bytes": 81_100,
    "chain_delta": 1,
    "adopted_observations": 51,
    "negatives": 0,
    "non_negatives": 30,
}


def _meets(text: str, rules: Rules = RIGHT, **changed: Any) -> bool | None:
    (condition,) = parse_conditions([], [text], 52)
    frame = with_slot_places(pl.DataFrame([_BLOCK | changed]), GENESIS)
    met: bool | None = frame.with_columns(block_test(condition, GENESIS, rules).alias("met"))["met"].item()
    return met


def test_fullness_bounds_are_exclusive() -> None:
    """90 % of the largest body of 90112 bytes is 81100.8: rounded down, and then strictly more."""
    assert [_meets("BFullnessGEq=0.9", size_bytes=size) for size in (81_100, 81_101)] == [False, True]
    assert [_meets("BFullnessLEq=0.1", size_bytes=size) for size in (9_010, 9_011)] == [True, False]


def test_other_bounds_are_inclusive() -> None:
    assert [_meets("BSizeGEq=81100", size_bytes=size) for size in (81_099, 81_100)] == [False, True]
    assert [_meets("BSizeLEq=81100", size_bytes=size) for size in (81_100, 81_101)] == [True, False]
    assert [_meets("BMinimumAdoptions=51", adopted_observations=hosts) for hosts in (50, 51)] == [False, True]
    # Slot 205 is slot 5 of epoch 2.
    for name, value in (("Slot", 205), ("Epoch", 2), ("EpSlot", 5), ("EpochSafeInt", 0)):
        assert _meets(f"{name}GEq={value}")
        assert not _meets(f"{name}GEq={value + 1}")
        assert _meets(f"{name}LEq={value}")
    assert not _meets("SlotLEq=204")


def test_there_are_ten_safe_intervals_per_epoch_rounded_down() -> None:
    """In epochs of 100 slots with k = 2 and f = 0.2 an interval has 10 slots."""
    frame = with_slot_places(pl.DataFrame({"slot": [200, 209, 210, 299, 300]}), GENESIS)
    assert frame["safe_interval"].to_list() == [0, 0, 1, 9, 0]


def test_conditions_without_a_value_are_parsed() -> None:
    assert [_meets("BUnitaryChainDelta", chain_delta=delta) for delta in (0, 1, 2)] == [False, True, False]
    assert _meets("SlotHasLeaders")


def test_the_published_rule_for_negative_times_is_inverted() -> None:
    assert [_meets("BNonNegatives", negatives=count) for count in (0, 1)] == [True, False]
    assert not _meets("BNonNegatives", PUBLISHED)
    assert _meets("BNonNegatives", PUBLISHED, non_negatives=0, negatives=3)


def test_a_size_condition_on_an_unknown_size_is_undecided() -> None:
    assert _meets("BSizeGEq=1", size_bytes=None) is None


# --- slots ---------------------------------------------------------------------------------------------------------


def _retained(texts: list[str]) -> list[int]:
    frame = with_slot_places(
        pl.DataFrame({"slot": range(300), "leads": [int(n % 50 == 0) for n in range(300)]}), GENESIS
    )
    slots: list[int] = frame.filter(slot_test(parse_conditions(texts, [], 52)))["slot"].to_list()
    return slots


def test_only_slot_conditions_apply_to_slots() -> None:
    assert _retained([]) == list(range(300))
    assert _retained(["value"]) == list(range(200, 300))
    assert _retained(["EpSlotGEq=98", "EpochLEq=1"]) == [98, 99, 198, 199]
    assert _retained(["SlotHasLeaders", "EpochGEq=1"]) == [100, 150, 200, 250]
    assert _retained(["no-rewards"]) == []


def test_a_condition_is_printed_in_its_original_form() -> None:
    """Rejection statistics are reported with these texts."""
    assert str(FilterCondition("SlotGEq", 1_234_567)) == "SlotGEq 1234567"
    assert json.dumps([str(condition) for condition in parse_conditions(["model"], [], 52)])
