"""The nodes' program: CometBFT's own, or an application adapter's, found or built and cached by its version."""

from __future__ import annotations

import re
from pathlib import Path

from chainmark.builds.cache import Cache, CacheRecord
from chainmark.builds.program import Program
from chainmark.core.build import Build
from chainmark.core.errors import UsageError
from chainmark.core.manifest import Subject
from chainmark.lab.versions import FORMS, ModuleVersion, Named, Release, parse_version
from chainmark.store.paths import cache_directory
from chainmark.systems.cometbft import nodes
from chainmark.systems.cometbft.applications.adapter import Adapter, ProgramOf

# The cache folder of applications' programs, by name.
_OF_APPLICATIONS = "cometbft-"


def install(version: str, adapter: Adapter | None) -> Subject:
    """Ensure that a version's program is cached, and is the adapter's if there is one.

    Raises:
        UsageError: it does not exist, does not build, or is another program.
        EnvironmentFailure: the build failed, or the cached binary was changed.
    """
    if adapter is None or adapter.program is None:
        return nodes.install(version)
    cache, target = _cache(adapter, adapter.program), parse_version(version)
    if isinstance(target, Named):
        return _named(cache, version, adapter).subject
    if isinstance(target, Release) and adapter.program.module:
        target = ModuleVersion(adapter.program.module, version)
    if isinstance(target, Release):
        raise UsageError(
            f"`{version}` is a release, but the application `{adapter.name}` does not name its module",
            "give a binary, or set `program.module` and `program.package` of the adapter",
        )
    return cache.make(target, version).subject


def installed() -> list[tuple[Subject, Path]]:
    """The cached versions of CometBFT's own program, then of applications' programs, each by name."""
    result = nodes.installed()
    for root in sorted((cache_directory() / "nodes").glob(f"{_OF_APPLICATIONS}*")):
        name = root.name.removeprefix(_OF_APPLICATIONS)
        cache = Cache(root, "cometbft", Program(name=name, title=name, module="", package=""))
        result += [(record.subject, cache.binary(record)) for record in cache.all()]
    return result


def binary_path(version: str, adapter: Adapter | None) -> Path:
    """The program of an installed version, by the name under which it was installed."""
    if adapter is None or adapter.program is None:
        return nodes.binary_path(version)
    cache = _cache(adapter, adapter.program)
    return cache.binary(_named(cache, version, adapter))


def build_of(version: str, adapter: Adapter | None) -> Build:
    """How an installed version's program was built."""
    if adapter is None or adapter.program is None:
        return nodes.build_of(version)
    return _named(_cache(adapter, adapter.program), version, adapter).build


def changes_of(version: str, adapter: Adapter | None) -> Path | None:
    """The uncommitted changes in an installed version's sources."""
    if adapter is None or adapter.program is None:
        return nodes.changes_of(version)
    cache = _cache(adapter, adapter.program)
    return cache.changes(_named(cache, version, adapter))


def _cache(adapter: Adapter, program: ProgramOf) -> Cache:
    title = f"{adapter.name}'s {program.name}"
    retained = Program(
        name=program.name,
        title=title,
        module=program.module,
        package=program.package,
        version_arguments=tuple(program.version),
        of_a_chain=True,
    )
    folder = f"{_OF_APPLICATIONS}{re.sub(r'[^A-Za-z0-9._-]+', '-', program.name)}"
    return Cache(cache_directory() / "nodes" / folder, "cometbft", retained)


def _named(cache: Cache, version: str, adapter: Adapter) -> CacheRecord:
    record = cache.find(version)
    if record is None:
        raise UsageError(
            f"`{version}` is not a version of {cache.program.title}",
            f"write {FORMS}, or a name from a report",
        )
    return record
