"""Parse a version as the user writes it: a release, a binary, a checkout, a module.

``v1.0.1``                              a release of the system's own module
``./build/node``, ``/opt/node``         a binary
``git:PATH``                            a checkout or worktree as it is, including uncommitted changes
``git:PATH@REF``                        a branch, tag or commit of it, without uncommitted changes
``git:PATH@REF?replace=MODULE=TARGET``  the same with modules replaced by folders, or by others (``module@v1.2.3``)
``example.com/fork/module@v1.2.3``      another module, from the module proxy
``main@4f2cb01``                        the name of a build in the cache, as in reports and lists

The system interprets it: some systems only accept releases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from chainmark.core.errors import UsageError

GIT = "git:"
FORMS = "`v1.0.1`, `./path/to/binary`, `git:PATH@REF`, or `example.com/fork/module@v1.2.3`"
_RELEASE = re.compile(r"^v?\d[0-9A-Za-z.+-]*$")
_MODULE = re.compile(r"^(?P<path>[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._~-]+)+)@(?P<version>[^@\s]+)$")
_PATH_STARTS = ("./", "../", "/", "~")
# Characters allowed in a name: it is part of run IDs and file names, and must be one word in a shell.
_NAME_LENGTH_MAX = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._+~-]+")


class DoesNotBuild(UsageError):  # noqa: N818 - not an error for a search among commits
    """The named version exists, but no program can be built from it."""


@dataclass(frozen=True)
class Release:
    """A release of the system's own module; ``version`` is as written."""

    version: str


@dataclass(frozen=True)
class BinaryFile:
    """An existing binary."""

    path: Path


@dataclass(frozen=True)
class Checkout:
    """A checkout or worktree of a repository, or a folder in one.

    Attributes:
        ref: None: the working tree.
        replacements: by module, its replacement: a folder's path, or "module@version".
    """

    path: Path
    ref: str | None = None
    replacements: tuple[tuple[str, str], ...] = ()

    def absolute(self) -> Checkout:
        """The same with an absolute path."""
        replacements = tuple((module, absolute_target(target)) for module, target in self.replacements)
        return replace(self, path=self.path.absolute(), replacements=replacements)


@dataclass(frozen=True)
class ModuleVersion:
    """A module at a version, as the module proxy knows it."""

    module: str
    version: str


@dataclass(frozen=True)
class Named:
    """None of these by its form: the name of a build, or invalid."""

    name: str


Target = Release | BinaryFile | Checkout | ModuleVersion | Named


def parse_version(text: str) -> Target:
    """The meaning of a version.

    Folders and files are checked if the text is ambiguous: a path may contain an ``@``.

    Raises:
        UsageError: it is empty, or a part of a ``git:`` version is missing.
    """
    if not text.strip():
        raise UsageError("the version is empty", f"write {FORMS}")
    if text.startswith(GIT):
        return _checkout(text)
    if text.startswith(_PATH_STARTS) or ("/" in text and Path(text).exists()):
        return BinaryFile(Path(text).expanduser())
    if match := _MODULE.match(text):
        return ModuleVersion(match["path"], match["version"])
    return Release(text) if _RELEASE.match(text) and "@" not in text else Named(text)


def is_folder(target: str) -> bool:
    """Whether the replacement of a module is a folder, and not another module."""
    return target.startswith((".", "/", "~")) or "@" not in target


def absolute_target(target: str) -> str:
    """The replacement of a module with an absolute path."""
    return str(Path(target).expanduser().absolute()) if is_folder(target) else target


def plain_name(text: str) -> str:
    """A text as a part of a build's name: "feature/x" is "feature-x"."""
    return _NOT_IN_NAMES.sub("-", text)[:_NAME_LENGTH_MAX].strip("-.") or "unnamed"


def _checkout(text: str) -> Checkout:
    place, has_query, query = text.removeprefix(GIT).partition("?")
    path, ref = _place(place)
    if not path or ref == "":
        raise UsageError(
            f"`{text}` does not name a {'commit' if path else 'checkout'}", "write `git:PATH` or `git:PATH@REF`"
        )
    replacements = tuple(_replacement(part, text) for part in query.split("&")) if has_query else ()
    return Checkout(Path(path).expanduser(), ref, replacements)


def _place(text: str) -> tuple[str, str | None]:
    """The path and the ref, split at the first ``@`` before which a folder's path ends, else at the first one."""
    if "@" not in text or Path(text).expanduser().is_dir():
        return text, None
    places = [index for index, letter in enumerate(text) if letter == "@"]
    split = next((index for index in places if Path(text[:index]).expanduser().is_dir()), places[0])
    return text[:split], text[split + 1 :]


def _replacement(part: str, text: str) -> tuple[str, str]:
    key, _, rest = part.partition("=")
    module, _, target = rest.partition("=")
    if key != "replace" or not module or not target:
        raise UsageError(
            f"`{part}` in `{text}` is not a valid replacement", "write `?replace=MODULE=PATH`, or `MODULE=OTHER@v1.2.3`"
        )
    return module, target
