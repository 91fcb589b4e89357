//! Bindings of the crate chainmark-load.

use chainmark_load::cometbft::BroadcastMethod;
use chainmark_load::cometbft::payload::{Payload, check_size};
use chainmark_load::cosmos::{self, SendConfig};
use chainmark_load::{Begin, Class, LoadConfig, LoadError, LoadResult, ScheduleKind, Share, Transactions, reference};
use pyo3::exceptions::{PyConnectionError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::Arc;
use std::time::Duration;

const SIGNAL_PERIOD: Duration = Duration::from_millis(20);

fn to_python(error: LoadError) -> PyErr {
    let message = format!("{error}\nhint: {}", error.hint());
    if error.is_connection() { PyConnectionError::new_err(message) } else { PyValueError::new_err(message) }
}

fn refused(name: &'static str, value: impl ToString, condition: &'static str) -> PyErr {
    to_python(LoadError::Argument { name, value: value.to_string(), condition })
}

/// A fixed amount of work, and its CPU time.
#[pyclass(module = "chainmark._native")]
pub struct ReferenceWork(reference::ReferenceWork);

#[pymethods]
impl ReferenceWork {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self(reference::ReferenceWork::new()?))
    }

    fn perform(&mut self, py: Python<'_>) -> PyResult<f64> {
        Ok(py.detach(|| self.0.perform())?.as_secs_f64())
    }
}

/// Seconds to nanoseconds; the range is the crate's to check.
fn to_ns(name: &'static str, value_s: f64) -> PyResult<i64> {
    let value_ns = (value_s * 1e9).round();
    if value_ns.is_finite() && value_ns.abs() < 9e18 {
        Ok(value_ns as i64)
    } else {
        Err(refused(name, value_s, "a number of seconds"))
    }
}

fn to_experiment_id(bytes: &[u8]) -> PyResult<[u8; 16]> {
    bytes.try_into().map_err(|_| refused("experiment_id", format!("{} bytes long", bytes.len()), "16 bytes long"))
}

#[pyfunction]
pub fn check_transaction_size(connections: u64, rate: u64, size_bytes: u64) -> PyResult<()> {
    check_size(connections, rate, size_bytes).map_err(to_python)
}

#[pyfunction]
pub fn encode_transaction<'py>(
    py: Python<'py>,
    connections: u64,
    rate: u64,
    size_bytes: u64,
    time_ns: i64,
    experiment_id: &[u8],
    seed: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let experiment_id = to_experiment_id(experiment_id)?;
    let payload = Payload { connections, rate, size_bytes, time_ns, experiment_id };
    Ok(PyBytes::new(py, &payload.encode(seed).map_err(to_python)?))
}

#[pyfunction]
pub fn decode_transaction<'py>(py: Python<'py>, transaction: &[u8]) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(payload) = Payload::decode(transaction) else { return Ok(None) };
    let decoded = PyDict::new(py);
    decoded.set_item("connections", payload.connections)?;
    decoded.set_item("rate", payload.rate)?;
    decoded.set_item("size_bytes", payload.size_bytes)?;
    decoded.set_item("time_ns", payload.time_ns)?;
    decoded.set_item("experiment_id", PyBytes::new(py, &payload.experiment_id))?;
    Ok(Some(decoded))
}

/// Name of every class in records, by number, and what it says of the node.
#[pyfunction]
pub fn transaction_classes() -> Vec<(&'static str, &'static str)> {
    Class::ALL.map(|class| (class.name(), class.answer().name())).to_vec()
}

#[pyclass(frozen, module = "chainmark._native")]
pub struct BankSends(Arc<cosmos::BankSends>);

#[pymethods]
impl BankSends {
    // The arguments are the Python API's, all by keyword.
    #[expect(clippy::too_many_arguments)]
    #[new]
    #[pyo3(signature = (*, chain_id, prefix, denom, fee, gas, size_bytes, connections, accounts_per_connection,
                        first_account_number, seed))]
    fn new(
        py: Python<'_>,
        chain_id: String,
        prefix: String,
        denom: String,
        fee: u64,
        gas: u64,
        size_bytes: u32,
        connections: u32,
        accounts_per_connection: u32,
        first_account_number: u64,
        seed: u64,
    ) -> PyResult<Self> {
        let config = SendConfig {
            chain_id,
            prefix,
            denom,
            fee,
            gas,
            size_bytes,
            connections,
            accounts_per_connection,
            first_account_number,
            seed,
        };
        let sends = py.detach(|| cosmos::BankSends::new(config)).map_err(to_python)?;
        Ok(Self(Arc::new(sends)))
    }

    fn addresses(&self) -> Vec<&str> {
        self.0.accounts().iter().map(|account| account.address.as_str()).collect()
    }

    fn transaction<'py>(
        &self,
        py: Python<'py>,
        account: usize,
        sequence: u64,
        amount: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if account >= self.0.accounts().len() {
            return Err(refused("account", account, "the number of one of the accounts"));
        }
        Ok(PyBytes::new(py, &self.0.transaction(account, sequence, amount)))
    }
}

/// The payload: bank sends, given bytes, or otherwise the load tool's.
fn transactions_of(
    sends: Option<&BankSends>,
    given: Option<Vec<Vec<Vec<u8>>>>,
    size_bytes: u32,
    experiment_id: &[u8],
) -> PyResult<Transactions> {
    Ok(match (sends, given) {
        (Some(sends), None) => Transactions::BankSends(sends.0.clone()),
        (None, Some(given)) => Transactions::Given(Arc::new(given)),
        (None, None) => Transactions::Payload { size_bytes, experiment_id: to_experiment_id(experiment_id)? },
        (Some(_), Some(_)) => return Err(refused("given", "not empty", "left out where there are bank sends")),
    })
}

