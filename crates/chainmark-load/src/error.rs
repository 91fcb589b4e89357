//! The errors of this crate: one sentence that names the cause, and a hint.

use thiserror::Error;

/// Why a load or an observation could not be set up.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    #[error("transaction size of {size_bytes} bytes is odd; the nearest possible sizes are {lower} and {upper} bytes")]
    OddSize { size_bytes: u64, lower: u64, upper: u64 },
    #[error(
        "transaction size of {size_bytes} bytes is too small for {connections} connections at {rate} transactions per \
         second; the smallest possible sizes are {smallest} and {next} bytes"
    )]
    SizeTooSmall { size_bytes: u64, connections: u64, rate: u64, smallest: u64, next: u64 },
    #[error(
        "transaction size of {size_bytes} bytes is too large; the largest possible sizes are {previous} and {largest} \
         bytes"
    )]
    SizeTooLarge { size_bytes: u64, previous: u64, largest: u64 },
    #[error(
        "transaction size of {size_bytes} bytes is too small for a bank send; the smallest size is {smallest} bytes"
    )]
    SendTooSmall { size_bytes: u32, smallest: u32 },
    #[error("payload time of {time_ns} ns is before 1970")]
    TimeBeforeEpoch { time_ns: i64 },
    #[error("{name} is {value}; it must be {condition}")]
    Argument { name: &'static str, value: String, condition: &'static str },
    #[error("the load would offer {offered} transactions, more than the {limit} that one load can record")]
    TooManyTransactions { offered: u128, limit: u64 },
    #[error("cannot connect to {url}: {reason}")]
    Connect { url: String, reason: String },
    #[error("{url} did not confirm the subscription to {query}: {reason}")]
    Subscribe { url: String, query: String, reason: String },
    #[error("the load generator cannot use the operating system's {what}: {reason}")]
    OperatingSystem { what: &'static str, reason: String },
    #[error("{what} was called on a {object} that {state}")]
    State { what: &'static str, object: &'static str, state: &'static str },
}

impl LoadError {
    /// What to do about it, in one sentence.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::OddSize { .. } => "a transaction is two characters and the hexadecimal digits of its payload",
            Self::SizeTooSmall { .. } => "the experiment, the time and one byte of padding must fit at any moment",
            Self::SizeTooLarge { .. } => "the original load tool has the same limit",
            Self::SendTooSmall { .. } => "its addresses, amounts, key and signature must fit; the rest is a memo",
            Self::TimeBeforeEpoch { .. } => "give nanoseconds since 1970-01-01T00:00:00Z",
            Self::Argument { .. } => "correct the argument",
            Self::TooManyTransactions { .. } => "lower the rate or the duration, or run several loads in turn",
            Self::Connect { .. } => {
                "check that the node runs and that the URL looks like ws://host:26657/websocket; TLS is not supported"
            }
            Self::Subscribe { .. } => "check the query, and that the node accepts another subscription",
            Self::OperatingSystem { .. } => "raise the limit of open files or threads",
            Self::State { .. } => "create a new object for each load or observation",
        }
    }

    /// Whether the network is the cause, and not an argument.
    pub fn is_connection(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Subscribe { .. })
    }
}
