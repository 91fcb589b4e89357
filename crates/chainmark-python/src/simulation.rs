//! Bindings of the simulation: scenarios in as JSON, averages out.

use chainmark_sim::error::SimulationError;
use chainmark_sim::model::Scenario;
use chainmark_sim::prediction::{BatchRequest, Batches, simulate};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub fn to_python(error: SimulationError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Averages over batches of simulated blocks.
#[pyclass(frozen)]
pub struct SimulatedBatches {
    batches: Batches,
}

#[pymethods]
impl SimulatedBatches {
    #[getter]
    fn figures(&self) -> Vec<String> {
        self.batches.figures.clone()
    }

    #[getter]
    fn normal(&self) -> Vec<Vec<f64>> {
        self.batches.normal.clone()
    }

    #[getter]
    fn slow(&self) -> Vec<Vec<f64>> {
        self.batches.slow.clone()
    }

    #[getter]
    fn events(&self) -> u64 {
        self.batches.events
    }

    #[getter]
    fn blocks(&self) -> u64 {
        self.batches.blocks
    }
}

#[pyfunction]
pub fn simulate_batches(
    py: Python<'_>,
    scenario_json: &str,
    blocks_per_batch: usize,
    first_batch: usize,
    batches: usize,
    threads: usize,
) -> PyResult<SimulatedBatches> {
    let scenario = Scenario::from_json(scenario_json).map_err(to_python)?;
    let order = BatchRequest { blocks_per_batch, first_batch, batches, threads };
    let batches = py.detach(|| simulate(&scenario, &order)).map_err(to_python)?;
    Ok(SimulatedBatches { batches })
}
