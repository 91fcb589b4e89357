"""Systems whose requests are sampled from a server, or taken from somebody's files, and kept for many load tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from pydantic import BaseModel

from chainmark.capacity.model import Target
from chainmark.core.progress import Progress
from chainmark.lab.protocols import ServiceRequest, System


@dataclass(frozen=True)
class WrongRequest:
    """A request that is not answered rightly, and why."""

    endpoint: str
    body: str
    reason: str


@dataclass(frozen=True)
class KeptCorpus:
    """What a file of requests holds.

    Attributes:
        hash: of its content; two tests with the same one asked the same.
        network: what it belongs to.
        requests: by endpoint, how many of each kind.
        refused: what was not taken in, because its answer was wrong.
        skipped: endpoints without requests, with the reason.
    """

    hash: str
    network: str
    requests: Mapping[str, Mapping[str, int]]
    refused: tuple[WrongRequest, ...]
    skipped: Mapping[str, str]


@runtime_checkable
class CorpusSystem(System, Protocol):
    """A system whose requests can be kept in a file."""

    def keep_corpus(self, profile: BaseModel, order: ServiceRequest, progress: Progress) -> KeptCorpus:
        """Write requests that the order's target answers rightly to ``order.pinned``: sampled, or of ``order.corpus``.

        Raises:
            UsageError: it is no such server, or the files are not such as can be taken.
            EnvironmentFailure: it cannot be reached, or the file cannot be written.
        """

    def check_corpus(self, path: Path, target: Target, progress: Progress) -> tuple[KeptCorpus, list[WrongRequest]]:
        """Ask a server every request of a kept file once; those that it does not answer rightly.

        Raises:
            UsageError: there is no such file, or it belongs to another network.
            EnvironmentFailure: the server cannot be reached.
        """
