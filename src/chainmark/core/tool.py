"""chainmark's own version, as manifests and reports tell it."""

from __future__ import annotations

from importlib.metadata import version


def tool_version() -> str:
    """The version of chainmark itself."""
    return version("chainmark")
