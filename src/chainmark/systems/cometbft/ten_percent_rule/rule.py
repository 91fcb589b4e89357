"""The published reports' verdict rule, computed next to ours: any difference of more than 10 % is a regression."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from chainmark.compare.qa_scenarios import incomparable_metrics
from chainmark.compare.verdict import is_failure
from chainmark.core import units
from chainmark.core.attachment import OpinionRow
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Comparison, Judgement, Outcome, Scale
from chainmark.core.metric import Better, Metric
from chainmark.core.wording import change_with_interval, judged_name, margin_of
from chainmark.systems.cometbft.ten_percent_rule.results import RuleConcordance, TenPercentRow
from chainmark.systems.cometbft.ten_percent_rule.tables import TenPercentVerdict

OLD_MARGIN = 0.10
_ROUNDING = 1e-12  # of a quotient: 11 is not more than 10 % above 10, although 11 / 10 - 1 is more than 0.1 here


class TenPerCent:
    """The rule, as used by a qualification."""

    def rows(self, comparison: Comparison) -> list[TenPercentRow]:
        """Every judged metric by it and by ours."""
        return ten_percent_rows(comparison)

    def verdict(self, rows: Sequence[OpinionRow]) -> TenPercentVerdict:
        """Its verdict over all of them."""
        return ten_percent_verdict([row for row in rows if isinstance(row, TenPercentRow)])


def relative_change(judgement: Judgement) -> float | None:
    """Candidate / baseline - 1; None if a side has no value or the baseline is 0."""
    base, other = judgement.baseline.value, judgement.candidate.value
    if base is None or other is None or base == 0.0:
        return None
    change = other / base - 1.0
    return change if math.isfinite(change) else None


def ten_percent_rows(comparison: Comparison) -> list[TenPercentRow]:
    """Every judged metric by the ten-per-cent rule and by ours, in the report's order."""
    excused = {item.metric_id: item.because for item in incomparable_metrics(comparison)}
    return [_row(item, comparison.catalogue, excused) for item in comparison.judgements]


def _row(item: Judgement, catalogue: Catalogue, excused: Mapping[str, str]) -> TenPercentRow:
    metric = catalogue.metric(item.metric_id)
    change = relative_change(item)
    old_fails = _old_fails(item, change)
    ours = is_failure(item) or (item.outcome is Outcome.WORSE and item.metric_id not in excused)
    undecided = item.outcome is Outcome.INCONCLUSIVE and metric.better is not Better.NEITHER
    concordance = _concordance(old_fails, ours=ours, undecided=undecided)
    if concordance is not RuleConcordance.NO_DATA and item.metric_id in excused:
        concordance = RuleConcordance.NOT_COMPARABLE
    elif concordance is not RuleConcordance.NO_DATA and item.change is None:
        concordance = RuleConcordance.NOT_JUDGED
    return TenPercentRow(
        metric_id=item.metric_id,
        statistic=item.statistic,
        label=judged_name(metric, item.statistic),
        unit=metric.unit,
        gating=item.gating,
        baseline=item.baseline.value,
        candidate=item.candidate.value,
        change=change,
        old_fails=old_fails,
        outcome=item.outcome.value,
        ours_fails=ours,
        concordance=concordance,
        why=_why(item, metric, concordance, excused),
    )


def _old_fails(item: Judgement, change: float | None) -> bool | None:
    """Literally: a difference counts in either direction. From 0 to something is more than any percentage."""
    if change is not None:
        return abs(change) > OLD_MARGIN + _ROUNDING
    base, other = item.baseline.value, item.candidate.value
    if base is None or other is None:
        return None
    return other != 0.0


def _concordance(old_fails: bool | None, *, ours: bool, undecided: bool) -> RuleConcordance:
    if old_fails is None:
        return RuleConcordance.NO_DATA
    if ours:
        return RuleConcordance.BOTH_FAIL if old_fails else RuleConcordance.ONLY_OURS_FAILS
    if old_fails:
        return RuleConcordance.ONLY_OLD_FAILS
    return RuleConcordance.UNDECIDED if undecided else RuleConcordance.BOTH_PASS


def _why(item: Judgement, metric: Metric, concordance: RuleConcordance, excused: Mapping[str, str]) -> str:
    """The reason if the rules disagree."""
    if concordance is RuleConcordance.NOT_COMPARABLE:
        return f"not comparable: {excused[metric.id]}"
    if concordance is RuleConcordance.ONLY_OURS_FAILS:
        return f"{change_with_interval(item, metric)} is beyond its margin of {margin_of(item, metric)}"
    if concordance is RuleConcordance.UNDECIDED:
        return _noise(item, metric)
    return _why_not(item, metric) if concordance is RuleConcordance.ONLY_OLD_FAILS else ""


def _why_not(item: Judgement, metric: Metric) -> str:
    """Why a difference of more than 10 % cannot fail the candidate."""
    base, other = item.baseline.value or 0.0, item.candidate.value or 0.0
    if metric.better is Better.NEITHER:
        return "neither direction is better: a difference alone is not a regression"
    if (other < base) is (metric.better is Better.LOWER):
        return "the difference is an improvement"
    if abs(other - base) < metric.floor:
        return f"too small to matter: the change is less than {units.tidy_quantity(metric.floor, metric.unit)}"
    return _noise(item, metric)


def _noise(item: Judgement, metric: Metric) -> str:
    """A worsening that is not shown to be beyond the margin."""
    runs = f"{len(item.baseline.per_run)} + {len(item.candidate.per_run)} runs"
    reported = change_with_interval(item, metric)
    if item.low is not None and item.low <= 0.0 <= (item.high or 0.0):
        return f"within the noise of {runs}: {reported} includes no change"
    margin = margin_of(item, metric)
    if item.outcome is Outcome.EQUAL:
        return f"{reported} is within its margin of {margin}"
    reach = ", judged as a difference" if item.scale is not Scale.RELATIVE else ""
    return f"too few runs to decide against its margin of {margin} ({runs}{reach}): {reported}"


def ten_percent_verdict(rows: Sequence[TenPercentRow]) -> TenPercentVerdict:
    """The ten-per-cent rule's verdict over all rows together, and the number of disagreements with ours."""
    judged = [row for row in rows if row.old_fails is not None]
    differing = [row for row in judged if row.old_fails]
    disagreed = [
        row for row in rows if row.concordance in {RuleConcordance.ONLY_OLD_FAILS, RuleConcordance.ONLY_OURS_FAILS}
    ]
    excused = [row for row in differing if row.concordance is RuleConcordance.NOT_COMPARABLE]
    if not judged:
        return TenPercentVerdict(
            fails=False, judged=0, differing=0, disagreements=0, sentence="There were no figures to judge."
        )
    text = (
        f"{len(differing)} of {units.plural(len(judged), 'judged figure')} "
        f"{'differs' if len(differing) == 1 else 'differ'} by more than "
        f"{units.plain_percent(OLD_MARGIN)}, so by the rule of the published reports the release "
        f"{'fails' if differing else 'passes'}; the two rules disagree on {units.plural(len(disagreed), 'figure')}"
    )
    held = f", and {len(excused)} of the differing figures cannot be compared" if excused else ""
    return TenPercentVerdict(
        fails=bool(differing),
        judged=len(judged),
        differing=len(differing),
        disagreements=len(disagreed),
        sentence=f"{text}{held}.",
    )
