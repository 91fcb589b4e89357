"""The verdicts that commands reported of their experiments, for lists that do not judge again."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from chainmark.core.verdict import Verdict

CONCLUSION = "verdict.json"


class Conclusion(BaseModel):
    """``verdict.json`` of an experiment."""

    schema_version: int = 1
    verdict: Verdict
    sentence: str


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
                    self._known[name] = stamp, Conclusion.model_validate_json(path.read_bytes()).verdict
            except (OSError, ValueError):
                continue
            known[name] = self._known[name][1]
        return known
