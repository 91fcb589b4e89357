"""What was made of the store once is not made twice: a small memory of results, filled by one thread at a time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Memory:
    """Results by what they are of; the oldest are forgotten.

    Results are made one after the other in a thread of their own: the machine may be measuring, and whoever asks for
    the same thing meanwhile waits for that.

    Args:
        most: results that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._maker = ThreadPoolExecutor(1, thread_name_prefix="making")

    def later(self, key: Hashable, make: Callable[[], Any]) -> Future[Any]:
        """The result once it is made; what failed is made again for the next who asks."""
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
        """The result, made now if nobody has asked for it."""
        return self.later(key, make).result()

    def close(self) -> None:
        """Make nothing further."""
        self._maker.shutdown(wait=False, cancel_futures=True)
