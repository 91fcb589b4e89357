"""Discovery and sampling against real servers: a live Cosmos chain's Rosetta server, and Coinbase's SDK example."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from threading import Condition, Thread

import httpx
import pytest

import chainmark as cm
from chainmark.capacity.model import Target, Tls
from chainmark.core.errors import EnvironmentFailure
from chainmark.core.progress import Silent
from chainmark.core.verdict import Verdict
from chainmark.systems.mesh import bodies
from chainmark.systems.mesh.bodies import READS, canonical
from chainmark.systems.mesh.client import MeshClient, WrongCertificate
from chainmark.systems.mesh.corpus import CorpusRequest, sample
from chainmark.systems.mesh.discovery import DiscoveredServer, Offering, discover
from chainmark.systems.mesh.pinned import Corpus

from tests.real.dask_cluster import local_cluster, wait_for_workers, watching
from tests.real.http2_server import serving_http2
from tests.real.mesh_servers import CHAIN_ID, NETWORK, MeshServer, running_simd

ALL_OF_THEM = 1_000
JSON = {"Content-Type": "application/json"}


def _sampled(url: str, order: CorpusRequest) -> tuple[DiscoveredServer, Corpus]:
    with MeshClient(url) as client:
        server = discover(client)
        return server, sample(server, client, order, Silent())


def _offers(server: DiscoveredServer) -> dict[str, str]:
    return {offer.endpoint.id: offer.state.value for offer in server.offers}


def test_the_endpoints_of_the_chain_are_listed(simd: MeshServer) -> None:
    with MeshClient(simd.url) as client:
        server = discover(client, CHAIN_ID)
    assert server.network == NETWORK
    assert server.genesis.index == 1
    assert {"code": 400, "message": "bad argument", "retriable": False} in server.errors
    assert _offers(server) == {
        "network_status": "offered",
        "account_balance": "offered",
        "account_coins": "refused",
        "block": "offered",
        "block_transaction": "offered",
        "search_by_hash": "not offered",
        "search_by_address": "not offered",
        "construction_metadata": "refused",
        "network_list": "offered",
        "network_options": "offered",
        "mempool": "offered",
        "events_blocks": "not offered",
    }
    coins = server.offer(bodies.ACCOUNT_COINS).reason
    assert "“cannot query endpoint in offline mode” with `include_mempool` false" in coins
    assert "“mempool coins not supported” with `include_mempool` true" in coins


def test_metadata_requests_use_the_options_of_the_implementation(simd: MeshServer) -> None:
    """Options differ between implementations: this one derives them from the operations of a transfer."""
    transfer = {
        "operation_identifier": {"index": 0},
        "type": "/cosmos.bank.v1beta1.MsgSend",
        "account": {"address": simd.accounts["k0"]},
        "metadata": {
            "amount": [{"amount": "1000", "denom": "stake"}],
            "from_address": simd.accounts["k0"],
            "to_address": simd.accounts["k1"],
        },
    }
    price = {"gas_price": "1stake", "gas_limit": 200_000, "memo": ""}
    preprocessed = simd.post(
        "/construction/preprocess", {"network_identifier": NETWORK, "operations": [transfer], "metadata": price}
    ).json()
    with MeshClient(simd.url) as client:
        server = discover(client, metadata_options=preprocessed["options"])
        corpus = sample(server, client, CorpusRequest(settled_blocks=1), Silent())
    assert server.offer(bodies.CONSTRUCTION_METADATA).state is Offering.OFFERED
    endpoint = corpus.endpoint("construction_metadata")
    assert endpoint is not None
    assert endpoint.items[0].body["options"] == preprocessed["options"]


def test_a_corpus_is_sampled_from_a_live_chain(simd: MeshServer, tmp_path: Path) -> None:
    # The first blocks contain the transfers. All of them are read and kept, however many there are.
    newest = simd.transacted
    order = CorpusRequest(
        seed=7,
        settled_blocks=0,
        newest_index=newest,
        blocks=newest,
        transactions=ALL_OF_THEM,
        per_stratum=ALL_OF_THEM,
    )
    server, corpus = _sampled(simd.url, order)
    assert corpus.blocks == {"first": 1, "last": newest}
    assert [endpoint.id for endpoint in corpus.endpoints] == [read.id for read in READS if server.offered(read)]
    balance = corpus.endpoint("account_balance")
    assert balance is not None
    addresses = {item.body["account_identifier"]["address"] for item in balance.items}
    assert set(simd.accounts.values()) <= addresses
    transactions = corpus.endpoint("block_transaction")
    assert transactions is not None
    assert {item.facts["operations"] for item in transactions.items} >= {0, 3, 4, 5}, "transfers are missing"
    # The chain has grown since. A corpus from the same blocks is identical and still valid.
    path = tmp_path / "corpus.json"
    corpus.save(path)
    assert _sampled(simd.url, order)[1].hash == corpus.hash
    with MeshClient(simd.url) as client:
        assert Corpus.load(path).check_against(discover(client), client, Silent()) == []


def test_a_corpus_of_a_reset_chain_is_rejected(simd: MeshServer, tmp_path: Path) -> None:
    """Same network, other blocks: a load test with the old corpus would measure only errors."""
    with running_simd(tmp_path, transfers=False) as other:
        _, corpus = _sampled(other.url, CorpusRequest(settled_blocks=0))
    with MeshClient(simd.url) as client:
        server = discover(client)
        wrong = corpus.check_against(server, client, Silent())
        left = corpus.validated_by(server, client, Silent())
    reasons = {refusal.endpoint: refusal.reason for refusal in wrong}
    assert set(reasons) >= {"block", "block_transaction"}
    assert left.endpoint("block") is None
    assert left.endpoint("network_options") is not None


def test_the_endpoints_of_the_example_are_listed(rosetta_example: MeshServer) -> None:
    server, corpus = _sampled(rosetta_example.url, CorpusRequest(settled_blocks=0, per_stratum=5))
    states = _offers(server)
    offered = {"network_status", "network_list", "network_options", "block", "block_transaction"}
    assert {name for name, state in states.items() if state == "offered"} == offered
    assert set(states.values()) == {"offered", "not offered"}
    assert server.offer(bodies.ACCOUNT_BALANCE).reason == "404 text/plain “404 page not found”"
    assert [endpoint.id for endpoint in corpus.endpoints] == [read.id for read in READS if read.id in offered]
    # The example returns the same transaction to every request: a correct status, but a wrong response.
    (refused,) = corpus.refused
    assert refused.reason == "/transaction/transaction_identifier/hash is 'transaction 1', not 'transaction 0'"
    block = corpus.endpoint("block")
    assert block is not None
    assert {stratum.name for stratum in block.strata} == {"old/small", "recent/small", "recent/large"}
    assert block.candidates == 60
    assert _sampled(rosetta_example.url, CorpusRequest(settled_blocks=0, per_stratum=5))[1].hash == corpus.hash


def test_the_example_panics_on_a_block_requested_by_hash_alone(rosetta_example: MeshServer) -> None:
    """A server that breaks the connection is distinguished from a server that is down."""
    body = bodies.block({"blockchain": "Rosetta", "network": "Testnet"}, {"hash": "block 1000"})
    with MeshClient(rosetta_example.url) as client:
        with pytest.raises(Exception, match="did not send a valid response"):
            client.post("/block", body)
        assert client.post("/network/list", {}).status == 200


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def _tls_server(folder: Path) -> Iterator[int]:
    """A server on loopback with a certificate of another host, generated with Go's own tool."""
    root = subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True, timeout=60).stdout
    tool = Path(root.strip()) / "src" / "crypto" / "tls" / "generate_cert.go"
    subprocess.run(["go", "run", str(tool), "-host", "mesh.example", "-ca"], cwd=folder, check=True, timeout=300)
    context = SSLContext(PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with _served(server) as port:
        yield port


@contextmanager
def _served(server: ThreadingHTTPServer) -> Iterator[int]:
    """The port of a server while the context lasts."""
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_invalid_certificate_is_reported(tmp_path: Path, rosetta_example: MeshServer) -> None:
    """Unknown authority, known authority but another host, no TLS at all: three errors with three hints."""
    with _tls_server(tmp_path) as port:
        url = f"https://127.0.0.1:{port}"
        with MeshClient(url) as client, pytest.raises(WrongCertificate, match="is self-signed"):
            discover(client)
        ca_file = tmp_path / "cert.pem"
        with MeshClient(url, ca_file=ca_file) as client, pytest.raises(WrongCertificate, match="for another host"):
            discover(client)
        tls = Tls(ca_file=str(ca_file), server_name="mesh.example")
        for right in (MeshClient.of(Target("t", url, tls)), MeshClient(url, verify=False)):
            with right as client:
                assert client.post("/network/list", {}).status == 404
    plain = rosetta_example.url.replace("http:", "https:")
    with (
        MeshClient(plain) as client,
        pytest.raises(WrongCertificate, match=r"the TLS connection to .* failed: ") as caught,
    ):
        discover(client)
    assert caught.value.hint == "does the server use `http://`?"


def test_a_corpus_is_sampled_from_a_deployment_that_offers_only_http_2(
    tmp_path: Path, rosetta_example: MeshServer
) -> None:
    """A gateway may not support HTTP/1.1. Without a corpus, its deployment could not be tested."""

    def example(path: str, body: bytes) -> tuple[int, bytes]:
        answer = httpx.post(rosetta_example.url + path, content=body, headers=JSON, timeout=30, trust_env=False)
        return answer.status_code, answer.content

    path = tmp_path / "corpus.json"
    with serving_http2() as gateway:
        gateway.behind = example
        with pytest.raises(EnvironmentFailure):
            cm.corpus("mesh", gateway.url, path)
        corpus = cm.corpus("mesh", gateway.url, path, http_version="2").plain()
        assert "/block" in corpus["requests"]
        checked = cm.check_corpus("mesh", path, gateway.url, http_version="2").plain()
        assert (checked["hash"], checked["wrong"]) == (corpus["hash"], [])


class _Checks(Silent):
    """The progress of a check. Its requests to the gateway wait until two are there at the same time.

    Attributes:
        most: the number of requests that were there at the same time.
    """

    def __init__(self) -> None:
        self._is_checking, self._now, self._changed = False, 0, Condition()
        self.most = 0

    def stage(self, name: str) -> None:
        """See `Progress`."""
        self._is_checking = name.startswith("checking the corpus")

    def wait_for_two(self) -> None:
        """Wait, if this is a check."""
        if not self._is_checking:
            return
        with self._changed:
            self._now += 1
            self.most = max(self.most, self._now)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most > 1, timeout=60)
            self._now -= 1


