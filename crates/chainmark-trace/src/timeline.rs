//! One host's slots: the data of the forge loop, the mempool, the ledger and the process in each of them.
//!
//! Records represent consecutive slots, from that of the host's first message on. They are kept as columns; of a gap
//! only its ends and its records' common values are kept, so that memory only grows with what was logged.

use std::path::Path;

use serde::Serialize;

use crate::columns::{Field, Kind, Table};
use crate::error::Result;
use crate::event::{Event, Fact};
use crate::recent::Recent;
use crate::resources::{Accumulators, FIGURES, Figures, NO_FIGURES};
use crate::usage::{Unused, Use};

/// No time.
pub const NEVER: i64 = i64::MIN;
/// A jump to a slot further ahead is no gap but a wrong number.
const LONGEST_JUMP: i64 = 1_000_000;
/// Records made by filling that are worth a mention.
const LONG_GAP: i64 = 1000;
/// Rows of a group of the table: readers assemble hosts group by group.
pub const GROUP_ROWS: usize = 8192;
const SECOND_NS: f64 = 1e9;
/// Messages that wait for the beginning of their slot's round, if lines are out of order.
const WAITING: usize = 64;
const REPETITION: Use = Use::Unused(Unused::Repetition);

/// The chain's clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    pub system_start_ns: i64,
    pub slot_length_ns: i64,
    pub epoch_slots: i64,
    pub security_parameter: i64,
    pub active_slots_coefficient: f64,
}

impl Clock {
    pub fn slot_start_ns(&self, slot: i64) -> i64 {
        self.system_start_ns.saturating_add(slot.saturating_mul(self.slot_length_ns))
    }

    fn implied_slot(&self, at_ns: i64) -> i64 {
        at_ns.saturating_sub(self.system_start_ns).div_euclid(self.slot_length_ns)
    }

    fn safe_interval(&self, epoch_slot: i64) -> i64 {
        (epoch_slot as f64 / self.security_parameter as f64 * self.active_slots_coefficient).floor() as i64
    }
}

/// Stages of the forge loop in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Started,
    BlockContext,
    LedgerState,
    LedgerView,
    Leadership,
    Ticked,
    Snapshot,
    Forged,
}

pub const PHASES: [&str; 8] =
    ["started", "block_context", "ledger_state", "ledger_view", "leadership", "ticked", "snapshot", "forged"];

#[derive(Debug, Clone, Copy)]
enum Count {
    Starts,
    BlockContexts,
    Leads,
    Forges,
    LedgerSnapshots,
    RejectedTransactions,
    Checks,
}

const COUNTS: [&str; 7] =
    ["starts", "block_contexts", "leads", "forges", "ledger_snapshots", "rejected_transactions", "checks"];

#[derive(Debug, Clone, Copy)]
enum Flow {
    Collected,
    Accepted,
    Rejected,
}

const FLOWS: [&str; 3] = ["transactions_collected", "transactions_accepted", "transactions_rejected"];

/// One vector a field; NaN and `NEVER` are "no value".
#[derive(Debug, Default)]
struct Records {
    slots: Vec<i64>,
    counts: [Vec<u32>; COUNTS.len()],
    phases_ns: [Vec<i64>; PHASES.len()],
    flows: [Vec<i64>; FLOWS.len()],
    block_no: Vec<i64>,
    block_gap: Vec<i64>,
    mempool: Vec<i64>,
    mempool_reported: Vec<bool>,
    utxo_entries: Vec<f64>,
    density: Vec<f64>,
    figures: [Vec<f64>; FIGURES.len()],
    has_resources: Vec<bool>,
    sampled: Vec<bool>,
    is_gap: Vec<bool>,
}

/// What a new record begins with.
#[derive(Debug, Clone)]
struct Beginning {
    block_no: i64,
    block_gap: i64,
    mempool: i64,
    utxo_entries: f64,
    density: f64,
    figures: Figures,
    has_resources: bool,
    is_gap: bool,
}

impl Records {
    fn len(&self) -> usize {
        self.slots.len()
    }

