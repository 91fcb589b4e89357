"""Other machines: what a cluster is worth, and its workers for those who have work for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from chainmark.api.context import Relay
from chainmark.core.parts import Machines
from chainmark.lab.protocols import ImportableSystem, ImportOrder, SpreadSystem

VARIABLE = "CHAINMARK_CLUSTER"


@contextmanager
def machines_at(address: str | None, listener: Relay) -> Iterator[Machines | None]:
    """The workers of the cluster that was asked for, as long as the context lasts; None: of none.

    Raises:
        UsageError: it is no address, or the extra `cluster` is not installed.
        EnvironmentFailure: it cannot be reached, has no workers, or one of another version.
    """
    if not address:
        yield None
        return
    from chainmark.cluster.connection import connected  # noqa: PLC0415 - nothing of it is loaded without a cluster

    listener.stage(f"connecting to {address}")
    with connected(address) as cluster:
        cluster.check_alike()
        for text in cluster.warnings():
            listener.say(text)
        yield cluster


@contextmanager
def machines_for(
    system: ImportableSystem, order: ImportOrder, on: str | None, listener: Relay
) -> Iterator[Machines | None]:
    """The workers for an import; None where none were asked for, or the source is not one for them."""
    address = on or os.environ.get(VARIABLE)
    if address and not (isinstance(system, SpreadSystem) and system.is_spread(order)):
        listener.say(f"{order.source} is read by this machine alone: the cluster at {address} has no use for it")
        address = None
    with machines_at(address, listener) as machines:
        yield machines
