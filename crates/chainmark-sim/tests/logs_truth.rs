//! What a reader finds in the logs is what the truth says, to the nanosecond as printed, whatever was ordered.

mod logs_common;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::Path;

use chainmark_sim::logs::order::{Format, HostFormat, Rotation};
use chainmark_sim::logs::{ClusterLogs, LogRequest, Summary};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use proptest::prelude::*;
use serde_json::Value;

const FAULTS: &[&str] = &[
    "late@20",
    "restart:node-1@30-45",
    "restart:node-1@40-60",
    "crash:node-2@50",
    "stall:node-0@20-50",
    "fork@33",
    "fork@60",
    "gap:node-1@20-40",
    "dropped=3%",
    "duplicated=3%",
    "falling-edges",
    "non-blocking=50%",
    "rollback=50%",
    "no-announcement=30%",
    "no-send=30%",
    "missed-start=20%",
    "double-start=20%",
    "limited-adoptions:all=0.04",
    "clock-offset:all=±3s",
    "clock-offset:node-2=-7us",
    "clock-drift:all=±80ppm",
    "wrong-host:node-1=localhost",
];
const DESTRUCTIVE: &[&str] = &["corrupt:all=5%", "foreign:all=5%", "truncated:all"];

struct Written {
    summary: Summary,
    folder: tempdir::Folder,
}

/// A folder that is removed with its test.
mod tempdir {
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};

    static NUMBER: AtomicU32 = AtomicU32::new(0);

    pub struct Folder(PathBuf);

    impl Folder {
        pub fn new() -> Self {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("chainmark-logs-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        pub fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).ok();
        }
    }
}

fn write(order: &LogRequest, threads: usize) -> Written {
    let folder = tempdir::Folder::new();
    let json = serde_json::to_string(order).unwrap();
    let logs = ClusterLogs::new(&json, &folder.path().join("logs"), threads, false).unwrap();
    Written { summary: logs.run().unwrap(), folder }
}

impl Written {
    fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("logs")
    }

    fn truth(&self) -> Vec<HashMap<String, Field>> {
        let reader = SerializedFileReader::new(File::open(self.root().join("truth.parquet")).unwrap()).unwrap();
        let columns = |row: Row| row.into_columns().into_iter().filter(|(_, field)| *field != Field::Null).collect();
        reader.get_row_iter(None).unwrap().map(|row| columns(row.unwrap())).collect()
    }
}

/// Nanoseconds since 1970 of `2026-02-05T18:52:16.0012Z`, by counting the days of each year and month.
fn time_ns(at: &str) -> i64 {
    let number = |range: std::ops::Range<usize>| at[range].parse::<i64>().unwrap();
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let mut days: i64 = (1970..year).map(|year| 365 + i64::from(leap(year))).sum();
    let lengths = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    days += lengths[..month as usize - 1].iter().sum::<i64>() + day - 1;
    let seconds = days * 86_400 + number(11..13) * 3600 + number(14..16) * 60 + number(17..19);
    let fraction = at[19..at.len() - 1].strip_prefix('.').unwrap_or("0");
    seconds * 1_000_000_000 + format!("{fraction:0<9}").parse::<i64>().unwrap()
}

