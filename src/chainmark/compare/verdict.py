"""From the outcomes of the metrics to one verdict, with its reasons and the next steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chainmark.compare.failures import RunFailures
from chainmark.compare.family import MOST_RUNS, Family
from chainmark.compare.headline import effects, undecided
from chainmark.compare.sides import SelectedRuns
from chainmark.core import units
from chainmark.core.catalogue import Catalogue
from chainmark.core.comparison import Judgement, Outcome
from chainmark.core.manifest import Gate, GateKind, GateStatus, failed_gates
from chainmark.core.verdict import Verdict, worst
from chainmark.core.wording import (
    change_with_interval,
    enumerated,
    margin_of,
    name_of,
)
from chainmark.stats.multiple import benjamini_hochberg

FALSE_DISCOVERIES = 0.05  # the accepted rate among the metrics that are reported as moved
_LOOK_AT_LOGS = "check the logs of the failed runs (`raw/logs` of each) before you repeat them"
_FEW = 5  # gating metrics: with fewer, none may stay undecided
LEAST_MOVE = 0.02  # smaller moves of a diagnostic are not relevant


@dataclass(frozen=True)
class VerdictFinding:
    """The verdict and its words."""

    verdict: Verdict
    sentence: str
    reasons: list[str]
    advice: list[str]


def _with_movement(items: Sequence[Judgement], catalogue: Catalogue) -> list[Judgement]:
    """The judgements with the flag whether each moved by more than the noise of re-runs.

    Among those reported as moved at most one in twenty has not, and of releases without any move at most one in
    twenty has a false one. A change below a metric's floor is irrelevant, and does not count as moved.

    Source: Benjamini and Hochberg (1995).
    """
    tested = [item for item in items if item.p_different is not None]
    adjusted = iter(benjamini_hochberg([item.p_different or 0.0 for item in tested]))
    return [item if item.p_different is None else _movement(item, next(adjusted), catalogue) for item in items]


def _movement(item: Judgement, q: float, catalogue: Catalogue) -> Judgement:
    base, other = item.baseline.value, item.candidate.value
    change = 0.0 if base is None or other is None else abs(other - base)
    is_beyond = q <= FALSE_DISCOVERIES and change > 0.0 and change >= catalogue.metric(item.metric_id).floor
    moved = not item.gating and is_beyond and change > LEAST_MOVE * abs(base or 0.0)
    return item.model_copy(update={"q_different": q, "beyond_noise": is_beyond, "moved": moved})


def adjust(judgements: Sequence[Judgement], family: Family, catalogue: Catalogue) -> list[Judgement]:
    """Correct the p-values for the number of metrics: the gating ones as a family, the others by Benjamini-Hochberg.

    Args:
        judgements: of all metrics.
        family: of those that gate, in order.
        catalogue: for the floors of the diagnostics.
    """
    result = list(judgements)
    gating = [index for index, item in enumerate(result) if item.gating]
    others = [index for index, item in enumerate(result) if not item.gating]
    for index, adjusted in zip(gating, family.adjusted, strict=True):
        results: dict[str, object] = {"p_worse_adjusted": adjusted, "worse_level": family.level}
        if adjusted is not None and adjusted <= family.level:
            results["outcome"] = Outcome.WORSE  # the family may spend more on its last look than a single interval
        result[index] = result[index].model_copy(update=results)
    for indices in (gating, others):
        for index, item in zip(indices, _with_movement([result[i] for i in indices], catalogue), strict=True):
            result[index] = item
    return result


def is_failure(judgement: Judgement) -> bool:
    """Whether a judgement alone makes the verdict FAIL."""
    adjusted = judgement.p_worse_adjusted
    is_worse = judgement.gating and judgement.outcome is Outcome.WORSE
    return is_worse and adjusted is not None and adjusted <= judgement.worse_level


def _margin_words(gating: Sequence[Judgement], catalogue: Catalogue) -> str:
    """Margins in a sentence: the common margin, or how many of the metrics share the most frequent one."""
    texts = [margin_of(item, catalogue.metric(item.metric_id)) for item in gating if item.margin_high is not None]
    if not texts:
        return "within their margins"
    (commonest, count), *others = Counter(texts).most_common()
    wider = sum(item.worse_beyond is not None for item in gating)
    reported = f"; {wider} widened to re-run noise" if wider else ""
    if not others and not wider:
        return f"within {commonest}"
    return f"within their margins ({commonest} for {count} of {len(texts)}{reported})"


@dataclass(frozen=True)
class OwnMargins:
    """The metrics with margins other than the catalogue's in one comparison.

    Attributes:
        ordered: those whose margins were set for it; learnt: of the others, those whose margins were learnt from
            re-runs.
    """

    ordered: frozenset[str] = frozenset()
    learnt: frozenset[str] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        """Both."""
        return self.ordered | self.learnt


CATALOGUE_MARGINS = OwnMargins()


def _margin_notes(gating: Sequence[Judgement], catalogue: Catalogue, own: OwnMargins) -> list[str]:
    """The margins that were set for this comparison, and those with an unusual value from a floor or the catalogue."""
    with_margin = [item for item in gating if item.margin_high is not None]
    texts = {name_of(catalogue, item): margin_of(item, catalogue.metric(item.metric_id)) for item in with_margin}
    ordered, learnt = (
        {name_of(catalogue, item) for item in with_margin if item.metric_id in ids} for ids in (own.ordered, own.learnt)
    )
    wider = {name_of(catalogue, item) for item in with_margin if item.worse_beyond is not None}  # the table states each
    usual = {name: text for name, text in texts.items() if name not in ordered | learnt | wider}
    common = Counter(usual.values()).most_common(1)
    uncommon = {name for name, text in usual.items() if text != common[0][0]}
    from_re_runs = "learnt from re-runs (three standard deviations of the change between re-runs, within the bounds)"
    sources = {
        "set for this comparison": ordered,
        from_re_runs: learnt,
        "of individual metrics (from the catalogue's margin or floor)": uncommon,
    }
    return [
        f"margins {source}: {', '.join(f'{name} {text}' for name, text in texts.items() if name in names)}"
        for source, names in sources.items()
        if names
    ]


def _excluded(sides: Sequence[SelectedRuns]) -> list[str]:
    """Messages about the unusable runs; failed ones have sentences of their own."""
    return [
        f"the {side.name}'s run {run.run_id} is not judged: {side.excluded[run.run_id]}"
        for side in sides
        for run in side.runs
        if run.run_id in side.excluded and run not in side.failed
    ]


def _warned(sides: Sequence[SelectedRuns]) -> list[str]:
    """Events in a side's judged runs that fail nothing but should be known: a node that needed three tries to start."""
    messages = []
    for side in sides:
        measured: dict[str, list[str]] = {}
        for gate in (gate for run in side.included for gate in run.manifest.gates):
            if gate.status is GateStatus.WARN and gate.kind is GateKind.SUBJECT:
                measured.setdefault(gate.label, []).append(gate.measured)
        runs = units.plural(len(side.included), "run")
        messages += [
            f"the {side.name} did not meet in {len(of)} of {runs}: {label} ({of[0]})" for label, of in measured.items()
        ]
    return messages


