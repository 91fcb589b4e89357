"""Go sources ready to build: exported into a separate folder, with modules replaced."""

from __future__ import annotations

import difflib
import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chainmark.builds.checkout import SHORT, SourceTree, repository_of, sha256, tree_at, working_tree
from chainmark.builds.golang import go, is_network_failure, last_lines
from chainmark.builds.program import Program
from chainmark.core.build import Build
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.lab.versions import Checkout, DoesNotBuild, ModuleVersion, is_folder, plain_name


@dataclass(frozen=True)
class Sources:
    """A Go module's sources in a folder.

    Attributes:
        name: of the build, as in reports.
        folder: of the module.
        content: everything that determines the sources.
        revision: the commit, or the module's sum.
        build: facts known before the build.
        changes: uncommitted changes.
        checkout: absolute path of the checkout that they come from.
        workspace: the ``go.work`` of the checkout, under which they are built.
        flags: of the command, in addition to those of every build.
    """

    name: str
    folder: Path
    content: str
    revision: str | None
    build: Build
    changes: bytes = b""
    checkout: Checkout | None = None
    workspace: Path | None = None
    flags: tuple[str, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """Environment for Go: a workspace above the cache must not apply to these sources."""
        return {"GOWORK": "off" if self.workspace is None else str(self.workspace)}


def from_checkout(target: Checkout, ordered: str, scratch: Path, changes: bytes = b"") -> Sources:
    """Export a checkout.

    Args:
        target: the checkout and its commit.
        ordered: as requested.
        scratch: an empty folder.
        changes: patch to apply to the commit, in git's format.

    Raises:
        UsageError: it is not a repository, has no such commit, or a replacement is invalid.
    """
    repository = repository_of(target.path)
    tree = working_tree(repository, scratch) if target.ref is None else tree_at(repository, target.ref)
    folder = tree.export(scratch / "source", scratch, changes)
    if not (folder / "go.mod").is_file():
        raise UsageError(f"{target.path} is not a Go module: it has no `go.mod`", "give the folder that has one")
    workspace = _workspace(folder, scratch / "source")
    replaced = _replace(folder, workspace, target.replacements, scratch)
    hashed = sha256(tree.changes) if tree.changes else None
    return Sources(
        name=_name(tree, replaced),
        folder=folder,
        content=json.dumps([tree.tree, repository.prefix, replaced]),
        revision=tree.commit,
        build=Build(
            ordered=ordered,
            repository=repository.name,
            commit=tree.commit,
            changes_sha256=hashed,
            replacements=dict(target.replacements),
            commits=tree.history(),
            ancestry=tree.ancestry(),
        ),
        changes=tree.changes,
        checkout=target.absolute(),
        workspace=workspace,
        # Checksums of a replacement may be missing in `go.sum`; a workspace has its own file for them.
        flags=("-mod=mod",) if replaced and workspace is None else (),
    )


def from_module(target: ModuleVersion, ordered: str, scratch: Path, program: Program) -> Sources:
    """Fetch a module from its proxy. It is built on its own, so that a fork may keep the original's module path.

    Raises:
        UsageError: there is no such module or version.
        EnvironmentFailure: the proxy cannot be reached.
    """
    ended = go(["mod", "download", "-json", f"{target.module}@{target.version}"])
    try:
        parsed = json.loads(ended.stdout or "{}")
    except ValueError:
        parsed = {}
    if "Dir" not in parsed:
        reason = last_lines(parsed.get("Error") or ended.stderr, 1).strip()
        if is_network_failure(reason):
            raise EnvironmentFailure(
                f"{target.module} could not be fetched: {reason}", "check that the module proxy is reachable"
            )
        raise UsageError(
            f"there is no `{target.module}` at `{target.version}`: {reason}",
            f"give a module with the sources of {program.title} and its version: `{program.module}@v1.2.3`",
        )
    folder = scratch / "source"
    shutil.copytree(parsed["Dir"], folder, copy_function=shutil.copyfile)
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)  # the module cache is read-only
    if not (folder / "go.mod").is_file():
        raise UsageError(f"`{target.module}@{parsed['Version']}` has no `go.mod`", "give a Go module")
    return Sources(
        name=f"{plain_name(_owner(target.module))}@{parsed['Version']}",
        folder=folder,
        content=parsed["Sum"],
        revision=parsed["Sum"],
        build=Build(ordered=ordered, commit=(parsed.get("Origin") or {}).get("Hash")),
    )


