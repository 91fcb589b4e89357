//! Why an HTTP load cannot be set up: one sentence that names the cause, and a hint.

use thiserror::Error;

/// Errors before the first request. What happens during the load is counted, not raised.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HttpError {
    #[error("the configuration of the HTTP load is not valid: {reason}")]
    LoadConfig { reason: String },
    #[error("{name} is {value}; it must be {condition}")]
    Value { name: String, value: String, condition: &'static str },
    #[error("{url} is not a valid URL for a load test: {reason}")]
    Url { url: String, reason: &'static str },
    #[error("the host {host} cannot be resolved: {reason}")]
    Resolve { host: String, reason: String },
    #[error("the certificates of {source_name} cannot be used: {reason}")]
    Certificates { source_name: String, reason: String },
    #[error("the client's certificate or key in {source_name} cannot be used: {reason}")]
    Identity { source_name: String, reason: String },
    #[error("the load generator cannot use the operating system's {what}: {reason}")]
    OperatingSystem { what: &'static str, reason: String },
    #[error("{connections} connections need more open files than the {limit} that this process may have")]
    OpenFiles { connections: u64, limit: u64 },
    #[error("a text of {bytes} bytes is not a histogram: {reason}")]
    Histogram { bytes: usize, reason: String },
    #[error("the measurements of a generator cannot be read: {reason}")]
    Share { reason: String },
    #[error("{what} was called on a load that {state}")]
    State { what: &'static str, state: &'static str },
    #[error("the counts of the load do not add up: {what}")]
    RequestCounts { what: String },
}

impl HttpError {
    /// What to do about it, in one sentence.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::LoadConfig { .. } => "see crates/chainmark-load/src/http/order.rs for the fields",
            Self::Value { .. } => "correct the configuration",
            Self::Url { .. } => {
                "give http://host:port, https://host:port or unix:/path, and a path if all requests share one"
            }
            Self::Resolve { .. } => "check the spelling of the host, and that this machine can resolve names",
            Self::Certificates { .. } => {
                "give a PEM file with the authority's certificate, or skip certificate verification"
            }
            Self::Identity { .. } => "give PEM files: the certificate with its chain, and the key without a password",
            Self::OperatingSystem { .. } => "raise the limit of open files or threads",
            Self::OpenFiles { .. } => "raise the limit with `ulimit -n`, or use fewer connections",
            Self::Histogram { .. } => "give the base64 text of an HdrHistogram in V2 form",
            Self::Share { .. } => "use the same version of chainmark for all generators",
            Self::State { .. } => "create a new object for each load",
            Self::RequestCounts { .. } => "please report this: results that do not add up are not shown",
        }
    }

    /// Whether the network is the cause, and not the order.
    pub fn is_connection(&self) -> bool {
        matches!(self, Self::Resolve { .. })
    }
}

pub(super) fn refused(what: &'static str, error: impl std::fmt::Display) -> HttpError {
    HttpError::OperatingSystem { what, reason: error.to_string() }
}
