"""The tables of a load test's run, on requests whose rows are known by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from chainmark.capacity.engine import GENERATOR_LIMIT, IDLE_CLOSE, RECORD_CLASSES, RIGHT, UNSENT
from chainmark.capacity.loadtest import EndpointResult
from chainmark.capacity.model import (
    Endpoint,
    LevelKind,
    LoadLevel,
    MixPart,
    Phase,
    Request,
    Step,
    StepRequest,
    StepResult,
    Waits,
)
from chainmark.capacity.search import CapacityFinding, SearchResult, StoppedBy
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge
from chainmark.capacity.tables import (
    ERROR_SCHEMA,
    SECOND_SCHEMA,
    SLOWEST_SCHEMA,
    STEP_SCHEMA,
    errors_frame,
    samples_of,
    seconds_frame,
    slowest_frame,
    steps_frame,
)
from chainmark.core.errors import EnvironmentFailure

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Latencies, finished, histogram, recorded

LEVEL = LoadLevel(LevelKind.RATE, 40.0)
STARTED_NS = 1_700_000_000_000_000_000
MIX = Endpoint(
    "mix",
    "mix of 2 endpoints",
    (Request("GET", "/block/1"), Request("GET", "/block/2"), Request("POST", "/search?key=secret")),
    parts=(MixPart("block", "/block", 1.0, 2, Sla()), MixPart("search", "/search", 1.0, 1, Sla())),
)


def _step(result: dict[str, Any], waits: Waits | None = None, level: LoadLevel = LEVEL) -> Step:
    """A step at a fixed level, after a warm-up of 2 s."""
    order = StepRequest(TARGET, ENDPOINT, level, 2.0, 10.0)
    return judge(StepResult.of(order, result), Sla(), Phase.FIXED, read_histogram=Latencies, waits=waits)


def _of(*steps: Step, endpoint: Endpoint = ENDPOINT) -> EndpointResult:
    return EndpointResult(endpoint, Sla(), fixed=list(steps))


def _rows(*steps: Step, endpoint: Endpoint = ENDPOINT, of: str = "block_at_40_per_s") -> list[tuple[object, ...]]:
    """Step, time, latency and failure of each sample."""
    return samples_of([_of(*steps, endpoint=endpoint)])[of].rows()


def test_every_request_is_a_sample_with_its_time_in_the_window() -> None:
    """A release that fails requests, or does not receive them, must not be faster for it.

    Requests that the generator could not make, and those on a connection that the server had closed while idle, are not
    errors of the server.
    """
    kinds = [RIGHT, "status", UNSENT, GENERATOR_LIMIT, IDLE_CLOSE]
    step = _step(recorded([2.0, 2.5, 3.0, 3.5, 4.0], [0.1, 0.2, 0.3, 0.4, 0.5], kinds))
    again = _step(recorded([2.25], [0.1]))
    # A step begins a second after the window of the previous one.
    assert _rows(step, again, again) == [
        (0, 0.0, 0.1, 0.0),
        (0, 0.5, None, 1.0),
        (0, 1.0, None, 1.0),
        (0, 1.5, None, 0.0),
        (0, 2.0, None, 0.0),
        (1, 11.25, 0.1, 0.0),
        (2, 22.25, 0.1, 0.0),
    ]


def test_requests_due_at_the_same_time_are_in_the_order_of_their_records() -> None:
    """Otherwise the same measurements would be sealed in another order on another processor."""
    latencies = [number / 1000 for number in range(1, 101)]
    rows = _rows(_step(recorded([2.5] * 50 + [2.0] * 50, latencies)))
    assert [latency for _, _, latency, _ in rows] == latencies[50:] + latencies[:50]


def test_a_sample_is_of_a_complete_step_whose_processes_had_the_processors() -> None:
    """Otherwise another program on the machine would make a release slower."""
    slow = recorded([2.0], [9.0])
    waited, stopped = _step(slow, Waits(0.5, None, None)), replace(_step(slow), partial=True)
    assert _rows(waited, stopped, _step(recorded([2.0], [0.1]))) == [(0, 0.0, 0.1, 0.0)]
    for steps, rows in (([waited], 0), ([_step(slow)], 1)):
        frame = samples_of([_of(*steps)])["block_at_40_per_s"]
        assert frame.height == rows
        assert frame.schema == {
            "step": pl.Int64,
            "time_s": pl.Float64,
            "block_at_40_per_s_latency_s": pl.Float64,
            "block_at_40_per_s_error_share": pl.Float64,
        }


def test_levels_are_separate_samples() -> None:
    other = _step(recorded([2.0], [0.4]), level=LoadLevel(LevelKind.CLIENTS, 4.0))
    steps = [other, _step(recorded([2.0], [0.1]))]
    assert _rows(*steps) == [(0, 0.0, 0.1, 0.0)]
    assert _rows(*steps, of="block_at_4_clients") == [(0, 0.0, 0.4, 0.0)]


def test_a_request_of_a_mix_is_a_sample_of_its_endpoint() -> None:
    """The engine's records are not necessarily in the order of their due times."""
    step = _step(recorded([2.75, 2.25, 2.5], [0.3, 0.1, 0.2], requests=[2, 0, 1]))
    block, search = [(0, 0.25, 0.1, 0.0), (0, 0.5, 0.2, 0.0)], [(0, 0.75, 0.3, 0.0)]
    assert _rows(step, endpoint=MIX, of="mix_at_40_per_s") == block + search
    assert _rows(step, endpoint=MIX, of="mix_block_at_40_per_s") == block
    assert _rows(step, endpoint=MIX, of="mix_search_at_40_per_s") == search


