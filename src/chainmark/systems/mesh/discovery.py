"""Discover what a Mesh server is and offers: queried from the server itself, once, before the measurement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from chainmark.capacity.probing import hint_of_status
from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.systems.mesh import bodies, expectations
from chainmark.systems.mesh.bodies import Body, ReadEndpoint
from chainmark.systems.mesh.client import MeshClient, MeshResponse, NoAnswer, NotMeshError
from chainmark.systems.mesh.expectations import Expectation

Network = Mapping[str, Any]

# How servers report an unknown path, whatever the message says.
UNKNOWN_PATH = frozenset({404, 405, 501})
BLOCKS_LOOKED_AT = 24
# The size that cardano-rosetta-java's own load tests use: a transaction of ordinary size.
CARDANO_OPTIONS = {"transaction_size": 296, "relative_ttl": 1000}


class Offering(StrEnum):
    """Whether an endpoint can be measured."""

    OFFERED = "offered"
    REFUSED = "refused"  # the path exists, the request got an error or an incorrect response
    NOT_OFFERED = "not offered"
    NOT_REQUESTED = "not asked"  # no request parameters were found


@dataclass(frozen=True)
class OfferedEndpoint:
    """One endpoint of a server; ``reason`` says why it cannot be measured."""

    endpoint: ReadEndpoint
    state: Offering
    reason: str = ""


@dataclass(frozen=True)
class BlockIdentifier:
    """A block by height and hash."""

    index: int
    hash: str

    def as_json(self) -> dict[str, Any]:
        """Its form in requests."""
        return {"index": self.index, "hash": self.hash}


@dataclass(frozen=True)
class DiscoveredServer:
    """A server at the time of discovery.

    Attributes:
        network: its complete `network_identifier`.
        versions: by the standard's names: `rosetta_version`, `node_version`, maybe `middleware_version`.
        errors: code, message and retriable of the errors that it declares.
        oldest: the first available block, if the server reports it.
        include_mempool: parameter of `/account/coins`.
        metadata_options: options of `/construction/metadata`; None if they were refused.
    """

    url: str
    network: Network
    versions: Mapping[str, str]
    operation_types: tuple[str, ...]
    errors: tuple[Mapping[str, Any], ...]
    historical_balance_lookup: bool
    mempool_coins: bool
    current: BlockIdentifier
    genesis: BlockIdentifier
    oldest: BlockIdentifier | None
    offers: tuple[OfferedEndpoint, ...] = ()
    include_mempool: bool = False
    metadata_options: Mapping[str, Any] | None = None

    @property
    def network_name(self) -> str:
        """`blockchain/network`, with the sub-network if there is one."""
        return network_name(self.network)

    @property
    def first_index(self) -> int:
        """The first available block."""
        return (self.oldest or self.genesis).index

    def offer(self, endpoint: ReadEndpoint) -> OfferedEndpoint:
        """The result of probing an endpoint."""
        return next(offer for offer in self.offers if offer.endpoint == endpoint)

    def offered(self, endpoint: ReadEndpoint) -> bool:
        """Whether it can be measured."""
        return self.offer(endpoint).state is Offering.OFFERED


@dataclass(frozen=True)
class FirstResponse:
    """An item's first response, its error in words (None: correct), and how to fix it."""

    answer: MeshResponse | None
    reason: str | None
    hint: str | None = None

    @property
    def unknown_path(self) -> bool:
        """Whether the response means that the server does not have this endpoint."""
        if self.answer is None or self.answer.body_error is not None:
            return False
        return self.answer.status in UNKNOWN_PATH or (self.answer.status != 200 and self.answer.document is None)


def network_name(network: Network) -> str:
    """`blockchain/network`, with the sub-network if there is one."""
    sub = network.get("sub_network_identifier")
    names = [network["blockchain"], network["network"], *([sub.get("network")] if isinstance(sub, Mapping) else [])]
    return "/".join(map(str, names))


