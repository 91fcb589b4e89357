//! Bindings of zstd: files that are written and read piece by piece.

use std::fs::File;
use std::io::{BufReader, Error, ErrorKind, Read, Write};
use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes};
use zstd::stream::{read::Decoder, write::Encoder};

const LEVEL: i32 = 3;
/// Files of `zstd --long` need more than the usual window.
const WINDOW_LOG_MAX: u32 = 31;

/// A file that is compressed while it is written.
#[pyclass(module = "chainmark._native")]
pub struct ZstdWriter {
    path: PathBuf,
    encoder: Option<Encoder<'static, File>>,
}

#[pymethods]
impl ZstdWriter {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        match File::create(&path).and_then(|file| Encoder::new(file, LEVEL)) {
            Ok(encoder) => Ok(Self { path, encoder: Some(encoder) }),
            Err(error) => Err(to_python(&error, path)),
        }
    }

    fn write(&mut self, py: Python<'_>, content: &[u8]) -> PyResult<()> {
        let encoder = self.encoder.as_mut().ok_or_else(|| PyValueError::new_err("the file is closed"))?;
        py.detach(|| encoder.write_all(content)).map_err(|error| to_python(&error, self.path.clone()))
    }

    fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(encoder) = self.encoder.take() else { return Ok(()) };
        py.detach(|| encoder.finish()).map(drop).map_err(|error| to_python(&error, self.path.clone()))
    }

    fn __enter__(own: PyRef<'_, Self>) -> PyRef<'_, Self> {
        own
    }

    fn __exit__(
        &mut self,
        py: Python<'_>,
        _type: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }
}

/// What a compressed file holds, frame after frame; one that was cut off ends there.
#[pyclass(module = "chainmark._native")]
pub struct ZstdReader {
    path: PathBuf,
    decoder: Decoder<'static, BufReader<File>>,
}

#[pymethods]
impl ZstdReader {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        match File::open(&path).and_then(decoder_of) {
            Ok(decoder) => Ok(Self { path, decoder }),
            Err(error) => Err(to_python(&error, path)),
        }
    }

    fn read<'py>(&mut self, py: Python<'py>, size_bytes: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut content = vec![0; size_bytes];
        let decoder = &mut self.decoder;
        match py.detach(|| decoder.read(&mut content)) {
            Ok(length) => Ok(PyBytes::new(py, &content[..length])),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(PyBytes::new(py, &[])),
            Err(error) => Err(to_python(&error, self.path.clone())),
        }
    }
}

fn decoder_of(file: File) -> std::io::Result<Decoder<'static, BufReader<File>>> {
    let mut decoder = Decoder::new(file)?;
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    Ok(decoder)
}

/// What the operating system says is an OSError; what zstd says of the content, a ValueError.
fn to_python(error: &Error, path: PathBuf) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string(), path)),
        None => PyValueError::new_err(error.to_string()),
    }
}
