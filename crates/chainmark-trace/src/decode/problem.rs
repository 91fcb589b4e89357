//! Why a line is malformed.

use std::fmt;

use crate::decode::MAX_LINE;
use crate::json::Fault;

/// Why a line is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    Json(Fault),
    Utf8,
    TooLong,
    Wrapper(&'static str),
    /// A member that every log object has is missing or of another type.
    Envelope {
        key: &'static str,
        wanted: &'static str,
    },
    /// The same of a member of `data`.
    Body {
        key: &'static str,
        wanted: &'static str,
    },
}

impl Problem {
    /// Whether the line is not JSON, or not text.
    pub fn is_syntax(&self) -> bool {
        matches!(self, Self::Json(_) | Self::Utf8)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(fault) => fault.fmt(formatter),
            Self::Utf8 => formatter.write_str("not valid UTF-8"),
            Self::TooLong => write!(formatter, "longer than {} MiB", MAX_LINE >> 20),
            Self::Wrapper(reason) => formatter.write_str(reason),
            Self::Envelope { key, wanted } => write!(formatter, "`{key}` is missing or not {wanted}"),
            Self::Body { key, wanted } => write!(formatter, "`data.{key}` is missing or not {wanted}"),
        }
    }
}
