"""How a change is said in a sentence: never a bare number."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement, Scale
from chainmark.core.metric import Metric


def judged_name(metric: Metric, statistic: str) -> str:
    """The metric's label, with the statistic unless it is the mean and the only one judged."""
    return metric.label if metric.judged_by == ["mean"] and statistic == "mean" else f"{metric.label} {statistic}"


def name_of(catalogue: Catalogue, judgement: Judgement) -> str:
    """What a judgement is called in a sentence."""
    return judged_name(catalogue.metric(judgement.metric_id), judgement.statistic)


def percent(fraction: float, *, signed: bool = True) -> str:
    """A fraction in percent: one decimal below 10 %, none above."""
    value = 100.0 * fraction
    digits = 1 if abs(value) < 9.95 and abs(value - round(value)) >= 0.05 else 0
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    return text if float(text) != 0.0 else "0"


def quantity(value: float, unit: str, *, signed: bool = True) -> str:
    """A value to three significant digits with its unit; a unit of 1 or none is not written."""
    text = f"{value:+.3g}" if signed else f"{value:.3g}"
    return text if unit in {"", "1"} else f"{text} {unit}"


def amount(value: float, judgement: Judgement, metric: Metric) -> str:
    """A change on the judgement's scale, signed, with its unit."""
    return f"{percent(value)} %" if judgement.scale is Scale.RELATIVE else quantity(value, metric.unit)


def change_with_interval(judgement: Judgement, metric: Metric) -> str:
    """For instance "+38 % (90 % interval +35 … +41 %)"."""
    if judgement.change is None or judgement.low is None or judgement.high is None:
        return judgement.note
    low, high = amount(judgement.low, judgement, metric), amount(judgement.high, judgement, metric)
    return f"{amount(judgement.change, judgement, metric)} (90 % interval {low.split(' ')[0]} … {high})"


def margin_of(judgement: Judgement, metric: Metric) -> str:
    """The accepted change without a sign, with its unit."""
    margin = judgement.margin_high or 0.0
    if judgement.scale is Scale.RELATIVE:
        return f"{percent(margin, signed=False)} %"
    return quantity(margin, metric.unit, signed=False)


def enumerated(items: Sequence[str]) -> str:
    """Items in a sentence: "a", "a and b", "a, b and c"."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def counted(number: int, noun: str) -> str:
    """A number and its noun: "1 run", "3 runs"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
