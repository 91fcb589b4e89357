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

# Of the sum of a module whose commit nobody tells, as much as tells it from others.
_SHORT_SUM = 16
# Of a commit, beside the whole one in the table of what was compared: it would leave no room for the result.
_SHORT_COMMIT = 12


def qa_report(made: QaRuns, history: Sequence[RunData] = ()) -> QaReport:
    """Judge every scenario, and all of them together.

    Args:
        made: the runs.
        history: archived runs, for the noise where a side has one run.

    Returns:
        Everything that a report shows. The same runs give the same bytes.
    """
    maker, rule = Scenarios(made, history), made.second_rule
    scenarios = [maker.judged(one) for one in made.scenarios]
    verdict, sentence, reasons = overall(scenarios, made.candidate)
    runs = [run.manifest for one in made.scenarios for run in one.all_runs()]
    date = max((run.started_at for run in runs), default="")[:10]
    comparisons = [one.comparison for one in scenarios if one.comparison]
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
        rows=[verdict_row(one, made) for one in scenarios],
        scenarios=scenarios,
        second_opinion=rule.verdict([row for one in scenarios for row in one.second_rule]) if rule else None,
        configuration_differences=[
            one for one in (comparisons[0].configuration_differences if comparisons else []) if one.is_default_change
        ],
        condition_rows=[
            (one.label, one.baseline, one.candidate, one.explanation)
            for one in (comparisons[0].condition_differences if comparisons else [])
        ],
        catalogue=made.catalogue,
        caveats=Caveats.joined([caveats_of(runs), builds]),
    )


def overall(scenarios: Sequence[QaScenario], candidate: Subject) -> tuple[Verdict, str, list[str]]:
    """The verdict over the gating scenarios: fail, then invalid, then inconclusive; a pass only if all of them pass."""
    gating = [one for one in scenarios if one.gating]
    named = {result: [one for one in gating if one.result is result] for result in Verdict}
    words = {
        Verdict.FAIL: "fails",
        Verdict.INVALID: "could not be judged in",
        Verdict.INCONCLUSIVE: "is undecided in",
        Verdict.NOT_RUN: "was not tested in",
        Verdict.PASS: "passes",
    }
    parts = [
        f"{word} {enumerated([one.title for one in named[result]])}" for result, word in words.items() if named[result]
    ]
    sentence = f"{candidate.name} {candidate.version} {'; it '.join(parts)}." if parts else "Nothing was judged."
    reasons = [
        f"{one.title}: {reason}"
        for result in words
        if result is not Verdict.PASS
        for one in named[result]
        for reason in (one.reasons or [one.sentence])
    ]
    sentence += most_telling([(one.title, one.result, one.sentence) for one in gating])
    if named[Verdict.FAIL]:
        return Verdict.FAIL, sentence, reasons
    if named[Verdict.INVALID]:
        return Verdict.INVALID, sentence, reasons
    undecided = named[Verdict.INCONCLUSIVE] or named[Verdict.NOT_RUN] or not gating
    return Verdict.INCONCLUSIVE if undecided else Verdict.PASS, sentence, reasons


def advice(scenarios: Sequence[QaScenario], experiment: str) -> list[str]:
    """What to do next: of the gating scenarios that did not pass, for what was not run, and to go on."""
    open_ = [one for one in scenarios if one.gating and one.result is not Verdict.PASS]
    found = [f"{one.title}: {text}" for one in open_ for text in one.advice]
    lacking = list(dict.fromkeys(text for one in scenarios for text in one.lacking))
    found += [f"what was not run needs {text}" for text in lacking]
    if any(one.result is Verdict.INVALID for one in scenarios):
        found.append(f"`--resume {experiment}` makes what is still missing")
    return found


def notices(scenarios: Sequence[QaScenario]) -> list[str]:
    """What must be known before any figure is read."""
    told = []
    for one in scenarios:
        by_reason: dict[str, list[str]] = {}
        for item in one.incomparable:
            by_reason.setdefault(item.because, []).append(item.label)
        told += [
            f"Not comparable: {enumerated(labels)}. {capitalised(because)}. Such a difference is no regression, and "
            "none is called one."
            for because, labels in by_reason.items()
        ]
    for one in scenarios:
        if one.result is Verdict.NOT_RUN:
            told.append(f"Not run: {one.title}. It needs {enumerated(one.lacking)}. What was not run is not passed.")
        if one.result is Verdict.INVALID:
            told.append(f"Invalid: {one.title}. {one.sentence}")
        told += [f"Run again: {one.title}, {text}." for text in one.repeated]
    return list(dict.fromkeys(told))


def method(made: QaRuns, scenarios: Sequence[QaScenario]) -> list[str]:
    """How the runs were made and judged, and how many of them count."""
    runs = sum(len(one.runs) for one in scenarios)
    lines = [line for one in scenarios for line in one.runs]
    failed = sum(line.failed for line in lines)
    invalid = sum(not line.valid for line in lines) - failed
    return [
        f"Plan “{made.plan.name}”: {made.plan.description}",
        f"{units.plural(runs, 'run')} on one machine, each on a fresh network and each sealed with everything that was "
        f"collected; {_invalid_text(invalid)}{_failed_text(failed)}.",
        "The runs of both versions follow each other in turn (A B B A A B …), so that a slow drift of the machine hits "
        "both alike.",
        *_shared_text(made),
        "Every run is estimated by itself; the verdict rests on the differences between runs, with a 90 % interval "
        "against one margin for each metric: 10 %, or the metric's own where that is larger.",
        f"Seed {made.seed}; a run's seed is that plus its place.",
    ]


def _shared_text(made: QaRuns) -> list[str]:
    """Which scenarios' runs were made two at a time, if any were."""
    titles = [
        one.plan.title
        for one in made.scenarios
        if any(fact.label == BESIDE for runs in one.sides.values() for run in runs for fact in run.manifest.facts)
    ]
    if not titles:
        return []
    return [
        f"Two networks ran at a time in {enumerated(titles)}: there it is asked whether and when something happens, "
        "and not how fast the network is under a load. The two sides of such a scenario ran together. Their latencies "
        "and their use of the processors are not those of a machine without anything else to do."
    ]


def _invalid_text(invalid: int) -> str:
    if not invalid:
        return "none of them was invalid by a gate"
    were, are = ("was", "is") if invalid == 1 else ("were", "are")
    return f"{invalid} of them {were} invalid by a gate and {are} not counted"


def _failed_text(failed: int) -> str:
    if not failed:
        return ""
    was = "was" if failed == 1 else "were"
    return f"; {failed} {was} failed by the version under test, which counts against it"


def verdict_row(one: QaScenario, made: QaRuns) -> VerdictRow:
    """The row of one scenario; a version with its commit, or else with the sum of its module."""
    candidate = made.candidate
    commit = made.commits[1][:_SHORT_COMMIT] or (candidate.revision or "")[:_SHORT_SUM]
    return VerdictRow(
        scenario=one.title,
        date=one.date,
        version=f"{candidate.version} ({commit})" if commit else candidate.version,
        result=one.result,
        reason=one.sentence,
    )
