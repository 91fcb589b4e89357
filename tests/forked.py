"""Starts commands as forks of a process that has imported what they need.

Most of the time of a short command is the start of Python, its imports, and the end of what they created: 0.8 s. A fork
has its own environment, working directory, session, streams, signals and exit code, and ends like every Python process.
What it does not test is the start itself.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

# The command line is imported before numpy: it prevents BLAS from starting threads.
LOADED = (
    "chainmark.cli.app", "chainmark.report.layouts", "chainmark.systems.cardano.system",
    "chainmark.systems.cometbft.system", "chainmark.systems.mesh.system", "chainmark.serve.server",
)  # fmt: skip
# Threads of polars that wait for work since its import and that no command needs. Those of a computation would be
# missing after a fork.
IDLE = {"jemalloc_bg_thd", "polars-ooc-clea"}
_LONGEST_ORDER = 1 << 17


@dataclass
class Forked:
    """A command that runs or has ended, used like `subprocess.Popen`."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        if self.returncode is None:
            self.returncode = _answer({"ended": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        if self.returncode is None:
            with open(os.pidfd_open(self.pid)) as process:  # noqa: PTH123 - a descriptor, not a path
                select.select([process], [], [], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(f"the command with PID {self.pid}", timeout or 0.0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def start(
    arguments: Sequence[str], environment: Mapping[str, str], *, output: int, errors: int, folder: Path | None = None
) -> Forked:
    """Start a command.

    Args:
        arguments: those after `chainmark`.
        environment: all of its environment variables.
        output: the descriptor of its stdout.
        errors: that of its stderr.
        folder: its working directory; None: the current one.
    """
    order = {"arguments": arguments, "environment": dict(environment), "folder": str(folder or Path.cwd())}
    pid = _answer(order, output, errors)
    assert isinstance(pid, int)
    return Forked(pid)


def _answer(order: dict[str, Any], *descriptors: int) -> int | None:
    server = _server()
    socket.send_fds(server, [json.dumps(order).encode()], descriptors)
    answer: int | None = json.loads(server.recv(_LONGEST_ORDER))
    return answer


@cache
def _server() -> socket.socket:
    """The connection to the process that forks. It ends with this one."""
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with other:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(other.fileno())],
            pass_fds=[other.fileno()], env=environment, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def end() -> None:
        own.close()
        process.wait()

    atexit.register(end)
    return own


def _load() -> None:
    """Import what most commands import."""
    gc.disable()
    for name in LOADED:
        import_module(name)
    own = str(os.getpid())
    threads = [path for path in Path("/proc/self/task").iterdir() if path.name != own]
    assert {(path / "comm").read_text().strip() for path in threads} <= IDLE
    gc.freeze()  # a command's end collects garbage: it would copy every object of this process


def _run(order: dict[str, Any], descriptors: Sequence[int]) -> NoReturn:
    """Be the command."""
    from chainmark.cli import main  # noqa: PLC0415

    for number, descriptor in enumerate(descriptors, 1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.setsid()
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    gc.enable()
    sys.argv = ["chainmark", *order["arguments"]]
    main()
    sys.exit()


def _ended(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _started(connection: socket.socket, order: dict[str, Any], descriptors: Sequence[int]) -> int:
    pid = os.fork()
    if pid == 0:
        connection.close()
        _run(order, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    return pid


def _serve(connection: socket.socket) -> None:
    """Start what is ordered until nobody orders any more."""
    while True:
        text, descriptors, _, _ = socket.recv_fds(connection, _LONGEST_ORDER, 2)
        if not text:
            break
        order = json.loads(text)
        answer = _ended(order["ended"]) if "ended" in order else _started(connection, order, descriptors)
        connection.send(json.dumps(answer).encode())


if __name__ == "__main__":
    _load()
    _serve(socket.socket(fileno=int(sys.argv[1])))
