//! Bindings of the reader of profiles.

use chainmark_pprof::Stacks;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Read = (Vec<(String, String)>, i64, Vec<String>, Vec<Vec<usize>>, Vec<Vec<i64>>);

#[pyfunction]
pub fn read_pprof(py: Python<'_>, content: &[u8]) -> PyResult<Read> {
    let Stacks { kinds, duration_ns, functions, stacks, values } =
        py.detach(|| chainmark_pprof::read(content)).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((kinds, duration_ns, functions, stacks, values))
}
