"""Versions of a command: a file, or a checkout that is built as the profile defines; both stored in the cache.

Below the cache's folder, ``builds/<key>/`` holds the result for equal content, and ``names/<scope>/<name>/`` the
version with that name in reports. A checkout is built in its final folder, because the result may contain its own path.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from chainmark.builds.cache import locked, scratch_in
from chainmark.builds.checkout import SHORT, SourceTree, repository_of, sha256, sha256_of, tree_at, working_tree
from chainmark.core.build import Build
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Subject
from chainmark.core.storage import storage_errors
from chainmark.lab.versions import BinaryFile, Checkout, DoesNotBuild, parse_version, plain_name
from chainmark.store.files import json_bytes, write_bytes
from chainmark.store.paths import cache_directory
from chainmark.systems.benchmark.profile import Command

FORMS = "`./path/to/program`, `git:PATH` or `git:PATH@REF`"
FILES = "files"  # the scope of the names of versions that are files
_KEY_DIGITS = 20
_RECORD, _CHANGES = "build.json", "changes.diff"
# Written last: a folder without it was left by an aborted build.
_BUILT = "built"
_LINES_SHOWN = 12


class BuildRecord(BaseModel):
    """A named version.

    Attributes:
        key: of the result.
        file: of a version that is a file, its name.
        identity: SHA-256 of the file, or of everything that determines a build.
    """

    model_config = ConfigDict(extra="forbid")

    key: str
    version: str
    identity: str
    build: Build
    file: str = ""

    def subject(self, system: str, title: str) -> Subject:
        """The subject of the measurement."""
        build = self.build
        return Subject(
            system=system,
            name=title or self.file or build.repository or system,
            version=self.version,
            revision=build.commit,
            binary_sha256=self.identity,
        )


@dataclass(frozen=True)
class Builds:
    """The versions of commands in the cache."""

    root: Path

    @classmethod
    def cached(cls) -> Builds:
        """This user's cache."""
        return cls(cache_directory() / "benchmark")

    def make(self, version: str, command: Command | None) -> BuildRecord:
        """Ensure that a version can be executed.

        Args:
            version: as requested.
            command: how a checkout is built; None: unknown.

        Raises:
            UsageError: there is no such version, or it cannot be one of a command.
            DoesNotBuild: a line of the build failed; the hint has the last lines that it printed.
        """
        target = parse_version(version)
        if isinstance(target, BinaryFile):
            return self._taken(target.path, version)
        if not isinstance(target, Checkout):
            return self.find(version, command)
        if target.replacements:
            raise UsageError(
                f"`{version}` replaces a module, which only Go builds support", "give a checkout with the change"
            )
        if command is None:
            raise UsageError(
                f"`{version}` is a checkout, which can be built only with a profile",
                "use `chainmark run PROFILE --version …`",
            )
        if not command.program:
            raise UsageError(
                "the profile does not state which program of a checkout to execute",
                "give its path in the built checkout: `--set command.program=PATH`",
            )
        return self._built(target, version, command)

    def find(self, name: str, command: Command | None) -> BuildRecord:
        """The version with that name.

        Raises:
            UsageError: there is none.
        """
        for scope in (FILES, *([] if command is None else [_scope(command)])):
            path = self._names / scope / name / _RECORD
            if path.is_file() and self.is_complete(record := BuildRecord.model_validate_json(path.read_bytes())):
                return record
        raise UsageError(f"`{name}` is not a version of a command", f"write {FORMS}, or a name from a report")

    def all(self) -> list[BuildRecord]:
        """All named versions, by name."""
        paths = sorted(self._names.glob(f"*/*/{_RECORD}"), key=lambda path: (path.parent.name, path))
        build_records = [BuildRecord.model_validate_json(path.read_bytes()) for path in paths]
        return [record for record in build_records if self.is_complete(record)]

    def is_complete(self, record: BuildRecord) -> bool:
        """Whether the result still exists."""
        return (self._place(record.key) / _BUILT).is_file()

    def folder(self, record: BuildRecord) -> Path:
        """The folder in which the checkout was built, or to which the file was copied."""
        prefix = "" if record.file else record.build.settings.get("folder", "")
        return self._place(record.key) / "source" / prefix

    def changes(self, record: BuildRecord, command: Command) -> Path | None:
        """The uncommitted changes in its sources."""
        path = self._names / _scope(command) / record.version / _CHANGES
        return path if path.is_file() else None

    @property
    def _names(self) -> Path:
        return self.root / "names"

    def _place(self, key: str) -> Path:
        return self.root / "builds" / key

    def _taken(self, path: Path, ordered: str) -> BuildRecord:
        """Copy a file, so that rebuilding it does not change what is measured."""
        if not path.is_file():
            raise UsageError(f"there is no file {path}", f"write {FORMS}")
        if not os.access(path, os.X_OK | os.R_OK):
            raise UsageError(f"{path} may not be read and executed", f"if it is a program, run `chmod +rx {path}`")
        with scratch_in(self.root) as scratch, storage_errors(self.root):
            copy = scratch / path.name
            shutil.copyfile(path, copy)
            copy.chmod(0o755)
            digest = sha256_of(copy)
            key = sha256(f"{path.name}\0{digest}".encode())[:_KEY_DIGITS]
            with locked(self._lock(key)):
                if not (self._place(key) / _BUILT).is_file():
                    self._emptied(key).mkdir()
                    copy.replace(self._place(key) / "source" / path.name)
                    (self._place(key) / _BUILT).touch()
        name = f"{plain_name(path.name)}@sha-{digest[:SHORT]}"
        return self._name(
            FILES, BuildRecord(key=key, version=name, identity=digest, build=Build(ordered=ordered), file=path.name)
        )

    def _built(self, target: Checkout, ordered: str, command: Command) -> BuildRecord:
        repository = repository_of(target.path)
        with scratch_in(self.root) as scratch:
            tree = working_tree(repository, scratch) if target.ref is None else tree_at(repository, target.ref)
            identity = sha256(json.dumps([tree.tree, repository.prefix, command.build]).encode())
            key = identity[:_KEY_DIGITS]
            with locked(self._lock(key)):
                if not (self._place(key) / _BUILT).is_file():
                    self._build(tree, key, scratch, command)
        build = Build(
            ordered=ordered,
            repository=repository.name,
            commit=tree.commit,
            flags=list(command.build),
            settings={"folder": repository.prefix} if repository.prefix else {},
            changes_sha256=sha256(tree.changes) if tree.changes else None,
            commits=tree.history(),
            ancestry=tree.ancestry(),
        )
        record = BuildRecord(key=key, version=tree.name(), identity=identity, build=build)
        return self._name(_scope(command), record, tree.changes)

    def _build(self, tree: SourceTree, key: str, scratch: Path, command: Command) -> None:
        folder = tree.export(self._emptied(key), scratch)
        for line in command.build:
            ended = subprocess.run(
                ["sh", "-c", line],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                check=False,
            )
            if ended.returncode != 0:
                shown = "\n".join(ended.stdout.strip().splitlines()[-_LINES_SHOWN:]) or "(no output)"
                raise DoesNotBuild(
                    f"{tree.name()} does not build: `{line}` ended with exit code {ended.returncode}",
                    f"its last lines:\n{shown}",
                )
        (self._place(key) / _BUILT).touch()

    def _emptied(self, key: str) -> Path:
        """The folder for a new build; the leftovers of an aborted build are removed."""
        place = self._place(key)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        return place / "source"

    def _lock(self, key: str) -> Path:
        return self.root / "builds" / f".{key}.lock"

    def _name(self, scope: str, record: BuildRecord, changes: bytes = b"") -> BuildRecord:
        folder = self._names / scope / record.version
        if changes:
            write_bytes(folder / _CHANGES, changes)
        write_bytes(folder / _RECORD, json_bytes(record))
        return record


def _scope(command: Command) -> str:
    """Of names: one commit that is built in two ways is two versions."""
    return hashlib.sha256(json.dumps(command.build).encode()).hexdigest()[:_KEY_DIGITS]