    fn insert(&mut self, place: usize, slot: i64, beginning: &Beginning) {
        self.slots.insert(place, slot);
        self.counts.iter_mut().for_each(|column| column.insert(place, 0));
        self.phases_ns.iter_mut().for_each(|column| column.insert(place, NEVER));
        self.flows.iter_mut().for_each(|column| column.insert(place, 0));
        self.block_no.insert(place, beginning.block_no);
        self.block_gap.insert(place, beginning.block_gap);
        self.mempool.insert(place, beginning.mempool);
        self.mempool_reported.insert(place, false);
        self.utxo_entries.insert(place, beginning.utxo_entries);
        self.density.insert(place, beginning.density);
        self.figures.iter_mut().zip(beginning.figures).for_each(|(column, figure)| column.insert(place, figure));
        self.has_resources.insert(place, beginning.has_resources);
        self.sampled.insert(place, false);
        self.is_gap.insert(place, beginning.is_gap);
    }

    /// The index of a slot's record, or its insertion point.
    fn find(&self, slot: i64) -> std::result::Result<usize, usize> {
        match self.slots.last() {
            Some(&last) if last == slot => Ok(self.len() - 1),
            _ => self.slots.binary_search(&slot),
        }
    }

    /// A stage of a round: the last line of it counts. The same one twice, to the time, is a repetition, except where
    /// every line counts.
    fn reach(&mut self, place: usize, phase: Phase, at_ns: i64, counts: &[Count], by_line: bool) -> Use {
        let recorded_ns = &mut self.phases_ns[phase as usize][place];
        if *recorded_ns == at_ns && !by_line {
            return REPETITION;
        }
        *recorded_ns = at_ns;
        for &count in counts {
            add_one(&mut self.counts[count as usize][place]);
        }
        Use::Used
    }

    fn set_figures(&mut self, place: usize, figures: Figures) {
        // A second sample without rates, because no time had passed, keeps those of the first.
        for (column, figure) in self.figures.iter_mut().zip(figures) {
            column[place] = if figure.is_nan() { column[place] } else { figure };
        }
        self.has_resources[place] = true;
        self.sampled[place] = true;
    }

    /// The distance of a phase of a record from the previous one: the first of `since` that has a time.
    fn passed_s(&self, place: usize, phase: Phase, since: &[Phase]) -> Option<f64> {
        let at_ns = |phase: Phase| Some(self.phases_ns[phase as usize][place]).filter(|&at_ns| at_ns != NEVER);
        let since_ns = since.iter().find_map(|&phase| at_ns(phase))?;
        Some(seconds(at_ns(phase)?.saturating_sub(since_ns)))
    }
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / SECOND_NS
}

/// Slots without any line.
#[derive(Debug, Clone)]
struct Gap {
    first: i64,
    last: i64,
    last_block_slot: i64,
    /// What all their records begin with, but for the distance from the last block.
    beginning: Beginning,
}

impl Gap {
    fn beginning_of(&self, slot: i64) -> Beginning {
        Beginning { block_gap: slot - self.last_block_slot, ..self.beginning.clone() }
    }
}

/// Counts that the records do not contain.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TimelineSummary {
    pub records: u64,
    pub first_slot: Option<i64>,
    pub last_slot: Option<i64>,
    /// Records made because their slots had no line.
    pub gaps: u64,
    /// First and last slot of every gap of 1000 slots or more.
    pub long_gaps: Vec<[i64; 2]>,
    /// Messages about slots that had not begun.
    pub skipped_future: u64,
    /// Messages about slots before the first record.
    pub skipped_before: u64,
    /// Messages more than a million slots ahead.
    pub jumps_skipped: u64,
    pub restarts: Vec<i64>,
    /// Messages from before the chain's start.
    pub before_start: u64,
}

/// A message about a slot that has not begun.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    slot: u64,
    at_ns: i64,
    phase: Phase,
    counts: &'static [Count],
    /// Of a block context.
    block_no: Option<i64>,
}

/// The records of one host, made from its events in the order of its files.
pub struct Timeline {
    clock: Clock,
    published: bool,
    first_slot: i64,
    records: Records,
    /// By their slots.
    gaps: Vec<Gap>,
    accumulators: Accumulators,
    mempool: i64,
    block_no: i64,
    last_block_slot: i64,
    /// Of the last block context.
    context_slot: i64,
    waiting: Vec<Waiting>,
    recovered: u64,
    recent: Recent,
    summary: TimelineSummary,
}

