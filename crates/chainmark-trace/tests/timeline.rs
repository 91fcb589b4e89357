//! The slot records against cases worked by hand, and against a slow fold written from the specification alone.

mod common;

use std::collections::{HashMap, HashSet};

use chainmark_trace::event::{Event, Fact, Resources};
use chainmark_trace::timeline::{Clock, Timeline, TimelineSummary};
use common::{Row, Value, fresh_path, hash, read};
use proptest::prelude::*;

const BOTH_RULES: [bool; 2] = [false, true];
const SECOND_NS: i64 = 1_000_000_000;
const SYSTEM_START_NS: i64 = 1_700_000_000 * SECOND_NS;

/// A chain of epochs of 100 slots.
fn clock(slot_length_ns: i64) -> Clock {
    Clock {
        system_start_ns: SYSTEM_START_NS,
        slot_length_ns,
        epoch_slots: 100,
        security_parameter: 3,
        active_slots_coefficient: 0.25,
    }
}

fn fold(events: &[Event<'_>], clock: Clock, published: bool) -> (Vec<Row>, TimelineSummary) {
    let mut timeline = Timeline::new(clock, published);
    for event in events {
        timeline.listen(event);
    }
    let path = fresh_path();
    timeline.write(&path, 8192).unwrap();
    (read(&path), timeline.summary())
}

/// An event this many seconds after the start of the chain.
fn at(seconds: f64, fact: Fact<'static>) -> Event<'static> {
    Event { at_ns: SYSTEM_START_NS + (seconds * 1e9).round() as i64, fact }
}

fn loop_start(slot: u64) -> Fact<'static> {
    Fact::LoopStart { slot, utxo_entries: 0, density: 0.0 }
}

fn metrics(utxo_entries: u64, density: f64) -> Fact<'static> {
    Fact::LedgerMetrics { slot: 0, utxo_entries, density }
}

