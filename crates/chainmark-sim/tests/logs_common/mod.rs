//! Orders of logs that several tests share.

#[path = "../common/mod.rs"]
mod common;

use chainmark_sim::logs::LogRequest;
use chainmark_sim::logs::order::{Chain, Compression, Workload};

/// 2026-02-05T18:52:16Z.
pub const SYSTEM_START_NS: i64 = 1_770_317_536_000_000_000;

/// The benchmark cluster under full blocks of simple payments.
pub fn value_only(hosts: usize, slots: u64, seed: u64) -> LogRequest {
    LogRequest {
        scenario: common::value_only(hosts, seed),
        slots,
        chain: Chain { slot_length_s: 1.0, active_slots_coefficient: 0.05, epoch_slots: 8000, security_parameter: 40 },
        workload: Workload {
            tps: 12.0,
            start_s: 10.0,
            transaction_bytes: 368,
            block_transactions: 239,
            utxo_entries: 4_000_000,
            delegators: 1_000_000,
            mutator_percent: 5.16,
            allocation_mib_per_s: 21.4,
            heap_mib: 6540.0,
            live_mib: 2700.0,
        },
        system_start_ns: SYSTEM_START_NS,
        formats: Vec::new(),
        compression: Compression::None,
        rotation: None,
        faults: Vec::new(),
        meta: serde_json::Map::new(),
    }
}