/// What the analysis would read of one host's log: first times by block and stage, last ones by slot and stage.
#[derive(Default)]
struct Read {
    blocks: BTreeMap<(String, &'static str), i64>,
    slots: BTreeMap<(u64, &'static str), i64>,
    starts: BTreeMap<u64, i64>,
    mempool: i64,
    samples: BTreeSet<(i64, i64)>,
    unreadable: usize,
    times: Vec<i64>,
}

impl Read {
    fn of(folder: &Path) -> Self {
        let mut read = Self::default();
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            for line in std::fs::read(file).unwrap().split(|byte| *byte == b'\n') {
                match serde_json::from_slice::<Value>(line) {
                    Ok(line) if line["at"].is_string() => read.line(&line),
                    _ => read.unreadable += usize::from(!line.is_empty()),
                }
            }
        }
        read
    }

    fn line(&mut self, line: &Value) {
        let at = time_ns(line["at"].as_str().unwrap());
        self.times.push(at);
        let data = if line["data"]["val"].is_object() { &line["data"]["val"] } else { &line["data"] };
        let kind = data["kind"].as_str().unwrap_or_default();
        let slot = data["slot"].as_u64().or(data["current slot"].as_u64());
        let hash = |key: &str| data[key].as_str().map(|text| text[..64].to_owned());
        let mut first = |stage, block: Option<String>| {
            self.blocks.entry((block.unwrap(), stage)).or_insert(at);
        };
        match kind {
            "TraceForgedBlock" => first("forged", hash("block")),
            "DownloadedHeader" | "ChainSyncClientEvent.TraceDownloadedHeader" => first("noticed", hash("block")),
            "SendFetchRequest" => first("requested", hash("head")),
            "CompletedBlockFetch" => first("fetched", hash("block")),
            "BlockFetchServer" | "TraceBlockFetchServerSendBlock" => first("sent", hash("block")),
            "AddedToCurrentChain" | "TraceAddBlockEvent.AddedToCurrentChain" => first("adopted", hash("newtip")),
            "TraceAddBlockEvent.SwitchedToAFork" => first("adopted", hash("newtip")),
            "TraceAdoptedBlock" => first("self_adopted", hash("blockHash")),
            "ChainSyncServer.Update" | "ChainSyncServerEvent.TraceChainSyncServerUpdate" => {
                let counts = data["risingEdge"] != false && data["blockingRead"] != false;
                if counts && data["rollBackTo"].is_null() {
                    first("announced", hash("addBlock"));
                }
            }
            "ResourceStats" => {
                self.samples.insert((at, data["CentiCpu"].as_i64().unwrap()));
            }
            _ => {}
        }
        let stage = match kind {
            "TraceStartLeadershipCheck" => "started",
            "TraceBlockContext" => "block_context",
            "TraceLedgerState" => "ledger_state",
            "TraceLedgerView" => "ledger_view",
            "TraceNodeIsLeader" | "TraceNodeNotLeader" => "leadership",
            _ => return self.count(kind, data),
        };
        self.slots.insert((slot.unwrap(), stage), at);
        *self.starts.entry(slot.unwrap()).or_default() += i64::from(stage == "started");
    }

    fn count(&mut self, kind: &str, data: &Value) {
        if kind == "TraceMempoolAddedTx" {
            self.mempool = data["mempoolSize"]["numTxs"].as_i64().unwrap();
        }
    }
}

fn integer(row: &HashMap<String, Field>, key: &str) -> Option<i64> {
    row.get(key).map(|field| match field {
        Field::Long(value) => *value,
        other => panic!("{key} is {other}"),
    })
}

fn text<'a>(row: &'a HashMap<String, Field>, key: &str) -> &'a str {
    match row.get(key) {
        Some(Field::Str(text)) => text,
        other => panic!("{key} is {other:?}"),
    }
}

const OF_BLOCKS: [&str; 8] =
    ["forged", "noticed", "requested", "fetched", "announced", "sent", "adopted", "self_adopted"];
const OF_SLOTS: [&str; 5] = ["started", "block_context", "ledger_state", "ledger_view", "leadership"];

/// In both directions: the truth's records are in the log, and the log's are in the truth.
fn compare(written: &Written, hosts: usize) {
    let truth = written.truth();
    for host in (0..hosts).map(|host| format!("node-{host}")) {
        let mut read = Read::of(&written.root().join(&host));
        let samples = std::mem::take(&mut read.samples);
        for row in truth.iter().filter(|row| text(row, "host") == host) {
            match text(row, "record") {
                "block" => {
                    for stage in OF_BLOCKS {
                        let printed = read.blocks.remove(&(text(row, "block").to_owned(), stage));
                        assert_eq!(printed, integer(row, &format!("{stage}_printed_ns")), "{host} {stage} {row:?}");
                    }
                }
                "slot" => {
                    let slot = integer(row, "slot").unwrap() as u64;
                    for stage in OF_SLOTS {
                        let printed = read.slots.remove(&(slot, stage));
                        assert_eq!(printed, integer(row, &format!("{stage}_printed_ns")), "{host} {stage} {row:?}");
                    }
                    let starts = read.starts.remove(&slot).unwrap_or(0);
                    assert_eq!(Some(starts), integer(row, "loop_starts"), "{host} slot {slot}");
                    if let Some(at) = integer(row, "resources_printed_ns") {
                        let sample = (at, integer(row, "cpu_centiseconds").unwrap());
                        assert!(samples.contains(&sample), "{host} slot {slot}: {sample:?}");
                    }
                }
                _ => {}
            }
        }
        assert_eq!(read.blocks, BTreeMap::new(), "{host}: in the log, but not in the truth");
        assert_eq!(read.slots, BTreeMap::new(), "{host}: in the log, but not in the truth");
    }
    assert_eq!(written.summary.lines_after_truth, 0);
}

fn small(hosts: usize, slots: u64, seed: u64) -> LogRequest {
    let mut order = logs_common::value_only(hosts, slots, seed);
    // Blocks often enough that short runs see something.
    order.chain.active_slots_coefficient = 0.2;
    order.scenario.block_interval_s = 5.0;
    order.workload.block_transactions = 40;
    order.workload.start_s = 2.0;
    order.workload.tps = 3.0;
    order
}

