//! What can stop the reading of a log; a bad line cannot.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

#[derive(Debug, Error)]
pub enum ReadError {
    #[error("{} cannot be read or written: {source}", path.display())]
    Storage { path: PathBuf, source: io::Error },
    /// A compressed file that ends early or is invalid.
    #[error("{} is damaged: {message}", path.display())]
    Damaged { path: PathBuf, message: String },
    #[error("the reading was interrupted")]
    Cancelled,
    /// Lines were lost or counted twice: a defect of the reader.
    #[error("the {what} do not add up: {whole} in all, {parts} in the classes")]
    Sums { what: &'static str, whole: u64, parts: u64 },
}

impl ReadError {
    pub fn storage(path: &Path, source: io::Error) -> Self {
        Self::Storage { path: path.to_owned(), source }
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Self::Storage { .. } => "check the path, the permissions and the free space",
            Self::Damaged { .. } => "copy the file from the host again",
            Self::Cancelled => "start it again to have the result",
            Self::Sums { .. } => "this is a defect; please report it with the file",
        }
    }
}

pub type Result<T> = std::result::Result<T, ReadError>;
