//! Errors of a simulation request: every message names the cause.

/// An input from which no network can be simulated, or a path that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The scenario contradicts itself or nature. The second part says what to write instead.
    #[error("{message}\nhint: {hint}")]
    Impossible { message: String, hint: String },
    /// The scenario is not valid JSON, or a key is unknown or missing.
    #[error("the scenario cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Storage { path: String, source: std::io::Error },
    /// The caller cancelled the work.
    #[error("cancelled")]
    Cancelled,
}

impl SimulationError {
    pub fn impossible(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Impossible { message: message.into(), hint: hint.into() }
    }
}

pub type Result<T> = std::result::Result<T, SimulationError>;
