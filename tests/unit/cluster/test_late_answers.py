"""An object on a worker is lost only if its worker is: not because an answer comes at an unfortunate moment."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from chainmark.cluster.connection import _Object
from chainmark.core.errors import LostMachineError


class _Answer:
    """The engine's future of an answer that arrives just after the first wait for it has timed out."""

    def __init__(self, outcome: Callable[[], str]) -> None:
        self._outcome, self._arrived = outcome, False

    def done(self) -> bool:
        return self._arrived

    def result(self, timeout: float) -> str:
        if self._arrived:
            return self._outcome()
        self._arrived = True
        raise TimeoutError(f"timed out after {timeout} s.")


def _object(outcome: Callable[[], str]) -> _Object:
    client = SimpleNamespace(as_current=nullcontext)
    cluster = SimpleNamespace(client=client, heartbeat=lambda _: 1.0, workers=list)
    worker = SimpleNamespace(address="tcp://10.0.0.2:1", machine="10.0.0.2")
    return _Object(cluster, worker, SimpleNamespace(call=lambda *_: _Answer(outcome)))  # type: ignore[arg-type]


def test_an_answer_that_arrives_as_a_wait_times_out_is_the_answer() -> None:
    """Otherwise runs on a busy cluster would be repeated, or end, because of a worker that is well."""
    assert _object(lambda: "report")("report") == "report"


def test_an_error_that_arrives_as_a_wait_times_out_is_the_reason() -> None:
    def outcome() -> str:
        raise RuntimeError("Worker holding Actor was lost")

    lost = _object(outcome)
    for _ in range(2):
        with pytest.raises(LostMachineError, match=r"the worker on 10\.0\.0\.2 is lost") as raised:
            lost("report")
        assert str(raised.value.__cause__) == "Worker holding Actor was lost"
