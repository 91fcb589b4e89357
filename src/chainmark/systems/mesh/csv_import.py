"""Corpora from the CSV files of cardano-rosetta-java's own load tests, of both generations.

The first generation has one file of six columns, each row being one complete set of requests; every row is used. The
second has a folder of files by dimension and level (`addresses/utxo_count_10.csv`) next to `dimensions.json`; a
dimension's level becomes a stratum. Both are unchecked until :meth:`Corpus.validated_by` has queried a server.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from chainmark.core.errors import UsageError
from chainmark.systems.mesh import bodies, expectations
from chainmark.systems.mesh.bodies import Body, ReadEndpoint, canonical
from chainmark.systems.mesh.discovery import Offering
from chainmark.systems.mesh.expectations import Expectation
from chainmark.systems.mesh.pinned import Corpus, CorpusEndpoint, Item, Stratum, Unmeasured

ROW_COLUMNS = ("address", "block_index", "block_hash", "transaction_size", "relative_ttl", "transaction_hash")
LEVEL_COLUMNS = {
    "addresses": ("address",),
    "blocks": ("block_index", "block_hash"),
    "transactions": ("transaction_hash", "block_hash", "block_index"),
}
DIMENSIONS = "dimensions.json"

Row = dict[str, str]
Question = tuple[ReadEndpoint, Body, Expectation]


class _Level(BaseModel):
    model_config = ConfigDict(extra="ignore")

    display: str


class _Dimension(BaseModel):
    model_config = ConfigDict(extra="ignore")

    description: str
    endpoints: list[str]
    data_type: str
    thresholds: dict[str, _Level]


class _Dimensions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    network: str
    dimensions: dict[str, _Dimension]


def from_csv(path: Path, network: Mapping[str, Any] | None = None, *, include_mempool: bool = True) -> Corpus:
    """A corpus from a file or folder of those load tests.

    Args:
        path: a CSV file of six columns, a folder of such files, or a folder with `dimensions.json`.
        network: the `network_identifier`; required if no `dimensions.json` names the network.
        include_mempool: parameter of `/account/coins`; theirs is True.

    Raises:
        UsageError: it is none of these, a row is invalid, or the network is unknown or another one.
    """
    if path.is_dir() and (path / DIMENSIONS).is_file():
        return _by_dimension(path, network, include_mempool=include_mempool)
    files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"{path} contains neither {DIMENSIONS} nor a CSV file", _HINT)
    if network is None:
        raise UsageError(f"{path} does not state its network", "give the network, or a server of it")
    gathered = _Gathered(path, dict(network), include_mempool)
    for file in files:
        gathered.stratum = Stratum(name=file.stem, description=f"rows of {file.name}")
        for line, row in _rows(file, ROW_COLUMNS):
            gathered.add_row(row, f"{file}:{line}")
    return gathered.corpus({"files": [file.name for file in files], "include_mempool": include_mempool})


_HINT = f"give a CSV file with the columns {', '.join(ROW_COLUMNS)}, or a folder with {DIMENSIONS}"


@dataclass
class _Gathered:
    """Items by endpoint, in the order of their rows, each body once per stratum."""

    source: Path
    network: dict[str, Any]
    include_mempool: bool
    stratum: Stratum = field(default_factory=lambda: Stratum(name="", description=""))
    items: dict[str, dict[tuple[str, str], Item]] = field(default_factory=dict)
    strata: dict[str, dict[str, Stratum]] = field(default_factory=dict)
    candidates: dict[str, int] = field(default_factory=dict)

    def add(self, question: Question) -> None:
        """Add one request to the current stratum."""
        read, body, expect = question
        item = Item(body=body, expect=expect, stratum=self.stratum.name)
        self.items.setdefault(read.id, {}).setdefault((self.stratum.name, canonical(body)), item)
        self.strata.setdefault(read.id, {})[self.stratum.name] = self.stratum
        self.candidates[read.id] = self.candidates.get(read.id, 0) + 1

    def add_row(self, row: Row, where: str) -> None:
        """All requests of a row of the first generation."""
        self.add((bodies.NETWORK_STATUS, bodies.of_network(self.network), expectations.network_status(None)))
        for read in (bodies.ACCOUNT_BALANCE, bodies.ACCOUNT_COINS, bodies.SEARCH_BY_ADDRESS):
            self.add(self.question(read, row, where))
        for read in (bodies.BLOCK, bodies.BLOCK_TRANSACTION, bodies.SEARCH_BY_HASH):
            self.add(self.question(read, row, where))
        options = {name: _integer(row, name, where) for name in ("transaction_size", "relative_ttl")}
        body = bodies.construction_metadata(self.network, options)
        self.add((bodies.CONSTRUCTION_METADATA, body, expectations.construction_metadata()))

    def question(self, read: ReadEndpoint, row: Row, where: str) -> Question:
        """The request of one endpoint for a row."""
        network = self.network
        if read in {bodies.BLOCK, bodies.BLOCK_TRANSACTION}:
            identifier = {"index": _integer(row, "block_index", where), "hash": row["block_hash"]}
            if read == bodies.BLOCK:
                return read, bodies.block(network, identifier), expectations.block(identifier)
            text = row["transaction_hash"]
            return read, bodies.block_transaction(network, identifier, text), expectations.block_transaction(text)
        if read == bodies.SEARCH_BY_HASH:
            text = row["transaction_hash"]
            return read, bodies.search_by_hash(network, text), expectations.search_by_hash(text)
        account = {"address": row["address"]}
        if read == bodies.SEARCH_BY_ADDRESS:
            return read, bodies.search_by_address(network, account), expectations.search_by_address()
        if read == bodies.ACCOUNT_COINS:
            body = bodies.account_coins(network, account, include_mempool=self.include_mempool)
            return read, body, expectations.account_coins()
        return read, bodies.account_balance(network, account), expectations.account_balance()

    def corpus(self, order: dict[str, Any]) -> Corpus:
        """The corpus, in the order of the known reads; repeated rows are counted as omitted."""
        endpoints = []
        for read in bodies.READS:
            if read.id in self.items:
                items, candidates = list(self.items[read.id].values()), self.candidates[read.id]
                strata = list(self.strata[read.id].values())
                left_out = candidates - len(items)
                endpoints.append(
                    CorpusEndpoint(id=read.id, strata=strata, items=items, candidates=candidates, left_out=left_out)
                )
        if not endpoints:
            raise UsageError(f"{self.source} contains no rows", _HINT)
        reason = "the imported files contain no data for it"
        unmeasured = [
            Unmeasured(endpoint=read.id, state=Offering.NOT_REQUESTED, reason=reason)
            for read in bodies.READS
            if read.id not in self.items
        ]
        return Corpus(
            origin="imported",
            validated=False,
            network=self.network,
            order=order,
            endpoints=endpoints,
            unmeasured=unmeasured,
        )


def _by_dimension(path: Path, network: Mapping[str, Any] | None, *, include_mempool: bool) -> Corpus:
    dimensions = _dimensions(path / DIMENSIONS)
    if network is not None and network["network"] != dimensions.network:
        raise UsageError(
            f"{path} is for the network `{dimensions.network}`, not `{network['network']}`",
            "choose the folder of this network",
        )
    gathered = _Gathered(
        path, dict(network or {"blockchain": "cardano", "network": dimensions.network}), include_mempool
    )
    used, missing = set(), []
    for name, dimension in dimensions.dimensions.items():
        reads = [_read_of(name, endpoint, dimension.data_type) for endpoint in dimension.endpoints]
        for level, threshold in dimension.thresholds.items():
            file = path / dimension.data_type / f"{name}_{level}.csv"
            if not file.is_file():
                missing.append(f"{name}/{level}")
                continue
            used.add(file)
            description = f"{dimension.description}: {threshold.display}"
            gathered.stratum = Stratum(name=f"{name}/{level}", description=description)
            for line, row in _rows(file, LEVEL_COLUMNS[dimension.data_type]):
                for read in reads:
                    gathered.add(gathered.question(read, row, f"{file}:{line}"))
    unused = sorted(str(file.relative_to(path)) for file in path.rglob("*.csv") if file not in used)
    order = {"levels_without_file": missing, "files_of_no_level": unused, "include_mempool": include_mempool}
    return gathered.corpus(order)


def _dimensions(path: Path) -> _Dimensions:
    try:
        return _Dimensions.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror})") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}", _HINT) from error
    except ValueError as error:
        raise UsageError(f"{path} is not valid JSON ({error})", _HINT) from error


def _read_of(dimension: str, endpoint: str, data_type: str) -> ReadEndpoint:
    """The search depends on the content of the rows: an address in one file, a transaction in another."""
    if data_type not in LEVEL_COLUMNS:
        raise UsageError(
            f"the dimension `{dimension}` has the data type `{data_type}`", f"known: {', '.join(LEVEL_COLUMNS)}"
        )
    by_type = {
        "addresses": (bodies.ACCOUNT_BALANCE, bodies.ACCOUNT_COINS, bodies.SEARCH_BY_ADDRESS),
        "blocks": (bodies.BLOCK,),
        "transactions": (bodies.BLOCK_TRANSACTION, bodies.SEARCH_BY_HASH),
    }
    for read in by_type[data_type]:
        if read.path == endpoint:
            return read
    known = ", ".join(read.path for read in by_type[data_type])
    raise UsageError(f"the dimension `{dimension}` uses {endpoint} with {data_type}", f"these have: {known}")


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, Row]]:
    """Rows with their line numbers, each with a value in every column."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            header = [name.strip() for name in reader.fieldnames or []]
            if missing := [name for name in columns if name not in header]:
                raise UsageError(f"{path} has no column `{missing[0]}`", f"its columns: {', '.join(header) or 'none'}")
            reader.fieldnames = header
            for row in reader:
                if None in row:
                    raise UsageError(f"{path}:{reader.line_num} has more cells than the header", _HINT)
                values = {name: (row[name] or "").strip() for name in columns}
                if empty := [name for name, value in values.items() if not value]:
                    raise UsageError(
                        f"{path}:{reader.line_num} has no value for `{empty[0]}`", "every column needs a value"
                    )
                yield reader.line_num, values
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror})", _HINT) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} is not a CSV file ({error})", _HINT) from error


def _integer(row: Row, name: str, where: str) -> int:
    text = row[name]
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"{where}: `{name}` is `{text}`, not a number", "indices, sizes and TTLs are whole numbers")
    return int(text)
