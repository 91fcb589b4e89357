//! The typed content of a log line.
//!
//! Times are nanoseconds since 1970-01-01 UTC, as printed. Slots and block numbers are those of the chain: the first
//! block has number 0.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A block's header hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Hash(pub [u8; 32]);

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

/// A process's counters and gauges, absolute, as the node reads them about once a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    pub cpu_centiseconds: u64,
    pub gc_centiseconds: u64,
    pub mutator_centiseconds: u64,
    pub major_collections: u64,
    pub minor_collections: u64,
    pub allocated_bytes: u64,
    pub live_bytes: u64,
    pub heap_bytes: u64,
    pub rss_bytes: u64,
    pub block_io_centiseconds: u64,
    pub net_read_bytes: u64,
    pub net_written_bytes: u64,
    pub file_read_bytes: u64,
    pub file_written_bytes: u64,
    pub threads: u64,
}

/// A block by its hash and its slot, "HASH@SLOT"; some messages leave the slot out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    pub block: Hash,
    pub slot: Option<u64>,
}

/// The two ends of a connection as the node prints them; only the remote one is known in some formats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peer<'a> {
    pub local: Option<&'a str>,
    pub remote: Option<&'a str>,
}

/// The content of one line. Its peer is stored apart from it, as `OwnedEvent` does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Fact<'a> {
    Resources(Resources),
    /// The forge loop begins its round; old nodes log the ledger's figures here.
    LoopStart {
        slot: u64,
        utxo_entries: u64,
        density: f64,
    },
    /// `block_no` is that of the line's tip minus one, as the published analysis counts; that is the number of `tip`,
    /// which is None at the chain's beginning.
    BlockContext {
        slot: u64,
        block_no: i64,
        tip: Option<Point>,
    },
    LedgerState {
        slot: u64,
    },
    LedgerView {
        slot: u64,
    },
    Leadership {
        slot: u64,
        leads: bool,
    },
    /// `prev` is the block that will be built on.
    Ticked {
        slot: u64,
        prev: Option<Point>,
    },
    MempoolSnapshot {
        slot: u64,
    },
    /// `parent` is none for the chain's first block.
    Forged {
        slot: u64,
        block_no: u64,
        block: Hash,
        parent: Option<Hash>,
    },
    Noticed {
        slot: u64,
        block_no: u64,
        block: Hash,
        #[serde(skip)]
        peer: Peer<'a>,
    },
    /// `head` is the last block of the requested fragment, `length` its number of blocks.
    Requested {
        head: Hash,
        length: u64,
        #[serde(skip)]
        peer: Peer<'a>,
    },
    /// Old nodes do not log the size.
    Fetched {
        block: Hash,
        size_bytes: Option<u64>,
        #[serde(skip)]
        peer: Peer<'a>,
    },
    Announced {
        block: Hash,
    },
    Sent {
        block: Hash,
    },
    /// The selected chain was extended by the block. `delta` is how many blocks longer it became.
    Added {
        block: Hash,
        delta: u64,
    },
    /// The forge loop's own message; the only one with a block's size.
    SelfAdopted {
        slot: Option<u64>,
        block: Hash,
        size_bytes: u64,
    },
    /// The selected chain was changed for one that ends in the block.
    Switched {
        block: Hash,
        delta: u64,
    },
    /// `renamed` is true for the namespace that the published analysis does not know.
    LedgerSnapshot {
        renamed: bool,
    },
    LedgerMetrics {
        slot: u64,
        utxo_entries: u64,
        density: f64,
    },
    TransactionsCollected {
        count: u64,
    },
    /// `rejected` can be negative: real nodes print -1.
    TransactionsProcessed {
        accepted: u64,
        rejected: i64,
    },
    MempoolSize {
        transactions: u64,
    },
    TransactionRejected,
    TransactionsAcknowledged,
    GeneratorSummary,
}

