//! Every decoded event of a host as a row of a Parquet file, in the order of its lines.

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::columns::{Field, Kind, Table, Text};
use crate::error::Result;
use crate::event::{Event, Fact, Peer, Place, Resources};

/// Enough rows to compress well, few enough to hold.
const GROUP_ROWS: usize = 65_536;
/// Number of cached names of peers; a host has a few dozen.
const READY_PEERS: usize = 4096;

static MESSAGES: [&str; 26] = [
    "resources",
    "loop_start",
    "block_context",
    "ledger_state",
    "ledger_view",
    "leader",
    "not_leader",
    "ticked",
    "mempool_snapshot",
    "forged",
    "noticed",
    "requested",
    "fetched",
    "announced",
    "sent",
    "added",
    "self_adopted",
    "switched",
    "ledger_snapshot",
    "ledger_metrics",
    "transactions_collected",
    "transactions_processed",
    "mempool_size",
    "transaction_rejected",
    "transactions_acknowledged",
    "generator_summary",
];

const SAMPLED: [&str; 15] = [
    "cpu_centiseconds",
    "gc_centiseconds",
    "mutator_centiseconds",
    "major_collections",
    "minor_collections",
    "allocated_bytes",
    "live_bytes",
    "heap_bytes",
    "rss_bytes",
    "block_io_centiseconds",
    "net_read_bytes",
    "net_written_bytes",
    "file_read_bytes",
    "file_written_bytes",
    "threads",
];

const AT: usize = 0;
const MESSAGE: usize = 1;
const PLACE: usize = 2;
const SLOT: usize = 4;
const BLOCK_NO: usize = 5;
const BLOCK: usize = 6;
const PARENT: usize = 7;
const LENGTH: usize = 8;
const DELTA: usize = 9;
const SIZE: usize = 10;
const TRANSACTIONS: usize = 11;
const REJECTED: usize = 12;
const UTXO: usize = 13;
const DENSITY: usize = 14;
const LOCAL: usize = 15;
const REMOTE: usize = 16;
const FIRST_SAMPLED: usize = 17;

fn fields() -> Vec<Field> {
    let mut fields = vec![
        Field::required("at_ns", Kind::Integer),
        Field::required("message", Kind::Name(&MESSAGES)),
        Field::required("file", Kind::Small),
        Field::required("line", Kind::Integer),
        Field::optional("slot", Kind::Integer),
        Field::optional("block_no", Kind::Integer),
        Field::optional("block", Kind::Hash),
        Field::optional("parent", Kind::Hash),
        Field::optional("length", Kind::Integer),
        Field::optional("delta", Kind::Integer),
        Field::optional("size_bytes", Kind::Integer),
        Field::optional("transactions", Kind::Integer),
        Field::optional("rejected", Kind::Integer),
        Field::optional("utxo_entries", Kind::Integer),
        Field::optional("density", Kind::Number),
        Field::optional("local", Kind::Text),
        Field::optional("remote", Kind::Text),
    ];
    fields.extend(SAMPLED.map(|name| Field::optional(name, Kind::Integer)));
    fields
}

/// The table of a host's events.
pub struct EventTable {
    table: Table,
    peers: FxHashMap<Box<str>, Text>,
}

