"""Resamples of long summaries are divided among the workers of a cluster, which does not change any byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from chainmark.core.parts import Machines
from chainmark.stats import summarise as module
from chainmark.stats import threads, woodruff
from chainmark.stats.summarise import summarise
from chainmark.stats.units import UnitMean

from tests.unit.stats.test_summarise import catalogue, metric, rendered

NAMES = ["a_s", "b_s", "c_s", "d_s", "e_s"]
ENTRIES = catalogue(*(metric(name, "block", statistics=["mean", "p50", "max"]) for name in NAMES))


def frames() -> dict[str, pl.DataFrame]:
    rng = np.random.default_rng(4)
    columns = {name: rng.random(60) + place for place, name in enumerate(NAMES)}
    return {"block": pl.DataFrame({"height": np.arange(60), "time_s": np.arange(60.0), **columns})}


class _Workers:
    """Machines that work in this process."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.parts: list[list[str]] = []

    def map(self, function: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        self.parts += [[item.metric.id for item in part.metrics] for part in parts]
        return [function(part) for part in parts]


@pytest.mark.parametrize("large_rows", [10, 1000])
@pytest.mark.parametrize(
    ("machine_threads", "least_s", "parts"),
    [
        (2, 0.0, [["a_s", "b_s"], ["c_s", "d_s", "e_s"]]),
        (3, 0.0, [["a_s"], ["b_s", "c_s"], ["d_s", "e_s"]]),
        (7, 0.0, [["a_s"], ["b_s"], ["c_s"], ["d_s"], ["e_s"]]),
        (1, 0.0, []),
        (2, 1000.0, []),
    ],
    ids=["two", "three", "more than metrics", "a single thread", "short work"],
)
def test_long_work_is_divided_without_a_change_of_the_summary(
    machine_threads: int, least_s: float, parts: list[list[str]], large_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, a summary depends on the cluster, or a worker without a gain is asked."""
    monkeypatch.setattr(woodruff, "LARGE_ROWS", large_rows)
    expected = rendered(summarise(ENTRIES, frames(), 3))
    monkeypatch.setattr(module, "_DIVIDED_FROM_S", least_s)
    workers = _Workers(machine_threads)
    assert rendered(summarise(ENTRIES, frames(), 3, cast(Machines, workers))) == expected
    assert workers.parts == parts


def test_a_part_uses_one_thread_of_its_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine gives its other threads other parts."""
    created: list[int] = []

    def pool(_: int | None = None) -> ThreadPoolExecutor:
        created.append(threads.worker_threads()._max_workers)
        return threads.worker_threads()

    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr(module, "_DIVIDED_FROM_S", 0.0)
    monkeypatch.setattr(module, "worker_threads", pool)
    summarise(ENTRIES, frames(), 3, cast(Machines, _Workers(2)))
    assert created == [2, 1, 1]  # the preparation here, and two parts


def test_the_duration_of_resamples_follows_from_values_and_sums() -> None:
    """A thousand resamples of 1000 + 500 values at 6.5 ns, and of 2 × 4 × 250 sums at 0.2 ns."""
    mean = UnitMean(0.0, np.zeros(1), np.zeros(1))

    def prepared(values: int = 0, units: int = 0) -> module._Prepared:
        return module._Prepared(
            metric("a_s", "block"), None, None, mean, {}, [],
            sorted_values=np.zeros(values) if values else None,
            reduced=woodruff.Reduced(mean, {}, np.zeros((units, 4)), 0) if units else None,
        )  # fmt: skip

    metrics = [prepared(values=1000), prepared(values=500), prepared(units=250), prepared(units=250)]
    assert module._Resampling(metrics, 1000, 1.0, 1, "block").divisible_s() == pytest.approx(9.75e-3 + 0.4e-3)