_PROBLEMS = {
    "workload_equal": "the workloads differ",
    "window_equal": "the analysis windows differ",
    "hardware_equal": "the hardware differs",
    "rules_equal": "the sides use different averaging rules",
    "one_build_a_side": "a side mixes builds",
    "baseline_runs_valid": "too few runs of the baseline are valid",
    "candidate_runs_valid": "too few runs of the candidate are valid",
}


def problem(gate: Gate) -> str:
    """The meaning of an unmet gate of the pair, in a few words."""
    return _PROBLEMS.get(gate.id, f"{gate.label}: not met")


def _warnings(gates: Sequence[Gate]) -> list[str]:
    mixed = [gate for gate in gates if gate.status is GateStatus.WARN and gate.id == "one_build_a_side"]
    return [f"{problem(gate)}: {gate.measured}" for gate in mixed]


def _inside_noise(gating: Sequence[Judgement], catalogue: Catalogue) -> list[str]:
    """The margins that are too narrow for a decision by these runs, whatever they measure."""
    results = [
        f"{name_of(catalogue, item)} {margin_of(item, catalogue.metric(item.metric_id))}"
        for item in gating
        if item.inside_noise
    ]
    if not results:
        return []
    return [
        f"margins smaller than the noise: {', '.join(results)}; even an identical release could not pass "
        "with these runs"
    ]


def _trends(gating: Sequence[Judgement], catalogue: Catalogue) -> list[str]:
    return [
        f"{name_of(catalogue, item)} is within its margin, but worse by more than noise: "
        f"{change_with_interval(item, catalogue.metric(item.metric_id))}"
        for item in gating
        if item.trend
    ]


