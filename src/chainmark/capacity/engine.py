"""The load engine, as this room sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from chainmark import _native
from chainmark.core.errors import InternalError

# By the numbers that stand for them in records: right answers, the kinds of failures, what was never sent.
RECORD_CLASSES = tuple(_native.http_record_classes())
RIGHT, *_KINDS, _UNSENT = RECORD_CLASSES
FAILURES = tuple(_KINDS)


def known_failure(name: str) -> str:
    """The name itself.

    Raises:
        InternalError: the engine has no such kind of failures.
    """
    if name not in FAILURES:
        raise InternalError(f"the load engine has no kind of failures `{name}`")
    return name


# Of requests that the machine which makes the load had no room for; the server was not asked.
GENERATOR_LIMIT = known_failure("generator")
# Of requests whose connection the server had ended while it rested, and which may not be asked twice.
IDLE_CLOSE = known_failure("idle close")
# Of requests that no server answered.
UNANSWERED = frozenset(map(known_failure, ("connect", "tls", "timeout", "reset", "closed")))


class Engine(Protocol):
    """One step's load: made from an order (JSON), started once, finished once."""

    def start(self) -> None:
        """Begin."""

    def progress(self) -> str:
        """Where it stands, as JSON: `phase`, `elapsed_s`, `planned_s`, `ok`, `failed`, `unanswered` and more."""

    def stop(self) -> None:
        """Start nothing more; wait for what is under way."""

    def running(self) -> bool:
        """Whether requests are still due or under way."""

    def finish(self) -> dict[str, Any]:
        """Wait for the end and return what was measured."""


class Histogram(Protocol):
    """Latencies, to 3 significant digits."""

    def count_over(self, seconds: float) -> int:
        """How many were slower."""

    def quantile(self, fraction: float) -> float:
        """The latency in seconds that this share of them did not exceed."""


MakeEngine = Callable[[str], Engine]
ReadHistogram = Callable[[str], Histogram]


def native_engine(order_json: str) -> Engine:
    """The engine of the crate `chainmark-load`.

    Raises:
        ValueError, ConnectionError: the order or the URL cannot be.
    """
    return cast(Engine, _native.HttpLoad(order_json))


def native_histogram(base64_text: str) -> Histogram:
    """A stored HDR histogram, read back."""
    return cast(Histogram, _native.Histogram(base64_text))
