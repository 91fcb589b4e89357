"""chainmark's own version, as manifests and reports tell it."""

from __future__ import annotations

# That of the package: to ask the installed package for it parses its whole description, half the time of `--version`.
VERSION = "0.1.0"


def tool_version() -> str:
    """The version of chainmark itself."""
    return VERSION
