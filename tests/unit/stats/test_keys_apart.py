"""A cluster's deviation and centiles, computed from the values of its hosts as the incumbent does."""

from __future__ import annotations

import numpy as np
import pytest

from chainmark.core.distribution import MetricSummary
from chainmark.core.metric import Weighting

from tests.unit.stats.test_weightings import catalogue, summary

FIRST, SECOND, THIRD = [1.0, 2.0, 3.0, 4.0], [10.0, 10.0, 10.0, 30.0], [5.0, 6.0, 7.0, 8.0]


def _summary(*hosts: list[float] | list[None], silent_keys_are_zero: bool = False) -> MetricSummary:
    entries = catalogue(Weighting.KEYS, statistics=("mean", "p50"))
    rule = {"keys_apart": True, "silent_keys_are_zero": silent_keys_are_zero}
    entries = entries.model_copy(update={"populations": [entries.populations[0].model_copy(update=rule)]})
    return summary(
        entries, [(time, host, value) for host, values in enumerate(hosts) for time, value in enumerate(values)]
    )


def test_the_summary_takes_the_largest_deviation_and_the_median_centile() -> None:
    """They are compared with a published report, which pooled values would never match."""
    distribution = _summary(FIRST, SECOND, THIRD).distribution
    assert distribution is not None
    centiles = dict(distribution.centiles)
    assert distribution.sd == pytest.approx(float(np.std(SECOND, ddof=1)))
    assert (centiles[0.5], centiles[1.0], centiles[0.0]) == (7.0, 8.0, 5.0)
    assert (distribution.min, distribution.max) == (1.0, 30.0)
    assert distribution.mean == pytest.approx((2.5 + 15.0 + 6.5) / 3)


def test_two_hosts_give_the_upper_centile() -> None:
    distribution = _summary(FIRST, THIRD).distribution
    assert distribution is not None
    assert dict(distribution.centiles)[0.5] == 7.0


@pytest.mark.parametrize(("silent_keys_are_zero", "middle", "low"), [(True, 3.0, 0.0), (False, 7.0, 1.0)])
def test_a_silent_host_counts_as_zero_or_is_omitted(*, silent_keys_are_zero: bool, middle: float, low: float) -> None:
    distribution = _summary(FIRST, THIRD, [None] * 4, silent_keys_are_zero=silent_keys_are_zero).distribution
    assert distribution is not None
    assert (dict(distribution.centiles)[0.5], distribution.min) == (middle, low)


def test_unpooled_estimates_have_no_standard_error() -> None:
    """The standard error of the pooled value belongs to a different figure."""
    estimates = _summary(FIRST, SECOND, THIRD).estimates
    assert (estimates["p50"].value, estimates["p50"].standard_error) == (7.0, None)
    assert estimates["mean"].standard_error is not None