def _has_words(item: Judgement, catalogue: Catalogue) -> bool:
    metric = catalogue.metric(item.metric_id)
    return bool(metric.rises and metric.falls)


def _named_changes(judgements: Sequence[Judgement], catalogue: Catalogue) -> list[str]:
    return [
        f"{name_of(catalogue, item)} {change_with_interval(item, catalogue.metric(item.metric_id))}"
        for item in judgements
    ]


def _decision_advice(
    gating: Sequence[Judgement], family: Family, runs: int, catalogue: Catalogue
) -> tuple[str, list[str]]:
    """The number of further runs that would decide all gating metrics together: in a few words, and in full."""
    if family.table is None or not any(item.p_worse is not None for item in gating):
        return "", []
    enough = family.table.runs_to_decide()
    if enough is not None:
        more = units.plural(enough - runs, "more run")
        text = f"{more} per side will decide this with 80 % probability, if the noise and the changes are as measured"
        return f"{more} per side would probably decide it", [text]
    noisy = [item for item in gating if item.outcome is Outcome.INCONCLUSIVE]
    widest = sorted(noisy, key=_relative_width, reverse=True)[:2]
    names = enumerated([name_of(catalogue, item) for item in widest])
    margin = "its margin" if len(widest) == 1 else "their margins"
    remedy = f"use a longer load, reduce the noise of {names}, or widen {margin}"
    runs_for_equal = family.table.runs_for_equal()
    return f"more runs alone would not decide it: {remedy}", [
        f"{MOST_RUNS} runs per side would not decide this with 80 % probability: {remedy}",
        # If fewer suffice for an equal release, the result is open because of the changes, not because of the noise.
        *([] if runs_for_equal is None or runs_for_equal <= runs else [_anew(runs_for_equal)]),
    ]


def _anew(runs: int) -> str:
    advice = f"with this noise, {runs} runs per side are required to pass an equal release with 80 % probability"
    return f"{advice}, in a new experiment (`--repeat {runs}`): adding runs to this one has less power"


def _relative_width(item: Judgement) -> float:
    """The width of the interval relative to that of the margin."""
    if item.low is None or item.high is None or not item.margin_high:
        return 0.0
    return (item.high - item.low) / item.margin_high


def _assumed(gating: Sequence[Judgement]) -> list[str]:
    if not any("assumed" in item.noise for item in gating):
        return []
    return [
        "the noise between runs is assumed, not measured: use at least 3 runs per side, or store re-runs of one version"
    ]


_REMEDIES = {
    "workload_equal": "repeat one side with the other's workload, then compare again",
    "window_equal": "analyse both sides over the same window, then compare again",
    "hardware_equal": "repeat one side on the other's hardware class, then compare again",
    "rules_equal": "analyse one side again with the rules of the other, then compare again",
}


def _invalid(gates: Sequence[Gate], sides: Sequence[SelectedRuns], labels: tuple[str, str]) -> VerdictFinding:
    failed = failed_gates(gates)
    problems = [f"{problem(gate)} ({gate.measured})" for gate in failed]
    remedy = "repeat the runs that failed a gate, then compare again"
    advice = list(dict.fromkeys(_REMEDIES.get(gate.id, remedy) for gate in failed))
    return VerdictFinding(
        verdict=Verdict.INVALID,
        sentence=f"{labels[1]} and {labels[0]} cannot be compared: {enumerated(problems)}; {advice[0]}",
        reasons=[*(f"{problem(gate)}: {gate.measured}, required {gate.limit}" for gate in failed), *_excluded(sides)],
        advice=advice,
    )


