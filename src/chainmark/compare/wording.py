"""How a change is said in a sentence: never a bare number."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement, Scale
from chainmark.core.metric import Metric


def judged_name(metric: Metric, statistic: str) -> str:
    """The metric's label, with the statistic unless it is the mean and the only one judged."""
    return metric.label if metric.judged_by == ["mean"] and statistic == "mean" else f"{metric.label} {statistic}"


def name_of(catalogue: Catalogue, judgement: Judgement) -> str:
    """What a judgement is called in a sentence."""
    return judged_name(catalogue.metric(judgement.metric_id), judgement.statistic)


def change_with_interval(judgement: Judgement, metric: Metric) -> str:
    """For instance "+38.0 % (90 % interval +35.1 … +41.2 %)", or in the metric's unit where changes are absolute."""
    if judgement.change is None or judgement.low is None or judgement.high is None:
        return judgement.note
    if judgement.scale is Scale.RELATIVE:
        interval = units.percent_interval(judgement.low, judgement.high)
        return f"{units.percent(judgement.change)} (90 % interval {interval})"
    shown = units.display_unit(metric.unit, [judgement.baseline.value, judgement.candidate.value])
    values = [value * shown.factor for value in (judgement.change, judgement.low, judgement.high)]
    decimals = units.decimals_for(values, (values[2] - values[1]) / 2.0)
    change, low, high = (units.number(value, decimals, signed=True) for value in values)
    symbol = units.symbol_of_change(shown)
    return f"{change} {symbol} (90 % interval {low} … {high} {symbol})"


def margin_of(judgement: Judgement, metric: Metric) -> str:
    """The accepted change without a sign, with its unit."""
    margin = judgement.margin_high or 0.0
    if judgement.scale is Scale.RELATIVE:
        return units.plain_percent(margin)
    return units.tidy_quantity(margin, metric.unit, is_change=True)


def enumerated(items: Sequence[str]) -> str:
    """Items in a sentence: "a", "a and b", "a, b and c"."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def counted(number: int, noun: str) -> str:
    """A number and its noun: "1 run", "3 runs"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
