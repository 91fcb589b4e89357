"""The requests: the body of each Mesh endpoint, and the endpoints by ID, path and label.

Fields as in mesh-specifications 1.5.1; ``network`` is a complete `network_identifier`, with its sub-network if any.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HEADERS = (("Content-Type", "application/json"), ("Accept", "application/json"))
ERROR_POINTERS = ("/code", "/message", "/retriable")

Json = Mapping[str, Any]
Body = dict[str, Any]


@dataclass(frozen=True)
class ReadEndpoint:
    """One way of reading from a Mesh server: two share a path if their bodies differ."""

    id: str
    path: str
    variant: str = ""

    @property
    def label(self) -> str:
        """Its name in reports: `/search/transactions (by hash)`."""
        return f"{self.path} ({self.variant})" if self.variant else self.path

    @property
    def names(self) -> frozenset[str]:
        """The names that select it: ID, label, path."""
        return frozenset({self.id, self.label, self.path})


NETWORK_LIST = ReadEndpoint("network_list", "/network/list")
NETWORK_OPTIONS = ReadEndpoint("network_options", "/network/options")
NETWORK_STATUS = ReadEndpoint("network_status", "/network/status")
ACCOUNT_BALANCE = ReadEndpoint("account_balance", "/account/balance")
ACCOUNT_COINS = ReadEndpoint("account_coins", "/account/coins")
BLOCK = ReadEndpoint("block", "/block")
BLOCK_TRANSACTION = ReadEndpoint("block_transaction", "/block/transaction")
SEARCH_BY_HASH = ReadEndpoint("search_by_hash", "/search/transactions", "by hash")
SEARCH_BY_ADDRESS = ReadEndpoint("search_by_address", "/search/transactions", "by address")
EVENTS_BLOCKS = ReadEndpoint("events_blocks", "/events/blocks")
MEMPOOL = ReadEndpoint("mempool", "/mempool")
CONSTRUCTION_METADATA = ReadEndpoint("construction_metadata", "/construction/metadata")

# In the order of the published tables; then those that they omit.
READS = (
    NETWORK_STATUS,
    ACCOUNT_BALANCE,
    ACCOUNT_COINS,
    BLOCK,
    BLOCK_TRANSACTION,
    SEARCH_BY_HASH,
    SEARCH_BY_ADDRESS,
    CONSTRUCTION_METADATA,
    NETWORK_LIST,
    NETWORK_OPTIONS,
    MEMPOOL,
    EVENTS_BLOCKS,
)
READS_BY_ID = {endpoint.id: endpoint for endpoint in READS}


def canonical(body: Mapping[str, Any]) -> str:
    """A body as sent: sorted keys, no spaces, UTF-8; equal content gives equal text."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def network_list() -> Body:
    """`/network/list`: the one body without a network."""
    return {"metadata": {}}


def of_network(network: Json) -> Body:
    """`/network/status`, `/network/options`, `/mempool`."""
    return {"network_identifier": network, "metadata": {}}


def block(network: Json, identifier: Json) -> Body:
    """`/block`; ``identifier`` has an index, a hash, or both."""
    return {"network_identifier": network, "block_identifier": identifier}


def block_transaction(network: Json, identifier: Json, transaction_hash: str) -> Body:
    """`/block/transaction`; ``identifier`` has index and hash."""
    return {**block(network, identifier), "transaction_identifier": {"hash": transaction_hash}}


def account_balance(network: Json, account: Json) -> Body:
    """`/account/balance` at the newest block."""
    return {"network_identifier": network, "account_identifier": account}


def account_coins(network: Json, account: Json, *, include_mempool: bool) -> Body:
    """`/account/coins`; the standard requires ``include_mempool``."""
    return {**account_balance(network, account), "include_mempool": include_mempool}


def search_by_hash(network: Json, transaction_hash: str) -> Body:
    """`/search/transactions` for one transaction."""
    return {"network_identifier": network, "transaction_identifier": {"hash": transaction_hash}}


def search_by_address(network: Json, account: Json) -> Body:
    """`/search/transactions` for all transactions of an account."""
    return {"network_identifier": network, "account_identifier": account}


def events_blocks(network: Json, limit: int = 10) -> Body:
    """`/events/blocks` from the first on."""
    return {"network_identifier": network, "offset": 0, "limit": limit}


def construction_metadata(network: Json, options: Json) -> Body:
    """`/construction/metadata`; ``options`` depend on the implementation."""
    return {"network_identifier": network, "options": options}