def test_a_step_with_missing_records_is_an_error() -> None:
    """The missing requests could be the slow ones."""
    whole = recorded([2.0, 2.5], [0.1, 0.2])
    with pytest.raises(EnvironmentFailure, match=r"^the load engine kept no records of the step at 40/s$"):
        _rows(_step(whole | {"records": None}))
    lost = _step(whole | {"records": recorded([2.0], [0.1])["records"]})
    with pytest.raises(EnvironmentFailure, match=r"^the load engine kept 1 records of the 2 requests at 40/s$"):
        _rows(lost)
    left_out = replace(lost, result=lost.result.model_copy(update={"records_left_out": 1}))
    assert _rows(left_out) == [(0, 0.0, 0.1, 0.0)], "more requests than were to be recorded"


def test_a_search_is_one_sample_of_each_capacity() -> None:
    found = SearchResult(
        None, None, StoppedBy.P99, None, CapacityFinding.FOUND, 48.0, 48.0, 52.0, steps=(), confirmations=(),
        confirmed=True,
    )  # fmt: skip
    answers = {LevelKind.CLIENTS: found, LevelKind.RATE: replace(found, capacity=None)}
    frame = samples_of([EndpointResult(ENDPOINT, Sla(), answers)])["search"]
    assert frame.to_dicts() == [{"attempt": 1, "block_capacity_clients": 48.0, "block_capacity_per_s": None}]
    assert frame.dtypes == [pl.Int64, pl.Float64, pl.Float64]


