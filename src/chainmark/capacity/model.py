"""What a load test is made of: requests, endpoints, targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    """One HTTP request, and what is right as its answer (the engine's `expect`)."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    expect: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Endpoint:
    """What is measured by itself.

    Attributes:
        id: a metric's first part, `[a-z0-9_]`: "account_balance".
        label: as a report calls it: "/account/balance".
        requests: its corpus, at least one.
        error_pointers: JSON pointers of the members that tell its errors apart.
    """

    id: str
    label: str
    requests: tuple[Request, ...]
    error_pointers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tls:
    """How the server's certificate is judged."""

    ca_file: str | None = None
    verify: bool = True
    server_name: str | None = None


@dataclass(frozen=True)
class Target:
    """A server under test."""

    name: str
    url: str
    tls: Tls = Tls()
