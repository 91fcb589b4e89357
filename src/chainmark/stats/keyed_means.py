"""The mean of a metric for every value of a key, per host for instance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from chainmark.stats.centiles import FloatArray


@dataclass(frozen=True)
class Means:
    """The means of the values of one key.

    Attributes:
        of: per value, its mean and its number of samples.
        squares: per value, the squared distances of its samples from its mean, summed.
        freedom: degrees of freedom of all squares together.
    """

    of: dict[str, tuple[float, int]]
    squares: dict[str, float] = field(default_factory=dict)
    freedom: int = 0

    def standard_error(self, name: str) -> float:
        """Of a value's mean; 0 if every value has one sample.

        By the spread of its own samples, which one outlier widens, or of all values' samples if that is wider.
        """
        if self.freedom == 0:
            return 0.0
        n = self.of[name][1]
        shared = math.fsum(self.squares.values()) / self.freedom
        own = self.squares.get(name, 0.0) / (n - 1) if n > 1 else 0.0
        return math.sqrt(max(shared, own) / n)


@dataclass(frozen=True)
class Coded:
    """A key's column as numbers: ``codes`` of shape (rows,), the number of names if it has no value."""

    names: list[str]
    codes: npt.NDArray[np.int32]


def coded(column: pl.Series) -> Coded:
    """The values of a key, in ascending order, and the rows that have each."""
    kind = column.dtype
    if not isinstance(kind, pl.Enum):
        column = column.cast(pl.String)
        kind = pl.Enum([name for name in column.unique().to_list() if name is not None])
        column = column.cast(kind)
    categories = kind.categories.to_list()
    codes = column.to_physical().cast(pl.Int32)
    if codes.null_count():
        codes = codes.fill_null(len(categories))
    code_of_row = codes.to_numpy()
    present = np.flatnonzero(np.bincount(code_of_row)[: len(categories)]).tolist()
    present.sort(key=categories.__getitem__)
    place_of = np.full(len(categories) + 1, len(present), dtype=np.int32)
    place_of[present] = np.arange(len(present))
    return Coded([categories[code] for code in present], place_of[code_of_row])


def means_of(column: Coded, values: FloatArray) -> Means:
    """The mean of each of a key's values that has samples.

    Sums are in row order, so that the number of threads does not change their last bit.

    Args:
        column: of the key.
        values: shape (rows,), in the metric's unit, NaN if there is none.
    """
    absent = len(column.names)  # the code of rows without a key
    valid = np.isfinite(values)
    codes = column.codes
    if not bool(valid.all()):
        codes, values = codes[valid], values[valid]
    counts = np.bincount(codes, minlength=absent + 1)
    means = np.bincount(codes, weights=values, minlength=absent + 1) / np.maximum(counts, 1)
    counts[absent] = 0
    distances = values - means[codes]
    of = {
        name: (float(mean), int(count))
        for name, mean, count in zip(column.names, means[:absent], counts[:absent], strict=True)
        if count
    }
    distances *= distances  # in place: samples can be millions
    squares = np.bincount(codes, weights=distances)
    named = {name: float(squares[index]) for index, name in enumerate(column.names) if name in of}
    return Means(of, named, int(counts.sum()) - len(of))
