"""chainmark's own version, for manifests and reports."""

from __future__ import annotations

# The package's version: reading it from the installed package parses its whole description, half the time of
# `--version`.
VERSION = "0.1.0"


def tool_version() -> str:
    """The version of chainmark itself."""
    return VERSION
