"""Slow requests occur in clusters. An interval that ignores this is too narrow and leads to wrong decisions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.capacity.clustering import FEWEST_BATCHES, design_effect, of_part, slow_effect
from chainmark.capacity.model import LevelKind, LoadLevel, Phase, StepOutcome, StepRequest, StepResult
from chainmark.capacity.search import Ask
from chainmark.capacity.service_level import Sla
from chainmark.capacity.sla import share_interval

from tests.unit.capacity.queueing import ENDPOINT, TARGET, Server, finished, highest, mm_c_slower

WORKERS, SERVICE_S, LIMIT_S = 8, 0.005, 0.0325
LIMIT = highest(lambda rate: mm_c_slower(rate, WORKERS, SERVICE_S, LIMIT_S) <= 0.01, 1.0, WORKERS / SERVICE_S)


@pytest.mark.parametrize("extended", [False, True])
def test_a_queue_at_its_limit_seldom_has_a_clear_outcome(*, extended: bool) -> None:
    """The share of slow requests equals the tolerated share, so a clear outcome is wrong.

    With intervals for independent requests, four in five outcomes are clear. A calm window has few clusters and may
    pass.

    """
    sla = Sla(p99_s=LIMIT_S, achieved_share=0.5)
    outcomes = Counter[StepOutcome]()
    for seed in range(40):
        server = Server(WORKERS, SERVICE_S, "exponential", "poisson", seed=seed, sla=sla, warm_up_s=2.0)
        step = server.measure(Ask(LoadLevel(LevelKind.RATE, LIMIT), Phase.PROBE, extended=extended))
        outcomes[step.outcome] += 1
    assert outcomes[StepOutcome.FAIL] <= 1
    assert outcomes[StepOutcome.INCONCLUSIVE] >= 24


@given(st.integers(0, 2**32 - 1), st.integers(FEWEST_BATCHES, 40))
def test_independent_requests_hardly_inflate_the_variance(seed: int, seconds: int) -> None:
    random = np.random.default_rng(seed)
    whole = [1_000] * seconds
    effects = [design_effect(random.binomial(1_000, 0.02, seconds).tolist(), whole) for _ in range(20)]
    assert 1.0 <= float(np.median(effects)) <= 3.0


@pytest.mark.parametrize("of_all", [20, 200])
def test_requests_that_are_slow_together_count_as_one_observation(of_all: int) -> None:
    """All slow requests occur in clusters of fifty, so fifty of them are only as much evidence as one."""
    random = np.random.default_rng(1)
    clusters = random.poisson(of_all / 20, 20)
    effect = design_effect((50 * clusters).tolist(), [10_000] * 20)
    assert 15.0 <= effect <= 150.0


@pytest.mark.parametrize(
    ("counted", "of"),
    [([], []), ([0] * 10, [5] * 10), ([5] * 10, [5] * 10), ([1, 0, 9, 0], [9] * 4), ([0] * 10, [0] * 10)],
    ids=["nothing", "none", "all", "few seconds", "no requests"],
)
def test_requests_without_clusters_count_as_independent(counted: list[int], of: list[int]) -> None:
    assert design_effect(counted, of) == 1.0


@given(st.integers(1, 999), st.floats(1.0, 50.0))
def test_clusters_widen_the_interval(count: int, effect: float) -> None:
    low, high = share_interval(count, 1_000)
    wider_low, wider_high = share_interval(count, 1_000, effect)
    assert wider_low <= low + 1e-12
    assert wider_high >= high - 1e-12


def test_the_design_effect_is_the_variance_between_batches_over_the_binomial_one() -> None:
    """By hand, with the t quantile for 9 degrees of freedom over the normal one for the number of batches."""
    widening = (2.262157 / 1.959964) ** 2
    # 5 per second are expected: nine deviate by 5, one by 45. Their mean square is 2,500, the binomial one 47.5.
    assert design_effect([0] * 9 + [50], [100] * 10) == pytest.approx(2500.0 / 47.5 * widening, rel=1e-5)
    # A single request of 100: 0.1 per second are expected.
    assert design_effect([0] * 9 + [1], [10] * 10) == pytest.approx(1.0 / 0.99 * widening, rel=1e-5)
    # 2 per second of 5 seconds: four deviate by 2, one by 8, and there are 4 degrees of freedom.
    expected = (80.0 * 5 / 4) / 9.0 * (2.776445 / 1.959964) ** 2
    assert design_effect([0] * 4 + [10], [20] * 5) == pytest.approx(expected, rel=1e-5)


def test_seconds_before_the_first_batch_are_not_counted() -> None:
    """Of 21 seconds the first is in no batch of two, and no other has a slow request."""
    assert design_effect([1] + [0] * 20, [10] * 21) == 1.0


def test_failed_requests_are_among_the_slow_ones() -> None:
    """Each has missed the limit: a burst of timeouts is as much a cluster as a burst of slow responses."""
    whole = finished([0.1], answered=[90] * 20, slow=[0] * 15 + [10] + [0] * 4)
    whole["series"]["failed"] = [0] * 5 + [40] + [0] * 14
    order = StepRequest(TARGET, ENDPOINT, LoadLevel(LevelKind.RATE, 90.0), 0.0, 20.0)
    effect = slow_effect(StepResult.of(order, whole | {"window_s": 20.0}))
    missed = [0] * 5 + [40] + [0] * 9 + [10] + [0] * 4
    assert effect == design_effect(missed, [90] * 5 + [130] + [90] * 14)
    assert effect > 30.0


def test_a_share_of_the_requests_contains_that_share_of_each_cluster() -> None:
    assert of_part(9.0, 25, 100) == 3.0
    assert of_part(9.0, 100, 100) == 9.0
    assert of_part(9.0, 0, 0) == 1.0
