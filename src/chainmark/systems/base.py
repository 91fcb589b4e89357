"""Find systems by the entry points that their packages register."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.lab.protocols import System
from chainmark.systems.offered import ENTRY_POINT_GROUP


def system_names() -> list[str]:
    """The names of all registered systems."""
    return sorted(point.name for point in _points())


def load_system(name: str) -> System:
    """The system of that name, through its entry point.

    Raises:
        UsageError: no such system is registered.
        EnvironmentFailure: it is registered, but its code cannot be loaded.
    """
    points = [point for point in _points() if point.name == name]
    if not points:
        raise UsageError(f"there is no system `{name}`", f"known systems: {', '.join(system_names()) or 'none'}")
    try:
        system: System = points[0].load()
    except ImportError as error:
        raise EnvironmentFailure(
            f"the system `{name}` is registered, but its code cannot be loaded ({error})", "reinstall its package"
        ) from error
    return system


@cache
def _points() -> tuple[EntryPoint, ...]:
    """All registered systems, looked up once: that reads a file of every installed package."""
    return tuple(entry_points(group=ENTRY_POINT_GROUP))
