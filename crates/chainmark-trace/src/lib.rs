//! Logs of cardano-node: bytes to typed events, and one host's events to its slot records and the timelines of its
//! blocks.

pub mod accounting;
pub mod block_timelines;
pub mod columns;
pub mod control;
pub mod decode;
pub mod error;
pub mod event;
pub mod events_out;
pub mod host;
pub mod input;
pub mod json;
pub mod key;
pub mod links;
pub mod message;
pub mod pages;
pub mod reader;
pub mod recent;
pub mod resources;
pub mod rounds;
pub mod text;
pub mod time;
pub mod time_filter;
pub mod timeline;
pub mod usage;
pub mod wrapper;
