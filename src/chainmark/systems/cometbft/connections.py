"""Broken connections between nodes, and failed consensus: only the nodes' logs report them.

A node that drops a peer redials it at once, so that the number of peers looks correct every second while votes and
transactions are lost in between. Two incompatible versions repeat this indefinitely.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from chainmark.core import units
from chainmark.core.storage import storage_errors
from chainmark.core.wording import some_of

_BROKEN = re.compile(r'Stopping peer for error .*\berr=(?:"(?P<quoted>[^"]*)"|(?P<plain>\S+))')
# A node writes this once before its consensus ends; a console's colours may surround the key.
_FAILURE = re.compile(
    r'CONSENSUS FAILURE!!!.*?(?:\x1b\[\d+m|\b)err=(?:\x1b\[\d+m)*(?:"(?P<quoted>[^"]*)"|(?P<plain>\S+))'
)
REASON_CHARACTERS = 200
_ADDRESSES = re.compile(r"\b(\d+\.){3}\d+:\d+(->)?")
REASONS_SHOWN, NODES_SHOWN = 3, 6
# The normal reasons of the other end for closing: a surplus connection, or a seed that has sent its addresses. A node
# that breaks a connection for its own reason logs that reason.
_GOODBYES = ("EOF", "unexpected EOF", "connection reset by peer", "use of closed network connection", "broken pipe")


def broken_connections(logs: Mapping[str, Path]) -> dict[str, Counter[str]]:
    """By node, how often it dropped a peer, by reason without addresses; both ends of a connection report it.

    Args:
        logs: of the nodes, by name.
    """
    counters: dict[str, Counter[str]] = {}
    for name, path in logs.items():
        with storage_errors(path), path.open(encoding="utf-8", errors="replace") as file:
            reasons = (match["quoted"] or match["plain"] for line in file if (match := _BROKEN.search(line)))
            counters[name] = Counter(" ".join(_ADDRESSES.sub("", reason).split()) for reason in reasons)
    return counters


def consensus_failures(logs: Mapping[str, Path]) -> dict[str, str]:
    """By node, why its consensus stopped permanently although its process runs; empty if none did.

    Args:
        logs: of the nodes, by name.
    """
    results: dict[str, str] = {}
    for name, path in logs.items():
        with storage_errors(path), path.open(encoding="utf-8", errors="replace") as file:
            reasons = (match["quoted"] or match["plain"] for line in file if (match := _FAILURE.search(line)))
            if (reason := next(reasons, None)) is not None:
                results[name] = reason.partition(". ")[0][:REASON_CHARACTERS]
    return results


def disconnection_warnings(broken: Mapping[str, Counter[str]]) -> list[str]:
    """A warning with the numbers and the reasons, the most frequent first; empty if all closings were normal."""
    total: Counter[str] = Counter()
    for reasons in broken.values():
        total.update(reasons)
    if all(reason.endswith(_GOODBYES) for reason in total):
        return []
    nodes = [name for name, reasons in broken.items() if reasons]
    shown = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{units.count(count)} × `{reason}`" for reason, count in shown[:REASONS_SHOWN])
    others = len(shown) - REASONS_SHOWN
    more = f" and {units.plural(others, 'other reason')}" if others > 0 else ""
    return [f"nodes dropped peers {units.count(total.total())} times ({some_of(nodes, NODES_SHOWN)}): {listed}{more}"]
