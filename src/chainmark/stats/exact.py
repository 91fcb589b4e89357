"""Exact tests of counts."""

from __future__ import annotations

from fractions import Fraction
from math import comb


def fisher_more(failed: int, runs: int, other_failed: int, other_runs: int) -> float:
    """The probability that at least this many of the failures are on the first side if both fail alike.

    Args:
        failed, runs: of the first side, 0 <= failed <= runs.
        other_failed, other_runs: of the other one.

    Returns:
        The one-sided p-value, 1 if nothing failed.

    Source: R. A. Fisher, "The Logic of Inductive Inference" (1935), the exact test of a 2 × 2 table.
    """
    failures = failed + other_failed
    ways = sum(comb(runs, k) * comb(other_runs, failures - k) for k in range(failed, min(runs, failures) + 1))
    return float(Fraction(ways, comb(runs + other_runs, failures)))
