"""The source and toolchain of a program, stored in a run so that a comparison can list the differences."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict

from chainmark.core.former_names import renamed

DOCUMENT = "build"


class Commit(BaseModel):
    """A commit of a repository; ids are complete."""

    model_config = ConfigDict(frozen=True)

    id: str
    parents: list[str] = []
    subject: str = ""


class Build(BaseModel):
    """The origin of a program; ``documents/build.json`` of a run.

    Attributes:
        ordered: the requested version.
        reported: the program's own version.
        toolchain: the compiler's version.
        flags: of the build command, and the relevant parts of the environment.
        settings: the program's own build information.
        modules: by module, its version, "v1.2.3", or what replaced it, "v1.2.3 => ../other".
        repository: the checkout's folder name.
        commit: the commit of the build.
        changes_sha256: of the uncommitted changes; the run stores them as ``raw/build/changes.diff``.
        replacements: by module, the requested replacement.
        commits: the commit's history, itself first, as far as it is stored.
        ancestry: number of commits in its whole history, including itself.
    """

    model_config = ConfigDict(extra="forbid")

    ordered: str
    reported: str = ""
    toolchain: str = ""
    flags: list[str] = []
    settings: dict[str, str] = {}
    modules: dict[str, str] = {}
    repository: str | None = None
    commit: str | None = None
    changes_sha256: str | None = None
    replacements: dict[str, str] = {}
    commits: list[Commit] = []
    ancestry: int = 0


class BuildDifferences(BaseModel):
    """The differences between the builds of two sides.

    Attributes:
        facts: label, baseline, candidate; including equal ones.
        modules: the differing ones: the module, and its version on each side; "" if it is missing.
        shared_modules: number of equal ones.
        added, removed: commits of only the candidate, or only the baseline; the newest first, truncated.
        added_in_all, removed_in_all: their number.
        unknown_reason: why the commits between the two are unknown, or uncertain; "" if they are known.
    """

    model_config = ConfigDict(extra="forbid")

    facts: list[tuple[str, str, str]]
    modules: list[tuple[str, str, str]] = []
    shared_modules: int = 0
    added: list[Commit] = []
    removed: list[Commit] = []
    added_in_all: int = 0
    removed_in_all: int = 0
    unknown_reason: Annotated[str, renamed("unknown_reason", "untold")] = ""