#[pyclass(frozen, module = "chainmark._native")]
pub struct TransactionLoad(chainmark_load::TransactionLoad);

#[pymethods]
impl TransactionLoad {
    // The arguments are the Python API's, all by keyword.
    #[expect(clippy::too_many_arguments)]
    #[new]
    #[pyo3(signature = (*, targets, rate_per_connection, duration_s, size_bytes, method, schedule, seed, experiment_id,
                        answer_timeout_s, send_grace_s, bank_sends = None, given = None, share = (0, 0)))]
    fn new(
        targets: Vec<String>,
        rate_per_connection: u32,
        duration_s: f64,
        size_bytes: u32,
        method: &str,
        schedule: &str,
        seed: u64,
        experiment_id: &[u8],
        answer_timeout_s: f64,
        send_grace_s: f64,
        bank_sends: Option<PyRef<'_, BankSends>>,
        given: Option<Vec<Vec<Vec<u8>>>>,
        share: (u32, u32),
    ) -> PyResult<Self> {
        let config = LoadConfig {
            targets,
            share: Share { first: share.0, all: share.1 },
            rate_per_connection,
            duration_ns: to_ns("duration_s", duration_s)?,
            transactions: transactions_of(bank_sends.as_deref(), given, size_bytes, experiment_id)?,
            method: BroadcastMethod::from_name(method)
                .ok_or_else(|| refused("method", method, "broadcast_tx_sync or broadcast_tx_async"))?,
            schedule: ScheduleKind::from_name(schedule)
                .ok_or_else(|| refused("schedule", schedule, "even, poisson or burst"))?,
            seed,
            answer_timeout_ns: to_ns("answer_timeout_s", answer_timeout_s)?,
            send_grace_ns: to_ns("send_grace_s", send_grace_s)?,
        };
        Ok(Self(chainmark_load::TransactionLoad::new(config).map_err(to_python)?))
    }

    #[pyo3(signature = (start_delay_s = 0.1, begin_ns = None))]
    fn start(&self, py: Python<'_>, start_delay_s: f64, begin_ns: Option<i64>) -> PyResult<i64> {
        let begin = match begin_ns {
            Some(wall_ns) => Begin::At(wall_ns),
            None => Begin::After(to_ns("start_delay_s", start_delay_s)?),
        };
        py.detach(|| self.0.start(begin)).map_err(to_python)
    }

    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let progress = self.0.progress();
        let counts = PyDict::new(py);
        counts.set_item("offered", progress.offered)?;
        counts.set_item("due", progress.due)?;
        counts.set_item("sent", progress.sent)?;
        counts.set_item("answered", progress.answered)?;
        counts.set_item("accepted", progress.accepted)?;
        Ok(counts)
    }

    fn running(&self) -> bool {
        self.0.is_running()
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // In steps, so that Ctrl-C reaches a script that waits here; the load stays finishable.
        while self.0.is_running() {
            py.check_signals()?;
            py.detach(|| std::thread::sleep(SIGNAL_PERIOD));
        }
        let result = py.detach(|| self.0.finish()).map_err(to_python)?;
        to_dict(py, &result)
    }
}

fn to_dict<'py>(py: Python<'py>, result: &LoadResult) -> PyResult<Bound<'py, PyDict>> {
    let records = &result.records;
    let columns = PyDict::new(py);
    let put = |name: &str, bytes: Vec<u8>| columns.set_item(name, PyBytes::new(py, &bytes));
    put("connection", little_endian(&records.connection, |value| value.to_le_bytes()))?;
    put("sequence", little_endian(&records.sequence, |value| value.to_le_bytes()))?;
    put("due_ns", little_endian(&records.due_ns, |value| value.to_le_bytes()))?;
    put("sent_ns", little_endian(&records.sent_ns, |value| value.to_le_bytes()))?;
    put("answered_ns", little_endian(&records.answered_ns, |value| value.to_le_bytes()))?;
    put("class", records.class.clone())?;
    put("check_code", little_endian(&records.check_code, |value| value.to_le_bytes()))?;
    put("hash", records.hash.as_flattened().to_vec())?;
    put("size_bytes", little_endian(&records.size_bytes, |value| value.to_le_bytes()))?;
    columns.set_item("rows", records.rows())?;
    columns.set_item("cpu_s", result.cpu_s)?;
    columns.set_item("wall_s", result.wall_s)?;
    columns.set_item("reconnects", result.reconnects)?;
    columns.set_item("late_answers", result.late_answers)?;
    columns.set_item("unmatched_answers", result.unmatched_answers)?;
    columns.set_item("errors", &result.errors)?;
    Ok(columns)
}

fn little_endian<T: Copy, const N: usize>(values: &[T], to_bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| to_bytes(value)).collect()
}

#[pyclass(frozen, module = "chainmark._native")]
pub struct EventObserver(chainmark_load::EventObserver);

#[pymethods]
impl EventObserver {
    #[new]
    fn new(url: &str, query: &str) -> PyResult<Self> {
        Ok(Self(chainmark_load::EventObserver::new(url, query).map_err(to_python)?))
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.start()).map_err(to_python)
    }

    fn stop<'py>(&self, py: Python<'py>) -> PyResult<Vec<(i64, Bound<'py, PyBytes>)>> {
        let events = py.detach(|| self.0.stop()).map_err(to_python)?;
        Ok(events.into_iter().map(|event| (event.received_ns, PyBytes::new(py, &event.message))).collect())
    }

    fn reconnects(&self) -> u64 {
        self.0.reconnects()
    }
}
