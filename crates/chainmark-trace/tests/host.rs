//! One host's logs read completely: the content of its tables, and the state when the reading ends early.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use chainmark_trace::control::Control;
use chainmark_trace::error::ReadError;
use chainmark_trace::host::{HostRequest, HostSummary, decode_host};
use common::{Row, Value, fresh_path, hash, read};

fn line(at: &str, ns: &str, data: &str) -> String {
    format!(
        "{{\"at\":\"2026-02-05T18:52:{at}Z\",\"ns\":\"{ns}\",\"data\":{{{data}}},\"sev\":\"Info\",\"thread\":\"1\",\
         \"host\":\"node-7\"}}\n"
    )
}

fn early_log() -> String {
    let (block, parent) = (hash(0xab), hash(7));
    [
        "starting …\n".to_owned(),
        line("16.25", "Forge.Loop.StartLeadershipCheck", "\"slot\":0"),
        line("16.5", "Startup.Something", "\"kind\":\"Other\""),
        line("17.125", "Forge.Loop.StartLeadershipCheck", "\"slot\":1"),
        line("17.25", "Forge.Loop.NodeIsLeader", "\"slot\":1"),
        line(
            "17.5",
            "Forge.Loop.ForgedBlock",
            &format!("\"slot\":1,\"blockNo\":4,\"block\":\"{block}\",\"blockPrev\":\"{parent}\""),
        ),
        line("17.75", "Forge.Loop.AdoptedBlock", &format!("\"blockHash\":\"{block}\",\"blockSize\":1234")),
    ]
    .concat()
}

fn late_log() -> String {
    [
        line("18.0625", "Forge.Loop.StartLeadershipCheck", "\"slot\":2"),
        line("18.5", "BlockFetch.Server.SendBlock", &format!("\"block\":\"{}\"", hash(0xab))),
        line("18.75", "LedgerMetrics", "\"slot\":2,\"utxoSize\":400,\"chainDensity\":0.0481"),
    ]
    .concat()
}

/// A folder with the two logs, and the order to read them: the later one is named first.
fn order() -> (PathBuf, HostRequest) {
    let folder = fresh_path();
    fs::create_dir(&folder).unwrap();
    let files = vec![folder.join("1-late"), folder.join("2-early")];
    fs::write(&files[0], late_log()).unwrap();
    fs::write(&files[1], early_log()).unwrap();
    let out = |name: &str| Some(folder.join(name));
    let order = HostRequest {
        host: "node-7".to_owned(),
        files,
        findings: BTreeMap::new(),
        threads: 1,
        published_rules: false,
        system_start_ns: 1_770_317_536_000_000_000,
        slot_length_s: 1.0,
        epoch_slots: 8000,
        security_parameter: 40,
        active_slots_coefficient: 0.05,
        slots_out: out("slots.parquet"),
        slots_group_rows: NonZeroUsize::new(8192).unwrap(),
        block_timelines_out: out("timelines.parquet"),
        links_out: out("links.parquet"),
        published_slots_out: None,
        published_block_timelines_out: None,
        events_out: out("events.parquet"),
    };
    (folder, order)
}

fn run(order: &HostRequest, control: &Control) -> Result<HostSummary, ReadError> {
    decode_host(order, order.clock().unwrap(), control)
}

