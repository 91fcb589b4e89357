//! Logs of cardano-node: bytes to typed events, and one host's events to its slot records and the lives of its blocks.

pub mod columns;
pub mod error;
pub mod event;
pub mod events_out;
pub mod lives;
pub mod resources;
pub mod timeline;
