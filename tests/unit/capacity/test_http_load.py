"""The HTTP load through its Python binding, against a server of the standard library."""

from __future__ import annotations

import json
import signal
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from chainmark._native import Histogram, HttpLoad, http_record_classes
from chainmark.capacity.measured import Finished

from tests.support import wait_until


class Api(BaseHTTPRequestHandler):
    """Responds to /block with the request body and to any other path with an error."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Respond to one request."""
        request_body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_block = self.path == "/block"
        answer = (
            {"index": request_body["index"]}
            if is_block
            else {"code": 4, "message": "no such thing", "retriable": False}
        )
        body = json.dumps(answer).encode()
        self.send_response(200 if is_block else 500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def ask(path: str, index: int) -> dict[str, Any]:
    expect = {"status": [200], "json": True, "checks": [{"pointer": "/index", "is": index}]}
    headers = [["Content-Type", "application/json"]]
    return {"method": "POST", "path": path, "headers": headers, "body": f'{{"index":{index}}}', "expect": expect}


def order(url: str, /, **changes: object) -> str:
    whole: dict[str, object] = {
        "url": url,
        "requests": [ask("/block", 1), ask("/block", 2)],
        "mode": {"closed": {"clients": 4}},
        "duration_s": 0.3,
        "drain_s": 2.0,
        "error_pointers": ["/code", "/message"],
    }
    return json.dumps(whole | changes)


def test_the_histogram_of_a_closed_loop_agrees_with_its_records(url: str) -> None:
    load = HttpLoad(order(url, warm_up_s=0.1, max_records=1_000_000))
    assert json.loads(load.progress())["phase"] == "ready"
    load.start()
    result = load.finish()
    assert json.loads(load.progress())["phase"] == "done"
    counts = result["counts"]
    assert counts["due"] == counts["ok"] > 0
    assert (result["ended"], result["window_s"], result["threads"]) == ("time", 0.3, 1)
    assert sum(result["series"]["ok"]) == counts["ok"] + result["warm_up"]["ok"]
    records = result["records"]
    assert records is not None
    request_records = Finished.model_validate(result).records
    assert request_records is not None
    assert request_records.model_dump(by_alias=True) == records
    latencies = [value / 1e9 for (value,) in struct.iter_unpack("<q", records["latency_ns"])]
    assert len(latencies) == counts["due"]
    assert set(records["class"]) == {0}
    assert result["latency"]["max_s"] == pytest.approx(max(latencies))
    histogram = Histogram(result["latency"]["hdr"])
    median = sorted(latencies)[(len(latencies) - 1) // 2]
    assert histogram.quantile(0.5) == pytest.approx(median, rel=1e-3, abs=2e-6)
    assert histogram.count_over(median * 1.01) <= len(latencies) / 2


def test_requests_of_an_open_loop_are_due_by_its_schedule(url: str) -> None:
    mode = {"open": {"rate_per_s": 200.0, "schedule": "poisson", "connections": 16}}
    first, again = (HttpLoad(order(url, mode=mode, seed=9, max_records=100)) for _ in range(2))
    results = []
    for load in (first, again):
        load.start()
        results.append(load.finish())
    one, two = results
    assert one["counts"]["due"] == one["counts"]["ok"] == two["counts"]["due"]
    assert one["records"] is not None
    assert two["records"] is not None
    assert one["records"]["due_ns"] == two["records"]["due_ns"]
    assert one["lag"]["n"] > 0
    assert one["service"]["n"] == one["latency"]["n"]


def test_errors_are_distinguished_by_the_servers_message(url: str) -> None:
    load = HttpLoad(order(url, requests=[ask("/block", 1), ask("/other", 1)]))
    load.start()
    result = load.finish()
    finished = Finished.model_validate(result)
    assert (finished.records, finished.series.errors["status"], finished.errors[0].kind) == (
        None, result["series"]["errors"]["status"], "status",
    )  # fmt: skip
    [failures] = result["classes"]
    assert (failures["class"], failures["status"]) == ("status", 500)
    assert failures["reported"] == {"/code": 4, "/message": "no such thing"}
    assert failures["count"] == result["counts"]["failed"] == sum(result["series"]["errors"]["status"])


def test_histograms_of_repetitions_can_be_merged(url: str) -> None:
    load = HttpLoad(order(url, duration_s=0.1))
    load.start()
    stored = load.finish()["latency"]["hdr"]
    histogram, both = Histogram(stored), Histogram()
    both.merge(histogram)
    both.merge(Histogram(stored))
    assert both.n() == 2 * histogram.n()
    assert both.quantile(0.99) == histogram.quantile(0.99)
    assert Histogram(both.to_base64()).n() == both.n()
    assert Histogram().quantile(0.5) is None


def test_an_unusable_load_is_rejected_with_a_hint(url: str) -> None:
    for changes, text in (
        ({"url": "ftp://host"}, "neither http"),
        ({"duration_s": 0}, "duration_s"),
        ({"mode": {"closed": {"clients": 0}}}, "clients"),
        ({"sped": 1}, "sped"),
        ({"requests": []}, "requests"),
    ):
        with pytest.raises(ValueError, match=text) as error:
            HttpLoad(order(url, **changes))
        assert "\nhint: " in str(error.value)
    with pytest.raises(ConnectionError, match=r"no-such-host\.invalid"):
        HttpLoad(order("http://no-such-host.invalid")).start()
    with pytest.raises(ValueError, match="not a histogram"):
        Histogram("abc")


def test_ctrl_c_ends_the_wait_and_the_result_is_still_available(url: str) -> None:
    load = HttpLoad(order(url, duration_s=60.0))

    def interrupt() -> None:
        wait_until(lambda: json.loads(load.progress())["ok"] > 0, "an answer")
        signal.raise_signal(signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)

    def interrupted() -> None:
        interrupter.start()
        load.finish()

    load.start()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    interrupter.join()
    load.stop()
    result = load.finish()
    assert result["ended"] == "stopped"
    assert result["counts"]["ok"] > 0


def test_the_classes_of_records_have_names() -> None:
    names = http_record_classes()
    assert (names[0], names[6], names[9], names[10:]) == (
        "ok",
        "timeout",
        "wrong answer",
        ["generator", "idle close", "stream reset", "refused stream", "goaway", "unsent"],
    )