impl Fact<'_> {
    /// The same without the peer, which borrows from the line.
    pub fn without_peer(&self) -> Fact<'static> {
        match *self {
            Fact::Noticed { slot, block_no, block, .. } => {
                Fact::Noticed { slot, block_no, block, peer: Peer::default() }
            }
            Fact::Fetched { block, size_bytes, .. } => Fact::Fetched { block, size_bytes, peer: Peer::default() },
            Fact::Resources(sample) => Fact::Resources(sample),
            Fact::LoopStart { slot, utxo_entries, density } => Fact::LoopStart { slot, utxo_entries, density },
            Fact::BlockContext { slot, block_no, tip } => Fact::BlockContext { slot, block_no, tip },
            Fact::LedgerState { slot } => Fact::LedgerState { slot },
            Fact::LedgerView { slot } => Fact::LedgerView { slot },
            Fact::Leadership { slot, leads } => Fact::Leadership { slot, leads },
            Fact::Ticked { slot, prev } => Fact::Ticked { slot, prev },
            Fact::MempoolSnapshot { slot } => Fact::MempoolSnapshot { slot },
            Fact::Forged { slot, block_no, block, parent } => Fact::Forged { slot, block_no, block, parent },
            Fact::Requested { head, length, .. } => Fact::Requested { head, length, peer: Peer::default() },
            Fact::Announced { block } => Fact::Announced { block },
            Fact::Sent { block } => Fact::Sent { block },
            Fact::Added { block, delta } => Fact::Added { block, delta },
            Fact::SelfAdopted { slot, block, size_bytes } => Fact::SelfAdopted { slot, block, size_bytes },
            Fact::Switched { block, delta } => Fact::Switched { block, delta },
            Fact::LedgerSnapshot { renamed } => Fact::LedgerSnapshot { renamed },
            Fact::LedgerMetrics { slot, utxo_entries, density } => Fact::LedgerMetrics { slot, utxo_entries, density },
            Fact::TransactionsCollected { count } => Fact::TransactionsCollected { count },
            Fact::TransactionsProcessed { accepted, rejected } => Fact::TransactionsProcessed { accepted, rejected },
            Fact::MempoolSize { transactions } => Fact::MempoolSize { transactions },
            Fact::TransactionRejected => Fact::TransactionRejected,
            Fact::TransactionsAcknowledged => Fact::TransactionsAcknowledged,
            Fact::GeneratorSummary => Fact::GeneratorSummary,
        }
    }

    /// The peer that the line names.
    pub fn peer(&self) -> Peer<'_> {
        match *self {
            Fact::Noticed { peer, .. } | Fact::Requested { peer, .. } | Fact::Fetched { peer, .. } => peer,
            _ => Peer::default(),
        }
    }
}

/// One decoded line.
#[derive(Debug, Clone, PartialEq)]
pub struct Event<'a> {
    pub at_ns: i64,
    pub fact: Fact<'a>,
}

/// An event that outlives its line.
#[derive(Debug, Serialize, Deserialize)]
pub struct OwnedEvent {
    /// Stored with the lines, which all have one.
    #[serde(skip)]
    pub at_ns: i64,
    fact: Fact<'static>,
    local: Option<Box<str>>,
    remote: Option<Box<str>>,
}

impl OwnedEvent {
    pub fn new(event: &Event<'_>) -> Self {
        let peer = event.fact.peer();
        Self {
            at_ns: event.at_ns,
            fact: event.fact.without_peer(),
            local: peer.local.map(Box::from),
            remote: peer.remote.map(Box::from),
        }
    }

    pub fn event(&self) -> Event<'_> {
        let peer = Peer { local: self.local.as_deref(), remote: self.remote.as_deref() };
        let fact = match self.fact {
            Fact::Noticed { slot, block_no, block, .. } => Fact::Noticed { slot, block_no, block, peer },
            Fact::Requested { head, length, .. } => Fact::Requested { head, length, peer },
            Fact::Fetched { block, size_bytes, .. } => Fact::Fetched { block, size_bytes, peer },
            other => other,
        };
        Event { at_ns: self.at_ns, fact }
    }
}

/// The position of a line: the index of its file in time order, and its number in it, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    pub file: u32,
    pub line: u64,
}