def test_the_row_of_a_step_has_the_data_for_other_figures() -> None:
    result = finished([0.1] * 990 + [0.4] * 10, failed=3, unsent=2)
    result |= {"latency_all": histogram([0.1, 0.2]), "service": histogram([0.05, 0.3]), "records_left_out": 7}
    result["warm_up"] = {"due": 4, "sent": 4, "ok": 4, "failed": 0, "unsent": 0}
    result["connections"]["opened"] = 64
    frame = steps_frame([_of(_step(finished([0.1]))), _of(_step(result))])
    assert dict(frame.schema) == STEP_SCHEMA
    row = frame.row(1, named=True)
    assert (row["step"], row["endpoint"], row["level"], row["started_ns"]) == (1, "block", 40.0, STARTED_NS)
    assert (row["due"], row["sent"], row["warm_up_due"], row["records_left_out"]) == (1005, 1003, 4, 7)
    assert (row["p99_s"], row["service_p99_s"]) == (0.2, 0.3), "with and without the time in the generator's queue"
    assert (row["connections_opened"], row["bytes_out"]) == (64, 200_000)
    assert row["latency_hdr"] == result["latency"]["hdr"]
    assert row["latency_all_hdr"] == result["latency_all"]["hdr"]
    conditions = json.loads(row["conditions"])
    assert json.dumps(conditions, sort_keys=True) == row["conditions"], "the same for the same conditions"
    errors = next(item for item in conditions if item["name"] == "errors")
    low, high = errors.pop("low"), errors.pop("high")
    assert low < 3 / 1003 < high
    assert errors == {
        "name": "errors", "outcome": "pass", "measured": 3 / 1003, "limit": 0.01, "count": 3, "n": 1003, "note": "",
        "part": "",
    }  # fmt: skip


def test_every_second_of_every_step_is_a_row() -> None:
    result = finished([0.1] * 5, answered=[2, 3])
    result["series"] |= {"failed": [0, 4], "p99_s": [None, 0.5]}
    frame = seconds_frame([_of(_step(finished([0.1], answered=[1]))), _of(_step(result))])
    assert dict(frame.schema) == SECOND_SCHEMA
    assert frame.select("step", "second", "ok", "failed", "p99_s").rows() == [
        (0, 0, 1, 0, None),
        (1, 0, 2, 0, None),
        (1, 1, 3, 4, 0.5),
    ]
    assert dict(seconds_frame([]).schema) == SECOND_SCHEMA


def test_every_kind_of_error_of_every_step_is_a_row() -> None:
    result = finished([0.1], failed=3)
    result["classes"][0] |= {"reported": {"/why": "naïve", "/code": 12}, "detail": "in time"}
    frame = errors_frame([_of(_step(finished([0.1]))), _of(_step(finished([0.1])), _step(result))])
    assert dict(frame.schema) == ERROR_SCHEMA
    assert frame.rows() == [(2, "status", 500, '{"/code": 12, "/why": "naïve"}', "in time", 3, 1.5)]
    assert dict(errors_frame([]).schema) == ERROR_SCHEMA


def test_a_slow_request_is_a_row_with_the_times_of_its_stages() -> None:
    slow = {"latency_ns": 900, "due_ns": 100, "sent_ns": 300, "first_byte_ns": 700, "end_ns": 1000, "status": 200}
    lost = {"latency_ns": 50, "due_ns": 110, "sent_ns": 120, "first_byte_ns": None, "end_ns": 160, "status": None}
    result = finished([0.1]) | {
        "slowest": [
            slow | {"request": 2, "class": RECORD_CLASSES.index(RIGHT)},
            lost | {"request": 1, "class": RECORD_CLASSES.index("timeout")},
        ]
    }
    alone = finished([0.1]) | {"slowest": [slow | {"request": 0, "class": RECORD_CLASSES.index(RIGHT)}]}
    results = [_of(_step(alone)), _of(_step(result), endpoint=MIX)]
    frame = slowest_frame(results, lambda text: text.replace("secret", "…"))
    assert dict(frame.schema) == SLOWEST_SCHEMA
    times = ("due_ns", "sent_ns", "first_byte_ns", "end_ns")
    texts = frame.drop(times).rows()
    assert texts == [
        (0, 1, "/block", 0, "POST /block", 200, "ok"),
        (1, 1, "/search within the mix", 2, "POST /search?key=…", 200, "ok"),
        (1, 2, "/block within the mix", 1, "GET /block/2", None, "timeout"),
    ]
    assert (frame.select(times) - STARTED_NS).rows() == [
        (100, 300, 700, 1000),
        (100, 300, 700, 1000),
        (110, 120, None, 160),
    ]
    assert dict(slowest_frame([], str).schema) == SLOWEST_SCHEMA
