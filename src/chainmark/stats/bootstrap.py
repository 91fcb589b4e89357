"""The stationary bootstrap of time-ordered samples, as multiplicities instead of indices.

A resample is described by how often it draws each unit (a row, or all rows of one time value). Because a block is a
run of neighbours, its contribution is one +1 and one -1 in a difference array: the cost falls with the block length,
one matrix serves every metric of a population jointly, and a quantile needs a running sum instead of a sort.

Sums avoid BLAS on purpose: its order of summation, and with it the last bit, depends on the number of threads.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from chainmark._native import block_multiplicities, weighted_ranks
from chainmark.stats.centiles import FloatArray

RESAMPLES = 1000
_CHUNK_ELEMENTS = 1_000_000  # of one multiplicity chunk: bounds the memory of a bootstrap to about 100 MB

_ROUNDING = 1e-12  # of a mean: maximum effect of the order of summation

Multiplicities = npt.NDArray[np.int32]


def generator(seed: int, *purpose: str) -> np.random.Generator:
    """A counter-based generator that depends only on the seed and on its purpose.

    Args:
        seed: recorded in the run's manifest.
        purpose: names that keep streams apart, such as the population's id.
    """
    digest = hashlib.sha256("\x1f".join(purpose).encode()).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed % 2**64, *words])))


def _autocovariances(deviations: FloatArray, lags: int) -> FloatArray:
    n = len(deviations)
    return np.array([float((deviations[lag:] * deviations[: n - lag]).sum()) / n for lag in range(lags + 1)])


def _significant_lags(correlations: FloatArray, n: int, window: int, longest: int) -> int:
    threshold = 2.0 * math.sqrt(math.log10(n) / n)
    small = np.abs(correlations[1:]) < threshold
    for lag in range(len(small) - window + 1):
        if bool(small[lag : lag + window].all()):
            return min(2 * max(lag, 1), longest)
    return longest


def optimal_block_length(series: npt.ArrayLike) -> float:
    """Mean block length that minimises the error of the stationary bootstrap's variance of a mean.

    Args:
        series: shape (n,), in time order, finite.

    Returns:
        The length in samples, from 1 to ``ceil(min(3 sqrt(n), n / 3))``; 1 for a constant or very short series.

    Source: Politis and White (2004), "Automatic block-length selection for the dependent bootstrap", with the
    correction of Patton, Politis and White (2009).
    """
    values = np.asarray(series, dtype=np.float64)
    n = len(values)
    deviations = values - values.mean() if n else values
    if n < 8 or float(np.abs(deviations).max()) <= 1e-12 * float(np.abs(values).max()):
        return 1.0
    window = max(5, int(math.log10(n)))
    longest = min(math.ceil(math.sqrt(n)) + window, n - 1)
    covariances = _autocovariances(deviations, longest)
    cutoff = _significant_lags(covariances / covariances[0], n, window, longest)
    lags = np.arange(1, cutoff + 1)
    flat_top = np.minimum(1.0, 2.0 * (1.0 - lags / cutoff))
    weighted = 2.0 * flat_top * covariances[1 : cutoff + 1]
    long_run_variance = covariances[0] + float(weighted.sum())
    if long_run_variance <= 0.0:
        return 1.0
    slope = float((weighted * lags).sum())
    length = (slope * slope / (long_run_variance * long_run_variance) * n) ** (1.0 / 3.0)
    return float(min(max(length, 1.0), math.ceil(min(3.0 * math.sqrt(n), n / 3.0))))


def bootstrap_error_of_mean(series: FloatArray, block_length: float) -> float:
    """Standard error of the mean over all resamples of the stationary bootstrap, without drawing any; 0 if it is equal.

    Two draws in one block are as far from one another as their units; others are independent. The series is a circle.

    Args:
        series: shape (n,), in time order, finite.
        block_length: mean of the geometric block lengths, in samples, >= 1.

    Returns:
        In the series' unit.

    Source: Politis and Romano (1994), "The stationary bootstrap", lemma 1.
    """
    n = len(series)
    deviations = series - series.mean() if n else series
    if not n or float(np.abs(deviations).max()) <= _ROUNDING * float(np.abs(series).max()):
        return 0.0
    continued = 1.0 - 1.0 / block_length  # the probability that a block continues
    twice = np.concatenate([deviations, deviations])
    variance = float((deviations * deviations).sum()) / n
    weight = 1.0
    for lag in range(1, n):
        weight *= continued
        if weight < _ROUNDING:
            break
        covariance = float((deviations * twice[lag : lag + n]).sum()) / n
        variance += 2.0 * (1.0 - lag / n) * weight * covariance
    return math.sqrt(max(variance, 0.0) / n)


def _independent(rng: np.random.Generator, n: int, rows: int) -> Multiplicities:
    drawn = rng.integers(0, n, size=(rows, n)) + np.arange(rows)[:, None] * n
    counts = np.bincount(drawn.ravel(), minlength=rows * n)
    return counts.reshape(rows, n).astype(np.int32)  # half the memory to move, and no sample has 2**31 rows


def _blocks(rng: np.random.Generator, n: int, rows: int, block_length: float) -> Multiplicities:
    expected = n / block_length
    count = math.ceil(expected + 6.0 * math.sqrt(expected) + 10.0)
    lengths = rng.geometric(1.0 / block_length, size=(rows, count))
    while int(lengths.sum(axis=1).min()) < n:
        lengths = np.concatenate([lengths, rng.geometric(1.0 / block_length, size=(rows, count))], axis=1)
    drawn = np.empty((rows, n), dtype=np.int32)
    block_multiplicities(lengths, rng.integers(0, n, size=lengths.shape), drawn)
    return drawn


def multiplicities(
    rng: np.random.Generator,
    n: int,
    block_length: float,
    resamples: int = RESAMPLES,
    chunk_elements: int | None = None,
) -> Iterator[Multiplicities]:
    """The number of times that each unit is drawn, per resample.

    Args:
        rng: consumed in a fixed order, so the same generator gives the same resamples.
        n: number of units in time order, >= 1.
        block_length: mean of the geometric block lengths, in units; 1 draws independently.
        resamples: rows in total.
        chunk_elements: maximum number of multiplicities per chunk; it affects the random stream too. None: a million.

    Yields:
        Chunks of shape (rows, n); every row sums to n.

    Source: Politis and Romano (1994), "The stationary bootstrap".
    """
    rows = max(1, min(resamples, (chunk_elements or _CHUNK_ELEMENTS) // n))
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        yield _independent(rng, n, size) if block_length <= 1.0 else _blocks(rng, n, size, block_length)


def resampled_means(factors: FloatArray, sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Means of resamples.

    Args:
        factors: shape (rows, units), multiplicities as floats, which are computed once for many metrics.
        sums: shape (units,), sum of the values in a unit, in the metric's unit.
        counts: shape (units,), number of values in a unit.

    Returns:
        Shape (rows,), in the metric's unit; NaN if a resample holds no value.
    """
    totals = (factors * counts).sum(axis=1)
    values = (factors * sums).sum(axis=1)
    result = np.full(len(values), np.nan)
    np.divide(values, totals, out=result, where=totals > 0)
    return result


