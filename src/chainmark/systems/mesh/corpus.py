"""Sample a corpus from the server under test, so that it matches the data that this server, however pruned, has.

Blocks are drawn from the newest and from the older ones; their transactions and accounts follow. Every item is
requested once and added only with a correct response. The same seed and server state give the same corpus.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from chainmark.core.errors import UsageError
from chainmark.core.progress import Progress
from chainmark.systems.mesh import bodies, expectations
from chainmark.systems.mesh.accounts import distinct_names, in_words, weight
from chainmark.systems.mesh.bodies import Body, ReadEndpoint, canonical
from chainmark.systems.mesh.client import MeshClient
from chainmark.systems.mesh.discovery import BlockIdentifier, DiscoveredServer, Offering, accounts_of, ask, other_hashes
from chainmark.systems.mesh.expectations import Expectation
from chainmark.systems.mesh.pinned import (
    Corpus,
    CorpusEndpoint,
    Item,
    Refusal,
    Stratum,
    Unmeasured,
    server_facts,
)
from chainmark.systems.mesh.pruning import ask_block, first_answered
from chainmark.systems.mesh.strata import Levels, draw

SIZES = ("small", "middle", "large")
COUNTS = ("few", "some", "many")
ALL = Stratum(name="all", description="the only request")
AGES = {"recent": "newest blocks", "old": "older blocks"}

# The endpoints of an account, and the names of its entries in the response.
_ACCOUNT_READS = {
    bodies.ACCOUNT_BALANCE: (expectations.account_balance(), "balances"),
    bodies.ACCOUNT_COINS: (expectations.account_coins(), "coins"),
    bodies.SEARCH_BY_ADDRESS: (expectations.search_by_address(), "total_count"),
}

T = TypeVar("T")


class CorpusRequest(BaseModel):
    """How a corpus is to be sampled.

    Attributes:
        seed: random seed of the sample.
        blocks, transactions, accounts: how many to examine.
        per_stratum: how many items of each stratum are kept.
        settled_blocks: number of newest blocks to exclude, because other blocks may still replace them.
        recent_blocks: number of blocks that count as recent, at most half of the available ones.
        newest_index: last block that may be drawn, so that a growing chain gives the same corpus again.
        largest: keep only this many accounts, those with the most data, each a stratum; 0: sample all strata.
        addresses: use these accounts and no others, each a stratum.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = 1
    blocks: int = Field(60, ge=2)
    transactions: int = Field(60, ge=1)
    accounts: int = Field(60, ge=1)
    per_stratum: int = Field(20, ge=1)
    settled_blocks: int = Field(10, ge=0)
    recent_blocks: int = Field(5_000, ge=1)
    newest_index: int | None = Field(None, ge=0)
    largest: int = Field(0, ge=0)
    addresses: list[Annotated[str, Field(min_length=1)]] = []


def sample(server: DiscoveredServer, client: MeshClient, order: CorpusRequest, progress: Progress) -> Corpus:
    """Sample a corpus of every endpoint that the server offers.

    Raises:
        UsageError: no block may be drawn: the chain is too short, or no block can be fetched.
        Unreachable: the server became unreachable.
    """
    return _Sampler(server, client, order, progress).corpus()


@dataclass
class _Candidate:
    """An item with a correct response; ``measure`` decides its stratum."""

    body: Body
    expect: Expectation
    measure: int = 0
    group: str = ""
    account: str = ""
    facts: dict[str, int] = field(default_factory=dict)


@dataclass
class _Transaction:
    """A transaction seen in a block; its number of operations is unknown if only its hash is listed."""

    block: BlockIdentifier
    hash: str
    operations: int | None


