"""The conditions that select blocks and slots for the analysis: their names, their sets, their meaning."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from chainmark.core.errors import UsageError
from chainmark.systems.cardano.documents import Genesis
from chainmark.systems.cardano.rules import Rules

# The value of a condition: none, a share, a whole number.
_PLAIN = frozenset({"BUnitaryChainDelta", "BNonNegatives", "SlotHasLeaders"})
_SHARES = frozenset({"BFullnessGEq", "BFullnessLEq"})
_WHOLE = frozenset({"BSizeGEq", "BSizeLEq", "BMinimumAdoptions"})
# Conditions on slots: the column that they check.
_SLOT_COLUMNS = {
    "Slot": "slot",
    "Epoch": "epoch",
    "EpochSafeInt": "safe_interval",
    "EpSlot": "epoch_slot",
}
_BOUNDS = {f"{name}{bound}": (column, bound) for name, column in _SLOT_COLUMNS.items() for bound in ("GEq", "LEq")}
CONDITIONS = tuple(sorted([*_PLAIN, *_SHARES, *_WHOLE, *_BOUNDS]))

# Without a number it requires all hosts but the forger.
MINIMUM_ADOPTIONS = "BMinimumAdoptions"
# The benchmarks' sets by the names of their files, then the two that their release runs are analysed with.
SETS: Mapping[str, tuple[str, ...]] = {
    "unitary": ("BUnitaryChainDelta",),
    "epoch3+": ("EpochGEq=2",),
    "epoch4+": ("EpochGEq=3",),
    "epoch5+": ("EpochGEq=4",),
    "fromslot-20k": ("SlotGEq=20000",),
    "no-ebnd": ("EpSlotGEq=200",),
    "rewards": ("EpochSafeIntGEq=4", "EpochSafeIntLEq=7"),
    "no-rewards": ("EpochSafeIntLEq=3", "EpochSafeIntGEq=8"),
    "adopt-10": ("BMinimumAdoptions=10",),
    "size-full": ("BFullnessGEq=0.9",),
    "size-small": ("BFullnessGEq=0.03", "BFullnessLEq=0.1"),
    "size-moderate": ("BFullnessGEq=0.08", "BFullnessLEq=0.112"),
    "size-moderate-2": ("BFullnessGEq=0.076", "BFullnessLEq=0.105"),
    "nonnegative": ("BNonNegatives",),
    "model": ("SlotLEq=56000", "BMinimumAdoptions=50", "BUnitaryChainDelta"),
    "value": ("BFullnessGEq=0.9", "EpochGEq=2", MINIMUM_ADOPTIONS),
    "plutus": ("EpochGEq=2", "BFullnessGEq=0.03", "BFullnessLEq=0.1", MINIMUM_ADOPTIONS),
}
_HINT = (
    f"sets are {', '.join(SETS)}; conditions are {', '.join(CONDITIONS)}, "
    'such as `EpochGEq=2` or `{"tag":"CSlot","contents":{"tag":"EpochGEq","contents":2}}`'
)


@dataclass(frozen=True)
class FilterCondition:
    """One condition: its name and, if it has one, its value (a share of the largest body, bytes, a number)."""

    name: str
    value: float | int | None = None

    @property
    def is_on_slots(self) -> bool:
        """Whether it also applies to slot records, and not only to blocks."""
        return self.name in _BOUNDS or self.name == "SlotHasLeaders"

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name} {self.value}"


def parse_conditions(
    names: Sequence[str], expressions: Sequence[str | Mapping[str, Any]], hosts: int
) -> list[FilterCondition]:
    """Conditions from names and from expressions, in that order, each once.

    Args:
        names: of sets: "value", "plutus", "size-full", "epoch3+" …, or anything that an expression may be.
        expressions: JSON, as text or parsed, one or a list; or the short form ``BMinimumAdoptions=51``.
        hosts: hosts of the cluster; ``BMinimumAdoptions`` without a number requires all but the forger.

    Raises:
        UsageError: a set or condition is unknown, or its value is invalid.
    """
    return list(dict.fromkeys(condition for item in (*names, *expressions) for condition in _conditions(item, hosts)))


def _conditions(item: str | Mapping[str, Any], hosts: int) -> Iterator[FilterCondition]:
    if isinstance(item, str) and item in SETS:
        yield from (_short(text, hosts) for text in SETS[item])
    elif isinstance(item, str) and not item.lstrip().startswith(("{", "[")):
        yield _short(item, hosts)
    else:
        content = _json(item) if isinstance(item, str) else item
        for entry in content if isinstance(content, list) else [content]:
            yield _tagged(entry, hosts)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the filter `{text}` is not JSON: {error}", _HINT) from error


def _tagged(entry: Any, hosts: int) -> FilterCondition:
    """A condition in the benchmarks' notation: its subject, then its name with its value."""
    shown = json.dumps(entry, ensure_ascii=False, default=str)
    inner = entry.get("contents") if isinstance(entry, dict) else None
    kind = entry.get("tag") if isinstance(entry, dict) else None
    if kind not in {"CBlock", "CSlot"} or not isinstance(inner, dict):
        raise UsageError(f"the filter {shown} is not a condition on blocks (CBlock) or slots (CSlot)", _HINT)
    name = inner.get("tag")
    if not isinstance(name, str) or name not in CONDITIONS:
        raise UsageError(f"the filter {shown} has an unknown condition", _HINT)
    condition = _checked(name, inner.get("contents"), hosts)
    if condition.is_on_slots != (kind == "CSlot"):
        where = "slots (CSlot)" if condition.is_on_slots else "blocks (CBlock)"
        raise UsageError(f"the filter {shown} has `{name}` in the wrong place: it is a condition on {where}", _HINT)
    return condition


