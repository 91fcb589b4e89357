//! Bindings of the ranks of resamples.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

#[pyfunction]
pub fn resampled_ranks(
    py: Python<'_>,
    at_or_below: PyBuffer<i64>,
    counts: PyBuffer<i64>,
    fractions: PyBuffer<f64>,
    ranks: PyBuffer<i64>,
) -> PyResult<()> {
    let (at_or_below, counts, fractions) = (at_or_below.to_vec(py)?, counts.to_vec(py)?, fractions.to_vec(py)?);
    ranks.copy_from_slice(py, &py.detach(|| chainmark_ranks::resampled_ranks(&at_or_below, &counts, &fractions)))
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
    let result = py.detach(|| chainmark_ranks::weighted_ranks(&weights, units, &unit_of_value, &fractions));
    ranks.copy_from_slice(py, &result)
}