impl Timeline {
    pub fn new(clock: Clock, published: bool) -> Self {
        Self {
            clock,
            published,
            first_slot: 0,
            records: Records::default(),
            gaps: Vec::new(),
            accumulators: Accumulators::new(published),
            mempool: 0,
            block_no: 0,
            last_block_slot: 0,
            context_slot: i64::MIN,
            waiting: Vec::new(),
            recovered: 0,
            recent: Recent::default(),
            summary: TimelineSummary::default(),
        }
    }

    /// Messages that were counted as of a slot not begun and are used after all.
    pub fn recovered(&self) -> u64 {
        self.recovered
    }

    /// Process an event; None means that it is not about a slot.
    pub fn listen(&mut self, event: &Event<'_>) -> Option<Use> {
        match event.fact {
            // The published analysis knows neither.
            Fact::Switched { .. } => return None,
            Fact::LedgerSnapshot { renamed: true } if self.published => return Some(Use::Unused(Unused::NotPublished)),
            _ => {}
        }
        if self.records.len() == 0 {
            self.begin(event.at_ns);
        }
        if event.at_ns < self.clock.system_start_ns {
            self.summary.before_start += 1;
            return Some(Use::Unused(Unused::BeforeStart));
        }
        let at_ns = event.at_ns;
        let use_ = match event.fact {
            Fact::Resources(sample) => {
                let slot = self.clock.implied_slot(at_ns);
                if !self.extend_to(slot) {
                    return Some(Use::Unused(Unused::LongJump));
                }
                let figures = self.accumulators.sample(at_ns, &sample);
                self.with_record(slot, |records, place| {
                    records.set_figures(place, figures);
                    Use::Used
                })
            }
            Fact::LoopStart { slot, utxo_entries, density } => self.start(at_ns, slot, utxo_entries, density),
            Fact::BlockContext { slot, block_no, .. } => self.block_context(at_ns, slot, block_no),
            Fact::LedgerState { slot } => self.phase(at_ns, slot, Phase::LedgerState, &[]),
            Fact::LedgerView { slot } => self.phase(at_ns, slot, Phase::LedgerView, &[]),
            Fact::Leadership { slot, leads: true } => {
                self.phase(at_ns, slot, Phase::Leadership, &[Count::Checks, Count::Leads])
            }
            Fact::Leadership { slot, leads: false } => self.phase(at_ns, slot, Phase::Leadership, &[Count::Checks]),
            Fact::Ticked { slot, .. } => self.phase(at_ns, slot, Phase::Ticked, &[]),
            Fact::MempoolSnapshot { slot } => self.phase(at_ns, slot, Phase::Snapshot, &[]),
            Fact::Forged { slot, .. } => self.phase(at_ns, slot, Phase::Forged, &[Count::Forges]),
            _ if !self.published && self.recent.is_repeated(event) => REPETITION,
            _ => return self.report_head(&event.fact).then_some(Use::Used),
        };
        Some(use_)
    }

    fn begin(&mut self, at_ns: i64) {
        self.first_slot = self.clock.implied_slot(at_ns.max(self.clock.system_start_ns));
        let ledger = if self.published { 0.0 } else { f64::NAN };
        let beginning = Beginning {
            block_no: 0,
            block_gap: 0,
            mempool: 0,
            utxo_entries: ledger,
            density: ledger,
            figures: NO_FIGURES,
            has_resources: false,
            is_gap: false,
        };
        self.records.insert(0, self.first_slot, &beginning);
    }

    fn head(&self) -> usize {
        self.records.len() - 1
    }

    fn head_slot(&self) -> i64 {
        self.records.slots[self.head()]
    }

    /// Add the records up to a slot; false if it is too far ahead to be one.
    fn extend_to(&mut self, slot: i64) -> bool {
        let head_slot = self.head_slot();
        if slot.saturating_sub(head_slot) > LONGEST_JUMP {
            self.summary.jumps_skipped += 1;
            return false;
        }
        let missing = slot - head_slot - 1;
        if missing >= LONG_GAP {
            self.summary.long_gaps.push([head_slot + 1, slot - 1]);
        }
        if missing > 0 {
            self.summary.gaps += missing as u64;
            self.gaps.push(self.gap(head_slot + 1, slot - 1));
        }
        if slot > head_slot {
            let ledger = if self.published { 0.0 } else { f64::NAN };
            let beginning = self.beginning(slot, ledger, ledger, false);
            self.records.insert(self.records.len(), slot, &beginning);
        }
        true
    }

