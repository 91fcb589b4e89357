"""Accounts one by one, for tests of heavy ones: the size of each, and its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chainmark.core import units

# What makes an account heavy, the most reliable measure first: a server may only report the last.
SIGNS = ("total_count", "coins", "balances", "seen")
_WORDS = {"total_count": "transaction", "coins": "coin", "balances": "balance", "seen": "operation"}
_BEGIN, _END = 10, 6


def weight(facts: Mapping[str, int]) -> tuple[int, ...]:
    """Sort key of accounts: transactions, then coins, then balances, then occurrences in blocks."""
    return tuple(facts.get(sign, -1) for sign in SIGNS)


def in_words(facts: Mapping[str, int]) -> str:
    """The counts from its request: "373,012 transactions, 4 coins, 12 operations in the examined blocks"."""
    messages = [units.plural(facts[sign], _WORDS[sign]) for sign in SIGNS if sign in facts]
    return ", ".join(messages) + (" in the examined blocks" if "seen" in facts else "")


def distinct_names(addresses: Sequence[str]) -> list[str]:
    """Unique short names: "addr1q9xyz…k4w2aa"; a second one with the same letters gets a 2."""
    taken: dict[str, int] = {}
    names = []
    for address in addresses:
        short = address if len(address) <= _BEGIN + _END + 1 else f"{address[:_BEGIN]}…{address[-_END:]}"
        key = "".join(letter if letter.isalnum() else "_" for letter in short.lower())
        taken[key] = taken.get(key, 0) + 1
        names.append(short if taken[key] == 1 else f"{short} {taken[key]}")
    return names
