"""Logs of a simulated cluster: the protocol of a system that can write them, and the request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.lab.protocols import System


@dataclass(frozen=True)
class SyntheticRequest:
    """The logs to write.

    Attributes:
        folder: the output folder.
        slots: duration of the network.
        profile: a profile's name or path; None uses the system's own.
        settings: of the profile, as `--set` takes them.
        hosts: number of hosts; None uses the profile's.
        topology: a rule's name or a file; None uses the profile's.
        formats: `FORMAT` for all hosts, or `FORMAT:HOST,HOST`; the last one that names a host counts.
        compression: "none", "gzip" or "zstd".
        rotation: a number of lines, or of bytes with a unit ("100MB"), after which a file ends; None: never.
        faults: as the system's :meth:`SyntheticSystem.fault_kinds` describes them.
        system_start: when the network starts; None uses the system's own constant.
        threads: 0 means all cores. The bytes do not depend on it.
        replace: whether a folder that already holds such logs may be replaced.
    """

    folder: Path
    slots: int
    seed: int = 1
    profile: str | None = None
    settings: tuple[str, ...] = ()
    hosts: int | None = None
    topology: str | None = None
    formats: tuple[str, ...] = ()
    compression: str = "none"
    rotation: str | None = None
    faults: tuple[str, ...] = ()
    system_start: datetime | None = None
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
    """The result.

    Attributes:
        blocks_forked: blocks that lost their battle.
        lines_after_truth: lines about blocks after the ground truth about them was closed; expected to be none.
    """

    model_config = ConfigDict(frozen=True)

    folder: Path
    profile: str
    seed: int
    hosts: int
    slots: int
    blocks: int
    blocks_on_chain: int
    blocks_forked: int
    transactions: int
    lines: int
    lines_per_host_s: float
    text_bytes: int
    stored_bytes: int
    faults: list[SyntheticFault]
    lines_after_truth: int


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
