"""Any document as JUnit XML: a suite per server or version, a case for everything that was judged.

Valid by the schemas of Jenkins' xunit plugin and of Apache Ant's JUnit task, which allows less: only suites have
properties, so each figure is named after its case.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from xml.etree import ElementTree as Xml

from chainmark.core.caveats import Caveats
from chainmark.core.verdict import Case, Suite, Verdict
from chainmark.report.xml_text import clean, timestamp, token

_PASSED = (Verdict.PASS, Verdict.INFORMATIONAL)


def junit_xml(suites: Sequence[Suite], kind: str, caveats: Caveats | None = None, date: str = "") -> str:
    """The suites of a document of that kind, for a pipeline; the same suites give the same text.

    A suite that has no time of its own, such as one that was not run, has the document's date. A case that fails and
    gates is a failure. Undecided or unmeasured cases, and those that fail without gating, are skipped, with the reason.
    Caveats are properties of every suite, and the first lines of its output.
    """
    root = Xml.Element("testsuites")
    names = _distinct([token(suite.name) for suite in suites])
    dated = [replace(suite, started_at=suite.started_at or date) for suite in suites]
    for number, (suite, name) in enumerate(zip(dated, names, strict=True)):
        root.append(_suite(kind, _cautioned(suite, caveats or Caveats()), number, name))
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def _cautioned(suite: Suite, caveats: Caveats) -> Suite:
    reported = [("badge", badge) for badge in caveats.badges] + [("caveat", text) for text in caveats.sentences]
    lines = [*caveats.badges, *caveats.sentences]
    return replace(suite, properties=[*reported, *suite.properties], output=[*lines, *suite.output])


def _suite(kind: str, suite: Suite, number: int, name: str) -> Xml.Element:
    element = Xml.Element("testsuite")
    properties = Xml.SubElement(element, "properties")
    for key, value in _properties(suite):
        Xml.SubElement(properties, "property", name=token(key), value=clean(value))
    labels = _distinct([token(case.label) for case in suite.cases])
    cases = [_case(kind, name, label, case) for label, case in zip(labels, suite.cases, strict=True)]
    element.extend(cases)
    Xml.SubElement(element, "system-out").text = clean("\n".join(suite.output))
    Xml.SubElement(element, "system-err").text = clean("\n".join(suite.messages))
    attributes = {
        "name": name,
        "package": token(kind),
        "id": str(number),
        "timestamp": timestamp(suite.started_at),
        "hostname": token(suite.host),
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": "0",
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
        "time": _duration(suite.cases),
    }
    element.attrib.update(attributes)
    return element


def _properties(suite: Suite) -> Iterator[tuple[str, str]]:
    """The tested subject, then each case's figures as "block.clients.p99_s"."""
    yield from suite.properties
    for case in suite.cases:
        for name, value in case.known_figures.items():
            yield f"{case.id}.{name}", value if isinstance(value, str) else f"{value:.10g}"


def _case(kind: str, suite: str, label: str, case: Case) -> Xml.Element:
    element = Xml.Element("testcase", classname=suite, name=label, time=_duration([case]))
    reason = clean(case.reason) or case.verdict.value
    if case.verdict is Verdict.FAIL and case.gates:
        Xml.SubElement(element, "failure", type=kind, message=reason).text = reason
    elif case.verdict not in _PASSED:
        not_required = "" if case.gates else ", not required"
        Xml.SubElement(element, "skipped", message=f"{case.verdict.value}{not_required}: {reason}")
    return element


def _distinct(names: Sequence[str]) -> list[str]:
    """A pipeline merges cases or suites of the same name: duplicates get a number."""
    taken: set[str] = set()
    results = []
    for name in names:
        numbered = (name if number == 1 else f"{name} ({number})" for number in itertools.count(1))
        results.append(next(item for item in numbered if item not in taken))
        taken.add(results[-1])
    return results


def _duration(cases: Sequence[Case]) -> str:
    total = math.fsum(case.seconds for case in cases)
    return f"{total:.3f}" if math.isfinite(total) and total > 0.0 else "0"
