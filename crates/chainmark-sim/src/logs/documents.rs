//! The files next to the logs: genesis, topology, and the run's own description.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::cluster::Cluster;
use crate::error::{Result, SimulationError};
use crate::logs::order::LogRequest;
use crate::logs::text::Stamp;

const NETWORK_MAGIC: u64 = 42;
const BLOCK_BODY_BYTES_MAX: u64 = 90_112;
const TRANSACTION_BYTES_MAX: u64 = 16_384;
const KES_PERIOD_SLOTS: u64 = 129_600;
const KES_EVOLUTIONS_MAX: u64 = 62;

/// Write `genesis/genesis.shelley.json`, `topology.json` and `meta.json`.
///
/// # Errors
/// A file cannot be written.
pub fn write(directory: &Path, order: &LogRequest, cluster: &Cluster) -> Result<()> {
    write_json(&directory.join("genesis").join("genesis.shelley.json"), &genesis(order, cluster))?;
    write_json(&directory.join("topology.json"), &topology(cluster))?;
    write_json(&directory.join("meta.json"), &json!({ "meta": meta(order, cluster) }))
}

fn write_json(path: &Path, content: &Value) -> Result<()> {
    let storage = |source| SimulationError::Storage { path: path.display().to_string(), source };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(storage)?;
    }
    let mut text = serde_json::to_vec_pretty(content)?;
    text.push(b'\n');
    std::fs::write(path, text).map_err(storage)
}

fn system_start(order: &LogRequest) -> String {
    let mut out = Vec::new();
    Stamp::default().push(&mut out, order.system_start_ns);
    out.push(b'Z');
    String::from_utf8_lossy(&out).into_owned()
}

fn genesis(order: &LogRequest, cluster: &Cluster) -> Value {
    let chain = &order.chain;
    json!({
        "activeSlotsCoeff": chain.active_slots_coefficient,
        "epochLength": chain.epoch_slots,
        "maxKESEvolutions": KES_EVOLUTIONS_MAX,
        "maxLovelaceSupply": 45_000_000_000_000_000_u64,
        "networkId": "Testnet",
        "networkMagic": NETWORK_MAGIC,
        "protocolParams": { "maxBlockBodySize": BLOCK_BODY_BYTES_MAX, "maxTxSize": TRANSACTION_BYTES_MAX },
        "securityParam": chain.security_parameter,
        "slotLength": chain.slot_length_s,
        "slotsPerKESPeriod": KES_PERIOD_SLOTS,
        "systemStart": system_start(order),
        "updateQuorum": cluster.hosts().div_ceil(2),
    })
}

fn topology(cluster: &Cluster) -> Value {
    let nodes: Vec<Value> = (0..cluster.hosts())
        .map(|host| {
            let region = &cluster.regions[cluster.region_of[host]];
            let producers = cluster.producers[host].iter().map(|peer| cluster.names[*peer as usize].as_str());
            json!({
                "name": cluster.names[host],
                "nodeId": cluster.numbers[host],
                "org": "ORG",
                "pools": cluster.pools[host],
                "producers": producers.collect::<Vec<_>>(),
                "region": region.aliases.first().unwrap_or(&region.name),
                "stakePool": cluster.pools[host] > 0,
            })
        })
        .collect();
    json!({ "coreNodes": nodes, "relayNodes": [] })
}

/// As ordered, with what only the cluster knows: every host has a pool, and every block should reach all of them.
fn meta(order: &LogRequest, cluster: &Cluster) -> Map<String, Value> {
    let mut meta = order.meta.clone();
    let adoptions = json!([{
        "tag": "CBlock",
        "contents": { "tag": "BMinimumAdoptions", "contents": cluster.hosts() - 1 }
    }]);
    let analysis = meta.get_mut("profile_content").and_then(|content| content.get_mut("analysis"));
    if let Some(analysis) = analysis.and_then(Value::as_object_mut) {
        analysis.entry("filter_exprs").or_insert(adoptions);
    }
    meta
}
