//! Bindings of the HTTP load: an order in as JSON, a result out as a dictionary.

use chainmark_load::http::{self, HttpError, HttpResult, LoadConfig, Outcome, Records};
use pyo3::exceptions::{PyConnectionError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::Serialize;
use std::time::Duration;

const SIGNAL_PERIOD: Duration = Duration::from_millis(20);

fn to_python(error: HttpError) -> PyErr {
    let message = format!("{error}\nhint: {}", error.hint());
    if error.is_connection() { PyConnectionError::new_err(message) } else { PyValueError::new_err(message) }
}

fn to_json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| {
        PyValueError::new_err(format!("the result cannot be written: {error}\nhint: please report this"))
    })
}

#[pyclass(frozen, module = "chainmark._native")]
pub struct HttpLoad(http::HttpLoad);

#[pymethods]
impl HttpLoad {
    #[new]
    fn new(order_json: &str) -> PyResult<Self> {
        let load = LoadConfig::from_json(order_json).and_then(http::HttpLoad::new);
        Ok(Self(load.map_err(to_python)?))
    }

    #[pyo3(signature = (begin_ns = None))]
    fn start(&self, py: Python<'_>, begin_ns: Option<i64>) -> PyResult<()> {
        py.detach(|| self.0.start_at(begin_ns)).map_err(to_python)
    }

    fn progress(&self) -> PyResult<String> {
        to_json(&self.0.progress())
    }

    fn running(&self) -> bool {
        self.0.is_running()
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.wait(py)?;
        let result = py.detach(|| self.0.finish()).map_err(to_python)?;
        to_dict(py, &result)
    }

    fn finish_share(&self, py: Python<'_>) -> PyResult<String> {
        self.wait(py)?;
        let outcome = py.detach(|| self.0.finish_share()).map_err(to_python)?;
        py.detach(|| to_json(&outcome))
    }
}

impl HttpLoad {
    /// In steps, so that Ctrl-C reaches a script that waits here; the load stays finishable.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        while self.0.is_running() {
            py.check_signals()?;
            py.detach(|| std::thread::sleep(SIGNAL_PERIOD));
        }
        Ok(())
    }
}

/// What several generators measured, as `HttpLoad.finish` says it of one.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a binding are values")]
pub fn merge_http_loads<'py>(
    py: Python<'py>,
    order_json: &str,
    begin_ns: i64,
    outcomes: Vec<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let result = py.detach(|| {
        let outcomes: Result<Vec<_>, _> = outcomes.iter().map(|text| Outcome::from_json(text)).collect();
        http::merge(&LoadConfig::from_json(order_json)?, begin_ns, outcomes?)
    });
    to_dict(py, &result.map_err(to_python)?)
}

fn to_dict<'py>(py: Python<'py>, result: &HttpResult) -> PyResult<Bound<'py, PyAny>> {
    let dict = py.import("json")?.call_method1("loads", (to_json(result)?,))?;
    let records = result.records.as_ref().map(|records| columns(py, records)).transpose()?;
    dict.set_item("records", records)?;
    Ok(dict)
}

fn columns<'py>(py: Python<'py>, records: &Records) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    let put = |name: &str, bytes: Vec<u8>| columns.set_item(name, PyBytes::new(py, &bytes));
    put("due_ns", little_endian(&records.due_ns, i64::to_le_bytes))?;
    put("latency_ns", little_endian(&records.latency_ns, i64::to_le_bytes))?;
    put("service_ns", little_endian(&records.service_ns, i64::to_le_bytes))?;
    put("request", little_endian(&records.request, u32::to_le_bytes))?;
    put("class", records.class.clone())?;
    Ok(columns)
}

fn little_endian<T: Copy, const N: usize>(values: &[T], to_bytes: fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| to_bytes(value)).collect()
}

/// Names of the classes in records, by number.
#[pyfunction]
pub fn http_record_classes() -> Vec<&'static str> {
    http::record_classes()
}

#[pyclass(module = "chainmark._native")]
pub struct Histogram(http::Histogram);

#[pymethods]
impl Histogram {
    #[new]
    #[pyo3(signature = (base64 = None))]
    fn new(base64: Option<&str>) -> PyResult<Self> {
        let histogram = base64.map_or_else(|| Ok(http::Histogram::default()), http::Histogram::from_base64);
        Ok(Self(histogram.map_err(to_python)?))
    }

    fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }

    fn count_over(&self, time_s: f64) -> u64 {
        self.0.count_over(time_s)
    }

    fn quantile(&self, share: f64) -> Option<f64> {
        self.0.quantile(share)
    }

    fn n(&self) -> u64 {
        self.0.len()
    }

    fn to_base64(&self) -> String {
        self.0.to_base64()
    }
}