def ask(client: MeshClient, endpoint: ReadEndpoint, body: Body, expected: Expectation) -> FirstResponse:
    """Send a request once and check the response.

    Raises:
        Unreachable: the server no longer responds.
    """
    try:
        answer = client.post(endpoint.path, body)
    except NoAnswer as error:
        return FirstResponse(None, error.message, error.hint)
    return FirstResponse(answer, expectations.failed(expected, answer))


def discover(
    client: MeshClient, network: str | None = None, *, metadata_options: Mapping[str, Any] | None = None
) -> DiscoveredServer:
    """Query the identity of a server and which of the known reads it answers correctly.

    Args:
        client: of the server.
        network: `network` or `blockchain/network`, required if a server has several.
        metadata_options: the options of `/construction/metadata`; implementations differ.

    Raises:
        NotMeshError: the server does not respond as a Mesh server.
        UsageError: the network is not among the server's, or is required and missing.
        EnvironmentFailure: there is no server, or it does not report its chain tip.
    """
    chosen = _choose(_networks(client), network, client.url)
    options = _required(client, bodies.NETWORK_OPTIONS, bodies.of_network(chosen), expectations.network_options())
    status = _required(client, bodies.NETWORK_STATUS, bodies.of_network(chosen), expectations.network_status(None))
    allow, oldest = options["allow"], status.get("oldest_block_identifier")
    server = DiscoveredServer(
        url=client.url,
        network=chosen,
        versions={name: text for name, text in sorted(options["version"].items()) if isinstance(text, str)},
        # Sorted: some servers list them in a different order each time.
        operation_types=tuple(sorted(map(str, allow["operation_types"]))),
        errors=tuple(sorted(map(_declared_error, allow["errors"]), key=bodies.canonical)),
        historical_balance_lookup=bool(allow.get("historical_balance_lookup")),
        mempool_coins=bool(allow.get("mempool_coins")),
        current=_identifier(status["current_block_identifier"]),
        genesis=_identifier(status["genesis_block_identifier"]),
        oldest=_identifier(oldest) if isinstance(oldest, Mapping) and {"index", "hash"} <= oldest.keys() else None,
    )
    return _Probing(client, server, metadata_options).result()


def _networks(client: MeshClient) -> list[Network]:
    probed = ask(client, bodies.NETWORK_LIST, bodies.network_list(), expectations.network_list())
    if probed.answer is None:
        raise EnvironmentFailure(f"{probed.reason}", probed.hint)
    if probed.reason is not None:
        document = probed.answer.document
        if isinstance(document, Mapping) and document.get("network_identifiers") == []:
            raise NotMeshError(f"{client.url} serves no network", "is its node configured and running?")
        raise NotMeshError(
            f"{client.url} is not a Mesh server: /network/list returned {probed.answer.in_words()}",
            hint_of_status(probed.answer.status, probed.answer.in_words()),
        )
    networks: list[Network] = probed.answer.document["network_identifiers"]
    return networks


def _choose(networks: list[Network], wanted: str | None, url: str) -> Network:
    names = [network_name(network) for network in networks]
    listed = ", ".join(f"`{name}`" for name in names)
    if wanted is None:
        if len(networks) > 1:
            raise UsageError(
                f"{url} serves {len(networks)} networks: {listed}", "choose one with `--set mesh.network=NAME`"
            )
        return networks[0]
    results = [
        network
        for network, name in zip(networks, names, strict=True)
        if wanted in {name, name.partition("/")[2], network["network"]}
    ]
    if len(results) != 1:
        how = "several networks named" if results else "no network"
        raise UsageError(f"{url} has {how} `{wanted}`", f"it serves {listed}")
    return results[0]


def _required(client: MeshClient, endpoint: ReadEndpoint, body: Body, expected: Expectation) -> Mapping[str, Any]:
    probed = ask(client, endpoint, body, expected)
    if probed.answer is None or probed.reason is not None:
        raise EnvironmentFailure(
            f"{endpoint.path} of {client.url} cannot be used: {probed.reason}",
            "is the node behind it running, and not in offline mode?",
        )
    document: Mapping[str, Any] = probed.answer.document
    return document


def _declared_error(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: document.get(key) for key in ("code", "message", "retriable")}


