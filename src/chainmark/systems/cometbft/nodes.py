"""CometBFT node binaries: releases from the Go module proxy, and the other forms of a version."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from chainmark.builds.cache import Cache, CacheRecord, described
from chainmark.builds.golang import build_info, go, require_go
from chainmark.builds.program import Program
from chainmark.core.build import Build
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import Subject
from chainmark.lab.versions import FORMS, Named, Release, parse_version
from chainmark.store.files import json_bytes, write_bytes
from chainmark.store.paths import cache_directory

MODULE = "github.com/cometbft/cometbft"
PROGRAM = Program(name="cometbft", title="CometBFT", module=MODULE, package="cmd/cometbft")
VERSION_PATTERN = re.compile(r"^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$")

# How Go and its module proxies report an unknown version; anything else is an error of the machine or the network.
UNKNOWN_VERSION = re.compile(
    r"unknown revision|invalid version|no matching versions|not found|not available|\b(404|410)\b", re.IGNORECASE
)


def nodes_directory() -> Path:
    """The cache folder of the binaries, one folder per version."""
    return cache_directory() / "nodes" / "cometbft"


def builds() -> Cache:
    """The binaries that are not releases of the module."""
    return Cache(nodes_directory(), "cometbft", PROGRAM)


def binary_path(version: str) -> Path:
    """The node's binary of an installed version, by the name under which it was installed.

    Raises:
        UsageError: it is not a release, and the cache has no such name.
    """
    if VERSION_PATTERN.match(version):
        return nodes_directory() / version / "cometbft"
    return builds().binary(_named(version))


def installed() -> list[tuple[Subject, Path]]:
    """All cached versions with their binaries: releases, then builds, each by name."""
    folders = sorted(nodes_directory().glob("v*/binary.json"))
    releases = [(_read_subject(path), path.parent / "cometbft") for path in folders]
    return [*releases, *((record.subject, builds().binary(record)) for record in builds().all())]


def install(version: str) -> Subject:
    """Ensure that a version's binary is cached and unchanged since it was built.

    Args:
        version: as :func:`~chainmark.lab.versions.parse_version` parses it. The result has the subject's version from
            then on, even if the branch or the file changes: installing that name is fast.

    Raises:
        UsageError: it does not exist, does not build, or is another program.
        EnvironmentFailure: Go is missing, the build failed, or the cached binary was changed.
    """
    target = parse_version(version)
    if isinstance(target, Release | Named):
        if VERSION_PATTERN.match(version):
            record = binary_path(version).with_name("binary.json")
            return _checked(record, version) if record.is_file() else _build(version)
        return _named(version).subject
    return builds().make(target, version).subject


def build_of(version: str) -> Build:
    """How an installed version's binary was built."""
    if not VERSION_PATTERN.match(version):
        return _named(version).build
    info = build_info(binary_path(version))
    facts = {} if info is None else described(info)
    return Build.model_validate({"ordered": version, "reported": version.removeprefix("v"), **facts})


def changes_of(version: str) -> Path | None:
    """The uncommitted changes in an installed version's sources."""
    return None if VERSION_PATTERN.match(version) else builds().changes(_named(version))


def _named(version: str) -> CacheRecord:
    record = builds().find(version)
    if record is None:
        raise UsageError(f"`{version}` is not a version of CometBFT", _version_hint(version))
    return record


def _checked(record: Path, version: str) -> Subject:
    subject = _read_subject(record)
    if _sha256(binary_path(version)) != subject.binary_sha256:
        raise EnvironmentFailure(
            f"the cached binary of CometBFT {version} has changed since it was built",
            f"remove {record.parent} and install it again",
        )
    return subject


def _read_subject(record: Path) -> Subject:
    return Subject.model_validate(json.loads(record.read_text(encoding="utf-8"))["subject"])


def _build(version: str) -> Subject:
    require_go()
    nodes_directory().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=nodes_directory(), prefix=".building-") as folder:
        built = Path(folder)
        package = f"{MODULE}/cmd/cometbft@{version}"
        outcome = go(["install", package], environment={"GOBIN": str(built), "GOFLAGS": "-trimpath"})
        if outcome.returncode != 0:
            raise _build_error(version, outcome.stderr)
        binary = built / "cometbft"
        _require_version(binary, version)
        write_bytes(built / "binary.json", json_bytes({"subject": _describe(binary, version).model_dump(mode="json")}))
        target = nodes_directory() / version
        shutil.rmtree(target, ignore_errors=True)
        built.rename(target)
        built.mkdir()  # the temporary folder's own clean-up expects it
    return _read_subject(target / "binary.json")


