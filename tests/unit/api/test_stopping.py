"""An experiment too noisy to be decided ends before its maximum and reports the required number of runs."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import pytest

from chainmark.api.context import Relay
from chainmark.api.experimenting import MOST_RUNS, is_over
from chainmark.compare.decide import Decided, decide
from chainmark.core.catalogue import Catalogue
from chainmark.core.distribution import Estimate, MetricSummary
from chainmark.core.manifest import ExperimentLength, ExperimentPlace
from chainmark.core.metric import Metric, MetricGroup, Population
from chainmark.core.verdict import Verdict
from chainmark.stats.sequential import FIRST_LOOK

from tests.unit.api.listening import Reported
from tests.unit.compare.metric_cases import metric
from tests.unit.compare.synthetic_runs import SyntheticRun, manifest

CORRELATION = 0.5
_NAMES = ("latency_p50", "latency_p99", "interval", "cpu", "rss", "sent", "rounds")
_LENGTH = ExperimentLength(most=MOST_RUNS, stops_early=True)


def _metric(name: str) -> Metric:
    return metric(id=f"{name}_s", label=name, gating=True)


CATALOGUE = Catalogue(
    system="x",
    title="x",
    populations=[Population(id="block", label="blocks", keys=["height"])],
    tables=[MetricGroup(id="all", title="All")],
    metrics=[_metric(name) for name in _NAMES],
)


def _run(side: str, number: int, logs: np.ndarray) -> SyntheticRun:
    described = manifest("v1" if side == "baseline" else "v2", number, side=side, run_id=f"{side}-{number}")
    described.experiment = ExperimentPlace(id="e", side=side, repetition=number, position=number, length=_LENGTH)
    summaries = {
        metric.id: MetricSummary(
            metric_id=metric.id,
            distribution=None,
            estimates={"mean": Estimate(value=math.exp(log), standard_error=None, method="simulated")},
        )
        for metric, log in zip(CATALOGUE.metrics, logs, strict=True)
    }
    return SyntheticRun(described, CATALOGUE, {}, summaries)


@dataclass(frozen=True)
class _Ended:
    rounds: int
    messages: list[str]
    found: Decided


def _experiment(noise: float, seed: int) -> _Ended:
    """An experiment with equal releases and this noise between runs, checked like `chainmark experiment` does."""
    draw = np.random.default_rng(seed)
    sides: dict[str, list[SyntheticRun]] = {"baseline": [], "candidate": []}
    listener = Reported()
    for number in range(1, MOST_RUNS + 1):
        for side, runs in sides.items():
            shared, own = draw.normal(), draw.normal(size=len(_NAMES))
            logs = noise * (math.sqrt(CORRELATION) * shared + math.sqrt(1.0 - CORRELATION) * own)
            runs.append(_run(side, number, logs))
        decision = decide(sides["baseline"], sides["candidate"])
        if FIRST_LOOK <= number < MOST_RUNS and is_over(decision, MOST_RUNS, Relay(listener, None)):
            break
    return _Ended(number, listener.lines, decision)


@pytest.fixture(scope="module")
def noisy() -> _Ended:
    """An experiment with 10 % noise: eight runs per side cannot decide seven metrics with margins of 10 %."""
    return _experiment(0.10, seed=4)


def test_an_experiment_that_eight_runs_per_side_will_not_decide_ends_early(noisy: _Ended) -> None:
    """Otherwise a user would wait half a day for "inconclusive"."""
    assert noisy.rounds == 4
    assert noisy.messages[-1] == "stopped: the remaining planned runs are unlikely to lead to a decision"
    assert re.search(
        r"after 4 runs per side undecided: .*; 0.\d % probability of a decision with 8 runs per side",
        noisy.messages[-2],
    )
    assert noisy.found.finding.verdict is Verdict.INCONCLUSIVE


def test_the_required_number_of_runs_is_reported(noisy: _Ended) -> None:
    """With 10 % noise one metric requires 14 runs per side, and seven metrics about twice as many."""
    (advice,) = [text for text in noisy.found.finding.advice if "with this noise," in text]
    match = re.fullmatch(
        r"with this noise, (\d+) runs per side are required to pass an equal release with 80 % probability, "
        r"in a new experiment \(`--repeat \1`\): adding runs to this one has less power",
        advice,
    )
    assert match is not None
    assert 20 <= int(match[1]) <= 40


def test_low_noise_is_decided_before_the_maximum() -> None:
    ended = _experiment(0.03, seed=0)
    assert (ended.rounds, ended.found.finding.verdict) == (3, Verdict.PASS)
    assert ended.found.finding.advice == []
