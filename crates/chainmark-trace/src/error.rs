//! What can stop the reading of a log; a bad line cannot.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

#[derive(Debug, Error)]
pub enum ReadError {
    #[error("{} cannot be read or written: {source}", path.display())]
    Storage { path: PathBuf, source: io::Error },
    /// A compressed file that ends early or is no such file.
    #[error("{} is damaged: {message}", path.display())]
    Damaged { path: PathBuf, message: String },
    #[error("the reading was interrupted")]
    Cancelled,
}

impl ReadError {
    pub fn storage(path: &Path, source: io::Error) -> Self {
        Self::Storage { path: path.to_owned(), source }
    }
}

pub type Result<T> = std::result::Result<T, ReadError>;
