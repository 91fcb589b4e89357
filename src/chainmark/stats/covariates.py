"""Means of groups at equal conditions: a linear regression removes the effect of their samples' covariates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chainmark.stats.centiles import FloatArray, IntArray

_SMALLEST = 1e-9  # of a column's spread relative to its size; below it the column is constant


@dataclass(frozen=True)
class AdjustedMeans:
    """Means of groups with the covariates at their overall means.

    Attributes:
        means: shape (groups,), in the values' unit.
        covariance: shape (groups, groups), of these means.
    """

    means: FloatArray
    covariance: FloatArray


def day_waves(seconds: FloatArray) -> FloatArray:
    """Seconds since midnight as waves of 24 and of 12 hours: shape (n, 4), each from -1 to 1."""
    angles = seconds[:, None] * (2.0 * np.pi / np.array([86_400.0, 43_200.0]))
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def adjusted_means(
    values: FloatArray, groups: IntArray, covariates: FloatArray, clusters: IntArray
) -> AdjustedMeans | None:
    """The groups' means at equal covariates, by least squares with a level for each group.

    Args:
        values: shape (n,), finite.
        groups: shape (n,), from 0 without a gap.
        covariates: shape (n, k), finite; a constant column explains nothing and is omitted.
        clusters: shape (n,); samples of one cluster may depend on each other, those of different clusters do not.

    Returns:
        None if the covariates do not vary within the groups independently of the groups, or if there are not more
        clusters than coefficients: then their effect cannot be separated from that of the group.

    Source: the cluster-robust covariance of Liang and Zeger (1986), with the correction G/(G-1) · (n-1)/(n-k).
    """
    centred = covariates - covariates.mean(axis=0)
    spread = centred.std(axis=0)
    varies = spread > _SMALLEST * (1.0 + np.abs(covariates).max(axis=0))
    levels = np.eye(int(groups.max()) + 1)[groups]
    design = np.concatenate([levels, centred[:, varies] / spread[varies]], axis=1)
    count = design.shape[1]
    _, cluster = np.unique(clusters, return_inverse=True)
    total = int(cluster.max()) + 1
    if np.linalg.matrix_rank(design) < count or total <= count:
        return None
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ (design.T @ values)
    scores = np.zeros((total, count))
    np.add.at(scores, cluster, design * (values - design @ coefficients)[:, None])
    correction = total / (total - 1) * (len(values) - 1) / (len(values) - count)
    covariance = inverse @ (scores.T @ scores) @ inverse * correction
    own = levels.shape[1]
    return AdjustedMeans(coefficients[:own], covariance[:own, :own])
