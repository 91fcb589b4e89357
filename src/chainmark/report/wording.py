"""The words that several documents share: verdicts, gates and directions, and the form of a sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from chainmark.core import units
from chainmark.core.manifest import Gate, GateStatus
from chainmark.core.metric import Better
from chainmark.core.verdict import Verdict
from chainmark.report.blocks import TableCell
from chainmark.report.phrases import Emphasis

Tone = Literal["pass", "fail", "inconclusive", "invalid", "neutral"]


class Look(NamedTuple):
    """The colours of a verdict: of a document's band, and of a word in a table."""

    tone: Tone
    emphasis: Emphasis


LOOKS: Mapping[Verdict, Look] = {
    Verdict.GONE: Look("invalid", "worse"),
    Verdict.FAIL: Look("fail", "worse"),
    Verdict.GENERATOR_GONE: Look("invalid", "worse"),
    Verdict.INVALID: Look("invalid", "caution"),
    Verdict.PARTIAL: Look("inconclusive", "caution"),
    Verdict.GENERATOR_LIMITED: Look("invalid", "caution"),
    Verdict.INCONCLUSIVE: Look("inconclusive", "caution"),
    Verdict.NOT_RUN: Look("inconclusive", "caution"),
    Verdict.PASS: Look("pass", "better"),
    Verdict.INFORMATIONAL: Look("neutral", "quiet"),
}
GATE_LOOKS: Mapping[GateStatus, Emphasis] = {
    GateStatus.PASS: "better",
    GateStatus.WARN: "caution",
    GateStatus.UNKNOWN: "quiet",
    GateStatus.FAIL: "worse",
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


def verdict_cell(verdict: Verdict) -> TableCell:
    """A verdict in a table."""
    return TableCell(verdict.value, emphasis=LOOKS[verdict].emphasis)


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