/// The record of a slot in the fold by the right rules or the published ones; slots last one second.
fn record(events: &[Event<'_>], published: bool, slot: i64) -> Row {
    let (rows, _) = fold(events, clock(SECOND_NS), published);
    rows.into_iter().find(|row| row["slot"] == Value::Integer(slot)).expect("a record of the slot")
}

fn integers(row: &Row, names: &[&str]) -> Vec<i64> {
    let integer = |name: &&str| match row[*name] {
        Value::Integer(number) => number,
        ref other => panic!("{name} is {other:?}"),
    };
    names.iter().map(integer).collect()
}

#[test]
fn records_cover_every_slot_from_the_first_message_to_the_last() {
    let events = [at(3.2, metrics(1, 0.5)), at(7.1, loop_start(7))];
    for published in BOTH_RULES {
        let (rows, summary) = fold(&events, clock(SECOND_NS), published);
        let slots: Vec<i64> = rows.iter().map(|row| integers(row, &["slot"])[0]).collect();
        assert_eq!(slots, [3, 4, 5, 6, 7]);
        let gaps: Vec<&Value> = rows.iter().map(|row| &row["is_gap"]).collect();
        assert_eq!(gaps, [false, true, true, true, false].map(Value::Flag).iter().collect::<Vec<_>>());
        assert_eq!((summary.first_slot, summary.last_slot, summary.gaps), (Some(3), Some(7), 3));
    }
}

#[test]
fn a_host_that_reported_nothing_has_no_records() {
    let (rows, summary) = fold(&[], clock(SECOND_NS), false);
    assert_eq!((rows.len(), summary), (0, TimelineSummary::default()));
}

#[test]
fn messages_before_the_start_of_the_chain_only_start_the_records() {
    let events = [at(-5.0, Fact::MempoolSize { transactions: 9 }), at(1.5, loop_start(1))];
    for published in BOTH_RULES {
        let (rows, summary) = fold(&events, clock(SECOND_NS), published);
        assert_eq!(summary.before_start, 1);
        assert_eq!(integers(&rows[0], &["slot", "mempool_transactions"]), [0, 0]);
        assert_eq!(integers(&rows[1], &["slot", "mempool_transactions"]), [1, 0]);
    }
}

#[test]
fn the_epoch_of_the_first_record_is_not_computed() {
    let events = [at(250.5, loop_start(250)), at(251.5, loop_start(251))];
    for published in BOTH_RULES {
        let (rows, _) = fold(&events, clock(SECOND_NS), published);
        let names = ["slot", "epoch", "epoch_slot", "safe_interval"];
        assert_eq!(integers(&rows[0], &names), [250, 0, 0, 0]);
        // 51 / 3 * 0.25 = 4.25.
        assert_eq!(integers(&rows[1], &names), [251, 2, 51, 4]);
    }
}

#[test]
fn the_last_loop_start_of_a_slot_is_used_and_all_are_counted() {
    let events = [at(5.25, loop_start(5)), at(5.5, loop_start(5)), at(6.125, loop_start(6)), at(6.5, loop_start(5))];
    for published in BOTH_RULES {
        let row = record(&events, published, 5);
        assert_eq!(row["starts"], Value::Integer(3));
        assert_eq!(row["started_s"], Value::Number(1.5));
    }
}

#[test]
fn stages_are_measured_from_the_previous_stage() {
    let events = [
        at(4.125, loop_start(4)),
        at(4.25, Fact::BlockContext { slot: 4, block_no: 1, tip: None }),
        at(4.5, Fact::LedgerState { slot: 4 }),
        at(4.5625, Fact::LedgerView { slot: 4 }),
        at(4.625, Fact::Leadership { slot: 4, leads: true }),
        at(4.75, Fact::Ticked { slot: 4, prev: None }),
        at(4.8125, Fact::MempoolSnapshot { slot: 4 }),
        at(4.875, Fact::Forged { slot: 4, block_no: 2, block: hash(1), parent: None }),
        at(5.0, loop_start(5)),
        at(5.125, Fact::LedgerState { slot: 5 }),
        at(5.25, Fact::Leadership { slot: 5, leads: false }),
        at(5.5, Fact::Forged { slot: 5, block_no: 2, block: hash(1), parent: None }),
    ];
    let names =
        ["started", "block_context", "ledger_state", "ledger_view", "leadership", "ticked", "snapshot", "forged"];
    let deltas_s = |row: &Row| names.map(|name| row[&format!("{name}_s")].clone());
    for published in BOTH_RULES {
        let row = record(&events, published, 4);
        let expected = [0.125, 0.125, 0.25, 0.0625, 0.0625, 0.125, 0.0625, 0.0625].map(Value::Number);
        assert_eq!(deltas_s(&row), expected);
        assert_eq!(integers(&row, &["block_contexts", "leads", "checks", "forges"]), [1, 1, 1, 1]);
        // Without the ledger's view, leadership is relative to the start; without a snapshot, the forge to leadership.
        let row = record(&events, published, 5);
        let expected = [Some(0.0), None, None, None, Some(0.25), None, None, Some(0.25)].map(Value::from);
        assert_eq!(deltas_s(&row), expected);
        assert_eq!(integers(&row, &["block_contexts", "leads", "checks", "forges"]), [0, 0, 1, 1]);
    }
}

#[test]
fn the_block_gap_grows_until_the_block_number_changes() {
    let context = |slot, block_no| Fact::BlockContext { slot, block_no, tip: None };
    let events = [
        at(0.1, loop_start(0)),
        at(1.1, loop_start(1)),
        at(1.2, context(1, 7)),
        at(2.1, loop_start(2)),
        at(2.2, context(2, 7)),
        at(4.1, loop_start(4)),
        // About an older slot: it gets the gap of the newest one, which gets the number.
        at(4.2, context(2, 7)),
        at(4.3, context(2, 8)),
        at(5.1, loop_start(5)),
    ];
    for published in BOTH_RULES {
        let (rows, _) = fold(&events, clock(SECOND_NS), published);
        let gaps: Vec<Vec<i64>> = rows.iter().map(|row| integers(row, &["block_gap_slots", "block_no"])).collect();
        // Slot 2 ends with 0 through the new number; slot 4 keeps 4 - 1 and shows 8.
        assert_eq!(gaps, [[0, 0], [0, 7], [0, 7], [2, 7], [3, 8], [1, 8]]);
    }
}

#[test]
fn ledger_figures_belong_to_the_newest_slot_and_are_not_repeated_by_the_exact_rules() {
    let events = [at(0.1, loop_start(0)), at(1.1, loop_start(1)), at(1.7, metrics(400, 0.05)), at(4.1, loop_start(4))];
    let figures = |published: bool, slot: i64| {
        let row = record(&events, published, slot);
        (row["utxo_entries"].clone(), row["density"].clone())
    };
    let reported = (Value::Number(400.0), Value::Number(0.05));
    let zero = (Value::Number(0.0), Value::Number(0.0));
    let none = (Value::Null, Value::Null);
    assert_eq!(
        [0, 1, 2, 3, 4].map(|slot| figures(false, slot)),
        [&none, &reported, &none, &none, &none].map(Clone::clone)
    );
    assert_eq!(
        [0, 1, 2, 3, 4].map(|slot| figures(true, slot)),
        [&zero, &reported, &reported, &reported, &zero].map(Clone::clone)
    );
}

#[test]
fn a_loop_start_of_an_old_node_gives_the_ledger_figures_unless_they_are_zero() {
    let events = [
        at(1.1, Fact::LoopStart { slot: 1, utxo_entries: 400, density: 0.05 }),
        at(1.2, Fact::LoopStart { slot: 1, utxo_entries: 0, density: 0.0 }),
    ];
    for published in BOTH_RULES {
        let row = record(&events, published, 1);
        assert_eq!((&row["utxo_entries"], &row["density"]), (&Value::Number(400.0), &Value::Number(0.05)));
    }
}

#[test]
fn the_mempool_size_is_carried_forward_and_transactions_count_in_their_slot() {
    let events = [
        at(1.1, loop_start(1)),
        at(1.2, Fact::MempoolSize { transactions: 5 }),
        at(1.3, Fact::TransactionsCollected { count: 3 }),
        at(1.4, Fact::TransactionsProcessed { accepted: 3, rejected: -1 }),
        at(1.5, Fact::TransactionsProcessed { accepted: 1, rejected: -1 }),
        at(1.6, Fact::TransactionRejected),
        at(3.1, loop_start(3)),
    ];
    let names = [
        "mempool_transactions",
        "transactions_collected",
        "transactions_accepted",
        "transactions_rejected",
        "rejected_transactions",
    ];
    for published in BOTH_RULES {
        let row = record(&events, published, 1);
        assert_eq!(integers(&row, &names), [5, 3, 4, -2, 1]);
        assert_eq!(row["mempool_reported"], Value::Flag(true));
        for slot in [2, 3] {
            let row = record(&events, published, slot);
            assert_eq!(integers(&row, &names), [5, 0, 0, 0, 0]);
            assert_eq!(row["mempool_reported"], Value::Flag(false));
        }
    }
}

#[test]
fn the_published_rules_ignore_the_new_name_of_a_snapshot() {
    let snapshot = |renamed| Fact::LedgerSnapshot { renamed };
    let events = [at(1.1, loop_start(1)), at(1.2, snapshot(false)), at(1.3, snapshot(true))];
    assert_eq!(record(&events, false, 1)["ledger_snapshots"], Value::Integer(2));
    assert_eq!(record(&events, true, 1)["ledger_snapshots"], Value::Integer(1));
}

#[test]
fn a_change_of_the_chain_is_not_a_message_of_a_slot() {
    let switched = |seconds| at(seconds, Fact::Switched { block: hash(1), delta: 1 });
    let (rows, summary) = fold(&[switched(-3.0), switched(2.5), at(5.5, loop_start(5))], clock(SECOND_NS), false);
    assert_eq!((rows.len(), summary.before_start), (1, 0));
}

#[test]
fn messages_about_slots_that_have_no_record_are_skipped_and_counted() {
    let events = [
        at(5.1, loop_start(5)),
        at(5.2, Fact::BlockContext { slot: 6, block_no: 3, tip: None }),
        at(5.3, Fact::LedgerState { slot: u64::MAX }),
        at(5.4, loop_start(4)),
        at(5.5, Fact::Leadership { slot: 3, leads: true }),
        at(6.1, loop_start(6)),
    ];
    for published in BOTH_RULES {
        let (rows, summary) = fold(&events, clock(SECOND_NS), published);
        assert_eq!((summary.skipped_future, summary.skipped_before, summary.jumps_skipped), (2, 2, 0));
        for row in &rows {
            assert_eq!(integers(row, &["block_contexts", "block_no", "leads", "starts"]), [0, 0, 0, 1]);
        }
    }
}

#[test]
fn a_gap_of_up_to_a_million_slots_is_filled_and_a_longer_jump_is_skipped() {
    let events = [
        at(0.1, loop_start(0)),
        at(1000.1, loop_start(1000)),
        at(2001.1, loop_start(2001)),
        at(2001.2, loop_start(2001 + 1_000_001)),
        at(2001.3, loop_start(u64::MAX)),
        at(3e6, Fact::Resources(Resources::default())),
    ];
    let summary_of = |events: &[Event<'_>]| {
        let mut timeline = Timeline::new(clock(SECOND_NS), true);
        for event in events {
            timeline.listen(event);
        }
        timeline.summary()
    };
    let summary = summary_of(&events);
    assert_eq!((summary.records, summary.gaps, summary.jumps_skipped), (2002, 1999, 3));
    // 999 slots are no long gap, 1000 are.
    assert_eq!(summary.long_gaps, [[1001, 2000]]);
    let summary = summary_of(&[at(0.1, loop_start(0)), at(0.2, loop_start(1_000_000))]);
    assert_eq!((summary.records, summary.gaps, summary.jumps_skipped), (1_000_001, 999_999, 0));
}

fn sample(cpu_centiseconds: u64) -> Fact<'static> {
    Fact::Resources(Resources { cpu_centiseconds, major_collections: cpu_centiseconds, threads: 2, ..<_>::default() })
}

