"""The words for a judged change, shared by the sentences of a verdict and the tables of every report."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement, Scale
from chainmark.core.metric import Metric


def judged_name(metric: Metric, statistic: str) -> str:
    """The metric's label, with the statistic unless it is the mean and the only one judged."""
    return metric.label if metric.judged_by == ["mean"] and statistic == "mean" else f"{metric.label} {statistic}"


def name_of(catalogue: Catalogue, judgement: Judgement) -> str:
    """The name of a judgement in a sentence."""
    return judged_name(catalogue.metric(judgement.metric_id), judgement.statistic)


@dataclass(frozen=True)
class ChangeText:
    """A change and the ends of its interval, to the same number of decimals: "−3.9", "−7.1", "−0.6" and "%"."""

    change: str
    low: str
    high: str
    unit: str


def change_text(judgement: Judgement, unit: units.DisplayUnit) -> ChangeText:
    """The figures of a known change; "?" is an unknown end.

    Args:
        judgement: with a change.
        unit: of the metric's values; not used if changes are relative.
    """
    raw = (judgement.change, judgement.low, judgement.high)
    if judgement.scale is Scale.RELATIVE:
        decimals = units.percent_decimals(*raw)
        shown = [None if value is None else value * 100.0 for value in raw]
        symbol = "%"
    else:
        shown = [unit.of(value) for value in raw]
        sides = [unit.of(side.value) for side in (judgement.baseline, judgement.candidate)]
        decimals = units.decimals_for([*sides, *shown], half_width(judgement, unit))
        symbol = units.symbol_of_change(unit)
    change, low, high = ("?" if item is None else units.number(item, decimals, signed=True) for item in shown)
    return ChangeText(change, low, high, symbol)


def half_width(judgement: Judgement, unit: units.DisplayUnit) -> float | None:
    """Half of the interval of the change, in the unit of the metric's values; None if there is none."""
    if judgement.low is None or judgement.high is None:
        return None
    half = (judgement.high - judgement.low) / 2.0
    if judgement.scale is Scale.ABSOLUTE:
        return half * unit.factor
    base = unit.of(judgement.baseline.value)
    return None if base is None else half * abs(base)


def change_with_interval(judgement: Judgement, metric: Metric) -> str:
    """For instance "+38.0 % (90 % interval +35.1 … +41.2 %)", or in the metric's unit if changes are absolute."""
    if judgement.change is None or judgement.low is None or judgement.high is None:
        return judgement.note
    values = [judgement.baseline.value, judgement.candidate.value]
    figures = change_text(judgement, units.display_unit(metric.unit, values))
    return with_interval(figures.change, figures.low, figures.high, figures.unit)


def margin_of(judgement: Judgement, metric: Metric) -> str:
    """The accepted change with its unit: "10 %", or "−9 %, +10 %" if it differs by direction; "" without one."""
    if judgement.margin_low is None or judgement.margin_high is None:
        return ""
    ends = (-judgement.margin_low, judgement.margin_high)
    if judgement.scale is Scale.RELATIVE:
        low, high = map(units.plain_percent, ends)
    else:
        low, high = (units.tidy_quantity(end, metric.unit, is_change=True) for end in ends)
    return high if low == high else f"{units.MINUS}{low}, +{high}"


def worse_beyond(judgement: Judgement, metric: Metric) -> str:
    """The worsening beyond which a metric is worse, if it is equal up to a wider margin; "" otherwise."""
    limit = judgement.worse_beyond
    if limit is None:
        return ""
    if judgement.scale is Scale.RELATIVE:
        return units.plain_percent(limit)
    return units.tidy_quantity(limit, metric.unit, is_change=True)


def enumerated(items: Sequence[str]) -> str:
    """Items in a sentence: "a", "a and b", "a, b and c"."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def capitalised(text: str) -> str:
    """A text with a capital at its beginning, and nothing else changed."""
    return text[:1].upper() + text[1:]


def sentence_of(text: str) -> str:
    """A text with one full stop at its end."""
    return text if text.endswith(".") else f"{text}."


def first_sentence(*clauses: str, next_step: str = "") -> str:
    """The beginning of a document: which users notice what, how much, how certain that is, and the next step.

    Args:
        clauses: without full stops; empty ones are omitted. The first may begin with a name, whose case is kept.
        next_step: an imperative; "" if there is nothing to do.
    """
    return "; ".join(filter(None, [*clauses, next_step])) + "."


def with_interval(change: str, low: str, high: str, unit: str, *, level: str = "90 %") -> str:
    """A change with its interval: "+38.0 % (90 % interval +35.1 … +41.2 %)"."""
    amount, interval = (f"{text} {unit}".rstrip() for text in (change, f"{low} … {high}"))
    return f"{amount} ({level} interval {interval})"


def command(*words: str) -> str:
    """A command of this tool for a sentence: "`chainmark compare v1 v2`"."""
    return f"`{shlex.join(['chainmark', *words])}`"


def cut(text: str, most: int) -> str:
    """The beginning of a text of more than this many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def some_of(names: Sequence[str], most: int, noun: str = "") -> str:
    """The first names, and the number of the others: "a, b and 3 more hosts"."""
    more = f" and {len(names) - most} more {noun}".rstrip() if len(names) > most else ""
    return ", ".join(names[:most]) + more
