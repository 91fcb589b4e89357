"""Survey a cluster before it is used: its workers, their clocks, and the network between them."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from chainmark.cluster.connection import START_HINT, Cluster, Worker, machine_of
from chainmark.cluster.probe import About, Passed, about, measure
from chainmark.core import units
from chainmark.core.cluster_report import ClusterClock, ClusterLink, ClusterReport, ClusterWorker
from chainmark.core.progress import Progress
from chainmark.core.times import utc_now
from chainmark.core.verdict import Verdict

EXCHANGES = 30
PAYLOAD_BYTES = 4 << 20
# With this many workers, all connections are measured; with more, each to the next one.
ALL_PAIRS_MAX = 12
FREE_MIN_BYTES = 1 << 30
THIS_MACHINE = "this machine"
_NOT_LOADED = re.compile(r"\b(ModuleNotFound|Import|Attribute)Error\b")
# By the two workers' addresses, the exchange between them, or why there is none.
_Ways = dict[tuple[str, str], Passed | str]


def survey(cluster: Cluster, nodes: dict[str, list[str]], progress: Progress) -> ClusterReport:
    """Query every worker, and measure.

    Args:
        nodes: node binaries by machine, as far as known.

    Raises:
        EnvironmentFailure: the scheduler is gone.
    """
    progress.stage("querying the workers")
    known, own = cluster.workers(), about()
    answers = cluster.run(about, [worker.address for worker in known])
    workers = [_worker(worker, answers.get(worker.address), own, nodes.get(worker.machine, [])) for worker in known]
    usable = [worker for worker, result in zip(known, workers, strict=True) if result.chainmark]
    ends = _ends(usable)
    progress.stage("measuring clocks and connections")
    passed: _Ways = {}
    for place, (source, targets) in enumerate(_ways(ends)):
        progress.update(place / len(ends), source)
        parameters = {"targets": targets, "exchanges": EXCHANGES, "payload_bytes": PAYLOAD_BYTES}
        answer = cluster.run(measure, [source], **parameters)[source]
        for target in targets:
            passed[source, target] = answer[target] if isinstance(answer, dict) else str(answer)
    unusable = [worker for worker in workers if worker.problems]
    verdict = Verdict.FAIL if unusable or not workers else Verdict.PASS
    machines = len({worker.machine for worker in workers})
    return ClusterReport(
        **{name: str(own[name]) for name in ("chainmark", "python", "engine", "build")},
        tool_version=own["chainmark"],
        title=f"Cluster at {cluster.address}",
        subtitle=f"{units.plural(len(workers), 'worker')} on {units.plural(machines, 'machine')}",
        date=utc_now(),
        verdict=verdict,
        sentence=_sentence(workers, unusable),
        scheduler=cluster.address,
        workers=workers,
        clocks=_clocks(cluster, ends, passed),
        links=[_link(source, target, result) for (source, target), result in passed.items()],
        warnings=cluster.warnings(),
    )


def _sentence(workers: Sequence[ClusterWorker], unusable: Sequence[ClusterWorker]) -> str:
    if not workers:
        return f"the scheduler has no workers: {START_HINT}"
    if unusable:
        cluster_worker = unusable[0]
        count = f"{len(unusable)} of {units.plural(len(workers), 'worker')}"
        return f"{count} cannot be used: {cluster_worker.name} {cluster_worker.problems[0]}"
    threads = sum(worker.threads for worker in workers)
    return f"every worker can be used; together they process {units.plural(threads, 'part')} at a time"


def _worker(worker: Worker, answer: About | Exception | None, own: About, nodes: list[str]) -> ClusterWorker:
    reported: dict[str, Any] = {}
    problems: list[str] = []
    remarks: list[str] = []
    if _lacks_chainmark(answer):
        problems.append(f"has no chainmark or an older version ({answer})")
    elif answer is None or isinstance(answer, Exception):
        problems.append(f"does not respond ({answer or 'it is gone'})")
    else:
        reported = dict(answer)
        problems, remarks = _differences(answer, own)
        if 0 < worker.memory_bytes < FREE_MIN_BYTES:
            remarks.append(f"may use only {units.byte_size(worker.memory_bytes)} of memory")
        if worker.threads > answer["cores"]:
            remarks.append(f"has {worker.threads} threads on {units.plural(answer['cores'], 'core')}")
    return ClusterWorker(
        address=worker.address,
        name=worker.name,
        machine=worker.machine,
        threads=worker.threads,
        memory_bytes=worker.memory_bytes,
        nodes=nodes,
        for_load=worker.for_load,
        problems=problems,
        remarks=remarks,
        **reported,
    )


def _lacks_chainmark(answer: object) -> bool:
    """Whether a worker cannot load what it was asked; some versions of Dask only return the name of the error."""
    return isinstance(answer, Exception) and bool(_NOT_LOADED.search(repr(answer)))


def _differences(other: About, own: About) -> tuple[list[str], list[str]]:
    """Obstacles to using a worker, and surprises."""
    problems, remarks = [], []
    if other["chainmark"] != own["chainmark"]:
        problems.append(f"has chainmark {other['chainmark']}, but this machine has {own['chainmark']}")
    elif other["build"] != own["build"]:
        remarks.append("has another build of the same version of chainmark's core")
    if other["free_bytes"] < FREE_MIN_BYTES:
        problems.append(f"has only {units.byte_size(other['free_bytes'])} left for temporary files")
    if other["engine"] != own["engine"]:
        remarks.append(f"has Dask {other['engine']}, but this machine has {own['engine']}; equal versions are safer")
    if other["python"].split(".")[:2] != own["python"].split(".")[:2]:
        remarks.append(f"has Python {other['python']}, but this machine has {own['python']}; equal versions are safer")
    return problems, remarks


def _ends(workers: Sequence[Worker]) -> list[Worker]:
    """One worker per machine; on one machine all workers."""
    first: dict[str, Worker] = {}
    for worker in workers:
        first.setdefault(worker.machine, worker)
    return list(first.values()) if len(first) > 1 else list(workers)


def _ways(ends: Sequence[Worker]) -> list[tuple[str, list[str]]]:
    """The workers that each worker measures: all others, or the next one; and the first one all others, for clocks."""
    addresses = [worker.address for worker in ends]
    if len(addresses) <= ALL_PAIRS_MAX:
        return [
            (address, [other for other in addresses if other != address]) for address in addresses if len(addresses) > 1
        ]
    following = [(item, [other]) for item, other in itertools.pairwise([*addresses, addresses[0]])]
    return [(addresses[0], addresses[1:]), *following[1:]]


def offset(times: Sequence[tuple[int, int, int]]) -> tuple[float, float]:
    """How far the other clock is ahead, and the maximum error of that, both in seconds.

    The exchange with the shortest round trip counts: the other clock was read at some moment of it, so the error of the
    middle is at most half of it.
    """
    sent, remote_ns, received = min(times, key=lambda time_item: time_item[2] - time_item[0])
    return (2 * remote_ns - sent - received) / 2e9, (received - sent) / 2e9


def _clocks(
    cluster: Cluster, ends: Sequence[Worker], passed: dict[tuple[str, str], Passed | str]
) -> list[ClusterClock]:
    if not ends:
        return []
    reference, clocks = ends[0], []
    for (source, target), result in passed.items():
        is_another = machine_of(target) != reference.machine
        if source == reference.address and is_another and not isinstance(result, str):
            clocks.append(_clock(machine_of(target), reference.machine, result["times"]))
    times = []
    for _ in range(EXCHANGES):
        sent = time.time_ns()
        remote_ns = cluster.run(time.time_ns, [reference.address])[reference.address]
        times.append((sent, remote_ns, time.time_ns()))
    # Seen from here; from there it is the negative.
    own = _clock(THIS_MACHINE, reference.machine, times)
    return [*clocks, own.model_copy(update={"offset_s": -own.offset_s})]


def _clock(machine: str, reference: str, times: Sequence[tuple[int, int, int]]) -> ClusterClock:
    offset_s, error_s = offset(times)
    return ClusterClock(machine=machine, reference=reference, offset_s=offset_s, error_s=error_s, exchanges=len(times))


def _link(source: str, target: str, passed: Passed | str) -> ClusterLink:
    if isinstance(passed, str):
        return ClusterLink(source=source, target=target, problem=passed)
    trips = [(received - sent) / 1e9 for sent, _, received in passed["times"]]
    return ClusterLink(
        source=source,
        target=target,
        round_trip_s=min(trips),
        median_s=median(trips),
        bytes_per_s=passed["bytes_per_s"],
    )
