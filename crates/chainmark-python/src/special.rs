//! Bindings of the special functions.

use chainmark_special::{beta, gamma};
use pyo3::prelude::*;

#[pyfunction]
pub fn beta_tails(a: f64, b: f64, x: f64, y: f64) -> (f64, f64) {
    let tails = beta::tails(a, b, x, y);
    (tails.lower(), tails.upper())
}

#[pyfunction]
pub fn beta_quantile(a: f64, b: f64, lower: f64, upper: f64) -> (f64, f64) {
    beta::quantile(a, b, lower, upper)
}

#[pyfunction]
pub fn gamma_quantile(a: f64, lower: f64, upper: f64) -> f64 {
    gamma::quantile(a, lower, upper)
}