def _undecided_reasons(gating: Sequence[Judgement], family: int, catalogue: Catalogue) -> list[str]:
    inconclusive = [item for item in gating if item.outcome is Outcome.INCONCLUSIVE]
    open_ = [item for item in inconclusive if item.low is not None]
    reasons = _not_estimable([item for item in inconclusive if item.low is None], catalogue)
    if len(open_) > _FEW:  # the table states the reason for each
        named = enumerated([name_of(catalogue, item) for item in open_])
        reasons.append(
            f"{len(open_)} gating metrics are undecided, because their intervals extend beyond the margin: {named}"
        )
    for item in gating:
        metric = catalogue.metric(item.metric_id)
        name, change = name_of(catalogue, item), change_with_interval(item, metric)
        if item.outcome is Outcome.NO_DATA:
            reasons.append(f"{name} has no data ({item.note}): a missing metric is never a pass")
        elif item.outcome is Outcome.NOT_COMPARABLE:
            reasons.append(f"{name} is {item.note}")
        elif item.outcome is Outcome.WORSE:
            reasons.append(
                f"{name} is worse on its own, {change}, but not when {units.plural(family, 'gating metric')} are "
                f"judged together (adjusted p = {units.probability(item.p_worse_adjusted or 0.0)}, "
                f"required {units.probability(item.worse_level)})"
            )
        elif item in open_ and len(open_) <= _FEW:
            reasons.append(f"{name} is undecided: {change} extends beyond the margin of {margin_of(item, metric)}")
    return reasons


def _not_estimable(items: Sequence[Judgement], catalogue: Catalogue) -> list[str]:
    """Why changes have no interval; metrics with the same reason are named together."""
    named: dict[str, list[str]] = {}
    for item in items:
        named.setdefault(item.note, []).append(name_of(catalogue, item))
    return [
        f"{enumerated(names)} {'is' if len(names) == 1 else 'are'} undecided: {note or 'the change is not estimable'}"
        for note, names in named.items()
    ]


def _may_stay_open(open_: Sequence[Judgement], gating: Sequence[Judgement]) -> bool:
    """Whether a release passes although a gating metric is undecided, which is then named next to the verdict.

    With margins widened by re-runs, one run per side leaves a metric of an unchanged release undecided once in ten
    times: among ten metrics, one by chance alone. It must be the only one, its change must be within its margin,
    and its interval must contain zero.
    """
    if len(open_) > 1 or len(gating) < _FEW:
        return False
    item, limit = open_[0], open_[0].worse_beyond or open_[0].margin_high
    if item.outcome is not Outcome.INCONCLUSIVE or item.low is None or item.high is None or limit is None:
        return False
    return item.low <= 0.0 <= item.high and abs(item.change or 0.0) <= limit


def _missing_advice(gating: Sequence[Judgement], catalogue: Catalogue) -> list[str]:
    missing = [name_of(catalogue, item) for item in gating if item.outcome is Outcome.NO_DATA]
    if not missing:
        return []
    return [f"find out why {enumerated(missing)} has no data; the runs' accounting lists what was read and skipped"]


def find(
    judged: tuple[Sequence[Judgement], Family],
    gates: Sequence[Gate],
    sides: tuple[SelectedRuns, SelectedRuns],
    labels: tuple[str, str],
    catalogue: Catalogue,
    *,
    by_history: bool,
    own: OwnMargins = CATALOGUE_MARGINS,
) -> VerdictFinding:
    """The verdict with its sentence, reasons and advice.

    Args:
        judged: adjusted by `adjust`, and the family of those that gate.
        gates: of the pair.
        sides: baseline and candidate.
        labels: their names.
        catalogue: for the names of the metrics.
        by_history: whether a series of releases shows the noise, and there is always one run per side.
        own: the metrics with margins other than the catalogue's.

    Source: docs/concepts/verdict.md, "The verdict".
    """
    if failed_gates(gates):
        return _invalid(gates, sides, labels)
    judgements, family = judged
    gating = [item for item in judgements if item.gating]
    failures = [item for item in gating if is_failure(item)] or [gating[index] for index in family.together]
    rest = [item for item in gating if item not in failures]
    common = [
        *_undecided_reasons(rest, len(gating), catalogue),
        *_trends(gating, catalogue),
        *_excluded(sides),
        *_warned(sides),
        *_warnings(gates),
        *_margin_notes(gating, catalogue, own),
        *_inside_noise(gating, catalogue),
    ]
    advice = [*_missing_advice(gating, catalogue), *_assumed(gating)]
    if family.is_worse:
        reported = effects(failures, catalogue)
        changes = _named_changes(failures, catalogue)
        return _failed((reported, changes), common, advice, labels, together=bool(family.together))
    open_ = [item for item in gating if item.outcome not in {Outcome.EQUAL, Outcome.BETTER}]
    if gating and (not open_ or (by_history and _may_stay_open(open_, gating))):
        return _passed(gating, common, advice, labels, catalogue)
    next_step, decide = _decision_advice(gating, family, min(len(side.included) for side in sides), catalogue)
    if any("assumed" in item.noise for item in open_):
        next_step = "run each version at least 3 times"
    sentence = undecided(gating, catalogue, labels, next_step)
    return VerdictFinding(Verdict.INCONCLUSIVE, sentence, common, [*decide, *advice])


