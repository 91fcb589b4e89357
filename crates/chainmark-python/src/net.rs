//! Bindings of the crate chainmark-net.

use std::net::Ipv4Addr;
use std::time::Duration;

use chainmark_net::round_trips::{self, End, Measurement};
use chainmark_net::switch::{Cut, DelaySwitch as Switch, Port, SwitchConfig};
use chainmark_net::{LineSettings, Namespace, NetError, Stats};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

fn to_python(error: NetError) -> PyErr {
    let message = format!("{error}\nhint: {}", error.hint());
    if error.is_argument() { PyValueError::new_err(message) } else { PyOSError::new_err(message) }
}

fn to_address(text: &str) -> PyResult<Ipv4Addr> {
    text.parse().map_err(|_| {
        let value = text.to_owned();
        to_python(NetError::Argument { name: "an address", value, condition: "an IPv4 address" })
    })
}

fn to_addresses(texts: &[String]) -> PyResult<Vec<Ipv4Addr>> {
    texts.iter().map(|text| to_address(text)).collect()
}

/// Seconds to whole nanoseconds; negative values and NaN become the largest, which the crate refuses.
fn to_ns(value_s: f64) -> u64 {
    if value_s >= 0.0 { (value_s * 1e9).round() as u64 } else { u64::MAX }
}

/// A network namespace without a name.
#[pyclass(frozen, module = "chainmark._native")]
pub struct NetworkNamespace(Namespace);

#[pymethods]
impl NetworkNamespace {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        py.detach(Namespace::new).map(Self).map_err(to_python)
    }

    fn descriptor(&self) -> i32 {
        self.0.descriptor()
    }
}

/// A switch between namespaces.
#[pyclass(frozen, module = "chainmark._native")]
pub struct DelaySwitch(Switch);

#[pymethods]
impl DelaySwitch {
    // The arguments are the Python API's, all by keyword.
    #[expect(clippy::too_many_arguments)]
    #[new]
    #[pyo3(signature = (*, namespaces, addresses, host_address, host_device, one_way_s, jitter_share, loss,
                        bandwidth_bps, seed, mtu))]
    fn new(
        py: Python<'_>,
        namespaces: Vec<Py<NetworkNamespace>>,
        addresses: Vec<String>,
        host_address: &str,
        host_device: &str,
        one_way_s: Vec<Vec<f64>>,
        jitter_share: f64,
        loss: f64,
        bandwidth_bps: Option<u64>,
        seed: u64,
        mtu: u16,
    ) -> PyResult<Self> {
        let addresses = to_addresses(&addresses)?;
        let host = to_address(host_address)?;
        let nodes = namespaces.len();
        if addresses.len() != nodes || one_way_s.len() != nodes || one_way_s.iter().any(|row| row.len() != nodes) {
            let condition = "one for each namespace, and delays one for each ordered pair";
            let value = addresses.len().to_string();
            return Err(to_python(NetError::Argument { name: "the number of addresses", value, condition }));
        }
        let mut ports: Vec<Port> = namespaces
            .iter()
            .zip(addresses)
            .map(|(namespace, address)| Port { namespace: Some(&namespace.get().0), device: "wan0", address })
            .collect();
        ports.push(Port { namespace: None, device: host_device, address: host });
        let line = |from: usize, to: usize| match one_way_s.get(from).and_then(|row| row.get(to)) {
            Some(&delay_s) => LineSettings { delay_ns: to_ns(delay_s), jitter_share, loss, bandwidth_bps },
            None => LineSettings::default(),
        };
        let lines = (0..ports.len() * ports.len()).map(|pair| line(pair / ports.len(), pair % ports.len())).collect();
        let config = SwitchConfig { ports, lines, spared: Some(nodes), mtu, seed };
        py.detach(|| Switch::start(&config)).map(Self).map_err(to_python)
    }

    fn cut(&self, py: Python<'_>, node: usize, reset: bool) -> PyResult<()> {
        py.detach(|| self.0.cut(node, how(reset))).map_err(to_python)
    }

    fn mend(&self, py: Python<'_>, node: usize) -> PyResult<()> {
        py.detach(|| self.0.mend(node)).map_err(to_python)
    }

    fn partition(&self, py: Python<'_>, mut groups: Vec<u32>, reset: bool) -> PyResult<()> {
        // The host's own end belongs to no group, and no cut concerns it.
        groups.push(u32::MAX);
        py.detach(|| self.0.partition(&groups, how(reset))).map_err(to_python)
    }

    fn heal(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.heal()).map_err(to_python)
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.0.stats()).map_err(to_python)?;
        to_dict(py, &stats)
    }

    fn stop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.0.stop()).map_err(to_python)?;
        to_dict(py, &stats)
    }
}

fn how(reset: bool) -> Cut {
    if reset { Cut::Reset } else { Cut::Silent }
}

fn to_dict<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let (counts, error) = (&stats.counts, &stats.error);
    let values = PyDict::new(py);
    for (name, value) in [
        ("read", counts.read),
        ("read_bytes", counts.read_bytes),
        ("delivered", counts.delivered),
        ("delivered_bytes", counts.delivered_bytes),
        ("lost", counts.lost),
        ("no_route", counts.no_route),
        ("cut", counts.cut),
        ("queue_full", counts.queue_full),
        ("write_failed", counts.write_failed),
        ("not_ipv4", counts.not_ipv4),
        ("queued", counts.queued),
        ("resets", counts.resets),
        ("unread", stats.unread),
        ("delayed", error.packets),
        ("error_p50_ns", error.p50_ns),
        ("error_p99_ns", error.p99_ns),
        ("error_max_ns", error.max_ns),
        ("cpu_ns", stats.cpu_ns),
        ("realtime", u64::from(stats.realtime)),
    ] {
        values.set_item(name, value)?;
    }
    Ok(values)
}

#[pyfunction]
#[pyo3(signature = (*, namespaces, addresses, pings, rate_per_s, patience_s))]
pub fn measure_round_trips(
    py: Python<'_>,
    namespaces: Vec<Option<Py<NetworkNamespace>>>,
    addresses: Vec<String>,
    pings: u32,
    rate_per_s: u32,
    patience_s: f64,
) -> PyResult<Vec<Vec<u64>>> {
    let addresses = to_addresses(&addresses)?;
    let ends: Vec<End> = namespaces
        .iter()
        .map(|namespace| namespace.as_ref().map(|namespace| &namespace.get().0))
        .zip(addresses)
        .collect();
    let patience = Duration::from_nanos(to_ns(patience_s));
    py.detach(|| round_trips::measure(&ends, Measurement { pings, rate_per_s, patience })).map_err(to_python)
}
