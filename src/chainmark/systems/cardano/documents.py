"""The documents next to a cluster's logs: the genesis, the benchmark run's description, the topology."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from chainmark.core.errors import EnvironmentFailure, UsageError
from chainmark.lab.protocols import ImportRequest
from chainmark.systems.cardano.topology import ListedTopology, parse_topology

_READ = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)
_STATED = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
GENESIS_FILES = ("genesis/genesis.shelley.json", "genesis-shelley.json", "genesis/shelley-genesis.json")
META_FILE = "meta.json"
TOPOLOGY_FILE = "topology.json"
# The options of `chainmark ingest`, in commands.toml, for documents that are not next to the logs.
DOCUMENT_OPTIONS = GENESIS, META, TOPOLOGY = "genesis", "meta", "topology"
# File names of the benchmarks' published pings: one row per ping, milliseconds.
PING_FILES = ("latency.csv", "latency.csv.gz")
# No chain has shorter or longer slots, or counts beyond a signed 64-bit integer.
SlotLength = Annotated[float, Field(ge=1e-3, le=3600, description="(seconds)")]
Count = Annotated[int, Field(ge=1, lt=2**63)]
# cardano-tracer names a node's folder after its address.
_PORT = re.compile(r"_\d{1,5}$")
STATED_START = "--set genesis.system_start=2026-02-05T18:52:16Z"
GENESIS_HINT = f"give it with `--genesis FILE`, or state what is known: `{STATED_START}`"
UNKNOWN = "unknown"
# The node's name in the description of synthetic logs, and the file next to them.
SYNTHETIC_STATUS = "synthetic"
TRUTH_FILE = "truth.parquet"
# The packages whose versions the published reports show, in their order.
PACKAGES = (
    "cardano-node",
    "ouroboros-consensus",
    "ouroboros-network",
    "cardano-ledger-core",
    "plutus-core",
    "cardano-crypto",
    "cardano-prelude",
)
# Package names for some commits in descriptions of old runs, which state only commits.
_FORMER_NAMES = {
    "ouroboros-consensus": "ouroboros-network",
    "cardano-ledger-core": "cardano-ledger",
    "plutus-core": "plutus",
}


@dataclass(frozen=True)
class PublicNetwork:
    """A public network.

    Attributes:
        start_s: its genesis's system start, s since 1970-01-01 UTC.
        slot_zero_s: when slot 0 would have begun if all slots had been 1 s long.
        first_slot: the first one that was 1 s long; an epoch began with it.
    """

    name: str
    magic: int
    start_s: int
    slot_zero_s: int
    first_slot: int
    epoch_slots: int
    security_parameter: int


# Before the Shelley era slots lasted 20 s: 208 epochs of 21,600 on mainnet, 4 on preprod, none on preview.
PUBLIC_NETWORKS = {
    network.name: network
    for network in (
        PublicNetwork("mainnet", 764824073, 1506203091, 1591566291, 4_492_800, 432_000, 2160),
        PublicNetwork("preprod", 1, 1654041600, 1655683200, 86_400, 432_000, 2160),
        PublicNetwork("preview", 2, 1666656000, 1666656000, 0, 86_400, 432),
    )
}


@dataclass(frozen=True)
class Genesis:
    """The constants of the logs' chain.

    Attributes:
        system_start_ns: when slot 0 began, ns since 1970-01-01 UTC.
        active_slots_coefficient: the share of slots that have a leader.
        security_parameter: blocks behind the tip that can no longer change.
    """

    system_start_ns: int
    slot_length_s: float
    epoch_slots: int
    security_parameter: int
    active_slots_coefficient: float
    max_block_body_bytes: int
    network_magic: int | None

    @property
    def slot_length_ns(self) -> int:
        """A slot's length in whole nanoseconds."""
        return round(self.slot_length_s * 1e9)

    def slot_start_ns(self, slot: int) -> int:
        """When a slot begins, ns since 1970-01-01 UTC."""
        return self.system_start_ns + slot * self.slot_length_ns