def without_metrics(finding: VerdictFinding, labels: tuple[str, str]) -> VerdictFinding:
    """The verdict if only failed runs decide: a pass, unless the runs must not be compared at all.

    Args:
        finding: from `find`, without gating metrics.
        labels: baseline and candidate.
    """
    if finding.verdict is Verdict.INVALID:
        return finding
    sentence = f"{labels[1]} passed its runs"
    return VerdictFinding(Verdict.PASS, sentence, ["only failed runs decide here, no metric", *finding.reasons], [])


def with_failures(finding: VerdictFinding, failures: RunFailures) -> VerdictFinding:
    """The verdict of the metrics, joined with that of the runs that the subject failed.

    Sides that must not be compared at all stay invalid. Otherwise the worse of the two verdicts counts, and the failed
    runs come first.

    Args:
        finding: from `find`.
        failures: from `judge_failures`.
    """
    if not failures.sentence:
        return finding
    if finding.verdict is Verdict.INVALID:
        return replace(finding, reasons=[*finding.reasons, failures.sentence, *failures.reasons])
    verdict = worst(filter(None, [finding.verdict, failures.verdict]))
    advice = [_LOOK_AT_LOGS, *finding.advice]
    if failures.verdict is not verdict:  # the metrics decide; the first sentence must mention the failures nevertheless
        sentence = f"{finding.sentence}; however, {failures.sentence}"
        return VerdictFinding(verdict, sentence, [*failures.reasons, *finding.reasons], advice)
    sentence = failures.sentence
    if finding.verdict is Verdict.FAIL:
        sentence = f"{sentence}; and {finding.sentence}"
    return VerdictFinding(verdict, sentence, [*failures.reasons, finding.sentence, *finding.reasons], advice)


def _failed(
    result: tuple[str, list[str]], common: list[str], advice: list[str], labels: tuple[str, str], *, together: bool
) -> VerdictFinding:
    reported, changes = result
    if together:
        reason = f"together these are worse than their margins, although none is on its own: {', '.join(changes)}"
        return VerdictFinding(
            verdict=Verdict.FAIL,
            sentence=f"{labels[1]} is worse than {labels[0]} in at least one of {enumerated(changes)}",
            reasons=[reason, *common],
            advice=advice,
        )
    return VerdictFinding(
        verdict=Verdict.FAIL,
        sentence=f"{labels[1]} is worse than {labels[0]}: {reported}",
        reasons=[*(f"worse: {text}" for text in changes), *common],
        advice=advice,
    )


def _passed(
    gating: Sequence[Judgement], common: list[str], advice: list[str], labels: tuple[str, str], catalogue: Catalogue
) -> VerdictFinding:
    shown = [item for item in gating if item.outcome is not Outcome.INCONCLUSIVE]
    open_metrics = [item for item in gating if item.outcome is Outcome.INCONCLUSIVE]
    number = units.plural(len(gating), "gating metric")
    subject = f"All {number}" if len(gating) > 1 else "The only gating metric"
    subject = f"{len(shown)} of {number}" if open_metrics else subject
    verb = "are" if len(gating) > 1 else "is"
    better = [item for item in gating if item.outcome is Outcome.BETTER]
    none = "none of the others is" if open_metrics else "none is"
    reasons = [f"{number} judged by 90 % intervals adjusted for interim analyses; {none} worse by more than its margin"]
    reasons += [f"better: {', '.join(_named_changes(better, catalogue))}"] if better else []
    margins = _margin_words(shown, catalogue)
    text = f"{subject} of {labels[1]} {verb} shown to be {margins} of {labels[0]} or better"
    if any(_has_words(item, catalogue) for item in better):
        is_whole = len(better) == len(gating)
        where = f" in all {number}" if is_whole and len(gating) > 1 else ""
        text = f"{labels[1]} is better than {labels[0]}{where}: {effects(better, catalogue)}"
        text += "" if is_whole else f"; {subject[0].lower()}{subject[1:]} {verb} shown to be {margins} or better"
    if open_metrics:
        text += f"; undecided within re-run noise: {', '.join(_named_changes(open_metrics, catalogue))}"
    return VerdictFinding(verdict=Verdict.PASS, sentence=text, reasons=[*reasons, *common], advice=advice)
