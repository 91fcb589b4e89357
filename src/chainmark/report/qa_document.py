"""A qualification as a document: the verdict and what must be known before any figure, then scenario by scenario."""

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
    """A case a scenario. An informational one is shown, not judged."""
    cases = [
        Case(one.id, one.id, one.result, "; ".join(one.reasons) or one.sentence, gates=one.gating)
        for one in report.scenarios
    ]
    properties = [
        ("verdict", report.verdict.value),
        ("baseline", report.baseline.version),
        ("candidate", report.candidate.version),
        ("experiment", report.experiment),
        ("plan", report.plan),
        ("chainmark", report.tool_version),
        *([("old_rule", "fail" if report.second_opinion.fails else "pass")] if report.second_opinion else []),
        *((f"{one.id}.result", one.result.value) for one in report.scenarios),
    ]
    output = [report.sentence, *report.notices]
    return Suite(report.title, cases, properties, started_at=report.started_at, output=output)


def qa_document(report: QaReport) -> Document:
    """Lay out a qualification."""
    sections = [
        Section("verdict", "Verdict", _verdict(report)),
        Section("method", "What was compared, and how", _method(report), closed=True),
        *(section for place in range(len(report.scenarios)) for section in _scenario_sections(report, place)),
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
    told = [*report.reasons, *(f"→ {advice}" for advice in report.advice)]
    if told:
        blocks.append(Remarks("reasons", "Why", told))
    if report.second_opinion:
        told = [report.second_opinion.in_words()]
        blocks.append(Remarks("second-rule-summary", "By the rule of the published reports", told))
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
    """What a scenario shows, and what explains a change for the worse in it."""
    one = report.scenarios[place]
    # Of what passed, the first screen says enough.
    yield Section(f"scenario-{one.id}", one.title, _scenario(report, place), closed=one.result is Verdict.PASS)
    if one.comparison is None:
        return
    for section in why_sections(one.comparison, RowMaker(one.comparison).rows()):
        blocks = [replace(block, id=f"{one.id}-{block.id}") for block in section.blocks]
        yield replace(section, id=f"{one.id}-{section.id}", title=f"{one.title}: {section.title}", blocks=blocks)


def _scenario(report: QaReport, place: int) -> list[Block]:
    one = report.scenarios[place]
    metrics = {metric.id: metric for metric in report.catalogue.metrics}
    about = [one.question, one.method, *_made(one)]
    blocks: list[Block] = [
        Remarks(
            f"{one.id}-about", f"{one.title}: question and method", [" ".join(text.split()) for text in about if text]
        ),
        Remarks(f"{one.id}-result", f"{one.title}: {RESULT_WORDS[one.result]}", [prose(one.sentence), *_reasons(one)]),
    ]
    if one.comparison is not None:
        blocks += [*comparison_table(one, one.comparison), *places_tables(one, one.comparison)]
    if one.beside:
        held = conditions_table(one, report.catalogue.conditions)
        blocks += [beside_table(one, metrics), *([held] if held else [])]
    if one.swept is not None:
        blocks += [replace(block, id=f"{one.id}-{block.id}") for block in one.swept.blocks()]
    blocks += scenario_charts(one, ("scenarios", place))
    blocks += _by_second_rule(one, report.second_opinion, all_rows=False)
    if one.workload:
        blocks.append(facts_table(f"{one.id}-workload", "Network and load", one.workload))
    if one.runs:
        blocks += [runs_table(one), gates_table(one)]
    remarks = [f"{run.run_id}: {text}" for run in one.runs for text in [*run.incidents, *run.warnings]]
    if remarks:
        blocks.append(Remarks(f"{one.id}-remarks", "What to know before believing it", remarks))
    return blocks


def _made(one: QaScenario) -> list[str]:
    settings = f" with {', '.join(one.settings)}" if one.settings else ""
    counted = units.plural(one.repetitions, "run")
    told = [f"Profile {one.profile_name}{settings}; {counted} per side."]
    if one.profile_description:
        without = " without these settings" if one.settings else ""
        told.append(f"The profile{without}: {one.profile_description}.")
    if one.needs:
        told.append(f"It needs {', '.join(one.needs)}.")
    return told


def _reasons(one: QaScenario) -> list[str]:
    if one.result is Verdict.NOT_RUN:
        return []
    return [*one.reasons, *(f"→ {advice}" for advice in one.advice), *(f"Run again: {text}" for text in one.repeated)]


def _second_rule(report: QaReport) -> list[Block]:
    told = report.second_opinion
    if told is None:
        return []
    tables = [block for one in report.scenarios for block in _by_second_rule(one, told, all_rows=True)]
    return [Remarks("second-rule-text", "Both rules", [told.in_words(), *told.about()]), *tables]


def _by_second_rule(one: QaScenario, told: Opinion | None, *, all_rows: bool) -> list[Block]:
    """A scenario's figures by both rules: all of them, or those on which they do not agree."""
    if told is None:
        return []
    title = f"{one.title}: the rule of the published reports next to ours"
    if all_rows:
        found = told.full_table(one.second_rule, f"{one.id}-second-rule", title)
    else:
        found = told.short_table(one.second_rule, f"{one.id}-disagreements", title)
    return [] if found is None else [found]


def _dictionary(report: QaReport) -> list[Block]:
    entries = []
    for metric in gating_metrics(report):
        published = f", published as {metric.published_id}" if metric.published_id else ""
        role = "gating" if metric.gating else "not gating"
        told = f"{' '.join(metric.description.split())} ({role}, {BETTER_WORDS[metric.better]}{published})"
        entries.append(Definition(metric.label, metric.id, told))
    return [Definitions("metrics", "Metrics", entries)] if entries else []