#[test]
fn a_sample_belongs_to_the_slot_of_its_time_and_the_last_of_a_slot_is_used() {
    let events = [
        at(1.0, sample(10)),
        at(2.0, sample(20)),
        at(2.5, sample(30)),
        at(4.1, loop_start(4)),
        at(3.5, sample(40)),
        at(6.1, loop_start(6)),
    ];
    let figures = |published: bool| {
        let (rows, _) = fold(&events, clock(SECOND_NS), published);
        let figure = |row: &Row| {
            let flags = (row["has_resources"] == Value::Flag(true), row["sampled"] == Value::Flag(true));
            (row["cpu_percent"].clone(), row["major_gcs"].clone(), flags)
        };
        rows.iter().map(figure).collect::<Vec<_>>()
    };
    let (null, number) = (Value::Null, Value::Number);
    let expected = [
        (null.clone(), null.clone(), (true, true)),
        (number(20.0), number(10.0), (true, true)),
        (number(10.0), number(10.0), (true, true)),
        (null.clone(), null.clone(), (true, false)),
        (null.clone(), null.clone(), (true, false)),
        (null.clone(), null, (true, false)),
    ];
    assert_eq!(figures(false), expected);
    let expected = [
        (number(1.0), number(10.0), (true, true)),
        (number(20.0), number(10.0), (true, true)),
        (number(10.0), number(10.0), (true, true)),
        // Made before the late sample of slot 3 came.
        (number(20.0), number(0.0), (true, false)),
        (number(10.0), number(0.0), (true, false)),
        (number(10.0), number(0.0), (true, false)),
    ];
    assert_eq!(figures(true), expected);
}