def _short(text: str, hosts: int) -> FilterCondition:
    name, equals, digits = (part.strip() for part in text.partition("="))
    if name not in CONDITIONS:
        raise UsageError(f"`{text}` is neither a set of filters nor a condition", _HINT)
    if not equals:
        return _checked(name, None, hosts)
    try:
        value: float | int = float(digits) if name in _SHARES else int(digits)
    except ValueError as error:
        kind = "a number" if name in _SHARES else "a whole number"
        raise UsageError(f"the filter `{text}` needs {kind} after `=`", _HINT) from error
    return _checked(name, value, hosts)


def _checked(name: str, value: Any, hosts: int) -> FilterCondition:
    if name in _PLAIN:
        return FilterCondition(name)
    if name == MINIMUM_ADOPTIONS and value is None:
        return FilterCondition(name, max(hosts - 1, 0))
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    if not is_number or (name not in _SHARES and value != int(value)) or value >= 2**63:
        kind = "a number" if name in _SHARES else "a whole number"
        raise UsageError(f"the filter `{name}` needs {kind} of at least 0, but has `{value}`", _HINT)
    return FilterCondition(name, float(value) if name in _SHARES else int(value))


def block_test(condition: FilterCondition, genesis: Genesis, rules: Rules) -> pl.Expr:
    """Whether a block meets a condition; null if the required data are unknown.

    The frame needs `slot`, `epoch`, `epoch_slot`, `safe_interval`, `size_bytes`, `chain_delta` (0 if the forger did
    not adopt it), `adopted_observations` (hosts that noticed, requested, fetched and adopted), and `negatives` and
    `non_negatives` (numbers of the forger's and the observers' timings below 0, and not below).
    """
    name, value = condition.name, condition.value or 0
    largest = math.floor(genesis.max_block_body_bytes * float(value))
    tests = {
        "BUnitaryChainDelta": pl.col("chain_delta") == 1,
        # Both bounds of fullness are exclusive.
        "BFullnessGEq": pl.col("size_bytes") > largest,
        "BFullnessLEq": pl.col("size_bytes") < largest,
        "BSizeGEq": pl.col("size_bytes") >= value,
        "BSizeLEq": pl.col("size_bytes") <= value,
        "BMinimumAdoptions": pl.col("adopted_observations") >= value,
        # The published rule is inverted: it accepts a block none of whose timings is 0 or more.
        "BNonNegatives": (pl.col("non_negatives") if rules.published else pl.col("negatives")) == 0,
        "SlotHasLeaders": pl.lit(value=True),
    }
    return tests[name] if name in tests else _bound(condition)


def asks_for_size(conditions: Iterable[FilterCondition]) -> bool:
    """Whether it depends on a block's size."""
    return any(condition.name.startswith(("BFullness", "BSize")) for condition in conditions)


def slot_test(conditions: Iterable[FilterCondition]) -> pl.Expr:
    """Whether a slot record meets all conditions on slots; conditions on blocks do not apply to it.

    The frame needs `slot`, `epoch`, `epoch_slot`, `safe_interval`, `leads`.
    """
    test = pl.lit(value=True)
    for condition in conditions:
        if condition.is_on_slots:
            test &= pl.col("leads") > 0 if condition.name == "SlotHasLeaders" else _bound(condition)
    return test


def _bound(condition: FilterCondition) -> pl.Expr:
    column, bound = _BOUNDS[condition.name]
    return pl.col(column) >= condition.value if bound == "GEq" else pl.col(column) <= condition.value


def with_slot_places(frame: pl.DataFrame, genesis: Genesis) -> pl.DataFrame:
    """The epoch of every `slot`, the slot within it, and the safe interval, of which an epoch has about ten.

    All are null if the slot is.
    """
    place = (frame["slot"] % genesis.epoch_slots).cast(pl.Int64)
    # In doubles and in this order, like the published figures; Polars would multiply by the reciprocal.
    interval = np.floor(place.to_numpy() / float(genesis.security_parameter) * genesis.active_slots_coefficient)
    return frame.with_columns(
        epoch=pl.col("slot") // genesis.epoch_slots,
        epoch_slot=place,
        safe_interval=pl.Series(interval, dtype=pl.Float64, nan_to_null=True).cast(pl.Int64),
    )
