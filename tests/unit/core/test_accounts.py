"""Which accounts are told first."""

from __future__ import annotations

from chainmark.core.accounts import in_short


def test_long_lists_and_parts_of_other_accounts_come_later() -> None:
    """A cluster of 52 hosts had 260 rows of its lines before the first figure."""
    totals = {"lines": {"decoded": 7, "ignored": 2}, "blocks of the chain": {"analysed": 3}}
    parts = {"lines of node-0": {"decoded": 7}, "decoded messages": {f"message {n}": 1 for n in range(30)}}
    assert in_short({**totals, **parts}) == totals


def test_an_account_of_something_is_no_part_where_there_is_no_whole() -> None:
    accounts = {"lines of node-0": {"decoded": 7}}
    assert in_short(accounts) == accounts


def test_an_account_of_fifteen_classes_is_still_told_first() -> None:
    """What falls out of it is looked for at the end, beside the long lists."""
    few, many = ({f"class {n}": n for n in range(count)} for count in (15, 16))
    assert in_short({"few": few, "many": many}) == {"few": few}


def test_only_what_is_named_after_another_account_is_its_part() -> None:
    accounts = {"lines": {"a": 1}, "blocks of a day": {"b": 2}, "lines of x of y": {"c": 3}, "headlines of x": {"d": 4}}
    assert list(in_short(accounts)) == ["lines", "blocks of a day", "headlines of x"]
