"""The slowest requests of a load test, with the facts about their steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chainmark.capacity.engine import RECORD_CLASSES
from chainmark.capacity.loadtest import EndpointResult
from chainmark.capacity.metrics import load_catalogue_of
from chainmark.capacity.model import LevelKind, LoadLevel, Phase, Step, StepRequest, StepResult
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge
from chainmark.capacity.tables import SLOWEST_SCHEMA, STEP_SCHEMA, slowest_frame, steps_frame
from chainmark.core.errors import UsageError
from chainmark.store.runs import Store
from chainmark.store.sealed import SealedRun
from chainmark.trails.requests import FollowsRequests
from chainmark.trails.trace import SlowestTraces, Trace
from chainmark.trails.trail import FollowRequest

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Latencies, finished
from tests.unit.compare.synthetic_runs import manifest


def _step(level: LoadLevel, result: dict[str, Any], latency_ms: int, kind: str) -> Step:
    """A step with one stored request."""
    end_ns = 100 + latency_ms * 1_000_000
    slow = {"latency_ns": end_ns - 100, "due_ns": 100, "request": 0, "sent_ns": 100, "first_byte_ns": None,
            "end_ns": end_ns, "status": None, "class": RECORD_CLASSES.index(kind)}  # fmt: skip
    order = StepRequest(TARGET, ENDPOINT, level, 1.0, 10.0)
    measured = StepResult.of(order, result | {"slowest": [slow]})
    return judge(measured, Sla(), Phase.FIXED, read_histogram=Latencies)


@pytest.fixture
def run(tmp_path: Path) -> SealedRun:
    """A run of 300 requests by 4 clients, of 100 by one, and of 205 at 12.3456 per second."""
    steps = [
        _step(LoadLevel(LevelKind.CLIENTS, 4.0), finished([0.25] * 300), 700, "ok"),
        _step(LoadLevel(LevelKind.RATE, 12.3456), finished([0.06254567] * 200, failed=5), 900, "timeout"),
        _step(LoadLevel(LevelKind.CLIENTS, 1.0), finished([0.01] * 100), 60, "ok"),
    ]
    results = [EndpointResult(ENDPOINT, Sla(), fixed=steps)]
    unfinished = Store(tmp_path).create("http", "known", "v1.0.0", {})
    unfinished.write_events("steps", steps_frame(results), STEP_SCHEMA)
    unfinished.write_events("slowest", slowest_frame(results, str), SLOWEST_SCHEMA)
    return unfinished.seal(manifest("v1.0.0", 1), load_catalogue_of("http", "known", results), [])


def test_the_slowest_requests_are_of_all_requests_of_the_run(run: SealedRun) -> None:
    listed = FollowsRequests().follow(run, FollowRequest(None, "request")).result
    assert isinstance(listed, SlowestTraces)
    assert (listed.total, listed.counted) == (605, 605)
    labels = (
        "load of the step", "phase of the step", "median latency of the step, ms", "requests due in the step",
        "failed in the step", "outcome",
    )  # fmt: skip
    facts = [{fact.label: fact.value for fact in trace.facts} for trace in listed.slowest]
    assert [[each[label] for label in labels] for each in facts] == [
        ["12.346 requests per second", "fixed", "62.546", "205", "5", "failed: timeout"],
        ["4 clients", "fixed", "250", "300", "0", "right answer"],
        ["1 client", "fixed", "10", "100", "0", "right answer"],
    ]


def test_requests_of_a_run_without_the_slowest_cannot_be_traced(run: SealedRun, tmp_path: Path) -> None:
    """Runs of earlier versions do not have them."""
    unfinished = Store(tmp_path / "early").create("http", "known", "v1.0.0", {})
    unfinished.write_events("steps", run.events("steps"), STEP_SCHEMA)
    early = unfinished.seal(manifest("v1.0.0", 1), run.catalogue, [])
    assert [FollowsRequests().followed(each) for each in (run, early)] == [["request"], []]
    other = Store(tmp_path / "early").create("http", "known", "v1.0.0", {}).seal(early.manifest, run.catalogue, [])
    for each in (early, other):
        with pytest.raises(UsageError):
            FollowsRequests().follow(each, FollowRequest(None, "request"))


def test_the_text_of_a_request_is_found_in_runs_that_named_its_column_differently(
    run: SealedRun, tmp_path: Path
) -> None:
    unfinished = Store(tmp_path / "early").create("http", "known", "v1.0.0", {})
    unfinished.write_events("steps", run.events("steps"), STEP_SCHEMA)
    former = {"asked" if name == "request_text" else name: kind for name, kind in SLOWEST_SCHEMA.items()}
    unfinished.write_events("slowest", run.events("slowest").rename({"request_text": "asked"}), former)
    early = unfinished.seal(manifest("v1.0.0", 1), run.catalogue, [])
    texts = []
    for each in (run, early):
        trace = FollowsRequests().follow(each, FollowRequest("0-1", "request")).result
        assert isinstance(trace, Trace)
        texts.append({fact.label: fact.value for fact in trace.facts}["request"])
    assert texts[0] == texts[1] != ""


def test_a_request_is_traced_by_its_step_and_rank(run: SealedRun) -> None:
    trace = FollowsRequests().follow(run, FollowRequest("0-1", "request")).result
    assert isinstance(trace, Trace)
    assert trace.places[0].seconds == [0.0, 0.0, None, 0.7]
