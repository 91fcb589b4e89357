"""Responses of Prometheus servers: complete or reported as incomplete, for any split, and stored without passwords."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.core.times import NS
from chainmark.network.prometheus_api import (
    LiveServer,
    Prometheus,
    ServerError,
    StoredResponses,
    any_of,
    matchers,
    read_recorded,
)

T0_S = 1_700_000_000


class Counting:
    """A store with one sample per second that follows the API's rules and limits the samples per query."""

    place = "a store"

    def __init__(self, samples_max: int, *, left_open: bool) -> None:
        self.samples_max = samples_max
        self.left_open = left_open
        self.requested = 0

    def ask(self, _path: str, parameters: Any) -> dict[str, Any]:
        """One instant query over a range."""
        self.requested += 1
        end_s = float(parameters["time"])
        length_s = float(parameters["query"].partition("[")[2].removesuffix("ms]")) / 1e3
        seconds = range(T0_S, T0_S + 100_000)
        first = end_s - length_s
        low = max(0, int(first) - T0_S - 1)
        near = seconds[low : int(end_s) - T0_S + 2]
        inside = [
            time_s for time_s in near if (first < time_s if self.left_open else first <= time_s) and time_s <= end_s
        ]
        if len(inside) > self.samples_max:
            message = "query processing would load too many samples into memory in query execution"
            return {"status": "error", "errorType": "execution", "error": message}
        values = [[time_s, str(time_s - T0_S)] for time_s in inside]
        return {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": values}]}}


@given(
    begin=st.integers(-5_000, 60_000),
    length=st.integers(1, 15_000_000),
    samples_max=st.sampled_from([200, 3_000, 10**9]),
    left_open=st.booleans(),
)
def test_no_sample_is_lost_or_duplicated(begin: int, length: int, samples_max: int, *, left_open: bool) -> None:
    """This holds if a refused query is split, for left-open ranges (as in 3.x) and closed ranges."""
    begin_ns = (T0_S + begin) * NS + 500_000_000 * (begin % 2)
    end_ns = begin_ns + length * 1_000_000
    source = Counting(samples_max, left_open=left_open)
    series = Prometheus(source).samples("x", begin_ns, end_ns)
    expected = [time_s for time_s in range(T0_S + max(0, begin), T0_S + 100_000) if begin_ns <= time_s * NS < end_ns]
    assert [time_ns // NS for series in series for time_ns in series.times_ns] == expected
    assert [value for series in series for value in series.values] == [time_s - T0_S for time_s in expected]


def test_a_server_that_refuses_even_one_minute_is_reported() -> None:
    with pytest.raises(ServerError, match="too many samples"):
        Prometheus(Counting(10, left_open=True)).samples("x", T0_S * NS, (T0_S + 3_600) * NS)


@contextmanager
def _serving(status: int, body: bytes, messages: list[Message] | None = None) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Send the same response to every request."""
            if messages is not None:
                messages.append(self.headers)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Ignore the message."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(**more: object) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}, **more}).encode()


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (502, b"<html>Bad Gateway</html>", "does not respond like a Prometheus server: /api/v1/query returned 502"),
        (200, _answer()[:-9], "does not respond like a Prometheus server"),
        (200, b"[]", "does not respond like a Prometheus server"),
        (
            200,
            b'{"status":"success","data":{"resultType":"vector","result":[]}}',
            "the result of a range query is not a matrix",
        ),
        (200, b'{"status":"success"}', "the result of a range query is not a matrix"),
        (200, _answer(data={"resultType": "matrix", "result": [{"values": []}]}), "a series cannot be read"),
        (200, _answer(data={"resultType": "matrix", "result": [{"metric": {}, "values": [[1]]}]}), "cannot be read"),
        (503, b'{"status":"error","errorType":"timeout","error":"query timed out"}', r"\(timeout\): query timed out"),
    ],
)
def test_an_incomplete_response_is_an_error(status: int, body: bytes, expected: str) -> None:
    with (
        _serving(status, body) as place,
        Prometheus(LiveServer(f"http://{place}")) as reader,
        pytest.raises(EnvironmentFailure, match=expected),
    ):
        reader.samples("x", 0, NS)


def test_the_server_is_queried_directly_despite_proxy_variables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A proxy that the user did not name would see the queries, or a `.netrc` password would be sent to the server."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password secret-1\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    messages: list[Message] = []
    with _serving(200, _answer(), messages) as place, Prometheus(LiveServer(f"http://{place}")) as reader:
        assert reader.samples("x", 0, NS) == []
    assert [message["authorization"] for message in messages] == [None]


def test_warnings_are_passed_on_once(tmp_path: Path) -> None:
    with _serving(200, _answer(warnings=["store-3 did not answer"])) as place:
        with Prometheus(LiveServer(f"http://qa:secret@{place}"), tmp_path) as reader:
            reader.samples("x", 0, NS)
            reader.samples("y", 0, NS)
        assert reader.warnings == ["store-3 did not answer"]
        assert reader.source.place == f"http://{place}"
    responses = [read_recorded(path) for path in sorted(tmp_path.iterdir())]
    assert [response["parameters"]["query"] for response in responses] == ["x[1001ms]", "y[1001ms]"]
    assert "secret" not in json.dumps(responses)
    again = Prometheus(StoredResponses(tmp_path))
    again.samples("x", 0, NS)
    assert again.warnings == ["store-3 did not answer"], "stored responses must be as incomplete as the original ones"
    with pytest.raises(UsageError, match="do not include the query"):
        again.samples("z", 0, NS)


def test_selectors_are_built() -> None:
    assert matchers(['__name__="x"', "", 'a="b",']) == '{__name__="x",a="b"}'
    assert any_of(["10.0.0.1:26660", "a|b"]) == r'"10\\.0\\.0\\.1:26660|a\\|b"'
