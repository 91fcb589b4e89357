"""Fisher's exact test, compared with hand computation, a published table and plain enumeration."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.stats.exact import fisher_more


def test_the_lady_tasting_tea() -> None:
    """Fisher's example: of eight cups, all four with milk first are found (p = 1/70), or three of them (17/70)."""
    assert fisher_more(4, 4, 0, 4) == pytest.approx(1 / 70)
    assert fisher_more(3, 4, 1, 4) == pytest.approx(17 / 70)


@pytest.mark.parametrize(
    ("counts", "probability"),
    [((0, 3, 0, 3), 1.0), ((1, 3, 0, 3), 0.5), ((3, 3, 0, 3), 0.05), ((0, 3, 3, 3), 1.0), ((2, 2, 2, 2), 1.0)],
)
def test_runs_of_an_experiment_match_hand_computed_values(
    counts: tuple[int, int, int, int], probability: float
) -> None:
    assert fisher_more(*counts) == pytest.approx(probability)


@given(st.integers(1, 5), st.integers(1, 5), st.data())
def test_the_p_value_is_the_share_of_all_assignments_of_the_failures(
    runs: int, others: int, data: st.DataObject
) -> None:
    failed, other_failed = data.draw(st.integers(0, runs)), data.draw(st.integers(0, others))
    ways = list(combinations(range(runs + others), failed + other_failed))
    as_many = sum(sum(number < runs for number in way) >= failed for way in ways)
    assert fisher_more(failed, runs, other_failed, others) == pytest.approx(as_many / len(ways))