class StatedGenesis(BaseModel):
    """A genesis as a user states it, completely or in part; the defaults are those of the benchmark clusters."""

    model_config = _STATED

    network: Literal["mainnet", "preprod", "preview"] | None = None
    system_start: datetime | None = None
    slot_length_s: SlotLength = 1.0
    epoch_slots: Count = 8000
    security_parameter: Count = 40
    active_slots_coefficient: Annotated[float, Field(gt=0, le=1)] = 0.05
    max_block_body_bytes: Annotated[int, Field(ge=1, description="(bytes)")] = 90_112
    network_magic: Annotated[int, Field(ge=0)] | None = None

    @property
    def assumed(self) -> dict[str, object]:
        """The values that were not stated, with their defaults."""
        left = [name for name in type(self).model_fields if name not in self.model_fields_set]
        return {name: getattr(self, name) for name in left if getattr(self, name) is not None}


class _ProtocolParameters(BaseModel):
    model_config = _READ

    maxBlockBodySize: Annotated[int, Field(ge=1)]  # noqa: N815 - the file's own key


class _ShelleyGenesis(BaseModel):
    """The relevant part of a Shelley genesis."""

    model_config = _READ

    systemStart: datetime  # noqa: N815
    slotLength: SlotLength  # noqa: N815
    epochLength: Count  # noqa: N815
    securityParam: Count  # noqa: N815
    activeSlotsCoeff: Annotated[float, Field(gt=0, le=1)]  # noqa: N815
    networkMagic: int | None = None  # noqa: N815
    protocolParams: _ProtocolParameters  # noqa: N815


def since_epoch_ns(time: datetime) -> int:
    """Nanoseconds since 1970-01-01 UTC; a time without a zone is UTC."""
    since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


def given_document(order: ImportRequest, name: str) -> Path | None:
    """The document that is given with one of `DOCUMENT_OPTIONS`."""
    path = order.options.get(name)
    return None if path is None else Path(path)


def find_genesis(folder: Path, given: Path | None) -> Path | None:
    """The given genesis file, or the one next to the logs."""
    if given is not None:
        return given
    return next((path for name in GENESIS_FILES if _is_file(path := folder / name)), None)


def read_genesis(path: Path) -> Genesis:
    """A Shelley genesis file.

    Raises:
        UsageError: it cannot be read, or is not a genesis.
    """
    content = _read_json(path, "genesis", "give the network's own Shelley genesis with `--genesis FILE`")
    try:
        read = _ShelleyGenesis.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "its content"
        raise UsageError(
            f"{path} is not a Shelley genesis: `{key}` is missing or invalid",
            "give the network's own Shelley genesis with `--genesis FILE`",
        ) from error
    return Genesis(
        system_start_ns=since_epoch_ns(read.systemStart),
        slot_length_s=read.slotLength,
        epoch_slots=read.epochLength,
        security_parameter=read.securityParam,
        active_slots_coefficient=read.activeSlotsCoeff,
        max_block_body_bytes=read.protocolParams.maxBlockBodySize,
        network_magic=read.networkMagic,
    )


def resolve_genesis(path: Path | None, stated: StatedGenesis) -> tuple[Genesis, list[str]]:
    """The genesis from a file, from stated values, or from both: stated values take precedence.

    Returns:
        The genesis, and a sentence about the assumptions, if there are any.

    Raises:
        UsageError: there is none.
    """
    if path is not None:
        read, notes = _on_todays_slots(read_genesis(path))
        return _with(read, stated), notes
    if stated.network is not None:
        return _with(_public(PUBLIC_NETWORKS[stated.network]), stated), []
    if stated.system_start is None:
        raise UsageError("there is no genesis, and the start of the slots is unknown", GENESIS_HINT)
    genesis = Genesis(
        system_start_ns=since_epoch_ns(stated.system_start), **stated.model_dump(exclude={"system_start", "network"})
    )
    assumed = ", ".join(f"{name} {value}" for name, value in stated.assumed.items())
    warning = f"no genesis was given; assumed values, as on the benchmark clusters: {assumed}"
    return genesis, [warning] if assumed else []


