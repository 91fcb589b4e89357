"""The fixed levels at which two sides are compared."""

from __future__ import annotations

from chainmark.capacity.fixed import fixed_asks, fixed_levels
from chainmark.capacity.model import LevelKind, Phase


def test_both_sides_are_measured_at_shares_of_the_lower_capacity() -> None:
    """At a level beyond one side's capacity, the comparison would be about its queue and not its release."""
    levels = fixed_levels(LevelKind.RATE, [1000.0, 800.0])
    assert [level.value for level in levels] == [400.0, 640.0]


def test_client_levels_are_whole_and_unique() -> None:
    assert [level.value for level in fixed_levels(LevelKind.CLIENTS, [1.0])] == [1.0]
    assert [level.value for level in fixed_levels(LevelKind.CLIENTS, [99.0])] == [49.0, 79.0]


def test_a_side_without_capacity_leaves_no_level() -> None:
    assert fixed_levels(LevelKind.RATE, [1000.0, 0.0]) == ()
    assert fixed_levels(LevelKind.RATE, []) == ()


def test_levels_are_measured_in_ascending_and_descending_order() -> None:
    asks = fixed_asks(fixed_levels(LevelKind.RATE, [100.0]), times=3)
    assert [ask.level.value for ask in asks] == [50.0, 80.0, 80.0, 50.0, 50.0, 80.0]
    assert {ask.phase for ask in asks} == {Phase.FIXED}
