"""Whether a silent server is still there."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from chainmark.capacity.model import SILENCE_S, UNIX, Gone, Target
from chainmark.core import units

# Number of consecutive attempts and their distance: a server that is restarted at once is back by then.
REFUSALS = 3
BETWEEN_S = 1.0
_CONNECT_S = 1.0
# A server that accepts connections may still work off earlier requests: the longest wait for one response.
SILENT_LONGEST_S = 60.0
_PORTS = {"http": 80, "https": 443}


def takes_connections(url: str) -> bool:
    """Whether a server listens there; a host that does not react within a second does not."""
    parts = urlsplit(url)
    try:
        if url.startswith(UNIX):
            with socket.socket(socket.AF_UNIX) as local:
                local.settimeout(_CONNECT_S)
                local.connect(url.removeprefix(UNIX))
                return True
        with socket.create_connection((parts.hostname or "", parts.port or _PORTS[parts.scheme]), _CONNECT_S):
            return True
    except OSError:
        return False


@dataclass
class Presence:
    """Detects the moment at which a server stops answering.

    Attributes:
        server: its name and address.
        listens: whether it accepts a connection now.
        clock: seconds, from any origin.
    """

    server: Target
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    listens: Callable[[str], bool] = takes_connections
    _answered: int = field(default=-1, init=False)
    _since_s: float = field(default=0.0, init=False)
    _refusals: int = field(default=0, init=False)

    def begin(self) -> None:
        """Start of a step."""
        self._answered = -1

    def is_lost(self, reported: Mapping[str, Any]) -> bool:
        """Whether the server no longer answers and refuses every connection.

        Args:
            reported: the engine's progress.
        """
        answered = reported["ok"] + reported["failed"] - reported["unanswered"]
        if answered != self._answered:
            self._answered, self._since_s, self._refusals = answered, self.clock(), 0
            return False
        due_s = SILENCE_S + self._refusals * BETWEEN_S
        if not reported["unanswered"] or self.clock() - self._since_s < due_s:
            return False
        self._refusals = 0 if self.listens(self.server.connected_url) else self._refusals + 1
        if not self._refusals:
            self._since_s = self.clock()
        return self._refusals >= REFUSALS

    def refuses(self) -> bool:
        """Whether it refuses all of several connections; False at the first that it accepts."""
        for turn in range(REFUSALS):
            if turn:
                self.pause(BETWEEN_S)
            if self.listens(self.server.connected_url):
                return False
        return True

    def gone(self, at_ns: int, look: Callable[[float], bool]) -> Gone | None:
        """Why a silent server is considered gone; None if it is there.

        Args:
            at_ns: wall time since which it has been silent.
            look: sends requests of one client; whether any was answered within this many seconds.
        """
        begun_s = self.clock()
        while (waited_s := self.clock() - begun_s) < SILENT_LONGEST_S:
            if look(SILENT_LONGEST_S - waited_s):
                return None
            if self.refuses():
                return Gone(self.server.name, at_ns, "it accepts no connections")
        return Gone(
            self.server.name, at_ns, f"it does not respond to one client within {units.duration(SILENT_LONGEST_S)}"
        )