def _public(network: PublicNetwork) -> Genesis:
    return Genesis(
        system_start_ns=network.slot_zero_s * 10**9,
        slot_length_s=1.0,
        epoch_slots=network.epoch_slots,
        security_parameter=network.security_parameter,
        active_slots_coefficient=0.05,
        max_block_body_bytes=90_112,
        network_magic=network.magic,
    )


def _on_todays_slots(read: Genesis) -> tuple[Genesis, list[str]]:
    """For a network that began with slots of 20 s, the genesis with which current slots are numbered."""
    network = next((item for item in PUBLIC_NETWORKS.values() if item.magic == read.network_magic), None)
    if network is None or read.system_start_ns != network.start_s * 10**9 or network.start_s == network.slot_zero_s:
        return read, []
    note = f"{network.name} began with slots of 20 s: slots are numbered as if all of them had lasted 1 s"
    return replace(read, system_start_ns=network.slot_zero_s * 10**9), [note]


def epoch_slot(genesis: Genesis, slot: pl.Expr) -> pl.Expr:
    """The slot's index in its epoch, from 0."""
    network = next((item for item in PUBLIC_NETWORKS.values() if item.magic == genesis.network_magic), None)
    return (slot - (network.first_slot if network else 0)) % genesis.epoch_slots


def _with(read: Genesis, stated: StatedGenesis) -> Genesis:
    named = stated.model_fields_set - {"system_start", "network"}
    changes = {name: getattr(stated, name) for name in named}
    if stated.system_start is not None:
        changes["system_start_ns"] = since_epoch_ns(stated.system_start)
    return Genesis(**{**read.__dict__, **changes})


class Package(BaseModel):
    """A component of the measured node."""

    model_config = _READ

    version: str = UNKNOWN
    commit: str = UNKNOWN
    status: str = ""


class _Plutus(BaseModel):
    model_config = _READ

    type: str | None = None
    script: str | None = None


class _Generator(BaseModel):
    model_config = _READ

    add_tx_size: int | None = None
    inputs_per_tx: int | None = None
    outputs_per_tx: int | None = None
    tps: float | None = None
    tx_count: int | None = None
    era: str | None = None
    plutus: _Plutus | None = None
    plutusMode: bool | None = None  # noqa: N815
    plutusAutoMode: bool | None = None  # noqa: N815

    @property
    def plutus_script(self) -> str | None:
        """The script that the transactions run, if any."""
        if self.plutusMode and self.plutusAutoMode:
            return "Loop"
        return self.plutus.script if self.plutus and self.plutus.type and self.plutus.script else None


class _Ledger(BaseModel):
    model_config = _READ

    delegators: int | None = None
    utxo: int | None = None
    dreps: int | None = None


class _Analysis(BaseModel):
    model_config = _READ

    filters: list[str] = []
    filter_exprs: list[Any] = []


class _Content(BaseModel):
    model_config = _READ

    genesis: _Ledger = _Ledger()
    generator: _Generator = _Generator()
    analysis: _Analysis = _Analysis()
    era: str | None = None


