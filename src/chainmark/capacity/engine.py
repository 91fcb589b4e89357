"""Interface of the load engine, as this package uses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from chainmark import _native
from chainmark.core.errors import InternalError

# Classes of records by their number.
RECORD_CLASSES = tuple(_native.http_record_classes())


def _known_class(name: str) -> str:
    if name not in RECORD_CLASSES:
        raise InternalError(f"the load engine has no class of requests `{name}`")
    return name


# Correct responses, and requests that were never sent. All other classes are kinds of failures.
RIGHT, UNSENT = _known_class("ok"), _known_class("unsent")
FAILURES = tuple(name for name in RECORD_CLASSES if name not in {RIGHT, UNSENT})


def known_failure(name: str) -> str:
    """The kind of failures with this name.

    Raises:
        InternalError: the engine has no such kind of failures.
    """
    if name not in FAILURES:
        raise InternalError(f"the load engine has no kind of failures `{name}`")
    return name


# Requests for which the generating machine had no resources; the server did not receive them.
GENERATOR_LIMIT = known_failure("generator")
# Requests whose idle connection the server had closed, and which must not be repeated.
IDLE_CLOSE = known_failure("idle close")
# Requests that no server answered.
UNANSWERED = frozenset(map(known_failure, ("connect", "tls", "timeout", "reset", "closed")))


class Engine(Protocol):
    """One step's load: created from an order (JSON), started once, finished once."""

    def start(self) -> None:
        """Begin."""

    def progress(self) -> str:
        """The progress, as JSON: `phase`, `elapsed_s`, `planned_s`, `ok`, `failed`, `unanswered` and more."""

    def stop(self) -> None:
        """Start no more requests; wait for those in flight."""

    def running(self) -> bool:
        """Whether requests are still due or in flight."""

    def finish(self) -> dict[str, Any]:
        """Wait for the end and return the measurements."""


class Histogram(Protocol):
    """Latencies, to 3 significant digits."""

    def count_over(self, seconds: float) -> int:
        """The number of slower requests."""

    def quantile(self, fraction: float) -> float:
        """The latency in seconds that this share of the requests did not exceed."""


MakeEngine = Callable[[str], Engine]
ReadHistogram = Callable[[str], Histogram]


def native_engine(order_json: str) -> Engine:
    """Create an engine of the crate `chainmark-load`.

    Raises:
        ValueError, ConnectionError: the order or the URL is not valid.
    """
    return cast(Engine, _native.HttpLoad(order_json))


def native_histogram(base64_text: str) -> Histogram:
    """Decode a stored HDR histogram."""
    return cast(Histogram, _native.Histogram(base64_text))
