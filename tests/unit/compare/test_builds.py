"""Detection of an A/A, where both sides are one build. Otherwise noise would be reported as a change of the release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chainmark.compare import compare
from chainmark.compare.builds import SAME_LOGS, is_one_build
from chainmark.core.caveats import A_A, contradicts
from chainmark.core.comparison import Comparison
from chainmark.core.manifest import Configuration, Source, Subject

from tests.unit.compare.synthetic_runs import SyntheticRun, sides


def with_subject(run: SyntheticRun, **subject: Any) -> SyntheticRun:
    """The run with another subject."""
    known = run.manifest.subject.model_dump() | {"binary_sha256": None, "revision": None, "build": None} | subject
    return replace(run, manifest=run.manifest.model_copy(update={"subject": Subject(**known)}))


def judged(baseline: dict[str, Any], candidate: dict[str, Any]) -> Comparison:
    left, right = sides(repetitions=2)
    return compare(
        [with_subject(run, **baseline) for run in left],
        [with_subject(run, **candidate) for run in right],
        tool_version="0",
    )


@pytest.mark.parametrize(
    ("baseline", "candidate", "same"),
    [
        ({"version": "v1", "binary_sha256": "a"}, {"version": "v2", "binary_sha256": "a"}, True),
        ({"version": "v1", "binary_sha256": "a"}, {"version": "v1", "binary_sha256": "b"}, False),
        ({"version": "v1", "revision": "a1"}, {"version": "v2", "revision": "a1"}, True),
        ({"version": "v1", "revision": "a1"}, {"version": "v1", "revision": "b2"}, False),
        ({"version": "v1", "revision": "a1", "build": "ghc 9"}, {"version": "v1", "revision": "a1"}, False),
        ({"version": "v1", "revision": "000"}, {"version": "v2", "revision": "000"}, False),
        ({"version": "v1"}, {"version": "v1"}, True),
        ({"version": "v1"}, {"version": "v2"}, False),
        ({"version": "unversioned"}, {"version": "unversioned"}, False),
        ({"version": "v1", "is_version_unknown": True}, {"version": "v1", "is_version_unknown": True}, False),
        ({"version": "mine", "logged_version": "1.2"}, {"version": "mine", "logged_version": "1.3"}, False),
        ({"version": "mine", "logged_version": "1.2"}, {"version": "theirs", "logged_version": "1.2"}, False),
    ],
)
def test_builds_are_distinguished_by_the_best_available_identity(
    baseline: dict[str, Any], candidate: dict[str, Any], same: bool
) -> None:
    left, right = sides(repetitions=1)
    manifests = [with_subject(left[0], **baseline).manifest, with_subject(right[0], **candidate).manifest]
    assert is_one_build(manifests) is same


def test_a_version_contradicted_by_the_logs_does_not_make_builds_equal() -> None:
    left, right = ([with_subject(run, version="v1") for run in side] for side in sides(repetitions=1))
    mislabelled = right[0].manifest.model_copy(update={"contradictions": ["the logs are of version 9"]})
    assert is_one_build([left[0].manifest, right[0].manifest])
    assert not is_one_build([left[0].manifest, mislabelled])


def test_equal_builds_and_settings_make_the_report_an_aa() -> None:
    left, right = sides(repetitions=2)
    settings = left[0].manifest.configuration
    runs = [
        [
            replace(run, manifest=run.manifest.model_copy(update={"configuration": settings}))
            for run in (with_subject(run, version="v1") for run in side)
        ]
        for side in (left, right)
    ]
    comparison = compare(*runs, tool_version="0")
    assert comparison.title.startswith("A/A: both sides are the same build, ")
    assert A_A in comparison.caveats.badges


def test_one_build_with_two_configurations_is_not_an_aa_and_the_difference_is_stated() -> None:
    left, right = sides(repetitions=1)
    runs = [
        [
            replace(
                with_subject(run, version="v1", binary_sha256="a"),
                manifest=with_subject(run, version="v1", binary_sha256="a").manifest.model_copy(
                    update={"configuration": Configuration(effective={"config.toml": {"mempool.size": size}})}
                ),
            )
            for run in side
        ]
        for side, size in ((left, 1), (right, 2))
    ]
    comparison = compare(*runs, tool_version="0")
    assert A_A not in comparison.caveats.badges
    assert not comparison.title.startswith("A/A")
    assert comparison.caveats.sentences == (
        "both sides are the same build: only its configuration differs, in 1 place",
    )


def made_of(run: SyntheticRun, *logs: tuple[int, str | None]) -> SyntheticRun:
    """The run with other source files, given by size and place."""
    sources = [Source(path="a.log", size_bytes=size, blake3=f"hash of {size}", place=place) for size, place in logs]
    return replace(run, manifest=run.manifest.model_copy(update={"sources": sources}))


def test_relabelled_logs_are_reported_as_an_aa() -> None:
    """Every change would be exactly 0, which looks like two releases with equal performance."""
    left, right = (side[0] for side in sides(repetitions=1))
    first, again = made_of(left, (9, "node-0"), (1, "node-1")), made_of(right, (9, "node-0"))
    comparison = compare([first], [again], tool_version="0")
    assert comparison.caveats.badges == (A_A,)
    assert comparison.caveats.sentences == (SAME_LOGS,)
    assert comparison.title.startswith("A/A: ")


@pytest.mark.parametrize("source", [(9, None), (0, "node-0")])
def test_a_document_of_two_releases_or_an_empty_log_is_not_an_aa(source: tuple[int, str | None]) -> None:
    """A published report contains the figures of both releases, and all empty files are equal."""
    runs = [[made_of(run, source) for run in side] for side in sides(repetitions=1)]
    assert compare(*runs, tool_version="0").caveats.badges == ()


@pytest.mark.parametrize(
    ("baseline", "candidate", "version"),
    [
        ({"version": "10.5.4"}, {"version": "my-branch", "logged_version": "10.5.4"}, "10.5.4"),
        (
            {"version": "a", "logged_version": "10.5.4", "revision": "00"},
            {"version": "b", "logged_version": "10.5.4"},
            "10.5.4",
        ),
        (
            {"version": "a", "logged_version": "10.5.4", "revision": "a1"},
            {"version": "b", "logged_version": "10.5.4"},
            "10.5.4",
        ),
        (
            {"version": "a", "logged_version": "10.5.4", "revision": "a1"},
            {"version": "b", "logged_version": "10.5.4", "revision": "b2"},
            "",
        ),
        (
            {"version": "a", "logged_version": "10.5.4", "build": "ghc 9.6"},
            {"version": "b", "logged_version": "10.5.4"},
            "",
        ),
        ({"version": "a", "logged_version": "10.5.4"}, {"version": "b", "logged_version": "10.6.2"}, ""),
        ({"version": "a", "logged_version": "unversioned"}, {"version": "b", "logged_version": "unversioned"}, ""),
    ],
)
def test_builds_distinguished_only_by_labels_are_reported(
    baseline: dict[str, Any], candidate: dict[str, Any], version: str
) -> None:
    caveats = judged(baseline, candidate).caveats
    expected = (
        f"both sides have version {version} and indistinguishable builds: this may compare a build with itself",
    )
    assert caveats.badges == ()
    assert caveats.sentences == (expected if version else ())


def test_two_releases_are_not_an_aa() -> None:
    comparison = judged({"version": "v1"}, {"version": "v2"})
    assert comparison.caveats.badges == ()


@pytest.mark.parametrize(
    ("label", "measured", "wrong"),
    [
        ("10.6.2", "10.5.4", True),
        ("v1.0.1", "v0.38.17", True),
        ("10.5", "10.5.4", False),
        ("10.5.4-lmdb", "10.5.4", False),
        ("my-branch", "10.5.4", False),
        ("10.5.4", "unknown", False),
    ],
)
def test_a_label_contradicts_a_different_measured_version(label: str, measured: str, wrong: bool) -> None:
    assert contradicts(label, measured) is wrong
