"""The result of a comparison for each metric, in words and formatted figures, shared by all documents."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from chainmark.core import units
from chainmark.core.comparison import (
    ChartData,
    Comparison,
    DistributionRow,
    EffectSize,
    Judgement,
    MetricAnswer,
    Outcome,
    Scale,
    SideValue,
)
from chainmark.core.metric import Better, Metric
from chainmark.core.verdict import Verdict
from chainmark.core.wording import ChangeText, change_text, half_width, judged_name, margin_of, worse_beyond
from chainmark.report.bars import IntervalBar, interval_bar
from chainmark.report.charts import only_value
from chainmark.report.phrases import Emphasis
from chainmark.report.wording import BETTER_WORDS, NOT_COMPARED, NOT_JUDGED

# "worse" would contradict a verdict that considers all gating metrics together.
WORSE_ALONE = "worse alone, not after correction"
# Outcomes that explain by themselves why there is no change.
_WITHOUT_CHANGE = (Outcome.NO_DATA, Outcome.NOT_COMPARABLE)


@dataclass(frozen=True)
class CentileRow:
    """One statistic of the pooled samples of both sides."""

    name: str
    baseline: str
    candidate: str


@dataclass(frozen=True)
class JudgedRow:
    """One judged (metric, statistic) pair, formatted."""

    anchor: str
    metric_id: str
    metric_label: str
    label: str
    unit: str
    baseline: str
    candidate: str
    change: str  # "−3.9", sign and figure
    change_unit: str  # "%" or the metric's unit
    low: str
    high: str
    interval: str  # "−7.1 … −0.6 %"
    margin: str  # "±10 %"
    outcome: str
    beyond_noise: str  # whether it moved by more than re-running moves it: "yes", "no", "" if nothing was judged
    beyond_margin: str  # whether it is worse than allowed: the same, or "undecided"
    emphasis: Emphasis
    gating: bool
    moved: bool
    is_inside_noise: bool
    is_widened: bool
    bar: IntervalBar | None
    per_run_baseline: list[str]
    per_run_candidate: list[str]
    facts: list[tuple[str, str]]
    centiles: list[CentileRow]
    chart_ids: list[str]
    clearness: float  # the change relative to its interval's width

    @property
    def change_with_unit(self) -> str:
        """The change as one text."""
        return f"{self.change} {self.change_unit}".rstrip()

    @property
    def label_with_unit(self) -> str:
        """The label as a table prints it: "tx latency p50, s"."""
        return f"{self.label}, {self.unit}" if self.unit else self.label


class RowMaker:
    """Turns judgements into rows. Holds the look-ups and the unit of each metric, chosen over all its statistics.

    Args:
        comparison: the comparison.
        beside: comparisons whose figures are in the same rows, so that one unit must fit all.
    """

    def __init__(self, comparison: Comparison, beside: Iterable[Comparison] = ()) -> None:
        self._comparison = comparison
        self._beside = list(beside)
        self._metrics = {metric.id: metric for metric in comparison.catalogue.metrics}
        self._distributions = {(row.metric_id, row.side): row for row in comparison.distributions}
        self._effects = {effect.metric_id: effect for effect in comparison.effect_sizes}
        self._charts: dict[str, list[ChartData]] = {}
        for chart in comparison.charts:
            self._charts.setdefault(chart.metric_id, []).append(chart)
        self._units = self._choose_units()

    def _choose_units(self) -> dict[str, units.DisplayUnit]:
        values: dict[str, list[float | None]] = {}
        for judgement in [item for comparison in [self._comparison, *self._beside] for item in comparison.judgements]:
            values.setdefault(judgement.metric_id, []).extend([judgement.baseline.value, judgement.candidate.value])
        return {
            id_: units.display_unit(self._metrics[id_].unit, value)
            for id_, value in values.items()
            if id_ in self._metrics
        }

    def rows(self) -> list[JudgedRow]:
        """One row per judgement, in the report's order."""
        return [self.row(judgement) for judgement in self._comparison.judgements]

    def row(self, judgement: Judgement) -> JudgedRow:
        """The row of one judgement; in an invalid comparison it states that nothing was judged."""
        row = self._row(judgement)
        if self._comparison.verdict is not Verdict.INVALID or judgement.change is not None:
            return row
        return dataclasses.replace(
            row, change=NOT_COMPARED, interval=units.UNSET, outcome=NOT_JUDGED, emphasis="quiet", margin=""
        )

    def _row(self, judgement: Judgement) -> JudgedRow:
        metric = self._metrics[judgement.metric_id]
        unit = self._units[metric.id]
        decimals = units.decimals_for(
            [unit.of(judgement.baseline.value), unit.of(judgement.candidate.value)], half_width(judgement, unit)
        )
        change = _change(judgement, unit)
        alone = judgement.worse_alone
        no_interval = judgement.low is None and judgement.high is None
        interval = units.NOT_ESTIMABLE if no_interval else f"{change.low} … {change.high} {change.unit}".rstrip()
        return JudgedRow(
            anchor=f"row-{metric.id}-{judgement.statistic}".replace(".", "_"),
            metric_id=metric.id,
            metric_label=metric.label,
            label=judged_name(metric, judgement.statistic),
            unit=unit.symbol,
            baseline=_value(judgement.baseline, unit, decimals),
            candidate=_value(judgement.candidate, unit, decimals),
            change=change.change,
            change_unit=change.unit,
            low=change.low,
            high=change.high,
            interval=judgement.outcome.value if judgement.outcome in _WITHOUT_CHANGE and no_interval else interval,
            margin=_margin(judgement, metric),
            outcome=WORSE_ALONE if alone else _outcome(judgement, metric),
            beyond_noise=_BEYOND_NOISE[judgement.beyond_noise],
            beyond_margin=_beyond_margin(judgement, metric),
            emphasis="caution" if alone else _emphasis(judgement, metric),
            gating=judgement.gating,
            moved=judgement.moved,
            is_inside_noise=_is_inside_noise(judgement),
            is_widened=judgement.worse_beyond is not None,
            bar=interval_bar(judgement),
            per_run_baseline=[_figure(unit.of(value), decimals) for value in judgement.baseline.per_run],
            per_run_candidate=[_figure(unit.of(value), decimals) for value in judgement.candidate.per_run],
            facts=_facts(judgement, metric, self._effects.get(metric.id), unit),
            centiles=self._centiles(metric, unit),
            chart_ids=[chart.id for chart in self._charts.get(metric.id, []) if only_value(chart) is None],
            clearness=judgement.clearness,
        )

    def _centiles(self, metric: Metric, unit: units.DisplayUnit) -> list[CentileRow]:
        baseline = self._distributions.get((metric.id, "baseline"))
        candidate = self._distributions.get((metric.id, "candidate"))
        if baseline is None and candidate is None:
            return []
        left, right = _statistics(baseline), _statistics(candidate)
        names = list(dict.fromkeys([*left, *right]))
        decimals = units.decimals_for([unit.of(left.get("mean")), unit.of(right.get("mean"))])
        rows = [
            CentileRow(name, _figure(unit.of(left.get(name)), decimals), _figure(unit.of(right.get(name)), decimals))
            for name in names
        ]
        nulls = [0 if side is None else side.n_null for side in (baseline, candidate)]
        absent = [CentileRow("without a value", units.count(nulls[0]), units.count(nulls[1]))] if any(nulls) else []
        return [CentileRow("samples", _samples(baseline), _samples(candidate)), *absent, *rows]


