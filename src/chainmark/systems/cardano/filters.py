"""The conditions that admit blocks and slots to the analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Condition:
    """One condition: its name and, where it takes one, its value."""

    name: str
    value: float | int | None = None


def parse_conditions(names: Sequence[str], expressions: Sequence[str | Mapping[str, Any]], hosts: int) -> list[Condition]:
    """Conditions from the names of sets and from expressions, in that order, each once.

    Args:
        names: "value", "plutus", "size-full", "epoch3+" …
        expressions: JSON as text or parsed, or the short form ``BMinimumAdoptions=51``.
        hosts: hosts of the cluster, for the conditions that speak of all of them.
    """
    raise AssertionError
