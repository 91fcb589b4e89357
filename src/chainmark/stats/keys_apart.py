"""The samples of each value of a key, from which an incumbent computes a cluster's deviation and centiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from chainmark.core.distribution import Distribution
from chainmark.stats.centiles import FloatArray, IntArray, centile


@dataclass(frozen=True)
class KeysApart:
    """The samples of every key, each ascending, at least one of them not empty.

    Attributes:
        silent: number of keys without a sample, which count as if all theirs were 0.
    """

    samples: list[FloatArray]
    silent: int

    def centile(self, fraction: float) -> float:
        """The median of the keys' centiles; for an even number of keys the upper one."""
        ordered = sorted([centile(sample, fraction) for sample in self.samples] + [0.0] * self.silent)
        return ordered[len(ordered) // 2]

    @property
    def sd(self) -> float:
        """The largest of the keys' standard deviations; 0 if no key has two samples."""
        return max((float(np.std(sample, ddof=1)) for sample in self.samples if len(sample) > 1), default=0.0)


def keys_apart(values: FloatArray, key_of_row: IntArray, *, silent_keys_are_zero: bool) -> KeysApart:
    """Group the samples by key.

    Args:
        values: shape (rows,), NaN if there is none; at least one is a number.
        key_of_row: shape (rows,), the key's number.
        silent_keys_are_zero: a key without a sample counts as if all its samples were 0.
    """
    valid = np.isfinite(values)
    frame = pl.DataFrame({"key": key_of_row[valid], "value": values[valid]})
    groups = frame.group_by("key").agg(pl.col("value").sort()).sort("key")
    keys = len(np.unique(key_of_row))
    samples = [group.to_numpy() for group in groups["value"]]
    return KeysApart(samples, keys - len(samples) if silent_keys_are_zero else 0)


def of_keys(pooled: Distribution, parts: KeysApart) -> Distribution:
    """A distribution whose deviation and centiles are computed from the keys', and whose range covers silent ones."""
    zeros = [0.0] if parts.silent else []
    return pooled.model_copy(
        update={
            "sd": parts.sd,
            "min": min([pooled.min, *zeros]),
            "max": max([pooled.max, *zeros]),
            "centiles": [
                (fraction, None if value is None else parts.centile(fraction)) for fraction, value in pooled.centiles
            ],
        }
    )
