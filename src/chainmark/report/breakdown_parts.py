"""A metric by host in the report: a table and a chart in the HTML, a sentence on outliers in every medium."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chainmark.core import units
from chainmark.core.comparison import Breakdown, Comparison, Scale
from chainmark.core.metric import Metric
from chainmark.core.wording import enumerated
from chainmark.report.blocks import HTML, Block, Column, Details, Table, TableCell, row_of, words
from chainmark.report.chart import QUIET, Axis, Chart, Layer, LegendSeries, Tooltip, columns_of

_ROW_PX = 14
_STANDING_OUT = (
    "A value is an outlier if its robust z-score is above 3 and its distance from the median exceeds the metric's "
    "margin and three standard errors."
)
_IN_GROUPS = " Values are compared within their own {0}; a {0} with fewer than three values has no outliers."


def breakdowns(comparison: Comparison) -> dict[str, Details]:
    """Per table of the catalogue, its metrics' breakdowns, folded."""
    parts: dict[str, list[Details]] = {}
    keys: dict[str, dict[str, None]] = {}
    for item in comparison.breakdowns:
        metric = comparison.catalogue.metric(item.metric_id)
        parts.setdefault(metric.table, []).append(_part(comparison, item, metric))
        keys.setdefault(metric.table, {})[item.key] = None
    return {
        table: Details(
            f"breakdowns-{table}",
            f"By {enumerated([key.replace('_', ' ') for key in keys[table]])}",
            part,
            media=HTML,
        )
        for table, part in parts.items()
    }


def _id(item: Breakdown) -> str:
    return f"by-{item.key}-{item.metric_id}"


def _unit(item: Breakdown, metric: Metric) -> units.DisplayUnit:
    return units.display_unit(metric.unit, [*item.baseline, *item.candidate])


def _part(comparison: Comparison, item: Breakdown, metric: Metric) -> Details:
    out = sum(bool(sides) for sides in item.stands_out)
    standing_out = f": {units.plural(out, 'outlier')}" if out else ""
    left_out = (
        f"; {units.count(item.left_out)} more, closer to the median and with smaller changes, are not listed"
        if item.left_out
        else ""
    )
    notes = [
        f"Means of {units.plural(len(item.values), item.key)}{left_out}.",
        _STANDING_OUT + (_IN_GROUPS.format(item.group_label) if item.group_label else ""),
    ]
    blocks: list[Block] = [
        replace(breakdown_table(comparison, item, metric), notes=notes),
        replace(_chart(comparison, item, metric), title=""),
    ]
    return Details(_id(item), f"{metric.label}, {item.key} by {item.key}{standing_out}", blocks)


def breakdown_table(comparison: Comparison, item: Breakdown, metric: Metric) -> Table:
    """The means of both sides, value by value, and the outliers among them."""
    unit = _unit(item, metric)
    shown = [unit.of(value) for value in (*item.baseline, *item.candidate)]
    decimals = units.decimals_for(shown)
    labels = comparison.labels
    side_labels = {"": "", "both": "both sides", "baseline": labels[0], "candidate": labels[1]}

    def figure(value: float | None) -> TableCell:
        return TableCell("" if value is None else units.number(unit.of(value), decimals))

    rows = []
    for index, name in enumerate(item.values):
        out = item.stands_out[index]
        score = item.z[index]
        rows.append(
            row_of(
                TableCell(name, emphasis="caution" if out else "plain"),
                figure(item.baseline[index]),
                figure(item.candidate[index]),
                _change(item, index, unit, decimals),
                f"{units.count(item.baseline_n[index])} + {units.count(item.candidate_n[index])}",
                "" if score is None else units.number(score, 1 if score < 100.0 else 0),
                TableCell(side_labels[out], emphasis="caution" if out else "plain"),
            )
        )
    suffix = f", {unit.symbol}" if unit.symbol else ""
    columns = [*words(item.key), Column(labels[0]), Column(labels[1]), Column("change"), Column("samples")]
    columns += [Column("robust z"), *words("outlier in")]
    return Table(f"{_id(item)}-table", f"Mean of {metric.label}{suffix}", columns, rows, sortable=True)


