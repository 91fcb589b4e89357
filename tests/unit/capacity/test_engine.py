"""The classes of requests, by the names that the load engine gives them, and its objects."""

from __future__ import annotations

import json
import runpy
from typing import Any

import pytest

from chainmark import _native
from chainmark.capacity import engine
from chainmark.core.errors import InternalError

CLASSES = list(engine.RECORD_CLASSES)


def _imported(monkeypatch: pytest.MonkeyPatch, classes: list[str]) -> dict[str, Any]:
    """The names that the module defines if the engine has these classes."""
    monkeypatch.setattr(_native, "http_record_classes", lambda: classes)
    return runpy.run_path(engine.__file__, run_name=engine.__name__)


def test_classes_are_known_by_name_wherever_the_engine_lists_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """By position, a class that the engine adds at the end would make unsent requests a kind of failures."""
    defined = _imported(monkeypatch, [*CLASSES[::-1], "new"])
    assert (defined["RIGHT"], defined["UNSENT"]) == ("ok", "unsent")
    assert defined["FAILURES"] == (*engine.FAILURES[::-1], "new")


@pytest.mark.parametrize(
    ("name", "what"),
    [("ok", "class of requests"), ("unsent", "class of requests"), ("idle close", "kind of failures")],
)
def test_a_class_that_the_engine_renames_is_an_error(name: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = [f"{each} 2" if each == name else each for each in CLASSES]
    with pytest.raises(InternalError, match=f"^the load engine has no {what} `{name}`$"):
        _imported(monkeypatch, classes)


def test_an_engine_is_created_from_its_order() -> None:
    request = {"method": "GET", "path": "/block"}
    order = {"url": "http://127.0.0.1:1", "requests": [request], "mode": {"closed": {"clients": 1}}}
    load = engine.native_engine(json.dumps({**order, "warm_up_s": 2.0, "duration_s": 7.0}))
    state = json.loads(load.progress())
    assert (state["phase"], state["planned_s"]) == ("ready", 9.0)


# Latencies of 1 ms and 2 ms.
STORED = "HISTEwAAAAYAAAAAAAAAAwAAAAAAAAPoAAAAG/COsAA/8AAAAAAAAMEeAv0PAg=="


def test_a_stored_histogram_is_read() -> None:
    """An empty histogram would have no quantile and no slow request, whatever was measured."""
    histogram = engine.native_histogram(STORED)
    assert [histogram.quantile(share) for share in (0.5, 1.0)] == pytest.approx([0.001, 0.002], rel=1e-3)
    assert [histogram.count_over(limit_s) for limit_s in (0.0005, 0.0015, 0.0025)] == [2, 1, 0]
