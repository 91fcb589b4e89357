"""Differences between two builds come from the stored runs. Unknown differences are reported as unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chainmark.compare.build_differences import COMMITS_SHOWN, build_differences
from chainmark.core.build import Build, BuildDifferences, Commit

from tests.unit.compare.synthetic_runs import SyntheticRun, sides


@dataclass
class Retained(SyntheticRun):
    """A run that stores how its subject was built."""

    build: Build | None = None

    def document(self, name: str) -> dict[str, Any] | None:
        """The build."""
        return self.build.model_dump(mode="json") if self.build is not None and name == "build" else None


def differences(left: Build, right: Build) -> BuildDifferences:
    runs = [side[0] for side in sides(repetitions=1)]
    with_builds = [Retained(**vars(run), build=build) for run, build in zip(runs, (left, right), strict=True)]
    builds = build_differences(*with_builds)
    assert builds is not None
    return builds


def line(length: int, name: str = "c", *, since: tuple[Commit, ...] = (), most: int = 300) -> Build:
    """A build of a line of commits: c1, c2, … on top of ``since``."""
    commits = list(reversed(since))
    for number in range(1, length + 1):
        parents = [commits[-1].id] if commits else []
        commits.append(Commit(id=f"{name}{number}", parents=parents, subject=f"Change {name}{number}"))
    newest_last = tuple(reversed(commits))
    return Build(ordered=name, commit=newest_last[0].id, commits=list(newest_last[:most]), ancestry=len(newest_last))


def test_runs_without_build_information_show_no_build_differences() -> None:
    left, right = sides(repetitions=1)
    assert build_differences(left[0], right[0]) is None


def test_the_commits_after_the_baseline_are_those_of_the_candidate() -> None:
    builds = differences(line(3), line(5))
    assert [commit.id for commit in builds.added] == ["c5", "c4"]
    assert (builds.removed, builds.unknown_reason) == ([], "")
    back = differences(line(5), line(3))
    assert [commit.id for commit in back.removed] == ["c5", "c4"]
    assert back.added == []


def test_two_branches_have_commits_of_their_own() -> None:
    base = tuple(line(4).commits)
    builds = differences(line(1, "left", since=base), line(2, "right", since=base))
    assert [commit.id for commit in builds.added] == ["right2", "right1"]
    assert [commit.id for commit in builds.removed] == ["left1"]
    assert builds.unknown_reason == ""


def test_a_long_log_is_truncated_and_the_rest_counted() -> None:
    builds = differences(line(1), line(101))
    assert len(builds.added) == COMMITS_SHOWN
    assert builds.added_in_all == 100


def test_a_truncated_history_is_reported() -> None:
    """A truncated log that looks complete would exonerate the missing commit."""
    apart = differences(line(500, most=20), line(600, most=20))
    assert apart.added == []
    assert "their last 20 commits have none in common" in apart.unknown_reason
    base = Commit(id="base")
    merged = Commit(id="left", parents=["base", "side5"])  # merges five commits, more than the run stores
    left = Build(ordered="left", commit="left", commits=[merged, base], ancestry=7)
    branched = [Commit(id="right", parents=["base", "side3"]), base, Commit(id="side3", parents=["side2"])]
    cut = differences(left, Build(ordered="right", commit="right", commits=branched, ancestry=5))
    assert "are too short" in cut.unknown_reason


def test_modules_settings_and_compiler_are_shown_together() -> None:
    left = Build(ordered="v1", toolchain="go1.25", modules={"a": "v1", "b": "v1"}, settings={"CGO_ENABLED": "1"})
    right = Build(ordered="v2", toolchain="go1.26", modules={"a": "v1", "b": "v2", "c": "v1"})
    builds = differences(left, right)
    assert builds.modules == [("b", "v1", "v2"), ("c", "", "v1")]
    assert builds.shared_modules == 1
    assert ("compiler", "go1.25", "go1.26") in builds.facts
    assert ("CGO_ENABLED", "1", "—") in builds.facts
