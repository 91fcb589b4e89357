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
    /// Lines were lost or counted twice: a defect of the reader.
    #[error("the {what} do not add up: {whole} in all, {parts} in the classes")]
    Sums { what: &'static str, whole: u64, parts: u64 },
}

impl ReadError {
    pub fn storage(path: &Path, source: io::Error) -> Self {
        Self::Storage { path: path.to_owned(), source }
    }
}

pub type Result<T> = std::result::Result<T, ReadError>;
