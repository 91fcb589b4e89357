"""Logs of a cluster that never ran: what a system needs that can make them, and how they are ordered."""

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
    """What logs are to be made.

    Attributes:
        folder: where they go.
        slots: how long the network lives.
        profile: a profile's name or path; None takes the system's own.
        settings: of the profile, as `--set` takes them.
        hosts: how many; None leaves it to the profile.
        topology: a rule's name or a file; None leaves it to the profile.
        formats: `FORMAT` for all hosts, or `FORMAT:HOST,HOST`; the last one that names a host counts.
        compression: "none", "gzip" or "zstd".
        rotation: a number of lines, or of bytes with a unit ("100MB"), after which a file ends; None: never.
        faults: as the system's :meth:`SyntheticSystem.fault_kinds` describes them.
        system_start: when the network starts; None takes the system's own constant.
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
    """A kind of fault that can be ordered."""

    name: str
    meaning: str
    example: str


class SyntheticFault(BaseModel):
    """A fault that befell a host, and the lines that it took, added or damaged one by one.

    Attributes:
        value: a probability where it has no unit; 0 where the kind takes none.
        name: the value, where it is a name.
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
    """What was made.

    Attributes:
        blocks_forked: blocks that lost their battle.
        lines_after_truth: lines about blocks that came after the truth about them was closed; expected to be none.
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
    """A system of whose clusters chainmark can write logs without running them, with the truth beside them."""

    def fault_kinds(self) -> list[FaultKind]:
        """What can go wrong on request."""

    def synthesise(self, order: SyntheticRequest, progress: Progress) -> SyntheticLogs:
        """Write the logs; an interrupted or failed attempt leaves nothing behind.

        Raises:
            UsageError: the order is impossible, or the folder is taken.
            EnvironmentFailure: the folder cannot be written.
        """


def synthetic(system: System) -> SyntheticSystem:
    """The same system as one whose logs can be made.

    Raises:
        UsageError: they cannot.
    """
    if isinstance(system, SyntheticSystem):
        return system
    raise UsageError(
        f"chainmark cannot make logs of `{system.name}`: it has no model to generate them from",
        f"`chainmark metrics {system.name}` shows its metrics",
    )
