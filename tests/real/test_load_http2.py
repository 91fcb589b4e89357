"""HTTP/2 against another implementation: every request is counted, and every end of a stream is classified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chainmark._native import HttpLoad
from chainmark.capacity.measured import Finished
from chainmark.capacity.model import Target, Tls
from chainmark.capacity.probing import Prober
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.lab.protocols import ServiceRequest
from chainmark.store.runs import Store
from chainmark.systems.http import SYSTEM as HTTP

from tests.real.http2_server import Does, Http2Server, serving_http2
from tests.real.load_servers import Reply, always, known_profile, load_test, self_signed, serving

RIGHT = {"contains": "right"}


def _loaded(server: Http2Server, **changes: Any) -> Finished:
    """The result of a load with a few requests. Its counts must add up."""
    get = {"method": "GET", "path": "/work", "expect": RIGHT}
    order = {
        "url": server.url,
        "protocol": "2",
        "requests": [get],
        "mode": {"closed": {"clients": 4}},
        "duration_s": 0.3,
        "drain_s": 5.0,
        **changes,
    }
    load = HttpLoad(json.dumps(order))
    load.start()
    result = Finished.model_validate(load.finish())
    assert result.protocol == "HTTP/2"
    assert sum(error.count for error in result.errors) == result.counts.failed
    return result


def _kinds(result: Finished) -> set[tuple[str, str]]:
    return {(error.kind, error.detail) for error in result.errors}


def test_each_client_has_a_connection_or_a_stream_of_a_shared_connection() -> None:
    with serving_http2() as server:
        alone = _loaded(server)
        assert (alone.counts.failed, alone.connections.opened, server.most_open) == (0, 4, 1)
    with serving_http2(most_streams=3) as server:
        # Five clients per connection: never more concurrent streams than the server allows, and none is refused.
        shared = _loaded(server, streams=5, mode={"closed": {"clients": 10}})
        assert (shared.counts.failed, shared.connections.opened, server.most_open) == (0, 2, 3)
        assert shared.counts.ok + shared.warm_up.ok == server.done[Does.ANSWER] > 10
        assert shared.server == "known"


def test_requests_at_a_rate_follow_the_schedule_and_bodies_arrive_complete() -> None:
    body = "x" * 200_000  # more than a server's initial window
    post = {"method": "POST", "path": "/work", "headers": [["X-Api-Key", "abc"]], "body": body, "expect": RIGHT}
    mode = {"open": {"rate_per_s": 50.0, "connections": 8}}
    with serving_http2(Does.LARGE) as server:
        result = _loaded(server, requests=[post], mode=mode, streams=8, duration_s=0.5, max_slowest=25)
    assert (result.counts.due, result.counts.ok, set(server.bodies)) == (25, 25, {len(body)})
    assert result.latency.n == 25
    assert result.bytes_in > 25 * 60_000
    assert [slow.status for slow in result.slowest] == [200] * 25
    assert all(slow.due_ns <= slow.sent_ns <= (slow.first_byte_ns or -1) <= slow.end_ns for slow in result.slowest)
    assert (server.headers["x-api-key"], server.headers[":path"]) == ("abc", "/work")
    assert server.headers["user-agent"].startswith("chainmark/")


@pytest.mark.parametrize(
    ("does", "kind", "detail"),
    [
        (Does.RESET, "stream reset", "RST_STREAM with CANCEL"),
        (Does.HALF, "stream reset", "RST_STREAM with INTERNAL_ERROR"),
        (Does.REFUSE, "refused stream", "RST_STREAM with REFUSED_STREAM"),
        (Does.WRONG, "wrong answer", 'the body does not contain "right"'),
        (Does.CLOSE, "closed", "before any response"),
        (Does.HANG, "timeout", "no response within the timeout"),
    ],
)
def test_failures_are_reported_by_kind(does: Does, kind: str, detail: str) -> None:
    # Only the timeout itself uses a short limit: on a busy machine, the other failures may take longer.
    with serving_http2(does) as server:
        result = _loaded(server, timeout_s=0.1 if does is Does.HANG else 5.0)
    assert (result.counts.ok, _kinds(result)) == (0, {(kind, detail)})
    assert result.counts.failed > 0


def test_requests_in_progress_on_a_closed_connection_fail() -> None:
    """Requests that the server had started are lost with the connection. The failure states the reason."""
    with serving_http2(Does.CALM) as server:
        result = _loaded(server, timeout_s=5.0)
    assert (result.counts.ok, result.counts.failed > 0) == (0, True)
    assert _kinds(result) == {("goaway", "GOAWAY with ENHANCE_YOUR_CALM")}


def test_requests_not_started_before_goaway_are_retried_once_whatever_their_method() -> None:
    """As nginx does after a number of requests per connection. No request may be lost or executed twice."""
    post = {"method": "POST", "path": "/work", "body": "{}", "expect": RIGHT}
    for streams in (1, 4):
        # One response per client before GOAWAY: no request meets the end of a connection twice.
        with serving_http2(*[Does.ANSWER] * 2 * streams, Does.GO_AWAY) as server:
            result = _loaded(server, requests=[post], streams=streams, duration_s=1.0)
        assert (result.counts.failed, result.errors) == (0, ())
        assert result.counts.ok + result.warm_up.ok == server.done[Does.ANSWER]
        assert result.connections.goaway_closed > 0
        assert result.connections.repeated >= server.done[Does.GO_AWAY] > 0


def test_a_request_fails_after_two_attempts_if_the_server_always_sends_goaway() -> None:
    with serving_http2(Does.GO_AWAY) as server:
        result = _loaded(server)
    assert _kinds(result) == {("goaway", "GOAWAY with NO_ERROR")}
    assert result.connections.repeated > 0


def test_connections_end_after_the_configured_number_of_requests() -> None:
    with serving_http2() as server:
        result = _loaded(server, requests_per_connection=5, streams=2)
    requests = result.counts.ok + result.warm_up.ok
    assert result.counts.failed == 0
    assert server.connections >= requests / 5


def test_servers_of_other_protocols_are_described_in_the_error() -> None:
    with serving(always(Reply())) as server:
        result = _loaded(Http2Server(port=int(server.url.rsplit(":", 1)[1])), timeout_s=2.0)
        assert result.counts.ok == 0
        # The server may close the connection before it reports that it does not understand.
        assert {error.kind for error in result.errors} <= {"protocol", "closed", "reset"}


def test_the_protocol_is_chosen_once_and_is_part_of_the_workload(tmp_path: Path) -> None:
    """Prior knowledge, negotiation, or the server's choice. A run over HTTP/1.1 is not comparable with HTTP/2."""
    request = [{"endpoint": "work", "path": "/work", "contains": "right"}]
    common = {"request": request, "search": {"clients_last": 1}}
    context, certificate = self_signed(tmp_path, "localhost")
    tls = Tls(ca_file=str(certificate), server_name="localhost")

    def workload(server: Http2Server, version: str, name: str) -> tuple[Any, Any, list[str]]:
        profile = known_profile(**common, steps={"http_version": version})
        order = ServiceRequest(Target("known", server.url, tls if server.tls else Tls()))
        test = load_test(Store(tmp_path / name), HTTP, profile, order)
        facts = [fact.value for fact in test.report.targets[0].facts if fact.label == "Protocol"]
        workload_values = test.runs[0].manifest.workload
        return workload_values.get("steps.http_version"), workload_values.get("steps.streams"), facts

    expected = ("2", 1, ["HTTP/2, a connection for each client"])
    with serving_http2() as server:
        assert workload(server, "2", "known") == expected
    with serving_http2(tls=context) as server:
        assert workload(server, "auto", "chosen") == expected
    with serving(always(Reply(b"right"))) as older:
        http2_server = Http2Server(port=int(older.url.rsplit(":", 1)[1]))
        assert workload(http2_server, "auto", "older") == (None, None, ["HTTP/1.1"])


def test_single_requests_before_a_load_use_the_protocol_of_the_load() -> None:
    with serving_http2() as server, Prober(Target("known", server.url, http_version="2"), 30.0) as prober:
        answer = prober.ask("POST", "/work", b"{}", {"Content-Type": "application/json"})
    assert (answer.status, answer.text, server.bodies) == (200, "right", {2: 1})


def test_a_server_that_does_not_negotiate_http_2_is_reported(tmp_path: Path) -> None:
    context, certificate = self_signed(tmp_path, "localhost")
    context.set_alpn_protocols(["http/1.1"])
    with serving(always(Reply()), context) as server:
        profile = known_profile(steps={"http_version": 2})
        target = Target("known", server.url, Tls(ca_file=str(certificate), server_name="localhost"))
        with pytest.raises(EnvironmentFailure, match="does not agree to HTTP/2"):
            load_test(Store(tmp_path / "store"), HTTP, profile, ServiceRequest(target))
    with pytest.raises(UsageError, match=r"`steps\.streams` needs HTTP/2"):
        known_profile(steps={"streams": 4})
