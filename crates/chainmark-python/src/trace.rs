//! Bindings of the log decoder: an order in as JSON, a summary out as JSON.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use chainmark_trace::control::Control;
use chainmark_trace::error::ReadError;
use chainmark_trace::host::{HostRequest, decode_host};
use chainmark_trace::reader;
use chainmark_trace::timeline::Clock;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;

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
        let order: HostRequest = serde_json::from_str(order_json).map_err(|error| {
            let hint = "see crates/chainmark-trace/src/host.rs for what it holds";
            PyValueError::new_err(format!("the order for a host cannot be read: {error}\nhint: {hint}"))
        })?;
        let clock = order.clock().map_err(|error| PyValueError::new_err(format!("{error}\nhint: {}", error.hint())))?;
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

#[pyfunction]
pub fn scan_head(py: Python<'_>, path: PathBuf, max_lines: u64) -> PyResult<String> {
    to_json(&py.detach(|| reader::scan_head(&path, max_lines)).map_err(to_python)?)
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
