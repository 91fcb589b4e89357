//! The regularized incomplete beta and gamma functions and their inverses, which give the tails and quantiles of the
//! binomial, Poisson and Student's t distributions.
//!
//! For parameters up to 1e9 and tails down to 1e-300 the result is accurate to about 1e-13. Differences of logarithms
//! of gamma functions lose as many digits as the parameters have, so every factor is written as a deviation from its
//! own largest value (Loader, "Fast and accurate computation of binomial probabilities", 2000).
//!
//! An argument outside of its range gives NaN.

pub mod beta;
pub mod density;
pub mod fraction;
pub mod gamma;
pub mod newton;
pub mod quadrature;
pub mod tails;
