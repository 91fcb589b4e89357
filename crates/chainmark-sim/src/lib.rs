//! Seeded discrete-event simulation of how blocks spread through a network.
//!
//! `cluster` says who is connected to whom, `model` how long everything takes, `timing` draws the durations and
//! `transport` the rounds of TCP. Two drivers move time: `propagation` for averages over independent blocks
//! (`prediction`), `chain` for a network that draws its leaders and selects its chains, whose listener
//! (`trace::Observer`) hears what happens: `logs` writes what its hosts' logs would say.

pub mod chain;
pub mod cluster;
pub mod error;
pub mod logs;
pub mod model;
pub mod prediction;
pub mod propagation;
pub mod queue;
pub mod random;
mod ring;
pub mod timing;
pub mod trace;
pub mod transport;
