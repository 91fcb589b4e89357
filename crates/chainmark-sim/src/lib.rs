//! Seeded discrete-event simulation of how blocks spread through a network.
//!
//! `cluster` defines the connections, `model` the mean durations, `timing` draws the durations and `transport` the
//! rounds of TCP. Two drivers advance time: `propagation` for averages over independent blocks (`prediction`), `chain`
//! for a network that draws its leaders and selects its chains, whose listener (`trace::Observer`) receives its events:
//! `logs` writes the logs that its hosts would write.

mod block_window;
pub mod chain;
pub mod cluster;
pub mod error;
pub mod logs;
pub mod model;
pub mod prediction;
pub mod propagation;
pub mod queue;
pub mod random;
pub mod timing;
pub mod trace;
pub mod transport;
