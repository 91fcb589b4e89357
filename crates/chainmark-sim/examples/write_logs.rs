//! Speed of the log writer: lines per second, and its memory use.
//!
//! `cargo run --release --example write_logs -- SLOTS HOSTS THREADS FOLDER [COMPRESSION]`

#[path = "../tests/logs_common/mod.rs"]
mod logs_common;

use std::path::Path;
use std::time::Instant;

use chainmark_sim::logs::ClusterLogs;
use chainmark_sim::logs::order::Compression;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [slots, hosts, threads, folder, compression @ ..] = &arguments[..] else {
        return Err("arguments: SLOTS HOSTS THREADS FOLDER [none|gzip|zstd]".into());
    };
    let mut order = logs_common::value_only(hosts.parse()?, slots.parse()?, 1);
    order.compression = match compression.first().map(String::as_str) {
        Some("gzip") => Compression::Gzip,
        Some("zstd") => Compression::Zstd,
        _ => Compression::None,
    };
    let threads: usize = threads.parse()?;
    let logs = ClusterLogs::new(&serde_json::to_string(&order)?, Path::new(folder), threads, true)?;
    let begin = Instant::now();
    let summary = logs.run()?;
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{} hosts, {} slots, {threads} threads: {seconds:.2} s, {:.3} million lines/s, {:.0} MB/s, {} lines, \
         {:.2} lines per host and second, peak RSS {:.0} MB",
        summary.hosts,
        summary.slots,
        summary.lines as f64 / seconds / 1e6,
        summary.text_bytes as f64 / seconds / 1e6,
        summary.lines,
        summary.lines_per_host_s,
        peak_rss_mb(),
    );
    println!("{}", serde_json::to_string(&summary)?);
    Ok(())
}

fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.unwrap_or(0.0) / 1024.0
}
