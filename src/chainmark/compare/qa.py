"""The qualification of a release, from the runs of its scenarios to the report and its verdict."""

from __future__ import annotations

from collections.abc import Sequence

from chainmark.compare.builds import all_one_build, title_of
from chainmark.compare.headline import most_telling
from chainmark.compare.inputs import RunData
from chainmark.compare.qa_scenarios import QaRuns, Scenarios
from chainmark.core import units
from chainmark.core.caveats import Caveats, caveats_of
from chainmark.core.manifest import BESIDE, Subject
from chainmark.core.qa_report import (
    QaReport,
    QaScenario,
    VerdictRow,
)
from chainmark.core.verdict import Verdict
from chainmark.core.wording import capitalised, enumerated

# The results of gating scenarios, as the sentence lists them.
_SENTENCE_ORDER = (Verdict.FAIL, Verdict.INVALID, Verdict.INCONCLUSIVE, Verdict.NOT_RUN, Verdict.PASS)
# characters of the checksum of a module with unknown commit, enough to distinguish it
_SHORT_SUM = 16
# characters of a commit, next to the whole one in the table of the compared versions, to leave room for the result
_SHORT_COMMIT = 12


def qa_report(made: QaRuns, history: Sequence[RunData] = ()) -> QaReport:
    """Judge every scenario, and all of them together.

    Args:
        made: the runs.
        history: archived runs, for the noise if a side has one run.

    Returns:
        The content of a report. The same runs give the same bytes.
    """
    maker, rule = Scenarios(made, history), made.second_rule
    scenarios = [maker.judged(scenario) for scenario in made.scenarios]
    verdict, sentence, reasons = overall(scenarios, made.candidate)
    runs = [run.manifest for scenario in made.scenarios for run in scenario.all_runs()]
    date = max((run.started_at for run in runs), default="")[:10]
    comparisons = [scenario.comparison for scenario in scenarios if scenario.comparison]
    builds = all_one_build(comparisons)
    return QaReport(
        tool_version=made.tool_version,
        title=title_of(f"QA of {made.candidate.name}", (made.baseline.version, made.candidate.version), builds),
        system=made.plan.system,
        plan=made.plan.name,
        plan_title=made.plan.title,
        plan_description=made.plan.description,
        experiment=made.experiment,
        seed=made.seed,
        date=date,
        started_at=min((run.started_at for run in runs), default=""),
        ended_at=max((run.ended_at for run in runs), default=""),
        baseline=made.baseline,
        candidate=made.candidate,
        commits=made.commits,
        machine=list(made.machine),
        verdict=verdict,
        sentence=sentence,
        reasons=reasons,
        advice=advice(scenarios, made.experiment),
        notices=notices(scenarios),
        method=method(made, scenarios),
        rows=[verdict_row(scenario, made) for scenario in scenarios],
        scenarios=scenarios,
        second_opinion=rule.verdict([row for scenario in scenarios for row in scenario.second_rule]) if rule else None,
        configuration_differences=[
            difference
            for difference in (comparisons[0].configuration_differences if comparisons else [])
            if difference.is_default_change
        ],
        condition_rows=[
            (
                condition_difference.label,
                condition_difference.baseline,
                condition_difference.candidate,
                condition_difference.explanation,
            )
            for condition_difference in (comparisons[0].condition_differences if comparisons else [])
        ],
        catalogue=made.catalogue,
        caveats=Caveats.joined([caveats_of(runs), builds]),
    )


def overall(scenarios: Sequence[QaScenario], candidate: Subject) -> tuple[Verdict, str, list[str]]:
    """The verdict over the gating scenarios: fail, then invalid, then inconclusive; a pass only if all of them pass."""
    gating = [scenario for scenario in scenarios if scenario.gating]
    named = {result: [scenario for scenario in gating if scenario.result is result] for result in Verdict}
    parts = [
        f"{_predicate(result)} {enumerated([scenario.title for scenario in named[result]])}"
        for result in _SENTENCE_ORDER
        if named[result]
    ]
    sentence = f"{candidate.name} {candidate.version} {'; it '.join(parts)}." if parts else "Nothing was judged."
    reasons = [
        f"{scenario.title}: {reason}"
        for result in _SENTENCE_ORDER
        if result is not Verdict.PASS
        for scenario in named[result]
        for reason in (scenario.reasons or [scenario.sentence])
    ]
    title_of = {scenario.id: scenario.title if len(gating) > 1 else "" for scenario in gating}
    sentence += most_telling([(title_of[part.id], part.result, part.sentence) for part in gating])
    if named[Verdict.FAIL]:
        return Verdict.FAIL, sentence, reasons
    if named[Verdict.INVALID]:
        return Verdict.INVALID, sentence, reasons
    undecided = named[Verdict.INCONCLUSIVE] or named[Verdict.NOT_RUN] or not gating
    return Verdict.INCONCLUSIVE if undecided else Verdict.PASS, sentence, reasons


