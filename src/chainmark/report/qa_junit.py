"""A qualification as JUnit XML: one suite, a case for each scenario; by the same schemas as that of a load test."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as Xml

from chainmark.core.qa_report import QaReport, QaScenario, ScenarioResult
from chainmark.report.xml_text import clean, timestamp, token

_SKIPPED = (ScenarioResult.INCONCLUSIVE, ScenarioResult.INVALID, ScenarioResult.NOT_RUN)


def qa_junit_xml(report: QaReport) -> str:
    """The document for a pipeline; the same document gives the same text.

    A gating scenario that fails is a failure. What was not decided, was invalid or was not run is skipped, with the
    reason; an informational scenario passes.
    """
    cases = [_case(report, one) for one in report.scenarios]
    suite = Xml.Element(
        "testsuite",
        name=token(report.title),
        package=token(report.system),
        id="0",
        timestamp=timestamp(report.started_at),
        hostname="localhost",
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors="0",
        skipped=str(sum(case.find("skipped") is not None for case in cases)),
        time="0",
    )
    properties = Xml.SubElement(suite, "properties")
    for name, value in _properties(report):
        Xml.SubElement(properties, "property", name=token(name), value=clean(value))
    suite.extend(cases)
    Xml.SubElement(suite, "system-out").text = clean("\n".join([report.sentence, *report.notices]))
    Xml.SubElement(suite, "system-err")
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def _case(report: QaReport, one: QaScenario) -> Xml.Element:
    case = Xml.Element("testcase", classname=token(f"{report.system}.{report.plan}"), name=token(one.id), time="0")
    reason = clean("; ".join(one.reasons) or one.sentence)
    if one.result is ScenarioResult.FAIL:
        Xml.SubElement(case, "failure", type="regression", message=reason).text = reason
    elif one.result in _SKIPPED:
        Xml.SubElement(case, "skipped", message=f"{one.result.value}: {reason}")
    return case


def _properties(report: QaReport) -> Iterator[tuple[str, str]]:
    yield "verdict", report.verdict.value
    yield "baseline", report.baseline.version
    yield "candidate", report.candidate.version
    yield "experiment", report.experiment
    yield "plan", report.plan
    yield "chainmark", report.tool_version
    yield "old_rule", "fail" if report.old_verdict.fails else "pass"
    for one in report.scenarios:
        yield f"{one.id}.result", one.result.value
