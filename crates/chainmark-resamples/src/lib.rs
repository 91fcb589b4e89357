//! Resamples of the stationary bootstrap, and the quantiles of their values. Random draws are made by the caller.

mod blocks;
mod ranks;

pub use blocks::block_multiplicities;
pub use ranks::{resampled_ranks, weighted_ranks};
