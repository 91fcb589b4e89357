"""The pages of the releases in the shared history: each can be generated, and its text matches its figures."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import chainmark as cm
from chainmark.core.errors import UsageError
from chainmark.core.release_page import ReleasePage, Sentence
from chainmark.core.units import MINUS
from chainmark.core.verdict import Verdict

pytestmark = pytest.mark.shared_data
# The published narratives' names of the parts, in order.
PARTS = ["Set-up", "Observations", "Conclusion"]
TABLES = ["Resource Usage", "Anomaly control", "Forging", "Individual peer propagation", "End-to-end propagation"]
FIRST = ("8.1.2", "8.7.2")  # the first release in the shared history with today's set-up
SHORTEST_COPY = 8  # consecutive words that two independent texts in one field do not have in common


@cache
def page(version: str, store: Path) -> ReleasePage:
    """The page of a release, cached for several tests."""
    document = cm.release("cardano", version, signature=cm.Signature(date="2026-02-16"), store=store)
    assert isinstance(document.result, ReleasePage)
    return document.result


def observed(release_page: ReleasePage) -> list[Sentence]:
    return [
        sentence for chapter in release_page.text if chapter.part == "Observations" for sentence in chapter.sentences
    ]


@pytest.mark.parametrize(
    ("version", "baseline"),
    [("10.6.2", "10.5.4"), ("10.4.1", "10.4.0"), ("10.5.0", "10.4.1"), ("10.2.0", "10.1.4"), ("9.2.0", "9.1.1")],
)
def test_the_baseline_is_the_last_lower_version_with_all_workloads(version: str, baseline: str, history: Path) -> None:
    release_page = page(version, history)
    assert release_page.against[0].comparisons[0].labels == (baseline, version)
    assert release_page.against[0].labels == ["value-only", "plutus"]


def test_every_page_has_the_published_order_and_intervals_for_all_observations(history: Path) -> None:
    versions = sorted({str(version) for version in cm.runs(history)["version"]})
    assert len(versions) >= 20
    for version in versions:
        if version in FIRST:
            with pytest.raises(UsageError, match="no earlier release than"):
                page(version, history)
            continue
        release_page = page(version, history)
        assert list(dict.fromkeys(chapter.part for chapter in release_page.text)) == PARTS
        titles = [chapter.title for chapter in release_page.text if chapter.part == "Observations"]
        assert titles == [title for title in TABLES if title in titles]
        for sentence in observed(release_page):
            if not sentence.text.startswith("Not compared"):
                assert sentence.evidence, sentence.text
                assert " … " in sentence.text
            if "stay within" in sentence.text:
                assert all(evidence.low <= 0.0 <= evidence.high for evidence in sentence.evidence), sentence.text


def test_the_figures_of_10_6_2_match_the_published_report(history: Path) -> None:
    """Half the allocations and a quarter less memory; adoption moved by less than between re-runs."""
    release_page = page("10.6.2", history)
    sentences = {sentence.text.partition(":")[0]: sentence for sentence in observed(release_page)}
    for label in ("RTS alloc rate", "Minor GCs", "Kernel RSS"):
        assert "under value-only it falls from" in sentences[label].text
        assert f"{MINUS}" in sentences[label].text
        assert "an improvement" in sentences[label].text
    assert any("all 8 metrics stay within re-run noise" in sentence.text for sentence in observed(release_page))
    assert release_page.verdict is not Verdict.FAIL
    memory = next(evidence for evidence in sentences["Kernel RSS"].evidence if evidence.workload == "value-only")
    assert memory.low < 6602.5 / 8735.4 - 1.0 < memory.high


def test_no_sentence_is_copied_from_the_narratives(history: Path, shared_data: Path) -> None:
    """The text uses the terms of the field, but its own sentences."""
    published = set()
    for path in sorted((shared_data / "cardano" / "narratives").glob("*.md")):
        words = re.findall(r"\w+", path.read_text(encoding="utf-8").lower())
        published |= {tuple(words[at : at + SHORTEST_COPY]) for at in range(len(words) - SHORTEST_COPY + 1)}
    assert len(published) > 500
    for version in ("10.6.2", "10.5.4"):
        for sentence in (sentence for chapter in page(version, history).text for sentence in chapter.sentences):
            words = re.findall(r"\w+", sentence.text.lower())
            ours = {tuple(words[at : at + SHORTEST_COPY]) for at in range(len(words) - SHORTEST_COPY + 1)}
            assert not ours & published, sentence.text
