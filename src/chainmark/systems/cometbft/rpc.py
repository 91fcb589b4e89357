"""The part of CometBFT's RPC that chainmark reads."""

from __future__ import annotations

import base64
import calendar
import hashlib
import re
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import httpx

from chainmark.core.errors import EnvironmentFailure

_TIME = re.compile(r"^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z$")
RPC_PORT = 26657
PORT_AT_END = re.compile(r"[^:]:\d+$|\]:\d+$")
COMMIT_FLAG = 2
METAS_PER_CALL = 20
MEMPOOL_LISTED = 100  # the maximum that a node lists


class RpcError(EnvironmentFailure):
    """A node did not respond correctly to an RPC call."""


def parse_time(text: str) -> int:
    """RFC 3339 with zero to nine digits of fraction as nanoseconds since the epoch.

    Raises:
        RpcError: it is not a time in this format.
    """
    match = _TIME.match(text)
    if match is None:
        raise RpcError(f"`{text}` is not a time")
    *fields, fraction = match.groups()
    seconds = calendar.timegm(time.struct_time((*map(int, fields), 0, 0, 0)))
    return seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))


@dataclass(frozen=True)
class Block:
    """A block as the analysis needs it. ``last_*`` refer to the commit of the previous block."""

    height: int
    time_ns: int
    proposer: str
    last_round: int
    last_missing_votes: int
    transactions: list[bytes] = field(repr=False)

    def hashes(self) -> list[bytes]:
        """The transactions' SHA-256 hashes, which identify them."""
        return [hashlib.sha256(transaction).digest() for transaction in self.transactions]


@dataclass(frozen=True)
class Failure:
    """Why the application did not execute a transaction of a block."""

    code: int
    codespace: str
    log: str


@dataclass(frozen=True)
class SyncState:
    """The height of a node."""

    height: int
    catching_up: bool


class RpcClient:
    """A client of one node, at its host's name or address, with a port if it is not the usual one."""

    def __init__(self, address: str, timeout_s: float = 10.0) -> None:
        self.address = address
        # Loading certificates takes 35 ms, and there is nothing to verify on plain HTTP.
        place = address if PORT_AT_END.search(address) else f"{address}:{RPC_PORT}"
        # A proxy of the environment does not know the nodes, and would add to their response times.
        self._client = httpx.Client(
            base_url=f"http://{place}",
            timeout=timeout_s,
            verify=False,  # noqa: S501
            trust_env=False,
        )

    def __enter__(self) -> RpcClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def call(self, method: str, **parameters: str | int) -> dict[str, Any]:
        """One call; its ``result``.

        Raises:
            RpcError: no response, or an error in it.
        """
        try:
            response = self._client.get(f"/{method}", params=parameters)
            answer = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise RpcError(f"the node at {self.address} did not answer `{method}` ({error})") from error
        if not isinstance(answer, dict):
            raise RpcError(f"the node at {self.address} sent an invalid response to `{method}`")
        if "result" not in answer:
            raise RpcError(f"the node at {self.address} refused `{method}`: {answer.get('error')}")
        result: dict[str, Any] = answer["result"]
        return result

    def height(self) -> int:
        """The latest height the node knows."""
        return self.sync_state().height

    def sync_state(self) -> SyncState:
        """The latest height the node knows, and whether it is still catching up with the network."""
        sync = self.call("status")["sync_info"]
        return SyncState(int(sync["latest_block_height"]), bool(sync["catching_up"]))

    def mempool_size(self) -> int:
        """Transactions waiting in the node's mempool."""
        return int(self.call("num_unconfirmed_txs")["n_txs"])

    def mempool(self) -> tuple[list[bytes], int]:
        """The hashes of the transactions waiting in the node's mempool, up to the listed maximum, and their number."""
        result = self.call("unconfirmed_txs", limit=MEMPOOL_LISTED)
        listed = [base64.b64decode(text) for text in result["txs"] or []]
        return [hashlib.sha256(transaction).digest() for transaction in listed], int(result["total"])

    def block(self, height: int) -> Block:
        """The block of that height with its transactions."""
        block = self.call("block", height=height)["block"]
        commit = block["last_commit"] or {"round": 0, "signatures": []}
        signatures = commit["signatures"] or []
        return Block(
            height=int(block["header"]["height"]),
            time_ns=parse_time(block["header"]["time"]),
            proposer=block["header"]["proposer_address"],
            last_round=int(commit["round"]),
            last_missing_votes=sum(signature["block_id_flag"] != COMMIT_FLAG for signature in signatures),
            transactions=[base64.b64decode(text) for text in block["data"]["txs"] or []],
        )

    def failures(self, height: int) -> dict[int, Failure]:
        """The transactions that the application did not execute, by their index in the block of that height."""
        results = self.call("block_results", height=height)["txs_results"] or []
        return {
            index: Failure(int(result["code"]), str(result.get("codespace") or ""), str(result.get("log") or ""))
            for index, result in enumerate(results)
            if result.get("code")
        }

    def block_sizes(self, first: int, last: int) -> dict[int, tuple[int, int]]:
        """(size in bytes, number of transactions) by height, from the block metas."""
        sizes: dict[int, tuple[int, int]] = {}
        for low in range(first, last + 1, METAS_PER_CALL):
            high = min(last, low + METAS_PER_CALL - 1)
            for meta in self.call("blockchain", minHeight=low, maxHeight=high)["block_metas"]:
                sizes[int(meta["header"]["height"])] = (int(meta["block_size"]), int(meta["num_txs"]))
        return sizes
