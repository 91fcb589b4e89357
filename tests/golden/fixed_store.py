"""A store whose runs have the same ids every time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chainmark.store.runs import Store
from chainmark.store.unfinished import UnfinishedRun

_STAMP = "20260101T000000"


class FixedStore(Store):
    """Names runs by their content and the order of their creation, instead of by time and random digits."""

    def create(self, system: str, profile_name: str, version: str, state: Mapping[str, Any]) -> UnfinishedRun:
        """Create the folder of a new run, named ``<system>-<profile>-<version>-<constant time>-<number>``."""
        run = super().create(system, profile_name, version, state)
        name, _, _ = run.run_id.rsplit("-", 2)
        number = sum(1 for path in run.path.parent.iterdir())
        return UnfinishedRun(run.path.rename(run.path.with_name(f"{name}-{_STAMP}-{number:04x}")))
