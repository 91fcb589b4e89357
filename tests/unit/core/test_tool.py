"""The version that is stored in runs and reports."""

from __future__ import annotations

from importlib.metadata import version

from chainmark.core.tool import tool_version


def test_the_version_matches_the_installed_package() -> None:
    """A report with the wrong version cannot be reproduced."""
    assert tool_version() == version("chainmark")
