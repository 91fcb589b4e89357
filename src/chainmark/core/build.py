"""What a program was built of and with: kept in a run beside its figures, so that a comparison can say what differs."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

DOCUMENT = "build"


class Commit(BaseModel):
    """A commit of a repository; ids are whole."""

    model_config = ConfigDict(frozen=True)

    id: str
    parents: list[str] = []
    subject: str = ""


class Build(BaseModel):
    """How a program came to be; ``documents/build.json`` of a run.

    Attributes:
        ordered: the version as it was asked for.
        reported: what the program calls itself.
        toolchain: the compiler's version.
        flags: of the command that built it, and what of the environment decides the result.
        settings: what the program itself says of its build.
        modules: by module, its version, "v1.2.3", or what replaced it, "v1.2.3 => ../other".
        repository: the checkout's folder name.
        commit: that was built.
        changes_sha256: of the changes that were not committed; the run keeps them as ``raw/build/changes.diff``.
        replacements: by module, what was ordered to stand for it.
        commits: the commit's history, itself first, as far as it is kept.
        ancestry: how many commits its whole history has, itself among them.
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
    """How the builds of two sides differ.

    Attributes:
        facts: label, baseline, candidate; those that are equal too.
        modules: that differ: the module, and its version on each side; "" where it is not there.
        shared_modules: how many are equal.
        added, removed: commits that only the candidate, or only the baseline, is made of; the newest first, cut short.
        added_in_all, removed_in_all: how many they are.
        untold: why the commits between the two are not known, or not for sure; "" where they are.
    """

    model_config = ConfigDict(extra="forbid")

    facts: list[tuple[str, str, str]]
    modules: list[tuple[str, str, str]] = []
    shared_modules: int = 0
    added: list[Commit] = []
    removed: list[Commit] = []
    added_in_all: int = 0
    removed_in_all: int = 0
    untold: str = ""