class Meta(BaseModel):
    """The description of a benchmark run; without such a file nothing of it is known."""

    model_config = _READ

    tag: str | None = None
    batch: str | None = None
    profile: str | None = None
    era: str | None = None
    ident: str | None = None
    node_ghc_version: str | None = None
    manifest: dict[str, Package] = {}
    profile_content: _Content = _Content()

    @field_validator("manifest", mode="before")
    @classmethod
    def _only_commits(cls, value: Any) -> Any:
        """Old descriptions state a commit where later ones state a package."""
        if not isinstance(value, dict):
            return value
        return {name: {"commit": item} if isinstance(item, str) else item for name, item in value.items()}

    def package(self, name: str) -> Package:
        """A component, by its current name."""
        return self.manifest.get(name) or self.manifest.get(_FORMER_NAMES.get(name, name)) or Package()

    @property
    def is_synthetic(self) -> bool:
        """Whether it describes simulated logs."""
        return self.package(PACKAGES[0]).status == SYNTHETIC_STATUS

    @property
    def era_name(self) -> str | None:
        """The ledger's era, from any source that states it."""
        return self.era or self.profile_content.era or self.profile_content.generator.era

    @property
    def identifier(self) -> str | None:
        """The label of the subject in the benchmarks: by default the node's version."""
        return self.ident or self.node_version

    @property
    def node_version(self) -> str | None:
        """The node's version, if known."""
        version = self.package(PACKAGES[0]).version
        return None if version == UNKNOWN else version


def find_meta(folder: Path, given: Path | None) -> Path | None:
    """The given description, or the one next to the logs."""
    if given is not None:
        return given
    path = folder / META_FILE
    return path if _is_file(path) else None


def read_meta(path: Path) -> Meta:
    """A benchmark run's description.

    Raises:
        UsageError: it cannot be read, or is not a description.
    """
    hint = 'it is a JSON object with one key "meta"; `--meta FILE` names another'
    content = _read_json(path, "description", hint)
    if not isinstance(content, dict) or not isinstance(content.get("meta"), dict):
        raise UsageError(f"{path} is not the description of a benchmark run", hint)
    try:
        return Meta.model_validate(content["meta"])
    except ValidationError as error:
        key = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise UsageError(f"`meta.{key}` in {path} is invalid", hint) from error


def find_pings(folder: Path) -> Path | None:
    """The pings between hosts next to the logs."""
    return next((path for name in PING_FILES if _is_file(path := folder / name)), None)


def read_topology(folder: Path, given: Path | None) -> tuple[Path | None, ListedTopology | None]:
    """The topology's path and its hosts; None if there is no topology.

    Raises:
        UsageError: the given file is not a topology.
    """
    path = given if given is not None else folder / TOPOLOGY_FILE
    if given is None and not _is_file(path):
        return None, None
    topology = parse_topology(str(path))
    if not isinstance(topology, ListedTopology):
        raise UsageError(f"`{path}` is the name of a rule, not a topology file", "`--topology FILE` names a file")
    return path, topology


def named_as_logged(hosts: Iterable[str], topology: ListedTopology) -> ListedTopology:
    """The topology by the names of the hosts: "node-0_30001", as cardano-tracer calls a folder, is the host "node-0".

    A host that the topology lists keeps its name, and a host with an ambiguous name is not listed.
    """
    names = list(hosts)
    listed = {host.name for host in topology.hosts}
    short = {name: _PORT.sub("", name) for name in names if name not in listed}
    shared = Counter(short.values())
    renamed = {item: name for name, item in short.items() if item != name and shared[item] == 1 and item not in names}
    called = [
        host.model_copy(
            update={
                "name": renamed.get(host.name, host.name),
                "producers": [renamed.get(peer, peer) for peer in host.producers],
            }
        )
        for host in topology.hosts
    ]
    return ListedTopology(hosts=called)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except PermissionError as error:
        raise EnvironmentFailure(f"{path} may not be read", "make its folder readable") from error


def _read_json(path: Path, what: str, hint: str) -> Any:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
        # JSON can hold lone surrogates, which cannot be encoded.
        json.dumps(content, ensure_ascii=False).encode()
    except PermissionError as error:
        raise EnvironmentFailure(
            f"the {what} {path} may not be read", "make it readable, or give another file"
        ) from error
    except OSError as error:
        raise UsageError(f"the {what} {path} cannot be read: {error.strerror}", hint) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the {what} {path} is not JSON: {error}", hint) from error
    return content