def _value(side: SideValue, unit: units.DisplayUnit, decimals: int) -> str:
    if side.value is None:
        return units.NO_DATA if side.samples == 0 else units.NOT_ESTIMABLE
    return _figure(unit.of(side.value), decimals)


def _figure(value: float | None, decimals: int) -> str:
    return units.NOT_ESTIMABLE if value is None else units.number(value, decimals)


def _change(judgement: Judgement, unit: units.DisplayUnit) -> ChangeText:
    """The change, or instead the word why there is none."""
    if judgement.change is not None:
        return change_text(judgement, unit)
    word = judgement.outcome.value if judgement.outcome in _WITHOUT_CHANGE else units.NOT_ESTIMABLE
    return ChangeText(word, "", "", "")


_INSIDE_NOISE = " *"  # after a margin
INSIDE_NOISE_MEANS = "*: the margin is inside the noise. These runs could not even judge an equal release as equal."
WIDENED = " †"  # after a margin and its metric; the table's note explains it


def _margin(judgement: Judgement, metric: Metric) -> str:
    margin = margin_of(judgement, metric)
    text = f"±{margin}" if margin and not margin.startswith(units.MINUS) else margin
    text += WIDENED if judgement.worse_beyond is not None else ""
    return f"{text}{_INSIDE_NOISE}" if _is_inside_noise(judgement) else text


def _is_inside_noise(judgement: Judgement) -> bool:
    return judgement.inside_noise and judgement.gating


_BEYOND_NOISE = {None: "", True: MetricAnswer.YES.value, False: MetricAnswer.NO.value}


def _beyond_margin(judgement: Judgement, metric: Metric) -> str:
    if metric.better is Better.NEITHER or judgement.beyond_margin is None:
        return ""
    return (MetricAnswer.UNDECIDED if judgement.worse_alone else judgement.beyond_margin).value


