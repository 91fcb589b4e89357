"""The machines of a cluster, and the measurements between them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from chainmark.core.result import JudgedResult

_STRICT = ConfigDict(extra="forbid", frozen=True)


class ClusterWorker(BaseModel):
    """One worker.

    Attributes:
        machine: the address of its machine.
        threads: number of parts that it works on at the same time.
        cores: available to its process.
        memory_bytes: its limit; 0: none.
        free_bytes: on the disk of its folder for temporary files.
        chainmark, python, engine: versions of chainmark, of Python and of Dask; "" if one is missing or unknown.
        build: the beginning of the hash of chainmark's compiled core.
        nodes: node binaries in its cache.
        for_load: whether it is reserved for load and observation, and runs no node.
        problems: why it cannot be used, in clauses; ``remarks``: unusual properties.
    """

    model_config = _STRICT

    address: str
    name: str
    machine: str
    threads: int
    cores: int | None = None
    memory_bytes: int
    free_bytes: int | None = None
    chainmark: str = ""
    python: str = ""
    engine: str = ""
    build: str = ""
    nodes: list[str] = []
    for_load: bool = False
    problems: list[str] = []
    remarks: list[str] = []


class ClusterClock(BaseModel):
    """The clock of a machine relative to the reference clock, at the time of the check.

    Attributes:
        offset_s: how far it is ahead.
        error_s: half of the shortest round trip: the offset has at most this error, whatever the asymmetry.
        exchanges: of times, of which the one with the shortest round trip counts.
    """

    model_config = _STRICT

    machine: str
    reference: str
    offset_s: float
    error_s: float
    exchanges: int


class ClusterLink(BaseModel):
    """The connection from one worker to another, including all layers of the engine.

    Attributes:
        round_trip_s: the shortest of the exchanges; ``median_s``: their median.
        bytes_per_s: of the larger of two transfers.
        problem: why nothing could be measured; "" if it could.
    """

    model_config = _STRICT

    source: str
    target: str
    round_trip_s: float | None = None
    median_s: float | None = None
    bytes_per_s: float | None = None
    problem: str = ""


class ClusterReport(JudgedResult):
    """The result of `chainmark cluster check`.

    Attributes:
        scheduler: its address.
        chainmark, python, engine, build: of this machine, as of a worker.
        warnings: problems of the network between the machines.
    """

    scheduler: str
    chainmark: str
    python: str
    engine: str
    build: str
    workers: list[ClusterWorker]
    clocks: list[ClusterClock]
    links: list[ClusterLink]
    warnings: list[str]
