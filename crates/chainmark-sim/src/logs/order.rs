//! The request for logs: the network, its duration, the formats of its hosts, the faults.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cluster::Cluster;
use crate::error::{Result, SimulationError};
use crate::model::Scenario;

const NS_PER_S: f64 = 1e9;
const SLOTS_MAX: u64 = 1_000_000_000;

/// How a host writes its log: the node versions that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// The older logging library: times cut to 10 ms, forging messages nested, the ledger's figures at the loop start.
    #[serde(rename = "legacy")]
    Legacy,
    /// Up to 10.4: the ledger's figures at the loop start, no `LedgerMetrics`.
    #[serde(rename = "10.4")]
    V10_4,
    /// 10.5 and 10.6.
    #[serde(rename = "10.5")]
    V10_5,
    /// From 10.7 on: the selected chain is described by its suffix.
    #[serde(rename = "10.7")]
    V10_7,
}

impl Format {
    pub const NAMES: [(&'static str, Self); 4] =
        [("10.5", Self::V10_5), ("10.7", Self::V10_7), ("10.4", Self::V10_4), ("legacy", Self::Legacy)];

    /// The time as it is printed: legacy logs cut it to 10 ms.
    #[inline]
    pub fn printed_ns(self, ns: i64) -> i64 {
        if self == Self::Legacy { ns - ns.rem_euclid(10_000_000) } else { ns }
    }
}

/// The format of some hosts; of all when none is named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFormat {
    pub format: Format,
    #[serde(default)]
    pub hosts: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Zstd,
}

impl Compression {
    pub fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }
}

/// When a log file is closed and the next one begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Rotation {
    Lines(u64),
    /// Of text, before compression.
    Bytes(u64),
}

/// The constants of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    pub slot_length_s: f64,
    pub active_slots_coefficient: f64,
    pub epoch_slots: u64,
    pub security_parameter: u64,
}

/// What fills blocks and mempools, and what the process that does it uses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Offered to the whole network.
    pub tps: f64,
    /// When the first transaction is submitted.
    pub start_s: f64,
    pub transaction_bytes: u32,
    /// How many fit into a block.
    pub block_transactions: u64,
    pub utxo_entries: u64,
    pub delegators: u64,
    /// Means of a host: processor time in percent of a core, allocation in MiB/s, memory in MiB.
    pub mutator_percent: f64,
    pub allocation_mib_per_s: f64,
    pub heap_mib: f64,
    pub live_mib: f64,
}

/// All that a set of logs is made from.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogRequest {
    pub scenario: Scenario,
    pub slots: u64,
    pub chain: Chain,
    pub workload: Workload,
    /// Nanoseconds since 1970.
    pub system_start_ns: i64,
    #[serde(default)]
    pub formats: Vec<HostFormat>,
    #[serde(default)]
    pub compression: Compression,
    #[serde(default)]
    pub rotation: Option<Rotation>,
    /// As a user writes them: `crash:node-3@4000`.
    #[serde(default)]
    pub faults: Vec<String>,
    /// The content of `meta.json`.
    #[serde(default)]
    pub meta: Map<String, Value>,
}

impl LogRequest {
    /// Read an order and check what can be checked without the cluster.
    ///
    /// # Errors
    /// Not JSON, an unknown or missing key, or an impossible value.
    pub fn from_json(json: &str) -> Result<Self> {
        let order: Self = serde_json::from_str(json)?;
        order.scenario.check()?;
        order.check()?;
        Ok(order)
    }

    fn check(&self) -> Result<()> {
        let impossible = |message: String, hint: &str| Err(SimulationError::impossible(message, hint));
        let (w, c) = (&self.workload, &self.chain);
        if self.slots == 0 || self.slots > SLOTS_MAX {
            return impossible(format!("{} slots cannot be simulated", self.slots), "8000 are an epoch, 64000 a run");
        }
        if c.epoch_slots == 0 || c.security_parameter == 0 {
            return impossible(
                "an epoch and the security parameter must be at least 1".to_owned(),
                "the benchmarks have epochs of 8000 slots and a security parameter of 40",
            );
        }
        for (key, value, high) in [
            ("workload.tps", w.tps, 1e5),
            ("workload.start_s", w.start_s, 1e9),
            ("workload.mutator_percent", w.mutator_percent, 1e4),
            ("workload.allocation_mib_per_s", w.allocation_mib_per_s, 1e5),
            ("workload.heap_mib", w.heap_mib, 1e8),
            ("workload.live_mib", w.live_mib, 1e8),
        ] {
            if !(0.0..=high).contains(&value) {
                return impossible(format!("`{key}` is {value}"), "it must be a number that is not negative");
            }
        }
        if w.block_transactions == 0 || w.transaction_bytes == 0 {
            return impossible(
                "a block must hold at least one transaction of at least one byte".to_owned(),
                "value-only blocks hold about 240 transactions of 370 bytes",
            );
        }
        if matches!(self.rotation, Some(Rotation::Lines(0) | Rotation::Bytes(0))) {
            return impossible("files of nothing cannot be rotated".to_owned(), "`--rotate 500000` is usual");
        }
        Ok(())
    }

    /// The format of every host, by its number; the last entry that names it applies.
    ///
    /// # Errors
    /// An unknown host.
    pub fn format_by_host(&self, cluster: &Cluster) -> Result<Vec<Format>> {
        let mut formats = vec![Format::V10_5; cluster.hosts()];
        for entry in &self.formats {
            if entry.hosts.is_empty() {
                formats.fill(entry.format);
            }
            for name in &entry.hosts {
                formats[host_number(cluster, name)?] = entry.format;
            }
        }
        Ok(formats)
    }

    /// When a slot starts, in nanoseconds since the start of the network.
    pub fn slot_start_ns(&self, slot: u64) -> i64 {
        (slot as f64 * self.chain.slot_length_s * NS_PER_S) as i64
    }
}

/// The number of the host of that name.
///
/// # Errors
/// There is none.
pub fn host_number(cluster: &Cluster, name: &str) -> Result<usize> {
    cluster.names.iter().position(|known| known == name).ok_or_else(|| {
        let last = cluster.names.last().map_or("", String::as_str);
        SimulationError::impossible(
            format!("there is no host `{name}` in this cluster"),
            format!("its {} hosts are {} … {last}", cluster.hosts(), cluster.names[0]),
        )
    })
}