def _owner(module: str) -> str:
    """A module without its host: "github.com/somebody/node/v2" is "somebody/node/v2"."""
    return module.partition("/")[2]


def _name(tree: SourceTree, replaced: Sequence[tuple[str, str]]) -> str:
    other = f"+replaced-{sha256(json.dumps(list(replaced)).encode())[:SHORT]}" if replaced else ""
    return f"{tree.name()}{other}"


def _workspace(folder: Path, top: Path) -> Path | None:
    """The module's workspace, unless part of it is missing: a module's published sources lack other modules."""
    for place in (folder, *folder.parents):
        file = place / "go.work"
        if file.is_file():
            used = [place / item["DiskPath"] for item in json.loads(_edit(place, "work", "-json")).get("Use") or []]
            is_whole = all((item / "go.mod").is_file() for item in used)
            return file if is_whole and folder.resolve() in {item.resolve() for item in used} else None
        if place == top:
            break
    return None


def _replace(
    folder: Path, workspace: Path | None, replacements: Sequence[tuple[str, str]], scratch: Path
) -> list[tuple[str, str]]:
    """Replace modules; returns each one's replacement: a hash of its content, or another module's version.

    Raises:
        UsageError: these sources do not need the module, or the replacement is not a module.
    """
    if not replacements:
        return []
    parsed = json.loads(_edit(folder, "mod", "-json"))
    place, kind = (folder, "mod") if workspace is None else (workspace.parent, "work")
    known = [item["Path"] for item in parsed.get("Require") or []]
    results = []
    for number, (module, text) in enumerate(replacements):
        if module not in known:
            close = difflib.get_close_matches(module, known, n=1)
            hint = f"did you mean `{close[0]}`?" if close else "`go list -m all` lists the modules that can be replaced"
            raise UsageError(f"these sources do not depend on `{module}`, so it cannot be replaced", hint)
        if is_folder(text):
            content = _copied(module, Path(text).expanduser(), scratch / "replaced" / str(number))
            _edit(place, kind, f"-replace={module}={_up_to(scratch, place)}replaced/{number}")
        else:
            content = text
            _edit(place, kind, f"-replace={module}={text}")
        results.append((module, content))
    return results


def _up_to(scratch: Path, folder: Path) -> str:
    """The relative path to the root: binaries contain it, and it must not depend on the location of the cache."""
    return "../" * len(folder.relative_to(scratch).parts)


def _copied(module: str, source: Path, place: Path) -> str:
    """Copy a module's folder; the hash of its files."""
    if not (source / "go.mod").is_file():
        raise UsageError(f"{source} cannot replace `{module}`: it has no `go.mod`", "give the folder of a Go module")
    shutil.copytree(source, place, ignore=shutil.ignore_patterns(".git"))
    hasher = hashlib.sha256()
    for path in sorted(path for path in place.rglob("*") if path.is_file()):
        hasher.update(f"{path.relative_to(place)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return hasher.hexdigest()


def _edit(folder: Path, kind: str, argument: str) -> str:
    """Edit or read a folder's ``go.mod`` or ``go.work``."""
    ended = go([kind, "edit", argument], cwd=folder)
    if ended.returncode != 0:
        raise DoesNotBuild(f"the checkout's `go.{kind}` cannot be read", last_lines(ended.stderr, 5))
    return ended.stdout