fn column(rows: &[Row], name: &str) -> Vec<Value> {
    rows.iter().map(|row| row[name].clone()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn one_pass_fills_the_tables_of_both_rules() {
    let (folder, mut order) = order();
    order.published_slots_out = Some(folder.join("published-slots.parquet"));
    order.published_block_timelines_out = Some(folder.join("published-timelines.parquet"));
    let summary = run(&order, &Control::default()).unwrap();
    assert_eq!(summary.timeline.records, 3);
    let own = read(&order.slots_out.unwrap());
    let published = read(&order.published_slots_out.unwrap());
    assert_eq!(column(&own, "started_s"), column(&published, "started_s"));
    // A slot without a density in any line has none, or by the published rules 0.
    assert_eq!(column(&own, "density"), [Value::Null, Value::Null, Value::Number(0.0481)]);
    assert_eq!(column(&published, "density"), [0.0, 0.0, 0.0481].map(Value::Number));
    assert_eq!(
        read(&order.block_timelines_out.unwrap()).len(),
        read(&order.published_block_timelines_out.unwrap()).len()
    );
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn one_pass_fills_all_tables_in_order_of_time() {
    let (folder, order) = order();
    let summary = run(&order, &Control::default()).unwrap();
    assert_eq!((summary.line_counts.raw_lines, summary.line_counts.decoded, summary.line_counts.ignored), (10, 8, 1));
    assert_eq!((summary.timeline.records, summary.block_counts.forged), (3, 1));
    assert_eq!((summary.usage.used, summary.usage.unused.len()), (8, 0));
    assert_eq!(summary.loop_offsets_s, Some([0.0625, 0.125, 0.25]));
    assert_eq!(summary.bytes as usize, early_log().len() + late_log().len());

    let slots = read(&order.slots_out.unwrap());
    assert_eq!(column(&slots, "started_s"), [0.25, 0.125, 0.0625].map(Value::Number));
    assert_eq!(column(&slots, "density"), [Value::Null, Value::Null, Value::Number(0.0481)]);

    let block_timelines = read(&order.block_timelines_out.unwrap());
    let places: Vec<&Value> =
        ["forged_file", "forged_line", "sent_file", "sent_line"].map(|name| &block_timelines[0][name]).to_vec();
    assert_eq!(places, [0, 6, 1, 2].map(Value::Integer).iter().collect::<Vec<_>>());
    assert_eq!(block_timelines[0]["size_bytes"], Value::Integer(1234));

    let events = read(&order.events_out.unwrap());
    let messages =
        ["loop_start", "loop_start", "leader", "forged", "self_adopted", "loop_start", "sent", "ledger_metrics"];
    assert_eq!(column(&events, "message"), messages.map(|name| Value::Text(name.to_owned())));
    assert_eq!(column(&events, "line"), [2, 4, 5, 6, 7, 1, 2, 3].map(Value::Integer));
    let none = Value::Null;
    let block = Value::Bytes(hash(0xab).0.to_vec());
    assert_eq!(events[3]["block"], block);
    assert_eq!(events[3]["parent"], Value::Bytes(vec![7; 32]));
    assert_eq!((&events[6]["block"], &events[6]["parent"], &events[5]["block"]), (&block, &none, &none));
    assert_eq!(events[7]["utxo_entries"], Value::Integer(400));
    fs::remove_dir_all(folder).unwrap();
}

/// A log with one line per second from slot 0 on, with the given content per slot.
fn summary_of(lines: &[String]) -> (HostSummary, Vec<Row>, Vec<Row>) {
    let (folder, mut order) = order();
    order.files.truncate(1);
    fs::write(&order.files[0], lines.concat()).unwrap();
    let summary = run(&order, &Control::default()).unwrap();
    let tables = (read(&order.slots_out.unwrap()), read(&order.links_out.unwrap()));
    fs::remove_dir_all(folder).unwrap();
    (summary, tables.0, tables.1)
}

fn started(slot: usize) -> String {
    line(&format!("{}.25", 16 + slot), "Forge.Loop.StartLeadershipCheck", &format!("\"slot\":{slot}"))
}

#[test]
fn a_line_stamped_a_day_ahead_fills_no_slots_and_is_counted() {
    let mut lines: Vec<String> = (0..40).map(started).collect();
    let stray = line("36.5", "LedgerMetrics", "\"slot\":20,\"utxoSize\":400,\"chainDensity\":0.0481");
    lines.insert(20, stray.replace("2026-02-05", "2026-02-06"));
    let (summary, slots, _) = summary_of(&lines);
    assert_eq!((slots.len(), summary.timeline.gaps), (40, 0));
    assert_eq!(summary.usage.used, 40);
    assert_eq!(summary.usage.unused.into_iter().collect::<Vec<_>>(), [("implausible time", 1)]);
}

#[test]
fn a_log_does_not_end_with_a_line_stamped_a_day_ahead() {
    let mut lines: Vec<String> = (0..40).map(started).collect();
    lines.push(started(39).replace("2026-02-05", "2026-02-06"));
    let (summary, slots, _) = summary_of(&lines);
    assert_eq!((slots.len(), summary.usage.unused["implausible time"]), (40, 1));
    assert_eq!(summary.line_counts.last_ns, Some(1_770_317_536_000_000_000 + 39_250_000_000));
}

#[test]
fn a_single_line_without_an_event_does_not_set_the_start_or_end_of_a_log() {
    let stray = |at: &str, day: &str| line(at, "Startup.Something", "\"kind\":\"Other\"").replace("02-05", day);
    let mut lines: Vec<String> = (0..40).map(started).collect();
    let ends = |lines: &[String]| (summary_of(lines).0.line_counts.first_ns, summary_of(lines).0.line_counts.last_ns);
    let expected = ends(&lines);
    for day in ["02-04", "02-06"] {
        lines.insert(0, stray("16.1", day));
        lines.push(stray("55.5", day));
        assert_eq!(ends(&lines), expected, "{day}");
        lines = lines[1..41].to_vec();
    }
    lines.insert(0, stray("16.1", "02-05"));
    assert_eq!(ends(&lines), (expected.0.map(|first_ns| first_ns - 150_000_000), expected.1));
}

#[test]
fn a_gap_of_a_day_takes_no_additional_memory() {
    let mut lines: Vec<String> = (0..40).map(started).collect();
    for slot in 86_400..86_440 {
        lines.push(
            started(slot - 86_400)
                .replace("2026-02-05", "2026-02-06")
                .replace(&format!("\"slot\":{}}}", slot - 86_400), &format!("\"slot\":{slot}}}")),
        );
    }
    let (summary, slots, _) = summary_of(&lines);
    assert_eq!((slots.len(), summary.timeline.gaps), (86_440, 86_360));
    assert_eq!((summary.usage.used, summary.usage.unused.len()), (80, 0));
    assert_eq!(column(&slots[39..41], "is_gap"), [Value::Flag(false), Value::Flag(true)]);
}

#[test]
fn messages_of_future_slots_are_counted_by_reason() {
    let mut lines = vec![started(0)];
    for slot in 5..1005 {
        lines.push(line("16.5", "Forge.Loop.NodeNotLeader", &format!("\"slot\":{slot}")));
    }
    lines.push(line("16.6", "Forge.Loop.StartLeadershipCheck", "\"slot\":90000"));
    lines.push(line("16.7", "TraceBenchTxSubServAck", "\"kind\":\"TraceBenchTxSubServAck\",\"txIds\":[]"));
    let (summary, slots, _) = summary_of(&lines);
    assert_eq!((slots.len(), summary.usage.used), (1, 1));
    let expected = [("read for no metric", 1), ("slot ahead of its line", 1), ("slot not begun", 1000)];
    assert_eq!(summary.usage.unused.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn rounds_whose_slot_contradicts_their_time_change_no_slot() {
    let mut lines: Vec<String> = (0..40).map(started).collect();
    let (_, expected, _) = summary_of(&lines);
    for slot in [10, 20, 30] {
        lines
            .insert(slot + 3, started(slot).replace(&format!("\"slot\":{slot}"), &format!("\"slot\":{}", slot + 1800)));
    }
    let (summary, slots, _) = summary_of(&lines);
    assert_eq!(slots, expected);
    assert_eq!(summary.usage.unused.into_iter().collect::<Vec<_>>(), [("slot ahead of its line", 3)]);
}

#[test]
fn a_lost_forging_line_leaves_the_chain_data_of_round_and_adoption() {
    let (block, parent) = (hash(0xab), hash(7));
    let tip = format!("\"tip\":\"{parent}@0\",\"tipBlockNo\":4");
    let lines = [
        line("17.25", "Forge.Loop.BlockContext", &format!("\"current slot\":1,{tip}")),
        line("17.5", "Forge.Loop.TickedLedgerState", &format!("\"slot\":1,\"prev\":\"{parent}@0\"")),
        line("17.75", "Forge.Loop.AdoptedBlock", &format!("\"slot\":1,\"blockHash\":\"{block}\",\"blockSize\":1234")),
    ];
    let (summary, _, links) = summary_of(&lines);
    assert_eq!((summary.links.blocks, summary.links.lowest_tip), (2, Some(3)));
    let integers = |name| column(&links, name);
    assert_eq!(integers("block_no"), [3, 4].map(Value::Integer));
    assert_eq!(integers("slot"), [0, 1].map(Value::Integer));
    assert_eq!(integers("parent"), [Value::Null, Value::Text(parent.to_string())]);
    assert_eq!(integers("parent_evidence"), [Value::Null, Value::Integer(1)]);
    assert_eq!(integers("size_bytes"), [Value::Null, Value::Integer(1234)]);
}

#[test]
fn a_cancelled_pass_leaves_no_tables() {
    let (folder, order) = order();
    let control = Control::default();
    control.cancel();
    assert!(matches!(run(&order, &control), Err(ReadError::Cancelled)));
    assert_eq!(names(&folder), ["1-late", "2-early"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_missing_log_or_folder_is_reported_and_leaves_no_tables() {
    let (folder, mut order) = order();
    order.files.push(folder.join("3-missing"));
    let error = run(&order, &Control::default()).unwrap_err().to_string();
    assert!(error.contains("3-missing"), "{error}");
    order.files.pop();
    order.slots_out = Some(folder.join("nowhere").join("slots.parquet"));
    order.block_timelines_out = None;
    order.links_out = None;
    order.events_out = None;
    let error = run(&order, &Control::default()).unwrap_err().to_string();
    assert!(error.contains("nowhere"), "{error}");
    assert_eq!(names(&folder), ["1-late", "2-early"]);
    fs::remove_dir_all(folder).unwrap();
}

/// A device that accepts nothing: the write error must not be reported as an interruption, nor as success.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_as_such() {
    let (folder, mut order) = order();
    let full = folder.join("events.parquet");
    std::os::unix::fs::symlink("/dev/full", folder.join("events.parquet.part")).unwrap();
    order.events_out = Some(full);
    let error = run(&order, &Control::default()).unwrap_err();
    assert!(matches!(&error, ReadError::Storage { source, .. } if source.raw_os_error() == Some(28)), "{error:?}");
    assert_eq!(names(&folder), ["1-late", "2-early"]);
    fs::remove_dir_all(folder).unwrap();
}

/// Otherwise a host with a correct clock would count as one of another network.
#[test]
fn rounds_of_slots_a_day_ahead_do_not_shift_those_that_are_used() {
    let (folder, order) = order();
    let ahead = line("18.25", "Forge.Loop.StartLeadershipCheck", "\"slot\":86400").repeat(9);
    fs::write(&order.files[0], late_log() + &ahead).unwrap();
    let summary = run(&order, &Control::default()).unwrap();
    assert_eq!(summary.usage.unused.values().sum::<u64>(), 9);
    assert_eq!(summary.loop_offsets_s, Some([0.0625, 0.125, 0.25]));
    fs::remove_dir_all(&folder).unwrap();
}