#[test]
fn a_sample_before_the_first_record_still_updates_the_counters() {
    let events = [at(5.0, loop_start(5)), at(4.5, sample(100)), at(5.5, sample(150))];
    for published in BOTH_RULES {
        let (rows, summary) = fold(&events, clock(SECOND_NS), published);
        assert_eq!(summary.skipped_before, 1);
        assert_eq!(rows[0]["cpu_percent"], Value::Number(50.0));
    }
}

#[test]
fn the_first_record_has_no_resources_and_later_ones_only_by_the_published_rules() {
    let events = [at(1.0, loop_start(1)), at(2.0, loop_start(2))];
    for published in BOTH_RULES {
        let (rows, _) = fold(&events, clock(SECOND_NS), published);
        assert_eq!(rows[0]["has_resources"], Value::Flag(false));
        assert_eq!(rows[0]["cpu_percent"], Value::Null);
        assert_eq!(rows[1]["has_resources"], Value::Flag(published));
        assert_eq!(rows[1]["cpu_percent"], if published { Value::Number(0.0) } else { Value::Null });
    }
}

#[test]
fn a_restart_is_reported_with_its_time() {
    let events = [at(1.0, sample(100)), at(2.0, sample(110)), at(3.0, sample(4)), at(4.0, sample(14))];
    for published in BOTH_RULES {
        let (rows, summary) = fold(&events, clock(SECOND_NS), published);
        assert_eq!(summary.restarts, [SYSTEM_START_NS + 3 * SECOND_NS]);
        let expected = if published { Value::Number(18_446_744_073_709_551_616.0) } else { Value::Number(4.0) };
        assert_eq!(rows[2]["major_gcs"], expected);
        assert_eq!(rows[3]["major_gcs"], Value::Number(10.0));
    }
}

// The slow fold: one map a record, the fields by their column's name, one rule after the other as they are written.

#[derive(Default)]
struct Slow {
    published: bool,
    records: HashMap<i64, HashMap<&'static str, f64>>,
    first: Option<i64>,
    head: i64,
    mempool: f64,
    block_no: i64,
    last_block_slot: i64,
    stamp: i64,
    old: Resources,
    samples: u64,
    current: HashMap<&'static str, f64>,
    skipped: [u64; 4],
    /// Of the last block context.
    context_slot: Option<u64>,
    waiting: Vec<(u64, Event<'static>)>,
    reported: HashSet<(i64, String)>,
}

const GAUGES: [&str; 4] = ["rss_mib", "heap_mib", "live_mib", "threads"];
const PERCENTS: [&str; 4] = ["cpu_percent", "gc_percent", "mutator_percent", "block_io_percent"];
const DELTAS: [&str; 7] =
    ["major_gcs", "minor_gcs", "alloc_mib", "net_read_kib", "net_write_kib", "file_read_kib", "file_write_kib"];

impl Slow {
    fn new_record(&mut self, slot: i64, gap_of: Option<i64>) {
        let mut record = HashMap::new();
        record.insert("block_gap_slots", (slot - self.last_block_slot) as f64);
        record.insert("block_no", self.block_no as f64);
        record.insert("mempool_transactions", self.mempool);
        record.insert("is_gap", f64::from(u8::from(gap_of.is_some())));
        if self.published {
            for name in ["utxo_entries", "density"] {
                record.insert(name, gap_of.map_or(0.0, |head| self.records[&head][name]));
            }
            for name in PERCENTS.iter().chain(&GAUGES).chain(&DELTAS) {
                let carried = if DELTAS.contains(name) { None } else { self.current.get(name) };
                record.insert(name, carried.copied().unwrap_or(0.0));
            }
        }
        if self.published || self.samples > 0 {
            record.insert("has_resources", 1.0);
        }
        self.records.insert(slot, record);
    }

    fn extend(&mut self, slot: i128) -> bool {
        if slot - i128::from(self.head) > 1_000_000 {
            self.skipped[2] += 1;
            return false;
        }
        let (slot, real) = (slot as i64, self.head);
        while self.head < slot {
            self.head += 1;
            let gap_of = (self.head < slot).then_some(real);
            self.new_record(self.head, gap_of);
        }
        true
    }

    fn record(&mut self, slot: i128) -> Option<&mut HashMap<&'static str, f64>> {
        if slot > i128::from(self.head) {
            self.skipped[0] += 1;
            return None;
        }
        if slot < i128::from(self.first.unwrap()) {
            self.skipped[1] += 1;
            return None;
        }
        self.records.get_mut(&(slot as i64))
    }

