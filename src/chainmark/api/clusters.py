"""Other machines: the quality of a cluster, and its workers for distributed work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import groupby, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, cast

from chainmark.api.context import Cancellation, Relay, Settings, as_settings
from chainmark.api.systems import installed
from chainmark.core.errors import UsageError
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress
from chainmark.lab.profiles import profile_cluster
from chainmark.lab.protocols import HostedSystem, ImportableSystem, ImportRequest, LaunchableSystem, SpreadSystem
from chainmark.store.experiments import ExperimentFolder

if TYPE_CHECKING:
    from chainmark.capacity.generators import Generators
    from chainmark.cluster.connection import Cluster
    from chainmark.report.document import Document

__all__ = ["cluster_check"]

VARIABLE = "CHAINMARK_CLUSTER"


def cluster_address(on: str | None) -> str | None:
    """The requested scheduler, from an option or the environment."""
    return on or os.environ.get(VARIABLE)


def requested_cluster(on: str | None, profile: str | Path | None, settings: Settings | None) -> str | None:
    """The scheduler of an option, or without one and without the environment's, the profile's."""
    if on or profile is None or os.environ.get(VARIABLE):
        return on
    return profile_cluster(str(profile), as_settings(settings))


@contextmanager
def machines_at(address: str | None, listener: Relay) -> Iterator[Machines | None]:
    """The workers of the requested cluster, for the lifetime of the context; None without a cluster.

    Raises:
        UsageError: the address is not valid, or the extra `cluster` is not installed.
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
            listener.say(f"warning: {text}")
        yield cluster


@contextmanager
def machines_for(
    system: ImportableSystem, order: ImportRequest, on: str | None, listener: Relay
) -> Iterator[Machines | None]:
    """The workers for an import; None if none were requested, or the source does not need them."""
    address = cluster_address(on)
    if address and not (isinstance(system, SpreadSystem) and system.is_spread(order)):
        listener.say(f"{order.source} is read on this machine: the cluster at {address} is not used")
        address = None
    with machines_at(address, listener) as machines:
        yield machines


@contextmanager
def machines_for_nodes(
    system: LaunchableSystem, on: str | None, listener: Relay, folder: ExperimentFolder | None = None
) -> Iterator[Machines | None]:
    """The machines that a network runs on; None if none were requested, or the system cannot use them.

    Args:
        system: of the network.
        on: the requested cluster.
        listener: receives the progress.
        folder: of the experiment that the network is for. It is continued on the same cluster, unless another one is
            requested.

    Raises:
        UsageError, EnvironmentFailure: as `machines_at`; or they were requested for this command, and are of no use.
    """
    address = cluster_address(on) or (folder.cluster() if folder else None)
    if address and not isinstance(system, HostedSystem):
        if on:
            raise UsageError(
                f"chainmark runs `{system.name}` only on this machine", "omit `--on`, or `[cluster]` in the profile"
            )
        listener.say(f"`{system.name}` runs on this machine: the cluster at {address} is not used")
        address = None
    with machines_at(address, listener) as machines:
        if address and folder:
            folder.keep_cluster(address)
        yield machines


@contextmanager
def generators_at(address: str | None, listener: Relay) -> Iterator[Callable[[int | None], Generators]]:
    """The factory of a load test's generators: on the workers of the requested cluster, or here.

    Raises:
        UsageError, EnvironmentFailure: as `machines_at`.
    """
    from chainmark.capacity.generators import Generators  # noqa: PLC0415 - only a load test needs what makes load

    with machines_at(cluster_address(address), listener) as machines:
        yield Generators.here if machines is None else partial(_on_workers, cast("Cluster", machines))


def _on_workers(cluster: Cluster, count: int | None) -> Generators:
    """This many workers, on different machines if possible; for None one per machine.

    If some are reserved for load, only those.

    Raises:
        UsageError: there are fewer workers.
    """
    from chainmark.capacity.generators import MOST, Generators, WorkerPlace  # noqa: PLC0415

    known = cluster.workers()
    usable = [worker for worker in known if worker.for_load] or known
    machines = [list(workers) for _, workers in groupby(usable, lambda worker: worker.machine)]
    wanted = count or min(len(machines), MOST)
    rounds = zip_longest(*machines)
    chosen = [worker for some in rounds for worker in some if worker is not None][:wanted]
    if len(chosen) < wanted:
        raise UsageError(
            f"{wanted} generators were requested, but the cluster at {cluster.address} has {len(chosen)} workers for "
            "them",
            "start more workers, or request fewer generators",
        )

    def is_there(address: str) -> bool:
        return any(worker.address == address for worker in cluster.workers())

    return Generators([WorkerPlace(cluster.run, worker.address, is_there) for worker in chosen])


def cluster_check(
    on: str | None = None, *, progress: Progress | None = None, cancel: Cancellation | None = None
) -> Document:
    """Check a cluster before use: workers, versions, clocks with their errors, and the network between them.

    Args:
        on: its scheduler's address, "tcp://10.0.0.1:8786"; `CHAINMARK_CLUSTER` if omitted.
        progress, cancel: as in `run`.

    Returns:
        A document whose verdict is a pass if every worker can be used, and a fail otherwise, with the reasons.

    Raises:
        UsageError: there is no address, or the extra `cluster` is not installed.
        EnvironmentFailure: the scheduler cannot be reached.

    Example:
        >>> cm.cluster_check(scheduler).word
        'PASS'
    """
    address = cluster_address(on)
    if not address:
        raise UsageError("no cluster was given", f"use `--on tcp://HOST:8786` or the variable {VARIABLE}")
    from chainmark.cluster.connection import connected  # noqa: PLC0415 - nothing of it is loaded without a cluster
    from chainmark.cluster.survey import survey  # noqa: PLC0415
    from chainmark.report.layouts import document_of  # noqa: PLC0415 - importing needs no document

    listener = Relay(progress, cancel)
    listener.stage(f"connecting to {address}")
    with connected(address) as cluster:
        return document_of(survey(cluster, _nodes(cluster), listener))


def _nodes(cluster: Cluster) -> dict[str, list[str]]:
    """The node binaries of every machine that can be asked.

    Not as tasks: Dask ends a worker that receives one of a program that it does not have.
    """
    workers = cluster.workers()
    answers = cluster.run(installed_there, [worker.address for worker in workers])
    return {worker.machine: answer for worker in workers if isinstance(answer := answers.get(worker.address), list)}


def installed_there() -> list[str]:
    """The node binaries in the cache of this machine."""
    return [f"{subject.name} {subject.version}" for subject, _ in installed()]
