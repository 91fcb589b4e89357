"""Unreachable servers, servers of another kind and wrong responses: each problem is reported as what it is."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from chainmark.core.errors import EnvironmentFailure, ExitCode, UsageError
from chainmark.core.progress import Silent
from chainmark.systems.mesh import bodies
from chainmark.systems.mesh.client import MeshClient, NameNotResolved, NoAnswer, NotMeshError, ServerDown
from chainmark.systems.mesh.corpus import CorpusRequest, sample
from chainmark.systems.mesh.discovery import DiscoveredServer, Offering, discover

from tests.unit.systems.mesh.scripted_server import CLOSE, NETWORK, NOT_FOUND, Reply, answer, chain, serving


def _discover(url: str, network: str | None = None) -> DiscoveredServer:
    with MeshClient(url, timeout_s=5) as client:
        return discover(client, network)


def test_a_closed_port_is_reported() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(ServerDown, match="cannot connect to") as caught:
        _discover(url)
    assert caught.value.exit_code is ExitCode.ENVIRONMENT
    assert url in caught.value.message


def test_an_unresolvable_name_is_reported() -> None:
    with pytest.raises(NameNotResolved, match=r"`no-such-host\.invalid` .* does not resolve"):
        _discover("http://no-such-host.invalid:8082")


@pytest.mark.parametrize(
    "url", ["localhost:8082", "ftp://x/", "http://", "http://x:port", "http://x:0", "http://x/?a=1"]
)
def test_an_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        MeshClient(url)
    assert f"`{url}`" in caught.value.message


def test_a_web_server_is_not_a_mesh_server() -> None:
    with serving({}) as url, pytest.raises(NotMeshError, match="404 text/plain “404 page not found”") as caught:
        _discover(url)
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_server_with_other_json_is_not_a_mesh_server() -> None:
    """An Ethereum node responds to any POST with 200 and JSON."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "invalid request"}}
    with serving({"/network/list": lambda _: answer(error)}) as url, pytest.raises(NotMeshError, match="jsonrpc"):
        _discover(url)


def test_a_server_without_a_network_is_refused() -> None:
    empty = {"/network/list": lambda _: answer({"network_identifiers": []})}
    with serving(empty) as url, pytest.raises(NotMeshError, match="serves no network"):
        _discover(url)


def test_one_of_several_networks_must_be_named() -> None:
    shard: dict[str, Any] = {**NETWORK, "sub_network_identifier": {"network": "shard 1"}}
    networks = {"network_identifiers": [NETWORK, {"blockchain": "cardano", "network": "mainnet"}, shard]}
    with serving({**chain(), "/network/list": lambda _: answer(networks)}) as url:
        with pytest.raises(UsageError, match="serves 3 networks: `cardano/preprod`, `cardano/mainnet`, `cardano/prep"):
            _discover(url)
        with pytest.raises(UsageError, match="no network `preview`") as caught:
            _discover(url, "preview")
        assert "`cardano/mainnet`" in (caught.value.hint or "")
        with pytest.raises(UsageError, match="several networks named `preprod`"):
            _discover(url, "preprod")
        assert _discover(url, "mainnet").network["network"] == "mainnet"
        assert _discover(url, "cardano/preprod/shard 1").network == shard


def test_a_server_whose_node_is_down_is_reported() -> None:
    offline = {"code": 1, "message": "offline", "retriable": True}
    script = {**chain(), "/network/status": lambda _: answer(offline, 500)}
    with (
        serving(script) as url,
        pytest.raises(EnvironmentFailure, match=r"500 code 1 “offline” \(retriable\)") as caught,
    ):
        _discover(url)
    assert "/network/status" in caught.value.message


def test_a_closed_connection_affects_only_its_endpoint() -> None:
    """The other endpoints of the server can still be measured."""
    with serving({**chain(), "/mempool": lambda _: CLOSE}) as url:
        offer = _discover(url).offer(bodies.MEMPOOL)
        with MeshClient(url) as client, pytest.raises(NoAnswer):
            client.post("/mempool", {})
    assert offer.state is Offering.REFUSED
    assert "did not send a valid response" in offer.reason


@pytest.mark.parametrize(
    ("reply", "state", "reason"),
    [
        (answer(NOT_FOUND), Offering.REFUSED, "200 code 4001 “Block not found”"),
        (answer({}), Offering.REFUSED, "/transaction_identifiers is missing"),
        (answer({"transaction_identifiers": [{"hash": 1}]}), Offering.REFUSED, "/transaction_identifiers/0/hash is 1"),
        (answer([], 404), Offering.NOT_OFFERED, "404 application/json “[]”"),
        ((200, "text/html", "<html>"), Offering.REFUSED, "200 text/html “<html>”"),
        ((200, "application/json", "NaN"), Offering.REFUSED, "200 application/json “NaN”"),
        ((200, "application/json", "[" * 100_000), Offering.REFUSED, "200 application/json “[[["),
        ((405, "text/plain", ""), Offering.NOT_OFFERED, "405 text/plain “”"),
    ],
)
def test_an_error_with_status_200_is_an_error(reply: Reply, state: Offering, reason: str) -> None:
    with serving({**chain(), "/mempool": lambda _: reply}) as url:
        offer = _discover(url).offer(bodies.MEMPOOL)
    assert (offer.state, offer.reason[: len(reason)]) == (state, reason)


def test_a_pruned_server_that_does_not_report_it_is_detected() -> None:
    """Requests below the oldest block would measure how fast the server rejects them."""
    with serving(chain(height=1_000, pruned_below=737)) as url, MeshClient(url) as client:
        corpus = sample(discover(client), client, CorpusRequest(settled_blocks=3), Silent())
    assert corpus.blocks == {"first": 737, "last": 997}
    block = corpus.endpoint("block")
    assert block is not None
    assert (block.refused, corpus.refused) == (0, [])
    drawn = {item.body["block_identifier"]["index"] for item in block.items}
    assert min(drawn) >= 737
    assert max(drawn) <= 997


def test_a_chain_too_short_to_sample_is_refused() -> None:
    with (
        serving(chain(height=5)) as url,
        MeshClient(url) as client,
        pytest.raises(UsageError, match="no settled block"),
    ):
        sample(discover(client), client, CorpusRequest(), Silent())


def test_an_account_that_cannot_be_looked_up_is_listed_with_its_reason() -> None:
    """An invalid account must neither enter the corpus nor vanish."""

    def balance(body: dict[str, Any]) -> Reply:
        if body["account_identifier"]["address"] == "a3":
            return answer({"code": 9, "message": "too many entries", "retriable": True}, 500)
        return answer({"block_identifier": {"index": 1, "hash": "b1"}, "balances": []})

    with serving({**chain(), "/account/balance": balance}) as url, MeshClient(url) as client:
        corpus = sample(discover(client), client, CorpusRequest(), Silent())
    endpoint = corpus.endpoint("account_balance")
    assert endpoint is not None
    assert (endpoint.refused, endpoint.candidates - endpoint.refused) == (1, len(endpoint.items))
    assert "a3" not in {item.body["account_identifier"]["address"] for item in endpoint.items}
    assert [refusal.reason for refusal in corpus.refused] == ["500 code 9 “too many entries” (retriable)"]