    fn resources(&mut self, at_ns: i64, new: &Resources) {
        let is_late = !self.published && self.samples > 0 && (1..10 * SECOND_NS).contains(&(self.stamp - at_ns));
        let previous = (self.old, self.stamp, self.samples);
        self.figures(at_ns, new);
        if is_late {
            // The counters of a misplaced line are older than the reported ones.
            (self.old, self.stamp, self.samples) = previous;
        }
    }

    fn figures(&mut self, at_ns: i64, new: &Resources) {
        let mut current = HashMap::new();
        let (old, passed_ns) = (self.old, at_ns - self.stamp);
        let pairs = [
            ("cpu_percent", old.cpu_centiseconds, new.cpu_centiseconds),
            ("gc_percent", old.gc_centiseconds, new.gc_centiseconds),
            ("mutator_percent", old.mutator_centiseconds, new.mutator_centiseconds),
            ("block_io_percent", old.block_io_centiseconds, new.block_io_centiseconds),
            ("major_gcs", old.major_collections, new.major_collections),
            ("minor_gcs", old.minor_collections, new.minor_collections),
            ("alloc_mib", old.allocated_bytes, new.allocated_bytes),
            ("net_read_kib", old.net_read_bytes, new.net_read_bytes),
            ("net_write_kib", old.net_written_bytes, new.net_written_bytes),
            ("file_read_kib", old.file_read_bytes, new.file_read_bytes),
            ("file_write_kib", old.file_written_bytes, new.file_written_bytes),
        ];
        let restarted = passed_ns > 0 && pairs.iter().any(|(_, old, new)| new < old);
        for (name, old, new) in pairs {
            let unit = if name.ends_with("_mib") { 1 << 20 } else { 1 << 10 };
            let passed_s = passed_ns as f64 / 1e9;
            let grown = new.wrapping_sub(if restarted && !self.published { 0 } else { old });
            let value = match (self.published, PERCENTS.contains(&name), name.ends_with("ib")) {
                (true, true, _) if passed_ns <= 0 => 0.0,
                (true, true, _) => f64::from((grown.wrapping_mul(100) as f32 / (passed_s as f32 * 100f32)).ceil()),
                (true, _, true) => (grown / unit) as f64,
                (true, _, false) => grown as f64,
                (false, ..) if self.samples == 0 || passed_ns <= 0 => f64::NAN,
                (false, true, _) => grown as f64 / passed_s,
                (false, _, true) => grown as f64 / unit as f64 / passed_s,
                (false, _, false) => grown as f64,
            };
            current.insert(name, value);
        }
        for (name, bytes) in GAUGES.into_iter().zip([new.rss_bytes, new.heap_bytes, new.live_bytes]) {
            let mib = bytes as f64 / 1048576.0;
            current.insert(name, if self.published { mib.floor() } else { mib });
        }
        current.insert("threads", new.threads as f64);
        self.current = current.into_iter().filter(|(_, value)| !value.is_nan()).collect();
        (self.old, self.stamp) = (*new, at_ns);
        self.samples += 1;
    }

    /// Whether the stage of the slot's round was reported with this time before.
    fn is_repeated(&mut self, slot: u64, name: &str, at: f64) -> bool {
        let record = i64::try_from(slot).ok().and_then(|slot| self.records.get(&slot));
        !self.published && record.is_some_and(|record| record.get(name) == Some(&at))
    }

    fn wait(&mut self, slot: u64, event: &Event<'_>) {
        let is_ahead = i128::from(slot) > i128::from(self.head);
        if is_ahead && !self.published {
            self.waiting.push((slot, Event { at_ns: event.at_ns, fact: event.fact.without_peer() }));
        }
    }

