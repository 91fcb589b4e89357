//! Bindings of the log decoder: an order in as JSON, a summary out as JSON.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use chainmark_trace::control::Control;
use chainmark_trace::error::ReadError;
use chainmark_trace::host::{HostRequest, decode_host};
use chainmark_trace::reader::{self, RangeRequest, look_through_range};
use chainmark_trace::timeline::Clock;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One host's logs that are to be read.
#[pyclass(frozen, module = "chainmark._native")]
pub struct TraceDecoder {
    order: HostRequest,
    clock: Clock,
    control: Control,
}

#[pymethods]
impl TraceDecoder {
    #[new]
    fn new(order_json: &str) -> PyResult<Self> {
        let order: HostRequest = from_json(order_json, "a host", "crates/chainmark-trace/src/host.rs")?;
        let clock = order.clock().map_err(|error| refused(&error, error.hint()))?;
        Ok(Self { order, clock, control: Control::default() })
    }

    fn run(&self, py: Python<'_>) -> PyResult<Option<String>> {
        match py.detach(|| decode_host(&self.order, self.clock, &self.control)) {
            Err(ReadError::Cancelled) => Ok(None),
            result => to_json(&result.map_err(to_python)?).map(Some),
        }
    }

    fn progress(&self) -> (u64, u64) {
        (self.control.bytes.load(Ordering::Relaxed), self.control.lines.load(Ordering::Relaxed))
    }

    fn cancel(&self) {
        self.control.cancel();
    }
}

/// One range of a log that is to be looked through.
#[pyclass(frozen, module = "chainmark._native")]
pub struct RangeDecoder {
    order: RangeRequest,
    control: Control,
}

#[pymethods]
impl RangeDecoder {
    #[new]
    fn new(order_json: &str) -> PyResult<Self> {
        let order: RangeRequest = from_json(order_json, "a range", "crates/chainmark-trace/src/reader/ranges.rs")?;
        order.check().map_err(|error| refused(&error, error.hint()))?;
        Ok(Self { order, control: Control::default() })
    }

    fn run(&self, py: Python<'_>) -> PyResult<Option<String>> {
        match py.detach(|| look_through_range(&self.order, &self.control)) {
            Err(ReadError::Cancelled) => Ok(None),
            result => Ok(Some(result.map_err(to_python)?.to_hex().to_string())),
        }
    }

    fn progress(&self) -> (u64, u64) {
        (self.control.bytes.load(Ordering::Relaxed), self.control.lines.load(Ordering::Relaxed))
    }

    fn cancel(&self) {
        self.control.cancel();
    }
}

#[pyfunction]
pub fn scan_head(py: Python<'_>, path: PathBuf, max_lines: u64) -> PyResult<String> {
    to_json(&py.detach(|| reader::scan_head(&path, max_lines)).map_err(to_python)?)
}

fn from_json<T: DeserializeOwned>(order_json: &str, of: &str, description: &str) -> PyResult<T> {
    serde_json::from_str(order_json).map_err(|error| {
        refused(&format!("the order for {of} cannot be read: {error}"), &format!("see {description} for what it holds"))
    })
}

fn refused(error: &dyn Display, hint: &str) -> PyErr {
    PyValueError::new_err(format!("{error}\nhint: {hint}"))
}

fn to_json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| {
        PyValueError::new_err(format!("a summary cannot be written: {error}\nhint: please report this"))
    })
}

fn to_python(error: ReadError) -> PyErr {
    match error {
        ReadError::Storage { path, source } => {
            let text = source.to_string();
            // Rust adds the number, which Python adds too.
            let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
            PyOSError::new_err((source.raw_os_error().unwrap_or(0), reason, path.to_string_lossy().into_owned()))
        }
        other => PyValueError::new_err(format!("{other}\nhint: {}", other.hint())),
    }
}
