"""What tests share a machine for: addresses that are theirs alone, and time that others do not take."""

from __future__ import annotations

import functools
import itertools
import socket
import time

from chainmark.network.host import pressure_total_us

# The second numbers of 127.0.0.0/8 that tests may have; people's own runs begin at 127.1.0.1.
CLAIMABLE = range(101, 250)
CLAIM_PORT = 26000
# The third ones: up to here those of networks, then those of single servers.
FIRST_SERVER = 100
# Share of the time in which some task waits for a processor: above it another run would hardly be a better one.
CALM = 0.3
LOOK_S = 3.0

_claims: list[socket.socket] = []
_servers = itertools.count(FIRST_SERVER)


@functools.cache
def own_network() -> str:
    """The begin of this process's own addresses, such as "127.101": no other process of tests has them meanwhile."""
    for number in CLAIMABLE:
        # Bound until this process ends, however it ends; nobody listens there.
        claim = socket.socket()
        try:
            claim.bind((f"127.{number}.255.1", CLAIM_PORT))
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return f"127.{number}"
    raise AssertionError(f"{len(CLAIMABLE)} processes run tests already")


def first_address() -> str:
    """Where the networks of this process's tests begin."""
    return f"{own_network()}.0.1"


def server_address() -> str:
    """An address for one server, at whatever ports; another one each time."""
    return f"{own_network()}.{next(_servers)}.1"


def is_busy() -> bool:
    """Whether tasks wait for processors now: those of others while nothing of the test's own runs.

    False if the kernel does not report it.
    """
    before_us, began = pressure_total_us("cpu"), time.monotonic()
    time.sleep(LOOK_S)
    after_us, took_s = pressure_total_us("cpu"), time.monotonic() - began
    return before_us is not None and after_us is not None and (after_us - before_us) / 1e6 > CALM * took_s


def wait_until_calm(timeout_s: float) -> bool:
    """Wait until the machine has time to spare, so long at most; whether it has."""
    deadline = time.monotonic() + timeout_s
    while is_busy():
        if time.monotonic() > deadline:
            return False
    return True