impl EventTable {
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path) -> Result<Self> {
        Ok(Self { table: Table::create(path, &fields(), GROUP_ROWS)?, peers: FxHashMap::default() })
    }

    /// # Errors
    /// The file cannot be written.
    pub fn listen(&mut self, event: &Event<'_>, place: Place) -> Result<()> {
        self.table.integer(AT, event.at_ns);
        self.table.name(MESSAGE, message(&event.fact));
        self.table.small(PLACE, place.file as i32);
        self.table.integer(PLACE + 1, place.line as i64);
        self.tell(&event.fact);
        self.table.end_row()
    }

    /// Write the rest and rename the file to its final name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<()> {
        self.table.finish()
    }

    fn tell(&mut self, fact: &Fact<'_>) {
        match fact {
            Fact::Resources(sample) => {
                for (place, figure) in sampled(sample).into_iter().enumerate() {
                    self.number(FIRST_SAMPLED + place, figure);
                }
            }
            Fact::LoopStart { slot, utxo_entries, density } | Fact::LedgerMetrics { slot, utxo_entries, density } => {
                self.number(SLOT, *slot);
                self.number(UTXO, *utxo_entries);
                self.table.number(DENSITY, *density);
            }
            Fact::BlockContext { slot, block_no, .. } => {
                self.number(SLOT, *slot);
                self.table.integer(BLOCK_NO, *block_no);
            }
            Fact::LedgerState { slot }
            | Fact::LedgerView { slot }
            | Fact::Leadership { slot, .. }
            | Fact::Ticked { slot, .. }
            | Fact::MempoolSnapshot { slot } => self.number(SLOT, *slot),
            Fact::TransactionsCollected { count } => self.number(TRANSACTIONS, *count),
            Fact::TransactionsProcessed { accepted, rejected } => {
                self.number(TRANSACTIONS, *accepted);
                self.table.integer(REJECTED, *rejected);
            }
            Fact::MempoolSize { transactions } => self.number(TRANSACTIONS, *transactions),
            Fact::LedgerSnapshot { .. }
            | Fact::TransactionRejected
            | Fact::TransactionsAcknowledged
            | Fact::GeneratorSummary => {}
            _ => self.write_block(fact),
        }
    }

    fn write_block(&mut self, fact: &Fact<'_>) {
        match fact {
            Fact::Forged { slot, block_no, block, parent } => {
                self.number(SLOT, *slot);
                self.number(BLOCK_NO, *block_no);
                self.table.hash(BLOCK, block);
                if let Some(parent) = parent {
                    self.table.hash(PARENT, parent);
                }
            }
            Fact::Noticed { slot, block_no, block, peer } => {
                self.number(SLOT, *slot);
                self.number(BLOCK_NO, *block_no);
                self.table.hash(BLOCK, block);
                self.peer(peer);
            }
            Fact::Fetched { block, size_bytes, peer } => {
                self.table.hash(BLOCK, block);
                if let Some(size_bytes) = size_bytes {
                    self.number(SIZE, *size_bytes);
                }
                self.peer(peer);
            }
            Fact::Requested { head, length, peer } => {
                self.table.hash(BLOCK, head);
                self.number(LENGTH, *length);
                self.peer(peer);
            }
            Fact::Announced { block } | Fact::Sent { block } => self.table.hash(BLOCK, block),
            Fact::Added { block, delta } | Fact::Switched { block, delta } => {
                self.table.hash(BLOCK, block);
                self.number(DELTA, *delta);
            }
            Fact::SelfAdopted { block, size_bytes, .. } => {
                self.table.hash(BLOCK, block);
                self.number(SIZE, *size_bytes);
            }
            _ => {}
        }
    }

    #[inline(always)]
    fn number(&mut self, column: usize, value: u64) {
        self.table.integer(column, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn peer(&mut self, peer: &Peer<'_>) {
        for (column, name) in [(LOCAL, peer.local), (REMOTE, peer.remote)] {
            let Some(name) = name else { continue };
            let text = self.ready(name);
            self.table.text(column, text);
        }
    }

    fn ready(&mut self, name: &str) -> Text {
        if let Some(text) = self.peers.get(name) {
            return text.clone();
        }
        if self.peers.len() >= READY_PEERS {
            self.peers.clear();
        }
        let text = Text::from(name);
        self.peers.insert(name.into(), text.clone());
        text
    }
}

/// The place of its name.
fn message(fact: &Fact<'_>) -> u8 {
    match fact {
        Fact::Resources(_) => 0,
        Fact::LoopStart { .. } => 1,
        Fact::BlockContext { .. } => 2,
        Fact::LedgerState { .. } => 3,
        Fact::LedgerView { .. } => 4,
        Fact::Leadership { leads: true, .. } => 5,
        Fact::Leadership { leads: false, .. } => 6,
        Fact::Ticked { .. } => 7,
        Fact::MempoolSnapshot { .. } => 8,
        Fact::Forged { .. } => 9,
        Fact::Noticed { .. } => 10,
        Fact::Requested { .. } => 11,
        Fact::Fetched { .. } => 12,
        Fact::Announced { .. } => 13,
        Fact::Sent { .. } => 14,
        Fact::Added { .. } => 15,
        Fact::SelfAdopted { .. } => 16,
        Fact::Switched { .. } => 17,
        Fact::LedgerSnapshot { .. } => 18,
        Fact::LedgerMetrics { .. } => 19,
        Fact::TransactionsCollected { .. } => 20,
        Fact::TransactionsProcessed { .. } => 21,
        Fact::MempoolSize { .. } => 22,
        Fact::TransactionRejected => 23,
        Fact::TransactionsAcknowledged => 24,
        Fact::GeneratorSummary => 25,
    }
}

fn sampled(sample: &Resources) -> [u64; SAMPLED.len()] {
    [
        sample.cpu_centiseconds,
        sample.gc_centiseconds,
        sample.mutator_centiseconds,
        sample.major_collections,
        sample.minor_collections,
        sample.allocated_bytes,
        sample.live_bytes,
        sample.heap_bytes,
        sample.rss_bytes,
        sample.block_io_centiseconds,
        sample.net_read_bytes,
        sample.net_written_bytes,
        sample.file_read_bytes,
        sample.file_written_bytes,
        sample.threads,
    ]
}