    fn gap(&self, first: i64, last: i64) -> Gap {
        let head = self.head();
        let (utxo_entries, density) = match self.published {
            true => (self.records.utxo_entries[head], self.records.density[head]),
            false => (f64::NAN, f64::NAN),
        };
        let beginning = self.beginning(first, utxo_entries, density, true);
        Gap { first, last, last_block_slot: self.last_block_slot, beginning }
    }

    fn beginning(&self, slot: i64, utxo_entries: f64, density: f64, is_gap: bool) -> Beginning {
        Beginning {
            block_no: self.block_no,
            block_gap: slot - self.last_block_slot,
            mempool: self.mempool,
            utxo_entries,
            density,
            figures: if self.accumulators.has_carried() { self.accumulators.carried() } else { NO_FIGURES },
            has_resources: self.accumulators.has_carried(),
            is_gap,
        }
    }

    /// Change the record of a slot, if there is one.
    fn with_record(&mut self, slot: i64, change: impl FnOnce(&mut Records, usize) -> Use) -> Use {
        if slot > self.head_slot() {
            self.summary.skipped_future += 1;
            return Use::Unused(Unused::SlotNotBegun);
        }
        if slot < self.first_slot {
            self.summary.skipped_before += 1;
            return Use::Unused(Unused::SlotBeforeFirst);
        }
        let place = self.records.find(slot).unwrap_or_else(|place| {
            // A late line belongs to a slot within a gap.
            let gap = &self.gaps[self.gaps.partition_point(|gap| gap.last < slot)];
            self.records.insert(place, slot, &gap.beginning_of(slot));
            place
        });
        change(&mut self.records, place)
    }

    fn phase(&mut self, at_ns: i64, slot: u64, phase: Phase, counts: &'static [Count]) -> Use {
        let by_line = self.published;
        let use_ = self.with_record(to_i64(slot), |records, place| records.reach(place, phase, at_ns, counts, by_line));
        if use_ == Use::Unused(Unused::SlotNotBegun) {
            self.wait(Waiting { slot, at_ns, phase, counts, block_no: None });
        }
        use_
    }

    fn wait(&mut self, message: Waiting) {
        if self.published {
            return;
        }
        if self.waiting.len() == WAITING {
            self.waiting.remove(0);
        }
        self.waiting.push(message);
    }

    /// Process messages about a slot that came before the line that begins it, with a later time.
    fn take_waiting(&mut self, slot: u64, at_ns: i64) {
        let of_slot = |message: &Waiting| message.slot == slot && message.at_ns >= at_ns;
        let messages: Vec<Waiting> = self.waiting.extract_if(.., |message| of_slot(message)).collect();
        for Waiting { slot, at_ns, phase, counts, block_no } in messages {
            let use_ = match block_no {
                Some(block_no) => self.block_context(at_ns, slot, block_no),
                None => self.phase(at_ns, slot, phase, counts),
            };
            self.summary.skipped_future -= 1;
            // A forge is counted with its block.
            self.recovered += u64::from(use_ == Use::Used && phase != Phase::Forged);
        }
    }

    fn start(&mut self, at_ns: i64, slot: u64, utxo_entries: u64, density: f64) -> Use {
        if !self.extend_to(to_i64(slot)) {
            return Use::Unused(Unused::LongJump);
        }
        let by_line = self.published;
        let use_ = self.with_record(to_i64(slot), |records, place| {
            let use_ = records.reach(place, Phase::Started, at_ns, &[Count::Starts], by_line);
            if utxo_entries > 0 {
                records.utxo_entries[place] = utxo_entries as f64;
            }
            if density > 0.0 {
                records.density[place] = density;
            }
            use_
        });
        if !self.waiting.is_empty() {
            self.take_waiting(slot, at_ns);
        }
        use_
    }

