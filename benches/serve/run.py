"""How fast the dashboard responds from a store of 2,000 runs, and its memory: ``python benches/serve/run.py``.

Milliseconds by the clock for complete responses over a socket, and the memory of the server with its processes. Every
comparison is requested for the first time.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice, permutations
from pathlib import Path

import polars as pl
import psutil

from chainmark.store.runs import Store

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.unit.serve.serving import Served, served
from tests.unit.serve.stores import filled

RELEASES, REPETITIONS, PROFILES = 25, 20, 4
COMPARISONS = 40
SAMPLES = 1_000_000


def _taken_ms(server: Served, addresses: Sequence[str]) -> list[float]:
    taken = []
    for address in addresses:
        began = time.perf_counter()
        server.client.get(address).raise_for_status()
        taken.append(1e3 * (time.perf_counter() - began))
    return taken


def _lengthened(store: Path, run_id: str) -> None:
    """Add a large number of samples of one metric to a run."""
    run = Store(store).select(run_id)[0]
    population = run.catalogue.population(run.catalogue.metric("tx_latency_s").population)
    columns = {str(population.time_key): pl.arange(SAMPLES, eager=True) / 1000.0}
    values = pl.arange(SAMPLES, eager=True) % 997 / 1000.0
    frame = pl.DataFrame({**columns, "tx_latency_s": values})
    frame.write_parquet(run.path / "samples" / f"{population.id}.parquet")


def _memory_mb(server: Served) -> float:
    process = psutil.Process(server.process.pid)
    return sum(process.memory_info().rss for process in [process, *process.children(recursive=True)]) / 1e6


def _tell(name: str, taken: Sequence[float]) -> None:
    print(f"{name:34}  median {statistics.median(taken):7.0f} ms  most {max(taken):7.0f} ms  of {len(taken)}")


def main() -> None:
    """Print a line for each kind of page."""
    with tempfile.TemporaryDirectory(prefix="chainmark-bench-") as folder:
        store = Path(folder)
        runs = filled(store, releases=RELEASES, repetitions=REPETITIONS, profiles=PROFILES)
        print(f"a store of {len(runs):,} runs")
        with served(store) as server:
            _tell("first page of a fresh server", _taken_ms(server, ["/"]))
            while server.client.get("/?as=json").json()["pending"]:
                time.sleep(0.2)
            print(f"all cards shown; memory {_memory_mb(server):.0f} MB")
            _tell("first page", _taken_ms(server, ["/"] * 20))
            _tell("runs, by words and facets", _taken_ms(server, [f"/runs?q=v1.{n}.0&status=valid" for n in range(20)]))
            _tell("a run", _taken_ms(server, [f"/runs/{name}" for name in runs[::100]]))
            pairs = islice(permutations(range(RELEASES), 2), 0, None, RELEASES * RELEASES // COMPARISONS)
            addresses = [f"/compare?side=v1.{a}.0&side=v1.{b}.0" for a, b in pairs]
            half = len(addresses) // 2
            first = _taken_ms(server, addresses[:half])
            memory = _memory_mb(server)
            taken = [*first, *_taken_ms(server, addresses[half:])]
            _tell("compare", taken)
            print(
                f"memory after {half} comparisons {memory:.0f} MB, after {len(addresses)} {_memory_mb(server):.0f} MB"
            )
            _lengthened(store, runs[0])
            address = f"/series?run={runs[0]}&metric=tx_latency_s"
            picture = "&chart=series-tx_latency_s&look=light"
            _tell(f"a series of {SAMPLES:,} samples", _taken_ms(server, [address]))
            _tell("its picture", _taken_ms(server, [address + picture]))
            _tell("history", _taken_ms(server, [f"/history?run={name}" for name in runs[-PROFILES:]]))


if __name__ == "__main__":
    main()
