"""A witness: the processes that it watches, and its report for a time between two readings."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

from chainmark.network.witness import Witness, listening_processes, processes_behind


def test_a_local_server_is_found_by_its_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        pids = listening_processes(f"http://127.0.0.1:{server.getsockname()[1]}")
    assert os.getpid() in pids


@pytest.mark.parametrize("url", ["http://192.0.2.1:80", "http://no-such-host.invalid:80"])
def test_a_remote_server_has_no_local_processes(url: str) -> None:
    """A process that listens on the same port of this machine is not the loaded server."""
    assert listening_processes(url) == set()


def test_seconds_are_computed_between_readings() -> None:
    witness = Witness(lambda: {os.getpid()})
    with witness:
        witness.look()  # the first reading of the ticker may be late
        work = sum(range(2_000_000))
    assert work
    first, last = witness._rows[0][0], witness._rows[-1][0]
    seen = witness.between(np.linspace(first, last, 3))
    assert seen.ran.shape == (2,)
    assert 0.0 < float(seen.ran.sum()) < 10.0
    assert float(seen.stolen.max()) <= 1.0


def test_without_watched_processes_the_waiting_time_is_unknown() -> None:
    witness = Witness(set)
    with witness:
        pass
    assert np.isnan(witness.between(np.array([witness._rows[0][0], witness._rows[-1][0]])).waited).all()


# Connects to the given port, if any. Then listens, and waits for the end of its input.
SERVER = """
import socket, sys
behind = [socket.create_connection(("127.0.0.1", int(port))) for port in sys.argv[1:]]
own = socket.create_server(("127.0.0.1", 0))
print(own.getsockname()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def serving(*behind: str) -> Iterator[tuple[int, str]]:
    """A listening process and its port."""
    command = [sys.executable, "-c", SERVER, *behind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.pid, process.stdout.readline().strip()
        finally:
            process.stdin.close()


def test_the_backend_of_a_server_is_found_but_not_its_clients() -> None:
    """A node behind the loaded API works for the API, so it does not count as a disturbance."""
    with ExitStack() as stack:
        node, node_port = stack.enter_context(serving())
        api, api_port = stack.enter_context(serving(node_port))
        stack.enter_context(socket.create_connection(("127.0.0.1", int(api_port))))
        assert processes_behind({api}) == {node}
        assert processes_behind({node}) == frozenset()
