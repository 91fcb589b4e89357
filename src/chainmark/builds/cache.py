"""The cache of programs built from sources or given as binaries: by content, and by the names in reports.

Below the cache's folder, ``builds/<key>/`` holds a program, and ``names/<name>/`` the key and the facts of the build
with that name. A key identifies the sources, the toolchain and the flags, so that equal sources are built once,
whatever their name.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict

from chainmark.builds.checkout import SHORT, sha256_of
from chainmark.builds.golang import (
    BUILD_FLAGS,
    BuildInfo,
    deciding_environment,
    go,
    is_network_failure,
    last_lines,
    require_go,
)
from chainmark.builds.program import Inspected, Program, inspect
from chainmark.builds.sources import Sources, from_checkout, from_module
from chainmark.core.build import Build
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import Subject
from chainmark.core.storage import storage_errors
from chainmark.lab.versions import BinaryFile, Checkout, DoesNotBuild, ModuleVersion, parse_version
from chainmark.store.files import json_bytes, write_bytes

COMPILER_LINES = 12
_KEY_DIGITS = 20
# Followed by the ID of the process that works in it: the next process removes what a killed one left.
_SCRATCH = ".making-"
_RECORD = "build.json"
_CHANGES = "changes.diff"


class CacheRecord(BaseModel):
    """A named build: a program and its facts.

    Attributes:
        checkout: absolute path of the checkout that it was built from.
    """

    model_config = ConfigDict(extra="forbid")

    key: str
    subject: Subject
    build: Build
    checkout: Checkout | None = None


@dataclass(frozen=True)
class Cache:
    """The programs of one system.

    Attributes:
        root: its folder.
        system: the system's ID.
        program: the program to build or find.
    """

    root: Path
    system: str
    program: Program

    def make(self, target: BinaryFile | Checkout | ModuleVersion, ordered: str) -> CacheRecord:
        """Ensure that a program is in the cache, and name it.

        Args:
            target: the requested program.
            ordered: the same, as it was written.

        Raises:
            UsageError: it does not exist, or is another program.
            DoesNotBuild: the compiler refuses it; the hint has its last lines.
            EnvironmentFailure: the machine or the network failed.
        """
        with scratch_in(self.root) as scratch:
            if isinstance(target, BinaryFile):
                return self._taken(target.path, ordered, scratch)
            require_go()
            if isinstance(target, Checkout):
                return self._built(from_checkout(target, ordered, scratch), scratch)
            return self._built(from_module(target, ordered, scratch, self.program), scratch)

    def tool(self, record: CacheRecord, package: str, name: str) -> Path:
        """Ensure that another program of the same sources is in the cache, too.

        Args:
            record: of the sources.
            package: below the module.
            name: of the cached file.

        Raises:
            UsageError: it is a binary without sources, or the sources have no such package.
            EnvironmentFailure: the machine or the network failed.
        """
        path = self._builds / record.key / name
        if path.is_file():
            return path
        target = record.checkout or parse_version(record.build.ordered)
        if not isinstance(target, Checkout | ModuleVersion):
            raise UsageError(
                f"`{name}` cannot be built for {record.subject.version}: only its binary is available",
                "give the checkout that it was built from: `git:PATH`",
            )
        with scratch_in(self.root) as scratch:
            sources = self._sources_again(target, record, scratch)
            binary = scratch / name
            self._compile(sources, [*BUILD_FLAGS, *sources.flags], binary, package)
            binary.replace(path)
        return path

    def _sources_again(self, target: Checkout | ModuleVersion, record: CacheRecord, scratch: Path) -> Sources:
        """The sources as they were built, even if the branch or the worktree has changed since."""
        if isinstance(target, ModuleVersion):
            then_version = record.subject.version.rpartition("@")[2]  # it may have been requested as "latest"
            return from_module(replace(target, version=then_version), record.build.ordered, scratch, self.program)
        then = replace(target, ref=record.build.commit)
        changes = self.changes(record)
        return from_checkout(then, record.build.ordered, scratch, b"" if changes is None else changes.read_bytes())

    def find(self, name: str) -> CacheRecord | None:
        """The build with that name.

        Raises:
            EnvironmentFailure: its program was changed since.
        """
        try:
            content = (self._names / name / _RECORD).read_text(encoding="utf-8")
        except OSError:
            return None
        record = CacheRecord.model_validate_json(content)
        if not self.binary(record).is_file():
            return None
        if sha256_of(self.binary(record)) != record.subject.binary_sha256:
            raise EnvironmentFailure(
                f"the cached binary of {self.program.title} {name} has changed since it was built",
                f"remove {self._builds / record.key} and install it again",
            )
        return record

    def binary(self, record: CacheRecord) -> Path:
        """The path of a program."""
        return self._builds / record.key / self.program.name

    def changes(self, record: CacheRecord) -> Path | None:
        """The uncommitted changes in its sources."""
        path = self._names / record.subject.version / _CHANGES
        return path if path.is_file() else None

    def all(self) -> list[CacheRecord]:
        """All named builds, by name."""
        paths = sorted(self._names.glob(f"*/{_RECORD}"))
        cache_records = [CacheRecord.model_validate_json(path.read_text(encoding="utf-8")) for path in paths]
        return [record for record in cache_records if self.binary(record).is_file()]

    @property
    def _builds(self) -> Path:
        return self.root / "builds"

    @property
    def _names(self) -> Path:
        return self.root / "names"

    def _taken(self, path: Path, ordered: str, scratch: Path) -> CacheRecord:
        """Copy a binary, so that rebuilding it does not change what is measured."""
        inspect(path, self.program)  # before it is copied: its errors name the user's path
        copy = scratch / self.program.name
        with storage_errors(copy):
            shutil.copyfile(path, copy)
        copy.chmod(0o755)
        digest, result = sha256_of(copy), inspect(copy, self.program)
        key = digest[:_KEY_DIGITS]
        build = _described(Build(ordered=ordered), result)
        with locked(self._builds / f".{key}.lock"):
            self._keep(copy, key)
            name = f"{result.reported}@sha-{digest[:SHORT]}"
            return self._name(name, key, result, build, revision=_revision(result.info))

    def _built(self, sources: Sources, scratch: Path) -> CacheRecord:
        """Build sources, unless equal ones were built before."""
        environment = deciding_environment(sources.folder, sources.environment)
        flags = [*BUILD_FLAGS, *sources.flags]
        reported = json.dumps([sources.content, self.program.package, flags, environment], sort_keys=True)
        key = hashlib.sha256(reported.encode()).hexdigest()[:_KEY_DIGITS]
        program = self._builds / key / self.program.name
        with locked(self._builds / f".{key}.lock"):
            if not program.is_file():
                binary = scratch / self.program.name
                self._compile(sources, flags, binary, self.program.package)
                inspect(binary, self.program)
                self._keep(binary, key)
            result = inspect(program, self.program)
            settings = [f"{name}={value}" for name, value in environment.items() if name != "GOVERSION"]
            build = _described(sources.build.model_copy(update={"flags": [*flags, *settings]}), result)
            return self._name(
                sources.name,
                key,
                result,
                build,
                revision=sources.revision,
                changes=sources.changes,
                checkout=sources.checkout,
            )

    def _compile(self, sources: Sources, flags: list[str], target: Path, package: str) -> None:
        if not (sources.folder / package).is_dir():
            raise UsageError(
                f"{sources.build.ordered} is not {self.program.title}: it has no `{package}`",
                f"give a checkout of {self.program.module} or of a fork of it",
            )
        command = ["build", *flags, "-o", str(target), f"./{package}"]
        ended = go(command, cwd=sources.folder, environment=sources.environment)
        if ended.returncode == 0:
            return
        lines = last_lines(ended.stderr or ended.stdout, COMPILER_LINES)
        if is_network_failure(lines):
            raise EnvironmentFailure(f"the modules that {sources.name} needs could not be fetched", lines)
        raise DoesNotBuild(f"{sources.name} does not build", f"the compiler's last lines:\n{lines}")

    def _keep(self, program: Path, key: str) -> None:
        folder = self._builds / key
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            program.replace(folder / self.program.name)

    def _name(
        self,
        name: str,
        key: str,
        result: Inspected,
        build: Build,
        *,
        revision: str | None,
        changes: bytes = b"",
        checkout: Checkout | None = None,
    ) -> CacheRecord:
        subject = Subject(
            system=self.system,
            name=self.program.title,
            version=name,
            revision=revision,
            build=build.toolchain or None,
            binary_sha256=sha256_of(self._builds / key / self.program.name),
            release=result.reported,
        )
        record = CacheRecord(key=key, subject=subject, build=build, checkout=checkout)
        folder = self._names / name
        if changes:
            write_bytes(folder / _CHANGES, changes)
        write_bytes(folder / _RECORD, json_bytes(record))
        return record


@contextmanager
def scratch_in(root: Path) -> Iterator[Path]:
    """A temporary folder on the cache's own file system."""
    with storage_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        for left in root.glob(f"{_SCRATCH}*"):
            if not psutil.pid_exists(int(left.name.removeprefix(_SCRATCH).partition("-")[0])):
                shutil.rmtree(left, ignore_errors=True)
        prefix = f"{_SCRATCH}{os.getpid()}-"
        with tempfile.TemporaryDirectory(dir=root, prefix=prefix, ignore_cleanup_errors=True) as folder:
            yield Path(folder)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Exclusive access to a build: a second process waits, and finds it built. The system frees a dead process's lock.

    Args:
        path: of the lock file.
    """
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _described(build: Build, result: Inspected) -> Build:
    """With what the program reports about itself."""
    info = result.info
    return build.model_copy(update={"reported": result.reported, **({} if info is None else described(info))})


def described(info: BuildInfo) -> dict[str, object]:
    """A binary's build information, as fields of a :class:`Build`."""
    return {"toolchain": info.toolchain, "settings": dict(info.settings), "modules": dict(info.modules)}


def _revision(info: BuildInfo | None) -> str | None:
    """The commit that a binary was stamped with."""
    return None if info is None else info.settings.get("vcs.revision")
