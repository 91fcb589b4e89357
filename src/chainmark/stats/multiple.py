"""Corrections for many tests at once."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values that control the probability of any false alarm in a family.

    Args:
        p_values: one per hypothesis, 0 to 1.

    Returns:
        In the given order; reject those that are at most the level.

    Source: Holm (1979), "A simple sequentially rejective multiple test procedure".
    """
    count = len(p_values)
    order = sorted(range(count), key=lambda index: p_values[index])
    adjusted = [1.0] * count
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values that control the share of false alarms among the reported ones.

    Args:
        p_values: one per hypothesis, 0 to 1.

    Returns:
        In the given order.

    Source: Benjamini and Hochberg (1995).
    """
    count = len(p_values)
    order = sorted(range(count), key=lambda index: p_values[index])
    adjusted = [1.0] * count
    lowest = 1.0
    for rank, index in reversed(list(enumerate(order, start=1))):
        lowest = min(lowest, p_values[index] * (count / rank))
        adjusted[index] = lowest
    return adjusted
