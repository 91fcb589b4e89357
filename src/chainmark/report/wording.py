"""The words that several documents share: verdicts, gates and directions, and the form of a sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from chainmark.core import units
from chainmark.core.manifest import Gate, GateStatus
from chainmark.core.metric import Better

VERDICT_WORDS = {
    "pass": "PASS",
    "fail": "FAIL",
    "inconclusive": "INCONCLUSIVE",
    "invalid": "INVALID",
    "informational": "COSTS",
}
BETTER_WORDS = {
    Better.LOWER: "lower is better",
    Better.HIGHER: "higher is better",
    Better.NEITHER: "neither direction is better",
}
GATE_MARKS = {GateStatus.PASS: "✓", GateStatus.WARN: "!", GateStatus.UNKNOWN: "?", GateStatus.FAIL: "✗"}
NOT_COMPARED = "not compared"
NOT_JUDGED = "not judged"


_COUNTED = {GateStatus.FAIL: "failed", GateStatus.WARN: "warned", GateStatus.UNKNOWN: "could not be checked"}


def gate_word(status: GateStatus) -> str:
    """The status, as used in tables of one run."""
    return f"{GATE_MARKS[status]} {status.value}" if status is GateStatus.UNKNOWN else status.value


def gate_counts(gates: Iterable[Gate]) -> list[str]:
    """The number of gates that were not met, by status: "1 failed", "2 could not be checked"."""
    counter = Counter(gate.status for gate in gates)
    return [f"{counter[status]} {word}" for status, word in _COUNTED.items() if counter[status]]


def prose(text: str) -> str:
    """A sentence with true minus signs before its figures, as in tables."""
    return re.sub(r"(?<![\w.\-])-(?=\d)", units.MINUS, text)


def flatten(tree: Mapping[str, object], prefix: str = "") -> list[tuple[str, str]]:
    """A nested mapping as dotted keys and printed values, sorted by key."""
    flat: list[tuple[str, str]] = []
    for key, value in sorted(tree.items()):
        if isinstance(value, Mapping) and value:
            flat += flatten(value, f"{prefix}{key}.")
        else:
            flat.append((f"{prefix}{key}", units.scalar(value)))
    return flat
