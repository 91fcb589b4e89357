//! Load on HTTP/1.1 and HTTP/2 servers, and its results.
//!
//! In a closed loop each client sends its next request as soon as it has its response. In an open loop requests are due
//! by a schedule, whatever the outcome of earlier ones; latency is measured from the due time, and unsent requests are
//! counted.
//!
//! One thread drives many connections with its own event queue; threads share only a few counters.

#![forbid(unsafe_code)]

pub mod answer;
mod body;
mod carrier;
mod check;
mod classes;
mod coding;
mod connection;
mod course;
mod dial;
mod error;
mod failure;
mod histogram;
mod io;
mod judge;
mod load;
mod order;
mod pace;
mod pipe;
mod plan;
mod request;
mod result;
mod series;
mod session;
mod sessions;
mod share;
mod stream;
mod tally;
mod target;
mod tls;
mod tunnel;
mod worker;

pub use classes::ClassReport;
pub use error::HttpError;
pub use histogram::{Histogram, Times};
pub use load::{HttpLoad, HttpProgress};
pub use order::LoadConfig;
pub use result::{Connections, Generator, HttpResult};
pub use series::Columns;
pub use share::{Outcome, merge};
pub use tally::{Records, RequestCounts, SlowRequest, record_classes};
