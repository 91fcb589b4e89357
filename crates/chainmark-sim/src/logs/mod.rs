//! Logs of a cluster as its nodes would have written them, and the truth beside them.
//!
//! `order` says what is wanted, `fault` what is to go wrong. `run` lets the network live a few minutes at a time; then
//! every `host` plans (`plan`) and writes (`write`, `say`, `data`, `frame`) what it did in the order of its clock, many
//! hosts at a time, each into its own files (`sink`). `truth` records what really happened; its documentation tells the
//! columns. Nothing grows with the number of slots, and the bytes do not depend on the number of threads.

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