def install_tool(version: str, package: str, name: str) -> Path:
    """Ensure that another program of the same module is cached next to the node's binary, as it was built.

    Args:
        version: of CometBFT, whose node is installed.
        package: below the module, "test/e2e/node".
        name: of the cached file.

    Raises:
        UsageError: that version has no such package.
        EnvironmentFailure: it could not be built, or was changed since.
    """
    if not VERSION_PATTERN.match(version):
        return builds().tool(_named(version), package, name)
    folder = binary_path(version).parent
    cached, record = folder / name, folder / f"{name}.json"
    if not record.is_file():
        with tempfile.TemporaryDirectory(dir=nodes_directory(), prefix=".building-") as built:
            path = f"{MODULE}/{package}@{version}"
            outcome = go(["install", path], environment={"GOBIN": built, "GOFLAGS": "-trimpath"})
            if outcome.returncode != 0:
                raise _build_error(version, outcome.stderr, package)
            (Path(built) / package.rpartition("/")[2]).replace(cached)
        write_bytes(record, json_bytes({"package": path, "sha256": _sha256(cached)}))
    if json.loads(record.read_text(encoding="utf-8"))["sha256"] != _sha256(cached):
        raise EnvironmentFailure(
            f"the cached `{name}` of CometBFT {version} has changed since it was built",
            f"remove {record} and try again",
        )
    return cached


def _build_error(version: str, output: str, package: str = "cmd/cometbft") -> UsageError | EnvironmentFailure:
    """One sentence from Go's many lines: whether the version or the machine is the cause."""
    if UNKNOWN_VERSION.search(output):
        return UsageError(f"CometBFT has no version `{version}`", _version_hint(version))
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reason = lines[-1].rpartition(f"@{version}: ")[2] if lines else "no output"
    return EnvironmentFailure(
        f"CometBFT {version} could not be built: {reason}",
        f"`go install {MODULE}/{package}@{version}` shows the details",
    )


def published(also: Sequence[str] = ()) -> list[str]:
    """All published versions, sorted.

    Args:
        also: releases to include even if the module proxy does not list them: a mirror lists only some.

    Raises:
        EnvironmentFailure: Go is missing, or the module proxy does not respond.
    """
    known = _known_versions()
    if not known:
        raise EnvironmentFailure(
            "the versions of CometBFT cannot be listed: the module proxy does not respond",
            f"`go list -m -versions {MODULE}` shows the details",
        )
    return sorted({*known, *filter(VERSION_PATTERN.match, also)}, key=_order)


def _order(version: str) -> tuple[list[int], bool, list[tuple[bool, int, str]]]:
    """By its numbers; pre-releases come before their release: v1.0.0-rc2, v1.0.0-rc10, v1.0.0."""
    numbers, _, before = version.removeprefix("v").partition("+")[0].partition("-")
    parts = [
        (not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.findall(r"\d+|[^\d.]+", before)
    ]
    return [int(number) for number in numbers.split(".")], not before, parts


def _known_versions() -> list[str]:
    outcome = go(["list", "-m", "-versions", MODULE])
    return outcome.stdout.split()[1:] if outcome.returncode == 0 else []


def _version_hint(version: str) -> str:
    if isinstance(parse_version(version), Named):
        return f"write {FORMS}, or a name that `chainmark nodes list` shows"
    if f"v{version}" in _known_versions():
        return f"did you mean `v{version}`?"
    known = _known_versions()
    if not known:
        return f"write {FORMS}"
    # A typing error is more likely in the last number than in the first: the longest common prefix decides.
    similar = difflib.get_close_matches(version, known, n=len(known), cutoff=0.75)
    if not similar:
        return f"the newest versions are {', '.join(known[-3:])}"
    return f"did you mean `{max(similar, key=lambda item: _common_beginning(item, version))}`?"


def _common_beginning(item: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(item, other, strict=False)))


def _require_version(binary: Path, version: str) -> None:
    output = subprocess.run([binary, "version"], capture_output=True, text=True, timeout=30, check=False).stdout.strip()
    if output.split("+")[0] != version.removeprefix("v"):
        raise EnvironmentFailure(f"the binary built for CometBFT {version} reports its version as `{output}`")


def _describe(binary: Path, version: str) -> Subject:
    build = go(["version", "-m", str(binary)]).stdout.splitlines()
    modules = [line.split() for line in build if line.split()[:2] == ["mod", MODULE]]
    return Subject(
        system="cometbft",
        name="CometBFT",
        version=version,
        revision=modules[0][3] if modules and len(modules[0]) > 3 else None,
        build=build[0].rpartition(": ")[2] if build else None,
        binary_sha256=_sha256(binary),
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
