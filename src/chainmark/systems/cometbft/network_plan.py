"""What a network is to be: its version, profile, folder and seed, and the endpoints of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chainmark.core.parts import Machines
from chainmark.systems.cometbft.applications.adapter import Adapter
from chainmark.systems.cometbft.extensions import ExtendingApplication
from chainmark.systems.cometbft.external import ExternalApplication
from chainmark.systems.cometbft.profile import CometBFTProfile
from chainmark.systems.cometbft.rpc import RPC_PORT

P2P_PORT, APPLICATION_PORT, METRICS_PORT, PPROF_PORT = 26656, 26658, 26660, 6060
# Distance between the ports of nodes that share an address.
SHIFT = 10


@dataclass(frozen=True)
class NodeEndpoints:
    """The addresses of a node: it has the usual ports, or as the ``shift``-th of its host those after them."""

    host: str
    shift: int = 0

    @property
    def p2p(self) -> str:
        """For other nodes."""
        return f"{self.host}:{P2P_PORT + SHIFT * self.shift}"

    @property
    def rpc(self) -> str:
        """For transactions and queries."""
        return f"{self.host}:{RPC_PORT + SHIFT * self.shift}"

    @property
    def application(self) -> str:
        """Of its application, if that is a process of its own."""
        return f"{self.host}:{APPLICATION_PORT + SHIFT * self.shift}"

    @property
    def metrics(self) -> str:
        """Of its metrics page."""
        return f"{self.host}:{METRICS_PORT + SHIFT * self.shift}"

    @property
    def pprof(self) -> str:
        """Of its pprof pages, if they are open."""
        return f"{self.host}:{PPROF_PORT + SHIFT * self.shift}"


@dataclass(frozen=True)
class NetworkPlan:
    """The network to make: the version, the profile, the folder, and the seed.

    ``binaries`` holds the binary of every version that the profile names; ``links_folder`` stores the links'
    measurements; ``with_pprof`` opens the nodes' pprof pages; networks of different ``lane`` are isolated; the nodes
    run on these ``machines``, in turn; None: on this one.
    """

    version: str
    binaries: Mapping[str, Path]
    profile: CometBFTProfile
    folder: Path
    links_folder: Path
    seed: int
    application: ExtendingApplication | None = None
    external: ExternalApplication | None = None
    with_pprof: bool = False
    adapter: Adapter | None = None
    lane: int = 0
    machines: Machines | None = None

    @property
    def own_program(self) -> Adapter | None:
        """The adapter, if the nodes are not CometBFT's."""
        return self.adapter if self.profile.application.has_program else None

    @property
    def program_ports(self) -> list[int]:
        """The ports besides CometBFT's that every node of another program opens."""
        return self.own_program.start.ports if self.own_program and self.own_program.start else []
