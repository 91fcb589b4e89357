//! Decodes log files as one host's and prints the speed: `decode_speed [--events OUT.parquet] FILE...`. With
//! `--events`, everything that an import computes of a host is computed, and every event written.

use std::collections::BTreeMap;
use std::error::Error;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use chainmark_trace::accounting::HostCounts;
use chainmark_trace::control::Control;
use chainmark_trace::host::{HostRequest, decode_host};
use chainmark_trace::reader::{Division, read_host};

fn main() -> Result<(), Box<dyn Error>> {
    let mut files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let events = (files.first().map(PathBuf::as_path) == Some(Path::new("--events"))).then(|| files.remove(1));
    if events.is_some() {
        files.remove(0);
    }
    let mut best_s = f64::INFINITY;
    for _ in 0..5 {
        let begun = Instant::now();
        let counts = match &events {
            Some(out) => decode(&files, out)?,
            None => read_host(&files, Division::new(threads()), &Control::default(), &mut |_, _| {})?,
        };
        let seconds = begun.elapsed().as_secs_f64();
        best_s = best_s.min(seconds);
        let bytes: u64 = counts.files.iter().map(|file| file.text_bytes).sum();
        println!(
            "{:.3} GB/s  {bytes} bytes, {} lines, {} events, {} ignored, {} malformed, {:.1} ns a line",
            bytes as f64 / seconds / 1e9,
            counts.raw_lines,
            counts.decoded,
            counts.ignored,
            counts.malformed,
            seconds * 1e9 / counts.raw_lines.max(1) as f64
        );
    }
    println!("best of five: {best_s:.4} s");
    Ok(())
}

/// Threads that the files are divided among: `THREADS=4`.
fn threads() -> usize {
    std::env::var("THREADS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn decode(files: &[PathBuf], out: &Path) -> Result<HostCounts, Box<dyn Error>> {
    let order = HostRequest {
        host: "host".to_owned(),
        files: files.to_vec(),
        findings: BTreeMap::new(),
        threads: threads(),
        published_rules: false,
        system_start_ns: 0,
        slot_length_s: 1.0,
        epoch_slots: 8_000,
        security_parameter: 40,
        active_slots_coefficient: 0.05,
        slots_out: None,
        slots_group_rows: NonZeroUsize::MIN,
        block_timelines_out: None,
        links_out: None,
        published_slots_out: None,
        published_block_timelines_out: None,
        events_out: Some(out.to_owned()),
    };
    let clock = order.clock()?;
    Ok(decode_host(&order, clock, &Control::default())?.line_counts)
}