    fn take_waiting(&mut self, slot: u64, at_ns: i64, clock: &Clock) {
        let of_slot = |(of, event): &(u64, Event<'static>)| *of == slot && event.at_ns >= at_ns;
        let (taken, left) = std::mem::take(&mut self.waiting).into_iter().partition(of_slot);
        self.waiting = left;
        let taken: Vec<(u64, Event<'static>)> = taken;
        for (_, event) in taken {
            self.skipped[0] -= 1;
            self.listen(&event, clock);
        }
    }

    fn listen(&mut self, event: &Event<'_>, clock: &Clock) {
        match event.fact {
            Fact::Switched { .. } => return,
            Fact::LedgerSnapshot { renamed: true } if self.published => return,
            _ => {}
        }
        let implied =
            |at_ns: i64| ((at_ns - clock.system_start_ns) as f64 / clock.slot_length_ns as f64).floor() as i64;
        if self.first.is_none() {
            let slot = implied(event.at_ns.max(clock.system_start_ns));
            (self.first, self.head) = (Some(slot), slot);
            self.new_record(slot, None);
            let record = self.records.get_mut(&slot).unwrap();
            record.retain(|name, _| ["utxo_entries", "density"].contains(name));
        }
        if event.at_ns < clock.system_start_ns {
            self.skipped[3] += 1;
            return;
        }
        let (at, head) = ((event.at_ns - clock.system_start_ns) as f64, self.head);
        let is_of_now = matches!(
            event.fact,
            Fact::MempoolSize { .. }
                | Fact::LedgerMetrics { .. }
                | Fact::TransactionRejected
                | Fact::LedgerSnapshot { .. }
                | Fact::TransactionsCollected { .. }
                | Fact::TransactionsProcessed { .. }
        );
        if is_of_now && !self.published && event.at_ns % 1_000_000 != 0 {
            let content = match event.fact {
                Fact::LedgerMetrics { slot, .. } => format!("metrics of {slot}"),
                ref other => format!("{other:?}"),
            };
            if !self.reported.insert((event.at_ns, content)) {
                return;
            }
        }
        match event.fact {
            Fact::BlockContext { slot, .. }
            | Fact::LedgerState { slot }
            | Fact::LedgerView { slot }
            | Fact::Leadership { slot, .. }
            | Fact::Ticked { slot, .. }
            | Fact::MempoolSnapshot { slot }
            | Fact::Forged { slot, .. } => self.wait(slot, event),
            _ => {}
        }
        let newest = self.records.get_mut(&head).unwrap();
        match event.fact {
            Fact::Resources(ref new) => {
                let slot = i128::from(implied(event.at_ns));
                if self.extend(slot) {
                    self.resources(event.at_ns, new);
                    let current = self.current.clone();
                    if let Some(record) = self.record(slot) {
                        record.extend(current);
                        record.extend([("has_resources", 1.0), ("sampled", 1.0)]);
                    }
                }
            }
            Fact::LoopStart { slot, utxo_entries, density } => {
                if !self.extend(slot.into()) {
                    return;
                }
                let is_repeated = self.is_repeated(slot, "started", at);
                let Some(record) = self.record(slot.into()) else { return };
                *record.entry("starts").or_default() += if is_repeated { 0.0 } else { 1.0 };
                record.insert("started", at);
                if utxo_entries > 0 {
                    record.insert("utxo_entries", utxo_entries as f64);
                }
                if density > 0.0 {
                    record.insert("density", density);
                }
                self.take_waiting(slot, event.at_ns, clock);
            }
            Fact::BlockContext { slot, block_no, .. } => {
                let is_new = block_no != self.block_no;
                let gap = newest.get("block_gap_slots").copied().unwrap_or(0.0);
                let is_repeated = self.is_repeated(slot, "block_context", at);
                let is_late = !self.published && self.context_slot.is_some_and(|last| slot < last);
                let Some(record) = self.record(slot.into()) else { return };
                *record.entry("block_contexts").or_default() += if is_repeated { 0.0 } else { 1.0 };
                record.insert("block_context", at);
                if is_repeated || is_late {
                    return;
                }
                self.context_slot = Some(slot);
                let Some(record) = self.records.get_mut(&(slot as i64)) else { return };
                record.insert("block_gap_slots", if is_new { 0.0 } else { gap });
                self.records.get_mut(&head).unwrap().insert("block_no", block_no as f64);
                if is_new {
                    self.last_block_slot = head;
                }
                self.block_no = block_no;
            }
            Fact::MempoolSize { transactions } => {
                self.mempool = transactions as f64;
                newest.extend([("mempool_transactions", self.mempool), ("mempool_reported", 1.0)]);
            }
            Fact::LedgerMetrics { utxo_entries, density, .. } => {
                newest.extend([("utxo_entries", utxo_entries as f64), ("density", density)]);
            }
            Fact::TransactionRejected => *newest.entry("rejected_transactions").or_default() += 1.0,
            Fact::LedgerSnapshot { .. } => *newest.entry("ledger_snapshots").or_default() += 1.0,
            Fact::TransactionsCollected { count } => {
                *newest.entry("transactions_collected").or_default() += count as f64;
            }
            Fact::TransactionsProcessed { accepted, rejected } => {
                *newest.entry("transactions_accepted").or_default() += accepted as f64;
                *newest.entry("transactions_rejected").or_default() += rejected as f64;
            }
            Fact::LedgerState { slot } => self.time(slot, "ledger_state", at, &[]),
            Fact::LedgerView { slot } => self.time(slot, "ledger_view", at, &[]),
            Fact::Leadership { slot, leads: true } => self.time(slot, "leadership", at, &["checks", "leads"]),
            Fact::Leadership { slot, leads: false } => self.time(slot, "leadership", at, &["checks"]),
            Fact::Ticked { slot, .. } => self.time(slot, "ticked", at, &[]),
            Fact::MempoolSnapshot { slot } => self.time(slot, "snapshot", at, &[]),
            Fact::Forged { slot, .. } => self.time(slot, "forged", at, &["forges"]),
            _ => {}
        }
    }

    fn time(&mut self, slot: u64, name: &'static str, at: f64, counts: &[&'static str]) {
        let counts = if self.is_repeated(slot, name, at) { &[] } else { counts };
        if let Some(record) = self.record(slot.into()) {
            record.insert(name, at);
            for count in counts {
                *record.entry(count).or_default() += 1.0;
            }
        }
    }

    fn rows(&self, clock: &Clock) -> Vec<Row> {
        let first = self.first.unwrap();
        (first..=self.head).map(|slot| self.row(slot, slot == first, clock)).collect()
    }

    fn row(&self, slot: i64, is_first: bool, clock: &Clock) -> Row {
        let record = &self.records[&slot];
        let of = |name: &str| record.get(name).copied();
        let mut row = Row::new();
        let epoch_slot = if is_first { 0 } else { slot % clock.epoch_slots };
        let safe = (epoch_slot as f64 / clock.security_parameter as f64 * clock.active_slots_coefficient).floor();
        row.insert("slot".into(), Value::Integer(slot));
        row.insert("epoch".into(), Value::Integer(if is_first { 0 } else { slot / clock.epoch_slots }));
        row.insert("epoch_slot".into(), Value::Integer(epoch_slot));
        row.insert("safe_interval".into(), Value::Integer(safe as i64));
        let counts = ["starts", "block_contexts", "leads", "forges", "ledger_snapshots", "rejected_transactions"];
        let flows = ["transactions_collected", "transactions_accepted", "transactions_rejected"];
        let carried = ["checks", "block_no", "block_gap_slots", "mempool_transactions"];
        for name in counts.iter().chain(&flows).chain(&carried) {
            row.insert((*name).into(), Value::Integer(of(name).unwrap_or(0.0) as i64));
        }
        for name in ["mempool_reported", "has_resources", "sampled", "is_gap"] {
            row.insert(name.into(), Value::Flag(of(name) == Some(1.0)));
        }
        for name in ["utxo_entries", "density"].iter().chain(&GAUGES).chain(&PERCENTS).chain(&DELTAS) {
            row.insert((*name).into(), of(name).into());
        }
        let since = |name: &str, before: Option<f64>| Some((of(name)? - before?) / 1e9);
        let start = (slot * clock.slot_length_ns) as f64;
        let leadership = since("leadership", of("ledger_view")).or(since("leadership", of("started")));
        let forged = since("forged", of("snapshot")).or(since("forged", of("leadership")));
        for (name, delta_s) in [
            ("started_s", since("started", Some(start))),
            ("block_context_s", since("block_context", of("started"))),
            ("ledger_state_s", since("ledger_state", of("block_context"))),
            ("ledger_view_s", since("ledger_view", of("ledger_state"))),
            ("leadership_s", leadership),
            ("ticked_s", since("ticked", of("leadership"))),
            ("snapshot_s", since("snapshot", of("ticked"))),
            ("forged_s", forged),
        ] {
            row.insert(name.into(), delta_s.into());
        }
        row
    }
}

/// The next step: the elapsed time, the message, its slot relative to the time's, and its figures.
type Step = (i64, u8, i64, u64);

fn step() -> impl Strategy<Value = Step> {
    let passed_ns = prop_oneof![
        30 => 0..SECOND_NS / 2,
        10 => 0..3 * SECOND_NS,
        4 => -3 * SECOND_NS..0,
        1 => 3 * SECOND_NS..30 * SECOND_NS,
    ];
    let beside = prop_oneof![20 => Just(0i64), 5 => -4..3i64, 1 => Just(2_000_000i64)];
    (passed_ns, 0..18u8, beside, any::<u64>())
}

fn event((at_ns, message, beside, figure): Step, clock: &Clock) -> Event<'static> {
    let implied = (at_ns - clock.system_start_ns).div_euclid(clock.slot_length_ns);
    let slot = (implied + beside).max(0) as u64;
    let small = figure % 5;
    let fact = match message {
        0..=2 => Fact::LoopStart { slot, utxo_entries: small, density: small as f64 / 3.0 },
        3 | 4 => Fact::BlockContext { slot, block_no: small as i64 - 1, tip: None },
        5 => Fact::LedgerState { slot },
        6 => Fact::LedgerView { slot },
        7 => Fact::Leadership { slot, leads: small == 0 },
        8 => Fact::Ticked { slot, prev: None },
        9 => Fact::MempoolSnapshot { slot },
        10 => Fact::Forged { slot, block_no: 0, block: hash(small as u8), parent: None },
        11 => Fact::LedgerMetrics { slot, utxo_entries: figure % 1000, density: small as f64 / 7.0 },
        12 => Fact::TransactionsProcessed { accepted: small, rejected: -(small as i64) },
        13 => Fact::MempoolSize { transactions: small },
        14 => [Fact::TransactionRejected, Fact::TransactionsCollected { count: small }][(figure % 2) as usize],
        15 => Fact::LedgerSnapshot { renamed: small == 0 },
        16 => [Fact::Switched { block: hash(0), delta: 1 }, Fact::TransactionsAcknowledged][(figure % 2) as usize],
        _ => Fact::Resources(resources(at_ns, figure)),
    };
    Event { at_ns, fact }
}

