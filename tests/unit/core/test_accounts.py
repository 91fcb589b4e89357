"""The order of accounts in lists."""

from __future__ import annotations

from chainmark.core.accounts import in_short


def test_long_lists_and_parts_of_other_accounts_come_later() -> None:
    """A cluster of 52 hosts had 260 rows of line counts before the first figure."""
    totals = {"lines": {"decoded": 7, "ignored": 2}, "blocks of the chain": {"analysed": 3}}
    parts = {"lines of node-0": {"decoded": 7}, "decoded messages": {f"message {n}": 1 for n in range(30)}}
    assert in_short({**totals, **parts}) == totals


def test_an_account_without_a_parent_is_not_a_part() -> None:
    accounts = {"lines of node-0": {"decoded": 7}}
    assert in_short(accounts) == accounts


def test_an_account_of_fifteen_classes_is_still_shown_first() -> None:
    """A longer account appears at the end, among the long lists."""
    few, many = ({f"class {n}": n for n in range(count)} for count in (15, 16))
    assert in_short({"few": few, "many": many}) == {"few": few}


def test_only_an_account_named_after_another_is_its_part() -> None:
    accounts = {"lines": {"a": 1}, "blocks of a day": {"b": 2}, "lines of x of y": {"c": 3}, "headlines of x": {"d": 4}}
    assert list(in_short(accounts)) == ["lines", "blocks of a day", "headlines of x"]