def _predicate(result: Verdict) -> str:
    """Before the names of scenarios: "passes", "is inconclusive in"."""
    return result.predicate() if result in {Verdict.FAIL, Verdict.PASS} else f"{result.predicate()} in"


def advice(scenarios: Sequence[QaScenario], experiment: str) -> list[str]:
    """The next steps: for gating scenarios that did not pass, for scenarios that did not run, and afterwards."""
    open_ = [scenario for scenario in scenarios if scenario.gating and scenario.result is not Verdict.PASS]
    results = [f"{scenario.title}: {text}" for scenario in open_ for text in scenario.advice]
    lacking: dict[str, list[str]] = {}
    for scenario in scenarios:
        for text in scenario.lacking:
            lacking.setdefault(text, []).append(scenario.title)
    results += [f"to test {enumerated(titles)}, provide {text}" for text, titles in lacking.items()]
    if any(scenario.result is Verdict.INVALID for scenario in scenarios):
        results.append(f"`--resume {experiment}` runs what is still missing")
    return results


def notices(scenarios: Sequence[QaScenario]) -> list[str]:
    """Caveats before any figure."""
    messages = []
    for scenario in scenarios:
        by_reason: dict[str, list[str]] = {}
        for item in scenario.incomparable:
            by_reason.setdefault(item.because, []).append(item.label)
        messages += [
            f"Not comparable: {enumerated(labels)}. {capitalised(because)}. Such a difference does not count "
            "as a regression."
            for because, labels in by_reason.items()
        ]
    for scenario in scenarios:
        if scenario.result is Verdict.NOT_RUN:
            messages.append(
                f"Not run: {scenario.title}. It requires {enumerated(scenario.lacking)}. The result does not cover it."
            )
        if scenario.result is Verdict.INVALID:
            messages.append(f"Invalid: {scenario.title}. {scenario.sentence}")
        messages += [f"Run again: {scenario.title}, {text}." for text in scenario.repeated]
    return list(dict.fromkeys(messages))


def method(made: QaRuns, scenarios: Sequence[QaScenario]) -> list[str]:
    """How the runs were made and judged, and how many of them count."""
    runs = sum(len(scenario.runs) for scenario in scenarios)
    lines = [line for scenario in scenarios for line in scenario.runs]
    failed = sum(line.failed for line in lines)
    invalid = sum(not line.valid for line in lines) - failed
    return [
        f"Plan “{made.plan.name}”: {made.plan.description}",
        f"{units.plural(runs, 'run')} on one machine, each on a fresh network and each sealed with all collected "
        f"data; {_invalid_text(invalid)}{_failed_text(failed)}.",
        "The runs of both versions alternate (A B B A A B …). A slow drift of the machine therefore affects both "
        "equally.",
        *_shared_text(made),
        "Every run is estimated separately. The verdict is based on the differences between runs: the 90 % interval "
        "of each metric is compared with one margin, 10 % or the metric's own if that is larger.",
        f"Seed {made.seed}; a run's seed is this seed plus its position.",
    ]


def _shared_text(made: QaRuns) -> list[str]:
    """Which scenarios' runs were made in parallel, if any were."""
    titles = [
        scenario.plan.title
        for scenario in made.scenarios
        if any(fact.label == BESIDE for runs in scenario.sides.values() for run in runs for fact in run.manifest.facts)
    ]
    if not titles:
        return []
    return [
        f"In {enumerated(titles)}, both sides ran at the same time on this machine. These scenarios test whether and "
        "when something happens, not how fast the network is under load. Their latencies and CPU use are not "
        "comparable with those of a network that has the machine to itself."
    ]


def _invalid_text(invalid: int) -> str:
    if not invalid:
        return "none of them was invalidated by a gate"
    were, are = ("was", "is") if invalid == 1 else ("were", "are")
    return f"{invalid} of them {were} invalidated by a gate and {are} not counted"


def _failed_text(failed: int) -> str:
    if not failed:
        return ""
    return f"; the version under test failed {failed} of them, which counts against it"


def verdict_row(scenario: QaScenario, made: QaRuns) -> VerdictRow:
    """The row of one scenario; a version with its commit, or else with the checksum of its module."""
    candidate = made.candidate
    commit = made.commits[1][:_SHORT_COMMIT] or (candidate.revision or "")[:_SHORT_SUM]
    return VerdictRow(
        scenario=scenario.title,
        date=scenario.date,
        version=f"{candidate.version} ({commit})" if commit else candidate.version,
        result=scenario.result,
        reason=scenario.sentence,
    )
