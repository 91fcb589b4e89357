"""What a system gives the rest of the house, and how systems are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol

import polars as pl
from pydantic import BaseModel

from chainmark.core.catalogue import Catalogue
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.manifest import Configuration, Gate, Incident, Scalar, Subject
from chainmark.core.progress import Progress
from chainmark.store.runs import UnfinishedRun

ENTRY_POINT_GROUP = "chainmark.systems"


@dataclass
class Execution:
    """What one execution of a profile yields: everything left of the samples, and the samples."""

    subject: Subject
    samples: dict[str, pl.DataFrame]
    configuration: Configuration
    conditions: dict[str, str]
    counts: dict[str, dict[str, int]]
    gates: list[Gate]
    incidents: list[Incident] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Order:
    """One execution to make: which version, with which options."""

    version: str
    seed: int
    keep_homes: bool


class System(Protocol):
    """A kind of thing under test. Its folder under ``systems/`` is all that knows what it is."""

    name: str
    title: str

    def catalogue(self) -> Catalogue:
        """Its metrics."""

    def profile(self, content: Mapping[str, object]) -> BaseModel:
        """Check a profile's content and fill in the defaults.

        Raises:
            UsageError: a key is unknown or a value impossible; the hint says what to write.
        """

    def workload(self, profile: BaseModel) -> dict[str, Scalar | list[Scalar]]:
        """What two runs of it must share to be comparable, flattened to dotted keys."""

    def install(self, version: str) -> Subject:
        """Make sure that version can be run; quick when it is cached.

        Raises:
            UsageError: there is no such version.
            EnvironmentFailure: it could not be built.
        """

    def installed(self) -> list[tuple[Subject, Path]]:
        """The versions that are cached, with their binaries."""

    def execute(self, profile: BaseModel, order: Order, run: UnfinishedRun, progress: Progress) -> Execution:
        """Run the profile once: raw material and events go into ``run``, samples are returned."""


def system_names() -> list[str]:
    """The names of all registered systems."""
    return sorted(point.name for point in entry_points(group=ENTRY_POINT_GROUP))


def load_system(name: str) -> System:
    """The system of that name, through its entry point.

    Raises:
        UsageError: no such system is registered.
        EnvironmentFailure: it is registered, but its code cannot be loaded.
    """
    points: list[EntryPoint] = [point for point in entry_points(group=ENTRY_POINT_GROUP) if point.name == name]
    if not points:
        raise UsageError(f"there is no system `{name}`", f"known systems: {', '.join(system_names()) or 'none'}")
    try:
        system: System = points[0].load()
    except ImportError as error:
        raise EnvironmentFailure(
            f"the system `{name}` is registered, but its code cannot be loaded ({error})", "reinstall its package"
        ) from error
    return system
