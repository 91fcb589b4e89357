"""Builds from any source: built once, named after their content, and without changes to the user's files.

The tests build a small program of their own from their own repository, with the real compiler and git.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chainmark.builds import cache as caches
from chainmark.builds.cache import Cache, CacheRecord
from chainmark.builds.program import Program
from chainmark.core.errors import ChainmarkError, EnvironmentFailure, ExitCode, UsageError
from chainmark.lab.versions import DoesNotBuild, ModuleVersion, Named, Release, parse_version

PROGRAM = Program(name="node", title="Node", module="example.com/node", package="cmd/node")
MAIN = """package main

import "fmt"

func main() { fmt.Println("VERSION") }
"""
WITH_DEPENDENCY = """package main

import (
	"fmt"

	"example.com/dep"
)

func main() { fmt.Println("1.0.0-" + dep.Name) }
"""
GO_MOD = "module example.com/node\n\ngo 1.21\n"

pytestmark = pytest.mark.skipif(
    shutil.which("go") is None or shutil.which("git") is None, reason="the Go compiler or git is not installed"
)


def git(repository: Path, *arguments: str) -> str:
    """Run git there and return its output."""
    command = ["git", "-C", str(repository), "-c", "user.name=T", "-c", "user.email=t@example.com", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def write(folder: Path, **files: str) -> None:
    """Write files. In their names, ``__`` stands for ``/`` and ``_dot_`` for ``.``."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits of a program on `main`, the first of which is tagged."""
    folder = tmp_path / "checkout"
    write(folder, go_dot_mod=GO_MOD, cmd__node__main_dot_go=MAIN.replace("VERSION", "1.0.0"), _dot_gitignore="out\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "The first")
    git(folder, "tag", "v1.0.0")
    write(folder, cmd__node__main_dot_go=MAIN.replace("VERSION", "1.1.0"))
    git(folder, "commit", "--quiet", "-am", "The second")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """An empty cache."""
    return Cache(tmp_path / "cache", "nodes", PROGRAM)


def cached(cache: Cache, version: str) -> CacheRecord:
    """The cached build of a version."""
    target = parse_version(version)
    assert not isinstance(target, Release | Named)
    return cache.make(target, version)


def reported(cache: Cache, record: CacheRecord) -> str:
    """The version that a cached program prints."""
    return subprocess.run([cache.binary(record)], check=True, capture_output=True, text=True).stdout.strip()


def test_a_branch_a_tag_and_a_commit_are_built_and_named(cache: Cache, repository: Path) -> None:
    short = git(repository, "rev-parse", "--short=7", "HEAD")
    first = git(repository, "rev-parse", "HEAD~1")
    records = {ref: cached(cache, f"git:{repository}@{ref}") for ref in ("main", "v1.0.0", "HEAD~1", first)}
    names = {ref: record.subject.version for ref, record in records.items()}
    assert names["main"] == f"main@{short}"
    assert names["v1.0.0"] == f"v1.0.0@{first[:7]}"
    assert names["HEAD~1"] == f"HEAD~1@{first[:7]}"
    assert names[first] == f"checkout@{first[:7]}"
    assert reported(cache, records["main"]) == "1.1.0"
    assert records["main"].subject.release == "1.1.0"
    assert reported(cache, records["HEAD~1"]) == "1.0.0"
    assert len({records[ref].subject.binary_sha256 for ref in ("v1.0.0", "HEAD~1", first)}) == 1
    assert records["v1.0.0"].subject.revision == first
    assert [commit.subject for commit in records["main"].build.commits] == ["The second", "The first"]
    assert records["main"].build.ancestry == 2


def test_equal_sources_are_built_once(cache: Cache, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached(cache, f"git:{repository}@main")
    monkeypatch.setattr(Cache, "_compile", lambda *_: pytest.fail("it was built again"))
    git(repository, "commit", "--quiet", "--allow-empty", "-m", "Nothing")
    again = cached(cache, f"git:{repository}")
    assert again.subject.version.startswith("main@")
    assert "dirty" not in again.subject.version


def test_concurrent_requests_for_one_build_wait_for_it(cache: Cache, repository: Path) -> None:
    """Two repetitions that start at the same time must not write the same file."""
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: cached(cache, f"git:{repository}@main"), range(2))
    assert first == second
    assert reported(cache, first) == "1.1.0"


def test_uncommitted_changes_are_built_and_stored_as_a_diff(cache: Cache, repository: Path) -> None:
    """The version is the worktree as the developer sees it: changed files, and new files that git does not track."""
    write(repository, cmd__node__main_dot_go=MAIN.replace('"VERSION"', "version"))
    write(repository, cmd__node__version_dot_go='package main\n\nconst version = "1.2.0"\n', out="ignored")
    before = git(repository, "status", "--porcelain"), git(repository, "count-objects")
    record = cached(cache, f"git:{repository}")
    assert (git(repository, "status", "--porcelain"), git(repository, "count-objects")) == before
    assert reported(cache, record) == "1.2.0"
    changes = cache.changes(record)
    assert changes is not None
    content = changes.read_bytes()
    assert hashlib.sha256(content).hexdigest() == record.build.changes_sha256
    assert b"version.go" in content
    assert b"ignored" not in content
    assert record.subject.version.endswith(f"+dirty-{(record.build.changes_sha256 or '')[:7]}")
    committed = cached(cache, f"git:{repository}@main")
    assert reported(cache, committed) == "1.1.0"


def test_a_name_always_refers_to_the_same_build(cache: Cache, repository: Path) -> None:
    """A branch that moves or a rebuild must not change later runs of an experiment."""
    name = cached(cache, f"git:{repository}@main").subject.version
    write(repository, cmd__node__main_dot_go=MAIN.replace("VERSION", "2.0.0"))
    git(repository, "commit", "--quiet", "-am", "The third")
    record = cache.find(name)
    assert record is not None
    assert reported(cache, record) == "1.1.0"
    assert cache.find("main@0000000") is None
    cache.binary(record).write_bytes(b"changed")
    with pytest.raises(EnvironmentFailure, match="has changed since it was built"):
        cache.find(name)


def test_another_program_is_built_from_the_original_sources(
    cache: Cache, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After further changes to the worktree, the uncommitted changes exist only in the stored diff."""
    write(repository, tools__other__main_dot_go=MAIN.replace("VERSION", "a tool"))
    with monkeypatch.context() as inside:
        inside.chdir(repository)
        record = cached(cache, "git:.")
    shutil.rmtree(repository / "tools")
    tool = cache.tool(record, "tools/other", "other")
    assert subprocess.run([tool], check=True, capture_output=True, text=True).stdout == "a tool\n"
    binary = cached(cache, str(cache.binary(record)))
    with pytest.raises(UsageError, match="only its binary is available"):
        cache.tool(binary, "tools/other", "another")


def test_a_binary_is_copied(cache: Cache, repository: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    shutil.copy(cache.binary(cached(cache, f"git:{repository}@main")), mine)
    record = cached(cache, str(mine))
    digest = hashlib.sha256(mine.read_bytes()).hexdigest()
    assert record.subject.version == f"1.1.0@sha-{digest[:7]}"
    assert record.subject.binary_sha256 == digest
    assert record.build.toolchain.startswith("go")
    mine.write_bytes(b"built anew")
    assert reported(cache, record) == "1.1.0"


def dependent(repository: Path, tmp_path: Path) -> Path:
    """Make the program depend on a module, and write a local module that can replace it."""
    write(repository, go_dot_mod=GO_MOD + "\nrequire example.com/dep v0.1.0\n")
    write(repository, cmd__node__main_dot_go=WITH_DEPENDENCY)
    folder = tmp_path / "dep"
    write(folder, go_dot_mod="module example.com/dep\n\ngo 1.21\n", dep_dot_go='package dep\n\nconst Name = "mine"\n')
    return folder


def test_a_module_is_replaced_by_a_folder(cache: Cache, repository: Path, tmp_path: Path) -> None:
    folder = dependent(repository, tmp_path)
    version = f"git:{repository}?replace=example.com/dep={folder}"
    first = cached(cache, version)
    assert first.subject.release == "1.0.0-mine"
    write(folder, dep_dot_go='package dep\n\nconst Name = "other"\n')
    second = cached(cache, version)
    assert second.subject.release == "1.0.0-other"
    assert first.subject.version != second.subject.version
    assert "+replaced-" in first.subject.version
    assert "=> ../replaced/0" in first.build.modules["example.com/dep"]
    with pytest.raises(
        UsageError, match=r"these sources do not depend on `example.com/deb`, so it cannot be replaced"
    ) as caught:
        cached(cache, f"git:{repository}?replace=example.com/deb={folder}")
    assert caught.value.hint == "did you mean `example.com/dep`?"
    with pytest.raises(UsageError, match=r"has no `go.mod`"):
        cached(cache, f"git:{repository}?replace=example.com/dep={tmp_path}")


def test_a_workspace_is_built_with_its_local_modules(cache: Cache, repository: Path, tmp_path: Path) -> None:
    """Another module in the same repository is newer than the release in `go.mod`."""
    dependent(repository, tmp_path).rename(repository / "dep")
    write(repository, go_dot_work="go 1.21\n\nuse (\n\t.\n\t./dep\n)\n")
    assert cached(cache, f"git:{repository}").subject.release == "1.0.0-mine"


def test_a_fork_may_keep_the_module_path_of_the_original(
    cache: Cache, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most forks do this: their `go.mod` names the original module, and Go refuses to install them."""
    place = tmp_path / "proxy" / "example.com" / "somebody" / "node" / "@v"
    place.mkdir(parents=True)
    with zipfile.ZipFile(place / "v1.1.0.zip", "w") as archive:
        for name in ("go.mod", "cmd/node/main.go"):
            archive.write(repository / name, f"example.com/somebody/node@v1.1.0/{name}")
    (place / "v1.1.0.info").write_text('{"Version": "v1.1.0"}', encoding="utf-8")
    (place / "v1.1.0.mod").write_text(GO_MOD, encoding="utf-8")
    for name, value in {
        "GOPROXY": (tmp_path / "proxy").as_uri(),
        "GOMODCACHE": str(tmp_path / "modules"),
        "GONOSUMDB": "example.com",
        "GOFLAGS": "-modcacherw",
    }.items():
        monkeypatch.setenv(name, value)
    record = cached(cache, "example.com/somebody/node@v1.1.0")
    assert record.subject.version == "somebody-node@v1.1.0"
    assert record.subject.release == "1.1.0"
    with pytest.raises(UsageError, match=r"there is no `example.com/somebody/node` at `v9.9.9`"):
        cache.make(ModuleVersion("example.com/somebody/node", "v9.9.9"), "")


def test_a_failed_build_shows_the_last_lines_of_the_compiler(cache: Cache, repository: Path) -> None:
    write(repository, cmd__node__main_dot_go="package main\n\nfunc main() { undefined() }\n")
    with pytest.raises(DoesNotBuild, match="does not build") as caught:
        cached(cache, f"git:{repository}")
    assert caught.value.exit_code is ExitCode.USAGE
    assert "cmd/node/main.go:3:15: undefined: undefined" in (caught.value.hint or "")
    assert [path for path in cache.root.rglob("*") if path.is_file() and not path.name.endswith(".lock")] == []
    assert list(cache.root.glob(".making-*")) == []


def script(path: Path, content: str, mode: int = 0o755) -> str:
    """An executable script that a user might take for a binary."""
    path.write_text(content, encoding="utf-8")
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing", "there is no binary"),
        ("folder", "is a folder, not a binary"),
        ("not executable", "is not readable and executable"),
        ("silent", "reports nothing as its version"),
        ("chatty", "reports `hello` as its version"),
        ("failing", "failed, so .* is not Node: no such thing"),
        ("hanging", "did not end within 500 ms"),
        ("garbage", "cannot be started"),
        ("other program", "is `example.com/node/cmd/other`, not Node"),
        ("other machine", "is built for riscv64, but this machine is"),
        ("no repository", "cannot be read as a git repository"),
        ("no folder", "there is no folder"),
        ("unknown ref", "`mian` is not a branch, tag or commit"),
        ("no module", "is not a Go module"),
        ("no program", "is not Node: it has no `cmd/node`"),
        ("no commit", "has no commit yet"),
    ],
)
def test_a_binary_of_another_program_is_refused_in_one_sentence(
    kind: str, message: str, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainmark.builds.program.VERSION_TIMEOUT_S", 0.5 if kind == "hanging" else 15)
    cache = Cache(tmp_path / "cache", "nodes", PROGRAM)
    place, empty = tmp_path / "one", tmp_path / "empty"
    empty.mkdir()
    if kind in {"other program", "other machine"}:
        write(repository, cmd__other__main_dot_go=MAIN)
        target = {**os.environ, "GOARCH": "riscv64"} if kind == "other machine" else dict(os.environ)
        command = ["go", "build", "-o", str(place), "./cmd/other"]
        subprocess.run(command, check=True, cwd=repository, env={**target, "CGO_ENABLED": "0"})
    if kind == "no commit":
        git(empty, "init", "--quiet")
    if kind in {"no module", "no program"}:
        git(repository, "rm", "--quiet", "-r", "go.mod" if kind == "no module" else "cmd")
    version = {
        "missing": str(tmp_path / "nothing"),
        "folder": str(tmp_path),
        "not executable": script(tmp_path / "a", "#!/bin/sh\necho 1.0.0\n", 0o644),
        "silent": script(tmp_path / "b", "#!/bin/sh\n"),
        "chatty": script(tmp_path / "c", "#!/bin/sh\necho hello\n"),
        "failing": script(tmp_path / "d", "#!/bin/sh\necho no such thing >&2\nexit 3\n"),
        "hanging": script(tmp_path / "e", "#!/bin/sh\nsleep 600\n"),
        "garbage": script(tmp_path / "f", "hello"),
        "no repository": f"git:{empty}",
        "no folder": f"git:{tmp_path / 'nothing'}@main",
        "unknown ref": f"git:{repository}@mian",
        "no module": f"git:{repository}",
        "no program": f"git:{repository}",
        "no commit": f"git:{empty}",
    }.get(kind, str(place))
    with pytest.raises(ChainmarkError, match=message) as caught:
        cached(cache, version)
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.hint
    assert "\n" not in caught.value.message
    assert cache.all() == []


def test_leftovers_of_a_killed_build_are_removed(
    cache: Cache, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = cache.root / f"{caches._SCRATCH}{2**22 + 1}-x"
    left.mkdir(parents=True)
    cached(cache, f"git:{repository}@main")
    assert not left.exists()