def resampled_centiles(
    weights: Multiplicities, sorted_values: FloatArray, sorted_units: npt.NDArray[np.uint32], fractions: Sequence[float]
) -> FloatArray:
    """Nearest-rank centiles of resamples.

    Args:
        weights: shape (rows, units), how often each unit is drawn.
        sorted_values: shape (n,), ascending, in the metric's unit.
        sorted_units: shape (n,), the unit of each of these values.
        fractions: 0 to 1.

    Returns:
        Shape (rows, fractions), in the metric's unit; NaN if a resample holds no value.
    """
    ranks = np.empty((len(weights), len(fractions)), dtype=np.int64)
    weighted_ranks(weights, sorted_units, np.asarray(fractions, dtype=np.float64), ranks)
    return np.append(sorted_values, np.nan)[ranks]  # a rank of -1 is the last one


def standard_error(replicates: FloatArray) -> float | None:
    """Standard deviation of the finite replicates; None when fewer than two are finite.

    Replicates of equal samples may differ in their last digits, by the processor's order of summation: that counts as
    zero.

    Args:
        replicates: shape (resamples,), the statistic in the metric's unit or its logarithm.
    """
    retained = replicates[np.isfinite(replicates)]
    if len(retained) < 2:
        return None
    if float(np.ptp(retained)) <= _ROUNDING * float(np.abs(retained).max()):
        return 0.0
    return float(retained.std(ddof=1))