def _change(item: Breakdown, index: int, unit: units.DisplayUnit, decimals: int) -> str:
    change = item.change[index]
    if change is None:
        return ""
    if item.scale is Scale.RELATIVE:
        return units.percent(change, decimals=1)
    return f"{units.number(unit.of(change), decimals, signed=True)} {units.symbol_of_change(unit)}".rstrip()


def _chart(comparison: Comparison, item: Breakdown, metric: Metric) -> Chart:
    unit = _unit(item, metric)
    labels = comparison.labels
    title = f"mean of {metric.label}, {unit.symbol}" if unit.symbol else f"mean of {metric.label}"
    dots = [
        {"value": item.values[row], "side": label, "mean": mean * unit.factor, "n": counts[row]}
        for row in range(len(item.values))
        for label, means, counts in zip(
            labels, (item.baseline, item.candidate), (item.baseline_n, item.candidate_n), strict=True
        )
        if (mean := means[row]) is not None
    ]
    links = [
        {"value": value, "low": min(left, right) * unit.factor, "high": max(left, right) * unit.factor}
        for value, left, right in zip(item.values, item.baseline, item.candidate, strict=True)
        if left is not None and right is not None
    ]
    tips = [
        Tooltip(item.key, "value"),
        Tooltip("side", "side"),
        Tooltip(title, "mean", ".4g"),
        Tooltip("samples", "n", ",g"),
    ]
    return Chart(
        id=_id(item),
        title=f"{metric.label}, {item.key} by {item.key}",
        x=Axis(title),
        y=Axis(names=_by_value(item)),
        layers=[
            Layer("interval", "links", x="low", x2="high", y="value", colour=QUIET, width=1),
            Layer("points", "dots", "mean", "value", colour="side", style="side", size=48, tips=tips),
        ],
        data={"dots": columns_of(dots), "links": columns_of(links)},
        series={"side": LegendSeries(labels)},
        palette="sides",
        row=_ROW_PX,
    )


def _by_value(item: Breakdown) -> list[str]:
    """The largest first, by the candidate's mean if it has one."""
    means = [right if right is not None else left for left, right in zip(item.baseline, item.candidate, strict=True)]
    return [
        name
        for _, name in sorted((-(mean or 0.0), name) for mean, name in zip(means, item.values, strict=True))
    ]  # fmt: skip


def outlier_sentences(comparison: Comparison) -> list[str]:
    """Outliers, one sentence each: "node-7: Fetch duration 2.1 × the median host"; gating metrics first."""
    messages = []
    for item in comparison.breakdowns:
        metric = comparison.catalogue.metric(item.metric_id)
        for index, sides in enumerate(item.stands_out):
            if sides:
                rank = (not metric.gating, -(item.z[index] or 0.0))
                messages.append((rank, _sentence(comparison, item, metric, index)))
    return [text for _, text in sorted(messages, key=lambda entry: entry[0])]


def capped(sentences: Sequence[str], most: int) -> list[str]:
    """The first of the sentences, and the number of the others."""
    more = len(sentences) - most
    return [*sentences[:most], f"{more} more: the HTML report lists all values"] if more > 0 else list(sentences)


def _sentence(comparison: Comparison, item: Breakdown, metric: Metric, index: int) -> str:
    sides = item.stands_out[index]
    ratio, distance = item.beside_median(index)
    label = comparison.baseline.label if sides == "baseline" else comparison.candidate.label
    only = "" if sides == "both" else f", in {label} only"
    of = f" of its {item.group_label}" if item.group_label else ""
    subject = f"{item.values[index]}: {metric.label}"
    if distance is None:
        return f"{subject} is an outlier{only}"
    if ratio is not None:
        return f"{subject} {units.number(ratio, 1 if ratio >= 1.0 else 2)} × the median {item.key}{of}{only}"
    side = "above" if distance > 0.0 else "below"
    return f"{subject} {units.quantity(abs(distance), metric.unit)} {side} the median {item.key}{of}{only}"
