"""The JUnit document as another implementation reads it: junitparser, which pipelines use to merge and rewrite files.

The reader's own counts must match those of the document, and both must match the load test.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from junitparser import Failure, JUnitXml, Skipped, TestSuite

from chainmark.capacity.verdict import rulings
from chainmark.core.load_report import LoadReport
from chainmark.core.verdict import Verdict
from chainmark.report.layouts import document_of

from tests.unit.report.load_samples import bare, endpoint, report, target, with_answer

MISSED = {"capacity": 0.0, "low": 0.0, "high": 1.0, "stopped_by": "first step"}
UNDECIDED = {"capacity": None, "low": 0.0, "high": None, "stopped_by": "budget"}
LIMITED = {"stopped_by": "generator-limited", "high": None, "condition": None}
SHAPES = {
    "passed": with_answer(bare()),
    "failed": with_answer(bare("nothing passed", **MISSED)),
    "undecided": with_answer(bare("unsettled", **UNDECIDED)),
    "limited by the generator": with_answer(bare("lower bound", **LIMITED)),
    "a requirement missed": with_answer(bare(), required={"block.clients": 1000.0}),
    "a requirement not measured": with_answer(bare(), required={"block.rate": 10.0, "mempool.rate": 1.0}),
    "two servers": report(target("2.0.0"), target("2.1.0", 0.5)),
    "two servers of one name": report(target("2.0.0"), target("2.0.0", 0.5)),
    "interrupted": report(target(endpoints=[endpoint("/block", 64)], interrupted=True)),
    "interrupted before anything": report(target(endpoints=[], skipped={}, interrupted=True)),
    "nothing but what is not offered": report(target(endpoints=[])),
    "names that are one in XML": report(target("a", skipped={"x": "1", "x\n": "2", "": "3", " ": "4"}), target("a ")),
    "nothing at all": report(target(endpoints=[], skipped={})),
}


def _reported(suite: TestSuite) -> tuple[int, int, int, int, float]:
    return suite.tests, suite.failures, suite.errors, suite.skipped, suite.time


def _plain(name: str) -> str:
    """On one line, with a mark for each character that XML cannot contain."""
    held = (
        letter if letter in "\t\n\r" or letter.isprintable() or ord(letter) >= 0x7F else "\ufffd" for letter in name
    )
    return " ".join("".join("\ufffd" if letter in "\ufffe\uffff" else letter for letter in held).split())


def _checked(load_report: LoadReport) -> JUnitXml:
    """Read the document, let the reader count again, and compare with the document and the load test."""
    document = document_of(load_report).junit()
    whole = JUnitXml.fromstring(document.encode())
    suites = list(whole)
    assert len(suites) == len(load_report.targets)
    assert len({suite.name for suite in suites}) == len(suites)
    ruled = rulings(load_report)
    for number, suite in enumerate(suites):
        reported = _reported(suite)
        suite.update_statistics()  # type: ignore[no-untyped-call]
        counted = _reported(suite)
        assert counted[:4] == reported[:4]
        # Searches by clients and by rate share no step, so the cases' times add up to the suite's.
        assert counted[4] == pytest.approx(reported[4], abs=0.005)
        cases = list(suite)
        named = [(case.classname, case.name) for case in cases]
        assert len(set(named)) == len(named), "a pipeline merges two cases with the same name"
        own = [ruling for ruling in ruled if ruling.number == number]
        failing = [case.name for case in cases if any(isinstance(final, Failure) for final in case.result)]
        passing = [case.name for case in cases if not case.result]
        assert failing == [_plain(ruling.name) for ruling in own if ruling.verdict is Verdict.FAIL and ruling.gates]
        assert passing == [_plain(ruling.name) for ruling in own if ruling.verdict is Verdict.PASS]
        assert all(final.message for case in cases for final in case.result if isinstance(final, Failure | Skipped))
        datetime.fromisoformat(suite.timestamp)
    return whole


@pytest.mark.parametrize("shape", SHAPES)
def test_the_reader_counts_match_the_document(shape: str) -> None:
    _checked(SHAPES[shape])


def test_the_shapes_match_their_names() -> None:
    """Otherwise all of them could have the same outcome."""
    counts = {name: (whole.tests, whole.failures, whole.skipped) for name, report in SHAPES.items()
              for whole in [JUnitXml.fromstring(document_of(report).junit().encode())]}  # fmt: skip
    assert counts["passed"] == (2, 0, 1)
    assert counts["failed"] == (2, 1, 1)
    assert counts["undecided"] == (2, 0, 2)
    # Its lowest level passed, and no higher level was requested.
    assert counts["limited by the generator"] == (2, 0, 1)
    assert counts["a requirement missed"][1] == 1
    assert counts["two servers"] == (30, 0, 2)
    assert counts["interrupted"] == (4, 0, 2)
    assert counts["nothing at all"] == (0, 0, 0)


def test_documents_of_several_tests_are_merged() -> None:
    """A pipeline combines the files of all repetitions."""
    junit, other = (_checked(SHAPES[name]) for name in ("passed", "failed"))
    both = junit + other
    both.update_statistics()
    assert (both.tests, both.failures, both.skipped) == (4, 1, 2)


_WORDS = st.text(max_size=8)


@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    names=st.lists(_WORDS, min_size=1, max_size=3),
    skipped=st.dictionaries(_WORDS, _WORDS, max_size=4),
    words=_WORDS,
    changes=st.sampled_from([{}, MISSED, UNDECIDED, LIMITED]),
)
def test_any_server_text_gives_a_valid_document(
    names: list[str], skipped: dict[str, str], words: str, changes: dict[str, Any]
) -> None:
    """Names, reasons and messages come from other systems. None may break the document or change its sums."""
    capacity = bare("nothing passed" if changes is MISSED else "found", **changes)
    entry = endpoint(f"/block{words}", 64, rate=False, capacities=[capacity], steps=[], seconds=[])
    targets = [target(name, endpoints=[entry], skipped=skipped, warnings=[words]) for name in names]
    _checked(report(*targets, title=words, scenario=words))
