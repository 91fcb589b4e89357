//! Logs of a cluster as its nodes would have written them, and the ground truth next to them.
//!
//! `order` defines the request, `fault` the faults. `run` simulates the network a few minutes at a time; then every
//! `host` plans (`plan`) and writes (`write`, `say`, `data`, `frame`) its actions in the order of its clock, many hosts
//! at a time, each into its own files (`sink`). `truth` records the actual events; its documentation lists the columns.
//! Memory does not grow with the number of slots, and the bytes do not depend on the number of threads.

mod blocks;
mod canned;
mod damage;
mod data;
mod documents;
mod event;
pub mod fault;
mod frame;
mod host;
mod message;
pub mod order;
mod plan;
mod render;
mod resources;
mod rows;
mod run;
mod shared;
mod sink;
mod text;
mod transactions;
mod truth;
mod write;

pub use order::{Format, LogRequest};
pub use run::{ClusterLogs, Progress, Summary};
