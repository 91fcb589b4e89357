"""Samples described by other machines, which do not have the runs: the same comparison."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from chainmark.compare import compare
from chainmark.compare.inputs import LoadedRun
from chainmark.compare.samples import RunExcerpt
from chainmark.compare.side_by_side import compare_side_by_side
from chainmark.core.parts import Machines
from chainmark.stats.description import to_frame
from chainmark.store.files import json_bytes

from tests.unit.compare.synthetic_runs import SyntheticRun, run


class Messages:
    """Machines that get every part as a message, and have nothing else."""

    def __init__(self) -> None:
        self.parts = 0

    def map(self, function: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """The results, themselves messages."""
        self.parts += len(parts)
        return [_sent(function(_sent(part))) for part in parts]


def _sent(item: Any) -> Any:
    return pickle.loads(pickle.dumps(item))  # noqa: S301 - our own message


def _runs(version: str, *, drawn: bool = True, factor: float = 1.0) -> list[SyntheticRun]:
    return [run(version, seed=seed, seconds=60, drawn=drawn, factors={"cpu_cores": factor}) for seed in (1, 2)]


def test_an_excerpt_says_the_same_of_a_metric_as_the_run() -> None:
    loaded = LoadedRun(_runs("v1")[0])
    for metric in loaded.catalogue.metrics:
        population = loaded.catalogue.population(metric.population)
        excerpt = _sent(RunExcerpt.of(loaded, metric, population))
        assert excerpt.run_id == loaded.run_id
        assert excerpt.groups == loaded.groups
        assert excerpt.summary(metric.id) == loaded.summary(metric.id)
        assert to_frame([excerpt.described(metric, population)]).equals(
            to_frame([loaded.described(metric, population)])
        )


def test_a_metric_that_the_comparison_defines_differently_is_described_before_it_is_sent() -> None:
    """The other machine could not: it does not have the samples."""
    drawn, plain = (LoadedRun(_runs("v1", drawn=drawn)[0]) for drawn in (True, False))
    metric, population = drawn.catalogue.metric("cpu_cores"), drawn.catalogue.population("node_second")
    excerpt = RunExcerpt.of(plain, metric, population)
    assert to_frame([excerpt.described(metric, population)]).equals(to_frame([drawn.described(metric, population)]))


@pytest.mark.parametrize("candidates", [1, 2])
def test_a_comparison_does_not_depend_on_where_the_samples_are_described(candidates: int) -> None:
    sides = [_runs("v1"), _runs("v2", factor=1.3), _runs("v3")][: candidates + 1]
    messages = Messages()

    def compared(machines: Machines | None) -> bytes:
        if candidates > 1:
            return json_bytes(compare_side_by_side(sides, machines=machines, tool_version="test"))
        return json_bytes(compare(*sides, machines=machines, tool_version="test"))

    assert compared(cast(Machines, messages)) == compared(None)
    metrics = len(sides[0][0].catalogue.metrics)
    assert messages.parts == metrics * candidates