fn orders() -> impl Strategy<Value = LogRequest> {
    let formats = prop_oneof![Just(Format::V10_5), Just(Format::V10_7), Just(Format::V10_4), Just(Format::Legacy)];
    let faults = proptest::sample::subsequence(FAULTS, 0..=5);
    let others = proptest::sample::subsequence(DESTRUCTIVE, 0..=2);
    let rotation = prop_oneof![Just(None), (1u64..3000).prop_map(|n| Some(Rotation::Lines(n)))];
    (3usize..8, 65u64..140, any::<u32>(), formats, faults, others, rotation).prop_map(
        |(hosts, slots, seed, format, faults, others, rotation)| {
            let mut order = small(hosts, slots, u64::from(seed));
            order.formats = vec![HostFormat { format, hosts: vec!["node-0".to_owned(), "node-2".to_owned()] }];
            order.faults = faults.into_iter().chain(others).map(ToString::to_string).collect();
            order.rotation = rotation;
            order
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_truth_matches_what_a_reader_sees(order in orders()) {
        compare(&write(&order, 2), order.scenario.cluster.hosts);
    }
}

#[test]
fn without_faults_every_line_can_be_read_and_times_never_decrease() {
    for (format, seed) in [(Format::V10_5, 1), (Format::V10_7, 2), (Format::V10_4, 3), (Format::Legacy, 4)] {
        let mut order = small(5, 150, seed);
        order.formats = vec![HostFormat { format, hosts: Vec::new() }];
        order.faults =
            vec!["clock-drift:all=±100ppm".to_owned(), "fork@40".to_owned(), "stall:node-1@60-90".to_owned()];
        let written = write(&order, 2);
        let mut lines = 0;
        for host in 0..5 {
            let read = Read::of(&written.root().join(format!("node-{host}")));
            assert_eq!(read.unreadable, 1, "the configuration's line alone is no JSON");
            assert!(read.times.is_sorted(), "node-{host}");
            assert!(read.mempool > 0);
            lines += read.times.len() + read.unreadable;
        }
        assert_eq!(lines as u64, written.summary.lines);
    }
}

#[test]
fn the_bytes_depend_only_on_the_seed() {
    let mut order = small(9, 130, 7);
    order.faults = FAULTS.iter().chain(DESTRUCTIVE).map(ToString::to_string).collect();
    order.rotation = Some(Rotation::Bytes(200_000));
    let files = |written: &Written| {
        let mut files = BTreeMap::new();
        let mut folders = vec![written.root()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() {
                    folders.push(entry);
                } else {
                    let name = entry.strip_prefix(written.root()).unwrap().to_owned();
                    files.insert(name, std::fs::read(&entry).unwrap());
                }
            }
        }
        files
    };
    let (one, eight) = (files(&write(&order, 1)), files(&write(&order, 8)));
    assert_eq!(one.keys().collect::<Vec<_>>(), eight.keys().collect::<Vec<_>>());
    assert!(one == eight, "the same files, but other bytes");
    order.scenario.seed += 1;
    assert!(files(&write(&order, 8)) != one);
}

#[test]
fn the_truth_records_losses_and_the_blocks_of_the_chain() {
    let mut order = small(6, 140, 11);
    order.faults = vec!["gap:node-3@30-70".to_owned(), "fork:node-1@50".to_owned(), "fork:node-4@90".to_owned()];
    let written = write(&order, 2);
    let truth = written.truth();
    let lost = truth
        .iter()
        .filter(|row| text(row, "host") == "node-3" && row.get("noticed_written") == Some(&Field::Bool(false)));
    assert!(lost.count() > 3, "blocks that node-3 noticed, but did not log");
    let on_chain: BTreeMap<i64, BTreeSet<&str>> = truth
        .iter()
        .filter(|row| row.get("on_chain") == Some(&Field::Bool(true)))
        .fold(BTreeMap::new(), |mut chain, row| {
            chain.entry(integer(row, "block_no").unwrap()).or_default().insert(text(row, "block"));
            chain
        });
    assert!(on_chain.values().all(|blocks| blocks.len() == 1), "one block of each height");
    let heights: Vec<i64> = on_chain.keys().copied().collect();
    assert_eq!(heights, (0..heights.len() as i64).collect::<Vec<_>>(), "from the first block on, without a hole");
    assert!(written.summary.blocks_forked >= 2);
    let gap = truth.iter().find(|row| text(row, "record") == "fault" && text(row, "fault") == "gap").unwrap();
    assert!(integer(gap, "fault_lines").unwrap() > 40 * 8);
    assert_eq!(integer(gap, "fault_from_ns"), Some(logs_common::SYSTEM_START_NS + 30_000_000_000));
}

#[test]
fn a_folder_in_use_is_not_touched_and_a_cancelled_one_leaves_nothing() {
    let order = small(3, 70, 1);
    let json = serde_json::to_string(&order).unwrap();
    let folder = tempdir::Folder::new();
    let target = folder.path().join("logs");
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("precious"), "x").unwrap();
    for replace in [false, true] {
        let error = ClusterLogs::new(&json, &target, 1, replace).unwrap().run().unwrap_err();
        assert!(error.to_string().contains("\nhint: "), "{error}");
        assert!(target.join("precious").is_file());
    }
    std::fs::remove_file(target.join("precious")).unwrap();
    let cancelled = ClusterLogs::new(&json, &target, 1, false).unwrap();
    cancelled.progress.cancel();
    assert!(cancelled.run().is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the empty folder that was there");
    ClusterLogs::new(&json, &target, 1, false).unwrap().run().unwrap();
    assert!(ClusterLogs::new(&json, &target, 1, false).unwrap().run().is_err(), "taken now");
    ClusterLogs::new(&json, &target, 1, true).unwrap().run().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
