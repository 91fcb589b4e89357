"""JUnit XML for CI servers: valid by the schemas of Jenkins' xunit plugin and of Ant, which is stricter."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

from chainmark.capacity.verdict import rulings
from chainmark.core.load_report import LoadReport
from chainmark.core.verdict import Verdict
from chainmark.report.layouts import document_of

from tests.unit.report.load_samples import LABELS, bare, endpoint, report, target, with_answer

SUITE = {"name", "package", "id", "timestamp", "hostname", "tests", "failures", "errors", "skipped", "time"}
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def parsed(load_report: LoadReport) -> Xml.Element:
    """The document after a check against both schemas."""
    root = Xml.fromstring(document_of(load_report).junit())  # noqa: S314 - our own text
    assert (root.tag, root.attrib) == ("testsuites", {})
    for number, suite in enumerate(root):
        assert suite.tag == "testsuite"
        assert set(suite.attrib) == SUITE
        assert suite.get("id") == str(number)
        assert TIMESTAMP.fullmatch(suite.attrib["timestamp"])
        tags = [child.tag for child in suite]
        cases = suite.findall("testcase")
        assert tags == ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
        assert int(suite.attrib["tests"]) == len(cases)
        assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure"))
        assert int(suite.attrib["skipped"]) == len(suite.findall("testcase/skipped"))
        assert float(suite.attrib["time"]) >= 0.0
        for entry in suite.findall("properties/property"):
            assert set(entry.attrib) == {"name", "value"}
        for case in cases:
            assert set(case.attrib) == {"classname", "name", "time"}
            assert float(case.attrib["time"]) >= 0.0
            assert [child.tag for child in case] in ([], ["failure"], ["skipped"])
            for child in case:
                assert set(child.attrib) <= {"message", "type"}
                assert child.get("message")
    return root


def test_there_is_a_suite_per_server_and_a_case_per_capacity() -> None:
    """Seven endpoints by clients and by rate, and one that the server does not offer."""
    root = parsed(report(target("2.0.0"), target("2.1.0", 0.5)))
    assert [suite.get("name") for suite in root] == ["2.0.0", "2.1.0"]
    assert [suite.get("tests") for suite in root] == ["15", "15"]
    names = [case.get("name") for case in root[0].findall("testcase")]
    assert names[:2] == ["/network/status (clients)", "/network/status (rate)"]
    skipped = root[0].find("testcase[@name='mempool']/skipped")
    assert skipped is not None
    assert "not offered" in skipped.attrib["message"]


def test_failures_and_skips_follow_the_rulings_and_state_the_reason() -> None:
    """Only missed requirements are failures."""
    load_report = report(required={"network_status.clients": 1000.0, "block.clients": 272.0, "block.rate": 1.0})
    root = parsed(load_report)
    verdicts = {ruling.name: ruling.verdict for ruling in rulings(load_report)}
    for case in root[0].findall("testcase"):
        reported = verdicts.get(case.attrib["name"])
        assert (case.find("failure") is not None) is (reported is Verdict.FAIL)
    failure = root[0].find("testcase/failure")
    assert failure is not None
    assert "1000 clients required, but 64 clients clearly missed the SLA (p99)" in failure.attrib["message"]


def test_a_miss_that_is_not_required_is_not_a_failure_if_anything_is_required() -> None:
    """It is shown as skipped, with what was missed."""
    nothing = bare("nothing passed", capacity=0.0, low=0.0, high=1.0, stopped_by="first step")
    both = [endpoint("/block", 64, capacities=[bare()]), endpoint("/mempool", 64, capacities=[nothing])]
    root = parsed(report(target(endpoints=both), required={"block.clients": 64.0}))
    assert root[0].find("testcase/failure") is None
    skipped = root[0].find("testcase[@name='/mempool (clients)']/skipped")
    assert skipped is not None
    assert skipped.attrib["message"].startswith("fail, not required: /mempool (clients): the lowest level")


def test_properties_contain_the_figures() -> None:
    """A pipeline can store the figures without parsing a report."""
    root = parsed(report())
    values = {entry.get("name"): entry.get("value") for entry in root.findall("testsuite/properties/property")}
    assert values["network_status.clients.capacity"] == "60"
    assert values["network_status.clients.high"] == "64"
    assert float(values["network_status.clients.p99_s"] or "nan") <= 1.0
    assert values["block.rate.stopped_by"] == "p99"
    assert len([name for name in values if name and name.endswith(".capacity")]) == 2 * len(LABELS)


def test_characters_invalid_in_xml_do_not_break_the_document() -> None:
    """A server's message may contain anything."""
    answer = bare("nothing passed", capacity=0.0, low=0.0, high=1.0, condition="p99 \x00\x1b[31m<&>\"'")
    strange = with_answer(answer, title="\x0b<b>\ud800", started_at="yesterday")
    root = parsed(strange)
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert "<&>\"'" in failure.attrib["message"]


def test_an_interrupted_test_is_marked_as_interrupted() -> None:
    """A passed document would be wrong if only half of the test ran."""
    root = parsed(report(target(endpoints=[endpoint("/block", 64)], interrupted=True)))
    skipped = root.find("testsuite/testcase[@name='whole test']/skipped")
    assert skipped is not None
    assert "interrupted" in skipped.attrib["message"]
