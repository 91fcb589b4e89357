//! Bindings of the log writer: an order in as JSON, a summary out as JSON.

use std::path::PathBuf;

use chainmark_sim::error::SimulationError;
use chainmark_sim::logs::fault::KINDS;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// Logs of a cluster that are to be written to a folder.
#[pyclass(frozen, module = "chainmark._native")]
pub struct ClusterLogs(chainmark_sim::logs::ClusterLogs);

#[pymethods]
impl ClusterLogs {
    #[new]
    #[pyo3(signature = (order_json, directory, threads, replace))]
    fn new(order_json: &str, directory: PathBuf, threads: usize, replace: bool) -> PyResult<Self> {
        let logs = chainmark_sim::logs::ClusterLogs::new(order_json, &directory, threads, replace);
        Ok(Self(logs.map_err(to_python)?))
    }

    fn run(&self, py: Python<'_>) -> PyResult<Option<String>> {
        match py.detach(|| self.0.run().and_then(|summary| summary.to_json())) {
            Err(SimulationError::Cancelled) => Ok(None),
            result => result.map(Some).map_err(to_python),
        }
    }

    fn progress(&self) -> (f64, u64, u64) {
        self.0.progress.get()
    }

    fn cancel(&self) {
        self.0.progress.cancel();
    }
}

#[pyfunction]
pub fn fault_kinds() -> Vec<(&'static str, &'static str, &'static str)> {
    KINDS.iter().map(|info| (info.name, info.meaning, info.example)).collect()
}

fn to_python(error: SimulationError) -> PyErr {
    match error {
        SimulationError::Storage { path, source } => {
            PyOSError::new_err((source.raw_os_error().unwrap_or(0), source.to_string(), path))
        }
        other => crate::simulation::to_python(other),
    }
}
