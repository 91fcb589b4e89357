"""Networks that others run: wrong servers and unsupported profiles are refused before any load is offered."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.systems.cometbft.attach import check_pages, reach, read_place, require_observable
from chainmark.systems.cometbft.profile import CometBFTProfile


@contextmanager
def answering(content: str) -> Iterator[str]:
    """The address of a server that sends the same response to every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content.encode())

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Ignore the request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def status(node_id: str = "a", network: str = "chain") -> str:
    """The parts of a node's `status` response that are read."""
    info = {"id": node_id, "network": network, "version": "1.0.1", "moniker": "m"}
    return json.dumps({"result": {"node_info": info, "sync_info": {"catching_up": False}}})


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("10.0.0.1", "10.0.0.1:26657"),
        ("node0:36657", "node0:36657"),
        ("tcp://10.0.0.1:26657", "10.0.0.1:26657"),
        ("http://node0.example/", "node0.example:26657"),
        ("[::1]:26657", "[::1]:26657"),
    ],
)
def test_an_address_is_accepted_in_its_usual_forms(address: str, place: str) -> None:
    assert read_place(address) == place


@pytest.mark.parametrize("address", ["https://node0", "node0:port", "http://node0/rpc", "", "ftp://x"])
def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="is not a valid RPC address"):
        read_place(address)


@pytest.mark.parametrize(
    "content",
    ["<html>", "[]", "3", '{"result": {}}', '{"result": 7}', '{"error": "no such method"}', '{"result": null}'],
)
def test_a_server_that_is_not_a_node_is_refused(content: str) -> None:
    with answering(content) as place, pytest.raises(UsageError, match="is not the RPC address of a CometBFT node"):
        reach([place])


def test_the_nodes_must_be_of_one_network_and_named_once_each() -> None:
    with answering(status("a")) as address, answering(status("b", "other")) as other, answering(status("a")) as again:
        assert reach([address])[0].version == "1.0.1"
        with pytest.raises(UsageError, match=r"different networks: .* of `chain`, .* of `other`"):
            reach([address, other])
        with pytest.raises(UsageError, match="are the same node"):
            reach([address, again])
    with pytest.raises(EnvironmentFailure, match="does not respond"):
        reach([address])
    with pytest.raises(UsageError, match="there is no node"):
        reach([])


def test_all_nodes_or_none_must_have_a_metrics_page() -> None:
    with answering("cometbft_consensus_height 7") as page, answering("up 1") as other:
        assert check_pages([page], 1) == [f"http://{page}/metrics"]
        with pytest.raises(UsageError, match="is not a metrics endpoint"):
            check_pages([page, f"http://{other}/metrics"], 2)
        with pytest.raises(UsageError, match="2 nodes are attached, but 1 metrics pages are given"):
            check_pages([page], 2)
    assert check_pages([], 3) == []
    with pytest.raises(EnvironmentFailure, match="does not respond"):
        check_pages([page], 1)


def test_a_proxy_from_the_environment_is_not_used_for_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot reach nodes of a private network, and its delay would be attributed to the node."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")  # no server listens here
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with answering(status("a")) as node, answering("cometbft_consensus_height 7") as page:
        assert reach([node])[0].version == "1.0.1"
        assert check_pages([page], 1) == [f"http://{page}/metrics"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"perturbation": [{"kind": "kill", "nodes": [1], "at_s": 1}]}, "perturbation"),
        ({"application": "cosmos-sdk"}, "Cosmos SDK"),
        ({"rotating": {"joiners": 1}}, "rotating"),
        ({"application": {"vote_extension_size_bytes": 0}}, "application"),
        ({"node": {"config": {"consensus": {"timeout_commit": "1s"}}}}, "node.config"),
        ({"node": {"genesis": {"a": "1"}}}, "node.genesis"),
        ({"network": {"links": "namespaces"}}, "network.links"),
        ({"load": {"targets": [2]}}, "load.targets"),
    ],
)
def test_a_profile_that_changes_the_network_is_refused(changes: Mapping[str, Any], named: str) -> None:
    """Otherwise a report would list a disturbance that did not happen."""
    plain = CometBFTProfile.model_validate({"system": "cometbft", "name": "p"})
    require_observable(plain, 1)
    with pytest.raises(UsageError, match=f"`{named}`"):
        require_observable(CometBFTProfile.model_validate({"system": "cometbft", "name": "p", **changes}), 2)
