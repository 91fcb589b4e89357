"""The accounts of a run that are shown first: totals, not the long lists and the parts of totals."""

from __future__ import annotations

from collections.abc import Mapping

Accounts = Mapping[str, Mapping[str, int]]

# An account with more classes is a list for looking things up.
_FEW = 15


def in_short(accounts: Accounts) -> dict[str, Mapping[str, int]]:
    """The accounts with few classes, without those that are part of another one: "lines of node-7" of "lines"."""
    return {
        name: classes
        for name, classes in accounts.items()
        if len(classes) <= _FEW and not (" of " in name and name.partition(" of ")[0] in accounts)
    }
