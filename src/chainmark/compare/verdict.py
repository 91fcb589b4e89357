"""From the outcomes of the metrics to one verdict, with its reasons and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chainmark.compare.judge import Judged
from chainmark.compare.sides import SelectedRuns
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement, Outcome
from chainmark.core.manifest import Gate, GateStatus, failed_gates
from chainmark.core.verdict import Verdict
from chainmark.core.wording import (
    change_with_interval,
    enumerated,
    margin_of,
    name_of,
)
from chainmark.stats.multiple import benjamini_hochberg, holm
from chainmark.stats.power import LEVEL, MOST_RUNS

LEAST_MOVE = 0.02  # a diagnostic that moves by less is not worth a reader's time


@dataclass(frozen=True)
class Finding:
    """The verdict and the words for it."""

    verdict: Verdict
    sentence: str
    reasons: list[str]
    advice: list[str]


def _beyond_floor(judgement: Judgement, catalogue: Catalogue) -> bool:
    base, other = judgement.baseline.value, judgement.candidate.value
    if base is None or other is None:
        return False
    change = abs(other - base)
    return change >= catalogue.metric(judgement.metric_id).floor and change > LEAST_MOVE * abs(base)


def adjust(judged: Sequence[Judged], catalogue: Catalogue) -> list[Judged]:
    """Correct the p-values for the number of metrics: Holm over the gating ones, Benjamini-Hochberg over the others.

    A gating metric without data counts in its family with p = 1, so that losing a metric never makes a failure easier.

    Args:
        judged: of all metrics.
        catalogue: for the floors of the diagnostics.
    """
    result = [item.judgement for item in judged]
    gating = [index for index, item in enumerate(result) if item.gating]
    tested = [index for index, item in enumerate(result) if not item.gating and item.p_different is not None]
    worse = holm([1.0 if (p := result[index].p_worse) is None else p for index in gating])
    different = benjamini_hochberg([result[index].p_different or 0.0 for index in tested])
    for index, adjusted in zip(gating, worse, strict=True):
        if result[index].p_worse is not None:
            result[index] = result[index].model_copy(update={"p_worse_holm": adjusted})
    for index, adjusted in zip(tested, different, strict=True):
        moved = adjusted <= LEVEL and _beyond_floor(result[index], catalogue)
        result[index] = result[index].model_copy(update={"q_different": adjusted, "moved": moved})
    return [replace(item, judgement=judgement) for item, judgement in zip(judged, result, strict=True)]


def is_failure(judgement: Judgement) -> bool:
    """Whether a judgement alone makes the verdict FAIL."""
    adjusted = judgement.p_worse_holm
    return judgement.gating and judgement.outcome is Outcome.WORSE and adjusted is not None and adjusted <= LEVEL


def _margin_words(gating: Sequence[Judgement], catalogue: Catalogue) -> str:
    """Margins in a sentence: the one margin, or how many of the metrics share the commonest."""
    texts = [margin_of(item, catalogue.metric(item.metric_id)) for item in gating if item.margin_high is not None]
    if not texts:
        return "within their margins"
    (commonest, count), *others = Counter(texts).most_common()
    return f"within their margins ({commonest} for {count} of {len(texts)})" if others else f"within {commonest}"


def _own_margins(gating: Sequence[Judgement], catalogue: Catalogue) -> list[str]:
    """The margins that a floor or the catalogue makes different from the commonest one."""
    texts = {
        name_of(catalogue, item): margin_of(item, catalogue.metric(item.metric_id))
        for item in gating
        if item.margin_high is not None
    }
    common = Counter(texts.values()).most_common(1)
    own = [f"{name} {text}" for name, text in texts.items() if text != common[0][0]]
    return [f"margins of their own (from the catalogue's margin or floor): {', '.join(own)}"] if own else []


def _excluded(sides: Sequence[SelectedRuns]) -> list[str]:
    return [
        f"the {side.name}'s run {run_id} is not judged: {reason}"
        for side in sides
        for run_id, reason in side.excluded.items()
    ]


_PROBLEMS = {
    "workload_equal": "the workloads differ",
    "window_equal": "the analysis windows differ",
    "hardware_equal": "the hardware differs",
    "rules_equal": "the sides average by different rules",
    "one_build_a_side": "a side mixes builds",
    "baseline_runs_valid": "too few runs of the baseline are valid",
    "candidate_runs_valid": "too few runs of the candidate are valid",
}


def problem(gate: Gate) -> str:
    """What a gate of the pair that is not met means, in a few words."""
    return _PROBLEMS.get(gate.id, f"{gate.label}: not met")


def _warnings(gates: Sequence[Gate]) -> list[str]:
    mixed = [gate for gate in gates if gate.status is GateStatus.WARN and gate.id == "one_build_a_side"]
    return [f"{problem(gate)}: {gate.measured}" for gate in mixed]


def _trends(gating: Sequence[Judgement], catalogue: Catalogue) -> list[str]:
    return [
        f"{name_of(catalogue, item)} is within its margin, but worse by more than noise: "
        f"{change_with_interval(item, catalogue.metric(item.metric_id))}"
        for item in gating
        if item.trend
    ]


def _named_changes(judgements: Sequence[Judgement], catalogue: Catalogue) -> list[str]:
    return [
        f"{name_of(catalogue, item)} {change_with_interval(item, catalogue.metric(item.metric_id))}"
        for item in judgements
    ]


def _decide_runs(item: Judgement, runs: int, catalogue: Catalogue) -> str:
    name = name_of(catalogue, item)
    if item.runs_needed is None:
        return f"to decide {name}, reduce its noise or widen its margin: {MOST_RUNS} runs a side would not suffice"
    if item.runs_needed > runs:
        return f"to decide {name}, run {units.plural(item.runs_needed - runs, 'more run')} a side"
    return (
        f"to decide {name}, run {units.plural(max(runs, 2), 'more run')} a side: its change lies near the margin, "
        f"where more runs are needed than the {item.runs_needed} a side that an equal release needs"
    )


def _power(judged: Sequence[Judged], catalogue: Catalogue) -> list[str]:
    """How many runs a side would be enough for every gating metric, from the noisiest of them."""
    gating = [item for item in judged if item.judgement.gating and item.judgement.p_worse is not None]
    if not gating:
        return []
    margins = _margin_words([item.judgement for item in gating], catalogue)
    goal = f"to show with 80 % power that an equal release is {margins} on every gating metric"
    hopeless = [name_of(catalogue, item.judgement) for item in gating if item.enough_runs is None]
    if hopeless:
        return [f"{goal}: {MOST_RUNS} runs a side are not enough for {enumerated(hopeless)}"]
    most = max(gating, key=lambda item: item.enough_runs or 0)
    return [
        f"{goal}: {units.plural(most.enough_runs or 0, 'run')} a side suffice "
        f"(the noisiest is {name_of(catalogue, most.judgement)})"
    ]


def _assumed(gating: Sequence[Judgement]) -> list[str]:
    if not any("assumed" in item.noise for item in gating):
        return []
    return ["the noise between runs is assumed, not measured: run at least 3 runs a side, or keep an archive of runs"]


_REMEDIES = {
    "workload_equal": "repeat one side with the other's workload, then compare again",
    "window_equal": "analyse both sides over the same window, then compare again",
    "hardware_equal": "repeat one side on the other's hardware class, then compare again",
    "rules_equal": "analyse one side again by the other's rules, then compare again",
}


def _invalid(gates: Sequence[Gate], sides: Sequence[SelectedRuns], labels: tuple[str, str]) -> Finding:
    failed = failed_gates(gates)
    problems = [f"{problem(gate)} ({gate.measured})" for gate in failed]
    remedy = "repeat the runs that failed a gate, then compare again"
    return Finding(
        verdict=Verdict.INVALID,
        sentence=f"{labels[1]} and {labels[0]} cannot be compared: {enumerated(problems)}",
        reasons=[*(f"{problem(gate)}: {gate.measured}, required {gate.limit}" for gate in failed), *_excluded(sides)],
        advice=list(dict.fromkeys(_REMEDIES.get(gate.id, remedy) for gate in failed)),
    )


def _undecided_reasons(gating: Sequence[Judgement], family: int, catalogue: Catalogue) -> list[str]:
    reasons = []
    for item in gating:
        metric = catalogue.metric(item.metric_id)
        name, change = name_of(catalogue, item), change_with_interval(item, metric)
        if item.outcome is Outcome.NO_DATA:
            reasons.append(f"{name} has no data ({item.note}): a missing metric is never a pass")
        elif item.outcome is Outcome.NOT_COMPARABLE:
            reasons.append(f"{name} is {item.note}")
        elif item.outcome is Outcome.WORSE:
            reasons.append(
                f"{name} looks worse, {change}, but not when {units.plural(family, 'gating metric')} are judged "
                f"together (Holm-adjusted p = {units.probability(item.p_worse_holm or 0.0)}, required 0.05)"
            )
        elif item.outcome is Outcome.INCONCLUSIVE:
            reasons.append(f"{name} is undecided: {change} reaches past the margin of {margin_of(item, metric)}")
    return reasons


def _inconclusive_sentence(gating: Sequence[Judgement], catalogue: Catalogue, labels: tuple[str, str]) -> str:
    start = f"{labels[1]} against {labels[0]} is not decided"
    if not gating:
        return f"{start}: the catalogue has no gating metric"
    undecided = [item for item in gating if item.outcome not in {Outcome.EQUAL, Outcome.BETTER}]
    names = enumerated([name_of(catalogue, item) for item in undecided])
    judged = units.plural(len(gating), "gating metric")
    return f"{start}: of {judged}, {len(undecided)} could not be judged or decided: {names}"


def _gating_advice(gating: Sequence[Judgement], catalogue: Catalogue, runs: int) -> list[str]:
    advice = [_decide_runs(item, runs, catalogue) for item in gating if item.outcome is Outcome.INCONCLUSIVE]
    missing = [name_of(catalogue, item) for item in gating if item.outcome is Outcome.NO_DATA]
    if missing:
        advice.append(f"find out why {enumerated(missing)} has no data; the runs' books say what was read and skipped")
    if any(item.outcome is Outcome.WORSE and not is_failure(item) for item in gating):
        advice.append(f"run {units.plural(max(runs, 2), 'more run')} a side to confirm or refute what looks worse")
    return advice


def find(
    judged: Sequence[Judged],
    gates: Sequence[Gate],
    sides: tuple[SelectedRuns, SelectedRuns],
    labels: tuple[str, str],
    catalogue: Catalogue,
) -> Finding:
    """The verdict with its sentence, reasons and advice.

    Args:
        judged: adjusted by `adjust`.
        gates: of the pair.
        sides: baseline and candidate.
        labels: what they are called.
        catalogue: for the names of the metrics.

    Source: docs/concepts/verdict.md, "The verdict".
    """
    if failed_gates(gates):
        return _invalid(gates, sides, labels)
    judgements = [item.judgement for item in judged]
    gating = [item for item in judgements if item.gating]
    failures = [item for item in gating if is_failure(item)]
    rest = [item for item in gating if item not in failures]
    common = [
        *_undecided_reasons(rest, len(gating), catalogue),
        *_trends(gating, catalogue),
        *_excluded(sides),
        *_warnings(gates),
        *_own_margins(gating, catalogue),
    ]
    power = [*_power(judged, catalogue), *_assumed(gating)]
    runs = min(len(side.included) for side in sides)
    if failures:
        return _failed(failures, common, [*_gating_advice(rest, catalogue, runs), *power], labels, catalogue)
    if gating and all(item.outcome in {Outcome.EQUAL, Outcome.BETTER} for item in gating):
        return _passed(gating, common, power, labels, catalogue)
    sentence = _inconclusive_sentence(gating, catalogue, labels)
    return Finding(Verdict.INCONCLUSIVE, sentence, common, [*_gating_advice(gating, catalogue, runs), *power])


def _failed(
    failures: Sequence[Judgement], common: list[str], advice: list[str], labels: tuple[str, str], catalogue: Catalogue
) -> Finding:
    changes = _named_changes(failures, catalogue)
    first = "look at the charts of the worse metrics and at the configuration differences before any repeat"
    return Finding(
        verdict=Verdict.FAIL,
        sentence=f"{labels[1]} is worse than {labels[0]}: {', '.join(changes)}",
        reasons=[*(f"worse: {text}" for text in changes), *common],
        advice=[first, *advice],
    )


def _passed(
    gating: Sequence[Judgement], common: list[str], advice: list[str], labels: tuple[str, str], catalogue: Catalogue
) -> Finding:
    number = units.plural(len(gating), "gating metric")
    subject = f"All {number}" if len(gating) > 1 else "The only gating metric"
    verb = "are" if len(gating) > 1 else "is"
    better = [item for item in gating if item.outcome is Outcome.BETTER]
    reasons = [f"{number} judged by 90 % intervals, none reaches its margin"]
    reasons += [f"better: {', '.join(_named_changes(better, catalogue))}"] if better else []
    margins = _margin_words(gating, catalogue)
    return Finding(
        verdict=Verdict.PASS,
        sentence=f"{subject} of {labels[1]} {verb} shown to be {margins} of {labels[0]} or better",
        reasons=[*reasons, *common],
        advice=advice,
    )
