"""A qualification as a document: the verdict and important caveats before any figure, then scenario by scenario."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from chainmark.core import units
from chainmark.core.attachment import Opinion
from chainmark.core.manifest import Fact
from chainmark.core.qa_report import QaReport, QaScenario
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.report.blocks import Block, Definition, Definitions, Remarks, Section, one_line
from chainmark.report.document import Document
from chainmark.report.judged_rows import RowMaker
from chainmark.report.profile_parts import why_sections
from chainmark.report.qa_charts import scenario_charts
from chainmark.report.qa_tables import (
    RESULT_WORDS,
    beside_table,
    comparison_table,
    conditions_table,
    configuration_table,
    facts_table,
    gates_table,
    gating_metrics,
    places_tables,
    runs_table,
    subjects_table,
    verdict_table,
)
from chainmark.report.wording import BETTER_WORDS, prose


def _suite(report: QaReport) -> Suite:
    """A case per scenario. An informational one is shown, not judged."""
    cases = [
        Case(
            scenario.id,
            scenario.id,
            scenario.result,
            "; ".join(scenario.reasons) or scenario.sentence,
            gates=scenario.gating,
        )
        for scenario in report.scenarios
    ]
    properties = [
        ("verdict", report.verdict.value),
        ("baseline", report.baseline.version),
        ("candidate", report.candidate.version),
        ("experiment", report.experiment),
        ("plan", report.plan),
        ("chainmark", report.tool_version),
        *([("old_rule", "fail" if report.second_opinion.fails else "pass")] if report.second_opinion else []),
        *((f"{scenario.id}.result", scenario.result.value) for scenario in report.scenarios),
    ]
    output = [report.sentence, *report.notices]
    return Suite(report.title, cases, properties, started_at=report.started_at, output=output)


def qa_document(report: QaReport) -> Document:
    """Lay out a qualification."""
    sections = [
        Section("verdict", "Verdict", _verdict(report)),
        Section("method", "What was compared, and how", _method(report), closed=True),
        *(section for index in range(len(report.scenarios)) for section in _scenario_sections(report, index)),
        Section("second-rule", "The rule of the published reports", _second_rule(report)),
        Section("dictionary", "What the metrics mean", _dictionary(report), closed=True),
    ]
    return Document(
        kind="qa",
        title=report.title,
        subtitle=one_line([report.plan_title, f"plan {report.plan}", report.date, report.experiment]),
        verdict=report.verdict,
        word=report.verdict.value.upper(),
        sentence=prose(report.sentence),
        suites=[_suite(report)],
        sections=[section for section in sections if section.blocks],
        notes=[
            f"Made by chainmark {report.tool_version}. Every run is kept: `chainmark runs show RUN` and "
            f"`chainmark compare {report.experiment}-SCENARIO` show more of it.",
        ],
        result=report,
        contents=True,
        is_page=True,
    ).noted_once()


def _verdict(report: QaReport) -> list[Block]:
    blocks: list[Block] = [verdict_table(report)]
    if report.notices:
        blocks.append(Remarks("notices", "Before you read any figure", report.notices))
    messages = [*report.reasons, *(f"→ {advice}" for advice in report.advice)]
    if messages:
        blocks.append(Remarks("reasons", "Why", messages))
    if report.second_opinion:
        messages = [report.second_opinion.in_words()]
        blocks.append(Remarks("second-rule-summary", "By the rule of the published reports", messages))
    return blocks


def _method(report: QaReport) -> list[Block]:
    began = [
        Fact(label="Begun", value=units.utc(report.started_at)),
        Fact(label="Ended", value=units.utc(report.ended_at)),
    ]
    when = began if report.started_at else []
    blocks: list[Block] = [
        subjects_table(report),
        facts_table(
            "machine", "The machine", [*report.machine, *when, Fact(label="Experiment", value=report.experiment)]
        ),
        Remarks("how", "Method", report.method),
    ]
    if report.configuration_differences:
        blocks.append(configuration_table(report))
    return blocks


def _scenario_sections(report: QaReport, place: int) -> Iterator[Section]:
    """The result of a scenario, and explanations of a change for the worse in it."""
    scenario = report.scenarios[place]
    # For a pass, the first screen suffices.
    yield Section(
        f"scenario-{scenario.id}", scenario.title, _scenario(report, place), closed=scenario.result is Verdict.PASS
    )
    if scenario.comparison is None:
        return
    for section in why_sections(scenario.comparison, RowMaker(scenario.comparison).rows()):
        blocks = [replace(block, id=f"{scenario.id}-{block.id}") for block in section.blocks]
        yield replace(
            section, id=f"{scenario.id}-{section.id}", title=f"{scenario.title}: {section.title}", blocks=blocks
        )


def _scenario(report: QaReport, place: int) -> list[Block]:
    scenario = report.scenarios[place]
    metrics = {metric.id: metric for metric in report.catalogue.metrics}
    about = [scenario.question, scenario.method, *_made(scenario)]
    blocks: list[Block] = [
        Remarks(
            f"{scenario.id}-about",
            f"{scenario.title}: question and method",
            [" ".join(text.split()) for text in about if text],
        ),
        Remarks(
            f"{scenario.id}-result",
            f"{scenario.title}: {RESULT_WORDS[scenario.result]}",
            [prose(scenario.sentence), *_reasons(scenario)],
        ),
    ]
    if scenario.comparison is not None:
        blocks += [*comparison_table(scenario, scenario.comparison), *places_tables(scenario, scenario.comparison)]
    if scenario.beside:
        conditions = conditions_table(scenario, report.catalogue.conditions)
        blocks += [beside_table(scenario, metrics), *([conditions] if conditions else [])]
    if scenario.swept is not None:
        blocks += [replace(block, id=f"{scenario.id}-{block.id}") for block in scenario.swept.blocks()]
    blocks += scenario_charts(scenario, ("scenarios", place))
    blocks += _by_second_rule(scenario, report.second_opinion, all_rows=False)
    if scenario.workload:
        blocks.append(facts_table(f"{scenario.id}-workload", "Network and load", scenario.workload))
    if scenario.runs:
        blocks += [runs_table(scenario), gates_table(scenario)]
    remarks = [f"{run.run_id}: {text}" for run in scenario.runs for text in [*run.incidents, *run.warnings]]
    if remarks:
        blocks.append(Remarks(f"{scenario.id}-remarks", "What to know before believing it", remarks))
    return blocks


def _made(scenario: QaScenario) -> list[str]:
    settings = f" with {', '.join(scenario.settings)}" if scenario.settings else ""
    counted = units.plural(scenario.repetitions, "run")
    messages = [f"Profile {scenario.profile_name}{settings}; {counted} per side."]
    if scenario.profile_description:
        without = " without these settings" if scenario.settings else ""
        messages.append(f"The profile{without}: {scenario.profile_description}.")
    if scenario.needs:
        messages.append(f"It needs {', '.join(scenario.needs)}.")
    return messages


def _reasons(scenario: QaScenario) -> list[str]:
    if scenario.result is Verdict.NOT_RUN:
        return []
    return [
        *scenario.reasons,
        *(f"→ {advice}" for advice in scenario.advice),
        *(f"Run again: {text}" for text in scenario.repeated),
    ]


def _second_rule(report: QaReport) -> list[Block]:
    second_opinion = report.second_opinion
    if second_opinion is None:
        return []
    tables = [
        block for scenario in report.scenarios for block in _by_second_rule(scenario, second_opinion, all_rows=True)
    ]
    return [Remarks("second-rule-text", "Both rules", [second_opinion.in_words(), *second_opinion.about()]), *tables]


def _by_second_rule(scenario: QaScenario, opinion: Opinion | None, *, all_rows: bool) -> list[Block]:
    """A scenario's figures by both rules: all of them, or those on which the rules disagree."""
    if opinion is None:
        return []
    title = f"{scenario.title}: the rule of the published reports next to ours"
    if all_rows:
        result = opinion.full_table(scenario.second_rule, f"{scenario.id}-second-rule", title)
    else:
        result = opinion.short_table(scenario.second_rule, f"{scenario.id}-disagreements", title)
    return [] if result is None else [result]


def _dictionary(report: QaReport) -> list[Block]:
    entries = []
    for metric in gating_metrics(report):
        published = f", published as {metric.published_id}" if metric.published_id else ""
        role = "gating" if metric.gating else "not gating"
        text = f"{' '.join(metric.description.split())} ({role}, {BETTER_WORDS[metric.better]}{published})"
        entries.append(Definition(metric.label, metric.id, text))
    return [Definitions("metrics", "Metrics", entries)] if entries else []
