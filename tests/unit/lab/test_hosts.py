"""The hosts of a network: errors name the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from chainmark.core.errors import EnvironmentFailure, LostMachineError
from chainmark.core.parts import Machines
from chainmark.lab.hosts import hosts_on
from chainmark.network.agent import HostFailure


class _Machines:
    def __init__(self, error: Exception) -> None:
        self._error = error

    @contextmanager
    def objects(self, _: Callable[[], Any]) -> Iterator[dict[str, Callable[..., Any]]]:
        yield {"10.0.0.10": self._fail, "10.0.0.9": self._fail}

    def _fail(self, *_: object) -> None:
        raise self._error

    def for_load(self) -> frozenset[str]:
        return frozenset({"10.0.0.10"})


def test_an_error_of_an_agent_names_the_machine() -> None:
    """A user of fifty machines has one of them with a full disk."""
    machines = _Machines(HostFailure("the disk is full", "free some space there"))
    with hosts_on(cast(Machines, machines)) as hosts:
        assert [(host.address, host.measures) for host in hosts] == [("10.0.0.9", False), ("10.0.0.10", True)]
        with pytest.raises(EnvironmentFailure) as raised:
            hosts[0].call("about")
    assert (raised.value.message, raised.value.hint) == ("the disk is full (on 10.0.0.9)", "free some space there")


@pytest.mark.parametrize(
    "error",
    [LostMachineError("the worker on 10.0.0.9 is lost", "", "tcp://10.0.0.9:1"), EnvironmentFailure("it is gone")],
    ids=["machine", "scheduler"],
)
def test_an_error_of_the_cluster_is_not_one_of_a_machine(error: EnvironmentFailure) -> None:
    with hosts_on(cast(Machines, _Machines(error))) as hosts, pytest.raises(EnvironmentFailure) as raised:
        hosts[0].call("about")
    assert raised.value is error
