"""The revisions between a good and a bad one: commits of a git repository, or published versions of a system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chainmark.core.bisect_report import Revision
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.wording import some_of
from chainmark.lab.git import git

_SHORT = 9
_FIELD, _RECORD = "\x1f", "\x1e"
_FORMAT = _FIELD.join(("%H", "%an", "%cI", "%s")) + _RECORD
_STAT_WIDTH = "100"


@dataclass(frozen=True)
class RevisionLine:
    """Revisions in historical order, the good one first, and how they were listed."""

    revisions: Sequence[Revision]
    order: str


def commits_between(repo: Path, good: str, bad: str) -> RevisionLine:
    """The commits from the good one to the bad one.

    Those of the main line are used (first parents), so that a merged branch is one revision. If the good commit is not
    on it, all commits that lead from it to the bad one are used, in topological order.

    Args:
        repo: a checkout, or a folder in one.
        good, bad: any name of a commit.

    Raises:
        UsageError: that is not a repository, it has no such commit, or the good one is not an ancestor of the bad one.
        EnvironmentFailure: git is not installed, or it failed.
    """
    if _git(repo, "rev-parse", "--git-dir").returncode != 0:
        raise UsageError(f"{repo} is not a Git repository", "give the checkout: `--repo PATH`")
    first, last = _commit(repo, good), _commit(repo, bad)
    if first == last:
        raise UsageError(f"`{good}` and `{bad}` are the same commit, {first[:_SHORT]}", "give two different commits")
    if _git(repo, "merge-base", "--is-ancestor", first, last).returncode != 0:
        raise UsageError(f"`{good}` does not come before `{bad}` in {repo}", _common(repo, first, last))
    line, order = _listed(repo, "--first-parent", f"{first}..{last}"), "commits of the main line (first parents)"
    parents = _output(repo, "rev-list", "--first-parent", last).split()
    if first not in parents:
        line = _listed(repo, "--topo-order", "--ancestry-path", f"{first}..{last}")
        order = "commits between the two, in topological order"
    return RevisionLine([*_listed(repo, "--max-count=1", first), *line], order)


def diffstat(repo: Path, commit: str) -> list[str]:
    """The changes of a commit from its first parent, as ``git diff --stat`` prints them; "" if that fails.

    Args:
        repo: a checkout.
        commit: its ID.
    """
    item = _git(repo, "diff", f"--stat={_STAT_WIDTH}", f"{commit}^1", commit)
    return [line.strip() for line in item.stdout.splitlines()]


def versions_between(title: str, published: Sequence[str], good: str, bad: str) -> RevisionLine:
    """The published versions from the good one to the bad one.

    Args:
        title: of the system.
        published: all of them, sorted.
        good, bad: two of them.

    Raises:
        UsageError: one is not published, or the good one does not come before the bad one.
    """
    for version in (good, bad):
        if version not in published:
            newest = some_of(list(reversed(published[-3:])), 3) or "none"
            raise UsageError(
                f"{title} has no published version `{version}`",
                f"the newest are {newest}; for commits, give the repository: `--repo PATH`",
            )
    begin, end = published.index(good), published.index(bad)
    if begin >= end:
        raise UsageError(
            f"`{good}` does not come before `{bad}` among the versions of {title}", "swap `--good` and `--bad`"
        )
    line = [Revision(version=version, label=version) for version in published[begin : end + 1]]
    return RevisionLine(line, "published versions, by version number")


@dataclass(frozen=True)
class _GitResult:
    """The exit code and the output of a git command."""

    returncode: int
    stdout: str
    stderr: str


def _listed(repo: Path, *arguments: str) -> list[Revision]:
    """Commits, the oldest first."""
    records = _output(repo, "log", "--reverse", f"--format={_FORMAT}", *arguments).split(_RECORD)
    results = [record.strip("\n").split(_FIELD) for record in records if record.strip()]
    return [
        Revision(
            version=f"git:{repo.resolve()}@{commit}",
            label=commit[:_SHORT],
            subject=subject,
            commit=commit,
            author=author,
            date=date,
        )
        for commit, author, date, subject in results
    ]


def _commit(repo: Path, name: str) -> str:
    item = _git(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if item.returncode != 0:
        raise UsageError(
            f"{repo} has no commit `{name}`", "`git log --oneline` lists the commits; the clone may be shallow"
        )
    return item.stdout.strip()


def _common(repo: Path, first: str, last: str) -> str:
    if _git(repo, "merge-base", "--is-ancestor", last, first).returncode == 0:
        return "swap `--good` and `--bad`"
    common = _git(repo, "merge-base", first, last).stdout.strip()
    return f"both come after {common[:_SHORT]}: try `--good {common[:_SHORT]}`" if common else "they share no history"


def _output(repo: Path, *arguments: str) -> str:
    item = _git(repo, *arguments)
    if item.returncode != 0:
        reason = (item.stderr.strip().splitlines() or ["no output"])[-1]
        raise EnvironmentFailure(f"`git {arguments[0]}` failed in {repo}: {reason}")
    return item.stdout


def _git(repo: Path, *arguments: str) -> _GitResult:
    if not repo.is_dir():
        raise UsageError(f"there is no folder `{repo}`", "give the checkout: `--repo PATH`")
    ended = git(arguments, repo)
    return _GitResult(
        ended.returncode, ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace")
    )
