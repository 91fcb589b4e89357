"""A corpus pinned to a file: the requests of a load test, the expected responses, and a hash that detects changes.

A corpus is bound to a network, not to a server: the same file is replayed on another version or another server.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import blake3
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from chainmark.capacity.model import Endpoint, Request, Target
from chainmark.core import units
from chainmark.core.errors import UsageError
from chainmark.core.former_names import renamed
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress
from chainmark.lab.corpora import OtherNetworkError
from chainmark.store.files import json_bytes, write_bytes
from chainmark.systems.mesh.bodies import ERROR_POINTERS, HEADERS, READS_BY_ID, ReadEndpoint, canonical
from chainmark.systems.mesh.client import MeshClient
from chainmark.systems.mesh.discovery import DiscoveredServer, Offering, ask, network_name

CORPUS_SCHEMA: Literal[1] = 1
_PARTS_PER_THREAD = 8  # of a check by other machines, so that one with slow requests does not keep the others waiting


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Item(_Strict):
    """One request.

    Attributes:
        body: the body before it is written as canonical JSON.
        expect: the definition of a correct response, as the load engine checks it.
        facts: counts from the sampling: bytes, operations, entries, times seen.
    """

    body: dict[str, Any]
    expect: dict[str, Any]
    stratum: str
    facts: dict[str, int] = {}


class Stratum(_Strict):
    """Similar items; ``description`` defines them: "recent blocks of more than 2,502 bytes"."""

    name: str
    description: str


class CorpusEndpoint(_Strict):
    """One endpoint's items.

    Attributes:
        candidates: number of candidates: items, refused ones, and correct ones that were not drawn.
    """

    id: str
    strata: list[Stratum]
    items: list[Item] = Field(min_length=1)
    candidates: Annotated[int, renamed("candidates", "asked")]
    refused: int = 0
    left_out: int = 0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.id not in READS_BY_ID:
            raise ValueError(f"there is no endpoint `{self.id}`")
        if self.candidates != len(self.items) + self.refused + self.left_out:
            raise ValueError(f"the counts of `{self.id}` do not add up")
        if missing := {item.stratum for item in self.items} - {stratum.name for stratum in self.strata}:
            raise ValueError(f"`{self.id}` has items of the undescribed stratum `{min(missing)}`")
        return self

    @property
    def read(self) -> ReadEndpoint:
        """Its path and label."""
        return READS_BY_ID[self.id]


class Refusal(_Strict):
    """A candidate whose response was incorrect, with the reason."""

    endpoint: str
    body: dict[str, Any]
    reason: str


class Unmeasured(_Strict):
    """An endpoint without items, with the reason."""

    endpoint: str
    state: Offering
    reason: str


class Corpus(_Strict):
    """The requests of a load test.

    Attributes:
        origin: whether it was sampled from a server or imported from a user's files.
        validated: whether every item's response was checked; for an import only after :meth:`validated_by`.
        network: the `network_identifier`.
        server: what the sampled server reported about itself: versions, operation types, errors.
        order: how it was sampled, including the seed; or what was imported.
        blocks: the first and last block that could be drawn.
    """

    schema_version: Literal[1] = CORPUS_SCHEMA
    kind: Literal["mesh corpus"] = "mesh corpus"
    origin: Literal["sampled", "imported"]
    validated: bool
    network: dict[str, Any]
    server: dict[str, Any] = {}
    order: dict[str, Any] = {}
    blocks: dict[str, int] = {}
    endpoints: list[CorpusEndpoint]
    unmeasured: list[Unmeasured] = []
    refused: list[Refusal] = []

    @property
    def hash(self) -> str:
        """BLAKE3 of the canonical content."""
        return blake3.blake3(json_bytes(self)).hexdigest()

    @property
    def network_name(self) -> str:
        """`blockchain/network`."""
        return network_name(self.network)

    def save(self, path: Path) -> None:
        """Write it with its hash; equal content gives equal bytes.

        Raises:
            EnvironmentFailure: the disk is full or may not be written.
        """
        write_bytes(path, json_bytes({**self.model_dump(mode="json"), "blake3": self.hash}))

    @classmethod
    def load(cls, path: Path) -> Corpus:
        """Read a corpus and check that it is unchanged.

        Raises:
            UsageError: there is none, it has another schema, or its content does not match its hash.
        """
        content = _read(path)
        reported = content.pop("blake3", None)
        try:
            corpus = cls.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise UsageError(
                f"{path} is not a corpus of Mesh requests: {where} {first['msg']}".replace(":  ", ": "),
                "create one with `chainmark corpus`",
            ) from error
        if corpus.hash != reported:
            raise UsageError(
                f"{path} was changed after it was written: its content has the hash {corpus.hash[:16]}…",
                "sample it again, or revert the change; results of different corpora are not comparable",
            )
        return corpus

    def endpoint(self, endpoint_id: str) -> CorpusEndpoint | None:
        """The items of an endpoint; None if it has none."""
        return next((item for item in self.endpoints if item.id == endpoint_id), None)

    def load_endpoints(
        self, names: Sequence[str] = (), *, strata: Sequence[str] | None = None, by_stratum: bool = False
    ) -> tuple[Endpoint, ...]:
        """The endpoints for the load test.

        Args:
            names: which endpoints, by id, label or path; none: all.
            strata: only items of these; None: all.
            by_stratum: each stratum as an endpoint of its own, so that its capacity is searched by itself.

        Raises:
            UsageError: the corpus has no such endpoint, or nothing is left.
        """
        for name in names:
            if not any(name in item.read.names for item in self.endpoints):
                raise UsageError(f"the corpus has no endpoint `{name}`", self._why_missing(name))
        chosen = [item for item in self.endpoints if not names or item.read.names & set(names)]
        endpoints = tuple(endpoint for item in chosen for endpoint in _endpoints(item, strata, by_stratum=by_stratum))
        if not endpoints:
            known = sorted({stratum.name for item in chosen for stratum in item.strata})
            raise UsageError(
                f"the corpus has no request in the stratum {' or '.join(f'`{name}`' for name in strata or ())}",
                f"strata: {', '.join(known)}",
            )
        return endpoints

    def strata_counts(self) -> dict[str, dict[str, int]]:
        """How many items of each stratum, by endpoint id."""
        return {
            entry.id: {s.name: sum(item.stratum == s.name for item in entry.items) for s in entry.strata}
            for entry in self.endpoints
        }

    def ranges(
        self, answer_bytes: Mapping[tuple[str, str], int], strata: Sequence[str] | None = None
    ) -> dict[str, dict[str, tuple[int, int]]]:
        """The minimum and maximum of the counts of the items, by endpoint ID and kind of count.

        Args:
            answer_bytes: response sizes of this server, by path and body; requests that were not sent are omitted.
            strata: only items of these; None: all.
        """
        results: dict[str, dict[str, tuple[int, int]]] = {}
        for entry, item in self._items():
            if strata is not None and item.stratum not in strata:
                continue
            size = answer_bytes.get((entry.read.path, canonical(item.body)))
            counted = {**item.facts, **({} if size is None else {"bytes": size})}
            for id_ in (entry.id, _stratum_id(entry.id, item.stratum)):
                ranges = results.setdefault(id_, {})
                for name, value in counted.items():
                    low, high = ranges.get(name, (value, value))
                    ranges[name] = min(low, value), max(high, value)
        return results

    def addresses(self) -> set[str]:
        """Of the requested accounts."""
        accounts = [item.body.get("account_identifier") for _, item in self._items()]
        return {account["address"] for account in accounts if account}

    def skipped(self) -> dict[str, str]:
        """The endpoints without items, by label, with the reason."""
        return {READS_BY_ID[item.endpoint].label: f"{item.state}: {item.reason}" for item in self.unmeasured}

    def _why_missing(self, name: str) -> str:
        for item in self.unmeasured:
            if name in READS_BY_ID[item.endpoint].names:
                return f"it was {item.state} when the corpus was created: {item.reason}"
        return f"it has {', '.join(entry.id for entry in self.endpoints)}"

    def check_against(self, server: DiscoveredServer, client: MeshClient, progress: Progress) -> list[Refusal]:
        """Send every item once to a server; return those whose response is no longer correct.

        Raises:
            OtherNetworkError: the server has another network.
        """
        self._require_network(server)
        progress.stage(f"checking the corpus against {server.url}")
        refusals = []
        for number, (entry, item) in enumerate(self._items(), 1):
            refusals += _refusals(client, entry.id, item)
            progress.update(number / self.size, entry.read.label)
        return refusals

    def check_from(
        self, machines: Machines, server: DiscoveredServer, target: Target, progress: Progress
    ) -> list[Refusal]:
        """The same with requests from other machines, those for load if there are such.

        Raises:
            OtherNetworkError: the server has another network.
            EnvironmentFailure: a machine cannot reach the server.
            ChainmarkError: the machines or the network between them failed.
        """
        self._require_network(server)
        progress.stage(f"checking the corpus against {server.url} from other machines")
        each = max(1, self.size // (machines.threads * _PARTS_PER_THREAD))
        items = [(entry.id, item) for entry, item in self._items()]
        parts = [_Check(target, items[start : start + each]) for start in range(0, len(items), each)]
        checked = 0

        def take(part: _Check, refusals: list[Refusal]) -> list[Refusal]:
            nonlocal checked
            checked += len(part.items)
            progress.update(checked / self.size, units.plural(checked, "request"))
            return refusals

        reserved = machines.for_load()
        return list(chain.from_iterable(machines.map(_check_there, parts, at=lambda _: reserved, take=take)))

    @property
    def size(self) -> int:
        """The number of requests."""
        return sum(len(entry.items) for entry in self.endpoints)

    def validated_by(self, server: DiscoveredServer, client: MeshClient, progress: Progress) -> Corpus:
        """The same with only the items that a server answers correctly; the others are listed as refused.

        Raises:
            OtherNetworkError: the server has another network.
            UsageError: it answers no item correctly.
        """
        refused = self.check_against(server, client, progress)
        wrong = {(refusal.endpoint, canonical(refusal.body)) for refusal in refused}
        counts = Counter(refusal.endpoint for refusal in refused)
        corpus_endpoints, unmeasured = [], list(self.unmeasured)
        for entry in self.endpoints:
            items = [item for item in entry.items if (entry.id, canonical(item.body)) not in wrong]
            if items:
                used = {item.stratum for item in items}
                strata = [stratum for stratum in entry.strata if stratum.name in used]
                refusals = entry.refused + counts[entry.id]
                corpus_endpoints.append(
                    entry.model_copy(update={"items": items, "strata": strata, "refused": refusals})
                )
            else:
                reason = next(refusal.reason for refusal in refused if refusal.endpoint == entry.id)
                unmeasured.append(Unmeasured(endpoint=entry.id, state=Offering.REFUSED, reason=reason))
        if not corpus_endpoints:
            raise UsageError(
                f"{server.url} responds correctly to no request: {refused[0].reason}", "is it the right network?"
            )
        update = {
            "validated": True,
            "endpoints": corpus_endpoints,
            "refused": [*self.refused, *refused],
            "unmeasured": unmeasured,
        }
        return self.model_copy(update=update)

    def _items(self) -> Iterator[tuple[CorpusEndpoint, Item]]:
        for entry in self.endpoints:
            for item in entry.items:
                yield entry, item

    def _require_network(self, server: DiscoveredServer) -> None:
        if canonical(self.network) != canonical(server.network):
            raise OtherNetworkError(
                f"the corpus is for the network `{self.network_name}`, but {server.url} serves `{server.network_name}`",
                "sample a corpus from that network",
            )


def _read(path: Path) -> dict[str, Any]:
    hint = "create one with `chainmark corpus`"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror})", hint) from error
    except ValueError as error:
        raise UsageError(f"{path} is not a corpus: it is not valid JSON ({error})", hint) from error
    if not isinstance(content, dict) or content.get("kind") != "mesh corpus":
        raise UsageError(f"{path} is not a corpus of Mesh requests", hint)
    if content.get("schema_version") != CORPUS_SCHEMA:
        raise UsageError(f"{path} has the schema {content.get('schema_version')}, not {CORPUS_SCHEMA}", hint)
    return content


def _endpoints(endpoint: CorpusEndpoint, strata: Sequence[str] | None, *, by_stratum: bool) -> Iterator[Endpoint]:
    items = [item for item in endpoint.items if strata is None or item.stratum in strata]
    if not by_stratum:
        if items:
            yield Endpoint(
                endpoint.id, endpoint.read.label, tuple(_request(endpoint.read, item) for item in items), ERROR_POINTERS
            )
        return
    for stratum in endpoint.strata:
        requests = tuple(_request(endpoint.read, item) for item in items if item.stratum == stratum.name)
        if requests:
            label = f"{endpoint.read.label}, {stratum.name}"
            yield Endpoint(_stratum_id(endpoint.id, stratum.name), label, requests, ERROR_POINTERS)


def _stratum_id(endpoint_id: str, name: str) -> str:
    """Of a stratum that is measured as an endpoint of its own."""
    return f"{endpoint_id}__" + "".join(
        letter if letter.isascii() and letter.isalnum() else "_" for letter in name.lower()
    )


def _request(read: ReadEndpoint, item: Item) -> Request:
    return Request("POST", read.path, HEADERS, canonical(item.body), item.expect, repeatable=True)


def server_facts(server: DiscoveredServer) -> Mapping[str, Any]:
    """What a corpus stores of the server that it was sampled from."""
    return {
        "versions": dict(server.versions),
        "operation_types": list(server.operation_types),
        "errors": [dict(error) for error in server.errors],
        "historical_balance_lookup": server.historical_balance_lookup,
        "mempool_coins": server.mempool_coins,
    }


def _refusals(client: MeshClient, endpoint: str, item: Item) -> list[Refusal]:
    """The refusal of a request that is sent once; none if the response is correct."""
    reason = ask(client, READS_BY_ID[endpoint], item.body, item.expect).reason
    return [] if reason is None else [Refusal(endpoint=endpoint, body=item.body, reason=reason)]


@dataclass(frozen=True)
class _Check:
    """Requests that one machine sends, each with the id of its endpoint: a piece of work."""

    target: Target
    items: Sequence[tuple[str, Item]]


def _check_there(part: _Check) -> list[Refusal]:
    with MeshClient.of(part.target) as client:
        return list(chain.from_iterable(_refusals(client, endpoint, item) for endpoint, item in part.items))
