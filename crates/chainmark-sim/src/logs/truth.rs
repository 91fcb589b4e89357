//! `truth.parquet`: the actual events, and what a perfect reader of the logs would see of them.
//!
//! One table; its column `record` states the kind of a row. All times are nanoseconds since 1970-01-01 UTC.
//!
//! **`block`**: one row for every block and every host that received news of it, in the order of the blocks' numbers,
//! then of the hosts.
//!
//! | column | meaning |
//! |---|---|
//! | `host` | the host that the row is about |
//! | `slot`, `block`, `parent` | slot, hash, and hash of the block before; null for the first block |
//! | `block_no` | height: the chain's first block has 0 |
//! | `forger` | the host that forged it |
//! | `role` | `forger` or `observer` |
//! | `on_chain` | whether the block is an ancestor of the best tip at the end of the run, or that tip itself |
//! | `block_bytes` | its size |
//! | `adoption` | `extended`, `switched` (no message that the published analysis reads) or `stored` |
//! | `fetch_length` | blocks of the first fetch request that ends in this block |
//! | `<stage>_ns` | when the stage was reached, by a perfect clock: the first time it was |
//! | `<stage>_printed_ns` | the time in the first line of the stage that was actually written; null if there is none |
//! | `<stage>_written` | whether the line of `<stage>_ns` was written, rather than lost to a fault |
//!
//! The stages are `started`, `block_context`, `ledger_state`, `ledger_view`, `leadership`, `ticked`, `snapshot`,
//! `forged` (forgers only), `noticed`, `requested`, `fetched` (observers only), `announced`, `sent`, `adopted` (the
//! change of the selected chain) and `self_adopted` (the forge loop's own message).
//!
//! **`slot`**: one row for every slot and host that ran in it, by slot, then host.
//!
//! | column | meaning |
//! |---|---|
//! | `started_…` to `leadership_…` | the forge loop's stages as above, but of its *last* pass in the slot |
//! | `loop_starts` | number of lines of a loop start, as written |
//! | `is_leader` | whether the host leads |
//! | `density`, `utxo_entries` | the ledger's figures as written for the slot |
//! | `mempool_transactions` | the mempool's size in the last line with it that was written during the slot |
//! | `resources_printed_ns`, `cpu_centiseconds` … `threads` | the last resource sample written during the slot |
//!
//! **`fault`**: one row for every fault and host: `fault` (its kind), `host`, `fault_from_ns`, `fault_until_ns` (null:
//! from the beginning, to the end), `fault_value` (a probability, seconds, parts per million or a rate), `fault_name`,
//! `fault_lines` (lines that it removed, added or damaged individually; 0 if it changes the host, its clock, or how all
//! its lines read).

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::error::{Result, SimulationError};
use crate::logs::blocks::BlockText;
use crate::logs::fault::Fault;
use crate::logs::resources::Usage;
use crate::trace::GENESIS;

/// Stages with lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Started,
    BlockContext,
    LedgerState,
    LedgerView,
    Leadership,
    Ticked,
    Snapshot,
    Forged,
    Noticed,
    Requested,
    Fetched,
    Announced,
    Sent,
    Adopted,
    SelfAdopted,
}

pub const STAGES: [&str; 15] = [
    "started",
    "block_context",
    "ledger_state",
    "ledger_view",
    "leadership",
    "ticked",
    "snapshot",
    "forged",
    "noticed",
    "requested",
    "fetched",
    "announced",
    "sent",
    "adopted",
    "self_adopted",
];
/// The stages of a loop that does not lead.
pub const LOOP_STAGES: usize = 5;
const NEVER: i64 = i64::MIN;

/// When a stage was reached. Times are nanoseconds since the start of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    true_ns: i64,
    printed_ns: i64,
    written: bool,
}

impl Default for Reached {
    fn default() -> Self {
        Self { true_ns: NEVER, printed_ns: NEVER, written: false }
    }
}

impl Reached {
    /// A line reported it; the first one counts.
    pub fn first(&mut self, true_ns: i64, printed_ns: i64, written: bool) {
        if self.true_ns == NEVER {
            (self.true_ns, self.written) = (true_ns, written);
        }
        if self.printed_ns == NEVER && written {
            self.printed_ns = printed_ns;
        }
    }

    /// A line reported it; the last one counts.
    pub fn last(&mut self, true_ns: i64, printed_ns: i64, written: bool) {
        (self.true_ns, self.written) = (true_ns, written);
        if written {
            self.printed_ns = printed_ns;
        }
    }

