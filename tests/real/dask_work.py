"""Tasks that tests submit to workers. The workers import them from here."""

from __future__ import annotations

import threading
from pathlib import Path

from chainmark.cluster.working import watched


def until_cancelled(folder: str) -> str:
    """Work until the task is cancelled, then write a file that records it."""
    is_cancelled = threading.Event()
    Path(folder, "begun").touch()
    with watched(is_cancelled.set, lambda: [1, 1]):
        is_cancelled.wait(120)
    Path(folder, "cancelled" if is_cancelled.is_set() else "forgotten").touch()
    return folder