    fn block_context(&mut self, at_ns: i64, slot: u64, block_no: i64) -> Use {
        let (is_new, by_line) = (block_no != self.block_no, self.published);
        let head_gap = self.records.block_gap[self.head()];
        let is_late = !by_line && to_i64(slot) < self.context_slot;
        let use_ = self.with_record(to_i64(slot), |records, place| {
            let use_ = records.reach(place, Phase::BlockContext, at_ns, &[Count::BlockContexts], by_line);
            if use_ == Use::Used && !is_late {
                records.block_gap[place] = if is_new { 0 } else { head_gap };
            }
            use_
        });
        if use_ == Use::Unused(Unused::SlotNotBegun) {
            self.wait(Waiting { slot, at_ns, phase: Phase::BlockContext, counts: &[], block_no: Some(block_no) });
        }
        // A past round contains nothing about the current time.
        if use_ == Use::Used && !is_late {
            self.context_slot = to_i64(slot);
            let head = self.head();
            self.records.block_no[head] = block_no;
            self.block_no = block_no;
            if is_new {
                self.last_block_slot = self.head_slot();
            }
        }
        use_
    }

    /// Messages about the current time, whatever slot they name; false if it is none of them.
    fn report_head(&mut self, fact: &Fact<'_>) -> bool {
        let head = self.head();
        let records = &mut self.records;
        let mut flow = |flow: Flow, count: i64| {
            let column = &mut records.flows[flow as usize][head];
            *column = column.saturating_add(count);
        };
        match *fact {
            Fact::TransactionsCollected { count } => flow(Flow::Collected, to_i64(count)),
            Fact::TransactionsProcessed { accepted, rejected } => {
                flow(Flow::Accepted, to_i64(accepted));
                flow(Flow::Rejected, rejected);
            }
            Fact::TransactionRejected => add_one(&mut records.counts[Count::RejectedTransactions as usize][head]),
            Fact::LedgerSnapshot { .. } => add_one(&mut records.counts[Count::LedgerSnapshots as usize][head]),
            Fact::MempoolSize { transactions } => {
                self.mempool = to_i64(transactions);
                records.mempool[head] = self.mempool;
                records.mempool_reported[head] = true;
            }
            Fact::LedgerMetrics { utxo_entries, density, .. } => {
                records.utxo_entries[head] = utxo_entries as f64;
                records.density[head] = density;
            }
            _ => return false,
        }
        true
    }

    pub fn summary(&self) -> TimelineSummary {
        let has_records = self.records.len() > 0;
        TimelineSummary {
            records: if has_records { (self.head_slot() - self.first_slot + 1) as u64 } else { 0 },
            first_slot: has_records.then_some(self.first_slot),
            last_slot: has_records.then(|| self.head_slot()),
            restarts: self.accumulators.restarts_ns.clone(),
            ..self.summary.clone()
        }
    }