def _outcome(judgement: Judgement, metric: Metric) -> str:
    if judgement.outcome is Outcome.EQUAL and judgement.trend:
        return "equal, trend"
    if not judgement.gating and metric.better is Better.NEITHER and judgement.outcome not in _WITHOUT_CHANGE:
        return "moved" if judgement.moved else "–"
    return judgement.outcome.value


def _emphasis(judgement: Judgement, metric: Metric) -> Emphasis:
    """The emphasis of a row: a change without meaning is quiet."""
    outcome = judgement.outcome
    if judgement.gating:
        loud: dict[Outcome, Emphasis] = {
            Outcome.WORSE: "worse",
            Outcome.BETTER: "better",
            Outcome.INCONCLUSIVE: "caution",
            Outcome.NO_DATA: "caution",
            Outcome.NOT_COMPARABLE: "caution",
        }
        return loud.get(outcome, "caution" if judgement.trend else "quiet")
    if not judgement.moved:
        return "quiet"
    if metric.better is not Better.NEITHER and outcome in (Outcome.WORSE, Outcome.BETTER):
        return "worse" if outcome is Outcome.WORSE else "better"
    return "plain"


def _facts(
    judgement: Judgement, metric: Metric, effect: EffectSize | None, unit: units.DisplayUnit
) -> list[tuple[str, str]]:
    """The evidence for an outcome, for the interested reader."""
    facts = [("judged by", f"{judgement.statistic}, {BETTER_WORDS[metric.better]}")]
    if margin := _margin(judgement, metric):
        facts.append(("margin", margin))
    if limit := worse_beyond(judgement, metric):
        facts.append(("worse beyond", f"{limit}, the metric's own margin; re-runs alone can exceed it"))
    if judgement.noise:
        freedom = judgement.degrees_of_freedom
        facts.append(
            ("noise", judgement.noise + ("" if freedom is None else f", {units.number(freedom, 1)} degrees of freedom"))
        )
    facts.append(("samples", f"{units.count(judgement.baseline.samples)} + {units.count(judgement.candidate.samples)}"))
    probabilities = (
        ("p, worse than the margin", judgement.p_worse),
        ("p, worse than the margin, for all gating metrics together", judgement.p_worse_adjusted),
        ("p, any change", judgement.p_different),
        ("q, any change (Benjamini-Hochberg)", judgement.q_different),
    )
    facts += [(name, units.probability(value)) for name, value in probabilities if value is not None]
    if judgement.equivalent:
        facts.append(("equivalent", "the whole interval lies within the band"))
    if judgement.trend:
        facts.append(("trend", "statistically worse, although within the margin"))
    if judgement.detectable is not None:
        facts.append(
            (
                "smallest change detectable at this look (80 % power, judged alone)",
                _on_scale(judgement.detectable, judgement, metric),
            )
        )
    facts += _effect_facts(effect, metric)
    if judgement.note:
        facts.append(("note", judgement.note))
    return facts


def _on_scale(value: float, judgement: Judgement, metric: Metric) -> str:
    if judgement.scale is Scale.RELATIVE:
        return units.percent(value)
    return units.quantity(value, metric.unit)


def _effect_facts(effect: EffectSize | None, metric: Metric) -> list[tuple[str, str]]:
    if effect is None:
        return []
    return [
        ("P(candidate's sample larger)", units.number(effect.probability_candidate_larger, 3)),
        ("Wasserstein distance", units.quantity(effect.wasserstein, metric.unit)),
        (
            "largest gap between the CDFs",
            f"{units.number(effect.largest_gap, 3)} at {units.quantity(effect.largest_gap_at, metric.unit)}",
        ),
    ]


def centile_name(fraction: float) -> str:
    """The usual short name of a centile: 0.5 is "p50", 0.999 is "p99.9"."""
    return f"p{units.tidy(fraction * 100.0)}"


def _statistics(row: DistributionRow | None) -> dict[str, float | None]:
    if row is None:
        return {}
    inner = {centile_name(fraction): value for fraction, value in row.centiles if 0.0 < fraction < 1.0}
    return {"mean": row.mean, "sd": row.sd, "min": row.min, **inner, "max": row.max}


def _samples(row: DistributionRow | None) -> str:
    if row is None:
        return units.NO_DATA
    return units.count(row.n)


def moved_text(row: JudgedRow) -> str:
    """A moved diagnostic in a few words: "p2p bytes sent +14.2 %"."""
    return f"{row.label} {row.change_with_unit}"


def ranks_of(rows: Iterable[JudgedRow]) -> dict[str, tuple[bool, bool, float]]:
    """Sort key of a metric: whether it does not decide, did not move, and how little it changed against its noise."""
    ranks: dict[str, tuple[bool, bool, float]] = {}
    for row in rows:
        rank = (not row.gating, not row.moved, -row.clearness)
        ranks[row.metric_id] = min(rank, ranks.get(row.metric_id, rank))
    return ranks
