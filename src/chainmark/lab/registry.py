"""The systems that are installed: the folders of `chainmark.systems`, and what other packages register.

A system is its folder: its module with the object `SYSTEM`, and the files next to it: `profiles/*.toml`,
`plans/*.toml`, `samples/*.tar.xz`, `commands.toml`. Finding them imports no system.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

PACKAGE = GROUP = "chainmark.systems"


@cache
def registered() -> Mapping[str, EntryPoint]:
    """Every system's entry point by name, sorted.

    Those within `chainmark.systems` are found by their folders alone, so one that is copied there or removed needs no
    new installation; an entry point of an earlier installation is ignored.
    """
    folders = (path.parent for path in (Path(__file__).parents[1] / "systems").glob("*/__init__.py"))
    own = {folder.name: EntryPoint(folder.name, f"{PACKAGE}.{folder.name}:SYSTEM", GROUP) for folder in folders}
    others = {item.name: item for item in entry_points(group=GROUP) if not item.module.startswith(f"{PACKAGE}.")}
    return dict(sorted({**others, **own}.items()))


@cache
def folders() -> Mapping[str, Path]:
    """The folder of every system by name; a package that is registered but was removed has none."""
    found = {name: _folder(point.module) for name, point in registered().items()}
    return {name: folder for name, folder in found.items() if folder is not None}


def _folder(module: str) -> Path | None:
    """The folder of a module; finding it runs the packages around the module, but not the module."""
    try:
        spec = find_spec(module)
    except ImportError:
        return None
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def shipped(kind: str) -> dict[str, Path]:
    """The TOML files that come with systems in a folder of theirs, by name, sorted: "NAME/demo" in "profiles"."""
    files = {
        f"{name}/{path.stem}": path for name, folder in folders().items() for path in (folder / kind).glob("*.toml")
    }
    return dict(sorted(files.items()))
