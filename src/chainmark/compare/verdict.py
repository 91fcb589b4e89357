"""From the outcomes of the metrics to one verdict, with its reasons and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainmark.compare.sides import SelectedRuns
from chainmark.compare.wording import (
    change_with_interval,
    counted,
    enumerated,
    margin_of,
    name_of,
    percent,
)
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement, Outcome, Scale, Verdict
from chainmark.core.manifest import Gate, GateStatus
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


def adjust(judgements: Sequence[Judgement], catalogue: Catalogue) -> list[Judgement]:
    """Correct the p-values for the number of metrics: Holm over the gating ones, Benjamini-Hochberg over the others.

    A gating metric without data counts in its family with p = 1, so that losing a metric never makes a failure easier.

    Args:
        judgements: of all metrics.
        catalogue: for the floors of the diagnostics.
    """
    gating = [index for index, item in enumerate(judgements) if item.gating]
    tested = [index for index, item in enumerate(judgements) if not item.gating and item.p_different is not None]
    worse = holm([1.0 if (p := judgements[index].p_worse) is None else p for index in gating])
    different = benjamini_hochberg([judgements[index].p_different or 0.0 for index in tested])
    result = list(judgements)
    for index, adjusted in zip(gating, worse, strict=True):
        if result[index].p_worse is not None:
            result[index] = result[index].model_copy(update={"p_worse_holm": adjusted})
    for index, adjusted in zip(tested, different, strict=True):
        moved = adjusted <= LEVEL and _beyond_floor(result[index], catalogue)
        result[index] = result[index].model_copy(update={"q_different": adjusted, "moved": moved})
    return result


def is_failure(judgement: Judgement) -> bool:
    """Whether a judgement alone makes the verdict FAIL."""
    adjusted = judgement.p_worse_holm
    return judgement.gating and judgement.outcome is Outcome.WORSE and adjusted is not None and adjusted <= LEVEL


def _margin_words(gating: Sequence[Judgement], catalogue: Catalogue) -> str:
    texts = list(dict.fromkeys(margin_of(item, catalogue.metric(item.metric_id)) for item in gating))
    return f"within {texts[0]}" if len(texts) == 1 else f"within their margins ({', '.join(texts)})"


def _excluded(sides: Sequence[SelectedRuns]) -> list[str]:
    return [
        f"the {side.name}'s run {run_id} is not judged: {reason}"
        for side in sides
        for run_id, reason in side.excluded.items()
    ]


def _warnings(gates: Sequence[Gate]) -> list[str]:
    ids = ("conditions_equal", "one_build_a_side")
    return [f"{gate.label}: {gate.measured}" for gate in gates if gate.status is GateStatus.WARN and gate.id in ids]


def _moved(judgements: Sequence[Judgement], catalogue: Catalogue) -> list[str]:
    diagnostics = [item for item in judgements if not item.gating]
    moved = [item for item in diagnostics if item.moved]
    if not moved:
        return []
    shown = [
        f"{name_of(catalogue, item)} {change_with_interval(item, catalogue.metric(item.metric_id))}"
        for item in sorted(moved, key=lambda item: (item.q_different or 0.0, item.metric_id))[:5]
    ]
    rest = f", and {counted(len(moved) - 5, 'other')}" if len(moved) > 5 else ""
    share = f"{len(moved)} of {counted(len(diagnostics), 'diagnostic metric')} moved (q = 0.05)"
    return [f"{share}: {', '.join(shown)}{rest}"]


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
        return f"to decide {name}, run {counted(item.runs_needed - runs, 'more run')} a side"
    return (
        f"to decide {name}, run {counted(max(runs, 2), 'more run')} a side: its change lies near the margin, "
        f"where more runs are needed than the {item.runs_needed} a side that an equal release needs"
    )


def _power(gating: Sequence[Judgement], catalogue: Catalogue, runs: int) -> list[str]:
    """What this comparison could have seen, from the weakest of its gating metrics."""
    relative = [
        (abs(item.detectable), item) for item in gating if item.detectable is not None and item.scale is Scale.RELATIVE
    ]
    if not relative:
        return []
    size, weakest = max(relative, key=lambda pair: pair[0])
    name = name_of(catalogue, weakest)
    return [
        f"with {counted(runs, 'run')} a side, a worsening of {percent(size, signed=False)} % or more is found with "
        f"80 % power on every gating metric compared by its ratio (the noisiest is {name})"
    ]


def _fewest_runs(baseline: SelectedRuns, candidate: SelectedRuns) -> int:
    return min(len(baseline.included), len(candidate.included))


def _assumed(gating: Sequence[Judgement]) -> list[str]:
    if not any("assumed" in item.noise for item in gating):
        return []
    return ["the noise between runs is assumed, not measured: run at least 3 runs a side, or keep an archive of runs"]


def _failed(failures: Sequence[Judgement], catalogue: Catalogue, labels: tuple[str, str]) -> str:
    return f"{labels[1]} is worse than {labels[0]}: {', '.join(_named_changes(failures, catalogue))}"


def _invalid(gates: Sequence[Gate], sides: Sequence[SelectedRuns], labels: tuple[str, str]) -> Finding:
    failed = [gate for gate in gates if gate.status is GateStatus.FAIL]
    reasons = [f"{gate.label}: {gate.measured}, required {gate.limit}" for gate in failed]
    advice = {
        "workload_equal": "repeat one side with the other's workload, then compare again",
        "window_equal": "analyse both sides over the same window, then compare again",
        "hardware_equal": "repeat one side on the other's hardware class, then compare again",
    }
    default = "repeat the runs that failed a gate, then compare again"
    return Finding(
        verdict=Verdict.INVALID,
        sentence=f"{labels[1]} and {labels[0]} cannot be compared: {enumerated([g.label for g in failed])} not met",
        reasons=[*reasons, *_excluded(sides)],
        advice=list(dict.fromkeys(advice.get(gate.id, default) for gate in failed)),
    )


def _undecided_reasons(gating: Sequence[Judgement], catalogue: Catalogue) -> list[str]:
    reasons = []
    for item in gating:
        metric = catalogue.metric(item.metric_id)
        name, change = name_of(catalogue, item), change_with_interval(item, metric)
        if item.outcome is Outcome.NO_DATA:
            reasons.append(f"{name} has no data ({item.note}): a missing metric is never a pass")
        elif item.outcome is Outcome.WORSE:
            reasons.append(
                f"{name} looks worse, {change}, but not when {counted(len(gating), 'gating metric')} are judged "
                f"together (Holm-adjusted p = {item.p_worse_holm or 0.0:.2g}, required 0.05)"
            )
        elif item.outcome is Outcome.INCONCLUSIVE:
            reasons.append(f"{name} is undecided: {change} reaches past the margin of {margin_of(item, metric)}")
    return reasons


def _passed_reasons(gating: Sequence[Judgement], catalogue: Catalogue) -> list[str]:
    better = [item for item in gating if item.outcome is Outcome.BETTER]
    return [f"better: {', '.join(_named_changes(better, catalogue))}"] if better else []


def _inconclusive_sentence(gating: Sequence[Judgement], catalogue: Catalogue, labels: tuple[str, str]) -> str:
    if not gating:
        return f"{labels[1]} against {labels[0]} is not decided: the catalogue has no gating metric"
    undecided = [item for item in gating if item.outcome not in {Outcome.EQUAL, Outcome.BETTER}]
    names = enumerated([name_of(catalogue, item) for item in undecided])
    return (
        f"{labels[1]} against {labels[0]} is not decided: {len(undecided)} of {counted(len(gating), 'gating metric')} "
        f"could not be shown to be {_margin_words(gating, catalogue)} or better, nor worse: {names}"
        if all(item.margin_high is not None for item in gating)
        else f"{labels[1]} against {labels[0]} is not decided: {len(undecided)} of "
        f"{counted(len(gating), 'gating metric')} could not be judged or decided: {names}"
    )


def _gating_advice(gating: Sequence[Judgement], catalogue: Catalogue, runs: int) -> list[str]:
    advice = [_decide_runs(item, runs, catalogue) for item in gating if item.outcome is Outcome.INCONCLUSIVE]
    missing = [name_of(catalogue, item) for item in gating if item.outcome is Outcome.NO_DATA]
    if missing:
        advice.append(f"find out why {enumerated(missing)} has no data; the runs' books say what was read and skipped")
    if any(item.outcome is Outcome.WORSE and not is_failure(item) for item in gating):
        advice.append(f"run {counted(max(runs, 2), 'more run')} a side to confirm or refute what looks worse")
    return advice


def find(
    judgements: Sequence[Judgement],
    gates: Sequence[Gate],
    sides: tuple[SelectedRuns, SelectedRuns],
    labels: tuple[str, str],
    catalogue: Catalogue,
) -> Finding:
    """The verdict with its sentence, reasons and advice.

    Args:
        judgements: adjusted by `adjust`.
        gates: of the pair.
        sides: baseline and candidate.
        labels: what they are called.
        catalogue: for the names of the metrics.

    Source: docs/concepts/verdict.md, "The verdict".
    """
    if any(gate.status is GateStatus.FAIL for gate in gates):
        return _invalid(gates, sides, labels)
    gating = [item for item in judgements if item.gating]
    runs = _fewest_runs(*sides)
    failures = [item for item in gating if is_failure(item)]
    common = [*_trends(gating, catalogue), *_excluded(sides), *_warnings(gates), *_moved(judgements, catalogue)]
    undecided = _undecided_reasons([item for item in gating if item not in failures], catalogue)
    power = [*_power(gating, catalogue, runs), *_assumed(gating)]
    if failures:
        reasons = [f"worse: {text}" for text in _named_changes(failures, catalogue)]
        advice = ["look at the charts of the worse metrics and at the configuration differences before a repeat"]
        sentence = _failed(failures, catalogue, labels)
        return Finding(Verdict.FAIL, sentence, [*reasons, *undecided, *common], [*advice, *power])
    if gating and all(item.outcome in {Outcome.EQUAL, Outcome.BETTER} for item in gating):
        sentence = (
            f"All {counted(len(gating), 'gating metric')} of {labels[1]} are shown to be "
            f"{_margin_words(gating, catalogue)} of {labels[0]} or better"
        )
        reasons = [f"{counted(len(gating), 'gating metric')} judged by 90 % intervals, none reaches its margin"]
        return Finding(Verdict.PASS, sentence, [*reasons, *_passed_reasons(gating, catalogue), *common], power)
    sentence = _inconclusive_sentence(gating, catalogue, labels)
    advice = _gating_advice(gating, catalogue, runs)
    return Finding(Verdict.INCONCLUSIVE, sentence, [*undecided, *common], [*advice, *power])
