//! Speed of the simulation: events per second and core, for one size of network.
//!
//! `cargo run --release --example spread -- HOSTS BLOCKS THREADS`

use std::time::Instant;

use chainmark_sim::cluster::{ClusterOrder, Region, Topology};
use chainmark_sim::model::{Parameters, Scenario, Stages};
use chainmark_sim::prediction::{BatchOrder, figure_names, simulate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let [hosts, blocks, threads] = numbers[..] else { return Err("arguments: HOSTS BLOCKS THREADS".into()) };
    let batches = 32.min(blocks);
    let order = BatchOrder { blocks_per_batch: blocks.div_ceil(batches), first_batch: 0, batches, threads };
    let begin = Instant::now();
    let done = simulate(&value_only(hosts), &order)?;
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{hosts} hosts, {} blocks, {threads} threads: {seconds:.3} s, {:.2} million events/s, {:.0} events a block",
        done.blocks,
        done.events as f64 / seconds / 1e6,
        done.events as f64 / done.blocks as f64,
    );
    if std::env::var_os("FIGURES").is_some() {
        for (figure, name) in figure_names().iter().enumerate().filter(|(_, name)| !name.starts_with("part")) {
            let q = Parameters::default().slow_block_probability;
            let of = |rows: &[Vec<f64>]| rows.iter().map(|row| row[figure]).sum::<f64>() / rows.len() as f64;
            println!("{name:24} {:.5}", (1.0 - q) * of(&done.normal) + q * of(&done.slow));
        }
    }
    Ok(())
}

/// Full blocks of 89 kB, as a published release forges and validates them.
fn value_only(hosts: usize) -> Scenario {
    let region = |name: &str| Region { name: name.to_owned(), aliases: Vec::new() };
    Scenario {
        seed: 1,
        cluster: ClusterOrder {
            hosts,
            topology: Topology::TorusDense,
            regions: vec![region("EU"), region("US"), region("AP")],
            rtt_s: vec![vec![0.000_198, 0.090_17, 0.252], vec![0.090_17, 0.000_254, 0.2], vec![0.252, 0.2, 0.000_149]],
            rtt_spread_s: None,
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
        block_interval_s: 20.0,
    }
}
