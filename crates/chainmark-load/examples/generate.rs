//! Runs one load and prints its figures as JSON.
//! Usage: `generate URL CONNECTIONS RATE DURATION_S SIZE_BYTES SCHEDULE`.

use chainmark_load::cometbft::BroadcastMethod;
use chainmark_load::{Begin, Class, LoadConfig, LoadResult, ScheduleKind, Share, TransactionLoad, Transactions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, connections, rate, duration_s, size_bytes, schedule] = arguments.as_slice() else {
        return Err("give URL CONNECTIONS RATE DURATION_S SIZE_BYTES SCHEDULE".into());
    };
    let load = TransactionLoad::new(LoadConfig {
        targets: vec![url.clone(); connections.parse()?],
        share: Share::default(),
        rate_per_connection: rate.parse()?,
        duration_ns: duration_s.parse::<i64>()? * 1_000_000_000,
        transactions: Transactions::Payload { size_bytes: size_bytes.parse()?, experiment_id: *b"chainmark--bench" },
        method: BroadcastMethod::Sync,
        schedule: ScheduleKind::from_name(schedule).ok_or("the schedule is even, poisson or burst")?,
        seed: 1,
        answer_timeout_ns: 10_000_000_000,
        send_grace_ns: 2_000_000_000,
    })?;
    load.start(Begin::After(100_000_000))?;
    print_figures(&load.finish()?);
    Ok(())
}

fn print_figures(result: &LoadResult) {
    let records = &result.records;
    let sent = records.rows() - records.count(Class::Unsent);
    let mut lag_ns: Vec<i64> = records
        .sent_ns
        .iter()
        .zip(&records.due_ns)
        .filter(|(sent, _)| **sent >= 0)
        .map(|(sent, due)| sent - due)
        .collect();
    lag_ns.sort_unstable();
    let lag_ms = |share: f64| lag_ns[((lag_ns.len() - 1) as f64 * share).round() as usize] as f64 / 1e6;
    let (offered, accepted) = (records.rows(), records.count(Class::Accepted));
    print!(r#"{{"offered":{offered},"sent":{sent},"accepted":{accepted},"#);
    print!(r#""cpu_s":{},"wall_s":{},"#, result.cpu_s, result.wall_s);
    println!(r#""lag_p50_ms":{},"lag_p99_ms":{},"lag_max_ms":{}}}"#, lag_ms(0.5), lag_ms(0.99), lag_ms(1.0));
}
