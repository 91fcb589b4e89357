"""One of several generators of a load, in a process of its own: a program that receives commands on stdin.

It imports very little, so it starts at once. On a worker of a cluster `answer_here` does the same as the program does
here.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from chainmark import _native

if TYPE_CHECKING:
    from chainmark.network.witness import Witness


# A generator that has received no command for this long has been abandoned.
FORGOTTEN_S = 60.0
_PERIOD_S = 1.0
_generators: dict[str, Generator] = {}


class Generator:
    """An engine that makes one part of each step's load."""

    def __init__(self) -> None:
        self._load: _native.HttpLoad | None = None
        self._watching = ExitStack()
        self._witness: Witness | None = None
        self.last_command_s = time.monotonic()

    def answer(self, command: str, argument: Any) -> Any:
        """Execute a command: time, process, watch, contended, make, start, progress, stop, finish or leave.

        Raises:
            ValueError, ConnectionError: the order or the URL is not valid.
        """
        self.last_command_s = time.monotonic()
        if command == "time":
            return time.time_ns()
        if command == "process":
            return _process()
        if command == "watch":
            self._watch(**argument)
        elif command == "contended":
            return self._contended(argument)
        elif command == "make":
            self._load = _native.HttpLoad(argument)
        elif command == "leave":
            self._load = None
            self._watching.close()
        else:
            return self._of_load(command, argument)
        return None

    def _of_load(self, command: str, argument: Any) -> Any:
        if self._load is None:
            raise ValueError(f"`{command}` needs a load")
        if command == "start":
            self._load.start(argument)
        elif command == "progress":
            return json.loads(self._load.progress())
        elif command == "stop":
            self._load.stop()
        elif command == "finish":
            load, self._load = self._load, None
            return load.finish_share()
        return None

    def _watch(self, url: str, ours: list[int]) -> None:
        from chainmark.network.witness import server_witness  # noqa: PLC0415 - only on other machines

        self._watching.close()
        self._witness = self._watching.enter_context(server_witness(url, ours))

    def _contended(self, edges_ns: list[int]) -> list[float]:
        """CPU time (s) of other processes of this machine between each two of these wall times; ends the watch."""
        self._watching.close()
        if self._witness is None:
            raise ValueError("`contended` needs a watch")
        contended_s: list[float] = self._witness.between(edges_ns).contended.tolist()
        return contended_s


def _process() -> dict[str, Any]:
    """This process, and where its ID is unique."""
    from chainmark.network.processes import kernel_of_processes  # noqa: PLC0415 - only if there are several generators

    return {"kernel": kernel_of_processes(), "pid": os.getpid()}


def replied(generator: Generator, command: str, argument: Any) -> dict[str, Any]:
    """The response or the error, as JSON."""
    try:
        return {"answer": generator.answer(command, argument)}
    except (ValueError, OSError) as error:
        return {"refused": str(error), "of_network": isinstance(error, OSError)}


def answer_here(key: str, command: str, argument: Any) -> dict[str, Any]:
    """The response of the generator of that name in this process, which is created on its first command."""
    if key not in _generators:
        _generators[key] = Generator()
        threading.Thread(target=_watch, args=(key,), name="chainmark-generator", daemon=True).start()
    reply = replied(_generators[key], command, argument)
    if command == "leave":
        _generators.pop(key, None)
    return reply


def _watch(key: str) -> None:
    """Stop the load when the client has gone."""
    while (generator := _generators.get(key)) is not None:
        if time.monotonic() - generator.last_command_s > FORGOTTEN_S:
            generator.answer("leave", None)
            _generators.pop(key, None)
        del generator
        time.sleep(_PERIOD_S)


def main() -> None:
    """Answer every line with one line until the client has gone."""
    generator = Generator()
    for line in sys.stdin:
        command = json.loads(line)
        reply = replied(generator, command["command"], command["argument"])
        sys.stdout.write(json.dumps({"number": command["number"], **reply}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
