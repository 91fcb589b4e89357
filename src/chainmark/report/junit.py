"""A load test as JUnit XML: a suite a server, a case for each capacity of each endpoint.

Valid by the schema of Jenkins' xunit plugin and by that of Apache Ant's JUnit task, which allows less: properties
belong to suites alone, so that each is named after its case.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit
from xml.etree import ElementTree as Xml

from chainmark.core.load_report import CapacityEntry, EndpointEntry, LoadReport, StepEntry, TargetEntry
from chainmark.core.load_verdict import LoadVerdict, Ruling, rulings
from chainmark.core.qa_report import QaReport
from chainmark.report import load_text as text
from chainmark.report.qa_junit import qa_junit_xml
from chainmark.report.xml_text import clean, timestamp, token


def junit_xml(report: LoadReport | QaReport) -> str:
    """The document for a pipeline; the same document gives the same text.

    A missed capacity is a failure, as is a failed scenario of a qualification. What was not decided (inconclusive,
    generator-limited, interrupted), what was not measured, and what is missed where others are required are skipped,
    with the reason.
    """
    if isinstance(report, QaReport):
        return qa_junit_xml(report)
    root = Xml.Element("testsuites")
    ruled = rulings(report)
    names = _distinct([token(name) for name in text.names_of(report.targets)])
    for number, (target, name) in enumerate(zip(report.targets, names, strict=True)):
        root.append(_suite(report, target, number, name, [one for one in ruled if one.number == number]))
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def _suite(report: LoadReport, target: TargetEntry, number: int, name: str, ruled: Sequence[Ruling]) -> Xml.Element:
    suite = Xml.Element("testsuite")
    properties = Xml.SubElement(suite, "properties")
    for key, value in _properties(report, target):
        Xml.SubElement(properties, "property", name=token(key), value=clean(value))
    endpoints = {endpoint.id: endpoint for endpoint in target.endpoints}
    cases = [_case(name, ruling, endpoints.get(ruling.endpoint)) for ruling in ruled]
    told = {ruling.endpoint for ruling in ruled}
    cases += [_not_measured(name, id_, reason) for id_, reason in target.skipped.items() if id_ not in told]
    if target.interrupted:
        cases.append(_not_measured(name, "whole test", "interrupted; what was measured until then is reported"))
    for case, name_ in zip(cases, _distinct([case.get("name", "") for case in cases]), strict=True):
        case.set("name", name_)
    suite.extend(cases)
    Xml.SubElement(suite, "system-out")
    Xml.SubElement(suite, "system-err").text = clean("\n".join(target.warnings))
    attributes = {
        "name": name,
        "package": token(report.system),
        "id": str(number),
        "timestamp": timestamp(report.started_at),
        "hostname": token(_host(target.url)),
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": "0",
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
        "time": _seconds(target.endpoints),
    }
    suite.attrib.update(attributes)
    return suite


def _case(suite: str, ruling: Ruling, endpoint: EndpointEntry | None) -> Xml.Element:
    steps = [step for step in endpoint.steps if step.kind == ruling.kind or ruling.kind is None] if endpoint else []
    case = Xml.Element(
        "testcase",
        classname=suite,
        name=token(ruling.name),
        time=_duration(steps),
    )
    reason = clean(f"{ruling.name}: {ruling.reason}")
    if ruling.verdict is LoadVerdict.MISSED and ruling.gates:
        Xml.SubElement(case, "failure", type="sla", message=reason).text = reason
    elif ruling.verdict is not LoadVerdict.MET:
        not_asked = "" if ruling.gates else ", not required"
        Xml.SubElement(case, "skipped", message=f"{ruling.verdict.value}{not_asked}: {reason}")
    return case


def _not_measured(suite: str, name: str, reason: str) -> Xml.Element:
    case = Xml.Element("testcase", classname=suite, name=token(name), time="0")
    Xml.SubElement(case, "skipped", message=clean(reason) or "not measured")
    return case


def _properties(report: LoadReport, target: TargetEntry) -> Iterator[tuple[str, str]]:
    """What was tested, then each capacity's figures as "block.clients.p99_s"."""
    yield "title", report.title
    yield "scenario", report.scenario
    yield "profile", report.profile_name
    yield "chainmark", report.tool_version
    yield "url", target.url
    yield "server", f"{target.subject.name} {target.subject.version}"
    yield "run", target.run_id
    if report.corpus_hash:
        yield "corpus_blake3", report.corpus_hash
    for endpoint in target.endpoints:
        for found in endpoint.capacities:
            for name, value in _figures(endpoint, found):
                yield f"{endpoint.id}.{found.kind}.{name}", value


def _figures(endpoint: EndpointEntry, found: CapacityEntry) -> Iterator[tuple[str, str]]:
    best = text.shown_step(endpoint, found)
    figures: dict[str, float | None] = {"capacity": found.capacity, "low": found.low, "high": found.high}
    if best:
        figures |= {"requests": best.due, "p95_s": text.p95_s(best), "p99_s": text.p99_s(best), "failed": best.failed}
        figures |= {"error_share": text.error_share(best), "ok_per_s": best.ok_per_s}
    for name, value in figures.items():
        if value is not None and math.isfinite(value):
            yield name, f"{value:.10g}"
    yield "stopped_by", found.stopped_by
    yield "finding", found.finding
    yield "confirmed", "yes" if found.confirmed else "no"


def _distinct(names: Sequence[str]) -> list[str]:
    """Two cases or suites of one name are one to a pipeline: what makes them equal here gets a number."""
    taken: set[str] = set()
    found = []
    for name in names:
        numbered = (name if number == 1 else f"{name} ({number})" for number in itertools.count(1))
        found.append(next(one for one in numbered if one not in taken))
        taken.add(found[-1])
    return found


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "localhost"
    except ValueError:
        return "localhost"


def _seconds(endpoints: Sequence[EndpointEntry]) -> str:
    return _duration([step for endpoint in endpoints for step in endpoint.steps])


def _duration(steps: Sequence[StepEntry]) -> str:
    """Warm-ups and windows, in seconds."""
    whole = math.fsum(step.warm_up_s + step.window_s for step in steps)
    return f"{whole:.3f}" if math.isfinite(whole) and whole > 0.0 else "0"