def _identifier(document: Mapping[str, Any]) -> BlockIdentifier:
    return BlockIdentifier(document["index"], document["hash"])


@dataclass
class Material:
    """Request parameters, taken from the newest blocks that contain them."""

    block: BlockIdentifier
    transaction_hash: str | None = None
    account: Mapping[str, Any] | None = None

    @property
    def complete(self) -> bool:
        """Whether parameters of every endpoint are known."""
        return self.transaction_hash is not None and self.account is not None

    def take(self, identifier: BlockIdentifier, document: Mapping[str, Any]) -> None:
        """Use a block's content if it has more than what was found before."""
        others = other_hashes(document)
        inline = document["block"]["transactions"]
        hashes = [*others, *(item["transaction_identifier"]["hash"] for item in inline)]
        if hashes and self.transaction_hash is None:
            self.block, self.transaction_hash = identifier, hashes[0]
        for transaction in inline:
            for account in accounts_of(transaction):
                if self.account is None:
                    self.account = account


def other_hashes(document: Mapping[str, Any]) -> list[str]:
    """The transactions that a block response names without their content."""
    others = document.get("other_transactions") or []
    return [other["hash"] for other in others if isinstance(other, Mapping) and isinstance(other.get("hash"), str)]


def accounts_of(transaction: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The account identifiers in a transaction's operations, in order, with repetitions."""
    for operation in transaction.get("operations") or []:
        account = operation.get("account") if isinstance(operation, Mapping) else None
        if isinstance(account, Mapping) and isinstance(account.get("address"), str):
            yield account


class _Probing:
    """Probes every known read once."""

    def __init__(
        self, client: MeshClient, server: DiscoveredServer, metadata_options: Mapping[str, Any] | None
    ) -> None:
        self._client = client
        self._server = server
        self._network = server.network
        self._include_mempool = server.mempool_coins
        self._metadata_options = metadata_options

    def result(self) -> DiscoveredServer:
        """The server with its offers, in the order of the known reads."""
        material = Material(self._server.current)
        offers = {
            bodies.NETWORK_LIST: OfferedEndpoint(bodies.NETWORK_LIST, Offering.OFFERED),
            bodies.NETWORK_OPTIONS: OfferedEndpoint(bodies.NETWORK_OPTIONS, Offering.OFFERED),
            bodies.NETWORK_STATUS: OfferedEndpoint(bodies.NETWORK_STATUS, Offering.OFFERED),
            bodies.BLOCK: self._blocks(material),
        }
        for endpoint in bodies.READS:
            if endpoint not in offers:
                offers[endpoint] = self._offer(endpoint, material)
        return replace(
            self._server,
            offers=tuple(offers[endpoint] for endpoint in bodies.READS),
            include_mempool=self._include_mempool,
            metadata_options=self._metadata_options,
        )

    def _blocks(self, material: Material) -> OfferedEndpoint:
        """Search backwards, in doubling steps, for a block with a transaction and an account."""
        offer = None
        for index in _backwards(self._server.current.index, self._server.first_index):
            body = bodies.block(self._network, {"index": index})
            probed = ask(self._client, bodies.BLOCK, body, expectations.block({"index": index}))
            offer = offer or _offer(bodies.BLOCK, probed)
            if probed.reason is None and probed.answer is not None:
                offer = OfferedEndpoint(bodies.BLOCK, Offering.OFFERED)
                self._take(material, probed.answer.document)
            if material.complete or offer.state is Offering.NOT_OFFERED:
                break
        return offer or OfferedEndpoint(bodies.BLOCK, Offering.NOT_REQUESTED, "the chain has no block")

    def _take(self, material: Material, document: Mapping[str, Any]) -> None:
        identifier = _identifier(document["block"]["block_identifier"])
        material.take(identifier, document)
        if material.account is None and material.block == identifier and material.transaction_hash is not None:
            # A server that lists transactions only by hash shows accounts only when a transaction is requested.
            probed = self._transaction(material)
            if probed.reason is None and probed.answer is not None:
                material.take(identifier, {"block": {"transactions": [probed.answer.document["transaction"]]}})

    def _transaction(self, material: Material) -> FirstResponse:
        text = material.transaction_hash or ""
        body = bodies.block_transaction(self._network, material.block.as_json(), text)
        return ask(self._client, bodies.BLOCK_TRANSACTION, body, expectations.block_transaction(text))

    def _offer(self, endpoint: ReadEndpoint, material: Material) -> OfferedEndpoint:
        if endpoint == bodies.ACCOUNT_COINS and material.account is not None:
            return self._coins(material.account)
        if endpoint == bodies.CONSTRUCTION_METADATA:
            return self._metadata()
        question = self._question(endpoint, material)
        if question is None:
            reason = f"no {'transaction' if material.account else 'account'} was found in the examined blocks"
            return OfferedEndpoint(endpoint, Offering.NOT_REQUESTED, reason)
        return _offer(endpoint, ask(self._client, endpoint, *question))

    def _question(self, endpoint: ReadEndpoint, material: Material) -> tuple[Body, Expectation] | None:
        network, account, text = self._network, material.account, material.transaction_hash
        questions = {
            bodies.MEMPOOL: (bodies.of_network(network), expectations.mempool()),
            bodies.EVENTS_BLOCKS: (bodies.events_blocks(network), expectations.events_blocks()),
        }
        if account is not None:
            questions |= {
                bodies.ACCOUNT_BALANCE: (bodies.account_balance(network, account), expectations.account_balance()),
                bodies.SEARCH_BY_ADDRESS: (
                    bodies.search_by_address(network, account),
                    expectations.search_by_address(),
                ),
            }
        if text is not None:
            body = bodies.block_transaction(network, material.block.as_json(), text)
            questions |= {
                bodies.BLOCK_TRANSACTION: (body, expectations.block_transaction(text)),
                bodies.SEARCH_BY_HASH: (bodies.search_by_hash(network, text), expectations.search_by_hash(text)),
            }
        return questions.get(endpoint)

    def _coins(self, account: Mapping[str, Any]) -> OfferedEndpoint:
        """The coins including the mempool if the server supports it; without it otherwise."""
        reasons = []
        for include in (self._server.mempool_coins, not self._server.mempool_coins):
            body = bodies.account_coins(self._network, account, include_mempool=include)
            offer = _offer(bodies.ACCOUNT_COINS, ask(self._client, bodies.ACCOUNT_COINS, body, _COINS))
            if offer.state is not Offering.REFUSED:
                self._include_mempool = include
                return offer
            reasons.append(f"{offer.reason} with `include_mempool` {str(include).lower()}")
        return OfferedEndpoint(bodies.ACCOUNT_COINS, Offering.REFUSED, "; ".join(reasons))

    def _metadata(self) -> OfferedEndpoint:
        options = self._chosen_options()
        body = bodies.construction_metadata(self._network, options)
        probed = ask(self._client, bodies.CONSTRUCTION_METADATA, body, expectations.construction_metadata())
        offer = _offer(bodies.CONSTRUCTION_METADATA, probed)
        self._metadata_options = options if offer.state is Offering.OFFERED else None
        return offer

    def _chosen_options(self) -> Mapping[str, Any]:
        """The options from the caller, since every implementation has its own."""
        if self._metadata_options is not None:
            return self._metadata_options
        return CARDANO_OPTIONS if self._network["blockchain"] == "cardano" else {}


_COINS = expectations.account_coins()


def _offer(endpoint: ReadEndpoint, response: FirstResponse) -> OfferedEndpoint:
    if response.reason is None:
        return OfferedEndpoint(endpoint, Offering.OFFERED)
    return OfferedEndpoint(
        endpoint, Offering.NOT_OFFERED if response.unknown_path else Offering.REFUSED, response.reason
    )


def _backwards(newest: int, oldest: int) -> Iterator[int]:
    """The newest block, the blocks 1, 2, 4, … below it, and the oldest."""
    for step in range(BLOCKS_LOOKED_AT - 1):
        index = newest - ((1 << step) >> 1)
        if index <= oldest:
            break
        yield index
    yield oldest
