"""All output of chainmark is stored: a review shows every sentence that changes or disappears."""

from __future__ import annotations

import difflib
import json
from xml.etree import ElementTree as Xml

import pytest

from tests.golden.inputs import DOCUMENTS
from tests.golden.outputs import RETAINED, outputs

# The first of these tests runs all commands of one width.
pytestmark = pytest.mark.timeout(900)

MADE = outputs()
HINT = "`make golden` rewrites the kept files; look at their difference before it is committed"


@pytest.mark.parametrize("name", sorted(MADE))
def test_the_output_matches_the_stored_one(name: str) -> None:
    path = RETAINED / name
    assert path.is_file(), f"{name} is not stored yet\n{HINT}"
    old, new = path.read_bytes().decode(), MADE[name]()
    if old != new:
        before, after = (text.splitlines(keepends=True) for text in (old, new))
        differences = "".join(difflib.unified_diff(before, after, f"kept/{name}", "as it is now"))
        pytest.fail(f"{differences}\n{HINT}", pytrace=False)


def test_every_stored_file_is_compared() -> None:
    """A file that nothing generates any more would look as if it were tested."""
    names = {path.relative_to(RETAINED).as_posix() for path in RETAINED.rglob("*") if path.is_file()}
    assert sorted(names - set(MADE)) == [], HINT


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_json_of_every_document_has_its_verdict_and_the_cases_of_its_junit(name: str) -> None:
    """A pipeline that reads the JSON must learn what one that reads JUnit or the exit code learns."""
    document = DOCUMENTS[name]()
    content = document.plain()
    assert content == json.loads(document.json)
    assert content["verdict"] == document.verdict.value
    suites = Xml.fromstring(document.junit())  # noqa: S314 - our own
    assert len(content["suites"]) == len(suites)
    for suite, element in zip(content["suites"], suites, strict=True):
        assert len(suite["cases"]) == int(element.attrib["tests"])
        failed = [case for case in suite["cases"] if case["verdict"] == "fail" and case["gates"]]
        assert len(failed) == int(element.attrib["failures"])
        properties = {item.attrib["name"] for item in element.iter("property")}
        assert {f"{case['id']}.{figure}" for case in suite["cases"] for figure in case["figures"]} <= properties
        assert set(suite["properties"]) <= properties