/// Counters that mostly grow with the time, and now and then fall to those of a young process.
fn resources(at_ns: i64, figure: u64) -> Resources {
    let age = if figure.is_multiple_of(8) { 100 } else { ((at_ns - SYSTEM_START_NS) / 10_000_000 + 100_000) as u64 };
    Resources {
        cpu_centiseconds: age * 90 / 100 + figure % 7,
        gc_centiseconds: age / 10,
        mutator_centiseconds: age * 8 / 10 + figure % 3,
        major_collections: age / 300,
        minor_collections: age / 7,
        allocated_bytes: age * 3_333_333,
        live_bytes: figure >> 20,
        heap_bytes: figure >> 21,
        rss_bytes: figure >> 22,
        block_io_centiseconds: age / 90,
        net_read_bytes: age * 1111,
        net_written_bytes: age * 777,
        file_read_bytes: age * 55,
        file_written_bytes: age * 1025,
        threads: figure % 30,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_records_match_the_naive_fold(
        steps in prop::collection::vec(step(), 1..100),
        start_ns in -2 * SECOND_NS..130 * SECOND_NS,
        slot_length_ns in prop_oneof![Just(SECOND_NS), Just(SECOND_NS / 5)],
        published: bool,
    ) {
        let clock = clock(slot_length_ns);
        let mut at_ns = SYSTEM_START_NS + start_ns;
        let mut events = Vec::new();
        for (passed_ns, message, beside, figure) in steps {
            at_ns += passed_ns;
            events.push(event((at_ns, message, beside, figure), &clock));
        }
        let mut slow = Slow { published, ..Slow::default() };
        events.iter().for_each(|event| slow.listen(event, &clock));
        let (rows, summary) = fold(&events, clock, published);
        if slow.first.is_none() {
            prop_assert_eq!(rows.len(), 0);
            return Ok(());
        }
        let expected = slow.rows(&clock);
        prop_assert_eq!(rows.len(), expected.len());
        for (row, expected) in rows.iter().zip(&expected) {
            prop_assert_eq!(row, expected);
        }
        let skipped =
            [summary.skipped_future, summary.skipped_before, summary.jumps_skipped, summary.before_start];
        prop_assert_eq!(skipped, slow.skipped);
    }
}

/// A round in slot 5 with one line in another's position, by their order in time.
fn round_with(from: usize, to: usize) -> Vec<Event<'static>> {
    let mut events = vec![
        at(4.0, loop_start(4)),
        at(5.0, loop_start(5)),
        at(5.1, Fact::BlockContext { slot: 5, block_no: 2, tip: None }),
        at(5.2, Fact::LedgerState { slot: 5 }),
        at(5.3, Fact::LedgerView { slot: 5 }),
        at(5.4, Fact::Leadership { slot: 5, leads: true }),
        at(5.5, sample(100)),
        at(6.0, loop_start(6)),
        at(6.1, Fact::BlockContext { slot: 6, block_no: 3, tip: None }),
        at(6.5, sample(150)),
        at(7.0, loop_start(7)),
        at(7.5, sample(210)),
    ];
    let moved = events.remove(from);
    events.insert(to, moved);
    events
}

