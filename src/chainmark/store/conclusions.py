"""The verdicts that commands reported of their experiments, for lists that do not judge again."""

from __future__ import annotations

import json
from pathlib import Path

from chainmark.core.verdict import Verdict

CONCLUSION = "verdict.json"


class Conclusions:
    """The stored verdicts of a store's experiments. Each is read again only after a change."""

    def __init__(self, root: Path) -> None:
        self._folder = root / "experiments"
        self._known: dict[str, tuple[int, Verdict]] = {}

    def by_experiment(self) -> dict[str, Verdict]:
        """The verdicts by experiment; an unreadable one is omitted."""
        known = {}
        for path in self._folder.glob(f"*/{CONCLUSION}"):
            name = path.parent.name
            try:
                stamp = path.stat().st_mtime_ns
                if name not in self._known or self._known[name][0] != stamp:
                    self._known[name] = stamp, Verdict(json.loads(path.read_bytes())["verdict"])
            except (OSError, ValueError, KeyError, TypeError):
                continue
            known[name] = self._known[name][1]
        return known
