"""Several endpoints as one load: mixes derived from access logs, and a separate SLA for each endpoint."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chainmark.capacity.loadtest import EndpointResult
from chainmark.capacity.mix import MIX, learnt, loosest, mixed
from chainmark.capacity.model import (
    ConditionResult,
    Endpoint,
    LevelKind,
    LoadLevel,
    Phase,
    Request,
    StepCondition,
    StepOutcome,
    StepRequest,
    StepResult,
)
from chainmark.capacity.report import endpoint_entry
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import judge
from chainmark.core.errors import UsageError

from tests.unit.capacity.queueing import TARGET, Latencies, finished

BLOCK = Endpoint(
    "block", "/block", (Request("GET", "/block/1"), Request("GET", "/block/2")), templates=(("GET", "/block/{height}"),)
)
SEARCH = Endpoint("search", "/search", (Request("POST", "/search"),))
BOTH = (BLOCK, SEARCH)
_LINE = '10.0.0.1 - - [24/Nov/2026:03:01:35 +0000] "{}" 200 512 "-" "curl/8"\n'


def _log(folder: Path, *requests: str, name: str = "access.log") -> Path:
    path = folder / name
    text = "".join(_LINE.format(f"{request} HTTP/1.1") for request in requests)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["access.log", "access.log.gz"])
def test_weights_are_read_from_an_nginx_log(name: str, tmp_path: Path) -> None:
    requests = (
        ["GET /block/1"] * 3
        + ["GET /block/77?full=1"] * 2
        + ["POST /search"] * 5
        + ["GET /favicon.ico", "POST /block/1"]
    )
    mix = learnt(_log(tmp_path, *requests, name=name), BOTH)
    assert mix.weights == {"block": 5.0, "search": 5.0}
    assert (mix.requests, mix.others.total(), mix.unread) == (12, 2, 0)
    assert "2 of 12 requests are of no endpoint" in mix.in_words()
    assert "GET /favicon.ico (1)" in mix.in_words()


@pytest.mark.parametrize(
    "entry",
    [
        {"request": "GET /block/1 HTTP/2.0", "status": 200},
        {"method": "GET", "path": "/block/9"},
        {"request_method": "get", "request_uri": "/block/1?x=2"},
        {"url": "https://api.example/block/1"},
    ],
)
def test_weights_are_read_from_json_lines(entry: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f"{json.dumps(entry)}\n\nno JSON, no request\n{{broken\n", encoding="utf-8")
    mix = learnt(path, BOTH)
    assert (mix.weights, mix.unread) == ({"block": 1.0}, 2)
    assert "2 lines without a request" in mix.in_words()


def test_a_file_that_is_not_an_access_log_is_rejected(tmp_path: Path) -> None:
    """Otherwise it would result in an empty mix."""
    with pytest.raises(UsageError, match="no request to an endpoint: it has GET /other"):
        learnt(_log(tmp_path, "GET /other"), BOTH)
    with pytest.raises(UsageError, match="cannot be read"):
        learnt(tmp_path / "none.log", BOTH)
    (tmp_path / "cut.log.gz").write_bytes(gzip.compress(b"x" * 1000)[:20])
    with pytest.raises(UsageError, match="cannot be read"):
        learnt(tmp_path / "cut.log.gz", BOTH)


def test_omitted_requests_are_counted_by_path_and_the_most_frequent_are_named(tmp_path: Path) -> None:
    """This shows a user a forgotten endpoint without listing every scanner's path.

    A query string is not part of the path.
    """
    requests = ["GET /a?x=1", "GET /a?x=2", "GET /a", "GET /b", "GET /b", "GET /c", "GET /c", "GET /d"]
    path = _log(tmp_path, "GET /block/1", *requests)
    with path.open("a", encoding="utf-8") as file:
        file.write("no request\n")
    mix = learnt(path, BOTH)
    assert mix.in_words() == (
        "8 of 9 requests are of no endpoint: GET /a (3), GET /b (2), GET /c (2); 1 line without a request"
    )
    with pytest.raises(UsageError, match=r"it has GET /a, GET /b, GET /c$") as refused:
        learnt(_log(tmp_path, *requests), BOTH)
    assert refused.value.hint == "endpoints: /block, /search"
    (tmp_path / "empty.log").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="it has no request at all"):
        learnt(tmp_path / "empty.log", BOTH)
    (tmp_path / "odd.log").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="cannot be read") as odd:
        learnt(tmp_path / "odd.log", BOTH)
    assert odd.value.hint == "text or gzip, in UTF-8"


def test_an_entry_of_json_may_be_indented_and_have_fields_of_other_kinds(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    entries = [{"method": 7, "path": "/block/1"}, {"request": None, "uri": ["/block/1"]}, {"status": 200}]
    path.write_text("".join(f"  {json.dumps(entry)}\n" for entry in entries), encoding="utf-8")
    assert (learnt(path, BOTH).weights, learnt(path, BOTH).unread) == ({"block": 1.0}, 2)


def test_requests_with_and_without_a_query_are_distinguished(tmp_path: Path) -> None:
    whole = Endpoint("whole", "/search?full", (Request("GET", "/search?full=1"),))
    plain = Endpoint("plain", "/search", (Request("GET", "/search"),))
    path = tmp_path / "log.jsonl"
    requests = ["/search?full=1", "/search", "/search?page=2"]
    path.write_text("".join(json.dumps({"path": request}) + "\n" for request in requests), encoding="utf-8")
    assert learnt(path, (whole, plain)).weights == {"whole": 1.0, "plain": 2.0}


def test_a_mix_has_names_and_error_pointers_and_a_single_endpoint_has_no_parts() -> None:
    endpoints = [replace(BLOCK, error_pointers=("/code", "/why")), replace(SEARCH, error_pointers=("/why",))]
    mix = mixed(endpoints, {"block": 1.0, "search": 1.0}, lambda _: Sla())
    assert mix.error_pointers == ("/code", "/why")
    assert [part.label for part in mix.parts] == ["/block", "/search"]
    assert mixed(endpoints, {"block": 1.0}, lambda _: Sla()).parts == ()
    with pytest.raises(UsageError) as refused:
        mixed(endpoints[::-1], {"nothing": 1.0}, lambda _: Sla())
    assert refused.value.hint == "endpoints: block, search"


def test_a_mix_is_one_load_with_parts() -> None:
    mix = mixed(BOTH, {"search": 1.0, "block": 3.0}, lambda _: Sla())
    assert (mix.id, mix.label, mix.rarest_share) == (MIX, "mix of 2 endpoints", 0.25)
    order = StepRequest(TARGET, mix, LoadLevel(LevelKind.CLIENTS, 2.0), 0.0, 1.0, think_s=0.5)
    sent = json.loads(order.to_json())
    assert sent["parts"] == [{"weight": 1.0, "requests": 1}, {"weight": 3.0, "requests": 2}]
    assert [request["path"] for request in sent["requests"]] == ["/search", "/block/1", "/block/2"]
    assert sent["mode"]["closed"]["think_s"] == 0.5
    with pytest.raises(UsageError, match="the mix contains `nothing`"):
        mixed(BOTH, {"nothing": 1.0}, lambda _: Sla())


def _judged(slas: dict[str, Sla], parts: list[dict[str, Any]], whole: dict[str, Any] | None = None) -> Any:
    mix = mixed(BOTH, {"block": 1.0, "search": 1.0}, slas.__getitem__)
    order = StepRequest(TARGET, mix, LoadLevel(LevelKind.CLIENTS, 2.0), 0.0, 10.0)
    result = StepResult.of(order, {**(whole or finished([0.01] * 2000)), "parts": parts})
    return judge(result, loosest(mix.parts), Phase.PROBE, read_histogram=Latencies, parts=mix.parts)


def _part(latencies_s: list[float], failed: int = 0) -> dict[str, Any]:
    whole = finished(latencies_s)
    n = len(latencies_s)
    counts = {"due": n + failed, "sent": n + failed, "ok": n, "failed": failed, "unsent": 0}
    return {"counts": counts, "latency": whole["latency"], "errors": {"status": failed} if failed else {}}


def test_each_endpoint_is_judged_by_its_own_sla() -> None:
    """A mix of a fast endpoint and one that misses its own limit can have a good p99 as a whole."""
    slas = {"block": Sla(p99_s=0.02), "search": Sla(p99_s=1.0)}
    assert _judged(slas, [_part([0.01] * 1000), _part([0.5] * 1000)]).outcome is StepOutcome.PASS
    late = _judged(slas, [_part([0.03] * 1000), _part([0.01] * 1000)])
    assert (late.outcome, late.reason, late.reason_part) == (StepOutcome.FAIL, StepCondition.P99, "block")
    wrong = _judged(slas, [_part([0.01] * 1000), _part([0.01] * 950, failed=50)])
    assert (wrong.outcome, wrong.reason, wrong.reason_part) == (StepOutcome.FAIL, StepCondition.ERRORS, "search")
    assert wrong.condition(StepCondition.P99).outcome is StepOutcome.PASS


def test_the_report_has_the_figures_of_each_endpoint() -> None:
    """Of a hundred responses of the search, 6 are slow and 2 very slow; one in ten due requests was never sent."""
    search = _part([0.01] * 920 + [0.2] * 60 + [0.4] * 20, failed=5)
    search["counts"] |= {"due": 1105, "unsent": 100}
    parts = [_part([0.01] * 895), search]
    step = _judged({"block": Sla(p99_s=0.02), "search": Sla(p99_s=0.3)}, parts)
    mix = mixed(BOTH, {"block": 1.0, "search": 1.0}, lambda _: Sla(p99_s=0.3))
    (entry,) = endpoint_entry(EndpointResult(mix, Sla(), fixed=[step]), {}, read_histogram=Latencies).steps
    assert [part.label for part in entry.parts] == ["/block", "/search"]
    part = entry.parts[1]
    assert (part.due, part.ok, part.failed, part.unsent, part.share) == (1105, 1000, 5, 100, 1105 / 2000)
    assert (part.p50_s, part.p95_s) == (0.01, 0.2)
    assert (part.p99_limit_s, part.error_share, part.outcome) == (0.3, 5 / 1005, "fail")


def test_an_endpoint_with_too_few_requests_leaves_a_step_undecided() -> None:
    slas = {"block": Sla(p99_s=0.02), "search": Sla(p99_s=1.0)}
    for few in ([0.01] * 20, []):
        step = _judged(slas, [_part([0.01] * 1000), _part(few)])
        assert (step.outcome, step.point_outcome) == (StepOutcome.INCONCLUSIVE, StepOutcome.PASS)


def test_a_mix_has_no_stricter_limit_than_its_endpoints() -> None:
    slas = [Sla(p99_s=0.02, error_share=0.1), Sla(p99_s=2.0, achieved_share=0.9, min_requests=900)]
    mix = mixed(BOTH, {"block": 1.0, "search": 1.0}, dict(zip(("block", "search"), slas, strict=True)).__getitem__)
    assert loosest(mix.parts) == replace_sla(Sla(), p99_s=2.0, error_share=0.1, achieved_share=0.9, min_requests=900)


def replace_sla(sla: Sla, **changes: float) -> Sla:
    """The run with other limits."""
    return Sla.of({**sla.model_dump(), **changes})


def test_the_p95_of_an_endpoint_in_a_mix_is_judged_by_its_own_limit() -> None:
    """A tenth of its responses exceed the limit of p95 but not that of p99."""
    slas = {"block": Sla(p99_s=1.0), "search": Sla(p99_s=1.0, p95_s=0.1)}
    step = _judged(slas, [_part([0.01] * 1000), _part([0.01] * 900 + [0.5] * 100)])
    own = [(limit.name, limit.limit, limit.outcome) for limit in step.limits if limit.part == "search"]
    assert own == [
        (StepCondition.P99, 1.0, StepOutcome.PASS),
        (StepCondition.P95, 0.1, StepOutcome.FAIL),
        (StepCondition.ERRORS, 0.01, StepOutcome.PASS),
    ]
    (p95,) = [limit for limit in step.limits if limit.name is StepCondition.P95 and limit.part]
    assert (p95.count, p95.n, p95.measured) == (100, 1000, pytest.approx(0.5, rel=0.01))
    assert (step.outcome, step.reason, step.reason_part) == (StepOutcome.FAIL, StepCondition.P95, "search")


def test_only_a_missed_sla_has_a_reason_and_an_endpoint() -> None:
    good = [_part([0.01] * 1000), _part([0.01] * 1000)]
    passed = _judged({"block": Sla(), "search": Sla()}, good)
    assert (passed.outcome, passed.reason, passed.reason_part) == (StepOutcome.PASS, None, "")
    # A miss is likely but not shown: 11 of 1,000 are slower than the p99 limit.
    likely = _judged({"block": Sla(), "search": Sla()}, [good[0], _part([0.01] * 989 + [1.5] * 11)])
    assert (likely.outcome, likely.reason, likely.reason_part) == (
        StepOutcome.INCONCLUSIVE, StepCondition.P99, "search",
    )  # fmt: skip


def _own(step: Any, part: str, name: StepCondition) -> ConditionResult:
    """The condition of one endpoint of a judged mix."""
    (result,) = [limit for limit in step.limits if (limit.part, limit.name) == (part, name)]
    assert isinstance(result, ConditionResult)
    return result


@pytest.mark.parametrize(
    ("kind", "errors", "slow"),
    [
        ("status", (100, 1000), (100, 1000)),
        ("idle close", (40, 940), (40, 940)),  # the server never received them, so they count nowhere
        ("generator", (40, 940), (100, 1000)),  # never sent, so not in time, but no errors of the server
    ],
)
def test_only_requests_that_a_server_received_are_errors_of_its_endpoint(
    kind: str, errors: tuple[int, int], slow: tuple[int, int]
) -> None:
    """Of 1,000 requests 100 failed: 60 for the given reason and 40 by their status."""
    search = _part([0.01] * 900, failed=100)
    search["errors"] = {"status": 40, kind: 60} if kind != "status" else {"status": 100}
    step = _judged({"block": Sla(), "search": Sla()}, [_part([0.01] * 1000), search])
    for name, expected in ((StepCondition.ERRORS, errors), (StepCondition.P99, slow)):
        condition = _own(step, "search", name)
        assert (condition.count, condition.n) == expected


def test_an_endpoint_has_its_share_of_each_cluster_of_slow_requests() -> None:
    """Half of the requests, and so of each cluster, belong to the search.

    By hand: nine seconds deviate by 10 slow requests from their mean of 10 and one by 90. The binomial variance is 95.
    The last factor is the t quantile for 9 degrees of freedom over the normal one.
    """
    whole = finished([0.01] * 1900 + [2.0] * 100, answered=[200] * 10, slow=[0] * 9 + [100])
    step = _judged({"block": Sla(), "search": Sla()}, [_part([0.01] * 1000), _part([0.01] * 950 + [2.0] * 50)], whole)
    effect = 10_000.0 / 95.0 * (2.262157 / 1.959964) ** 2
    assert step.condition(StepCondition.P99).effect == pytest.approx(effect, rel=1e-5)
    own = _own(step, "search", StepCondition.P99)
    assert own.effect == pytest.approx((effect + 1.0) / 2.0, rel=1e-5)
    assert own.outcome is StepOutcome.INCONCLUSIVE, "with independent requests it would be a failure"


def test_the_endpoint_that_clearly_missed_its_sla_is_named_before_one_that_may_have() -> None:
    """Of each endpoint's 1,000 requests 10 may exceed the p99 limit: 11 are no proof, 100 are."""
    parts = [_part([0.01] * 989 + [1.5] * 11), _part([0.01] * 900 + [1.5] * 100)]
    step = _judged({"block": Sla(), "search": Sla()}, parts)
    assert (step.outcome, step.reason, step.reason_part) == (StepOutcome.FAIL, StepCondition.P99, "search")


def test_a_load_that_failed_as_a_whole_names_no_endpoint() -> None:
    good = [_part([0.01] * 1000), _part([0.01] * 1000)]
    step = _judged({"block": Sla(), "search": Sla()}, good, finished([2.0] * 2000))
    assert (step.outcome, step.reason, step.reason_part) == (StepOutcome.FAIL, StepCondition.P99, "")


def test_without_the_slas_of_its_endpoints_a_mix_is_judged_as_a_whole() -> None:
    mix = mixed(BOTH, {"block": 1.0, "search": 1.0}, lambda _: Sla())
    order = StepRequest(TARGET, mix, LoadLevel(LevelKind.CLIENTS, 2.0), 0.0, 10.0)
    parts = [_part([2.0] * 1000), _part([2.0] * 1000)]
    step = judge(
        StepResult.of(order, {**finished([0.01] * 2000), "parts": parts}), Sla(), Phase.PROBE, read_histogram=Latencies
    )
    assert (step.outcome, [limit for limit in step.limits if limit.part]) == (StepOutcome.PASS, [])
