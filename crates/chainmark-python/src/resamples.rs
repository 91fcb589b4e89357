//! Bindings of resamples and of their quantiles.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

#[pyfunction]
pub fn block_multiplicities(
    py: Python<'_>,
    lengths: PyBuffer<i64>,
    first: PyBuffer<i64>,
    multiplicities: PyBuffer<i32>,
) -> PyResult<()> {
    let (resamples, units) = (multiplicities.shape()[0], multiplicities.shape()[1]);
    let (lengths, first) = (lengths.to_vec(py)?, first.to_vec(py)?);
    let result = py.detach(|| chainmark_resamples::block_multiplicities(&lengths, &first, resamples, units));
    multiplicities.copy_from_slice(py, &result)
}

#[pyfunction]
pub fn resampled_ranks(
    py: Python<'_>,
    at_or_below: PyBuffer<i64>,
    counts: PyBuffer<i64>,
    fractions: PyBuffer<f64>,
    ranks: PyBuffer<i64>,
) -> PyResult<()> {
    let (at_or_below, counts, fractions) = (at_or_below.to_vec(py)?, counts.to_vec(py)?, fractions.to_vec(py)?);
    ranks.copy_from_slice(py, &py.detach(|| chainmark_resamples::resampled_ranks(&at_or_below, &counts, &fractions)))
}

#[pyfunction]
pub fn weighted_ranks(
    py: Python<'_>,
    weights: PyBuffer<i32>,
    unit_of_value: PyBuffer<u32>,
    fractions: PyBuffer<f64>,
    ranks: PyBuffer<i64>,
) -> PyResult<()> {
    let units = weights.shape()[1];
    let (weights, unit_of_value, fractions) = (weights.to_vec(py)?, unit_of_value.to_vec(py)?, fractions.to_vec(py)?);
    let result = py.detach(|| chainmark_resamples::weighted_ranks(&weights, units, &unit_of_value, &fractions));
    ranks.copy_from_slice(py, &result)
}
