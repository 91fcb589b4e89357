"""Queries to a worker about itself and about the network to other workers; this code runs there."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypedDict

from chainmark import _native
from chainmark.core.tool import tool_version

_HASH_DIGITS = 12


class About(TypedDict):
    """Versions and resources of a process."""

    chainmark: str
    python: str
    engine: str
    build: str
    cores: int
    free_bytes: int


class Passed(TypedDict):
    """Exchanges of times with another worker: sent here, read there, received here, ns since 1970; and a transfer."""

    times: list[tuple[int, int, int]]
    bytes_per_s: float


def about() -> About:
    """The description of this process."""
    core = Path(str(_native.__file__)).read_bytes()
    return About(
        chainmark=tool_version(),
        python=platform.python_version(),
        engine=version("distributed"),
        build=hashlib.sha256(core).hexdigest()[:_HASH_DIGITS],
        cores=len(os.sched_getaffinity(0)),
        free_bytes=shutil.disk_usage(tempfile.gettempdir()).free,
    )


async def measure(targets: Sequence[str], exchanges: int, payload_bytes: int, dask_worker: Any) -> dict[str, Any]:
    """Exchange times with other workers, one after the other, and send each some bytes; or why that fails."""
    from distributed.protocol.pickle import dumps  # noqa: PLC0415 - an extra, which every worker has

    clock, size = dumps(time.time_ns), dumps(len)
    results: dict[str, Any] = {}
    for target in targets:
        peer = dask_worker.rpc(target)
        try:
            times = []
            for _ in range(exchanges):
                sent = time.time_ns()
                answer = await peer.run(function=clock)
                times.append((sent, int(answer["result"]), time.time_ns()))
            payload = dumps((os.urandom(payload_bytes),))
            speeds = []
            for _ in range(2):
                begun = time.perf_counter()
                await peer.run(function=size, args=payload)
                speeds.append(payload_bytes / (time.perf_counter() - begun))
            results[target] = Passed(times=times, bytes_per_s=max(speeds))
        except OSError as error:
            results[target] = str(error) or type(error).__name__
    return results
