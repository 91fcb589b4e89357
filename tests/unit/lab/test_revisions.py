"""The revisions between two revisions: commits of a real repository, and published versions."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from chainmark.core.errors import UsageError
from chainmark.lab.revisions import commits_between, diffstat, versions_between

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """A git command in a repository with one commit, tagged v1."""
    folder = tmp_path / "repo"
    folder.mkdir()
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"]

    def run(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *who, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    run("init", "-q", "-b", "main")
    _commit(run, folder, "first")
    run("tag", "v1")
    return run


def _commit(git: Git, folder: Path, subject: str) -> None:
    name = subject.replace(" ", "-")
    (folder / name).write_text(f"{subject}\nand more\n", encoding="utf-8")
    git("add", name)
    git("commit", "-q", "-m", subject)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return tmp_path / "repo"


def test_commits_are_listed_oldest_first_with_their_details(git: Git, repo: Path) -> None:
    for subject in ("second, with a comma", "third"):
        _commit(git, repo, subject)
    line = commits_between(repo, "v1", "main")
    assert [revision.subject for revision in line.revisions] == ["first", "second, with a comma", "third"]
    last = line.revisions[-1]
    assert last.commit == git("rev-parse", "main")
    assert last.version == f"git:{repo}@{last.commit}"
    assert (last.label, last.author, last.date[:2]) == (last.commit[:9], "Ada", "20")
    assert last.title == f"{last.label} (third)"
    assert line.order == "commits of the main line (first parents)"


def test_inside_a_hook_the_named_repository_is_searched(
    git: Git, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git sets variables for its hooks that make every git command use the repository of the hook."""
    _commit(git, repo, "second")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert [revision.subject for revision in commits_between(repo, "v1", "main").revisions] == ["first", "second"]


def test_a_merged_branch_counts_as_one_revision(git: Git, repo: Path) -> None:
    git("checkout", "-q", "-b", "side")
    _commit(git, repo, "on the side")
    git("checkout", "-q", "main")
    _commit(git, repo, "second")
    git("merge", "-q", "--no-ff", "-m", "merge the side", "side")
    line = commits_between(repo, "v1", "main")
    assert [revision.subject for revision in line.revisions] == ["first", "second", "merge the side"]
    beside = commits_between(repo, "side", "main")
    assert [revision.subject for revision in beside.revisions] == ["on the side", "merge the side"]
    assert "topological" in beside.order


def test_the_changes_of_a_commit_are_shown_in_gits_format(git: Git, repo: Path) -> None:
    _commit(git, repo, "second")
    assert diffstat(repo, "main") == ["second | 2 ++", "1 file changed, 2 insertions(+)"]
    assert diffstat(repo, "v1") == []


def test_an_invalid_range_of_commits_is_refused_with_a_hint(git: Git, repo: Path, tmp_path: Path) -> None:
    git("checkout", "-q", "-b", "side")
    _commit(git, repo, "on the side")
    git("checkout", "-q", "main")
    _commit(git, repo, "second")
    first = git("rev-parse", "v1")[:9]
    cases: list[tuple[Path, str, str, str, str]] = [
        (repo, "main", "v1", "`main` does not come before `v1`", "swap `--good` and `--bad`"),
        (repo, "side", "main", "`side` does not come before `main`", f"try `--good {first}`"),
        (repo, "nothing", "main", "has no commit `nothing`", "git log --oneline"),
        (repo, "v1", "--all", "has no commit `--all`", "git log --oneline"),
        (repo, "main", "HEAD", "are the same commit", "two different commits"),
        (tmp_path, "v1", "main", "is not a Git repository", "--repo PATH"),
        (tmp_path / "none", "v1", "main", "there is no folder", "--repo PATH"),
    ]
    for place, good, bad, message, hint in cases:
        with pytest.raises(UsageError, match=message) as refused:
            commits_between(place, good, bad)
        assert hint in (refused.value.hint or "")


def test_published_versions_are_listed_in_order() -> None:
    published = ["v1.0.0", "v1.0.1-rc1", "v1.0.1", "v1.1.0"]
    line = versions_between("X", published, "v1.0.0", "v1.0.1")
    assert [revision.version for revision in line.revisions] == ["v1.0.0", "v1.0.1-rc1", "v1.0.1"]
    with pytest.raises(UsageError, match="X has no published version `v9`") as unknown:
        versions_between("X", published, "v9", "v1.0.1")
    assert unknown.value.hint == (
        "the newest are v1.1.0, v1.0.1, v1.0.1-rc1; for commits, give the repository: `--repo PATH`"
    )
    with pytest.raises(UsageError, match=r"`v1\.1\.0` does not come before `v1\.0\.0`"):
        versions_between("X", published, "v1.1.0", "v1.0.0")
