"""The data model of the load engine's requests and results."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.capacity.access import Access
from chainmark.capacity.figures import figures_of
from chainmark.capacity.loadtest import EndpointResult
from chainmark.capacity.measured import RequestCounts
from chainmark.capacity.model import (
    HTTP_2,
    GiveUp,
    LevelKind,
    LoadLevel,
    MixPart,
    Phase,
    Request,
    StepCondition,
    StepRequest,
    StepResult,
)
from chainmark.capacity.report import endpoint_entry
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge
from chainmark.capacity.summaries import error_share
from chainmark.capacity.tables import STEP_SCHEMA, steps_frame
from chainmark.core.errors import EnvironmentFailure, InternalError

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Latencies, finished

CLIENTS = LoadLevel(LevelKind.CLIENTS, 64.0)
RATE = LoadLevel(LevelKind.RATE, 1000.5)


def order(level: LoadLevel = CLIENTS, **changes: Any) -> StepRequest:
    return StepRequest(TARGET, ENDPOINT, level, warm_up_s=1.0, duration_s=10.0, **changes)


def test_the_load_request_has_exactly_the_members_of_the_engine() -> None:
    """The engine rejects an unknown member, and the load test would not start."""
    document = json.loads(order(give_up=GiveUp(1.0, 30, 20)).to_json())
    members = (
        "url headers protocol streams request_coding requests order mode course warm_up_s duration_s drain_s timeout_s "
        "requests_per_connection error_pointers give_up max_records max_slowest tls proxy threads seed parts"
    )
    assert " ".join(sorted(document)) == " ".join(sorted(members.split()))
    assert set(document["requests"][0]) == {"method", "path", "headers", "body", "repeatable", "expect"}
    assert document["mode"] == {"closed": {"clients": 64}}
    assert isinstance(document["mode"]["closed"]["clients"], int)
    assert document["give_up"] == {"slow_s": 1.0, "slow": 30, "failed": 20}
    assert document["tls"] == {"ca_file": None, "verify": True, "server_name": None}


def test_every_setting_of_a_step_reaches_the_engine() -> None:
    """The engine uses its default for a setting that it does not receive, and measures another load."""
    parts = (MixPart("a", "/a", 3.0, 1, Sla()), MixPart("b", "/b", 1.0, 2, Sla()))
    request = Request("GET", "/a", headers=(("Accept", "text/plain"),), expect={"status": [200]}, repeatable=True)
    access = Access(headers=["X-Network: preprod"], proxy="http://proxy:3128")
    target = replace(TARGET, access=access, http_version=HTTP_2)
    endpoint = replace(ENDPOINT, parts=parts, requests=(request, *ENDPOINT.requests))
    step = StepRequest(
        target, endpoint, CLIENTS, 1.0, 10.0, think_s=0.5, streams=8, course=((0.0, 16.0), (5.0, 64.0)), seed=7
    )
    document = json.loads(step.to_json())
    assert document["headers"] == [["X-Network", "preprod"]]
    assert document["proxy"] == {"url": "http://proxy:3128", "authorization": None}
    assert [each["headers"] for each in document["requests"]] == [[["Accept", "text/plain"]], []]
    assert [each["expect"] for each in document["requests"]] == [{"status": [200]}, {}]
    assert [each["repeatable"] for each in document["requests"]] == [True, None]
    assert document["parts"] == [{"weight": 3.0, "requests": 1}, {"weight": 1.0, "requests": 2}]
    assert document["mode"] == {"closed": {"clients": 64, "think_s": 0.5}}
    assert document["course"] == [[0.0, 16.0], [5.0, 64.0]]
    assert document["error_pointers"] == ["/code"]
    assert (document["protocol"], document["streams"], document["seed"]) == ("2", 8, 7)


def test_only_http_2_shares_connections() -> None:
    assert json.loads(order(streams=8).to_json())["streams"] == 1


def test_a_rate_is_an_open_loop() -> None:
    document = json.loads(order(RATE, schedule="poisson").to_json())
    assert document["mode"] == {"open": {"rate_per_s": 1000.5, "schedule": "poisson", "connections": 1024}}


WAYS = ("ok", "failed", "unsent")


@given(
    st.fixed_dictionaries({name: st.integers(0, 9) for name in WAYS}),
    st.sampled_from((*RequestCounts.model_fields, None)),
    st.sampled_from((-1, 1, 7)),
)
def test_counts_with_a_request_in_no_class_or_in_two_are_rejected(
    ended: dict[str, int], broken: str | None, error: int
) -> None:
    """Each of the five counts can be the wrong one."""
    sent = ended["ok"] + ended["failed"]
    counts = ended | {"sent": sent, "due": sent + ended["unsent"]}
    if broken is None:
        assert RequestCounts(**counts).due == sum(ended[name] for name in WAYS)
        return
    with pytest.raises(EnvironmentFailure, match="do not add up"):
        RequestCounts(**counts | {broken: counts[broken] + error})


@given(st.lists(st.integers(0, 3), min_size=5, max_size=5))
def test_random_counts_are_accepted_if_and_only_if_they_add_up(counts: list[int]) -> None:
    request_counts = dict(zip(("due", "sent", "ok", "failed", "unsent"), counts, strict=True))
    sound = (
        request_counts["sent"] == request_counts["ok"] + request_counts["failed"]
        and request_counts["due"] == request_counts["sent"] + request_counts["unsent"]
    )
    with nullcontext() if sound else pytest.raises(EnvironmentFailure):
        RequestCounts(**request_counts)


@pytest.mark.parametrize(
    ("place", "wrong", "expected"),
    [
        (("counts", "unsent"), 1, "counts of 303 requests do not add up"),
        (("counts", "sent"), 302, "counts of 303 requests do not add up"),
        (("warm_up", "ok"), 1, "counts of 0 requests do not add up"),
        (("classes", 0, "count"), 2, "classed 2 of 3 failed requests"),
        (("warm_up_classes", 0, "count"), 5, "classed 5 of 4 failed requests"),
        (("latency", "n"), 299, "histogram holds 299 of 300 right answers"),
    ],
)
def test_counts_that_do_not_add_up_are_rejected(place: tuple[str | int, ...], wrong: int, expected: str) -> None:
    """A request that is in no class, or in two, would shift every share."""
    result = finished([0.1] * 300, failed=3)
    if place[0] == "warm_up_classes":
        result["warm_up"] |= {"due": 4, "sent": 4, "failed": 4}
        result["warm_up_classes"] = [dict(result["classes"][0], count=4)]
    assert StepResult.of(order(), result).counts.due == 303
    of: Any = result
    for key in place[:-1]:
        of = of[key]
    of[place[-1]] = wrong
    with pytest.raises(EnvironmentFailure, match=expected):
        StepResult.of(order(), result)


def test_a_result_has_all_figures_of_the_engine() -> None:
    result = StepResult.of(order(), finished([0.1] * 300, failed=3))
    assert result.ok_per_s == pytest.approx(30.0)
    assert result.due_per_s == pytest.approx(30.3)
    assert result.latency.p99_s == pytest.approx(0.1)
    assert result.lag.p99_s is None, "without requests there is no figure"
    assert result.errors[0].reported == {"/code": 12}
    assert result.generator_cpu_share == pytest.approx(0.01)


def test_responses_while_draining_do_not_count_as_achieved() -> None:
    """100 per second are due and 90 receive a response in time. Responses after the window do not change this."""
    result = finished([0.5] * 1000, answered=[50, 100, *[90] * 8, 80, *[10] * 11])
    assert StepResult.of(order(RATE), result).achieved_share() == pytest.approx(0.9)
    result["series"]["ok"] = [count - 5 for count in result["series"]["ok"]]
    result["series"]["failed"] = [5] * 22
    assert StepResult.of(order(RATE), result).achieved_share() == pytest.approx(0.9), "errors are responses"


def test_a_window_shorter_than_a_second_is_judged_by_its_counts() -> None:
    result = finished([0.1] * 36, window_s=0.4, failed=4, unsent=10, answered=[90, 40])
    assert StepResult.of(order(RATE), result).achieved_share() == pytest.approx(0.8)


def test_the_busiest_generator_has_the_cpu_share_of_a_step() -> None:
    """The requests of a generator without processor time are late, however idle the others are."""
    generators = [{"threads": 2, "cpu_s": cpu_s, "wall_s": 10.0, "lost": ""} for cpu_s in (18.0, 2.0)]
    assert StepResult.of(order(), finished([0.1]) | {"generators": generators}).generator_cpu_share == 0.9


def test_error_responses_end_a_silence() -> None:
    """A server whose only responses are errors has not gone away, although one request had no response."""
    result = finished([0.1] * 8, failed=7, answered=[4, 4, 0, 0, 0])
    [status] = result["classes"]
    result["classes"] = [status | {"count": 6}, status | {"class": "timeout", "count": 1}]
    result["series"] |= {
        "failed": [1, 0, 2, 2, 2],
        "errors": {"timeout": [1, 0, 0, 0, 0], "status": [0, 0, 2, 2, 2]},
    }
    assert StepResult.of(order(), result).silence() is None
    result["series"]["errors"] = {"timeout": [1, 0, 2, 2, 2]}
    assert StepResult.of(order(), result).silence() == 2.0


@pytest.mark.parametrize(
    ("answered", "timeouts", "since"),
    [
        pytest.param([4, 4, 0, 0], 1, 2.0, id="two seconds without an answer are a silence"),
        pytest.param([4, 4, 4, 0], 1, None, id="one second is not"),
        pytest.param([0, 0, 0], 1, 0.0, id="it never answered"),
        pytest.param([4, 4, 0, 0], 0, None, id="it answered every request"),
        pytest.param([], 1, None, id="the step ended within a second"),
    ],
)
def test_a_silence_begins_with_the_first_second_without_an_answer(
    answered: list[int], timeouts: int, since: float | None
) -> None:
    result = finished([0.1] * 8, failed=timeouts, answered=answered)
    for status in result["classes"]:
        status["class"] = "timeout"
    assert StepResult.of(order(), result).silence() == since


def test_levels_are_shown_with_their_unit() -> None:
    assert [str(LoadLevel(LevelKind.CLIENTS, 1.0)), str(CLIENTS), str(RATE)] == ["1 client", "64 clients", "1000.5/s"]


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        ("latency.p999_s", None, "`latency.p999_s` (Field required)"),
        ("series.retried", [1], "`series.retried` (Extra inputs are not permitted)"),
    ],
)
def test_a_figure_that_the_engine_renames_is_an_error(place: str, value: object, expected: str) -> None:
    result = finished([0.1] * 300)
    part, name = place.split(".")
    if value is None:
        del result[part][name]
    else:
        result[part][name] = value
    with pytest.raises(InternalError) as caught:
        StepResult.of(order(), result)
    assert expected in caught.value.message


def test_a_failure_class_that_the_engine_does_not_have_is_an_error() -> None:
    result = finished([0.1] * 300, failed=3)
    result["classes"][0]["class"] = "time out"
    with pytest.raises(InternalError, match="no kind of failures `time out`"):
        StepResult.of(order(), result)


def test_a_step_has_the_same_figures_in_every_output() -> None:
    """The table of a run and its document must be created from one list of figures."""
    step = judge(
        StepResult.of(order(), finished([0.1] * 990 + [2.0] * 10)), Sla(), Phase.PROBE, read_histogram=Latencies
    )
    assert step.condition(StepCondition.P95) is None, "the SLA has no such limit"
    figures = dict(figures_of(step))
    result = EndpointResult(ENDPOINT, Sla(), fixed=[step])
    [row] = steps_frame([result]).to_dicts()
    assert row.keys() == STEP_SCHEMA.keys()
    assert {name: row[name] for name in figures} == figures
    [entry] = endpoint_entry(result, {}, read_histogram=Latencies).steps
    assert {name: getattr(entry, name) for name in figures} == figures
    assert (figures["p99_s"], figures["max_s"], figures["due"]) == (0.1, 2.0, 1000)


def test_a_limit_of_the_generator_is_an_error_of_the_server_in_no_output() -> None:
    """The table and the figures of a fixed level must not contradict the condition that decided the outcome."""
    result = finished([0.1] * 980, failed=20)
    result["classes"][0]["class"] = "generator"
    step = judge(StepResult.of(order(), result), Sla(), Phase.FIXED, read_histogram=Latencies)
    document = endpoint_entry(EndpointResult(ENDPOINT, Sla(), fixed=[step]), {}, read_histogram=Latencies)
    [entry], errors = document.steps, step.condition(StepCondition.ERRORS)
    assert errors is not None
    assert (errors.measured, error_share(entry)) == (0.0, 0.0)
    assert error_share(entry, entry) == 0.0
