"""Where a change happened: on all hosts, or on some of them, which are then named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Breakdown, Judgement, Outcome, Scale
from chainmark.core.metric import Metric
from chainmark.core.wording import enumerated, margin_of, name_of

MOST_NAMED = 4


def located(judgements: Sequence[Judgement], breakdowns: Sequence[Breakdown], catalogue: Catalogue) -> dict[str, str]:
    """The hosts on which gating metrics changed by more than their margins.

    Args:
        judgements: of all metrics. One counts if its interval excludes zero; if a side has a single run,
            only if it is worse or better, because noise has no location.
        breakdowns: of the same comparison; for each metric, the first one by a fixed set of hosts with continuous
            measurements counts: blocks by their producer are other blocks in every run.
        catalogue: for the names of the metrics, and for the fixed sets.

    Returns:
        By metric a sentence: "RSS per node, host by host, by means only: seed0 (+142 %) changed by more than the
        margin of 10 %, the other 5 by −4.2 … +1.1 %". The means have no interval, so this is not used for decisions.
    """
    results: dict[str, str] = {}
    for judgement, item in _changed(judgements, breakdowns, catalogue):
        if item.metric_id not in results and (sentence := _sentence(judgement, item, catalogue)):
            results[item.metric_id] = sentence
    return results


def apart(judgement: Judgement, breakdowns: Sequence[Breakdown], catalogue: Catalogue) -> str:
    """The few hosts that alone changed by more than the margin: "seed0, unlike the other 5 hosts"; "" without any."""
    for _, item in _changed([judgement], breakdowns, catalogue):
        changes = _changes(item)
        beyond = [name for name in changes if _is_beyond(changes[name], judgement)]
        others = len(changes) - len(beyond)
        if 0 < len(beyond) <= min(MOST_NAMED, others):
            beyond.sort(key=lambda name: (-abs(changes[name]), name))
            return f"{enumerated(beyond)}, unlike the other {units.plural(others, item.key)}"
    return ""


def _changed(
    judgements: Sequence[Judgement], breakdowns: Sequence[Breakdown], catalogue: Catalogue
) -> Iterator[tuple[Judgement, Breakdown]]:
    """The gating metrics that changed significantly by more than their margins, each with its breakdown."""
    first = {item.metric_id: item for item in reversed(breakdowns) if _is_fixed(item, catalogue)}
    for judgement in judgements:
        item = first.get(judgement.metric_id)
        if item is None or not judgement.gating or item.scale is not judgement.scale:
            continue
        if _is_sure(judgement) and _is_beyond(judgement.change, judgement):
            yield judgement, item


def _changes(item: Breakdown) -> dict[str, float]:
    return {name: change for name, change in zip(item.values, item.change, strict=True) if change is not None}


def _is_fixed(item: Breakdown, catalogue: Catalogue) -> bool:
    metric = catalogue.metric(item.metric_id)
    return item.key in catalogue.population(metric.population).average_over


def _is_sure(judgement: Judgement) -> bool:
    """Whether there is a change, shown by several runs per side or by the metric's outcome."""
    low, high = judgement.low, judgement.high
    if low is None or high is None or low <= 0.0 <= high:
        return False
    runs = min(len(judgement.baseline.per_run), len(judgement.candidate.per_run))
    return runs > 1 or judgement.outcome in {Outcome.WORSE, Outcome.BETTER}


def _is_beyond(change: float | None, judgement: Judgement) -> bool:
    """Whether a change exceeds the margin in the direction of the whole metric's change."""
    low, high, total_change = judgement.margin_low, judgement.margin_high, judgement.change
    if change is None or total_change is None or low is None or high is None:
        return False
    return change > high if total_change > 0.0 else change < low


def _sentence(judgement: Judgement, item: Breakdown, catalogue: Catalogue) -> str:
    metric = catalogue.metric(item.metric_id)
    changes = _changes(item)
    beyond = [name for name in changes if _is_beyond(changes[name], judgement)]
    others = [change for name, change in changes.items() if name not in beyond]
    if len(changes) < 2 or not beyond:
        return ""
    start = f"{name_of(catalogue, judgement)}, {item.key} by {item.key}, by means only: "
    by_more = f"changed by more than the margin of {margin_of(judgement, metric)}"
    if not others:
        return f"{start}all {len(changes)} {by_more}, {_range(list(changes.values()), judgement, metric)}"
    beyond.sort(key=lambda name: (-abs(changes[name]), name))
    named = [f"{name} ({_range([changes[name]], judgement, metric)})" for name in beyond[:MOST_NAMED]]
    hosts = enumerated(named)
    if len(beyond) > MOST_NAMED:
        hosts = f"{len(beyond)} of {len(changes)}, mostly {hosts},"
    listed = f" of the {len(changes)} listed" if item.left_out else ""
    return f"{start}{hosts} {by_more}, the other {len(others)}{listed} by {_range(others, judgement, metric)}"


def _range(changes: Sequence[float], judgement: Judgement, metric: Metric) -> str:
    """From the least to the greatest change; or the only one."""
    low, high = min(changes), max(changes)
    if judgement.scale is Scale.RELATIVE:
        return units.percent(low) if low == high else units.percent_interval(low, high)
    shown = units.display_unit(metric.unit, [judgement.baseline.value, judgement.candidate.value])
    decimals = units.decimals_for([low * shown.factor, high * shown.factor])
    numbers = [units.number(value * shown.factor, decimals, signed=True) for value in dict.fromkeys((low, high))]
    return f"{' … '.join(numbers)} {units.symbol_of_change(shown)}".rstrip()
