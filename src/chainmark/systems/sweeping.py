"""Interfaces for a system's own results of sweeps and qualifications, which it stores and lays out itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from chainmark.core.attachment import Attachment
from chainmark.lab.protocols import SweptSystem, System
from chainmark.lab.sweeping import SweepTest
from chainmark.store.sealed import SealedRun
from chainmark.systems.capabilities import Capability

if TYPE_CHECKING:
    from chainmark.compare.qa_scenarios import SecondRule


@runtime_checkable
class SaturableSystem(SweptSystem, Protocol):
    """A system with its own sweep results. The data of a version are opaque to the caller."""

    def swept_version(self, label: str, runs: Sequence[SealedRun]) -> Any:
        """All runs of one version."""

    def published_sweep(self, path: Path, label: str | None) -> Any:
        """A published table of such a test, as a version.

        Raises:
            UsageError: it is of another kind.
        """

    def saturation(self, test: SweepTest, versions: Sequence[Any]) -> Attachment:
        """The document of these versions, in this order."""


@runtime_checkable
class SecondRuleSystem(System, Protocol):
    """A system whose published reports judge by their own rule, which is shown next to ours."""

    def second_rule(self) -> SecondRule:
        """The rule."""


saturable: Capability[SaturableSystem] = Capability(SaturableSystem, "cannot find the saturation of {}")


def second_rule_of(system: System) -> SecondRule | None:
    """The rule of its published reports; None if it has none."""
    return system.second_rule() if isinstance(system, SecondRuleSystem) else None
