"""Data derived from a sealed run, cached next to the runs, and regenerated if it does not match.

It may be removed at any time, and a read-only store has none.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import blake3

from chainmark.core.errors import ChainmarkError
from chainmark.store.files import json_bytes, write_bytes

FOLDER = "derived"
_MADE = "made.json"  # the run, and the hashes of the derived files; written last


class Derived:
    """The folder of the data derived from one run.

    Args:
        run: the run's folder in a store.
    """

    def __init__(self, run: Path) -> None:
        self._folder = run.parent.parent / FOLDER / run.name
        self._is_in_store = run.parent.name == "runs"

    def read(self, name: str, seal: str) -> bytes | None:
        """A file's content; None if it is missing, damaged, or from earlier content of the folder.

        Args:
            name: of the file.
            seal: the hash of the run's seal.
        """
        try:
            record = json.loads((self._folder / _MADE).read_text(encoding="utf-8"))
            content = (self._folder / name).read_bytes()
            sound = record["seal"] == seal and record["blake3"] == {name: blake3.blake3(content).hexdigest()}
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return content if sound else None

    def write(self, name: str, seal: str, content: bytes) -> None:
        """Store a file for the next time; without write permission, nothing is stored."""
        if not self._is_in_store:
            return
        try:
            write_bytes(self._folder / name, content)
            record = {"seal": seal, "blake3": {name: blake3.blake3(content).hexdigest()}}
            write_bytes(self._folder / _MADE, json_bytes(record))
        except (OSError, ChainmarkError):
            self.remove()

    def remove(self) -> None:
        """Remove all derived data."""
        if self._is_in_store:
            shutil.rmtree(self._folder, ignore_errors=True)