def _gateway(url: str, checks: _Checks, refused: str) -> ThreadingHTTPServer:
    """A server before the real one. It has no correct response to one of the requests."""

    class Gateway(_Handler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            checks.wait_for_two()
            response = httpx.post(url + self.path, content=body, headers=JSON, timeout=30, trust_env=False)
            self.send_response(500 if body == refused.encode() else response.status_code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(response.content)))
            self.end_headers()
            self.wfile.write(response.content)

    return ThreadingHTTPServer(("127.0.0.1", 0), Gateway)


def test_the_workers_of_a_cluster_check_a_corpus_together(tmp_path: Path, rosetta_example: MeshServer) -> None:
    """A thousand requests to a server that needs 0.1 s for each take minutes one after another."""
    path = tmp_path / "corpus.json"
    cm.corpus("mesh", rosetta_example.url, path, settings={"corpus.settled_blocks": 0, "corpus.blocks": 20})
    blocks = Corpus.load(path).endpoint("block")
    assert blocks is not None
    checks = _Checks()
    gateway = _gateway(rosetta_example.url, checks, canonical(blocks.items[-1].body))
    with _served(gateway) as port, local_cluster() as cluster:
        url = f"http://127.0.0.1:{port}"
        here = cm.check_corpus("mesh", path, url)
        for number in (2, 3):
            cluster.start_worker(number)
        with watching(cluster) as seen:
            wait_for_workers(seen, {"w2", "w3"})
        there = cm.check_corpus("mesh", path, url, on=cluster.address, progress=checks)
    assert checks.most == 2
    assert there.plain() == here.plain()
    assert there.verdict is Verdict.FAIL
    assert len(there.plain()["wrong"]) == 1
