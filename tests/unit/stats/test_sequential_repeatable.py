"""The same runs give the same decision in every process."""

from __future__ import annotations

import numpy as np
import pytest

from chainmark.stats import sequential
from chainmark.stats.sequential import FamilyTest, lone_levels

from tests.unit.stats.sequential_cases import looks_at, once


def test_the_same_runs_give_the_same_answer() -> None:
    """Another process has no results of earlier calls, and must not draw other rotations."""
    sides = np.random.default_rng(12).standard_normal((2, 4, 3))
    answers = []
    for _ in range(2):
        sequential._frames.cache_clear()
        lone_levels.cache_clear()
        answers.append((once(sides[0], sides[1]), lone_levels(looks_at(2, 4), 1_000)))
    assert answers[0] == answers[1]


def test_rotations_that_are_used_again_cannot_be_changed() -> None:
    frames, _ = sequential._frames(4, 0, 3, 2)
    with pytest.raises(ValueError, match="read-only"):
        frames *= 2.0


@pytest.mark.parametrize(("p_value", "is_worse"), [(0.04, True), (0.05, True), (0.06, False)])
def test_a_p_value_at_the_level_is_worse(p_value: float, *, is_worse: bool) -> None:
    """Levels are p-values of rotations, so both are often equal."""
    assert FamilyTest(p_value, 0.05, (p_value,), (0,)).is_worse is is_worse
