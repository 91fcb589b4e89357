"""Means at equal covariates: effects of a covariate are not attributed to the version, and errors are correct."""

from __future__ import annotations

import numpy as np
import pytest

from chainmark.stats.covariates import adjusted_means, day_waves


def _sides(rng: np.random.Generator, *, effect: float, shift: float) -> tuple[np.ndarray, ...]:
    """Two runs of 600 blocks in 60 clusters with a shared level. The second run has a larger covariate."""
    groups = np.repeat([0, 1], 600)
    clusters = np.arange(1200) // 10
    covariate = rng.normal(size=1200) + shift * groups
    shared = rng.normal(scale=0.3, size=120)[clusters]
    values = 1.0 + effect * groups + 0.5 * covariate + shared + rng.normal(scale=0.2, size=1200)
    return values, groups, covariate[:, None], clusters


def test_network_effects_are_not_attributed_to_the_release() -> None:
    """The headers of the later run arrive one unit later. Without adjustment, the release would be slower by half."""
    values, groups, covariates, clusters = _sides(np.random.default_rng(1), effect=0.0, shift=1.0)
    raw = values[groups == 1].mean() - values[groups == 0].mean()
    means = adjusted_means(values, groups, covariates, clusters)
    assert means is not None
    assert raw == pytest.approx(0.5, abs=0.1)
    assert means.means[1] - means.means[0] == pytest.approx(0.0, abs=0.12)


def test_errors_have_their_nominal_coverage_when_blocks_are_correlated() -> None:
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(300):
        means = adjusted_means(*_sides(rng, effect=0.2, shift=0.5))
        assert means is not None
        weights = np.array([-1.0, 1.0])
        error = np.sqrt(weights @ means.covariance @ weights)
        inside += abs(weights @ means.means - 0.2) < 1.645 * error
    # 90 %, plus or minus three standard deviations of 300 draws.
    assert 0.84 < inside / 300 < 0.96


def test_constant_covariates_give_the_unadjusted_means() -> None:
    values, groups, _, clusters = _sides(np.random.default_rng(3), effect=0.4, shift=0.0)
    means = adjusted_means(values, groups, np.full((1200, 1), 88_963.0), clusters)
    assert means is not None
    assert means.means == pytest.approx([values[groups == 0].mean(), values[groups == 1].mean()])


def test_a_covariate_confounded_with_the_run_gives_no_result() -> None:
    """One run is before an epoch boundary and the other after it: the two causes cannot be separated."""
    values, groups, _, clusters = _sides(np.random.default_rng(4), effect=0.4, shift=0.0)
    assert adjusted_means(values, groups, groups[:, None].astype(float), clusters) is None
    assert adjusted_means(values, groups, np.random.default_rng(5).normal(size=(1200, 1)), groups) is None


def test_errors_of_few_clusters_match_hand_computed_values() -> None:
    """Deviations are summed per cluster, squared, and corrected for small counts: 4/3 for clusters, 7/6 for samples."""
    values = np.array([1.0, 3.0, 5.0, 7.0, 2.0, 2.0, 6.0, 10.0])
    groups, clusters = np.repeat([0, 1], 4), np.repeat([7, 3, 9, 4], 2)
    means = adjusted_means(values, groups, np.zeros((8, 0)), clusters)
    assert means is not None
    assert means.means == pytest.approx([4.0, 5.0])
    correction = 4 / 3 * 7 / 6
    variances = [(16.0 + 16.0) / 16.0 * correction, (36.0 + 36.0) / 16.0 * correction]
    assert means.covariance == pytest.approx(np.diag(variances))


def test_means_are_those_at_the_mean_of_each_covariate() -> None:
    rng = np.random.default_rng(6)
    groups = np.repeat([0, 1], 20)
    covariates = np.column_stack([rng.normal(5.0, 1.0, 40), rng.normal(-100.0, 9.0, 40) + groups])
    values = 2.0 + groups + covariates @ np.array([3.0, 0.5])
    means = adjusted_means(values, groups, covariates, np.arange(40))
    assert means is not None
    at_mean = 2.0 + covariates.mean(axis=0) @ np.array([3.0, 0.5])
    assert means.means == pytest.approx([at_mean, at_mean + 1.0])
    assert means.covariance == pytest.approx(np.zeros((2, 2)), abs=1e-20)


@pytest.mark.parametrize("scales", [(1e-7, 1.0), (1e9, 1.0), (1e6, 1e-4)])
def test_results_do_not_depend_on_the_unit_of_a_covariate(scales: tuple[float, float]) -> None:
    """Bytes, nanoseconds and shares together. A covariate that is constant except for its last bit is ignored."""
    values, groups, covariate, clusters = _sides(np.random.default_rng(7), effect=0.2, shift=0.5)
    covariates = np.column_stack([covariate, np.random.default_rng(8).normal(size=1200)])
    plain = adjusted_means(values, groups, covariates, clusters)
    constant = np.where(np.arange(1200) % 2 == 0, 1e9 / 3.0, np.nextafter(1e9 / 3.0, np.inf))[:, None]
    scaled = adjusted_means(values, groups, np.concatenate([covariates * scales, constant], axis=1), clusters)
    assert plain is not None
    assert scaled is not None
    assert scaled.means == pytest.approx(plain.means)
    assert scaled.covariance == pytest.approx(plain.covariance)


@pytest.mark.parametrize(("clusters", "reports"), [(3, False), (4, True)])
def test_there_must_be_more_clusters_than_coefficients(clusters: int, reports: bool) -> None:
    """Two levels and one covariate are three coefficients; with three clusters the errors would be zero."""
    rng = np.random.default_rng(9)
    values, groups, covariates = rng.normal(size=12), np.repeat([0, 1], 6), rng.normal(size=(12, 1))
    means = adjusted_means(values, groups, covariates, np.arange(12) % clusters)
    assert (means is not None) is reports


def test_both_ends_of_a_day_have_the_same_waves() -> None:
    waves = day_waves(np.array([0.0, 86_400.0, 43_200.0]))
    assert waves.shape == (3, 4)
    assert waves[0] == pytest.approx(waves[1])
    assert not np.allclose(waves[0], waves[2])
