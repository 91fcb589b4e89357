"""The knots of a sample and the values between them, compared with values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from chainmark.stats import knots
from chainmark.stats.centiles import FloatArray
from chainmark.stats.knots import Knots, knots_of, pooled

NO_FRACTIONS = np.empty(0)


def reduced(
    ascending: FloatArray, fractions: FloatArray = NO_FRACTIONS, *, most: int = 3, steps: int = 4, ends: int = 1
) -> Knots:
    """With knots at few ranks: those of equal steps, the lowest and highest ones, and up to three beyond each end."""
    limits = {"MOST_DISTINCT": most, "EVEN_STEPS": steps, "_ENDS": ends, "_BEYOND": 3 if ends > 1 else 1}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(knots, name, value)
        return knots_of(ascending, fractions)


def test_values_between_two_knots_are_spread_evenly() -> None:
    """Three values are between 0 and 10, at 2.5, 5 and 7.5, and three between 10 and 50, at 20, 30 and 40."""
    sample = Knots(np.array([0.0, 10.0, 50.0]), np.array([0, 5, 9]), np.array([2, 6, 11]))
    by_rank = [0.0, 0.0, 2.5, 5.0, 7.5, 10.0, 20.0, 30.0, 40.0, 50.0, 50.0]
    assert sample.at_ranks(np.arange(11)).tolist() == by_rank
    # Outside, at the knots, and halfway between two of them: half of three values are below 5, and below 30.
    below, at_or_below = sample.shares(np.array([-1.0, 0.0, 5.0, 10.0, 30.0, 50.0, 51.0]))
    assert below.tolist() == [0.0, 0.0, 3.5, 5.0, 7.5, 9.0, 11.0]
    assert at_or_below.tolist() == [0.0, 2.0, 3.5, 6.0, 7.5, 11.0, 11.0]


def test_knots_are_at_equal_steps_in_both_tails_and_at_the_wanted_centiles() -> None:
    """Of 36 values: ranks 0, 9, 18, 27 and 35; 0, 1, 2, 6 and 18 from both ends; 14; and 28 between 27 and 29."""
    sample = reduced(np.arange(36.0), np.array([0.4]), ends=2)
    assert sample.values.tolist() == [0, 1, 2, 6, 9, 14, 17, 18, 27, 28, 29, 33, 34, 35]
    assert sample.below.tolist() == sample.values.tolist()
    assert sample.at_or_below.tolist() == [value + 1 for value in sample.values]


@pytest.mark.parametrize(("most", "whole"), [(36, True), (35, False)])
def test_a_sample_of_at_most_so_many_distinct_values_is_kept_whole(most: int, *, whole: bool) -> None:
    """Its results are exact."""
    assert reduced(np.repeat(np.arange(36.0), 2), most=most).is_whole is whole


def test_both_ends_of_a_wide_gap_are_knots() -> None:
    """Values in clusters are not spread evenly. Of these 17, ranks 0, 1, 4, 8, 12, 15 and 16 are knots in any case."""
    cells = [[0.0, 1.0], [2.0, 3.0, 4.0], [6.0, 8.0, 11.0, 13.0], [14.0, 19.0, 20.0, 21.0], [22.0, 23.0, 27.0], [28.0]]
    # The gaps from 14 to 19 and from 23 to 27 are wide; that from 8 to 11 is exactly a third of that from 4 to 13.
    assert reduced(np.concatenate(cells)).values.tolist() == [0, 1, 4, 13, 14, 19, 21, 23, 27, 28]


def test_evenly_spread_values_need_no_further_knots() -> None:
    assert reduced(np.array([0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.0]), steps=2).values.tolist() == [0, 3, 6]


def test_pooled_samples_without_values_have_no_knots() -> None:
    nothing = knots_of(np.empty(0), NO_FRACTIONS)
    for samples in ([], [nothing, nothing]):
        both = pooled(samples)
        assert (both.n, both.values.tolist(), both.below.tolist(), both.at_or_below.tolist()) == (0, [], [], [])