class _Sampler:
    def __init__(self, server: DiscoveredServer, client: MeshClient, order: CorpusRequest, progress: Progress) -> None:
        self._server = server
        self._network = dict(server.network)
        self._client = client
        self._order = order
        self._progress = progress
        self._refused: list[Refusal] = []
        self._accounts: Counter[str] = Counter()
        self._account_of: dict[str, Mapping[str, Any]] = {}
        self._endpoints: dict[str, CorpusEndpoint] = {}
        self._unmeasured: dict[str, Unmeasured] = {}

    def corpus(self) -> Corpus:
        """Everything, in the order of the known reads."""
        first, last = self._range()
        transactions = self._blocks(first, last)
        self._transactions(transactions)
        self._of_accounts()
        self._single()
        return Corpus(
            origin="sampled",
            validated=True,
            network=self._network,
            server=dict(server_facts(self._server)),
            order=self._order.model_dump(mode="json"),
            blocks={"first": first, "last": last},
            endpoints=[self._endpoints[read.id] for read in bodies.READS if read.id in self._endpoints],
            unmeasured=[self._why(read) for read in bodies.READS if read.id not in self._endpoints],
            refused=self._refused,
        )

    def _why(self, read: ReadEndpoint) -> Unmeasured:
        offer = self._server.offer(read)
        if offer.state is not Offering.OFFERED:
            return Unmeasured(endpoint=read.id, state=offer.state, reason=offer.reason)
        refused = next((refusal for refusal in self._refused if refusal.endpoint == read.id), None)
        if refused is None:
            return Unmeasured(
                endpoint=read.id, state=Offering.NOT_REQUESTED, reason="the sampled blocks contain no data for it"
            )
        return Unmeasured(endpoint=read.id, state=Offering.REFUSED, reason=refused.reason)

    def _range(self) -> tuple[int, int]:
        """The blocks that may be drawn: settled ones, from the first available one on."""
        first, last = self._server.first_index, self._server.current.index - self._order.settled_blocks
        if self._order.newest_index is not None:
            last = min(last, self._order.newest_index)
        if last < first:
            raise UsageError(
                f"{self._server.url} has no settled block: it has the blocks {first} to {self._server.current.index}",
                f"the newest {self._order.settled_blocks} blocks are excluded; wait, or lower `corpus.settled_blocks`",
            )
        return self._floor(first, last), last

    def _floor(self, first: int, last: int) -> int:
        """The first available block: a pruned server may not report it."""
        result = first_answered(self._server, self._client, first, last)
        if result is None:
            reason = ask_block(self._server, self._client, last).reason
            raise UsageError(
                f"/block of {self._server.url} cannot be sampled: {reason}",
                f"the server refuses both block {first} and block {last}",
            )
        return result

    def _source(self, name: str) -> random.Random:
        """Random numbers of one purpose: the number of examined blocks must not change which accounts are drawn."""
        return random.Random(f"{self._order.seed}/{name}")  # noqa: S311 - a sample, not a secret

    # -- blocks ------------------------------------------------------------------------------------------------------

    def _blocks(self, first: int, last: int) -> list[_Transaction]:
        self._progress.stage("sampling blocks")
        candidates: list[_Candidate] = []
        transactions: list[_Transaction] = []
        drawn = self._drawn_blocks(first, last)
        for number, (index, age) in enumerate(drawn, 1):
            probed = ask_block(self._server, self._client, index)
            if probed.reason is not None or probed.answer is None:
                self._refuse(bodies.BLOCK, bodies.block(self._network, {"index": index}), probed.reason)
            else:
                self._take_block(probed.answer.document, age, candidates, transactions)
            self._progress.update(number / len(drawn), f"block {index}")
        self._enter(bodies.BLOCK, candidates, SIZES, "bytes")
        return transactions

    def _drawn_blocks(self, first: int, last: int) -> list[tuple[int, str]]:
        """Indices with their age, both ends among them."""
        border = max(last - self._order.recent_blocks + 1, first + (last - first + 1) // 2)
        half = self._order.blocks // 2
        source = self._source("blocks")
        drawn: dict[int, str] = {}
        for age, low, high in (("old", first, border - 1), ("recent", border, last)):
            span, end = range(low, high + 1), first if age == "old" else last
            chosen = set(source.sample(span, min(half, len(span))))
            if span and end not in chosen:
                chosen = {*sorted(chosen)[1:], end}
            drawn |= dict.fromkeys(chosen, age)
        return sorted(drawn.items())

    def _take_block(
        self, document: Mapping[str, Any], age: str, candidates: list[_Candidate], transactions: list[_Transaction]
    ) -> None:
        """Pin a block by index and hash, and repeat the request in its form under load."""
        block = document["block"]
        identifier, parent, inline = block["block_identifier"], block["parent_block_identifier"], block["transactions"]
        others = other_hashes(document)
        identifier = {"index": identifier["index"], "hash": identifier["hash"]}
        body = bodies.block(self._network, identifier)
        expected = expectations.block(identifier, parent, len(inline))
        probed = ask(self._client, bodies.BLOCK, body, expected)
        reason = probed.reason or self._wrong_parent(identifier["index"], parent["index"])
        if reason is not None or probed.answer is None:
            self._refuse(bodies.BLOCK, body, reason)
            return
        size = probed.answer.size_bytes
        facts = {"bytes": size, "transactions": len(inline) + len(others)}
        candidates.append(_Candidate(body, expected, size, age, facts=facts))
        where = BlockIdentifier(identifier["index"], identifier["hash"])
        for item in inline:
            transactions.append(_Transaction(where, item["transaction_identifier"]["hash"], len(item["operations"])))
            self._see(item)
        transactions += [_Transaction(where, text, None) for text in others]

    def _wrong_parent(self, index: int, parent_index: int) -> str | None:
        """A parent comes before its block (not always one before: heights may be left empty); genesis has itself."""
        if parent_index < index or index == self._server.genesis.index:
            return None
        return f"/block/parent_block_identifier/index is {parent_index}, not less than {index}"

    def _see(self, transaction: Mapping[str, Any]) -> None:
        for account in accounts_of(transaction):
            text = canonical(account)
            self._accounts[text] += 1
            self._account_of[text] = account

    # -- transactions ------------------------------------------------------------------------------------------------

    def _transactions(self, seen: list[_Transaction]) -> None:
        self._progress.stage("sampling transactions")
        chosen = self._chosen(seen, self._order.transactions, lambda item: -(item.operations or 0), "transactions")
        by_block: list[_Candidate] = []
        by_hash: list[_Candidate] = []
        for number, transaction in enumerate(chosen, 1):
            operations = transaction.operations
            if self._server.offered(bodies.BLOCK_TRANSACTION):
                operations = self._take_transaction(transaction, by_block)
            if self._server.offered(bodies.SEARCH_BY_HASH):
                body = bodies.search_by_hash(self._network, transaction.hash)
                expected = expectations.search_by_hash(transaction.hash)
                if self._ask(bodies.SEARCH_BY_HASH, body, expected) is not None:
                    facts = {} if operations is None else {"operations": operations}
                    by_hash.append(_Candidate(body, expected, operations or 0, facts=facts))
            self._progress.update(number / len(chosen), transaction.hash)
        self._enter(bodies.BLOCK_TRANSACTION, by_block, COUNTS, "operations")
        self._enter(bodies.SEARCH_BY_HASH, by_hash, COUNTS, "operations")

    def _take_transaction(self, transaction: _Transaction, candidates: list[_Candidate]) -> int | None:
        body = bodies.block_transaction(self._network, transaction.block.as_json(), transaction.hash)
        document = self._ask(
            bodies.BLOCK_TRANSACTION, body, expectations.block_transaction(transaction.hash, transaction.operations)
        )
        if document is None:
            return transaction.operations
        operations = len(document["transaction"]["operations"])
        if transaction.operations is None:
            self._see(document["transaction"])
        expected = expectations.block_transaction(transaction.hash, operations)
        candidates.append(_Candidate(body, expected, operations, facts={"operations": operations}))
        return operations

    def _of_accounts(self) -> None:
        self._progress.stage("sampling accounts")
        chosen = self._chosen_accounts()
        read_endpoints: dict[ReadEndpoint, list[_Candidate]] = {
            read: [] for read in _ACCOUNT_READS if self._server.offered(read)
        }
        for number, (text, times) in enumerate(chosen, 1):
            for read, candidates in read_endpoints.items():
                expected, counted = _ACCOUNT_READS[read]
                body = self._account_body(read, self._account_of[text])
                document = self._ask(read, body, expected)
                if document is not None:
                    count = document[counted] if isinstance(document[counted], int) else len(document[counted])
                    facts = {counted: count} if self._order.addresses else {counted: count, "seen": times}
                    candidates.append(_Candidate(body, expected, count, account=text, facts=facts))
            self._progress.update(number / len(chosen), text)
        if self._order.addresses or self._order.largest:
            self._enter_each(read_endpoints)
            return
        for read, candidates in read_endpoints.items():
            self._enter(read, candidates, COUNTS, _ACCOUNT_READS[read][1].replace("total_count", "transactions"))

    def _chosen_accounts(self) -> list[tuple[str, int]]:
        """Accounts and how often they were seen: those that were named, or some of those in the blocks."""
        if not self._order.addresses:
            return self._chosen(
                sorted(self._accounts.items()), self._order.accounts, lambda account: -account[1], "accounts"
            )
        named = {canonical({"address": address}): {"address": address} for address in self._order.addresses}
        self._account_of |= named
        return [(text, self._accounts[text]) for text in named]

    def _enter_each(self, read_endpoints: Mapping[ReadEndpoint, Sequence[_Candidate]]) -> None:
        """The named accounts, or those with the most data, each as a stratum; every endpoint uses the same ones."""
        facts: dict[str, dict[str, int]] = {}
        for candidates in read_endpoints.values():
            for candidate in candidates:
                facts.setdefault(candidate.account, {}).update(candidate.facts)
        if self._order.addresses:
            self._require_named(read_endpoints)
            retained = list(facts)
        else:
            retained = sorted(facts, key=lambda text: (*(-part for part in weight(facts[text])), text))
            retained = retained[: self._order.largest]
        names = distinct_names([str(self._account_of[text]["address"]) for text in retained])
        strata = {
            text: Stratum(name=name, description=in_words(facts[text]))
            for text, name in zip(retained, names, strict=True)
        }
        for read, candidates in read_endpoints.items():
            self._enter_strata(read, candidates, strata)

    def _enter_strata(
        self, read: ReadEndpoint, candidates: Sequence[_Candidate], strata: Mapping[str, Stratum]
    ) -> None:
        by_account = {candidate.account: candidate for candidate in candidates}
        retained = {text: by_account[text] for text in strata if text in by_account}
        if not retained:
            return
        refused = sum(refusal.endpoint == read.id for refusal in self._refused)
        self._endpoints[read.id] = CorpusEndpoint(
            id=read.id,
            strata=[strata[text] for text in retained],
            items=[
                Item(body=candidate.body, expect=candidate.expect, stratum=strata[text].name, facts=candidate.facts)
                for text, candidate in retained.items()
            ],
            candidates=len(candidates) + refused,
            refused=refused,
            left_out=len(candidates) - len(retained),
        )

    def _require_named(self, read_endpoints: Mapping[ReadEndpoint, Sequence[_Candidate]]) -> None:
        """A named address must be measured: without a response for it, sampling fails."""
        for read, candidates in read_endpoints.items():
            for address in self._order.addresses:
                account = {"address": address}
                if canonical(account) not in {candidate.account for candidate in candidates}:
                    body = self._account_body(read, account)
                    reason = next(
                        refusal.reason
                        for refusal in self._refused
                        if (refusal.endpoint, refusal.body) == (read.id, body)
                    )
                    raise UsageError(
                        f"{read.path} of {self._server.url} has no correct response for address `{address}`: {reason}",
                        "is it an address of this network, in the format that the server uses?",
                    )

    def _account_body(self, read: ReadEndpoint, account: Mapping[str, Any]) -> Body:
        if read == bodies.ACCOUNT_COINS:
            return bodies.account_coins(self._network, account, include_mempool=self._server.include_mempool)
        if read == bodies.SEARCH_BY_ADDRESS:
            return bodies.search_by_address(self._network, account)
        return bodies.account_balance(self._network, account)

    # -- endpoints with a single form of request --------------------------------------------------------------------

    def _single(self) -> None:
        self._progress.stage("querying the remaining endpoints")
        of_network = bodies.of_network(self._network)
        options = self._server.metadata_options or {}
        questions = {
            bodies.NETWORK_LIST: (bodies.network_list(), expectations.network_list()),
            bodies.NETWORK_OPTIONS: (of_network, expectations.network_options()),
            bodies.NETWORK_STATUS: (of_network, expectations.network_status(self._server.genesis.as_json())),
            bodies.MEMPOOL: (of_network, expectations.mempool()),
            bodies.EVENTS_BLOCKS: (bodies.events_blocks(self._network), expectations.events_blocks()),
            bodies.CONSTRUCTION_METADATA: (
                bodies.construction_metadata(self._network, options),
                expectations.construction_metadata(),
            ),
        }
        for read, (body, expected) in questions.items():
            if self._server.offered(read) and self._ask(read, body, expected) is not None:
                item = Item(body=body, expect=expected, stratum=ALL.name)
                self._endpoints[read.id] = CorpusEndpoint(id=read.id, strata=[ALL], items=[item], candidates=1)

    # -- what all have in common -------------------------------------------------------------------------------------

    def _chosen(self, seen: Sequence[T], count: int, order: Callable[[T], int], name: str) -> list[T]:
        """Half of them the first by ``order``, so that rare heavy ones are among them; the others drawn."""
        if len(seen) <= count:
            return list(seen)
        ranked = sorted(seen, key=order)
        top = (count + 1) // 2
        return [*ranked[:top], *draw(ranked[top:], count - top, self._source(name))]

    def _ask(self, read: ReadEndpoint, body: Body, expected: Expectation) -> Mapping[str, Any] | None:
        """The response to a candidate, if it is correct."""
        probed = ask(self._client, read, body, expected)
        if probed.reason is not None or probed.answer is None:
            self._refuse(read, body, probed.reason)
            return None
        document: Mapping[str, Any] = probed.answer.document
        return document

    def _refuse(self, read: ReadEndpoint, body: Body, reason: str | None) -> None:
        self._refused.append(Refusal(endpoint=read.id, body=body, reason=reason or "no response"))

    def _enter(
        self, read: ReadEndpoint, candidates: Sequence[_Candidate], names: tuple[str, str, str], unit: str
    ) -> None:
        """Sort items with correct responses into strata and keep some of each."""
        if not candidates:
            return
        levels = Levels.of([candidate.measure for candidate in candidates], names, unit)
        groups: dict[tuple[str, str], list[_Candidate]] = {}
        for group in dict.fromkeys(sorted(candidate.group for candidate in candidates)):
            for level in names:
                members = [
                    candidate
                    for candidate in candidates
                    if candidate.group == group and levels.name(candidate.measure) == level
                ]
                if members:
                    groups[group, level] = members
        items, strata = [], []
        for (group, level), members in groups.items():
            name = f"{group}/{level}" if group else level
            strata.append(Stratum(name=name, description=_description(group, levels.description(level))))
            retained = draw(members, self._order.per_stratum, self._source(f"{read.id}/{name}"))
            items += [
                Item(body=candidate.body, expect=candidate.expect, stratum=name, facts=candidate.facts)
                for candidate in retained
            ]
        refused = sum(refusal.endpoint == read.id for refusal in self._refused)
        self._endpoints[read.id] = CorpusEndpoint(
            id=read.id,
            strata=strata,
            items=items,
            candidates=len(candidates) + refused,
            refused=refused,
            left_out=len(candidates) - len(items),
        )


def _description(group: str, level: str) -> str:
    return f"{AGES[group]} of {level}" if group else level
