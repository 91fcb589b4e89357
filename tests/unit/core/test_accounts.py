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
