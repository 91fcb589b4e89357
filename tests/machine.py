"""Resources of the machine that concurrent tests share: loopback addresses and processor time."""

from __future__ import annotations

import functools
import itertools
import socket
import time

from chainmark.lab.processors import probe

# The second numbers of 127.0.0.0/8 that tests may use; runs of users begin at 127.1.0.1.
CLAIMABLE = range(101, 250)
CLAIM_PORT = 26000
# The third numbers: networks use those below this limit, single servers those above.
FIRST_SERVER = 100
# The share of the processors that others use. Above it, repeating a run would hardly help.
CALM = 0.3

_claims: list[socket.socket] = []
_servers = itertools.count(FIRST_SERVER)


@functools.cache
def own_network() -> str:
    """The prefix of this process's addresses, such as "127.101": no other test process uses them meanwhile."""
    for number in CLAIMABLE:
        # Bound until this process ends, however it ends. Nothing listens there.
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
    """The first address for networks of this process's tests."""
    return f"{own_network()}.0.1"


def server_address() -> str:
    """An address for one server, at any ports; each call returns another one."""
    return f"{own_network()}.{next(_servers)}.1"


def wait_until_calm(timeout_s: float) -> bool:
    """Wait until the machine has time to spare or the timeout has passed; return whether it has time.

    Processes of a lower priority than this one do not count: they give way. Call it while the test itself runs nothing.
    """
    deadline = time.monotonic() + timeout_s
    while probe() > CALM:
        if time.monotonic() > deadline:
            return False
    return True