#[test]
fn a_displaced_line_has_the_same_effect_as_in_order() {
    let (rows, summary) = fold(&round_with(0, 0), clock(SECOND_NS), false);
    for (from, to) in [(1, 5), (1, 9), (2, 8), (5, 10), (8, 3)] {
        let (moved, moved_summary) = fold(&round_with(from, to), clock(SECOND_NS), false);
        for stage in ["starts", "started_s", "block_context_s", "ledger_state_s", "ledger_view_s", "leadership_s"] {
            for (row, expected) in moved.iter().zip(&rows) {
                assert_eq!(row[stage], expected[stage], "{stage}, {from} to {to}");
            }
        }
        assert_eq!(moved_summary.skipped_future, summary.skipped_future, "{from} to {to}");
    }
}

#[test]
fn a_displaced_sample_is_not_a_restart() {
    let (rows, summary) = fold(&round_with(6, 9), clock(SECOND_NS), false);
    assert_eq!(summary.restarts, [0i64; 0]);
    assert_eq!(rows[3]["cpu_percent"], Value::Number(60.0));
}

#[test]
fn repeated_messages_count_once() {
    let once = [
        at(5.000_000_1, loop_start(5)),
        at(5.100_000_1, Fact::Leadership { slot: 5, leads: true }),
        at(5.200_000_1, Fact::TransactionsCollected { count: 3 }),
        at(5.300_000_1, Fact::TransactionRejected),
    ];
    let twice: Vec<_> = once.iter().chain(&once).cloned().collect();
    let (rows, _) = fold(&twice, clock(SECOND_NS), false);
    let counts = ["starts", "checks", "leads", "transactions_collected", "rejected_transactions"];
    assert_eq!(integers(&rows[0], &counts), [1, 1, 1, 3, 1]);
    let (rows, _) = fold(&twice, clock(SECOND_NS), true);
    assert_eq!(integers(&rows[0], &counts), [2, 2, 2, 6, 2]);
}
