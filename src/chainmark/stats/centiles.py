"""Nearest-rank centiles and distributions, as the published reports of this field define them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from chainmark.core.distribution import STANDARD_CENTILES, Distribution
from chainmark.stats.estimable import has_rank

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_Z_95 = 1.96


def centile_index(n: int, fraction: float) -> int:
    """Index of a centile among n ascending values: ``min(n - 1, floor(n * fraction))``, the product in IEEE doubles.

    The product is not rounded, as in the published reports: the 0.7 centile of 90 values is the element 62.

    Args:
        n: number of values, >= 1.
        fraction: 0 to 1.

    Raises:
        ValueError: n is below 1, or the fraction is outside 0 to 1.

    Source: docs/concepts/distributions.md, "Centiles".
    """
    if n < 1:
        raise ValueError(f"a centile of {n} values is not defined")
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(f"the fraction {fraction} lies outside 0 to 1")
    return min(n - 1, math.floor(n * fraction))


def centile_indices(sizes: IntArray, fractions: FloatArray) -> IntArray:
    """`centile_index` for many sizes and fractions at once.

    Args:
        sizes: shape (rows,), numbers of values; 0 gives the index -1.
        fractions: shape (fractions,), 0 to 1.

    Returns:
        Shape (rows, fractions).
    """
    ranks = np.floor(sizes[:, None] * fractions[None, :]).astype(np.int64)
    return np.minimum(sizes[:, None] - 1, ranks)


def centile(sorted_values: FloatArray, fraction: float) -> float:
    """Nearest-rank centile: an element of the sample, never an interpolation.

    Args:
        sorted_values: shape (n,), ascending, n >= 1, in the metric's unit.
        fraction: 0 to 1.

    Returns:
        The element at `centile_index`, in the metric's unit.

    Raises:
        ValueError: there are no values, or the fraction is outside 0 to 1.
    """
    return float(sorted_values[centile_index(len(sorted_values), fraction)])


def centiles(sorted_values: FloatArray, fractions: FloatArray) -> FloatArray:
    """`centile` for many fractions at once.

    Args:
        sorted_values: shape (n,), ascending, n >= 1, in the metric's unit.
        fractions: shape (fractions,), 0 to 1.

    Returns:
        Shape (fractions,), in the metric's unit.
    """
    values: FloatArray = sorted_values[centile_indices(np.array([len(sorted_values)]), fractions)[0]]
    return values


def estimable_centile(sorted_values: FloatArray, fraction: float) -> float | None:
    """The centile, or None if so few values have no such rank (:func:`.estimable.has_rank`).

    Args:
        sorted_values: shape (n,), ascending, in the metric's unit; may be empty.
        fraction: 0 to 1.
    """
    return centile(sorted_values, fraction) if has_rank(len(sorted_values), fraction) else None


def centile_with_limits(sorted_values: FloatArray, n: int, fraction: float) -> tuple[float, float, float] | None:
    """The centile of n values of which only the smallest are known, and its 95 % limits by order statistics.

    Args:
        sorted_values: shape (known,), ascending, in the metric's unit; those beyond them are greater.
        n: number of values, the unknown ones included, large enough for the normal approximation of a binomial count.
        fraction: above 0, below 1.

    Returns:
        The centile and its lower and upper limit; a limit beyond the greatest known value is that value. None: the
        centile is unknown.
    """
    place = math.ceil(fraction * n) - 1
    if place >= len(sorted_values):
        return None
    half = _Z_95 * math.sqrt(fraction * (1.0 - fraction) * n)
    low = math.floor(fraction * n - half) - 1
    high = min(len(sorted_values), math.ceil(fraction * n + half)) - 1
    return float(sorted_values[place]), float(sorted_values[low]), float(sorted_values[high])


def fraction_of(statistic: str) -> float | None:
    """The fraction of a statistic's name: ``min`` 0, ``p99.9`` 0.999, ``max`` 1; None for ``mean``."""
    if statistic == "mean":
        return None
    if statistic in {"min", "max"}:
        return 0.0 if statistic == "min" else 1.0
    return float(Decimal(statistic[1:]) / 100)


def finite(values: npt.ArrayLike) -> FloatArray:
    """The finite values, sorted: null, NaN and infinity all mean "no value" in a samples' column."""
    array = np.asarray(values, dtype=np.float64)
    return array[np.isfinite(array)]


def distribution(
    values: npt.ArrayLike, n_null: int = 0, fractions: Sequence[float] = STANDARD_CENTILES
) -> Distribution | None:
    """Size, moments, range and centiles of a sample.

    Args:
        values: shape (n,), in the metric's unit, any order; values that are not finite count as null.
        n_null: further rows without a value.
        fractions: the requested centiles.

    Returns:
        The distribution, or None when no value is left.
    """
    array = np.asarray(values)
    ordered = np.sort(finite(array))
    return distribution_of_sorted(ordered, n_null + len(array) - len(ordered), fractions=fractions)


def distribution_of_sorted(
    sorted_values: FloatArray,
    n_null: int,
    mean: float | None = None,
    fractions: Sequence[float] = STANDARD_CENTILES,
) -> Distribution | None:
    """`distribution` of values that are finite and sorted already.

    Args:
        sorted_values: shape (n,), ascending, in the metric's unit.
        n_null: rows without a value.
        mean: the weighted mean, if the samples' weights differ; None: the plain mean. The deviations of ``sd`` are from
            the plain mean in any case.
        fractions: the requested centiles.
    """
    n = len(sorted_values)
    if n == 0:
        return None
    # The sum runs over sorted values, so that the mean does not depend on the order of the rows.
    low, high = float(sorted_values[0]), float(sorted_values[-1])
    plain = min(max(float(sorted_values.sum() / n), low), high)
    squares = sorted_values - plain
    squares *= squares  # in place: samples can be millions
    return Distribution(
        n=n,
        n_null=n_null,
        mean=plain if mean is None else mean,
        sd=math.sqrt(float(squares.sum()) / (n - 1)) if n > 1 else None,
        min=low,
        max=high,
        centiles=[(fraction, estimable_centile(sorted_values, fraction)) for fraction in fractions],
    )