    /// Write one row per record, by slot, in groups of `group_rows`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path, group_rows: usize) -> Result<()> {
        let mut table = Table::create(path, &fields(), group_rows)?;
        let mut gaps = self.gaps.iter().peekable();
        for (place, &slot) in self.records.slots.iter().enumerate() {
            let first_missing = if place > 0 { self.records.slots[place - 1] + 1 } else { slot };
            self.write_gap(&mut table, first_missing, slot, &mut gaps)?;
            self.write_row(&mut table, &self.records, place)?;
        }
        table.finish()
    }

    /// Write the records of the slots from `first` to before `until`, which had no line.
    fn write_gap<'a>(
        &self,
        table: &mut Table,
        first: i64,
        until: i64,
        gaps: &mut std::iter::Peekable<impl Iterator<Item = &'a Gap>>,
    ) -> Result<()> {
        for slot in first..until {
            while gaps.next_if(|gap| gap.last < slot).is_some() {}
            let Some(gap) = gaps.peek().filter(|gap| gap.first <= slot) else { continue };
            let mut record = Records::default();
            record.insert(0, slot, &gap.beginning_of(slot));
            self.write_row(table, &record, 0)?;
        }
        Ok(())
    }

    fn write_row(&self, table: &mut Table, records: &Records, place: usize) -> Result<()> {
        let slot = records.slots[place];
        let is_first = slot == self.first_slot;
        let epoch_slot = if is_first { 0 } else { slot.rem_euclid(self.clock.epoch_slots) };
        table.integer(SLOT, slot);
        table.integer(SLOT + 1, if is_first { 0 } else { slot.div_euclid(self.clock.epoch_slots) });
        table.integer(SLOT + 2, epoch_slot);
        table.integer(SLOT + 3, self.clock.safe_interval(epoch_slot));
        for (column, counts) in records.counts.iter().enumerate() {
            table.integer(FIRST_COUNT + column, i64::from(counts[place]));
        }
        for (column, delta_s) in self.deltas_s(records, place).into_iter().enumerate() {
            optional(table, FIRST_DELTA + column, delta_s);
        }
        table.integer(BLOCK_NO, records.block_no[place]);
        table.integer(BLOCK_NO + 1, records.block_gap[place]);
        table.integer(BLOCK_NO + 2, records.mempool[place]);
        table.flag(BLOCK_NO + 3, records.mempool_reported[place]);
        for (column, flows) in records.flows.iter().enumerate() {
            table.integer(FIRST_FLOW + column, flows[place]);
        }
        optional(table, UTXO, known(records.utxo_entries[place]));
        optional(table, UTXO + 1, known(records.density[place]));
        table.flag(UTXO + 2, records.has_resources[place]);
        table.flag(UTXO + 3, records.sampled[place]);
        for (column, figures) in records.figures.iter().enumerate() {
            optional(table, FIRST_FIGURE + column, known(figures[place]));
        }
        table.flag(IS_GAP, records.is_gap[place]);
        table.end_row()
    }

    /// Seconds from stage to stage, in the order of `PHASES`.
    fn deltas_s(&self, records: &Records, place: usize) -> [Option<f64>; PHASES.len()] {
        use Phase::{BlockContext, Forged, Leadership, LedgerState, LedgerView, Snapshot, Started, Ticked};
        let started_ns = records.phases_ns[Started as usize][place];
        let slot_start_ns = self.clock.slot_start_ns(records.slots[place]);
        [
            (started_ns != NEVER).then(|| seconds(started_ns.saturating_sub(slot_start_ns))),
            records.passed_s(place, BlockContext, &[Started]),
            records.passed_s(place, LedgerState, &[BlockContext]),
            records.passed_s(place, LedgerView, &[LedgerState]),
            records.passed_s(place, Leadership, &[LedgerView, Started]),
            records.passed_s(place, Ticked, &[Leadership]),
            records.passed_s(place, Snapshot, &[Ticked]),
            records.passed_s(place, Forged, &[Snapshot, Leadership]),
        ]
    }
}

fn to_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn add_one(count: &mut u32) {
    *count = count.saturating_add(1);
}

fn known(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

fn optional(table: &mut Table, column: usize, value: Option<f64>) {
    if let Some(value) = value {
        table.number(column, value);
    }
}

const SLOT: usize = 0;
const FIRST_COUNT: usize = SLOT + 4;
const FIRST_DELTA: usize = FIRST_COUNT + COUNTS.len();
const BLOCK_NO: usize = FIRST_DELTA + PHASES.len();
const FIRST_FLOW: usize = BLOCK_NO + 4;
const UTXO: usize = FIRST_FLOW + FLOWS.len();
const FIRST_FIGURE: usize = UTXO + 4;
const IS_GAP: usize = FIRST_FIGURE + FIGURES.len();

fn fields() -> Vec<Field> {
    let integer = |name: &&str| Field::required(*name, Kind::Integer);
    let number = |name: &&str| Field::optional(*name, Kind::Number);
    let flag = |name: &str| Field::required(name, Kind::Flag);
    let mut fields: Vec<Field> = ["slot", "epoch", "epoch_slot", "safe_interval"].iter().map(integer).collect();
    fields.extend(COUNTS.iter().map(integer));
    fields.extend(PHASES.iter().map(|phase| Field::optional(format!("{phase}_s"), Kind::Number)));
    fields.extend(["block_no", "block_gap_slots", "mempool_transactions"].iter().map(integer));
    fields.push(flag("mempool_reported"));
    fields.extend(FLOWS.iter().map(integer));
    fields.extend(["utxo_entries", "density"].iter().map(number));
    fields.extend(["has_resources", "sampled"].map(flag));
    fields.extend(FIGURES.iter().map(number));
    fields.push(flag("is_gap"));
    fields
}