    /// A line that repeats it: it has no new time, but may be the first one that was written.
    pub fn repeated(&mut self, printed_ns: i64, written: bool) {
        if self.true_ns != NEVER && self.printed_ns == NEVER && written {
            self.printed_ns = printed_ns;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption {
    Extended,
    Switched,
    Stored,
}

/// What one host did with one block.
#[derive(Debug, Clone, Default)]
pub struct BlockRow {
    pub reached: [Reached; STAGES.len()],
    pub fetch_length: u64,
    pub adoption: Option<Adoption>,
}

/// What one host did in one slot.
#[derive(Debug, Clone, Default)]
pub struct SlotRow {
    pub slot: u64,
    pub reached: [Reached; LOOP_STAGES],
    pub loop_starts: u32,
    pub is_leader: bool,
    pub ledger: Option<(f64, u64)>,
    pub mempool_transactions: Option<u64>,
    /// Printed time and sample.
    pub usage: Option<(i64, Usage)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Integer,
    Number,
    Flag,
    Text,
}

const LEADING: [(&str, Type); 12] = [
    ("record", Type::Text),
    ("host", Type::Text),
    ("slot", Type::Integer),
    ("block", Type::Text),
    ("parent", Type::Text),
    ("block_no", Type::Integer),
    ("forger", Type::Text),
    ("role", Type::Text),
    ("on_chain", Type::Flag),
    ("block_bytes", Type::Integer),
    ("adoption", Type::Text),
    ("fetch_length", Type::Integer),
];
const RECORD: usize = 0;
const HOST: usize = 1;
const SLOT: usize = 2;
const BLOCK: usize = 3;
const PARENT: usize = 4;
const BLOCK_NO: usize = 5;
const FORGER: usize = 6;
const ROLE: usize = 7;
const ON_CHAIN: usize = 8;
const BLOCK_BYTES: usize = 9;
const ADOPTION: usize = 10;
const FETCH_LENGTH: usize = 11;
const FIRST_STAGE: usize = LEADING.len();
const FIRST_TRAILING: usize = FIRST_STAGE + 3 * STAGES.len();
const TRAILING: [(&str, Type); 23] = [
    ("loop_starts", Type::Integer),
    ("is_leader", Type::Flag),
    ("density", Type::Number),
    ("utxo_entries", Type::Integer),
    ("mempool_transactions", Type::Integer),
    ("resources_printed_ns", Type::Integer),
    ("cpu_centiseconds", Type::Integer),
    ("gc_centiseconds", Type::Integer),
    ("mutator_centiseconds", Type::Integer),
    ("major_collections", Type::Integer),
    ("minor_collections", Type::Integer),
    ("allocated_bytes", Type::Integer),
    ("live_bytes", Type::Integer),
    ("heap_bytes", Type::Integer),
    ("rss_bytes", Type::Integer),
    ("file_written_bytes", Type::Integer),
    ("threads", Type::Integer),
    ("fault", Type::Text),
    ("fault_from_ns", Type::Integer),
    ("fault_until_ns", Type::Integer),
    ("fault_value", Type::Number),
    ("fault_name", Type::Text),
    ("fault_lines", Type::Integer),
];
const LOOP_STARTS: usize = FIRST_TRAILING;
const FIRST_USAGE: usize = FIRST_TRAILING + 5;
const FIRST_FAULT: usize = FIRST_TRAILING + 17;

/// Rows of a group: enough to compress well, few enough to hold.
const GROUP_ROWS: usize = 65_536;
const CREATED_BY: &str = "chainmark";

enum Values {
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Flags(Vec<bool>),
    Texts(Vec<ByteArray>),
}

/// A column of the current group. Levels after the last value are added when the group is written.
struct Column {
    levels: Vec<i16>,
    values: Values,
}

impl Column {
    fn new(kind: Type) -> Self {
        let values = match kind {
            Type::Integer => Values::Integers(Vec::new()),
            Type::Number => Values::Numbers(Vec::new()),
            Type::Flag => Values::Flags(Vec::new()),
            Type::Text => Values::Texts(Vec::new()),
        };
        Self { levels: Vec::new(), values }
    }
}

/// Writes the table, group by group.
pub struct TruthWriter {
    path: String,
    file: SerializedFileWriter<File>,
    columns: Vec<Column>,
    rows: usize,
    system_start_ns: i64,
    hosts: Vec<ByteArray>,
    words: Words,
}

/// Texts that many rows share.
struct Words {
    block: ByteArray,
    slot: ByteArray,
    fault: ByteArray,
    forger: ByteArray,
    observer: ByteArray,
    extended: ByteArray,
    switched: ByteArray,
    stored: ByteArray,
}

impl TruthWriter {
    /// Begin the table.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, hosts: &[String], system_start_ns: i64) -> Result<Self> {
        let name = path.display().to_string();
        let storage = |source| SimulationError::Storage { path: name.clone(), source };
        let broken = |error: ParquetError| storage(std::io::Error::other(error));
        let schema = parse_message_type(&message_type()).map_err(broken)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(CREATED_BY.to_owned())
            .build();
        let file = File::create(path).map_err(storage)?;
        let file = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(broken)?;
        Ok(Self {
            path: name,
            file,
            columns: types().map(|(_, kind)| Column::new(kind)).collect(),
            rows: 0,
            system_start_ns,
            hosts: hosts.iter().map(|host| ByteArray::from(host.as_str())).collect(),
            words: Words {
                block: ByteArray::from("block"),
                slot: ByteArray::from("slot"),
                fault: ByteArray::from("fault"),
                forger: ByteArray::from("forger"),
                observer: ByteArray::from("observer"),
                extended: ByteArray::from("extended"),
                switched: ByteArray::from("switched"),
                stored: ByteArray::from("stored"),
            },
        })
    }

    /// # Errors
    /// The file cannot be written.
    pub fn block(
        &mut self,
        host: u32,
        text: &BlockText,
        parent: &BlockText,
        on_chain: bool,
        row: &BlockRow,
    ) -> Result<()> {
        let role = if text.block.forger == host { &self.words.forger } else { &self.words.observer }.clone();
        self.word(RECORD, self.words.block.clone());
        self.word(HOST, self.hosts[host as usize].clone());
        self.integer(SLOT, text.block.slot as i64);
        self.word(BLOCK, ByteArray::from(text.hash.to_vec()));
        if parent.block.number != GENESIS {
            self.word(PARENT, ByteArray::from(parent.hash.to_vec()));
        }
        self.integer(BLOCK_NO, text.block_no as i64);
        self.word(FORGER, self.hosts[text.block.forger as usize].clone());
        self.word(ROLE, role);
        self.flag(ON_CHAIN, on_chain);
        self.integer(BLOCK_BYTES, i64::from(text.block.bytes));
        match row.adoption {
            Some(Adoption::Extended) => self.word(ADOPTION, self.words.extended.clone()),
            Some(Adoption::Switched) => self.word(ADOPTION, self.words.switched.clone()),
            Some(Adoption::Stored) => self.word(ADOPTION, self.words.stored.clone()),
            None => {}
        }
        if row.fetch_length > 0 {
            self.integer(FETCH_LENGTH, row.fetch_length as i64);
        }
        self.reached(&row.reached);
        self.end_row()
    }

    /// # Errors
    /// The file cannot be written.
    pub fn slot(&mut self, host: u32, row: &SlotRow) -> Result<()> {
        self.word(RECORD, self.words.slot.clone());
        self.word(HOST, self.hosts[host as usize].clone());
        self.integer(SLOT, row.slot as i64);
        self.reached(&row.reached);
        self.integer(LOOP_STARTS, i64::from(row.loop_starts));
        self.flag(LOOP_STARTS + 1, row.is_leader);
        if let Some((density, utxo_entries)) = row.ledger {
            self.number(LOOP_STARTS + 2, density);
            self.integer(LOOP_STARTS + 3, utxo_entries as i64);
        }
        if let Some(transactions) = row.mempool_transactions {
            self.integer(LOOP_STARTS + 4, transactions as i64);
        }
        if let Some((printed_ns, usage)) = row.usage {
            let figures = [
                usage.cpu_centiseconds,
                usage.gc_centiseconds,
                usage.mutator_centiseconds,
                usage.major_collections,
                usage.minor_collections,
                usage.allocated_bytes,
                usage.live_bytes,
                usage.heap_bytes,
                usage.rss_bytes,
                usage.file_written_bytes,
                u64::from(usage.threads),
            ];
            self.integer(FIRST_USAGE, self.system_start_ns + printed_ns);
            for (place, figure) in figures.into_iter().enumerate() {
                self.integer(FIRST_USAGE + 1 + place, figure as i64);
            }
        }
        self.end_row()
    }

    /// # Errors
    /// The file cannot be written.
    pub fn fault(&mut self, fault: &Fault, lines: u64) -> Result<()> {
        self.word(RECORD, self.words.fault.clone());
        self.word(HOST, self.hosts[fault.host as usize].clone());
        self.word(FIRST_FAULT, ByteArray::from(fault.kind.info().name));
        if fault.from_ns > i64::MIN {
            self.integer(FIRST_FAULT + 1, self.system_start_ns + fault.from_ns);
        }
        if fault.until_ns < i64::MAX {
            self.integer(FIRST_FAULT + 2, self.system_start_ns + fault.until_ns);
        }
        self.number(FIRST_FAULT + 3, fault.value);
        if !fault.name.is_empty() {
            self.word(FIRST_FAULT + 4, ByteArray::from(fault.name.as_str()));
        }
        self.integer(FIRST_FAULT + 5, lines as i64);
        self.end_row()
    }

    /// Write the rest and close the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<()> {
        self.write_group()?;
        let path = self.path;
        self.file.close().map_err(|error| broken(&path, error))?;
        Ok(())
    }

    fn reached(&mut self, stages: &[Reached]) {
        for (stage, reached) in stages.iter().enumerate() {
            let column = FIRST_STAGE + 3 * stage;
            if reached.true_ns != NEVER {
                self.integer(column, self.system_start_ns + reached.true_ns);
                self.flag(column + 2, reached.written);
            }
            if reached.printed_ns != NEVER {
                self.integer(column + 1, self.system_start_ns + reached.printed_ns);
            }
        }
    }

    fn level(&mut self, column: usize) -> &mut Values {
        let column = &mut self.columns[column];
        column.levels.resize(self.rows, 0);
        column.levels.push(1);
        &mut column.values
    }

    fn integer(&mut self, column: usize, value: i64) {
        if let Values::Integers(values) = self.level(column) {
            values.push(value);
        }
    }

    fn number(&mut self, column: usize, value: f64) {
        if let Values::Numbers(values) = self.level(column) {
            values.push(value);
        }
    }

    fn flag(&mut self, column: usize, value: bool) {
        if let Values::Flags(values) = self.level(column) {
            values.push(value);
        }
    }

    fn word(&mut self, column: usize, value: ByteArray) {
        if let Values::Texts(values) = self.level(column) {
            values.push(value);
        }
    }

    fn end_row(&mut self) -> Result<()> {
        self.rows += 1;
        if self.rows < GROUP_ROWS { Ok(()) } else { self.write_group() }
    }

    fn write_group(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        for column in &mut self.columns {
            column.levels.resize(self.rows, 0);
        }
        write_columns(&mut self.file, &self.columns).map_err(|error| broken(&self.path, error))?;
        self.columns = types().map(|(_, kind)| Column::new(kind)).collect();
        self.rows = 0;
        Ok(())
    }
}

fn broken(path: &str, error: ParquetError) -> SimulationError {
    SimulationError::Storage { path: path.to_owned(), source: std::io::Error::other(error) }
}

fn write_columns(file: &mut SerializedFileWriter<File>, columns: &[Column]) -> std::result::Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    let mut columns = columns.iter();
    while let (Some(mut writer), Some(column)) = (group.next_column()?, columns.next()) {
        let levels = Some(column.levels.as_slice());
        match &column.values {
            Values::Integers(values) => writer.typed::<Int64Type>().write_batch(values, levels, None)?,
            Values::Numbers(values) => writer.typed::<DoubleType>().write_batch(values, levels, None)?,
            Values::Flags(values) => writer.typed::<BoolType>().write_batch(values, levels, None)?,
            Values::Texts(values) => writer.typed::<ByteArrayType>().write_batch(values, levels, None)?,
        };
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

/// All columns, in their order.
fn types() -> impl Iterator<Item = (String, Type)> {
    let named = |(name, kind): &(&str, Type)| ((*name).to_owned(), *kind);
    let stages = STAGES.iter().flat_map(|stage| {
        [
            (format!("{stage}_ns"), Type::Integer),
            (format!("{stage}_printed_ns"), Type::Integer),
            (format!("{stage}_written"), Type::Flag),
        ]
    });
    LEADING.iter().map(named).chain(stages).chain(TRAILING.iter().map(named))
}

fn message_type() -> String {
    let columns: Vec<String> = types()
        .map(|(name, kind)| match kind {
            Type::Integer => format!("optional int64 {name};"),
            Type::Number => format!("optional double {name};"),
            Type::Flag => format!("optional boolean {name};"),
            Type::Text => format!("optional binary {name} (UTF8);"),
        })
        .collect();
    format!("message truth {{ {} }}", columns.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_at_the_indices_used_by_the_writer() {
        let names: Vec<String> = types().map(|(name, _)| name).collect();
        assert_eq!(names[FIRST_STAGE], "started_ns");
        assert_eq!(names[FIRST_STAGE + 3 * Stage::SelfAdopted as usize + 2], "self_adopted_written");
        assert_eq!(names[LOOP_STARTS], "loop_starts");
        assert_eq!(names[FIRST_USAGE], "resources_printed_ns");
        assert_eq!(names[FIRST_USAGE + 11], "threads");
        assert_eq!(names[FIRST_FAULT], "fault");
        assert_eq!(names[FIRST_FAULT + 5], "fault_lines");
        let distinct: std::collections::HashSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
    }

    #[test]
    fn a_reader_sees_the_first_written_line() {
        let mut reached = Reached::default();
        reached.first(10, 11, false);
        reached.first(20, 21, true);
        reached.first(30, 31, true);
        assert_eq!(reached, Reached { true_ns: 10, printed_ns: 21, written: false });
        let mut last = Reached::default();
        last.last(10, 11, true);
        last.last(20, 21, false);
        assert_eq!(last, Reached { true_ns: 20, printed_ns: 11, written: false });
    }
}
