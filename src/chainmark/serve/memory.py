"""A small cache of results derived from the store, computed by one thread at a time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Memory:
    """Results by key; the oldest are evicted.

    Results are computed one after the other in a separate thread, since the machine may be measuring; concurrent
    requests for the same result wait for it.

    Args:
        most: maximum number of results.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._maker = ThreadPoolExecutor(1, thread_name_prefix="making")

    def later(self, key: Hashable, make: Callable[[], Any]) -> Future[Any]:
        """The result once it is computed; a failed one is computed again at the next request."""
        with self._lock:
            future = self._known.get(key)
            if future is None or (future.done() and future.exception() is not None):
                future = self._known[key] = self._maker.submit(make)
            self._known.move_to_end(key)
            while len(self._known) > self._most:
                _, oldest = self._known.popitem(last=False)
                oldest.cancel()
            return future

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The result, computed now if it is not cached."""
        return self.later(key, make).result()

    def close(self) -> None:
        """Compute nothing further."""
        self._maker.shutdown(wait=False, cancel_futures=True)
