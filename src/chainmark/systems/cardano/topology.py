"""Connections between hosts: by the name of a rule, or a benchmark's topology file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chainmark.core.errors import UsageError

_FROZEN = ConfigDict(frozen=True, extra="forbid")
TORUS_DENSE = "torus-dense"
EXPLORER = "explorer"
TOPOLOGY_HINT = f'use "{TORUS_DENSE}", "random:4+1" (peers in the own region + in each other), or a file'


class TorusDense(BaseModel):
    """Per region a ring with two chords, and one host of every other region."""

    model_config = _FROZEN

    kind: Literal["torus-dense"] = "torus-dense"


class RandomPeers(BaseModel):
    """This number of random hosts of the own region and of every other one."""

    model_config = _FROZEN

    kind: Literal["random"] = "random"
    in_region: int
    per_other_region: int


class ListedHost(BaseModel):
    """One host of a file; ``producers`` are the hosts that it fetches from.

    ``pools`` is the number of blocks that it forges per block of a host with one pool: a relay forges none.
    """

    model_config = _FROZEN

    name: str
    region: str
    producers: list[str]
    pools: Annotated[int, Field(ge=0)] = 1


class ListedTopology(BaseModel):
    """Its form in a file."""

    model_config = _FROZEN

    kind: Literal["listed"] = "listed"
    hosts: list[ListedHost]


Topology = Annotated[TorusDense | RandomPeers | ListedTopology, Field(discriminator="kind")]


class _Node(BaseModel):
    name: str
    region: str
    producers: list[str]
    pools: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    stakePool: bool | None = None  # noqa: N815 - the file's own key

    def host(self, *, forges: bool = True) -> ListedHost:
        """The host; a node without a number of pools in the file has one."""
        pools = 1 if self.pools is None else self.pools
        is_pool = forges and self.stakePool is not False
        return ListedHost(name=self.name, region=self.region, producers=self.producers, pools=pools if is_pool else 0)


class _TopologyFile(BaseModel):
    """The relevant part of a benchmark's topology file; an explorer is not a host of the cluster."""

    coreNodes: list[_Node]  # noqa: N815 - the file's own key
    relayNodes: list[_Node] = []  # noqa: N815

    def hosts(self) -> list[ListedHost]:
        """The hosts of the cluster, by number; relays forge nothing."""
        relays = [node.host(forges=False) for node in self.relayNodes if not node.name.startswith(EXPLORER)]
        return sorted([*(node.host() for node in self.coreNodes), *relays], key=_number)


def parse_topology(text: str) -> TorusDense | RandomPeers | ListedTopology:
    """A topology from its name ("torus-dense", "random:4+1") or the path of a topology file.

    Raises:
        UsageError: it is neither, or the file is not a topology.
    """
    if text == TORUS_DENSE:
        return TorusDense()
    if rule := re.fullmatch(r"random:(\d{1,3})\+(\d{1,3})", text):
        return RandomPeers(in_region=int(rule[1]), per_other_region=int(rule[2]))
    return _read(Path(text))


def _read(path: Path) -> ListedTopology:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"the topology `{path}` is neither a rule nor a readable file: {error.strerror}", TOPOLOGY_HINT
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the topology file {path} is not JSON: {error}", TOPOLOGY_HINT) from error
    try:
        hosts = _TopologyFile.model_validate(content).hosts()
    except ValidationError as error:
        raise UsageError(
            f"the file {path} is not a topology",
            "it must have `coreNodes`, each with a `name`, a `region` and a list of `producers`",
        ) from error
    if not hosts:
        raise UsageError(f"the topology file {path} lists no hosts", "list the hosts of the cluster in `coreNodes`")
    return ListedTopology(hosts=hosts)


def _number(node: ListedHost) -> tuple[int, str]:
    """Files list hosts by region; numbers follow the names, as they do in the generated topologies."""
    digits = node.name.rpartition("-")[2]
    return (int(digits) if digits.isascii() and digits.isdigit() else 2**63, node.name)
