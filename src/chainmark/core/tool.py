"""chainmark's own version, as manifests and reports tell it."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version


@cache  # the package's metadata hold its whole README, and are parsed anew every time
def tool_version() -> str:
    """The version of chainmark itself."""
    return version("chainmark")
