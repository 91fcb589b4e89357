"""Load systems."""

from __future__ import annotations

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.lab.protocols import System
from chainmark.lab.registry import registered


def system_names() -> list[str]:
    """The names of all registered systems."""
    return list(registered())


def load_system(name: str) -> System:
    """The system of that name, through its entry point.

    Raises:
        UsageError: no such system is registered.
        EnvironmentFailure: it is registered, but its code cannot be loaded.
    """
    point = registered().get(name)
    if point is None:
        raise UsageError(f"there is no system `{name}`", f"known systems: {', '.join(system_names()) or 'none'}")
    try:
        system: System = point.load()
    except ImportError as error:
        raise EnvironmentFailure(
            f"the system `{name}` is registered, but its code cannot be loaded ({error})", "reinstall its package"
        ) from error
    return system
