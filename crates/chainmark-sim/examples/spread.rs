//! Speed of the simulation: events per second and core, for one size of network.
//!
//! `cargo run --release --example spread -- HOSTS BLOCKS THREADS`

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

use chainmark_sim::model::Parameters;
use chainmark_sim::prediction::{BatchRequest, figure_names, simulate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let [hosts, blocks, threads] = numbers[..] else { return Err("arguments: HOSTS BLOCKS THREADS".into()) };
    let batches = 32.min(blocks);
    let order = BatchRequest { blocks_per_batch: blocks.div_ceil(batches), first_batch: 0, batches, threads };
    let begin = Instant::now();
    let done = simulate(&common::value_only(hosts, 1), &order)?;
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
