"""Which of a run's accounts are told first: totals, not the long lists and the parts that make them up."""

from __future__ import annotations

from collections.abc import Mapping

Accounts = Mapping[str, Mapping[str, int]]

# An account of more classes is a list to look something up in.
_FEW = 15


def in_short(accounts: Accounts) -> dict[str, Mapping[str, int]]:
    """The accounts of few classes, without those that are another one's part: "lines of node-7" beside "lines"."""
    return {
        name: classes
        for name, classes in accounts.items()
        if len(classes) <= _FEW and not (" of " in name and name.partition(" of ")[0] in accounts)
    }
