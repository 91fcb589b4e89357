"""The machines of a cluster as the hosts of a network: one agent on each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from chainmark.core.parts import Machines
from chainmark.network.agent import HostAgent
from chainmark.network.remote import RemoteHost
from chainmark.store.paths import cache_directory


def agent_here() -> HostAgent:
    """An agent of the machine that runs this."""
    return HostAgent(cache_directory() / "programs")


@contextmanager
def hosts_on(machines: Machines | None) -> Iterator[Sequence[RemoteHost]]:
    """An agent on every machine, for one network; none without machines.

    Raises:
        EnvironmentFailure: a machine is lost.
    """
    if machines is None:
        yield ()
        return
    with machines.objects(agent_here) as calls:
        yield [RemoteHost(address, call) for address, call in sorted(calls.items())]
