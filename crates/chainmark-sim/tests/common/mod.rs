//! Scenarios that several tests share.

use chainmark_sim::cluster::{ClusterConfig, Region, Topology};
use chainmark_sim::model::{Parameters, Scenario, Stages};

pub fn regions() -> Vec<Region> {
    ["EU", "US", "AP"].iter().map(|name| Region { name: (*name).to_owned(), aliases: Vec::new() }).collect()
}

/// The benchmark cluster with full blocks.
pub fn value_only(hosts: usize, seed: u64) -> Scenario {
    let region = [[0.000_198, 0.090_17, 0.2729], [0.090_17, 0.000_254, 0.2], [0.2729, 0.2, 0.000_149]];
    Scenario {
        seed,
        cluster: ClusterConfig {
            hosts,
            topology: Topology::TorusDense,
            regions: regions(),
            rtt_s: region.iter().map(|row| row.to_vec()).collect(),
            rtt_spread_s: None,
            fetches: None,
            lost_regions: Vec::new(),
        },
        stages: Stages {
            started_s: 0.00142,
            block_context_s: 6.6e-5,
            ledger_state_s: 0.00012,
            ledger_view_s: 2.9e-5,
            leadership_s: 0.00041,
            ticked_s: 0.02142,
            snapshot_s: 0.04687,
            forged_s: 0.00077,
            announced_s: 0.00072,
            self_adopted_s: 0.06822,
            request_s: 0.00143,
            fetched_to_announced_s: 0.00103,
            adopted_s: 0.07194,
        },
        parameters: Parameters::default(),
        block_bytes: 88963.0,
        block_bytes_variation: 0.0,
        block_bytes_shape: Vec::new(),
        block_interval_s: 20.0,
    }
}
