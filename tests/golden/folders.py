"""Folders that are removed when the process ends: results made in them are kept for other inputs of it."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

_KEPT = ExitStack()
atexit.register(_KEPT.close)


def temporary_folder() -> Path:
    """A new one."""
    return Path(_KEPT.enter_context(TemporaryDirectory(prefix="golden-")))
