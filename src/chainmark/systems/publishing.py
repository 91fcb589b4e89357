"""What a system gives that can read the published reports of its benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from chainmark.core.published import PublishedReport
from chainmark.systems.base import System


@runtime_checkable
class PublishingSystem(System, Protocol):
    """A system whose benchmarks are published as reports that chainmark can read."""

    def recognises_document(self, path: Path) -> bool:
        """Whether a file is a published report of this system; false also for what cannot be read."""

    def published_report(self, path: Path, tool_version: str) -> PublishedReport:
        """The report with the values and changes that it prints.

        Raises:
            UsageError: the file cannot be read, or is not such a report.
        """
