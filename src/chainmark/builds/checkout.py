"""Sources from a git checkout, which is not modified: no file, index or object of it is written."""

from __future__ import annotations

import difflib
import hashlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chainmark.core.build import Commit
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.lab.git import git
from chainmark.lab.versions import plain_name

# Maximum length of a commit's history that a run stores: 300 commits are about 40 KiB.
MOST_COMMITS = 300
# Number of hash digits in a build's name.
SHORT = 7
_SEPARATOR = "\x1f"
_HASH = re.compile(r"^[0-9a-f]{4,64}$")


@dataclass(frozen=True)
class Repository:
    """A repository, as seen from a folder in it.

    Attributes:
        git_folder: of this worktree.
        top: of the worktree; None: it has none.
        prefix: the folder below it, "" or "a/b/".
    """

    git_folder: Path
    top: Path | None
    prefix: str

    @property
    def name(self) -> str:
        """Its name, by its folder."""
        return (self.top or self.git_folder).name.removesuffix(".git")


@dataclass(frozen=True)
class SourceTree:
    """Sources in a repository.

    Attributes:
        ref: a name of the commit; "" if it was given by its hash.
        tree: the hash of all files' contents.
        changes: from the commit to the tree, in git's format.
        objects: a folder with objects that are not in the repository; None: all are.
    """

    repository: Repository
    ref: str
    commit: str
    tree: str
    changes: bytes = b""
    objects: Path | None = None

    def export(self, folder: Path, scratch: Path, changes: bytes = b"") -> Path:
        """Write all files to a folder; returns the folder of the module's.

        Args:
            folder: to be made.
            scratch: for git's own files.
            changes: to apply to the files, in git's format.
        """
        folder.mkdir()
        index = scratch / "export.index"
        git = _Git(self.repository, index=index, objects=self.objects, work_tree=folder)
        git.read("read-tree", self.tree)
        git.read("checkout-index", "--all", "--force")
        if changes:
            patch = scratch / "changes.diff"
            patch.write_bytes(changes)
            git.read("apply", str(patch))
        return folder / self.repository.prefix

    def name(self) -> str:
        """The name of its build: "main@4f2cb01", with a hash of uncommitted changes."""
        folder = Path(self.repository.prefix).name
        ref = self.ref or ("" if folder else self.repository.name)
        name = "-".join(plain_name(part) for part in (folder, ref) if part)
        dirty = f"+dirty-{sha256(self.changes)[:SHORT]}" if self.changes else ""
        return f"{name}@{self.short()}{dirty}"

    def short(self) -> str:
        """The shortest unique prefix of the commit's hash."""
        return _Git(self.repository).read("rev-parse", "--short=7", self.commit)

    def ancestry(self) -> int:
        """The number of commits that lead to it, including itself."""
        return int(_Git(self.repository).read("rev-list", "--count", self.commit))

    def history(self) -> list[Commit]:
        """The commit and its ancestors, up to the stored maximum."""
        form = f"--format=%H{_SEPARATOR}%P{_SEPARATOR}%s"
        git = _Git(self.repository)
        reported = git.read(
            "log", "--topo-order", "--no-show-signature", f"--max-count={MOST_COMMITS}", form, self.commit
        )
        rows = [line.split(_SEPARATOR, 2) for line in reported.splitlines() if line.count(_SEPARATOR) >= 2]
        return [Commit(id=commit, parents=parents.split(), subject=subject) for commit, parents, subject in rows]


def repository_of(path: Path) -> Repository:
    """The repository that a folder is in.

    Raises:
        UsageError: there is no such folder, or it is not in a repository.
        EnvironmentFailure: git is not installed.
    """
    if not path.is_dir():
        raise UsageError(f"there is no folder `{path}`", "give a checkout or worktree: `git:PATH@REF`")
    try:
        lines = _run(["rev-parse", "--absolute-git-dir", "--is-inside-work-tree"], cwd=path).splitlines()
    except _GitError as error:
        raise UsageError(
            f"{path} cannot be read as a git repository: {error.message}",
            "give a checkout, or a binary: `./path/to/it`",
        ) from error
    if lines[1] != "true":
        return Repository(Path(lines[0]), None, "")
    top, prefix = (_run(["rev-parse", option], cwd=path) for option in ("--show-toplevel", "--show-prefix"))
    return Repository(Path(lines[0]), Path(top), prefix)


