"""Systems whose requests are sampled from a server, or imported from users' files, and stored for many load tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from pydantic import BaseModel

from chainmark.capacity.model import Target
from chainmark.core.errors import UsageError
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress
from chainmark.lab.protocols import ServiceRequest, System


class OtherNetworkError(UsageError):
    """The requests are of another network than the server's."""


@dataclass(frozen=True)
class WrongRequest:
    """A request without a correct response, and why."""

    endpoint: str
    body: str
    reason: str


@dataclass(frozen=True)
class CorpusRecord:
    """The content of a file of requests.

    Attributes:
        hash: of its content; two tests with the same hash sent the same requests.
        network: the network of the requests.
        requests: by endpoint, the number of each kind.
        refused: requests that were not added, because their response was incorrect.
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

    def keep_corpus(self, profile: BaseModel, order: ServiceRequest, progress: Progress) -> CorpusRecord:
        """Write sampled requests, or those of ``order.corpus``, with correct responses to ``order.pinned``.

        Raises:
            UsageError: the server is of another kind, or the files cannot be imported.
            EnvironmentFailure: it cannot be reached, or the file cannot be written.
        """

    def check_corpus(
        self, path: Path, target: Target, progress: Progress, machines: Machines | None = None
    ) -> tuple[CorpusRecord, list[WrongRequest]]:
        """Send every request of a stored file once to a server; returns those without a correct response.

        Args:
            path: the file.
            target: the server.
            progress: receives the progress.
            machines: other machines that send the requests, at the same time.

        Raises:
            UsageError: there is no such file, or it belongs to another network.
            EnvironmentFailure: the server cannot be reached.
        """
