"""Connections with a short timeout for their request."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_TIMEOUT_S = 5.0


class TimedConnection(H11Protocol):
    """Ends a connection whose request is not complete within seconds, however slowly it arrives."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Keep waiting, unless the request is complete."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_waiting()
        elif self._deadline is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._end_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(REQUEST_TIMEOUT_S, self._out_of_time)

    def _end_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _out_of_time(self) -> None:
        self._deadline = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()