def tree_at(repository: Repository, ref: str) -> SourceTree:
    """The content of a branch, tag or commit.

    Raises:
        UsageError: there is none of that name.
    """
    git = _Git(repository)
    try:
        commit = git.read("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    except _GitError as error:
        raise _unknown_ref(git, ref) from error
    is_hash = bool(_HASH.match(ref)) and commit.startswith(ref)
    return SourceTree(repository, "" if is_hash else ref, commit, git.read("rev-parse", f"{commit}^{{tree}}"))


def working_tree(repository: Repository, scratch: Path) -> SourceTree:
    """The current content of the worktree, including untracked files that are not ignored.

    Args:
        repository: with a worktree.
        scratch: a folder for git's output that must outlive the tree's export.

    Raises:
        UsageError: it has no worktree, or no commit yet.
    """
    if repository.top is None:
        raise UsageError(f"{repository.git_folder} has no worktree", "give one of its commits: `git:PATH@REF`")
    committed = tree_at(repository, "HEAD")
    index, objects = scratch / "worktree.index", scratch / "objects"
    objects.mkdir()
    own_index = Path(_Git(repository).read("rev-parse", "--git-path", "index"))
    if own_index.is_file():
        shutil.copyfile(own_index, index)  # git need not read unchanged files again
    git = _Git(repository, index=index, objects=objects)
    git.read("add", "--all")
    tree = git.read("write-tree")
    branch = _Git(repository).read("rev-parse", "--abbrev-ref", "HEAD")
    if tree == committed.tree:
        return SourceTree(repository, branch, committed.commit, tree)
    changes = git.read_bytes("diff", "--binary", "--full-index", "--no-ext-diff", "--no-color", committed.tree, tree)
    return SourceTree(repository, branch, committed.commit, tree, changes, objects)


def sha256(content: bytes) -> str:
    """The hash of some bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def sha256_of(path: Path) -> str:
    """The hash of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _GitError(EnvironmentFailure):
    """A git command failed; the message is its own last line."""


@dataclass(frozen=True)
class _Git:
    """Git on a repository, with its own index, store of new objects and worktree if these are given."""

    repository: Repository
    index: Path | None = None
    objects: Path | None = None
    work_tree: Path | None = None

    def read(self, *arguments: str) -> str:
        """Its output, without the last line break."""
        return self.read_bytes(*arguments).decode("utf-8", "replace").rstrip("\n")

    def read_bytes(self, *arguments: str) -> bytes:
        """Its output."""
        places = {"GIT_DIR": self.repository.git_folder, "GIT_INDEX_FILE": self.index}
        places["GIT_WORK_TREE"] = self.work_tree or self.repository.top
        if self.objects is not None:
            places["GIT_OBJECT_DIRECTORY"] = self.objects
            places["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = self._own_objects()
        reported = {name: str(place) for name, place in places.items() if place is not None}
        return _run_bytes(arguments, self.work_tree or self.repository.top or self.repository.git_folder, reported)

    def _own_objects(self) -> Path:
        cwd = self.repository.git_folder
        return cwd / _run(["rev-parse", "--git-path", "objects"], cwd, {"GIT_DIR": str(cwd)})


def _unknown_ref(git: _Git, ref: str) -> UsageError:
    known = git.read("for-each-ref", "--format=%(refname:short)").splitlines()
    if not known and ref == "HEAD":
        return UsageError(f"the repository {git.repository.name} has no commit yet", "commit something first")
    close = difflib.get_close_matches(ref, known, n=1)
    hint = f"did you mean `{close[0]}`?" if close else f"it has {', '.join(known[:5]) or 'no branch and no tag'}"
    return UsageError(f"`{ref}` is not a branch, tag or commit of the repository {git.repository.name}", hint)


def _run(arguments: Sequence[str], cwd: Path, places: dict[str, str] | None = None) -> str:
    return _run_bytes(arguments, cwd, places or {}).decode("utf-8", "replace").rstrip("\n")


def _run_bytes(arguments: Sequence[str], cwd: Path, places: dict[str, str]) -> bytes:
    ended = git(arguments, cwd, places)
    if ended.returncode != 0:
        lines = ended.stderr.decode("utf-8", "replace").strip().splitlines() or [f"`git {arguments[0]}` failed"]
        raise _GitError(lines[0].removeprefix("fatal: "))
    return ended.stdout
