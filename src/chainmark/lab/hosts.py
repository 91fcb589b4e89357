"""The machines of a cluster as the hosts of a network: one agent on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from chainmark.core.errors import EnvironmentFailure, LostMachineError
from chainmark.core.parts import Machines
from chainmark.core.progress import Progress
from chainmark.network.agent import HostAgent, HostFailure
from chainmark.network.remote import RemoteHost
from chainmark.store.paths import cache_directory

# A worker with a nanny is back within seconds; a process that a person must start is not waited for.
REPLACED_WITHIN_S = 30.0

Made = TypeVar("Made")


def repeated_if_lost(make: Callable[[], Made], machines: Machines | None, progress: Progress) -> Made:
    """Make something on machines, and once more if one of them is lost and soon replaced.

    Networks on fewer machines are not comparable, so it is not repeated on those that remain.

    Raises:
        LostMachineError: it is not replaced, or a machine is lost again.
    """
    if machines is None:
        return make()
    try:
        return make()
    except LostMachineError as error:
        progress.stage(f"{error.message}; waiting for its replacement")
        if not machines.wait_for_replacement(error.worker, REPLACED_WITHIN_S):
            raise
    return make()


def agent_here() -> HostAgent:
    """An agent of the machine that runs this."""
    return HostAgent(cache_directory() / "host-programs")


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
        reserved = machines.for_load()
        yield [
            RemoteHost(address, _naming(address, call), address in reserved)
            for address, call in sorted(calls.items(), key=_numeric)
        ]


def _naming(address: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The same call, whose errors name the machine."""

    def named(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except HostFailure as error:
            raise EnvironmentFailure(f"{error.message} (on {address})", error.hint) from error

    return named


def _numeric(named: tuple[str, object]) -> list[tuple[int, int | str]]:
    """Addresses in the order of their numbers: 10.0.0.9 before 10.0.0.10."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in named[0].split(".")]
