"""Logs of a simulated cluster: the protocol of a system that can write them, and the request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.lab.protocols import System


@dataclass(frozen=True)
class SyntheticRequest:
    """The logs to write.

    Attributes:
        folder: the output folder.
        profile: a profile's name or path; None uses the system's own.
        settings: of the profile, as `--set` takes them.
        hosts: number of hosts; None uses the profile's.
        compression: of the files, by name: "none" if they have none.
        rotation: a number of lines, or of bytes with a unit ("100MB"), after which a file ends; None: never.
        faults: as the system's :meth:`SyntheticSystem.fault_kinds` describes them.
        options: of the system, as it declares them for `chainmark synth`.
        threads: 0 means all cores. The bytes do not depend on it.
        replace: whether a folder that already holds such logs may be replaced.
    """

    folder: Path
    seed: int = 1
    profile: str | None = None
    settings: tuple[str, ...] = ()
    hosts: int | None = None
    compression: str = "none"
    rotation: str | None = None
    faults: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    threads: int = 0
    replace: bool = False


class FaultKind(NamedTuple):
    """A kind of fault that can be requested."""

    name: str
    meaning: str
    example: str


class SyntheticFault(BaseModel):
    """A fault of a host, and the number of lines that it removed, added or damaged individually.

    Attributes:
        value: a probability if it has no unit; 0 if the kind has none.
        name: the value, if it is a name.
    """

    model_config = ConfigDict(frozen=True)

    fault: str
    host: str
    from_s: float | None
    until_s: float | None
    value: float
    unit: str
    name: str
    lines: int


class SyntheticLogs(BaseModel):
    """The result. A system adds what its network made."""

    model_config = ConfigDict(frozen=True)

    folder: Path
    profile: str
    seed: int
    hosts: int
    lines: int
    lines_per_host_s: float
    text_bytes: int
    stored_bytes: int
    faults: list[SyntheticFault]

    def contents(self) -> Mapping[str, str]:
        """What the simulated network made, as labels and texts."""
        return {}


@runtime_checkable
class SyntheticSystem(System, Protocol):
    """A system for whose clusters chainmark can write logs without running them, with the ground truth next to them."""

    def fault_kinds(self) -> list[FaultKind]:
        """The available faults."""

    def synthesise(self, order: SyntheticRequest, progress: Progress) -> SyntheticLogs:
        """Write the logs; an interrupted or failed attempt leaves nothing behind.

        Raises:
            UsageError: the request is invalid, or the folder exists.
            EnvironmentFailure: the folder cannot be written.
        """


def synthetic(system: System) -> SyntheticSystem:
    """The same system typed as one whose logs can be written.

    Raises:
        UsageError: they cannot.
    """
    if isinstance(system, SyntheticSystem):
        return system
    raise UsageError(
        f"chainmark cannot generate logs of `{system.name}`: it has no model of this system",
        f"`chainmark metrics {system.name}` shows its metrics",
    )
